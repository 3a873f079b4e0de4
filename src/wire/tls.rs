//! TLS over TCP, by rustls.
