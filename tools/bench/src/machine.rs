//! Describes the measured system.

use std::{fs, process::Command};

use crate::number::float;

/// The machine and the commit of the working folder in one line. A plus marks changed files.
pub(crate) fn description() -> String {
    let after = |path: &str, key: &str| {
        let text = fs::read_to_string(path).ok()?;
        let line = text.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let kb = after("/proc/meminfo", "MemTotal")
        .and_then(|text| text.split(' ').next()?.parse::<u64>().ok())
        .unwrap_or(0);
    format!(
        "{} × {}, {:.0} GB, Linux {}, commit {}{}",
        std::thread::available_parallelism().map_or(1, usize::from),
        after("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
        float(kb) / 1024.0 / 1024.0,
        fs::read_to_string("/proc/sys/kernel/osrelease")
            .map_or_else(|_| "?".to_owned(), |text| text.trim().to_owned()),
        commit().unwrap_or_else(|| "unknown".to_owned()),
        if cfg!(debug_assertions) {
            ", a debug build"
        } else {
            ""
        }
    )
}

fn commit() -> Option<String> {
    let output = Command::new("git")
        .args(["describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}
