//! The cursor of the runs list: a position, opaque to clients.

use assay_domain::{page::RunPosition, timestamp::Timestamp};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

/// The first byte of a cursor. A new format gets a new number, and older cursors then no longer decode.
const VERSION: u8 = 1;
/// Version, start in milliseconds, number of the run.
const POSITION_BYTES: usize = 1 + 8 + 4;
const CHECK_BYTES: usize = 4;

/// Encodes a position as a cursor of 23 characters of `[0-9A-Za-z_-]`.
pub fn encode(position: RunPosition) -> String {
    let mut bytes = Vec::with_capacity(POSITION_BYTES + CHECK_BYTES);
    bytes.push(VERSION);
    bytes.extend(position.started_at.unix_ms().to_be_bytes());
    bytes.extend(position.number.to_be_bytes());
    let check = crc32fast::hash(&bytes);
    bytes.extend(check.to_be_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes a cursor; none if [`encode`] cannot have written it.
pub fn decode(cursor: &str) -> Option<RunPosition> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let (position, check) = bytes.split_last_chunk::<CHECK_BYTES>()?;
    if crc32fast::hash(position) != u32::from_be_bytes(*check) {
        return None;
    }
    let (version, rest) = position.split_first()?;
    let (started_at, number) = rest.split_first_chunk::<8>()?;
    let position = RunPosition {
        started_at: Timestamp::from_unix_ms(i64::from_be_bytes(*started_at)),
        number: i32::from_be_bytes(number.try_into().ok()?),
    };
    // `encode` clamps times outside of the calendar, so it did not write such a cursor.
    (*version == VERSION && encode(position) == cursor).then_some(position)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_position_reads_back(ms in any::<i64>(), number in any::<i32>()) {
            let position = RunPosition { started_at: Timestamp::from_unix_ms(ms), number };
            let cursor = encode(position);
            prop_assert_eq!(decode(&cursor), Some(position));
            prop_assert!(cursor.len() <= 64);
            prop_assert!(cursor.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)));
        }

        #[test]
        fn other_text_does_not_decode(text in "[0-9A-Za-z_-]{1,64}") {
            prop_assert_eq!(decode(&text), None);
        }

        #[test]
        fn a_changed_character_does_not_decode(ms in any::<i64>(), place in 0usize..23, to in "[0-9A-Za-z_-]") {
            let cursor = encode(RunPosition { started_at: Timestamp::from_unix_ms(ms), number: 7 });
            let changed = format!("{}{to}{}", &cursor[..place], &cursor[place + 1..]);
            prop_assume!(changed != cursor);
            prop_assert_eq!(decode(&changed), None);
        }
    }
}
