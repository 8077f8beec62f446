//! Rebuilds the crate when a migration changes: the macro that embeds them is not seen to read files.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
}
