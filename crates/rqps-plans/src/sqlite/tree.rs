//! Reads the rows of EXPLAIN QUERY PLAN.

use std::collections::BTreeMap;

use crate::tree::PlanNode;
use rqps_dbms::ControlRow;

/// Deepest nesting that is kept.
const DEPTH: usize = 200;

/// The tree of the rows of EXPLAIN QUERY PLAN: id, parent, unused, detail.
pub(super) fn read(rows: &[ControlRow]) -> PlanNode {
    let mut below: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for row in rows {
        let cell = |at: usize| row.get(at).and_then(Option::as_deref).unwrap_or_default();
        below.entry(cell(1)).or_default().push((cell(0), cell(3)));
    }
    let mut root = PlanNode::of("QUERY PLAN");
    fill(&mut root, "0", &below, 0);
    root
}

fn fill(node: &mut PlanNode, id: &str, below: &BTreeMap<&str, Vec<(&str, &str)>>, depth: usize) {
    for (child, detail) in below.get(id).into_iter().flatten() {
        let Some(mut made) = step(detail) else { continue };
        if depth < DEPTH {
            fill(&mut made, child, below, depth + 1);
        }
        node.children.push(made);
    }
    let is_loop =
        |child: &&PlanNode| ["SCAN", "SEARCH", "MULTI-INDEX OR"].contains(&child.kind.as_str());
    node.joins = !["MULTI-INDEX OR", "INDEX"].contains(&node.kind.as_str())
        && node.children.iter().filter(is_loop).count() > 1;
}

/// A node of a detail, in the words of the newest version; `None` for what has no meaning for the
/// order of work.
fn step(detail: &str) -> Option<PlanNode> {
    let mut detail = detail.trim();
    // Estimates of versions before 3.8, and the mark of 3.39.
    if let Some((rest, estimate)) = detail.rsplit_once(" (~")
        && estimate.ends_with("rows)")
    {
        detail = rest;
    }
    detail = detail.strip_suffix(" LEFT-JOIN").unwrap_or(detail);
    let detail = detail.strip_prefix("EXECUTE ").unwrap_or(detail);
    if detail.starts_with("BLOOM FILTER") {
        return None;
    }
    let (word, rest) = detail.split_once(' ').unwrap_or((detail, ""));
    match word {
        "SCAN" | "SEARCH" => Some(access(word, rest)),
        // Their names are numbers in some versions.
        "MATERIALIZE" | "CO-ROUTINE" => Some(subquery(word)),
        "USE" => {
            let (kind, of) = detail.split_once(" FOR ").unwrap_or((detail, ""));
            let mut node = PlanNode::of(kind);
            let part = ["RIGHT PART OF ", "LAST "].iter().any(|begin| of.starts_with(begin));
            let of = of.rsplit_once(" OF ").map_or(of, |(_, of)| of);
            node.condition("For", if part { format!("PART OF {of}") } else { of.to_owned() });
            Some(node)
        }
        _ if detail.contains("SUBQUERY") && !detail.starts_with("LEFT-MOST") => {
            let kind: Vec<&str> = detail.split(' ').filter(|word| !is_number(word)).collect();
            Some(subquery(&kind.join(" ")))
        }
        "INDEX" if is_number(rest) => Some(PlanNode::of("INDEX")),
        _ => Some(PlanNode::of(detail)),
    }
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn subquery(kind: &str) -> PlanNode {
    PlanNode { role: Some(kind.to_owned()), ..PlanNode::of(kind) }
}

/// `TABLE a AS b USING INDEX c (d=?)`, `b USING INDEX c (d=?)`.
fn access(kind: &str, rest: &str) -> PlanNode {
    let mut node = PlanNode::of(kind);
    let cut = |text: &str, at: &str| {
        text.split_once(at).map(|(before, after)| (before.to_owned(), after.to_owned()))
    };
    let (table, how) = cut(rest, " USING ")
        .or_else(|| {
            cut(rest, " VIRTUAL TABLE INDEX ").map(|(it, of)| (it, format!("VIRTUAL {of}")))
        })
        .unwrap_or_else(|| (rest.to_owned(), String::new()));
    let table = table.strip_prefix("TABLE ").unwrap_or(&table);
    let name = table.rsplit_once(" AS ").map_or(table, |(_, alias)| alias);
    let is_numbered = |name: &str| {
        name.strip_prefix("SUBQUERY ").is_some_and(is_number)
            || name.starts_with("(subquery-")
            || name.starts_with("(join-")
    };
    node.alias = Some(if is_numbered(name) { "(subquery)" } else { name }.to_owned());
    let (index, condition) = match how.split_once(" (") {
        Some((index, condition)) => (index, condition.strip_suffix(')').unwrap_or(condition)),
        None => (how.as_str(), ""),
    };
    node.index = Some(index.to_owned()).filter(|index| !index.is_empty());
    if !condition.is_empty() {
        node.condition("Index Cond", condition);
    }
    node
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{PlanClass, compare};

    fn plan(details: &[(&str, &str, &str)]) -> PlanNode {
        let cell = |text: &str| Some(text.to_owned());
        let row = |(id, parent, detail): &(&str, &str, &str)| {
            vec![cell(id), cell(parent), cell("0"), cell(detail)]
        };
        read(&details.iter().map(row).collect::<Vec<_>>())
    }

    #[test]
    fn words_of_versions_are_no_difference() {
        let old = plan(&[
            ("2", "0", "MATERIALIZE 2"),
            ("5", "2", "SEARCH TABLE member AS m USING INDEX member_club (club_id=?)"),
            ("9", "0", "SCAN SUBQUERY 2"),
            ("12", "0", "EXECUTE SCALAR SUBQUERY 3"),
            ("20", "0", "USE TEMP B-TREE FOR RIGHT PART OF ORDER BY"),
        ]);
        let new = plan(&[
            ("3", "0", "MATERIALIZE (subquery-2)"),
            ("6", "3", "SEARCH m USING INDEX member_club (club_id=?) LEFT-JOIN"),
            ("9", "0", "BLOOM FILTER ON x (a=?)"),
            ("10", "0", "SCAN (subquery-2)"),
            ("12", "0", "SCALAR SUBQUERY 4"),
            ("20", "0", "USE TEMP B-TREE FOR LAST 2 TERMS OF ORDER BY"),
        ]);
        assert_eq!(old, new);
        assert_eq!(compare(&old, &new).class, PlanClass::Same);
    }

    #[test]
    fn order_index_and_condition_are_told_apart() {
        let check = |old: &[&str], new: &[&str], class: PlanClass, note: &str| {
            let numbered = |details: &[&str]| {
                let ids: Vec<String> = (1..=details.len()).map(|id| id.to_string()).collect();
                let rows = ids.iter().zip(details).map(|(id, detail)| (id.as_str(), "0", *detail));
                plan(&rows.collect::<Vec<_>>())
            };
            let found = compare(&numbered(old), &numbered(new));
            assert_eq!(found.class, class, "{found:?}");
            assert!(found.notes[0].contains(note), "{found:?}");
        };
        let (a, b) = ("SCAN a", "SEARCH b USING INDEX b_x (x=?)");
        check(
            &[a, b],
            &["SCAN b", "SEARCH a USING INDEX a_x (x=?)"],
            PlanClass::JoinOrder,
            "b is read first, then a",
        );
        check(&[b], &["SCAN b"], PlanClass::AccessPath, "b: SEARCH INDEX b_x -> SCAN");
        check(
            &[b],
            &["SEARCH b USING INDEX b_x (x=? AND y>?)"],
            PlanClass::Conditions,
            "Index Cond x=? -> Index Cond x=? AND y>?",
        );
        check(&[a], &[a, "USE TEMP B-TREE FOR ORDER BY"], PlanClass::Nodes, "new: USE TEMP B-TREE");
    }
}
