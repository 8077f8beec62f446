use super::*;
use AttemptStatus::{Failed, Interrupted, Passed, Skipped};

/// A part of the job `test`: attempt of the job, attempt of the command, machine with the shard after a `#` and the
/// path of the report after a colon, start, tests. A folder has two report files.
type Sent<'a> = (u64, u32, &'a str, i64, &'a [(&'a str, &'a [AttemptStatus])]);

/// The executions of each test as the numbers of their parts, and the roles of the parts.
fn merged(parts: &[Sent<'_>]) -> (BTreeMap<String, Vec<Vec<usize>>>, Vec<PartRole>) {
    let senders: Vec<Sender> = parts
        .iter()
        .map(|(of_job, of_command, runner, ..)| Sender {
            job: Some("test".to_owned()),
            id: None,
            runner: runner.split([':', '#']).next().map(str::to_owned),
            attempt: JobAttempt {
                of_job: *of_job,
                of_command: *of_command,
            },
            report_path: runner.split_once(':').map(|(_, path)| path.to_owned()),
            report_files: if runner.ends_with('/') { 2 } else { 1 },
        })
        .collect();
    let contents: Vec<[u8; 1]> = (0..).take(parts.len()).map(|place| [place]).collect();
    let slot: Vec<RunPart<'_, &str>> = parts
        .iter()
        .zip(&senders)
        .zip(&contents)
        .map(|(((_, _, runner, start, tests), sender), content)| RunPart {
            shard: sender_shard(runner),
            sender,
            started_at: Timestamp::from_unix_ms(*start),
            content,
            tests: tests.iter().map(|(test, ends)| (*test, ends.to_vec())).collect(),
        })
        .collect();
    let MergedParts { executions, roles } = merge_parts(&slot);
    let numbers = |execution: Vec<ExecutionRef>| execution.into_iter().map(|one| one.part).collect();
    let executions = executions
        .into_iter()
        .map(|(test, all)| (test.to_owned(), all.into_iter().map(numbers).collect()));
    (executions.collect(), roles)
}

fn sender_shard(runner: &str) -> Option<u32> {
    let (_, shard) = runner.split_once('#')?;
    shard.split(':').next()?.parse().ok()
}

#[test]
fn a_file_does_not_answer_for_another_one_of_its_upload() {
    let both: Sent<'_> = (
        1,
        1,
        "m:out/",
        0,
        &[("a", &[Passed]), ("health", &[Passed, Failed])],
    );
    let one: Sent<'_> = (
        2,
        1,
        "n:out/a/r.xml",
        9,
        &[("a", &[Passed]), ("health", &[Passed])],
    );
    let (executions, roles) = merged(&[both, one]);
    assert_eq!(executions["health"], [vec![0], vec![0], vec![1]]);
    assert!(!roles[0].is_superseded);
    let again: Sent<'_> = (
        2,
        1,
        "n:out/",
        9,
        &[("a", &[Passed]), ("health", &[Passed, Passed])],
    );
    let (executions, roles) = merged(&[both, again]);
    assert_eq!(executions["health"], [vec![0], vec![0, 1], vec![1]]);
    assert!(roles[0].is_superseded);
    let other: Sent<'_> = (2, 1, "n:out/b/r.xml", 9, &[("health", &[Passed])]);
    let (executions, _) = merged(&[both, one, other]);
    assert_eq!(executions["health"], [vec![0], vec![0, 1], vec![2]]);
    // The command's own retry is no second file.
    let retried: Sent<'_> = (2, 1, "n:out/a/again.xml", 10, &[("health", &[Passed])]);
    assert_eq!(merged(&[both, one, retried]).0["health"].len(), 4);
}

#[test]
fn an_error_of_a_file_without_tests_is_over_only_if_as_many_files_came_again() {
    let with_error: Sent<'_> = (1, 1, "m:out/", 0, &[("a", &[Passed])]);
    let again = |path| merged(&[with_error, (2, 1, path, 9, &[("a", &[Passed])])]).1[0].is_superseded;
    assert!(!again("n:out/a/r.xml"));
    assert!(again("n:out/"));
}

#[test]
fn the_failed_execution_of_a_name_that_a_file_has_twice_may_run_again_alone() {
    let first: Sent<'_> = (1, 1, "m:r.xml", 0, &[("a", &[Passed]), ("x", &[Passed, Failed])]);
    let alone: Sent<'_> = (2, 1, "n:r.xml", 9, &[("x", &[Passed])]);
    assert_eq!(merged(&[first, alone]).0["x"], [vec![0], vec![0, 1]]);
    let all: Sent<'_> = (2, 1, "n:r.xml", 9, &[("a", &[Passed]), ("x", &[Passed])]);
    assert_eq!(merged(&[first, all]).0["x"], [vec![0], vec![0], vec![1]]);
}

#[test]
fn a_later_attempt_may_run_a_test_in_another_shard() {
    let one: Sent<'_> = (1, 1, "m#1:r.xml", 0, &[("a", &[Passed]), ("b", &[Failed])]);
    let two: Sent<'_> = (1, 1, "n#2:r.xml", 1, &[("c", &[Failed])]);
    let failed_again: Sent<'_> = (2, 1, "o#1:r.xml", 9, &[("b", &[Passed]), ("c", &[Passed])]);
    let (executions, roles) = merged(&[one, two, failed_again]);
    assert_eq!(
        (&executions["b"], &executions["c"]),
        (&vec![vec![0, 2]], &vec![vec![1, 2]])
    );
    assert!(roles[2].continues && roles[2].left_failed == 0);
    // All tests in other shards: the errors of the first attempt are over.
    let moved: Sent<'_> = (2, 1, "o#1:r.xml", 9, &[("c", &[Passed])]);
    let (executions, roles) = merged(&[one, two, moved, (2, 1, "p#2:r.xml", 9, one.4)]);
    assert_eq!(
        (&executions["b"], &executions["c"]),
        (&vec![vec![0, 3]], &vec![vec![1, 2]])
    );
    assert!(roles[0].is_superseded && roles[1].is_superseded && roles[2].left_failed == 0);
    // Two packages with a test of one name, each in its shard: each answers for itself.
    let others: [Sent<'_>; 2] = [
        (1, 1, "m#1:r.xml", 0, &[("h", &[Passed])]),
        (1, 1, "n#2:r.xml", 1, &[("h", &[Failed])]),
    ];
    let again = |shard| merged(&[others[0], others[1], (2, 1, shard, 9, &[("h", &[Passed])])]).0["h"].clone();
    assert_eq!(again("o#1:r.xml"), [vec![0], vec![1], vec![2]]);
    assert_eq!(again("o#2:r.xml"), [vec![0], vec![1, 2]]);
}

#[test]
fn an_interrupted_execution_goes_on_and_a_skipped_one_does_not() {
    let first: Sent<'_> = (1, 1, "m", 0, &[("cut", &[Interrupted]), ("off", &[Skipped])]);
    let second: Sent<'_> = (2, 1, "n", 9, &[("cut", &[Passed]), ("off", &[Passed])]);
    let (executions, roles) = merged(&[first, second]);
    assert_eq!(executions["cut"], [[0, 1]]);
    assert_eq!(executions["off"], [[0], [1]]);
    assert!(roles[1].continues && roles[0].is_superseded);
}

#[test]
fn each_failed_execution_goes_on_with_one_result() {
    let first: Sent<'_> = (1, 1, "m", 0, &[("x", &[Failed, Passed, Failed])]);
    let second: Sent<'_> = (2, 1, "m", 9, &[("x", &[Passed, Failed, Passed])]);
    let (executions, _) = merged(&[first, second]);
    assert_eq!(executions["x"], [vec![0, 1], vec![0], vec![0, 1], vec![1]]);
}

#[test]
fn a_skip_in_a_later_attempt_does_not_end_a_failure() {
    let first: Sent<'_> = (1, 1, "m", 0, &[("x", &[Failed])]);
    let second: Sent<'_> = (2, 1, "m", 1, &[("x", &[Skipped])]);
    let third: Sent<'_> = (3, 1, "m", 2, &[("x", &[Passed])]);
    let (executions, _) = merged(&[first, second, third]);
    assert_eq!(executions["x"], [[0, 1, 2]]);
}

#[test]
fn the_larger_of_two_reports_with_one_start_ran_first() {
    let all: Sent<'_> = (1, 1, "m", 5, &[("a", &[Passed]), ("b", &[Failed])]);
    let failed_only: Sent<'_> = (1, 1, "m", 5, &[("b", &[Passed])]);
    assert_eq!(merged(&[all, failed_only]).0["b"], [[0, 1]]);
    assert_eq!(merged(&[failed_only, all]).0["b"], [[1, 0]]);
}

#[test]
fn what_an_attempt_leaves_failed_counts_where_it_has_tests_of_that_report() {
    let unit: Sent<'_> = (1, 1, "m", 0, &[("u1", &[Failed]), ("u2", &[Failed])]);
    let e2e: Sent<'_> = (1, 1, "m", 1, &[("e1", &[Failed])]);
    let again: Sent<'_> = (2, 1, "n", 9, &[("u1", &[Passed])]);
    let (executions, roles) = merged(&[unit, e2e, again]);
    assert_eq!(executions["u1"], [[0, 2]]);
    assert_eq!(
        roles[2].left_failed, 1,
        "u2, and not the test of the other report"
    );
    assert_eq!(roles[1].beside, BTreeSet::new());
}

#[test]
fn a_test_that_failed_again_alone_is_left_failed_by_an_attempt_without_it() {
    let first: Sent<'_> = (1, 1, "m", 0, &[("a", &[Passed]), ("env", &[Failed])]);
    let second: Sent<'_> = (2, 1, "m", 1, &[("a", &[Passed]), ("env", &[Passed])]);
    let alone: Sent<'_> = (3, 1, "m", 2, &[("env", &[Failed])]);
    let (_, roles) = merged(&[first, second, alone, (4, 1, "m", 3, &[("a", &[Passed])])]);
    assert_eq!(roles[3].left_failed, 1);
    let (_, roles) = merged(&[first, second, alone, (4, 1, "m", 3, &[("b", &[Passed])])]);
    assert_eq!(roles[3].left_failed, 0, "a report of other tests");
}

#[test]
fn a_report_in_the_folder_of_an_earlier_attempt_leaves_the_failed_tests_of_other_files() {
    let both: Sent<'_> = (
        1,
        1,
        "m:packages/",
        0,
        &[("x > ok", &[Failed]), ("y > ok", &[Passed])],
    );
    let left = |path, tests| merged(&[both, (2, 1, path, 9, tests)]).1[1].left_failed;
    assert_eq!(left("n:packages/y/r.xml", &[("ok", &[Passed])]), 1);
    assert_eq!(left("n:packages/x/r.xml", &[("x > ok", &[Passed])]), 0);
    assert_eq!(
        left("n:e2e/r.xml", &[("e1", &[Passed])]),
        0,
        "a report of other tests"
    );
}

#[test]
fn a_part_continues_its_report_of_the_attempt_before() {
    let first: Sent<'_> = (1, 1, "m", 0, &[("a", &[Passed]), ("b", &[Passed])]);
    let other: Sent<'_> = (1, 1, "m:e2e.xml", 1, &[("e", &[Passed])]);
    let again: Sent<'_> = (2, 1, "n", 9, &[("a", &[Passed])]);
    let (_, roles) = merged(&[first, other, again]);
    let continued: Vec<Vec<usize>> = roles
        .iter()
        .map(|role| role.continued.iter().copied().collect())
        .collect();
    assert_eq!(continued, [vec![], vec![], vec![0]]);
}

#[test]
fn a_test_of_one_name_does_not_answer_for_one_of_another_report() {
    let both: Sent<'_> = (1, 1, "m", 0, &[("health", &[Passed, Failed]), ("x", &[Passed])]);
    let left = |health: &[AttemptStatus]| {
        merged(&[both, (2, 1, "n", 9, &[("health", health), ("x", &[Passed])])]).1[1].left_failed
    };
    assert_eq!(left(&[Passed]), 1);
    assert_eq!(left(&[Passed, Passed]), 0);
    assert_eq!(left(&[Passed, Failed]), 0, "it failed again");
}

#[test]
fn failed_tests_of_several_reports_may_run_again_at_once() {
    let unit: Sent<'_> = (1, 1, "m", 0, &[("u1", &[Failed]), ("u2", &[Passed])]);
    let e2e: Sent<'_> = (1, 1, "m", 1, &[("e1", &[Failed])]);
    let again: Sent<'_> = (1, 1, "m", 2, &[("u1", &[Failed]), ("e1", &[Passed])]);
    let once_more: Sent<'_> = (1, 1, "m", 3, &[("u1", &[Passed])]);
    let (executions, roles) = merged(&[unit, e2e, again, once_more]);
    assert_eq!(executions["u1"], [[0, 2, 3]]);
    assert_eq!(executions["e1"], [[1, 2]]);
    assert!(roles.iter().all(|role| role.beside.is_empty()));
}

#[test]
fn a_leg_does_not_answer_for_another_one() {
    const B_FAILED: &[(&str, &[AttemptStatus])] = &[("a", &[Passed]), ("b", &[Failed]), ("c", &[Passed])];
    const ALL: &[(&str, &[AttemptStatus])] = &[("a", &[Passed]), ("b", &[Passed]), ("c", &[Passed])];
    const B: &[(&str, &[AttemptStatus])] = &[("b", &[Passed])];
    const A_AND_B: &[(&str, &[AttemptStatus])] = &[("a", &[Passed]), ("b", &[Passed])];
    let together: &[&[usize]] = &[&[0, 1]];
    let beside: &[&[usize]] = &[&[0], &[1]];
    for (why, parts, expected) in [
        (
            "fewer tests",
            vec![(1, 1, "m:pg.xml", 0, B_FAILED), (1, 1, "m:my.xml", 9, A_AND_B)],
            beside,
        ),
        (
            "only failed tests",
            vec![(1, 1, "m:all.xml", 0, B_FAILED), (1, 1, "m:lf.xml", 9, B)],
            together,
        ),
        (
            "another package",
            vec![(1, 1, "m:shop/r.xml", 0, B_FAILED), (1, 1, "m:admin/r.xml", 9, B)],
            beside,
        ),
        (
            "the same leg again",
            vec![(1, 1, "m:pg.xml", 0, B_FAILED), (2, 1, "n:pg.xml", 9, ALL)],
            together,
        ),
        (
            "a numbered file",
            vec![(1, 1, "m:pg1.xml", 0, B_FAILED), (2, 1, "n:pg2.xml", 9, ALL)],
            together,
        ),
        (
            "the only leg under another name",
            vec![(1, 1, "m:r.xml", 0, B_FAILED), (2, 1, "n:again.xml", 9, ALL)],
            together,
        ),
        (
            "another leg",
            vec![
                (1, 1, "m:pg1.xml", 0, B_FAILED),
                (1, 1, "n:my1.xml", 1, A_AND_B),
                (2, 1, "n:my2.xml", 9, A_AND_B),
            ],
            &[&[0], &[1], &[2]],
        ),
        (
            "one of two legs under another name",
            vec![
                (1, 1, "m:pg.xml", 0, B_FAILED),
                (1, 1, "n:my.xml", 1, A_AND_B),
                (2, 1, "n:r.xml", 9, A_AND_B),
            ],
            &[&[0], &[1], &[2]],
        ),
        (
            "one of two legs whose files have one name",
            vec![
                (1, 1, "m:r.xml", 0, B_FAILED),
                (1, 1, "n:r.xml", 1, ALL),
                (2, 1, "o:r.xml", 9, ALL),
            ],
            &[&[0], &[1], &[2]],
        ),
        (
            "both legs again",
            vec![
                (1, 1, "m:r.xml", 0, B_FAILED),
                (1, 1, "n:r.xml", 1, ALL),
                (2, 1, "o:r.xml", 9, ALL),
                (2, 1, "p:r.xml", 9, ALL),
            ],
            &[&[0, 2], &[1], &[3]],
        ),
        (
            "a leg with a number of its own",
            vec![
                (1, 1, "m:node18.xml", 0, B_FAILED),
                (1, 1, "m:node20.xml", 1, ALL),
                (2, 1, "o:node18.xml", 9, ALL),
            ],
            &[&[0, 2], &[1]],
        ),
        (
            "the sender's word",
            vec![(1, 1, "m:pg.xml", 0, B_FAILED), (1, 2, "m:x.xml", 9, ALL)],
            together,
        ),
    ] {
        let mut executions = merged(&parts).0["b"].clone();
        executions.sort();
        assert_eq!(executions, expected, "{why}");
    }
}

#[test]
fn errors_of_a_leg_are_over_only_if_all_legs_ran_again() {
    let cut: Sent<'_> = (1, 1, "m:r.xml", 0, &[("a", &[Passed])]);
    let other: Sent<'_> = (1, 1, "n:r.xml", 1, &[("a", &[Passed])]);
    let again: Sent<'_> = (2, 1, "o:r.xml", 9, &[("a", &[Passed])]);
    assert!(!merged(&[cut, other, again]).1[0].is_superseded);
    assert!(merged(&[cut, other, again, (2, 1, "p:r.xml", 9, again.4)]).1[0].is_superseded);
    assert!(merged(&[cut, again]).1[0].is_superseded);
}
