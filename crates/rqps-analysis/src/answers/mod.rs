//! Whether targets gave the same answers to the same statements, and hold the same data: where they
//! do not, a difference of their speed means nothing.

mod replies;

use std::collections::{BTreeSet, HashMap};

use replies::{Asked, begins_with_date, count, difference, is_uuid};

use super::comparison::{StepComparison, TargetResult};
use rqps_model::metric::Metric;
use rqps_model::row_digest::{ColumnDigest, StepAnswers, TableRecord};
use rqps_model::run::{Dataset, Run, Status, StepRecord};
use rqps_model::verdict::Rules;
use rqps_stats::paired::mean_interval;

/// What was found out about a target against the baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerFinding {
    /// What it means.
    pub weight: AnswerWeight,
    /// The target.
    pub target: String,
    /// The steps that it is about.
    pub steps: Vec<String>,
    /// The difference.
    pub text: String,
}

/// What a difference means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnswerWeight {
    /// Tables hold other rows.
    Data,
    /// A statement has another answer.
    Answer,
    /// A difference that says nothing against the target.
    Harmless,
    /// Nothing could be compared.
    Uncompared,
}

/// A difference and its weight.
#[derive(Debug, PartialEq)]
struct Told {
    weight: AnswerWeight,
    text: String,
}

impl Told {
    fn answer(text: String) -> Told {
        Told { weight: AnswerWeight::Answer, text }
    }

    fn harmless(text: impl Into<String>) -> Told {
        Told { weight: AnswerWeight::Harmless, text: text.into() }
    }

    fn uncompared(text: impl Into<String>) -> Told {
        Told { weight: AnswerWeight::Uncompared, text: text.into() }
    }
}

/// The same thing of the baseline and of a target, with the labels of both.
#[derive(Debug)]
pub(super) struct Sides<'a, T> {
    pub(super) base: &'a T,
    pub(super) target: &'a T,
    pub(super) labels: [&'a str; 2],
}

impl<'a, T> Sides<'a, T> {
    /// The same with a part of both.
    pub(super) fn with<U>(&self, base: &'a U, target: &'a U) -> Sides<'a, U> {
        Sides { base, target, labels: self.labels }
    }

    /// What `say` says of each, with the label.
    pub(super) fn told(&self, say: impl Fn(&str, &T) -> String) -> [String; 2] {
        [say(self.labels[0], self.base), say(self.labels[1], self.target)]
    }
}

// Compares answers and data of each target with those of the baseline.

/// Compares answers and data of each target with those of the baseline, and notes in the steps
/// which of them cannot be compared.
pub(crate) fn find(
    dataset: &Dataset,
    labels: &[String],
    rules: &Rules,
    steps: &mut [StepComparison],
) -> Vec<AnswerFinding> {
    let mut bases: HashMap<(&str, u32, u32), &Run> = HashMap::new();
    for run in dataset.runs.iter().filter(|run| run.record.key.label == labels[0]) {
        bases.insert(block_of(run), run);
    }
    let mut found: Vec<AnswerFinding> = Vec::new();
    for (place, label) in labels.iter().enumerate().skip(1) {
        let of_target = dataset.runs.iter().filter(|run| run.record.key.label == *label);
        let pairs: Vec<(&Run, &Run)> = of_target
            .filter_map(|run| Some((*bases.get(&block_of(run))?, run)))
            .filter(|(base, run)| are_alike(base, run))
            .collect();
        let mut of_target: Vec<AnswerFinding> = Vec::new();
        for finding in pairs.iter().flat_map(|(base, run)| of_pair(base, run)) {
            if !of_target.contains(&finding) {
                of_target.push(finding);
            }
        }
        of_target.extend(of_other_dbms(&bases, dataset, label));
        of_target.extend(of_windows(&pairs, &of_target, [&labels[0], label]));
        for finding in &of_target {
            note(
                finding,
                rules,
                steps.iter_mut().map(|step| (&step.name, &mut step.targets[place])),
            );
        }
        found.extend(of_target);
    }
    found.sort_by_key(|finding| finding.weight);
    found
}

/// Notes in the steps of a finding that they cannot be compared.
fn note<'a>(
    finding: &AnswerFinding,
    rules: &Rules,
    steps: impl Iterator<Item = (&'a String, &'a mut TargetResult)>,
) {
    let (voids, why) = match finding.weight {
        AnswerWeight::Data => (!rules.data_differ, "it reads data that differ from the baseline's"),
        AnswerWeight::Answer => (!rules.ignore_answers, "its answers differ from the baseline's"),
        AnswerWeight::Harmless | AnswerWeight::Uncompared => (false, ""),
    };
    for (_, step) in steps.filter(|(name, _)| voids && finding.steps.contains(name)) {
        let reasons = &mut step.not_comparable;
        if !reasons.iter().any(|known| known == why) {
            reasons.push(why.to_owned());
        }
    }
}

/// Result set, block and attempt of a run.
fn block_of(run: &Run) -> (&str, u32, u32) {
    (&run.result_set, run.record.key.block, run.record.key.attempt)
}

/// True if both are of one DBMS and had the same values.
fn are_alike(base: &Run, run: &Run) -> bool {
    base.record.target.dbms == run.record.target.dbms && base.record.seed == run.record.seed
}

/// Says that answers of two DBMSs are not compared, where there are some.
fn of_other_dbms(
    bases: &HashMap<(&str, u32, u32), &Run>,
    dataset: &Dataset,
    label: &str,
) -> Option<AnswerFinding> {
    let of_target = dataset.runs.iter().filter(|run| run.record.key.label == label);
    let has_some = |run: &Run| {
        !run.record.tables.is_empty() || run.steps.iter().any(|step| step.answers.is_some())
    };
    let mut pairs = of_target.filter_map(|run| Some((*bases.get(&block_of(run))?, run)));
    let (base, run) = pairs.find(|(base, run)| {
        base.record.target.dbms != run.record.target.dbms && (has_some(base) || has_some(run))
    })?;
    let [one, other] = [base, run].map(|run| run.record.target.dbms.name());
    Some(AnswerFinding {
        weight: AnswerWeight::Uncompared,
        target: label.to_owned(),
        steps: Vec::new(),
        text: format!("answers and data of {other} are not compared with those of {one}"),
    })
}

/// Differences over the windows, in steps of which nothing else is known.
fn of_windows(
    pairs: &[(&Run, &Run)],
    known: &[AnswerFinding],
    labels: [&str; 2],
) -> Vec<AnswerFinding> {
    let is_told = |name: &String| {
        let told = [AnswerWeight::Data, AnswerWeight::Answer];
        let mut grave = known.iter().filter(|finding| told.contains(&finding.weight));
        grave.any(|finding| finding.steps.contains(name))
    };
    let first = pairs.first().map_or(&[][..], |(base, _)| &base.steps);
    let new = first.iter().filter(|step| step.index > 0 && step.reported && !is_told(&step.name));
    new.filter_map(|step| {
        let Told { weight, text } = compare_windows(pairs, step.index, labels)?;
        let (target, steps) = (labels[1].to_owned(), vec![step.name.clone()]);
        Some(AnswerFinding { weight, target, steps, text })
    })
    .collect()
}

fn of_pair(base: &Run, run: &Run) -> Vec<AnswerFinding> {
    let dialect = run.record.target.dbms.dialect();
    let labels = [base.record.key.label.as_str(), run.record.key.label.as_str()];
    let runs = Sides { base, target: run, labels };
    let finding = |told: Told, steps: Vec<String>| AnswerFinding {
        weight: told.weight,
        target: labels[1].to_owned(),
        steps,
        text: told.text,
    };
    let mut found = Vec::new();
    let (mut of_other_data, mut of_own_values) = (BTreeSet::new(), BTreeSet::new());
    for (name, told) in compare_tables(&runs) {
        let reads = run
            .steps
            .iter()
            .filter(|step| step.answers.as_ref().is_none_or(|answers| names(answers, &name)));
        let steps: Vec<String> = reads.map(|step| step.name.clone()).collect();
        if told.weight == AnswerWeight::Data {
            of_other_data.extend(steps.iter().cloned());
        } else if told.weight == AnswerWeight::Harmless {
            of_own_values.extend(steps.iter().cloned());
        }
        found.push(finding(told, steps));
    }
    for step in run.steps.iter().filter(|step| !of_other_data.contains(&step.name)) {
        let same = base.steps.iter().find(|base| base.index == step.index);
        let pair = (same.and_then(|base| base.answers.as_ref()), step.answers.as_ref());
        if let (Some(one), Some(other)) = pair {
            let own_values = of_own_values.contains(&step.name);
            let asked = Asked { dialect, own_values, is_changed: false };
            let sides = runs.with(one, other);
            let mut told = replies::compare(&sides, &asked);
            if told.iter().all(|told| told.weight != AnswerWeight::Answer)
                && let Some((one, other)) = after(base, run, step.index)
            {
                let mut steps = base.steps.iter().chain(&run.steps);
                let is_changed = steps.any(|step| step.index > 0 && writes(step));
                let of_end = Asked { is_changed, ..asked };
                let after = replies::compare(&runs.with(one, other), &of_end).into_iter();
                told.extend(
                    after.filter(|told| told.weight == AnswerWeight::Answer).map(|told| Told {
                        text: format!("after the block: {}", told.text),
                        ..told
                    }),
                );
            }
            found.extend(told.into_iter().map(|told| finding(told, vec![step.name.clone()])));
        }
    }
    found
}

/// The answers of both to a step at the end of the block; `None` if both are those of its
/// beginning.
fn after<'a>(
    base: &'a Run,
    run: &'a Run,
    index: u32,
) -> Option<(&'a StepAnswers, &'a StepAnswers)> {
    let ends = [base, run].map(|run| run.record.answers_after.get(&index));
    let of = |run: &'a Run, end: Option<&'a StepAnswers>| {
        let step = run.steps.iter().find(|step| step.index == index)?;
        end.or(step.answers.as_ref())
    };
    ends.iter().any(Option::is_some).then_some(())?;
    Some((of(base, ends[0])?, of(run, ends[1])?))
}

/// True if a statement names a table, or nothing is known of the statements.
fn names(answers: &StepAnswers, table: &str) -> bool {
    let name = table.rsplit('.').next().unwrap_or(table).to_ascii_uppercase();
    let holds = |sql: &String| sql.to_ascii_uppercase().contains(&name);
    answers.statements.is_empty() || answers.statements.iter().any(holds)
}

// Compares what tables hold, and tells apart what each load makes for itself.

/// Tables that differ, by name.
fn compare_tables(runs: &Sides<'_, Run>) -> Vec<(String, Told)> {
    let (one, other) = (&runs.base.record.tables, &runs.target.record.tables);
    if one.is_empty() || other.is_empty() {
        return Vec::new();
    }
    let find =
        |list: &'_ [TableRecord], name: &str| list.iter().find(|table| table.name == name).cloned();
    let names: BTreeSet<&String> = one.iter().chain(other).map(|table| &table.name).collect();
    let mut found = Vec::new();
    for name in names {
        let told = match (find(one, name), find(other, name)) {
            (Some(one), Some(other)) => table(&runs.with(&one, &other)),
            (one, _) => {
                let there = runs.labels[usize::from(one.is_none())];
                let text = format!("table {name} is only on {there}");
                Some(Told { weight: AnswerWeight::Data, text })
            }
        };
        found.extend(told.map(|told| (name.clone(), told)));
    }
    found
}

fn table(tables: &Sides<'_, TableRecord>) -> Option<Told> {
    let (one, other) = (tables.base, tables.target);
    let name = &one.name;
    let data = |text: String| {
        Some(Told { weight: AnswerWeight::Data, text: format!("table {name}: {text}") })
    };
    match (&one.content, &other.content) {
        (Some(one), Some(other)) if one.any_order == other.any_order => None,
        (Some(one), Some(other)) if one.rows != other.rows => {
            data(difference(&tables.with(one, other)))
        }
        (Some(one), Some(other)) => {
            let rows = tables.with(one, other);
            let pairs = one.columns.iter().zip(&other.columns);
            let differing: Vec<(&ColumnDigest, &ColumnDigest)> =
                pairs.filter(|(one, other)| one.any_order != other.any_order).collect();
            let whys: Vec<Option<&str>> =
                differing.iter().map(|(a, b)| harmless_column(a, b, one.rows)).collect();
            let named: Vec<&str> = differing.iter().map(|(it, _)| it.name.as_str()).collect();
            let named = match named.as_slice() {
                [one] => format!("column {one} differs"),
                many => format!("columns {} differ", many.join(", ")),
            };
            match (whys.iter().any(Option::is_none), whys.first().copied().flatten()) {
                (false, Some(why)) => Some(Told::harmless(format!("table {name}: {named}: {why}"))),
                _ if differing.is_empty() => data(difference(&rows)),
                _ => data(format!("{named}: {}", difference(&rows))),
            }
        }
        _ => match (one.rows, other.rows) {
            (Some(first), Some(second)) if first != second => {
                let [a, b] = tables.labels;
                data(format!("{} on {a}, {second} on {b}", count(first)))
            }
            _ => {
                let note = one.note.as_ref().or(other.note.as_ref())?;
                Some(Told::uncompared(format!("table {name}: {note}")))
            }
        },
    }
}

/// Why values of a column differ on any two servers; `None` if they should not.
fn harmless_column(one: &ColumnDigest, other: &ColumnDigest, rows: u64) -> Option<&'static str> {
    if one.floats.count == rows && one.floats.is_near(&other.floats) {
        return Some("numbers differ in their last digits");
    }
    let edges = [&one.least, &one.greatest, &other.least, &other.greatest];
    let edges: Vec<&str> = edges.into_iter().filter_map(|edge| edge.as_deref()).collect();
    let all = |test: fn(&str) -> bool| edges.len() == 4 && edges.iter().all(|edge| test(edge));
    // The time of a load is that of a day.
    let is_of_load = |column: &ColumnDigest| {
        let day =
            |edge: &Option<String>| edge.as_deref().and_then(|it| it.get(..10).map(str::to_owned));
        day(&column.least) == day(&column.greatest)
    };
    if all(begins_with_date) && is_of_load(one) && is_of_load(other) {
        return Some("it holds the time of the load");
    }
    all(is_uuid).then_some("it holds random identifiers")
}

// Rows per statement over the windows of a step that only reads: the first answers may be the
// same, and later ones not.

/// Difference of the rows per statement that counts.
const COUNTS: f64 = 0.01;

/// Fewest blocks by which a difference can be told from the luck of the draw.
const BLOCKS: usize = 3;

/// Fewest statements of a window by which rows of each are known to be the same number.
const STATEMENTS: u64 = 1000;

/// Confidence of the interval, high because every step of every target is looked at.
const CONFIDENCE: f64 = 0.999;

/// Rows per statement of both sides differ in these blocks of a step, by index.
fn compare_windows(pairs: &[(&Run, &Run)], index: u32, labels: [&str; 2]) -> Option<Told> {
    let of = |step: fn(&Run, u32) -> Option<&StepRecord>, count: Count| -> Vec<(Rows, Rows)> {
        let rows = |run| step(run, index).map(count).filter(|rows| rows.statements > 0);
        pairs.iter().filter_map(|(base, run)| Some((rows(base)?, rows(run)?))).collect()
    };
    let text = |found: &[(Rows, Rows)], what: &str| {
        let each = |of: fn(&(Rows, Rows)) -> Rows, label: &str| {
            let rows = found.iter().map(|it| of(it).rows as f64).sum::<f64>();
            let each = rows / found.iter().map(|it| of(it).statements as f64).sum::<f64>();
            format!("{each:.3} {what} on {label}")
        };
        let sides = [each(|it| it.0, labels[0]), each(|it| it.1, labels[1])];
        Some(Told::answer(format!("over the window: {}", sides.join(", "))))
    };
    let reads = of(read_only, returned);
    if differ(&reads).unwrap_or_else(|| is_beyond(&reads)) {
        return text(&reads, "rows per statement");
    }
    let beside_writes = of(of_paced_queries, returned);
    if is_beyond(&beside_writes) {
        return text(&beside_writes, "rows per query");
    }
    // Rows that random values meet are those that the target left before.
    let changed = of(whole, changed);
    let has_counts = changed.iter().all(|(one, other)| one.rows > 0 && other.rows > 0);
    let is_other = has_counts && differ(&changed) == Some(true);
    is_other.then(|| text(&changed, "rows changed per write"))?
}

/// Statements of a window, and the rows that they returned or changed.
#[derive(Clone, Copy)]
struct Rows {
    statements: u64,
    rows: u64,
}

type Count = fn(&StepRecord) -> Rows;

fn returned(step: &StepRecord) -> Rows {
    Rows { statements: step.outcome.reads, rows: step.outcome.rows }
}

fn changed(step: &StepRecord) -> Rows {
    Rows { statements: step.outcome.writes, rows: step.outcome.affected }
}

/// Whether both sides have another number of rows for each statement; `None` if not each has one.
fn differ(found: &[(Rows, Rows)]) -> Option<bool> {
    let one = exact(found.iter().map(|it| it.0))?;
    exact(found.iter().map(|it| it.1)).map(|other| one != other)
}

/// The step, if it came to its end and neither it nor one before it wrote: rows that are written at
/// a rate of the target's own change what later statements return.
fn read_only(run: &Run, index: u32) -> Option<&StepRecord> {
    let before = run.steps.iter().map(AsRef::as_ref).filter(|step| step.index <= index);
    if before.filter(|step: &&StepRecord| step.index > 0).any(writes) {
        return None;
    }
    whole(run, index)
}

/// The step, if it queried beside writes at a set rate: those of all targets are as many.
fn of_paced_queries(run: &Run, index: u32) -> Option<&StepRecord> {
    let is_paced = |step: &&StepRecord| {
        step.outcome.open.is_some() && step.outcome.extra.contains_key(&Metric::RowsPerQuery)
    };
    whole(run, index).filter(is_paced)
}

/// The step, if it came to its end without errors.
fn whole(run: &Run, index: u32) -> Option<&StepRecord> {
    let step = run.steps.iter().find(|step| step.index == index)?;
    (step.status == Status::Complete && step.outcome.errors.is_empty()).then_some(step)
}

/// True if statements of a step wrote, or tried to.
pub(super) fn writes(step: &StepRecord) -> bool {
    step.outcome.writes > 0 || step.outcome.no_ops > 0
}

/// Rows of each statement, if it is the same whole number in all windows.
fn exact(windows: impl Iterator<Item = Rows>) -> Option<u64> {
    let mut each: Option<u64> = None;
    for Rows { statements, rows } in windows {
        let is_whole = statements >= STATEMENTS && rows % statements == 0;
        let of_window = is_whole.then(|| rows / statements)?;
        if *each.get_or_insert(of_window) != of_window {
            return None;
        }
    }
    each
}

/// True if the interval of the ratio lies beyond 1 %.
fn is_beyond(found: &[(Rows, Rows)]) -> bool {
    let ratio = |(one, other): &(Rows, Rows)| {
        let each = |it: &Rows| it.rows as f64 / it.statements as f64;
        (each(other) / each(one)).ln()
    };
    let differences: Vec<f64> = found.iter().map(ratio).collect();
    if found.len() < BLOCKS || differences.iter().any(|it| !it.is_finite()) {
        return false;
    }
    let interval = mean_interval(&differences, CONFIDENCE).and_then(|mean| mean.interval);
    let limit = COUNTS.ln_1p();
    interval.is_some_and(|interval| interval.low > limit || interval.high < -limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::row_digest::RowDigest;

    #[test]
    fn tables_differ_by_their_rows_but_not_by_what_each_load_makes_for_itself() {
        let table = |rows: &[&str]| {
            let columns = ["a", "b"].map(|name| (name.to_owned(), "text".to_owned()));
            let mut digest = RowDigest::of_columns(columns.to_vec());
            for row in rows {
                digest.add(row.split('|').map(|value| Some(value.as_bytes())));
            }
            let content = digest.record();
            let (name, rows) = ("t".to_owned(), Some(content.rows));
            TableRecord { name, rows, content: Some(content), note: None }
        };
        let check = |one: &[&str], other: &[&str], want: Option<AnswerWeight>| {
            let (base, target) = (table(one), table(other));
            let sides = Sides { base: &base, target: &target, labels: ["a", "b"] };
            let told = super::table(&sides);
            assert_eq!(told.map(|told| told.weight), want, "{one:?} {other:?}");
        };
        check(&["1|x", "2|y"], &["2|y", "1|x"], None);
        check(&["1|x", "2|y"], &["1|x"], Some(AnswerWeight::Data));
        check(&["1|x", "2|y"], &["1|x", "2|z"], Some(AnswerWeight::Data));
        check(&["1|x", "2|y"], &["1|y", "2|x"], Some(AnswerWeight::Data));
        check(
            &["1|0.1", "2|1.5"],
            &["1|0.10000000000000001", "2|1.5"],
            Some(AnswerWeight::Harmless),
        );
        let (day, next) = ("2026-01-31 10:00:00", "2026-02-01 11:00:00.5");
        check(&[&format!("1|{day}")], &[&format!("1|{next}")], Some(AnswerWeight::Harmless));
        check(
            &["1|2025-01-01", "2|2026-01-01"],
            &["1|2025-01-01", "2|2026-01-02"],
            Some(AnswerWeight::Data),
        );
        let uuids =
            ["123e4567-e89b-42d3-a456-426614174000", "0b0e4567-e89b-42d3-a456-426614174abc"];
        let uuids = uuids.map(|uuid| format!("1|{uuid}"));
        check(&[&uuids[0]], &[&uuids[1]], Some(AnswerWeight::Harmless));
    }

    #[test]
    fn rows_are_exact_only_over_many_statements() {
        let check = |windows: &[(u64, u64)], want: Option<u64>| {
            let windows = windows
                .iter()
                .map(|(statements, rows)| Rows { statements: *statements, rows: *rows });
            assert_eq!(exact(windows), want);
        };
        check(&[(1000, 2000), (3000, 6000)], Some(2));
        check(&[(1000, 0)], Some(0));
        check(&[(1000, 2000), (3000, 9000)], None);
        check(&[(1000, 2001)], None);
        check(&[(1, 37)], None);
    }

    #[test]
    fn the_luck_of_the_draw_is_no_difference() {
        let beyond = |windows: &[(u64, u64)]| {
            let of = |rows: u64| Rows { statements: 1000, rows };
            let pairs: Vec<(Rows, Rows)> =
                windows.iter().map(|(one, other)| (of(*one), of(*other))).collect();
            is_beyond(&pairs)
        };
        assert!(!beyond(&[(5000, 5200), (5100, 4900), (5050, 5060)]));
        assert!(!beyond(&[(5000, 5030), (5100, 5130), (5050, 5080)]), "less than 1 %");
        assert!(beyond(&[(5000, 5101), (5100, 5203), (5050, 5152)]));
        assert!(!beyond(&[(5000, 9000), (5100, 9100)]), "two blocks tell nothing of the luck");
    }
}
