//! TLS over TCP by rustls. The server's certificate may be any (`require`), one signed by a trusted
//! authority (`verify-ca`), or one that is also for this host (`verify-full`).

mod binding;
mod certificate;
mod files;
mod refusal;
mod session;
mod verifier;

pub(super) use binding::server_end_point;
pub(super) use refusal::refused_afterwards;
pub(super) use session::{TlsStream, begin};
