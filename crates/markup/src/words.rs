//! Formats figures as text.

use assay_domain::timestamp::Timestamp;
use maud::{Markup, html};
use time::OffsetDateTime;

/// `1 run`, `1,204 runs`.
pub fn count(number: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// `3 tests are broken, 1 failing now, 12 flaky`, without the counts of zero.
pub fn headline(broken: usize, failing: usize, flaky: usize) -> String {
    let mut parts = [(broken, "broken"), (failing, "failing now"), (flaky, "flaky")]
        .into_iter()
        .filter(|(tests, _)| *tests > 0);
    let Some((first, word)) = parts.next() else {
        return "No test is broken, failing or flaky".to_owned();
    };
    let are = if first == 1 { "test is" } else { "tests are" };
    let others = parts.map(|(tests, word)| format!(", {} {word}", grouped(tests)));
    format!("{} {are} {word}{}", grouped(first), others.collect::<String>())
}

/// `1,204,000`.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `840 ms`, `12.3 s`, `4 min 10 s`, `2 h 5 min`.
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0 => format!("{ms} ms"),
        1..60 => format!("{seconds}.{} s", ms % 1_000 / 100),
        60..3_600 => pair(seconds / 60, "min", seconds % 60, "s"),
        _ => pair(seconds / 3_600, "h", seconds % 3_600 / 60, "min"),
    }
}

fn pair(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    if small == 0 {
        format!("{large} {large_unit}")
    } else {
        format!("{large} {large_unit} {small} {small_unit}")
    }
}

/// A rate within 0..=1 as a percentage.
pub fn percent(rate: f64) -> String {
    let percent = rate * 100.0;
    if rate > 0.0 && percent < 0.95 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

/// `6 Nov 2026`.
pub fn date(at: Timestamp) -> String {
    let at = OffsetDateTime::from(at);
    format!("{} {} {}", at.day(), month(at), at.year())
}

/// `6 Nov`.
pub fn day(at: Timestamp) -> String {
    let at = OffsetDateTime::from(at);
    format!("{} {}", at.day(), month(at))
}

/// `20 Nov 2026, 18:46`.
pub fn date_time(at: Timestamp) -> String {
    let moment = OffsetDateTime::from(at);
    format!("{}, {:02}:{:02}", date(at), moment.hour(), moment.minute())
}

/// A time as an element, in UTC.
pub fn time(at: Timestamp) -> Markup {
    html! { time datetime=(at) { (date_time(at)) } }
}

/// An age: `just now`, `5 min ago`, `3 h ago`, `2 days ago`.
pub fn age(at: Timestamp, now: Timestamp) -> String {
    let minutes = now.since_ms(at) / 60_000;
    match minutes {
        ..1 => "just now".to_owned(),
        1..60 => format!("{minutes} min ago"),
        60..2_880 => format!("{} h ago", minutes / 60),
        _ => format!("{} days ago", minutes / 1_440),
    }
}

fn month(at: OffsetDateTime) -> String {
    at.month().to_string().chars().take(3).collect()
}

/// The confidence of a flake score, in words.
pub const fn band(score: f64) -> &'static str {
    if score < 0.5 {
        "low"
    } else if score < 0.9 {
        "likely"
    } else {
        "near certain"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_rounded_and_have_units() {
        assert_eq!(count(1, "run"), "1 run");
        assert_eq!(count(1_204_000, "run"), "1,204,000 runs");
        assert_eq!(headline(0, 0, 0), "No test is broken, failing or flaky");
        assert_eq!(headline(0, 1, 1_200), "1 test is failing now, 1,200 flaky");
        assert_eq!(headline(2, 0, 9), "2 tests are broken, 9 flaky");
        assert_eq!(duration(840), "840 ms");
        assert_eq!(duration(12_345), "12.3 s");
        assert_eq!(duration(250_000), "4 min 10 s");
        assert_eq!(duration(7_500_000), "2 h 5 min");
        assert_eq!(percent(0.004), "0.4 %");
        assert_eq!(percent(0.25), "25 %");
        assert_eq!(
            date_time(Timestamp::from_unix_ms(1_795_200_363_120)),
            "20 Nov 2026, 18:46"
        );
    }
}
