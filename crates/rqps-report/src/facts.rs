//! Facts of a comparison: targets, host, time, the run folders of all numbers, remarks of authors,
//! conditions of vendors.

use std::collections::{BTreeMap, HashSet};

use super::build::Sections;
use super::document::{Block, Cell, Column, Section, Table};
use super::{blocks, clients};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::{Remark, RunFacts, TargetFacts};
use rqps_model::benchmark::{Idle, Pace, Placement, Workload};
use rqps_model::build::{BuildSource, Config, Dbms, Manifest, PLANNER, recorded};
use rqps_model::compatible::{CompatibleServer, NO_ADVICE, Terms};
use rqps_model::dialect::Dialect;
use rqps_model::host::Host;
use rqps_model::metric::Metric;
use rqps_model::run::Status;
use rqps_model::units::{bytes, counted};
use rqps_stats::summary::median;

/// A config of more settings shows those that decide whether rates compare.
const SETTINGS_MOST: usize = 8;

/// The head of the report.
pub(crate) fn section(comparison: &Comparison, own: &[&Sections]) -> Section {
    let mut facts = Vec::new();
    let mut add = |name: &str, value: String| facts.push((name.to_owned(), value));
    let labels = |skip: usize| {
        let labels = comparison.targets.iter().skip(skip).map(|target| target.label.as_str());
        labels.collect::<Vec<_>>().join(", ")
    };
    add("baseline", comparison.baseline.clone());
    if comparison.targets.len() > 1 {
        add("compared", labels(1));
    }
    add("benchmark", distinct(&comparison.runs, |run| run.benchmark.clone()));
    add("measured", measured(comparison));
    for fingerprint in distinct_list(&comparison.runs, |run| run.host_fingerprint.clone()) {
        let host = comparison.hosts.get(&fingerprint);
        add("host", host.map_or_else(|| fingerprint.clone(), |host| host_line(&fingerprint, host)));
    }
    let mut workloads: Vec<&Workload> = Vec::new();
    for workload in comparison.targets.iter().flat_map(|target| &target.workloads) {
        if !workloads.contains(&workload) {
            workloads.push(workload);
        }
    }
    let is_imported = |target: &TargetFacts| {
        target
            .target
            .as_ref()
            .is_some_and(|target| matches!(target.source, BuildSource::Imported(_)))
    };
    for workload in workloads {
        if comparison.targets.iter().all(is_imported) {
            add("workload", imported_workload_line(workload));
        } else {
            add("workload", workload_line(workload, own));
            add("placement", placement_line(workload));
            if let Some(hosts) = &workload.client_hosts {
                if let Some(server) = &hosts.server_host {
                    add("server host", server.clone());
                }
                add("client hosts", clients::line(comparison, hosts));
            }
        }
    }
    for line in settings_lines(comparison) {
        add("settings", line);
    }
    if let Some(line) = blocks::line(comparison) {
        add("turns", line);
    }
    if let Some(line) = loads_line(comparison) {
        add("loads", line);
    }
    add("rqps", distinct(&comparison.runs, |run| run.rqps_version.clone()));
    let legend = builds(comparison);
    Section::new("facts", "", vec![Block::Facts(facts), Block::Table(legend)])
}

/// Benchmark, scale, host and time, each in a few words.
pub(crate) fn brief(comparison: &Comparison) -> Vec<String> {
    let mut parts = vec![distinct(&comparison.runs, |run| run.benchmark.clone())];
    let workloads = comparison.targets.iter().flat_map(|target| &target.workloads);
    parts.extend(workloads.take(1).map(Workload::clients_text));
    parts.push(counted(comparison.steps.len(), "step"));
    let blocks =
        distinct_list(&comparison.runs, |run| format!("{} {}", run.result_set, run.key.block));
    parts.push(counted(blocks.len(), "block"));
    for host in comparison.hosts.values() {
        let model = host.cpu_model.clone().unwrap_or_else(|| "unknown CPU".to_owned());
        parts.push(format!("host {} ({model})", host.class()));
    }
    let from = comparison.runs.iter().map(|run| run.started.as_str()).min();
    parts.extend(from.and_then(|time| time.get(..10)).map(str::to_owned));
    parts
}

/// The distinct values of runs, in the order of their first appearance.
pub(crate) fn distinct_list(runs: &[RunFacts], get: impl Fn(&RunFacts) -> String) -> Vec<String> {
    let mut known = HashSet::new();
    runs.iter().map(get).filter(|value| known.insert(value.clone())).collect()
}

fn distinct(runs: &[RunFacts], get: impl Fn(&RunFacts) -> String) -> String {
    distinct_list(runs, get).join(", ")
}

/// Blocks, runs, start and end.
fn measured(comparison: &Comparison) -> String {
    let runs = &comparison.runs;
    let blocks = distinct_list(runs, |run| format!("{} {}", run.result_set, run.key.block)).len();
    let complete = runs.iter().filter(|run| run.status == Status::Complete).count();
    let from = runs.iter().map(|run| run.started.as_str()).min().unwrap_or("?");
    let to = runs.iter().filter_map(|run| run.finished.as_deref()).max().unwrap_or("?");
    // Imported results without a date.
    if from == "unknown" {
        return format!("unknown time, blocks: {blocks}, runs: {}", runs.len());
    }
    format!("{from} to {to}, blocks: {blocks}, runs: {} ({complete} complete)", runs.len())
}

pub(super) fn host_line(fingerprint: &str, host: &Host) -> String {
    if host.cpus == 0 && host.memory_bytes == 0 {
        return format!("not in the imported files ({fingerprint})");
    }
    let mut parts = vec![format!("{} ({fingerprint})", host.class())];
    let mut add = |part: Option<String>| parts.extend(part);
    add(host.cpu_model.clone());
    add(Some(match host.cores {
        Some(cores) => format!("{} CPUs on {cores} cores", host.cpus),
        None => format!("{} CPUs", host.cpus),
    }));
    add(host.smt.as_ref().map(|smt| match smt.as_str() {
        // The kernel's words for processors, and virtual ones, with one thread per core.
        "notsupported" | "notimplemented" => "no SMT".to_owned(),
        smt => format!("SMT {smt}"),
    }));
    if host.memory_bytes > 0 {
        add(Some(format!("{} of memory", bytes(host.memory_bytes))));
    }
    add(host.governor.as_ref().map(|governor| format!("governor {governor}")));
    add(host.virtualization.clone());
    add(host.os.clone());
    add(host.kernel.as_ref().map(|kernel| format!("kernel {kernel}")));
    add(host.disk.as_ref().map(|disk| {
        let filesystem = host.filesystem.as_deref().unwrap_or("unknown filesystem");
        format!("{filesystem} on {disk}")
    }));
    parts.join(", ")
}

/// The scale in imported files; 0 means unknown.
fn imported_workload_line(workload: &Workload) -> String {
    let known = [
        (f64::from(workload.tables), "tables"),
        (workload.rows as f64, "rows in each"),
        (f64::from(workload.clients), "clients"),
        (workload.read_seconds, "s reads"),
        (workload.write_seconds, "s writes"),
        (workload.warmup_seconds, "s warm-up"),
    ];
    let known = known.iter().filter(|(number, _)| *number > 0.0);
    let mut parts: Vec<String> = known.map(|(number, what)| format!("{number} {what}")).collect();
    parts.push(if parts.is_empty() {
        "not in the imported files".to_owned()
    } else {
        "the imported files have no more".to_owned()
    });
    parts.join(", ")
}

fn workload_line(workload: &Workload, own: &[&Sections]) -> String {
    let data = workload.data_text();
    let pace = match workload.pace {
        Pace::Closed => "closed pace".to_owned(),
        Pace::Open { events_per_second } => format!("open pace at {events_per_second} events/s"),
    };
    if let Some(statements) = workload.counted_statements {
        let simulated =
            if workload.simulated_caches { ", caches and branches simulated" } else { "" };
        return format!(
            "{data}, 1 client, {statements} statements of each step counted under \
             valgrind{simulated}"
        );
    }
    let cache = match workload.cache_bytes {
        Some(bytes) => format!("{} MiB cache", bytes >> 20),
        None => "cache sized from the data".to_owned(),
    };
    if let Some(line) = own.iter().find_map(|hooks| (hooks.workload)(workload, &cache)) {
        return line;
    }
    let limit = workload.memory_limit.map(|limit| format!(", memory limit {} MiB", limit >> 20));
    let profiler = workload.profile_hertz.map(|hertz| format!(", a profiler at {hertz} Hz"));
    let limit = limit.unwrap_or_default() + &profiler.unwrap_or_default();
    format!(
        "{data}, {}, {} s reads, {} s writes, {} s warm-up, settle x {}, {pace}, {cache}{limit}",
        workload.clients_text(),
        workload.read_seconds,
        workload.write_seconds,
        workload.warmup_seconds,
        workload.settle_scale,
    )
}

/// What rqps sets on servers for statements of the user's own, who knows them from a server that
/// is set up otherwise: one line for each config.
fn settings_lines(comparison: &Comparison) -> Vec<String> {
    let has_own = |target: &&TargetFacts| {
        target.workloads.iter().any(|workload| workload.shape.has_own_statements())
    };
    let mut lines = Vec::new();
    for target in comparison.targets.iter().filter(has_own) {
        let Some(dbms) = target.target.as_ref().map(|target| target.dbms) else { continue };
        for config in target.configs.iter().filter(|config| !config.text.trim().is_empty()) {
            let line = settings_line(dbms, config);
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines
}

fn settings_line(dbms: Dbms, config: &Config) -> String {
    let known: Vec<&str> = recorded(dbms.dialect()).collect();
    let name = |line: &str| line.split(['=', ' ']).next().unwrap_or_default().to_owned();
    let lines = || config.text.lines().map(str::trim).filter(|line| !line.starts_with('['));
    let is_known = |line: &&str| {
        let name = name(line);
        known.iter().any(|it| *it == name || name == format!("skip_{it}"))
    };
    let count = lines().count();
    let is_shown = |line: &&str| count <= SETTINGS_MOST || is_known(line);
    let mut parts: Vec<String> = lines().filter(is_shown).map(str::to_owned).collect();
    if parts.len() < count {
        parts.push(format!("{} more in the section Settings", count - parts.len()));
    }
    let parts = parts.join(", ");
    let planner = if lines().any(|line| PLANNER.contains(&name(line).as_str())) {
        ""
    } else {
        "; the planner is as the build has it"
    };
    format!("{dbms}, config {}: {parts}{planner}", config.name)
}

/// The number of loads, if there were several.
fn loads_line(comparison: &Comparison) -> Option<String> {
    let loads = comparison.targets.iter().flat_map(|target| &target.loads);
    let most = loads.map(|load| load.number).max().filter(|most| *most > 1)?;
    let relatives = comparison.steps.iter().flat_map(|step| &step.targets);
    let shared = relatives.filter_map(|target| target.relative(Metric::Rate)?.loads.as_ref());
    let between: Vec<f64> = shared.map(|loads| 100.0 * loads.between_sd).collect();
    let judged = match median(&between) {
        Some(median) => format!(
            "Blocks of one load share its properties, so the load is a random effect (REML, \
             Hartung-Knapp-Sidik-Jonkman); standard deviation between loads: {median:.2} % (median \
             of the rates)"
        ),
        None => "Each block has a load of its own".to_owned(),
    };
    Some(format!("{most} of each target; block i starts from load i modulo {most}. {judged}"))
}

fn placement_line(workload: &Workload) -> String {
    let placement = match workload.placement {
        Placement::Together => "together: a client and its server side share a CPU",
        Placement::Apart => "apart: clients and server on disjoint CPUs",
        Placement::Os => "os: no CPU pinning",
    };
    let idle = match workload.idle {
        Idle::Awake => "idle CPUs kept awake",
        Idle::Os => "the operating system may halt idle CPUs",
    };
    format!("{placement}; {idle}")
}

/// One row for each build and configuration.
fn builds(comparison: &Comparison) -> Table {
    let heads = ["target", "dbms", "version", "sha256", "config", "hash", "reported", "origin"];
    let mut rows = Vec::new();
    for target in &comparison.targets {
        for manifest in &target.manifests {
            for config in &target.configs {
                let sha = manifest.sha256.as_deref().map(|sha| sha.chars().take(12).collect());
                let sha: String = sha.unwrap_or_else(|| "-".to_owned());
                let texts = [
                    target.label.clone(),
                    manifest.dbms.to_string(),
                    manifest.version.to_string(),
                    sha,
                    config.name.clone(),
                    config.hash.clone(),
                    manifest.reported.trim().to_owned(),
                    origin(manifest, &target.places),
                ];
                rows.push(texts.into_iter().map(Cell::text).collect());
            }
        }
    }
    Table::new("", heads.into_iter().map(Column::words).collect(), rows)
}

/// The origin of a build; for a server by DSN also the location of its tables.
fn origin(manifest: &Manifest, places: &[String]) -> String {
    let origin = [&manifest.origin].into_iter().chain(places);
    origin.map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// The hosts, one fact per row; `None` if no fact is known.
pub(crate) fn hosts(comparison: &Comparison) -> Option<Section> {
    let mut blocks = Vec::new();
    for (fingerprint, host) in &comparison.hosts {
        let mut facts = vec![("fingerprint".to_owned(), fingerprint.clone())];
        let mut add = |name: &str, value: Option<String>| {
            let why = || host.missing.get(name).map(|why| format!("unknown: {why}"));
            facts.extend(value.or_else(why).map(|value| (name.to_owned(), value)));
        };
        let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
        add("class", Some(host.class()));
        add("cpu_model", host.cpu_model.clone());
        add("cpus", Some(host.cpus.to_string()));
        add("cores", host.cores.map(|cores| cores.to_string()));
        add("smt", host.smt.clone());
        add("governor", host.governor.clone());
        add("virtualization", host.virtualization.clone());
        add("memory", Some(mib(host.memory_bytes)));
        add("swap", Some(mib(host.swap_bytes)));
        add("transparent_huge_pages", host.transparent_huge_pages.clone());
        add("huge_pages", host.huge_pages.map(|pages| pages.to_string()));
        add("disk", host.disk.clone());
        add("disk_rotational", host.disk_rotational.map(|spins| spins.to_string()));
        add("filesystem", host.filesystem.clone());
        add("mount_options", host.mount_options.clone());
        add("os", host.os.clone());
        add("kernel", host.kernel.clone());
        if let Some(tuning) = &host.tuning {
            let number = |number: Option<u64>| number.map(|number| number.to_string());
            add("microcode", tuning.microcode.clone());
            add("turbo", tuning.turbo.clone());
            add("aslr", number(tuning.aslr));
            for (node, cpus) in &tuning.numa {
                add(&format!("numa {node}"), Some(format!("CPUs {cpus}")));
            }
            add("max_sectors_kb", number(tuning.max_sectors_kb));
            add("max_hw_sectors_kb", number(tuning.max_hw_sectors_kb));
            add("nr_requests", number(tuning.nr_requests));
            add("scheduler", tuning.scheduler.clone());
            add("read_ahead_kb", number(tuning.read_ahead_kb));
        }
        for (name, state) in &host.mitigations {
            add(&format!("mitigation {name}"), Some(state.clone()));
        }
        blocks.push(Block::Facts(facts));
    }
    (!blocks.is_empty()).then(|| Section::new("host", "Host", blocks))
}

/// The run folders behind the numbers.
pub(crate) fn run_folders(comparison: &Comparison) -> Section {
    let heads = ["block", "order", "target", "status", "started", "folder"];
    let mut columns: Vec<Column> = heads.into_iter().map(Column::words).collect();
    columns[0].right = true;
    columns[1].right = true;
    let rows = comparison.runs.iter().map(|run| {
        let block = match run.key.attempt {
            1 => run.key.block.to_string(),
            attempt => format!("{} attempt {attempt}", run.key.block),
        };
        let texts = [
            block,
            run.key.order.to_string(),
            run.key.label.clone(),
            status(&run.status),
            run.started.clone(),
        ];
        let mut cells: Vec<Cell> = texts.into_iter().map(Cell::text).collect();
        cells.push(Cell::text(run.folder.clone()).from_runs(vec![run.folder.clone()]));
        cells
    });
    let table = Table::new("", columns, rows.collect());
    Section::new("runs", "Run folders", vec![Block::Table(table)])
}

/// The status in one word; a caveat has failed parts and reasons.
pub(crate) fn status(status: &Status) -> String {
    match status {
        Status::Running => "unfinished",
        Status::Complete => "complete",
        Status::Failed(_) => "failed",
        Status::Interrupted => "interrupted",
        Status::Discarded(_) => "discarded",
    }
    .to_owned()
}

// Remarks of the authors of imported results.

/// `None` if the import has only numbers.
pub(super) fn remarks_section(comparison: &Comparison) -> Option<Section> {
    let points: Vec<String> =
        comparison.remarks.iter().map(|remark| point(comparison, remark)).collect();
    (!points.is_empty())
        .then(|| Section::new("remarks", "Published remarks", vec![Block::List(points)]))
}

fn point(comparison: &Comparison, remark: &Remark) -> String {
    let targets = match remark.targets.len() {
        all if all >= comparison.targets.len() && all > 1 => "all targets".to_owned(),
        _ => remark.targets.join(", "),
    };
    let (column, text) = (&remark.column, &remark.text);
    if column.is_empty() {
        return format!("{}: {text} ({targets})", remark.step);
    }
    if !text.is_empty() {
        return format!("{column} of {targets}: {text}");
    }
    let cells = counted(remark.cells, "cell");
    format!("{column} of {targets}: {cells}, see the step records (imported.annotations)")
}

// Conditions of vendors for publishing results of their services.

/// The terms of the vendors of the targets; nothing if no target is a vendor's service.
pub(crate) fn terms_section(comparison: &Comparison) -> Option<Section> {
    if comparison.hides_terms {
        return None;
    }
    let mut labels: BTreeMap<&str, (&Terms, Vec<&str>)> = BTreeMap::new();
    for target in &comparison.targets {
        if let Some(terms) = of_target(target) {
            labels.entry(&terms.vendor).or_insert((terms, Vec::new())).1.push(&target.label);
        }
    }
    if labels.is_empty() {
        return None;
    }
    let mut points: Vec<String> = labels
        .into_values()
        .map(|(terms, labels)| format!("{}: {}", labels.join(", "), sentence(terms)))
        .collect();
    points.push(NO_ADVICE.to_owned());
    Some(Section::new("terms", "Terms of publication", vec![Block::List(points)]))
}

/// A vendor's terms in a sentence.
pub fn sentence(terms: &Terms) -> String {
    format!(
        "{} ({}): {}. Source: {}; {}.",
        terms.vendor, terms.services, terms.rule, terms.source, terms.date
    )
}

/// By the host of its DSN or address, else by what the server said of itself.
fn of_target(target: &TargetFacts) -> Option<&'static Terms> {
    let wanted = target.target.as_ref()?;
    let (BuildSource::Dsn(dsn) | BuildSource::Client(dsn)) = &wanted.source else { return None };
    let place = dsn.split("//").nth(1)?.split(['/', '?']).next()?;
    let host = place.rsplit('@').next()?.split(':').next()?;
    let of_version = |reported: &str| match CompatibleServer::of_reported(reported) {
        Some(server) => Terms::of_vendor(&server.vendor),
        None if wanted.dbms.dialect() == Dialect::Mysql => Terms::of_mysql(reported),
        None => None,
    };
    let mut reported = target.manifests.iter().map(|manifest| manifest.reported.as_str());
    Terms::of_host(host).or_else(|| reported.find_map(of_version))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use rqps_model::build::Target;
    use rqps_model::build::{Dbms, Manifest, Version};

    fn vendor(dbms: Dbms, dsn: &str, reported: &str) -> Option<&'static str> {
        let target = Target {
            label: "a".to_owned(),
            dbms,
            source: match dbms {
                Dbms::Client => BuildSource::Client(dsn.to_owned()),
                _ => BuildSource::Dsn(dsn.to_owned()),
            },
            config: String::new(),
            storage_engine: None,
        };
        let manifest = Manifest {
            dbms,
            version: Version::new("1"),
            reported: reported.to_owned(),
            origin: String::new(),
            sha256: None,
            compiler: None,
            code: None,
            packages: BTreeMap::new(),
        };
        let facts =
            TargetFacts { target: Some(target), manifests: vec![manifest], ..TargetFacts::of("a") };
        of_target(&facts).map(|terms| terms.vendor.as_str())
    }

    #[test]
    fn a_target_is_of_a_vendor_by_its_host_or_its_version() {
        let postgres = |dsn, reported| vendor(Dbms::Postgres, dsn, reported);
        let aurora = "postgres://u@db.abc.rds.amazonaws.com:5432/d?sslmode=require";
        assert_eq!(postgres(aurora, "16.4"), Some("Amazon Web Services"));
        assert_eq!(postgres("postgres://u@10.0.0.1/d", "17.2 [Neon]"), Some("Neon"));
        let snowflake = "snowflake://u@a.snowflakecomputing.com/d";
        assert_eq!(vendor(Dbms::Client, snowflake, ""), Some("Snowflake"));
        assert_eq!(vendor(Dbms::Client, "/opt/duckdb", ""), None);
        // Anybody may run these.
        assert_eq!(postgres("postgres://u@10.0.0.1/d", "13.0.0 [CockroachDB]"), None);
        assert_eq!(postgres("postgres://u@10.0.0.1/d", "17.2"), None);
        let mysql = |reported| vendor(Dbms::Mysql, "mysql://u@h/d", reported);
        assert_eq!(mysql("8.0.33-commercial"), Some("Oracle"));
        assert_eq!(mysql("8.0.33"), None);
    }
}
