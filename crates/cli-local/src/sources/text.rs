//! Texts that a user names: a file, or standard input.

use std::{
    fs,
    io::{self, Read as _},
    path::Path,
};

use anyhow::{Context as _, bail};

/// The text of a file, or of standard input for `-`, of less than this many MiB.
pub fn read(file: &Path, most_mib: u64) -> anyhow::Result<String> {
    let (name, mut text) = (file.display().to_string(), String::new());
    let most = most_mib << 20;
    let read = if name == "-" {
        io::stdin().lock().take(most).read_to_string(&mut text)
    } else {
        fs::File::open(file).and_then(|file| file.take(most).read_to_string(&mut text))
    };
    let bytes = read.with_context(|| format!("{name} cannot be read as text"))?;
    if u64::try_from(bytes).unwrap_or(u64::MAX) >= most {
        bail!("{name} has more than {most_mib} MiB");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_too_long_or_no_text_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("list");
        fs::write(&file, "a\n").unwrap();
        assert_eq!(read(&file, 1).unwrap(), "a\n");
        fs::write(&file, vec![b'a'; 1 << 20]).unwrap();
        assert!(
            read(&file, 1)
                .unwrap_err()
                .to_string()
                .ends_with("more than 1 MiB")
        );
        fs::write(&file, [0xff]).unwrap();
        assert!(
            read(&file, 1)
                .unwrap_err()
                .to_string()
                .ends_with("cannot be read as text")
        );
    }
}
