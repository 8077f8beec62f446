//! TLS on the API's own listener: the certificate and its key, read again when they are renewed.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, anyhow, bail};
use rustls::{
    ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio::signal::unix::Signal;

/// How often the files are looked at. A renewal leaves the former certificate weeks to live.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Where the certificate chain and its key lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Files {
    /// The certificate, then those that lead to its root, as PEM.
    pub(crate) certificate: PathBuf,
    /// The certificate's private key, as PEM.
    pub(crate) key: PathBuf,
}

/// The certificate in use. Connections begun with a former one go on with it.
#[derive(Debug)]
pub(crate) struct Certificate {
    files: Files,
    provider: Arc<CryptoProvider>,
    current: RwLock<Arc<CertifiedKey>>,
}

impl Certificate {
    /// Reads the files, which must be sound.
    pub(crate) fn read(files: Files) -> anyhow::Result<Arc<Self>> {
        let provider = Arc::new(ring::default_provider());
        let current = RwLock::new(files.read(&provider)?);
        Ok(Arc::new(Self {
            files,
            provider,
            current,
        }))
    }

    /// How a listener with this certificate greets its clients: TLS 1.2 and 1.3, without client certificates.
    pub(crate) fn config(self: &Arc<Self>) -> anyhow::Result<ServerConfig> {
        Ok(ServerConfig::builder_with_provider(self.provider.clone())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(self.clone()))
    }

    /// Reads the files again on SIGHUP, and once a minute where one of them changed; for ever.
    ///
    /// Files that are not sound, as while they are being written, change nothing but the log.
    pub(crate) async fn renew_on(self: Arc<Self>, mut hangups: Signal) {
        let mut seen = self.files.changed();
        loop {
            let is_asked = tokio::select! {
                _ = hangups.recv() => true,
                () = tokio::time::sleep(LOOK_EVERY) => false,
            };
            let changed = self.files.changed();
            if is_asked || changed != seen {
                seen = changed;
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
            Err(error) => log::error!("the former certificate stays in use: {error:#}"),
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
    fn read(&self, provider: &CryptoProvider) -> anyhow::Result<Arc<CertifiedKey>> {
        let chain = chain(&self.certificate)
            .with_context(|| format!("ASSAY_TLS_CERT: {}", self.certificate.display()))?;
        let key = private_key(&self.key).with_context(|| format!("ASSAY_TLS_KEY: {}", self.key.display()))?;
        let pair = CertifiedKey::from_der(chain, key, provider).map_err(|error| {
            anyhow!(
                "ASSAY_TLS_KEY: {} is not the key of the first certificate in {} ({error})",
                self.key.display(),
                self.certificate.display()
            )
        })?;
        Ok(Arc::new(pair))
    }

    /// When the files were last written; nothing where that cannot be told.
    fn changed(&self) -> [Option<SystemTime>; 2] {
        [&self.certificate, &self.key].map(|file| fs::metadata(file).and_then(|file| file.modified()).ok())
    }
}

fn chain(file: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let bytes = fs::read(file).context("cannot be read; expected a PEM file with the certificate chain")?;
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<_, _>>()
        .map_err(|error| anyhow!("is not sound PEM; expected a certificate chain ({error})"))?;
    if chain.is_empty() {
        bail!("holds no certificate; expected PEM with BEGIN CERTIFICATE, the server's own first");
    }
    Ok(chain)
}

/// The error of the PEM reader is not passed on: it may quote what it read.
fn private_key(file: &Path) -> anyhow::Result<PrivateKeyDer<'static>> {
    let bytes =
        fs::read(file).context("cannot be read; expected a PEM file with the certificate's private key")?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| {
        anyhow!("holds no private key; expected PEM with BEGIN PRIVATE KEY, without a passphrase")
    })
}
