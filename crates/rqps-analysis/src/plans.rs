//! Query plans made comparable: what a plan does, without its estimates; and the caveats on plans
//! that differ.

use std::collections::HashMap;

use super::caveat::{Caveat, CaveatKind, Evidence};
use rqps_model::run::StepRecord;

/// The plan without costs, estimates and literals; names stay whole, so another index or another
/// order of tables is another plan. All targets are asked for the plans of the same tables.
///
/// Rows with tabs are EXPLAIN of MySQL and MariaDB as the driver keeps them: select_type, table,
/// type, key, key_len, ref, Extra. Only table, type, key and Extra say what is done: 5.7 began to
/// name writes in select_type, which is no other plan, and the table of an INSERT, which has none.
pub fn normalize(plan: &str) -> String {
    let lines = plan.lines().map(|line| {
        let cells: Vec<&str> = line.split('\t').collect();
        match cells.as_slice() {
            ["INSERT", ..] | [.., "No tables used"] => "no table is read".to_owned(),
            [_, table, access, key, _, _, extra] => {
                let [table, key] = [table, key].map(|name| without_own_numbers(name));
                format!("{table} {access} {key} {}", without_figures(extra))
            }
            _ => without_figures(&without_estimates(line)),
        }
    });
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

/// Names that MySQL makes up, such as `<derived2>` and `<auto_key0>`, without their numbers.
fn without_own_numbers(name: &str) -> String {
    if name.starts_with('<') { without_numbers(name) } else { name.to_owned() }
}

/// The line without parentheses of estimates and measurements, and in the words of today's SQLite:
/// until 3.36 it wrote `SCAN TABLE t`.
fn without_estimates(line: &str) -> String {
    let mut kept = line.replacen("SCAN TABLE ", "SCAN ", 1).replacen("SEARCH TABLE ", "SEARCH ", 1);
    for begin in ["(cost=", "(actual ", "(never executed"] {
        if let Some(open) = kept.find(begin)
            && let Some(close) = kept[open..].find(')')
        {
            kept.replace_range(open..=open + close, "");
        }
    }
    kept
}

/// Each number that is no part of a name becomes `#`, as does each literal text; each run of
/// blanks becomes one. The number of workers says what is done.
fn without_figures(line: &str) -> String {
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.starts_with("Workers Planned:") {
        return line;
    }
    let mut text = String::with_capacity(line.len());
    let mut rest = line.as_str();
    while let Some(first) = rest.chars().next() {
        let (taken, shown) = match first {
            '"' => {
                let name = quoted(rest, '"');
                (name.len(), name)
            }
            '\'' => (quoted(rest, '\'').len(), "#"),
            first if is_of_word(first) => {
                let end = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
                let word = &rest[..end];
                (end, if is_figure(word) { "#" } else { word })
            }
            other => (other.len_utf8(), &rest[..other.len_utf8()]),
        };
        text.push_str(shown);
        rest = &rest[taken..];
    }
    text
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '.')
}

/// The quoted text at the beginning, with its quotes; a doubled quote is part of it.
fn quoted(text: &str, quote: char) -> &str {
    let mut end = 1;
    while let Some(close) = text[end..].find(quote) {
        end += close + 1;
        if text[end..].starts_with(quote) { end += 1 } else { return &text[..end] }
    }
    text
}

/// True for `500`, `0.42`, `1e+06` up to its sign, `8192kB`, an address and a parameter such as
/// `$1`; false for `t1`, and for `2024_q1`, which MySQL allows as a name.
fn is_figure(word: &str) -> bool {
    let word = word.strip_prefix('$').unwrap_or(word);
    let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is_unit = matches!(unit, "" | "e" | "kB" | "MB" | "GB" | "ms");
    let address = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
    let is_address = address.is_some_and(|hex| hex.chars().all(|c| c.is_ascii_hexdigit()));
    word.starts_with(|c: char| c.is_ascii_digit()) && (is_unit || is_address)
}

/// A plan on one line of at most `width` characters.
pub fn shorten(normalized: &str, width: usize) -> String {
    if normalized.chars().count() <= width {
        return normalized.to_owned();
    }
    let head: String = normalized.chars().take(width.saturating_sub(1)).collect();
    format!("{head}…")
}

/// Each number becomes `#`, each run of blanks one blank, wherever the number stands.
pub(super) fn without_numbers(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut in_number = false;
    for c in line.split_whitespace().collect::<Vec<_>>().join(" ").chars() {
        let number = c.is_ascii_digit() || (in_number && c == '.');
        if number && !in_number {
            text.push('#');
        } else if !number {
            text.push(c);
        }
        in_number = number;
    }
    text
}

// Query plans that differ between targets, or between the blocks of one.

/// Characters of a plan that are shown.
const PLAN_WIDTH: usize = 120;

/// Plans are long, come in every step of every run and are nearly always the same: each distinct
/// text is made comparable once.
#[derive(Default)]
struct Normalized<'a>(HashMap<&'a str, String>);

impl<'a> Normalized<'a> {
    fn of(&mut self, plan: &'a str) -> String {
        self.0.entry(plan).or_insert_with(|| normalize(plan)).clone()
    }
}

pub(super) fn caveats(evidence: &Evidence) -> Vec<Caveat> {
    evidence.by_target(|target, label| of_target(evidence, target, label))
}

fn of_target(evidence: &Evidence, target: usize, label: &str) -> Vec<Caveat> {
    let mut normalized = Normalized::default();
    let mut caveats = Vec::new();
    if target > 0 && same_dialect(evidence, target) {
        for (difference, steps) in differences(evidence, target, &mut normalized) {
            caveats.push(
                Caveat::of(
                    CaveatKind::PlanDiffers,
                    label,
                    difference.spell(&evidence.comparison.baseline, label),
                )
                .in_steps(steps),
            );
        }
    }
    caveats.extend(changes(evidence, target, label, &mut normalized));
    caveats
}

/// Plans of two products have no words in common.
fn same_dialect(evidence: &Evidence, target: usize) -> bool {
    let dialect = |place: usize| {
        let facts = &evidence.comparison.targets[place];
        facts.target.as_ref().map(|target| target.dbms.dialect())
    };
    dialect(0) == dialect(target)
}

#[derive(PartialEq)]
struct Difference {
    kind: String,
    baseline: String,
    target: String,
}

impl Difference {
    fn spell(&self, baseline: &str, target: &str) -> String {
        format!(
            "{}: {baseline} `{}`, {target} `{}`",
            self.kind,
            shorten(&self.baseline, PLAN_WIDTH),
            shorten(&self.target, PLAN_WIDTH)
        )
    }
}

/// Differences from the baseline, each with the steps that have it. The first run of each side
/// speaks; that a target's own plans change is another caveat.
fn differences<'a>(
    evidence: &Evidence<'a>,
    target: usize,
    normalized: &mut Normalized<'a>,
) -> Vec<(Difference, Vec<String>)> {
    let mut found: Vec<(Difference, Vec<String>)> = Vec::new();
    for (step, records) in evidence.comparison.steps.iter().zip(&evidence.records) {
        let (Some(baseline), Some(other)) = (planned(&records[0]), planned(&records[target]))
        else {
            continue;
        };
        for (kind, plan) in &baseline.outcome.plans {
            let Some(other) = other.outcome.plans.get(kind).filter(|other| *other != plan) else {
                continue;
            };
            let (baseline, target) = (normalized.of(plan), normalized.of(other));
            if baseline == target {
                continue;
            }
            let difference = Difference { kind: kind.clone(), baseline, target };
            match found.iter_mut().find(|(other, _)| *other == difference) {
                Some((_, steps)) => steps.push(step.name.clone()),
                None => found.push((difference, vec![step.name.clone()])),
            }
        }
    }
    found
}

/// The first run that has plans: not every run need ask for them.
fn planned<'a>(records: &[&'a StepRecord]) -> Option<&'a StepRecord> {
    records.iter().copied().find(|record| !record.outcome.plans.is_empty())
}

fn changes<'a>(
    evidence: &Evidence<'a>,
    target: usize,
    label: &str,
    normalized: &mut Normalized<'a>,
) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    for (step, records) in evidence.comparison.steps.iter().zip(&evidence.records) {
        let Some(first) = planned(&records[target]) else { continue };
        for (kind, plan) in &first.outcome.plans {
            let others = records[target].iter().filter_map(|record| record.outcome.plans.get(kind));
            let mut differing = others.filter(|other| *other != plan);
            let changed = differing.find(|other| normalized.of(other) != normalized.of(plan));
            if let Some(changed) = changed {
                caveats.push(
                    Caveat::of(
                        CaveatKind::PlanChanges,
                        label,
                        format!(
                            "{kind}: `{}`, then `{}`",
                            shorten(&normalized.of(plan), PLAN_WIDTH),
                            shorten(&normalized.of(changed), PLAN_WIDTH)
                        ),
                    )
                    .in_steps(vec![step.name.clone()]),
                );
            }
        }
    }
    caveats
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_same(a: &str, b: &str) {
        assert_eq!(normalize(a), normalize(b));
    }

    fn check_different(a: &str, b: &str) {
        assert_ne!(normalize(a), normalize(b));
    }

    #[test]
    fn estimates_and_literals_are_no_difference() {
        check_same(
            "Index Scan using sbtest1_pkey on sbtest1  (cost=0.29..8.31 rows=1 width=121)\n  \
             Index Cond: ((id = 500) AND (c = 'it''s 5'::text))",
            "Index Scan using sbtest1_pkey on sbtest1  (cost=0.43..2.45 rows=7 width=9) \
             (actual time=0.1..0.2 rows=1 loops=1)\n    \
             Index Cond: ((id = 77) AND (c = 'x'::text))",
        );
        check_same(
            "SIMPLE\tsbtest1\trange\tPRIMARY\t4\tconst\tUsing where",
            "UPDATE\tsbtest1\trange\tPRIMARY\t4\tconst\tUsing where",
        );
        check_same(
            "SIMPLE\tNULL\tNULL\tNULL\tNULL\tNULL\tNo tables used",
            "INSERT\tsbtest1\tALL\tNULL\tNULL\tNULL\tNULL",
        );
        check_same(
            "PRIMARY\t<derived2>\tref\t<auto_key0>\t4\tb\tNULL",
            "PRIMARY\t<derived3>\tref\t<auto_key1>\t4\tb\tNULL",
        );
        check_same(
            "SEARCH TABLE t1 USING INDEX i (a=?) (~10 rows)",
            "SEARCH t1 USING INDEX i (a=?) (~1 rows)",
        );
        check_same("SCAN SUBQUERY 0x55d0", "SCAN SUBQUERY 0x7fa1");
        check_same("InitPlan 1 (returns $0)", "InitPlan 2 (returns $1)");
    }

    #[test]
    fn names_that_differ_in_a_digit_are_a_difference() {
        check_different("SEARCH t1 USING INDEX t1_i2 (a=?)", "SEARCH t1 USING INDEX t1_i1 (a=?)");
        check_different(
            "SCAN t1\nSEARCH t2 USING INDEX i (a=?)",
            "SCAN t2\nSEARCH t1 USING INDEX i (a=?)",
        );
        check_different("Seq Scan on \"log 2\"", "Seq Scan on \"log 3\"");
        check_different("Index Cond: (t1.c10 = 5)", "Index Cond: (t1.c11 = 5)");
        check_different("Workers Planned: 2", "Workers Planned: 4");
        let row = |table, key| format!("SIMPLE\t{table}\tref\t{key}\t4\tconst\tUsing where");
        check_different(&row("o", "k_1"), &row("o", "k_2"));
        check_different(&row("2024_q1", "k"), &row("2024_q2", "k"));
        check_different(&row("1", "k"), &row("2", "k"));
    }

    #[test]
    fn another_access_is_a_difference() {
        check_different("Index Only Scan using k_1 on sbtest1", "Seq Scan on sbtest1");
        check_different(
            "SIMPLE\tsbtest1\trange\tPRIMARY\t4\tNULL\tUsing where",
            "SIMPLE\tsbtest1\tALL\tNULL\tNULL\tNULL\tUsing where",
        );
    }

    #[test]
    fn a_long_plan_is_cut_with_a_mark() {
        assert_eq!(shorten("abcdef", 4), "abc…");
        assert_eq!(shorten("abcd", 4), "abcd");
    }
}
