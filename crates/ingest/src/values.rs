//! Parses the values that a user gives beside a report, as flags or as fields.

use assay_domain::{recording::ShardIndex, revision::is_commit};

use crate::text::{self, BadText, one_line};

/// The highest attempt of a command.
const MOST_ATTEMPTS: u32 = 10_000;
/// Most shards of one run.
const MOST_SHARDS: u32 = 10_000;
/// Longest commit, author, suite, title, job or runner, in characters. A longer value of a user is refused; one of CI
/// or a report is cut.
pub(crate) const LONGEST_LINE: usize = 500;
/// Longest commit message, in characters, by the same rule.
pub const LONGEST_MESSAGE: usize = 10_000;
/// Longest run key, in characters; a suite's name is added to it.
pub(crate) const LONGEST_RUN_KEY: usize = 400;
/// Longest field of an upload, in characters, except those with a limit of their own.
pub const LONGEST_FIELD: usize = 2_000;
/// Longest name of an uploaded file, in characters.
pub const LONGEST_FILE_NAME: usize = 300;
/// Most bytes of the checkout's file names in an upload.
pub const MOST_KNOWN_FILE_BYTES: usize = 4 << 20;
/// Longest duration of a run, in milliseconds: a year.
pub const LONGEST_DURATION_MS: u64 = 31_536_000_000;

/// A text on one line.
pub fn line(text: &str) -> Result<String, BadText> {
    one_line(text, LONGEST_LINE)
}

/// A run key.
pub fn run_key(text: &str) -> Result<String, BadText> {
    one_line(text, LONGEST_RUN_KEY)
}

/// A commit by its id. Git's names for what is checked out are refused, because they mean another commit each time.
pub fn revision(text: &str) -> Result<String, BadText> {
    let revision = line(text)?;
    match revision.split(['~', '^', '@']).next() {
        Some("HEAD" | "FETCH_HEAD" | "ORIG_HEAD" | "MERGE_HEAD" | "") => Err(BadText::MovingName),
        Some(_) | None => Ok(revision),
    }
}

/// A commit by its hash, which may be abbreviated.
pub fn commit_hash(text: &str) -> Result<String, &'static str> {
    is_commit(text)
        .then(|| text.to_ascii_lowercase())
        .ok_or("expected a commit of 7 to 64 hexadecimal digits")
}

/// The address of a page.
pub fn web_address(text: &str) -> Result<String, &'static str> {
    text::web_address(text)
        .ok_or("expected an address of http or https without a password, at most 2,000 characters")
}

/// A text that may have several lines.
pub fn message(text: &str) -> Result<String, BadText> {
    let text = text.trim();
    match text.chars().count() {
        0 => Err(BadText::Empty),
        length if length > LONGEST_MESSAGE => Err(BadText::TooLong {
            limit: LONGEST_MESSAGE,
            length,
        }),
        _ if text
            .chars()
            .any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) =>
        {
            Err(BadText::Control)
        }
        _ => Ok(text.to_owned()),
    }
}

/// The attempt of a command within its job.
pub fn attempt(text: &str) -> Result<u32, String> {
    let attempt = text
        .parse()
        .ok()
        .filter(|attempt| (1..=MOST_ATTEMPTS).contains(attempt));
    attempt.ok_or_else(|| format!("expected a whole number from 1 to {MOST_ATTEMPTS}"))
}

/// An offset from UTC as `+09:00`, `-03:30` or `Z`, in minutes.
pub fn utc_offset(text: &str) -> Result<i32, &'static str> {
    const EXPECTED: &str = "expected an offset from UTC such as +09:00, -03:30 or Z";
    if text == "Z" {
        return Ok(0);
    }
    let (sign, rest) = match text.split_at_checked(1) {
        Some(("+", rest)) => (1, rest),
        Some(("-", rest)) => (-1, rest),
        Some(_) | None => return Err(EXPECTED),
    };
    let number = |text: &str| {
        let is_number = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i32>().ok().filter(|_| is_number)
    };
    let parts = rest
        .split_once(':')
        .map(|(hours, minutes)| (number(hours), number(minutes)));
    match parts {
        Some((Some(hours @ 0..=18), Some(minutes @ 0..=59))) => Ok(sign * (hours * 60 + minutes)),
        Some(_) | None => Err(EXPECTED),
    }
}

/// The text of an offset from UTC in minutes.
pub fn utc_offset_text(minutes: i32) -> String {
    let sign = if minutes < 0 { '-' } else { '+' };
    let minutes = minutes.unsigned_abs();
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

/// A shard as `2/5`: the second of five.
pub fn shard(text: &str) -> Result<ShardIndex, String> {
    let wrong = || format!("expected INDEX/TOTAL such as 2/5, from 1 to at most {MOST_SHARDS}");
    let (index, total) = text.split_once('/').ok_or_else(wrong)?;
    let number = |text: &str| {
        text.parse::<u32>()
            .ok()
            .filter(|number| (1..=MOST_SHARDS).contains(number) && !text.starts_with('+'))
            .ok_or_else(wrong)
    };
    let (index, total) = (number(index)?, number(total)?);
    if index > total {
        return Err(format!(
            "shard {index} of {total}: the index must not exceed the total"
        ));
    }
    Ok(ShardIndex {
        index,
        total: Some(total),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_an_index_of_a_total() {
        assert_eq!(
            shard("2/5"),
            Ok(ShardIndex {
                index: 2,
                total: Some(5)
            })
        );
        for wrong in [
            "",
            "2",
            "0/5",
            "6/5",
            "2/",
            "/5",
            "-1/5",
            "+1/5",
            "1/10001",
            "1/4294967296",
            "a/b",
            "1/2/3",
        ] {
            assert!(shard(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_address_is_one_that_a_browser_may_open() {
        for right in [
            "https://github.com/o/r/actions/runs/7",
            "HTTP://ci.local:8080/job/a%20b/7/?x=1#log",
            " http://[::1]/7 ",
        ] {
            assert_eq!(web_address(right).as_deref(), Ok(right.trim()));
        }
        let long = format!("https://ci.test/{}", "x".repeat(2_000));
        for wrong in [
            "",
            "ci.test/7",
            "javascript:alert(1)",
            "javascript://x/%0aalert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "https://",
            "https:///7",
            "https://user:secret@ci.test/7",
            "https://ci.test/a b",
            "https://ci.test/\u{7}",
            "https://ci.test/\"onclick=x",
            "https://ci.test\\@evil.test",
            &long,
        ] {
            assert!(web_address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_message_may_have_lines_but_no_other_control_characters() {
        assert_eq!(message("a\n\nb\n"), Ok("a\n\nb".to_owned()));
        assert_eq!(message("a\u{1b}[1m"), Err(BadText::Control));
        assert_eq!(message(" "), Err(BadText::Empty));
        for moving in ["HEAD", " HEAD~1", "@", "FETCH_HEAD^2"] {
            assert_eq!(revision(moving), Err(BadText::MovingName));
        }
        assert_eq!(revision("r1812"), Ok("r1812".to_owned()));
    }
}
