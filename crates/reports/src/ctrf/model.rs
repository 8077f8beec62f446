//! CTRF's fields, all optional.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use crate::{
    json::{self, RareList},
    memory,
};

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct File {
    #[serde(deserialize_with = "json::text")]
    pub(super) run_id: Option<String>,
    pub(super) results: Option<Results>,
    /// Older reporters put it here.
    pub(super) environment: Option<Environment>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Results {
    pub(super) tool: Option<Tool>,
    pub(super) summary: Option<Summary>,
    #[serde(deserialize_with = "json::list")]
    pub(super) tests: Vec<Test>,
    pub(super) environment: Option<Environment>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tool {
    #[serde(deserialize_with = "json::text")]
    pub(super) name: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Summary {
    #[serde(deserialize_with = "json::number")]
    pub(super) start: Option<f64>,
    #[serde(deserialize_with = "json::number")]
    pub(super) stop: Option<f64>,
    #[serde(deserialize_with = "json::number")]
    pub(super) failed: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Environment {
    #[serde(deserialize_with = "json::text")]
    pub(super) branch_name: Option<String>,
    #[serde(deserialize_with = "json::text")]
    pub(super) commit: Option<String>,
    #[serde(deserialize_with = "json::text")]
    pub(super) build_url: Option<String>,
    #[serde(deserialize_with = "json::text")]
    pub(super) shard_id: Option<String>,
}

/// A test with its final attempt, or an earlier attempt, which has only the fields of an attempt.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Test {
    #[serde(deserialize_with = "json::text")]
    pub(super) name: Option<String>,
    pub(super) suite: Suite,
    #[serde(deserialize_with = "json::text")]
    pub(super) file_path: Option<String>,
    #[serde(deserialize_with = "json::text")]
    pub(super) browser: Option<String>,
    #[serde(deserialize_with = "json::number")]
    pub(super) retries: Option<f64>,
    #[serde(deserialize_with = "json::flag")]
    pub(super) flaky: Option<bool>,
    /// The attempts before the final one.
    #[serde(deserialize_with = "json::list")]
    pub(super) retry_attempts: Vec<Test>,
    /// The number of this attempt, from 1; set on earlier attempts only.
    #[serde(deserialize_with = "json::number")]
    pub(super) attempt: Option<f64>,
    #[serde(deserialize_with = "json::text")]
    pub(super) status: Option<String>,
    #[serde(deserialize_with = "json::text")]
    pub(super) raw_status: Option<String>,
    #[serde(deserialize_with = "json::number")]
    pub(super) duration: Option<f64>,
    #[serde(deserialize_with = "json::number")]
    pub(super) start: Option<f64>,
    #[serde(deserialize_with = "json::number")]
    pub(super) stop: Option<f64>,
    #[serde(deserialize_with = "json::text")]
    pub(super) message: Option<String>,
    #[serde(deserialize_with = "json::text")]
    pub(super) trace: Option<String>,
    #[serde(deserialize_with = "json::text")]
    pub(super) snippet: Option<String>,
    #[serde(deserialize_with = "json::rare_list")]
    pub(super) attachments: RareList<Attachment>,
    /// Lines.
    #[serde(deserialize_with = "json::rare_texts")]
    pub(super) stdout: RareList<String>,
}

/// A file of a test.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Attachment {
    #[serde(deserialize_with = "json::text")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "json::text")]
    pub(super) content_type: Option<String>,
    #[serde(deserialize_with = "json::text")]
    pub(super) path: Option<String>,
}

/// The titles around a test: a list in the schema, one text in most reporters.
#[derive(Debug, Default)]
pub(super) struct Suite(Vec<String>);

impl Suite {
    pub(super) fn parts(&self) -> &[String] {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Suite {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Parts;
        impl<'de> Visitor<'de> for Parts {
            type Value = Suite;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a suite")
            }

            fn visit_str<E>(self, text: &str) -> Result<Suite, E> {
                let parts = text.split(" > ").filter(|part| !part.is_empty());
                let parts: Vec<String> = parts.map(str::to_owned).collect();
                memory::charge(parts.len().saturating_mul(2 * size_of::<String>()));
                memory::hold(text.len());
                Ok(Suite(parts))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Suite, A::Error> {
                let mut parts = Vec::new();
                while let Some(serde_json::Value::String(part)) = elements.next_element()? {
                    memory::reserve::<String, A::Error>()?;
                    memory::hold(part.len());
                    parts.push(part);
                }
                while elements.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Suite(parts))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Suite, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Suite::default())
            }

            fn visit_unit<E>(self) -> Result<Suite, E> {
                Ok(Suite::default())
            }

            fn visit_bool<E>(self, _: bool) -> Result<Suite, E> {
                Ok(Suite::default())
            }

            fn visit_f64<E>(self, _: f64) -> Result<Suite, E> {
                Ok(Suite::default())
            }

            fn visit_i64<E>(self, _: i64) -> Result<Suite, E> {
                Ok(Suite::default())
            }

            fn visit_u64<E>(self, _: u64) -> Result<Suite, E> {
                Ok(Suite::default())
            }
        }
        deserializer.deserialize_any(Parts)
    }
}
