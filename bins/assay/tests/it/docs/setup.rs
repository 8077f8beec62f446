//! The two commands of the README need no other set-up.

use assay_testkit::assert_contains;
use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::{Command, Output},
};

use super::{blocks, root};

/// Runs the set-up as on a machine without Postgres and Redis, with these other programs. Each records its arguments.
fn set_up(folder: &Path, programs: &[&str]) -> (Output, String) {
    let calls = folder.join("calls");
    fs::write(&calls, "").unwrap();
    for name in programs {
        let program = folder.join(name);
        // Like the real programs, `env` and `sudo` run their arguments.
        let script = format!(
            "#!/bin/bash\necho \"{name} $*\" >> {}\ncase {name} in sudo | env) \"$@\" ;; esac\n",
            calls.display()
        );
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    symlink("/usr/bin/id", folder.join("id")).unwrap();
    let output = Command::new("/bin/bash")
        .arg(root().join(".ci/setup"))
        .env_clear()
        .env("PATH", folder)
        .env("PG_BIN", "/nonexistent")
        .output()
        .unwrap();
    (output, fs::read_to_string(calls).unwrap())
}

#[test]
fn the_tests_command_installs_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let (output, calls) = set_up(folder.path(), &["apt-get", "sudo", "env"]);
    assert!(output.status.success(), "{output:?}");
    for package in ["postgresql", "redis-server"] {
        let call = format!("apt-get install -y -qq --no-install-recommends {package}\n");
        assert_contains(&calls, &call);
    }
}

#[test]
fn the_tests_command_prints_what_to_install_where_it_cannot() {
    let folder = tempfile::tempdir().unwrap();
    let (output, _) = set_up(folder.path(), &[]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_contains(&stderr, "postgresql redis-server");
}

#[test]
fn the_readme_builds_before_it_uses_the_programs_and_the_tests_command_sets_up() {
    let commands: Vec<String> = blocks(&root().join("README.md"))
        .into_iter()
        .filter(|block| block.note == "builds")
        .map(|block| block.text)
        .collect();
    assert_eq!(commands.len(), 3, "{commands:?}");
    for program in ["assay-server", "assay-admin", "assay"] {
        assert!(commands[2].contains(&format!("--bin {program}")), "{commands:?}");
    }
    assert_eq!(commands[1], ".ci/test\n");
    for script in [".ci/test", ".ci/run"] {
        let text = fs::read_to_string(root().join(script)).unwrap();
        assert!(text.lines().any(|line| line == ".ci/setup"), "{script}");
    }
}
