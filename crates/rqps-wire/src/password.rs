//! Completes the login of a DSN from the sources of the DBMS's own client: environment variables
//! and files of the user. So no password need stand on a command line, where `ps` shows it.
//!
//! Sources: <https://www.postgresql.org/docs/17/libpq-pgpass.html>,
//! <https://www.postgresql.org/docs/17/libpq-pgservice.html>,
//! <https://dev.mysql.com/doc/refman/8.4/en/option-files.html>,
//! <https://dev.mysql.com/doc/refman/8.4/en/mysql-config-editor.html>.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{fmt, io};

use aes::Aes128;
use aes::cipher::{Array, BlockCipherDecrypt, KeyInit};
use thiserror::Error;

use crate::dsn::{Dsn, DsnError};
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
    /// A variable, a service or a login path is not there, or others can read it.
    #[error("{0}")]
    Source(String),
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
        "" => variable("PGSERVICE").ok_or_else(|| {
            PasswordError::Source(
                "the DSN takes its service from PGSERVICE, which is not set\nhint: ?service=NAME"
                    .to_owned(),
            )
        })?,
        name => name.to_owned(),
    };
    let of_user = variable("PGSERVICEFILE").map(PathBuf::from);
    let of_user = of_user.or_else(|| in_home(variable, ".pg_service.conf"));
    let of_host = variable("PGSYSCONFDIR").map(|folder| Path::new(&folder).join("pg_service.conf"));
    let of_host = of_host.unwrap_or_else(|| PathBuf::from(SYSTEM_SERVICES));
    let files: Vec<PathBuf> = of_user.into_iter().chain([of_host]).collect();
    let mut notes = Vec::new();
    for file in &files {
        if let Some(bytes) = read(file, 0, &mut notes)?
            && let Some(options) = service_in_file(&String::from_utf8_lossy(&bytes), &name)
        {
            return Ok(options);
        }
    }
    let looked_in =
        std::iter::once(format!("service {name} not found; looked in {}", places(&files)));
    let told: Vec<String> = looked_in.chain(notes).collect();
    Err(PasswordError::Source(told.join("; ")))
}

/// The options of a MySQL login path.
fn login_path(name: &str, variable: Variables<'_>) -> Result<Vec<(String, String)>, PasswordError> {
    let name = if name.is_empty() { "client" } else { name };
    let file = mylogin_file(variable).unwrap_or_else(|| PathBuf::from("~/.mylogin.cnf"));
    let mut notes = Vec::new();
    let options = match mylogin_text(&file, &mut notes)? {
        Some(text) => group(&text, name),
        None => Vec::new(),
    };
    if let Some(words) = notes.pop() {
        return Err(PasswordError::Source(format!("use the login path {name}: {words}")));
    }
    if options.is_empty() {
        return Err(PasswordError::Source(format!(
            "no login path {name} in {}\nhint: mysql_config_editor set --login-path={name} \
             --user=USER --host=HOST --password",
            file.display()
        )));
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
    let text = read(file, 0o077, notes)?.map(|bytes| login_paths_text(&bytes)).transpose();
    text.map_err(|why| damaged(file, why))
}

/// Adds the password if one of the sources has it.
fn complete(known: &mut Known, variable: Variables<'_>) -> Result<(), PasswordError> {
    let Known { dsn, notes, source, is_visible } = known;
    if let Some(name) = &dsn.password_variable {
        dsn.login.password = variable(name).ok_or_else(|| {
            PasswordError::Source(format!(
                "the DSN takes its password from the environment variable {name}, which is not set"
            ))
        })?;
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

/// `None` if there is no file, or one that others may read or write, which is noted. Root takes no
/// login from a file of another user, who would choose the servers that get its passwords: HOME may be
/// that of whoever called sudo.
fn read(
    path: &Path,
    forbidden: u32,
    notes: &mut Vec<String>,
) -> Result<Option<Vec<u8>>, PasswordError> {
    let file = match bounded::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(|error| unreadable(path, error))?,
    };
    let facts = file.metadata().map_err(|error| unreadable(path, error))?;
    let why = if !facts.is_file() {
        return Ok(None);
    } else if rustix::process::geteuid().is_root() && facts.uid() != 0 {
        "it belongs to another user than root; chown root it"
    } else if facts.permissions().mode() & forbidden != 0 {
        "others can read or write it; chmod 600 it"
    } else {
        let bytes = bounded::rest(file, bounded::WRITTEN_MAX);
        return bytes.map(Some).map_err(|error| unreadable(path, error));
    };
    notes.push(format!("{} is not used, because {why}", path.display()));
    Ok(None)
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
    let options = group(text, "client");
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
    let options = group(text, "client");
    let found = options.into_iter().rev().find(|(name, _)| name == "password");
    found.map(|(_, password)| password).filter(|password| !password.is_empty())
}

// Reads option files with groups: those of MySQL (`~/.my.cnf`) and services of libpq
// (`~/.pg_service.conf`).
//
// Sources: <https://dev.mysql.com/doc/refman/8.4/en/option-files.html>,
// <https://www.postgresql.org/docs/17/libpq-pgservice.html>.

/// The options of a MySQL group, in order; the last one of a name counts. An option without a value
/// has an empty one.
pub(super) fn group(text: &str, name: &str) -> Vec<(String, String)> {
    let options = options_of(text, name).filter(|(name, _)| !name.starts_with(';'));
    options.map(|(name, value)| (name.to_owned(), option_value(value))).collect()
}

/// The options of a libpq service; `None` if no service has that name. Values have no quotes and no
/// escapes.
pub(super) fn service_in_file(text: &str, name: &str) -> Option<Vec<(String, String)>> {
    let head = format!("[{name}]");
    let options = options_of(text, name).map(|(name, value)| (name.to_owned(), value.to_owned()));
    text.lines().any(|line| line.trim() == head).then(|| options.collect())
}

/// Names and values of a group, without empty lines and comments.
fn options_of<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let mut in_group = false;
    text.lines().map(str::trim).filter_map(move |line| {
        if let Some(group) = line.strip_prefix('[') {
            in_group = group.split(']').next().map(str::trim) == Some(name);
            return None;
        }
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        let is_option = in_group && !line.is_empty() && !line.starts_with('#');
        is_option.then(|| (name.trim(), value.trim()))
    })
}

/// The value of a MySQL option: in quotes (' or "), or up to a comment; with backslash escapes.
fn option_value(text: &str) -> String {
    let quote = text.chars().next().filter(|first| matches!(first, '\'' | '"'));
    let inner = match quote {
        Some(quote) => text.get(1..).and_then(|rest| rest.rsplit_once(quote)).map(|(it, _)| it),
        None => text.split(" #").next().map(str::trim_end),
    };
    let mut value = String::new();
    let mut characters = inner.unwrap_or(text).chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            value.push(character);
            continue;
        }
        match characters.next() {
            Some('b') => value.push('\u{8}'),
            Some('t') => value.push('\t'),
            Some('n') => value.push('\n'),
            Some('r') => value.push('\r'),
            Some('s') => value.push(' '),
            Some(other @ ('\\' | '\'' | '"')) => value.push(other),
            Some(other) => value.extend(['\\', other]),
            None => value.push('\\'),
        }
    }
    value
}

// Reads the login-path file of `mysql_config_editor`: four unused bytes, 20 bytes that give the
// key, then lines, each encrypted on its own after its length. The file contains its key, so the
// encryption protects nothing from a reader of the file.

/// Bytes of a block of AES, and of its key.
const BLOCK: usize = 16;
const UNUSED: usize = 4;
const KEY_BYTES: usize = 20;

/// The decrypted text of the file. The error says what is wrong with the file.
pub(super) fn login_paths_text(file: &[u8]) -> Result<String, String> {
    let (head, mut rest) =
        file.split_at_checked(UNUSED + KEY_BYTES).ok_or("the file of login paths is too short")?;
    let mut key = [0; BLOCK];
    for (place, byte) in head[UNUSED..].iter().enumerate() {
        key[place % BLOCK] ^= byte;
    }
    let mut text = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        let line = after.split_at_checked(length);
        let (line, after) = line.ok_or("the file of login paths ends within a line")?;
        text.extend(decrypt(key, line).ok_or("the file of login paths is damaged")?);
        rest = after;
    }
    String::from_utf8(text).map_err(|error| error.to_string())
}

/// Decrypts block by block (AES-128, ECB) and removes the padding (PKCS #7). `None`: another key
/// encrypted the bytes.
fn decrypt(key: [u8; BLOCK], encrypted: &[u8]) -> Option<Vec<u8>> {
    let (blocks, []) = encrypted.as_chunks::<BLOCK>() else { return None };
    let cipher = Aes128::new(&Array::from(key));
    let mut text = Vec::with_capacity(encrypted.len());
    for block in blocks {
        let mut block = Array::from(*block);
        cipher.decrypt_block(&mut block);
        text.extend_from_slice(&block);
    }
    let padding = usize::from(*text.last()?);
    if !(1..=BLOCK).contains(&padding) {
        return None;
    }
    let rest = text.split_off(text.len() - padding);
    rest.iter().all(|byte| usize::from(*byte) == padding).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    fn password(dsn: &str, variables: &[(&str, &str)]) -> Result<String, PasswordError> {
        Ok(completed(dsn, variables)?.dsn.login.password)
    }

    fn completed(dsn: &str, variables: &[(&str, &str)]) -> Result<Known, PasswordError> {
        known(dsn, &|name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn home(file: &str, text: &str, mode: u32) -> tempfile::TempDir {
        let home = tempfile::tempdir().expect("a folder");
        let path = home.path().join(file);
        fs::write(&path, text).expect("write");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("chmod");
        home
    }

    #[test]
    fn a_password_comes_from_where_the_own_client_takes_it() {
        let dsn = "postgres://me@db:5433/app";
        assert_eq!(password(dsn, &[]).expect("none"), "");
        assert_eq!(password(dsn, &[("PGPASSWORD", "env")]).expect("variable"), "env");
        let with = "postgres://me:own@db/app";
        assert_eq!(password(with, &[("PGPASSWORD", "env")]).expect("the DSN's own"), "own");
        let text = "# comment\nother:*:*:me:no\ndb:5433:app:me:a\\:b\\\\c:d\n*:*:*:*:last\n";
        let home_of_files = home(".pgpass", text, 0o600);
        let folder = home_of_files.path().to_str().expect("text");
        assert_eq!(password(dsn, &[("HOME", folder)]).expect("file"), "a:b\\c:d");
        let both = [("HOME", folder), ("PGPASSWORD", "env")];
        assert_eq!(password(dsn, &both).expect("the variable first"), "env");
        assert_eq!(password("postgres://x@y/z", &[("HOME", folder)]).expect("stars"), "last");
        let file = home_of_files.path().join(".pgpass");
        let named = [("PGPASSFILE", file.to_str().expect("text"))];
        assert_eq!(password(dsn, &named).expect("a named file"), "a:b\\c:d");
    }

    #[test]
    fn sockets_are_localhost_or_their_folder() {
        let text = "localhost:5432:me:me:default\n/srv/pg:5433:*:me:own\n";
        let home = home(".pgpass", text, 0o600);
        let variables = [("HOME", home.path().to_str().expect("text"))];
        let of = |dsn: &str| password(dsn, &variables).expect(dsn);
        assert_eq!(of("postgres://me@/?host=/var/run/postgresql"), "default");
        assert_eq!(of("postgres://me@/app?host=/srv/pg&port=5433"), "own");
        assert_eq!(of("postgres://me@/app?host=/srv/pg"), "");
    }

    #[test]
    fn an_option_file_of_mysql_has_the_password_in_its_client_group() {
        let text = "[mysqldump]\npassword=no\n[client]\n; password=no\nuser = you\n\
                password = \"a#b\\\\c\\sd\" \n[mysql]\npassword=no\n";
        let home = home(".my.cnf", text, 0o600);
        let folder = home.path().to_str().expect("text");
        let dsn = "mysql://me@db/app";
        let both = [("HOME", folder), ("MYSQL_PWD", "env")];
        assert_eq!(password(dsn, &both).expect("file"), "a#b\\c d");
        assert_eq!(password(dsn, &[("MYSQL_PWD", "env")]).expect("variable"), "env");
        assert_eq!(password("mariadb://me@db/app", &both[..1]).expect("file"), "a#b\\c d");
    }

    #[test]
    fn a_file_that_others_read_is_not_used() {
        let home = home(".pgpass", "*:*:*:*:secret\n", 0o644);
        let variables = [("HOME", home.path().to_str().expect("text"))];
        let known = completed("postgres://me@db/app", &variables).expect("no error");
        let file = home.path().join(".pgpass");
        assert!(known.notes[0].starts_with(&format!("{} is not used", file.display())));
        assert_eq!(known.dsn.login.password, "");
    }

    #[test]
    fn root_takes_no_login_from_a_file_of_another_user() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let service = "[prod]\nhost=evil\nuser=me\n";
        let option = "[client]\npassword = \"evil\"\n";
        for (name, text, dsn) in [
            (".pgpass", "*:*:*:*:evil\n", "postgres://me@db/app"),
            (".pg_service.conf", service, "postgres:///?service=prod"),
            (".my.cnf", option, "mysql://me@db/app"),
            (".mylogin.cnf", "", "mysql:///?login-path=client"),
        ] {
            let home = home(name, text, 0o600);
            std::os::unix::fs::chown(home.path().join(name), Some(65_534), None).expect("chown");
            let said = match completed(dsn, &[("HOME", home.path().to_str().expect("text"))]) {
                Ok(known) => {
                    assert_eq!(known.dsn.login.password, "", "{name}");
                    known.notes.concat()
                }
                Err(error) => error.to_string(),
            };
            assert!(said.contains("belongs to another user than root"), "{name}: {said}");
        }
    }

    #[test]
    fn a_dsn_may_name_a_variable() {
        let dsn = "postgres://me:${DB_SECRET}@db/app";
        assert_eq!(password(dsn, &[("DB_SECRET", "s")]).expect("set"), "s");
        let error = password(dsn, &[("PGPASSWORD", "p")]).expect_err("not set").to_string();
        assert!(error.contains("DB_SECRET"), "{error}");
    }

    #[test]
    fn a_service_has_host_user_and_password() {
        let text = "[prod]\nhost=db\nuser=me\npassword=s\nsslmode=require\napplication_name=x\n";
        let home = home(".pg_service.conf", text, 0o644);
        let folder = [("HOME", home.path().to_str().expect("text"))];
        let prod = completed("postgres:///app?service=prod", &folder).expect("a service");
        assert_eq!(prod.dsn.to_string(), "postgres://me@db:5432/app?sslmode=require");
        assert_eq!((prod.dsn.login.password.as_str(), prod.is_visible), ("s", false));
        assert_eq!(prod.notes, ["rqps ignores application_name of the service"]);
        let named = [folder[0], ("PGSERVICE", "prod"), ("PGPASSWORD", "p")];
        let own = completed("postgres://you@db2?service", &named).expect("by PGSERVICE");
        assert_eq!(own.dsn.to_string(), "postgres://you@db2:5432/?sslmode=require");
        let error = |dsn, variables| completed(dsn, variables).err().expect("refused").to_string();
        let missing = error("postgres://?service=test", &folder);
        assert!(missing.contains("service test not found; looked in /"), "{missing}");
        let unnamed = error("postgres://?service", &folder);
        assert!(unnamed.contains("from PGSERVICE, which is not set"), "{unnamed}");
    }

    /// A login-path file as mysql_config_editor writes it, encrypted by openssl. Twenty zero bytes give
    /// a key of 16 zeros.
    fn login_file(lines: &[&str]) -> Option<Vec<u8>> {
        let mut file = vec![0; 24];
        for line in lines {
            let key = "0".repeat(32);
            let mut openssl = Command::new("openssl")
                .args(["enc", "-aes-128-ecb", "-K", &key])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .ok()?;
            openssl.stdin.take()?.write_all(line.as_bytes()).expect("a line");
            let encrypted = openssl.wait_with_output().expect("openssl").stdout;
            file.extend((encrypted.len() as u32).to_le_bytes());
            file.extend(encrypted);
        }
        Some(file)
    }

    #[test]
    fn a_login_path_has_host_user_and_password() {
        let lines = [
            "[client]\n", "user = me\n", "password = \"of client\"\n", "[prod]\n", "user = you\n",
            "password = \"a#b\"\n", "host = db\n", "port = 3307\n",
        ];
        let Some(bytes) = login_file(&lines) else { return };
        let home = home(".my.cnf", "[client]\npassword=cnf\n", 0o600);
        let file = home.path().join("paths");
        fs::write(&file, bytes).expect("write");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("chmod");
        let (folder, file) = (home.path().to_str().expect("text"), file.to_str().expect("text"));
        let variables = [("HOME", folder), ("MYSQL_TEST_LOGIN_FILE", file)];
        let prod = completed("mysql:///app?login-path=prod", &variables).expect("a path");
        assert_eq!(prod.dsn.to_string(), "mysql://you@db:3307/app");
        assert_eq!(prod.dsn.login.password, "a#b");
        assert_eq!(password("mysql://me@h", &variables).expect("the client's"), "of client");
        assert_eq!(password("mysql://other@h", &variables).expect("another user"), "cnf");
        let error =
            completed("mysql://?login-path=test", &variables).err().expect("none").to_string();
        assert!(error.contains("mysql_config_editor set --login-path=test"), "{error}");
        fs::set_permissions(file, fs::Permissions::from_mode(0o644)).expect("chmod");
        let error =
            completed("mysql://?login-path=prod", &variables).err().expect("open").to_string();
        assert!(
            error.starts_with("use the login path prod: ") && error.contains("chmod 600"),
            "{error}"
        );
    }

    #[test]
    fn a_service_has_its_lines_as_they_are() {
        let text = "# all\n[one]\nhost=a\n\n[two]\n host = b#1 \npassword=a'b\\c\n[one]\nport=1\n";
        let of = |name| service_in_file(text, name);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(of("two"), Some(vec![pair("host", "b#1"), pair("password", "a'b\\c")]));
        assert_eq!(of("one"), Some(vec![pair("host", "a"), pair("port", "1")]));
        assert_eq!(of("three"), None);
    }

    #[test]
    fn a_group_of_mysql_has_quotes_and_comments() {
        let text = "[client]\n;x=1\nuser = \"a#b\" \nssl\n[mysql]\nuser=no\n";
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(group(text, "client"), [pair("user", "a#b"), pair("ssl", "")]);
        assert_eq!(group(text, "other"), []);
    }

    #[test]
    fn decrypts_and_takes_off_padding() {
        // printf '[client]\n' | openssl enc -aes-128-ecb -K 000102…0f
        let key = std::array::from_fn(|place| place as u8);
        let encrypted = OPENSSL;
        assert_eq!(decrypt(key, &encrypted).as_deref(), Some(&b"[client]\n"[..]));
        assert_eq!(decrypt([7; BLOCK], &encrypted), None);
        assert_eq!(decrypt(key, &encrypted[..15]), None);
        assert_eq!(decrypt(key, &[]), None);
    }

    const OPENSSL: [u8; BLOCK] = [
        0xe4, 0xf7, 0xde, 0xd1, 0x5a, 0x0d, 0x20, 0x73, 0x5d, 0xe0, 0xac, 0x7c, 0xdd, 0x08, 0x59,
        0x03,
    ];

    #[test]
    fn damage_is_told() {
        let check = |file: &[u8], words: &str| {
            assert!(login_paths_text(file).expect_err("damaged").contains(words), "{file:?}");
        };
        check(&[0; 20], "too short");
        check(&[&[0; 24][..], &[16, 0, 0, 0, 1]].concat(), "within a line");
        check(&[&[0; 24][..], &[16, 0, 0, 0], &[9; 16]].concat(), "damaged");
        assert_eq!(login_paths_text(&[0; 24]), Ok(String::new()));
    }
}
