//! `assay completions`: the completion script for a shell.

use std::io::Write as _;

use clap::Args;
use clap_complete::{Shell, generate};
use serde_json::json;

use crate::{cli::Global, help, terminal};

const EXAMPLES: &str = "\
Examples, for shells that start afterwards:
  bash:        assay completions bash > ~/.local/share/bash-completion/completions/assay
  zsh:         assay completions zsh > ~/.zfunc/_assay        (with fpath+=~/.zfunc before compinit in ~/.zshrc)
  fish:        assay completions fish > ~/.config/fish/completions/assay.fish
  elvish:      assay completions elvish >> ~/.config/elvish/rc.elv
  PowerShell:  assay completions powershell >> $PROFILE

For the running shell, in bash:
  source <(assay completions bash)";

/// Print the completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs `assay completions`.
pub(crate) fn run(global: &Global, args: &CompletionsArgs) -> anyhow::Result<()> {
    let mut script = Vec::new();
    generate(args.shell, &mut help::command(), "assay", &mut script);
    let mut out = terminal::plain_out();
    if global.json {
        let script = String::from_utf8(script)?;
        writeln!(
            out,
            "{}",
            json!({ "shell": args.shell.to_string(), "script": script })
        )?;
    } else {
        out.write_all(&script)?;
    }
    out.flush()?;
    Ok(())
}
