use std::{os::unix::process::parent_id, process};

use acme_shop::{dies_with, passes_without};

#[test]
fn pays() {}

#[test]
fn ships() {
    passes_without("broken");
}

#[test]
fn returns() {
    dies_with("killed", parent_id());
    dies_with("process-killed", process::id());
}
