//! Rebuilds the crate when a migration changes. Cargo does not know which files the embedding macro reads.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
}
