//! The password that a DSN leaves out, from where the DBMS's own client takes it: environment
//! variables and a file of the user. So it need not stand on a command line, where `ps` shows it.
//!
//! Sources: <https://www.postgresql.org/docs/17/libpq-pgpass.html>,
//! <https://dev.mysql.com/doc/refman/8.4/en/option-files.html>.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::dsn::Dsn;
use crate::domain::dialect::OwnClient;
use crate::domain::endpoint::Address;

/// The folder of a Postgres socket that libpq calls `localhost` in its password file.
const DEFAULT_SOCKET_FOLDERS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// Why a password cannot be had.
#[derive(Debug, Error)]
pub enum PasswordError {
    /// The DSN names an environment variable that is not there.
    #[error("the DSN takes its password from the environment variable {0}, which is not set")]
    NoVariable(String),
    /// A file cannot be read.
    #[error("read the passwords in {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Completes the login of a DSN without a password: from the variable that the DSN names, else as
/// libpq does (PGPASSWORD, then PGPASSFILE or ~/.pgpass), or as the MySQL client does (group
/// `client` of ~/.my.cnf, then MYSQL_PWD). `variable` looks up the environment. A login without a
/// password anywhere stays as it is. Gives the file that is not used because it is open to others.
///
/// # Errors
/// The named variable is not set; a password file cannot be read.
pub fn complete(
    dsn: &mut Dsn,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<PathBuf>, PasswordError> {
    if let Some(name) = &dsn.password_variable {
        dsn.login.password =
            variable(name).ok_or_else(|| PasswordError::NoVariable(name.clone()))?;
    }
    let Some(server) = &dsn.dialect().spec().server else { return Ok(None) };
    if !dsn.login.password.is_empty() {
        return Ok(None);
    }
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    let home = |file: &str| variable("HOME").map(|home| Path::new(&home).join(file));
    let from_variable = variable(server.client.variable());
    let (file, forbidden) = match server.client {
        OwnClient::Libpq if from_variable.is_some() => (None, 0),
        OwnClient::Libpq => {
            (variable("PGPASSFILE").map(PathBuf::from).or_else(|| home(".pgpass")), 0o077)
        }
        OwnClient::Mysql => (home(".my.cnf"), 0o022),
    };
    let (mut from_file, mut open) = (None, None);
    if let Some(file) = file {
        match read(&file, forbidden)? {
            Passwords::None => {}
            Passwords::Open => open = Some(file),
            Passwords::Text(text) => {
                from_file = match server.client {
                    OwnClient::Libpq => in_pgpass(&text, dsn),
                    OwnClient::Mysql => in_my_cnf(&text),
                };
            }
        }
    }
    dsn.login.password = from_file.or(from_variable).unwrap_or_default();
    Ok(open)
}

/// What a password file is.
enum Passwords {
    /// Not there.
    None,
    /// Open to others, so it is not used.
    Open,
    Text(String),
}

/// Reads a file to which others may not have the `forbidden` rights.
fn read(path: &Path, forbidden: u32) -> Result<Passwords, PasswordError> {
    let bad = |source| PasswordError::Unreadable { path: path.to_owned(), source };
    let facts = match fs::metadata(path) {
        Ok(facts) => facts,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Passwords::None),
        Err(error) => return Err(bad(error)),
    };
    // A device, such as /dev/null, is how a user says that there is no such file.
    if !facts.is_file() {
        return Ok(Passwords::None);
    }
    if facts.permissions().mode() & forbidden != 0 {
        return Ok(Passwords::Open);
    }
    fs::read_to_string(path).map(Passwords::Text).map_err(bad)
}

/// The first line `host:port:database:user:password` that fits; `*` fits all, and a backslash
/// escapes a colon or a backslash.
fn in_pgpass(text: &str, dsn: &Dsn) -> Option<String> {
    let (host, port) = match &dsn.address {
        Address::Tcp { host, port, .. } => (host.clone(), port.to_string()),
        Address::Unix(socket) => socket_of(socket),
    };
    // libpq logs in to the database of the user's name where none is named.
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

/// Host and port of a unix socket, as a password file has them.
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
    /// A `*` that is not escaped.
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

/// `password` of the group `client` of an option file; the last one counts.
fn in_my_cnf(text: &str) -> Option<String> {
    let mut in_group = false;
    let mut found = None;
    for line in text.lines().map(str::trim) {
        if let Some(group) = line.strip_prefix('[') {
            in_group = group.split(']').next().map(str::trim) == Some("client");
        } else if in_group && !line.starts_with(['#', ';']) {
            let (name, value) = line.split_once('=').unwrap_or((line, ""));
            if name.trim() == "password" {
                found = Some(option_value(value.trim()));
            }
        }
    }
    found.filter(|password| !password.is_empty())
}

/// A value of an option file: quoted by ' or ", or up to a comment; with backslash escapes.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn password(dsn: &str, variables: &[(&str, &str)]) -> Result<String, PasswordError> {
        let mut dsn = Dsn::parse(dsn).expect(dsn);
        let find = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        complete(&mut dsn, &find)?;
        Ok(dsn.login.password)
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
        let find =
            |name: &str| (name == "HOME").then(|| home.path().to_str().expect("text").to_owned());
        let mut dsn = Dsn::parse("postgres://me@db/app").expect("a DSN");
        let open = complete(&mut dsn, &find).expect("no error");
        assert_eq!(open, Some(home.path().join(".pgpass")));
        assert_eq!(dsn.login.password, "");
    }

    #[test]
    fn a_dsn_may_name_a_variable() {
        let dsn = "postgres://me:${DB_SECRET}@db/app";
        assert_eq!(password(dsn, &[("DB_SECRET", "s")]).expect("set"), "s");
        let error = password(dsn, &[("PGPASSWORD", "p")]).expect_err("not set").to_string();
        assert!(error.contains("DB_SECRET"), "{error}");
    }
}
