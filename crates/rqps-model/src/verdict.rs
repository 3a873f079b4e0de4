//! Verdicts on a difference and their rules (docs/verdicts.md).

use serde::{Deserialize, Serialize};

use crate::metric::{Direction, Metric};

/// The verdict on one metric of one step of one target.
///
/// "Slower" means worse and "faster" better for every metric: a lower rate and a higher cost are
/// both [`Verdict::Slower`]. [`Verdict::word`] has the unambiguous word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Shown to be worse by more than a quarter of δ, with code layout among the errors, and not
    /// shown to be within δ.
    Slower,
    /// Better in the same sense.
    Faster,
    /// Shown to be worse, but code layout may be the cause, or it is shown to be within δ.
    SlowerSmall,
    /// Better in the same sense.
    FasterSmall,
    /// Shown to differ by less than δ.
    Same,
    /// None of these could be shown with the pairs there are.
    Inconclusive,
    /// There is nothing to judge by: too few pairs, a value of 0, a host that cannot carry it.
    NoVerdict,
}

impl Verdict {
    /// In the order of reports.
    pub const ALL: [Verdict; 7] = [
        Verdict::Slower,
        Verdict::Faster,
        Verdict::SlowerSmall,
        Verdict::FasterSmall,
        Verdict::Same,
        Verdict::Inconclusive,
        Verdict::NoVerdict,
    ];

    /// The glossary's word: that of a rate.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Slower => "SLOWER",
            Verdict::Faster => "FASTER",
            Verdict::SlowerSmall => "SLOWER-SMALL",
            Verdict::FasterSmall => "FASTER-SMALL",
            Verdict::Same => "SAME",
            Verdict::Inconclusive => "INCONCLUSIVE",
            Verdict::NoVerdict => "NO VERDICT",
        }
    }

    /// The word for a metric: a rate is SLOWER or FASTER, everything else WORSE or BETTER, so that
    /// a cost that fell is never called "faster" nor "less" taken for bad.
    pub fn word(self, metric: Metric) -> &'static str {
        match self {
            _ if metric == Metric::Rate => self.name(),
            Verdict::Slower => "WORSE",
            Verdict::Faster => "BETTER",
            Verdict::SlowerSmall => "WORSE-SMALL",
            Verdict::FasterSmall => "BETTER-SMALL",
            _ => self.name(),
        }
    }

    /// True if it is worse: by much or by little.
    pub fn is_worse(self) -> bool {
        matches!(self, Verdict::Slower | Verdict::SlowerSmall)
    }

    /// True if it is better: by much or by little.
    pub fn is_better(self) -> bool {
        matches!(self, Verdict::Faster | Verdict::FasterSmall)
    }

    /// The verdict on a difference that was shown: `ln_ratio` of the metric, and whether it is one
    /// that counts. There is none where neither way is better.
    pub fn of_difference(metric: Metric, ln_ratio: f64, small: bool) -> Verdict {
        let better = match metric.better() {
            Direction::Higher => ln_ratio > 0.0,
            Direction::Lower => ln_ratio <= 0.0,
            Direction::Neither => return Verdict::NoVerdict,
        };
        match (better, small) {
            (false, false) => Verdict::Slower,
            (true, false) => Verdict::Faster,
            (false, true) => Verdict::SlowerSmall,
            (true, true) => Verdict::FasterSmall,
        }
    }
}

/// The rules of verdicts; printed with each of them. See docs/verdicts.md.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rules {
    /// δ: a difference of this share counts; one that is shown to be smaller is none.
    pub delta: f64,
    /// τ: a natural logarithm. Differences up to it are what another link order of the same source
    /// gives, and no evidence.
    pub tau: f64,
    /// Share of wrong ones among the differences listed (Benjamini-Hochberg), per target and
    /// metric.
    pub q: f64,
    /// Chance that a process exits with "regression" where there is none (Holm), per target.
    pub alpha: f64,
    /// Chance of calling a step SAME that differs by δ, each.
    pub equivalence_alpha: f64,
    /// Confidence level of every interval.
    pub confidence: f64,
    /// Chance of finding a difference of δ that pairs are counted for.
    pub power: f64,
    /// True if steps get verdicts although targets answer differently.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ignore_answers: bool,
    /// True if steps get verdicts although targets hold different data.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub data_differ: bool,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            delta: 0.02,
            tau: 0.01_f64.ln_1p(),
            q: 0.05,
            alpha: 0.05,
            equivalence_alpha: 0.05,
            confidence: 0.95,
            power: 0.8,
            ignore_answers: false,
            data_differ: false,
        }
    }
}

impl Rules {
    /// −ln(1 − δ): both limits of SAME are this far from 0 as logarithms.
    pub fn equivalence_limit(&self) -> f64 {
        -(-self.delta).ln_1p()
    }

    /// SLOWER and FASTER are shown to be larger than this, an eighth of δ.
    pub fn least(&self) -> f64 {
        self.equivalence_limit() / 8.0
    }

    /// τ as a share: 0.01 for ln 1.01.
    pub fn tau_share(&self) -> f64 {
        self.tau.exp_m1()
    }

    /// Standard deviation of ln(rate) that the code layout of one build causes, τ / (2 √2): τ is
    /// two standard deviations of the ratio of two builds.
    pub fn layout_sd(&self) -> f64 {
        self.tau / (2.0 * std::f64::consts::SQRT_2)
    }

    /// The reason why these rules are invalid; `None` if they are valid. τ must be less than δ, so
    /// that a test can separate the effect of code layout from a difference that matters.
    pub fn fault(&self) -> Option<String> {
        let open = |share: f64| share > 0.0 && share < 1.0;
        let shares = [
            ("delta", self.delta),
            ("q", self.q),
            ("alpha", self.alpha),
            ("equivalence_alpha", self.equivalence_alpha),
            ("confidence", self.confidence),
            ("power", self.power),
        ];
        if let Some((name, share)) = shares.into_iter().find(|(_, share)| !open(*share)) {
            return Some(format!("{name} must lie between 0 and 1, not {share}"));
        }
        if !(self.tau >= 0.0 && self.tau < self.equivalence_limit()) {
            return Some(format!(
                "tau must be 0 or more and less than delta ({}), not {}",
                self.delta,
                self.tau_share()
            ));
        }
        None
    }

    /// `delta 2 %, tau 1 %, q 0.05`.
    pub fn text(&self) -> String {
        let percent = |share: f64| {
            let text = format!("{:.3}", 100.0 * share);
            format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
        };
        format!("delta {}, tau {}, q {}", percent(self.delta), percent(self.tau_share()), self.q)
    }
}

/// `[gate]` of a plan file: what `rqps gate` calls a regression. What is not said is as in
/// [`Rules`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GateRules {
    /// δ, a share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// τ as a share: 0.01 for ln 1.01.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tau: Option<f64>,
    /// Share of wrong ones among the differences listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub q: Option<f64>,
    /// Chance of a false "regression", per target and metric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// Column heads of the metrics that may fail the gate; empty for the rate alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<String>,
    /// Share of steps that may lack a clear verdict; the default is half of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unclear_max: Option<f64>,
    /// Share by which a step may execute more instructions per operation, where they were
    /// counted; `None` if counts fail no gate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<f64>,
    /// True if not a single one may be.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fail_on_inconclusive: bool,
    /// `ignore` gives steps verdicts although targets answer differently.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers: Option<AnswersRule>,
    /// `differ` gives steps verdicts although targets hold different data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<DataRule>,
    /// Steps that may lose more than others. The first that matches counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<Allowance>,
}

/// What different answers mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AnswersRule {
    /// Nothing: the user knows them.
    Ignore,
}

/// What different data mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataRule {
    /// Nothing: the user knows that they differ.
    Differ,
}

/// A loss that is known and accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allowance {
    /// Steps, by a pattern with `*` and `?`.
    pub step: String,
    /// Pattern of target labels; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Column head of a metric; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// The loss, a share: below it nothing is a regression.
    pub delta: f64,
    /// The reason for accepting it; shown with the finding.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl GateRules {
    /// The default share of steps that may be unclear.
    pub const UNCLEAR_MAX: f64 = 0.5;

    /// The rules of verdicts with these values in place.
    pub fn over(&self, rules: Rules) -> Rules {
        Rules {
            delta: self.delta.unwrap_or(rules.delta),
            tau: self.tau.map_or(rules.tau, f64::ln_1p),
            q: self.q.unwrap_or(rules.q),
            alpha: self.alpha.unwrap_or(rules.alpha),
            ignore_answers: self.answers.is_some() || rules.ignore_answers,
            data_differ: self.data.is_some() || rules.data_differ,
            ..rules
        }
    }

    /// The metrics that may fail the gate.
    ///
    /// # Errors
    /// A word that is no metric's head nor its name in JSON, with those there are.
    pub fn metrics(&self) -> Result<Vec<Metric>, String> {
        if self.metrics.is_empty() {
            return Ok(vec![Metric::Rate]);
        }
        self.metrics.iter().map(|word| metric(word)).collect()
    }

    /// The reason why these rules are invalid, including [`Rules::fault`]; `None` if they are
    /// valid.
    pub fn fault(&self) -> Option<String> {
        if let Err(fault) = self.metrics() {
            return Some(fault);
        }
        let unclear = self.unclear_max.unwrap_or(0.0);
        if !(0.0..=1.0).contains(&unclear) {
            return Some(format!("unclear_max must lie between 0 and 1, not {unclear}"));
        }
        for allowance in &self.allow {
            if allowance.delta.is_nan() || allowance.delta <= 0.0 {
                return Some(format!("delta of `{}` must be above 0", allowance.step));
            }
            if let Some(Err(fault)) = allowance.metric.as_deref().map(metric) {
                return Some(fault);
            }
        }
        self.over(Rules::default()).fault()
    }
}

/// A metric by its column head, or by its name in JSON; the rate also as `rate`.
///
/// # Errors
/// A word that is neither, with the heads there are.
pub fn metric(word: &str) -> Result<Metric, String> {
    let named = |metric: &Metric| {
        let json = serde_json::to_value(metric).ok();
        metric.name() == word || json.as_ref().and_then(|value| value.as_str()) == Some(word)
    };
    let judged = |metric: &Metric| metric.better() != Direction::Neither;
    match Metric::ALL.iter().copied().find(named) {
        Some(metric) if judged(&metric) => Ok(metric),
        Some(_) => Err(format!("`{word}` gets no verdict: neither direction is better")),
        None => {
            let judged = Metric::ALL.iter().copied().filter(judged);
            let heads: Vec<&str> = judged.map(Metric::name).collect();
            Err(format!("unknown metric `{word}` (known: {})", heads.join(", ")))
        }
    }
}

/// The interim looks of a plan with `blocks = "auto"`: the numbers of pairs at each look. A step is
/// measured until it is decided or has the largest number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LookSchedule {
    /// Pairs at the first look.
    pub blocks_min: u32,
    /// Pairs at the last look that was planned for; more are never measured, fewer may be.
    pub blocks_max: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rise_is_good_or_bad_by_the_metric() {
        assert_eq!(Verdict::of_difference(Metric::Rate, -0.1, false), Verdict::Slower);
        assert_eq!(Verdict::of_difference(Metric::Rate, 0.1, true), Verdict::FasterSmall);
        assert_eq!(Verdict::of_difference(Metric::CpuPerOp, 0.1, false), Verdict::Slower);
        assert_eq!(Verdict::of_difference(Metric::P99, -0.1, true), Verdict::FasterSmall);
        assert_eq!(Verdict::of_difference(Metric::UserCpu, 0.1, false), Verdict::NoVerdict);
        assert!(metric("u_cpu").unwrap_err().contains("neither direction"));
        assert_eq!(metric("cs/o"), Ok(Metric::ContextSwitchesPerOp));
        assert_eq!(Verdict::Slower.word(Metric::CpuPerOp), "WORSE");
        assert_eq!(Verdict::Slower.word(Metric::Rate), "SLOWER");
    }

    #[test]
    fn gate_rules_stand_over_the_defaults() {
        let gate = GateRules { tau: Some(0.005), delta: Some(0.03), ..GateRules::default() };
        let rules = gate.over(Rules::default());
        assert_eq!((rules.delta, rules.q), (0.03, 0.05));
        assert!((rules.tau_share() - 0.005).abs() < 1e-12);
        assert_eq!(gate.metrics(), Ok(vec![Metric::Rate]));
        let metrics = ["rate", "p99_ms", "cpu_per_op"].map(str::to_owned).to_vec();
        let gate = GateRules { metrics, ..gate };
        assert_eq!(gate.metrics(), Ok(vec![Metric::Rate, Metric::P99, Metric::CpuPerOp]));
        let gate = GateRules { metrics: vec!["speed".to_owned()], ..gate };
        assert!(gate.fault().is_some_and(|text| text.contains("speed")));
    }

    #[test]
    fn rules_that_contradict_themselves_are_refused() {
        assert_eq!(Rules::default().fault(), None);
        let wrong = Rules { tau: 0.03, ..Rules::default() };
        assert!(wrong.fault().is_some_and(|text| text.contains("less than delta")));
        let wrong = Rules { q: 0.0, ..Rules::default() };
        assert!(wrong.fault().is_some_and(|text| text.contains('q')));
        assert_eq!(Rules::default().text(), "delta 2 %, tau 1 %, q 0.05");
    }
}
