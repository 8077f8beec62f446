//! The two programs and their commands.

use std::sync::OnceLock;

/// Commands under a heading of the help.
pub type Group = (&'static str, &'static [&'static str]);

/// The commands of `assay`, in the order of first use.
const ASSAY: &[Group] = &[
    ("Reports", &["run", "upload", "backfill", "analyze"]),
    (
        "Answers",
        &[
            "gate",
            "excuse",
            "quarantine",
            "split",
            "culprit",
            "verify",
            "proof",
            "issues",
            "uploads",
            "owners",
            "renames",
            "login",
            "logout",
            "mcp",
        ],
    ),
    ("This program", &["completions", "man", "help"]),
];

/// The commands of `assay-admin`, in the order of first use.
const ASSAY_ADMIN: &[Group] = &[
    ("First", &["setup"]),
    ("Administration", &["org", "project", "key", "trust"]),
    ("Reports", &["import", "uploads", "export"]),
    (
        "The database",
        &["migrate", "doctor", "prune", "refingerprint", "rebuild"],
    ),
    ("This program", &["completions", "man", "help"]),
];

/// The options that `--help` shows, for commands with many. `--help-all` shows the others, too.
const COMMON: [(&str, &str); 4] = [
    (
        "run",
        "report gate rerun burn_in changed report_to best_effort dry_run spool project suite shard attempt branch commit",
    ),
    (
        "gate",
        "run history stable_branch output risk max_excused changed never allow_broken exit_code report_to best_effort \
         project branch commit",
    ),
    (
        "upload",
        "check report_to best_effort dry_run spool project suite shard attempt run_key replace branch commit pr",
    ),
    (
        "import",
        "project dry_run no_ci format root run_key shard suite replace started_at branch commit pr",
    ),
];

/// A command-line program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// For people with a key or a folder of reports.
    Assay,
    /// For the person with the database.
    AssayAdmin,
}

/// The running program.
static RUNNING: OnceLock<Program> = OnceLock::new();

impl Program {
    /// The program's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Assay => "assay",
            Self::AssayAdmin => "assay-admin",
        }
    }

    /// The commands by purpose.
    pub const fn groups(self) -> &'static [Group] {
        match self {
            Self::Assay => ASSAY,
            Self::AssayAdmin => ASSAY_ADMIN,
        }
    }

    /// The options that the help of this command shows; none if it shows all.
    pub(crate) fn common(self, command: &str) -> Option<&'static str> {
        // No command with many options has the name of one of the other program.
        let is_own = self
            .groups()
            .iter()
            .any(|(_, commands)| commands.contains(&command));
        let is_this = |(name, _): &&(&str, &str)| is_own && *name == command;
        COMMON.iter().find(is_this).map(|(_, options)| *options)
    }

    /// The other program, if it has this command.
    pub fn other_with(self, command: &str) -> Option<Self> {
        let other = match self {
            Self::Assay => Self::AssayAdmin,
            Self::AssayAdmin => Self::Assay,
        };
        let has_command = |(_, commands): &Group| commands.contains(&command);
        other.groups().iter().any(has_command).then_some(other)
    }

    /// Names the running program, once, before anything is printed.
    pub fn start(self) {
        let _ = RUNNING.set(self);
    }

    /// The running program. Tests of a library run in none; `assay` then.
    pub fn running() -> Self {
        RUNNING.get().copied().unwrap_or(Self::Assay)
    }
}
