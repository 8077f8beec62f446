//! Playwright: the lines of `playwright test --list`, the input format of `--test-list` and `--test-list-invert`.

use assay_domain::test::TestName;

use crate::SEPARATOR;

/// `chromium > ui/home.spec.ts > home > shows` as `[chromium] › ui/home.spec.ts › home › shows`.
pub(crate) fn entry(test: &TestName) -> Result<String, &'static str> {
    let file = test.file_path.as_deref().ok_or("its file is not known")?;
    let mut parts: Vec<&str> = test.name.split(SEPARATOR).collect();
    // The project is omitted if a report has none.
    let place = parts
        .iter()
        .position(|part| file == *part || file.ends_with(&format!("/{part}")))
        .ok_or("its name does not hold its file")?;
    let in_list = parts.split_off(place).join(" › ");
    match parts.as_slice() {
        [] => Ok(in_list),
        [project] => Ok(format!("[{project}] › {in_list}")),
        _ => Err("several titles precede its file, so its Playwright project is unknown"),
    }
}
