//! `rqps init --dump`: the rows of a database as a file of SQL, by the client of its DBMS. rqps
//! starts it with the login of the DSN; passwords are in its environment, not in its words.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use rustix::fs::AtFlags;

use rqps_host::{beneath, child, command_output, user};
use rqps_model::build::Dbms;
use rqps_model::dialect::Dialect;
use rqps_model::endpoint::{Address, ChannelBinding, ServerKey, Tls, TlsMode};
use rqps_model::{escape, safe_path};
use rqps_wire::dsn::Dsn;

/// Bytes of the last words of a dump of SQLite.
const END: u64 = 64;

/// The clients, with the Debian package of each.
const PACKAGES: [(&str, &str); 4] = [
    ("pg_dump", "postgresql-client"),
    ("mysqldump", "default-mysql-client"),
    ("mariadb-dump", "mariadb-client"),
    ("sqlite3", "sqlite3"),
];

/// Writes a dump into a new file; one that is not whole does not stay.
///
/// # Errors
/// The file exists; the client is missing or fails.
pub(super) fn write(mut command: Command, to: &Path) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let doing = || format!("dump the database into {} with {program}", to.display());
    let file = safe_path::new_file(to).with_context(doing)?;
    info!("rqps: {program} dumps the database into {}", to.display());
    command.stdin(Stdio::null()).stdout(file).stderr(Stdio::piped());
    child::end_with_thread(&mut command);
    let why = match command.output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let package = PACKAGES.iter().find(|(name, _)| *name == program).map_or("", |it| it.1);
            format!("no such program\nhint: install the Debian package {package}")
        }
        Err(error) => error.to_string(),
        // It ends without an error where it cannot read a table.
        Ok(said) if said.status.success() && (program != "sqlite3" || is_whole(to)?) => {
            return Ok(());
        }
        Ok(said) => {
            let words = String::from_utf8_lossy(&said.stderr);
            let words: Vec<&str> = words.lines().take(4).map(str::trim).collect();
            let hint = if words.iter().any(|line| line.contains("server version mismatch")) {
                "\nhint: put a pg_dump that is as new as the server first in PATH"
            } else {
                ""
            };
            format!("{}: {}{hint}", command_output::how(said.status), words.join("; "))
        }
    };
    let removed = safe_path::parent(to)
        .and_then(|(folder, name)| Ok(rustix::fs::unlinkat(folder, name, AtFlags::empty())?));
    removed.with_context(|| format!("remove {}", to.display()))?;
    bail!("{}: {}", doing(), escape::terminal(&why))
}

/// True if a dump of SQLite ends as one does that has all rows.
fn is_whole(dump: &Path) -> Result<bool> {
    let end = beneath::end(dump, 0, END).with_context(|| format!("read {}", dump.display()))?;
    Ok(end.ends_with(b"COMMIT;\n"))
}

/// The client that dumps the database of a server.
pub(super) fn of_server(dsn: &Dsn) -> Command {
    match dsn.dialect() {
        Dialect::Mysql => of_mysql(dsn),
        _ => of_postgres(dsn),
    }
}

/// The client that dumps a file of SQLite, as the user who may read it.
///
/// # Errors
/// The file is not there, or root finds a link of another user.
pub(super) fn of_file(path: &Path) -> Result<Command> {
    let (path, run_as) =
        user::who_reads(path).with_context(|| format!("find {}", path.display()))?;
    let mut command = child::command("sqlite3", child::ChildTask::Work);
    command.args(["-batch", "-init", "/dev/null", "-readonly"]).arg(path).arg(".dump");
    if let Some(user) = run_as {
        child::become_user(&mut command, user.identity());
    }
    Ok(command)
}

/// libpq takes the login from its variables.
fn of_postgres(dsn: &Dsn) -> Command {
    let mut command = child::command("pg_dump", child::ChildTask::Work);
    command.args(["--no-owner", "--no-privileges", "--no-password"]);
    command.env("PGUSER", &dsn.login.user).env("PGPASSWORD", &dsn.login.password);
    if !dsn.login.database.is_empty() {
        command.env("PGDATABASE", &dsn.login.database);
    }
    match &dsn.address {
        Address::Unix(socket) => {
            command.env("PGHOST", socket.parent().unwrap_or(socket));
            // `.s.PGSQL.5432`
            command.env("PGPORT", socket.extension().unwrap_or_default());
        }
        Address::Tcp { host, port, tls } => {
            command.env("PGHOST", host).env("PGPORT", port.to_string());
            command.env("PGSSLMODE", tls.mode.word());
            let identity = tls.identity.as_ref();
            let files = [
                ("PGSSLROOTCERT", tls.roots.as_ref()),
                ("PGSSLCERT", identity.map(|it| &it.certificate)),
                ("PGSSLKEY", identity.map(|it| &it.key)),
            ];
            command.envs(files.into_iter().filter_map(|(name, file)| Some((name, file?))));
            let binding = match tls.binding {
                ChannelBinding::Disable => "disable",
                ChannelBinding::Prefer => "prefer",
                ChannelBinding::Require => "require",
            };
            command.env("PGCHANNELBINDING", binding);
            // As rqps does: the password itself goes to nobody who was not checked.
            match &tls.consent.methods {
                Some(methods) => command.env("PGREQUIREAUTH", methods.to_string()),
                None if tls.mode.verifies() => &mut command,
                None => command.env("PGREQUIREAUTH", "!password"),
            };
        }
    }
    command
}

/// In one transaction, without locks, so that the server's users do not wait.
fn of_mysql(dsn: &Dsn) -> Command {
    let is_mariadb = dsn.dbms == Dbms::Mariadb;
    let program = if is_mariadb { "mariadb-dump" } else { "mysqldump" };
    let mut command = child::command(program, child::ChildTask::Work);
    command.args(["--no-defaults", "--single-transaction", "--no-tablespaces"]);
    // Only clients of MySQL know these two.
    command.args(["--loose-set-gtid-purged=OFF", "--loose-column-statistics=0"]);
    command.arg(format!("--user={}", dsn.login.user)).env("MYSQL_PWD", &dsn.login.password);
    match &dsn.address {
        Address::Unix(socket) => {
            command.arg(format!("--socket={}", socket.display()));
        }
        Address::Tcp { host, port, tls } => {
            command.args(["--protocol=TCP".to_owned(), format!("--host={host}")]);
            command.arg(format!("--port={port}")).args(tls_of_mysql(tls, is_mariadb));
        }
    }
    command.arg("--").arg(&dsn.login.database);
    command
}

/// Options of TLS; a client that does not know one refuses it.
fn tls_of_mysql(tls: &Tls, is_mariadb: bool) -> Vec<String> {
    let mode = match (tls.mode, is_mariadb) {
        (TlsMode::Off, _) | (TlsMode::Allow | TlsMode::Prefer, true) => "",
        (TlsMode::Require, true) => "--ssl",
        (TlsMode::VerifyCa | TlsMode::VerifyFull, true) => "--ssl-verify-server-cert",
        (TlsMode::Allow | TlsMode::Prefer, false) => "--loose-ssl-mode=PREFERRED",
        (TlsMode::Require, false) => "--ssl-mode=REQUIRED",
        (TlsMode::VerifyCa, false) => "--ssl-mode=VERIFY_CA",
        (TlsMode::VerifyFull, false) => "--ssl-mode=VERIFY_IDENTITY",
    };
    let key = match &tls.consent.key {
        ServerKey::Refused => None,
        ServerKey::Asked => Some("--get-server-public-key".to_owned()),
        ServerKey::File(file) => Some(format!("--server-public-key-path={}", file.display())),
    };
    let identity = tls.identity.as_ref();
    let files = [
        ("ca", tls.roots.as_ref()),
        ("cert", identity.map(|it| &it.certificate)),
        ("key", identity.map(|it| &it.key)),
    ];
    let files = files.into_iter().filter_map(|(name, file)| Some((name, file?)));
    let files = files.map(|(name, file)| format!("--ssl-{name}={}", file.display()));
    let mode = Some(mode.to_owned()).filter(|mode| !mode.is_empty());
    mode.into_iter().chain(key).chain(files).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words and the variables of the client for a DSN, those of this process left out.
    fn of(dsn: &str) -> String {
        let command = of_server(&Dsn::parse(dsn).unwrap());
        let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
        let words = command.get_args().map(text).collect::<Vec<_>>().join(" ");
        let ours = |name: &str| name.starts_with("PG") || name.starts_with("MYSQL");
        let set = command.get_envs().map(|(name, value)| (text(name), value.map(text)));
        let set = set.filter(|(name, _)| ours(name));
        let set = set.map(|(name, value)| format!("{name}={}", value.unwrap_or_default()));
        format!("{}; {words}", set.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_client_gets_the_login_and_no_password_among_its_words() {
        let check = |dsn: &str, parts: &[&str]| {
            let said = of(dsn);
            assert!(parts.iter().all(|part| said.contains(part)), "{said}");
            let words = said.split_once("; ").unwrap().1;
            assert!(!words.contains("s3cret"), "{words}");
        };
        let prefer = "PGSSLMODE=prefer";
        let refuses = "PGREQUIREAUTH=!password";
        check("postgres://me:s3cret@db:5433/shop", &["PGHOST=db", "PGPORT=5433", prefer, refuses]);
        let socket = "postgres://me@/shop?host=/run/x/.s.PGSQL.5433";
        check(socket, &["PGDATABASE=shop", "PGHOST=/run/x", "PGPORT=5433", "PGUSER=me"]);
        let checked = of("postgres://me@db/shop?sslmode=verify-full&sslrootcert=/ca.pem");
        assert!(checked.contains("PGSSLROOTCERT=/ca.pem") && !checked.contains("PGREQUIREAUTH"));
        let tls = "--ssl-mode=VERIFY_IDENTITY";
        let mysql = "mysql://me:s3cret@db/shop?ssl-mode=VERIFY_IDENTITY&ssl-ca=/ca.pem";
        check(mysql, &["MYSQL_PWD=s3cret", "--host=db", tls, "--ssl-ca=/ca.pem", "-- shop"]);
        let mariadb = "mariadb://me@db/shop?ssl-mode=REQUIRED";
        check(mariadb, &["--no-defaults", "--single-transaction", " --ssl ", "-- shop"]);
        check("mysql://me@/shop?socket=/run/my.sock", &["--socket=/run/my.sock", "--user=me"]);
    }
}
