//! The HTTP server: configuration, wiring, listeners, shutdown.
fn main() {}
