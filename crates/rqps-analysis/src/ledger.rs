//! What another sitting of such a host would find: the interval of one sitting, widened by what the
//! ledger knows of the scatter between sittings.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::comparison::{Comparison, StepComparison};
use crate::verdict::Kind;
use rqps_model::build::Dbms;
use rqps_model::gate::{SittingScatter, parse_ledger};
use rqps_model::metric::Metric;
use rqps_stats::moderated::Spread;
use rqps_stats::summary::mean;
use rqps_stats::{Interval, student};

/// The ledger that rqps ships. A unit test reads it.
static SHIPPED: LazyLock<Vec<SittingScatter>> =
    LazyLock::new(|| parse_ledger(include_str!("ledger.csv")).unwrap_or_default());

/// The DBMS of a target and its baseline, if it is one.
fn dbms_of(comparison: &Comparison, target: usize) -> Option<Dbms> {
    let dbms = |place: usize| Some(comparison.targets[place].target.as_ref()?.dbms);
    dbms(target).filter(|_| dbms(target) == dbms(0))
}

/// The class of the only host.
fn host_of(comparison: &Comparison) -> Option<String> {
    let mut classes = comparison.hosts.values().map(|host| host.class());
    classes.next().filter(|_| comparison.hosts.len() == 1)
}

/// The scatter between sittings: of this class of hosts where it is known, else of all.
fn known(comparison: &Comparison, dbms: Dbms, kind: Kind) -> Option<Spread> {
    let own = comparison.gates.values().flat_map(|gate| &gate.ledger);
    let all = SHIPPED.iter().chain(own);
    let lines: Vec<&SittingScatter> = all
        .filter(|line| line.dbms == dbms && line.kind == kind.name() && line.is_possible())
        .collect();
    let host = host_of(comparison);
    let here: Vec<&SittingScatter> =
        lines.iter().filter(|line| Some(&line.host) == host.as_ref()).copied().collect();
    let lines = if here.is_empty() { lines } else { here };
    let df: f64 = lines.iter().map(|line| line.df).sum();
    let squares: f64 = lines.iter().map(|line| line.df * line.sd.powi(2)).sum();
    (df > 0.0).then(|| Spread { sd: (squares / df).sqrt(), df })
}

/// Adds to each rate of a single sitting the interval of what another one would find.
///
/// This sitting and the other are both off by what the ledger knows, so the variance is
/// se² + 2 σ², on Satterthwaite's degrees of freedom.
pub(super) fn widen(comparison: &mut Comparison) {
    let first = comparison.runs.first().map(|run| run.session.clone());
    if comparison.runs.iter().any(|run| Some(&run.session) != first.as_ref()) {
        return;
    }
    let mut spreads = BTreeMap::new();
    for target in 1..comparison.targets.len() {
        let Some(dbms) = dbms_of(comparison, target) else { continue };
        for kind in [Kind::Reads, Kind::Writes, Kind::Loads] {
            spreads.extend(known(comparison, dbms, kind).map(|it| ((target, kind), it)));
        }
    }
    let confidence = comparison.rules.confidence;
    for step in &mut comparison.steps {
        let Some(kind) = Kind::of(step) else { continue };
        for (place, target) in step.targets.iter_mut().enumerate().skip(1) {
            let Some(between) = spreads.get(&(place, kind)) else { continue };
            let rate = target.metrics.get_mut(&Metric::Rate).and_then(|it| it.relative.as_mut());
            let Some(relative) = rate else { continue };
            let centre = relative.ratio.ln();
            let test = relative.judgement.as_mut().and_then(|judgement| judgement.test.as_mut());
            let Some(test) = test else { continue };
            let (own, other) = (test.se.powi(2), 2.0 * between.sd.powi(2));
            let df = (own + other).powi(2) / (own.powi(2) / test.df + other.powi(2) / between.df);
            let half = student::quantile(0.5 + confidence / 2.0, df) * (own + other).sqrt();
            let all = Interval { low: centre - half, high: centre + half }.exp();
            // What the host or layout adds to this sitting, it adds to the next.
            let this = test.interval;
            test.another_sitting =
                Some(Interval { low: all.low.min(this.low), high: all.high.max(this.high) });
        }
    }
}

/// The scatter between the sittings of one plan, a line for each DBMS and kind of step. Steps share
/// their sittings, so a line has as many degrees of freedom as one step. The same results give the
/// same lines.
pub fn measured(comparison: &Comparison) -> Vec<SittingScatter> {
    let (Some(host), Some(first)) = (host_of(comparison), comparison.runs.first()) else {
        return Vec::new();
    };
    let origin = format!("plan {} of {}", first.plan_hash, first.started);
    let mut found: BTreeMap<(Dbms, Kind), (Vec<f64>, usize)> = BTreeMap::new();
    for step in &comparison.steps {
        for target in 1..comparison.targets.len() {
            let (Some(kind), Some(dbms)) = (Kind::of(step), dbms_of(comparison, target)) else {
                continue;
            };
            let Some((variance, sittings)) = between(step, target) else { continue };
            let (variances, fewest) = found.entry((dbms, kind)).or_insert((Vec::new(), sittings));
            variances.push(variance);
            *fewest = sittings.min(*fewest);
        }
    }
    let line =
        |((dbms, kind), (variances, sittings)): ((Dbms, Kind), (Vec<f64>, usize))| SittingScatter {
            dbms,
            kind: kind.name().to_owned(),
            host: host.clone(),
            sd: mean(&variances).max(0.0).sqrt(),
            df: (sittings - 1) as f64,
            origin: format!("{sittings} sittings; steps: {}; {origin}", variances.len()),
        };
    found.into_iter().map(line).collect()
}

/// The moment estimate of the variance between the sittings of a step, which may be below 0, so that
/// the mean over steps is not biased; and their number.
fn between(step: &StepComparison, target: usize) -> Option<(f64, usize)> {
    let sessions = step.targets[target].relative(Metric::Rate)?.sessions.as_ref()?;
    let means: Vec<f64> = sessions.sessions.iter().map(|it| it.ratio.ln()).collect();
    let centre = mean(&means);
    let squares: f64 = means.iter().map(|it| (it - centre).powi(2)).sum();
    let pairs: Vec<f64> = sessions.sessions.iter().map(|it| 1.0 / it.pairs as f64).collect();
    let within = sessions.within_sd?.powi(2) * mean(&pairs);
    Some((squares / (means.len() - 1) as f64 - within, means.len()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_shipped_ledger_can_be_read() {
        let lines = rqps_model::gate::parse_ledger(include_str!("ledger.csv")).unwrap();
        assert!(lines.iter().all(|line| !line.origin.is_empty()));
    }
}
