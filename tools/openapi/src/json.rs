//! Building and reading JSON documents. Their objects keep the order of their fields, for readers.

use serde_json::{Map, Value};

/// The fields of an object, in the order of writing.
pub type Fields = Map<String, Value>;

/// An object with these fields.
pub fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    fields.into_iter().collect()
}

/// The names of a closed set, each an item of a list.
pub fn texts<T: ToString>(items: impl IntoIterator<Item = T>) -> Value {
    items.into_iter().map(|item| item.to_string()).collect()
}

/// A reference to a component of the document.
pub fn reference(kind: &str, name: &str) -> Value {
    object([("$ref", format!("#/components/{kind}/{name}").into())])
}

/// The fields of an object.
pub fn fields(value: &Value) -> &Fields {
    let fields = value.as_object();
    fields.unwrap_or_else(|| panic!("{value} is no object"))
}

/// The fields of an object, mutable.
pub fn fields_mut(value: &mut Value) -> &mut Fields {
    value.as_object_mut().unwrap()
}

/// The items of a list; none where this is no list.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The text of a document, with a line for every value.
pub fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// The same with only the first entry of each list.
pub fn shortened(value: &Value) -> Value {
    match value {
        Value::Array(list) => list.iter().take(1).map(shortened).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            fields
                .map(|(name, value)| (name.as_str(), shortened(value)))
                .collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Changes every object within, the innermost first.
pub fn each_object(value: &mut Value, change: &mut impl FnMut(&mut Fields)) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(|item| each_object(item, change)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|value| each_object(value, change));
            change(fields);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
