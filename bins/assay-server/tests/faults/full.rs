//! No space left on the database's disk.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use assay_testkit::{assert_contains, stderr_text};
use diesel::{RunQueryDsl as _, sql_query};

use crate::{
    postgres::Postgres,
    quiet, snapshot,
    world::{Report, Source, World},
};

/// The free space for the import that does not fit.
const LEFT_BYTES: u64 = 512 * 1024;

#[test]
fn an_import_that_does_not_fit_stores_nothing_and_reads_continue() {
    let _shared = quiet::shared();
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::mount(folder.path()) else {
        println!("SKIPPED: this needs the right to mount a small file system");
        return;
    };
    let postgres = Postgres::start(&disk.folder);
    let world = World::over(postgres, folder);
    world.import(&Report::whole(1, 30, 60));
    let before = snapshot::of(&world);

    // The write-ahead log has its segment file already, so only the rows need more space.
    let Source::Own(postgres) = &world.database else {
        unreachable!()
    };
    let mut connection = postgres.connect().unwrap();
    for sql in [
        "SELECT pg_switch_wal()",
        "CHECKPOINT",
        "CREATE TABLE journal_began ()",
    ] {
        sql_query(sql).execute(&mut connection).unwrap();
    }
    disk.fill();
    let big = Report::whole(2, 6_000, 50);
    let output = world.import_command(&big).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = stderr_text(&output);
    println!("{stderr}");
    assert_contains(&stderr, "No space left on device");
    snapshot::assert_same(&snapshot::of(&world), &before, "after the fault");

    disk.empty();
    assert_eq!(world.import(&big)["runNumber"], 2);
    drop(connection);
    drop(world);
}

/// The test's own small file system, in memory.
struct Disk {
    folder: PathBuf,
}

impl Disk {
    fn mount(within: &Path) -> Option<Self> {
        fs::set_permissions(within, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let folder = within.join("disk");
        fs::create_dir(&folder).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=160m", "none"])
            .arg(&folder)
            .output()
            .is_ok_and(|output| output.status.success());
        mounted.then_some(Self { folder })
    }

    fn ballast(&self) -> PathBuf {
        self.folder.join("ballast")
    }

    /// Leaves little space.
    fn fill(&self) {
        let stat = rustix::fs::statvfs(&self.folder).unwrap();
        let free = stat.f_bavail * stat.f_frsize;
        let size = usize::try_from(free - LEFT_BYTES).unwrap();
        fs::write(self.ballast(), vec![1_u8; size]).unwrap();
    }

    fn empty(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily, because a failed test may have left Postgres running on it for a moment.
        let _ = Command::new("umount").arg("-l").arg(&self.folder).status();
    }
}
