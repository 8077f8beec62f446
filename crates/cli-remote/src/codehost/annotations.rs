//! Annotations of lines: their files in the checkout, and the workflow commands of GitHub Actions.

use crate::codehost::comment::{Annotation, Comment};

/// Most errors of a step that GitHub shows.
const MOST: usize = 10;

/// A line of the log for each failure of a run, in the order of the server: the highest `mine` first. A failure that the
/// change may have caused is an error, any other a notice.
pub fn github(annotations: &[Annotation], run_id: &str) -> Vec<String> {
    let of_run = annotations
        .iter()
        .filter(|annotation| annotation.run_id == run_id);
    of_run.take(MOST).map(command).collect()
}

/// The comment with the files of its annotations as the checkout names them. A report may name a file relative to a folder
/// of its own, such as a package of Go. A file that several paths may mean is left out.
pub(crate) fn located(mut comment: Comment, files: &[String]) -> Comment {
    for annotation in &mut comment.annotations {
        if let Some(file) = annotation.file.take() {
            annotation.file = in_checkout(&file, &annotation.title, files);
        }
    }
    comment
}

/// The path that a file means: itself, or the only one that ends with it. Of several, the one whose folder the test's name
/// has. A file that no path ends with is not changed, because the build may have created it.
fn in_checkout(file: &str, title: &str, files: &[String]) -> Option<String> {
    let file = file.trim_start_matches("./");
    let end = format!("/{file}");
    let candidates = || files.iter().filter(|path| path.ends_with(&end));
    if files.iter().any(|path| path == file) && !is_in_package(title) {
        return Some(file.to_owned());
    }
    let folder_of = |path: &str| path.strip_suffix(&end).map(|folder| format!("/{folder} "));
    let is_named = |path: &&String| folder_of(path).is_some_and(|folder| title.contains(&folder));
    if let Some(named) = candidates().filter(is_named).max_by_key(|path| path.len()) {
        return Some(named.clone());
    }
    let mut found = files.iter().filter(|path| *path == file).chain(candidates());
    match (found.next(), found.next()) {
        (None, _) => Some(file.to_owned()),
        (Some(only), None) => Some(only.clone()),
        (Some(first), Some(_)) if first == file => Some(first.clone()),
        (Some(_), Some(_)) => None,
    }
}

/// Whether a test's name begins with a package of Go, to which its files are relative.
fn is_in_package(title: &str) -> bool {
    title
        .split_once(" > ")
        .is_some_and(|(package, _)| package.contains('/') && !package.contains(' '))
}

fn command(annotation: &Annotation) -> String {
    let kind = if annotation.is_mine { "error" } else { "notice" };
    let mut properties = vec![format!("title={}", property(&annotation.title))];
    if let Some(file) = &annotation.file {
        properties.push(format!("file={}", property(file)));
        if let Some(line) = annotation.line {
            properties.push(format!("line={line}"));
        }
    }
    format!("::{kind} {}::{}", properties.join(","), data(&annotation.message))
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotation(title: &str, is_mine: bool) -> Annotation {
        Annotation {
            run_id: "1".to_owned(),
            file: Some("a,b:c.ts".to_owned()),
            line: Some(4),
            title: title.to_owned(),
            message: "100 %\n::warning::x".to_owned(),
            is_mine,
        }
    }

    #[test]
    fn files_are_those_of_the_checkout() {
        let files = [
            "cart_test.go",
            "cart/cart_test.go",
            "pay/pay_test.go",
            "a/x.ts",
            "b/x.ts",
        ];
        let files: Vec<String> = files.map(str::to_owned).into();
        for (file, title, expected) in [
            (
                "cart_test.go",
                "example.org/shop/cart > TestTotal",
                Some("cart/cart_test.go"),
            ),
            (
                "cart_test.go",
                "example.org/shop > TestTotal",
                Some("cart_test.go"),
            ),
            (
                "pay_test.go",
                "example.org/shop/pay > TestPay",
                Some("pay/pay_test.go"),
            ),
            ("./cart_test.go", "adds", Some("cart_test.go")),
            ("a/x.ts", "adds", Some("a/x.ts")),
            ("x.ts", "adds", None),
            ("built/y.ts", "adds", Some("built/y.ts")),
        ] {
            let found = in_checkout(file, title, &files);
            assert_eq!(found.as_deref(), expected, "{file} of {title}");
        }
    }

    #[test]
    fn no_text_ends_its_command() {
        assert_eq!(
            github(&[annotation("a::b\r\n::error::c", true)], "1"),
            [
                "::error title=a%3A%3Ab%0D%0A%3A%3Aerror%3A%3Ac,file=a%2Cb%3Ac.ts,line=4::100 %25%0A::warning::x"
            ]
        );
    }

    #[test]
    fn at_most_ten_failures_of_the_own_run_are_annotated() {
        let mut all = vec![annotation("own", false); 12];
        all[0].run_id = "2".to_owned();
        let lines = github(&all, "1");
        assert_eq!(lines.len(), 10);
        assert!(lines[0].starts_with("::notice title=own,"), "{}", lines[0]);
    }
}
