//! The change of a step's counted instructions, as reports show it.

use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::comparison::Relative;

/// The counted instructions of a step: target against base.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CountedChange {
    /// The change of the total.
    pub change: TotalChange,
    /// The functions behind it; `None` without profiles of both.
    pub functions: Option<FunctionComparison>,
    /// Other threads of the process, where it has some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<BackgroundChange>,
}

/// The counted instructions of the threads that do not serve the client: target against base.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BackgroundChange {
    /// The change of the total.
    pub change: TotalChange,
    /// The functions behind it.
    pub functions: FunctionComparison,
}

/// The change in the instructions per operation of a target against the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TotalChange {
    /// More, by more than [`super::SAME_WITHIN`].
    More,
    /// Fewer, by more than [`super::SAME_WITHIN`].
    Fewer,
    /// Within [`super::SAME_WITHIN`].
    Same,
    /// The interval allows several of these.
    Unclear,
}

impl TotalChange {
    /// The word in reports.
    pub fn word(self) -> &'static str {
        match self {
            TotalChange::More => "MORE",
            TotalChange::Fewer => "FEWER",
            TotalChange::Same => "SAME",
            TotalChange::Unclear => "UNCLEAR",
        }
    }
}

/// The functions of one step: target against baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionComparison {
    /// Instructions per operation of the baseline.
    pub baseline_total: f64,
    /// The total of the target.
    pub target_total: f64,
    /// The largest differences, the largest first.
    pub changes: Vec<FunctionChange>,
    /// Functions that are not listed, and the sum of their differences: with the list it is the
    /// difference of the totals.
    pub others: (usize, f64),
    /// Share of the baseline's instructions in functions that both have by name, be it without
    /// arguments.
    pub common: f64,
    /// Share of the baseline's instructions in functions that both have, but under names that agree
    /// only without arguments, arguments of templates and the marks of the compiler's copies.
    pub weakly: f64,
}

impl FunctionComparison {
    /// The function that changed most in the direction of the total.
    pub fn leading(&self) -> Option<&FunctionChange> {
        let total = self.target_total - self.baseline_total;
        // A function that only has another name explains nothing.
        let explains = |change| !matches!(change, Change::Scatter | Change::Renamed);
        let mut changes = self.changes.iter().filter(|it| explains(it.change));
        changes.find(|it| it.difference() * total > 0.0)
    }
}

/// One function in both targets, means over the repeats.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionChange {
    /// Its name, in the target if it has another one there.
    #[serde(serialize_with = "text")]
    pub name: Arc<str>,
    /// Its name in the baseline, where the two agree only without arguments and the like.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "optional_text")]
    pub baseline_name: Option<Arc<str>>,
    /// In the baseline.
    pub baseline: FunctionCost,
    /// In the target.
    pub target: FunctionCost,
    /// The change.
    pub change: Change,
    /// The function that has its instructions now, or had them before.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "optional_text")]
    pub partner: Option<Arc<str>>,
}

impl FunctionChange {
    /// Instructions of its own per operation: target − baseline.
    pub fn difference(&self) -> f64 {
        self.target.own - self.baseline.own
    }
}

fn text<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

fn optional_text<S: Serializer>(text: &Option<Arc<str>>, serializer: S) -> Result<S::Ok, S::Error> {
    text.as_deref().serialize(serializer)
}

/// The costs of a function per operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FunctionCost {
    /// Instructions of its own.
    pub own: f64,
    /// Instructions from its call to its return, at most those of the whole operation.
    pub inclusive: f64,
    /// Calls.
    pub calls: f64,
}

/// The change of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Only the target calls it.
    New,
    /// Only the baseline calls it.
    Gone,
    /// The number of calls differs, and each call costs the same.
    Calls,
    /// The cost of a call differs, and the number of calls is the same.
    Cost,
    /// Both differ.
    CallsAndCost,
    /// Gone or new under this name, with a partner that does the same under another.
    Renamed,
    /// Gone; the caller that is its partner took its instructions over.
    Inlined,
    /// New; the caller that is its partner lost as many.
    SplitOff,
    /// The repeats scatter as much as the targets differ.
    Scatter,
}

/// Totals that differ by no more than this share are the same: repeats of one build differ by up to
/// this much.
pub const SAME_WITHIN: f64 = 0.001;

/// Counts of two builds that differ by less than this share prove no change of the code between
/// them: to counts what tau is to rates, but without the layout of a build, which no count depends
/// on. Half of it may be the scatter of each.
pub const COUNTS_TAU: f64 = 2.0 * SAME_WITHIN;

impl TotalChange {
    /// The change that the interval of a ratio demonstrates.
    pub fn of(relative: &Relative) -> TotalChange {
        let Some(interval) = relative.interval else { return TotalChange::Unclear };
        let (least, most) = (1.0 - SAME_WITHIN, 1.0 + SAME_WITHIN);
        match interval {
            it if it.low > most => TotalChange::More,
            it if it.high < least => TotalChange::Fewer,
            it if it.low >= least && it.high <= most => TotalChange::Same,
            _ => TotalChange::Unclear,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_stats::Interval;

    #[test]
    fn an_interval_must_lie_on_one_side() {
        let check = |interval: Option<(f64, f64)>, expected| {
            let interval = interval.map(|(low, high)| Interval { low, high });
            let relative = Relative { interval, ..Relative::of_medians(1.0, 3) };
            assert_eq!(TotalChange::of(&relative), expected, "{interval:?}");
        };
        check(Some((1.01, 1.02)), TotalChange::More);
        check(Some((0.9, 0.95)), TotalChange::Fewer);
        check(Some((0.9995, 1.0004)), TotalChange::Same);
        check(Some((0.9995, 1.004)), TotalChange::Unclear);
        check(None, TotalChange::Unclear);
    }
}
