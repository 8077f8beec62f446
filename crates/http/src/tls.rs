//! TLS: the certificate and its key, reloaded when they are renewed.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, SystemTime},
};

use rustls::{
    ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject as _},
    },
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio::signal::unix::Signal;

/// How often the files are checked. A minute is soon enough, because an old certificate stays valid for weeks.
const CHECK_EVERY: Duration = Duration::from_secs(60);

/// The paths of the certificate chain and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// The server's certificate followed by its intermediates, as PEM.
    pub certificate: PathBuf,
    /// The certificate's private key, as PEM.
    pub key: PathBuf,
}

/// The current certificate. Open connections keep the one that they started with.
#[derive(Debug)]
pub struct Certificate {
    files: Files,
    provider: Arc<CryptoProvider>,
    current: RwLock<Arc<CertifiedKey>>,
}

impl Certificate {
    /// Reads the files. Both must be valid.
    pub fn read(files: Files) -> Result<Arc<Self>, CertificateError> {
        let provider = Arc::new(ring::default_provider());
        let current = RwLock::new(files.read(&provider)?);
        Ok(Arc::new(Self {
            files,
            provider,
            current,
        }))
    }

    /// The TLS configuration: TLS 1.2 and 1.3, without client certificates.
    pub fn config(self: &Arc<Self>) -> Result<ServerConfig, CertificateError> {
        Ok(ServerConfig::builder_with_provider(self.provider.clone())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(self.clone()))
    }

    /// Reloads the files on SIGHUP, and within a minute after one of them changed. Never returns.
    ///
    /// Invalid files, for example half-written ones, only cause a log line.
    pub async fn renew_on(self: Arc<Self>, mut hangups: Signal) {
        let mut last_change = self.files.modified_at();
        loop {
            let is_requested = tokio::select! {
                _ = hangups.recv() => true,
                () = tokio::time::sleep(CHECK_EVERY) => false,
            };
            let modified_at = self.files.modified_at();
            if is_requested || modified_at != last_change {
                last_change = modified_at;
                self.renew();
            }
        }
    }

    fn renew(&self) {
        match self.files.read(&self.provider) {
            Ok(renewed) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = renewed;
                log::info!("read the certificate {} again", self.files.certificate.display());
            }
            Err(error) => log::error!("the former certificate stays in use: {error}"),
        }
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(
            self.current
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
        )
    }
}

impl Files {
    fn read(&self, provider: &CryptoProvider) -> Result<Arc<CertifiedKey>, CertificateError> {
        let at_fault = |setting, file: &PathBuf| {
            let file = file.clone();
            move |fault| CertificateError::File { setting, file, fault }
        };
        let chain = chain(&self.certificate).map_err(at_fault("ASSAY_TLS_CERT", &self.certificate))?;
        let key = private_key(&self.key).map_err(at_fault("ASSAY_TLS_KEY", &self.key))?;
        let pair =
            CertifiedKey::from_der(chain, key, provider).map_err(|error| CertificateError::NoPair {
                key: self.key.clone(),
                certificate: self.certificate.clone(),
                error,
            })?;
        Ok(Arc::new(pair))
    }

    /// The modification times of the certificate and the key; `None` for a file that cannot be read.
    fn modified_at(&self) -> [Option<SystemTime>; 2] {
        [&self.certificate, &self.key].map(|file| fs::metadata(file).and_then(|file| file.modified()).ok())
    }
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// One of the files is invalid.
    #[error("{setting}: {}: {fault}", file.display())]
    File {
        /// The setting that names the file.
        setting: &'static str,
        /// The file.
        file: PathBuf,
        /// The fault.
        fault: FileFault,
    },
    /// The key belongs to another certificate.
    #[error("ASSAY_TLS_KEY: {} is not the key of the first certificate in {} ({error})", key.display(), certificate.display())]
    NoPair {
        /// The key's file.
        key: PathBuf,
        /// The certificate's file.
        certificate: PathBuf,
        /// The error of rustls.
        error: rustls::Error,
    },
    /// TLS could not be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
}

/// The fault of a file.
#[derive(Debug, thiserror::Error)]
pub enum FileFault {
    /// It cannot be read.
    #[error("cannot be read; expected a PEM file with {expected}: {error}")]
    Unreadable {
        /// The expected content.
        expected: &'static str,
        /// The cause.
        error: io::Error,
    },
    /// It is not PEM.
    #[error("is not valid PEM; expected a certificate chain ({0})")]
    NotPem(pem::Error),
    /// It is PEM without a certificate.
    #[error("holds no certificate; expected PEM with BEGIN CERTIFICATE, the server's own first")]
    NoCertificate,
    /// It holds no key. The error of the PEM reader is omitted because it may quote the file.
    #[error("holds no private key; expected PEM with BEGIN PRIVATE KEY, without a passphrase")]
    NoKey,
}

fn read(file: &Path, expected: &'static str) -> Result<Vec<u8>, FileFault> {
    fs::read(file).map_err(|error| FileFault::Unreadable { expected, error })
}

fn chain(file: &Path) -> Result<Vec<CertificateDer<'static>>, FileFault> {
    let bytes = read(file, "the certificate chain")?;
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<_, _>>()
        .map_err(FileFault::NotPem)?;
    if chain.is_empty() {
        return Err(FileFault::NoCertificate);
    }
    Ok(chain)
}

fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, FileFault> {
    let bytes = read(file, "the certificate's private key")?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| FileFault::NoKey)
}
