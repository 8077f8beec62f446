//! Parts of a run: what one upload or import added, and how the parts make up the run's executions.
//!
//! A part is a fact. Which execution its results belong to is derived from all parts of the run, in an order that does
//! not depend on their arrival: by attempt, then start, then size and content. Each part is one of these:
//!
//! - It continues what failed: it is a later attempt of the same command, or of the same leg of the same job, or the same
//!   job ran only failed tests again. An execution that failed or did not end goes on with the part's result of the test.
//!   Any other result is one more execution. If a test ran several times in the earlier attempt, in legs or in files of
//!   one part, a later attempt goes on with its executions only if it ran the test as often.
//! - It is an addition: the job sent no result of these tests before.
//! - It is beside other parts that have some of its tests, and nothing tells how they relate, as with legs of a matrix
//!   on one machine. All results are executions of their own, so a failure stays.
//!
//! A part belongs with those of its shard. A later attempt that has a test in another shard, because it divided the
//! tests in another way, goes on with the test there.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    hash::Hash,
};

use crate::{
    attempt::AttemptStatus,
    recording::Sender,
    rerun::{is_selection_of_failed, may_repeat, without_attempt},
    timestamp::Timestamp,
};

/// The attempt of a job, and of a command in it. Later attempts are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobAttempt {
    /// The attempt of the job. Services without a count give an id that grows with each attempt. 0 if unknown.
    pub of_job: u64,
    /// The attempt of the command within that job, from 1.
    pub of_command: u32,
}

impl Default for JobAttempt {
    fn default() -> Self {
        Self {
            of_job: 0,
            of_command: 1,
        }
    }
}

/// One part of a run.
#[derive(Debug, Clone)]
pub struct RunPart<'a, T> {
    /// The number of its shard, if the run has shards.
    pub shard: Option<u32>,
    /// The job that sent it.
    pub sender: &'a Sender,
    /// Its start.
    pub started_at: Timestamp,
    /// The hash of its content.
    pub content: &'a [u8],
    /// The status with which each of its executions ended, by test and in the order of the report.
    pub tests: BTreeMap<T, Vec<AttemptStatus>>,
}

impl<T: Ord> RunPart<'_, T> {
    /// The place among the parts of the run. Of two reports with one start, the larger one ran first: the smaller one
    /// may hold what failed there.
    fn place(&self) -> impl Ord {
        let Sender {
            job,
            id,
            runner,
            attempt,
            report_path,
            report_files: _,
        } = self.sender;
        let report = (self.started_at, Reverse(self.tests.len()), self.content);
        (*attempt, report, job, id, runner, report_path)
    }

    /// How often it ran a test.
    fn executions(&self, test: &T) -> usize {
        self.tests.get(test).map_or(0, Vec::len)
    }

    /// Whether it may be a command of the job that ran some of the tests of another part again.
    fn may_rerun(&self, other: &Self) -> bool {
        self.shard == other.shard
            && self.sender.is_same_instance(other.sender)
            && are_of_one_folder(self.sender, other.sender)
            && self.tests.len() < other.tests.len()
            && self.tests.keys().all(|test| other.tests.contains_key(test))
            && self.place() > other.place()
    }
}

/// Names one execution of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExecutionRef {
    /// The part's index among those that were given.
    pub part: usize,
    /// The execution's index among those of the test in this part.
    pub execution: usize,
}

/// The executions of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedParts<T> {
    /// The executions of each test. Each consists of executions of parts, of which a later one continues an earlier one.
    pub executions: BTreeMap<T, Vec<Vec<ExecutionRef>>>,
    /// The role of each part, in the given order.
    pub roles: Vec<PartRole>,
}

/// The role of a part in its run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PartRole {
    /// Whether it continues earlier parts.
    pub continues: bool,
    /// The parts of its shard with some of its tests that it neither continues nor is continued by.
    pub beside: BTreeSet<usize>,
    /// Whether a later attempt of its job ran all of its tests again, so that its errors outside of tests and its
    /// interruption are over.
    pub is_superseded: bool,
    /// The number of tests that an earlier attempt of its job left failed, in a report of its folder, or in one which has some
    /// of its tests, or of the tests of another such report, and that this part did not run again.
    pub left_failed: usize,
    /// The earlier parts of its job, which it continues.
    pub continued: BTreeSet<usize>,
}

/// Puts the executions of a run together from its parts. The result does not depend on the order of the parts.
pub fn merge_parts<T: Copy + Ord + Hash>(parts: &[RunPart<'_, T>]) -> MergedParts<T> {
    let mut ordered: Vec<(usize, &RunPart<'_, T>)> = parts.iter().enumerate().collect();
    ordered.sort_by(|(_, left), (_, right)| left.place().cmp(&right.place()));
    let mut merging = Merging {
        parts,
        groups: Vec::new(),
        chains: BTreeMap::new(),
        roles: vec![PartRole::default(); parts.len()],
    };
    for (index, part) in ordered {
        merging.add(index, part);
    }
    for (role, part) in merging.roles.iter_mut().zip(parts) {
        role.is_superseded = is_superseded(&merging.groups, part);
    }
    let executions = merging.chains.into_iter();
    MergedParts {
        executions: executions
            .map(|(test, chains)| (test, chains.into_iter().map(|chain| chain.executions).collect()))
            .collect(),
        roles: merging.roles,
    }
}

/// Parts of one sender that belong together: a report, and those that ran its failed tests again.
struct Group<'a, T> {
    shard: Option<u32>,
    sender: &'a Sender,
    parts: Vec<usize>,
    tests: BTreeSet<T>,
}

/// An execution so far.
struct Chain {
    executions: Vec<ExecutionRef>,
    status: AttemptStatus,
    /// The group of the last part.
    group: usize,
}

impl Chain {
    /// Whether a retry can follow.
    fn is_open(&self) -> bool {
        self.status.is_failure() || self.status == AttemptStatus::Interrupted
    }

    /// Goes on with another execution. An attempt that did not run does not hide an earlier one, as in the outcome of a
    /// test.
    fn go_on(&mut self, execution: ExecutionRef, status: AttemptStatus, group: usize) {
        self.executions.push(execution);
        self.group = group;
        if !status.is_skip() || self.status.is_skip() {
            self.status = status;
        }
    }
}

struct Merging<'a, T> {
    parts: &'a [RunPart<'a, T>],
    groups: Vec<Group<'a, T>>,
    chains: BTreeMap<T, Vec<Chain>>,
    roles: Vec<PartRole>,
}

impl<'a, T: Copy + Ord + Hash> Merging<'a, T> {
    /// Adds a part after all earlier ones.
    fn add(&mut self, index: usize, part: &RunPart<'a, T>) {
        let reran = self.groups_that_it_reran(part);
        let commands: BTreeSet<usize> = (0..)
            .zip(&self.groups)
            .filter(|(_, group)| group.shard == part.shard && part.sender.is_later_command_than(group.sender))
            .map(|(index, _)| index)
            .collect();
        let legs = self.legs(part, &|shard| shard == part.shard);
        let legs_elsewhere = self.legs(part, &|shard| shard != part.shard);
        let before = commands.iter().chain(&legs).chain(&legs_elsewhere);
        let only_failed = self.groups_of_which_only_failed_tests_ran(part, before);
        let again = self.parts_of_this_attempt(part);
        let continues: Vec<bool> = (0..self.groups.len())
            .map(|group| reran.contains(&group) || commands.contains(&group) || legs.contains(&group))
            .collect();
        let group = match reran.first() {
            Some(first) => *first,
            None => {
                self.groups.push(Group {
                    shard: part.shard,
                    sender: part.sender,
                    parts: Vec::new(),
                    tests: BTreeSet::new(),
                });
                self.groups.len() - 1
            }
        };
        let related = self.related_groups(part, &continues);
        let continued = self.groups.iter().zip(&continues);
        let continued = continued.filter(|(_, continues)| **continues);
        let continued: BTreeSet<usize> = continued
            .flat_map(|(group, _)| group.parts.iter().copied())
            .collect();
        let mut beside = BTreeSet::new();
        let mut goes_on = continues.contains(&true);
        for (test, statuses) in &part.tests {
            let of_leg = match self.have(&legs, test) {
                true => &legs,
                false => &legs_elsewhere,
            };
            let is_repeated = |groups: &BTreeSet<usize>| {
                let executions = self.executions_before(groups, &only_failed, test);
                executions < 2 || executions_again(&again, test) >= executions
            };
            let (of_command, of_leg) = (
                is_repeated(&commands).then_some(&commands),
                is_repeated(of_leg).then_some(of_leg),
            );
            let can_continue = |group: usize| {
                let is_in =
                    |groups: Option<&BTreeSet<usize>>| groups.is_some_and(|groups| groups.contains(&group));
                reran.contains(&group) || is_in(of_command) || is_in(of_leg)
            };
            let is_of_shard = |group: usize| {
                let group = self.groups.get(group);
                group.is_some_and(|group| group.shard == part.shard)
            };
            let chains = self.chains.entry(*test).or_default();
            let others = chains
                .iter()
                .filter(|chain| !can_continue(chain.group) && is_of_shard(chain.group));
            beside.extend(
                others
                    .filter_map(|chain| chain.executions.last())
                    .map(|last| last.part),
            );
            let mut open = chains
                .iter()
                .enumerate()
                .filter(|(_, chain)| can_continue(chain.group) && chain.is_open())
                .map(|(place, _)| place)
                .collect::<Vec<usize>>()
                .into_iter();
            for (execution, status) in statuses.iter().enumerate() {
                let execution = ExecutionRef {
                    part: index,
                    execution,
                };
                match open.next().and_then(|place| chains.get_mut(place)) {
                    Some(chain) => {
                        goes_on = true;
                        chain.go_on(execution, *status, group);
                    }
                    None => chains.push(Chain {
                        executions: vec![execution],
                        status: *status,
                        group,
                    }),
                }
            }
        }
        if let Some(own) = self.groups.get_mut(group) {
            own.parts.push(index);
            own.tests.extend(part.tests.keys());
        }
        let left_failed = self.left_failed((index, part), &related, &again);
        for other in &beside {
            if let Some(role) = self.roles.get_mut(*other) {
                role.beside.insert(index);
            }
        }
        if let Some(role) = self.roles.get_mut(index) {
            role.continues = goes_on;
            role.left_failed = left_failed;
            role.continued = continued;
            role.beside.extend(beside);
        }
    }

    /// The groups that a part continues and that have its tests, or tests of another one of these groups: the attempt between
    /// may have run a failed test alone. A group of several files counts for each file in its folder: another package may
    /// have tests of these names.
    fn related_groups(&self, part: &RunPart<'_, T>, continues: &[bool]) -> BTreeSet<usize> {
        let mut known: BTreeSet<T> = part.tests.keys().copied().collect();
        let mut related = BTreeSet::new();
        loop {
            let candidates = (0..).zip(&self.groups).zip(continues);
            let found = candidates
                .filter(|((index, group), continues)| {
                    let is_related =
                        || !group.tests.is_disjoint(&known) || is_within(part.sender, group.sender);
                    **continues && !related.contains(index) && is_related()
                })
                .map(|((index, group), _)| (index, group))
                .next();
            let Some((index, group)) = found else { break };
            related.insert(index);
            known.extend(&group.tests);
        }
        related
    }

    /// The number of tests that are failed in related groups and that an added part did not run again.
    fn left_failed(
        &self,
        (index, part): (usize, &RunPart<'_, T>),
        related: &BTreeSet<usize>,
        again: &[&RunPart<'_, T>],
    ) -> usize {
        let is_left = |chain: &Chain| {
            let is_own = chain.executions.last().is_some_and(|last| last.part == index);
            chain.is_open() && !is_own && related.contains(&chain.group)
        };
        // A later attempt may have divided the tests among its shards in another way.
        let elsewhere = again.iter().copied().filter(|other| other.shard != part.shard);
        let elsewhere: Vec<_> = elsewhere.collect();
        let ran_elsewhere = |test: &T| executions_again(&elsewhere, test) > 0;
        let chains = self.chains.iter();
        chains
            .filter(|(test, chains)| chains.iter().any(is_left) && !ran_elsewhere(test))
            .count()
    }

    /// The groups of the part's own sender and folder with some of its tests, if the part ran only their failed tests
    /// again; else none.
    fn groups_that_it_reran(&self, part: &RunPart<'_, T>) -> BTreeSet<usize> {
        let is_own = |group: &Group<'_, T>| {
            group.shard == part.shard
                && group.sender.is_same_instance(part.sender)
                && are_of_one_folder(group.sender, part.sender)
                && part.tests.keys().any(|test| group.tests.contains(test))
        };
        let groups: BTreeSet<usize> = (0..)
            .zip(&self.groups)
            .filter(|(_, group)| is_own(group))
            .map(|(index, _)| index)
            .collect();
        // All tests again may also be another leg of a matrix on the same machine.
        match self.has_only_failed_tests_of(part, &groups) {
            true => groups,
            false => BTreeSet::new(),
        }
    }

    /// Those of these groups that have one report file and of which the part has only failed tests.
    fn groups_of_which_only_failed_tests_ran<'g>(
        &self,
        part: &RunPart<'_, T>,
        groups: impl Iterator<Item = &'g usize>,
    ) -> BTreeSet<usize> {
        let has_one_file = |index: &&usize| {
            let group = self.groups.get(**index);
            group.is_some_and(|group| group.sender.report_files <= 1)
        };
        groups
            .filter(has_one_file)
            .filter(|index| self.has_only_failed_tests_of(part, &BTreeSet::from([**index])))
            .copied()
            .collect()
    }

    fn has_only_failed_tests_of(&self, part: &RunPart<'_, T>, groups: &BTreeSet<usize>) -> bool {
        let tests: BTreeSet<T> = groups
            .iter()
            .filter_map(|group| self.groups.get(*group))
            .flat_map(|group| group.tests.iter().copied())
            .collect();
        let earlier = tests
            .into_iter()
            .map(|test| (test, self.open_chains(groups, &test) > 0));
        is_selection_of_failed(earlier, part.tests.keys().copied())
    }

    /// The number of executions of a test in these groups that a retry can follow.
    fn open_chains(&self, groups: &BTreeSet<usize>, test: &T) -> usize {
        let chains = self.chains.get(test).map(Vec::as_slice).unwrap_or_default();
        let is_open = |chain: &&Chain| groups.contains(&chain.group) && chain.is_open();
        chains.iter().filter(is_open).count()
    }

    /// The groups of earlier attempts of the job in these shards that may be of the part's leg.
    fn legs(&self, part: &RunPart<'_, T>, is_in: &dyn Fn(Option<u32>) -> bool) -> BTreeSet<usize> {
        legs_of(&self.groups, part, |group| {
            is_in(group.shard) && part.sender.is_later_job_than(group.sender)
        })
    }

    /// Whether one of these groups has a test.
    fn have(&self, groups: &BTreeSet<usize>, test: &T) -> bool {
        let mut groups = groups.iter().filter_map(|group| self.groups.get(*group));
        groups.any(|group| group.tests.contains(test))
    }

    /// The parts of this attempt of the part's job, with the part.
    fn parts_of_this_attempt(&self, part: &RunPart<'_, T>) -> Vec<&'a RunPart<'a, T>> {
        let is_beside = |other: &&RunPart<'_, T>| {
            part.sender.job == other.sender.job && part.sender.attempt == other.sender.attempt
        };
        self.parts.iter().filter(is_beside).collect()
    }

    /// How often one attempt ran a test in these groups; of several attempts the most. Where only failed tests ran again,
    /// the executions that failed count.
    fn executions_before(&self, groups: &BTreeSet<usize>, only_failed: &BTreeSet<usize>, test: &T) -> usize {
        let mut by_attempt: BTreeMap<JobAttempt, usize> = BTreeMap::new();
        for index in groups {
            let Some(group) = self.groups.get(*index) else {
                continue;
            };
            let parts = group.parts.iter().filter_map(|part| self.parts.get(*part));
            let executions = match only_failed.contains(index) {
                true => self.open_chains(&BTreeSet::from([*index]), test),
                false => parts.map(|part| part.executions(test)).max().unwrap_or(0),
            };
            *by_attempt.entry(group.sender.attempt).or_default() += executions;
        }
        by_attempt.into_values().max().unwrap_or_default()
    }
}

/// How often these parts of one attempt ran a test, without commands that ran it again.
fn executions_again<T: Ord>(parts: &[&RunPart<'_, T>], test: &T) -> usize {
    let is_rerun = |part: &RunPart<'_, T>| parts.iter().any(|other| part.may_rerun(other));
    let with_test = parts.iter().filter(|part| part.tests.contains_key(test));
    let first = with_test.filter(|part| !is_rerun(part));
    first.map(|part| part.executions(test)).sum()
}

/// Whether the paths of two reports are of one folder and shard. An unknown path tells nothing apart.
fn are_of_one_folder(one: &Sender, other: &Sender) -> bool {
    let paths = one.report_path.as_deref().zip(other.report_path.as_deref());
    paths.is_none_or(|(one, other)| may_repeat(one, other))
}

/// The groups among these that may be of the part's leg of the job: those with its very path, else those whose paths
/// differ only as those of attempts do, else all.
fn legs_of<T: Ord>(
    groups: &[Group<'_, T>],
    part: &RunPart<'_, T>,
    is_candidate: impl Fn(&Group<'_, T>) -> bool,
) -> BTreeSet<usize> {
    let candidates: Vec<(usize, &Group<'_, T>)> = (0..)
        .zip(groups)
        .filter(|(_, group)| is_candidate(group))
        .collect();
    let has_tests = |group: &Group<'_, T>| part.tests.keys().any(|test| group.tests.contains(test));
    let with_path = |is_of_leg: &dyn Fn(&Sender) -> bool| {
        let of_leg = || candidates.iter().filter(|(_, group)| is_of_leg(group.sender));
        let has_leg = of_leg().any(|(_, group)| has_tests(group));
        has_leg.then(|| of_leg().map(|(index, _)| *index).collect())
    };
    with_path(&|sender| sender.report_path == part.sender.report_path)
        .or_else(|| with_path(&|sender| may_be_one_leg(sender, part.sender)))
        .unwrap_or_else(|| candidates.iter().map(|(index, _)| *index).collect())
}

/// Whether the paths of two reports differ only as those of attempts do. An unknown path tells nothing apart.
fn may_be_one_leg(one: &Sender, other: &Sender) -> bool {
    match (&one.report_path, &other.report_path) {
        (Some(one), Some(other)) => one == other || without_attempt(one) == without_attempt(other),
        (None, _) | (_, None) => true,
    }
}

/// Whether a report is in the folder of the several files of another one.
fn is_within(report: &Sender, folder: &Sender) -> bool {
    let paths = report.report_path.as_deref().zip(folder.report_path.as_deref());
    paths.is_some_and(|(path, folder)| folder.ends_with('/') && path.starts_with(folder))
}

/// Whether a later attempt of the part's job or command ran all of its tests again, in all legs that have them: in the
/// part's shard, or in all shards. The report file of an error, or of tests that did not run, is unknown, so a later
/// attempt must also have sent as many files.
fn is_superseded<T: Copy + Ord + Hash>(groups: &[Group<'_, T>], part: &RunPart<'_, T>) -> bool {
    ran_again(groups, part, |shard| shard == part.shard)
        || part.shard.is_some() && ran_again(groups, part, |_| true)
}

/// The same in some shards.
fn ran_again<T: Copy + Ord + Hash>(
    groups: &[Group<'_, T>],
    part: &RunPart<'_, T>,
    is_in: impl Fn(Option<u32>) -> bool,
) -> bool {
    let is_later = |group: &Group<'_, T>| {
        is_in(group.shard)
            && (group.sender.is_later_job_than(part.sender)
                || group.sender.is_later_command_than(part.sender))
    };
    let later = legs_of(groups, part, is_later);
    let later: Vec<&Group<'_, T>> = later.iter().filter_map(|index| groups.get(*index)).collect();
    let has_path = later
        .iter()
        .any(|group| may_be_one_leg(group.sender, part.sender));
    let own: Vec<&Group<'_, T>> = groups
        .iter()
        .filter(|group| is_in(group.shard))
        .filter(|group| group.sender.job == part.sender.job && group.sender.attempt == part.sender.attempt)
        .filter(|group| !has_path || may_be_one_leg(group.sender, part.sender))
        .collect();
    let attempts: BTreeSet<JobAttempt> = later.iter().map(|group| group.sender.attempt).collect();
    attempts.into_iter().any(|attempt| {
        let again: Vec<&Group<'_, T>> = later
            .iter()
            .copied()
            .filter(|group| group.sender.attempt == attempt)
            .collect();
        let reports = |groups: &[&Group<'_, T>]| {
            let files = groups.iter().map(|group| group.sender.report_files.max(1));
            files.sum::<u32>()
        };
        let with_test = |groups: &[&Group<'_, T>], test: &T| {
            let groups = groups.iter().filter(|group| group.tests.contains(test));
            groups.count()
        };
        let has_as_often = |test: &T| with_test(&again, test) >= with_test(&own, test).max(1);
        reports(&again) >= reports(&own) && part.tests.keys().all(has_as_often)
    })
}

#[cfg(test)]
mod tests;
