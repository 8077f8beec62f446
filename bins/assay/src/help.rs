//! The layout of the program's help: commands grouped by purpose.

use std::{fmt::Write as _, iter};

use clap::{
    Command, CommandFactory as _, Error,
    builder::StyledStr,
    error::{ContextKind, ContextValue, ErrorKind},
};

use crate::cli::Cli;

/// The commands by purpose, in the order of first use.
const GROUPS: &[(&str, &[&str])] = &[
    ("Reports", &["run", "upload", "import", "analyze"]),
    ("Answers", &["gate", "quarantine", "mcp"]),
    ("Administration", &["org", "project", "key", "uploads"]),
    (
        "The database",
        &["migrate", "doctor", "prune", "refingerprint", "rebuild"],
    ),
    ("This program", &["completions", "man", "help"]),
];

/// Adds the help to the command line.
pub(crate) fn command() -> Command {
    let command = Cli::command();
    let template = template(&command);
    command.help_template(template)
}

/// Replaces the usage line of a usage error by that of the command's help. Clap's own line lists every option that has
/// a value, even one from a variable, as if it were required.
pub(crate) fn with_usage(mut error: Error) -> Error {
    let mut command = command();
    if let Ok(matches) = command.clone().ignore_errors(true).try_get_matches()
        && error.get(ContextKind::Usage).is_some()
    {
        command.build();
        let chain = iter::successors(matches.subcommand(), |(_, below)| below.subcommand());
        let command = chain
            .map(|(name, _)| name)
            .try_fold(&mut command, |command, name| command.find_subcommand_mut(name));
        if let Some(command) = command {
            if command.get_name() == "run" && is_command_without_dashes(&error) {
                let hint =
                    "put -- before the command: assay run --report junit.xml -- pytest --junitxml=junit.xml";
                let hints = ContextValue::StyledStrs(vec![StyledStr::from(hint)]);
                error.insert(ContextKind::Suggested, hints);
            }
            let usage = ContextValue::StyledStr(command.render_usage());
            error.insert(ContextKind::Usage, usage);
        }
    }
    error
}

/// Whether a test command that does not follow `--` may have caused a usage error.
fn is_command_without_dashes(error: &Error) -> bool {
    let is_of_arguments = matches!(
        error.kind(),
        ErrorKind::UnknownArgument | ErrorKind::MissingRequiredArgument
    );
    is_of_arguments && std::env::args_os().all(|argument| argument != "--")
}

/// The help's layout. Clap supports only one heading for commands; it writes everything else.
fn template(command: &Command) -> StyledStr {
    let (heading, word) = (
        command.get_styles().get_header(),
        command.get_styles().get_literal(),
    );
    let mut text = String::from("{before-help}{about-with-newline}\n{usage-heading} {usage}\n");
    let (mut built, names) = (command.clone(), names(command));
    // Adds clap's own command `help`.
    built.build();
    let width = names.iter().map(String::len).max().unwrap_or_default();
    for (title, members) in GROUPS {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n{heading}{title}:{heading:#}");
        for name in *members {
            if let Some(member) = built.find_subcommand(name) {
                let about = member.get_about().map(ToString::to_string).unwrap_or_default();
                let _ = writeln!(
                    text,
                    "  {word}{name}{word:#}{:1$}  {about}",
                    "",
                    width - name.len()
                );
            }
        }
    }
    let _ = write!(text, "\n{heading}Options:{heading:#}\n{{options}}{{after-help}}");
    text.into()
}

fn names(command: &Command) -> Vec<String> {
    command
        .get_subcommands()
        .map(|command| command.get_name().to_owned())
        .chain(["help".to_owned()])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn each_command_is_in_one_group() {
        for name in names(&command()) {
            let groups = GROUPS
                .iter()
                .filter(|(_, members)| members.contains(&name.as_str()))
                .count();
            assert_eq!(groups, 1, "{name}");
        }
    }

    /// Adds every command without subcommands, with its words.
    fn leaves(command: &Command, words: &str, into: &mut Vec<(String, Command)>) {
        for command in command.get_subcommands() {
            let words = format!("{words} {}", command.get_name());
            if command.has_subcommands() {
                leaves(command, &words, into);
            } else {
                into.push((words, command.clone()));
            }
        }
    }

    #[test]
    fn each_command_shows_an_example_of_itself() {
        let mut all = Vec::new();
        leaves(&command(), "assay", &mut all);
        assert!(all.len() > 10, "{}", all.len());
        for (words, command) in all {
            let after = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(after.contains("Example"), "{words}: no example");
            assert!(after.contains(&words), "{words}: {after}");
        }
    }

    #[test]
    fn each_option_has_a_description() {
        let mut all = Vec::new();
        leaves(&command(), "assay", &mut all);
        for (words, command) in all {
            for argument in command.get_arguments() {
                assert!(
                    argument.get_help().is_some(),
                    "{words} {}: no help",
                    argument.get_id()
                );
            }
        }
    }
}
