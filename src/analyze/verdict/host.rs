//! NO VERDICT where the host cannot carry one: what canaries and an A/A run have told of it
//! (section 2.8 of the statistics specification).

use std::collections::BTreeMap;

use statrs::distribution::{Binomial, ChiSquared, ContinuousCDF, DiscreteCDF};

use super::{Judgement, Test};
use crate::domain::gate::{Calibration, HostGate};
use crate::domain::verdict::{Rules, Verdict};
use crate::stats::moderated::Estimate;
use crate::stats::power;

/// Level of the steps of an A/A run that are counted as false alarms.
const ALARM_LEVEL: f64 = 0.05;
/// As many of them as only one sound host in a hundred has.
const ALARM_LIMIT: f64 = 0.99;
/// A slot effect with a smaller p is one.
const SLOT_P_MIN: f64 = 0.01;
/// The noise of a host is taken to be as large as it is with this confidence.
const NOISE_CONFIDENCE: f64 = 0.9;

/// What is known of the hosts of a comparison.
pub(super) struct HostFindings {
    /// Why no verdict can be given at all; empty if there is no such reason.
    faults: Vec<String>,
    /// The largest noise of the hosts' A/A runs: standard deviation of one pair's ln ratio of
    /// rates, upper limit at 90 %.
    noise: Option<f64>,
}

/// What the gates of all result sets say.
pub(super) fn findings(gates: &BTreeMap<String, HostGate>) -> HostFindings {
    let mut faults = Vec::new();
    let mut noise: Option<f64> = None;
    for gate in gates.values() {
        if gate.is_too_noisy() {
            faults.push(format!(
                "the host was out of the range of its canaries in {} of {} blocks",
                gate.out_of_range(),
                gate.measured()
            ));
        }
        if let Some(calibration) = &gate.calibration {
            faults.extend(design_faults(calibration));
            let own = upper_noise(calibration);
            noise = own.into_iter().chain(noise).max_by(f64::total_cmp);
        }
    }
    faults.dedup();
    HostFindings { faults, noise }
}

/// Signs that pairs on this host are no pairs: an A/A run that finds differences.
fn design_faults(calibration: &Calibration) -> Vec<String> {
    let mut faults = Vec::new();
    let steps = calibration.steps.len();
    let alarms = calibration.false_alarms(ALARM_LEVEL);
    let limit = Binomial::new(ALARM_LEVEL, steps as u64)
        .map_or(u64::MAX, |binomial| binomial.inverse_cdf(ALARM_LIMIT));
    if steps > 0 && alarms as u64 > limit {
        faults.push(format!(
            "the A/A run on this host found a difference of a target from itself in {alarms} of \
             {steps} steps; chance has up to {limit}"
        ));
    }
    if let Some(p) = calibration.slot.p.filter(|p| *p < SLOT_P_MIN) {
        faults.push(format!(
            "the A/A run on this host found that the first of a block differs from the second by \
             {:.1} % (p {p:.4})",
            100.0 * calibration.slot.mean_ln.exp_m1()
        ));
    }
    faults
}

/// The pooled standard deviation × √(df / χ²): what it is at most, with [`NOISE_CONFIDENCE`].
fn upper_noise(calibration: &Calibration) -> Option<f64> {
    let own = |step: &crate::domain::gate::StepNoise| step.differences.len().saturating_sub(1);
    let df: usize = calibration.steps.iter().map(own).sum();
    let df = df as f64;
    let chi = ChiSquared::new(df).ok()?.inverse_cdf(1.0 - NOISE_CONFIDENCE);
    Some(calibration.sd_ln()? * (df / chi).sqrt())
}

impl HostFindings {
    /// True if nothing of the host stands against a verdict.
    pub(super) fn are_none(&self) -> bool {
        self.faults.is_empty() && self.noise.is_none()
    }

    /// Turns a verdict into NO VERDICT where the host cannot carry it. `ln_ratio` is the mean over
    /// `pairs`; `is_rate` because A/A runs tell the noise of rates only.
    pub(super) fn apply(
        &self,
        judgement: &mut Judgement,
        ln_ratio: f64,
        pairs: usize,
        rules: &Rules,
        is_rate: bool,
    ) {
        if !self.faults.is_empty() && judgement.verdict != Verdict::NoVerdict {
            judgement.verdict = Verdict::NoVerdict;
            judgement.reasons.extend(self.faults.iter().cloned());
            return;
        }
        let (Some(noise), Some(test)) = (self.noise, &judgement.test) else { return };
        if is_rate
            && let Some(found) = unsupported(judgement.verdict, test, ln_ratio, noise, pairs, rules)
        {
            judgement.verdict = Verdict::NoVerdict;
            judgement.reasons.push(format!(
                "{pairs} pairs on a host with this A/A noise find differences of {:.1} % and more \
                 only, and this is not clear enough",
                100.0 * found
            ));
        }
    }
}

/// The smallest difference that the host's own noise lets so many pairs find, if that is more than
/// δ − τ beyond τ and the verdict does not hold under that noise either; a share.
fn unsupported(
    verdict: Verdict,
    test: &Test,
    ln_ratio: f64,
    noise: f64,
    pairs: usize,
    rules: &Rules,
) -> Option<f64> {
    let se = noise / (pairs as f64).sqrt();
    let detectable = power::detectable(test.df, 1.0 - rules.confidence, rules.power) * se;
    let limit = rules.equivalence_limit();
    if detectable <= limit - rules.tau || se <= test.se {
        return None;
    }
    let estimate = Estimate { mean: ln_ratio, se, df: test.df };
    let holds = match verdict {
        Verdict::Slower | Verdict::Faster => estimate.p_beyond(rules.tau) <= rules.q,
        Verdict::SlowerSmall | Verdict::FasterSmall => estimate.p_beyond(0.0) <= rules.q,
        Verdict::Same => estimate.p_within(limit) <= rules.equivalence_alpha,
        Verdict::Inconclusive => false,
        Verdict::NoVerdict => true,
    };
    (!holds).then(|| -(-(rules.tau + detectable)).exp_m1())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::verdict::judge_differences;
    use crate::domain::benchmark::{Idle, Placement};
    use crate::domain::build::Dbms;
    use crate::domain::gate::{BlockRecord, GATE_FORMAT, SlotEffect, StepNoise};
    use crate::domain::metric::Metric;

    /// Twenty steps of thirteen blocks with the same noise.
    fn calibration(sd_ln: f64) -> Calibration {
        let step = |index: usize| StepNoise {
            step: format!("step-{index}"),
            differences: vec![0.0; 13],
            mean_ln: 0.0,
            sd_ln,
            p: 0.5,
        };
        Calibration {
            format: GATE_FORMAT,
            host_fingerprint: "0123456789ab".to_owned(),
            made: "2026-01-01T00:00:00Z".to_owned(),
            rqps_version: "0.1.0".to_owned(),
            target: "sqlite".to_owned(),
            dbms: Dbms::Sqlite,
            clients: 1,
            placement: Placement::Together,
            idle: Idle::Awake,
            read_seconds: 10.0,
            write_seconds: 10.0,
            blocks: 13,
            steps: (0..20).map(step).collect(),
            slot: SlotEffect::default(),
            canary_pairs: Vec::new(),
            out_of_range: 0,
        }
    }

    fn judged(gate: HostGate, shift: f64) -> Judgement {
        let pairs: Vec<f64> = [0.002, -0.002, 0.001, -0.001].iter().map(|d| d + shift).collect();
        let lists = [pairs.as_slice(); 5];
        let rules = Rules::default();
        let mut judgement = judge_differences(&lists, Metric::Rate, &rules, None).remove(0);
        let found = findings(&BTreeMap::from([("set".to_owned(), gate)]));
        found.apply(&mut judgement, shift, 4, &rules, true);
        judgement
    }

    fn calibrated(change: impl FnOnce(&mut Calibration), sd_ln: f64) -> HostGate {
        let mut calibration = calibration(sd_ln);
        change(&mut calibration);
        HostGate { calibration: Some(calibration), ..HostGate::default() }
    }

    #[test]
    fn a_quiet_host_changes_nothing() {
        assert_eq!(judged(HostGate::default(), 0.0).verdict, Verdict::Same);
        assert_eq!(judged(calibrated(|_| {}, 0.002), 0.0).verdict, Verdict::Same);
        assert_eq!(judged(calibrated(|_| {}, 0.002), -0.05).verdict, Verdict::Slower);
    }

    #[test]
    fn a_noisy_host_carries_large_differences_only() {
        let noisy = || calibrated(|_| {}, 0.03);
        let same = judged(noisy(), 0.0);
        assert_eq!(same.verdict, Verdict::NoVerdict);
        assert!(same.reasons[0].contains("A/A noise"), "{:?}", same.reasons);
        assert_eq!(judged(noisy(), -0.03).verdict, Verdict::NoVerdict);
        assert_eq!(judged(noisy(), -0.3).verdict, Verdict::Slower);
    }

    #[test]
    fn a_broken_design_and_too_many_discards_carry_nothing() {
        let slot = calibrated(|c| c.slot = SlotEffect { mean_ln: 0.02, p: Some(0.001) }, 0.002);
        let judgement = judged(slot, -0.3);
        assert_eq!(judgement.verdict, Verdict::NoVerdict);
        assert!(judgement.reasons[0].contains("2.0 %"), "{:?}", judgement.reasons);
        // Of 20 steps chance has up to 4 alarms in 99 of 100 hosts.
        let alarms = |n: usize| {
            calibrated(move |c| c.steps[..n].iter_mut().for_each(|step| step.p = 0.01), 0.002)
        };
        assert_eq!(judged(alarms(4), -0.3).verdict, Verdict::Slower);
        assert_eq!(judged(alarms(5), -0.3).verdict, Verdict::NoVerdict);
        let out = BlockRecord { out_of_range: Some("spin".to_owned()), ..BlockRecord::default() };
        let gate = HostGate { blocks: vec![out, BlockRecord::default()], ..HostGate::default() };
        let judgement = judged(gate, -0.3);
        assert_eq!(judgement.verdict, Verdict::NoVerdict);
        assert!(judgement.reasons[0].contains("1 of 2 blocks"), "{:?}", judgement.reasons);
    }

    #[test]
    fn the_noise_is_taken_at_its_upper_limit() {
        // 240 degrees of freedom: χ² .10 quantile 212.386 (SciPy 1.17), factor 1.0630.
        let upper = upper_noise(&calibration(0.01)).unwrap();
        assert!((upper / 0.01 - (240.0_f64 / 212.386).sqrt()).abs() < 1e-5, "{upper}");
    }
}
