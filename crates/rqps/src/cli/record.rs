//! `rqps record`: a trace of the statements of a server, for `--bench trace:FILE`.

use std::fs::{File, Permissions};
use std::io::{BufWriter, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::cli::exit;
use rqps_host::beneath::Folder;
use rqps_model::build::Dbms;
use rqps_model::dialect::Dialect;
use rqps_model::{bounded, safe_path};
use rqps_text::trace::{TraceEnd, ValueHasher};

/// `rqps record`.
#[derive(Debug, Args)]
pub(super) struct Record {
    /// A log of the server; repeatable, in their order. Of Postgres csvlog, jsonlog, or a plain log
    /// with log_line_prefix = '%m [%p] ', each with log_min_duration_statement = 0; of MySQL and
    /// MariaDB the slow log with long_query_time = 0, or the general log
    #[arg(long, value_name = "FILE", required = true)]
    pub log: Vec<PathBuf>,
    /// The DBMS of the log: postgres, mysql, mariadb
    #[arg(long, value_name = "NAME")]
    pub dbms: String,
    /// The trace to write, a new file; compressed if its name ends with .gz
    #[arg(long, short, value_name = "FILE")]
    pub out: PathBuf,
    /// Replace values by hashes of a key that is not kept: equal values stay equal. A replay then
    /// finds other rows than the server did
    #[arg(long)]
    pub hash_values: bool,
}

/// Writes a trace.
pub(super) fn record(words: &Record) -> Result<u8> {
    let dialect = Dbms::from_name(&words.dbms).map(Dbms::dialect);
    let Some(dialect @ (Dialect::Postgres | Dialect::Mysql)) = dialect else {
        bail!(
            "record {}: no log of it is known\nhint: --dbms postgres, mysql or mariadb",
            words.dbms
        );
    };
    let hasher = words.hash_values.then(key).transpose()?.map(ValueHasher::new);
    let file = safe_path::new_file(&words.out);
    let file = file.with_context(|| format!("write {}", words.out.display()))?;
    let end = match write(words, dialect, hasher, file) {
        Ok(end) => end,
        Err(error) => {
            // Else the corrected command would find the file in its way.
            let (folder, name) = (words.out.parent(), words.out.file_name());
            let folder = Folder::open(folder.unwrap_or("".as_ref()));
            let removed = folder.and_then(|it| it.remove_file(name.unwrap_or_default().as_ref()));
            removed.with_context(|| format!("remove the part of {}", words.out.display()))?;
            return Err(error);
        }
    };
    out!("recorded {} statements into {}", end.statements, words.out.display());
    for (why, count) in &end.left_out {
        info!("rqps: left out {count}: {why}");
    }
    if !words.hash_values {
        info!("rqps: it holds the values of its statements; --hash-values hides them");
    }
    Ok(exit::FINE)
}

fn write(
    words: &Record,
    dialect: Dialect,
    hasher: Option<ValueHasher>,
    file: File,
) -> Result<TraceEnd> {
    let doing = || format!("write {}", words.out.display());
    // It has values of rows.
    file.set_permissions(Permissions::from_mode(0o600)).with_context(doing)?;
    let file = BufWriter::new(file);
    Ok(if words.out.extension().is_some_and(|end| end == "gz") {
        let out = GzEncoder::new(file, Compression::default());
        let (out, end) = rqps_plans::record(dialect, &words.log, hasher, out)?;
        out.finish().and_then(|file| Ok(file.into_inner()?)).with_context(doing)?;
        end
    } else {
        rqps_plans::record(dialect, &words.log, hasher, file)?.1
    })
}

/// A random key.
fn key() -> Result<[u8; 32]> {
    let mut key = [0; 32];
    let opened = bounded::open("/dev/urandom".as_ref());
    opened.and_then(|mut file| file.read_exact(&mut key)).context("read /dev/urandom")?;
    Ok(key)
}
