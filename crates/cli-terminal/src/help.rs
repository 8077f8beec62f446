//! The layout of the program's help: commands grouped by purpose.

use std::{fmt::Write as _, iter};

use clap::{
    Command, CommandFactory, Error,
    builder::StyledStr,
    error::{ContextKind, ContextValue, ErrorKind},
};

use crate::Program;

/// Adds the help to the command line.
pub fn command<C: CommandFactory>() -> Command {
    let command = C::command();
    let template = template(&command);
    command.help_template(template)
}

/// Replaces the usage line of a usage error by that of the command's help. Clap's own line lists every option that has
/// a value, even one from a variable, as if it were required.
pub(crate) fn with_usage<C: CommandFactory>(mut error: Error) -> Error {
    let mut command = command::<C>();
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

/// The command of a usage error and the other program, if that one has the command.
pub(crate) fn command_of_other_program(error: &Error) -> Option<(String, Program)> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(command)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let other = Program::running().other_with(command)?;
    Some((command.clone(), other))
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
    for (title, members) in Program::running().groups() {
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
