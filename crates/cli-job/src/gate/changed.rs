//! The list of changed files, as `git diff --name-only` writes it.

use std::{
    collections::BTreeSet,
    io::{self, Read},
};

/// Most bytes of the list.
const MOST_BYTES: u64 = 16 << 20;

/// A list of changed files that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum UnreadableList {
    /// Its rest would name files whose failed tests must not be excused.
    #[error("the list is longer than {most_mib} MiB; list only files of tests")]
    TooLong {
        /// The limit.
        most_mib: u64,
    },
    /// It could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The files that a list names.
///
/// # Errors
/// [`UnreadableList`] if it cannot be read or is longer than 16 MiB.
pub fn read(list: impl Read) -> Result<BTreeSet<String>, UnreadableList> {
    Ok(names_in(&read_list(list, MOST_BYTES)?))
}

/// Reads a list of at most `most` bytes. A longer list is an error: its rest would name files whose failed tests must
/// not be excused.
fn read_list(from: impl Read, most: u64) -> Result<Vec<u8>, UnreadableList> {
    let mut list = Vec::new();
    from.take(most + 1).read_to_end(&mut list)?;
    match u64::try_from(list.len()) {
        Ok(length) if length <= most => Ok(list),
        Ok(_) | Err(_) => Err(UnreadableList::TooLong { most_mib: most >> 20 }),
    }
}

/// The names in the output of `git diff --name-only`: one a line, or with `-z` each with a NUL after it.
fn names_in(list: &[u8]) -> BTreeSet<String> {
    let names: Vec<Vec<u8>> = match list.contains(&0) {
        true => list.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect(),
        false => list
            .split(|&byte| byte == b'\n')
            .map(|line| {
                let line = line.trim_ascii();
                unquoted(line).unwrap_or_else(|| line.to_vec())
            })
            .collect(),
    };
    names
        .iter()
        .map(|name| String::from_utf8_lossy(name.strip_prefix(b"./").unwrap_or(name)).into_owned())
        .filter(|name| !name.is_empty())
        .collect()
}

/// The name in a line that Git has quoted as a string of C. Git quotes a name with a quote, a control character, or a
/// byte beyond ASCII (`core.quotePath`). None for a line that is not quoted so.
fn unquoted(line: &[u8]) -> Option<Vec<u8>> {
    let mut rest = line.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let mut name = Vec::with_capacity(rest.len());
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            name.push(byte);
            continue;
        }
        let (&escape, after) = rest.split_first()?;
        rest = after;
        name.push(match escape {
            b'a' => 0x07,
            b'b' => 0x08,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 0x0b,
            b'f' => 0x0c,
            b'r' => b'\r',
            b'"' | b'\\' => escape,
            b'0'..=b'3' => {
                let (&[middle, low], after) = rest.split_first_chunk()?;
                rest = after;
                let digits = [escape, middle, low];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 8).ok()?
            }
            _ => return None,
        });
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_that_git_quotes_are_unquoted() {
        let list = concat!(
            "./tests/plain.ts\n",
            r#""tests/\303\274ber \"uns\" \\ \a\b\t\n\v\f\r\001.ts""#,
            "\r\n\n",
            "  tests/größe.ts\n",
            "\"tests/not \\quoted\"\n",
            "\"tests/cut \\30\"",
        );
        let expected = [
            "tests/plain.ts",
            "tests/über \"uns\" \\ \u{7}\u{8}\t\n\u{b}\u{c}\r\u{1}.ts",
            "tests/größe.ts",
            "\"tests/not \\quoted\"",
            "\"tests/cut \\30\"",
        ];
        assert_eq!(names_in(list.as_bytes()), expected.map(str::to_owned).into());
    }

    #[test]
    fn names_with_a_nul_after_them_are_verbatim() {
        let list = "tests/two\nlines.ts\0\"tests/\\303\\274.ts\"\0 tests/größe.ts\0";
        let expected = [
            "tests/two\nlines.ts",
            "\"tests/\\303\\274.ts\"",
            " tests/größe.ts",
        ];
        assert_eq!(names_in(list.as_bytes()), expected.map(str::to_owned).into());
    }

    #[test]
    fn a_list_over_the_limit_is_refused() {
        let list = vec![b'a'; (1 << 20) + 1];
        let refused = read_list(&list[..], 1 << 20).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the list is longer than 1 MiB; list only files of tests"
        );
        assert_eq!(read_list(&list[1..], 1 << 20).unwrap().len(), 1 << 20);
    }
}
