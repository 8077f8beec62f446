//! Retries that a tool writes into the name of a test, as SpecFlow+ Runner does: `Pays by card (retry #1)`.

/// The name without the number of a retry, and that number; 0 for a name without one. The test `gives up after 3
/// retries` and the test `retry #2` keep their names.
pub(crate) fn split(name: &str) -> (&str, u32) {
    retry(name.trim_end()).unwrap_or((name, 0))
}

fn retry(name: &str) -> Option<(&str, u32)> {
    let (rest, is_closed) = match name.strip_suffix(')') {
        Some(rest) => (rest, true),
        None => (name, false),
    };
    let bytes = rest.as_bytes();
    let last = bytes.iter().rposition(|byte| !byte.is_ascii_digit())?;
    if bytes.get(last) != Some(&b'#') {
        return None;
    }
    let before = rest.get(..=last)?;
    let number = rest
        .get(before.len()..)?
        .parse()
        .ok()
        .filter(|number| *number > 0)?;
    let before = before.strip_suffix("retry #")?;
    let before = before.strip_suffix(if is_closed { '(' } else { ' ' })?;
    let base = if is_closed {
        before
    } else {
        before.strip_suffix(',')?
    }
    .trim_end();
    (!base.is_empty()).then_some((base, number))
}

/// Sorts results by the numbers of their retries, because a tool that runs tests in parallel writes them in any order.
pub(crate) fn sort<T>(results: &mut [T], name: impl Fn(&T) -> &str) {
    if results.iter().any(|result| split(name(result)).1 > 0) {
        results.sort_by_key(|result| split(name(result)).1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_number_of_a_retry_at_the_end_is_split_off() {
        for (name, expected) in [
            ("Pays by card (retry #1)", ("Pays by card", 1)),
            ("Pays by card, retry #12", ("Pays by card", 12)),
            ("Pays(\"a\") (retry #2)", ("Pays(\"a\")", 2)),
            ("Pays by card", ("Pays by card", 0)),
            ("shows retry #2", ("shows retry #2", 0)),
            ("retry #2", ("retry #2", 0)),
            ("(retry #2)", ("(retry #2)", 0)),
            ("Pays (retry #0)", ("Pays (retry #0)", 0)),
            ("Pays (retry #1) again", ("Pays (retry #1) again", 0)),
            ("Pays (retries)", ("Pays (retries)", 0)),
        ] {
            assert_eq!(split(name), expected, "{name}");
        }
    }
}
