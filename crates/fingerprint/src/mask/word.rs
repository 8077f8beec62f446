//! Masks words, numbers and random tokens.

/// Writes a number, including a minus sign that is not a hyphen.
pub(super) fn number(part: &str, out: &mut String) -> usize {
    if out.ends_with('-') {
        let before = out.get(..out.len() - 1).and_then(|head| head.chars().next_back());
        if before.is_none_or(|c| {
            c.is_whitespace() || matches!(c, '(' | '[' | '{' | '=' | ':' | ',' | '<' | '$' | '"' | '\'')
        }) {
            out.pop();
        }
    }
    out.push_str("<n>");
    part.len()
}

/// Writes the first word of `part` with masked numbers and returns its length.
pub(super) fn first(part: &str, out: &mut String) -> usize {
    let length = part.bytes().take_while(u8::is_ascii_alphanumeric).count();
    let Some(word) = part.get(..length).filter(|word| !word.is_empty()) else {
        return part.chars().next().map_or(0, |mark| {
            out.push(mark);
            mark.len_utf8()
        });
    };
    if word.bytes().all(|b| b.is_ascii_digit()) {
        return number(word, out);
    }
    if is_hexadecimal(word) || is_exponential(word) || (length >= 5 && alternations(word) >= 3) {
        out.push_str("<n>");
    } else {
        without_digits(word, out);
    }
    length
}

/// Whether a word is hexadecimal: at least six characters if one is a decimal digit, else at least eight.
pub(super) fn is_hexadecimal(word: &str) -> bool {
    let needed = if word.bytes().any(|b| b.is_ascii_digit()) {
        6
    } else {
        8
    };
    word.len() >= needed && word.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Whether a token looks random: letters and digits, or lower-case and capital letters, alternate often. A token of
/// capital letters and at least two digits looks random, too.
pub(super) fn is_random(token: &str) -> bool {
    let token = token.trim_end_matches('=');
    let mut pieces = token.split(['-', '_', '+']).filter(|piece| !piece.is_empty());
    // Plain words and ids are masked one by one, so that a prefix such as `tx-` remains before every id.
    if pieces.any(|piece| is_plain_word(piece) || (is_hexadecimal(piece) && piece != token)) {
        return false;
    }
    let letters = token.bytes().filter(u8::is_ascii_alphabetic).count();
    let case_changes = token
        .as_bytes()
        .windows(2)
        .filter(|pair| match pair {
            [a, b] => {
                a.is_ascii_alphabetic()
                    && b.is_ascii_alphabetic()
                    && a.is_ascii_uppercase() != b.is_ascii_uppercase()
            }
            _ => false,
        })
        .count();
    let digits = token.bytes().filter(u8::is_ascii_digit).count();
    let capitals_only = !token.bytes().any(|b| b.is_ascii_lowercase());
    alternations(token) >= 3
        || (letters >= 16 && case_changes * 3 >= letters && has_balanced_case(token))
        || (letters >= 12 && digits >= 1 && has_balanced_case(token))
        || (digits >= 2 && capitals_only)
}

/// `session`, `Order`, `API`: at least three letters in a usual case, and not eight or more hexadecimal digits.
fn is_plain_word(piece: &str) -> bool {
    let rest = piece.bytes().skip(1);
    piece.len() >= 3
        && piece.bytes().all(|b| b.is_ascii_alphabetic())
        && !is_hexadecimal(piece)
        && (rest.clone().all(|b| b.is_ascii_lowercase()) || piece.bytes().all(|b| b.is_ascii_uppercase()))
}

/// Whether neither capital nor lower-case letters are more than twice as frequent as the others, unlike in most
/// camel-case names.
fn has_balanced_case(token: &str) -> bool {
    let capitals = token.bytes().filter(u8::is_ascii_uppercase).count();
    let small = token.bytes().filter(u8::is_ascii_lowercase).count();
    capitals * 2 >= small && small * 2 >= capitals
}

fn is_exponential(word: &str) -> bool {
    word.split_once(['e', 'E']).is_some_and(|(mantissa, exponent)| {
        [mantissa, exponent]
            .iter()
            .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
    })
}

/// The number of changes between letters and digits.
fn alternations(word: &str) -> usize {
    word.as_bytes()
        .windows(2)
        .filter(|pair| match pair {
            [a, b] => {
                a.is_ascii_alphanumeric()
                    && b.is_ascii_alphanumeric()
                    && a.is_ascii_digit() != b.is_ascii_digit()
            }
            _ => false,
        })
        .count()
}

fn without_digits(word: &str, out: &mut String) {
    let mut in_number = false;
    for next in word.chars() {
        if !next.is_ascii_digit() {
            out.push(next);
        } else if !in_number {
            out.push_str("<n>");
        }
        in_number = next.is_ascii_digit();
    }
}
