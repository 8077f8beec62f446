//! Configuration: environment variables, each also a flag. An invalid value is rejected with one sentence.

mod contradictions;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    num::NonZeroUsize,
    path::PathBuf,
};

use assay_http::Files;
use assay_http_api::Origins;
use assay_identity::{FileError, IdentityFile};
use assay_service_log::LogFormat;
use clap::Parser;
use validator::Validate;

use crate::settings::{Address, Place, PublicUrl, UploadLimits};

/// The maximum numbers of database connections and of workers.
const MOST_CONNECTIONS: u32 = 1_024;
/// The least number of blocking threads by default. One key may use half of them. With fewer threads, a processor is
/// idle while requests wait for Postgres. With more, the system switches between threads more often.
const LEAST_BLOCKING_THREADS: u32 = 8;

const EXAMPLES: &str = "\
Try it, with sample data and nothing else set up:
  assay-server --demo

Serve a database of your own:
  export ASSAY_DATABASE_URL=postgresql://assay:secret@db.example.org/assay
  assay-admin migrate
  assay-server --listen 0.0.0.0:8080 --front-listen same --ingest-listen same

Pages are at /, tools at /mcp, the API at /api/v1, reports at /ingest/v1. The operators' listener has /healthz, /readyz and /metrics. \
If the server does not find the programs of Postgres, set PG_BIN to their folder.";

/// Serve test results over HTTP
///
/// Without ASSAY_DATABASE_URL it starts a private Postgres in ASSAY_DATA_DIR and stops it at the end. The program
/// `assay-admin` fills and administers the same database.
#[derive(Debug, Clone, Parser, Validate)]
#[command(name = "assay-server", version, after_help = EXAMPLES, max_term_width = 80)]
#[validate(
    schema(function = contradictions::demo_has_its_own_database),
    schema(function = contradictions::listeners_share_an_address_that_exists),
    schema(function = contradictions::only_the_address_of_the_api_is_shared),
    schema(function = contradictions::reports_are_read_where_they_are_stored),
    schema(function = contradictions::standbys_have_a_primary),
    schema(function = contradictions::tls_has_both_files),
    schema(function = contradictions::workers_have_connections)
)]
pub(crate) struct Config {
    /// The Postgres database, with its schema migrated; without it, a private one is started
    #[arg(long, value_name = "URL", env = "ASSAY_DATABASE_URL")]
    database_url: Option<String>,

    /// Standbys of that database for reads of results; several hosts as HOST,HOST
    #[arg(long, value_name = "URL", env = "ASSAY_REPLICA_URL")]
    replica_url: Option<String>,

    /// The directory of the private database; by default .assay (with --demo .assay-demo), in this folder or the
    /// nearest one above
    #[arg(long, value_name = "DIR", env = "ASSAY_DATA_DIR")]
    data_dir: Option<PathBuf>,

    /// Address of the read API, or off. Pages and reports can share it
    #[arg(
        long,
        value_name = "HOST:PORT",
        env = "ASSAY_LISTEN",
        default_value = "127.0.0.1:8080"
    )]
    pub(crate) listen: Address,

    /// Address of the ingest listener, which takes reports; same for that of the API; or off. By default off (with
    /// --demo 127.0.0.1:8081)
    #[arg(long, value_name = "HOST:PORT", env = "ASSAY_INGEST_LISTEN")]
    ingest_listen: Option<Place>,

    /// The database as the role that stores reports; without it, --database-url
    #[arg(long, value_name = "URL", env = "ASSAY_INGEST_DATABASE_URL")]
    ingest_database_url: Option<String>,

    /// The limits of uploads.
    #[command(flatten)]
    pub(crate) uploads: UploadLimits,

    /// Address of the pages and of agents' tools; same for that of the API; or off. By default 127.0.0.1:8082, and off
    /// without the API
    #[arg(long, value_name = "HOST:PORT", env = "ASSAY_FRONT_LISTEN")]
    front_listen: Option<Place>,

    /// The secret that encrypts the sessions of the pages; processes behind one address share it. By default random at
    /// each start
    #[arg(long, value_name = "SECRET", env = "ASSAY_FRONT_SECRET")]
    front_secret: Option<String>,

    /// The address under which people, agents and CI reach this installation, as https://HOST: pages at /, tools at
    /// /mcp, the API at /api/v1, reports at /ingest/v1. With https, cookies are for TLS only, also behind a proxy
    #[arg(long, value_name = "URL", env = "ASSAY_PUBLIC_URL", value_parser = PublicUrl::text)]
    public_url: Option<String>,

    /// The file with the providers at which people sign in, and the private addresses of issuers
    #[arg(long, value_name = "FILE", env = "ASSAY_IDENTITY_FILE")]
    identity_file: Option<PathBuf>,

    /// Address of /healthz, /readyz and /metrics, or off; do not expose it to the public
    #[arg(
        long,
        value_name = "HOST:PORT",
        env = "ASSAY_ADMIN_LISTEN",
        default_value = "127.0.0.1:9090"
    )]
    pub(crate) admin_listen: Address,

    /// A certificate chain as PEM, to serve over TLS
    #[arg(long, value_name = "FILE", env = "ASSAY_TLS_CERT")]
    tls_cert: Option<String>,

    /// The private key of that certificate as PEM
    #[arg(long, value_name = "FILE", env = "ASSAY_TLS_KEY")]
    tls_key: Option<String>,

    /// Requests a minute and read key; 0 if a proxy in front sets the limit
    #[arg(long, value_name = "N", env = "ASSAY_RATE_LIMIT", default_value_t = assay_access::limit::DEFAULT_LIMIT, value_parser = rate_limit)]
    pub(crate) rate_limit: u32,

    /// The Redis server in which several processes share the limit
    #[arg(long, value_name = "URL", env = "ASSAY_REDIS_URL")]
    redis_url: Option<String>,

    /// Origins that may read the API from a browser, as https://HOST,https://HOST:PORT; by default none
    #[arg(
        long,
        value_name = "ORIGINS",
        env = "ASSAY_CORS_ORIGINS",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) cors_origins: Origins,

    /// Connections to the database; by default two for each worker, at least 8, and one for /readyz
    #[arg(long, value_name = "N", env = "ASSAY_POOL_SIZE", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_CONNECTIONS)))]
    pool_size: Option<u32>,

    /// Threads that answer requests; by default one for each processor
    #[arg(long, value_name = "N", env = "ASSAY_WORKERS", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_CONNECTIONS)))]
    workers: Option<u32>,

    /// Memory for answers that clients have not read yet, in MiB; a key holds at most a quarter. A run of 100,000 tests
    /// takes 12
    #[arg(long, value_name = "MIB", env = "ASSAY_ANSWER_MEMORY_MIB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(64..=1_048_576))]
    answer_memory_mib: u32,

    /// Log filter, such as info or warn,assay_http_api=debug
    #[arg(
        long,
        value_name = "FILTER",
        env = "RUST_LOG",
        default_value = "info,actix_server=warn",
        value_parser = log_filter
    )]
    log: String,

    /// Log format
    #[arg(
        long,
        value_name = "FORMAT",
        env = "ASSAY_LOG_FORMAT",
        value_enum,
        default_value_t = LogFormat::Text
    )]
    log_format: LogFormat,

    /// Ask the server whose operators' listener has this address whether it is healthy, and exit with 1 if it is not
    #[arg(long)]
    pub(crate) check_health: bool,

    /// Load sample projects into a private database of their own, print a read key and sample requests, and serve
    #[arg(long)]
    pub(crate) demo: bool,

    /// With --demo: install Postgres without asking if it is missing
    #[arg(long, requires = "demo")]
    pub(crate) install: bool,
}

impl Config {
    /// Starts the log. Call it once.
    pub(crate) fn start_log(&self) {
        assay_service_log::start(&self.log, Some(self.log_format));
    }

    /// The limit for answers in memory, in bytes.
    pub(crate) fn answer_bytes(&self) -> usize {
        usize::try_from(u64::from(self.answer_memory_mib) << 20).unwrap_or(usize::MAX)
    }

    /// The named database; an empty variable counts as unset. A process that only takes reports may name only the
    /// database for reports.
    pub(crate) fn database_url(&self) -> Option<&str> {
        let reads = self.listen != Address::Off || self.front_listen() != Place::Off;
        let reports_url = match reads {
            true => None,
            false => named(self.ingest_database_url.as_deref()),
        };
        named(self.database_url.as_deref()).or(reports_url)
    }

    /// The database for reports, if it is named separately.
    pub(crate) fn ingest_database_url(&self) -> Option<&str> {
        named(self.ingest_database_url.as_deref())
    }

    /// Where reports are taken.
    pub(crate) fn ingest_listen(&self) -> Place {
        let default_place = if self.demo {
            Place::At(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8081))
        } else {
            Place::Off
        };
        self.place(self.ingest_listen, default_place)
    }

    /// The folder of the private database. The demonstration has its own, so that its projects are not among real ones.
    /// An empty variable counts as unset.
    pub(crate) fn data_dir(&self) -> PathBuf {
        match &self.data_dir {
            Some(dir) if !dir.as_os_str().is_empty() => dir.clone(),
            Some(_) | None => {
                let name = if self.demo { ".assay-demo" } else { ".assay" };
                let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
                assay_local_postgres::nearest(name, &here)
            }
        }
    }

    /// Where the pages and agents' tools are.
    pub(crate) fn front_listen(&self) -> Place {
        let default_place = match self.listen {
            Address::Off => Place::Off,
            Address::At(_) => Place::At(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8082)),
        };
        self.place(self.front_listen, default_place)
    }

    /// A place that was chosen, or the default. The address of the API, spelled out, is the same as `same`.
    fn place(&self, chosen: Option<Place>, default_place: Place) -> Place {
        match (chosen.unwrap_or(default_place), self.listen) {
            (Place::At(address), Address::At(api)) if address == api && address.port() != 0 => Place::WithApi,
            (place, Address::At(_) | Address::Off) => place,
        }
    }

    /// The file of providers, read and checked; an empty one if none is set.
    pub(crate) fn identity(&self) -> Result<IdentityFile, FileError> {
        let path = self
            .identity_file
            .as_deref()
            .filter(|path| !path.as_os_str().is_empty());
        path.map_or_else(|| Ok(IdentityFile::default()), IdentityFile::read)
    }

    /// The secret of the pages' sessions, if it is set.
    pub(crate) fn front_secret(&self) -> Option<&str> {
        named(self.front_secret.as_deref())
    }

    /// The address of the installation for people, agents and CI, if it is set.
    pub(crate) fn public_url(&self) -> Option<PublicUrl> {
        named(self.public_url.as_deref()).and_then(|text| PublicUrl::parse(text).ok())
    }

    /// Refuses settings that contradict each other, with one sentence.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.validate().map_err(|invalid| {
            let errors = invalid.field_errors();
            let first = errors.values().flat_map(|errors| errors.iter()).next();
            let message = first.and_then(|error| error.message.as_deref());
            message.map_or_else(|| invalid.to_string(), str::to_owned)
        })
    }

    /// The named standbys; an empty variable counts as unset.
    pub(crate) fn replica_url(&self) -> Option<&str> {
        named(self.replica_url.as_deref())
    }

    /// The named Redis server; an empty variable counts as unset.
    pub(crate) fn redis_url(&self) -> Option<&str> {
        named(self.redis_url.as_deref())
    }

    /// The paths of the certificate and its key, if TLS is configured.
    pub(crate) fn tls(&self) -> Option<Files> {
        let path = |file: &Option<String>| named(file.as_deref()).map(PathBuf::from);
        let (certificate, key) = path(&self.tls_cert).zip(path(&self.tls_key))?;
        Some(Files { certificate, key })
    }

    /// The numbers of threads, blocking threads and connections.
    pub(crate) fn sizes(&self, processors: NonZeroUsize) -> Sizes {
        let processors = u32::try_from(processors.get())
            .unwrap_or(MOST_CONNECTIONS)
            .min((MOST_CONNECTIONS - 1) / 2);
        let workers = match (self.workers, self.pool_size) {
            (Some(workers), _) => workers,
            // With fewer connections than processors, further workers would only wait for a connection.
            (None, Some(pool)) => processors.min(pool.saturating_sub(1).max(1)),
            (None, None) => processors,
        };
        let pool = self
            .pool_size
            .unwrap_or(((workers * 2).max(LEAST_BLOCKING_THREADS) + 1).min(MOST_CONNECTIONS));
        Sizes {
            workers,
            // One connection is reserved for readiness checks, so that they are answered under any load.
            blocking: (pool - 1).max(1),
            pool,
        }
    }
}

/// The sizes of the pools. There are no more blocking threads than connections, so that no read waits for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Threads that answer requests.
    pub(crate) workers: u32,
    /// Threads that wait for the database.
    pub(crate) blocking: u32,
    /// Connections to the database.
    pub(crate) pool: u32,
}

fn named(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

/// Rejected here, because the logger would ignore the parts that it does not understand.
fn log_filter(text: &str) -> Result<String, String> {
    match env_filter::Builder::new().try_parse(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("expected levels, such as info or warn,assay_http_api=debug".to_owned()),
    }
}

fn rate_limit(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| {
        format!(
            "expected a whole number of requests from 0 (no limit) to {}",
            u32::MAX
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(arguments: &[&str], processors: usize) -> Result<Sizes, String> {
        let arguments = ["assay-server"].iter().chain(arguments);
        let config = Config::try_parse_from(arguments).unwrap();
        config.check()?;
        Ok(config.sizes(NonZeroUsize::new(processors).unwrap()))
    }

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory as _;
        Config::command().debug_assert();
    }

    #[test]
    fn blocking_threads_never_outnumber_connections() {
        assert_eq!(
            sizes(&[], 2),
            Ok(Sizes {
                workers: 2,
                blocking: 8,
                pool: 9
            })
        );
        assert_eq!(
            sizes(&["--pool-size", "3"], 8),
            Ok(Sizes {
                workers: 2,
                blocking: 2,
                pool: 3
            })
        );
        assert_eq!(
            sizes(&["--pool-size", "1"], 8),
            Ok(Sizes {
                workers: 1,
                blocking: 1,
                pool: 1
            })
        );
        assert_eq!(
            sizes(&["--pool-size", "10", "--workers", "4"], 8),
            Ok(Sizes {
                workers: 4,
                blocking: 9,
                pool: 10
            })
        );
        assert!(
            sizes(&["--pool-size", "2", "--workers", "4"], 8)
                .unwrap_err()
                .contains("ASSAY_POOL_SIZE")
        );
        assert_eq!(sizes(&[], 100_000).unwrap().pool, 1_023);
    }

    #[test]
    fn standbys_need_a_database_url() {
        let replicas = |arguments: &[&str]| {
            let arguments = ["assay-server"].iter().chain(arguments);
            let config = Config::try_parse_from(arguments).unwrap();
            config.check().map(|()| config.replica_url().map(str::to_owned))
        };
        let with_database = |url| replicas(&["--database-url", "postgresql://one/d", "--replica-url", url]);
        for url in [
            "postgresql://two,three/d",
            "postgres://two/d",
            "host=two,three dbname=d",
        ] {
            assert_eq!(with_database(url), Ok(Some(url.to_owned())));
            assert!(replicas(&["--replica-url", url]).is_err());
        }
        assert_eq!(with_database(" "), Ok(None));
        for url in ["mysql://two/d", "mysql://two/d?a=b", "two"] {
            assert!(with_database(url).unwrap_err().contains("ASSAY_REPLICA_URL"));
        }
    }

    #[test]
    fn pages_and_reports_share_an_address_only_with_the_api() {
        let check = |arguments: &[&str]| {
            let arguments = ["assay-server"].iter().chain(arguments);
            Config::try_parse_from(arguments).unwrap().check()
        };
        let at = |front, ingest| check(&["--front-listen", front, "--ingest-listen", ingest]);
        let refused = at("127.0.0.1:9000", "127.0.0.1:9000").unwrap_err();
        assert!(
            refused.contains("Set ASSAY_LISTEN to 127.0.0.1:9000"),
            "{refused}"
        );
        for (front, ingest) in [
            ("127.0.0.1:9000", "127.0.0.1:9001"),
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("same", "same"),
            ("127.0.0.1:8080", "127.0.0.1:8080"),
        ] {
            assert_eq!(at(front, ingest), Ok(()), "{front} {ingest}");
        }
    }

    #[test]
    fn wrong_values_are_refused() {
        for arguments in [
            ["--listen", "8080"],
            ["--listen", "127.0.0.1:99999"],
            ["--rate-limit", "-1"],
            ["--rate-limit", "sixty"],
            ["--pool-size", "0"],
            ["--workers", "0"],
            ["--workers", "1025"],
        ] {
            assert!(
                Config::try_parse_from(["assay-server"].iter().chain(&arguments)).is_err(),
                "{arguments:?}"
            );
        }
        assert!(Config::try_parse_from(["assay-server", "--install"]).is_err());
    }
}
