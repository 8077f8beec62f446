//! Development only: a database per test, seeds, the real programs, snapshots.
