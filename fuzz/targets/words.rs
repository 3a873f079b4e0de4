//! Words of plans and command lines, lines of drivers, names of servers, files with logins.

use std::path::Path;

use rqps_bench::spec::CliContext;
use rqps_dbms::spec::{self, Machine};
use rqps_driver::control_channel::DriverEvent;
use rqps_driver::request::{DriverCommand, DriverRequest};
use rqps_driver::workload;
use rqps_lab::benchmarks::{self, kv, lua, pgbench};
use rqps_lab::lab::fuzzing as lab;
use rqps_lab::plan::words;
use rqps_model::build::Version;
use rqps_model::endpoint::{Address, Endpoint};
use rqps_model::kv::KvOption;
use rqps_model::units;
use rqps_wire::dsn::{self, Dsn};
use rqps_wire::{fuzzing as wire, password};

use super::{file, scratch, split, text};

fn lines(bytes: &[u8]) -> Vec<String> {
    text(bytes).lines().map(str::to_owned).collect()
}

/// Targets survive being written as words, but for passwords.
pub(super) fn target_words(bytes: &[u8]) {
    let said = lines(bytes);
    let Ok(targets) = words::targets(&said) else { return };
    let written: Vec<String> = targets.iter().map(words::word).collect();
    match words::targets(&written) {
        Ok(again) => assert_eq!(again, targets, "{written:?}"),
        Err(error) => panic!("{written:?}: {error}"),
    }
}

/// `--set` of each benchmark.
pub(super) fn set_values(bytes: &[u8]) {
    for spec in benchmarks::ALL {
        let (mut workload, _) = (spec.workload)("quick").expect("a preset");
        for line in text(bytes).lines() {
            if let Err(error) = benchmarks::set(&mut workload, line) {
                assert!(!error.to_string().is_empty());
            }
        }
        let _ = ((spec.size)(&workload), (spec.brought)(&workload));
    }
}

fn take(spec: &benchmarks::BenchmarkSpec, what: &str, bytes: &[u8], told: &str) {
    let Some(words) = &spec.words else { return };
    let (mut workload, _) = (spec.workload)("quick").expect("a preset");
    let (what, options) = ([what.to_owned()], lines(bytes));
    let said = CliContext {
        what: &what,
        options: &options,
        read: &|_: &Path| Ok("SELECT :scale;".to_owned()),
        look: &|_: &Path, _| Ok(told.to_owned()),
        note: &|_| (),
    };
    let _ = (words.take)(&mut workload, &said);
}

/// Options of a script of sysbench, and what a script declares.
pub(super) fn lua_options(bytes: &[u8]) {
    let script = file("x.lua", b"");
    let path = script.to_string_lossy();
    let declared = r#"{"options":{"tables":{"kind":"number","value":"1","help":"n"}}}"#;
    take(&lua::SPEC, &path, bytes, declared);
    take(&lua::SPEC, &path, b"", &text(bytes));
}

/// Options of pgbench, and lists of its scripts.
pub(super) fn pgbench_options(bytes: &[u8]) {
    take(&pgbench::SPEC, "select-only", bytes, "");
    take(&pgbench::SPEC, text(bytes).lines().next().unwrap_or_default(), b"", "");
}

/// Numbers with units, versions, options of RocksDB.
pub(super) fn quantities(bytes: &[u8]) {
    let all = lines(bytes);
    for line in &all {
        let _ = (units::parse_duration(line), workload::bytes(line), workload::memory_limit(line));
        let _ = (workload::count(line, 0, u64::MAX), workload::seconds(line));
        let _ = (workload::client_counts(line, 1 << 16), workload::number(line, 0.0, f64::MAX));
        let _ = (workload::yes_or_no(line), KvOption::parse(line));
        let version = Version::new(line.as_str());
        for row in spec::ALL {
            let _ = (row.scheme)(&version, Machine::this());
        }
        let _ = version.numbers();
    }
    let _ = kv::analyze::parse(&text(bytes));
}

/// Lines between the lab, its drivers and the other end of the driver proxy.
pub(super) fn driver_lines(bytes: &[u8]) {
    for line in text(bytes).lines() {
        if let Ok(word) = line.parse::<DriverCommand>() {
            assert_eq!(word.to_string().parse(), Ok(word));
        }
        if let Ok(event) = serde_json::from_str::<DriverEvent>(line) {
            let written = serde_json::to_string(&event).expect("it was read");
            assert_eq!(serde_json::from_str::<DriverEvent>(&written).ok(), Some(event));
        }
        if let Ok(request) = serde_json::from_str::<DriverRequest>(line) {
            let _ = request.task.is_load();
        }
        lab::driver_proxy_line(line);
    }
}

/// What a server host has a driver do reaches its own servers alone, and reads no file that is not
/// of the plan.
pub(super) fn relay_request(bytes: &[u8]) {
    let (file, datasets) = (Path::new("/plan/a.csv"), Path::new("/cache/datasets"));
    for line in text(bytes).lines().filter(|line| lab::may_start(line, file, datasets)) {
        let request: DriverRequest = serde_json::from_str(line).expect("it was checked");
        match &request.endpoint {
            Endpoint::Server(Address::Tcp { host, .. }) => assert_eq!(host, "10.0.0.1"),
            Endpoint::Fake { .. } => {}
            other => panic!("a driver on {other:?}"),
        }
        let mut value = serde_json::to_value(&request).expect("it was read");
        // Texts for the server.
        let _ = ["login", "session_setup", "mark"].map(|key| value[key].take());
        for path in paths(&value) {
            let is_page = path.starts_with("/proc/") && path.split('/').count() == 5;
            let is_folder = file.parent() == Some(Path::new(&path));
            let known = [file, datasets].contains(&Path::new(&path)) || is_folder;
            assert!(is_page || known || path.starts_with("/*"), "a driver with {path}");
        }
    }
}

/// All texts that begin as a path does.
fn paths(value: &serde_json::Value) -> Vec<String> {
    match value {
        serde_json::Value::String(text) if text.starts_with('/') => vec![text.clone()],
        serde_json::Value::Array(all) => all.iter().flat_map(paths).collect(),
        serde_json::Value::Object(all) => all.values().flat_map(paths).collect(),
        _ => Vec::new(),
    }
}

/// A DSN that was read means the same without its password, and never shows it.
pub(super) fn dsn(bytes: &[u8]) {
    let said = text(bytes);
    let _ = (Dsn::looks_like(&said), dsn::without_password(&said));
    let service = [("host".to_owned(), "h".to_owned()), ("port".to_owned(), said.to_string())];
    let _ = Dsn::parse_with(&said, &service);
    match Dsn::parse(&said) {
        Ok(parsed) => {
            let shown = dsn::without_password(&said);
            let again = Dsn::parse(&shown).map(|again| (again.address, again.login.user));
            assert_eq!(again.ok(), Some((parsed.address, parsed.login.user)), "{shown}");
        }
        Err(error) => drop(error.to_string()),
    }
}

/// Files with logins: services and passwords of libpq, option files and login paths of MySQL.
pub(super) fn login_files(bytes: &[u8]) {
    let (choice, content) = split(bytes);
    let _ = wire::options(&text(content), "client");
    let _ = wire::login_paths(content);
    let names = [".pgpass", ".pg_service.conf", ".my.cnf", ".mylogin.cnf"];
    let name = names[usize::from(choice) % names.len()];
    let path = file(name, content);
    let set = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&path, set).expect("its mode can be set");
    let home = scratch().to_string_lossy().into_owned();
    let variable = |asked: &str| (asked == "HOME").then(|| home.clone());
    for dsn in [
        "postgres://u@h/d", "postgres://u@/d?host=/tmp", "postgres://?service=client",
        "mysql://u@h/d", "mysql://?login-path=client",
    ] {
        let _ = password::known(dsn, &variable);
    }
    std::fs::remove_file(path).expect("it was written");
}
