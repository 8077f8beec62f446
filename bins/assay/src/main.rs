//! The command line: administration, import, analysis, pruning.
fn main() {}
