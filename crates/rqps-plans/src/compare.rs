//! What differs between two plans of a statement. A pure function of both trees.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::rehearsal::{Condition, PlanNode};

/// A ratio of costs from which the same plan counts as changed.
const COST_RATIO: f64 = 1.5;

/// A ratio of rows from which they are others, where there are no costs: versions look into indexes
/// in their own ways, which differ by a factor of two.
const ROWS_RATIO: f64 = 4.0;

/// Longest part of a condition in a note, characters.
const NOTE: usize = 160;

/// What is said about a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanClass {
    /// The same plan at about the same cost.
    Same,
    /// The same plan at another cost.
    Estimates,
    /// The same nodes with other conditions or keys.
    Conditions,
    /// Another order of joins.
    JoinOrder,
    /// Another method of a join.
    JoinMethod,
    /// Another way to the rows of a table.
    AccessPath,
    /// Only more or fewer workers.
    Parallelism,
    /// Other nodes.
    Nodes,
    /// An error on one side.
    Error,
    /// No plan tells about this statement.
    #[default]
    NotCovered,
    /// The old version's plan by the same method is not that of the source.
    NotFaithful,
}

impl PlanClass {
    /// True if an upgrade changes something.
    pub fn is_change(self) -> bool {
        !matches!(self, PlanClass::Same | PlanClass::NotCovered | PlanClass::NotFaithful)
    }

    /// True if nothing can be said.
    pub fn is_unknown(self) -> bool {
        matches!(self, PlanClass::NotCovered | PlanClass::NotFaithful)
    }

    /// In plain words.
    pub fn words(self) -> &'static str {
        match self {
            PlanClass::Same => "same plan",
            PlanClass::Estimates => "other estimates",
            PlanClass::Conditions => "other conditions",
            PlanClass::JoinOrder => "join order",
            PlanClass::JoinMethod => "join method",
            PlanClass::AccessPath => "access path",
            PlanClass::Parallelism => "parallelism",
            PlanClass::Nodes => "other nodes",
            PlanClass::Error => "error",
            PlanClass::NotCovered => "not covered",
            PlanClass::NotFaithful => "not faithful",
        }
    }
}

/// The difference between two plans.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The most telling kind of difference.
    pub class: PlanClass,
    /// What moved, in plain words, the most telling first.
    pub notes: Vec<String>,
    /// What to beware of.
    pub warnings: Vec<String>,
}

/// Compares two plans, whose texts the module of the DBMS has normalised.
pub fn compare(old: &PlanNode, new: &PlanNode) -> Difference {
    let of_one = old.leaves().len() == 1 || new.leaves().len() == 1;
    let (old, new) = (&canonical(old, of_one), &canonical(new, of_one));
    let mut notes: Vec<(PlanClass, String)> = Vec::new();
    let (serial_old, serial_new) = (serial(old), serial(new));
    if shape(old, true) == shape(new, true) {
        return by_cost(old, new);
    }
    if shape(&serial_old, true) == shape(&serial_new, true) {
        notes.push((PlanClass::Parallelism, workers(old, new)));
    } else {
        relations(&serial_old, &serial_new, &mut notes);
        joins(&serial_old, &serial_new, &mut notes);
        accesses(&serial_old, &serial_new, &mut notes);
        if shape(&serial_old, false) != shape(&serial_new, false) {
            kinds(&serial_old, &serial_new, &mut notes);
        }
        conditions(&serial_old, &serial_new, &mut notes);
        if is_parallel(old) != is_parallel(new) {
            notes.push((PlanClass::Parallelism, workers(old, new)));
        }
    }
    // The order in which one looks for the cause of another speed.
    let rank = |class: PlanClass| match class {
        PlanClass::JoinOrder => 0,
        PlanClass::JoinMethod => 1,
        PlanClass::AccessPath => 2,
        PlanClass::Nodes => 3,
        PlanClass::Conditions => 4,
        _ => 5,
    };
    notes.sort_by_key(|(class, _)| rank(*class));
    let class = notes.first().map_or(PlanClass::Nodes, |(class, _)| *class);
    let mut warnings = Vec::new();
    if class == PlanClass::JoinOrder && is_blind(old) && is_blind(new) {
        warnings.push(
            "both versions estimate one row everywhere, so equal costs say nothing about the speed \
             of another join order: run it"
                .to_owned(),
        );
    }
    let mut notes: Vec<String> = notes.into_iter().map(|(_, note)| note).collect();
    if notes.is_empty() {
        notes.push("the nodes are arranged in another way".to_owned());
    }
    notes.extend(cost_note(old, new));
    Difference { class, notes, warnings }
}

fn by_cost(old: &PlanNode, new: &PlanNode) -> Difference {
    let ratio = cost_ratio(old, new).unwrap_or(1.0);
    let mut notes = Vec::new();
    if !(1.0 / COST_RATIO..COST_RATIO).contains(&ratio) {
        notes.extend(cost_note(old, new));
    }
    if old.cost.is_none() && new.cost.is_none() {
        notes.extend(rows_note(old, new));
    }
    let class = if notes.is_empty() { PlanClass::Same } else { PlanClass::Estimates };
    Difference { class, notes, warnings: Vec::new() }
}

/// Tables of which much more or fewer rows are expected, where versions count costs in their own
/// units.
fn rows_note(old: &PlanNode, new: &PlanNode) -> Option<String> {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    old.walk(&mut |node| before.push(node));
    new.walk(&mut |node| after.push(node));
    before.iter().zip(after).find_map(|(old, new)| {
        let (was, is) = (old.rows?, new.rows?);
        let ratio = is.max(1.0) / was.max(1.0);
        let is_other = !(1.0 / ROWS_RATIO..ROWS_RATIO).contains(&ratio);
        let name = old.alias.as_deref()?;
        is_other.then(|| format!("{name}: {was:.0} rows -> {is:.0} rows"))
    })
}

/// The plan with names that do not depend on the version: a table that is read once has its own
/// name, whatever alias a version gives to it as a partition; columns have the name of their table,
/// but not where they belong to a partition, or where one side reads only one table.
fn canonical(plan: &PlanNode, of_one: bool) -> PlanNode {
    let (mut aliases, mut parts) = (BTreeMap::new(), BTreeSet::new());
    plan.walk(&mut |node| {
        if let (Some(alias), Some(relation)) = (&node.alias, &node.relation) {
            aliases.entry(relation.clone()).or_insert_with(BTreeSet::new).insert(alias.clone());
        }
        if matches!(node.kind.as_str(), "Append" | "Merge Append") {
            parts.extend(node.leaves().into_iter().map(str::to_owned));
        }
    });
    let mut names: BTreeMap<String, String> =
        plan.leaves().into_iter().map(|alias| (alias.to_owned(), alias.to_owned())).collect();
    for (relation, aliases) in aliases {
        let mut aliases = aliases.into_iter();
        if let (Some(only), None) = (aliases.next(), aliases.next()) {
            names.insert(only, relation);
        }
    }
    let qualifier = |word: &str| {
        let name = names.get(word).filter(|_| !of_one && !parts.contains(word));
        name.map_or_else(String::new, |name| format!("{name}."))
    };
    let mut plan = plan.clone();
    plan.change(&mut |node| {
        for condition in &mut node.conditions {
            condition.text = requalified(&condition.text, &qualifier);
        }
        node.alias = node.alias.take().map(|alias| names.get(&alias).cloned().unwrap_or(alias));
    });
    plan
}

/// A text with other names before the points of `name.column`.
fn requalified(text: &str, qualifier: &dyn Fn(&str) -> String) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let mut made = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find(is_word) {
        let word: &str = &rest[begin..];
        let end = word.find(|c| !is_word(c)).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        made.push_str(&rest[..begin]);
        let is_name = !word.starts_with(|c: char| c.is_ascii_digit());
        let before_column = after.strip_prefix('.').filter(|it| it.starts_with(is_word_or_quote));
        match before_column {
            Some(column) if is_name => {
                made.push_str(&qualifier(word));
                rest = column;
            }
            _ => {
                made.push_str(word);
                rest = after;
            }
        }
    }
    made.push_str(rest);
    made
}

fn is_word_or_quote(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '"'
}

/// Cost of the new plan by that of the old one.
pub fn cost_ratio(old: &PlanNode, new: &PlanNode) -> Option<f64> {
    let ratio = new.cost? / old.cost?;
    (ratio.is_finite() && ratio > 0.0).then_some(ratio)
}

fn cost_note(old: &PlanNode, new: &PlanNode) -> Option<String> {
    let (before, after) = (old.cost?, new.cost?);
    (before != after).then(|| format!("cost {before:.0} -> {after:.0}"))
}

/// A tree without estimates and numbers of workers; with or without conditions.
fn shape(node: &PlanNode, with_conditions: bool) -> PlanNode {
    let mut node = node.clone();
    node.change(&mut |node| {
        (node.rows, node.cost) = (None, None);
        if node.alias.is_some() {
            node.relation = None;
        }
        if !with_conditions {
            node.conditions.clear();
        }
        // Subqueries are numbered and listed in the order in which a version meets them.
        node.role = node.role.take().map(|role| {
            let name = role.split(" (").next().unwrap_or_default();
            let is_numbered = ["InitPlan ", "SubPlan "].iter().any(|it| name.starts_with(it));
            if is_numbered { name.trim_end_matches(|c: char| c.is_ascii_digit()) } else { name }
                .to_owned()
        });
    });
    // Roles of children are changed by now.
    node.change(&mut |node| node.children.sort_by_key(|child| child.role.clone()));
    node
}

/// The plan as one worker would carry it out.
fn serial(node: &PlanNode) -> PlanNode {
    let mut node = node.clone();
    let is_gather = |node: &PlanNode| matches!(node.kind.as_str(), "Gather" | "Gather Merge");
    loop {
        let inputs = node.inputs().count();
        let is_finalize = node.kind.starts_with("Finalize ");
        if (is_gather(&node) || is_finalize) && inputs == 1 {
            let (mut inputs, rest): (Vec<_>, Vec<_>) =
                node.children.into_iter().partition(|child| child.role.is_none());
            let mut input = inputs.remove(0);
            input.role = node.role;
            input.children.extend(rest);
            if is_finalize && !contains_partial(&input) {
                input.kind = node.kind;
                input.kind = input.kind.trim_start_matches("Finalize ").to_owned();
            }
            node = input;
        } else {
            break;
        }
    }
    node.parallel = false;
    if let Some(kind) = node.kind.strip_prefix("Partial ") {
        node.kind = kind.to_owned();
    }
    node.children = node.children.iter().map(serial).collect();
    node
}

fn contains_partial(node: &PlanNode) -> bool {
    node.kind.starts_with("Partial ") || node.inputs().any(contains_partial)
}

fn is_parallel(node: &PlanNode) -> bool {
    node.parallel || node.children.iter().any(is_parallel)
}

fn workers(old: &PlanNode, new: &PlanNode) -> String {
    match (is_parallel(old), is_parallel(new)) {
        (false, true) => "it becomes parallel".to_owned(),
        (true, false) => "it is no longer parallel".to_owned(),
        _ => "workers share the work in another way".to_owned(),
    }
}

/// Tables that only one side reads, or reads more often.
fn relations(old: &PlanNode, new: &PlanNode, notes: &mut Vec<(PlanClass, String)>) {
    let (before, after) = (old.leaves(), new.leaves());
    for name in before.difference(&after) {
        notes.push((PlanClass::Nodes, format!("{name} is no longer read")));
    }
    for name in after.difference(&before) {
        notes.push((PlanClass::Nodes, format!("{name} is read in addition")));
    }
}

/// A join: what it joins, in its order, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Join {
    outer: BTreeSet<String>,
    inner: BTreeSet<String>,
    kind: String,
}

fn all_joins(node: &PlanNode, found: &mut Vec<Join>) {
    let owned = |node: &PlanNode| node.leaves().into_iter().map(str::to_owned).collect();
    if node.joins {
        let mut inputs = node.inputs().filter(|input| !input.leaves().is_empty());
        let mut outer: BTreeSet<String> = inputs.next().map(owned).unwrap_or_default();
        for inner in inputs {
            let inner: BTreeSet<String> = owned(inner);
            let kind = node.kind.clone();
            found.push(Join { outer: outer.clone(), inner: inner.clone(), kind });
            outer.extend(inner);
        }
    }
    node.children.iter().for_each(|child| all_joins(child, found));
}

fn names(of: &BTreeSet<String>) -> String {
    of.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn joins(old: &PlanNode, new: &PlanNode, notes: &mut Vec<(PlanClass, String)>) {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    all_joins(old, &mut before);
    all_joins(new, &mut after);
    // The first joins come first: what moved there moves all others.
    after.sort_by_key(|join| join.outer.len() + join.inner.len());
    let unordered = |join: &Join| {
        let mut pair = [join.outer.clone(), join.inner.clone()];
        pair.sort();
        pair
    };
    let known = old.leaves() == new.leaves();
    let mut moved = false;
    for join in &after {
        let same = before.iter().find(|other| unordered(other) == unordered(join));
        let (outer, inner) = (names(&join.outer), names(&join.inner));
        match same {
            // Of tables that only one side reads, the note is another.
            None if known && !moved => {
                moved = true;
                let text = if after.len() == 1 {
                    format!("{outer} is read first, then {inner}")
                } else {
                    format!("{outer} is now joined with {inner}")
                };
                notes.push((PlanClass::JoinOrder, text));
            }
            None => {}
            Some(other) if other.kind != join.kind => notes.push((
                PlanClass::JoinMethod,
                format!("{outer} with {inner}: {} -> {}", other.kind, join.kind),
            )),
            Some(other) if other.outer != join.outer && is_loop(&join.kind) => notes.push((
                PlanClass::JoinOrder,
                format!("{outer} is read first, then {inner} for each of its rows"),
            )),
            Some(other) if other.outer != join.outer => notes.push((
                PlanClass::JoinMethod,
                format!(
                    "{} changes its inputs: {outer} is now the first, {inner} the second",
                    join.kind
                ),
            )),
            Some(_) => {}
        }
    }
}

fn is_loop(kind: &str) -> bool {
    !kind.contains("Hash") && !kind.contains("Merge")
}

/// How a table is read: the node's kind, its index and direction; a bitmap's indexes with it.
fn all_accesses(node: &PlanNode) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    node.walk(&mut |node| {
        let Some(alias) = &node.alias else { return };
        let mut how = node.kind.clone();
        for part in node.direction.iter().chain(&node.index) {
            how.push_str(&format!(" {part}"));
        }
        if node.kind.starts_with("Bitmap") {
            node.walk(&mut |below| {
                below.index.iter().for_each(|index| how.push_str(&format!(" {index}")));
            });
        }
        found.entry(alias.clone()).or_default().push(how);
    });
    found.values_mut().for_each(|list| list.sort());
    found
}

fn accesses(old: &PlanNode, new: &PlanNode, notes: &mut Vec<(PlanClass, String)>) {
    let (before, after) = (all_accesses(old), all_accesses(new));
    for (alias, now) in &after {
        if let Some(was) = before.get(alias)
            && was != now
        {
            let text = format!("{alias}: {} -> {}", was.join(" and "), now.join(" and "));
            notes.push((PlanClass::AccessPath, text));
        }
    }
}

/// Nodes beside those that join and read.
fn kinds(old: &PlanNode, new: &PlanNode, notes: &mut Vec<(PlanClass, String)>) {
    let count = |tree: &PlanNode| {
        let mut found: BTreeMap<String, i64> = BTreeMap::new();
        tree.walk(&mut |node| {
            if node.alias.is_none() && !node.joins && !node.kind.starts_with("Bitmap") {
                *found.entry(node.kind.clone()).or_default() += 1;
            }
        });
        found
    };
    let (before, after) = (count(old), count(new));
    let only = |one: &BTreeMap<String, i64>, other: &BTreeMap<String, i64>| {
        let more = |(kind, times): (&String, &i64)| {
            (times > other.get(kind).unwrap_or(&0)).then(|| kind.clone())
        };
        one.iter().filter_map(more).collect::<Vec<_>>().join(", ")
    };
    let text = match (only(&before, &after), only(&after, &before)) {
        (gone, come) if gone.is_empty() && come.is_empty() => return,
        (gone, come) if gone.is_empty() => format!("new: {come}"),
        (gone, come) if come.is_empty() => format!("gone: {gone}"),
        (gone, come) => format!("{gone} -> {come}"),
    };
    notes.push((PlanClass::Nodes, text));
}

/// Conditions that only one side has, whatever the node.
fn conditions(old: &PlanNode, new: &PlanNode, notes: &mut Vec<(PlanClass, String)>) {
    let list = |tree: &PlanNode| {
        let mut found: Vec<Condition> = Vec::new();
        tree.walk(&mut |node| found.extend(node.conditions.iter().cloned()));
        found.sort();
        found
    };
    let (mut before, mut after) = (list(old), list(new));
    before.retain(|condition| match after.iter().position(|other| other == condition) {
        Some(at) => {
            after.remove(at);
            false
        }
        None => true,
    });
    let show = |one: &Condition| cut(&format!("{} {}", one.name, one.text));
    let text = match (before.first(), after.first()) {
        (None, None) => return,
        (Some(gone), None) => format!("without {}", show(gone)),
        (None, Some(come)) => format!("with {}", show(come)),
        (Some(gone), Some(come)) => format!("{} -> {}", show(gone), show(come)),
    };
    notes.push((PlanClass::Conditions, text));
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(NOTE) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

/// True if all that reads or joins is estimated to give one row.
fn is_blind(node: &PlanNode) -> bool {
    let (mut joins, mut more) = (0, 0);
    node.walk(&mut |node| {
        if node.joins {
            joins += 1;
            more += usize::from(node.rows.is_none_or(|rows| rows > 1.0));
        }
    });
    joins > 1 && more == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(alias: &str) -> PlanNode {
        PlanNode { alias: Some(alias.to_owned()), ..PlanNode::of("Seq Scan") }
    }

    fn join(kind: &str, outer: PlanNode, inner: PlanNode) -> PlanNode {
        PlanNode {
            joins: true,
            rows: Some(1.0),
            children: vec![outer, inner],
            ..PlanNode::of(kind)
        }
    }

    fn check(old: &PlanNode, new: &PlanNode, class: PlanClass, note: &str) -> Difference {
        let found = compare(old, new);
        assert_eq!(found.class, class, "{found:?}");
        assert!(found.notes.iter().any(|text| text.contains(note)) || note.is_empty(), "{found:?}");
        found
    }

    #[test]
    fn an_order_of_joins_is_more_than_their_inputs() {
        let [a, b, c] = ["a", "b", "c"].map(scan);
        let hash =
            |outer: &PlanNode, inner: &PlanNode| join("Hash Join", outer.clone(), inner.clone());
        let first = hash(&hash(&a, &b), &c);
        check(&first, &hash(&a, &hash(&b, &c)), PlanClass::JoinOrder, "b is now joined with c");
        check(&first, &hash(&hash(&b, &a), &c), PlanClass::JoinMethod, "changes its inputs");
        let nested = join("Nested Loop", hash(&a, &b), c.clone());
        check(&first, &nested, PlanClass::JoinMethod, "a, b with c: Hash Join -> Nested Loop");
        let turned = join("Nested Loop", c, hash(&a, &b));
        check(&nested, &turned, PlanClass::JoinOrder, "c is read first");
    }

    #[test]
    fn blind_estimates_are_a_warning_of_their_own() {
        let [a, b, c] = ["a", "b", "c"].map(scan);
        let nested = |outer: PlanNode, inner: PlanNode| join("Nested Loop", outer, inner);
        let old = nested(nested(a.clone(), b.clone()), c.clone());
        let new = nested(a, nested(b, c));
        let found = check(&old, &new, PlanClass::JoinOrder, "");
        assert!(found.warnings[0].contains("one row everywhere"), "{found:?}");
        let mut sees = new.clone();
        sees.rows = Some(900.0);
        assert!(compare(&old, &sees).warnings.is_empty());
    }

    #[test]
    fn workers_alone_are_parallelism() {
        let serial = PlanNode { children: vec![scan("a")], ..PlanNode::of("Aggregate") };
        let scan = PlanNode { parallel: true, ..scan("a") };
        let partial = PlanNode { children: vec![scan], ..PlanNode::of("Partial Aggregate") };
        let gather = PlanNode { children: vec![partial], ..PlanNode::of("Gather") };
        let parallel = PlanNode { children: vec![gather], ..PlanNode::of("Finalize Aggregate") };
        check(&serial, &parallel, PlanClass::Parallelism, "it becomes parallel");
        check(&parallel, &serial, PlanClass::Parallelism, "no longer parallel");
    }

    #[test]
    fn costs_count_from_a_ratio_on() {
        let of = |cost: f64| PlanNode { cost: Some(cost), ..scan("a") };
        check(&of(100.0), &of(140.0), PlanClass::Same, "");
        check(&of(100.0), &of(150.0), PlanClass::Estimates, "cost 100 -> 150");
        check(&of(150.0), &of(99.0), PlanClass::Estimates, "");
    }

    #[test]
    fn direction_index_and_keys_are_compared() {
        let of = |direction: &str, key: &str| {
            let mut node = PlanNode { direction: Some(direction.to_owned()), ..scan("a") };
            node.condition("Sort Key", key);
            node
        };
        check(&of("Forward", "x"), &of("Backward", "x"), PlanClass::AccessPath, "Backward");
        check(&of("Forward", "x"), &of("Forward", "x DESC"), PlanClass::Conditions, "x DESC");
    }

    #[test]
    fn names_of_partitions_are_those_of_their_tables() {
        let part = |relation: &str, alias: &str| {
            let mut node = PlanNode { relation: Some(relation.to_owned()), ..scan(alias) };
            node.condition("Filter", "(day > 1.5)");
            node
        };
        let plan = |aliases: [&str; 2], key: &str| {
            let children = vec![part("p_2024", aliases[0]), part("p_2025", aliases[1])];
            let append = PlanNode { children, ..PlanNode::of("Append") };
            let other = PlanNode { relation: Some("customer".to_owned()), ..scan("c") };
            let mut root = join("Hash Join", append, other);
            root.condition("Hash Cond", key);
            root
        };
        let old = plan(["p_2024", "p_2025"], "(p_2024.customer = c.id)");
        let new = plan(["p_1", "p_2"], "(p.customer = c.id)");
        check(&old, &new, PlanClass::Same, "");
        let other = plan(["p_1", "p_2"], "(p.customer = c.other)");
        check(&old, &other, PlanClass::Conditions, "customer.id");
    }
}
