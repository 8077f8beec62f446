//! A certificate authority of a test.

use std::{
    fs,
    io::{Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::{ServerConfig, ServerConnection, StreamOwned, crypto::ring, pki_types::PrivateKeyDer};

/// Issues certificates that only those trust who have its own.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authority")
    }
}

impl Authority {
    /// A new one with this name.
    pub fn new(name: &str) -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap())
    }

    /// Writes its certificate into a folder, for `SSL_CERT_FILE`.
    pub fn write(&self, folder: &Path) -> PathBuf {
        let path = folder.join("authority.pem");
        fs::write(&path, self.0.pem()).unwrap();
        path
    }

    /// The configuration of a server with a certificate for this name.
    pub fn server(&self, name: &str) -> Arc<ServerConfig> {
        let key = KeyPair::generate().unwrap();
        let parameters = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = parameters.signed_by(&key, &self.0).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key);
        Arc::new(config.unwrap())
    }
}

/// A connection to a receiver, encrypted or not.
pub(crate) trait Connection: Read + Write {}

impl<T: Read + Write> Connection for T {}

/// Accepts a connection: with this configuration encrypted, else plain.
pub(crate) fn accept(
    connection: impl Connection + 'static,
    tls: Option<&Arc<ServerConfig>>,
) -> Box<dyn Connection> {
    match tls {
        Some(tls) => {
            let session = ServerConnection::new(Arc::clone(tls)).unwrap();
            Box::new(StreamOwned::new(session, connection))
        }
        None => Box::new(connection),
    }
}
