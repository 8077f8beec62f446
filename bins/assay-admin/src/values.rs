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

/// The issuer of tokens, as its tokens name it.
pub(crate) fn issuer(text: &str) -> Result<String, &'static str> {
    let is_address = text.starts_with("https://") || text.starts_with("http://127.0.0.1:");
    // Tokens have the same text. An issuer has no query, fragment or user, and that of no CI service ends with a slash.
    let is_allowed = |byte: u8| byte.is_ascii_graphic() && !b"?#@".contains(&byte);
    let host = text.split('/').nth(2).unwrap_or_default();
    let is_host = !host.is_empty() && !host.bytes().any(|byte| byte.is_ascii_uppercase());
    let is_right = is_address && is_host && !text.ends_with('/') && text.bytes().all(is_allowed);
    is_right.then(|| text.to_owned()).ok_or(
        "expected the address of a CI service as its tokens have it, without a final slash, such as https://gitlab.com",
    )
}

/// The id of a repository at its CI service.
pub(crate) fn repository_id(text: &str) -> Result<String, &'static str> {
    let is_id = |char: char| char.is_ascii_alphanumeric() || char == '-';
    let is_right = !text.is_empty() && text.chars().all(is_id);
    let expected = "expected the repository's id, such as 74, because a name can get another owner";
    is_right.then(|| text.to_owned()).ok_or(expected)
}

/// A branch or tag in full.
pub(crate) fn reference(text: &str) -> Result<String, &'static str> {
    let is_right = text.starts_with("refs/");
    is_right
        .then(|| text.to_owned())
        .ok_or("expected a ref such as refs/heads/main or refs/tags/*")
}
