//! The messages of a test's keywords: what they logged, and the files that they name.
//!
//! Libraries log a screenshot or a video as HTML, such as `<a href="shot-1.png"><img src="shot-1.png"></a>`.

use std::{borrow::Cow, sync::LazyLock};

use percent_encoding::percent_decode_str;
use regex::Regex;

use crate::{
    attempt_output::Collected,
    input::Input,
    limits, memory, paths,
    text::pattern,
    xml::{Tag, append, decode},
};

/// A message that is being read.
#[derive(Default)]
pub(super) struct Message<'a> {
    is_html: bool,
    /// Whether it is only for the library's authors, or is the error itself.
    is_left_out: bool,
    text: Cow<'a, str>,
}

impl<'a> Message<'a> {
    pub(super) fn begin(tag: &Tag<'a, '_>) -> Self {
        Self {
            // `yes` until version 3.
            is_html: matches!(&*tag.value("html"), "true" | "yes"),
            is_left_out: matches!(&*tag.value("level"), "TRACE" | "FAIL"),
            text: Cow::Borrowed(""),
        }
    }

    pub(super) fn append(&mut self, text: Cow<'a, str>) {
        append(&mut self.text, text);
    }
}

/// The messages of a test.
#[derive(Default)]
pub(super) struct Log {
    /// What is linked or shown, each once.
    links: Vec<String>,
    printed: Collected,
}

static LINK: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r#"(?i)<(?:a|img|video|audio|source)\s[^<>]*?\b(?:href|src)=(?:"([^"]*)"|'([^']*)')"#)
});
static TAG: LazyLock<Regex> = LazyLock::new(|| pattern(r"<[a-zA-Z/!][^<>]*>"));

impl Log {
    pub(super) fn add(&mut self, message: &Message<'_>) {
        if message.is_html {
            for found in LINK.captures_iter(&message.text) {
                let link = found
                    .get(1)
                    .or_else(|| found.get(2))
                    .map_or("", |link| link.as_str());
                self.add_link(&decode(link));
            }
        }
        if message.is_left_out {
            return;
        }
        let text = match message.is_html {
            true => Cow::Owned(decode(&TAG.replace_all(&message.text, "")).into_owned()),
            false => Cow::Borrowed(&*message.text),
        };
        let text = text.trim_end();
        if !text.trim().is_empty() {
            self.printed.print(text);
            self.printed.print("\n");
        }
    }

    /// Keeps a link to a file or an address. A picture within the page is no file.
    fn add_link(&mut self, link: &str) {
        let link = link.trim();
        let path = match link.get(..7) {
            Some(scheme) if scheme.eq_ignore_ascii_case("file://") => link.get(7..).unwrap_or_default(),
            _ => link,
        };
        let has_scheme = path.split_once(':').is_some_and(|(scheme, _)| {
            scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
        });
        if has_scheme && !paths::is_address(path) {
            return;
        }
        let path = match has_scheme {
            true => Cow::Borrowed(path),
            // A link is a URL: `my%20shot.png#left` is a place in the file `my shot.png`.
            false => {
                percent_decode_str(path.split(['#', '?']).next().unwrap_or_default()).decode_utf8_lossy()
            }
        };
        let is_known = self.links.iter().any(|known| *known == path);
        if !path.is_empty() && !is_known && self.links.len() < limits::ATTACHMENTS {
            memory::charge(path.len());
            self.links.push(path.into_owned());
        }
    }

    /// The files, which are beside the report, and the text.
    pub(super) fn collected(self, input: &Input<'_>) -> Collected {
        let mut collected = self.printed;
        let folder = paths::folder(input.name);
        for link in &self.links {
            let path = match folder.is_empty() || paths::is_address(link) {
                true => link.clone(),
                false => paths::join(folder, link),
            };
            collected.file(input, None, None, Some(&path));
        }
        collected
    }
}
