//! The format of a log line: text for people, JSON for programs that collect logs.

use std::io::{self, Write};

use clap::ValueEnum;
use env_logger::{Builder, fmt::Formatter};
use log::{
    Record,
    kv::{self, Key, Value, VisitSource},
};
use serde_json::{Map, json};

/// The form of the log's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Time, level, target, message, then `key=value` pairs
    Text,
    /// One JSON object a line
    Json,
}

impl LogFormat {
    /// Sets this form for the logger's lines.
    pub(crate) fn apply(self, builder: &mut Builder) {
        match self {
            Self::Text => builder.format(text),
            Self::Json => builder.format(json),
        };
    }
}

fn text(out: &mut Formatter, record: &Record<'_>) -> io::Result<()> {
    let mut line = format!(
        "{} {:5} {}: {}",
        out.timestamp_millis(),
        record.level(),
        record.target(),
        record.args()
    );
    visit(record, &mut |key, value| {
        let value = value.to_string();
        let plain = !value.is_empty() && value.chars().all(|char| char.is_ascii_graphic() && char != '"');
        line.push(' ');
        line.push_str(key.as_str());
        line.push('=');
        if plain {
            line.push_str(&value);
        } else {
            line.push_str(&format!("{value:?}"));
        }
    })?;
    writeln!(out, "{line}")
}

fn json(out: &mut Formatter, record: &Record<'_>) -> io::Result<()> {
    let mut object = Map::new();
    let timestamp = out.timestamp_millis().to_string();
    object.insert("timestamp".to_owned(), timestamp.into());
    object.insert("level".to_owned(), record.level().as_str().into());
    object.insert("target".to_owned(), record.target().into());
    object.insert("message".to_owned(), record.args().to_string().into());
    visit(record, &mut |key, value| {
        object.insert(key.as_str().to_owned(), json!(value));
    })?;
    serde_json::to_writer(&mut *out, &object)?;
    out.write_all(b"\n")
}

fn visit(record: &Record<'_>, each: &mut dyn FnMut(Key<'_>, Value<'_>)) -> io::Result<()> {
    struct Each<'a>(&'a mut dyn FnMut(Key<'_>, Value<'_>));

    impl<'kvs> VisitSource<'kvs> for Each<'_> {
        fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), kv::Error> {
            (self.0)(key, value);
            Ok(())
        }
    }

    record
        .key_values()
        .visit(&mut Each(each))
        .map_err(io::Error::other)
}
