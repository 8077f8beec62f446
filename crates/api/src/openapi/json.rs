//! JSON whose objects keep the order of their fields, for readers.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// The fields of an object, in the order of writing.
pub(super) type Fields = IndexMap<String, Json>;

/// A JSON value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Json {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    Text(String),
    List(Vec<Json>),
    Object(Fields),
}

impl Json {
    /// Any value that serde can write.
    pub(super) fn of(value: &impl Serialize) -> Self {
        Self::parse(&serde_json::to_string(value).unwrap())
    }

    pub(super) fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap()
    }

    /// The text of a document, with a line for every value.
    pub(super) fn pretty(&self) -> String {
        serde_json::to_string_pretty(self).unwrap() + "\n"
    }

    /// The same with the first entry of each list alone.
    pub(super) fn shortened(&self) -> Self {
        match self {
            Self::List(list) => Self::List(list.iter().take(1).map(Self::shortened).collect()),
            Self::Object(fields) => {
                let fields = fields.iter();
                Self::Object(
                    fields
                        .map(|(name, value)| (name.clone(), value.shortened()))
                        .collect(),
                )
            }
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) => self.clone(),
        }
    }

    /// The field of an object; nothing where this is none or has none.
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(fields) => fields.get(name),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) | Self::List(_) => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::List(_) | Self::Object(_) => None,
        }
    }

    pub(super) fn list(&self) -> &[Self] {
        match self {
            Self::List(list) => list,
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) | Self::Object(_) => &[],
        }
    }

    /// The fields of an object.
    pub(super) fn fields(&self) -> &Fields {
        match self {
            Self::Object(fields) => fields,
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) | Self::List(_) => {
                panic!("{self:?} is no object")
            }
        }
    }

    /// The fields of an object, mutable.
    pub(super) fn fields_mut(&mut self) -> &mut Fields {
        match self {
            Self::Object(fields) => fields,
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) | Self::List(_) => {
                panic!("{self:?} is no object")
            }
        }
    }

    /// Changes every object within, the innermost first.
    pub(super) fn each_object(&mut self, change: &mut impl FnMut(&mut Fields)) {
        match self {
            Self::List(list) => list.iter_mut().for_each(|item| item.each_object(change)),
            Self::Object(fields) => {
                fields.values_mut().for_each(|value| value.each_object(change));
                change(fields);
            }
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) => {}
        }
    }
}

/// An object with these fields.
pub(super) fn object<const N: usize>(fields: [(&str, Json); N]) -> Json {
    fields.into_iter().collect()
}

/// The names of a closed set, each an item of a list.
pub(super) fn texts<T: ToString>(items: impl IntoIterator<Item = T>) -> Json {
    Json::List(
        items
            .into_iter()
            .map(|item| Json::Text(item.to_string()))
            .collect(),
    )
}

/// A reference to a component of the document.
pub(super) fn reference(kind: &str, name: &str) -> Json {
    object([("$ref", format!("#/components/{kind}/{name}").into())])
}

impl<K: Into<String>> FromIterator<(K, Json)> for Json {
    fn from_iter<I: IntoIterator<Item = (K, Json)>>(fields: I) -> Self {
        Self::Object(
            fields
                .into_iter()
                .map(|(name, value)| (name.into(), value))
                .collect(),
        )
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Json {
    fn from(number: i64) -> Self {
        Self::Number(number.into())
    }
}

impl From<bool> for Json {
    fn from(flag: bool) -> Self {
        Self::Bool(flag)
    }
}
