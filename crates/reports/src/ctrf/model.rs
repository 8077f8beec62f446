//! CTRF's fields, all optional.

use serde::{
    Deserialize,
    de::{IgnoredAny, SeqAccess},
};

use crate::{
    json::{self, OfAnyJson},
    memory,
};

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct File {
    pub(super) run_id: json::Text,
    pub(super) results: Option<Results>,
    /// Older reporters put it here.
    pub(super) environment: Option<Environment>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Results {
    pub(super) tool: Option<Tool>,
    pub(super) summary: Option<Summary>,
    pub(super) tests: json::List<Test>,
    pub(super) environment: Option<Environment>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tool {
    pub(super) name: json::Text,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Summary {
    pub(super) start: json::Number,
    pub(super) stop: json::Number,
    pub(super) failed: json::Number,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Environment {
    pub(super) branch_name: json::Text,
    pub(super) commit: json::Text,
    pub(super) build_url: json::Text,
    pub(super) shard_id: json::Text,
}

/// A test with its final attempt, or an earlier attempt, which has only the fields of an attempt.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Test {
    pub(super) name: json::Text,
    pub(super) suite: json::Lenient<Suite>,
    pub(super) file_path: json::Text,
    pub(super) browser: json::Text,
    pub(super) retries: json::Number,
    pub(super) flaky: json::Flag,
    /// The attempts before the final one.
    pub(super) retry_attempts: json::List<Test>,
    /// The number of this attempt, from 1; set on earlier attempts only.
    pub(super) attempt: json::Number,
    pub(super) status: json::Text,
    pub(super) raw_status: json::Text,
    pub(super) duration: json::Number,
    pub(super) start: json::Number,
    pub(super) stop: json::Number,
    pub(super) message: json::Text,
    pub(super) trace: json::Text,
    pub(super) snippet: json::Text,
    pub(super) attachments: json::RareList<Attachment>,
    /// Lines.
    pub(super) stdout: json::RareList<json::Text>,
}

/// A file of a test.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Attachment {
    pub(super) name: json::Text,
    pub(super) content_type: json::Text,
    pub(super) path: json::Text,
}

/// The titles around a test: a list in the schema, one text in most reporters.
#[derive(Debug, Default)]
pub(super) struct Suite(Vec<String>);

impl Suite {
    pub(super) fn parts(&self) -> &[String] {
        &self.0
    }
}

impl<'de> OfAnyJson<'de> for Suite {
    fn of_text(text: &str) -> Self {
        let parts = text.split(" > ").filter(|part| !part.is_empty());
        let parts: Vec<String> = parts.map(str::to_owned).collect();
        memory::charge(parts.len().saturating_mul(2 * size_of::<String>()));
        memory::hold(text.len());
        Self(parts)
    }

    fn of_list<A: SeqAccess<'de>>(mut elements: A) -> Result<Self, A::Error> {
        let mut parts = Vec::new();
        while let Some(serde_json::Value::String(part)) = elements.next_element()? {
            memory::reserve::<String, A::Error>()?;
            memory::hold(part.len());
            parts.push(part);
        }
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self(parts))
    }
}
