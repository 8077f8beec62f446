//! The files of a checkout, so that a class name can be turned into the file it stands in.

use std::collections::HashMap;

/// The files of a checkout, relative to its root, with `/`.
#[derive(Debug, Clone, Default)]
pub struct KnownFiles {
    /// File stem (`OrderTest` of `src/test/java/org/OrderTest.java`) to the paths that have it.
    by_stem: HashMap<String, Vec<String>>,
}

impl KnownFiles {
    /// The file that a dotted name stands in: `org.shop.OrderTest` is `src/test/java/org/shop/OrderTest.java`,
    /// `tests.unit.test_orders.TestTotals` is `tests/unit/test_orders.py`. The longest part of the name that is a
    /// file counts. None where no file or more than one fits: a guess would be worse.
    pub fn of_dotted(&self, dotted: &str) -> Option<&str> {
        let parts: Vec<&str> = dotted.split(['.', '$']).filter(|part| !part.is_empty()).collect();
        (1..=parts.len()).rev().find_map(|length| {
            let parts = parts.get(..length)?;
            let stem = parts.join("/");
            let candidates = self.by_stem.get(*parts.last()?)?;
            let mut fitting = candidates.iter().filter(|path| fits(path, &stem));
            match (fitting.next(), fitting.next()) {
                (Some(only), None) => Some(only.as_str()),
                _ => candidates
                    .iter()
                    .find(|path| without_suffix(path) == stem)
                    .map(String::as_str),
            }
        })
    }

    /// The file that a path below some folder of the checkout means: `a.spec.ts` is `e2e/a.spec.ts`. None where no file
    /// or more than one fits.
    pub fn of_path(&self, path: &str) -> Option<&str> {
        let stem = without_suffix(path).rsplit('/').next()?;
        let candidates = self.by_stem.get(stem)?;
        if let Some(same) = candidates.iter().find(|known| *known == path) {
            return Some(same);
        }
        let mut fitting = candidates.iter().filter(|known| {
            known
                .strip_suffix(path)
                .is_some_and(|before| before.ends_with('/'))
        });
        match (fitting.next(), fitting.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        }
    }
}

impl FromIterator<String> for KnownFiles {
    fn from_iter<I: IntoIterator<Item = String>>(paths: I) -> Self {
        let mut by_stem: HashMap<String, Vec<String>> = HashMap::new();
        for path in paths {
            let path = path.replace('\\', "/");
            let stem = without_suffix(&path)
                .rsplit('/')
                .next()
                .unwrap_or_default()
                .to_owned();
            by_stem.entry(stem).or_default().push(path);
        }
        for paths in by_stem.values_mut() {
            paths.sort_unstable();
        }
        Self { by_stem }
    }
}

/// Whether the path without its suffix is the stem or ends with it at a folder's border.
fn fits(path: &str, stem: &str) -> bool {
    without_suffix(path)
        .strip_suffix(stem)
        .is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

fn without_suffix(path: &str) -> &str {
    let name = path.rfind('/').map_or(0, |slash| slash + 1);
    match path.rfind('.') {
        Some(dot) if dot > name => path.get(..dot).unwrap_or(path),
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dotted_name_finds_its_one_file() {
        let files: KnownFiles = [
            "src/test/java/org/example/shop/OrderTest.java",
            "module/src/test/java/org/example/OrderTest.java",
            "tests/unit/test_orders.py",
            "tests/test_orders.py",
            "a/x/Twin.java",
            "b/x/Twin.java",
        ]
        .into_iter()
        .map(String::from)
        .collect();
        assert_eq!(
            files.of_dotted("org.example.shop.OrderTest"),
            Some("src/test/java/org/example/shop/OrderTest.java")
        );
        assert_eq!(
            files.of_dotted("org.example.shop.OrderTest$Nested"),
            Some("src/test/java/org/example/shop/OrderTest.java")
        );
        assert_eq!(
            files.of_dotted("tests.unit.test_orders.TestTotals"),
            Some("tests/unit/test_orders.py")
        );
        assert_eq!(files.of_dotted("tests.test_orders"), Some("tests/test_orders.py"));
        assert_eq!(files.of_dotted("x.Twin"), None);
        assert_eq!(files.of_dotted("nowhere.To.be.found"), None);
        assert_eq!(files.of_dotted(""), None);
        assert_eq!(
            files.of_path("unit/test_orders.py"),
            Some("tests/unit/test_orders.py")
        );
        assert_eq!(
            files.of_path("tests/test_orders.py"),
            Some("tests/test_orders.py")
        );
        assert_eq!(files.of_path("test_orders.py"), None);
        assert_eq!(files.of_path("x/Twin.java"), None);
        assert_eq!(files.of_path("orders.py"), None);
    }
}
