//! Columns of a step's seconds for benchmarks whose clients have roles: operations and latencies of
//! each role, and all columns as series over whole seconds.

use std::collections::BTreeMap;

use crate::event::StepInterval;
use rqps_model::run::SECOND_MIN;

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
