//! The use case of an arriving report: parse, fingerprint, record, judge, store the verdicts.
