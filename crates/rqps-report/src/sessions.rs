//! Results of each session: ratios of several result sets side by side, and their heterogeneity.

use super::document::{Block, Cell, Column, Digits, Section, Table};
use super::verdicts;
use rqps_analysis::Comparison;
use rqps_model::metric::Metric;
use rqps_model::verdict::Rules;
use rqps_stats::moderated::SD_MIN;
use rqps_stats::power::{self, Aim};
use rqps_stats::summary::stddev;

/// A table for each target; `None` for a single session.
pub(super) fn section(comparison: &Comparison) -> Option<Section> {
    let targets = comparison.targets.iter().enumerate().skip(1);
    let tables: Vec<Table> =
        targets.filter_map(|(place, facts)| table(comparison, place, &facts.label)).collect();
    if tables.is_empty() {
        return None;
    }
    let about = "Each result set is a session: one series of blocks on one host with its own \
                 loads. Where several hosts measured blocks of one plan, or one host in several \
                 sittings, each host or sitting is a session. rqps pools rQPS over sessions with a \
                 random effect (REML); the interval is the Hartung-Knapp-Sidik-Jonkman interval. \
                 between sd is the standard deviation between sessions beyond the scatter of their \
                 pairs, within sd that of the pairs of one session; needed is the number of \
                 sessions that find a difference of delta in this step.";
    let mut blocks = vec![Block::Paragraph(about.to_owned()), Block::List(legend(comparison))];
    blocks.extend(tables.into_iter().map(Block::Table));
    Some(Section { id: "sessions", heading: "Sessions".to_owned(), blocks })
}

/// The sessions in the order of their runs.
fn names(comparison: &Comparison) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for run in &comparison.runs {
        if !names.contains(&run.session.as_str()) {
            names.push(&run.session);
        }
    }
    names
}

/// `session-1: results/monday, host c2r24 (7883fa9e240c), 2026-11-22T12:00:00Z`.
fn legend(comparison: &Comparison) -> Vec<String> {
    let line = |(place, name): (usize, &str)| {
        let run = comparison.runs.iter().find(|run| run.session == name)?;
        let fingerprint = &run.host_fingerprint;
        let class = comparison.hosts.get(fingerprint).map(|host| host.class());
        let class = class.unwrap_or_else(|| "unknown".to_owned());
        let started = &run.started;
        Some(format!("session-{}: {name}, host {class} ({fingerprint}), {started}", place + 1))
    };
    names(comparison).into_iter().enumerate().filter_map(line).collect()
}

fn table(comparison: &Comparison, target: usize, label: &str) -> Option<Table> {
    let names = names(comparison);
    let mut rows = Vec::new();
    for step in &comparison.steps {
        let Some(relative) = step.targets[target].relative(Metric::Rate) else { continue };
        let Some(sessions) = &relative.sessions else { continue };
        let mut row = vec![
            verdicts::ratio(relative),
            Cell::number(100.0 * sessions.between_sd, Digits::Fixed(2), "%"),
            match sessions.within_sd {
                Some(sd) => Cell::number(100.0 * sd, Digits::Fixed(2), "%"),
                None => Cell::missing("each session has one pair"),
            },
            match needed(&sessions.values, &comparison.rules) {
                Some(needed) => Cell::number(f64::from(needed), Digits::Fixed(0), "sessions"),
                None => Cell::missing("no number of sessions that could be measured"),
            },
        ];
        row.extend(names.iter().map(|name| {
            match sessions.sessions.iter().find(|session| session.session == *name) {
                Some(own) => {
                    Cell::number(own.ratio, Digits::Fixed(3), "ratio").within(own.interval)
                }
                None => Cell::missing("no pair of this step in this session"),
            }
        }));
        row.push(Cell::text(step.name.clone()));
        rows.push(row);
    }
    let mut columns = vec![
        Column::numbers("rQPS"),
        Column::numbers("between sd %"),
        Column::numbers("within sd %"),
        Column::numbers("needed"),
    ];
    columns.extend((1..=names.len()).map(|place| Column::numbers(format!("session-{place}"))));
    columns.push(Column::words("step"));
    let caption = format!("{label}: rQPS by session");
    (!rows.is_empty()).then_some(Table { caption, columns, rows })
}

/// Sessions that find a difference of δ, by the scatter of these.
fn needed(values: &[f64], rules: &Rules) -> Option<u32> {
    let sd = stddev(values).filter(|sd| *sd >= SD_MIN)?;
    let (alpha, effect) = (1.0 - rules.confidence, rules.equivalence_limit());
    power::pairs_needed(&Aim { sd, df_lent: 0.0, effect, alpha, power: rules.power })
}
