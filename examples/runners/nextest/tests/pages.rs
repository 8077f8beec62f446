//! A test for each of some files, without Rust's own harness.

use std::env;

const FILES: [&str; 3] = [
    "pages/it's a \"cart\" [1], (2).md",
    "pages/it's a",
    "pages/a\\b.md",
];

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    if has("--list") {
        for file in FILES.iter().filter(|_| !has("--ignored")) {
            println!("{file}: test");
        }
    } else if has(FILES[0]) {
        acme_shop::passes_without("flaky-3");
    }
}
