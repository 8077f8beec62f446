//! Walks the structure of a JSON text without its values; works for texts that are cut off or invalid.

/// The keys of the first JSON object of a text with their depth (1: its own). Values are not checked, so the text may
/// be cut off or invalid.
pub(crate) fn keys(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut walk = Walk::new(text);
    std::iter::from_fn(move || {
        loop {
            match walk.step()? {
                Step::Key(key) => return Some((walk.open.len(), key)),
                Step::Close if walk.open.is_empty() => return None,
                Step::Close | Step::Other => {}
            }
        }
    })
}

/// The length of the object at the beginning of a text; none if the object is not closed.
pub(super) fn length(text: &str) -> Option<usize> {
    let mut walk = Walk::new(text);
    loop {
        if matches!(walk.step()?, Step::Close) && walk.open.is_empty() {
            return Some(walk.at);
        }
    }
}

/// The text up to the last whole element of an array under the key. Everything that is open there is closed.
pub(super) fn close_at_last_element(text: &str, key: &str) -> Option<String> {
    let mut walk = Walk::new(text);
    let mut end = None;
    while let Some(step) = walk.step() {
        let in_array = || {
            walk.open
                .last()
                .is_some_and(|frame| frame.close == b']' && frame.key == key)
        };
        if matches!(step, Step::Close) && in_array() {
            end = Some(walk.at);
        }
    }
    let mut closed = text.get(..end?)?.to_owned();
    // A second walk finds the open brackets there. Recording them at each element would take quadratic time.
    let mut walk = Walk::new(&closed);
    while walk.step().is_some() {}
    let open: Vec<u8> = walk.open.iter().map(|frame| frame.close).collect();
    closed.extend(open.into_iter().rev().map(char::from));
    Some(closed)
}

/// A walk over the structure of a JSON text.
struct Walk<'a> {
    text: &'a str,
    at: usize,
    open: Vec<Frame<'a>>,
    /// The latest string in the innermost object that a `:` follows.
    key: &'a str,
}

struct Frame<'a> {
    close: u8,
    /// The key of the current value; empty for an element of an array.
    key: &'a str,
}

enum Step<'a> {
    Key(&'a str),
    Close,
    Other,
}

impl<'a> Walk<'a> {
    const fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            open: Vec::new(),
            key: "",
        }
    }

    fn step(&mut self) -> Option<Step<'a>> {
        let byte = *self.text.as_bytes().get(self.at)?;
        self.at += 1;
        Some(match byte {
            b'{' | b'[' => {
                let close = if byte == b'{' { b'}' } else { b']' };
                self.open.push(Frame {
                    close,
                    key: std::mem::take(&mut self.key),
                });
                Step::Other
            }
            b'}' | b']' => {
                self.open.pop();
                self.key = "";
                Step::Close
            }
            b'"' => {
                let string = self.string()?;
                let rest = self.text.get(self.at..)?.trim_start();
                if rest.starts_with(':') {
                    self.key = string;
                    Step::Key(string)
                } else {
                    Step::Other
                }
            }
            b',' => {
                self.key = "";
                Step::Other
            }
            _ => Step::Other,
        })
    }

    /// The rest of a string after its opening quote; none if the text ends inside it.
    fn string(&mut self) -> Option<&'a str> {
        let begin = self.at;
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at)? {
                b'"' => {
                    self.at += 1;
                    return self.text.get(begin..self.at - 1);
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
    }
}
