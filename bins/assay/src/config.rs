//! The file `.assay/config.toml` of a checkout: flags of the commands that run in CI, for all of its jobs.

use std::{any::TypeId, ffi::OsString, path::Path};

use anyhow::Context as _;
use assay_cli_local::sources::{owners, text};
use assay_cli_terminal::{misuse::Misuse, suggest};
use clap::{Arg, ArgAction, ArgMatches, Command, error::ErrorKind, parser::ValueSource};
use toml::de::{DeTable, DeValue};

/// The file, from the root of the checkout.
const PATH: &str = ".assay/config.toml";
/// The commands that read it.
const COMMANDS: [&str; 4] = ["run", "gate", "upload", "split"];
/// Flags that decide where keys are sent. A change to the sources must not move them.
const NOT_HERE: [&str; 4] = ["url", "api-url", "key-file", "insecure-http"];
/// A command, its flag, and the flag without which that one is not allowed: such a value of the file waits for it.
const NEEDS: [(&str, &str, &str); 7] = [
    ("run", "rerun", "gate"),
    ("run", "burn-in", "gate"),
    ("run", "runner", "gate"),
    ("gate", "written-names", "history"),
    ("gate", "max-vanished", "run"),
    ("gate", "report-to", "run"),
    ("upload", "any-key", "spool"),
];

/// A flag of the file with its values as text.
struct Entry<'a> {
    name: &'a str,
    values: Vec<String>,
}

/// Adds the flags of the checkout's file to the arguments, if their command reads it. A flag of the command line or of a
/// variable takes precedence, and so does one that excludes a flag of the file.
pub(crate) fn with_file(command: &Command, given: Vec<OsString>) -> anyhow::Result<Vec<OsString>> {
    let mut own = given.iter().take_while(|word| *word != "--");
    if own.any(|word| word == "--help-all") {
        return Ok(given);
    }
    let parsed = command.clone().ignore_errors(true).try_get_matches_from(&given);
    let Ok(matches) = parsed else {
        return Ok(given);
    };
    let chosen = matches.subcommand().filter(|(name, _)| COMMANDS.contains(name));
    let Some((name, matches)) = chosen else {
        return Ok(given);
    };
    let Some(text) = file_of_checkout(PATH)? else {
        return Ok(given);
    };
    let entries = entries(command, name, &text)?;
    let Some(command) = command.find_subcommand(name) else {
        return Ok(given);
    };
    let flags = added(command, matches, &entries);
    let at = given
        .iter()
        .position(|word| word == name)
        .map_or(given.len(), |at| at + 1);
    let (before, after) = given.split_at(at);
    Ok([before, &flags, after].concat())
}

/// The text of a file of the repository that contains the current folder, or of the folder itself; none without the file.
pub(crate) fn file_of_checkout(path: &str) -> anyhow::Result<Option<String>> {
    let folder = Path::new(".");
    let root = owners::repository(folder).unwrap_or_else(|| folder.to_owned());
    let file = root.join(path);
    if !file.exists() {
        return Ok(None);
    }
    let text = text::read(&file, 1).with_context(|| format!("{path} is not read"))?;
    Ok(Some(text))
}

/// What is wrong at this byte of a file's text.
pub(crate) fn mistake((path, text): (&str, &str), at: usize, problem: &str) -> Misuse {
    let line = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
    Misuse(format!("{path}, line {line}: {problem}"))
}

/// The entries of the file, each checked by the command `name`, or by another one if that has no such flag.
fn entries<'a>(program: &Command, name: &str, text: &'a str) -> anyhow::Result<Vec<Entry<'a>>> {
    let wrong = |at: usize, problem: String| mistake((PATH, text), at, &problem);
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().unwrap_or_default().start;
        wrong(at, format!("{}; write `flag = value`", error.message()))
    })?;
    let readers = || [name].into_iter().chain(COMMANDS);
    let mut entries = Vec::new();
    for (key, value) in table.into_inner() {
        let at = key.span().start;
        let std::borrow::Cow::Borrowed(key) = key.into_inner() else {
            return Err(wrong(at, "a key has an escape; write the flag's name".to_owned()).into());
        };
        if NOT_HERE.contains(&key) {
            let problem = format!(
                "{key:?} is not read from this file, because a change to it could send keys elsewhere; give it to the job"
            );
            return Err(wrong(at, problem).into());
        }
        let reader = readers().find_map(|name| {
            let command = program.find_subcommand(name)?;
            Some((name, flag(command, key)?))
        });
        let Some((reader, argument)) = reader else {
            let flags = COMMANDS.iter().filter_map(|name| program.find_subcommand(name));
            let flags = flags.flat_map(Command::get_arguments).filter_map(Arg::get_long);
            let meant = suggest::closest(key, flags).map(|flag| format!("did you mean {flag:?}? "));
            let problem = format!(
                "unknown key {key:?}; {}a key is a flag of `assay run`, `gate`, `upload` or `split` without `--`",
                meant.unwrap_or_default()
            );
            return Err(wrong(at, problem).into());
        };
        let values = values(argument, value.get_ref());
        let values =
            values.map_err(|expected| wrong(at, format!("{key:?} has a wrong type; write {expected}")))?;
        for value in words(argument, key, &values) {
            let words = [program.get_name().into(), reader.into(), value];
            let refused =
                program.clone().try_get_matches_from(words).err().filter(|error| {
                    matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation)
                });
            if let Some(error) = refused {
                let text = error.to_string();
                let first = text
                    .lines()
                    .next()
                    .unwrap_or_default()
                    .trim_start_matches("error: ");
                return Err(wrong(at, format!("{first}; `assay {reader} --help-all` describes it")).into());
            }
        }
        entries.push(Entry { name: key, values });
    }
    Ok(entries)
}

/// The flag of a command that this key of the file names.
fn flag<'a>(command: &'a Command, key: &str) -> Option<&'a Arg> {
    let is_named = |argument: &&Arg| argument.get_long() == Some(key) && !argument.is_global_set();
    command.get_arguments().find(is_named)
}

fn is_switch(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::SetTrue)
}

fn is_number(argument: &Arg) -> bool {
    let parsed = argument.get_value_parser().type_id();
    let numbers = [
        TypeId::of::<f64>(),
        TypeId::of::<u8>(),
        TypeId::of::<u32>(),
        TypeId::of::<u64>(),
        TypeId::of::<usize>(),
        TypeId::of::<i64>(),
    ];
    numbers.iter().any(|number| parsed == *number)
}

/// The values of an entry, or what to write instead. A switch that is off has none.
fn values(argument: &Arg, value: &DeValue<'_>) -> Result<Vec<String>, &'static str> {
    if is_switch(argument) {
        let is_on = value.as_bool().ok_or("true or false")?;
        return Ok(is_on.then(String::new).into_iter().collect());
    }
    if is_number(argument) {
        let number = match value {
            DeValue::Integer(number) => Some(number.to_string()),
            DeValue::Float(number) => Some(number.to_string()),
            DeValue::String(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => None,
        };
        return number
            .map(|number| vec![number])
            .ok_or("a number, without quotes");
    }
    let text = |value: &DeValue<'_>| value.as_str().map(str::to_owned);
    if let ArgAction::Append = argument.get_action() {
        let list = match value.as_array() {
            Some(list) => list.iter().map(|value| text(value.get_ref())).collect(),
            None => text(value).map(|text| vec![text]),
        };
        return list.ok_or("a text in quotes, or a list of them");
    }
    text(value).map(|text| vec![text]).ok_or("a text in quotes")
}

/// The arguments of an entry.
fn words(argument: &Arg, name: &str, values: &[String]) -> Vec<OsString> {
    let word = |value: &String| match is_switch(argument) {
        true => format!("--{name}").into(),
        false => format!("--{name}={value}").into(),
    };
    values.iter().map(word).collect()
}

/// The arguments of the entries that this command has and that the given arguments do not exclude.
fn added(command: &Command, matches: &ArgMatches, entries: &[Entry<'_>]) -> Vec<OsString> {
    let is_given = |argument: &Arg| {
        let source = matches.value_source(argument.get_id().as_str());
        source.is_some_and(|source| source != ValueSource::DefaultValue)
    };
    let is_excluded = |argument: &Arg| {
        let excludes = |given: &Arg, other: &Arg| {
            let excluded = command.get_arg_conflicts_with(given);
            excluded
                .iter()
                .any(|excluded| excluded.get_id() == other.get_id())
        };
        let mut given = command.get_arguments().filter(|argument| is_given(argument));
        given.any(|given| excludes(given, argument) || excludes(argument, given))
    };
    let mut usable: Vec<(&Entry<'_>, &Arg)> = Vec::new();
    for entry in entries {
        let argument = flag(command, entry.name).filter(|argument| !argument.is_hide_set());
        if let Some(argument) = argument.filter(|argument| !is_given(argument) && !is_excluded(argument)) {
            usable.push((entry, argument));
        }
    }
    let is_on = |name: &str| {
        let is_usable = usable
            .iter()
            .any(|(entry, _)| entry.name == name && !entry.values.is_empty());
        is_usable || flag(command, name).is_some_and(is_given)
    };
    let is_allowed = |entry: &Entry<'_>| {
        let mut needed = NEEDS
            .iter()
            .filter(|(of, name, _)| *of == command.get_name() && *name == entry.name);
        needed.all(|(_, _, needed)| is_on(needed))
    };
    let allowed = usable.iter().filter(|(entry, _)| is_allowed(entry));
    allowed
        .flat_map(|(entry, argument)| words(argument, entry.name, &entry.values))
        .collect()
}
