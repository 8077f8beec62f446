//! Checks of all kinds of targets: the limits of their bodies, and the published schemas.

pub(crate) mod limits;
mod schemas;
