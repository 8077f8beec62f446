//! Values of the flags of reports, parsed once at the edge.

use assay_domain::{run::CiProvider, timestamp::Timestamp};
use assay_ingest::BadText;
pub use assay_ingest::values::{
    LONGEST_DURATION_MS, attempt, line, message, revision, run_key, shard, web_address,
};
use assay_reports::Format;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A CI service.
pub fn provider() -> impl TypedValueParser<Value = CiProvider> {
    PossibleValuesParser::new(CiProvider::ALL.iter().map(|word| word.as_str()))
        .try_map(|word| word.parse::<CiProvider>())
}

/// The names of report formats, with `auto` and `more` before them.
pub fn formats(more: Option<PossibleValue>) -> PossibleValuesParser {
    let auto = PossibleValue::new("auto").help("By each file's content");
    let formats = Format::ALL.iter().map(|format| {
        let word = PossibleValue::new(format.as_str()).help(format.help());
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
