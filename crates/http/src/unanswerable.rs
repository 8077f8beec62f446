//! Questions to the API and the pages that have no answer.

use actix_web::http::StatusCode;
use assay_domain::{
    period::Days,
    plan::Plan,
    test::{CandidateFiles, TestLookup},
};

/// Why what a valid key asks for has no answer. Not-found variants have no fields, so that such answers cannot differ.
#[derive(Debug, thiserror::Error)]
pub enum Unanswerable {
    /// A parameter is not valid.
    #[error("The parameter {name} {rule}.")]
    BadParameter {
        /// Its name.
        name: &'static str,
        /// The problem or the allowed values, as the end of a sentence that begins with the name.
        rule: String,
    },
    /// The period is not valid, or exceeds the plan's retention.
    #[error("{}", bad_period(*.0))]
    BadPeriod(Plan),
    /// The organization has no such project.
    #[error("No project of this organization has this id.")]
    ProjectNotFound,
    /// The project has no such run.
    #[error("No run of this project has this id.")]
    RunNotFound,
    /// The project has no run of the commit.
    #[error("No run of this project tested this commit.")]
    CommitNotFound,
    /// The project has no run of the branch.
    #[error("No run of this project is of this branch.")]
    BranchNotFound,
    /// The project has no such test.
    #[error("No test has this name (and file, if the request has filePath).")]
    TestNotFound,
    /// The project has no such error signature.
    #[error("No error signature of this project has this fingerprint.")]
    SignatureNotFound,
    /// Several tests have the name.
    #[error("{}", ambiguous(.0))]
    AmbiguousTest(CandidateFiles),
}

impl Unanswerable {
    /// A parameter that breaks a rule.
    pub fn bad(name: &'static str, rule: &str) -> Self {
        let rule = rule.to_owned();
        Self::BadParameter { name, rule }
    }

    /// The status, and the stable code that clients match on.
    pub const fn status_and_code(&self) -> (StatusCode, &'static str) {
        match self {
            Self::BadParameter { .. } => (StatusCode::BAD_REQUEST, "invalid_parameter"),
            Self::BadPeriod(_) => (StatusCode::BAD_REQUEST, "invalid_period"),
            Self::ProjectNotFound => (StatusCode::NOT_FOUND, "project_not_found"),
            Self::RunNotFound => (StatusCode::NOT_FOUND, "run_not_found"),
            Self::CommitNotFound => (StatusCode::NOT_FOUND, "commit_not_found"),
            Self::BranchNotFound => (StatusCode::NOT_FOUND, "branch_not_found"),
            Self::TestNotFound => (StatusCode::NOT_FOUND, "test_not_found"),
            Self::SignatureNotFound => (StatusCode::NOT_FOUND, "error_not_found"),
            Self::AmbiguousTest(_) => (StatusCode::BAD_REQUEST, "ambiguous_test"),
        }
    }
}

/// The single test of a look-up.
///
/// # Errors
/// If there is none, or there are several.
pub fn single_test<T>(lookup: TestLookup<T>) -> Result<T, Unanswerable> {
    match lookup {
        TestLookup::Found(test) => Ok(test),
        TestLookup::Missing => Err(Unanswerable::TestNotFound),
        TestLookup::Ambiguous(files) => Err(Unanswerable::AmbiguousTest(files)),
    }
}

fn bad_period(plan: Plan) -> String {
    let retention = plan.retention_days();
    let allowed: Vec<_> = Days::of_plan(plan).map(|days| days.count().to_string()).collect();
    format!(
        "The parameter days must be given once, as one of {}; the plan keeps {retention} days of results.",
        allowed.join(", ")
    )
}

/// The files are quoted as JSON strings, so that a client can restore the stored text.
fn ambiguous(files: &CandidateFiles) -> String {
    let quoted: Vec<_> = files
        .named
        .iter()
        .map(|file| serde_json::Value::from(file.as_deref().unwrap_or("")).to_string())
        .collect();
    let others = match files.others {
        0 => String::new(),
        others => format!("; and {others} others"),
    };
    format!(
        "Several tests have this name; name its file (the parameter filePath, or --file of a command), one of: {}{others}",
        quoted.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ambiguous_name_lists_the_stored_files_as_json() {
        let stored = [
            "",
            "e\u{301}.py",
            "a \"quoted\" \\ file.ts",
            "l\u{200b}ine\nbreak.js",
        ];
        let files = stored.map(|file| (!file.is_empty()).then(|| file.to_owned()));
        let sentence = Unanswerable::AmbiguousTest(CandidateFiles::first_of(files.into_iter())).to_string();
        let (_, quoted) = sentence.split_once("one of: ").unwrap();
        let parsed: Vec<String> = serde_json::from_str(&format!("[{quoted}]")).unwrap();
        assert_eq!(parsed, stored);
    }

    #[test]
    fn an_ambiguous_name_lists_50_files_and_the_number_of_the_others() {
        let files: Vec<_> = (0..53).map(|file| Some(format!("{file}.ts"))).collect();
        let sentence = Unanswerable::AmbiguousTest(CandidateFiles::first_of(files.into_iter())).to_string();
        assert_eq!(sentence.matches(".ts\"").count(), 50);
        assert!(sentence.ends_with("\"49.ts\"; and 3 others"), "{sentence}");
    }
}
