//! `rqps init`: writes a workload file from a running database.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::cli::args::Init;
use crate::cli::{ask_password, exit, folders};
use rqps_bench::sql::driver::{AskDatabase, DatabaseSurvey, draft, survey};
use rqps_embed::sqlite::{Sqlite, SqliteConnection};
use rqps_model::dialect::Dialect;
use rqps_wire::dsn::{self, Dsn};
use rqps_wire::mysql::MysqlClient;
use rqps_wire::password::{self, Known};
use rqps_wire::postgres::PostgresClient;

/// Time limit for connecting.
const CONNECT: Duration = Duration::from_secs(20);

/// Time limit for each answer of the server.
const ANSWER: Duration = Duration::from_secs(300);

/// Time after which nothing more is asked: the draft says what is not known.
const SURVEY: Duration = Duration::from_secs(3600);

/// `rqps init`.
pub(super) fn init(words: &Init) -> Result<u8> {
    let out = &words.out;
    if out.exists() {
        bail!("write {}: it already exists\nhint: name another file with -o", out.display());
    }
    let (dialect, from, found) = if Dsn::looks_like(&words.database) {
        of_server(&words.database)?
    } else {
        of_file(Path::new(&words.database))?
    };
    let stem = out.file_stem().unwrap_or_default().to_string_lossy();
    let (text, files) = draft(dialect, &from, &stem, &found);
    let beside: Vec<(PathBuf, String)> =
        files.into_iter().map(|file| (out.with_file_name(file.name), file.text)).collect();
    if let Some((path, _)) = beside.iter().find(|(path, _)| path.exists()) {
        bail!("write {}: it already exists\nhint: name another file with -o", path.display());
    }
    for left_out in found.left_out() {
        info!("rqps: {left_out}");
    }
    // The workload file is last: it names the others.
    let edits = text.matches("EDIT:").count();
    for (path, text) in beside.into_iter().chain([(out.clone(), text)]) {
        std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        info!("rqps: wrote {}", path.display());
    }
    if edits > 0 {
        info!("rqps: {edits} values are marked with EDIT, because rqps cannot infer them");
    }
    info!("hint: rqps compare A B --bench sql:{}", out.display());
    Ok(exit::FINE)
}

fn of_server(text: &str) -> Result<(Dialect, String, DatabaseSurvey)> {
    let from = dsn::without_password(text);
    let doing = || format!("draft a workload from {from}");
    let Known { mut dsn, notes, .. } =
        password::known(text, &folders::variable).with_context(doing)?;
    for note in notes {
        info!("rqps: {note}");
    }
    ask_password::of_server(&mut dsn).with_context(doing)?;
    let dialect = dsn.dialect();
    let mut ask: Box<AskDatabase<'_>> = match dialect {
        Dialect::Mysql => {
            let client = MysqlClient::connect(&dsn.address, &dsn.login, CONNECT);
            let mut client = client.with_context(doing)?;
            client.set_answer_limit(Some(ANSWER));
            Box::new(move |sql| client.rows(sql).map_err(|error| error.to_string()))
        }
        _ => {
            let client = PostgresClient::connect(&dsn.address, &dsn.login, CONNECT);
            let mut client = client.with_context(doing)?;
            client.set_answer_limit(Some(ANSWER));
            // So that the server reads statements of its statistics as rqps does.
            client.simple("SET standard_conforming_strings = on").with_context(doing)?;
            Box::new(move |sql| client.rows(sql).map_err(|error| error.to_string()))
        }
    };
    let end = Instant::now() + SURVEY;
    let mut ask = |sql: &str| {
        if Instant::now() < end {
            ask(sql)
        } else {
            Err("the database had answered for an hour".to_owned())
        }
    };
    let found = survey(dialect, &mut ask).map_err(anyhow::Error::msg).with_context(doing)?;
    Ok((dialect, from, found))
}

fn of_file(path: &Path) -> Result<(Dialect, String, DatabaseSurvey)> {
    let doing = || format!("draft a workload from {}", path.display());
    if !path.is_file() {
        bail!("{}: it is neither a file nor a DSN such as postgres://user@host/db", doing());
    }
    let library = Arc::new(Sqlite::compiled_in());
    let mut connection = SqliteConnection::open(&library, path, 1000).with_context(doing)?;
    let mut ask = |sql: &str| connection.rows(sql).map_err(|error| error.to_string());
    let found = survey(Dialect::Sqlite, &mut ask).map_err(anyhow::Error::msg);
    Ok((Dialect::Sqlite, path.display().to_string(), found.with_context(doing)?))
}
