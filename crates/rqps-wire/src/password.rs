//! Completes the login of a DSN from the sources of the DBMS's own client: environment variables
//! and files of the user. So no password need stand on a command line, where `ps` shows it.
//!
//! Sources: <https://www.postgresql.org/docs/17/libpq-pgpass.html>,
//! <https://www.postgresql.org/docs/17/libpq-pgservice.html>,
//! <https://dev.mysql.com/doc/refman/8.4/en/option-files.html>,
//! <https://dev.mysql.com/doc/refman/8.4/en/mysql-config-editor.html>.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::dsn::{Dsn, DsnError};
use super::{mylogin, option_file};
use rqps_model::bounded;
use rqps_model::dialect::OwnClient;
use rqps_model::endpoint::Address;

/// Folders of Postgres sockets whose host is `localhost` in a password file.
const DEFAULT_SOCKET_FOLDERS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// Services for all users; Debian's libpq reads them here.
const SYSTEM_SERVICES: &str = "/etc/postgresql-common/pg_service.conf";

/// The options of a service or login path that rqps supports.
const SERVICE_OPTIONS: [&str; 12] = [
    "host", "port", "user", "password", "dbname", "socket", "sslmode", "sslrootcert", "sslcert",
    "sslkey", "channel_binding", "require_auth",
];

/// An error while completing a login.
#[derive(Debug, Error)]
pub enum PasswordError {
    /// The DSN is invalid.
    #[error(transparent)]
    Dsn(#[from] DsnError),
    /// The DSN names an environment variable that is not set.
    #[error("the DSN takes its password from the environment variable {0}, which is not set")]
    NoVariable(String),
    /// The DSN refers to the service in PGSERVICE, which is not set.
    #[error("the DSN takes its service from PGSERVICE, which is not set\nhint: ?service=NAME")]
    NoServiceName,
    /// No file has the service.
    #[error("service {name} not found; looked in {}", places(looked_in))]
    NoService {
        /// The name of the service.
        name: String,
        /// The files that rqps searched.
        looked_in: Vec<PathBuf>,
    },
    /// The file does not contain the login path.
    #[error(
        "no login path {name} in {}\nhint: mysql_config_editor set --login-path={name} \
         --user=USER --host=HOST --password",
        path.display()
    )]
    NoLoginPath {
        /// The name of the login path.
        name: String,
        /// The file.
        path: PathBuf,
    },
    /// Other users can access the file of the login path.
    #[error("use the login path {name}: {words}")]
    OpenLoginPath {
        /// The name of the login path.
        name: String,
        /// The problem and a way out.
        words: String,
    },
    /// A file cannot be read.
    #[error("read the passwords in {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

fn places(files: &[PathBuf]) -> String {
    let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    if files.is_empty() { "no file, because HOME is not set".to_owned() } else { files.join(", ") }
}

/// A DSN with its completed login.
pub struct Known {
    /// The DSN, with the password if any source has one.
    pub dsn: Dsn,
    /// True if the DSN itself contains the password.
    pub is_visible: bool,
    /// Where the password is from, in words; empty without one.
    pub source: String,
    /// Sources that were ignored, as sentences.
    pub notes: Vec<String>,
}

/// Passwords that the user typed, by the text of the DSN. Its debug form hides them.
#[derive(Clone, Default)]
pub struct TypedPasswords(BTreeMap<String, String>);

impl TypedPasswords {
    /// The password for a DSN.
    pub fn of(&self, dsn: &str) -> Option<&str> {
        self.0.get(dsn).map(String::as_str)
    }

    /// Adds the password for a DSN.
    pub fn add(&mut self, dsn: &str, password: String) {
        self.0.insert(dsn.to_owned(), password);
    }
}

impl fmt::Debug for TypedPasswords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passwords", self.0.len())
    }
}

/// Looks up an environment variable.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Parses a DSN and completes its login. A service or login path that the DSN names has the first
/// word. The password comes from the variable that the DSN names; otherwise, for Postgres, from
/// PGPASSWORD, then PGPASSFILE or ~/.pgpass; for MySQL, from group `client` of ~/.mylogin.cnf, then
/// of ~/.my.cnf, then MYSQL_PWD. A login without a password stays without.
///
/// # Errors
///
/// The DSN is invalid; a service or login path does not exist; a file cannot be read.
pub fn known(text: &str, variable: Variables<'_>) -> Result<Known, PasswordError> {
    let dsn = Dsn::parse(text)?;
    let is_visible = !dsn.login.password.is_empty();
    let mut known = Known { dsn, is_visible, source: String::new(), notes: Vec::new() };
    let variable: Variables<'_> = &|name| variable(name).filter(|value| !value.is_empty());
    if let Some(name) = known.dsn.service.clone() {
        let options = match known.dsn.dialect().spec().server.as_ref().map(|it| it.client) {
            Some(OwnClient::Mysql) => login_path(&name, variable)?,
            _ => service(&name, variable)?,
        };
        let (options, unknown): (Vec<_>, Vec<_>) =
            options.into_iter().partition(|(option, _)| SERVICE_OPTIONS.contains(&option.as_str()));
        if !unknown.is_empty() {
            let names: Vec<&str> = unknown.iter().map(|(option, _)| option.as_str()).collect();
            known.notes.push(format!("rqps ignores {} of the service", names.join(", ")));
        }
        known.dsn = Dsn::parse_with(text, &options)?;
    }
    complete(&mut known, variable)?;
    Ok(known)
}

fn in_home(variable: Variables<'_>, file: &str) -> Option<PathBuf> {
    variable("HOME").map(|home| Path::new(&home).join(file))
}

/// The options of a libpq service; a service of the user hides one of the host.
fn service(name: &str, variable: Variables<'_>) -> Result<Vec<(String, String)>, PasswordError> {
    let name = match name {
        "" => variable("PGSERVICE").ok_or(PasswordError::NoServiceName)?,
        name => name.to_owned(),
    };
    let of_user = variable("PGSERVICEFILE").map(PathBuf::from);
    let of_user = of_user.or_else(|| in_home(variable, ".pg_service.conf"));
    let of_host = variable("PGSYSCONFDIR").map(|folder| Path::new(&folder).join("pg_service.conf"));
    let of_host = of_host.unwrap_or_else(|| PathBuf::from(SYSTEM_SERVICES));
    let files: Vec<PathBuf> = of_user.into_iter().chain([of_host]).collect();
    for file in &files {
        if let Some(bytes) = read(file, 0, &mut Vec::new())?
            && let Some(options) = option_file::service(&String::from_utf8_lossy(&bytes), &name)
        {
            return Ok(options);
        }
    }
    Err(PasswordError::NoService { name, looked_in: files })
}

/// The options of a MySQL login path.
fn login_path(name: &str, variable: Variables<'_>) -> Result<Vec<(String, String)>, PasswordError> {
    let name = if name.is_empty() { "client" } else { name };
    let file = mylogin_file(variable).unwrap_or_else(|| PathBuf::from("~/.mylogin.cnf"));
    let mut notes = Vec::new();
    let options = match mylogin_text(&file, &mut notes)? {
        Some(text) => option_file::group(&text, name),
        None => Vec::new(),
    };
    if let Some(words) = notes.pop() {
        return Err(PasswordError::OpenLoginPath { name: name.to_owned(), words });
    }
    if options.is_empty() {
        return Err(PasswordError::NoLoginPath { name: name.to_owned(), path: file });
    }
    Ok(options)
}

fn mylogin_file(variable: Variables<'_>) -> Option<PathBuf> {
    let named = variable("MYSQL_TEST_LOGIN_FILE").map(PathBuf::from);
    named.or_else(|| in_home(variable, ".mylogin.cnf"))
}

/// The decrypted text of a login-path file; `None` if there is none, or if other users can access
/// it.
fn mylogin_text(file: &Path, notes: &mut Vec<String>) -> Result<Option<String>, PasswordError> {
    let text = read(file, 0o077, notes)?.map(|bytes| mylogin::text(&bytes)).transpose();
    text.map_err(|why| damaged(file, why))
}

/// Adds the password if one of the sources has it.
fn complete(known: &mut Known, variable: Variables<'_>) -> Result<(), PasswordError> {
    let Known { dsn, notes, source, is_visible } = known;
    if let Some(name) = &dsn.password_variable {
        dsn.login.password =
            variable(name).ok_or_else(|| PasswordError::NoVariable(name.clone()))?;
        *source = format!("the variable {name}");
    }
    let Some(server) = &dsn.dialect().spec().server else { return Ok(()) };
    if !dsn.login.password.is_empty() {
        if source.is_empty() {
            *source = if *is_visible { "the DSN" } else { "the service" }.to_owned();
        }
        return Ok(());
    }
    let from_variable = variable(server.client.variable());
    let mut file_read = None;
    let from_file = match server.client {
        OwnClient::Libpq if from_variable.is_some() => None,
        OwnClient::Libpq => {
            let named = variable("PGPASSFILE").map(PathBuf::from);
            let file = named.or_else(|| in_home(variable, ".pgpass"));
            file_read.clone_from(&file);
            from_text(file, 0o077, notes)?.and_then(|text| in_pgpass(&text, dsn))
        }
        OwnClient::Mysql => {
            file_read = mylogin_file(variable);
            let paths = match &file_read {
                Some(file) => mylogin_text(file, notes)?,
                None => None,
            };
            let of_path = paths.and_then(|text| in_login_path(&text, dsn));
            match of_path {
                Some(password) => Some(password),
                None => {
                    file_read = in_home(variable, ".my.cnf");
                    from_text(file_read.clone(), 0o022, notes)?.and_then(|text| in_my_cnf(&text))
                }
            }
        }
    };
    *source = match (&from_file, file_read) {
        (Some(_), Some(file)) => file.display().to_string(),
        _ if from_variable.is_some() => format!("the variable {}", server.client.variable()),
        _ => String::new(),
    };
    dsn.login.password = from_file.or(from_variable).unwrap_or_default();
    Ok(())
}

fn from_text(
    file: Option<PathBuf>,
    forbidden: u32,
    notes: &mut Vec<String>,
) -> Result<Option<String>, PasswordError> {
    let Some(file) = file else { return Ok(None) };
    let text = read(&file, forbidden, notes)?.map(String::from_utf8).transpose();
    text.map_err(|error| damaged(&file, error.utf8_error()))
}

/// `None` if there is no file, or one that others may read or write, which is noted.
fn read(
    path: &Path,
    forbidden: u32,
    notes: &mut Vec<String>,
) -> Result<Option<Vec<u8>>, PasswordError> {
    let facts = match fs::metadata(path) {
        Ok(facts) => facts,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(path, error)),
    };
    if facts.permissions().mode() & forbidden != 0 && facts.is_file() {
        notes.push(format!(
            "{} is not used, because others can read or write it; chmod 600 it",
            path.display()
        ));
        return Ok(None);
    }
    let bytes = facts.is_file().then(|| bounded::bytes(path, bounded::WRITTEN_MAX));
    bytes.transpose().map_err(|error| unreadable(path, error))
}

fn unreadable(path: &Path, source: io::Error) -> PasswordError {
    PasswordError::Unreadable { path: path.to_owned(), source }
}

fn damaged(path: &Path, why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> PasswordError {
    unreadable(path, io::Error::new(io::ErrorKind::InvalidData, why))
}

/// The password of the login path `client`, which all MySQL clients read; `None` if it is for
/// another host or user.
fn in_login_path(text: &str, dsn: &Dsn) -> Option<String> {
    let options = option_file::group(text, "client");
    let last = |wanted: &str| {
        let found = options.iter().rev().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.as_str())
    };
    let host = match &dsn.address {
        Address::Tcp { host, .. } => host.as_str(),
        Address::Unix(_) => "localhost",
    };
    let fits = last("host").is_none_or(|wanted| wanted == host)
        && last("user").is_none_or(|wanted| wanted == dsn.login.user);
    last("password").filter(|password| fits && !password.is_empty()).map(str::to_owned)
}

/// The password in the first matching line `host:port:database:user:password`. `*` matches all; a
/// backslash escapes a colon or a backslash.
fn in_pgpass(text: &str, dsn: &Dsn) -> Option<String> {
    let (host, port) = match &dsn.address {
        Address::Tcp { host, port, .. } => (host.clone(), port.to_string()),
        Address::Unix(socket) => socket_of(socket),
    };
    // Without a database, libpq uses that of the user's name.
    let database = match dsn.login.database.as_str() {
        "" => &dsn.login.user,
        database => database,
    };
    let wanted = [host.as_str(), &port, database, &dsn.login.user];
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let (password, rest) = fields.get(4).zip(fields.get(..4))?;
        let fits = |(field, wanted): (&Field, &&str)| field.is_star || field.text == **wanted;
        rest.iter().zip(&wanted).all(fits).then(|| password.text.clone())
    })
}

/// Host and port of a unix socket, as in a password file.
fn socket_of(socket: &Path) -> (String, String) {
    let folder = socket.parent().unwrap_or(Path::new("/")).to_string_lossy().into_owned();
    let name = socket.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let port = name.rsplit('.').next().unwrap_or_default().to_owned();
    let is_default = DEFAULT_SOCKET_FOLDERS.contains(&folder.as_str());
    (if is_default { "localhost".to_owned() } else { folder }, port)
}

/// A field of a line of .pgpass.
#[derive(Default)]
struct Field {
    text: String,
    /// True for a `*` without a backslash.
    is_star: bool,
}

fn fields(line: &str) -> Vec<Field> {
    let mut fields = vec![Field::default()];
    let mut characters = line.chars();
    let mut escaped = false;
    while let Some(character) = characters.next() {
        let literal = match character {
            ':' if fields.len() < 5 => {
                let last = fields.last_mut();
                if let Some(field) = last {
                    field.is_star = field.text == "*" && !escaped;
                }
                fields.push(Field::default());
                escaped = false;
                continue;
            }
            '\\' => {
                escaped = true;
                characters.next().unwrap_or('\\')
            }
            other => other,
        };
        if let Some(field) = fields.last_mut() {
            field.text.push(literal);
        }
    }
    fields
}

/// The last `password` of the group `client` in an option file.
fn in_my_cnf(text: &str) -> Option<String> {
    let options = option_file::group(text, "client");
    let found = options.into_iter().rev().find(|(name, _)| name == "password");
    found.map(|(_, password)| password).filter(|password| !password.is_empty())
}

#[cfg(test)]
mod tests;
