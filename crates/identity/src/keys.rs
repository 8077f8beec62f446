//! The keys of an issuer, and the check of a signature by them.
//!
//! The algorithm is that of the key. A token that names another one is refused, so that `none` and a public key in the
//! place of a secret find nothing.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the enums of the token library may grow"
)]

use jsonwebtoken::signature::{Error, Verifier};
use jsonwebtoken::{
    Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey,
    crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils},
    errors::ErrorKind,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse},
};
use ring::signature as algorithms;
use serde::Deserialize;

/// Most keys of an issuer.
const MOST_KEYS: usize = 50;

/// The answer of an issuer's address of keys.
#[derive(Deserialize)]
pub(crate) struct KeySet {
    keys: Vec<serde_json::Value>,
}

/// A key that verifies signatures.
pub(crate) struct VerifyingKey {
    pub(crate) id: Option<String>,
    pub(crate) algorithm: Algorithm,
    pub(crate) key: DecodingKey,
}

impl KeySet {
    /// Its keys for signatures by a known algorithm. Others are left out.
    pub(crate) fn into_keys(self) -> Result<Vec<VerifyingKey>, String> {
        if self.keys.len() > MOST_KEYS {
            return Err(format!("it has more than {MOST_KEYS} keys"));
        }
        let read = |value| VerifyingKey::of(&serde_json::from_value(value).ok()?);
        let keys: Vec<_> = self.keys.into_iter().filter_map(read).collect();
        if keys.is_empty() {
            return Err("it has no key for signatures of a known algorithm".to_owned());
        }
        Ok(keys)
    }
}

impl VerifyingKey {
    fn of(jwk: &Jwk) -> Option<Self> {
        let usual = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => Algorithm::RS256,
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => Algorithm::ES256,
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P384 => Algorithm::ES384,
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => Algorithm::EdDSA,
            _ => return None,
        };
        let named = jwk
            .common
            .key_algorithm
            .map(|named| named.to_string().parse().ok());
        let algorithm = named.unwrap_or(Some(usual))?;
        let is_rsa = |algorithm: Algorithm| algorithm.family() == AlgorithmFamily::Rsa;
        let is_right = algorithm == usual || is_rsa(algorithm) && is_rsa(usual);
        let is_for_signatures = jwk.common.public_key_use != Some(PublicKeyUse::Encryption);
        (is_right && is_for_signatures).then_some(Self {
            id: jwk.common.key_id.clone(),
            algorithm,
            key: DecodingKey::from_jwk(jwk).ok()?,
        })
    }
}

/// The algorithms of RSA keys.
static RSA: [(Algorithm, &algorithms::RsaParameters); 6] = [
    (Algorithm::RS256, &algorithms::RSA_PKCS1_2048_8192_SHA256),
    (Algorithm::RS384, &algorithms::RSA_PKCS1_2048_8192_SHA384),
    (Algorithm::RS512, &algorithms::RSA_PKCS1_2048_8192_SHA512),
    (Algorithm::PS256, &algorithms::RSA_PSS_2048_8192_SHA256),
    (Algorithm::PS384, &algorithms::RSA_PSS_2048_8192_SHA384),
    (Algorithm::PS512, &algorithms::RSA_PSS_2048_8192_SHA512),
];

/// Verifies signatures by `ring`. It signs nothing.
static BY_RING: CryptoProvider = CryptoProvider {
    signer_factory: no_signer,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes the token library use `ring`.
pub(crate) fn use_ring() {
    // A second call finds it in use.
    let _ = BY_RING.install_default();
}

fn no_signer(_: &Algorithm, _: &EncodingKey) -> jsonwebtoken::errors::Result<Box<dyn JwtSigner>> {
    Err(ErrorKind::UnsupportedAlgorithm.into())
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> jsonwebtoken::errors::Result<Box<dyn JwtVerifier>> {
    let (algorithm, key) = (*algorithm, key.clone());
    Ok(Box::new(RingVerifier { algorithm, key }))
}

struct RingVerifier {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), Error> {
        let verified = match (self.key.kind(), self.algorithm) {
            (DecodingKeyKind::RsaModulusExponent { n, e }, algorithm) => {
                let mut known = RSA.iter().filter(|(rsa, _)| *rsa == algorithm);
                let (_, parameters) = known.next().ok_or_else(Error::new)?;
                algorithms::RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (DecodingKeyKind::SecretOrDer(point), algorithm) => {
                let parameters: &dyn algorithms::VerificationAlgorithm = match algorithm {
                    Algorithm::ES256 => &algorithms::ECDSA_P256_SHA256_FIXED,
                    Algorithm::ES384 => &algorithms::ECDSA_P384_SHA384_FIXED,
                    Algorithm::EdDSA => &algorithms::ED25519,
                    _ => return Err(Error::new()),
                };
                algorithms::UnparsedPublicKey::new(parameters, point).verify(message, signature)
            }
        };
        verified.map_err(|_| Error::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
