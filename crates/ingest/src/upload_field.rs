//! The fields of an upload beside the report files: the one table that the listener, its description and the client use.

use assay_domain::{owners::OwnersFile, project::NAME_CHARS, renames::RenamesFile};

use crate::values::{LONGEST_FIELD, LONGEST_LINE, LONGEST_MESSAGE, LONGEST_RUN_KEY, MOST_KNOWN_FILE_BYTES};
use Bound::{Bytes, Chars, Parsed};

/// The longest value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// In characters.
    Chars(usize),
    /// In bytes, for a list, a file or JSON.
    Bytes(usize),
    /// The parser accepts few short values.
    Parsed,
}

/// Declares the fields, in the order of the documentation: name, bound, description and example.
macro_rules! fields {
    ($($field:ident $name:literal $bound:expr, $description:literal, $example:literal;)+) => {
        /// A field of an upload.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum UploadField {
            $(#[doc = $description] $field),+
        }

        impl UploadField {
            /// Every field, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$field),+];

            /// The name on the wire.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$field => $name),+ }
            }

            /// The field of this name.
            pub fn of(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$field),)+ _ => None }
            }

            /// The longest value.
            pub const fn bound(self) -> Bound {
                match self { $(Self::$field => $bound),+ }
            }

            /// The description, as Markdown.
            pub const fn description(self) -> &'static str {
                match self { $(Self::$field => $description),+ }
            }

            /// A valid value.
            pub const fn example(self) -> &'static str {
                match self { $(Self::$field => $example),+ }
            }
        }
    };
}

fields! {
    RunKey "runKey" Chars(LONGEST_RUN_KEY),
        "The key that all parts of one run share, such as the build's id. No other run may have it.",
        "build-812";
    Shard "shard" Parsed,
        "The shard of this report: number and total.",
        "2/5";
    Suite "suite" Chars(LONGEST_LINE),
        "A name that separates several runs of one build; each suite of a build is a run.",
        "e2e";
    Attempt "attempt" Parsed,
        "The attempt of the command in its job, from 1. A later attempt continues what failed in the one before.",
        "2";
    Replace "replace" Parsed,
        "`true`: the report replaces what is stored for its run and shard. Without it, nothing is replaced.",
        "false";
    Rerun "rerun" Bytes(4 << 20),
        "A JSON array of at most 200 tests, each with `name` and `filePath`: the report is a rerun of these by a gate, and only their results are stored.",
        "[{\"name\": \"cart > pays\", \"filePath\": \"cart.test.ts\"}]";
    RetriesAsAttempts "retriesAsAttempts" Parsed,
        "`true`: results of one name in a file are attempts of one test, for a tool whose retries the report does not mark.",
        "true";
    CommandStatus "commandStatus" Parsed,
        "The exit status of the test command, from 0 to 255. A failure that no result explains is an error of the run.",
        "1";
    SkipCached "skipCached" Parsed,
        "`true`: files whose tests began more than 24 hours from the upload are left out. By default they get its time.",
        "true";
    Branch "branch" Chars(NAME_CHARS),
        "The branch.",
        "main";
    Commit "commit" Chars(LONGEST_LINE),
        "The commit.",
        "4be1d0c7f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0";
    TestedRevision "testedRevision" Chars(LONGEST_LINE),
        "The tested revision, if it differs from the commit: for a merge commit of a pull request, its head.",
        "0a1b2c3";
    MergeBase "mergeBase" Parsed,
        "The commit at which the branch left the stable branch. What changed is judged against a run at or before it.",
        "9c70fe604be1d0c7f0f0f0f0f0f0f0f0f0f0f0f0";
    BaseBranch "baseBranch" Chars(NAME_CHARS),
        "The branch into which a change is to be merged. One to a release branch is judged against that branch.",
        "release/1.2";
    Message "message" Chars(LONGEST_MESSAGE),
        "The commit's message.",
        "Round totals half up";
    Author "author" Chars(LONGEST_LINE),
        "The commit's author.",
        "Ada";
    PullRequest "pullRequest" Parsed,
        "The pull request's number, from 1.",
        "7";
    PullRequestTitle "pullRequestTitle" Chars(LONGEST_LINE),
        "Its title.",
        "Round totals";
    Provider "provider" Parsed,
        "The CI service.",
        "github-actions";
    RunUrl "runUrl" Chars(LONGEST_FIELD),
        "The page of the CI run, an address of http or https. The pages link to it.",
        "https://github.com/shop/web/actions/runs/7";
    StartedAt "startedAt" Parsed,
        "The start of the run, in RFC 3339. By default the start in the report, else the time of the upload.",
        "2026-11-20T10:00:00Z";
    DurationMs "durationMs" Parsed,
        "The duration of the run, in whole milliseconds.",
        "1500";
    Format "format" Parsed,
        "The reports' format, or `auto`, which recognizes the format of each file.",
        "junit";
    Root "root" Chars(LONGEST_FIELD),
        "The checkout's folder as the reports write it. It is removed from the paths.",
        "/home/runner/work/shop";
    Ci "ci" Bytes(64 << 10),
        "JSON: values of CI's variables. `job`, `jobId`, `runner` and `attempt` identify the sender. `sources` lists [value, variable].",
        r#"{"provider": "github-actions", "job": "test", "jobId": "1001", "runner": "runner-1", "attempt": 1, "sources": [["branch", "GITHUB_REF_NAME"]]}"#;
    KnownFiles "knownFiles" Bytes(MOST_KNOWN_FILE_BYTES),
        "The checkout's files, one path per line. They give files to tests of reports that name only classes.",
        "src/totals.test.ts\nsrc/test/java/org/shop/OrderTest.java";
    ArtifactsUrl "artifactsUrl" Parsed,
        "Where CI keeps the files that the reports name: an address of http or https with `{path}` for a file's path.",
        "https://ci.example.org/artifacts/812/{path}";
    Owners "owners" Bytes(OwnersFile::MOST_TEXT_BYTES),
        "The text of the checkout's owners file, in the grammar of CODEOWNERS. It takes effect from a trusted run of the stable branch that is of no pull request. An empty text takes all owners away.",
        "/web/ @org/web";
    OwnersPath "ownersPath" Chars(OwnersFile::LONGEST_PATH),
        "The owners file's path in the checkout.",
        ".github/CODEOWNERS";
    OwnersFiles "ownersFiles" Bytes(OwnersFile::MOST_FILES_BYTES),
        "All files of the checkout, one path per line, by which a report's shorter path is found. Without them paths count from the root.",
        "web/src/cart.test.ts\nREADME.md";
    Renames "renames" Bytes(RenamesFile::MOST_TEXT_BYTES),
        "The text of the checkout's renames file. It takes effect like the owners file. An empty text undoes all renames.",
        "2026-11-27 file src/old/ -> src/new/";
    Project "project" Chars(NAME_CHARS),
        "Name or id of the project that the key must belong to. Any other project is refused.",
        "web";
    DryRun "dryRun" Parsed,
        "`true`: the report is read and answered, but not stored.",
        "false";
    Judgement "judgement" Parsed,
        "For a run of the past, with a key for such runs. `later`: the project is judged by a later upload. `silent`: it is judged, and no message is sent about it.",
        "later";
    Failures "failures" Parsed,
        "`true`: the answer includes the causes of this report's failures.",
        "true";
    UtcOffset "utcOffset" Parsed,
        "The offset from UTC of the machine that ran the tests. It applies to times of reports that have no zone.",
        "+09:00";
}

impl UploadField {
    /// Most characters of a value before it is parsed. A parser trims, and then applies its own bound.
    pub fn most_chars(self) -> usize {
        match self.bound() {
            Bytes(_) => usize::MAX,
            Chars(most) => most.max(LONGEST_FIELD),
            Parsed => LONGEST_FIELD,
        }
    }

    /// Most bytes of a value, which are checked while it arrives.
    pub fn most_bytes(self) -> usize {
        match self.bound() {
            Bytes(most) => most,
            Chars(_) | Parsed => 4 * self.most_chars(),
        }
    }
}

impl std::fmt::Display for UploadField {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
