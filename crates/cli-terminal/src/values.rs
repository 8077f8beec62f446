//! Values of flags that are lengths of time.

use std::time::Duration;

/// A length of time such as `90s`, `5m`, `1h` or `0`; at most a day.
pub fn duration(text: &str) -> Result<Duration, String> {
    const UNITS: [(char, u64); 3] = [('s', 1), ('m', 60), ('h', 3_600)];
    match text {
        "0" => Ok(Duration::ZERO),
        _ => time(text, &UNITS, 86_400)
            .ok_or_else(|| "expected a time such as 90s, 5m or 1h, at most 24h; 0 for none".to_owned()),
    }
}

/// An age such as `12h` or `30d`, at most ten years.
pub fn age(text: &str) -> Result<Duration, String> {
    time(text, &[('h', 3_600), ('d', 86_400)], 3_650 * 86_400)
        .ok_or_else(|| "expected a time such as 12h or 30d, at most 3650d".to_owned())
}

/// Digits and one of these units; `None` above `most_seconds`.
fn time(text: &str, units: &[(char, u64)], most_seconds: u64) -> Option<Duration> {
    let (number, seconds) = units
        .iter()
        .find_map(|(unit, seconds)| Some((text.strip_suffix(*unit)?, seconds)))?;
    let is_digits = number.bytes().all(|byte| byte.is_ascii_digit());
    let seconds = number
        .parse::<u64>()
        .ok()
        .filter(|_| is_digits)?
        .checked_mul(*seconds)?;
    (seconds <= most_seconds).then(|| Duration::from_secs(seconds))
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
