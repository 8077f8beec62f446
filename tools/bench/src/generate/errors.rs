//! Error texts of failed attempts in the form of test frameworks, with changing values.

use assay_domain::attempt::{AttemptStatus, ErrorDetail, Location};
use rand::{RngExt as _, rngs::StdRng};

use super::plan::TestPlan;

/// The parts of the product under test, which distinguish the errors.
const PARTS: &str = "submit total cart-badge email password search-box result-list next-page avatar menu dialog \
    toast price quantity coupon address card-number expiry cvc save delete confirm cancel filter \
    sort date-from date-to export import upload preview share copy-link language theme logout help \
    status history summary";

/// The kinds of errors; the last is a network error. `{part}` belongs to the test, the other placeholders change.
const KINDS: [&str; 12] = [
    "TimeoutError: locator.click: Timeout {few}000ms exceeded.\nCall log:\n  - waiting for getByTestId('{part}')\n  \
     - locator resolved to <button id=\"b{one}\">…</button>\n  - attempting click action",
    "Error: expect(locator).toHaveText(expected)\n\nLocator: getByTestId('{part}')\nExpected string: \"{one}.00 €\"\n\
     Received string: \"{two}.00 €\"",
    "Error: expect(received).toBe(expected) // Object.is equality in {part}\n\nExpected: {one}\nReceived: {two}",
    "AssertionError: expected {part} to have {one} entries but got {two}",
    "TypeError: Cannot read properties of undefined (reading '{part}')",
    "Error: strict mode violation: getByRole('button', { name: '{part}' }) resolved to {few} elements",
    "Test timeout of {few}0000ms exceeded while waiting for the {part} of order 8f{one}-{two}",
    "java.lang.NullPointerException: {part} is null\n\tat com.example.Page{few}.load(Page.java:{two})",
    "assert response.status_code == 200\nE   assert 503 == 200\nE    +  where 503 = <Response of /{part}/{one}>.status_code",
    "Error: expect(page).toHaveURL(expected)\n\nExpected pattern: /{part}/\nReceived string: \"https://shop.example/{part}?id={one}\"",
    "deadlock detected: process {one} waits for ShareLock on transaction {two}; table \"{part}\"",
    "Error: connect ECONNREFUSED 10.0.{few}.1:5432",
];

/// An error of this test: usually the test's own, sometimes a network error.
pub(super) fn error(test: &TestPlan, outage: bool, random: &mut StdRng) -> (AttemptStatus, ErrorDetail) {
    let kind = if outage || random.random_bool(0.05) {
        11
    } else {
        usize::try_from(test.error % 12).unwrap_or(0)
    };
    let part = usize::try_from(test.error / 12 % 40).unwrap_or(0);
    let part = PARTS.split(' ').nth(part).unwrap_or("submit");
    let (one, two) = (
        random.random_range(1..9_999_u32),
        random.random_range(1..9_999_u32),
    );
    let message = KINDS
        .get(kind)
        .map_or("", |kind| *kind)
        .replace("{part}", part)
        .replace("{one}", &one.to_string())
        .replace("{two}", &two.to_string())
        .replace("{few}", &(one % 9 + 1).to_string());
    let status = if matches!(kind, 0 | 6) {
        AttemptStatus::TimedOut
    } else {
        AttemptStatus::Failed
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
