//! A message as plain text, for files, mail and terminals.

use std::fmt::Write as _;

use crate::{Content, Group};

/// The subject: the project and the headline.
pub fn subject(content: &Content) -> String {
    format!("{}: {}", content.project, content.headline)
}

/// The whole message, without a line break at its end.
pub fn plain(content: &Content) -> String {
    let mut text = subject(content);
    for group in &content.groups {
        write_group(&mut text, group, content);
    }
    if content.more > 0 {
        let _ = write!(text, "\n- {}", more_causes(content.more));
    }
    if let Some(url) = &content.url {
        let _ = write!(text, "\n{url}");
    }
    text
}

fn write_group(text: &mut String, group: &Group, content: &Content) {
    // A headline of one group says its sentence.
    let is_said = content.groups.len() == 1 && content.headline.starts_with(&group.sentence);
    if !is_said {
        let _ = write!(text, "\n- {}", group.sentence);
    }
    if let Some(error) = &group.error {
        let _ = write!(text, "\n    {error}");
    }
    for test in &group.tests {
        let _ = write!(text, "\n    · {test}");
    }
    if group.more > 0 {
        let _ = write!(text, "\n    · and {} more", group.more);
    }
}

/// The number of further causes in words.
pub fn more_causes(number: usize) -> String {
    match number {
        1 => "and 1 more cause".to_owned(),
        _ => format!("and {number} more causes"),
    }
}
