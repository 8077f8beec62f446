//! Values of flags, parsed once at the edge.

pub(crate) use assay_cli_local::sources::values::name;
pub(crate) use assay_cli_terminal::values::duration;
use assay_domain::{key::Lifetime, plan::Plan, settings::ChatEvent, timestamp::Timestamp};
use assay_ingest::BadText;
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

/// An event of the chat integration.
pub(crate) fn chat_event() -> impl TypedValueParser<Value = ChatEvent> {
    PossibleValuesParser::new(ChatEvent::ALL.iter().map(|word| word.as_str()))
        .try_map(|word| word.parse::<ChatEvent>())
}

/// A day such as `2026-11-01`, which is its start in UTC, or a date-time of RFC 3339.
pub(crate) fn day_or_time(text: &str) -> Result<Timestamp, String> {
    let start = format!("{text}T00:00:00Z");
    let parsed = text.parse().or_else(|_| start.parse());
    parsed.map_err(|_| "expected a day such as 2026-11-01, or a time such as 2026-11-01T18:30:00Z".to_owned())
}
