//! Properties that hold for every text.

use assay_domain::attempt::ErrorDetail;
use assay_fingerprint::{classify, normal_form};
use proptest::prelude::*;

fn error(message: &str) -> ErrorDetail {
    ErrorDetail {
        message: Some(message.to_owned()),
        ..ErrorDetail::default()
    }
}

/// Texts from fragments that masks match. They find faults faster than random characters.
fn hostile() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("Received: ".to_owned()),
        Just("Expected: \"x\"\n".to_owned()),
        Just("expect(received).toBe(expected)".to_owned()),
        Just("waiting for locator('#a')\n".to_owned()),
        Just("http://".to_owned()),
        Just("/home/a/".to_owned()),
        Just("C:\\".to_owned()),
        Just("\n- Expected\n+ Received\n".to_owned()),
        Just("assert 'a' == ".to_owned()),
        Just("got ".to_owned()),
        Just("550e8400-e29b-41d4-a716-446655440000".to_owned()),
        Just("2026-11-20T18:46:03Z".to_owned()),
        Just("Traceback (most recent call last):\n".to_owned()),
        Just("\u{1b}[31m".to_owned()),
        Just("thread 'a' panicked at src/lib.rs:1:2:\n".to_owned()),
        "[a-f0-9]{1,30}",
        "[A-Za-z0-9_+-]{1,40}",
        "[0-9:.,/@-]{1,12}",
        "[ \\n\\t\"'`<>(){}\\[\\]\\\\/…ü✓-]{1,6}",
        "\\PC{0,8}",
    ];
    proptest::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn nothing_panics_and_everything_is_bounded(message in hostile(), stack in hostile()) {
        let detail = ErrorDetail { message: Some(message), stack: Some(stack), ..ErrorDetail::default() };
        match classify(&detail) {
            Some(class) => {
                prop_assert!(detail.has_text());
                prop_assert_eq!(class.fingerprint.len(), 32);
                prop_assert!(class.fingerprint.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)));
                prop_assert!(class.title.chars().count() <= 120);
                prop_assert!(!class.title.contains('\n'));
            }
            None => prop_assert!(!detail.has_text()),
        }
    }

    #[test]
    fn no_digits_are_left_but_those_of_small_numbers(message in hostile()) {
        let form = normal_form(&message);
        let longest = form.text.split(|c: char| !c.is_ascii_digit()).map(str::len).max();
        prop_assert!(longest <= Some(3), "{}", form.text);
        prop_assert!(form.text.chars().count() <= 2_000);
    }

    #[test]
    fn numbers_ids_times_and_places_do_not_distinguish_errors(
        a in variable(), b in variable(), template in 0..TEMPLATES.len(),
    ) {
        let fill = |with: &Variable| {
            TEMPLATES[template]
                .replace("{n}", &with.number.to_string())
                .replace("{float}", &format!("{}.{}", with.number, with.number % 97))
                .replace("{uuid}", &with.uuid)
                .replace("{hex}", &format!("{:x}", with.hex))
                .replace("{time}", &with.time)
                .replace("{ms}", &format!("{}ms", with.number))
                .replace("{port}", &(with.number % 65_000).to_string())
                .replace("{root}", &with.root)
                .replace("{value}", &with.value)
        };
        let [one, other] = [&a, &b].map(|with| classify(&error(&fill(with))).unwrap());
        prop_assert_eq!(&one.fingerprint, &other.fingerprint, "{}\n---\n{}", fill(&a), fill(&b));
        prop_assert_eq!(one.title, other.title);
        prop_assert_eq!(one.category, other.category);
    }
}

/// Errors of every language, with parts that differ between two occurrences.
const TEMPLATES: [&str; 20] = [
    "Error: expect(received).toBe(expected) // Object.is equality\n\nExpected: \"ready\"\nReceived: {value}",
    "Error: expect(locator).toHaveText(expected) failed\n\nLocator:  getByTestId('total')\nExpected: \"ready\"\nReceived: {value}\nTimeout:  {ms}\n\nCall log:\n  - Expect \"toHaveText\" with timeout {ms}\n    {n} × locator resolved to <b>{n}</b>\n",
    "TimeoutError: page.goto: Timeout {ms} exceeded.\nCall log:\n  - navigating to \"http://localhost:{port}/orders/{n}\"",
    "Error: connect ECONNREFUSED 127.0.0.1:{port}",
    "order {uuid} was not found after {ms}",
    "[{time}] worker {n} (pid {n}) lost its lease {hex}",
    "ENOENT: no such file or directory, open '{root}/tests/data/orders.json'",
    "AssertionError: expected {value} to equal 'ready'",
    "AssertionError: assert {value} == 'ready'",
    "java.lang.AssertionError: total expected:<{n}> but was:<{n}>",
    "expected: \"ready\"\n but was: {value}",
    "cents: got {n}, want {n}",
    "status: got {value}, want \"ready\"",
    "thread 'a::b' ({n}) panicked at src/lib.rs:{n}:{n}:\nassertion `left == right` failed\n  left: {value}\n right: \"ready\"",
    "panic: runtime error: index out of range [{n}] with length {n}\n\ngoroutine {n} [running]:\nmain.f(0x{hex})\n\t{root}/main.go:{n} +0x{hex}",
    "Failed asserting that {value} is identical to 'ready'.",
    "Assert.Equal() Failure\nExpected: ready\nActual:   {value}",
    "expected: \"ready\"\n     got: {value}\n\n(compared using ==)",
    "Traceback (most recent call last):\n  File \"{root}/a.py\", line {n}, in test\n    do()\nRuntimeError: job {uuid} at 0x{hex} took {float}s",
    "GET http://10.0.0.{n}:{port}/api/orders/{uuid}?at={time} answered {n}",
];

#[derive(Debug, Clone)]
struct Variable {
    number: u32,
    hex: u64,
    uuid: String,
    time: String,
    root: String,
    value: String,
}

fn variable() -> impl Strategy<Value = Variable> {
    let root = prop::sample::select(vec![
        "/home/runner/work/shop/shop",
        "/builds/acme/shop",
        "/Users/jo/code/shop",
        "/tmp/build-81/shop",
    ]);
    let value = prop_oneof![
        "\"[a-z ]{1,20}\"",
        Just("\"a, b \\\" c\"".to_owned()),
        Just("{\"state\": \"closed\", \"at\": [1, 2]}".to_owned()),
        Just("[1, 2, \"three\"]".to_owned()),
        (1_000_u32..).prop_map(|n| n.to_string()),
    ];
    (
        // Small numbers are literals in expectations.
        1_000_u32..,
        0x1000_0000_u64..,
        any::<[u8; 16]>(),
        0_i64..4_000_000_000,
        root,
        value,
    )
        .prop_map(|(number, hex, bytes, seconds, root, value)| {
            let h: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
            Variable {
                number,
                hex,
                uuid: format!(
                    "{}-{}-{}-{}-{}",
                    &h[..8],
                    &h[8..12],
                    &h[12..16],
                    &h[16..20],
                    &h[20..]
                ),
                time: assay_domain::timestamp::Timestamp::from_unix_ms(
                    seconds * 1_000 + i64::from(number % 1_000),
                )
                .to_string(),
                root: root.to_owned(),
                value,
            }
        })
}

#[test]
fn an_error_without_text_has_no_class() {
    for message in [None, Some(""), Some(" \n\t ")] {
        let detail = ErrorDetail {
            message: message.map(ToOwned::to_owned),
            ..ErrorDetail::default()
        };
        assert_eq!(classify(&detail), None);
    }
}

#[test]
fn expectations_locators_and_matchers_distinguish_errors() {
    let errors = [
        "Error: expect(received).toBe(expected)\n\nExpected: \"ready\"\nReceived: \"a\"",
        "Error: expect(received).toBe(expected)\n\nExpected: \"steady\"\nReceived: \"a\"",
        "Error: expect(received).not.toBe(expected)\n\nExpected: \"ready\"\nReceived: \"a\"",
        "Error: expect(received).toEqual(expected)\n\nExpected: \"ready\"\nReceived: \"a\"",
        "Error: expect(locator).toBeVisible() failed\n\nLocator: locator('#buy')\nExpected: visible",
        "Error: expect(locator).toBeVisible() failed\n\nLocator: locator('#sell')\nExpected: visible",
        "Error: expect(locator).toBeHidden() failed\n\nLocator: locator('#buy')\nExpected: hidden",
        "TimeoutError: locator.click: Timeout 500ms exceeded.\nCall log:\n  - waiting for locator('#buy')\n",
        "TimeoutError: locator.click: Timeout 500ms exceeded.\nCall log:\n  - waiting for locator('#sell')\n",
        "TimeoutError: locator.fill: Timeout 500ms exceeded.\nCall log:\n  - waiting for locator('#buy')\n",
        "RuntimeError: database is not up",
        "ValueError: database is not up",
        "GET /api/orders/17 answered 500",
        "GET /api/customers/17 answered 500",
        "AssertionError: assert 'a' == 'b'",
        "AssertionError: assert 'a' == 'c'",
        "AssertionError: assert 'a' != 'c'",
        "expected:<[a]> but was:<b>",
        "expected:<[c]> but was:<b>",
        "expect(3).toBe(2)",
        "expect(41).toBe(42)",
        "Error: expect(received).toBe(expected) // Object.is equality\n\nExpected: 2\nReceived: 3",
        "Error: expect(received).toBe(expected) // Object.is equality\n\nExpected: 42\nReceived: 41",
        "AssertionError: assert 404 == 200",
        "AssertionError: assert 404 == 201",
        "java.lang.AssertionError: expected:<1> but was:<0>",
        "java.lang.AssertionError: expected:<2> but was:<0>",
        "Expected values to be strictly equal:\n\n23660 !== 10",
        "Expected values to be strictly equal:\n\n23660 !== 12",
    ];
    let mut by_fingerprint = std::collections::HashMap::new();
    for text in errors {
        let class = classify(&error(text)).unwrap();
        if let Some(other) = by_fingerprint.insert(class.fingerprint, text) {
            panic!("one fingerprint for two errors:\n{other}\n---\n{text}");
        }
    }
}

fn class(message: &str, stack: &str) -> assay_domain::signature::ErrorClass {
    classify(&ErrorDetail {
        message: Some(message.to_owned()).filter(|message| !message.is_empty()),
        stack: Some(stack.to_owned()).filter(|stack| !stack.is_empty()),
        ..ErrorDetail::default()
    })
    .unwrap()
}

#[test]
fn small_numbers_in_received_values_are_not_distinguished() {
    let [one, other] =
        [3, 7].map(|actual| class(&format!("expected:<1> but was:<{actual}>"), "").fingerprint);
    assert_eq!(one, other);
}

#[test]
fn an_error_without_words_is_distinguished_by_its_first_own_frame() {
    use assay_domain::signature::Category;
    let stack = |head: &str, class: &str, line: u32| {
        format!(
            "{head}\n\tat org.junit.Assert.fail(Assert.java:{line})\n\tat org.shop.{class}.total({class}.java:{line})\n\
             \tat java.lang.Thread.run(Thread.java:{line})"
        )
    };
    for (message, head, category) in [
        ("", "java.lang.AssertionError", Category::Assertion),
        (
            "java.lang.AssertionError",
            "java.lang.AssertionError",
            Category::Assertion,
        ),
        (
            "expected:<1> but was:<0>",
            "java.lang.AssertionError: expected:<1> but was:<0>",
            Category::Assertion,
        ),
        ("", "java.util.concurrent.TimeoutException", Category::Timeout),
        ("", "java.lang.IllegalStateException", Category::Crash),
    ] {
        let of = |test: &str, line| class(message, &stack(head, test, line));
        let (one, moved, other) = (of("OrderTest", 3), of("OrderTest", 9), of("BasketTest", 3));
        assert_eq!(one.fingerprint, moved.fingerprint, "a line moves with every edit");
        assert_ne!(one.fingerprint, other.fingerprint, "{head}");
        assert!(one.title.ends_with(" · OrderTest.total"), "{}", one.title);
        assert_eq!(one.category, category, "{head}");
    }
    let of = |test: &str| {
        class(
            "total expected:<1> but was:<0>",
            &stack("java.lang.AssertionError", test, 3),
        )
    };
    assert_eq!(of("OrderTest").fingerprint, of("BasketTest").fingerprint);
}

#[test]
fn thread_dumps_are_ignored() {
    let dump = |tid: u32| {
        format!(
            "Timed out waiting for condition. Thread diagnostics:\nTimestamp: 2021-08-15 12:56:02,067\n\n\
             \"Handler#{tid}\" daemon prio=9 tid={tid} runnable\njava.lang.Thread.State: RUNNABLE\n\
             \"worker {tid}\" prio=5 tid={tid} in Object.wait()\n        at sun.misc.Unsafe.park(Native Method)"
        )
    };
    let other = dump(3).replace("worker", "pool-of-others");
    let [one, other] = [dump(4), other].map(|text| class(&text, ""));
    assert_eq!(one.fingerprint, other.fingerprint);
    assert_eq!(one.title, "Timed out waiting for condition.");
    assert_eq!(one.category, assay_domain::signature::Category::Timeout);
}

#[test]
fn mocks_are_assertions_and_a_taken_port_is_the_network() {
    use assay_domain::signature::Category;
    for (text, category) in [
        (
            "Wanted but not invoked:\norder.save();\n-> at OrderTest.saves(OrderTest.java:9)",
            Category::Assertion,
        ),
        (
            "org.mockito.exceptions.verification.TooManyActualInvocations: \norder.save();\nWanted 1 time:",
            Category::Assertion,
        ),
        (
            "java.net.BindException: Address already in use",
            Category::Network,
        ),
    ] {
        assert_eq!(class(text, "").category, category, "{text}");
    }
}
