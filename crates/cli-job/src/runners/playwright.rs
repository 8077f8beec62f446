//! Playwright: the lines of `playwright test --list`, the input format of `--test-list` and `--test-list-invert`.

use assay_domain::test::TestName;

use crate::runners::names::SEPARATOR;

/// The separator of a line's parts.
const LINE_SEPARATOR: &str = " › ";
/// The maximum number of titles, because each further one doubles the lines.
const MOST_TITLES: usize = 6;

/// `chromium > ui/home.spec.ts > shows` as `[chromium] › ui/home.spec.ts › shows`.
///
/// A stored name does not show whether ` > ` separates two titles or is a part of one. There is a line for each
/// possibility, and Playwright ignores a line without a test.
pub(crate) fn entry(test: &TestName) -> Result<String, &'static str> {
    let parts: Vec<&str> = test.name.split(SEPARATOR).collect();
    let (file, titles) = project_and_file(test, &parts)?;
    let [title, titles @ ..] = titles else {
        return Err("it is a file, and no test");
    };
    let start = format!("{file}{LINE_SEPARATOR}{title}");
    if titles.len() >= MOST_TITLES {
        return Err("it has more than six titles");
    }
    if test.name.contains('›') {
        return Err("its name has the separator of a test list");
    }
    if parts.iter().any(|part| part.trim() != *part) {
        return Err("a title begins or ends with a space, which a test list cannot hold");
    }
    let lines = titles.iter().fold(vec![start], |lines, title| {
        let separated = |separator: &str| {
            let lines = lines.iter();
            lines
                .map(|line| format!("{line}{separator}{title}"))
                .collect::<Vec<_>>()
        };
        [separated(LINE_SEPARATOR), separated(SEPARATOR)].concat()
    });
    Ok(lines.join("\n"))
}

/// The line that selects all tests of a test's file in its project: `[chromium] › ui/home.spec.ts`.
pub(crate) fn file_entry(test: &TestName) -> Result<String, &'static str> {
    let parts: Vec<&str> = test.name.split(SEPARATOR).collect();
    let (line, _) = project_and_file(test, &parts)?;
    match line.contains(['\n', '\r', '\0']) {
        true => Err("its name has a line break"),
        false => Ok(line),
    }
}

/// The beginning of a line with the project and the file, and the titles that follow in the parts of the name.
fn project_and_file<'a>(
    test: &TestName,
    parts: &'a [&'a str],
) -> Result<(String, &'a [&'a str]), &'static str> {
    let file = test.file_path.as_deref().ok_or("its file is not known")?;
    // The project is omitted if a report has none.
    let file_index = parts
        .iter()
        .position(|part| file == *part || file.ends_with(&format!("/{part}")))
        .ok_or("its name does not hold its file")?;
    let (project, file_and_titles) = parts.split_at(file_index);
    let Some((file, titles)) = file_and_titles.split_first() else {
        return Err("its name does not hold its file");
    };
    match project {
        [] if file.starts_with('[') => {
            Err("its report has no Playwright project, and its file begins with a bracket")
        }
        [] => Ok(((*file).to_owned(), titles)),
        [project] => Ok((format!("[{project}]{LINE_SEPARATOR}{file}"), titles)),
        _ => Err("several titles precede its file, so its Playwright project is unknown"),
    }
}
