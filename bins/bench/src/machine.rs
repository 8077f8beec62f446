//! What was measured on.

use std::{fs, process::Command};

use serde::{Deserialize, Serialize};

use crate::number::float;

/// The machine and the program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Machine {
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) memory_gb: f64,
    pub(crate) kernel: String,
    /// The commit of the working folder, with a plus where that was changed since.
    pub(crate) commit: String,
    /// Whether this program was built with optimisation.
    pub(crate) release: bool,
}

impl Machine {
    /// This one.
    pub(crate) fn here() -> Self {
        let after = |path: &str, key: &str| {
            let text = fs::read_to_string(path).ok()?;
            let line = text.lines().find(|line| line.starts_with(key))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let kb = after("/proc/meminfo", "MemTotal")
            .and_then(|text| text.split(' ').next()?.parse::<u64>().ok())
            .unwrap_or(0);
        Self {
            processor: after("/proc/cpuinfo", "model name")
                .unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: std::thread::available_parallelism().map_or(1, Into::into),
            memory_gb: float(kb) / 1024.0 / 1024.0,
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .map_or_else(|_| std::env::consts::OS.to_owned(), |text| text.trim().to_owned()),
            commit: commit().unwrap_or_else(|| "unknown".to_owned()),
            release: !cfg!(debug_assertions),
        }
    }

    /// In one line.
    pub(crate) fn told(&self) -> String {
        format!(
            "{} × {}, {:.0} GB, Linux {}, commit {}{}",
            self.cores,
            self.processor,
            self.memory_gb,
            self.kernel,
            self.commit,
            if self.release { "" } else { ", a debug build" }
        )
    }
}

fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() {
        commit
    } else {
        format!("{commit}+")
    })
}
