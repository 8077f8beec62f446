//! Checks of a program's command line.

use assay_cli_terminal::{Program, help};
use clap::{Command, CommandFactory};

/// Checks that the command line is sound, that each command is in one group of the help and shows an example of itself, and
/// that each option has a description.
pub fn check_command_line<C: CommandFactory>(program: Program) {
    program.start();
    help::command::<C>().debug_assert();
    let command = help::command::<C>();
    let names = command.get_subcommands().map(Command::get_name).chain(["help"]);
    for name in names {
        let is_member = |(_, members): &&(&str, &[&str])| members.contains(&name);
        assert_eq!(program.groups().iter().filter(is_member).count(), 1, "{name}");
    }
    for name in program.groups().iter().flat_map(|(_, members)| *members) {
        assert!(
            *name == "help" || command.find_subcommand(name).is_some(),
            "{name} does not exist"
        );
    }
    let mut all = Vec::new();
    leaves(&command, program.name(), &mut all);
    assert!(all.len() > 7, "{}", all.len());
    for (words, command) in all {
        let after = command
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        assert!(after.contains("Example"), "{words}: no example");
        assert!(after.contains(&words), "{words}: {after}");
        for argument in command.get_arguments() {
            assert!(
                argument.get_help().is_some(),
                "{words} {}: no help",
                argument.get_id()
            );
        }
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
