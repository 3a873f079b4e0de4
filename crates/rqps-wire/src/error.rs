//! Errors of a database connection.

use thiserror::Error;

use rqps_model::escape;

/// An error of a connection.
#[derive(Debug, Error)]
pub enum WireError {
    /// The server refused the statement; the connection can go on.
    #[error("{} ({})", escape::line(message), escape::line(code))]
    Server {
        /// SQLSTATE for Postgres (`40001`), error number for MySQL (`1213`), result code for
        /// SQLite.
        code: String,
        /// The server's message.
        message: String,
    },
    /// The server asks for a password, and the login has none.
    #[error("{words}")]
    NoPassword {
        /// `28P01` of Postgres, `1045` of MySQL.
        code: &'static str,
        /// The server's message, and where a password may come from.
        words: String,
    },
    /// The connection is broken, or could not be opened.
    #[error("{doing}: {source}")]
    Io {
        /// The action that failed: "connect to /tmp/x/.s.PGSQL.5432".
        doing: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The client does not understand or support the server's message.
    #[error("{0}")]
    Protocol(String),
}

impl From<String> for WireError {
    fn from(what: String) -> WireError {
        WireError::Protocol(what)
    }
}

impl WireError {
    /// The server's code, if the server refused.
    pub fn code(&self) -> Option<&str> {
        match self {
            WireError::Server { code, .. } => Some(code),
            WireError::NoPassword { code, .. } => Some(code),
            WireError::Io { .. } | WireError::Protocol(_) => None,
        }
    }

    /// True if the server refused a session because it is not encrypted.
    fn wants_encryption(&self) -> bool {
        matches!(self, WireError::Server { message, .. }
            if ENCRYPTION_WANTED.iter().any(|words| message.contains(words)))
    }

    /// True if Postgres may have refused a connection because it is not encrypted. Its messages may
    /// be in any language, so the code of a refused login also counts.
    pub(super) fn may_want_encryption(&self) -> bool {
        self.code() == Some(INVALID_AUTHORIZATION) || self.wants_encryption()
    }

    /// Adds a hint if the server refused the connection because of encryption or a missing client
    /// certificate.
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

/// SQLSTATE of Postgres: pg_hba.conf has no matching entry, or the role does not exist.
const INVALID_AUTHORIZATION: &str = "28000";

/// Messages of servers that require encryption: Postgres 14 and later, older Postgres, CockroachDB,
/// Neon, Azure; MySQL, MariaDB and TiDB; Vitess.
const ENCRYPTION_WANTED: [&str; 7] = [
    "no encryption", "SSL off", "SSL connection required", "connection is insecure",
    "SSL connection is required", "insecure transport", "insecure connections",
];

/// Messages of Postgres and of poolers that require a client certificate.
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
