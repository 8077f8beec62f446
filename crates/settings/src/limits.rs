//! The rate limits and the limits of uploads, as configured.

use std::sync::Arc;

use anyhow::Context as _;
use assay_access::limit::{InProcessLimiter, RateLimiter, RedisLimiter};

use crate::Config;

/// The limits, made before anything starts, so that a wrong setting is reported at once.
pub struct Limits {
    /// The rate of requests.
    pub requests: Arc<dyn RateLimiter>,
    /// The rate of uploads.
    pub uploads: Arc<dyn RateLimiter>,
    /// The sizes of an upload.
    pub of_upload: assay_ingest_http::Limits,
}

impl Limits {
    /// The configured limits.
    ///
    /// # Errors
    /// If the address of Redis is not one.
    pub fn of(config: &Config) -> anyhow::Result<Self> {
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
