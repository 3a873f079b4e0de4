//! Per-event records of a client, which the coordinator reads each second without a lock: counters
//! with one writer, and a latency histogram in the layout of HdrHistogram with three digits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use base64::Engine;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};

use crate::clock::SECOND;
use crate::control_channel::StepInterval;
use crate::request::{DriverRequest, StepRequest};
use rqps_model::benchmark::Pace;
use rqps_model::run::SECOND_MIN;

/// 2^11 linear steps hold three significant digits; every further power of two has 2^10 steps.
const LINEAR_BITS: u32 = 11;
const HALF: usize = 1 << (LINEAR_BITS - 1);
/// Latencies of 2^42 ns (73 minutes) and more count as the largest one.
const LARGEST: u64 = (1 << 42) - 1;
const STEPS: usize = (42 - LINEAR_BITS as usize + 2) * HALF;

/// The step of a latency.
#[inline]
fn step_of(nanoseconds: u64) -> usize {
    let value = nanoseconds.min(LARGEST);
    // As in HdrHistogram: the power of two above the linear part, then the position in it.
    let bucket = (64 - LINEAR_BITS).saturating_sub((value | 1).leading_zeros());
    (bucket as usize) * HALF + (value >> bucket) as usize
}

/// The largest value of a step.
fn largest_of(step: usize) -> u64 {
    let bucket = (step / HALF).saturating_sub(1);
    (((step - bucket * HALF) as u64 + 1) << bucket) - 1
}

/// Latencies of one client. One thread writes; others may read at any time.
struct Latencies {
    counts: Box<[AtomicU32]>,
}

impl Latencies {
    fn new() -> Latencies {
        Latencies { counts: (0..STEPS).map(|_| AtomicU32::new(0)).collect() }
    }

    #[inline]
    fn record(&self, nanoseconds: u64) {
        bump(&self.counts[step_of(nanoseconds)]);
    }

    fn add_to(&self, sums: &mut [u64]) {
        for (sum, count) in sums.iter_mut().zip(&self.counts) {
            *sum += u64::from(count.load(Ordering::Relaxed));
        }
    }
}

/// Adds one: a load and a store by the only writer, without a locked instruction.
#[inline]
fn bump(count: &AtomicU32) {
    count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// The recorder of one client, on its own cache lines.
#[repr(align(128))]
pub struct Recorder {
    statements: AtomicU64,
    errors: AtomicU64,
    latency: Latencies,
    service: Option<Latencies>,
}

impl Recorder {
    /// `open`: adds a second histogram, of service times under an open pace.
    pub fn new(open: bool) -> Recorder {
        Recorder {
            statements: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            latency: Latencies::new(),
            service: open.then(Latencies::new),
        }
    }

    /// Records one event. `statements` is the client's total so far.
    #[inline]
    pub fn event(&self, latency_ns: u64, service_ns: u64, statements: u64) {
        self.latency.record(latency_ns);
        self.statements.store(statements, Ordering::Relaxed);
        if let Some(service) = &self.service {
            service.record(service_ns);
        }
    }

    /// Records events that another program has counted, all of one latency. `statements` is the
    /// client's total so far.
    pub fn events(&self, latency_ns: u64, count: u64, statements: u64) {
        let all = &self.latency.counts[step_of(latency_ns)];
        let sum = u64::from(all.load(Ordering::Relaxed)).saturating_add(count);
        all.store(u32::try_from(sum).unwrap_or(u32::MAX), Ordering::Relaxed);
        self.statements.store(statements, Ordering::Relaxed);
    }

    /// Records one error.
    pub fn error(&self) {
        self.errors(1);
    }

    /// Records errors that another program has counted.
    pub fn errors(&self, count: u64) {
        self.errors.fetch_add(count, Ordering::Relaxed);
    }
}

/// Sums over all clients at one moment.
#[derive(Clone, Default)]
pub struct Snapshot {
    /// Completed statements.
    pub statements: u64,
    /// Failed statements.
    pub errors: u64,
    latency: Vec<u64>,
}

impl Snapshot {
    /// Takes the sums of all clients now.
    pub fn take<'a>(recorders: impl IntoIterator<Item = &'a Recorder>) -> Snapshot {
        let mut snapshot = Snapshot { latency: vec![0; STEPS], ..Snapshot::default() };
        for recorder in recorders {
            snapshot.statements += recorder.statements.load(Ordering::Relaxed);
            snapshot.errors += recorder.errors.load(Ordering::Relaxed);
            recorder.latency.add_to(&mut snapshot.latency);
        }
        snapshot
    }

    /// Number of events since `earlier`, and the quantiles of their latencies, nanoseconds. A
    /// quantile is the largest value of its step; 0 without events.
    pub fn since(&self, earlier: &Snapshot, quantiles: &[f64]) -> (u64, Vec<u64>) {
        let moved =
            |step: usize| self.latency[step] - earlier.latency.get(step).copied().unwrap_or(0);
        let events: u64 = (0..self.latency.len()).map(moved).sum();
        let values = quantiles.iter().map(|quantile| {
            let wanted = ((events as f64 * quantile).ceil() as u64).max(1);
            let mut seen = 0;
            let step = (0..self.latency.len()).find(|&step| {
                seen += moved(step);
                seen >= wanted
            });
            step.map_or(0, largest_of)
        });
        (events, values.collect())
    }

    /// The latencies since `earlier`, as HdrHistogram V2 in base64.
    pub fn latencies_since(&self, earlier: &Snapshot) -> String {
        let then = earlier.latency.iter().copied().chain(std::iter::repeat(0));
        let moved: Vec<u64> = self.latency.iter().zip(then).map(|(now, then)| now - then).collect();
        text_of(histogram(&moved).as_ref())
    }
}

/// Latencies of all clients and, under an open pace, service times, as HdrHistogram V2 in base64.
pub fn histograms(recorders: &[&Recorder]) -> (String, Option<String>) {
    let latency = encode(recorders.iter().map(|recorder| &recorder.latency));
    let service = recorders
        .iter()
        .any(|recorder| recorder.service.is_some())
        .then(|| encode(recorders.iter().filter_map(|recorder| recorder.service.as_ref())));
    (latency, service)
}

fn encode<'a>(all: impl Iterator<Item = &'a Latencies>) -> String {
    let mut sums = vec![0; STEPS];
    all.for_each(|latencies| latencies.add_to(&mut sums));
    text_of(histogram(&sums).as_ref())
}

/// A histogram as base64 text. Writing into memory cannot fail.
pub fn text_of(histogram: Option<&Histogram<u64>>) -> String {
    let bytes = histogram.and_then(|histogram| {
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(histogram, &mut bytes).ok()?;
        Some(bytes)
    });
    base64::engine::general_purpose::STANDARD.encode(bytes.unwrap_or_default())
}

/// The layout is HdrHistogram's, so each count keeps its bucket. `None` cannot happen: HdrHistogram
/// accepts the constant bounds.
fn histogram(sums: &[u64]) -> Option<Histogram<u64>> {
    let mut histogram = Histogram::<u64>::new_with_bounds(1, LARGEST, 3).ok()?;
    for (step, count) in sums.iter().enumerate().filter(|(_, count)| **count > 0) {
        histogram.record_n(largest_of(step), *count).ok()?;
    }
    Some(histogram)
}

// Turns the records of clients into intervals of about a second.

/// Makes one recorder per client.
pub fn recorders<B>(task: &StepRequest<B>) -> Vec<Arc<Recorder>> {
    let open = matches!(task.pace, Pace::Open { .. });
    (0..task.clients).map(|_| Arc::new(Recorder::new(open))).collect()
}

/// Makes the intervals of a window.
pub struct IntervalMeter {
    recorders: Vec<Arc<Recorder>>,
    earlier: Snapshot,
    from_ns: u64,
    second: u32,
    /// True if each interval contains its latencies, so that those of several hosts can be merged.
    tells_latencies: bool,
}

impl IntervalMeter {
    /// Begins at the start of the window.
    pub fn new(recorders: &[Arc<Recorder>], start_ns: u64) -> IntervalMeter {
        IntervalMeter {
            recorders: recorders.to_vec(),
            earlier: Snapshot::default(),
            from_ns: start_ns,
            second: 0,
            tells_latencies: false,
        }
    }

    /// For a driver with this share of the step's clients.
    pub fn for_share_of(self, request: &DriverRequest, clients: u32) -> IntervalMeter {
        IntervalMeter { tells_latencies: request.is_shared(clients), ..self }
    }

    /// The interval since the last call.
    pub fn interval(&mut self, now_ns: u64) -> StepInterval {
        let now = Snapshot::take(self.recorders.iter().map(AsRef::as_ref));
        let (events, quantiles) = now.since(&self.earlier, &[0.5, 0.95, 0.99, 1.0]);
        let us = |index: usize| quantiles.get(index).map_or(0.0, |value| *value as f64 / 1e3);
        self.second += 1;
        let interval = StepInterval {
            second: self.second,
            seconds: now_ns.saturating_sub(self.from_ns) as f64 / SECOND,
            events,
            statements: now.statements - self.earlier.statements,
            errors: now.errors - self.earlier.errors,
            p50_us: us(0),
            p95_us: us(1),
            p99_us: us(2),
            max_us: us(3),
            extra: BTreeMap::new(),
            latency: self.tells_latencies.then(|| now.latencies_since(&self.earlier)),
            latencies: BTreeMap::new(),
        };
        self.from_ns = now_ns;
        self.earlier = now;
        interval
    }

    /// The end of the next interval: a second after the last, or the end of the window if less than
    /// 1.5 s remain.
    pub fn next_cut(&self, start_ns: u64, end_ns: u64) -> u64 {
        let next = start_ns + (u64::from(self.second) + 1) * SECOND as u64;
        if next + SECOND as u64 / 2 > end_ns && next < end_ns { end_ns } else { next }
    }
}

// Columns of a step's seconds for benchmarks whose clients have roles: operations and latencies of
// each role, and all columns as series over whole seconds.

/// Adds the columns of a role: what it did in the interval, and its latencies' 99th percentile and
/// largest value, microseconds.
pub fn add(
    role: &str,
    done: f64,
    (p99_us, max_us): (f64, f64),
    columns: &mut BTreeMap<String, f64>,
) {
    columns.insert(role.to_owned(), done);
    columns.insert(of_p99(role), p99_us);
    columns.insert(format!("{role}_max_us"), max_us);
}

fn of_p99(role: &str) -> String {
    format!("{role}_p99_us")
}

/// Columns of intervals as series over whole seconds.
#[derive(Debug, Default)]
pub struct SeriesOf(BTreeMap<String, Vec<f64>>);

impl SeriesOf {
    /// Adds an interval unless it is a partial second.
    pub fn add(&mut self, interval: &StepInterval) {
        if interval.seconds < SECOND_MIN {
            return;
        }
        for (name, value) in &interval.extra {
            // Counts become rates per second, whatever the length of this one.
            let is_count = interval.extra.contains_key(&of_p99(name));
            let value = if is_count { value / interval.seconds } else { *value };
            self.0.entry(name.clone()).or_default().push((value * 10.0).round() / 10.0);
        }
    }

    /// All columns.
    pub fn into_columns(self) -> BTreeMap<String, Vec<f64>> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;

    #[test]
    fn steps_are_those_of_hdrhistogram() {
        let reference = Histogram::<u64>::new_with_bounds(1, LARGEST, 3).unwrap();
        let mut values: Vec<u64> = (0..5_000).collect();
        values.extend((12..42).flat_map(|bit| {
            let power = 1u64 << bit;
            [power - 1, power, power + 1, power + power / 3, power + power / 2 + 7]
        }));
        values.push(LARGEST);
        for value in values {
            let step = step_of(value);
            assert_eq!(largest_of(step), reference.highest_equivalent(value), "{value}");
            assert_eq!(step_of(largest_of(step)), step, "{value}");
        }
        assert_eq!(step_of(u64::MAX), STEPS - 1);
    }

    #[test]
    fn a_histogram_survives_its_encoding() {
        let recorder = Recorder::new(true);
        for millisecond in 1..=1000 {
            recorder.event(millisecond * 1_000_000, millisecond * 1_000, millisecond);
        }
        let (latency, service) = histograms(&[&recorder, &Recorder::new(true)]);
        for (text, unit) in [(latency, 1_000_000.0), (service.unwrap(), 1_000.0)] {
            let bytes = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
            let read: Histogram<u64> =
                Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
            assert_eq!(read.len(), 1000);
            for (quantile, want) in [(0.5, 500.0), (0.99, 990.0), (1.0, 1000.0)] {
                let ratio = read.value_at_quantile(quantile) as f64 / (want * unit);
                assert!((ratio - 1.0).abs() < 0.001, "{quantile}: {ratio}");
            }
        }
    }

    #[test]
    fn an_interval_is_the_difference_of_two_snapshots() {
        let recorder = Recorder::new(false);
        recorder.event(1_000, 0, 3);
        let first = Snapshot::take([&recorder]);
        recorder.event(5_000, 0, 6);
        recorder.event(9_000, 0, 9);
        recorder.error();
        let second = Snapshot::take([&recorder]);
        let (events, values) = second.since(&first, &[0.5, 1.0]);
        assert_eq!(events, 2);
        assert_eq!(values, [largest_of(step_of(5_000)), largest_of(step_of(9_000))]);
        assert_eq!(second.statements - first.statements, 6);
        assert_eq!(second.errors - first.errors, 1);
        assert_eq!(second.since(&second, &[0.5]), (0, vec![0]));
    }
}
