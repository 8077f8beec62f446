//! Read keys, plans, who may ask, and how often.
