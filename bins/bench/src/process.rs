//! Memory and processor time of processes from `/proc`; none on systems without it.

use std::{fs, path::Path};

use crate::number::float;

/// The memory of a process in megabytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Memory {
    /// Now.
    pub(crate) resident: f64,
    /// At most since its peak was last reset.
    pub(crate) peak: f64,
}

/// The memory of a process.
pub(crate) fn memory(pid: u32) -> Option<Memory> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let of = |key: &str| {
        let line = text.lines().find(|line| line.starts_with(key))?;
        let kb: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(float(kb) / 1024.0)
    };
    Some(Memory {
        resident: of("VmRSS:")?,
        peak: of("VmHWM:")?,
    })
}

/// Resets a process's peak memory to its present value. False if the system refuses.
pub(crate) fn reset_peak(pid: u32) -> bool {
    fs::write(format!("/proc/{pid}/clear_refs"), "5").is_ok()
}

/// The seconds that a process has computed.
pub(crate) fn computed(pid: u32) -> Option<f64> {
    let (_, ticks) = stat(Path::new(&format!("/proc/{pid}")))?;
    Some(float(ticks) / float(rustix::param::clock_ticks_per_second()))
}

/// The processor seconds of a process and its living children.
pub(crate) fn computed_by_family(pid: u32) -> Option<f64> {
    let mut ticks = stat(Path::new(&format!("/proc/{pid}")))?.1;
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        if let Some((parent, used)) = stat(&entry.path())
            && parent == pid
        {
            ticks += used;
        }
    }
    Some(float(ticks) / float(rustix::param::clock_ticks_per_second()))
}

/// The parent and the ticks of a process.
fn stat(process: &Path) -> Option<(u32, u64)> {
    let text = fs::read_to_string(process.join("stat")).ok()?;
    // The name in brackets may hold anything.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(1);
    let parent = fields.next()?.parse().ok()?;
    let mut fields = fields.skip(9);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((parent, user + system))
}

/// The processor seconds of client, server and Postgres so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Computed {
    pub(crate) client: Option<f64>,
    pub(crate) server: Option<f64>,
    pub(crate) postgres: Option<f64>,
}

impl Computed {
    /// So far.
    pub(crate) fn now(server: u32, postgres: u32) -> Self {
        Self {
            client: computed(std::process::id()),
            server: computed(server),
            postgres: computed_by_family(postgres),
        }
    }

    /// Microseconds of each for one request between two readings.
    pub(crate) fn each(before: Self, after: Self, requests: f64) -> Self {
        let each = |before: Option<f64>, after: Option<f64>| {
            before
                .zip(after)
                .map(|(before, after)| (after - before).max(0.0) * 1e6 / requests)
        };
        Self {
            client: each(before.client, after.client),
            server: each(before.server, after.server),
            postgres: each(before.postgres, after.postgres),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_takes_memory_and_time() {
        if !Path::new("/proc/self/stat").exists() {
            return;
        }
        assert!(memory(std::process::id()).unwrap().resident > 1.0);
        assert!(computed(std::process::id()).unwrap() >= 0.0);
        let family = computed_by_family(std::process::id()).unwrap();
        assert!(family >= computed(std::process::id()).unwrap() - 1.0);
    }
}
