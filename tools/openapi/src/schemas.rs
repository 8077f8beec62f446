//! The schemas of the answers, from the answers' types.

use serde_json::Value;
use utoipa::{
    ToSchema,
    openapi::{RefOr, Schema},
};

use crate::json::{Fields, each_object, fields, fields_mut, list, object, texts};

/// Fields that are present only on request, by schema. Every other field is always present.
const OPTIONAL_FIELDS: [(&str, &str); 1] = [("VerdictEntry", "evidence")];

/// Registers a type and every type in it. Returns its name.
pub type Register = fn(&mut NamedSchemas) -> String;

/// Types by name, as their derived schemas describe them.
pub type NamedSchemas = Vec<(String, RefOr<Schema>)>;

pub fn register<T: ToSchema>(named_schemas: &mut NamedSchemas) -> String {
    T::schemas(named_schemas);
    named_schemas.push((T::name().into_owned(), T::schema()));
    T::name().into_owned()
}

/// The schemas of the document, by name. Completes the derived ones, and inlines those that only mirror the structure
/// of the code.
pub(crate) fn components(named_schemas: NamedSchemas) -> Fields {
    let raw: Fields = named_schemas
        .into_iter()
        .map(|(name, schema)| (name, serde_json::to_value(schema).unwrap()))
        .collect();
    let mut schemas: Fields = raw
        .iter()
        .filter(|(_, schema)| !is_scalar(schema))
        .map(|(name, schema)| {
            let mut schema = merged(schema.clone(), &raw);
            each_object(&mut schema, &mut |fields| inline_scalar(fields, &raw));
            each_object(&mut schema, &mut require_all);
            (name.clone(), schema)
        })
        .collect();
    for (name, field) in OPTIONAL_FIELDS {
        make_optional(fields_mut(&mut schemas[name]), field);
    }
    schemas.sort_keys();
    schemas
}

/// Keeps only the schemas that `roots` or others refer to, without inlined ones.
pub(crate) fn without_unused(mut schemas: Fields, roots: &[String]) -> Fields {
    let mut used = roots.to_vec();
    for schema in schemas.values_mut() {
        each_object(schema, &mut |fields| {
            used.extend(referenced(fields).map(str::to_owned))
        });
    }
    schemas.retain(|name, _| used.contains(name));
    schemas
}

/// Whether this is a text with a format, such as a date-time, which is inlined.
fn is_scalar(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("string") && schema.get("enum").is_none()
}

/// Merges an object with those that serde flattens into it.
fn merged(schema: Value, raw: &Fields) -> Value {
    let Some(parts) = schema.get("allOf") else {
        return schema;
    };
    // An object's own fields come first, as in most answers.
    let mut parts = list(parts).to_vec();
    parts.sort_by_key(|part| referenced(fields(part)).is_some());
    let properties = parts.iter().flat_map(|part| {
        let part = referenced(fields(part)).map_or(part, |name| &raw[name]);
        let part = merged(part.clone(), raw);
        part.get("properties")
            .map(|properties| fields(properties).clone())
            .unwrap_or_default()
    });
    let properties: Fields = properties.collect();
    let description = schema.get("description").cloned();
    [("type", Some("object".into())), ("description", description)]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .chain([("properties", Value::Object(properties))])
        .collect()
}

/// The name of the schema that an object refers to.
pub(crate) fn referenced(fields: &Fields) -> Option<&str> {
    fields.get("$ref")?.as_str()?.rsplit('/').next()
}

/// Replaces a reference to a scalar with the scalar. For a choice between a type and null, the description moves
/// outside. If the type is a scalar, the choice becomes its type or null.
fn inline_scalar(fields: &mut Fields, raw: &Fields) {
    let scalar = referenced(fields)
        .map(|name| &raw[name])
        .filter(|schema| is_scalar(schema));
    if let Some(schema) = scalar.cloned() {
        fields.shift_remove("$ref");
        put_first(fields, &schema);
    }
    let Some(mut choice) = or_null(fields).cloned() else {
        return;
    };
    if let Some(description) = fields_mut(&mut choice).shift_remove("description") {
        fields.insert("description".to_owned(), description);
    }
    // The choice was visited before, so a scalar is inlined already.
    if is_scalar(&choice) {
        fields.shift_remove("oneOf");
        put_first(fields, &choice);
        fields["type"] = texts(["string", "null"]);
    } else {
        let null = object([("type", "null".into())]);
        fields["oneOf"] = Value::Array(vec![choice, null]);
    }
}

/// The type of a choice between it and null; none for anything else.
pub(crate) fn or_null(fields: &Fields) -> Option<&Value> {
    let choices = list(fields.get("oneOf")?);
    let is_null = |choice: &&Value| choice.get("type").and_then(Value::as_str) == Some("null");
    if choices.iter().filter(is_null).count() != 1 || choices.len() != 2 {
        return None;
    }
    choices.iter().find(|choice| !is_null(choice))
}

/// Adds the schema before the other fields. The existing fields take precedence.
fn put_first(fields: &mut Fields, schema: &Value) {
    let existing = std::mem::take(fields);
    fields.extend(self::fields(schema).clone());
    fields.extend(existing);
}

/// Marks every field as required, because answers have null for an unknown value.
fn require_all(fields: &mut Fields) {
    if let Some(properties) = fields.get_mut("properties") {
        fields_mut(properties).values_mut().for_each(allow_null);
        let names = texts(self::fields(properties).keys());
        fields.insert("required".to_owned(), names);
    }
}

/// Replaces the word "none" of doc comments with JSON's null, for values that may be null.
fn allow_null(schema: &mut Value) {
    let nullable = schema.get("oneOf").is_some() || !schema.get("type").map_or(&[][..], list).is_empty();
    if let Some(Value::String(description)) = fields_mut(schema).get_mut("description")
        && nullable
    {
        *description = description.replace("None ", "Null ").replace("none ", "null ");
    }
}

/// Makes a field optional instead of nullable, because answers omit it.
fn make_optional(fields: &mut Fields, field: &str) {
    let property = fields_mut(&mut fields["properties"][field]);
    let choice = self::fields(or_null(property).unwrap()).clone();
    property.shift_remove("oneOf");
    property.extend(choice);
    let required = list(&fields["required"]).iter();
    fields["required"] = Value::Array(
        required
            .filter(|name| name.as_str() != Some(field))
            .cloned()
            .collect(),
    );
}
