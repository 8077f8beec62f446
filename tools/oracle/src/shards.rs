//! Shards that arrive late, again or never.

use crate::{
    checks::{ProjectChecks, run_detail::run_detail, verdicts},
    clock::{HOUR, MINUTE},
    comparison::Comparison,
    dice::Dice,
    http::{Client, escape},
    importer, oracle, playwright, small,
    stack::Stack,
    world::{Organization, Project, Run},
};

/// Runs all checks in a separate project.
pub fn shards(comparison: &mut Comparison, stack: &Stack, organization: &Organization, now: i64) {
    let mut dice = Dice::new(11, "shards");
    let mut project = small::project("Shards");
    importer::create_project(stack, &organization.id, &mut project, comparison);
    let start = now - 30 * HOUR;
    let mut run = small::run("late", "main", start, &[], &mut dice);
    run.expected = Some(3);
    run.shards.clear();
    let arrivals = [
        small::shard(
            2,
            start + 5 * MINUTE,
            &[("b one", 'P'), ("b two", 'R')],
            &mut dice,
        ),
        small::shard(3, start + MINUTE, &[("c one", 'P'), ("c two", 'S')], &mut dice),
        small::shard(1, start, &[("a one", 'F'), ("a two", 'P')], &mut dice),
    ];
    project.runs.push(run);
    for shard in arrivals {
        project.runs[0].shards.push(shard);
        let newest = project.runs[0].shards.len() - 1;
        import_and_check_shard(
            comparison,
            stack,
            organization,
            &mut project,
            newest,
            now,
            importer::send,
        );
    }
    // A shard that arrives again may replace its content. Its run stays the same.
    let (id, number) = (project.runs[0].id.clone(), project.runs[0].number);
    for results in [
        [("a one", 'P'), ("a three", 'R')],
        [("a one", 'P'), ("a two", 'P')],
    ] {
        let unchanged_shard = project.runs[0].shards[2].id.clone();
        project.runs[0].shards[2] = small::shard(1, start + 2 * MINUTE, &results, &mut dice);
        project.runs[0].shards[2].id = unchanged_shard;
        let send = importer::send_again;
        import_and_check_shard(comparison, stack, organization, &mut project, 2, now, send);
        comparison.same(
            "the run of a replaced shard",
            &(&project.runs[0].id, project.runs[0].number),
            &(&id, number),
        );
    }
    check_replaced_test(comparison, stack, organization, &project, now);
    check_same_reports_again(comparison, stack, organization, &project);
    keys(comparison, stack, &mut project, now, &mut dice);
    check_ci_attempts(comparison, stack, organization, now, &mut dice);
    check_attempts_of_shards(comparison, stack, organization, now, &mut dice);
    check_shards_at_once(comparison, stack, organization, now, &mut dice);
}

/// Sends every shard of a run at the same time, as parallel jobs do.
fn check_shards_at_once(
    comparison: &mut Comparison,
    stack: &Stack,
    organization: &Organization,
    now: i64,
    dice: &mut Dice,
) {
    let mut project = small::project("At once");
    importer::create_project(stack, &organization.id, &mut project, comparison);
    for round in 0..3 {
        let mut run = small::run(
            &format!("at-once-{round}"),
            "main",
            now - (9 - round) * HOUR,
            &[],
            dice,
        );
        run.expected = Some(5);
        run.shards.clear();
        for index in 1..=5 {
            let title = format!("test {index}");
            let letter = if index == 3 && round == 1 { 'F' } else { 'P' };
            run.shards.push(small::shard(
                index,
                now - (9 - round) * HOUR,
                &[(&title, letter), ("x", '-')],
                dice,
            ));
        }
        let imported: Vec<serde_json::Value> = std::thread::scope(|scope| {
            let sent: Vec<_> = (0..5)
                .map(|shard| {
                    let (project, run) = (&project, &run);
                    scope.spawn(move || importer::send(stack, project, run, shard))
                })
                .collect();
            sent.into_iter()
                .map(|thread| thread.join().expect("the import ends"))
                .collect()
        });
        run.id = imported[0]["runId"].as_str().unwrap_or_default().to_owned();
        run.number = imported[0]["runNumber"].as_i64().unwrap_or_default();
        comparison.same("runNumber of shards that came at once", &run.number, &(round + 1));
        for (shard, imported) in run.shards.iter_mut().zip(&imported) {
            shard.id = imported["shardId"].as_str().unwrap_or_default().to_owned();
            comparison.same(
                "runId of shards that came at once",
                &imported["runId"].as_str(),
                &Some(run.id.as_str()),
            );
        }
        comparison.holds(run.shards.iter().any(|shard| shard.id == run.id), || {
            "the run's id is not the id of one of its shards".to_owned()
        });
        project.runs.push(run.clone());
        let mut checks = project_checks(stack, organization, &project, now);
        run_detail(comparison, &mut checks, &run);
        verdicts::verdicts(comparison, &checks);
    }
}

fn project_checks<'a>(
    stack: &Stack,
    organization: &'a Organization,
    project: &'a Project,
    now: i64,
) -> ProjectChecks<'a> {
    let client = Client::new(stack.address(), &organization.key);
    ProjectChecks {
        client,
        organization,
        project,
        now,
        fingerprints: Default::default(),
    }
}

fn import_and_check_shard(
    comparison: &mut Comparison,
    stack: &Stack,
    organization: &Organization,
    project: &mut Project,
    shard: usize,
    now: i64,
    send: fn(&Stack, &Project, &Run, usize) -> serde_json::Value,
) {
    let client = Client::new(stack.address(), &organization.key);
    let run_path = format!("/projects/{}/runs/{}", escape(&project.id), project.runs[0].id);
    let before = client
        .get(&run_path)
        .header("etag")
        .unwrap_or_default()
        .to_owned();
    let imported = send(stack, project, &project.runs[0], shard);
    let after = client.ask("GET", &run_path, &[("If-None-Match", &before)]);
    comparison.holds(project.runs[0].id.is_empty() || after.status == 200, || {
        format!("GET {run_path}: {} although a shard arrived", after.status)
    });
    let text = |name: &str| imported[name].as_str().unwrap_or_default().to_owned();
    if project.runs[0].id.is_empty() {
        project.runs[0].id = text("runId");
        project.runs[0].number = imported["runNumber"].as_i64().unwrap_or_default();
        comparison.same(
            "the run's id is its first shard's",
            &text("runId"),
            &text("shardId"),
        );
    }
    comparison.same("runId of a late shard", &text("runId"), &project.runs[0].id);
    project.runs[0].shards[shard].id = text("shardId");
    let run = project.runs[0].clone();
    let mut checks = project_checks(stack, organization, project, now);
    run_detail(comparison, &mut checks, &run);
    for status in ["", "&status=passed", "&status=failed"] {
        let answer = checks.get(comparison, &format!("{}?days=7{status}", checks.path(&["runs"])));
        let wanted = match (status, oracle::outcome(&run)) {
            ("", _)
            | ("&status=passed", oracle::Outcome::Passed)
            | ("&status=failed", oracle::Outcome::Failed) => 1,
            _ => 0,
        };
        comparison.same(
            &format!("runs{status} after shard {shard}"),
            &answer["total"].as_i64(),
            &Some(wanted),
        );
        if wanted == 1 {
            comparison.matches(
                "the row of a sharded run",
                &answer["runs"][0],
                &oracle::run_row(&run),
            );
        }
    }
    for test in run.tests() {
        let path = checks.path(&["tests", &test.name]);
        let answer = checks.get(comparison, &path);
        let expected = oracle::history(&[&run], &test.name, test.file.as_deref());
        comparison.matches(
            &format!("GET {path}"),
            &answer["occurrences"],
            &serde_json::Value::Array(expected),
        );
    }
    verdicts::verdicts(comparison, &checks);
}

/// A test that its shard no longer contains is removed from the run.
fn check_replaced_test(
    comparison: &mut Comparison,
    stack: &Stack,
    organization: &Organization,
    project: &Project,
    now: i64,
) {
    let checks = project_checks(stack, organization, project, now);
    let name = "chromium > small.spec.ts > small > a three";
    for path in [
        checks.path(&["runs", &project.runs[0].id, "tests", name]),
        checks.path(&["tests", name]),
        checks.path(&["tests", name, "status"]),
    ] {
        crate::checks::refused(
            comparison,
            &path,
            &checks.client.get(&path),
            404,
            "test_not_found",
        );
    }
    let answer = checks.get(comparison, &checks.path(&["flaky"]));
    let listed = answer["tests"].to_string().contains("a three");
    comparison.holds(!listed, || {
        "the flaky list holds a test that was replaced".to_owned()
    });
    let answer = checks.get(comparison, &checks.path(&["errors"]));
    let hits: u64 = answer["errors"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|e| e["occurrenceCount"].as_u64())
        .sum();
    let wanted = oracle::occurrences(&[&project.runs[0]]).len() as u64;
    comparison.same("occurrences after a replacement", &hits, &wanted);
}

/// The same report again changes nothing, with and without a run key.
fn check_same_reports_again(
    comparison: &mut Comparison,
    stack: &Stack,
    organization: &Organization,
    project: &Project,
) {
    let client = Client::new(stack.address(), &organization.key);
    let project_path = format!("/projects/{}", escape(&project.id));
    let paths = [
        format!("{project_path}/runs/{}", project.runs[0].id),
        format!("{project_path}/branches"),
        format!("{project_path}/settings"),
    ];
    let before: Vec<Vec<u8>> = paths.iter().map(|path| client.get(path).body).collect();
    for shard in 0..3 {
        let imported = importer::send(stack, project, &project.runs[0], shard);
        comparison.same(
            "the same shard again",
            &imported["shardId"].as_str(),
            &Some(project.runs[0].shards[shard].id.as_str()),
        );
    }
    let after: Vec<Vec<u8>> = paths.iter().map(|path| client.get(path).body).collect();
    comparison.holds(before == after, || {
        "importing the same reports again changed an answer".to_owned()
    });
}

/// Run keys: none, one of a suite, and one with and without shards.
fn keys(comparison: &mut Comparison, stack: &Stack, project: &mut Project, now: i64, dice: &mut Dice) {
    let run = small::run("keyless", "main", now - 20 * HOUR, &[("k", 'P')], dice);
    let other = small::run("keyless", "main", now - 19 * HOUR, &[("k", 'P')], dice);
    let import = |run: &Run| -> serde_json::Value {
        let file = stack.file(
            "keyless.json",
            playwright::report(run, &run.shards[0], false)
                .to_string()
                .as_bytes(),
        );
        stack.run_json(&["import", "--project", &project.id, "--branch", "main", &file])
    };
    let (first, same, second) = (import(&run), import(&run), import(&other));
    comparison.same("the same bytes without a key", &first["runId"], &same["runId"]);
    comparison.holds(first["runId"] != second["runId"], || {
        "other bytes without a key are another run".to_owned()
    });
    let mut of_suite = small::run("suites", "main", now - 18 * HOUR, &[("s", 'P')], dice);
    let mut ids = Vec::new();
    for suite in [None, Some("e2e"), Some("api")] {
        of_suite.suite = suite.map(str::to_owned);
        ids.push(importer::send(stack, project, &of_suite, 0)["runId"].to_string());
    }
    ids.sort();
    ids.dedup();
    comparison.same("one build with three suites", &ids.len(), &3);
    // The run has no shards. A shard of it is refused, and the server continues to work.
    let mut sharded = of_suite.clone();
    sharded.expected = Some(2);
    let report = playwright::report(&sharded, &sharded.shards[0], true);
    let output = importer::send_report(stack, project, &sharded, 0, &report, &[]);
    comparison.same("a shard of a run without shards", &output.status, &1);
    comparison.holds(!output.err.is_empty() && !output.err.contains("panicked"), || {
        format!("the error was {:?}", output.err)
    });
}

/// CI's second attempt is a part of the same run.
fn check_ci_attempts(
    comparison: &mut Comparison,
    stack: &Stack,
    organization: &Organization,
    now: i64,
    dice: &mut Dice,
) {
    let mut project = small::project("Attempts of CI");
    importer::create_project(stack, &organization.id, &mut project, comparison);
    let run = small::run("4711", "main", now - 3 * HOUR, &[("a", 'P')], dice);
    let mut ids = Vec::new();
    for (attempt, job) in [("1", "1"), ("2", "1"), ("1", "1")] {
        let file = stack.file(
            "attempt.json",
            playwright::report(&run, &run.shards[0], false)
                .to_string()
                .as_bytes(),
        );
        let variables = [
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_RUN_ID", "4711"),
            ("GITHUB_RUN_ATTEMPT", attempt),
            ("GITHUB_JOB", job),
            ("GITHUB_SHA", run.commit.as_deref().unwrap_or_default()),
            ("GITHUB_REF_NAME", "main"),
        ];
        let variables = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let arguments = ["import", "--json", "--project", &project.id, &file].map(str::to_owned);
        let output = stack.assay(&arguments, &variables, b"");
        let imported: serde_json::Value = serde_json::from_str(&output.out).unwrap_or_default();
        comparison.same("import of a CI attempt", &output.status, &0);
        ids.push(imported["runId"].to_string());
    }
    comparison.holds(ids.iter().all(|id| id == &ids[0]), || {
        format!("attempts 1, 2, 1 of CI are the runs {ids:?}")
    });
}

/// Later attempts of shards, which arrive in any order. After each of them, every answer about the run is checked.
fn check_attempts_of_shards(
    comparison: &mut Comparison,
    stack: &Stack,
    organization: &Organization,
    now: i64,
    dice: &mut Dice,
) {
    for round in 0..3 {
        let mut project = small::project(&format!("Attempts of shards {round}"));
        importer::create_project(stack, &organization.id, &mut project, comparison);
        let start = now - 30 * HOUR;
        let mut run = small::run("attempts", "main", start, &[], dice);
        run.expected = Some(2);
        run.shards.clear();
        let mut part = |index: u32, attempt: u32, letters: [char; 3]| {
            let names = [
                format!("{index} one"),
                format!("{index} two"),
                format!("{index} three"),
            ];
            let results: Vec<(&str, char)> = names.iter().map(String::as_str).zip(letters).collect();
            let at = start + i64::from(attempt) * HOUR;
            let mut shard = small::shard(index, at, &results, dice);
            shard.attempt = attempt;
            shard
        };
        let mut arrivals = vec![
            part(1, 1, ['P', 'F', 'F']),
            part(1, 2, ['P', 'P', 'F']),
            part(1, 3, ['-', '-', 'R']),
            part(2, 1, ['P', 'R', 'S']),
            part(2, 2, ['F', 'P', 'P']),
        ];
        arrivals.rotate_left(round * 2);
        project.runs.push(run);
        for part in arrivals {
            project.runs[0].shards.push(part);
            let newest = project.runs[0].shards.len() - 1;
            import_and_check_shard(
                comparison,
                stack,
                organization,
                &mut project,
                newest,
                now,
                importer::send,
            );
            let checks = project_checks(stack, organization, &project, now);
            crate::checks::attempts::attempts(comparison, &checks);
        }
    }
}
