# Each recipe is a short command that also runs by hand.

# Lists the recipes.
default:
    @just --list

# A private Postgres, demo data, a read key and requests to paste.
demo:
    cargo run --release --bin assay-server -- --demo

# All tests, against a real Postgres that they start themselves. Installs Postgres, Redis and Chromium if they are missing.
test:
    .ci/test

# Everything that a change must pass: formatting, layering, lints, docs, licences, advisories, tests.
check:
    .ci/run

# Compares the dependencies between crates with docs/architecture.md.
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
    cargo build --profile dist --bin assay-server --bin assay-bench
    target/dist/assay-bench all --size 1/16 --seconds 2

# Measures the service at full size, with growth: about half an hour, 3 GB in /tmp/assay-bench.
bench-full:
    cargo build --profile dist --bin assay-server --bin assay-bench
    target/dist/assay-bench all --growth

# Twenty minutes of steady load, measuring memory and descriptors (ASSAY_SOAK_MINUTES, ASSAY_SOAK_READERS).
soak:
    cargo test --package assay-server --test faults -- --ignored --nocapture soak

# Compares the engine with its baselines on simulated histories.
evaluate:
    cargo run --release --bin assay-evaluate -- simulate

# Builds the files of a release, with a software bill of materials of each program (needs cargo-cyclonedx).
release:
    .ci/release

# Sends generated requests to every route, and compares each answer with the contract.
fuzz-http requests="100000" seed="20261121":
    ASSAY_FUZZ_REQUESTS={{requests}} ASSAY_FUZZ_SEED={{seed}} cargo test -p assay-server --test security fuzz -- --nocapture

# Tries the gate and the lists of flaky tests with the real test runners (needs node, python3 and cargo-nextest).
runners *names:
    examples/runners/check {{names}}

# Lints the API's description, compares it with a running demo, and tries two generated clients (needs node and python3).
clients:
    examples/check
