//! Small literal numbers of expectations. They distinguish checks and are therefore not masked.
//!
//! Their characters are replaced by stand-ins while the rest of the text is masked, and restored afterwards.

use std::sync::LazyLock;

use regex::Regex;

use crate::pattern::pattern;

/// A word or sign that an expected value follows, and a number of at most three digits.
static EXPECTED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?x)
        (?: (?i:\b(?: expected (?:\ [a-z]{1,20}){0,2} | want(?:ed)? | right | equals? | (?:equal|identical)\ to
                | matches\ expected | to\ (?:be|(?:strictly\ |deeply\ |loosely\ )?(?:equal|eql))
                | to\ have\ (?:a\ )?(?:length|size|count)(?:\ of)?
                | to(?:Be|Equal|StrictEqual|Have)\w* )\s*:?\s*(?:not\ )?(?:[<>]=?\s*)?)
          | (?:^|[^<>=!])(?:===?|!==?|<=|>=|==>)\s*
          | (?:^|[\s(:])[<>]\s
        )
        [(\["'`<]{0,2}(-?[0-9]{1,3}(?:\.[0-9]{1,2})?)"#,
    )
});

/// A unit after a number makes it a duration or a size.
static UNIT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^ ?(?:milli|micro|nano)?(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|millis|msecs?|ms|µs|us|ns|s|m|h|d|[KMGT]i?B|[kmgt]b|kB|bytes?|B)\b",
    )
});

/// First stand-in of the digits. The stand-ins of the point and the minus sign follow.
const FIRST: u32 = 0xE100;
const CHARACTERS: &str = "0123456789.-";

/// Whether a character is a stand-in, which must not occur in the input.
pub(crate) fn is_stand_in(c: char) -> bool {
    character(c).is_some()
}

/// The line with stand-ins for the small expected numbers.
pub(crate) fn protect(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut copied_to = 0;
    let mut at = 0;
    while let Some(number) = EXPECTED
        .captures_at(line, at)
        .and_then(|captures| captures.get(1))
    {
        at = number.end();
        let rest = line.get(number.end()..).unwrap_or_default();
        if is_whole(rest) {
            out.push_str(line.get(copied_to..number.start()).unwrap_or_default());
            out.extend(number.as_str().chars().map(stand_in));
            copied_to = number.end();
        }
    }
    out.push_str(line.get(copied_to..).unwrap_or_default());
    out
}

/// The text with the stand-ins replaced by their characters.
pub(crate) fn restore(text: &str) -> String {
    text.chars().map(|c| character(c).unwrap_or(c)).collect()
}

/// Whether a number ends before `rest`, and is neither a duration nor a size.
fn is_whole(rest: &str) -> bool {
    let mut following = rest.chars();
    let ends = match (following.next(), following.next()) {
        (None, _) => true,
        (Some('.' | ','), after) => after.is_none_or(|after| !after.is_ascii_digit()),
        (Some(next), _) => {
            next.is_whitespace() || matches!(next, ')' | ']' | '>' | '"' | '\'' | '`' | ';' | '}')
        }
    };
    ends && !UNIT.is_match(rest)
}

fn stand_in(c: char) -> char {
    let index = CHARACTERS.chars().position(|character| character == c);
    index
        .and_then(|index| char::from_u32(FIRST + u32::try_from(index).ok()?))
        .unwrap_or(c)
}

fn character(c: char) -> Option<char> {
    let index = u32::from(c).checked_sub(FIRST)?;
    CHARACTERS.chars().nth(usize::try_from(index).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protected(line: &str) -> String {
        protect(line)
            .chars()
            .map(|c| if is_stand_in(c) { '#' } else { c })
            .collect()
    }

    #[test]
    fn small_numbers_that_were_expected_are_protected_and_no_others() {
        for (line, expected) in [
            ("Expected: 2", "Expected: #"),
            ("Expected length: 12", "Expected length: ##"),
            ("expected:<1> but was:<value>", "expected:<#> but was:<value>"),
            (
                "expected: <-1.5> but was: <value>",
                "expected: <####> but was: <value>",
            ),
            ("expect(3).toBe(42)", "expect(3).toBe(##)"),
            ("assert <value> == 200", "assert <value> == ###"),
            ("<value> !== 10", "<value> !== ##"),
            ("Expected: > 0.99", "Expected: > ####"),
            ("status: got <value>, want 404", "status: got <value>, want ###"),
            ("expected <value> to equal 7.", "expected <value> to equal #."),
            (" right: 2", " right: #"),
            ("Expected: 1350", "Expected: 1350"),
            ("Expected: 1,350", "Expected: 1,350"),
            ("Expected: 5 seconds", "Expected: 5 seconds"),
            ("Expected: 200ms", "Expected: 200ms"),
            ("Expected: 10:30", "Expected: 10:30"),
            ("Timeout: 500", "Timeout: 500"),
            ("thread 17 at line 3", "thread 17 at line 3"),
            ("order 12 was not found", "order 12 was not found"),
        ] {
            assert_eq!(protected(line), expected);
            assert_eq!(restore(&protect(line)), line);
        }
    }
}
