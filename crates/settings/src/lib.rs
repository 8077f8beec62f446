//! The server's settings: each an environment variable and a flag. [`command()`] is the command line, [`Config`] its
//! values, which are checked together.

mod address;
mod command;
mod config;
mod health;
mod limits;
mod public_url;
mod upload_limits;

pub use address::{Address, Place};
pub use command::{command, print, with_usage};
pub use config::{Config, Sizes};
pub use health::check_health;
pub use limits::Limits;
pub use public_url::PublicUrl;
pub use upload_limits::UploadLimits;
