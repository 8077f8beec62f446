//! Values of the flags of reports, parsed once at the edge.

use assay_domain::{run::CiProvider, timestamp::Timestamp};
use assay_ingest::BadText;
pub use assay_ingest::values::{LONGEST_DURATION_MS, attempt, line, message, run_key, shard, web_address};
use assay_reports::Format;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A CI service.
pub fn provider() -> impl TypedValueParser<Value = CiProvider> {
    PossibleValuesParser::new(CiProvider::ALL.iter().map(|word| word.as_str()))
        .try_map(|word| word.parse::<CiProvider>())
}

/// The names of report formats, with `auto` and `more` before them.
pub fn formats(more: Option<PossibleValue>) -> PossibleValuesParser {
    let help = |format: Format| match format {
        Format::Playwright => "Playwright's JSON reporter",
        Format::Junit => "JUnit XML of every dialect",
        Format::Ctrf => "Common Test Report Format",
        Format::Jest => "Jest's and Vitest's JSON",
        Format::Go => "go test -json",
        Format::Trx => "Visual Studio test results",
        Format::Allure => "A folder of Allure results",
        Format::Testng => "TestNG's own results",
        Format::Cucumber => "Cucumber's JSON",
        Format::Robot => "Robot Framework's output.xml",
        Format::Mocha => "Mocha's JSON",
        Format::Mochawesome => "mochawesome's JSON",
        Format::Karate => "Karate's features, or their summary",
        Format::Nunit => "NUnit's XML, versions 2 and 3",
        Format::Xunit => "xUnit.net's XML",
        Format::PytestJson => "pytest-json-report's JSON",
        Format::Rspec => "RSpec's JSON",
        Format::Tap => "Test Anything Protocol",
        Format::Dart => "Events of dart test and flutter test",
        Format::Libtest => "Events of Rust's libtest",
        Format::Ctest => "CTest's Test.xml",
    };
    let auto = PossibleValue::new("auto").help("By each file's content");
    let formats = Format::ALL.iter().map(|format| {
        let word = PossibleValue::new(format.as_str()).help(help(*format));
        if *format == Format::Jest {
            word.alias("vitest")
        } else {
            word
        }
    });
    PossibleValuesParser::new([auto].into_iter().chain(more).chain(formats))
}

/// A name: 1 to 200 characters on one line.
pub fn name(text: &str) -> Result<String, BadText> {
    assay_ingest::name(text)
}

/// A point in time, RFC 3339.
pub fn timestamp(text: &str) -> Result<Timestamp, String> {
    text.parse()
        .map_err(|error: assay_domain::timestamp::BadTimestamp| error.to_string())
}
