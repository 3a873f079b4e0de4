//! Files of a user's, loaded by a driver process into a server that a test has up: CSV with awkward
//! values, and dumps as mysqldump and mariadb-dump write them.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rqps_driver::control_channel::DriverEvent;
use rqps_driver::request::{CsvFile, DriverRequest, FileLoad, RequestBody, VERSION};
use rqps_model::dialect::Dialect;
use rqps_model::endpoint::{Endpoint, Login};

/// A database that files go into.
pub(crate) struct Place {
    pub(crate) dialect: Dialect,
    pub(crate) endpoint: Endpoint,
    pub(crate) login: Login,
}

impl Place {
    /// Loads as the lab does, and returns all that the driver said.
    pub(crate) fn load(&self, task: FileLoad) -> Vec<DriverEvent> {
        self.request(RequestBody::LoadFiles(task), 1)
    }

    /// A driver's whole work on this database, whose table has so many rows, and all that it said.
    pub(crate) fn request(&self, task: RequestBody, rows: u64) -> Vec<DriverEvent> {
        let setup = match self.dialect {
            // As on servers that rqps starts.
            Dialect::Mysql => vec!["SET NAMES latin1".to_owned()],
            _ => Vec::new(),
        };
        let job = DriverRequest {
            pause: false,
            version: VERSION,
            dialect: self.dialect,
            endpoint: self.endpoint.clone(),
            login: self.login.clone(),
            target: None,
            session_setup: setup,
            mark: None,
            seed: 42,
            tables: 1,
            rows,
            task,
            away: None,
            turns: None,
            standstill: None,
            counted_events: None,
            asks: false,
            only_reads: false,
            scratch: None,
            places: None,
        };
        let mut command = Command::new(env!("CARGO_BIN_EXE_rqps"));
        command.arg("driver").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut driver = command.spawn().unwrap();
        // The input stays open until the end: the driver stops without it.
        let mut input = driver.stdin.take().unwrap();
        writeln!(input, "{}", serde_json::to_string(&job).unwrap()).unwrap();
        let mut said = String::new();
        driver.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        driver.wait().unwrap();
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Rows that were loaded.
pub(crate) fn loaded(said: &[DriverEvent]) -> u64 {
    match said.last() {
        Some(DriverEvent::Loaded { rows, .. }) => *rows,
        _ => panic!("{said:?}"),
    }
}

/// The fault that ended a load.
pub(crate) fn fault(said: &[DriverEvent]) -> &str {
    match said.last() {
        Some(DriverEvent::Failed { fault }) => fault,
        _ => panic!("{said:?}"),
    }
}

/// Texts that are awkward in CSV or in literals; `None` is NULL.
const TEXTS: [Option<&str>; 9] = [
    Some("plain"),
    Some("a,b;c\td"),
    Some("\"quoted\" and 'quoted'"),
    Some("two\nlines\r\nof text"),
    Some("back\\slash \\N \\"),
    Some("\u{e4}\u{4e2d}\u{1f600}"),
    Some(""),
    Some("NULL"),
    None,
];

/// Rows of the file: more than one part of it has.
const ROWS: usize = 3000;

/// Text and bytes of the row with this id.
fn row(id: usize) -> (Option<&'static str>, Option<Vec<u8>>) {
    let bytes = (0..id % 5).map(|place| (id * 37 + place * 101) as u8).collect();
    (TEXTS[id % TEXTS.len()], (!id.is_multiple_of(7)).then_some(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn csv() -> String {
    let mut csv = "\u{feff}id,Full name,raw,filler\n".to_owned();
    for id in 0..ROWS {
        let (text, bytes) = row(id);
        let text = text.map(|text| format!("\"{}\"", text.replace('"', "\"\"")));
        let bytes = bytes.map(|bytes| format!("0x{}", hex(&bytes)));
        let text = text.unwrap_or_default();
        csv += &format!("{id},{text},{},{id:0>900}\n", bytes.unwrap_or_default());
    }
    csv
}

/// The table of the file in a dialect.
struct CsvTable<'a> {
    place: &'a Place,
    folder: tempfile::TempDir,
    create: String,
    select: String,
}

impl CsvTable<'_> {
    fn of(place: &Place) -> CsvTable<'_> {
        let (bytes, name, select) = match place.dialect {
            Dialect::Postgres => (
                "bytea",
                "\"Full name\"",
                "encode(convert_to(\"Full name\", 'UTF8'), 'hex'), encode(raw, 'hex')",
            ),
            Dialect::Mysql => ("BLOB", "`Full name`", "HEX(`Full name`), HEX(raw)"),
            // hex(NULL) is an empty text there.
            _ => (
                "BLOB",
                "\"Full name\"",
                "CASE typeof(\"Full name\") WHEN 'text' THEN hex(\"Full name\") END, \
                 CASE typeof(raw) WHEN 'blob' THEN hex(raw) END",
            ),
        };
        let create = format!(
            "DROP TABLE IF EXISTS thing;\n\
             CREATE TABLE thing (id INT PRIMARY KEY, {name} TEXT, raw {bytes}, \
             filler VARCHAR(900));\n"
        );
        let select = format!("SELECT id, {select} FROM thing ORDER BY id");
        CsvTable { place, folder: open_folder(), create, select }
    }

    fn load(&self, csv: &[u8], sessions: u32, expect_rows: Option<u64>) -> Vec<DriverEvent> {
        let [path, schema] = ["thing.csv", "schema.sql"].map(|name| self.folder.path().join(name));
        fs::write(&path, csv).unwrap();
        fs::write(&schema, &self.create).unwrap();
        let file = CsvFile {
            path,
            table: "thing".to_owned().try_into().unwrap(),
            columns: Vec::new(),
            hex: vec!["raw".to_owned()],
            null: String::new(),
            delimiter: b',',
            expect_rows,
        };
        let (schema, data) = (vec![schema], vec![file]);
        self.place.load(FileLoad { schema, data, sessions, ..FileLoad::default() })
    }
}

/// Loads CSV on so many sessions: every row arrives as it is in the file.
pub(crate) fn check_csv(
    place: &Place,
    sessions: &[u32],
    rows: &mut dyn FnMut(&str) -> Vec<Vec<Option<String>>>,
) {
    let table = CsvTable::of(place);
    let csv = csv();
    for sessions in sessions.iter().copied() {
        let said = table.load(csv.as_bytes(), sessions, Some(ROWS as u64));
        assert_eq!(loaded(&said), ROWS as u64);
        let found = rows(&table.select);
        assert_eq!(found.len(), ROWS);
        for (id, found) in found.into_iter().enumerate() {
            let (text, bytes) = row(id);
            let (text, bytes) = (text.map(|text| hex(text.as_bytes())), bytes.as_deref().map(hex));
            let want = [Some(id.to_string()), text, bytes];
            let found = found.into_iter().map(|cell| cell.map(|cell| cell.to_lowercase()));
            assert!(want.iter().cloned().eq(found), "{sessions} sessions, row {id}: {want:?}");
        }
    }
}

/// Files that are not loaded, with the place of what is wrong.
pub(crate) fn check_refused_csv(place: &Place) {
    let table = CsvTable::of(place);
    let refused = |csv: &[u8], sessions, expect_rows| {
        fault(&table.load(csv, sessions, expect_rows)).to_owned()
    };
    let short = refused(csv().as_bytes(), 2, Some(5));
    assert!(short.ends_with("it holds 3000 rows, not 5 as `expect_rows` says"), "{short}");
    let wrong = refused(b"id,raw\n1,00\n2,0g\n", 1, None);
    assert!(wrong.ends_with("line 3: `raw` holds no bytes in hex"), "{wrong}");
    let wrong = refused(b"id,filler,raw\n1,caf\xe9,00\n", 1, None);
    assert!(wrong.contains("line 2: `filler` is not UTF-8\nhint: convert"), "{wrong}");
    let row = match place.dialect {
        Dialect::Postgres => "line 2, column id",
        Dialect::Mysql => "at row 2",
        // It takes any text as a number.
        _ => return,
    };
    let wrong = refused(b"id,filler,raw\n1,a,00\nx,b,00\n", 1, None);
    let place = "thing.csv: failed to fill thing: ";
    assert!(wrong.contains(place) && wrong.contains(row), "{wrong}");
}

/// A column that the server computes gets no value from SQL or CSV, and the error has a way out.
pub(crate) fn check_generated_column(place: &Place) {
    let computed = "filler INT GENERATED ALWAYS AS (id + 1) STORED";
    let inserts = ["INSERT INTO thing (id, filler) VALUES (1, 2);\n", ""];
    for insert in inserts {
        let table = CsvTable::of(place);
        let create = table.create.replace("filler VARCHAR(900)", computed) + insert;
        let said = CsvTable { create, ..table }.load(b"id,raw,filler\n1,00,2\n", 1, None);
        let wrong = fault(&said);
        assert!(wrong.contains("\nhint: the server computes generated columns"), "{wrong}");
    }
}

/// A dump as mysqldump 8.0 and mariadb-dump write it, with what only one of them writes.
const DUMP: &str = include_str!("../../data/dumps/mysql.sql");

fn load_dump(place: &Place, folder: &Path, dump: &[u8]) -> Vec<DriverEvent> {
    let path = folder.join("dump.sql");
    fs::write(&path, dump).unwrap();
    place.load(FileLoad { schema: vec![path], sessions: 1, ..FileLoad::default() })
}

/// A folder that everybody may use: as root, a driver that opens a file runs as somebody else.
pub(crate) fn open_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

/// Loads a dump of MySQL and MariaDB: tables, bytes, a view, a routine and a trigger arrive, and
/// what belongs to the dumped server does not.
pub(crate) fn check_dumps(place: &Place, rows: &mut dyn FnMut(&str) -> Vec<Vec<Option<String>>>) {
    let folder = open_folder();
    // As they are written: NUL, quote, backslash, line feed, return and control-Z escaped.
    let raw = b"\\0\xff\\'\\\"\\\\\\n\\r\\Z\x80\xc3";
    let (before, after) = DUMP.split_once("@RAW@").unwrap();
    let before = before.replace("@NAME@", "\u{e4}\u{1f600}");
    let dump = [before.as_bytes(), raw, after.as_bytes()].concat();
    let said = load_dump(place, folder.path(), &dump);
    assert_eq!(loaded(&said), 3, "{said:?}");
    let notes: Vec<&String> = said
        .iter()
        .filter_map(|said| match said {
            DriverEvent::Note(note) => Some(note),
            _ => None,
        })
        .collect();
    let left = |part: &str| notes.iter().filter(|note| note.contains(part)).count();
    assert_eq!(left("left out: SET @"), 3, "{notes:?}");
    assert!(
        notes[2].contains("dump.sql, line 17: left out: SET @@GLOBAL.GTID_PURGED"),
        "{notes:?}"
    );
    // There are seven notes; the last line counts two of them.
    assert!(notes.len() == 6 && notes[5].ends_with("2 more notes"), "{notes:?}");
    rows("INSERT INTO item (id) VALUES (4)");
    let sql = "SELECT plus(i.id), HEX(i.name), HEX(i.raw), i.twice FROM item i \
               JOIN named n ON n.id = i.id ORDER BY 1";
    let cell = |text: &str| Some(text.to_owned());
    let want = [
        [cell("2"), cell("3B2720C3A4F09F9880"), cell("00FF27225C0A0D1A80C3"), cell("2")],
        [cell("4"), cell("534554"), cell(""), cell("6")],
        [cell("5"), cell("613B62"), None, cell("8")],
    ];
    assert_eq!(rows(sql), want);
    let definers = "SELECT definer FROM information_schema.views WHERE table_name = 'named'";
    assert_eq!(rows(definers), [[cell("root@localhost")]]);
    let refused = |dump: &str| fault(&load_dump(place, folder.path(), dump.as_bytes())).to_owned();
    let why = refused(
        "--\n-- Current Database: `shop`\n--\n\nCREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop`;\n",
    );
    assert!(why.contains("line 5: the file names a database: CREATE DATABASE"), "{why}");
    assert!(why.contains("hint: dump one database without --databases"), "{why}");
    let why = refused("CREATE TABLE c (a TEXT) COLLATE utf8mb4_0900_nothing_ci");
    assert!(why.contains("(1273)") && why.contains("exist only in MySQL 8; replace it"), "{why}");
}
