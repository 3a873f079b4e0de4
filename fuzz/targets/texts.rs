//! Texts that a user brings, or gets from somebody: SQL, CSV, scripts, TOML, JSON.

use rqps_builds::source::IdleFiles;
use rqps_dbms::config;
use rqps_lab::benchmarks::{self, StepSet, pgbench, sql};
use rqps_lab::plan::{self, BlockSpec, Plan};
use rqps_model::build::{Dbms, Version};
use rqps_model::dialect::Dialect;
use rqps_model::escape;
use rqps_model::sql_name::Literal;
use rqps_plans::StatementLog;

use rqps_text::behind::{self, Doing};
use rqps_text::pgbench::{PgbenchProgram, VariableNames};
use rqps_text::trace::{Trace, TraceWriter, ValueHasher};
use rqps_text::{
    self as user_text, ChangedRelation, CsvReader, CsvRecord, LoadRules, SqlChunk, SqlLexer,
    SqlPart, SqlSplitter, reading, toml_reader,
};

use super::{file, text};

const DIALECTS: [Dialect; 3] = [Dialect::Postgres, Dialect::Mysql, Dialect::Sqlite];

/// The way of a lexer through a text: the region of each step, and what is open at the end.
fn way(lexer: &mut SqlLexer, text: &[u8]) -> Vec<bool> {
    let (mut at, mut codes) = (0, Vec::new());
    while at < text.len() {
        let (next, is_code) = lexer.step(text, at);
        assert!(next > at, "the lexer stands still");
        codes.resize(codes.len() + next - at, is_code);
        at = next;
    }
    assert!(codes.len() == text.len(), "the lexer leaves the text");
    codes
}

/// Lexers go forward and stay within the text, line by line as at once; a quoted text is none of
/// the code around it.
pub(super) fn sql_lexer(bytes: &[u8]) {
    for dialect in DIALECTS {
        let (mut whole, mut by_line) = (SqlLexer::new(dialect), SqlLexer::new(dialect));
        let at_once = way(&mut whole, bytes);
        let lines = bytes.split_inclusive(|byte| *byte == b'\n');
        let line_by_line: Vec<bool> = lines.flat_map(|line| way(&mut by_line, line)).collect();
        assert_eq!(at_once, line_by_line, "{dialect:?}");
        assert_eq!(whole.open(), by_line.open(), "{dialect:?}");
        let literal = Literal::quoted(dialect, &text(bytes));
        let mut lexer = SqlLexer::new(dialect);
        let codes = way(&mut lexer, format!("{literal} ").as_bytes());
        let code = codes.iter().filter(|is_code| **is_code).count();
        assert!(code == 1 && lexer.open().is_none(), "{dialect:?}: {literal}");
    }
}

fn chunks(dialect: Dialect, bytes: &[u8]) -> Option<Vec<SqlChunk>> {
    let (mut splitter, mut chunks) = (SqlSplitter::new(dialect), Vec::new());
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        splitter.take(line, &mut chunks).ok()?;
    }
    splitter.end(&mut chunks).ok()?;
    Some(chunks)
}

/// Statements stand in the file in their order, and each alone is one statement again.
pub(super) fn sql_splitter(bytes: &[u8]) {
    let lower = bytes.to_ascii_lowercase();
    let has = |word: &[u8]| lower.windows(word.len()).any(|found| found == word);
    // These cut lines out of a statement: its comments, or what follows COPY on its line.
    let is_whole = ![&b"delimiter"[..], b"restrict", b"999999", b"copy"].into_iter().any(has);
    for dialect in DIALECTS {
        let Some(found) = chunks(dialect, bytes).filter(|_| is_whole) else { continue };
        let mut rest = bytes;
        for chunk in &found {
            let SqlChunk::Statement(sql, _) = chunk else { panic!("{chunk:?} without COPY") };
            let place = rest.windows(sql.len()).position(|found| found == sql);
            let place =
                place.unwrap_or_else(|| panic!("{dialect:?}: {chunk:?} is not in the text"));
            rest = &rest[place + sql.len()..];
            if let Some(again) = chunks(dialect, sql) {
                let alone = [SqlChunk::Statement(sql.clone(), 1)];
                assert!(again == alone, "{dialect:?}: {chunk:?} is {again:?} alone");
            }
        }
    }
}

/// Words that no statement of a load may begin with on a server of others, and words that lead to
/// files and programs of its host.
const NEVER_FIRST: &[&str] = &[
    "CALL", "DEALLOCATE", "DO", "EXECUTE", "GRANT", "HANDLER", "INSTALL", "KILL", "LOAD", "NOTIFY",
    "PREPARE", "REASSIGN", "REVOKE", "SECURITY", "SHUTDOWN", "VACUUM",
];
const NEVER_IN_POSTGRES: &[&str] = &["LO_EXPORT", "LO_IMPORT", "PG_READ_FILE"];
const NEVER_IN_MYSQL: &[&str] = &["DUMPFILE", "LOAD_FILE", "OUTFILE"];

/// What a load may do on a server of others: any text is judged, and an admitted statement has none
/// of the words that are never allowed.
pub(super) fn load_rules(bytes: &[u8]) {
    for dialect in [Dialect::Postgres, Dialect::Mysql] {
        let mut rules = LoadRules::new(dialect);
        for chunk in chunks(dialect, bytes).unwrap_or_default() {
            match chunk {
                SqlChunk::Copy(sql, _) => drop(rules.judge_copy(&sql)),
                SqlChunk::Statement(sql, _) => {
                    let Ok(admitted) = rules.judge(&sql) else { continue };
                    if admitted.left_out.is_none() {
                        has_none_of_never(dialect, &admitted.sent(&sql));
                    }
                }
                SqlChunk::CopyLine(_) | SqlChunk::CopyEnd => {}
            }
        }
    }
    let _ = rqps_text::dropped(Dialect::Postgres, &text(bytes));
}

fn has_none_of_never(dialect: Dialect, sql: &[u8]) {
    let codes = way(&mut SqlLexer::new(dialect), sql);
    let mut words = vec![String::new()];
    for (byte, is_code) in sql.iter().zip(codes) {
        // `OUTFILE$` and `OUTFILEé` are names.
        let is_letter = byte.is_ascii_alphanumeric() || b"_$".contains(byte) || !byte.is_ascii();
        if is_code && is_letter {
            words.last_mut().expect("a word").push(byte.to_ascii_uppercase().into())
        } else {
            words.push(String::new())
        }
    }
    words.retain(|word| !word.is_empty());
    let first = words.first().map_or("", String::as_str);
    let never = if dialect == Dialect::Mysql { NEVER_IN_MYSQL } else { NEVER_IN_POSTGRES };
    let is_never = |word: &&String| {
        never.contains(&word.as_str()) || (first == "COPY" && word.as_str() == "PROGRAM")
    };
    let found = words.iter().find(is_never);
    let shown = text(sql);
    assert!(!NEVER_FIRST.contains(&first) && found.is_none(), "{dialect:?} admits {shown}");
}

/// The parts of a statement are the statement.
pub(super) fn sql_references(bytes: &[u8]) {
    let sql = text(bytes);
    for dialect in DIALECTS {
        let _ = user_text::words(dialect, &sql);
        let Ok(parts) = user_text::parts(dialect, &sql) else { continue };
        let joined: String = parts
            .iter()
            .map(|part| match part {
                SqlPart::Sql(text) => text.clone(),
                SqlPart::Reference(name) => format!(":{name}"),
            })
            .collect();
        assert!(sql.starts_with(&joined), "{dialect:?}: {parts:?}");
    }
}

/// Statements of dumps.
pub(super) fn sql_dump(bytes: &[u8]) {
    let _ = reading::judge_dumped(bytes);
    let relation = ChangedRelation::table(&text(bytes));
    assert!(relation.is_same(&relation), "{relation:?}");
    for dialect in DIALECTS {
        let _ = (relation.presence_query(dialect), relation.drop_entry());
    }
    let _ = relation.generated_columns_query();
}

type Records = Vec<Vec<(Vec<u8>, bool)>>;

/// The records of a part of a file that begins with this line.
fn records(bytes: &[u8], delimiter: u8, line: u64) -> Option<Records> {
    let mut reader = CsvReader::within(bytes, delimiter, line);
    let mut record = CsvRecord::default();
    let mut all = Vec::new();
    while reader.read(&mut record).ok()? {
        let fields = (0..record.len()).filter_map(|at| record.field(at));
        all.push(fields.map(|(field, quoted)| (field.to_vec(), quoted)).collect());
    }
    Some(all)
}

/// Logs of servers with statements and their times.
pub(super) fn statement_log(bytes: &[u8]) {
    for dialect in DIALECTS {
        let (mut log, mut found) = (StatementLog::new(dialect), Vec::new());
        if log.take(bytes, "log").is_ok() {
            log.statements(5, &mut found);
        }
        let shares = found.iter().filter_map(|one| one.share);
        assert!(shares.sum::<f64>() <= 1.000_001 && found.len() <= 5);
    }
}

/// Statements, in the first line, before a server whose catalogue answers what it likes, in the others:
/// what the look sends holds no text but its own and quoted ones, and it comes to an end.
pub(super) fn behind(bytes: &[u8]) {
    let all = text(bytes);
    let (statements, told) = all.split_once('\n').unwrap_or((&all, ""));
    let row = |line: &str| line.split('\t').map(|cell| Some(cell.to_owned())).collect();
    let rows: behind::Rows = told.lines().map(row).collect();
    for dialect in [Dialect::Postgres, Dialect::Mysql] {
        for doing in [Doing::Reading, Doing::Planning] {
            let path = [statements.to_owned()];
            let mut ask = |sql: &str| -> Result<behind::Rows, &str> {
                let mut lexer = SqlLexer::new(dialect);
                assert!(sql.starts_with("SELECT ") && lexer.open().is_none());
                way(&mut lexer, sql.as_bytes());
                assert!(lexer.open().is_none(), "{dialect:?}: {sql}");
                Ok(rows.clone())
            };
            let _ = behind::check(dialect, doing, &path, statements, &mut ask);
        }
    }
}

/// Traces: what is written again is the same, and every statement has a client and a place.
pub(super) fn trace(bytes: &[u8]) {
    let hasher = ValueHasher::new([1; 32]);
    for dialect in DIALECTS {
        let _ = (hasher.text(&text(bytes), dialect), hasher.value(&text(bytes)));
    }
    let Ok(trace) = Trace::read(bytes) else { return };
    let Ok(mut writer) = TraceWriter::begin(Vec::new(), trace.head.clone()) else { return };
    for one in &trace.sent {
        let _ = writer.add(&trace.texts[one.text as usize - 1], one.clone());
    }
    let written = writer.end().map(|(written, _)| Trace::read(written.as_slice()));
    let again = written.ok().and_then(Result::ok).map(|again| again.sent.len());
    assert!(again == Some(trace.sent.len()));
    let mut ranks: Vec<usize> = trace.order().iter().map(|one| one.rank).collect();
    ranks.sort_unstable();
    assert!(ranks.iter().enumerate().all(|(place, rank)| place == *rank));
    let (of_text, shown) = trace.classes();
    assert!(of_text.iter().all(|class| *class <= shown.len()));
    if let Ok(clients) = trace.clients() {
        assert!(clients.iter().map(Vec::len).sum::<usize>() == trace.sent.len());
    }
}

/// Records that are written again are the same, and a file may be cut between them.
pub(super) fn csv(bytes: &[u8]) {
    const BYTE_ORDER_MARK: &str = "\u{feff}";
    for delimiter in *b",;\t" {
        let Some(found) = records(bytes, delimiter, 1) else { continue };
        let half = bytes.len() as u64 / 2;
        for cut in user_text::cuts(bytes, &[half]).unwrap_or_default() {
            let (before, after) = bytes.split_at(cut.byte as usize);
            if let Some(before) = records(before, delimiter, 1)
                && let Some(after) = records(after, delimiter, cut.line)
            {
                assert!([before, after].concat() == found, "cut at {}", cut.byte);
            }
        }
        // At the end of a line, a return is part of the line's end.
        let whole = std::str::from_utf8(bytes).is_ok_and(|text| !text.contains(BYTE_ORDER_MARK));
        let returns = |(field, quoted): &(Vec<u8>, bool)| !quoted && field.ends_with(b"\r");
        if whole && !found.iter().flatten().any(returns) {
            let again = records(&written(&found, delimiter), delimiter, 1);
            assert!(again.as_ref() == Some(&found), "delimiter {delimiter}");
        }
    }
}

fn written(records: &Records, delimiter: u8) -> Vec<u8> {
    let mut written = Vec::new();
    for record in records {
        for (at, (field, quoted)) in record.iter().enumerate() {
            written.extend((at > 0).then_some(delimiter));
            if *quoted {
                let field = text(field).replace('"', "\"\"");
                written.extend(format!("\"{field}\"").bytes());
            } else {
                written.extend(field)
            }
        }
        written.push(b'\n');
    }
    written
}

/// Texts for each medium: nothing in them hides or commands, and formats with readers keep them.
pub(super) fn escaped(bytes: &[u8]) {
    let said = text(bytes);
    let shown = escape::terminal(&said);
    let is_command =
        |line: &str| line.trim_start().strip_prefix("::").is_some_and(|rest| rest.contains("::"));
    assert!(!shown.contains(|c: char| c.is_control() && !"\n\t".contains(c)), "{shown:?}");
    assert!(!shown.lines().any(is_command), "{shown:?}");
    for one_line in [escape::line(&said), escape::tsv(&said), escape::xml(&said).into()] {
        assert!(!one_line.contains(char::is_control), "{one_line:?}");
    }
    let html = escape::html(&said) + &escape::attribute(&said);
    assert!(!html.contains(['<', '>']), "{html:?}");
    let marked = escape::markdown(&said) + &escape::markdown_paragraph(&said);
    assert!(!marked.contains(char::is_control), "{marked:?}");
    let told = escape::github_message(&said) + &escape::github_property(&said);
    assert!(!told.contains(|c: char| c.is_control() && c != '\t'), "{told:?}");
    let value = serde_json::Value::from(&*said);
    let toml = format!("a = {}", escape::toml(&said));
    let kept = toml_reader::read::<serde_json::Value>(&toml).ok();
    assert_eq!(kept.map(|kept| kept["a"].clone()).as_ref(), Some(&value));
    let kept = serde_json::from_str::<serde_json::Value>(&escape::json(&value.to_string()));
    assert_eq!(kept.ok(), Some(value));
    let row = format!("x,{}\n", escape::csv(&said, false));
    let records = records(row.as_bytes(), b',', 1).expect("a row that was written");
    let field = text(&records[0][1].0).into_owned();
    assert!(records.len() == 1 && records[0].len() == 2, "{row:?}");
    assert_eq!(field.trim_start_matches('\''), escape::line(&said).trim_start_matches('\''));
}

/// Scripts of pgbench, read and compiled.
pub(super) fn pgbench_script(bytes: &[u8]) {
    let script = text(bytes);
    let mut names = VariableNames::default();
    if let Ok(program) = PgbenchProgram::read(&script, &mut names) {
        let count = program.commands.len();
        assert!(program.statements().count() <= count);
        pgbench::driver::evaluate::evaluate(&program, names.all());
    }
}

/// Sources without comments have none, and are no longer.
pub(super) fn c_source(bytes: &[u8]) {
    let once = user_text::without_comments(bytes);
    assert!(once.len() <= bytes.len());
    assert_eq!(user_text::without_comments(&once), once);
}

/// TOML, with places.
pub(super) fn toml(bytes: &[u8]) {
    let source = text(bytes);
    match toml_reader::read::<serde_json::Value>(&source) {
        Ok(value) => assert!(value.is_object()),
        Err(error) => drop(error.to_string()),
    }
    let _ = toml_reader::position(&source, source.len());
    let _ = plan::file::gate_rules(&source);
}

/// Workload files, compiled for each dialect.
pub(super) fn workload_file(bytes: &[u8]) {
    let Ok((mut workload, _)) = benchmarks::workload("sql", "quick") else {
        panic!("workload files have no preset `quick`");
    };
    if sql::read(&mut workload, &text(bytes)).is_err() {
        return;
    }
    let spec = benchmarks::of(&workload);
    benchmarks::finish(&mut workload);
    let _ = ((spec.size)(&workload), (spec.brought)(&workload));
    for dialect in DIALECTS {
        if benchmarks::check(&workload, dialect).is_ok() {
            let phases = benchmarks::phases(dialect, StepSet::default(), &workload);
            let _ = benchmarks::load_task(dialect, &workload, None);
            assert!(phases.len() < 10_000, "{} phases", phases.len());
        }
    }
}

fn same(plan: &Plan) {
    let printed = plan::file::print(plan).expect("it was read");
    match plan::file::parse(&printed) {
        Ok(again) => {
            assert!(again.is_same(plan), "{printed}");
            assert_eq!(plan::file::print(&again).ok(), Some(printed));
        }
        Err(error) => panic!("a plan that was read cannot be read again: {error}"),
    }
}

/// A plan that was read survives being written.
pub(super) fn plan_file(bytes: &[u8]) {
    if let Ok(plan) = plan::file::parse(&text(bytes)) {
        same(&plan);
        for target in &plan.targets {
            let _ = (plan.phases(target), plan.load_request(target));
        }
    }
}

/// So does a block of it.
pub(super) fn block_spec(bytes: &[u8]) {
    if let Ok(spec) = BlockSpec::parse(&text(bytes)) {
        same(&spec.plan);
        let printed = spec.print().expect("it was read");
        let again = BlockSpec::parse(&printed);
        assert_eq!(again.ok(), Some(spec));
    }
}

/// Configurations of servers, for an early and a late version.
pub(super) fn server_config(bytes: &[u8]) {
    for version in ["5.6.51", "18.0"] {
        let _ = config::rendered(&text(bytes), &Version::new(version), u64::MAX);
        let _ = config::rendered(&text(bytes), &Version::new(version), 1);
    }
}

/// Recipes of builds.
pub(super) fn recipe(bytes: &[u8]) {
    let variant = format!("recipe={}", file("recipe.toml", bytes).display());
    if let Ok(idle) = IdleFiles::of(Dbms::Postgres, Some(&variant)) {
        let _ = idle.has("src/backend/main.c");
    }
}
