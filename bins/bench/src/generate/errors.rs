//! Error texts of failed attempts, as test frameworks write them, with changing values.

use assay_domain::attempt::{AttemptStatus, ErrorDetail, Location};
use rand::{RngExt as _, rngs::StdRng};

use super::plan::TestPlan;

const PARTS: [&str; 40] = [
    "submit",
    "total",
    "cart-badge",
    "email",
    "password",
    "search-box",
    "result-list",
    "next-page",
    "avatar",
    "menu",
    "dialog",
    "toast",
    "price",
    "quantity",
    "coupon",
    "address",
    "card-number",
    "expiry",
    "cvc",
    "save",
    "delete",
    "confirm",
    "cancel",
    "filter",
    "sort",
    "date-from",
    "date-to",
    "export",
    "import",
    "upload",
    "preview",
    "share",
    "copy-link",
    "language",
    "theme",
    "logout",
    "help",
    "status",
    "history",
    "summary",
];

/// An error of this test. Mostly the test's own, sometimes a network's.
pub(super) fn error(test: &TestPlan, outage: bool, random: &mut StdRng) -> (AttemptStatus, ErrorDetail) {
    let kind = if outage || random.random_bool(0.05) {
        11
    } else {
        test.error % 12
    };
    let part = usize::try_from(test.error / 12 % 40)
        .ok()
        .and_then(|place| PARTS.get(place))
        .copied();
    let part = part.unwrap_or("submit");
    let (one, two) = (
        random.random_range(1..9_999_u32),
        random.random_range(1..9_999_u32),
    );
    let (status, message) = match kind {
        0 => (
            AttemptStatus::TimedOut,
            format!(
                "TimeoutError: locator.click: Timeout {}000ms exceeded.\nCall log:\n  - waiting for getByTestId('{part}')\n  \
                 - locator resolved to <button id=\"b{one}\">…</button>\n  - attempting click action",
                one % 60 + 1
            ),
        ),
        1 => (
            AttemptStatus::Failed,
            format!(
                "Error: expect(locator).toHaveText(expected)\n\nLocator: getByTestId('{part}')\nExpected string: \"{one}.00 €\"\n\
                 Received string: \"{two}.00 €\""
            ),
        ),
        2 => (
            AttemptStatus::Failed,
            format!(
                "Error: expect(received).toBe(expected) // Object.is equality in {part}\n\nExpected: {one}\nReceived: {two}"
            ),
        ),
        3 => (
            AttemptStatus::Failed,
            format!("AssertionError: expected {part} to have {one} entries but got {two}"),
        ),
        4 => (
            AttemptStatus::Failed,
            format!("TypeError: Cannot read properties of undefined (reading '{part}')"),
        ),
        5 => (
            AttemptStatus::Failed,
            format!(
                "Error: strict mode violation: getByRole('button', {{ name: '{part}' }}) resolved to {} elements",
                one % 5 + 2
            ),
        ),
        6 => (
            AttemptStatus::TimedOut,
            format!(
                "Test timeout of {}0000ms exceeded while waiting for the {part} of order 8f{one:04x}-{two:04x}",
                one % 9 + 1
            ),
        ),
        7 => (
            AttemptStatus::Failed,
            format!(
                "java.lang.NullPointerException: {part} is null\n\tat com.example.Page{}.load(Page.java:{two})",
                one % 7
            ),
        ),
        8 => (
            AttemptStatus::Failed,
            format!(
                "assert response.status_code == 200\nE   assert 503 == 200\nE    +  where 503 = <Response of /{part}/{one}>.status_code"
            ),
        ),
        9 => (
            AttemptStatus::Failed,
            format!(
                "Error: expect(page).toHaveURL(expected)\n\nExpected pattern: /{part}/\nReceived string: \"https://shop.example/{part}?id={one}\""
            ),
        ),
        10 => (
            AttemptStatus::Failed,
            format!(
                "deadlock detected: process {one} waits for ShareLock on transaction {two}; table \"{part}\""
            ),
        ),
        _ => (
            AttemptStatus::Failed,
            format!(
                "Error: connect ECONNREFUSED 10.0.{}.{}:5432",
                one % 256,
                two % 256
            ),
        ),
    };
    let line = test.error % 400 + 1;
    let detail = ErrorDetail {
        stack: Some(format!(
            "{}\n    at /home/runner/work/shop/shop/{}:{line}:17\n    at step (/home/runner/work/shop/shop/node_modules/runner/lib/worker.js:{}:9)",
            message.lines().next().unwrap_or_default(),
            test.file,
            one % 300
        )),
        snippet: Some(format!(
            "  {} |   await page.goto('/');\n> {line} |   await page.getByTestId('{part}').click();\n     |   ^",
            line.saturating_sub(1)
        )),
        location: Some(Location {
            file: test.file.clone(),
            line: Some(line),
            column: Some(17),
        }),
        message: Some(message),
    };
    (status, detail)
}
