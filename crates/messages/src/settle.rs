//! When an edge becomes certain.
//!
//! An edge that is red on the stable branch now is certain at once. Any other must survive one further judgement or ten
//! minutes. Edges of one subject follow each other, so a later one replaces an earlier one, and two that lead back to the
//! first state cancel each other.

use std::collections::HashMap;

use assay_domain::{
    edge::{Edge, EdgeSubject},
    settings::ChatEvent,
    test::TestOrdinal,
    timestamp::Timestamp,
    verdict::VerdictStatus,
};

/// How long an edge waits for a further judgement, in milliseconds.
const WAIT_MS: i64 = 10 * 60_000;

/// The edges that leave the outbox's waiting state, by their numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settlement {
    /// The edges that are certain.
    pub settled: Vec<i32>,
    /// The edges that a later one took back.
    pub cancelled: Vec<i32>,
}

impl Settlement {
    /// Whether no edge leaves the state.
    pub fn is_empty(&self) -> bool {
        self.settled.is_empty() && self.cancelled.is_empty()
    }
}

/// Settles the edges that are due. `edges` are those of one project that are not settled, in their order; `judged_at` is
/// the project's last judgement.
pub fn settle(edges: &[Edge], judged_at: Option<Timestamp>, now: Timestamp) -> Settlement {
    let mut settlement = Settlement::default();
    for (_, chain) in chains(edges) {
        let Some(last) = chain.last() else { continue };
        let numbers = chain.iter().map(|edge| edge.number);
        if leads_nowhere(&chain) {
            settlement.cancelled.extend(numbers);
        } else if is_certain(last, judged_at, now) {
            settlement.settled.extend(numbers);
        }
    }
    settlement.settled.sort_unstable();
    settlement.cancelled.sort_unstable();
    settlement
}

fn is_certain(edge: &Edge, judged_at: Option<Timestamp>, now: Timestamp) -> bool {
    let is_judged_again = judged_at.is_some_and(|at| at > edge.judged_at);
    edge.is_red || is_judged_again || now.since_ms(edge.judged_at) >= WAIT_MS
}

/// What an edge is about, whatever happened to it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum SubjectKey<'a> {
    Suite(Option<&'a str>, &'a str),
    Breakage(Option<&'a str>, &'a str),
    Test(TestOrdinal),
    Error(i32),
    Budget,
    Fix(TestOrdinal),
}

impl<'a> SubjectKey<'a> {
    pub(crate) fn of(edge: &'a Edge) -> Self {
        match edge.subject {
            EdgeSubject::Suite => Self::Suite(edge.release_branch.as_deref(), &edge.suite),
            EdgeSubject::Breakage => Self::Breakage(edge.release_branch.as_deref(), &edge.suite),
            EdgeSubject::Test { test, .. } => Self::Test(test),
            EdgeSubject::Error { signature } => Self::Error(signature),
            EdgeSubject::Budget { .. } => Self::Budget,
            EdgeSubject::Fix { test } => Self::Fix(test),
        }
    }
}

/// The edges by their subjects, each subject's in their order, and the subjects in that of their first edges.
pub(crate) fn chains(edges: &[Edge]) -> Vec<(SubjectKey<'_>, Vec<&Edge>)> {
    let mut places: HashMap<SubjectKey<'_>, usize> = HashMap::new();
    let mut chains: Vec<(SubjectKey<'_>, Vec<&Edge>)> = Vec::new();
    for edge in edges {
        let key = SubjectKey::of(edge);
        let place = *places.entry(key.clone()).or_insert(chains.len());
        match chains.get_mut(place) {
            Some((_, chain)) => chain.push(edge),
            None => chains.push((key, vec![edge])),
        }
    }
    chains
}

/// Whether the last edge of a subject leads back to the state before the first.
pub(crate) fn leads_nowhere(chain: &[&Edge]) -> bool {
    let (Some(first), Some(last)) = (chain.first(), chain.last()) else {
        return true;
    };
    match (first.subject, last.subject) {
        (EdgeSubject::Test { from, .. }, EdgeSubject::Test { to, .. }) => is_same_state(from, to),
        (EdgeSubject::Suite, EdgeSubject::Suite) => {
            (first.event == ChatEvent::RunFailed) != (last.event == ChatEvent::RunFailed)
        }
        // It alternates, so an even number of edges leads back.
        (EdgeSubject::Budget { .. }, EdgeSubject::Budget { .. }) => first.event != last.event,
        (
            EdgeSubject::Error { .. }
            | EdgeSubject::Suite
            | EdgeSubject::Breakage
            | EdgeSubject::Test { .. }
            | EdgeSubject::Budget { .. }
            // Its last edge is about the newest fix.
            | EdgeSubject::Fix { .. },
            _,
        ) => false,
    }
}

/// Whether messages make no difference between two verdicts: no message is about any but flaky and broken.
const fn is_same_state(one: VerdictStatus, other: VerdictStatus) -> bool {
    const fn state(status: VerdictStatus) -> u8 {
        match status {
            VerdictStatus::InsufficientData | VerdictStatus::Healthy | VerdictStatus::Failing => 0,
            VerdictStatus::Flaky => 1,
            VerdictStatus::Broken => 2,
        }
    }
    state(one) == state(other)
}

#[cfg(test)]
pub(crate) mod tests {
    use assay_domain::{
        edge::{EdgeRun, Settled},
        id::RunId,
    };

    use super::*;

    pub(crate) const MINUTE: i64 = 60_000;

    pub(crate) fn at(minutes: i64) -> Timestamp {
        Timestamp::from_unix_ms(1_795_000_000_000).plus_ms(minutes * MINUTE)
    }

    /// An edge of the suite `e2e`, or of a test, at a minute.
    pub(crate) fn edge(number: i32, minutes: i64, event: ChatEvent, subject: EdgeSubject) -> Edge {
        Edge {
            number,
            judged_at: at(minutes),
            event,
            release_branch: None,
            suite: "e2e".to_owned(),
            subject,
            run: Some(EdgeRun {
                id: RunId("019aa3f4-5b1c-7def-8a3b-000000000812".parse().unwrap()),
                number,
            }),
            since_run: None,
            is_red: event == ChatEvent::RunFailed,
            settled: None,
        }
    }

    pub(crate) fn settled(edge: Edge, batch: i32) -> Edge {
        let at = edge.judged_at;
        Edge {
            settled: Some(Settled { batch, at }),
            ..edge
        }
    }

    pub(crate) fn test(number: TestOrdinal, from: VerdictStatus, to: VerdictStatus) -> EdgeSubject {
        EdgeSubject::Test {
            test: number,
            from,
            to,
        }
    }

    use ChatEvent::{RunFailed, RunRecovered, TestBroken, TestFlaky, TestResolved};
    use VerdictStatus::{Broken, Flaky, Healthy};

    #[test]
    fn a_red_edge_is_certain_at_once_and_another_after_a_judgement_or_ten_minutes() {
        let failed = edge(0, 0, RunFailed, EdgeSubject::Suite);
        let flaky = edge(1, 0, TestFlaky, test(7, Healthy, Flaky));
        let edges = [failed, flaky];
        assert_eq!(settle(&edges, Some(at(0)), at(9)).settled, [0]);
        assert_eq!(settle(&edges, Some(at(1)), at(9)).settled, [0, 1]);
        assert_eq!(settle(&edges, Some(at(0)), at(10)).settled, [0, 1]);
        assert_eq!(settle(&edges, None, at(0)).settled, [0]);
    }

    #[test]
    fn edges_that_lead_back_cancel_each_other_and_others_follow_the_last_one() {
        let there = edge(0, 0, TestFlaky, test(7, Healthy, Flaky));
        let back = edge(1, 1, TestResolved, test(7, Flaky, Healthy));
        let both = [there.clone(), back];
        assert_eq!(
            settle(&both, Some(at(1)), at(1)),
            Settlement {
                settled: vec![],
                cancelled: vec![0, 1]
            }
        );
        // Flaky, then broken: the first waits for the second.
        let onward = [there, edge(1, 1, TestBroken, test(7, Flaky, Broken))];
        assert!(settle(&onward, Some(at(1)), at(2)).is_empty());
        assert_eq!(settle(&onward, Some(at(2)), at(2)).settled, [0, 1]);

        let recovered = edge(3, 5, RunRecovered, EdgeSubject::Suite);
        let again = edge(4, 6, RunFailed, EdgeSubject::Suite);
        assert_eq!(settle(&[recovered, again], Some(at(6)), at(6)).cancelled, [3, 4]);
    }

    #[test]
    fn subjects_are_independent_of_each_other() {
        let one = edge(0, 0, TestFlaky, test(7, Healthy, Flaky));
        let other = edge(1, 1, TestResolved, test(8, Flaky, Healthy));
        assert_eq!(settle(&[one, other], Some(at(2)), at(2)).settled, [0, 1]);
    }
}
