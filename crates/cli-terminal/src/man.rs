//! The command `man`: the manual pages.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use serde_json::json;

use crate::{Program, help, output, terminal};

/// Print the manual page, or write all pages into a folder
#[derive(Debug, Args)]
#[command(after_help = examples())]
pub struct ManArgs {
    /// Write one page per command into this folder, which is created if it is missing
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// The examples of the running program.
fn examples() -> String {
    let program = Program::running();
    let name = program.name();
    let command = match program {
        Program::Assay => "run",
        Program::AssayAdmin => "import",
    };
    format!(
        "\
Examples:
  Read the page of this program:
    {name} man | man -l -
  Install the pages of all commands, then read one:
    {name} man --output ~/.local/share/man/man1
    man {name}-{command}"
    )
}

/// Runs the command.
pub fn run<C: CommandFactory>(json: bool, args: &ManArgs) -> anyhow::Result<()> {
    let mut command = help::command::<C>().disable_help_subcommand(true);
    command.build();
    match &args.output {
        Some(folder) => write(json, &command, folder),
        None => print(json, command),
    }
}

fn print(json: bool, command: Command) -> anyhow::Result<()> {
    let page = page(command)?;
    let mut out = terminal::plain_out();
    if json {
        writeln!(out, "{}", json!({ "page": String::from_utf8(page)? }))?;
    } else {
        out.write_all(&page)?;
    }
    out.flush()?;
    Ok(())
}

fn write(json: bool, command: &Command, folder: &Path) -> anyhow::Result<()> {
    let doing = |path: &Path| path.display().to_string();
    fs::create_dir_all(folder).with_context(|| doing(folder))?;
    let mut files = Vec::new();
    for command in with_subcommands(command) {
        let name = command
            .get_display_name()
            .unwrap_or(command.get_name())
            .to_owned();
        let path = folder.join(format!("{name}.1"));
        fs::write(&path, page(command)?).with_context(|| doing(&path))?;
        files.push(path.display().to_string());
    }
    output::print(json, &json!({ "files": files }), || {
        format!(
            "Wrote {} into {}",
            output::count(files.len(), "page"),
            folder.display()
        )
    })
}

/// The page of a command and those of its subcommands.
fn with_subcommands(command: &Command) -> Vec<Command> {
    let below = command.get_subcommands().flat_map(with_subcommands);
    [command.clone()].into_iter().chain(below).collect()
}

fn page(command: Command) -> anyhow::Result<Vec<u8>> {
    let mut page = Vec::new();
    // Without a date, so that the same program writes the same page.
    Man::new(command).render(&mut page)?;
    // The names of options cannot be broken, so lines of the synopsis cannot be filled to the right margin.
    let page = String::from_utf8(page)?.replace("\n.SH SYNOPSIS\n", "\n.SH SYNOPSIS\n.ad l\n");
    Ok(page.into_bytes())
}
