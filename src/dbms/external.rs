//! A server that somebody else runs, by its DSN: nothing is made, started, paused or stopped; what
//! may be asked of it is asked, and a refusal is a note, not an error.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::dbms::server::{Session, connect};
use crate::dbms::settle::{SettleLoad, on_all_tables, rest};
use crate::dbms::{ControlPlane, DbmsError, Interrupt, mysql, postgres};
use crate::domain::build::Dialect;
use crate::domain::endpoint::{Address, Endpoint, Login};
use crate::os::process::{name_of, owner_of_unix_socket, parent_of};
use crate::wire::WireError;

/// How long it may take to connect.
const CONNECT: Duration = Duration::from_secs(30);

/// Names under which servers run.
const SERVER_NAMES: [&str; 4] = ["postgres", "postmaster", "mysqld", "mariadbd"];

/// A server that is there already.
struct External {
    dialect: Dialect,
    address: Address,
    login: Login,
    interrupt: Interrupt,
    pid: Option<u32>,
}

/// The control plane of a server that somebody else runs. Its `start` is a connection test; the
/// pid of the server is known afterwards if it runs on this host.
///
/// Only tables of the benchmark are ever dropped, and only by the benchmark.
pub fn external(
    dialect: Dialect,
    address: Address,
    login: Login,
    interrupt: Interrupt,
) -> Result<Box<dyn ControlPlane>, DbmsError> {
    if !matches!(dialect, Dialect::Postgres | Dialect::Mysql) {
        return Err(DbmsError::Unsupported(format!(
            "measure {address}: only servers that speak the protocol of Postgres or MySQL can be \
             named by a DSN"
        )));
    }
    Ok(Box::new(External { dialect, address, login, interrupt, pid: None }))
}

impl External {
    fn session(&self, doing: &str) -> Result<Box<dyn Session>, DbmsError> {
        connect(self.dialect, &self.address, &self.login, CONNECT)
            .map_err(DbmsError::sql(self.doing(doing)))
    }

    fn doing(&self, what: &str) -> String {
        format!("{what} the server at {} as {}", self.address, self.login.user)
    }

    /// A function that connects again, for threads.
    fn connector(
        &self,
    ) -> impl Fn() -> Result<Box<dyn Session>, WireError> + Clone + Send + 'static {
        let (dialect, address, login) = (self.dialect, self.address.clone(), self.login.clone());
        move || connect(dialect, &address, &login, CONNECT)
    }

    /// Vacuum and checkpoint as far as the user may.
    fn settle_postgres(
        &self,
        load: &SettleLoad,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), DbmsError> {
        let doing = self.doing("settle");
        let mut session = self.session("settle")?;
        progress(&format!("vacuum of {} tables", load.tables));
        let statement = postgres::vacuum_statement(&mut *session, &doing)?;
        let vacuumed =
            on_all_tables(load.names(), &self.interrupt, &doing, self.connector(), statement);
        note_refusal(vacuumed, progress)?;
        progress("checkpoint");
        let done = session.run("CHECKPOINT").map_err(DbmsError::sql(doing));
        note_refusal(done, progress)
    }
}

/// Turns a refusal by the server into a note.
fn note_refusal(
    result: Result<(), DbmsError>,
    progress: &mut dyn FnMut(&str),
) -> Result<(), DbmsError> {
    match result {
        Err(DbmsError::Sql { doing, source: source @ WireError::Server { .. } }) => {
            progress(&format!("not done: {doing}: {source}"));
            Ok(())
        }
        Err(DbmsError::Unsupported(what)) => {
            progress(&format!("not done: {what}"));
            Ok(())
        }
        other => other,
    }
}

impl ControlPlane for External {
    fn init(&mut self) -> Result<(), DbmsError> {
        Ok(())
    }

    fn start(&mut self) -> Result<(), DbmsError> {
        let mut session = self.session("connect to")?;
        session.run("SELECT 1").map_err(DbmsError::sql(self.doing("query")))?;
        self.pid = find_pid(self.dialect, &self.address, &mut *session);
        Ok(())
    }

    fn endpoint(&self) -> (Endpoint, Login) {
        (Endpoint::Server(self.address.clone()), self.login.clone())
    }

    fn session_setup(&self) -> Vec<String> {
        Vec::new()
    }

    fn server_pid(&self) -> Option<u32> {
        self.pid
    }

    fn reported_version(&mut self) -> Result<String, DbmsError> {
        let mut session = self.session("ask the version of")?;
        let doing = self.doing("ask the version of");
        match self.dialect {
            Dialect::Postgres => postgres::reported_version(&mut *session, &doing),
            _ => mysql::reported_version(&mut *session, &doing),
        }
    }

    fn settle(
        &mut self,
        load: &SettleLoad,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), DbmsError> {
        let end = Instant::now() + load.wait();
        if self.dialect == Dialect::Postgres {
            self.settle_postgres(load, progress)?;
            return rest(end, &self.interrupt, progress, &mut || false);
        }
        let doing = self.doing("settle");
        let settled = mysql::maintain(load, &self.interrupt, &doing, self.connector(), progress);
        note_refusal(settled, progress)
    }

    fn status(&mut self) -> Result<Vec<(String, String)>, DbmsError> {
        let mut session = self.session("read the status of")?;
        let files = match self.dialect {
            Dialect::Postgres => postgres::status(&mut *session),
            _ => mysql::status(&mut *session),
        };
        files.map_err(DbmsError::sql(self.doing("read the status of")))
    }

    fn check(&mut self) -> Result<(), DbmsError> {
        self.session("reach").map(|_| ())
    }

    fn stop(&mut self) -> Result<(), DbmsError> {
        Ok(())
    }
}

/// The root process of the server, if it runs on this host and can be told: by the owner of its
/// unix socket; over loopback by what the server says of itself. A pid is only believed if a
/// process of that id has a server's name, since a server in a container counts otherwise.
fn find_pid(dialect: Dialect, address: &Address, session: &mut dyn Session) -> Option<u32> {
    let pid = match address {
        Address::Unix(path) => owner_of_unix_socket(path),
        Address::Tcp { host, .. } if is_loopback(host) => match dialect {
            Dialect::Postgres => {
                let backend = one_number(session, "SELECT pg_backend_pid()")?;
                parent_of(backend)
            }
            _ => {
                let rows = session.rows("SELECT @@GLOBAL.pid_file").ok()?;
                let path = rows.into_iter().next()?.into_iter().next()??;
                fs::read_to_string(Path::new(&path)).ok()?.trim().parse().ok()
            }
        },
        Address::Tcp { .. } => None,
    }?;
    let name = name_of(pid)?;
    SERVER_NAMES.iter().any(|known| name.starts_with(known)).then_some(pid)
}

fn one_number(session: &mut dyn Session, sql: &str) -> Option<u32> {
    session.rows(sql).ok()?.into_iter().next()?.into_iter().next()??.parse().ok()
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_told_from_other_hosts() {
        let check = |host, wanted| assert_eq!(is_loopback(host), wanted, "{host}");
        check("localhost", true);
        check("127.0.0.1", true);
        check("127.8.0.1", true);
        check("::1", true);
        check("[::1]", true);
        check("10.0.0.1", false);
        check("localhost.example", false);
    }

    #[test]
    fn a_refusal_by_the_server_is_a_note() {
        let mut notes = Vec::new();
        let refused = WireError::Server { code: "42501".to_owned(), message: "no".to_owned() };
        let result = Err(DbmsError::Sql { doing: "settle".to_owned(), source: refused });
        note_refusal(result, &mut |note| notes.push(note.to_owned())).unwrap();
        assert_eq!(notes, ["not done: settle: no (42501)"]);
        let broken = Err(DbmsError::Interrupted);
        assert!(note_refusal(broken, &mut |_| {}).is_err());
    }
}
