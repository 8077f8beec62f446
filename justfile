# Every recipe is one plain line that also runs by hand.

# What the recipes are.
default:
    @just --list

# A private Postgres, demo data, a read key and requests to paste.
demo:
    cargo run --release --bin assay-server -- --demo

# All tests, against a real Postgres that they start themselves. Installs Postgres and Redis where they are missing.
test:
    .ci/test

# Formatting, layering, lints, docs, licences and advisories, tests: what a change must pass.
check:
    .ci/run

# Which crate may depend on which.
layering:
    .ci/layering

# Formatting.
fmt:
    cargo fmt --all

# Lints, as strict as in a check.
lint:
    cargo clippy --workspace --all-targets -- -D warnings

# The crates' documentation.
doc:
    cargo doc --workspace --no-deps --open

# Licences, advisories and sources of the dependencies (needs cargo-deny).
deny:
    cargo deny check

# Benchmarks of the crates, then of the service at a sixteenth of the full size: a quarter of an hour.
bench:
    cargo bench --workspace
    cargo build --release --bin assay-server --bin assay-bench
    target/release/assay-bench all --size 1/16 --seconds 2

# The service in full, with how it grows: about an hour and a half, 20 GB in /tmp/assay-bench.
bench-full:
    cargo build --release --bin assay-server --bin assay-bench
    target/release/assay-bench all --growth

# Twenty minutes of steady load, with memory and descriptors watched (ASSAY_SOAK_MINUTES, ASSAY_SOAK_READERS).
soak:
    cargo test --package assay-server --test faults -- --ignored --nocapture soak

# The engine against its baselines on simulated histories.
evaluate:
    cargo run --release --bin assay-evaluate -- simulate

# The programs for a release, with a software bill of materials of each (needs cargo-cyclonedx).
release:
    .ci/release

# Made-up requests over the whole HTTP surface, each answer held against the contract.
fuzz-http requests="100000" seed="20261121":
    ASSAY_FUZZ_REQUESTS={{requests}} ASSAY_FUZZ_SEED={{seed}} cargo test -p assay-server --test security fuzz -- --nocapture

# The API's description linted, compared with a running demo, and used by two generated clients (needs node and python3).
clients:
    examples/check
