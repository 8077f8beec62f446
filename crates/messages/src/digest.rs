//! The content of a digest: what was resolved, what came new, and what costs most time, by owner.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use assay_answers::{
    flaky::{FlakyQuery, flaky_list},
    links,
    owners::owners,
    test_list::TestFilters,
};
use assay_domain::{
    edge::Edge,
    owners::Ownership,
    page::PerPage,
    settings::ChatEvent,
    store::{OutboxProject, StoreError, in_snapshot},
    test::TestOrdinal,
    timestamp::Timestamp,
    verdict::{FlakySort, VerdictEntry, VerdictStatus},
};

use crate::{
    Content, Every, Group, Period, Reader, Tone,
    compose::{error_title, names, test_name, tests},
    content::{SENTENCE_CHARS, bounded},
};

/// Most owners in a digest.
const MOST_GROUPS: usize = 5;
/// Most lines of an owner.
const MOST_LINES: usize = 4;
/// Most tests by the time that they cost.
const MOST_COSTLY: usize = 10;
/// Least time that is worth a line, in milliseconds.
const LEAST_LOST_MS: u64 = 60_000;

/// The changes of one owner.
#[derive(Default)]
struct OfOwner {
    broken: Vec<String>,
    /// Those that were broken and pass.
    repaired: Vec<String>,
    flaky: Vec<String>,
    /// Those that were flaky and are not any more.
    resolved: Vec<String>,
    /// Those whose fix held.
    held: Vec<String>,
    /// Those whose fix did not hold.
    not_held: Vec<String>,
    /// The tests by lost time, the most first.
    costly: Vec<(String, u64)>,
}

/// The content of a digest about the edges that settled in a period; none if there is nothing to say.
///
/// # Errors
/// If the store fails.
pub fn digest(
    reader: Reader<'_>,
    project: &OutboxProject,
    edges: &[Edge],
    period: Period,
    now: Timestamp,
) -> Result<Option<Content>, StoreError> {
    let is_within = |edge: &&Edge| {
        let settled = edge.settled;
        settled.is_some_and(|settled| settled.at >= period.from && settled.at < period.until)
    };
    let edges: Vec<Edge> = edges.iter().filter(is_within).cloned().collect();
    let errors: Vec<String> = new_errors(reader, project, &edges)?;
    let costly = costly(reader, project, now)?;
    let by_owner = by_owner(reader, project, &edges, costly, now)?;
    if by_owner.is_empty() && errors.is_empty() {
        return Ok(None);
    }
    let sum = |of: fn(&OfOwner) -> usize| by_owner.values().map(of).sum::<usize>();
    let (broken, flaky) = (sum(|owner| owner.broken.len()), sum(|owner| owner.flaky.len()));
    let (repaired, resolved) = (
        sum(|owner| owner.repaired.len()),
        sum(|owner| owner.resolved.len()),
    );
    let headline = format!(
        "the last {}: {} broke, {repaired} repaired, {flaky} became flaky, {resolved} not flaky any more, {}",
        match period.every {
            Every::Day => "day",
            Every::Week => "week",
        },
        tests(broken),
        match errors.len() {
            1 => "1 new error".to_owned(),
            number => format!("{number} new errors"),
        }
    );
    let mut groups: Vec<Group> = by_owner.iter().map(|(owner, of)| group(owner, of)).collect();
    if !errors.is_empty() {
        groups.push(listed("new errors".to_owned(), errors));
    }
    let more = groups.len().saturating_sub(MOST_GROUPS);
    groups.truncate(MOST_GROUPS);
    Ok(Some(Content {
        project_id: project.project.id.to_string(),
        project: bounded(&project.project.name, SENTENCE_CHARS),
        organization: bounded(&project.organization, SENTENCE_CHARS),
        headline,
        tone: Tone::Neutral,
        events: Vec::new(),
        groups,
        more,
        url: reader
            .pages
            .map(|pages| pages.address(&links::project(project.project.id, ""))),
    }))
}

fn new_errors(
    reader: Reader<'_>,
    project: &OutboxProject,
    edges: &[Edge],
) -> Result<Vec<String>, StoreError> {
    let is_error = |edge: &&Edge| edge.event == ChatEvent::NewError;
    let errors: Vec<Edge> = edges.iter().filter(is_error).cloned().collect();
    let names = names(reader, &project.project, &errors)?;
    Ok(names
        .errors
        .iter()
        .map(|(.., title)| error_title(title))
        .collect())
}

/// The flaky and broken tests that cost most time.
fn costly(
    reader: Reader<'_>,
    project: &OutboxProject,
    now: Timestamp,
) -> Result<Vec<VerdictEntry>, StoreError> {
    let query = FlakyQuery {
        status: None,
        sort: FlakySort::TimeLost,
        filters: TestFilters::default(),
        page: 1,
        per_page: PerPage::Ten,
        explain: false,
    };
    let judge = |history: &_| reader.engine.suspects(history, now);
    let list = flaky_list(reader.store, reader.engine, judge, &project.project, &query, now)?;
    let costs = |entry: &VerdictEntry| {
        entry
            .figures
            .time_lost_ms
            .is_some_and(|lost| lost >= LEAST_LOST_MS)
    };
    Ok(list.tests.into_iter().filter(costs).take(MOST_COSTLY).collect())
}

/// The changes by owner. Tests without an owner have an empty one.
fn by_owner(
    reader: Reader<'_>,
    project: &OutboxProject,
    edges: &[Edge],
    costly: Vec<VerdictEntry>,
    now: Timestamp,
) -> Result<BTreeMap<String, OfOwner>, StoreError> {
    // What broke and is repaired by the end was told, so each of both counts, once for a test.
    let mut told = BTreeSet::new();
    let is_first = |edge: &&Edge| edge.test().is_some_and(|test| told.insert((edge.event, test)));
    let changed: Vec<Edge> = edges.iter().filter(is_first).cloned().collect();
    let names = names(reader, &project.project, &changed)?;
    let files: HashMap<TestOrdinal, _> = names.tests.into_iter().collect();
    let owners = in_snapshot(reader.store, &project.project, |snapshot| owners(snapshot, now))?;
    let mut lookup = owners.lookup();
    let mut of_owners: BTreeMap<String, OfOwner> = BTreeMap::new();
    for edge in &changed {
        let Some(name) = edge.test().and_then(|test| files.get(&test)) else {
            continue;
        };
        for owner in owner_names(lookup.of(name.file_path.as_deref())) {
            let of = of_owners.entry(owner).or_default();
            match edge.event {
                ChatEvent::TestBroken => of.broken.push(test_name(&name.name)),
                ChatEvent::TestFlaky => of.flaky.push(test_name(&name.name)),
                ChatEvent::TestResolved if edge.verdict_before() == Some(VerdictStatus::Broken) => {
                    of.repaired.push(test_name(&name.name));
                }
                ChatEvent::TestResolved => of.resolved.push(test_name(&name.name)),
                ChatEvent::FixHeld => of.held.push(test_name(&name.name)),
                ChatEvent::FixDidNotHold => of.not_held.push(test_name(&name.name)),
                ChatEvent::RunFailed
                | ChatEvent::RunRecovered
                | ChatEvent::NewError
                | ChatEvent::FlakeBudgetExceeded
                | ChatEvent::FlakeBudgetMet
                | ChatEvent::RevertCandidate => {}
            }
        }
    }
    for entry in costly {
        for owner in owner_names(&entry.ownership) {
            let lost = entry.figures.time_lost_ms.unwrap_or(0);
            let of = of_owners.entry(owner).or_default();
            of.costly.push((test_name(&entry.test_name), lost));
        }
    }
    Ok(of_owners)
}

fn owner_names(ownership: &Ownership) -> Vec<String> {
    match ownership.owners.as_slice() {
        [] => vec![String::new()],
        owners => owners
            .iter()
            .map(|owner| bounded(owner, SENTENCE_CHARS))
            .collect(),
    }
}

fn group(owner: &str, of: &OfOwner) -> Group {
    let owner = match owner {
        "" => "without an owner",
        owner => owner,
    };
    let mut lines = Vec::new();
    for (word, names) in [
        ("broke", &of.broken),
        ("repaired", &of.repaired),
        ("flaky", &of.flaky),
        ("not flaky any more", &of.resolved),
        ("fix did not hold", &of.not_held),
        ("fix held", &of.held),
    ] {
        lines.extend(names.iter().map(|name| format!("{word}: {name}")));
    }
    let costly = of.costly.iter();
    let minutes = |lost: u64| lost.div_ceil(60_000);
    lines.extend(costly.map(|(name, lost)| format!("{} min lost in 14 days: {name}", minutes(*lost))));
    listed(
        format!(
            "{owner}: {} broke, {} repaired, {} became flaky, {} not flaky any more",
            of.broken.len(),
            of.repaired.len(),
            of.flaky.len(),
            of.resolved.len()
        ),
        lines,
    )
}

fn listed(sentence: String, mut lines: Vec<String>) -> Group {
    let more = lines.len().saturating_sub(MOST_LINES);
    lines.truncate(MOST_LINES);
    Group {
        sentence,
        error: None,
        tests: lines,
        more,
    }
}
