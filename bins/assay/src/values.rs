//! Values of flags, parsed once at the edge.

use std::time::Duration;

use assay_access::lifetime::Lifetime;
use assay_domain::{
    plan::Plan, recording::ShardIndex, run::CiProvider, settings::ChatEvent, timestamp::Timestamp,
};
use assay_ingest::BadText;
use assay_reports::Format;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Most shards of one run.
const MOST_SHARDS: u32 = 10_000;
/// Longest commit, author, suite or title, in characters.
const LONGEST_LINE: usize = 500;
/// Longest commit message, in characters.
const LONGEST_MESSAGE: usize = 10_000;
/// Longest name of a key, in characters.
const LONGEST_KEY_NAME: usize = 100;
/// Longest run key, in characters; a suite's name is added to it.
const LONGEST_RUN_KEY: usize = 400;

/// A plan: the retention tier of an organization.
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

/// What people call a key.
pub(crate) fn key_name(text: &str) -> Result<String, BadText> {
    assay_ingest::one_line(text, LONGEST_KEY_NAME)
}

/// A CI service.
pub(crate) fn provider() -> impl TypedValueParser<Value = CiProvider> {
    PossibleValuesParser::new(CiProvider::ALL.iter().map(|word| word.as_str()))
        .try_map(|word| word.parse::<CiProvider>())
}

/// An event that the chat integration tells of.
pub(crate) fn chat_event() -> impl TypedValueParser<Value = ChatEvent> {
    PossibleValuesParser::new(ChatEvent::ALL.iter().map(|word| word.as_str()))
        .try_map(|word| word.parse::<ChatEvent>())
}

/// The words for a report's format, with `auto` and `more` before them.
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
        Format::Karate => "Karate's summary: features without their scenarios",
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
    let named = Format::ALL.iter().map(|format| {
        let word = PossibleValue::new(format.as_str()).help(help(*format));
        if *format == Format::Jest {
            word.alias("vitest")
        } else {
            word
        }
    });
    PossibleValuesParser::new([auto].into_iter().chain(more).chain(named))
}

/// A name: 1 to 200 characters on one line.
pub(crate) fn name(text: &str) -> Result<String, BadText> {
    assay_ingest::name(text)
}

/// A text on one line.
pub(crate) fn line(text: &str) -> Result<String, BadText> {
    assay_ingest::one_line(text, LONGEST_LINE)
}

/// A run key.
pub(crate) fn run_key(text: &str) -> Result<String, BadText> {
    assay_ingest::one_line(text, LONGEST_RUN_KEY)
}

/// A text that may have several lines.
pub(crate) fn message(text: &str) -> Result<String, BadText> {
    let text = text.trim();
    match text.chars().count() {
        0 => Err(BadText::Empty),
        length if length > LONGEST_MESSAGE => Err(BadText::TooLong {
            limit: LONGEST_MESSAGE,
            length,
        }),
        _ if text
            .chars()
            .any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) =>
        {
            Err(BadText::Control)
        }
        _ => Ok(text.to_owned()),
    }
}

/// A shard as `2/5`: the second of five.
pub(crate) fn shard(text: &str) -> Result<ShardIndex, String> {
    let wrong = || format!("expected INDEX/TOTAL such as 2/5, from 1 to at most {MOST_SHARDS}");
    let (index, total) = text.split_once('/').ok_or_else(wrong)?;
    let number = |text: &str| {
        text.parse::<u32>()
            .ok()
            .filter(|number| (1..=MOST_SHARDS).contains(number) && !text.starts_with('+'))
            .ok_or_else(wrong)
    };
    let (index, total) = (number(index)?, number(total)?);
    if index > total {
        return Err(format!(
            "shard {index} of {total}: the index is at most the total"
        ));
    }
    Ok(ShardIndex {
        index,
        total: Some(total),
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_an_index_of_a_total() {
        assert_eq!(
            shard("2/5"),
            Ok(ShardIndex {
                index: 2,
                total: Some(5)
            })
        );
        for wrong in [
            "",
            "2",
            "0/5",
            "6/5",
            "2/",
            "/5",
            "-1/5",
            "+1/5",
            "1/10001",
            "1/4294967296",
            "a/b",
            "1/2/3",
        ] {
            assert!(shard(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_message_may_have_lines_but_no_other_control_characters() {
        assert_eq!(message("a\n\nb\n"), Ok("a\n\nb".to_owned()));
        assert_eq!(message("a\u{1b}[1m"), Err(BadText::Control));
        assert_eq!(message(" "), Err(BadText::Empty));
    }

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
