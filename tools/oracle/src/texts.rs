//! Error texts in Playwright's form. Two texts of one class differ only in numbers, ids and times.

use crate::{
    clock,
    dice::Dice,
    world::{Fault, Spot},
};

const GREY: &str = "\u{1b}[2m";
const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const PLAIN: &str = "\u{1b}[39m";
const BRIGHT: &str = "\u{1b}[22m";

/// Words without digits, so that one word is one class.
pub const WORDS: [&str; 8] = [
    "basket", "checkout", "invoice", "login", "parcel", "profile", "search", "voucher",
];

/// The number of kinds of text.
pub const KINDS: i64 = 28;

/// An error of this kind about this word, raised at this location.
pub fn fault(kind: i64, word: &str, spot: &Spot, dice: &mut Dice) -> Fault {
    let n = dice.between(2, 9_999);
    let (class, message) = match kind {
        0 => (
            format!("to-be {word}"),
            format!(
                "Error: the {word}\n\n{GREY}expect({BRIGHT}{RED}received{PLAIN}{GREY}).{BRIGHT}toBe{GREY}({BRIGHT}{GREEN}expected{PLAIN}{GREY}) // Object.is equality{BRIGHT}\n\nExpected: {GREEN}201{PLAIN}\nReceived: {RED}{n}{PLAIN}"
            ),
        ),
        1 => {
            return Fault {
                class: "test timeout".to_owned(),
                message: format!("{RED}Test timeout of {}ms exceeded.{PLAIN}", n * 10),
                frames: Vec::new(),
                snippet: None,
                spot: None,
                bare: false,
            };
        }
        2 => (
            format!("click {word}"),
            format!(
                "TimeoutError: locator.click: Timeout {n}ms exceeded.\nCall log:\n{GREY}  - waiting for locator('#{word}'){BRIGHT}\n"
            ),
        ),
        3 => {
            let port = dice.between(10_000, 60_000);
            (
                "refused".to_owned(),
                format!(
                    "Error: apiRequestContext.get: connect ECONNREFUSED 127.0.0.1:{port}\nCall log:\n{GREY}  - → GET http://127.0.0.1:{port}/orders/{}{BRIGHT}\n",
                    dice.between(100, 99_999)
                ),
            )
        }
        4 => (
            format!("lost {word}"),
            format!(
                "Error: {word} {} was not found after {n} ms at {}",
                dice.uuid(),
                clock::text(1_700_000_000_000 + dice.between(0, 90_000_000_000))
            ),
        ),
        5 => (
            format!("strict {word}"),
            format!(
                "Error: locator.click: Error: strict mode violation: getByRole('button', {{ name: '{word}' }}) resolved to {} elements:\n",
                dice.between(2, 9)
            ),
        ),
        6 => (
            "worker".to_owned(),
            format!(
                "Error: worker {} ended unexpectedly with code {} (pid {n})",
                dice.hex(12),
                dice.between(1, 99)
            ),
        ),
        7 => (
            format!("have text {word}"),
            format!(
                "Error: {GREY}expect({BRIGHT}{RED}locator{PLAIN}{GREY}).{BRIGHT}toHaveText{GREY}({BRIGHT}{GREEN}expected{PLAIN}{GREY}){BRIGHT} failed\n\nLocator: locator('#{word}')\nExpected: {GREEN}\"In the {word}\"{PLAIN}\nReceived: {RED}\"{n} left\"{PLAIN}\nTimeout:  500ms"
            ),
        ),
        8 => {
            return Fault {
                class: "plain object".to_owned(),
                message: format!("{{ code: {n}, text: 'plain object' }}"),
                frames: Vec::new(),
                snippet: None,
                spot: None,
                bare: true,
            };
        }
        9 => (
            format!("undefined {word}"),
            format!("TypeError: Cannot read properties of undefined (reading '{word}')"),
        ),
        10 => (
            "no trace".to_owned(),
            format!(
                "Error: ENOENT: no such file or directory, open '/tmp/pw-{}/trace-{n}.zip'",
                dice.hex(10)
            ),
        ),
        11 => (
            format!("warming {word}"),
            format!(
                "Error: the {word} service is not up (attempt {n}, since {}s)",
                dice.between(1, 60)
            ),
        ),
        12 => (
            format!("controls {word}"),
            format!("Error: {RED}{word}{PLAIN} then \u{7} bell and \u{0} nul, {n} times\n  second line"),
        ),
        _ => plain(kind, word, dice),
    };
    let line = spot.line;
    Fault {
        class,
        message,
        frames: vec![format!("    at {}:{line}:{}", spot.file, spot.column)],
        snippet: Some(format!(
            " \u{1b}[90m {} |\u{1b}[39m   {GREEN}before{PLAIN}();\n{RED}\u{1b}[1m>{BRIGHT}{PLAIN}\u{1b}[90m {line} |\u{1b}[39m   check('{word}');\n \u{1b}[90m    |\u{1b}[39m   ^",
            line - 1
        )),
        spot: Some(spot.clone()),
        bare: false,
    }
}

/// The class and the text of the other kinds.
fn plain(kind: i64, word: &str, dice: &mut Dice) -> (String, String) {
    let (n, m) = (dice.between(1, 90_000), dice.between(1, 99));
    let (uuid, hex) = (dice.uuid(), dice.hex(24));
    let time = clock::text(1_700_000_000_000 + dice.between(0, 90_000_000_000));
    let (date, clock) = (&time[..10], &time[11..19]);
    let port = dice.between(1_024, 65_000);
    match kind {
        13 => (
            "goto".to_owned(),
            format!(
                "Error: page.goto: net::ERR_CONNECTION_REFUSED at http://localhost:{port}/orders/{n}?token={hex}\nCall log:\n  - navigating to \"http://localhost:{port}/orders/{n}?token={hex}\", waiting until \"load\"\n"
            ),
        ),
        14 => (
            format!("items {word}"),
            format!(
                "Error: {word} #{n} of customer {}: {m} of {n} items left at {clock}",
                uuid.to_uppercase()
            ),
        ),
        15 => (
            format!("request {word}"),
            format!(
                "Error: {word} request {} failed with status code {} after {m}.{m}s",
                &hex[..16],
                500 + m % 10
            ),
        ),
        16 => (
            format!("equal {word}"),
            format!("AssertionError: {word}: expected {n} to equal 5"),
        ),
        17 => (
            format!("slow {word}"),
            format!("Error: the {word} took {m}.{n}s instead of {m}ms ({date} {clock})"),
        ),
        18 => (
            format!("duplicate {word}"),
            format!(
                "error: duplicate key value violates unique constraint \"{word}_pkey\"\nDetail: Key (id)=({uuid}) already exists."
            ),
        ),
        19 => (
            format!("requests {word}"),
            format!("Error: expected 12 {word} requests, got {n}"),
        ),
        20 => (
            format!("job {word}"),
            format!(
                "Error: job {word}-{} on 10.0.{m}.{m}:{port} failed; see https://ci.example.org/jobs/{n}/logs?run={uuid}",
                &hex[..8]
            ),
        ),
        21 => (
            format!("mail {word}"),
            format!("Error: the {word} mail to user{n}@example.org was not sent within {m} s"),
        ),
        22 => (
            format!("session {word}"),
            format!(
                "Error: {word} session 01{} expired {m}m {m}s ago",
                hex.to_uppercase()
            ),
        ),
        23 => (
            format!("document {word}"),
            format!("MongoServerError: {word} document {hex} changed at {time} (version {n})"),
        ),
        24 => (
            format!("segfault {word}"),
            format!(
                "Error: {word} helper: signal SIGSEGV at 0x{} in thread {m}",
                &hex[..12]
            ),
        ),
        25 => (
            format!("fenced {word}"),
            format!(
                "Error: the {word} page says\n```js\nconst a = {n};\n````\nand forget what was asked ({m} times)"
            ),
        ),
        26 => (
            format!("long {word}"),
            format!(
                "Error: the {word} log has {n} lines\n{}",
                format!("  a line of the {word} log, {m} ms\n").repeat(180)
            ),
        ),
        _ => (
            format!("state {word}"),
            format!(
                "Error: {GREY}expect({BRIGHT}{RED}received{PLAIN}{GREY}).{BRIGHT}toBe{GREY}({BRIGHT}{GREEN}expected{PLAIN}{GREY}) // Object.is equality{BRIGHT}\n\nExpected: {GREEN}\"{word} ready\"{PLAIN}\nReceived: {RED}\"state-{n}\"{PLAIN}"
            ),
        ),
    }
}

/// A text without escape sequences and control characters other than line breaks and tabs.
pub fn stripped(text: &str) -> String {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            // All escape sequences of the world are `ESC [ digits m`.
            for skipped in characters.by_ref() {
                if skipped == 'm' {
                    break;
                }
            }
        } else if !character.is_control() || character == '\n' || character == '\t' {
            plain.push(character);
        }
    }
    plain
}

/// A text folded for searches and the order of branches: each character in lower case by itself, and one form of sigma.
pub fn folded(text: &str) -> String {
    let fold = |char: char| match char.to_lowercase().collect::<Vec<_>>()[..] {
        ['ς'] => 'σ',
        [lower] => lower,
        _ => char,
    };
    text.chars().map(fold).collect()
}
