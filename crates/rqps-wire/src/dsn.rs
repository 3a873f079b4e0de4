//! Data source names: a URL with protocol, address and login.
//!
//! ```text
//! postgres://user:password@host:5432/database?sslmode=require
//! postgres://user@/database?host=/var/run/postgresql
//! mysql://user:password@host:3306/database
//! mariadb://user@/database?socket=/run/mysqld/mysqld.sock
//! postgres://?service=prod
//! mysql://?login-path=prod
//! ```
//!
//! Whatever is in a part may be percent-encoded. User and host must be named, or a service of libpq
//! or a login path of MySQL that has them. Only what a DSN leaves out may come from elsewhere
//! (password.rs). A password `${NAME}` names the environment variable.

mod fault;
mod name;
mod parts;
mod scheme;

use self::parts::Parts;
use self::scheme::{is_option, split_options, variable};
use rqps_model::dialect::Dialect;

pub use fault::DsnError;
pub use name::Dsn;
pub use scheme::known_scheme;

impl Dsn {
    /// True if the text looks like a DSN rather than the name of a build or a path.
    pub fn looks_like(text: &str) -> bool {
        text.split_once("://").is_some_and(|(scheme, _)| known_scheme(scheme).is_some())
    }

    /// Parses a DSN. User and host may be missing if it names a service; [`Dsn::parse_with`]
    /// completes them.
    pub fn parse(text: &str) -> Result<Dsn, DsnError> {
        Parts::read(text, &[])?.finish(false)
    }

    /// Parses a DSN and takes missing parts from `service`: pairs of a libpq option and its value.
    pub fn parse_with(text: &str, service: &[(String, String)]) -> Result<Dsn, DsnError> {
        Parts::read(text, service)?.finish(true)
    }

    /// The dialect of the server.
    pub fn dialect(&self) -> Dialect {
        self.dbms.dialect()
    }
}

/// The DSN as logs and files may have it. `${NAME}`, a password in a variable, stays; whatever may be
/// a part of a password goes, also where the DSN has mistakes.
pub fn without_password(dsn: &str) -> String {
    let Some((scheme, rest)) = dsn.split_once("//") else { return dsn.to_string() };
    let (place, query) = split_options(rest);
    let place = match place.rsplit_once('@') {
        Some((login, host)) => {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            match variable(password) {
                Some(name) => format!("{user}:${{{name}}}@{host}"),
                None => format!("{user}@{host}"),
            }
        }
        None => without_port_word(place).to_owned(),
    };
    let is_secret = |pair: &str| {
        pair.to_lowercase().starts_with("pass") || (pair.contains('@') && !is_option(pair))
    };
    let query: Vec<&str> =
        query.split('&').filter(|pair| !pair.is_empty() && !is_secret(pair)).collect();
    if query.is_empty() {
        format!("{scheme}//{place}")
    } else {
        format!("{scheme}//{place}?{}", query.join("&"))
    }
}

/// Cuts the address off at a port that is not a number: it is the password if the host is missing.
fn without_port_word(place: &str) -> &str {
    let authority = place.split('/').next().unwrap_or_default();
    let is_port = |text: &str| text.is_empty() || text.parse::<u16>().is_ok();
    match authority.split_once(':') {
        Some((host, port)) if !host.starts_with('[') && !is_port(port) => host,
        _ => place,
    }
}

#[cfg(test)]
mod tests;
