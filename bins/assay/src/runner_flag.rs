//! The names of runners on the command line.

use assay_cli_job::{runners::Runner, split::Runner as DividedRunner};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// The runners and the forms of lists, each with what its list is.
const LISTS: [(&str, Runner, &str); 11] = [
    (
        "playwright",
        Runner::Playwright,
        "--test-list-invert and --test-list of Playwright",
    ),
    ("pytest", Runner::Pytest, "A plug-in for pytest"),
    ("nextest", Runner::Nextest, "A filterset for cargo nextest -E"),
    (
        "go",
        Runner::Go,
        "Lines of a package, a tab and a pattern for go test",
    ),
    ("jest", Runner::Jest, "--testNamePattern of Jest"),
    ("vitest", Runner::Vitest, "--testNamePattern of Vitest"),
    ("mocha", Runner::Mocha, "--grep of Mocha"),
    ("dotnet", Runner::Dotnet, "--filter of dotnet test"),
    ("surefire", Runner::Surefire, "-Dtest of Maven's Surefire"),
    ("txt", Runner::Txt, "Lines of a file, a tab and a name"),
    ("json", Runner::Json, "A JSON array"),
];

/// Parses the format of a list.
pub(crate) fn lists() -> impl TypedValueParser<Value = Runner> {
    let words = LISTS.map(|(word, _, help)| PossibleValue::new(word).help(help));
    PossibleValuesParser::new(words).try_map(runner)
}

/// Parses the name of a runner that can run some of its tests again.
pub(crate) fn runners() -> impl TypedValueParser<Value = Runner> {
    let runs = |(_, runner, _): &&(&str, Runner, &str)| !matches!(runner, Runner::Txt | Runner::Json);
    PossibleValuesParser::new(LISTS.iter().filter(runs).map(|(word, ..)| *word)).try_map(runner)
}

fn runner(word: String) -> Result<Runner, String> {
    let named = LISTS.iter().find(|(name, ..)| *name == word);
    named
        .map(|(_, runner, _)| *runner)
        .ok_or_else(|| format!("{word} is no runner"))
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
