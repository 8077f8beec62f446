//! Why an encrypted connection was not made.

use std::{error::Error, io};

use rustls::CertificateError;

/// Why TLS failed, if it did, from an error or its cause.
pub(crate) fn problem(error: &(dyn Error + 'static)) -> Option<String> {
    let own = error.downcast_ref::<io::Error>();
    let cause = || error.source()?.downcast_ref::<io::Error>();
    let problem = own.or_else(cause)?.get_ref()?.downcast_ref::<rustls::Error>()?;
    Some(match problem {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "no authority of this system vouches for its certificate; install the certificate of its authority, or \
             name a file with it in SSL_CERT_FILE"
                .to_owned()
        }
        rustls::Error::InvalidCertificate(_) => format!("its certificate is not trusted: {problem}"),
        other => format!("the encryption failed: {other}"),
    })
}
