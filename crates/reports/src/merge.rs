//! Merges the reports of one run's files.

use assay_domain::{recording::ShardIndex, run::RunState, test::TestName};

use crate::{
    allure,
    collect::{self, Collector},
    duplicates, groups, limits, packages, paths,
    piece::Piece,
    report::{Format, ReadError, Report},
    reruns, retries, stable_names, text,
};

/// Merges the reports of one run, within the limits.
pub(crate) fn merge(mut pieces: Vec<Piece>) -> Result<Report, ReadError> {
    let file = pieces
        .first()
        .map_or_else(|| "-".to_owned(), |piece| piece.name.clone());
    allure::join(&mut pieces);
    let repeated = duplicates::remove_repetitions(&mut pieces);
    packages::lead_names(&mut pieces);
    groups::add_passes(&mut pieces);
    let reruns = reruns::join(&mut pieces);
    let mut reports = pieces.into_iter().map(|piece| piece.report);
    let Some(mut whole) = reports.next() else {
        return Err(ReadError::Unrecognised {
            file,
            hint: format!("expected {}", Format::all_in_words()),
        });
    };
    // The tests of a single report are unique already.
    let is_single = reports.len() == 0;
    whole
        .warnings
        .extend(repeated.into_iter().chain(reruns.retries).chain(reruns.beside));
    let mut tests = Collector::default();
    let mut shards = vec![whole.shard];
    let mut several_formats = false;
    if !is_single {
        for test in std::mem::take(&mut whole.tests) {
            tests.add_all(test);
        }
    }
    for next in reports {
        several_formats |= next.format != whole.format;
        shards.push(next.shard);
        for test in next.tests {
            tests.add_all(test);
        }
        whole.widen(next.started_at, None);
        whole.widen(next.finished_at, None);
        whole.duration_ms = whole.duration_ms.max(next.duration_ms);
        whole.context = std::mem::take(&mut whole.context).or(next.context);
        whole.run_key = whole.run_key.take().or(next.run_key);
        if next.state == RunState::Interrupted {
            whole.state = next.state;
        }
        whole.passed_groups.extend(next.passed_groups);
        whole.errors.extend(next.errors);
        whole.warnings.extend(next.warnings);
        whole.hides_retries |= next.hides_retries;
        whole.is_cached |= next.is_cached;
    }
    if tests.len().max(whole.tests.len()) > limits::TESTS {
        let limit = format!("{} tests", limits::TESTS);
        return Err(ReadError::too_large(&file, "the number of tests", limit));
    }
    if !is_single {
        whole.tests = tests.finish();
        collect::settle(&mut whole.tests);
    }
    if whole.format == Format::Allure && !several_formats {
        whole
            .warnings
            .extend(retries::warning(&whole, paths::folder(&file)));
    }
    join_shards(&mut whole, &shards);
    if several_formats {
        let warning = "Reports of several formats were read as one run; the same tests may be in it twice.";
        whole.warnings.push(warning.to_owned());
    }
    whole.warnings.extend(stable_names::warning(&whole));
    let shortened = whole.tests.iter().filter(|test| is_shortened(&test.test)).count();
    if shortened > 0 {
        whole.warnings.push(format!(
            "The names or paths of {shortened} tests are longer than {} characters. Each keeps its beginning, its end and \
             a hash of the whole.",
            limits::NAME
        ));
    }
    if whole.tests.is_empty() && whole.errors.is_empty() {
        let warning = "The report holds no tests. Some tools leave such a report behind when no test loads.";
        whole.warnings.push(warning.to_owned());
    }
    limit_errors_and_warnings(&mut whole);
    Ok(whole)
}

fn is_shortened(test: &TestName) -> bool {
    text::is_shortened(&test.name) || test.file_path.as_deref().is_some_and(text::is_shortened)
}

/// Removes the shard of a run that was merged from several shards. Marks the run as interrupted if shards are missing.
fn join_shards(report: &mut Report, shards: &[Option<ShardIndex>]) {
    if shards.iter().all(|shard| *shard == report.shard) {
        return;
    }
    report.shard = None;
    let mut present_shards: Vec<u32> = shards.iter().flatten().map(|shard| shard.index).collect();
    present_shards.sort_unstable();
    present_shards.dedup();
    let Some(total) = shards.iter().flatten().filter_map(|shard| shard.total).max() else {
        return;
    };
    if u32::try_from(present_shards.len()).is_ok_and(|count| count < total) {
        report.state = RunState::Interrupted;
        let present_shards = present_shards
            .iter()
            .map(u32::to_string)
            .collect::<Vec<_>>()
            .join(", ");
        report.warnings.push(format!(
            "Of {total} shards only {present_shards} are in the import."
        ));
    }
}

/// Limits the numbers of errors and warnings, with a warning for the omitted ones.
fn limit_errors_and_warnings(report: &mut Report) {
    if report.errors.len() > limits::REPORT_ERRORS {
        let omitted = report.errors.len() - limits::REPORT_ERRORS;
        report.errors.truncate(limits::REPORT_ERRORS);
        report.warnings.insert(
            0,
            format!("{omitted} more errors outside of any test were left out."),
        );
    }
    if report.warnings.len() > limits::WARNINGS {
        let omitted = report.warnings.len() - limits::WARNINGS;
        report.warnings.truncate(limits::WARNINGS);
        report
            .warnings
            .push(format!("{omitted} more warnings were left out."));
    }
}
