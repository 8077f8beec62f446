//! The names of runners on the command line.

use assay_cli_job::{runners::Runner, split::Runner as DividedRunner};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// The runners that can run some of their tests again.
const RUNNERS: [(&str, Runner); 9] = [
    ("playwright", Runner::Playwright),
    ("pytest", Runner::Pytest),
    ("nextest", Runner::Nextest),
    ("go", Runner::Go),
    ("jest", Runner::Jest),
    ("vitest", Runner::Vitest),
    ("mocha", Runner::Mocha),
    ("surefire", Runner::Surefire),
    ("dotnet", Runner::Dotnet),
];

/// Parses the name of a runner.
pub(crate) fn runners() -> impl TypedValueParser<Value = Runner> {
    PossibleValuesParser::new(RUNNERS.map(|(word, _)| word)).try_map(|word| {
        let named = RUNNERS.iter().find(|(name, _)| *name == word);
        named
            .map(|(_, runner)| *runner)
            .ok_or_else(|| format!("{word} is no runner"))
    })
}

/// Parses the name of a runner whose list is divided among shards.
pub(crate) fn divided() -> impl TypedValueParser<Value = DividedRunner> {
    let words = DividedRunner::ALL.map(|runner| {
        let help = format!("Divides the {} of {}", runner.units(), runner.list_command());
        PossibleValue::new(runner.word()).help(help)
    });
    PossibleValuesParser::new(words).try_map(|word| {
        let named = DividedRunner::ALL
            .into_iter()
            .find(|runner| runner.word() == word);
        named.ok_or_else(|| format!("{word} is no runner"))
    })
}
