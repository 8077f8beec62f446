//! Judgement of a test history without a database.
