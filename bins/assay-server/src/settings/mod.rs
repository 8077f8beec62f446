//! The server's settings: each an environment variable and a flag. [`shortened()`] is the command line, [`Config`] its
//! values, which are checked together.

mod address;
mod command;
mod config;
mod health;
mod limits;
mod public_url;
mod upload_limits;

pub(crate) use address::{Address, Place};
pub(crate) use command::{print, shortened, with_usage};
pub(crate) use config::{Config, Sizes};
pub(crate) use health::check_health;
pub(crate) use limits::Limits;
pub(crate) use public_url::PublicUrl;
pub(crate) use upload_limits::UploadLimits;
