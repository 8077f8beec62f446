//! Analysis of whole histories.
