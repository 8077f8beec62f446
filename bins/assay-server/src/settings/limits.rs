//! The rate limits and the limits of uploads, as configured.

use std::sync::Arc;

use anyhow::Context as _;
use assay_access::limit::{InProcessLimiter, RateLimiter, RedisLimiter};

use crate::settings::Config;

/// The limits, made before anything starts, so that a wrong setting is reported at once.
pub(crate) struct Limits {
    /// The rate of requests.
    pub(crate) requests: Arc<dyn RateLimiter>,
    /// The rate of uploads.
    pub(crate) uploads: Arc<dyn RateLimiter>,
    /// The sizes of an upload.
    pub(crate) of_upload: assay_http_ingest::Limits,
}

impl Limits {
    /// The configured limits.
    ///
    /// # Errors
    /// If the address of Redis is not one.
    pub(crate) fn of(config: &Config) -> anyhow::Result<Self> {
        Ok(Self {
            requests: limiter(config, config.rate_limit)?,
            uploads: limiter(config, config.uploads.ingest_rate_limit)?,
            of_upload: config.uploads.limits()?,
        })
    }
}

/// A rate limiter: shared in Redis if configured, else in this process.
fn limiter(config: &Config, limit: u32) -> anyhow::Result<Arc<dyn RateLimiter>> {
    Ok(match config.redis_url() {
        Some(url) => Arc::new(RedisLimiter::new(url, limit).context("ASSAY_REDIS_URL")?),
        None => Arc::new(InProcessLimiter::new(limit)),
    })
}
