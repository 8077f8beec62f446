//! Settings that contradict each other.

use std::borrow::Cow;

use assay_repository::check_connection_string;
use validator::ValidationError;

use super::{Config, named};
use crate::settings::{Address, Place};

/// The error of settings that contradict each other.
fn refused(why: impl Into<Cow<'static, str>>) -> ValidationError {
    ValidationError::new("together").with_message(why.into())
}

pub(super) fn demo_has_its_own_database(config: &Config) -> Result<(), ValidationError> {
    if config.demo && config.database_url().is_some() {
        return Err(refused(
            "--demo cannot be used with ASSAY_DATABASE_URL or --database-url. It fills a private database of its own. \
             Start it without the setting: env -u ASSAY_DATABASE_URL assay-server --demo",
        ));
    }
    Ok(())
}

pub(super) fn listeners_share_an_address_that_exists(config: &Config) -> Result<(), ValidationError> {
    let with_api = [config.front_listen(), config.ingest_listen()].contains(&Place::WithApi);
    if with_api && config.listen == Address::Off {
        return Err(refused(
            "ASSAY_FRONT_LISTEN or ASSAY_INGEST_LISTEN is same, and ASSAY_LISTEN is off; name an address with ASSAY_LISTEN",
        ));
    }
    Ok(())
}

pub(super) fn only_the_address_of_the_api_is_shared(config: &Config) -> Result<(), ValidationError> {
    match (config.front_listen(), config.ingest_listen()) {
        (Place::At(front), Place::At(ingest)) if front == ingest && front.port() != 0 => {
            Err(refused(format!(
                "ASSAY_FRONT_LISTEN and ASSAY_INGEST_LISTEN are both {front}; parts share an address only with the API. Set \
             ASSAY_LISTEN to {front} and both to same"
            )))
        }
        (Place::At(_) | Place::WithApi | Place::Off, Place::At(_) | Place::WithApi | Place::Off) => Ok(()),
    }
}

pub(super) fn reports_are_read_where_they_are_stored(config: &Config) -> Result<(), ValidationError> {
    let takes_reports = config.ingest_listen() != Place::Off;
    if takes_reports && config.ingest_database_url().is_some() && config.database_url().is_none() {
        return Err(refused(
            "ASSAY_INGEST_DATABASE_URL is set without ASSAY_DATABASE_URL, so reports would be stored in another database \
             than the private one that is read; set both or neither",
        ));
    }
    Ok(())
}

pub(super) fn standbys_have_a_primary(config: &Config) -> Result<(), ValidationError> {
    let Some(url) = config.replica_url() else {
        return Ok(());
    };
    if config.database_url().is_none() {
        return Err(refused(
            "ASSAY_REPLICA_URL is set without ASSAY_DATABASE_URL; the private database has no standbys, so set both or none",
        ));
    }
    check_connection_string(url).map_err(|error| refused(format!("ASSAY_REPLICA_URL: {error}")))
}

pub(super) fn tls_has_both_files(config: &Config) -> Result<(), ValidationError> {
    let is_set = |file: &Option<String>| named(file.as_deref()).is_some();
    match (is_set(&config.tls_cert), is_set(&config.tls_key)) {
        (true, true) | (false, false) => Ok(()),
        (true, false) => Err(refused(
            "ASSAY_TLS_CERT is set without ASSAY_TLS_KEY; TLS needs both",
        )),
        (false, true) => Err(refused(
            "ASSAY_TLS_KEY is set without ASSAY_TLS_CERT; TLS needs both",
        )),
    }
}

pub(super) fn workers_have_connections(config: &Config) -> Result<(), ValidationError> {
    match (config.pool_size, config.workers) {
        (Some(pool), Some(workers)) if pool < workers => Err(refused(format!(
            "ASSAY_POOL_SIZE is {pool} and ASSAY_WORKERS is {workers}. A worker without a connection would only wait. \
             Set ASSAY_POOL_SIZE to {workers} or more, or ASSAY_WORKERS to {pool} or less"
        ))),
        (Some(_) | None, Some(_) | None) => Ok(()),
    }
}
