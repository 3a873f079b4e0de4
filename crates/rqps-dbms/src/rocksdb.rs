//! RocksDB and Speedb: no server, a folder that the driver process opens.
//!
//! The control plane calls the library in a process of its own (the hidden subcommand
//! [`ROCKSDB_COMMAND`]): two versions must not meet in one process, and a library that crashes must
//! not take the lab along.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::control::{ControlPlane, DbmsError, Site};
use crate::server::{self, check_library, hand_over_data};
use crate::spec::{
    BuildForm, BuildRow, DbmsSpec, LibraryForm, LibraryVersion, Machine, Origin, Package,
    PackageFormat,
};
use rqps_embed::rocksdb::marker::{DATABASE, FILE as MARKER, Marker, State};
use rqps_embed::rocksdb::{Database, Facts, Rocksdb, RocksdbOptions, facts};
use rqps_host::beneath::{self, Folder, FreshFolder};
use rqps_host::child::{self, ChildTask};
use rqps_host::user::{self, Identity, User};
use rqps_host::{confinement, tree};
use rqps_model::build::{Dbms, Version};
use rqps_model::endpoint::{Endpoint, Login};
use rqps_model::kv::{DriverSettings, KvOption};

/// The hidden subcommand that runs [`rocksdb_process`].
pub const ROCKSDB_COMMAND: &str = "rocksdb-probe";

/// Bytes that are kept of the library's own log.
const LONGEST_LOG: u64 = 64 << 20;
/// Longest answer of the process with the library, which may be hostile.
const ANSWER_MAX: u64 = 1 << 20;
/// Bytes that a marker may have.
const LONGEST_MARKER: u64 = 64 << 10;

/// A database of either.
pub(crate) struct KeyValue {
    site: Site,
    /// The library in the tree of a build.
    file: &'static str,
    facts: Option<Facts>,
}

/// The request to the subcommand: one JSON value on standard input.
#[derive(Debug, Serialize, Deserialize)]
struct Probe {
    library: PathBuf,
    run_as: Option<Identity>,
    /// A folder that does not exist yet; it is removed again.
    folder: PathBuf,
    lines: Vec<String>,
}

impl KeyValue {
    pub(crate) fn new(site: Site, file: &'static str) -> KeyValue {
        KeyValue { site, file, facts: None }
    }

    fn name(&self) -> String {
        let manifest = &self.site.build.manifest;
        format!("{} {}", manifest.dbms, manifest.version)
    }

    /// The shared library: the build itself where a path was given, else in its tree.
    fn library(&self) -> Result<PathBuf, DbmsError> {
        let Some(root) = &self.site.build.root else {
            return Err(DbmsError::Unsupported(format!(
                "start {}: it has no library",
                self.name()
            )));
        };
        Ok(if root.is_file() { root.clone() } else { root.join(self.file) })
    }

    /// Opens and closes a database of no use in a process of its own.
    fn probe(&self) -> Result<Facts, DbmsError> {
        let doing = format!("start {}", self.name());
        let name = user::name().map_err(DbmsError::io(doing.clone()))?;
        let folder = self.site.data.join(format!("probe-{name}"));
        let lines = self.site.config.text.lines().map(str::to_owned).collect();
        let run_as = self.site.run_as.as_ref().map(User::identity);
        let probe = Probe { library: self.library()?, run_as, folder, lines };
        let answer = self.ask(&probe).map_err(DbmsError::io(doing.clone()))?;
        answer.map_err(|what| DbmsError::ended(doing, what))
    }

    fn ask(&self, probe: &Probe) -> io::Result<Result<Facts, String>> {
        self.site.check_build()?;
        let mut command = child::command(&self.site.warden_program, ChildTask::Library);
        command.arg(ROCKSDB_COMMAND);
        server::ask(command, probe, ANSWER_MAX, &self.site.interrupt)
    }
}

/// The whole of the hidden subcommand.
pub fn rocksdb_process(input: impl Read, output: impl Write) -> ExitCode {
    server::answer(input, output, carry_out)
}

fn carry_out(probe: &Probe) -> Result<Facts, String> {
    confinement::become_unprivileged(probe.run_as)?;
    let fault = |error| format!("make {}: {error}", probe.folder.display());
    let folder = FreshFolder::take(&probe.folder, 0o700).map_err(fault)?;
    let facts = tried(probe);
    // What a library leaves behind when it crashes goes with the data.
    folder.remove().map_err(|error| format!("remove {}: {error}", probe.folder.display()))?;
    facts
}

fn tried(probe: &Probe) -> Result<Facts, String> {
    let mut lines = vec![KvOption::new("create_if_missing", true)];
    for line in &probe.lines {
        lines.push(KvOption::parse(line)?);
    }
    let (_, lines) = DriverSettings::take(KvOption::layered([&lines[..]]))?;
    let rocksdb = Arc::new(Rocksdb::load(&probe.library).map_err(|error| error.to_string())?);
    let mut options = RocksdbOptions::new(&rocksdb);
    options.set_all(&lines).map_err(|error| error.to_string())?;
    let database = Database::open(options, &probe.folder).map_err(|error| error.to_string())?;
    drop(database);
    let read = facts(&probe.folder).map_err(|error| format!("read the library's LOG: {error}"))?;
    read.ok_or_else(|| "read the library's version: not in its LOG".to_owned())
}

impl ControlPlane for KeyValue {
    fn init(&mut self) -> Result<(), DbmsError> {
        let data = hand_over_data(&self.site)?;
        let doing = format!("write into {}", self.site.data.display());
        let marker = Marker::new(State::Empty).text();
        let user = self.site.run_as.as_ref().map(User::identity);
        let written = marker.and_then(|text| {
            let file = data.folder().new_file(OsStr::new(MARKER), 0o644)?;
            (&file).write_all(&text)?;
            user.map_or(Ok(()), |user| beneath::give_file(&file, user))
        });
        written.map_err(DbmsError::io(doing))
    }

    /// Tries library and config, so that a wrong one shows here. The library runs as the user of
    /// servers.
    fn start(&mut self) -> Result<(), DbmsError> {
        check_library(&self.site)?;
        self.facts = Some(self.probe()?);
        Ok(())
    }

    fn endpoint(&self) -> (Endpoint, Login) {
        let library = self.library().ok();
        (Endpoint::File { path: self.site.data.clone(), library }, Login::default())
    }

    /// The options of the config, and the version, which decides what can be had.
    fn client_group(&self) -> Option<PathBuf> {
        self.site.memory_group.clone()
    }

    fn session_setup(&self, _: bool) -> Vec<String> {
        let mut lines: Vec<String> = self.site.config.text.lines().map(str::to_owned).collect();
        if let Some(facts) = &self.facts {
            lines.push(format!("rqps.version = {}", facts.rocksdb_version));
        }
        lines
    }

    fn reported_version(&mut self) -> Result<String, DbmsError> {
        let line = self.facts.as_ref().map(Facts::line).unwrap_or_default();
        let manifest = &self.site.build.manifest;
        let asked = manifest.version.numbers();
        let found = self.facts.as_ref().map(|facts| Version::new(facts.version.as_str()).numbers());
        if let Some(found) = found
            && !asked.is_empty()
            && !found.starts_with(&asked)
        {
            return Err(DbmsError::Unsupported(format!(
                "start {}: its library has a different version: {line}",
                self.name()
            )));
        }
        Ok(line)
    }

    /// The library's own log and the options that took effect.
    fn status(&mut self) -> Result<Vec<(String, String)>, DbmsError> {
        let Ok(folder) =
            Folder::open(&self.site.data).and_then(|data| data.below(Path::new(DATABASE)))
        else {
            return Ok(Vec::new());
        };
        let user = self.site.run_as.as_ref().map(User::identity);
        let read = |name: &str| folder.text_of(OsStr::new(name), user, LONGEST_LOG).ok();
        let log = read("LOG").map(|log| ("rocksdb-log.txt".to_owned(), log));
        let options = latest_options(&folder).and_then(|name| read(&name));
        let options = options.map(|text| ("rocksdb-options.ini".to_owned(), text));
        Ok(log.into_iter().chain(options).collect())
    }

    /// There is no process of its own; but without its keys a database is as good as gone.
    fn check(&mut self) -> Result<(), DbmsError> {
        // The library under test could put a link in its place.
        let user = self.site.run_as.as_ref().map(User::identity);
        let data = Folder::open(&self.site.data);
        let read = data.and_then(|data| data.text_of(OsStr::new(MARKER), user, LONGEST_MARKER));
        let text = read.map_err(DbmsError::io(format!("inspect {}", self.name())))?;
        let why = match Marker::parse(text.as_bytes()) {
            Some(Marker { state: State::Broken(why), .. }) => why,
            Some(Marker { state: State::Filling, process }) if !is_running(process) => {
                "the process that filled it was killed".to_owned()
            }
            _ => return Ok(()),
        };
        Err(DbmsError::ended(format!("fill {}", self.name()), why))
    }

    fn stop(&mut self) -> Result<(), DbmsError> {
        Ok(())
    }
}

/// True for a process that is there and not merely waited for.
fn is_running(process: u32) -> bool {
    tree::stat_of(process).is_ok_and(|stat| stat.state != 'Z')
}

/// The newest OPTIONS file of a database.
fn latest_options(folder: &Folder) -> Option<String> {
    let names = folder.entries().ok()?.into_iter().map(|entry| entry.name);
    let names = names.filter_map(|name| name.into_string().ok());
    names.filter(|name| name.starts_with("OPTIONS-")).max()
}

// RocksDB, loaded from a shared library.

const FILE: &str = "lib/librocksdb.so";

pub(crate) const SPEC: DbmsSpec = DbmsSpec {
    dbms: Dbms::Rocksdb,
    form: BuildForm::Library(library_form(FILE)),
    builds: &[
        BuildRow::package("6.0.2", ""),
        BuildRow::package("6.29.5", ""),
        BuildRow::package("7.10.2", ""),
        BuildRow::package("8.5.4", ""),
        BuildRow::package("8.6.7", ""),
        BuildRow::package("9.9.3", ""),
        BuildRow::package("10.5.1", ""),
        BuildRow::package("10.6.2", ""),
        BuildRow::package("10.10.1", ""),
    ],
    scheme,
    package: Some(Package {
        format: PackageFormat::Zip,
        place: |path| place_of(path, "librocksdbjni", FILE),
        second_name: None,
    }),
    configs: &[
        ("default", include_str!("../../../configs/rocksdb/default.conf")),
        ("published", include_str!("../../../configs/rocksdb/published.conf")),
        ("lru", include_str!("../../../configs/rocksdb/lru.conf")),
        ("hyperclock", include_str!("../../../configs/rocksdb/hyperclock.conf")),
        ("best-cache", include_str!("../../../configs/rocksdb/best-cache.conf")),
        ("fanout-32", include_str!("../../../configs/rocksdb/fanout-32.conf")),
        (
            "hyperclock-fanout-32",
            include_str!("../../../configs/rocksdb/hyperclock-fanout-32.conf"),
        ),
        ("writer-8", include_str!("../../../configs/rocksdb/writer-8.conf")),
        ("writer-32", include_str!("../../../configs/rocksdb/writer-32.conf")),
        ("readahead-0", include_str!("../../../configs/rocksdb/readahead-0.conf")),
        ("installed", include_str!("../../../configs/rocksdb/installed.conf")),
    ],
    recipes: &[("make", include_str!("../../../configs/build/rocksdb/make.toml"))],
    control: |site| Ok(Box::new(KeyValue::new(site, FILE))),
    ..DbmsSpec::NONE
};

fn scheme(version: &Version, machine: Machine) -> Option<Origin> {
    // The jar for Linux alone ended with version 10.
    let kind = if version.at_least(&[11]) { "" } else { ":jar:linux64" };
    let coordinates = format!("org.rocksdb:rocksdbjni:{version}{kind}");
    (machine != Machine::Other).then_some(Origin::Maven { coordinates })
}

/// A library with RocksDB's C API, at this path of a build's tree.
pub(crate) const fn library_form(file: &'static str) -> LibraryForm {
    LibraryForm {
        file,
        is_root: false,
        example: "name the shared library itself, such as librocksdb.so",
        // Up to 100 MB; with debug symbols several hundred.
        bytes_max: 2 << 30,
        symbol: b"rocksdb_open_column_families\0",
        api: "RocksDB's C API",
        version: LibraryVersion::FileName,
        compiled_in: None,
    }
}

/// The library for this processor, out of a Java package that has one for many.
pub(crate) fn place_of(path: &Path, prefix: &str, file: &str) -> Option<PathBuf> {
    let machine = if cfg!(target_arch = "aarch64") { "linux-aarch64" } else { "linux64" };
    let wanted = format!("{prefix}-{machine}.so");
    (path.file_name()?.to_str()? == wanted).then(|| PathBuf::from(file))
}
