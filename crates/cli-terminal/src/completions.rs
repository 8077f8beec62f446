//! The command `completions`: the completion script for a shell.

use std::io::Write as _;

use clap::{Args, Command, CommandFactory};
use clap_complete::{Shell, generate};
use serde_json::json;

use crate::{Program, help, terminal};

/// Print the completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = examples())]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// The examples of the running program.
fn examples() -> String {
    let name = Program::running().name();
    let (zsh, fish) = ("~/.zfunc", "~/.config/fish/completions");
    format!(
        "\
Examples, for shells that start afterwards:
  bash:        {name} completions bash > ~/.local/share/bash-completion/completions/{name}
  zsh:         {name} completions zsh > {zsh}/_{name}
               with fpath+={zsh} before compinit in ~/.zshrc
  fish:        {name} completions fish > {fish}/{name}.fish
  elvish:      {name} completions elvish >> ~/.config/elvish/rc.elv
  PowerShell:  {name} completions powershell >> $PROFILE

For the running shell, in bash:
  source <({name} completions bash)"
    )
}

/// The script of the running program.
fn script(mut command: Command, shell: Shell) -> anyhow::Result<String> {
    let name = Program::running().name();
    // In bash, clap_complete takes a hyphen of the name for the begin of a subcommand, and completes none.
    let plain = if shell == Shell::Bash {
        name.replace('-', "_")
    } else {
        name.to_owned()
    };
    let mut script = Vec::new();
    generate(shell, &mut command, &plain, &mut script);
    let completed = |name: &str| format!(" default {name}\n");
    Ok(String::from_utf8(script)?.replace(&completed(&plain), &completed(name)))
}

/// Runs the command.
pub fn run<C: CommandFactory>(json: bool, args: &CompletionsArgs) -> anyhow::Result<()> {
    let script = script(help::command::<C>(), args.shell)?;
    let mut out = terminal::plain_out();
    if json {
        writeln!(
            out,
            "{}",
            json!({ "shell": args.shell.to_string(), "script": script })
        )?;
    } else {
        out.write_all(script.as_bytes())?;
    }
    out.flush()?;
    Ok(())
}
