//! `report`: writes the measurements into the documentation, between its marks.

use std::{fs, path::Path};

use anyhow::{Context as _, bail};

use crate::{options::Options, progress::step, section::Section, targets};

/// The subcommands whose results are saved.
pub(crate) const SECTIONS: [&str; 7] = [
    "generate", "load", "import", "memory", "growth", "shapes", "prune",
];

/// Replaces everything between the marks `<!-- bench:ID -->` and `<!-- /bench:ID -->` of a document.
pub(crate) fn report(options: &Options, document: &Path) -> anyhow::Result<usize> {
    let mut text = fs::read_to_string(document).with_context(|| format!("reading {}", document.display()))?;
    let mut written = 0;
    let mut load = None;
    for name in SECTIONS {
        let Some(section) = Section::kept(&options.dir(), name)? else {
            step(&format!("`{name}` was not measured: its tables stay as they are"));
            continue;
        };
        if !section.machine.release {
            step(&format!("`{name}` was measured with a debug build"));
        }
        let told = format!("{}\n\n```sh measures\n{}\n```\n", section.told(), section.command);
        written += usize::from(replace(&mut text, &format!("{name}-machine"), &told)?);
        for table in &section.tables {
            written += usize::from(replace(&mut text, &table.id, &table.markdown())?);
        }
        if name == "load" {
            load = Some(section);
        }
    }
    if load.is_some() {
        written += usize::from(replace(
            &mut text,
            "targets",
            &targets::table(load.as_ref()).markdown(),
        )?);
    }
    fs::write(document, text).with_context(|| format!("writing {}", document.display()))?;
    Ok(written)
}

/// Puts a text between the marks of this id. False where the document has none.
fn replace(document: &mut String, id: &str, text: &str) -> anyhow::Result<bool> {
    let (begin, end) = (format!("<!-- bench:{id} -->"), format!("<!-- /bench:{id} -->"));
    let Some((before, rest)) = document.split_once(&begin) else {
        return Ok(false);
    };
    let Some((_, after)) = rest.split_once(&end) else {
        bail!("the document has {begin} without {end}");
    };
    *document = format!("{before}{begin}\n{}\n{end}{after}", text.trim_end());
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_between_the_marks_changes() {
        let mut text = "a\n<!-- bench:x -->\nold\n<!-- /bench:x -->\nb".to_owned();
        assert!(replace(&mut text, "x", "new\n").unwrap());
        assert_eq!(text, "a\n<!-- bench:x -->\nnew\n<!-- /bench:x -->\nb");
        assert!(!replace(&mut text, "y", "new").unwrap());
        assert!(replace(&mut "<!-- bench:x -->".to_owned(), "x", "new").is_err());
    }
}
