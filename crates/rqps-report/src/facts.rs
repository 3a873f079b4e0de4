//! Facts of a comparison: targets, host, time, and the run folders of all numbers.

use std::collections::HashSet;

use super::build::Sections;
use super::client_hosts;
use super::document::{Block, Cell, Column, Section, Table};
use super::turns;
use rqps_analysis::Comparison;
use rqps_analysis::comparison::{RunFacts, TargetFacts};
use rqps_model::benchmark::{Idle, Pace, Placement, Workload};
use rqps_model::build::{BuildSource, Dbms, Manifest};
use rqps_model::config::Config;
use rqps_model::host::Host;
use rqps_model::metric::Metric;
use rqps_model::run::Status;
use rqps_model::server_settings::{PLANNER, recorded};
use rqps_model::units::counted;
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
                add("client hosts", client_hosts::line(comparison, hosts));
            }
        }
    }
    for line in settings_lines(comparison) {
        add("settings", line);
    }
    if let Some(line) = turns::line(comparison) {
        add("turns", line);
    }
    if let Some(line) = loads_line(comparison) {
        add("loads", line);
    }
    add("rqps", distinct(&comparison.runs, |run| run.rqps_version.clone()));
    let legend = builds(comparison);
    Section {
        id: "facts",
        heading: String::new(),
        blocks: vec![Block::Facts(facts), Block::Table(legend)],
    }
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
    Table { caption: String::new(), columns: heads.into_iter().map(Column::words).collect(), rows }
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
    (!blocks.is_empty()).then(|| Section { id: "host", heading: "Host".to_owned(), blocks })
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
    let table = Table { caption: String::new(), columns, rows: rows.collect() };
    Section { id: "runs", heading: "Run folders".to_owned(), blocks: vec![Block::Table(table)] }
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
