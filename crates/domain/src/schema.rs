//! OpenAPI schemas of the types that are serialized as text.

use utoipa::openapi::{ObjectBuilder, RefOr, Schema, SchemaFormat, schema::Type};

/// A text of a known format, such as a date-time.
pub(crate) fn text(format: &str, example: &str) -> RefOr<Schema> {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::Custom(format.to_owned())))
        .examples([example])
        .into()
}

/// A closed set of words, each with its meaning.
pub(crate) fn words(meaning: &str, words: &[(&str, &str)]) -> RefOr<Schema> {
    let lines = words
        .iter()
        .map(|(word, meaning)| format!("\n- `{word}`: {}", meaning.trim()));
    let description: String = [meaning.trim().to_owned(), "\n".to_owned()]
        .into_iter()
        .chain(lines)
        .collect();
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(description))
        .enum_values(Some(words.iter().map(|(word, _)| *word)))
        .into()
}
