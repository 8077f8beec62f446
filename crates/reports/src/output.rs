//! What a test printed, within a limit.

use crate::limits;

/// The beginning and the end of an output.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeadAndTail {
    head: String,
    tail: String,
    /// Whether text between head and tail was dropped.
    is_shortened: bool,
}

impl HeadAndTail {
    pub(crate) fn push(&mut self, text: &str) {
        if self.tail.is_empty() && self.head.len() + text.len() <= limits::STACK {
            self.head.push_str(text);
            return;
        }
        self.tail.push_str(text);
        if self.tail.len() > 2 * limits::STACK {
            let cut = self.tail.len() - limits::STACK;
            let cut = (cut..=self.tail.len())
                .find(|at| self.tail.is_char_boundary(*at))
                .unwrap_or(cut);
            self.tail = self.tail.split_off(cut);
            self.is_shortened = true;
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn text(&self) -> String {
        let gap = if self.is_shortened { "\n…\n" } else { "" };
        format!("{}{gap}{}", self.head, self.tail)
    }
}
