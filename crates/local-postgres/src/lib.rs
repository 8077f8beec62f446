//! The private Postgres cluster of the embedded default.
