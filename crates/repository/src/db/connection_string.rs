//! Connection strings of Postgres, checked before libpq reads them.
//!
//! libpq's messages quote text that it cannot parse, which is often part of a password with an unescaped `@`, `/` or
//! `%`. An ambiguous string is therefore rejected here, with a message that quotes nothing. Every message of libpq is
//! searched for the password before it is shown.

use assay_domain::store::StoreError;
use diesel::{Connection as _, PgConnection};
use percent_encoding::percent_decode_str;

/// libpq's parameters that limit the wait for a host that does not answer, unless the connection string sets them.
const TIME_LIMITS: [(&str, &str); 3] = [
    ("connect_timeout", "5"),
    ("tcp_user_timeout", "15000"),
    ("keepalives_idle", "30"),
];

/// Replaces a hidden part of a connection string.
const HIDDEN: &str = "…";

/// Why a connection string is rejected. The message quotes nothing of it, because any part may belong to the
/// password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidConnectionString {
    /// Neither a URI nor a list of `key=value`.
    #[error(
        "the connection string is neither a URI nor a list of key=value; \
         write postgresql://USER:PASSWORD@HOST/DATABASE"
    )]
    Form,
    /// White space or a control character in a URI.
    #[error("the connection string holds a space or a control character; write a space as %20")]
    WhiteSpace,
    /// A `%` that does not begin the code of a character.
    #[error(
        "the connection string holds a % that is not followed by two hexadecimal digits; write a % as %25"
    )]
    Percent,
    /// An `@` that does not end the password.
    #[error(
        "the connection string holds an @ after its host; write @ as %40 and / as %2F in user and password"
    )]
    AtSign,
    /// Something that is no host, or no port.
    #[error(
        "the connection string holds a host or a port that is not valid; \
         write : as %3A, / as %2F and [ as %5B in user and password"
    )]
    Host,
    /// A query that is no list of `key=value`.
    #[error(
        "the connection string's part after the ? is not a list of key=value joined by &; write a ? as %3F"
    )]
    Query,
    /// A value without a closing quotation mark.
    #[error("the connection string holds a quotation mark that is not closed; add the second one")]
    Quotation,
}

/// A connection string that can be read in one way only.
#[derive(Clone)]
pub(crate) struct ConnectionString {
    text: String,
    is_uri: bool,
    /// The names of its parameters.
    keys: Vec<String>,
    /// Texts that no message may show.
    secrets: Vec<String>,
}

impl std::fmt::Debug for ConnectionString {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(HIDDEN)
    }
}

/// Why no connection could be made, in words without the password.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ConnectFailed(String);

/// The errors of Postgres and poolers when all connections are in use, or the server starts or stops. The texts are in
/// English, because libpq has no codes for them.
const TRANSIENT_ERRORS: [&str; 8] = [
    "too many clients",
    "too many connections",
    "remaining connection slots are reserved",
    "no more connections allowed",
    "is starting up",
    "is shutting down",
    "is in recovery mode",
    "is not yet accepting connections",
];

/// The errors of libpq while no server answers: it is stopped or starts again, or the address is wrong.
const DOWN_ERRORS: [&str; 6] = [
    "Connection refused",
    "Connection reset",
    "Connection timed out",
    "No such file or directory",
    "server closed the connection",
    "timeout expired",
];

/// Whether no server answered at the database's address. It may be starting, or the address may be wrong.
pub fn is_down(error: &(dyn std::error::Error + 'static)) -> bool {
    let failed = error.downcast_ref::<ConnectFailed>();
    failed.is_some_and(|ConnectFailed(reason)| DOWN_ERRORS.iter().any(|down| reason.contains(down)))
}

/// Whether the database could not be reached for a reason that passes: all connections are in use, or it starts or
/// stops.
pub fn is_transient(error: &(dyn std::error::Error + 'static)) -> bool {
    let failed = error.downcast_ref::<ConnectFailed>();
    failed
        .is_some_and(|ConnectFailed(reason)| TRANSIENT_ERRORS.iter().any(|passing| reason.contains(passing)))
}

impl ConnectionString {
    /// Like [`Self::parse`], for callers that treat an invalid string as an unreachable database.
    pub(crate) fn new(text: &str) -> Result<Self, StoreError> {
        Self::parse(text).map_err(|error| StoreError::Unreachable(Box::new(error)))
    }

    /// Reads a URI (`postgresql://…`) or a list of `key=value`.
    pub(crate) fn parse(text: &str) -> Result<Self, InvalidConnectionString> {
        let mut parsed = Self {
            text: text.to_owned(),
            is_uri: true,
            keys: Vec::new(),
            secrets: Vec::new(),
        };
        let scheme = ["postgresql://", "postgres://"];
        match scheme.iter().find_map(|scheme| text.strip_prefix(scheme)) {
            Some(rest) => parsed.uri(rest)?,
            None => {
                parsed.is_uri = false;
                parsed.key_values()?;
            }
        }
        parsed.secrets.retain(|secret| !secret.is_empty());
        // The longest first. A shorter secret may be a part of a longer one; if it were removed first, the rest of the
        // longer one would stay.
        parsed
            .secrets
            .sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Ok(parsed)
    }

    /// The string with time limits for a host that does not answer, unless it sets them itself.
    pub(crate) fn with_time_limits(&self) -> String {
        self.with_defaults(&TIME_LIMITS)
    }

    /// The error for a failed attempt to connect.
    pub(crate) fn unreachable(&self, error: &dyn std::error::Error) -> StoreError {
        StoreError::Unreachable(Box::new(ConnectFailed(self.redact(&error.to_string()))))
    }

    /// The string with these parameters, unless it sets them itself.
    pub(crate) fn with_defaults(&self, parameters: &[(&str, &str)]) -> String {
        let missing = parameters
            .iter()
            .filter(|(name, _)| !self.keys.iter().any(|key| key == name));
        missing.fold(self.text.clone(), |text, (name, value)| {
            let separator = match (self.is_uri, text.contains('?'), text.ends_with('?')) {
                (true, true, true) => "",
                (true, true, false) => "&",
                (true, false, _) => "?",
                (false, _, _) => " ",
            };
            format!("{text}{separator}{name}={value}")
        })
    }

    /// A message of libpq without the password.
    pub(crate) fn redact(&self, message: &str) -> String {
        if message.contains("invalid connection option") || message.contains("invalid URI query parameter") {
            return "the connection string holds a parameter that libpq does not know".to_owned();
        }
        let without_text = message.replace(&self.text, HIDDEN);
        let cut = self
            .secrets
            .iter()
            .fold(without_text, |message, secret| message.replace(secret, HIDDEN));
        cut.trim_end().to_owned()
    }

    fn uri(&mut self, rest: &str) -> Result<(), InvalidConnectionString> {
        if rest.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(InvalidConnectionString::WhiteSpace);
        }
        if !rest.split('%').skip(1).all(begins_with_a_code) {
            return Err(InvalidConnectionString::Percent);
        }
        // As libpq does: user and password end at the first @ before the first slash.
        let behind_user = match rest.find(['@', '/']) {
            Some(end) => match rest.split_at(end) {
                (user_info, behind) if behind.starts_with('@') => {
                    if let Some((_, password)) = user_info.split_once(':') {
                        self.hide(password);
                    }
                    behind.strip_prefix('@').unwrap_or(behind)
                }
                _ => rest,
            },
            None => rest,
        };
        let (hosts, behind_hosts) = split_before(behind_user, &['/', '?']);
        let (database, query) = split_before(behind_hosts, &['?']);
        if [hosts, database, query].iter().any(|part| part.contains('@')) {
            return Err(InvalidConnectionString::AtSign);
        }
        if !hosts.split(',').all(is_host) {
            return Err(InvalidConnectionString::Host);
        }
        let parameters = query.strip_prefix('?').unwrap_or_default();
        for parameter in parameters.split('&').filter(|_| !parameters.is_empty()) {
            match parameter.split_once('=') {
                Some((key, value)) if is_key(key) && !value.contains('=') => self.parameter(key, value),
                _ => return Err(InvalidConnectionString::Query),
            }
        }
        Ok(())
    }

    fn key_values(&mut self) -> Result<(), InvalidConnectionString> {
        let text = self.text.clone();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let (key, behind) = rest.split_once('=').ok_or(InvalidConnectionString::Form)?;
            let key = key.trim_end();
            if !is_key(key) {
                return Err(InvalidConnectionString::Form);
            }
            let (value, behind) = value(behind.trim_start())?;
            self.parameter(key, &value);
            rest = behind.trim_start();
        }
        Ok(())
    }

    fn parameter(&mut self, key: &str, value: &str) {
        if key.contains("password") {
            self.hide(value);
        }
        self.keys.push(key.to_owned());
    }

    /// Hides a text in messages, as written and as libpq decodes it.
    fn hide(&mut self, secret: &str) {
        self.secrets
            .push(percent_decode_str(secret).decode_utf8_lossy().into_owned());
        self.secrets.push(secret.to_owned());
    }
}

/// Connects outside of a pool.
pub(crate) fn establish(text: &str) -> Result<PgConnection, StoreError> {
    let string = ConnectionString::new(text)?;
    PgConnection::establish(&string.with_time_limits()).map_err(|error| string.unreachable(&error))
}

/// Checks a connection string without using it.
pub fn check_connection_string(text: &str) -> Result<(), InvalidConnectionString> {
    ConnectionString::parse(text).map(drop)
}

/// Whether the text after a `%` begins with the code of a character other than NUL.
fn begins_with_a_code(text: &str) -> bool {
    let code = text.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok());
    // `from_str_radix` accepts a sign.
    code.is_some_and(|code| code != 0) && !text.starts_with('+')
}

/// The text up to the first of these characters, and from there on.
fn split_before<'a>(text: &'a str, ends: &[char]) -> (&'a str, &'a str) {
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

/// Whether this is a host with or without a port; an empty one is the default.
fn is_host(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(address) => match address.split_once(']') {
            Some((address, behind)) if !address.is_empty() => (address, behind),
            _ => return false,
        },
        None => split_before(text, &[':']),
    };
    let is_port = |port: &str| port.is_empty() || port.parse::<u16>().is_ok_and(|port| port > 0);
    !host.contains(['[', ']']) && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
}

fn is_key(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

/// The value at the start of a list of `key=value`, and the rest.
fn value(text: &str) -> Result<(String, &str), InvalidConnectionString> {
    let quoted = text.strip_prefix('\'');
    let body = quoted.unwrap_or(text);
    let mut value = String::new();
    let mut characters = body.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            '\'' if quoted.is_some() => return Ok((value, body.split_at(at + 1).1)),
            space if quoted.is_none() && space.is_whitespace() => return Ok((value, body.split_at(at).1)),
            other => value.push(other),
        }
    }
    match quoted {
        Some(_) => Err(InvalidConnectionString::Quotation),
        None => Ok((value, "")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULTS: [(&str, &str); 2] = [("connect_timeout", "5"), ("keepalives_idle", "30")];

    fn with_defaults(text: &str) -> String {
        ConnectionString::parse(text).unwrap().with_defaults(&DEFAULTS)
    }

    #[test]
    fn defaults_are_added_where_the_string_does_not_set_them() {
        for (given, wanted) in [
            (
                "postgres://h/d",
                "postgres://h/d?connect_timeout=5&keepalives_idle=30",
            ),
            (
                "postgres://h/d?",
                "postgres://h/d?connect_timeout=5&keepalives_idle=30",
            ),
            (
                "postgresql://h/d?connect_timeout=1",
                "postgresql://h/d?connect_timeout=1&keepalives_idle=30",
            ),
            (
                "host=h connect_timeout=1",
                "host=h connect_timeout=1 keepalives_idle=30",
            ),
            ("host = h", "host = h connect_timeout=5 keepalives_idle=30"),
        ] {
            assert_eq!(with_defaults(given), wanted);
        }
    }

    #[test]
    fn a_parameter_within_a_password_or_a_database_name_is_not_set() {
        for text in [
            "postgresql://u:connect_timeout@h/d",
            "postgresql://u:p@h/connect_timeout",
            "postgresql://u:p@connect_timeout/d",
        ] {
            assert!(with_defaults(text).contains("?connect_timeout=5&"), "{text}");
        }
        assert!(
            with_defaults("password=connect_timeout=1").ends_with("=1 connect_timeout=5 keepalives_idle=30")
        );
    }

    #[test]
    fn strings_with_one_reading_are_accepted() {
        for text in [
            "",
            "postgresql://",
            "postgresql://h",
            "postgresql://u@h:5432/d",
            "postgresql://u:p%40%2F%25@h/d?sslmode=require&application_name=a",
            "postgresql://u:p@h1:5432,h2,[::1]:5433/d?target_session_attrs=read-write",
            "postgresql://u:p@/d?host=/var/run/postgresql",
            "postgresql://%2Fvar%2Frun/d",
            "postgresql:///d",
            "host=/tmp user=u password='it\\'s' dbname=d",
            "host=h  password = x\\ y",
        ] {
            assert_eq!(check_connection_string(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn strings_with_several_readings_are_refused() {
        use InvalidConnectionString as Wrong;
        for (text, why) in [
            ("u:secret@h/d", Wrong::Form),
            ("mysql://u:secret@h/d", Wrong::Form),
            ("//u:secret@h/d?sslmode=require", Wrong::Form),
            ("host=h password=my secret", Wrong::Form),
            ("host=h password='secret", Wrong::Quotation),
            ("postgresql://u:my secret@h/d", Wrong::WhiteSpace),
            ("postgresql://u:sec%ret@h/d", Wrong::Percent),
            ("postgresql://u:sec%+1ret@h/d", Wrong::Percent),
            ("postgresql://u:sec%00ret@h/d", Wrong::Percent),
            ("postgresql://u:secret%@h/d", Wrong::Percent),
            ("postgresql://u:sec@ret@h/d", Wrong::AtSign),
            ("postgresql://u:12/secret@h/d", Wrong::AtSign),
            ("postgresql://u:sec/ret@h/d", Wrong::AtSign),
            ("postgresql://u:secret@[h/d", Wrong::Host),
            ("postgresql://u:secret/d", Wrong::Host),
            ("postgresql://u:secret@h:99999/d", Wrong::Host),
            ("postgresql://h/d?secret", Wrong::Query),
            ("postgresql://h/d?password=sec=ret", Wrong::Query),
        ] {
            assert_eq!(check_connection_string(text), Err(why), "{text}");
            assert!(!why.to_string().contains("secret"));
        }
    }

    #[test]
    fn messages_show_no_password() {
        for text in [
            "postgresql://u:s%40cret@h/d",
            "postgresql://h/d?user=u&password=s%40cret",
            "host=h password='s@cret'",
        ] {
            let string = ConnectionString::parse(text).unwrap();
            for message in [
                format!("could not use {text}"),
                "could not translate host name \"s@cret\"".to_owned(),
                "invalid connection option \"s@cret\"".to_owned(),
            ] {
                let redacted = string.redact(&message);
                assert!(!redacted.contains("cret"), "{redacted}");
            }
            assert!(!format!("{string:?}").contains("cret"));
        }
    }
}
