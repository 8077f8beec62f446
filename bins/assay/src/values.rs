//! Values of flags, parsed once at the edge.

use std::time::Duration;

use assay_access::lifetime::Lifetime;
use assay_domain::{
    plan::Plan, run::CiProvider, settings::ChatEvent, timestamp::Timestamp, verdict::ENGINE_WINDOW_DAYS,
};
use assay_ingest::BadText;
pub(crate) use assay_ingest::values::{
    LONGEST_DURATION_MS, attempt, line, message, run_key, shard, web_address,
};
use assay_reports::Format;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Longest name of a key, in characters.
const LONGEST_KEY_NAME: usize = 100;

/// An organization's plan, which sets its retention.
pub(crate) fn plan() -> impl TypedValueParser<Value = Plan> {
    let help = |plan: Plan| match plan {
        Plan::Free => "60 days of results, without the read API",
        Plan::Standard => "60 days of results",
        Plan::Pro => "90 days of results",
    };
    let words = Plan::ALL
        .iter()
        .map(move |plan| PossibleValue::new(plan.as_str()).help(help(*plan)));
    PossibleValuesParser::new(words).try_map(|word| word.parse::<Plan>())
}

/// How long a read key works, in days.
pub(crate) fn lifetime() -> impl TypedValueParser<Value = Lifetime> {
    PossibleValuesParser::new(["30", "60", "90", "180"]).try_map(|word| word.parse::<Lifetime>())
}

/// The display name of a key.
pub(crate) fn key_name(text: &str) -> Result<String, BadText> {
    assay_ingest::one_line(text, LONGEST_KEY_NAME)
}

/// A CI service.
pub(crate) fn provider() -> impl TypedValueParser<Value = CiProvider> {
    PossibleValuesParser::new(CiProvider::ALL.iter().map(|word| word.as_str()))
        .try_map(|word| word.parse::<CiProvider>())
}

/// An event of the chat integration.
pub(crate) fn chat_event() -> impl TypedValueParser<Value = ChatEvent> {
    PossibleValuesParser::new(ChatEvent::ALL.iter().map(|word| word.as_str()))
        .try_map(|word| word.parse::<ChatEvent>())
}

/// The names of report formats, with `auto` and `more` before them.
pub(crate) fn formats(more: Option<PossibleValue>) -> PossibleValuesParser {
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
pub(crate) fn name(text: &str) -> Result<String, BadText> {
    assay_ingest::name(text)
}

/// A point in time, RFC 3339.
pub(crate) fn timestamp(text: &str) -> Result<Timestamp, String> {
    text.parse()
        .map_err(|error: assay_domain::timestamp::BadTimestamp| error.to_string())
}

/// A length of time such as `90s`, `5m`, `1h` or `0`; at most a day.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a time such as 90s, 5m or 1h, at most 24h; 0 for none".to_owned();
    let (number, seconds) = match text.char_indices().last() {
        Some((at, 's')) => (text.get(..at), 1),
        Some((at, 'm')) => (text.get(..at), 60),
        Some((at, 'h')) => (text.get(..at), 3_600),
        Some(_) | None => (Some(text).filter(|text| *text == "0"), 1),
    };
    number
        .filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|number| number.parse::<u64>().ok()?.checked_mul(seconds))
        .filter(|seconds| *seconds <= 86_400)
        .map(Duration::from_secs)
        .ok_or_else(wrong)
}

/// An age such as `12h` or `30d`, at most ten years.
pub(crate) fn age(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a time such as 12h or 30d, at most 3650d".to_owned();
    let (number, hours) = match text.char_indices().last() {
        Some((at, 'h')) => (text.get(..at), 1),
        Some((at, 'd')) => (text.get(..at), 24),
        Some(_) | None => (None, 0),
    };
    number
        .filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|number| number.parse::<u64>().ok()?.checked_mul(hours))
        .filter(|hours| *hours <= 3_650 * 24)
        .map(|hours| Duration::from_secs(hours * 3_600))
        .ok_or_else(wrong)
}

/// A time of less than the engine's window: 12h, 3d.
pub(crate) fn age_in_window(text: &str) -> Result<Duration, String> {
    let longest = u64::try_from(ENGINE_WINDOW_DAYS).unwrap_or(0) * 24 * 3_600;
    age(text)
        .ok()
        .filter(|age| age.as_secs() < longest)
        .ok_or_else(|| format!("expected a time such as 12h or 3d, less than {ENGINE_WINDOW_DAYS}d"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_unit() {
        for (text, seconds) in [("0", 0), ("90s", 90), ("5m", 300), ("24h", 86_400), ("0s", 0)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for wrong in [
            "",
            "5",
            "m",
            "-1s",
            "+1s",
            "1.5m",
            "25h",
            "99999999999999999999h",
            "5 m",
            "5d",
        ] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
