//! Possible causes of differences between targets: for each step that differs, first the cheap
//! causes, then the counted or sampled functions. Shared by text, HTML and Markdown.

use std::collections::BTreeMap;

use super::document::{Block, Cell, Column, Digits, Fold, Section, Table};
use super::{counted, stacks, verdicts};
use rqps_analysis::Comparison;
use rqps_analysis::causes::{Causes, MovedCounter, SettingsOfTarget, normalize};
use rqps_analysis::comparison::{StepComparison, TargetResult};
use rqps_model::metric::Metric;
use rqps_model::row_digest::StepAnswers;

/// Counters that are listed at most.
const COUNTERS_MOST: usize = 15;
/// Blocks or rows per operation that differ by this factor are other work.
const OTHER_WORK_LEAST: f64 = 1.5;
/// Counters that tell of it at most.
const OTHER_WORK_MOST: usize = 6;
/// Statements whose plans are shown with their work.
const ANALYZED_MOST: usize = 3;
/// Settings of a single target that are named at most; JSON has all.
const UNKNOWN_MOST: usize = 12;
/// Settings that a step names at most; a section has all of them.
const SETTINGS_MOST: usize = 8;

/// The page about the explained steps of a comparison.
pub(super) fn sections(comparison: &Comparison) -> Vec<Section> {
    let mut sections: Vec<Section> = server_settings(comparison).into_iter().collect();
    sections.extend(
        explained(comparison)
            .map(|step| Section::new("step", step.name.clone(), of_step(comparison, step))),
    );
    sections.push(limits());
    sections
}

/// The causes in a report: a fold per explained step.
pub(super) fn section(comparison: &Comparison) -> Option<Section> {
    let fold = |step: &StepComparison| Block::fold(step.name.clone(), of_step(comparison, step));
    let blocks: Vec<Block> = explained(comparison).map(fold).collect();
    let heading = "What may explain the differences".to_owned();
    (!blocks.is_empty()).then_some(Section::new("explained", heading, blocks))
}

fn explained(comparison: &Comparison) -> impl Iterator<Item = &StepComparison> {
    let causes = comparison.causes.as_deref();
    comparison
        .measured_steps()
        .filter(move |step| causes.is_some_and(|it| it.of_step(&step.name).is_some()))
}

/// The settings reported by the servers that differ; `None` if they are unknown.
pub(super) fn server_settings(comparison: &Comparison) -> Option<Section> {
    let causes = comparison.causes.as_ref()?;
    let labels: Vec<&str> = comparison.targets.iter().map(|it| it.label.as_str()).collect();
    let differing: Vec<BTreeMap<String, String>> =
        causes.settings.iter().map(|all| all.differing.clone()).collect();
    let mut blocks = vec![match differing_settings(&labels, &differing) {
        _ if causes.settings.is_empty() => {
            Block::text("The run folders do not hold the settings of all servers.")
        }
        Some(table) => Block::Table(table),
        None => Block::text("Settings that all targets have are the same."),
    }];
    for (label, SettingsOfTarget { unknown_elsewhere: own, .. }) in
        labels.iter().zip(&causes.settings)
    {
        if !own.is_empty() {
            let first = own[..own.len().min(UNKNOWN_MOST)].join(", ");
            let more = match own.len().saturating_sub(UNKNOWN_MOST) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let text = format!(
                "{} settings of {label} are unknown to another target: {first}{more}.",
                own.len(),
            );
            blocks.push(Block::Paragraph(text));
        }
    }
    Some(Section::new("server-settings", "Settings of the servers", blocks))
}

/// Facts about the explained step.
pub(super) fn of_step(comparison: &Comparison, step: &StepComparison) -> Vec<Block> {
    let Some(causes) = comparison.causes.as_deref() else { return Vec::new() };
    let Some(of_step) = causes.of_step(&step.name) else { return Vec::new() };
    let mut blocks = other_work(&step.targets, &of_step.counters);
    let rates = step.targets.iter().skip(1).filter_map(|target| rate(comparison, target));
    let rates: Vec<String> = rates.collect();
    blocks.extend((!rates.is_empty()).then_some(Block::List(rates)));
    blocks.extend(setting_names(causes, &step.name));
    blocks.extend(plans(step));
    for (target, moved) in step.targets.iter().zip(&of_step.counters).skip(1) {
        blocks.extend(counters(&target.label, moved));
    }
    let counted = comparison.counted_step(step);
    if let Some(counted) = counted {
        let functions = counted.targets.iter().skip(1);
        blocks.extend(functions.flat_map(|target| instructions(counted, target)));
    }
    let profiled = comparison.profiled_step(step);
    let profiled = profiled.map(|step| step.targets.as_slice()).unwrap_or_default();
    for target in profiled {
        blocks.extend(stacks::functions_of_target(target));
        blocks.extend(stacks::waits_of_target(target, &comparison.rules));
        blocks
            .extend(stacks::of_target(&comparison.baseline, &step.name, target).map(Block::Flame));
    }
    let samples = stacks::honesty(comparison, profiled) + &stacks::waits_honesty(profiled);
    blocks.push(Block::Paragraph(honesty(counted, &samples) + &without_cpu_events(step)));
    blocks
}

/// `2 settings of the servers differ: a, b.`
fn setting_names(causes: &Causes, step: &str) -> Option<Block> {
    let names: Vec<&str> = causes.settings.first()?.differing.keys().map(String::as_str).collect();
    let more = match names.len().saturating_sub(SETTINGS_MOST) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let first = names[..names.len().min(SETTINGS_MOST)].join(", ");
    let measured = format!("`rqps gap A B --step {step}` measures what that is worth");
    Some(Block::Paragraph(match names.len() {
        0 => "The servers have the same settings.".to_owned(),
        1 => format!("1 setting of the servers differs: {first}. {measured}."),
        count => format!("{count} settings of the servers differ: {first}{more}. {measured}."),
    }))
}

/// The reason why the CPU's counters were not read, in a sentence; empty if they were, and for runs
/// that do not know of them.
fn without_cpu_events(step: &StepComparison) -> String {
    let samples = step.targets.iter().flat_map(|target| &target.samples);
    let records: Vec<_> = samples.map(|sample| &sample.record).collect();
    if records.iter().any(|record| record.usage.client_events.is_some()) {
        return String::new();
    }
    let why = records.iter().find_map(|record| record.usage.missing.get("cpu_events"));
    why.map_or_else(String::new, |why| {
        format!(" Instructions and cycles at full speed are not known: {why}.")
    })
}

/// The limits of the numbers about a step, in a line.
fn honesty(counted: Option<&StepComparison>, samples: &str) -> String {
    let is_counted =
        counted.is_some_and(|step| step.targets.iter().any(|target| target.counted.is_some()));
    let instructions = if is_counted {
        "Counted instructions are those of user space for one client, without the kernel, \
             waiting and caches."
    } else {
        "Its instructions were not counted (`--count`)."
    };
    format!(
        "What differs together with a rate may be its cause; nothing here proves it. \
         {instructions} {}",
        match samples {
            "" => "Where time goes was not sampled (`--profile`).",
            said => said,
        }
    )
}

/// `B: o/s x0.930 [0.920, 0.941] SLOWER; server_cpu_us/o x1.09 [1.07, 1.11]`.
fn rate(comparison: &Comparison, target: &TargetResult) -> Option<String> {
    let relative = target.relative(Metric::Rate)?;
    let judgement = relative.judgement.as_ref()?;
    let ratio = verdicts::ratio(relative).plain();
    let head = format!(
        "{}: {} times the rate of {}: {}",
        target.label,
        ratio,
        comparison.baseline,
        judgement.verdict.name()
    );
    let costs = verdicts::explained(&target.explanations, &judgement.reasons);
    Some(if costs.is_empty() { head } else { format!("{head}; {costs}") })
}

fn plans(step: &StepComparison) -> Vec<Block> {
    let folds = settings_of_step(step);
    let is_kept = |target: &TargetResult| {
        target.samples.first().is_some_and(|sample| !sample.record.outcome.plans.is_empty())
    };
    if folds.is_empty() {
        let text = if step.targets.iter().all(is_kept) {
            "The query plans have the same shape."
        } else {
            "The query plans of all targets are not known."
        };
        return vec![Block::text(text)];
    }
    let head = Block::text("Query plans differ in shape:");
    [head].into_iter().chain(folds.into_iter().map(Block::Fold)).collect()
}

/// True for a counter of blocks or rows that statements looked at.
fn is_work(counter: &str) -> bool {
    const BLOCKS_AND_ROWS: [&str; 15] = [
        "blks_hit", "blks_read", "tup_returned", "tup_fetched", "tup_read", "tup_fetch",
        "idx_scan", "handler_read_", "rows_read", "rows_tmp_read", "pool_read_requests",
        "pages_read", "fullscan_step", "vm_step", "autoindex",
    ];
    let name = counter.to_lowercase();
    BLOCKS_AND_ROWS.iter().any(|part| name.contains(part))
}

/// For each target whose plans are those of the baseline, the blocks and rows per operation that
/// are not: one plan can do other work, as an index scan does that learnt to skip.
fn other_work(targets: &[TargetResult], counters: &[Vec<MovedCounter>]) -> Vec<Block> {
    let plans = |target: &TargetResult| -> Option<BTreeMap<String, String>> {
        let records = target.samples.iter().map(|sample| &sample.record.outcome.plans);
        let first = records.into_iter().find(|plans| !plans.is_empty())?;
        Some(first.iter().map(|(kind, plan)| (kind.clone(), normalize(plan))).collect())
    };
    let Some(baseline) = targets.first().and_then(plans) else { return Vec::new() };
    let mut blocks = Vec::new();
    for (place, target) in targets.iter().enumerate().skip(1) {
        let mut moved = counters.get(place).cloned().unwrap_or_default();
        moved.extend(worked(&targets[0], target));
        let far = |it: &&MovedCounter| {
            let (small, large) = (it.baseline.min(it.target), it.baseline.max(it.target));
            is_work(&it.name) && large >= 1.0 && large >= OTHER_WORK_LEAST * small
        };
        let number = |value: f64| Cell::number(value, Digits::Significant(4), "1/op").plain();
        let spell = |it: &MovedCounter| {
            format!("{} → {} {}", number(it.baseline), number(it.target), it.name)
        };
        let found: Vec<String> = moved.iter().filter(far).map(spell).collect();
        if !found.is_empty() && plans(target).as_ref() == Some(&baseline) {
            let analyzed = analyzed(&targets[0], target);
            let hint = if analyzed.is_empty() {
                "EXPLAIN ANALYZE of the statement on both servers shows where."
            } else {
                "The plans with their work, after the load:"
            };
            blocks.push(Block::Paragraph(format!(
                "{} does other work with the same plans. Per operation: {}. {hint}",
                target.label,
                found[..found.len().min(OTHER_WORK_MOST)].join(", "),
            )));
            blocks.extend(analyzed);
        }
    }
    blocks
}

/// What both counted of the first executions of their statements, means per statement.
fn worked(baseline: &TargetResult, target: &TargetResult) -> Vec<MovedCounter> {
    let works = |target: &TargetResult| -> Vec<BTreeMap<String, u64>> {
        let found = target.samples.iter().find_map(|sample| sample.record.answers.as_ref());
        let works = found.into_iter().flat_map(|found| &found.answers).map(|it| it.work.clone());
        works.filter(|work| !work.is_empty()).collect()
    };
    let (of_baseline, of_target) = (works(baseline), works(target));
    let pairs = of_baseline.len().min(of_target.len());
    let names = of_baseline.first().into_iter().flat_map(BTreeMap::keys);
    let mean = |works: &[BTreeMap<String, u64>], name: &String| {
        let counts = works.iter().take(pairs).filter_map(|work| work.get(name));
        counts.map(|count| *count as f64).sum::<f64>() / pairs as f64
    };
    names
        .filter(|_| pairs > 0)
        .map(|name| MovedCounter {
            name: name.clone(),
            baseline: mean(&of_baseline, name),
            target: mean(&of_target, name),
        })
        .collect()
}

/// The plans of both with the work that they did, of the first statements of which that differs.
fn analyzed(baseline: &TargetResult, target: &TargetResult) -> Vec<Block> {
    let answers = |target: &TargetResult| -> Vec<(String, String)> {
        let found = target.samples.iter().find_map(|sample| sample.record.answers.clone());
        let StepAnswers { answers, statements, .. } = found.unwrap_or_default();
        let named = answers.into_iter().filter_map(|answer| {
            Some((statements.get(answer.statement as usize)?.clone(), answer.plan?))
        });
        named.collect()
    };
    let (of_baseline, of_target) = (answers(baseline), answers(target));
    let pairs = of_baseline.iter().zip(&of_target);
    let differing = pairs.filter(|((sql, one), (same, other))| sql == same && one != other);
    let fold = |((sql, one), (_, other)): (&(String, String), &(String, String))| {
        let lines = |plan: &str| Block::Lines(plan.lines().map(str::to_owned).collect());
        let sides = [(baseline, one), (target, other)];
        Block::fold(
            sql.split_whitespace().collect::<Vec<&str>>().join(" "),
            sides
                .into_iter()
                .flat_map(|(of, plan)| [Block::Paragraph(of.label.clone()), lines(plan)])
                .collect(),
        )
    };
    differing.take(ANALYZED_MOST).map(fold).collect()
}

fn counters(label: &str, moved: &[MovedCounter]) -> Option<Block> {
    let number = |value: f64| Cell::number(value, Digits::Significant(4), "1/op");
    let row = |it: &MovedCounter| {
        let ratio = if it.baseline > 0.0 {
            Cell::number(it.target / it.baseline, Digits::Fixed(2), "ratio")
        } else {
            Cell::missing("the baseline has none")
        };
        vec![number(it.baseline), number(it.target), ratio, Cell::text(it.name.clone())]
    };
    let rows: Vec<Vec<Cell>> = moved.iter().take(COUNTERS_MOST).map(row).collect();
    let columns = vec![
        Column::numbers("baseline").with_legend("per operation"),
        Column::numbers("target").with_legend("per operation"),
        Column::numbers("ratio").with_legend("target / baseline"),
        Column::of_row("counter"),
    ];
    let left = moved.len().saturating_sub(COUNTERS_MOST);
    let more = if left > 0 { format!("; {left} more are not listed") } else { String::new() };
    let caption = format!("{label}: counters of the DBMS that differ in every pair{more}");
    (!rows.is_empty()).then_some(Block::table(caption, columns, rows))
}

fn instructions(step: &StepComparison, target: &TargetResult) -> Vec<Block> {
    let Some(counted) = &target.counted else { return Vec::new() };
    let Some(relative) = target.comparable(Metric::InstructionsPerOp) else { return Vec::new() };
    let ratio = Cell::number(relative.ratio, Digits::Fixed(4), "ratio").within(relative.interval);
    let text = format!(
        "{}: {} times the instructions per operation: {}",
        target.label,
        ratio.plain(),
        counted.change.word()
    );
    let functions = counted::of_target(step, target);
    [Block::Paragraph(text)].into_iter().chain(functions).collect()
}

/// The limits of these numbers.
fn limits() -> Section {
    let rules = [
        "What differs together with a rate may be its cause; nothing here proves that it is.",
        "Plans are compared without costs, estimates and literals, those of the first run of each \
         target. Settings that are paths or name a server are left out.",
        "Counters have no verdict: rqps lists those that differ in every pair in the same \
         direction, by 5 % or more. A counter that one of the targets never moved is left out: its \
         version may lack it. Counters that grow with time rather than with work differ where \
         rates do.",
        "Instructions are those of user space under valgrind. The kernel, waiting, caches and \
         branches are not in them.",
        "Samples of functions are of CPU time. An inlined function is part of its caller. \
         Differences up to 0.2 % of an operation are attributed to the layout of code.",
        "Waits are those of threads that serve clients, by system call; which lock or file it was \
         is not in them. Threads that wait for their client, for a next statement or for room to \
         send, do not count.",
    ];
    Section::new(
        "limits",
        "What this page does not show",
        vec![Block::List(rules.map(str::to_owned).to_vec())],
    )
}

// Differences between targets besides their builds: settings and query plans, side by side.

/// With more targets than this, the report lists values with their targets instead of columns.
const SIDE_BY_SIDE_MAX: usize = 5;

/// Settings with different values, then each target's configuration as its DBMS read it. `None` if
/// no target has a configuration text.
pub(crate) fn settings_section(comparison: &Comparison) -> Option<Section> {
    let texts: Vec<&str> = comparison
        .targets
        .iter()
        .map(|target| target.configs.first().map_or("", |config| config.text.as_str()))
        .collect();
    if texts.iter().all(|text| text.trim().is_empty()) {
        return None;
    }
    let labels: Vec<&str> = comparison.targets.iter().map(|target| target.label.as_str()).collect();
    let mut blocks = Vec::new();
    if labels.len() > 1 {
        blocks.push(match difference(&labels, &texts) {
            Some(table) => Block::Table(table),
            None => Block::text("The targets have the same settings."),
        });
    }
    for target in &comparison.targets {
        for config in &target.configs {
            let lines = config.text.lines().map(str::to_owned).collect();
            blocks.push(Block::fold(
                format!("{}: {} ({})", target.label, config.name, config.hash),
                vec![Block::Lines(lines)],
            ));
        }
    }
    Some(Section::new("settings", "Settings", blocks))
}

/// Setting → value for each target; only settings with different values.
fn difference(labels: &[&str], texts: &[&str]) -> Option<Table> {
    let parsed: Vec<BTreeMap<String, String>> = texts.iter().map(|text| settings(text)).collect();
    differing_settings(labels, &parsed)
}

/// The differences between settings given by name.
pub(super) fn differing_settings(
    labels: &[&str],
    parsed: &[BTreeMap<String, String>],
) -> Option<Table> {
    let mut names: Vec<&String> = parsed.iter().flat_map(BTreeMap::keys).collect();
    names.sort();
    names.dedup();
    let value = |target: &BTreeMap<String, String>, name: &str| {
        target.get(name).cloned().unwrap_or_else(|| "not set".to_owned())
    };
    let mut rows = Vec::new();
    for name in names {
        let values: Vec<String> = parsed.iter().map(|target| value(target, name)).collect();
        if values.iter().all(|value| *value == values[0]) {
            continue;
        }
        if labels.len() <= SIDE_BY_SIDE_MAX {
            rows.push([name.clone()].into_iter().chain(values).map(Cell::text).collect());
            continue;
        }
        let mut by_value: Vec<(&String, Vec<&str>)> = Vec::new();
        for (value, label) in values.iter().zip(labels) {
            match by_value.iter_mut().find(|(other, _)| *other == value) {
                Some((_, labels)) => labels.push(label),
                None => by_value.push((value, vec![label])),
            }
        }
        for (value, labels) in by_value {
            rows.push([name.clone(), value.clone(), labels.join(", ")].map(Cell::text).to_vec());
        }
    }
    let heads: Vec<&str> = if labels.len() <= SIDE_BY_SIDE_MAX {
        ["setting"].into_iter().chain(labels.iter().copied()).collect()
    } else {
        vec!["setting", "value", "targets"]
    };
    let columns = heads.into_iter().map(Column::words).collect();
    let caption = "Different settings".to_owned();
    (!rows.is_empty()).then_some(Table::new(caption, columns, rows))
}

/// Name → value of a configuration text: `name = value`, `name=value` or a bare name. Normalises
/// names (lower case, `_` for `-`), as the DBMSs do.
fn settings(text: &str) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';', '[']) || line.starts_with("--") {
            continue;
        }
        let (name, value) = line.split_once('=').unwrap_or((line, "on"));
        settings.insert(name.trim().to_lowercase().replace('-', "_"), value.trim().to_owned());
    }
    settings
}

/// Steps whose query plans differ from the baseline's, with the plans as the DBMS printed them.
/// `None` if no plan differs.
pub(crate) fn settings_plans(comparison: &Comparison) -> Option<Section> {
    let folds: Vec<Block> =
        comparison.measured_steps().flat_map(settings_of_step).map(Block::Fold).collect();
    let note = "rqps compares plans without costs, estimates and literals, and shows the plan of \
                each target's first run.";
    let mut blocks = vec![Block::text(note)];
    let some = !folds.is_empty();
    blocks.extend(folds);
    some.then(|| Section::new("plans", "Different query plans", blocks))
}

/// A plan without its figures, the original plan, and its targets.
type Variant<'a> = (String, &'a str, Vec<&'a str>);

/// A fold for each kind of statement with different plans.
fn settings_of_step(step: &StepComparison) -> Vec<Fold> {
    let mut kinds: BTreeMap<&str, Vec<Variant<'_>>> = BTreeMap::new();
    for target in &step.targets {
        let first = target.samples.first();
        for (kind, plan) in first.iter().flat_map(|sample| &sample.record.outcome.plans) {
            let variants = kinds.entry(kind).or_default();
            let normal = normalize(plan);
            match variants.iter_mut().find(|(other, _, _)| *other == normal) {
                Some((_, _, labels)) => labels.push(&target.label),
                None => variants.push((normal, plan, vec![&target.label])),
            }
        }
    }
    let differing = kinds.into_iter().filter(|(_, variants)| variants.len() > 1);
    differing
        .map(|(kind, variants)| Fold {
            summary: format!("{}: {kind}", step.name),
            blocks: variants
                .into_iter()
                .flat_map(|(_, plan, labels)| {
                    let lines = plan.lines().map(|line| line.replace('\t', "  ")).collect();
                    [Block::Paragraph(labels.join(", ")), Block::Lines(lines)]
                })
                .collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use rqps_analysis::measurement::Measurement;
    use rqps_model::benchmark::{Group, RateUnit};
    use rqps_model::row_digest::RowsRecord;
    use rqps_model::row_digest::{AnswerReply, StatementAnswer};
    use rqps_model::run::StepRecord;

    #[test]
    fn other_work_with_the_same_plan_is_said_first() {
        let target = |label: &str, plan: &str| {
            let mut record = StepRecord::empty(1, "range", Group::Range, RateUnit::Queries);
            record.outcome.plans.insert("statement 1".to_owned(), plan.to_owned());
            let samples = vec![Measurement::of(Arc::new(record))];
            TargetResult { samples, ..TargetResult::none(label) }
        };
        let moved =
            |name: &str, baseline, target| MovedCounter { name: name.to_owned(), baseline, target };
        let blocks = "pg_statio_user_tables.idx_blks_hit";
        let counters = [moved(blocks, 4714.0, 30.0), moved("pg_stat_wal.wal_bytes", 1.0, 9.0)];
        let check = |plan: &str, counters: &[MovedCounter], want: &[&str]| {
            let targets = [target("A", "Index Scan using i1 on t"), target("B", plan)];
            let said = other_work(&targets, &[Vec::new(), counters.to_vec()]);
            let said: Vec<String> = said
                .into_iter()
                .map(|block| match block {
                    Block::Paragraph(text) => text,
                    other => panic!("{other:?}"),
                })
                .collect();
            assert_eq!(said.len(), want.len(), "{said:?}");
            said.iter()
                .zip(want)
                .for_each(|(said, want)| assert!(said.starts_with(want), "{said}"));
        };
        let want =
            format!("B does other work with the same plans. Per operation: 4714 → 30 {blocks}.");
        check("Index Scan using i1 on t", &counters, &[&want]);
        check("Index Scan using i2 on t", &counters, &[]);
        check("Index Scan using i1 on t", &counters[1..], &[]);
        check("Index Scan using i1 on t", &[moved(blocks, 10.0, 14.0)], &[]);
    }

    #[test]
    fn other_work_is_shown_where_both_sides_explained_it() {
        let target = |label: &str, plan: Option<&str>| {
            let mut record = StepRecord::empty(1, "range", Group::Range, RateUnit::Queries);
            let (rows, warnings) = (RowsRecord::default(), Vec::new());
            let reply = AnswerReply::Rows { rows, repeats: None, order: None, warnings };
            let plan = plan.map(str::to_owned);
            let answer = StatementAnswer { plan, ..StatementAnswer::from(reply) };
            let (answers, statements) = (vec![answer], vec!["SELECT\n 1".to_owned()]);
            record.answers = Some(StepAnswers { answers, statements, note: None });
            let samples = vec![Measurement::of(Arc::new(record))];
            TargetResult { samples, ..TargetResult::none(label) }
        };
        let scanned = |label: &str, rows: u64| {
            let mut target = target(label, None);
            let mut record = StepRecord::clone(&target.samples[0].record);
            let answers = &mut record.answers.as_mut().unwrap().answers;
            answers[0].work.insert("fullscan_step".to_owned(), rows);
            record.outcome.plans.insert("statement 1".to_owned(), "SCAN t".to_owned());
            target.samples = vec![Measurement::of(Arc::new(record))];
            target
        };
        let said = other_work(&[scanned("A", 99), scanned("B", 9)], &[]);
        let [Block::Paragraph(said)] = &said[..] else { panic!("{said:?}") };
        assert!(said.contains("Per operation: 99 → 9 fullscan_step."), "{said}");
        // Counts of somebody's folder have no sum in 64 bits.
        let mut most = scanned("A", u64::MAX);
        let record = &mut StepRecord::clone(&most.samples[0].record);
        let answers = &mut record.answers.as_mut().unwrap().answers;
        answers.push(answers[0].clone());
        most.samples = vec![Measurement::of(Arc::new(record.clone()))];
        assert_eq!(other_work(&[most.clone(), most], &[]).len(), 0);
        let (one, other) = ("Scan\n  Buffers: shared hit=9", "Scan\n  Buffers: shared hit=2");
        let shown = analyzed(&target("A", Some(one)), &target("B", Some(other)));
        let [Block::Fold(fold)] = &shown[..] else { panic!("{shown:?}") };
        let lines = |plan: &str| Block::Lines(plan.lines().map(str::to_owned).collect());
        let label = |text: &str| Block::text(text);
        assert_eq!(fold.summary, "SELECT 1");
        assert_eq!(fold.blocks, [label("A"), lines(one), label("B"), lines(other)]);
        assert_eq!(analyzed(&target("A", Some(one)), &target("B", Some(one))), []);
        assert_eq!(analyzed(&target("A", Some(one)), &target("B", None)), []);
    }

    #[test]
    fn counters_have_their_ratio() {
        let moved = [("pages", 1.0, 2.5), ("syncs", 0.0, 0.25)].map(|(name, baseline, target)| {
            MovedCounter { name: name.to_owned(), baseline, target }
        });
        let Some(Block::Table(table)) = counters("B", &moved) else { panic!("no table") };
        let rows: Vec<Vec<String>> =
            table.rows.iter().map(|row| row.iter().map(Cell::plain).collect()).collect();
        assert_eq!(rows, [["1", "2.5", "2.50", "pages"], ["0", "0.25", "-", "syncs"]]);
        assert_eq!(counters("B", &[]), None);
    }

    fn check_difference(texts: &[&str], expected: &[&[&str]]) {
        let labels: Vec<String> = (0..texts.len()).map(|index| format!("t{index}")).collect();
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        let rows = difference(&labels, texts).map(|table| table.rows).unwrap_or_default();
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(Cell::plain).collect()).collect();
        assert_eq!(rows, expected);
    }

    #[test]
    fn only_what_differs_is_shown() {
        check_difference(
            &["[mysqld]\n# a\nskip-log-bin\nsize = 5\nsame=1", "same = 1\nsize=6\n"],
            &[&["size", "5", "6"], &["skip_log_bin", "on", "not set"]],
        );
        check_difference(&["a = 1", "A=1"], &[]);
    }

    #[test]
    fn many_targets_are_listed_by_value() {
        check_difference(
            &["a=1", "a=1", "a=2", "a=1", "a=1", "a=2"],
            &[&["a", "1", "t0, t1, t3, t4"], &["a", "2", "t2, t5"]],
        );
    }
}
