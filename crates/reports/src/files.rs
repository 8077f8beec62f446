//! The files of a checkout, to find the file of a class name.

/// The paths of a checkout's files, relative to its root, with `/`. Built by collecting an iterator of paths.
///
/// Names are looked up from their end: `OrderTest`, then `shop`, then `org`. The paths are sorted in two orders by
/// their reversed parts. Paths with the same end are then neighbours, and a binary search finds them.
#[derive(Debug, Clone, Default)]
pub struct KnownFiles {
    paths: Vec<String>,
    /// The indexes of the paths, sorted by their reversed parts; the file name without its suffix.
    by_stem: Vec<usize>,
    /// The same, with the suffix.
    by_name: Vec<usize>,
}

/// The most parts of a dotted name that are compared. No class is nested deeper.
const DEEPEST: usize = 64;

impl KnownFiles {
    /// The file of a dotted name: `org.shop.OrderTest` is `src/test/java/org/shop/OrderTest.java`,
    /// `tests.unit.test_orders.TestTotals` is `tests/unit/test_orders.py`. The longest part of the name that is a file
    /// counts. Of several files, only one whose path has exactly these parts counts, since a guess could be wrong.
    pub fn of_dotted(&self, dotted: &str) -> Option<&str> {
        let parts: Vec<&str> = dotted
            .split(['.', '$'])
            .filter(|part| !part.is_empty())
            .take(DEEPEST)
            .collect();
        let index = (1..=parts.len()).rev().find_map(|length| {
            let parts_from_end = || parts.iter().take(length).rev().copied();
            self.find_by_suffix(&self.by_stem, without_suffix, parts_from_end)
        });
        self.path(index?)
    }

    /// The file for a path relative to some folder of the checkout: `a.spec.ts` is `e2e/a.spec.ts`. Of several files,
    /// only one of exactly this path counts.
    pub fn of_path(&self, path: &str) -> Option<&str> {
        self.path(self.find_by_suffix(&self.by_name, |path| path, || path.rsplit('/'))?)
    }

    /// The index of the only path that ends with the parts of `suffix`, last part first. If several paths do, the path
    /// of exactly these parts. None if there is no such path.
    fn find_by_suffix<'a, W: Iterator<Item = &'a str>>(
        &'a self,
        order: &[usize],
        key: fn(&str) -> &str,
        suffix: impl Fn() -> W,
    ) -> Option<usize> {
        let parts = |index: usize| key(self.path(index).unwrap_or_default()).rsplit('/');
        let count = suffix().count();
        let first = order.partition_point(|index| parts(*index).take(count).cmp(suffix()).is_lt());
        let mut matches = order
            .get(first..)
            .unwrap_or_default()
            .iter()
            .copied()
            .take_while(|index| parts(*index).take(count).eq(suffix()));
        let first_match = matches.next()?;
        // The shortest path is the first.
        let is_whole = parts(first_match).count() == count;
        (is_whole || matches.next().is_none()).then_some(first_match)
    }

    fn path(&self, index: usize) -> Option<&str> {
        self.paths.get(index).map(String::as_str)
    }
}

impl FromIterator<String> for KnownFiles {
    fn from_iter<I: IntoIterator<Item = String>>(paths: I) -> Self {
        let mut paths: Vec<String> = paths.into_iter().map(|path| path.replace('\\', "/")).collect();
        paths.sort_unstable();
        let order = |key: fn(&str) -> &str| {
            let parts = |index: &usize| key(paths.get(*index).map_or("", String::as_str)).rsplit('/');
            let mut order: Vec<usize> = (0..paths.len()).collect();
            order.sort_by(|one, other| parts(one).cmp(parts(other)));
            order
        };
        let (by_stem, by_name) = (order(without_suffix), order(|path| path));
        Self {
            paths,
            by_stem,
            by_name,
        }
    }
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
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_dotted_name_finds_its_only_file() {
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

    #[test]
    fn of_several_matching_files_the_outermost_is_chosen() {
        let files: KnownFiles = ["b/a/index.ts", "a/index.ts", "a/index.js", "c.ts", "d/c.ts"]
            .into_iter()
            .map(String::from)
            .collect();
        assert_eq!(files.of_dotted("c"), Some("c.ts"));
        assert_eq!(files.of_dotted("a.index"), Some("a/index.js"));
        assert_eq!(files.of_dotted("b.a.index.more"), Some("b/a/index.ts"));
        assert_eq!(files.of_path("a/index.ts"), Some("a/index.ts"));
        assert_eq!(files.of_path("index.js"), Some("a/index.js"));
        assert_eq!(files.of_path("index.ts"), None);
    }

    #[test]
    fn of_a_name_of_many_dots_only_the_first_parts_are_compared() {
        let parts = |count: usize| {
            let parts: Vec<String> = (0..count).map(|number| format!("p{number}")).collect();
            parts
        };
        let files: KnownFiles = [format!("{}.ts", parts(DEEPEST + 1).join("/"))]
            .into_iter()
            .collect();
        assert_eq!(files.of_dotted(&parts(DEEPEST + 1).join(".")), None);
        let deepest = format!("{}.ts", parts(DEEPEST).join("/"));
        let files: KnownFiles = [deepest.clone()].into_iter().collect();
        assert_eq!(files.of_dotted(&parts(2_000).join(".")), Some(deepest.as_str()));
    }

    #[test]
    fn a_lookup_compares_few_of_many_files() {
        let files: KnownFiles = (0..5_000)
            .map(|number| format!("p{number}/index/index.ts"))
            .collect();
        // All files match the first name, and none matches the second one.
        for suffix in [["index.ts", "index"], ["index.tsx", "index"]] {
            let comparisons = Cell::new(0);
            let counted = || {
                comparisons.set(comparisons.get() + 1);
                suffix.into_iter()
            };
            assert_eq!(files.find_by_suffix(&files.by_name, |path| path, counted), None);
            assert!(comparisons.get() <= 20, "{}", comparisons.get());
        }
    }
}
