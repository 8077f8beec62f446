//! The text of a key: `svc_ro_` (read) or `svc_` (ingest), 32 random base62 characters, 6 check characters.
//!
//! The check characters are the CRC-32 of the characters before them. A mistyped key or a random guess is rejected
//! without a look-up. They add no secrecy.

use std::fmt;

use rand::{
    RngExt,
    distr::{Alphanumeric, SampleString},
};
use sha2::{Digest, Sha256};

use crate::{
    id::KeyId,
    key::{KeyHash, KeyKind, NewKey},
    timestamp::Timestamp,
};

/// Prefix of every read key.
pub const READ_PREFIX: &str = "svc_ro_";
/// Prefix of every ingest key (and, followed by `ro_`, of every read key).
pub const INGEST_PREFIX: &str = "svc_";

const RANDOM_CHARS: usize = 32;
const CHECK_CHARS: usize = 6;
/// Characters of a key's text that are stored to recognize it.
pub const RECOGNISED_CHARS: usize = 12;
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The text of a new key, shown to its owner once. `Debug` does not print it.
pub struct SecretKey(String);

impl SecretKey {
    /// The text. Only the command that creates a key may show it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(..)")
    }
}

/// Creates a key of `kind`: its text, and the row that is stored.
pub fn mint(kind: KeyKind, now: Timestamp) -> (SecretKey, NewKey) {
    let mut rng = rand::rng();
    let mut text = prefix(kind).to_owned();
    Alphanumeric.append_string(&mut rng, &mut text, RANDOM_CHARS);
    let check = check_chars(text.as_bytes());
    text.extend(check.iter().copied().map(char::from));

    let new = NewKey {
        id: KeyId(
            uuid::Builder::from_unix_timestamp_millis(
                u64::try_from(now.unix_ms()).unwrap_or(0),
                &rng.random(),
            )
            .into_uuid(),
        ),
        hash: hash(text.as_bytes()),
        prefix: text.chars().take(RECOGNISED_CHARS).collect(),
        created_at: now,
    };
    (SecretKey(text), new)
}

/// The kind whose prefix `text` has, if any.
pub fn kind_by_prefix(text: &[u8]) -> Option<KeyKind> {
    [KeyKind::Read, KeyKind::Ingest]
        .into_iter()
        .find(|kind| text.starts_with(prefix(*kind).as_bytes()))
}

/// Whether `text` could be a key of `kind`: prefix, length, alphabet and check characters.
pub fn has_shape(kind: KeyKind, text: &[u8]) -> bool {
    let Some(rest) = text.strip_prefix(prefix(kind).as_bytes()) else {
        return false;
    };
    if rest.len() != RANDOM_CHARS + CHECK_CHARS || !rest.iter().all(u8::is_ascii_alphanumeric) {
        return false;
    }
    text.split_last_chunk::<CHECK_CHARS>()
        .is_some_and(|(before, check)| *check == check_chars(before))
}

/// Whether `text` contains a key, with or without its prefix. Such a text must not be shown, since a key may have been
/// entered by mistake.
pub fn is_in(text: &[u8]) -> bool {
    text.windows(RANDOM_CHARS + CHECK_CHARS).any(|rest| {
        rest.iter().all(u8::is_ascii_alphanumeric)
            && [KeyKind::Read, KeyKind::Ingest]
                .into_iter()
                .any(|kind| has_shape(kind, &[prefix(kind).as_bytes(), rest].concat()))
    })
}

/// The SHA-256 under which a key is stored.
pub fn hash(text: &[u8]) -> KeyHash {
    KeyHash(Sha256::digest(text).into())
}

const fn prefix(kind: KeyKind) -> &'static str {
    match kind {
        KeyKind::Read => READ_PREFIX,
        KeyKind::Ingest => INGEST_PREFIX,
    }
}

/// The CRC-32 of `text` in base62, most significant digit first. 62^6 exceeds 2^32, so six digits are enough.
fn check_chars(text: &[u8]) -> [u8; CHECK_CHARS] {
    let mut rest = crc32fast::hash(text);
    let mut chars = [b'0'; CHECK_CHARS];
    for char in chars.iter_mut().rev() {
        let digit = usize::try_from(rest % 62).unwrap_or(0);
        *char = BASE62.get(digit).copied().unwrap_or(b'0');
        rest /= 62;
    }
    chars
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp::from_unix_ms(1_795_200_363_120);

    #[test]
    fn a_minted_key_has_the_documented_form() {
        let (secret, new) = mint(KeyKind::Read, NOW);
        let text = secret.reveal();
        assert_eq!(text.len(), 7 + 32 + 6);
        assert!(text.starts_with("svc_ro_"));
        assert!(has_shape(KeyKind::Read, text.as_bytes()));
        assert!(!has_shape(KeyKind::Ingest, text.as_bytes()));
        assert_eq!(new.prefix, &text[..12]);
        assert_eq!(new.hash, hash(text.as_bytes()));
        assert_eq!(new.created_at, NOW);
        assert_eq!(new.id.0.get_version_num(), 7);
        assert_ne!(mint(KeyKind::Read, NOW).0.reveal(), text);
    }

    #[test]
    fn a_minted_ingest_key_is_no_read_key() {
        let (secret, new) = mint(KeyKind::Ingest, NOW);
        assert_eq!(secret.reveal().len(), 4 + 32 + 6);
        assert!(has_shape(KeyKind::Ingest, secret.reveal().as_bytes()));
        assert!(!has_shape(KeyKind::Read, secret.reveal().as_bytes()));
        assert!(new.prefix.starts_with("svc_") && !new.prefix.starts_with("svc_ro_"));
    }

    #[test]
    fn a_key_is_found_in_a_text_without_its_prefix() {
        for kind in [KeyKind::Read, KeyKind::Ingest] {
            let (secret, _) = mint(kind, NOW);
            let key = secret.reveal();
            let rest = &key[prefix(kind).len()..];
            for text in [
                key.to_owned(),
                rest.to_owned(),
                format!("ro_{rest}"),
                format!("a-{rest}0"),
            ] {
                assert!(is_in(text.as_bytes()), "{text}");
            }
            assert!(!is_in(&rest.as_bytes()[1..]) && !is_in(rest.to_uppercase().as_bytes()));
        }
        // Ids that clients really send: a UUID, a trace, a SHA-256.
        for text in [
            "019aa3f4-5b1c-7def-8a3b-0123456789ab",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        ] {
            assert!(!is_in(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn debug_shows_nothing_of_a_key() {
        let (secret, new) = mint(KeyKind::Read, NOW);
        let debug_text = format!("{secret:?} {new:?}");
        assert!(!debug_text.contains(&secret.reveal()[12..]), "{debug_text}");
    }

    /// Stored keys are older than the program, so the check characters must not change.
    #[test]
    fn the_check_characters_of_stored_keys_do_not_change() {
        let check = check_chars(b"svc_ro_00000000000000000000000000000000");
        assert_eq!(&check, b"0rZkSr");
        assert_eq!(&check_chars(b""), b"000000");
    }

    proptest! {
        #[test]
        fn any_changed_character_is_refused(place in 0usize..45, to in any::<u8>()) {
            let (secret, _) = mint(KeyKind::Read, NOW);
            let mut text = secret.reveal().as_bytes().to_vec();
            prop_assume!(text[place] != to);
            text[place] = to;
            prop_assert!(!has_shape(KeyKind::Read, &text));
        }

        #[test]
        fn any_bytes_are_answered(text in any::<Vec<u8>>()) {
            prop_assert!(!has_shape(KeyKind::Read, &text));
        }
    }
}
