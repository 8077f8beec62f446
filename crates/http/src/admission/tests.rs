use std::{
    future::poll_fn,
    pin::pin,
    sync::mpsc::{Receiver, Sender, channel},
    task::Poll,
};

use actix_web::rt::{
    spawn,
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::*;

/// Short limits, for tests that wait until a limit is over.
const LIMITS: TimeLimits = TimeLimits {
    waiting: Duration::from_secs(3),
    answering: Duration::from_secs(4),
};

type Admission = Arc<AdmissionControl<u8>>;

fn admission(threads: usize) -> Admission {
    Arc::new(AdmissionControl::new(threads, LIMITS))
}

/// Admission with limits that a busy machine does not reach.
fn patient(threads: usize) -> Admission {
    let limits = TimeLimits {
        waiting: Duration::from_secs(120),
        answering: Duration::from_secs(180),
    };
    Arc::new(AdmissionControl::new(threads, limits))
}

/// Work that holds its thread until the sender is dropped.
fn hold(admission: &Admission, key: u8) -> (JoinHandle<Result<(), Rejected>>, Sender<()>) {
    let (sender, receiver): (_, Receiver<()>) = channel();
    let admission = Arc::clone(admission);
    let holder = spawn(async move {
        let work = move || {
            // Ends with an error when the sender is dropped.
            let _ = receiver.recv();
        };
        admission.run(key, work).await
    });
    (holder, sender)
}

fn wait(admission: &Admission, key: u8) -> JoinHandle<Result<(), Rejected>> {
    let admission = Arc::clone(admission);
    spawn(async move { admission.run(key, || ()).await })
}

fn total_taken(admission: &Admission) -> u64 {
    admission.0.state().places.all()
}

fn free_threads(admission: &Admission) -> u64 {
    admission.0.threads.all - admission.0.state().threads.all()
}

async fn until(condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(60), waiting).await.unwrap();
}

#[actix_web::test]
async fn finished_work_frees_its_thread_and_its_place() {
    let admission = patient(2);
    assert_eq!(admission.run(1, || 7).await, Ok(7));
    let panicking: fn() = || panic!("on purpose");
    assert_eq!(admission.run(1, panicking).await, Err(Rejected::Panicked));
    until(|| total_taken(&admission) == 0 && free_threads(&admission) == 2).await;
    assert!(admission.0.state().lanes.is_empty());
}

#[actix_web::test]
async fn hanging_work_is_answered_and_further_work_is_rejected_at_once() {
    let admission = admission(1);
    let (hanging, thread) = hold(&admission, 1);
    assert_eq!(hanging.await.unwrap(), Err(Rejected::TimedOut));
    for key in [1, 2] {
        let mut request = pin!(admission.run(key, || ()));
        let first = poll_fn(|context| Poll::Ready(request.as_mut().poll(context))).await;
        // A request that waited in the queue would be pending.
        assert_eq!(first, Poll::Ready(Err(Rejected::Overloaded)));
    }
    drop(thread);
    until(|| total_taken(&admission) == 0).await;
    assert_eq!(admission.run(2, || ()).await, Ok(()));
}

#[actix_web::test]
async fn a_request_that_waits_for_too_long_is_rejected_and_leaves_the_queue() {
    let admission = admission(1);
    let (_held, thread) = hold(&admission, 1);
    until(|| free_threads(&admission) == 0).await;
    assert_eq!(admission.run(2, || ()).await, Err(Rejected::Overloaded));
    assert_eq!(total_taken(&admission), 1);
    drop(thread);
}

#[actix_web::test]
async fn a_client_that_disconnects_in_the_queue_causes_no_work() {
    let admission = patient(1);
    let (holder, thread) = hold(&admission, 1);
    until(|| free_threads(&admission) == 0).await;
    let (done, was_done) = channel();
    let waiting = {
        let admission = Arc::clone(&admission);
        spawn(async move { admission.run(1, move || done.send(())).await.map(drop) })
    };
    until(|| total_taken(&admission) == 2).await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    drop(thread);
    assert_eq!(holder.await.unwrap(), Ok(()));
    until(|| total_taken(&admission) == 0).await;
    // The work was dropped, its sender with it.
    assert!(was_done.recv().is_err());
}

#[actix_web::test]
async fn a_key_holds_half_of_the_threads_and_leaves_the_others_to_other_keys() {
    let admission = patient(4);
    let holders: Vec<_> = (0..5).map(|_| hold(&admission, 1)).collect();
    until(|| total_taken(&admission) == 5).await;
    until(|| free_threads(&admission) == 2).await;
    for key in 2..20 {
        assert_eq!(admission.run(key, || ()).await, Ok(()), "{key}");
    }
    let other = hold(&admission, 2);
    until(|| free_threads(&admission) == 1).await;
    assert_eq!(admission.run(3, || ()).await, Ok(()));
    drop(other);
    for (holders, thread) in holders {
        drop(thread);
        assert_eq!(holders.await.unwrap(), Ok(()));
    }
}

#[actix_web::test]
async fn a_key_fills_a_quarter_of_the_queue_and_all_keys_fill_it() {
    let admission = patient(2);
    let queue = 2 * QUEUE_PER_THREAD;
    let holders = [hold(&admission, 1), hold(&admission, 2)];
    until(|| free_threads(&admission) == 0).await;
    let mut waiting = Vec::new();
    for key in [1, 2, 3, 4] {
        // Keys 1 and 2 already use one place each, for the request that holds a thread.
        let places = if key <= 2 { queue / 4 } else { queue / 4 + 1 };
        let before = total_taken(&admission);
        waiting.extend((0..places).map(|_| wait(&admission, key)));
        until(|| total_taken(&admission) == before + places || waiting.iter().any(JoinHandle::is_finished))
            .await;
        if key <= 3 {
            assert_eq!(
                admission.run(key, || ()).await,
                Err(Rejected::Overloaded),
                "{key}"
            );
        }
    }
    assert_eq!(total_taken(&admission), 2 + queue);
    assert_eq!(admission.run(5, || ()).await, Err(Rejected::Overloaded));
    for (holders, thread) in holders {
        drop(thread);
        assert_eq!(holders.await.unwrap(), Ok(()));
    }
    let mut rejected = 0;
    for waiting in waiting {
        rejected += usize::from(waiting.await.unwrap().is_err());
    }
    // Keys 3 and 4 each request one place more than a quarter of the queue, so two requests exceed it.
    assert_eq!(rejected, 2);
}

#[actix_web::test]
async fn threads_share_the_work_of_many_requests() {
    let admission = patient(3);
    let requests: Vec<_> = (0..200)
        .map(|number: u8| {
            let admission = Arc::clone(&admission);
            spawn(async move { admission.run(number % 7, move || number).await })
        })
        .collect();
    for (number, request) in (0..200).zip(requests) {
        assert_eq!(request.await.unwrap(), Ok(number));
    }
    until(|| total_taken(&admission) == 0).await;
    assert_eq!(free_threads(&admission), 3);
}

#[actix_web::test]
async fn a_thread_starts_the_first_request_whose_key_is_below_its_share() {
    let shares = Shares {
        threads: 2,
        threads_of_key: 1,
        places: 10,
        places_of_key: 10,
    };
    let admission = Arc::new(AdmissionControl::with_shares(shares, patient(1).0.limits));
    let (first, first_thread) = hold(&admission, 1);
    let (second, second_thread) = hold(&admission, 2);
    until(|| free_threads(&admission) == 0).await;
    let (started, starts) = channel();
    let mut waiting = Vec::new();
    for (key, name) in [(1, "1a"), (2, "2a"), (3, "3a"), (2, "2b")] {
        let (shared, started) = (Arc::clone(&admission), started.clone());
        let before = total_taken(&admission);
        waiting.push(spawn(async move {
            shared.run(key, move || started.send(name).unwrap()).await
        }));
        until(|| total_taken(&admission) == before + 1).await;
    }
    // Key 1 holds its only thread, so its second request waits although it arrived before the others.
    drop(second_thread);
    assert_eq!(second.await.unwrap(), Ok(()));
    until(|| total_taken(&admission) == 2).await;
    drop(first_thread);
    assert_eq!(first.await.unwrap(), Ok(()));
    for request in waiting {
        assert_eq!(request.await.unwrap(), Ok(()));
    }
    assert_eq!(starts.try_iter().collect::<Vec<_>>(), ["2a", "3a", "2b", "1a"]);
}

#[actix_web::test]
async fn a_thread_whose_work_panicked_starts_the_next_request() {
    let admission = patient(1);
    let (holder, thread) = hold(&admission, 1);
    until(|| free_threads(&admission) == 0).await;
    let panicking = {
        let admission = Arc::clone(&admission);
        let work: fn() = || panic!("on purpose");
        spawn(async move { admission.run(1, work).await })
    };
    until(|| total_taken(&admission) == 2).await;
    let next = wait(&admission, 1);
    until(|| total_taken(&admission) == 3).await;
    drop(thread);
    assert_eq!(holder.await.unwrap(), Ok(()));
    assert_eq!(panicking.await.unwrap(), Err(Rejected::Panicked));
    assert_eq!(next.await.unwrap(), Ok(()));
}

#[actix_web::test]
async fn a_place_is_free_before_its_request_is_answered() {
    let admission = patient(2);
    for _ in 0..100 {
        assert_eq!(admission.run(1, || ()).await, Ok(()));
        assert_eq!(admission.places_taken(&1), 0);
    }
}

#[actix_web::test]
async fn a_thread_of_a_worker_that_ended_is_used_again() {
    let admission = patient(1);
    let worker = std::thread::spawn({
        let admission = Arc::clone(&admission);
        move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .max_blocking_threads(1)
                .enable_time()
                .build()
                .unwrap();
            let (held, receiver) = channel::<()>();
            // The job waits for the worker's only thread, and is dropped with the worker.
            runtime.spawn_blocking(move || receiver.recv());
            let job = async { timeout(Duration::from_millis(1), admission.run(1, || ())).await };
            assert!(runtime.block_on(job).is_err());
            runtime.shutdown_background();
            drop(held);
        }
    });
    worker.join().unwrap();
    until(|| free_threads(&admission) == 1).await;
    assert_eq!(admission.run(2, || ()).await, Ok(()));
    assert_eq!(total_taken(&admission), 0);
}

#[actix_web::test]
async fn requests_of_public_keys_start_last_and_use_at_most_half() {
    let limits = TimeLimits {
        waiting: Duration::from_secs(120),
        answering: Duration::from_secs(180),
    };
    let shares = Shares {
        threads: 4,
        threads_of_key: 4,
        places: 100,
        places_of_key: 8,
    };
    let admission = Arc::new(AdmissionControl::with_shares(shares, limits));
    let start = |key, precedence| {
        let (sender, receiver): (_, Receiver<()>) = channel();
        let (began_at, began) = channel();
        let admission = Arc::clone(&admission);
        let work = move || {
            let _ = began_at.send(());
            let _ = receiver.recv();
        };
        let running = spawn(async move { admission.run_after(key, precedence, work).await });
        (running, sender, began)
    };
    let public: Vec<_> = (0..4).map(|_| start(1, Precedence::Public)).collect();
    until(|| total_taken(&admission) == 4).await;
    assert_eq!(free_threads(&admission), 2, "two of the public key's wait");
    // Half of the key's places are for its trusted requests.
    assert_eq!(
        start(1, Precedence::Public).0.await.unwrap(),
        Err(Rejected::Overloaded)
    );
    let trusted: Vec<_> = (0..3).map(|_| start(1, Precedence::Trusted)).collect();
    until(|| free_threads(&admission) == 0 && total_taken(&admission) == 7).await;
    // The third trusted request passes the public ones that wait.
    let mut public = public.into_iter();
    let (_, sender, _) = public.next().unwrap();
    drop(sender);
    until(|| total_taken(&admission) == 6).await;
    trusted[2].2.recv().unwrap();
    drop(trusted);
    until(|| total_taken(&admission) == 3).await;
    assert_eq!(free_threads(&admission), 2);
    drop(public);
    until(|| total_taken(&admission) == 0 && admission.0.state().lanes.is_empty()).await;
    assert_eq!(admission.0.state().places, crate::held::Held::default());
    assert_eq!(admission.0.state().threads, crate::held::Held::default());
}
