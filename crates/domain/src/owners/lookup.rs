//! The owners of a test's file, by an owners file in the grammar of GitHub's CODEOWNERS.
//!
//! A report names a file relative to some folder of the checkout, which may not be the root. So a file of a report means
//! the file with exactly its path, else every file of the checkout that ends with it. It has an owner only if all of these
//! have the same owners.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use crate::owners::{OwnersFile, Ownership};

use super::{Candidates, Rules};

/// The places of an owners file in a checkout. The first one that exists counts.
pub const PLACES: [&str; 4] = [
    ".assay/owners",
    ".github/CODEOWNERS",
    "CODEOWNERS",
    "docs/CODEOWNERS",
];

/// The longest time that one lookup matches files with rules. The owners of further files are unclear, so that no rules
/// take a page away: a rule with many stars takes microseconds for each file, and there may be thousands of both.
const LONGEST: Duration = Duration::from_secs(2);

/// The owners of files.
#[derive(Debug, Default)]
pub struct Owners {
    rules: Rules,
    candidates: Candidates,
}

impl Owners {
    /// The owners by this file. A file that is too large for rules owns nothing.
    pub fn of_file(file: &OwnersFile) -> Self {
        Self {
            rules: Rules::parse(&file.text),
            candidates: Candidates::of(&file.files),
        }
    }

    /// The rules of the owners file.
    pub const fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Whether no file has an owner.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The approximate memory use in bytes.
    pub fn bytes(&self) -> usize {
        self.rules.bytes() + self.candidates.bytes()
    }

    /// Looks up many files, each once.
    pub fn lookup(&self) -> Lookup<'_> {
        Lookup {
            owners: self,
            known: HashMap::new(),
            left: LONGEST,
        }
    }

    /// The owners of a file as a report names it. A test without a file has none.
    pub fn of(&self, file: Option<&str>) -> Ownership {
        self.lookup().of(file).clone()
    }

    /// The same until a deadline.
    fn until(&self, deadline: Instant, file: Option<&str>) -> Ownership {
        let file = file.filter(|_| !self.is_empty()).and_then(relative);
        let Some(file) = file else {
            return Ownership::default();
        };
        let meant = self.candidates.meant(&file);
        let mut owners: Option<&[String]> = None;
        for path in meant.paths {
            if Instant::now() >= deadline {
                return ambiguous();
            }
            let of_path = self.rules.owners(&path);
            match owners {
                Some(owners) if owners != of_path => return ambiguous(),
                Some(_) => {}
                None => owners = Some(of_path),
            }
        }
        if meant.has_more {
            return ambiguous();
        }
        Ownership {
            owners: owners.unwrap_or_default().to_vec(),
            owners_ambiguous: false,
        }
    }
}

const fn ambiguous() -> Ownership {
    Ownership {
        owners: Vec::new(),
        owners_ambiguous: true,
    }
}

/// A path with `/` and without `.`; none if it is absolute or leaves its folder.
fn relative(path: &str) -> Option<String> {
    let path = path.replace('\\', "/");
    let has_drive = path.as_bytes().get(1) == Some(&b':');
    if path.starts_with('/') || has_drive || path.split('/').any(|part| part == "..") {
        return None;
    }
    let parts: Vec<&str> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    (!parts.is_empty()).then(|| parts.join("/"))
}

/// Looks up many files, each once.
#[derive(Debug)]
pub struct Lookup<'a> {
    owners: &'a Owners,
    known: HashMap<String, Ownership>,
    /// The time that is left.
    left: Duration,
}

impl Lookup<'_> {
    /// The owners of a file, as [`Owners::of`] returns them.
    pub fn of(&mut self, file: Option<&str>) -> &Ownership {
        let owners = self.owners;
        let key = file.unwrap_or_default();
        if !self.known.contains_key(key) {
            let began = Instant::now();
            let ownership = owners.until(began + self.left, file);
            self.left = self.left.saturating_sub(began.elapsed());
            self.known.insert(key.to_owned(), ownership);
        }
        self.known.entry(key.to_owned()).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owners(text: &str, files: &str) -> Owners {
        Owners::of_file(&OwnersFile {
            path: "CODEOWNERS".to_owned(),
            text: text.to_owned(),
            files: files.to_owned(),
        })
    }

    fn names(ownership: &Ownership) -> String {
        match ownership.owners_ambiguous {
            true => "ambiguous".to_owned(),
            false => ownership.owners.join(" "),
        }
    }

    #[test]
    fn a_file_of_a_report_is_found_by_the_end_of_its_path() {
        let owners = owners(
            "/packages/web/ @web\n/packages/api/ @api\n/src/ @root\n",
            "src/exact.test.ts\npackages/web/src/exact.test.ts\npackages/web/src/cart.test.ts\npackages/web/src/pay.test.ts\npackages/api/src/pay.test.ts\nREADME.md",
        );
        for (file, expected) in [
            ("packages/web/src/cart.test.ts", "@web"),
            ("src/cart.test.ts", "@web"),
            ("cart.test.ts", "@web"),
            (".\\src\\cart.test.ts", "@web"),
            // Part of a name is not the end of a path.
            ("art.test.ts", "ambiguous"),
            // Both packages have it.
            ("src/pay.test.ts", "ambiguous"),
            ("packages/api/src/pay.test.ts", "@api"),
            ("README.md", ""),
            // An exact path is that file, whatever else ends with it.
            ("src/exact.test.ts", "@root"),
            // A new file of one package, and of a folder that both have.
            ("packages/web/src/new.test.ts", "@web"),
            ("web/src/new.test.ts", "@web"),
            ("src/new.test.ts", "ambiguous"),
            // Paths that are not relative name no file of the checkout.
            ("/packages/web/src/cart.test.ts", ""),
            ("C:\\packages\\web\\src\\cart.test.ts", ""),
            ("../web/src/cart.test.ts", ""),
            ("", ""),
        ] {
            assert_eq!(names(&owners.of(Some(file))), expected, "{file}");
        }
        assert_eq!(owners.of(None), Ownership::default());
    }

    #[test]
    fn files_with_the_same_owners_are_not_ambiguous() {
        let owners = owners("* @all\n", "a/x.ts\nb/x.ts");
        assert_eq!(names(&owners.of(Some("x.ts"))), "@all");
    }

    #[test]
    fn without_a_list_of_files_a_path_counts_from_the_root() {
        let owners = owners("/src/ @core\n", "");
        assert_eq!(names(&owners.of(Some("src/a.rs"))), "@core");
        assert_eq!(names(&owners.of(Some("web/src/a.rs"))), "");
    }

    #[test]
    fn more_files_of_one_name_than_are_compared_are_ambiguous() {
        let files: Vec<String> = (0..=crate::owners::candidates::MOST)
            .map(|number| format!("{number}/x.ts"))
            .collect();
        let owners = owners("* @all\n", &files.join("\n"));
        assert_eq!(names(&owners.of(Some("x.ts"))), "ambiguous");
        assert_eq!(names(&owners.of(Some("7/x.ts"))), "@all");
    }

    #[test]
    fn a_lookup_ends_with_its_time() {
        let owners = owners("* @all\n", "a/x.ts\nb/x.ts\nc/y.ts");
        let mut lookup = owners.lookup();
        assert_eq!(names(lookup.of(Some("x.ts"))), "@all");
        assert!(lookup.left < LONGEST);
        lookup.left = Duration::ZERO;
        assert_eq!(names(lookup.of(Some("y.ts"))), "ambiguous");
        assert_eq!(names(lookup.of(Some("x.ts"))), "@all", "it is known already");
    }

    #[test]
    fn a_lookup_answers_like_the_owners() {
        let owners = owners("*.ts @web\n", "");
        let mut lookup = owners.lookup();
        for file in [Some("a.ts"), Some("a.rs"), None, Some("a.ts")] {
            assert_eq!(*lookup.of(file), owners.of(file), "{file:?}");
        }
    }
}
