//! The layout of the program's help: commands grouped by purpose.

use std::{fmt::Write as _, iter};

use clap::{
    Arg, ArgAction, Command, CommandFactory, Error,
    builder::StyledStr,
    error::{ContextKind, ContextValue, ErrorKind},
};

use crate::{Program, wrap::broken};

/// Adds the help to the command line.
pub fn command<C: CommandFactory>() -> Command {
    let command = with_folded_examples(C::command());
    let template = template(&command);
    command.help_template(template)
}

/// The longest line of the help.
const WIDTH: usize = 80;

/// Folds long commands in the examples of a command and of those below it, so that the help does not break them.
fn with_folded_examples(command: Command) -> Command {
    let examples = command.get_after_help().map(ToString::to_string);
    let command = command.mut_subcommands(with_folded_examples);
    match examples {
        Some(examples) => {
            let lines: Vec<_> = examples.lines().map(folded).collect();
            command.after_help(lines.join("\n"))
        }
        None => command,
    }
}

/// An indented line of a shell, with a continuation at spaces outside of quotes if it is long.
fn folded(line: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    // A sentence ends with a colon.
    if indent == 0 || line.ends_with(':') || line.chars().count() <= WIDTH {
        return line.to_owned();
    }
    broken(line, indent, indent + 4, WIDTH, " \\")
}

/// The option that shows all options of a command whose help shows the common ones.
const ALL: &str = "help-all";

/// The command line with the common options alone in the help of the commands that have many, unless the arguments ask for
/// all.
pub(crate) fn shortened(command: Command) -> Command {
    let is_all = std::env::args_os().any(|argument| argument == "--help-all");
    command.mut_subcommands(|command| {
        let Some(common) = Program::running().common(command.get_name()) else {
            return command;
        };
        let all = Arg::new(ALL).long(ALL).action(ArgAction::HelpLong);
        let all = all.help("Show all options, also the rare ones");
        let shown = command.mut_args(|argument| {
            let is_common =
                argument.is_positional() || common.split(' ').any(|name| argument.get_id() == name);
            match is_all || is_common {
                true => argument,
                false => argument.hide(true),
            }
        });
        shown.arg(all)
    })
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
