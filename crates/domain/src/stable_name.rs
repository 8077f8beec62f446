//! Names of tests without the parts that change from run to run.
//!
//! Tools and authors write values into names: the address of an object, a temporary folder, the version of the browser.
//! Each run then has another test, and none has a history. This table replaces such parts for all report formats, for
//! CSV histories and for the look-up of a test. A part is replaced only if its form shows that it changes: a short
//! constant such as `0xFF`, a date, a full hour, the port 443 or a time limit in seconds is kept.

use std::borrow::Cow;

/// The name with a word in angle brackets in place of each part that changes from run to run. Idempotent.
pub fn stable_name(name: &str) -> Cow<'_, str> {
    let bytes = name.as_bytes();
    let mut out = String::new();
    // The text before `copied` is in `out`.
    let (mut copied, mut at) = (0, 0);
    while let Some(skipped) = bytes
        .get(at..)
        .and_then(|rest| rest.iter().position(|byte| shows_part(*byte)))
    {
        at += skipped;
        match part(name, copied, at) {
            Some(part) => {
                out.push_str(name.get(copied..part.start).unwrap_or_default());
                out.push_str(part.word);
                copied = part.end;
                at = part.end.max(at + 1);
            }
            // Only the first digit of a number may begin a part.
            None => at += leading(bytes.get(at..).unwrap_or_default(), |byte| byte.is_ascii_digit()).max(1),
        }
    }
    if copied == 0 {
        return Cow::Borrowed(name);
    }
    out.push_str(name.get(copied..).unwrap_or_default());
    Cow::Owned(out)
}

/// Whether a part may begin or be recognised at a byte. Most bytes are passed over, because all names of all reports are
/// read.
const fn shows_part(byte: u8) -> bool {
    matches!(
        byte,
        b'0'..=b'9' | b'-' | b'@' | b'[' | b'(' | b':' | b'/' | b'\\'
    )
}

/// A part of a name that changes from run to run.
struct Part {
    start: usize,
    end: usize,
    word: &'static str,
}

/// The part that the byte at a place shows. Only the name from `from` on is not replaced yet.
fn part(name: &str, from: usize, at: usize) -> Option<Part> {
    let bytes = name.as_bytes();
    let (byte, next) = (*bytes.get(at)?, bytes.get(at + 1).copied().unwrap_or(b' '));
    let previous = match at.checked_sub(1).filter(|previous| *previous >= from) {
        Some(previous) => bytes.get(previous).copied().unwrap_or(b' '),
        None => b' ',
    };
    // A UUID that begins with a letter is recognised by its first hyphen.
    let at = match byte {
        b'-' => at.checked_sub(UUID_START).filter(|start| *start >= from)?,
        b'0' if next == b'x' => at,
        b'0'..=b'9' if previous.is_ascii_alphanumeric() => return None,
        b'@' | b'[' | b'(' | b':' if !(next.is_ascii_hexdigit() || next == b'.') => return None,
        _ => at,
    };
    let rest = name.get(at..)?;
    let before = name.get(from..at)?;
    match byte {
        b'0' if next == b'x' => address(before, rest),
        b'@' => object_hash(before, rest),
        b'[' | b'(' => duration(rest),
        b':' => port(before, rest),
        b'/' if !before.ends_with(|c: char| c.is_alphanumeric() || c == '.') => temporary(rest),
        b'\\' => windows_temporary(rest),
        b'-' if !before.ends_with(is_word) => uuid(rest),
        b'0'..=b'9' if previous == b'_' => browser_version(before, rest),
        b'0'..=b'9' if !before.ends_with(is_word) => uuid(rest)
            .or_else(|| time(rest))
            .or_else(|| browser_version(before, rest)),
        _ => None,
    }
    .map(|(skipped, length, word)| Part {
        start: at + skipped,
        end: at + skipped + length,
        word,
    })
}

/// Bytes that stay, bytes that are replaced, and the word in their place.
type Replacement = Option<(usize, usize, &'static str)>;

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The number of leading bytes that fit.
fn leading(text: impl AsRef<[u8]>, fits: impl Fn(u8) -> bool) -> usize {
    let bytes = text.as_ref();
    bytes.iter().position(|byte| !fits(*byte)).unwrap_or(bytes.len())
}

/// `0x00007f1c21a3b4c5d`: after a word that announces an address, or with more digits than constants have.
fn address(before: &str, rest: &str) -> Replacement {
    let digits = leading(rest.get(2..)?, |byte| byte.is_ascii_hexdigit());
    let number = rest.get(2..2 + digits)?;
    if before.ends_with(is_word) || rest.get(2 + digits..)?.starts_with(is_word) {
        return None;
    }
    let is_announced = before.ends_with(" at ") || before.ends_with([':', '@']);
    let digits_used = number
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .fold(0_u16, |used, digit| used | 1 << digit);
    // A mask of bits such as 0xFFFFFFFFFFFFFFFF is no address.
    let is_mixed = digits_used.count_ones() >= 4;
    let is_address = if is_announced {
        digits >= 6
    } else {
        digits >= 9 && is_mixed
    };
    is_address.then_some((0, 2 + digits, "<address>"))
}

/// `org.shop.Money@1b2c6ec2`, `[I@1b2c6ec2`: what Java writes for an object without a text.
fn object_hash(before: &str, rest: &str) -> Replacement {
    let digits = leading(rest.get(1..)?, |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let hash = rest.get(1..1 + digits)?;
    let is_hash = (5..=8).contains(&digits) && hash.bytes().any(|byte| byte.is_ascii_digit());
    if !is_hash
        || rest
            .get(1 + digits..)?
            .starts_with(|c: char| is_word(c) || matches!(c, '.' | '-'))
    {
        return None;
    }
    let class = before
        .rsplit(|c: char| !(is_word(c) || matches!(c, '.' | '$' | '[' | ';' | '/')))
        .next()?;
    let is_class = class.contains('.') || class.contains('$') || class.ends_with(';') || class.contains("[");
    is_class.then_some((1, digits, "<hash>"))
}

/// The digits of a UUID before its first hyphen.
const UUID_START: usize = 8;

/// Whether a text begins in a form, in which `0` is any digit, `x` a hexadecimal one, and `T` also a space.
fn has_form(text: Option<&str>, form: &str) -> bool {
    let mut bytes = text.unwrap_or_default().bytes();
    form.bytes().all(|form| {
        bytes.next().is_some_and(|byte| match form {
            b'0' => byte.is_ascii_digit(),
            b'x' => byte.is_ascii_hexdigit(),
            b'T' => matches!(byte, b'T' | b' '),
            form => byte == form,
        })
    })
}

/// `3f2504e0-4f89-11d3-9a0c-0305e82c3301`
fn uuid(rest: &str) -> Replacement {
    const FORM: &str = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    if !has_form(Some(rest), FORM) {
        return None;
    }
    let (text, after) = rest.split_at_checked(FORM.len())?;
    // The nil UUID and other patterns are constants.
    let is_constant = text.bytes().all(|byte| matches!(byte, b'-' | b'0'))
        || text.bytes().all(|byte| matches!(byte, b'-' | b'f' | b'F'));
    (!is_constant && !after.starts_with(is_word)).then_some((0, FORM.len(), "<uuid>"))
}

/// `2026-11-21 10:02:00.121456+01:00`. A date and a full hour are more probably constants.
fn time(rest: &str) -> Replacement {
    let has = |at: usize, form: &str| has_form(rest.get(at..), form);
    if !has(0, "0000-00-00T00:00") {
        return None;
    }
    let mut length = 16;
    if has(length, ":") {
        if !has(length, ":00") {
            return None;
        }
        length = 19;
        if has(length, ".0") || has(length, ",0") {
            length = 20 + leading(rest.get(20..)?, |byte| byte.is_ascii_digit());
        }
    }
    let after_hour = rest.get(14..length)?;
    let is_round = !after_hour.contains(|c: char| matches!(c, '1'..='9'));
    if has(length, "Z") {
        length += 1;
    } else if has(length, "+00") || has(length, "-00") {
        length += match (has(length + 3, ":00"), has(length + 3, "00")) {
            (true, _) => 6,
            (false, true) => 5,
            (false, false) => 3,
        };
    }
    (!is_round && !rest.get(length..)?.starts_with(is_word)).then_some((0, length, "<time>"))
}

/// `localhost:41234`: a port that the system selects, on the machine itself.
fn port(before: &str, rest: &str) -> Replacement {
    const LOCAL: &[&str] = &["localhost", "127.0.0.1", "0.0.0.0", "[::1]"];
    /// The first port that Linux selects; other systems begin later.
    const FIRST: u32 = 32_768;
    let digits = leading(rest.get(1..)?, |byte| byte.is_ascii_digit());
    let port: u32 = rest.get(1..1 + digits)?.parse().ok()?;
    let is_selected = (FIRST..=65_535).contains(&port) && LOCAL.iter().any(|host| before.ends_with(host));
    (is_selected && !rest.get(1 + digits..)?.starts_with(is_word)).then_some((1, digits, "<port>"))
}

const UNIX_TEMP: &str = "/tmp/";
/// Where a path in a name ends.
const PATH_ENDS: [char; 14] = [
    ' ', '\t', '\n', '"', '\'', '`', ',', ';', ')', ']', '}', '>', '<', '|',
];

/// `/tmp/pytest-of-ci/pytest-14/test_saves0/a.csv`, `/var/folders/…`: a path of which a part was created for this run.
fn temporary(rest: &str) -> Replacement {
    let root = [
        "/private/var/folders/",
        "/var/folders/",
        "/private/tmp/",
        UNIX_TEMP,
        "/dev/shm/",
    ]
    .into_iter()
    .find(|root| rest.starts_with(root))?;
    unstable_path(rest, root)
}

/// `\AppData\Local\Temp\tmp1x2y\a.csv`, the part of a path that does not depend on the user.
fn windows_temporary(rest: &str) -> Replacement {
    const ROOT: &str = r"\AppData\Local\Temp\";
    rest.starts_with(ROOT).then(|| unstable_path(rest, ROOT))?
}

/// The path below a temporary folder, without its last part if that says something: `/tmp/x7/a.csv` keeps `/a.csv`.
fn unstable_path(rest: &str, root: &str) -> Replacement {
    let end = rest.find(PATH_ENDS).unwrap_or(rest.len());
    let below = rest.get(root.len()..end)?;
    let is_created = |part: &str| {
        part.bytes().any(|byte| byte.is_ascii_digit()) || part.starts_with("tmp") || part.starts_with("temp")
    };
    let (folder, last) = below.rsplit_once(['/', '\\']).unwrap_or(("", below));
    let is_unstable = folder.split(['/', '\\']).any(is_created);
    if is_unstable && !is_created(last) && !last.is_empty() {
        return Some((0, root.len() + folder.len(), "<temp>"));
    }
    (is_unstable || is_created(last)).then_some((0, end, "<temp>"))
}

/// `Chrome 119.0`, `Chrome_Headless_119_0_6045_105`, `(Mac OS 10.15.7)` behind one of these.
fn browser_version(before: &str, rest: &str) -> Replacement {
    const BROWSERS: &[&str] = &[
        "chrome",
        "chromium",
        "firefox",
        "safari",
        "edge",
        "edg",
        "opera",
        "webkit",
        "electron",
        "headless",
        "phantomjs",
        "jsdom",
        "mac os",
        "mac os x",
        "ios",
        "android",
        "linux",
    ];
    let separator = before
        .chars()
        .next_back()
        .filter(|c| matches!(c, ' ' | '_' | '/' | '.'))?;
    let words = before.strip_suffix(separator)?;
    let end = leading(rest, |byte| byte.is_ascii_digit() || byte == b'.' || byte == b'_');
    let version = rest.get(..end)?.trim_end_matches(['.', '_']);
    let has_parts = version.bytes().any(|byte| !byte.is_ascii_digit());
    // WebdriverIO joins browser, version and system by points: `chrome.119_0_6045_105.linux`.
    if separator == '.' && !version.contains('_') {
        return None;
    }
    let after = rest.get(version.len()..)?;
    // A single number may count something.
    let is_whole = || {
        let is_over = after.is_empty() || after.starts_with([']', ')']) || after.starts_with(" > ");
        version.len() >= 2 && is_over && !words.contains(' ')
    };
    if !(has_parts || is_whole()) {
        return None;
    }
    let last = words.as_bytes().last()?.to_ascii_lowercase();
    let is_browser = BROWSERS.iter().any(|browser| {
        // Most words end in another letter, and all names of all reports are read.
        if browser.as_bytes().last() != Some(&last) {
            return false;
        }
        let start = words.len().checked_sub(browser.len());
        start.and_then(|start| words.get(start..)).is_some_and(|word| {
            word.bytes()
                .zip(browser.bytes())
                .all(|(a, b)| a.eq_ignore_ascii_case(&b) || (a == b'_' && b == b' '))
        })
    });
    let is_over = !after.starts_with(|c: char| c.is_alphanumeric());
    (is_browser && is_over && !version.is_empty()).then_some((0, version.len(), "<version>"))
}

/// `[52 ms]`, `(1.25 s)`: a measured duration in brackets. Whole seconds are more probably a time limit.
fn duration(rest: &str) -> Replacement {
    let close = match rest.as_bytes().first()? {
        b'[' => ']',
        _ => ')',
    };
    let number = leading(rest.get(1..)?, |byte| byte.is_ascii_digit() || byte == b'.');
    let text = rest.get(1..1 + number)?;
    let end = rest.get(1 + number..)?.find(close)?;
    let unit = rest.get(1 + number..1 + number + end)?.trim_start();
    let is_measured = match unit {
        "ms" | "µs" | "us" | "ns" => !text.is_empty(),
        "s" | "sec" | "seconds" => text.contains('.'),
        _ => false,
    };
    is_measured.then_some((1, number + end, "<duration>"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_change_from_run_to_run_are_replaced() {
        for (name, expected) in [
            (
                "is expected to eq [#<Object:0x00007f1c21a3b4c5d>]",
                "is expected to eq [#<Object:<address>>]",
            ),
            (
                "eql #<Shop::Owner:0x000055d19c0a1b2 @id=7>",
                "eql #<Shop::Owner:<address> @id=7>",
            ),
            (
                "test_sort[<function key at 0x7f3a1c1d2e30>]",
                "test_sort[<function key at <address>>]",
            ),
            ("TestSet/0xc000123456", "TestSet/<address>"),
            ("[1] org.shop.Money@1b2c6ec2", "[1] org.shop.Money@<hash>"),
            ("sum([I@4edde6e5)", "sum([I@<hash>)"),
            ("[Ljava.lang.String;@4edde6e5", "[Ljava.lang.String;@<hash>"),
            ("Cart$1@1e80bfe8 adds", "Cart$1@<hash> adds"),
            (
                "test_order[3f2504e0-4f89-11d3-9a0c-0305e82c3301]",
                "test_order[<uuid>]",
            ),
            ("ORDER 3F2504E0-4F89-11D3-9A0C-0305E82C3301", "ORDER <uuid>"),
            ("test_day[2026-11-21 10:00:00.121456]", "test_day[<time>]"),
            ("at 2026-11-21T10:02:00Z", "at <time>"),
            ("at 2026-11-21T10:02:33.5+01:00.", "at <time>."),
            ("at 2026-11-21T10:02+0100", "at <time>"),
            (
                "GET http://localhost:41923/api",
                "GET http://localhost:<port>/api",
            ),
            ("127.0.0.1:65000", "127.0.0.1:<port>"),
            (
                "saves[/tmp/pytest-of-ci/pytest-14/test_saves0/a.csv]",
                "saves[<temp>/a.csv]",
            ),
            ("saves /tmp/tmpab_xyz", "saves <temp>"),
            ("saves '/var/folders/zz/abc123/T/x9'", "saves '<temp>'"),
            (
                r"saves C:\Users\ci\AppData\Local\Temp\tmp12ab\a.csv",
                r"saves C:\Users\ci<temp>\a.csv",
            ),
            ("Chrome 119.0 > Unit | adds", "Chrome <version> > Unit | adds"),
            ("Chrome 119 > adds", "Chrome <version> > adds"),
            (
                "chrome.119_0_6045_105.linux.Cart > adds",
                "chrome.<version>.linux.Cart > adds",
            ),
            (
                "Chrome_Headless_119_0_6045_105_(Linux_x86_64).Cart",
                "Chrome_Headless_<version>_(Linux_x86_64).Cart",
            ),
            (
                "Chrome Headless 119.0.6045.105 (Mac OS 10.15.7)",
                "Chrome Headless <version> (Mac OS <version>)",
            ),
            (
                "Chrome 119.0 - [52 ms] - adds",
                "Chrome <version> - [<duration>] - adds",
            ),
            ("adds (1.25 s)", "adds (<duration>)"),
            (
                "a 0x7f3a1c1d2e30 b 3f2504e0-4f89-11d3-9a0c-0305e82c3301 c",
                "a <address> b <uuid> c",
            ),
        ] {
            assert_eq!(stable_name(name), expected, "{name}");
            assert_eq!(stable_name(expected), expected, "twice");
        }
    }

    #[test]
    fn parts_that_mean_something_are_kept() {
        for name in [
            "",
            "adds 2 and 3",
            "parses 0xFF and 0xdeadbeef",
            "masks 0xFFFFFFFFFFFFFFFF",
            "masks 0x7FFFFFFFFFFFFFFF",
            "a0x7f3a1c1d2e30",
            "mails john.doe@cafe.org and jo@beef1",
            "mails john.doe@1b2c6.org",
            "reads user@1234567",
            "nil 00000000-0000-0000-0000-000000000000",
            "3f2504e0-4f89-11d3-9a0c-0305e82c33",
            "x3f2504e0-4f89-11d3-9a0c-0305e82c3301",
            "2026-11-21",
            "at 2026-11-21T10:00:00Z",
            "at 2020-01-01 00:00",
            "GET http://localhost:8080/api",
            "https://example.org:41923/",
            "reads /tmp/config.json",
            "reads /tmp/app/config.json",
            "reads /home/ci/tmp/x1",
            "a/tmp/x1",
            "Chrome opens 2 tabs",
            "Chrome 2 tabs",
            "in chrome 12 times",
            "internet explorer 11 > opens",
            "RFC 7231 section 4.3.1",
            "version 1.2.3",
            "times out (30 s)",
            "takes [3]",
            "takes (a ms)",
            "Ünï 12 ✓ (",
        ] {
            assert_eq!(stable_name(name), name);
            assert!(matches!(stable_name(name), Cow::Borrowed(_)), "{name}");
        }
    }
}
