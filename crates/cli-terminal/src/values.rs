//! Values of flags that are lengths of time.

use std::time::Duration;

/// A length of time such as `90s`, `5m`, `1h` or `0`; at most a day.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a time such as 90s, 5m or 1h, at most 24h; 0 for none".to_owned();
    let (number, seconds) = match text.char_indices().last() {
        Some((at, 's')) => (text.get(..at), 1),
        Some((at, 'm')) => (text.get(..at), 60),
        Some((at, 'h')) => (text.get(..at), 3_600),
        Some(_) | None => (Some(text).filter(|text| *text == "0"), 1),
    };
    number
        .filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|number| number.parse::<u64>().ok()?.checked_mul(seconds))
        .filter(|seconds| *seconds <= 86_400)
        .map(Duration::from_secs)
        .ok_or_else(wrong)
}

/// An age such as `12h` or `30d`, at most ten years.
pub fn age(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a time such as 12h or 30d, at most 3650d".to_owned();
    let (number, hours) = match text.char_indices().last() {
        Some((at, 'h')) => (text.get(..at), 1),
        Some((at, 'd')) => (text.get(..at), 24),
        Some(_) | None => (None, 0),
    };
    number
        .filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|number| number.parse::<u64>().ok()?.checked_mul(hours))
        .filter(|hours| *hours <= 3_650 * 24)
        .map(|hours| Duration::from_secs(hours * 3_600))
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_unit() {
        for (text, seconds) in [("0", 0), ("90s", 90), ("5m", 300), ("24h", 86_400), ("0s", 0)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for wrong in [
            "",
            "5",
            "m",
            "-1s",
            "+1s",
            "1.5m",
            "25h",
            "99999999999999999999h",
            "5 m",
            "5d",
        ] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
