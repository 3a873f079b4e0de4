//! The wire clients against real servers: builds that rqps fetches, or those whose root folders
//! RQPS_TEST_POSTGRES and RQPS_TEST_MYSQL (which takes MariaDB too) name, separated by colons.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test panics and prints")]

use crate::support::{builds, skipped, user_files};
use std::fs::{self, File, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rqps_bench::sysbench::{C_LEN, PAD_LEN, SbtestTable};
use rqps_driver::request::{LoadRequest, RequestBody};
use rqps_model::dialect::{Dialect, push_literal};
use rqps_model::endpoint::{
    Address, AuthMethods, ChannelBinding, ClientIdentity, Consent, Endpoint, Login, ServerKey, Tls,
    TlsMode,
};
use rqps_wire::mysql::{LOCAL_REFUSED, MysqlClient};
use rqps_wire::postgres::PostgresClient;
use rqps_wire::{Value, ValueType, WireError};
use rustix::process::{Pid, Signal, kill_process};

/// Timeout of connects and replies. Values of 17 MB take seconds where the disk is busy.
const TIMEOUT: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(120);

// Servers.

/// A running server with a private folder; it ends with this value.
struct Server {
    folder: tempfile::TempDir,
    child: Child,
    port: u16,
    socket: PathBuf,
}

impl Server {
    fn unix(&self) -> Address {
        Address::Unix(self.socket.clone())
    }

    fn tcp(&self, tls: Tls) -> Address {
        Address::Tcp { host: "localhost".to_owned(), port: self.port, tls }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            let _ = kill_process(pid, Signal::QUIT);
        }
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(10) {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command that runs without privileges, since servers refuse to be root.
fn unprivileged(program: &Path) -> Command {
    if !rustix::process::getuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups", "--"]).arg(program);
    command
}

fn private_folder() -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("rqps-wire").tempdir_in("/tmp").unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    hand_over(folder.path());
    folder
}

/// Makes nobody the owner, if the servers run as nobody.
fn hand_over(path: &Path) {
    if rustix::process::getuid().is_root() {
        let status = Command::new("chown").arg("nobody:nogroup").arg(path).status().unwrap();
        assert!(status.success(), "chown of {}", path.display());
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn run(command: &mut Command, log: &Path) {
    let out = File::create(log).unwrap();
    let status =
        command.stdin(Stdio::null()).stderr(out.try_clone().unwrap()).stdout(out).status().unwrap();
    assert!(status.success(), "{command:?}: {}", fs::read_to_string(log).unwrap());
}

fn start(command: &mut Command, folder: tempfile::TempDir, port: u16, socket: &str) -> Server {
    let log = File::create(folder.path().join("server.log")).unwrap();
    let child = command
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap();
    let socket = folder.path().join(socket);
    Server { folder, child, port, socket }
}

/// Tries to log in until the server is up.
fn ready<C>(server: &mut Server, connect: impl Fn(&Address) -> Result<C, WireError>) -> C {
    let begin = Instant::now();
    loop {
        match connect(&server.unix()) {
            Ok(client) => return client,
            Err(error) => {
                let log = || fs::read_to_string(server.folder.path().join("server.log")).unwrap();
                let gone = server.child.try_wait().unwrap();
                assert!(gone.is_none(), "the server ended: {gone:?}: {}", log());
                assert!(begin.elapsed() < PATIENCE, "not ready: {error}: {}", log());
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }
}

/// Root folders of builds; if there are none, the test says that it is left out.
fn roots(test: &str, variable: &str, words: &[&str]) -> Vec<PathBuf> {
    builds::roots(variable, words).unwrap_or_else(|why| {
        skipped::note(test, &why);
        Vec::new()
    })
}

/// A mode that takes any key of the server.
fn asked(mode: TlsMode) -> Tls {
    let consent = Consent { key: ServerKey::Asked, ..Consent::default() };
    Tls { consent, ..Tls::of(mode) }
}

fn login(user: &str, password: &str, database: &str) -> Login {
    Login { user: user.to_owned(), password: password.to_owned(), database: database.to_owned() }
}

fn code(result: Result<impl Sized, WireError>) -> String {
    match result {
        Ok(_) => "no error".to_owned(),
        Err(error) => error.code().map_or_else(|| error.to_string(), str::to_owned),
    }
}

// Postgres.

fn start_postgres(root: &Path, extra: &[&str]) -> (Server, PostgresClient) {
    let folder = private_folder();
    let data = folder.path().join("data");
    let mut initdb = unprivileged(&root.join("bin/initdb"));
    initdb.args(["-U", "tester", "-A", "trust", "-N", "-E", "UTF8", "--locale=C", "-D"]).arg(&data);
    run(&mut initdb, &folder.path().join("initdb.log"));
    let port = free_port();
    let mut command = unprivileged(&root.join("bin/postgres"));
    command.arg("-D").arg(&data).arg("-k").arg(folder.path());
    command.args(["-p", &port.to_string(), "-h", "127.0.0.1", "-c", "fsync=off"]).args(extra);
    let mut server = start(&mut command, folder, port, &format!(".s.PGSQL.{port}"));
    let client = ready(&mut server, |address| {
        PostgresClient::connect(address, &login("tester", "", "postgres"), TIMEOUT)
    });
    (server, client)
}

/// Runs a test on every Postgres that is there.
fn with_postgres(test: &str, body: impl Fn(&Path)) {
    for root in roots(test, "RQPS_TEST_POSTGRES", &["postgres@17.2.0"]) {
        eprintln!("{test}: {}", root.display());
        body(&root);
    }
}

#[test]
fn postgres_statements() {
    with_postgres("postgres_statements", |root| {
        let (server, mut client) = start_postgres(root, &[]);
        assert!(!client.server_version().is_empty());
        let pid = client.rows("SELECT pg_backend_pid()").unwrap();
        assert_eq!(pid, [[Some(client.connection_id().to_string())]]);
        for (setting, escapes) in [("off", true), ("on", false)] {
            client.simple(&format!("SET standard_conforming_strings = {setting}")).unwrap();
            assert_eq!(client.escapes_backslash(), escapes);
            literals(escapes, |sql| client.rows(sql).unwrap());
        }
        postgres_prepared(&mut client);
        postgres_refusals(&mut client);
        postgres_big_replies(&mut client);
        postgres_copy(&mut client);
        // The same in a session that takes one statement at a time.
        let mut single =
            PostgresClient::connect(&server.unix(), &login("tester", "", "postgres"), TIMEOUT)
                .unwrap();
        single.one_statement_each();
        assert_eq!(code(single.simple("SELECT 1; TRUNCATE t")), "42601");
        assert_eq!(code(single.copy_in("COPY t FROM STDIN; SELECT 1", &mut |_| false)), "42601");
        postgres_copy(&mut single);
        let place = user_files::Place {
            dialect: Dialect::Postgres,
            endpoint: Endpoint::Server(server.unix()),
            login: login("tester", "", "postgres"),
        };
        user_files::check_csv(&place, &[1, 2], &mut |sql| client.rows(sql).unwrap());
        user_files::check_refused_csv(&place);
        user_files::check_generated_column(&place);
        // Killed from another session, the client learns why.
        let mut other =
            PostgresClient::connect(&server.unix(), &login("tester", "", "postgres"), TIMEOUT)
                .unwrap();
        other.simple(&format!("SELECT pg_terminate_backend({})", client.connection_id())).unwrap();
        let error = client.simple("SELECT 1").unwrap_err();
        assert!(matches!(error, WireError::Io { .. }), "{error:?}");
        assert!(error.to_string().contains("57P01"), "{error}");
        let error = client.simple("SELECT 1").unwrap_err().to_string();
        assert!(error.contains("connect again"), "{error}");
    });
}

/// A server reads the text that a literal was made of.
fn literals(escapes: bool, mut rows: impl FnMut(&str) -> Vec<Vec<Option<String>>>) {
    for text in ["a\\b", "\\", "\\'; SELECT 1 -- ", "''\\\\"] {
        let mut sql = "SELECT ".to_owned();
        push_literal(&mut sql, text.as_bytes(), escapes);
        assert_eq!(rows(&sql), [[Some(text.to_owned())]], "{sql}");
    }
}

fn postgres_prepared(client: &mut PostgresClient) {
    client.simple("CREATE TABLE t (id int PRIMARY KEY, k int, c text)").unwrap();
    let types = [ValueType::Int, ValueType::Int, ValueType::Text];
    let insert = client.prepare("INSERT INTO t VALUES ($1, $2, $3)", &types).unwrap();
    for id in 1..=500 {
        let values = [Value::Int(id), Value::Int(-id), Value::Text(b"words")];
        let reply = client.execute(insert, &values).unwrap();
        assert_eq!((reply.rows, reply.affected, reply.result_set), (0, 1, false));
    }
    let point = client.prepare("SELECT k FROM t WHERE id = $1", &[ValueType::Int]).unwrap();
    let hit = client.execute(point, &[Value::Int(7)]).unwrap();
    assert_eq!((hit.rows, hit.affected, hit.result_set), (1, 0, true));
    let miss = client.execute(point, &[Value::Int(7000)]).unwrap();
    assert_eq!((miss.rows, miss.result_set), (0, true));
    let two = [ValueType::Int; 2];
    let range = client.prepare("SELECT * FROM t WHERE id BETWEEN $1 AND $2", &two).unwrap();
    let reply = client.execute(range, &[Value::Int(101), Value::Int(300)]).unwrap();
    assert_eq!(reply.rows, 200);
    let by_text = client.prepare("UPDATE t SET k = 1 WHERE c = $1", &[ValueType::Text]).unwrap();
    assert_eq!(client.execute(by_text, &[Value::Text(b"words")]).unwrap().affected, 500);
    let none = client.prepare("DELETE FROM t", &[]).unwrap();
    assert_eq!(client.execute(none, &[]).unwrap().affected, 500);
    let mixed = client.execute(point, &[Value::Text(b"7")]).unwrap_err();
    assert!(mixed.to_string().contains("placeholder"), "{mixed}");
    let few = client.execute(range, &[Value::Int(1)]).unwrap_err();
    assert!(few.to_string().contains("1 values for 2 placeholders"), "{few}");
    assert_eq!(client.execute(point, &[Value::Int(7)]).unwrap().rows, 0);
}

fn postgres_refusals(client: &mut PostgresClient) {
    client.simple("INSERT INTO t VALUES (1, 1, 'one')").unwrap();
    let insert = client.prepare("INSERT INTO t VALUES ($1, 0, '')", &[ValueType::Int]).unwrap();
    client.simple("BEGIN").unwrap();
    assert_eq!(client.execute(insert, &[Value::Int(2)]).unwrap().affected, 1);
    assert_eq!(code(client.execute(insert, &[Value::Int(1)])), "23505");
    assert_eq!(code(client.execute(insert, &[Value::Int(3)])), "25P02");
    client.simple("ROLLBACK").unwrap();
    assert_eq!(client.simple("SELECT * FROM t").unwrap().rows, 1);
    assert_eq!(client.execute(insert, &[Value::Int(2)]).unwrap().affected, 1);
    assert_eq!(code(client.prepare("SELEC 1", &[])), "42601");
    assert_eq!(code(client.simple("SELECT * FROM nowhere")), "42P01");
    let wrong = client.prepare("SELECT 1", &[ValueType::Int]);
    assert!(wrong.is_err() || client.execute(wrong.unwrap(), &[Value::Int(1)]).is_ok());
    // A COPY where none is expected is refused without losing the thread, in both protocols.
    assert_eq!(code(client.simple("COPY t FROM STDIN")), "57014");
    let copy = client.prepare("COPY t FROM STDIN", &[]).unwrap();
    assert_eq!(code(client.execute(copy, &[])), "57014");
    assert_eq!(client.simple("COPY t TO STDOUT").unwrap().affected, 2);
    let reply = client.simple("SELECT 1; INSERT INTO t VALUES (9, 9, ''); SELECT 2").unwrap();
    assert_eq!((reply.rows, reply.affected, reply.result_set), (2, 1, true));
    assert_eq!(client.simple("").unwrap().rows, 0);
    let rows = client.rows("SELECT NULL, 'ä', '' UNION ALL SELECT 'b', 'c', NULL").unwrap();
    assert_eq!(rows[0], [None, Some("ä".to_owned()), Some(String::new())]);
    assert_eq!(rows.len(), 2);
}

fn postgres_big_replies(client: &mut PostgresClient) {
    let many = client
        .prepare("SELECT repeat('x', 900), g FROM generate_series(1, $1) g", &[ValueType::Int])
        .unwrap();
    let reply = client.execute(many, &[Value::Int(20_000)]).unwrap();
    assert_eq!(reply.rows, 20_000);
    assert!(reply.bytes > 18_000_000, "{reply:?}");
    let long = client.simple("SELECT repeat('x', 3000000)").unwrap();
    assert_eq!(long.rows, 1);
    let kept = client.rows("SELECT repeat('x', 3000000), 5").unwrap();
    assert_eq!(kept[0][0].as_ref().unwrap().len(), 3_000_000);
    // The error comes after rows have come.
    let late = client.prepare("SELECT 1000 / (5000 - g) FROM generate_series(1, 9000) g", &[]);
    assert_eq!(code(client.execute(late.unwrap(), &[])), "22012");
    assert_eq!(client.simple("SELECT 1").unwrap().rows, 1);
}

fn postgres_copy(client: &mut PostgresClient) {
    client.simple("TRUNCATE t").unwrap();
    let mut next = 0;
    let taken = client
        .copy_in("COPY t (id, k, c) FROM STDIN", &mut |rows| {
            for _ in 0..1000 {
                next += 1;
                rows.extend_from_slice(format!("{next}\t{}\twords words\n", next * 2).as_bytes());
            }
            next < 50_000
        })
        .unwrap();
    assert_eq!(taken, 50_000);
    let sum = client.rows("SELECT count(*), sum(k) FROM t").unwrap();
    assert_eq!(sum[0][1].as_deref(), Some("2500050000"));
    assert_eq!(client.copy_in("COPY t FROM STDIN", &mut |_| false).unwrap(), 0);
    // A duplicate key ends the load long before all rows are sent.
    let mut calls = 0;
    let refused = client.copy_in("COPY t FROM STDIN", &mut |rows| {
        calls += 1;
        rows.extend(b"not a number\t1\twords\n".repeat(10_000));
        calls < 2000
    });
    assert_eq!(code(refused), "22P02");
    assert!(calls < 2000, "the load went on to the end");
    let error = client.copy_in("SELECT 1", &mut |_| false).unwrap_err().to_string();
    assert!(error.contains("not a COPY"), "{error}");
    assert_eq!(code(client.copy_in("COPY nowhere FROM STDIN", &mut |_| false)), "42P01");
    assert_eq!(client.simple("SELECT 1").unwrap().rows, 1);
}

#[test]
fn postgres_logins() {
    with_postgres("postgres_logins", |root| {
        let (server, mut admin) = start_postgres(root, &[]);
        let scram = admin.rows("SHOW server_version_num").unwrap()[0][0].as_ref().unwrap()
            >= &"100000".to_owned();
        for method in ["md5", "scram-sha-256", "password"] {
            if method == "scram-sha-256" && !scram {
                continue;
            }
            if scram {
                let stored = if method == "md5" { "md5" } else { "scram-sha-256" };
                admin.simple(&format!("SET password_encryption = '{stored}'")).unwrap();
            }
            let user = format!("u_{}", method.replace('-', "_"));
            admin.simple(&format!("CREATE ROLE {user} LOGIN PASSWORD 'sësame'")).unwrap();
            let rules = format!("local all tester trust\nall_of_them\nhost all all all {method}\n")
                .replace("all_of_them", &format!("local all all {method}"));
            fs::write(server.folder.path().join("data/pg_hba.conf"), rules).unwrap();
            admin.simple("SELECT pg_reload_conf()").unwrap();
            let connect = |address: &Address, password: &str, database: &str| {
                PostgresClient::connect(address, &login(&user, password, database), TIMEOUT)
            };
            // The postmaster reloads when it gets to it.
            let begin = Instant::now();
            while code(connect(&server.unix(), "wrong", "postgres")) != "28P01" {
                assert!(begin.elapsed() < PATIENCE, "pg_hba.conf was not reloaded");
            }
            let refused = connect(&server.tcp(Tls::OFF), "sësame", "postgres").err();
            assert_eq!(refused.is_some(), method == "password", "{method}");
            if let Some(error) = refused {
                assert!(error.to_string().contains("or require_auth=password"), "{error}");
            }
            for (list, fits) in [(method, true), ("none", false), ("!none", true)] {
                let consent = Consent { methods: AuthMethods::parse(list), ..Consent::default() };
                let tls = Tls { consent, ..Tls::OFF };
                let is_in = connect(&server.tcp(tls), "sësame", "postgres").is_ok();
                assert_eq!(is_in, fits && (method != "password" || list == method), "{list}");
            }
            let methods = AuthMethods::parse(method);
            let tls = Tls { consent: Consent { methods, ..Consent::default() }, ..Tls::OFF };
            for address in [server.unix(), server.tcp(tls)] {
                let mut client = connect(&address, "sësame", "postgres").unwrap();
                let who = client.rows("SELECT current_user").unwrap();
                assert_eq!(who, [[Some(user.clone())]]);
                assert_eq!(code(connect(&address, "wrong", "postgres")), "28P01");
                assert_eq!(code(connect(&address, "sësame", "nowhere")), "3D000");
                let none = connect(&address, "", "postgres").err().unwrap().to_string();
                assert!(none.contains("requires a password"), "{none}");
            }
        }
    });
}

#[test]
fn postgres_gone() {
    let folder = private_folder();
    let socket = folder.path().join(".s.PGSQL.5432");
    let address = Address::Unix(socket.clone());
    let error = PostgresClient::connect(&address, &login("a", "", "a"), TIMEOUT).err().unwrap();
    let words = format!("connect to {}: No such file or directory (os error 2)", socket.display());
    assert_eq!(error.to_string(), words);
}

// MySQL and MariaDB.

/// Paths in an installed tree.
struct MysqlTree {
    root: PathBuf,
    server: PathBuf,
    share: PathBuf,
    mariadb: bool,
}

fn mysql_trees(test: &str) -> Vec<MysqlTree> {
    let tree = |root: PathBuf| {
        let server = ["bin/mariadbd", "bin/mysqld", "sbin/mysqld"]
            .iter()
            .map(|name| root.join(name))
            .find(|path| path.exists())
            .unwrap_or_else(|| panic!("no server in {}", root.display()));
        let version = Command::new(&server)
            .args(["--no-defaults", "--version"])
            .env("LD_LIBRARY_PATH", root.join("libs"))
            .output()
            .unwrap();
        let mariadb = String::from_utf8_lossy(&version.stdout).contains("MariaDB");
        let share = [root.join("share/mysql"), root.join("share")]
            .into_iter()
            .find(|share| share.join("english").exists())
            .unwrap_or_else(|| root.join("share"));
        MysqlTree { root, server, share, mariadb }
    };
    let words = ["mysql@5.6.14", "mysql@8.0.33", "mariadb@11.4.5"];
    roots(test, "RQPS_TEST_MYSQL", &words).into_iter().map(tree).collect()
}

impl MysqlTree {
    fn command(&self, data: &Path) -> Command {
        let mut command = unprivileged(&self.server);
        command.env("LD_LIBRARY_PATH", self.root.join("libs"));
        command.arg("--no-defaults").arg("--basedir").arg(&self.root).arg("--datadir").arg(data);
        // Another server that starts removes what it finds in the usual one.
        let temporary = data.with_file_name("tmp");
        fs::create_dir_all(&temporary).unwrap();
        hand_over(&temporary);
        command.arg("--tmpdir").arg(temporary);
        if self.mariadb {
            command.arg("--lc-messages-dir").arg(&self.share);
        }
        command
    }

    fn initialize(&self, folder: &Path) {
        let data = folder.join("data");
        let log = folder.join("init.log");
        if self.mariadb {
            fs::create_dir_all(data.join("mysql")).unwrap();
            hand_over(&data);
            hand_over(&data.join("mysql"));
            let mut sql = "use mysql;\n\
                set @auth_root_socket=NULL;\nset @skip_auth_anonymous=1;\n"
                .to_owned();
            for prefix in ["mariadb", "mysql"] {
                for name in ["system_tables", "performance_tables", "system_tables_data"] {
                    let file = self.share.join(format!("{prefix}_{name}.sql"));
                    sql += &fs::read_to_string(file).unwrap_or_default();
                }
            }
            fs::write(folder.join("bootstrap.sql"), sql).unwrap();
            let mut command = self.command(&data);
            command.args(["--bootstrap", "--skip-grant-tables"]);
            let out = File::create(&log).unwrap();
            let input = File::open(folder.join("bootstrap.sql")).unwrap();
            let status = command.stdin(input).stderr(out).stdout(Stdio::null()).status().unwrap();
            assert!(status.success(), "bootstrap: {}", fs::read_to_string(&log).unwrap());
        } else if self.root.join("scripts/mysql_install_db").exists() {
            let mut command = unprivileged(Path::new("perl"));
            command.current_dir(&self.root).arg("scripts/mysql_install_db");
            command.args(["--no-defaults", "--force", "--skip-name-resolve"]);
            command.arg(format!("--basedir={}", self.root.display()));
            command.arg(format!("--datadir={}", data.display()));
            run(&mut command, &log);
        } else {
            run(self.command(&data).arg("--initialize-insecure"), &log);
        }
    }

    fn start(&self, extra: &[String]) -> (Server, MysqlClient) {
        let folder = private_folder();
        self.initialize(folder.path());
        let port = free_port();
        let mut command = self.command(&folder.path().join("data"));
        command.arg("--socket").arg(folder.path().join("sock"));
        command.args(["--bind-address=127.0.0.1", "--port", &port.to_string()]);
        command.args(["--max-allowed-packet=64M", "--innodb-flush-log-at-trx-commit=0"]);
        command.args(["--pid-file=server.pid", "--skip-log-bin"]);
        command.args(extra);
        if self.mariadb {
            // The test writes values of 17 MB, and a tenth of the log must hold one.
            command.arg("--innodb-log-file-size=256M");
        }
        let mut server = start(&mut command, folder, port, "sock");
        let client = ready(&mut server, |address| {
            MysqlClient::connect(address, &login("root", "", "mysql"), TIMEOUT)
        });
        (server, client)
    }
}

/// Runs a test on every MySQL and MariaDB that is named.
fn with_mysql(test: &str, body: impl Fn(&MysqlTree)) {
    for tree in mysql_trees(test) {
        eprintln!("{test}: {}", tree.root.display());
        body(&tree);
    }
}

/// One server of each build takes all of it: to make a data folder takes longer than most of this.
#[test]
fn mysql_statements_loads_and_logins() {
    with_mysql("mysql_statements_loads_and_logins", |tree| {
        let (server, client) = tree.start(&[]);
        mysql_statements(&server, client);
        let root = login("root", "", "mysql");
        let again = || MysqlClient::connect(&server.unix(), &root, TIMEOUT).unwrap();
        mysql_loads_the_same_rows_with_local_files_and_without(&server, again());
        mysql_logins(tree.mariadb, &server, again());
    });
}

fn mysql_statements(server: &Server, mut client: MysqlClient) {
    let told = client.rows("SELECT version(), connection_id()").unwrap().remove(0);
    assert!(told[0].as_ref().unwrap().starts_with(client.server_version()), "{told:?}");
    assert_eq!(told[1].as_deref(), Some(client.connection_id().to_string().as_str()));
    client.simple("CREATE DATABASE d").unwrap();
    client.simple("USE d").unwrap();
    for (mode, escapes) in [("NO_BACKSLASH_ESCAPES", false), ("", true)] {
        client.simple(&format!("SET SESSION sql_mode = '{mode}'")).unwrap();
        assert_eq!(client.escapes_backslash(), escapes);
        literals(escapes, |sql| client.rows(sql).unwrap());
    }
    mysql_prepared(&mut client);
    mysql_refusals(&mut client);
    mysql_big(&mut client);
    let mut other = MysqlClient::connect(&server.unix(), &login("root", "", "d"), TIMEOUT).unwrap();
    other.one_statement_each().unwrap();
    assert_eq!(code(other.simple("SELECT 1; TRUNCATE t")), "1064");
    mysql_local_files(&mut other);
    let mut other = MysqlClient::connect(&server.unix(), &login("root", "", "d"), TIMEOUT).unwrap();
    other.simple(&format!("KILL {}", client.connection_id())).unwrap();
    let error = refused_after_kill(&mut client);
    assert!(matches!(error, WireError::Io { .. }), "{error:?}");
    let error = client.simple("SELECT 1").unwrap_err().to_string();
    assert!(error.contains("connect again"), "{error}");
}

/// The error by which a client learns that it was killed. A busy server may answer statements for a
/// while, and may say that it interrupts one, before it closes the connection.
fn refused_after_kill(client: &mut MysqlClient) -> WireError {
    let begin = Instant::now();
    loop {
        match client.simple("SELECT 1") {
            Err(error @ WireError::Io { .. }) => return error,
            Err(error) if begin.elapsed() > PATIENCE => return error,
            Ok(_) if begin.elapsed() > PATIENCE => panic!("the server did not end the connection"),
            Ok(_) | Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

fn mysql_prepared(client: &mut MysqlClient) {
    client
        .simple("CREATE TABLE t (id int PRIMARY KEY, k int, c varchar(60)) ENGINE=InnoDB")
        .unwrap();
    let types = [ValueType::Int, ValueType::Int, ValueType::Text];
    let insert = client.prepare("INSERT INTO t VALUES (?, ?, ?)", &types).unwrap();
    for id in 1..=500 {
        let values = [Value::Int(id), Value::Int(-id), Value::Text(b"words")];
        let reply = client.execute(insert, &values).unwrap();
        assert_eq!((reply.rows, reply.affected, reply.result_set), (0, 1, false));
    }
    assert_eq!(client.rows("SELECT sum(k) FROM t").unwrap(), [[Some("-125250".to_owned())]]);
    let point = client.prepare("SELECT k FROM t WHERE id = ?", &[ValueType::Int]).unwrap();
    let hit = client.execute(point, &[Value::Int(7)]).unwrap();
    assert_eq!((hit.rows, hit.affected, hit.result_set), (1, 0, true));
    let miss = client.execute(point, &[Value::Int(7000)]).unwrap();
    assert_eq!((miss.rows, miss.result_set), (0, true));
    let two = [ValueType::Int; 2];
    let range = client.prepare("SELECT * FROM t WHERE id BETWEEN ? AND ?", &two).unwrap();
    let reply = client.execute(range, &[Value::Int(101), Value::Int(300)]).unwrap();
    assert_eq!(reply.rows, 200);
    let by_text = client.prepare("UPDATE t SET k = 1 WHERE c = ?", &[ValueType::Text]).unwrap();
    assert_eq!(client.execute(by_text, &[Value::Text(b"words")]).unwrap().affected, 500);
    // Rows that were found but not changed do not count.
    assert_eq!(client.execute(by_text, &[Value::Text(b"words")]).unwrap().affected, 0);
    let none = client.prepare("DELETE FROM t", &[]).unwrap();
    assert_eq!(client.execute(none, &[]).unwrap().affected, 500);
    let few = client.execute(range, &[Value::Int(1)]).unwrap_err();
    assert!(few.to_string().contains("1 values for 2 placeholders"), "{few}");
    let wrong = client.prepare("SELECT ?", &[]).unwrap_err();
    assert!(wrong.to_string().contains("1 placeholders, not 0"), "{wrong}");
    assert_eq!(client.execute(point, &[Value::Int(7)]).unwrap().rows, 0);
}

fn mysql_refusals(client: &mut MysqlClient) {
    client.simple("INSERT INTO t VALUES (1, 1, 'one')").unwrap();
    // The first execution, which tells the types, is refused; the next must tell them again.
    let insert = client.prepare("INSERT INTO t VALUES (?, 0, '')", &[ValueType::Int]).unwrap();
    client.simple("BEGIN").unwrap();
    assert_eq!(code(client.execute(insert, &[Value::Int(1)])), "1062");
    assert_eq!(client.execute(insert, &[Value::Int(2)]).unwrap().affected, 1);
    client.simple("ROLLBACK").unwrap();
    assert_eq!(client.simple("SELECT * FROM t").unwrap().rows, 1);
    assert_eq!(code(client.prepare("SELEC 1", &[])), "1064");
    assert_eq!(code(client.simple("SELECT * FROM nowhere")), "1146");
    let reply = client.simple("SELECT 1; INSERT INTO t VALUES (9, 9, ''); SELECT 2").unwrap();
    assert_eq!((reply.rows, reply.affected, reply.result_set), (2, 1, true));
    assert_eq!(code(client.simple("SELECT 1; SELECT * FROM nowhere; SELECT 2")), "1146");
    client.simple("CREATE PROCEDURE p(n bigint) BEGIN SELECT n; SELECT * FROM t; END").unwrap();
    let call = client.prepare("CALL p(?)", &[ValueType::Int]).unwrap();
    let reply = client.execute(call, &[Value::Int(4)]).unwrap();
    assert_eq!((reply.rows, reply.result_set), (3, true));
    let rows = client.rows("SELECT NULL, 'ä', '' UNION ALL SELECT 'b', 'c', NULL").unwrap();
    assert_eq!(rows[0], [None, Some("ä".to_owned()), Some(String::new())]);
    assert_eq!(rows.len(), 2);
}

const LOCAL: &str = "LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE f";

fn mysql_local_files(client: &mut MysqlClient) {
    client.simple("CREATE TABLE f (id int PRIMARY KEY, c varchar(60)) ENGINE=InnoDB").unwrap();
    let mut calls = 0;
    let mut fill = |out: &mut Vec<u8>| {
        calls += 1;
        // Every third call gives nothing; all together give more packets than sequence numbers.
        if calls % 3 > 0 {
            out.extend_from_slice(format!("{calls}\ttext\n").as_bytes());
        }
        calls < 900
    };
    client.simple("SET GLOBAL local_infile = 0").unwrap();
    let refused = code(client.load_local(LOCAL, &mut fill));
    assert!(LOCAL_REFUSED.contains(&refused.as_str()), "{refused}");
    client.simple("SET GLOBAL local_infile = 1").unwrap();
    // What was not asked for is never sent.
    assert_eq!(client.simple(LOCAL).unwrap().affected, 0);
    assert_eq!(client.load_local(LOCAL, &mut fill).unwrap(), 600);
    assert_eq!(calls, 900, "a refused statement takes no rows");
    assert_eq!(client.rows("SELECT sum(id) FROM f").unwrap(), [[Some("270000".to_owned())]]);
    let mut twice = |out: &mut Vec<u8>| {
        out.extend_from_slice(b"1\tanother\n3\tnew\n");
        false
    };
    assert_eq!(client.load_local(LOCAL, &mut twice).unwrap(), 1);
    let other = client.load_local("SELECT 1", &mut twice).unwrap_err();
    assert!(other.to_string().contains("not a LOAD DATA"), "{other}");
    let nowhere = LOCAL.replace("TABLE f", "TABLE nowhere");
    assert_eq!(code(client.load_local(&nowhere, &mut twice)), "1146");
    let mut endless = |out: &mut Vec<u8>| {
        out.resize(1 << 25, b'1');
        false
    };
    let long = client.load_local(LOCAL, &mut endless).unwrap_err();
    assert!(long.to_string().contains("do not fit"), "{long}");
}

/// LOAD DATA statements of all sessions so far.
fn loads(client: &mut MysqlClient) -> u64 {
    let rows = client.rows("SHOW GLOBAL STATUS LIKE 'Com_load'").unwrap();
    rows[0][1].as_ref().unwrap().parse().unwrap()
}

/// Loads a table as the lab does, with a driver process.
fn load_by_driver(server: &Server, rows: u64) {
    let task = RequestBody::Load(LoadRequest {
        drop_sql: "DROP TABLE IF EXISTS sbtest{table}".to_owned(),
        create_sql: "CREATE TABLE sbtest{table} (id int PRIMARY KEY, k int, c char(120), \
                     pad char(60)) ENGINE=InnoDB"
            .to_owned(),
        index_sql: vec!["CREATE INDEX k_{table} ON sbtest{table} (k)".to_owned()],
        table: "sbtest{table}".to_owned(),
        rows_of: "sysbench".to_owned(),
        columns: rqps_bench::sysbench::columns(),
        parallel: 1,
    });
    let place = user_files::Place {
        dialect: Dialect::Mysql,
        endpoint: Endpoint::Server(server.unix()),
        login: login("root", "", "d"),
    };
    assert_eq!(user_files::loaded(&place.request(task, rows)), rows);
}

fn mysql_loads_the_same_rows_with_local_files_and_without(
    server: &Server,
    mut client: MysqlClient,
) {
    client.simple("DROP DATABASE d").unwrap();
    client.simple("CREATE DATABASE d CHARACTER SET latin1").unwrap();
    client.simple("USE d").unwrap();
    // Two ranges of 60,000 rows at most, in pieces of 50,000; refused, each range tries once.
    for (allowed, rows, want) in [(1, 120_001, 4), (0, 60_001, 2)] {
        let table = SbtestTable::new(42, 1, rows);
        client.simple(&format!("SET GLOBAL local_infile = {allowed}")).unwrap();
        let before = loads(&mut client);
        load_by_driver(server, rows);
        assert_eq!(loads(&mut client) - before, want, "LOAD DATA, local files {allowed}");
        let mut texts = [0; C_LEN + PAD_LEN];
        let found = client.rows("SELECT id, k, c, pad FROM sbtest1 ORDER BY id").unwrap();
        assert_eq!(found.len() as u64, rows);
        for (id, found) in (1..).zip(found) {
            let k = table.texts(id, &mut texts);
            let (c, pad) = texts.split_at(C_LEN);
            let text = |bytes: &[u8]| Some(String::from_utf8(bytes.to_vec()).unwrap());
            let want = [id, k].map(|number| Some(number.to_string()));
            let want = want.into_iter().chain([text(c), text(pad)]);
            assert!(want.eq(found), "{id}, local files {allowed}");
        }
        // One server is enough for INSERTs: the oldest, which changes values where it may.
        if allowed == 1 || client.server_version().starts_with("5.6") {
            files_by_driver(server, &mut client, allowed == 1);
        }
    }
}

/// Files of a user's, into a database of their own.
fn files_by_driver(server: &Server, client: &mut MysqlClient, is_first: bool) {
    client.simple("DROP DATABASE IF EXISTS files").unwrap();
    client.simple("CREATE DATABASE files").unwrap();
    let place = user_files::Place {
        dialect: Dialect::Mysql,
        endpoint: Endpoint::Server(server.unix()),
        login: login("root", "", "files"),
    };
    client.simple("USE files").unwrap();
    if !client.server_version().starts_with("5.6") {
        user_files::check_generated_column(&place);
    }
    let mut rows = |sql: &str| client.rows(sql).unwrap();
    // The second time by INSERTs.
    user_files::check_csv(&place, if is_first { &[2] } else { &[1] }, &mut rows);
    user_files::check_refused_csv(&place);
    if is_first {
        user_files::check_dumps(&place, &mut rows);
    }
    client.simple("USE d").unwrap();
}

fn mysql_big(client: &mut MysqlClient) {
    client.simple("CREATE TABLE b (id int PRIMARY KEY, c longtext) ENGINE=InnoDB").unwrap();
    let mut sql = "INSERT INTO b VALUES (0, '')".to_owned();
    for id in 1..20_000 {
        sql += &format!(", ({id}, '{}')", "x".repeat(900));
    }
    // More than one packet holds.
    assert!(sql.len() > 1 << 24);
    assert_eq!(client.simple(&sql).unwrap().affected, 20_000);
    let scan = client.prepare("SELECT * FROM b WHERE id >= ?", &[ValueType::Int]).unwrap();
    let reply = client.execute(scan, &[Value::Int(0)]).unwrap();
    assert_eq!(reply.rows, 20_000);
    assert!(reply.bytes > 18_000_000, "{reply:?}");
    client.simple("SET SESSION group_concat_max_len = 1000000000").unwrap();
    let long = "SELECT group_concat(c SEPARATOR '') FROM b UNION ALL SELECT 'short'";
    let reply = client.simple(long).unwrap();
    assert_eq!(reply.rows, 2);
    assert!(reply.bytes > 17_900_000, "{reply:?}");
    let update = client.prepare("UPDATE b SET c = ? WHERE id = 1", &[ValueType::Text]).unwrap();
    for size in [0, 250, 251, 65_535, 65_536, 3_000_000, (1 << 24) - 40, 17_000_000] {
        client.execute(update, &[Value::Text(&vec![b'y'; size])]).unwrap();
        let told = client.rows("SELECT length(c), c = repeat('y', length(c)) FROM b WHERE id = 1");
        assert_eq!(told.unwrap(), [[Some(size.to_string()), Some("1".to_owned())]]);
    }
    // A body of exactly one full packet is followed by an empty one.
    let filler = (1 << 24) - 2 - "SELECT length('')".len();
    let full = format!("SELECT length('{}')", "z".repeat(filler));
    assert_eq!(client.rows(&full).unwrap(), [[Some(filler.to_string())]]);
}

fn mysql_logins(mariadb: bool, server: &Server, mut admin: MysqlClient) {
    let numbers: Vec<u32> =
        admin.server_version().split('.').map_while(|part| part.parse().ok()).collect();
    let sha2 = !mariadb && numbers.first().is_some_and(|major| *major >= 8);
    admin.simple("DELETE FROM mysql.user WHERE user = ''").ok();
    admin.simple("FLUSH PRIVILEGES").unwrap();
    let mut users = vec![("native", "mysql_native_password")];
    if sha2 {
        users.push(("sha2", "caching_sha2_password"));
    }
    for (user, plugin) in users {
        let create = if sha2 {
            format!("CREATE USER {user} IDENTIFIED WITH {plugin} BY 'sësame'")
        } else {
            format!("CREATE USER {user} IDENTIFIED BY 'sësame'")
        };
        admin.simple(&create).unwrap();
        admin.simple(&format!("CREATE USER {user}_open")).unwrap();
        admin.simple(&format!("GRANT ALL ON mysql.* TO {user}")).unwrap();
        mysql_login(server, &mut admin, user);
    }
    if sha2 {
        admin.simple("CREATE USER old IDENTIFIED WITH sha256_password BY 'x'").unwrap();
        let connect = MysqlClient::connect(&server.unix(), &login("old", "x", ""), TIMEOUT);
        let error = connect.err().unwrap().to_string();
        assert!(error.contains("sha256_password, which rqps does not support"), "{error}");
    }
}

fn mysql_login(server: &Server, admin: &mut MysqlClient, user: &str) {
    if user == "sha2" {
        admin.simple("FLUSH PRIVILEGES").unwrap();
        let login = login(user, "sësame", "");
        let refused = MysqlClient::connect(&server.tcp(Tls::OFF), &login, TIMEOUT);
        let error = refused.err().unwrap().to_string();
        assert!(error.contains("or get-server-public-key=true"), "{error}");
    }
    for address in [server.tcp(asked(TlsMode::Off)), server.unix()] {
        let connect = |user: &str, password: &str, database: &str| {
            MysqlClient::connect(&address, &login(user, password, database), TIMEOUT)
        };
        // Forgets cached hashes: the first login is the long way, the second the short one.
        admin.simple("FLUSH PRIVILEGES").unwrap();
        for _ in 0..2 {
            let mut client = connect(user, "sësame", "mysql").unwrap();
            let who = client.rows("SELECT current_user(), database()").unwrap().remove(0);
            assert_eq!(who, [Some(format!("{user}@%")), Some("mysql".to_owned())]);
        }
        assert_eq!(code(connect(user, "wrong", "")), "1045");
        assert_eq!(code(connect(user, "", "")), "1045");
        assert!(connect(user, "sësame", "").is_ok());
        assert!(connect(&format!("{user}_open"), "", "").is_ok());
        assert_eq!(code(connect(user, "sësame", "nowhere")), "1044");
    }
}

// TLS.

mod tls {
    use super::*;

    const CA_SETTINGS: &str = "[ca]\ndefault_ca=d\n[d]\ndatabase=index\nserial=serial\n\
        new_certs_dir=.\ndefault_md=sha256\npolicy=p\nx509_extensions=e\n\
        [p]\ncommonName=supplied\n[e]\nsubjectAltName=DNS:localhost\n";

    /// A certificate that signs; those that it signed for localhost, one of them expired, and for a
    /// client; one of a stranger, and one of a server that signed itself. Made by openssl; none if
    /// openssl is not there.
    fn certificates() -> Option<tempfile::TempDir> {
        let folder = private_folder();
        let openssl = |arguments: &str| {
            let mut command = Command::new("openssl");
            command.current_dir(folder.path()).args(arguments.split(' '));
            command.stderr(Stdio::null()).stdout(Stdio::null()).status()
        };
        openssl("version").ok()?;
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("ext", "subjectAltName=DNS:localhost\n");
        write("ca.cnf", CA_SETTINGS);
        write("index", "");
        write("serial", "77\n");
        for arguments in [
            "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=ca",
            "req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost",
            "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem \
             -days 2 -extfile ext",
            "ca -batch -config ca.cnf -cert ca.pem -keyfile ca.key -in server.csr -out old.pem \
             -startdate 20200101000000Z -enddate 20210101000000Z -notext",
            "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -out v1.pem -days 2",
            "req -x509 -key server.key -out self.pem -days 2 -subj /CN=localhost \
             -addext subjectAltName=DNS:localhost",
            "req -newkey rsa:2048 -nodes -keyout client.key -out client.csr -subj /CN=certified",
            "x509 -req -in client.csr -CA ca.pem -CAkey ca.key -out client.pem -days 2",
            "req -x509 -newkey rsa:2048 -nodes -keyout x.key -out other.pem -days 2 -subj /CN=x",
        ] {
            assert!(openssl(arguments).unwrap().success(), "openssl {arguments}");
        }
        for name in
            ["server.key", "server.pem", "old.pem", "v1.pem", "self.pem", "ca.pem", "client.key"]
        {
            fs::set_permissions(folder.path().join(name), Permissions::from_mode(0o600)).unwrap();
            if name != "client.key" {
                hand_over(&folder.path().join(name));
            }
        }
        Some(folder)
    }

    fn verify(folder: &Path, mode: TlsMode, name: &str) -> Tls {
        Tls { roots: Some(folder.join(name)), ..Tls::of(mode) }
    }

    fn identity(folder: &Path) -> Option<ClientIdentity> {
        let (certificate, key) = (folder.join("client.pem"), folder.join("client.key"));
        Some(ClientIdentity { certificate, key })
    }

    /// Tries the ways of checking a certificate.
    fn check<C>(
        server: &Server,
        folder: &Path,
        connect: impl Fn(&Address) -> Result<C, WireError>,
    ) {
        let full = |name| verify(folder, TlsMode::VerifyFull, name);
        assert!(connect(&server.tcp(asked(TlsMode::Require))).is_ok());
        assert!(connect(&server.tcp(full("ca.pem"))).is_ok());
        let refused = |address: Address| connect(&address).err().unwrap().to_string();
        let stranger = refused(server.tcp(full("other.pem")));
        assert!(stranger.contains("other.pem signed the server's certificate\nhint: name"));
        let unknown = refused(server.tcp(Tls::of(TlsMode::VerifyFull)));
        assert!(unknown.contains("hint: "), "{unknown}");
        let elsewhere = |tls| Address::Tcp { host: "127.0.0.1".to_owned(), port: server.port, tls };
        let name = refused(elsewhere(full("ca.pem")));
        assert!(name.contains("is for localhost, not for '127.0.0.1'\nhint: connect by"), "{name}");
        assert!(connect(&elsewhere(verify(folder, TlsMode::VerifyCa, "ca.pem"))).is_ok());
        let missing = refused(server.tcp(full("nowhere.pem")));
        assert!(missing.contains("nowhere.pem: "), "{missing}");
        let empty = refused(server.tcp(full("ext")));
        assert!(empty.contains("holds no CERTIFICATE"), "{empty}");
    }

    /// A Postgres with TLS, whose settings change while it runs.
    struct Changing {
        server: Server,
        admin: PostgresClient,
        folder: tempfile::TempDir,
    }

    impl Changing {
        fn start(root: &Path) -> Option<Changing> {
            let folder = certificates()?;
            let (server, mut admin) = start_postgres(root, &[]);
            let file = |name: &str| folder.path().join(name).display().to_string();
            for (name, value) in [
                ("ssl", "on".to_owned()),
                ("ssl_cert_file", file("server.pem")),
                ("ssl_key_file", file("server.key")),
                ("ssl_ca_file", file("ca.pem")),
            ] {
                admin.simple(&format!("ALTER SYSTEM SET {name} = '{value}'")).unwrap();
            }
            Some(Changing { server, admin, folder })
        }

        fn connect(&self, tls: Tls) -> Result<PostgresClient, WireError> {
            let user = login("tester", "", "postgres");
            PostgresClient::connect(&self.server.tcp(tls), &user, TIMEOUT)
        }

        /// Has the settings read, and waits until a session is as they say: the postmaster reloads
        /// when it gets to it.
        fn reload(&mut self, tls: &Tls, done: impl Fn(Result<PostgresClient, WireError>) -> bool) {
            self.admin.simple("SELECT pg_reload_conf()").unwrap();
            let begin = Instant::now();
            while !done(self.connect(tls.clone())) {
                assert!(begin.elapsed() < PATIENCE, "the settings were not reloaded");
            }
        }

        /// Rules for sessions over TCP.
        fn rules(&self, rules: &str) {
            let rules = format!("local all all trust\n{rules}\n");
            fs::write(self.server.folder.path().join("data/pg_hba.conf"), rules).unwrap();
        }
    }

    #[test]
    fn postgres_tls() {
        with_postgres("postgres_tls", |root| {
            let Some(mut theirs) = Changing::start(root) else {
                return skipped::note("postgres_tls", "no openssl program");
            };
            let require = Tls::of(TlsMode::Require);
            theirs.reload(&require, |session| session.is_ok());
            certificates_are_checked(&theirs);
            both_sides_prove_the_password(&theirs);
            the_server_chooses(&mut theirs);
            client_certificates(&mut theirs);
            certificates_change(&mut theirs);
            theirs.admin.simple("ALTER SYSTEM SET ssl = off").unwrap();
            theirs.reload(&require, |session| session.is_err());
            let error = theirs.connect(require).err().unwrap().to_string();
            assert!(error.contains("TLS disabled (ssl = off), and sslmode=require"), "{error}");
            assert!(!theirs.connect(Tls::of(TlsMode::Prefer)).unwrap().is_encrypted());
        });
    }

    fn certificates_are_checked(theirs: &Changing) {
        let user = login("tester", "", "postgres");
        check(&theirs.server, theirs.folder.path(), |address| {
            let mut client = PostgresClient::connect(address, &user, TIMEOUT)?;
            let used = client.rows("SELECT ssl FROM pg_stat_ssl WHERE pid=pg_backend_pid()")?;
            assert_eq!(used, [[Some("t".to_owned())]]);
            let many = "SELECT repeat('x', 1000) FROM generate_series(1, 5000)";
            assert_eq!(client.simple(many)?.rows, 5000);
            let row = b"words words words\n".repeat(40_000);
            client.simple("CREATE TEMP TABLE t (c text)")?;
            let taken = client.copy_in("COPY t FROM STDIN", &mut |rows| {
                rows.extend_from_slice(&row);
                false
            });
            assert_eq!(taken?, 40_000);
            Ok(())
        });
    }

    /// SCRAM with and without channel binding.
    fn both_sides_prove_the_password(theirs: &Changing) {
        let mut admin = PostgresClient::connect(
            &theirs.server.unix(),
            &login("tester", "", "postgres"),
            TIMEOUT,
        )
        .unwrap();
        admin.simple("SET password_encryption = 'scram-sha-256'").unwrap();
        admin.simple("CREATE ROLE bound LOGIN PASSWORD 'sësame'").unwrap();
        theirs.rules("hostssl all bound all scram-sha-256\nhost all all all trust");
        admin.simple("SELECT pg_reload_conf()").unwrap();
        let connect = |password: &str, binding: ChannelBinding| {
            let tls = Tls { binding, ..Tls::of(TlsMode::Require) };
            let user = login("bound", password, "postgres");
            PostgresClient::connect(&theirs.server.tcp(tls), &user, TIMEOUT)
        };
        let begin = Instant::now();
        while code(connect("wrong", ChannelBinding::Prefer)) != "28P01" {
            assert!(begin.elapsed() < PATIENCE, "pg_hba.conf was not reloaded");
        }
        for binding in [ChannelBinding::Prefer, ChannelBinding::Disable, ChannelBinding::Require] {
            assert!(connect("sësame", binding).unwrap().is_encrypted(), "{binding:?}");
        }
        assert_eq!(code(connect("", ChannelBinding::Prefer)), "28P01");
        // Where no password is asked for, nothing is bound.
        let tls = Tls { binding: ChannelBinding::Require, ..Tls::of(TlsMode::Require) };
        let error = theirs.connect(tls).err().unwrap().to_string();
        assert!(error.contains("channel_binding=require, and the server"), "{error}");
    }

    /// Modes that leave the server the choice, and a server that refuses plain sessions.
    fn the_server_chooses(theirs: &mut Changing) {
        let of = Tls::of;
        assert!(theirs.connect(of(TlsMode::Prefer)).unwrap().is_encrypted());
        assert!(!theirs.connect(of(TlsMode::Allow)).unwrap().is_encrypted());
        theirs.rules("hostssl all all all trust");
        theirs.reload(&of(TlsMode::Off), |session| session.is_err());
        let error = theirs.connect(of(TlsMode::Off)).err().unwrap().to_string();
        assert!(error.contains("hint: the server refuses sessions without TLS"), "{error}");
        assert!(theirs.connect(of(TlsMode::Allow)).unwrap().is_encrypted());
        theirs.rules("hostnossl all all all trust");
        theirs.reload(&of(TlsMode::Off), |session| session.is_ok());
        let error = theirs.connect(of(TlsMode::Prefer)).err().unwrap().to_string();
        assert!(error.contains("hint: the server refuses sessions with TLS"), "{error}");
    }

    fn client_certificates(theirs: &mut Changing) {
        theirs.admin.simple("CREATE ROLE certified LOGIN").unwrap();
        theirs.rules("hostssl all certified all cert\nhost all tester all trust");
        theirs.reload(&Tls::of(TlsMode::Require), |session| session.is_ok());
        let folder = theirs.folder.path();
        let connect = |identity| {
            let tls = Tls { identity, ..verify(folder, TlsMode::VerifyFull, "ca.pem") };
            let user = login("certified", "", "postgres");
            PostgresClient::connect(&theirs.server.tcp(tls), &user, TIMEOUT)
        };
        assert!(connect(identity(folder)).is_ok());
        let error = connect(None).err().unwrap().to_string();
        assert!(error.contains("hint: name a certificate of the client"), "{error}");
        let stranger = Some(ClientIdentity {
            certificate: folder.join("other.pem"),
            key: folder.join("x.key"),
        });
        fs::set_permissions(folder.join("x.key"), Permissions::from_mode(0o600)).unwrap();
        let error = connect(stranger.clone()).err().unwrap().to_string();
        assert!(error.contains("refuses the client's certificate"), "{error}");
        fs::set_permissions(folder.join("x.key"), Permissions::from_mode(0o644)).unwrap();
        let error = connect(stranger).err().unwrap().to_string();
        assert!(error.contains("hint: chmod 600"), "{error}");
        let (certificate, key) = (folder.join("other.pem"), folder.join("client.key"));
        let error = connect(Some(ClientIdentity { certificate, key })).err().unwrap().to_string();
        assert!(error.contains("client.key: it is not the key of sslcert="), "{error}");
    }

    /// An expired certificate, and one that the server signed itself.
    fn certificates_change(theirs: &mut Changing) {
        let full = |name| Tls { roots: Some(name), ..Tls::of(TlsMode::VerifyFull) };
        let file = |theirs: &Changing, name| theirs.folder.path().join(name);
        let set = |theirs: &mut Changing, name| {
            let value = file(theirs, name).display().to_string();
            let set = format!("ALTER SYSTEM SET ssl_cert_file = '{value}'");
            theirs.admin.simple(&set).unwrap();
        };
        let authority = full(file(theirs, "ca.pem"));
        set(theirs, "old.pem");
        theirs.reload(&authority, |session| session.is_err());
        let error = theirs.connect(authority.clone()).err().unwrap().to_string();
        assert!(error.contains("expired on 2021-01-01\nhint: renew it"), "{error}");
        let pinned = full(file(theirs, "old.pem"));
        let error = theirs.connect(pinned).err().unwrap().to_string();
        assert!(error.contains("the server's certificate expired"), "{error}");
        set(theirs, "self.pem");
        let itself = full(file(theirs, "self.pem"));
        theirs.reload(&itself, |session| session.is_ok());
        assert!(theirs.connect(authority.clone()).is_err());
        set(theirs, "v1.pem");
        theirs.reload(&itself, |session| session.is_err());
        let error = theirs.connect(authority).err().unwrap().to_string();
        assert!(error.contains("version 1 of X.509, which cannot be checked\nhint: "), "{error}");
        assert!(theirs.connect(Tls::of(TlsMode::Require)).unwrap().is_encrypted());
    }

    #[test]
    fn mysql_tls() {
        let Some(folder) = certificates() else {
            return skipped::note("mysql_tls", "no openssl program");
        };
        with_mysql("mysql_tls", |tree| {
            let options = [("ca", "ca.pem"), ("cert", "server.pem"), ("key", "server.key")]
                .map(|(name, file)| format!("--ssl-{name}={}", folder.path().join(file).display()));
            let (server, mut admin) = tree.start(&options);
            if !admin.server_version().starts_with("8.") {
                skipped::note(
                    "mysql_tls",
                    &format!("{} speaks no TLS 1.2", admin.server_version()),
                );
                return;
            }
            admin.simple("CREATE USER secure IDENTIFIED BY 'sësame'").unwrap();
            admin.simple("CREATE USER certified IDENTIFIED BY 'x' REQUIRE X509").unwrap();
            check(&server, folder.path(), |address| {
                // So that the password itself is sent each time.
                admin_flush(&server);
                let user = login("secure", "sësame", "");
                let mut client = MysqlClient::connect(address, &user, TIMEOUT)?;
                let used = client.rows("SHOW STATUS LIKE 'Ssl_cipher'")?;
                assert_ne!(used[0][1].as_deref(), Some(""));
                Ok(())
            });
            mysql_modes(&server, &mut admin, folder.path());
            mysql_certificate_expires(&server, &mut admin, folder.path());
        });
    }

    /// Takes another certificate while it runs, as MySQL can from 8.0.16 on.
    fn mysql_certificate_expires(server: &Server, admin: &mut MysqlClient, folder: &Path) {
        let numbers = admin.server_version().split(['.', '-']).map_while(|word| word.parse().ok());
        if numbers.collect::<Vec<u32>>() < vec![8, 0, 16] {
            return;
        }
        let old = folder.join("old.pem");
        admin.simple(&format!("SET GLOBAL ssl_cert = '{}'", old.display())).unwrap();
        admin.simple("ALTER INSTANCE RELOAD TLS").unwrap();
        let user = login("secure", "sësame", "");
        let connect = |tls| MysqlClient::connect(&server.tcp(tls), &user, TIMEOUT);
        let error = connect(verify(folder, TlsMode::VerifyFull, "ca.pem")).err().unwrap();
        let error = error.to_string();
        assert!(error.contains("expired on 2021-01-01\nhint: renew it"), "{error}");
        assert!(connect(asked(TlsMode::Require)).unwrap().is_encrypted());
    }

    fn mysql_modes(server: &Server, admin: &mut MysqlClient, folder: &Path) {
        let connect = |user: &str, password: &str, tls: Tls| {
            MysqlClient::connect(&server.tcp(tls), &login(user, password, ""), TIMEOUT)
        };
        let of = |mode| connect("secure", "sësame", asked(mode));
        assert!(of(TlsMode::Prefer).unwrap().is_encrypted());
        assert!(!of(TlsMode::Off).unwrap().is_encrypted());
        let shown = Tls { identity: identity(folder), ..asked(TlsMode::Require) };
        assert!(connect("certified", "x", shown).unwrap().is_encrypted());
        assert_eq!(code(connect("certified", "x", Tls::of(TlsMode::Require))), "1045");
        admin.simple("SET GLOBAL require_secure_transport = ON").unwrap();
        let error = of(TlsMode::Off).err().unwrap().to_string();
        assert!(error.contains("hint: the server refuses sessions without TLS"), "{error}");
        admin.simple("SET GLOBAL require_secure_transport = OFF").unwrap();
    }

    fn admin_flush(server: &Server) {
        let root = login("root", "", "");
        let mut admin = MysqlClient::connect(&server.unix(), &root, TIMEOUT).unwrap();
        admin.simple("FLUSH PRIVILEGES").unwrap();
    }
}
