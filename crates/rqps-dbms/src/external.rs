//! A server that somebody else runs, by its DSN. It is not started, paused or stopped, none of its
//! settings is changed, and of its data nothing but tables that rqps made for this plan is touched.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::control::{ControlPlane, DbmsError, Interrupt, Site};
use crate::guest::{self, Guest, Ownership, Theirs};
use crate::server::{check_library, hand_over_data};
use crate::spec::{DbmsSpec, guest_calls};
use crate::sql_server::{ControlConnection, ServerCalls, SqlServer, connect, connector, one_value};
use rqps_host::process::{name_of, owner_of_port, owner_of_unix_socket};
use rqps_model::build::{Dbms, GuestPlace};
use rqps_model::compatible::CompatibleServer;
use rqps_model::dialect::{Dialect, SERVER_ONLY};
use rqps_model::endpoint::{Address, Endpoint, Login, TlsMode};
use rqps_model::escape;
use rqps_text::reading::{used_relations, without_texts};
use rqps_text::{ChangedRelation, elsewhere, place_query};

/// So often at most the server is asked whether it is there, however often the lab looks.
const PING_PAUSE: Duration = Duration::from_millis(500);

/// Errors of statements whose tables, schemas or databases are missing, or closed to the login.
const ABSENT: [&str; 9] =
    ["42P01", "42501", "3F000", "1146", "1142", "1143", "1044", "1049", "1046"];

/// Ways out where statements run in the database of the DSN.
const THEIR_TABLES: &str = "statements use the tables that are in the database of the DSN: name \
     another database, make the table there (for a script: sysbench SCRIPT prepare) or GRANT the \
     right to it, or choose other --steps";

/// The way out where rqps makes the tables of a benchmark.
const STANDARD_TABLES: &str = "the script sees only the standard tables, which rqps makes in a \
     place of their own; --set load=none has it use the tables in the database of the DSN";

/// A load of the user's own tables on a server that somebody else runs.
pub struct VisitorLoad {
    /// A description of the load for the owner of the server.
    pub words: String,
    /// Tables and views that it would change without dropping them first.
    pub kept: Vec<ChangedRelation>,
    /// The schema or database that the files name.
    pub place: Option<String>,
}

/// A server that is there already, with the place of rqps's tables on it.
pub struct External {
    dialect: Dialect,
    calls: &'static dyn ServerCalls,
    address: Address,
    login: Login,
    guest: Guest,
    interrupt: Interrupt,
    pid: Option<u32>,
    /// From the start to the stop.
    claim: Option<Ownership>,
    /// From a survey to its end.
    surveyed: Option<Ownership>,
    pinged: Instant,
    /// Schemas of the login's path in which others may make functions, and who.
    open_schemas: Vec<String>,
    /// The kind of server, once rqps has asked; `Some(None)` is the dialect's own.
    compatible: Option<Option<&'static CompatibleServer>>,
}

/// The control plane of a server that somebody else runs. Its `start` makes the place of the tables
/// and its `stop` removes it; the pid of the server is known in between if it runs on this host.
///
/// # Errors
/// A dialect without a server.
pub fn external(
    dialect: Dialect,
    address: Address,
    login: Login,
    guest: Guest,
    interrupt: Interrupt,
) -> Result<External, DbmsError> {
    let calls = guest_calls(dialect).ok_or_else(|| {
        DbmsError::Unsupported(format!(
            "measure {address}: a DSN must name a server with the Postgres or MySQL protocol"
        ))
    })?;
    let (pid, claim, surveyed, pinged) = (None, None, None, Instant::now());
    Ok(External {
        dialect,
        calls,
        address,
        login,
        guest,
        interrupt,
        pid,
        claim,
        surveyed,
        pinged,
        open_schemas: Vec::new(),
        compatible: None,
    })
}

impl External {
    /// Looks where the tables would go and whether anything is in their way, and says so. Nothing
    /// on the server is other afterwards. Nobody else gets the place until
    /// [`External::end_survey`].
    ///
    /// # Errors
    /// [`DbmsError::Refused`] names what is in the way.
    pub fn survey(&mut self) -> Result<String, DbmsError> {
        self.look()?;
        let encryption = self.encryption();
        if self.is_visitor() {
            return Ok(format!(
                "rqps makes no table on the server at {}{encryption}{}",
                self.address,
                self.warning()
            ));
        }
        let mut claim = self.open_claim()?;
        claim.survey(&self.guest)?;
        let mut words = claim.announcement(&self.guest);
        // For a known kind of server, `words()` below says it.
        if !claim.is_locked() && self.compatible().is_none_or(|server| server.has_locks) {
            words.push_str("; no lock keeps a second rqps away");
        }
        self.surveyed = Some(claim);
        let what = self.compatible().map(|server| format!("; {}", server.words()));
        Ok(words + &encryption + &what.unwrap_or_default())
    }

    /// Looks whether anything is there that a load of the user's own tables would change without
    /// dropping it, and says what the load does.
    ///
    /// # Errors
    /// [`DbmsError::Refused`] names what is in the way.
    pub fn survey_load(&mut self, load: &VisitorLoad) -> Result<String, DbmsError> {
        self.look()?;
        // It must see what the load will see.
        let mut session = connect(self.dialect, &self.address, &self.login)
            .map_err(DbmsError::sql(self.doing("connect to")))?;
        if let Some(place) = &load.place {
            let own = one_value(&mut *session, place_query(self.dialect));
            let own = own.map_err(DbmsError::sql(self.doing("look at the tables of")))?;
            let own = own.unwrap_or_default();
            if own != *place {
                let what = format!("load tables: {}", elsewhere(place, &own));
                return Err(DbmsError::Refused(what));
            }
        }
        let mut found = Vec::new();
        for relation in &load.kept {
            let answer = one_value(&mut *session, &relation.presence_query(self.dialect));
            if answer.map_err(DbmsError::sql(self.doing("look at the tables of")))?.is_some() {
                found.push(relation.drop_entry());
            }
        }
        if found.is_empty() {
            let (what, address) = (&load.words, &self.address);
            let (encryption, warning) = (self.encryption(), self.warning());
            return Ok(format!("{what} on the server at {address}{encryption}{warning}"));
        }
        Err(DbmsError::Refused(format!(
            "load tables into the database {}: there are already {}, and rqps changed nothing\n\
             hint: add drop = {:?} to [load] if their data may be lost, or remove `load = true` to \
             measure them as they are",
            self.login.database,
            found.join(", "),
            found.iter().rev().collect::<Vec<_>>()
        )))
    }

    /// Has the server look for the tables of the user's statements, and for the rights to them. Beside
    /// the tables of a benchmark, scripts see no others.
    ///
    /// # Errors
    /// [`DbmsError::Refused`] names the first statement whose tables are missing or closed.
    pub fn look_at(&self, statements: &[String]) -> Result<(), DbmsError> {
        let mut login = self.login.clone();
        if !self.is_visitor() && self.dialect == Dialect::Mysql {
            login.database.clear();
        }
        let names_ours = |sql: &String| self.guest.names.iter().any(|name| sql.contains(name));
        let mut theirs = statements.iter().filter(|sql| !names_ours(sql)).peekable();
        if theirs.peek().is_none() {
            return Ok(());
        }
        let mut session = connect(self.dialect, &self.address, &login)
            .map_err(DbmsError::sql(self.doing("connect to")))?;
        if !self.is_visitor() && self.dialect == Dialect::Postgres {
            let hidden = session.run("SET search_path TO ''");
            hidden.map_err(DbmsError::sql(self.doing("look at the tables of")))?;
        }
        for sql in theirs {
            // Postgres has domains of others check such texts.
            let named = match self.dialect {
                Dialect::Postgres => without_texts(sql),
                _ => Some(sql.clone()),
            };
            let Some(named) = named else { continue };
            let why = match session.look_at(&named) {
                Ok(()) => self.closed(&mut *session, sql),
                Err(error) if error.code().is_some_and(|code| ABSENT.contains(&code)) => {
                    Some(error.to_string())
                }
                Err(_) => None,
            };
            if let Some(why) = why {
                let (sql, place) = (escape::line(sql), &self.address);
                let hint = if self.is_visitor() { THEIR_TABLES } else { STANDARD_TABLES };
                let what = format!("execute `{sql}` on {place}: {why}\nhint: {hint}");
                return Err(DbmsError::Refused(what));
            }
        }
        Ok(())
    }

    /// The right to a table of a statement that the login lacks, where Postgres asks for it only when
    /// the statement begins. A server that cannot tell is left to its run.
    fn closed(&self, session: &mut dyn ControlConnection, sql: &str) -> Option<String> {
        if self.dialect != Dialect::Postgres {
            return None;
        }
        let (relation, right) = used_relations(sql).into_iter().find(|(relation, right)| {
            matches!(one_value(session, &relation.closed_query(right)), Ok(Some(_)))
        })?;
        let (user, name) = (&self.login.user, escape::line(&relation.name));
        Some(format!("{user} has no right to {right} on {name}"))
    }

    /// Looks what the server is, and lets it choose whether sessions are encrypted, where the DSN
    /// leaves it the choice: all later sessions do as this one.
    fn look(&mut self) -> Result<(), DbmsError> {
        if self.compatible.is_some() {
            return Ok(());
        }
        let mut session = connect(self.dialect, &self.address, &self.login)
            .map_err(DbmsError::sql(self.doing("connect to")))?;
        self.address = self.address.settled(session.is_encrypted());
        if self.dialect == Dialect::Postgres {
            // After it, the session sees nothing that others made.
            let open = guest::open_schemas(&mut *session);
            self.open_schemas = open.map_err(DbmsError::sql(self.doing("look at the path of")))?;
        }
        let version = one_value(&mut *session, "SELECT version()");
        let version = version.map_err(DbmsError::sql(self.doing("ask the version of")))?;
        let host = match &self.address {
            Address::Tcp { host, .. } => host.as_str(),
            Address::Unix(_) => "",
        };
        let mut answers = |query: &str| matches!(one_value(&mut *session, query), Ok(Some(_)));
        let version = version.unwrap_or_default();
        let found = CompatibleServer::recognise(self.dialect, &version, host, &mut answers);
        self.compatible = Some(found);
        Ok(())
    }

    fn compatible(&self) -> Option<&'static CompatibleServer> {
        self.compatible.flatten()
    }

    /// What the owner of the login should know: the user's statements see the user's schemas.
    fn warning(&self) -> String {
        if self.is_visitor() && !self.open_schemas.is_empty() {
            format!(
                "; others may make functions and operators in {}, which then run with the rights \
                 of {}",
                self.open_schemas.join(", "),
                self.login.user
            )
        } else {
            String::new()
        }
    }

    /// `Some(true)` if sessions are encrypted, once that is settled; `None` for a unix socket.
    pub fn is_encrypted(&self) -> Option<bool> {
        match &self.address {
            Address::Tcp { tls, .. } => Some(tls.mode != TlsMode::Off),
            Address::Unix(_) => None,
        }
    }

    /// The encryption of the connection, for reports.
    fn encryption(&self) -> String {
        match &self.address {
            Address::Unix(_) => String::new(),
            Address::Tcp { tls, .. } => match tls.mode {
                TlsMode::Off => ", without TLS".to_owned(),
                mode => format!(", over TLS (sslmode={})", mode.word()),
            },
        }
    }

    /// Ends what [`External::survey`] holds.
    pub fn end_survey(&mut self) {
        self.surveyed = None;
    }

    /// Before the first block: removes what killed runs of this plan left, and drops the tables
    /// that the user gave up. Returns a description of the actions.
    ///
    /// # Errors
    /// The server does not answer, or something is in the way.
    pub fn clear_the_way(&mut self) -> Result<Vec<String>, DbmsError> {
        if self.is_visitor() {
            return Ok(Vec::new());
        }
        let mut notes = self.theirs(|theirs| guest::sweep(theirs, &self.guest))?;
        let dropped = self.open_claim()?.replace(&self.guest)?;
        if !dropped.is_empty() {
            notes.push(format!("dropped, as --replace-tables allows: {}", dropped.join(", ")));
        }
        Ok(notes)
    }

    /// After the last block: removes what is still there of this result folder, such as what an
    /// earlier `--keep` left. With `keep` it stays.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub fn clean_up(&mut self) -> Result<(), DbmsError> {
        if self.guest.keep || self.is_visitor() {
            Ok(())
        } else {
            self.open_claim()?.release(&self.guest.tag, false)
        }
    }

    /// True if no table of rqps's goes there: statements run where the DSN leads to.
    fn is_visitor(&self) -> bool {
        self.guest.names.is_empty()
    }

    fn open_claim(&self) -> Result<Ownership, DbmsError> {
        if let Some(server) = self.compatible().filter(|server| !server.refused.is_empty()) {
            return Err(DbmsError::Refused(format!(
                "make tables on {}: {}\nhint: measure statements on tables that are there, with \
                 --bench sql:FILE",
                server.name, server.refused
            )));
        }
        self.theirs(|theirs| Ownership::open(theirs, &self.guest))
    }

    fn theirs<T>(&self, work: impl FnOnce(&Theirs<'_>) -> T) -> T {
        let Login { user, database, .. } = &self.login;
        // Postgres takes the database of the user's name if none is named.
        let database = if database.is_empty() { user } else { database };
        let connect = || {
            connect(self.dialect, &self.address, &self.login)
                .map_err(DbmsError::sql(self.doing("connect to")))
        };
        work(&Theirs { dialect: self.dialect, user, database, connect: &connect })
    }

    fn doing(&self, what: &str) -> String {
        format!("{what} the server at {} as {}", self.address, self.login.user)
    }

    /// The login of sessions that see rqps's tables.
    fn login(&self) -> Login {
        let mut login = self.login.clone();
        if let Some(claim) = self.claim.as_ref().filter(|_| self.calls.place_is_database()) {
            claim.name().clone_into(&mut login.database);
        }
        login
    }

    /// On which each session begins in the place of rqps, if it has one.
    fn sql_server(&self) -> SqlServer {
        let mut setup = self.session_setup(false);
        // Where no place of its own keeps others' functions out of its way.
        if setup.is_empty() && !self.open_schemas.is_empty() {
            setup.push(SERVER_ONLY.to_owned());
        }
        SqlServer {
            calls: self.calls,
            dialect: self.dialect,
            connect: connector(self.dialect, self.address.clone(), self.login(), setup),
            name: format!("the server at {} as {}", self.address, self.login.user),
            interrupt: self.interrupt.clone(),
            is_own: false,
            compatible: self.compatible(),
        }
    }
}

impl Drop for External {
    /// However a run ends, nothing stays on the server that could be removed.
    fn drop(&mut self) {
        // There is nobody left to tell; the next run of the plan finds what stays.
        ControlPlane::stop(self).ok();
    }
}

impl ControlPlane for External {
    fn init(&mut self) -> Result<(), DbmsError> {
        Ok(())
    }

    fn start(&mut self) -> Result<(), DbmsError> {
        self.look()?;
        if !self.is_visitor() {
            let mut claim = self.open_claim()?;
            claim.take(&self.guest)?;
            self.claim = Some(claim);
        }
        let mut session = self.sql_server().session("connect to")?;
        self.pid = find_pid(self.calls, &self.address, &mut *session);
        Ok(())
    }

    fn endpoint(&self) -> (Endpoint, Login) {
        (Endpoint::Server(self.address.clone()), self.login())
    }

    /// The address in the DSN: rqps does not know another one.
    fn far_endpoint(&self) -> Option<(Endpoint, Login)> {
        matches!(self.address, Address::Tcp { .. }).then(|| self.endpoint())
    }

    fn session_setup(&self, _: bool) -> Vec<String> {
        self.claim.iter().filter_map(Ownership::enter_statement).collect()
    }

    fn guest_place(&self) -> Option<GuestPlace> {
        if self.is_visitor() {
            let words = format!("database {}{}", self.login.database, self.encryption());
            return Some(GuestPlace { words, mark: self.guest.tag.clone() });
        }
        let mut place = self.claim.as_ref()?.guest_place(&self.guest);
        place.words.push_str(&self.encryption());
        Some(place)
    }

    fn sql(&self) -> Option<SqlServer> {
        Some(self.sql_server())
    }

    fn server_pid(&self) -> Option<u32> {
        self.pid
    }

    fn check(&mut self) -> Result<(), DbmsError> {
        let Some(claim) = &mut self.claim else {
            if !self.is_visitor() || self.pinged.elapsed() >= PING_PAUSE {
                self.sql_server().session("reach")?;
                self.pinged = Instant::now();
            }
            return Ok(());
        };
        if self.pinged.elapsed() < PING_PAUSE || claim.ping().is_ok() {
            if self.pinged.elapsed() >= PING_PAUSE {
                self.pinged = Instant::now();
            }
            return Ok(());
        }
        // The lock went with the session.
        self.claim = Some(self.open_claim()?);
        Ok(())
    }

    fn stop(&mut self) -> Result<(), DbmsError> {
        let Some(mut claim) = self.claim.take() else { return Ok(()) };
        if claim.ping().is_err() {
            claim = self.open_claim()?;
        }
        claim.release(&self.guest.tag, self.guest.keep)
    }
}

/// The root process of the server, if it runs on this host and can be told: by the owner of its
/// unix socket; over loopback by what the server says of itself. A pid is only believed if a
/// process of that id has a server's name, since a server in a container counts otherwise.
fn find_pid(
    calls: &dyn ServerCalls,
    address: &Address,
    session: &mut dyn ControlConnection,
) -> Option<u32> {
    let pid = match address {
        Address::Unix(path) => owner_of_unix_socket(path),
        Address::Tcp { host, .. } if is_loopback(host) => calls.pid(session),
        Address::Tcp { .. } => None,
    }?;
    let name = name_of(pid)?;
    calls.processes().iter().any(|known| name.starts_with(known)).then_some(pid)
}

/// True for a name or an address that means the local host.
pub fn is_loopback(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

// Whatever a program of the user's talks to. rqps starts nothing: it keeps a folder for the data of
// a program that has a library, and looks which process of this host listens at an address.

struct Client {
    site: Site,
    /// The server, if it listens on this host.
    server: Option<u32>,
}

/// Host and port of an address with a scheme.
fn address(text: &str) -> Option<(&str, u16)> {
    let (_, rest) = text.split_once("://")?;
    let rest = rest.split(['/', '?']).next()?;
    let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    let (host, port) = place.rsplit_once(':')?;
    Some((host.trim_matches(['[', ']']), port.parse().ok()?))
}

impl ControlPlane for Client {
    fn init(&mut self) -> Result<(), DbmsError> {
        hand_over_data(&self.site).map(drop)
    }

    fn start(&mut self) -> Result<(), DbmsError> {
        if Path::new(&self.site.data).exists() {
            check_library(&self.site)?;
        }
        let place = address(&self.site.build.manifest.origin);
        let near = place.filter(|(host, _)| is_loopback(host));
        self.server = near.and_then(|(_, port)| owner_of_port(port));
        Ok(())
    }

    fn endpoint(&self) -> (Endpoint, Login) {
        (Endpoint::File { path: self.site.data.clone(), library: None }, Login::default())
    }

    fn session_setup(&self, _: bool) -> Vec<String> {
        Vec::new()
    }

    fn server_pid(&self) -> Option<u32> {
        self.server
    }

    fn reported_version(&mut self) -> Result<String, DbmsError> {
        Ok(self.site.build.manifest.origin.clone())
    }

    fn stop(&mut self) -> Result<(), DbmsError> {
        Ok(())
    }
}

pub(crate) const SPEC: DbmsSpec = DbmsSpec {
    dbms: Dbms::Client,
    control: |site| Ok(Box::new(Client { site, server: None })),
    ..DbmsSpec::NONE
};

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::compatible::servers;

    #[test]
    fn a_server_on_which_rqps_makes_no_tables_is_refused_before_anything_is_made() {
        let guest = Guest {
            tag: "0123456789ab".to_owned(),
            plan: String::new(),
            results: String::new(),
            host: String::new(),
            label: "a".to_owned(),
            time: String::new(),
            names: vec!["sbtest1".to_owned()],
            keep: false,
            replace: Vec::new(),
        };
        // Nobody listens there: an attempt to connect would be another error.
        let address = Address::Unix("/nowhere".into());
        let (login, interrupt) = (Login::default(), Interrupt::default());
        let server = external(Dialect::Postgres, address, login, guest, interrupt);
        let mut server = server.expect("a server");
        server.compatible = Some(servers().iter().find(|row| row.name == "Aurora DSQL"));
        let error = server.survey().expect_err("refused").to_string();
        assert!(error.starts_with("make tables on Aurora DSQL: it has no sequences"), "{error}");
        assert!(error.contains("hint: measure statements"), "{error}");
        assert!(server.start().is_err());
    }

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
}

#[cfg(test)]
mod client_tests {
    use super::*;

    #[test]
    fn an_address_is_host_and_port() {
        assert_eq!(address("redis://u:p@127.0.0.1:7001/0?a=b:1"), Some(("127.0.0.1", 7001)));
        assert_eq!(address("redis://[::1]:7001"), Some(("::1", 7001)));
        for none in ["redis://host", "/opt/duckdb", "redis://h:seven"] {
            assert_eq!(address(none), None, "{none}");
        }
    }
}
