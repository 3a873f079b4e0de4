//! Errors of sessions.

use thiserror::Error;

/// Errors of a session.
#[derive(Debug, Error)]
pub enum WireError {
    /// The server refused the statement; the session lives on.
    #[error("{message} ({code})")]
    Server {
        /// SQLSTATE for Postgres (`40001`), error number for MySQL (`1213`), result code for
        /// SQLite.
        code: String,
        /// The server's words.
        message: String,
    },
    /// The server asks for a password, and none is known.
    #[error("{words}")]
    NoPassword {
        /// `28P01` of Postgres, `1045` of MySQL.
        code: &'static str,
        /// What the server says, and where a password may come from.
        words: String,
    },
    /// The connection is broken or was never made.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done: "connect to /tmp/x/.s.PGSQL.5432".
        doing: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The server said something that this client does not understand or support.
    #[error("{0}")]
    Protocol(String),
}

impl WireError {
    /// The server's code, if it was the server who refused.
    pub fn code(&self) -> Option<&str> {
        match self {
            WireError::Server { code, .. } => Some(code),
            WireError::NoPassword { code, .. } => Some(code),
            WireError::Io { .. } | WireError::Protocol(_) => None,
        }
    }

    /// True if the server refused a session because it is not encrypted.
    pub(super) fn wants_encryption(&self) -> bool {
        matches!(self, WireError::Server { message, .. }
            if ENCRYPTION_WANTED.iter().any(|words| message.contains(words)))
    }

    /// The same for Postgres, whose messages may be in any language: it refuses a login for another
    /// reason than the password.
    pub(super) fn may_want_encryption(&self) -> bool {
        self.code() == Some(INVALID_AUTHORIZATION) || self.wants_encryption()
    }

    /// The same with a way out, if the server refused a session because it is not encrypted, or
    /// because it is, or because it came without a certificate.
    pub(super) fn with_tls_hint(self, encrypted: bool) -> WireError {
        let WireError::Server { message, .. } = &self else { return self };
        let says = |words: &[&str]| words.iter().any(|words| message.contains(words));
        let hint = if says(&CERTIFICATE_WANTED) {
            "name a certificate of the client with sslcert=FILE and sslkey=FILE"
        } else if !encrypted && self.wants_encryption() {
            "the server refuses sessions without TLS: use sslmode=require or verify-full"
        } else if encrypted && message.contains("SSL encryption") {
            "the server refuses sessions with TLS: use sslmode=disable"
        } else {
            return self;
        };
        WireError::Protocol(format!("{self}\nhint: {hint}"))
    }
}

/// The SQLSTATE of Postgres if pg_hba.conf has no matching entry, or the role does not exist.
const INVALID_AUTHORIZATION: &str = "28000";

/// Words of servers that want encryption: Postgres 14 and later, older ones, CockroachDB, Neon,
/// Azure; MySQL, MariaDB and TiDB; Vitess.
const ENCRYPTION_WANTED: [&str; 7] = [
    "no encryption",
    "SSL off",
    "SSL connection required",
    "connection is insecure",
    "SSL connection is required",
    "insecure transport",
    "insecure connections",
];

/// Words of Postgres and of poolers.
const CERTIFICATE_WANTED: [&str; 2] =
    ["requires a valid client certificate", "no TLS client certificate"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_is_refused_for_its_encryption_has_a_way_out() {
        let check = |message: &str, encrypted: bool, hint: &str| {
            let error = WireError::Server { code: "1".to_owned(), message: message.to_owned() };
            let text = error.with_tls_hint(encrypted).to_string();
            let found = text.split_once("\nhint: ").map_or("", |(_, hint)| hint);
            assert!(found.contains(hint) && found.is_empty() == hint.is_empty(), "{text}");
        };
        let hba = "no pg_hba.conf entry for host \"h\", user \"u\", database \"d\"";
        check(&format!("{hba}, no encryption"), false, "sslmode=require");
        check(&format!("{hba}, SSL encryption"), true, "sslmode=disable");
        check("Connections using insecure transport are prohibited", false, "sslmode=require");
        check("connection requires a valid client certificate", true, "sslcert=FILE");
        check(&format!("{hba}, no encryption"), true, "");
        check("database \"d\" does not exist", false, "");
        let german = WireError::Server {
            code: "28000".to_owned(),
            message: "kein pg_hba.conf-Eintrag für Host »h«, keine Verschlüsselung".to_owned(),
        };
        assert!(german.may_want_encryption());
    }
}
