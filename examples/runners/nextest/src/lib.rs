//! Faults that the variable PLANTED names, one a word.

use std::process::Command;

fn is_planted(fault: &str) -> bool {
    std::env::var("PLANTED").is_ok_and(|planted| planted.split(' ').any(|word| word == fault))
}

pub fn passes_without(fault: &str) {
    assert!(!is_planted(fault), "planted: {fault}");
}

/// Kills a process.
pub fn dies_with(fault: &str, process: u32) {
    if is_planted(fault) {
        let _ = Command::new("kill")
            .args(["-KILL", &process.to_string()])
            .status();
    }
}

#[cfg(test)]
mod tests {
    mod when_empty {
        use crate::passes_without;

        #[test]
        fn pays() {
            passes_without("flaky-1");
        }

        #[test]
        fn pays_twice() {
            passes_without("breakage");
        }
    }

    #[test]
    fn pays() {}
}
