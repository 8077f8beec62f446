//! One error for each code that the ingest routes answer.

use assay_access::check::Refusal;
use assay_domain::{
    decision::DecisionError,
    fix::FixError,
    rules::RuleViolation,
    store::{RecordError, StoreError},
    timestamp::Timestamp,
};
use assay_http::Problem;
use assay_reports::ReadError;

use crate::error::IngestError;

/// An error with its description.
type Described = (IngestError, &'static str);

/// One error for each code.
pub(super) fn errors() -> Vec<Described> {
    let groups: [fn() -> Vec<Described>; 4] = [of_keys, of_requests, of_reports, of_the_server];
    groups.into_iter().flat_map(|group| group()).collect()
}

fn of_keys() -> Vec<Described> {
    let refused = |refusal: Refusal| IngestError::from(Problem::from(refusal));
    vec![
        (refused(Refusal::MissingKey), "The request has no bearer key."),
        (refused(Refusal::InvalidKey), "The key is unknown or malformed."),
        (
            refused(Refusal::WrongKeyType),
            "An organization's read key was used.",
        ),
        (
            refused(Refusal::InvalidToken("")),
            "The token of a CI job is not valid, or no project trusts such a job.",
        ),
        (
            Problem::IssuerSilent.into(),
            "The issuer of the token does not answer; send the request again.",
        ),
        (refused(Refusal::KeyRevoked), "The key was revoked."),
        (refused(Refusal::KeyExpired), "The key has expired."),
    ]
}

fn of_requests() -> Vec<Described> {
    vec![
        (IngestError::NoSuchRoute, "There is no such path."),
        (
            IngestError::NoSuchMethod { allow: "POST" },
            "The route takes another method, which `Allow` names.",
        ),
        (
            IngestError::Truncated,
            "A field, a file name or the form is not valid, or the body was cut off.",
        ),
        (
            IngestError::UnsupportedCoding,
            "The content coding is neither gzip nor zstd.",
        ),
        (
            IngestError::TooLarge {
                subject: "",
                limit: String::new(),
            },
            "A limit is exceeded; the error names it.",
        ),
        (
            IngestError::TooSlow,
            "Less than 10 kB a second arrived over ten seconds, or the body took ten minutes.",
        ),
        (
            IngestError::WrongProject {
                key_project: String::new(),
            },
            "The key belongs to a project other than the one in the field `project`.",
        ),
        (
            RuleViolation::NotAPullRequest.into(),
            "The key is for pull requests only, and the report has no pull request or is of the stable branch.",
        ),
    ]
}

fn of_reports() -> Vec<Described> {
    let now = Timestamp::from_unix_ms(0);
    let broken = ReadError::Broken {
        file: String::new(),
        line: 1,
        format: "",
        problem: String::new(),
    };
    let unrecognised = ReadError::Unrecognised {
        file: String::new(),
        hint: String::new(),
    };
    let sharding_differs = RecordError::ShardingDiffers {
        run_number: 1,
        stored_sharded: false,
    };
    let revision_differs = RecordError::RevisionDiffers {
        run_number: 1,
        run_key: String::new(),
        stored: String::new(),
        reported: String::new(),
    };
    let run_closed = RuleViolation::RunClosed {
        run_number: 1,
        first_shard_at: now,
    };
    let unknown_test = DecisionError::NoTest {
        run_number: 1,
        test_name: String::new(),
    };
    let unknown_test_of_fix = FixError::NoTest {
        test_name: String::new(),
    };
    vec![
        (
            broken.into(),
            "A file has a known format but cannot be read; `line` is the position.",
        ),
        (unrecognised.into(), "A file is not a report of a known format."),
        (
            IngestError::NothingToStore,
            "The reports hold neither a test nor an error.",
        ),
        (
            RuleViolation::StartsInTheFuture { started_at: now }.into(),
            "The run started more than 7 days ago or starts more than 10 minutes ahead.",
        ),
        (
            run_closed.into(),
            "The run's first report is more than 24 hours old.",
        ),
        (
            revision_differs.into(),
            "The run of this run key tested another revision; give `runKey`, or correct `commit`.",
        ),
        (
            sharding_differs.into(),
            "The run is stored without shards and this is a shard of it, or the reverse.",
        ),
        (
            DecisionError::NoRun.into(),
            "The project has no such run, the run no such shard, or none of its uploads is recorded.",
        ),
        (unknown_test.into(), "The run has no result of an excused test."),
        (unknown_test_of_fix.into(), "The project has no such test."),
    ]
}

fn of_the_server() -> Vec<Described> {
    let day_used_up = RuleViolation::DayUsedUp {
        what: "",
        most: 1,
        after_s: 1,
    };
    let failed = StoreError::Failed {
        doing: "",
        source: "".into(),
    };
    let not_permitted = StoreError::NotPermitted {
        doing: "",
        source: "".into(),
    };
    vec![
        (
            Problem::RateLimited { after_s: 1 }.into(),
            "The key sent more uploads than its limit per minute.",
        ),
        (
            day_used_up.into(),
            "The key has stored the tests or bytes that it may store on a day.",
        ),
        (
            IngestError::Busy {
                reason: "",
                after_s: 1,
            },
            "The server has no turn, memory or room for the upload now, or cannot reach its database.",
        ),
        (
            not_permitted.into(),
            "The server's login lacks a right in its database, so sending it again does not help.",
        ),
        (failed.into(), "The server failed."),
    ]
}
