//! Reads certificates and keys from PEM files.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::certificate;
use crate::WireError;
use rqps_model::bounded;
use rqps_model::endpoint::ClientIdentity;

/// The client's certificate and key.
pub(super) fn shown(identity: &ClientIdentity) -> Result<CertifiedKey, WireError> {
    let chain = certificates(&identity.certificate, "sslcert")?;
    let path = &identity.key;
    let bad = |what: &str| {
        WireError::Protocol(format!("read the private key of sslkey={}: {what}", path.display()))
    };
    let permissions = fs::metadata(path).map_err(|error| bad(&error.to_string()))?.permissions();
    if is_open_to_others(&permissions) {
        return Err(bad(&format!("others can read it\nhint: chmod 600 {}", path.display())));
    }
    let text = bounded::bytes(path, bounded::PEM_MAX).map_err(|error| bad(&error.to_string()))?;
    let key = PrivateKeyDer::from_pem_slice(&text).map_err(|_| {
        bad("it holds no private key in PEM form without a passphrase\nhint: `openssl pkey -in \
             FILE -out PLAIN` writes one")
    })?;
    let key = ring::sign::any_supported_type(&key).map_err(|error| bad(&error.to_string()))?;
    let of_key = key.public_key();
    let of_chain = chain.first().and_then(|first| certificate::key_info(first));
    if of_key.is_some_and(|of_key| of_chain != Some(of_key.as_ref())) {
        return Err(bad(&format!(
            "it is not the key of sslcert={}",
            identity.certificate.display()
        )));
    }
    Ok(CertifiedKey::new(chain, key))
}

/// A key of root may be readable for a group, as in libpq.
fn is_open_to_others(permissions: &Permissions) -> bool {
    permissions.mode() & 0o037 != 0
}

/// The certificates of a PEM file.
pub(super) fn certificates(
    file: &Path,
    option: &str,
) -> Result<Vec<CertificateDer<'static>>, WireError> {
    let fault = |what: String| {
        WireError::Protocol(format!("read the certificates of {option}={}: {what}", file.display()))
    };
    let text = bounded::bytes(file, bounded::PEM_MAX).map_err(|error| fault(error.to_string()))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| fault(error.to_string()))?;
    if found.is_empty() {
        return Err(fault("it holds no CERTIFICATE in PEM form".to_owned()));
    }
    Ok(found)
}
