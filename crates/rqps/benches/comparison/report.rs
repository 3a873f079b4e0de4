//! Tables of the results, and the limits that they must meet.

use std::collections::BTreeMap;
use std::fs;

use super::{Options, name};
use rqps_host as os;
use rqps_host::proc;
use rqps_model::benchmark::Placement;
use rqps_model::run::CpuTime;
use rqps_model::units;
use rqps_stats::{Interval, paired};

/// Largest ratio of client CPU per point query, with client and server on one CPU.
const CPU_BAR: f64 = 0.8;
/// Largest ratio of its user part.
const USER_CPU_BAR: f64 = 0.5;
/// Largest ratio of the client CPU of own SQL to that of a step of rqps with the same statements.
const SQL_CPU_BAR: f64 = 1.1;
/// Largest ratio of seconds per load.
const LOAD_BAR: f64 = 1.0 / 3.0;
/// Largest resident memory of the driver, bytes.
const MEMORY_BAR: u64 = 64_000_000;

/// Pairs of runs (rqps, other) of one case in one placement.
pub(crate) struct CaseResult {
    pub(crate) target: String,
    pub(crate) case: &'static str,
    pub(crate) placement: Placement,
    pub(crate) pairs: Vec<(Sample, Sample)>,
}

impl CaseResult {
    fn ratio(&self, figure: impl Fn(&Sample) -> f64) -> Option<Ratio> {
        let pairs = self.pairs.iter().map(|(ours, theirs)| (figure(ours), figure(theirs)));
        Ratio::of(&pairs.collect::<Vec<_>>())
    }

    fn ours(&self, figure: impl Fn(&Sample) -> f64 + Clone) -> impl Iterator<Item = f64> + Clone {
        self.pairs.iter().map(move |(ours, _)| figure(ours))
    }

    fn theirs(&self, figure: impl Fn(&Sample) -> f64 + Clone) -> impl Iterator<Item = f64> + Clone {
        self.pairs.iter().map(move |(_, theirs)| figure(theirs))
    }

    fn place(&self) -> String {
        format!("{} {}", self.target, name(self.placement))
    }

    fn rate_row(&self) -> Vec<String> {
        let qps = |sample: &Sample| sample.qps;
        let others = |sample: &Sample| sample.others * 100.0;
        let ratio = self.ratio(qps);
        let agrees = ratio.map_or("-", |ratio| if ratio.agrees() { "yes" } else { "no" });
        vec![
            self.target.clone(),
            self.case.to_owned(),
            name(self.placement).to_owned(),
            self.pairs.len().to_string(),
            format!("{:.0}", geometric_mean(self.ours(qps))),
            format!("{:.0}", geometric_mean(self.theirs(qps))),
            Ratio::estimate_text(ratio),
            Ratio::interval_text(ratio),
            agrees.to_owned(),
            format!("{:.1} / {:.1}", mean(self.ours(others)), mean(self.theirs(others))),
        ]
    }

    fn cpu_row(&self) -> Vec<String> {
        let user = |sample: &Sample| sample.cpu.user_us;
        let system = |sample: &Sample| sample.cpu.system_us;
        let switches = |sample: &Sample| sample.switches;
        let (total, users) = (self.ratio(|sample| sample.cpu.total_us()), self.ratio(user));
        let both = |user: f64, system: f64| format!("{user:.2} + {system:.2}");
        vec![
            self.target.clone(),
            self.case.to_owned(),
            name(self.placement).to_owned(),
            both(mean(self.ours(user)), mean(self.ours(system))),
            both(mean(self.theirs(user)), mean(self.theirs(system))),
            Ratio::estimate_text(total),
            Ratio::interval_text(total),
            Ratio::estimate_text(users),
            Ratio::interval_text(users),
            format!("{:.2} / {:.2}", mean(self.ours(switches)), mean(self.theirs(switches))),
        ]
    }
}

/// Seconds of loads (rqps, sysbench).
pub(crate) struct Loads {
    pub(crate) target: String,
    pub(crate) rows: u64,
    pub(crate) pairs: Vec<(f64, f64)>,
}

/// The largest resident memory of a driver.
pub(crate) struct Memory {
    pub(crate) target: String,
    pub(crate) clients: u32,
    pub(crate) bytes: u64,
}

/// All results.
pub(crate) struct Report {
    heading: Vec<String>,
    pub(crate) versions: Vec<String>,
    pub(crate) results: Vec<CaseResult>,
    pub(crate) loads: Vec<Loads>,
    pub(crate) memory: Vec<Memory>,
}

impl Report {
    pub(crate) fn new(options: &Options, sysbench: &str) -> Report {
        let host = os::host::read(&options.work);
        let smoke = if options.smoke { "; a smoke run: the figures mean nothing" } else { "" };
        let (words, _) = sysbench.split_once(" (").unwrap_or((sysbench, ""));
        // The version is the text before the first dash; the rest names the builder.
        let kernel = host.kernel.as_deref().and_then(|text| text.split('-').next());
        Report {
            heading: vec![
                format!(
                    "{}: rqps {} and {words}, {} pairs of {} s after {} s, {} clients, {} rows, \
                     CPUs {}{smoke}",
                    &os::clock::now_rfc3339()[..10],
                    env!("CARGO_PKG_VERSION"),
                    options.alternations,
                    options.seconds,
                    options.warmup,
                    options.clients,
                    units::count(options.rows),
                    if options.awake { "kept awake" } else { "as the system has them" },
                ),
                format!(
                    "{} CPUs ({}), Linux {}",
                    host.cpus,
                    host.cpu_model.as_deref().unwrap_or("of a model that is not told"),
                    kernel.unwrap_or("of a version that is not told")
                ),
            ],
            versions: Vec::new(),
            results: Vec::new(),
            loads: Vec::new(),
            memory: Vec::new(),
        }
    }

    /// The report as text for a terminal, or as Markdown.
    pub(crate) fn text(&self, markdown: bool) -> String {
        let lines = self.heading.iter().chain(&self.versions);
        let mut text: String = lines.map(|line| format!("{line}  \n")).collect();
        text.push('\n');
        let tables = [self.rates(), self.cpu(), self.load_table(), self.bars()];
        for table in tables.iter().filter(|table| !table.rows.is_empty()) {
            text += &table.text(markdown);
        }
        for (note, count) in self.notes() {
            text += &format!("Note: {note} ({count} runs)  \n");
        }
        text
    }

    fn rates(&self) -> Table {
        let head = [
            "target", "case", "placement", "pairs", "rqps QPS", "other QPS", "ratio",
            "95 % interval", "agree", "% others, rqps / other",
        ];
        let mut table = Table::new("Statements per second", &head);
        table.rows = self.results.iter().map(CaseResult::rate_row).collect();
        table
    }

    fn cpu(&self) -> Table {
        let head = [
            "target", "case", "placement", "rqps user + system", "other user + system", "ratio",
            "95 % interval", "user ratio", "95 % interval", "switches, rqps / other",
        ];
        let mut table = Table::new("CPU of the client per statement, microseconds", &head);
        table.rows = self.results.iter().map(CaseResult::cpu_row).collect();
        table
    }

    fn load_table(&self) -> Table {
        let head = ["target", "rows", "pairs", "rqps s", "sysbench s", "ratio", "95 % interval"];
        let mut table = Table::new("Loading, secondary index included", &head);
        for loads in &self.loads {
            let ratio = Ratio::of(&loads.pairs);
            table.rows.push(vec![
                loads.target.clone(),
                units::count(loads.rows),
                loads.pairs.len().to_string(),
                format!("{:.2}", geometric_mean(loads.pairs.iter().map(|pair| pair.0))),
                format!("{:.2}", geometric_mean(loads.pairs.iter().map(|pair| pair.1))),
                Ratio::estimate_text(ratio),
                Ratio::interval_text(ratio),
            ]);
        }
        table
    }

    /// The limits: a ratio by its estimate; a rate may be 1 within its interval.
    fn bars(&self) -> Table {
        let mut table = Table::new("Limits", &["limit", "where", "measured", "met"]);
        let mut row = |bar: &str, place: String, measured: String, met: bool| {
            let met = if met { "yes" } else { "no" };
            table.rows.push(vec![bar.to_owned(), place, measured, met.to_owned()]);
        };
        let together = |result: &&CaseResult| {
            result.case == "point-query" && result.placement == Placement::Together
        };
        for result in self.results.iter().filter(together) {
            let total = result.ratio(|sample| sample.cpu.total_us());
            let user = result.ratio(|sample| sample.cpu.user_us);
            let below = |ratio: Option<Ratio>, bar: f64| ratio.is_some_and(|r| r.estimate <= bar);
            let place = || format!("{} point-query", result.place());
            row("client CPU ≤ 0.8 ×", place(), Ratio::text(total), below(total, CPU_BAR));
            row("client user CPU ≤ 0.5 ×", place(), Ratio::text(user), below(user, USER_CPU_BAR));
        }
        for result in &self.results {
            let place = || format!("{} {}", result.place(), result.case);
            let qps = result.ratio(|sample| sample.qps);
            let cpu = result.ratio(|sample| sample.cpu.total_us());
            if result.case.starts_with("lua-") || result.case.starts_with("pgbench-") {
                let met = qps.is_some_and(Ratio::is_no_less);
                row("QPS ≥ 1.0 ×", place(), Ratio::text(qps), met);
                let met = cpu.is_some_and(|ratio| ratio.is_no_more_than(1.0));
                row("client CPU ≤ 1.0 ×", place(), Ratio::text(cpu), met);
            } else if result.case.starts_with("sql-") {
                let met = cpu.is_some_and(|ratio| ratio.is_no_more_than(SQL_CPU_BAR));
                row("client CPU ≤ 1.1 × the native step", place(), Ratio::text(cpu), met);
            }
        }
        let reads = |result: &&CaseResult| matches!(result.case, "point-query" | "read-only");
        for result in self.results.iter().filter(reads) {
            let qps = result.ratio(|sample| sample.qps);
            let met = qps.is_some_and(Ratio::reaches_one);
            let place = format!("{} {}", result.place(), result.case);
            row("QPS ≥ 1.0 × within the interval", place, Ratio::text(qps), met);
        }
        for loads in &self.loads {
            let ratio = Ratio::of(&loads.pairs);
            let met = ratio.is_some_and(|ratio| ratio.estimate <= LOAD_BAR);
            let place = format!("{}, {} rows", loads.target, units::count(loads.rows));
            row("load ≤ 1/3 of the time", place, Ratio::text(ratio), met);
        }
        for memory in &self.memory {
            let place = format!("{}, {} clients", memory.target, memory.clients);
            let measured = format!("{:.1} MB", memory.bytes as f64 / 1e6);
            row("driver < 64 MB", place, measured, memory.bytes < MEMORY_BAR);
        }
        table
    }

    /// Notes, with the number of runs that had each.
    fn notes(&self) -> BTreeMap<String, usize> {
        let mut notes = BTreeMap::new();
        for result in &self.results {
            let ours = result.pairs.iter().map(|(ours, _)| ("rqps", ours));
            let theirs = result.pairs.iter().map(|(_, theirs)| ("other", theirs));
            for (program, sample) in ours.chain(theirs) {
                let place = format!("{} {} {program}", result.place(), result.case);
                for note in &sample.notes {
                    *notes.entry(format!("{place}: {note}")).or_insert(0) += 1;
                }
                if sample.errors > 0 {
                    *notes.entry(format!("{place}: statements were refused")).or_insert(0) += 1;
                }
            }
        }
        notes
    }
}

// Prints tables: aligned for a terminal, or as Markdown.

/// A table with its title.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) head: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(title: &str, head: &[&'static str]) -> Table {
        Table { title: title.to_owned(), head: head.to_vec(), rows: Vec::new() }
    }

    /// The heading and the rows.
    pub(crate) fn text(&self, markdown: bool) -> String {
        if markdown { self.markdown() } else { self.aligned() }
    }

    fn markdown(&self) -> String {
        let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
        let mut text = format!("### {}\n\n", self.title);
        text += &line(self.head.clone());
        text += &line(self.head.iter().map(|_| "---").collect());
        for row in &self.rows {
            text += &line(row.iter().map(String::as_str).collect());
        }
        text + "\n"
    }

    fn aligned(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
            widest.max(self.head.get(column).map_or(0, |name| name.chars().count()))
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let line = |cells: Vec<&str>| {
            let cells = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
        };
        let mut text = format!("{}\n\n", self.title);
        text += &line(self.head.clone());
        for row in &self.rows {
            text += &line(row.iter().map(String::as_str).collect());
        }
        text + "\n"
    }
}

// Ratios of pairs, rqps / other program, computed as in rqps's comparisons.

/// Largest distance by which an interval may cross a limit.
const SLACK: f64 = 0.02;

/// exp(mean ln ratio) over pairs, with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    pub(crate) estimate: f64,
    /// `None` for one pair.
    pub(crate) interval: Option<Interval>,
}

impl Ratio {
    /// The ratio of the pairs (rqps, other) with positive values; `None` without one, as when a run
    /// is so short that no clock tick fell into user mode.
    pub(crate) fn of(pairs: &[(f64, f64)]) -> Option<Ratio> {
        let logarithms: Vec<f64> = pairs
            .iter()
            .filter(|(ours, theirs)| *ours > 0.0 && *theirs > 0.0)
            .map(|(ours, theirs)| (ours / theirs).ln())
            .collect();
        let mean = paired::mean_interval(&logarithms, 0.95)?;
        let exp = |ends: Interval| Interval { low: ends.low.exp(), high: ends.high.exp() };
        Some(Ratio { estimate: mean.mean.exp(), interval: mean.interval.map(exp) })
    }

    /// True if 1 is in the interval, or if there is no interval.
    pub(crate) fn agrees(self) -> bool {
        self.interval.is_none_or(|ends| ends.low <= 1.0 && 1.0 <= ends.high)
    }

    /// True if it may be 1 or more.
    pub(crate) fn reaches_one(self) -> bool {
        self.interval.map_or(self.estimate, |ends| ends.high) >= 1.0
    }

    /// True if it is at least 1, and its interval at most 2 % below 1.
    pub(crate) fn is_no_less(self) -> bool {
        self.estimate >= 1.0 && self.interval.is_none_or(|ends| ends.low >= 1.0 - SLACK)
    }

    /// True if it is at most `most`, and its interval at most 2 % above it.
    pub(crate) fn is_no_more_than(self, most: f64) -> bool {
        self.estimate <= most && self.interval.is_none_or(|ends| ends.high <= most + SLACK)
    }

    /// The estimate as `0.812`.
    pub(crate) fn estimate_text(ratio: Option<Ratio>) -> String {
        ratio.map_or("-".to_owned(), |ratio| format!("{:.3}", ratio.estimate))
    }

    /// The interval as `0.801 … 0.823`.
    pub(crate) fn interval_text(ratio: Option<Ratio>) -> String {
        match ratio.and_then(|ratio| ratio.interval) {
            Some(ends) => format!("{:.3} … {:.3}", ends.low, ends.high),
            None => "-".to_owned(),
        }
    }

    /// Estimate and interval.
    pub(crate) fn text(ratio: Option<Ratio>) -> String {
        format!("{} ({})", Ratio::estimate_text(ratio), Ratio::interval_text(ratio))
    }
}

/// exp(mean ln value); the ratio of two such means is the mean ratio.
pub(crate) fn geometric_mean(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = values.clone().count() as f64;
    (values.map(f64::ln).sum::<f64>() / count).exp()
}

/// Arithmetic mean, for values that may be zero.
pub(crate) fn mean(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = values.clone().count() as f64;
    values.sum::<f64>() / count
}

// The result of one run of either program.

/// One measured window of one program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    /// Statements per second, including BEGIN and COMMIT.
    pub(crate) qps: f64,
    /// CPU time of the client process per statement, microseconds.
    pub(crate) cpu: CpuTime,
    /// Context switches of the whole host per statement.
    pub(crate) switches: f64,
    /// Statements that the server refused.
    pub(crate) errors: u64,
    /// Writes that matched no row, as a share of all statements; sysbench counts them with BEGIN as
    /// `other`.
    pub(crate) others: f64,
    /// Failures such as a thread that could not be pinned.
    pub(crate) notes: Vec<String>,
}

/// Costs of a window, before division by its statements.
pub(crate) struct Used {
    pub(crate) statements: f64,
    pub(crate) seconds: f64,
    pub(crate) cpu: CpuTime,
    pub(crate) switches: u64,
    pub(crate) others: u64,
}

impl Used {
    pub(crate) fn sample(self, errors: u64, notes: Vec<String>) -> Sample {
        let per = |amount: f64| amount / self.statements.max(1.0);
        Sample {
            qps: self.statements / self.seconds,
            cpu: CpuTime { user_us: per(self.cpu.user_us), system_us: per(self.cpu.system_us) },
            switches: per(self.switches as f64),
            errors,
            others: per(self.others as f64),
            notes,
        }
    }
}

/// Context switches of the host since boot; 0 if unknown.
pub(crate) fn switches() -> u64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    proc::host_stat(&text).map_or(0, |stat| stat.context_switches)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_ratio_is_that_of_geometric_means() {
        let pairs = [(2.0, 1.0), (8.0, 1.0), (0.0, 1.0)];
        let ratio = super::Ratio::of(&pairs).unwrap();
        assert!((ratio.estimate - 4.0).abs() < 1e-12);
        // ln 4 ± t · sd / √2, where sd is ln 4 / √2 and t with one degree of freedom 12.706.
        let half = 12.706 * 4f64.ln() / 2.0;
        let ends = ratio.interval.unwrap();
        assert!((ends.low.ln() - (4f64.ln() - half)).abs() < 1e-3, "{ends:?}");
        assert!((ends.high.ln() - (4f64.ln() + half)).abs() < 1e-3, "{ends:?}");
        assert_eq!(super::Ratio::of(&[(0.0, 0.0)]), None);
    }
}
