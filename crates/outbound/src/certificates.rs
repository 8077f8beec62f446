//! Why an encrypted connection was not made.

use std::{error::Error, io};

use rustls::CertificateError;

/// Why TLS failed, if it did, from an error or its cause.
pub fn problem(error: &(dyn Error + 'static)) -> Option<String> {
    let own = error.downcast_ref::<io::Error>();
    let cause = || error.source()?.downcast_ref::<io::Error>();
    let problem = own.or_else(cause)?.get_ref()?.downcast_ref::<rustls::Error>()?;
    let rustls::Error::InvalidCertificate(certificate) = problem else {
        return Some(format!("the encryption failed: {problem}"));
    };
    Some(match certificate == &CertificateError::UnknownIssuer {
        true => "no authority of this system vouches for its certificate; install the certificate of its authority, or \
                 name a file with it in SSL_CERT_FILE"
            .to_owned(),
        false => format!("its certificate is not trusted: {problem}"),
    })
}
