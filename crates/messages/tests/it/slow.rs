//! Targets that take long.

use std::sync::{Arc, Mutex};

use assay_domain::{settings::ChatEvent, timestamp::Timestamp};
use assay_flakiness::Engine;
use assay_messages::{Channel, Notifier, Outgoing, Receipt, Scope, SendError, Target};

use crate::world::{HOUR, MINUTE, Run, START, World};

/// A target that takes ten minutes for each message, and keeps the times of its attempts.
struct Slow {
    clock: Arc<Mutex<Timestamp>>,
    attempts: Arc<Mutex<Vec<Timestamp>>>,
}

impl Channel for Slow {
    fn send(&self, message: &Outgoing<'_>) -> Result<Receipt, SendError> {
        self.attempts.lock().unwrap().push(message.now);
        let mut clock = self.clock.lock().unwrap();
        *clock = clock.plus_ms(10 * MINUTE);
        Ok(None)
    }

    fn kind(&self) -> &'static str {
        "slow"
    }
}

#[test]
fn each_attempt_of_a_pass_has_its_own_time() {
    let world = World::new(3);
    let clock = Arc::new(Mutex::new(START));
    let attempts = Arc::new(Mutex::new(Vec::new()));
    let target = Target {
        name: "slow".to_owned(),
        scope: Scope::All,
        events: ChatEvent::ALL.to_vec(),
        quiet: None,
        digest: None,
        channel: Box::new(Slow {
            clock: Arc::clone(&clock),
            attempts: Arc::clone(&attempts),
        }),
    };
    let engine = Engine::default();
    let notifier = Notifier::new(&world.store, &engine, None, vec![target], || 0.0);
    let now = || *clock.lock().unwrap();
    for number in 0..4 {
        let at = START.plus_ms(number * 24 * HOUR);
        *clock.lock().unwrap() = at;
        for project in &world.projects {
            let failed = (number == 3).then(|| (0, "it is gone".to_owned()));
            let run = Run::of_main(number, 3, failed.into_iter().collect());
            world.import(project, &run, at);
        }
        notifier.pass(&now).unwrap();
    }
    // A receiver of webhooks refuses a signature that is some minutes old.
    let first = START.plus_ms(3 * 24 * HOUR);
    let expected = [0, 10, 20].map(|minutes| first.plus_ms(minutes * MINUTE));
    assert_eq!(*attempts.lock().unwrap(), expected);
}
