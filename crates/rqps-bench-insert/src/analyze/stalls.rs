//! Stalls and longest operations with their times, and the activity of server and host then: from
//! the server's log, its counters of each second, and the host's counters.

use std::collections::BTreeMap;
use std::ops::Range;

use rqps_analysis::measurement::Measurement;
use rqps_model::metric::Metric;
use rqps_model::run::{DiskUsage, HostUsage, SECOND_MIN, Second, ServerEvent, StepRecord, Usage};
use rqps_stats::stability;
use rqps_stats::summary::median;

/// Roles: the column of their rate, and the name of one operation.
pub const ROLES: [(&str, &str); 3] =
    [("inserts", "insert"), ("deletes", "delete"), ("queries", "query")];

/// Consecutive seconds with hardly any operations of a role.
#[derive(Clone, Debug, PartialEq)]
pub struct Stall {
    /// `inserts`, `deletes`, `queries`.
    pub role: &'static str,
    /// Its first second, from 0.
    pub from: usize,
    /// Its length in whole seconds.
    pub seconds: usize,
    /// The longest operation that ended in the stall or in the second after it, ms.
    pub longest_ms: f64,
    /// Activity of server and host until the end of the stall, from its start or from the start of
    /// that operation if earlier.
    pub activity: String,
}

/// The stalls of a role in a step, as ranges of seconds from 0. None in a step that makes indexes,
/// because it inserts nothing meanwhile.
pub fn stretches(step: &StepRecord, role: &str) -> Vec<Range<usize>> {
    match step.outcome.series.get(role) {
        Some(series) if !makes_indexes(step) => stability::stalls(series),
        _ => Vec::new(),
    }
}

/// True for a step that makes indexes.
pub fn makes_indexes(step: &StepRecord) -> bool {
    step.outcome.extra.contains_key(&Metric::IndexSeconds)
}

/// All stalls of a sample in time order.
pub fn stalls(sample: &Measurement) -> Vec<Stall> {
    let mut stalls = Vec::new();
    for (role, _) in ROLES {
        for stall in stretches(&sample.record, role) {
            let longest = longest_in(sample, role, stall.start, stall.end + 1);
            let begun = longest.map_or(f64::MAX, |(second, ms)| begun(second, ms));
            stalls.push(Stall {
                role,
                from: stall.start,
                seconds: stall.len(),
                longest_ms: longest.map_or(0.0, |(_, ms)| ms),
                activity: activity(sample, begun.min(stall.start as f64), stall.end as f64),
            });
        }
    }
    stalls.sort_by_key(|stall| stall.from);
    stalls
}

/// Earliest start, in seconds, of an operation of `ms` milliseconds that ended in `second` (from
/// 0).
pub fn begun(second: usize, ms: f64) -> f64 {
    second as f64 - ms / 1e3
}

/// The second in which the longest operation of a role ended, from 0, and its length in ms.
pub fn longest(sample: &Measurement, role: &str) -> Option<(usize, f64)> {
    longest_in(sample, role, 0, usize::MAX)
}

fn longest_in(sample: &Measurement, role: &str, from: usize, to: usize) -> Option<(usize, f64)> {
    let series = sample.record.outcome.series.get(&format!("{role}_max_us"))?;
    let seconds = from.min(series.len())..to.min(series.len());
    let place = seconds.max_by(|a, b| series[*a].total_cmp(&series[*b]))?;
    Some((place, series[place] / 1e3))
}

/// The longest operation of a role by its metric, s. Steps of less than a second have no series.
pub fn longest_of(sample: &Measurement, role: &str) -> f64 {
    let metric = match role {
        "inserts" => Metric::InsertMax,
        "deletes" => Metric::DeleteMax,
        _ => Metric::Max,
    };
    sample.get(metric).unwrap_or(0.0) / 1e3
}

/// Checkpoints and flushing in the server's log: start and end in seconds of the window, and kind.
/// Without vacuum, which never rests.
pub fn flushing(sample: &Measurement) -> Vec<(f64, f64, &str)> {
    let mut spans = Vec::new();
    for event in &sample.record.outcome.server_log {
        if let Some(took) = event.took_seconds
            && ["checkpoint", "flush"].contains(&event.kind.as_str())
        {
            spans.push(((event.at_seconds - took).max(0.0), event.at_seconds, &*event.kind));
        }
    }
    spans
}

/// Activity of server and host in the seconds `from` to `to` of the window; counters only if they
/// are unusual.
pub fn activity(sample: &Measurement, from: f64, to: f64) -> String {
    let outcome = &sample.record.outcome;
    let from = from.max(0.0);
    let mut all = logged(&outcome.server_log, from, to);
    all.extend(counted(&outcome.series, from as usize, to.ceil() as usize));
    if all.is_empty() { "no known cause".to_owned() } else { all.join("; ") }
}

/// The start of Postgres's log line about the start of a checkpoint; its end has its own line.
const CHECKPOINT_BEGINS: &str = "checkpoint starting";

fn logged(events: &[ServerEvent], from: f64, to: f64) -> Vec<String> {
    let begun = |event: &ServerEvent| event.at_seconds - event.took_seconds.unwrap_or(0.0);
    // A checkpoint whose end is not in the log of this step has only a start.
    let is_under_way = |place: usize| {
        events[place].text.starts_with(CHECKPOINT_BEGINS)
            && !events[place..]
                .iter()
                .any(|later| later.kind == events[place].kind && later.took_seconds.is_some())
    };
    let mut all = Vec::new();
    for (place, event) in events.iter().enumerate().filter(|(_, event)| begun(event) < to) {
        let (kind, at) = (&event.kind, event.at_seconds);
        let text = match event.took_seconds {
            Some(took) if at >= from => format!("{kind} of {took:.1} s ending at {at:.1} s"),
            None if is_under_way(place) => format!("{kind} under way since {at:.1} s"),
            None if at >= from && !event.text.starts_with(CHECKPOINT_BEGINS) => {
                format!("{kind} at {at:.1} s ({})", event.text)
            }
            _ => continue,
        };
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}

/// Smallest reported share of all CPUs that waits or is stolen.
const NOTABLE_SHARE: f64 = 0.05;
/// Smallest reported mean time of a disk read or write, ms.
const DISK_NOTABLE_MS: f64 = 0.05;
/// Smallest reported share of the redo log in use. The fuller it is, the more InnoDB flushes; when
/// it is full, InnoDB stops writes.
const REDO_NOTABLE: f64 = 0.7;

/// The condition for reporting a counter.
#[derive(Clone, Copy, PartialEq)]
enum Worth {
    /// If it moved at all.
    Moved,
    /// If its highest second is more than twice the median second, and at least this.
    Unusual(f64),
}

/// A counter in the seconds of a stall.
#[derive(Clone, Copy)]
struct Reading {
    /// The sum over those seconds.
    sum: f64,
    /// The highest second.
    top: f64,
    /// The median second of the step.
    usual: f64,
}

/// Makes the text about a counter.
type Words = fn(Reading) -> String;

/// Columns that show background work, with their texts.
const TOLD: [(&str, Worth, Words); 12] = [
    ("min_key_s", Worth::Unusual(0.1), |it| {
        format!("writers waited {:.1} s for the smallest key", it.sum)
    }),
    ("server_autovacuum_workers", Worth::Moved, |it| match it.top {
        1.0 => "autovacuum active".to_owned(),
        most => format!("{most:.0} autovacuum workers"),
    }),
    ("server_checkpoint_pages", Worth::Moved, |it| format!("checkpoint wrote {:.0} pages", it.sum)),
    ("server_backend_pages", Worth::Moved, |it| format!("backends wrote {:.0} pages", it.sum)),
    ("server_log_waits", Worth::Moved, |it| format!("{:.0} waits for the log buffer", it.sum)),
    ("server_free_page_waits", Worth::Moved, |it| format!("{:.0} waits for a free page", it.sum)),
    ("server_write_stall_us", Worth::Moved, |it| {
        format!("writes throttled for {:.1} s in total", it.sum / 1e6)
    }),
    ("server_pages_flushed", Worth::Unusual(1.0), |it| {
        format!("{:.0} pages flushed in a second (usually {:.0})", it.top, it.usual)
    }),
    ("disk_read_ms", Worth::Unusual(DISK_NOTABLE_MS), |it| {
        format!("a disk read took {:.2} ms ({})", it.top, usually_ms(it.usual))
    }),
    ("disk_write_ms", Worth::Unusual(DISK_NOTABLE_MS), |it| {
        format!("a disk write took {:.2} ms ({})", it.top, usually_ms(it.usual))
    }),
    ("host_iowait", Worth::Unusual(NOTABLE_SHARE), |it| {
        let (top, usual) = (percent(it.top), percent(it.usual));
        format!("CPUs waited for a disk {top} of the time (usually {usual})")
    }),
    ("host_steal", Worth::Unusual(NOTABLE_SHARE), |it| {
        let (top, usual) = (percent(it.top), percent(it.usual));
        format!("the hypervisor took {top} of the CPUs (usually {usual})")
    }),
];

fn counted(series: &BTreeMap<String, Vec<f64>>, from: usize, to: usize) -> Vec<String> {
    let within = |values: &[f64]| values[from.min(values.len())..to.min(values.len())].to_vec();
    let top = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let told = |(column, worth, words): &(&str, Worth, Words)| {
        let all = series.get(*column)?;
        let within = within(all);
        let it = Reading { sum: within.iter().sum(), top: top(&within), usual: median(all)? };
        let is_told = match worth {
            Worth::Moved => it.top > 0.0,
            Worth::Unusual(least) => it.top > 2.0 * it.usual && it.top >= *least,
        };
        is_told.then(|| words(it))
    };
    let redo = redo_in_use(series).map(|shares| top(&within(&shares)));
    let redo = redo.filter(|share| *share >= REDO_NOTABLE);
    let redo = redo.map(|share| format!("redo log {} in use", percent(share)));
    redo.into_iter().chain(TOLD.iter().filter_map(told)).collect()
}

/// The share of the redo log in use in each second, if the server reported both numbers.
fn redo_in_use(series: &BTreeMap<String, Vec<f64>>) -> Option<Vec<f64>> {
    let (used, capacity) = (series.get("server_redo_used")?, series.get("server_redo_capacity")?);
    let share = |(used, capacity): (&f64, &f64)| used / capacity.max(1.0);
    Some(used.iter().zip(capacity).map(share).collect())
}

/// A mean time per operation; 0 in a median second without operations.
fn usually_ms(usual: f64) -> String {
    if usual > 0.0 { format!("usually {usual:.2}") } else { "usually none".to_owned() }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// The host's activity in each second of a step, to explain its stalls: shares of all CPUs that
/// waited for a disk and that the hypervisor took, and mean milliseconds per read and write of the
/// data's disk. Empty if any of them was not sampled. Without partial seconds, like other series.
pub fn host_series(seconds: &[Second]) -> BTreeMap<String, Vec<f64>> {
    let whole = seconds.iter().filter(|second| second.seconds >= SECOND_MIN);
    let sampled: Option<Vec<&Usage>> = whole.map(|second| second.usage.as_ref()).collect();
    let Some(sampled) = sampled else { return BTreeMap::new() };
    let mut columns = BTreeMap::new();
    let mut add = |name: &str, values: Vec<f64>| {
        let rounded = values.into_iter().map(|value| (value * 1e4).round() / 1e4);
        columns.insert(name.to_owned(), rounded.collect());
    };
    let of_host = |part: fn(&HostUsage) -> f64| {
        let share = |usage: &&Usage| {
            let cpu_seconds = f64::from(usage.host.cpus) * usage.seconds;
            if cpu_seconds > 0.0 { part(&usage.host) / cpu_seconds } else { 0.0 }
        };
        sampled.iter().map(share).collect()
    };
    add("host_iowait", of_host(|host| host.iowait));
    add("host_steal", of_host(|host| host.steal));
    let disks: Option<Vec<&DiskUsage>> = sampled.iter().map(|usage| usage.disk.as_ref()).collect();
    if let Some(disks) = disks {
        let each = |sum: u64, count: u64| if count == 0 { 0.0 } else { sum as f64 / count as f64 };
        add("disk_read_ms", disks.iter().map(|disk| each(disk.read_ms, disk.reads)).collect());
        add("disk_write_ms", disks.iter().map(|disk| each(disk.write_ms, disk.writes)).collect());
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::benchmark::{Group, RateUnit};
    use rqps_model::run::Outcome;

    fn sample(series: &[(&str, Vec<f64>)], server_log: Vec<ServerEvent>) -> Measurement {
        let series = series.iter().map(|(name, values)| ((*name).to_owned(), values.clone()));
        let outcome = Outcome { series: series.collect(), server_log, ..Outcome::default() };
        let empty = StepRecord::empty(1, "l.i1", Group::Load, RateUnit::RowsInserted);
        let record = StepRecord { outcome, ..empty };
        Measurement::of(record.into())
    }

    #[test]
    fn a_stall_is_dated_and_told_with_the_servers_work() {
        let mut inserts = vec![1000.0; 30];
        inserts[10] = 0.0;
        inserts[11] = 50.0;
        inserts[20] = 99.0;
        let mut longest_us = vec![2_000.0; 30];
        longest_us[12] = 2_345_000.0;
        let mut pages = vec![0.0; 30];
        pages[11] = 700.0;
        let checkpoint = ServerEvent {
            at_seconds: 12.5,
            took_seconds: Some(4.0),
            kind: "checkpoint".to_owned(),
            text: "checkpoint complete".to_owned(),
        };
        let series = [
            ("inserts", inserts),
            ("inserts_max_us", longest_us),
            ("server_checkpoint_pages", pages),
        ];
        let sample = sample(&series, vec![checkpoint]);
        let found = stalls(&sample);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!((found[0].role, found[0].from, found[0].seconds), ("inserts", 10, 2));
        assert_eq!(found[0].longest_ms, 2345.0);
        assert_eq!(
            found[0].activity,
            "checkpoint of 4.0 s ending at 12.5 s; checkpoint wrote 700 pages"
        );
        assert_eq!((found[1].from, found[1].activity.as_str()), (20, "no known cause"));
        assert_eq!(longest(&sample, "inserts"), Some((12, 2345.0)));
    }

    #[test]
    fn a_step_without_work_has_no_stalls() {
        assert_eq!(stalls(&sample(&[("inserts", vec![0.0; 20])], vec![])), []);
        assert_eq!(stalls(&sample(&[("queries", vec![])], vec![])), []);
    }

    fn event(at_seconds: f64, took_seconds: Option<f64>, kind: &str, text: &str) -> ServerEvent {
        ServerEvent { at_seconds, took_seconds, kind: kind.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_checkpoint_is_told_by_its_end_or_as_under_way() {
        let begins = event(3.0, None, "checkpoint", "checkpoint starting: wal");
        let ends = event(7.0, Some(4.0), "checkpoint", "checkpoint complete: wrote 47 buffers");
        let told = |events: &[ServerEvent]| logged(events, 5.0, 6.0);
        assert_eq!(
            told(&[begins.clone(), ends.clone()]),
            ["checkpoint of 4.0 s ending at 7.0 s"],
            "its beginning is part of it"
        );
        assert_eq!(told(std::slice::from_ref(&begins)), ["checkpoint under way since 3.0 s"]);
        let vacuum = event(8.0, Some(0.5), "vacuum", "automatic vacuum of table");
        assert_eq!(told(&[begins, vacuum]), ["checkpoint under way since 3.0 s"]);
        let often = event(5.5, None, "checkpoint", "checkpoints are occurring too frequently");
        assert_eq!(
            told(&[often]),
            ["checkpoint at 5.5 s (checkpoints are occurring too frequently)"]
        );
        let before = event(4.9, Some(2.0), "checkpoint", "checkpoint complete");
        assert_eq!(told(&[before]), Vec::<String>::new());
    }

    #[test]
    fn of_counters_the_unusual_is_told() {
        let with_peak = |usual: f64, peak: f64| {
            let mut values = vec![usual; 9];
            values[4] = peak;
            values
        };
        let series: BTreeMap<String, Vec<f64>> = [
            ("server_pages_flushed", with_peak(5000.0, 9000.0)),
            ("server_redo_used", with_peak(60.0, 95.0)),
            ("server_redo_capacity", vec![100.0; 9]),
            ("disk_write_ms", with_peak(0.02, 0.31)),
            ("disk_read_ms", with_peak(0.0, 0.2)),
            ("host_iowait", with_peak(0.05, 0.43)),
            ("host_steal", with_peak(0.0, 0.04)),
            ("min_key_s", with_peak(0.0, 0.9)),
        ]
        .map(|(name, values)| (name.to_owned(), values))
        .into();
        assert_eq!(
            counted(&series, 3, 6),
            [
                "redo log 95 % in use",
                "writers waited 0.9 s for the smallest key",
                "a disk read took 0.20 ms (usually none)",
                "a disk write took 0.31 ms (usually 0.02)",
                "CPUs waited for a disk 43 % of the time (usually 5 %)",
            ]
        );
        assert_eq!(counted(&series, 5, 9), Vec::<String>::new());
        assert_eq!(counted(&series, 20, 30), Vec::<String>::new(), "after the last second");
    }

    #[test]
    fn columns_of_the_host_are_shares_and_means() {
        let host = HostUsage { cpus: 2, iowait: 0.5, steal: 0.1, ..HostUsage::default() };
        let disk = DiskUsage { writes: 200, write_ms: 62, ..DiskUsage::default() };
        let usage = Usage { seconds: 1.0, host, disk: Some(disk), ..Usage::default() };
        let second = Second { seconds: 1.0, usage: Some(usage), ..Second::default() };
        let remnant = Second { seconds: 0.2, ..Second::default() };
        let columns = host_series(&[second.clone(), remnant]);
        assert_eq!(columns["host_iowait"], [0.25]);
        assert_eq!(columns["host_steal"], [0.05]);
        assert_eq!((columns["disk_write_ms"][0], columns["disk_read_ms"][0]), (0.31, 0.0));
        let unsampled = Second { usage: None, ..second.clone() };
        assert_eq!(host_series(&[second, unsampled]), BTreeMap::new());
    }
}
