//! Which settled edges are sent to a target now.
//!
//! Edges of one subject are taken together. What leads back to the state that the target knows is not sent, and neither
//! is what another edge says: a test that broke with its suite, and one that is healthy since its suite recovered. A
//! suite that begins to fail is sent at once. Everything else waits until an hour after the last message, and so does a
//! suite that was sent within the last day, so that flapping tests cause one message an hour at most. Flakiness alone waits
//! for three days, or for another message.

use std::collections::{HashMap, HashSet};

use assay_domain::{
    edge::{Edge, EdgeSubject, KEPT_DAYS},
    settings::ChatEvent,
    test::TestOrdinal,
    timestamp::{DAY_MS, Timestamp},
    verdict::VerdictStatus,
};

use crate::settle::{chains, leads_nowhere};

/// The least time between two messages to a target about a project, unless the second is urgent, in milliseconds.
const BETWEEN_MS: i64 = 60 * 60_000;

/// The same if the second is only about flakiness.
const FLAKINESS_BETWEEN_MS: i64 = 3 * DAY_MS;

/// What to do about the new edges of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// There is nothing new.
    Nothing,
    /// The new edges are covered without a message.
    Cover,
    /// They wait.
    Wait,
    /// These are sent now, each the last of its subject, with the verdict that the target knew in `from`.
    Send(Vec<Edge>),
}

/// Decides about the edges after `through`. `edges` are the settled edges of one project in the order of their batches,
/// of all events. `wanted` are the events of the target, and `last_message` is the time of its last message.
pub fn plan(
    edges: &[Edge],
    wanted: &[ChatEvent],
    through: i32,
    last_message: Option<Timestamp>,
    now: Timestamp,
) -> Decision {
    let wanted_edges = edges.iter().filter(|edge| wanted.contains(&edge.event));
    let is_new = |edge: &&Edge| edge.settled.is_some_and(|settled| settled.batch > through);
    let (new, sent): (Vec<Edge>, Vec<Edge>) = wanted_edges.cloned().partition(|edge| is_new(&edge));
    if !edges.iter().any(|edge| is_new(&edge)) {
        return Decision::Nothing;
    }
    let all: Vec<Edge> = chains(&new)
        .into_iter()
        .filter(|(_, chain)| !leads_nowhere(chain))
        .filter_map(|(_, chain)| joined(&chain))
        .collect();
    let runs = RunEdges::of(sent.iter().chain(&all));
    let sent_tests: HashSet<_> = sent.iter().filter_map(problem).collect();
    let is_recent = |edge: &&Edge| {
        edge.settled
            .is_some_and(|settled| now.since_ms(settled.at) < KEPT_DAYS * DAY_MS)
    };
    let sent_words: HashSet<_> = sent.iter().filter(is_recent).filter_map(flaky_word).collect();
    let is_sent = |edge: &&Edge| {
        let is_repeated = flaky_word(edge).is_some_and(|word| sent_words.contains(&word));
        !is_repeated && !runs.covers(edge) && is_a_change(edge, wanted, &sent_tests)
    };
    let mut net: Vec<Edge> = all.iter().filter(is_sent).cloned().collect();
    if net.is_empty() {
        return Decision::Cover;
    }
    // The message about a suite that passes again has the tests that were repaired.
    let has_recovered = |edge: &&Edge| {
        let is_its = |suite: &Edge| suite.event == ChatEvent::RunRecovered && suite.line() == edge.line();
        edge.event == ChatEvent::TestResolved && runs.covers(edge) && net.iter().any(is_its)
    };
    let repaired: Vec<Edge> = all.iter().filter(has_recovered).cloned().collect();
    net.extend(repaired);
    let is_urgent = net.iter().any(|edge| {
        let was_sent = sent.iter().any(|sent| {
            sent.subject == EdgeSubject::Suite
                && sent.line() == edge.line()
                && sent
                    .settled
                    .is_some_and(|settled| now.since_ms(settled.at) < DAY_MS)
        });
        edge.event == ChatEvent::RevertCandidate || edge.event == ChatEvent::RunFailed && !was_sent
    });
    let between_ms = match net.iter().all(|edge| flaky_word(edge).is_some()) {
        true => FLAKINESS_BETWEEN_MS,
        false => BETWEEN_MS,
    };
    match last_message {
        // A time in the future is of a clock that was wrong, and nothing waits for it.
        Some(at) if !is_urgent && (0..between_ms).contains(&now.since_ms(at)) => Decision::Wait,
        Some(_) | None => Decision::Send(net),
    }
}

/// The last edge of a chain, from the state before the first.
fn joined(chain: &[&Edge]) -> Option<Edge> {
    let (first, last) = (chain.first()?, chain.last()?);
    let mut joined = (*last).clone();
    if let (EdgeSubject::Test { from: before, .. }, EdgeSubject::Test { from, .. }) =
        (first.subject, &mut joined.subject)
    {
        *from = before;
    }
    Some(joined)
}

/// The test that an edge calls flaky or broken.
fn problem(edge: &Edge) -> Option<TestOrdinal> {
    let is_problem = [ChatEvent::TestFlaky, ChatEvent::TestBroken].contains(&edge.event);
    edge.test().filter(|_| is_problem)
}

/// What an edge says about the flakiness of a test. About a test that is flaky now and then, one message is sent in
/// [`KEPT_DAYS`].
fn flaky_word(edge: &Edge) -> Option<(TestOrdinal, ChatEvent)> {
    let is_about_flakiness = match edge.event {
        ChatEvent::TestFlaky => true,
        ChatEvent::TestResolved => edge.verdict_before() == Some(VerdictStatus::Flaky),
        ChatEvent::RunFailed
        | ChatEvent::RunRecovered
        | ChatEvent::TestBroken
        | ChatEvent::NewError
        | ChatEvent::FlakeBudgetExceeded
        | ChatEvent::FlakeBudgetMet
        | ChatEvent::FixHeld
        | ChatEvent::FixDidNotHold
        | ChatEvent::RevertCandidate => false,
    };
    let test = edge.test().filter(|_| is_about_flakiness)?;
    Some((test, edge.event))
}

/// Whether the target knows the problem that an edge ends. It does if it gets no messages about problems of this kind.
fn is_a_change(edge: &Edge, wanted: &[ChatEvent], sent: &HashSet<TestOrdinal>) -> bool {
    let EdgeSubject::Test { test, from, .. } = edge.subject else {
        return true;
    };
    if edge.event != ChatEvent::TestResolved {
        return true;
    }
    let problem = match from {
        VerdictStatus::Broken => ChatEvent::TestBroken,
        VerdictStatus::Flaky
        | VerdictStatus::InsufficientData
        | VerdictStatus::Healthy
        | VerdictStatus::Failing => ChatEvent::TestFlaky,
    };
    !wanted.contains(&problem) || sent.contains(&test)
}

/// The newest edge of each suite.
struct RunEdges<'a>(HashMap<(Option<&'a str>, &'a str), &'a Edge>);

impl<'a> RunEdges<'a> {
    fn of(edges: impl Iterator<Item = &'a Edge>) -> Self {
        let suites = edges.filter(|edge| edge.subject == EdgeSubject::Suite);
        Self(suites.map(|edge| (edge.line(), edge)).collect())
    }

    /// Whether the message about the suite covers what happened to a test.
    fn covers(&self, edge: &Edge) -> bool {
        let Some(of_suite) = self.0.get(&edge.line()) else {
            return false;
        };
        let shown = of_suite.run.map(|run| run.number);
        match (edge.event, of_suite.event) {
            (ChatEvent::TestBroken, ChatEvent::RunFailed) => {
                // The test had failed by the run that the message shows.
                edge.since_run
                    .is_some_and(|since| shown.is_some_and(|shown| since <= shown))
            }
            (ChatEvent::TestResolved, ChatEvent::RunRecovered) => {
                // A test that did not run in the run of the message passes later.
                edge.verdict_before() == Some(VerdictStatus::Broken)
                    && edge.run.map(|run| run.number) <= shown
            }
            // Nothing is to be reverted any more.
            (ChatEvent::RevertCandidate, ChatEvent::RunRecovered) => true,
            (
                ChatEvent::RunFailed
                | ChatEvent::RunRecovered
                | ChatEvent::TestFlaky
                | ChatEvent::TestBroken
                | ChatEvent::TestResolved
                | ChatEvent::NewError
                | ChatEvent::FlakeBudgetExceeded
                | ChatEvent::FlakeBudgetMet
                | ChatEvent::FixHeld
                | ChatEvent::FixDidNotHold
                | ChatEvent::RevertCandidate,
                _,
            ) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use ChatEvent::{NewError, RunFailed, RunRecovered, TestBroken, TestFlaky, TestResolved};
    use VerdictStatus::{Broken, Flaky, Healthy};

    use super::*;
    use crate::settle::tests::{at, edge, settled, test};

    const SUITE: EdgeSubject = EdgeSubject::Suite;

    fn numbers(decision: Decision) -> Vec<i32> {
        match decision {
            Decision::Send(edges) => edges.iter().map(|edge| edge.number).collect(),
            other @ (Decision::Nothing | Decision::Cover | Decision::Wait) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_failed_suite_is_sent_at_once_and_the_rest_an_hour_after_the_last_message() {
        let failed = settled(edge(0, 0, RunFailed, SUITE), 1);
        let last = Some(at(-5));
        assert_eq!(
            numbers(plan(slice::from_ref(&failed), ChatEvent::ALL, 0, last, at(0))),
            [0]
        );
        assert_eq!(
            plan(slice::from_ref(&failed), ChatEvent::ALL, 1, last, at(0)),
            Decision::Nothing
        );
        let error = settled(edge(1, 2, NewError, EdgeSubject::Error { signature: 3 }), 2);
        let edges = [failed, error];
        assert_eq!(
            plan(&edges, ChatEvent::ALL, 1, Some(at(0)), at(59)),
            Decision::Wait
        );
        assert_eq!(numbers(plan(&edges, ChatEvent::ALL, 1, Some(at(0)), at(60))), [1]);
        assert_eq!(numbers(plan(&edges, ChatEvent::ALL, 1, None, at(2))), [1]);
        // The target gets no messages about errors.
        assert_eq!(plan(&edges, &[RunFailed], 1, None, at(60)), Decision::Cover);
    }

    #[test]
    fn a_suite_that_fails_again_within_a_day_waits_for_the_hour() {
        let first = settled(edge(0, 0, RunFailed, SUITE), 1);
        let back = settled(edge(1, 10, RunRecovered, SUITE), 2);
        let again = settled(edge(2, 100, RunFailed, SUITE), 3);
        let edges = [first, back, again];
        assert_eq!(
            plan(&edges, ChatEvent::ALL, 2, Some(at(90)), at(100)),
            Decision::Wait
        );
        assert_eq!(
            numbers(plan(&edges, ChatEvent::ALL, 2, Some(at(90)), at(150))),
            [2]
        );
        // The target knows that the suite fails, and it still does.
        assert_eq!(
            plan(&edges, ChatEvent::ALL, 1, Some(at(0)), at(100)),
            Decision::Cover
        );
    }

    #[test]
    fn tests_that_broke_with_their_suite_are_sent_with_it() {
        let failed = settled(edge(5, 0, RunFailed, SUITE), 1);
        let mut broken = settled(edge(6, 3, TestBroken, test(7, Healthy, Broken)), 2);
        broken.since_run = Some(5);
        let mut later = settled(edge(8, 3, TestBroken, test(9, Healthy, Broken)), 2);
        later.since_run = Some(6);
        let edges = [failed.clone(), broken.clone(), later];
        assert_eq!(numbers(plan(&edges, ChatEvent::ALL, 1, None, at(3))), [8]);
        // Without messages about suites it is sent.
        assert_eq!(numbers(plan(&edges, &[TestBroken], 1, None, at(3))), [6, 8]);

        let recovered = settled(edge(10, 9, RunRecovered, SUITE), 3);
        let later = settled(edge(12, 20, TestResolved, test(7, Broken, Healthy)), 4);
        let skipped = [failed.clone(), broken.clone(), recovered.clone(), later];
        assert_eq!(numbers(plan(&skipped, ChatEvent::ALL, 3, None, at(20))), [12]);
        let mut resolved = settled(edge(11, 9, TestResolved, test(7, Broken, Healthy)), 3);
        resolved.run = recovered.run;
        let edges = [failed, broken, recovered, resolved];
        // The message names the tests that were repaired.
        assert_eq!(numbers(plan(&edges, ChatEvent::ALL, 2, None, at(9))), [10, 11]);
        assert_eq!(
            numbers(plan(&edges, &[TestBroken, TestResolved], 2, None, at(9))),
            [11]
        );
    }

    #[test]
    fn flakiness_alone_waits_for_three_days_or_for_another_message() {
        let flaky = settled(edge(1, 0, TestFlaky, test(7, Healthy, Flaky)), 1);
        let days = 3 * 24 * 60;
        assert_eq!(
            plan(
                slice::from_ref(&flaky),
                ChatEvent::ALL,
                0,
                Some(at(0)),
                at(days - 1)
            ),
            Decision::Wait
        );
        assert_eq!(
            numbers(plan(
                slice::from_ref(&flaky),
                ChatEvent::ALL,
                0,
                Some(at(0)),
                at(days)
            )),
            [1]
        );
        let error = settled(edge(2, 60, NewError, EdgeSubject::Error { signature: 3 }), 2);
        assert_eq!(
            numbers(plan(&[flaky, error], ChatEvent::ALL, 0, Some(at(0)), at(60))),
            [1, 2]
        );
    }

    #[test]
    fn a_test_that_is_flaky_now_and_then_is_sent_once() {
        let flaky =
            |number, minutes| settled(edge(number, minutes, TestFlaky, test(7, Healthy, Flaky)), number);
        let resolved = settled(edge(2, 600, TestResolved, test(7, Flaky, Healthy)), 2);
        let edges = [flaky(1, 0), resolved, flaky(3, 1_200)];
        assert_eq!(numbers(plan(&edges[..2], ChatEvent::ALL, 1, None, at(600))), [2]);
        assert_eq!(plan(&edges, ChatEvent::ALL, 2, None, at(1_200)), Decision::Cover);
        let other = settled(edge(4, 1_200, TestFlaky, test(8, Healthy, Flaky)), 4);
        assert_eq!(
            numbers(plan(&[flaky(1, 0), other], ChatEvent::ALL, 3, None, at(1_200))),
            [4]
        );
    }

    #[test]
    fn the_end_of_a_problem_is_sent_however_long_ago_it_began() {
        let days = |days: i64| days * 24 * 60;
        let flaky = settled(edge(1, 0, TestFlaky, test(7, Healthy, Flaky)), 1);
        let resolved = settled(edge(2, days(20), TestResolved, test(7, Flaky, Healthy)), 2);
        let again = settled(edge(3, days(40), TestFlaky, test(7, Healthy, Flaky)), 3);
        let edges = [flaky, resolved, again];
        assert_eq!(
            numbers(plan(&edges[..2], ChatEvent::ALL, 1, None, at(days(20)))),
            [2]
        );
        assert_eq!(numbers(plan(&edges, ChatEvent::ALL, 2, None, at(days(40)))), [3]);
    }

    #[test]
    fn of_fixes_of_one_test_the_last_one_is_sent_whatever_its_verdict_is() {
        let fix = EdgeSubject::Fix { test: 7 };
        let failed = settled(edge(1, 0, ChatEvent::FixDidNotHold, fix), 1);
        let flaky = settled(edge(2, 0, TestFlaky, test(7, Healthy, Flaky)), 1);
        let held = settled(edge(3, 5, ChatEvent::FixHeld, fix), 2);
        let edges = [failed.clone(), flaky, held];
        assert_eq!(
            numbers(plan(&edges, ChatEvent::ALL, 0, Some(at(-60)), at(5))),
            [3, 2]
        );
        assert_eq!(
            numbers(plan(&edges, &[ChatEvent::FixDidNotHold], 0, None, at(5))),
            [1]
        );
        assert_eq!(
            plan(&edges, ChatEvent::ALL, 0, Some(at(0)), at(5)),
            Decision::Wait
        );
    }

    #[test]
    fn a_message_of_the_future_holds_nothing_back() {
        let error = settled(edge(1, 0, NewError, EdgeSubject::Error { signature: 3 }), 1);
        let last = Some(at(600));
        assert_eq!(
            numbers(plan(slice::from_ref(&error), ChatEvent::ALL, 0, last, at(0))),
            [1]
        );
    }

    #[test]
    fn the_end_of_a_problem_that_was_never_sent_is_not_sent() {
        let resolved = settled(edge(1, 0, TestResolved, test(7, Flaky, Healthy)), 2);
        assert_eq!(
            plan(slice::from_ref(&resolved), ChatEvent::ALL, 1, None, at(0)),
            Decision::Cover
        );
        let flaky = settled(edge(0, -60, TestFlaky, test(7, Healthy, Flaky)), 1);
        assert_eq!(
            numbers(plan(&[flaky, resolved], ChatEvent::ALL, 1, None, at(0))),
            [1]
        );
    }
}
