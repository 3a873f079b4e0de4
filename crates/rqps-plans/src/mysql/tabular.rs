//! EXPLAIN of MySQL and MariaDB as a tree. The tabular form is the only one that all versions from
//! 5.6 on spell alike.

use std::collections::BTreeMap;

use crate::rehearsal::PlanNode;

/// Selects within selects that are followed.
const DEEPEST: usize = 64;

/// One row of EXPLAIN: how one table is read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ExplainRow {
    pub(super) id: Option<u64>,
    select_type: String,
    pub(super) table: Option<String>,
    pub(super) partitions: Option<String>,
    pub(super) access: Option<String>,
    pub(super) key: Option<String>,
    key_length: Option<String>,
    refs: Option<String>,
    pub(super) rows: Option<f64>,
    pub(super) extra: Vec<String>,
}

impl ExplainRow {
    /// A row of `EXPLAIN PARTITIONS` (11 columns) or of MySQL 5.7 and later (12: with `filtered`).
    pub(super) fn read(cells: &[Option<String>]) -> Option<ExplainRow> {
        let at = |index: usize| cells.get(index).cloned().flatten();
        if !(11..=12).contains(&cells.len()) {
            return None;
        }
        // `66 (3%)` with a filter of row ids.
        let number = |text: String| text.split(' ').next().and_then(|text| text.parse().ok());
        let extra = at(cells.len() - 1).unwrap_or_default();
        Some(ExplainRow {
            id: at(0).and_then(|id| id.parse().ok()),
            select_type: at(1)?,
            table: at(2),
            partitions: at(3),
            access: at(4),
            key: at(6),
            key_length: at(7),
            refs: at(8),
            rows: at(9).and_then(number),
            extra: extra.split(';').map(|word| word.trim().to_owned()).collect(),
        })
    }

    fn says(&self, words: &str) -> bool {
        self.extra.iter().any(|extra| extra == words)
    }

    /// What follows `beginning` in Extra.
    fn after(&self, beginning: &str) -> Option<&str> {
        self.extra.iter().find_map(|extra| extra.strip_prefix(beginning))
    }

    /// The number in `<derived2>`, and the word before it.
    fn made(&self) -> Option<(&str, u64)> {
        let inner = self.table.as_deref()?.strip_prefix('<')?.strip_suffix('>')?;
        let digits = inner.find(|letter: char| letter.is_ascii_digit())?;
        Some((&inner[..digits], inner[digits..].parse().ok()?))
    }
}

/// The rows as a tree.
pub(super) fn tree(rows: &[ExplainRow]) -> PlanNode {
    let mut selects: BTreeMap<u64, Select<'_>> = BTreeMap::new();
    let (mut order, mut unions): (Vec<u64>, Vec<Vec<u64>>) = (Vec::new(), Vec::new());
    for row in rows {
        if let Some(members) = union_members(row) {
            unions.push(members);
        } else if let Some(id) = row.id {
            if !selects.contains_key(&id) {
                order.push(id);
            }
            let select = selects.entry(id).or_insert_with(|| Select::of(&row.select_type));
            select.rows.push(row);
        }
    }
    // A UNION without a result row belongs to the select before it.
    let mut head = None;
    for id in &order {
        let Some(select) = selects.get(id) else { continue };
        if !select.kind.ends_with("UNION") {
            head = Some(*id);
        } else if let Some(first) = head {
            match unions.iter_mut().find(|members| members.contains(id)) {
                Some(_) => {}
                None => match unions.iter_mut().find(|members| members.first() == Some(&first)) {
                    Some(members) => members.push(*id),
                    None => unions.push(vec![first, *id]),
                },
            }
        }
    }
    let through_table: Vec<u64> = rows.iter().filter_map(union_members).map(|ids| ids[0]).collect();
    let query = Query { selects, unions, through_table };
    let Some(first) = order.first() else { return PlanNode::of("No plan") };
    let mut used = vec![*first];
    let mut root = query.union_or_select(*first, &mut used, 0);
    let mut beside: Vec<PlanNode> = Vec::new();
    for id in order {
        if used.contains(&id) {
            continue;
        }
        used.push(id);
        let mut node = query.union_or_select(id, &mut used, 0);
        let kind = query.selects.get(&id).map_or("SUBQUERY", |select| select.kind);
        node.role = Some(kind.to_owned());
        beside.push(node);
    }
    // Versions number subqueries in different orders.
    beside.sort_by_cached_key(PlanNode::text);
    root.children.extend(beside);
    root
}

/// The selects in `<union1,2>`.
fn union_members(row: &ExplainRow) -> Option<Vec<u64>> {
    let inner = row.table.as_deref()?.strip_suffix('>')?;
    let list = ["<union", "<intersect", "<except", "<unit"];
    let inner = list.iter().find_map(|word| inner.strip_prefix(word))?;
    let members: Vec<u64> = inner.split(',').filter_map(|id| id.trim().parse().ok()).collect();
    (!members.is_empty()).then_some(members)
}

struct Select<'a> {
    kind: &'a str,
    rows: Vec<&'a ExplainRow>,
}

impl<'a> Select<'a> {
    fn of(kind: &'a str) -> Select<'a> {
        Select { kind, rows: Vec::new() }
    }
}

struct Query<'a> {
    selects: BTreeMap<u64, Select<'a>>,
    /// Selects whose rows are put together.
    unions: Vec<Vec<u64>>,
    /// The first select of those that pass through a temporary table.
    through_table: Vec<u64>,
}

impl Query<'_> {
    fn union_or_select(&self, id: u64, used: &mut Vec<u64>, depth: usize) -> PlanNode {
        match self.unions.iter().find(|members| members.first() == Some(&id)) {
            Some(members) if members.len() > 1 => {
                let mut node = PlanNode::of("Union");
                for member in members {
                    used.push(*member);
                    node.children.push(self.select(*member, used, depth + 1));
                }
                if self.through_table.contains(&id) { over("Temporary table", node) } else { node }
            }
            _ => self.select(id, used, depth),
        }
    }

    fn select(&self, id: u64, used: &mut Vec<u64>, depth: usize) -> PlanNode {
        let rows = self.selects.get(&id).map_or(&[][..], |select| select.rows.as_slice());
        let mut tree: Option<PlanNode> = None;
        for row in rows {
            let leaf = self.leaf(row, used, depth);
            tree = Some(match tree {
                None => leaf,
                Some(outer) => {
                    let mut join = PlanNode::of(join_method(row));
                    join.joins = true;
                    join.children = vec![outer, leaf];
                    join
                }
            });
        }
        let mut tree = tree.unwrap_or_else(|| PlanNode::of("No table"));
        for (words, kind) in
            [("Using temporary", "Temporary table"), ("Using filesort", "Filesort")]
        {
            if rows.iter().any(|row| row.says(words)) {
                tree = over(kind, tree);
            }
        }
        tree
    }

    fn leaf(&self, row: &ExplainRow, used: &mut Vec<u64>, depth: usize) -> PlanNode {
        let Some(table) = &row.table else { return without_table(row) };
        let mut node = PlanNode { rows: row.rows, ..PlanNode::of(access_kind(row)) };
        match row.made() {
            Some((word, id)) if depth < DEEPEST && !used.contains(&id) => {
                used.push(id);
                let inner = self.union_or_select(id, used, depth + 1);
                let is_table = |alias: &&str| !alias.starts_with('<');
                let of: Vec<&str> = inner.leaves().into_iter().filter(is_table).collect();
                // Without its number, and the name of its index, which versions choose.
                node.alias = Some(format!("<{word} of {}>", of.join(", ")));
                node.children.push(inner);
            }
            // A table that is read again.
            Some((word, _)) => node.alias = Some(format!("<{word}>")),
            None => {
                node.alias = Some(table.clone());
                node.index.clone_from(&row.key);
                let backward = row.says("Backward index scan");
                node.direction = backward.then(|| "backward".to_owned());
                let conditions = [
                    ("key length", row.key_length.clone()),
                    ("ref", row.refs.as_deref().map(without_database)),
                    ("partitions", row.partitions.clone()),
                ];
                for (name, text) in conditions {
                    if let Some(text) = text {
                        node.condition(name, text);
                    }
                }
            }
        }
        for words in row.extra.iter().filter(|words| is_strategy(words)) {
            let words = words.split('(').next().unwrap_or_default().trim();
            node.condition("how", words);
        }
        node
    }
}

fn over(kind: &str, below: PlanNode) -> PlanNode {
    PlanNode { children: vec![below], ..PlanNode::of(kind) }
}

/// A select that needs no table, or found out that no row can match. Versions say the latter with
/// different words.
fn without_table(row: &ExplainRow) -> PlanNode {
    let words = row.extra.join("; ");
    let reads_nothing = ["No tables used", "Select tables optimized away"];
    match reads_nothing.iter().find(|known| words.contains(*known)) {
        Some(known) => PlanNode::of(*known),
        None => PlanNode::of("No row can match"),
    }
}

/// The way to the rows: the access type, and whether the index alone suffices.
fn access_kind(row: &ExplainRow) -> String {
    let access = row.access.as_deref().unwrap_or("unknown");
    for (words, way) in [
        ("Using index for group-by", "for group-by"),
        ("Using index for skip scan", "for skip scan"),
    ] {
        if row.after(words).is_some() {
            return format!("{access} {way}");
        }
    }
    for merge in ["union", "sort_union", "intersect", "sort_intersect"] {
        if row.after(&format!("Using {merge}(")).is_some() {
            return format!("{access} {merge}");
        }
    }
    // The primary key of InnoDB is the table; of one row, versions tell it or not.
    let is_table = row.key.as_deref().is_none_or(|key| key == "PRIMARY");
    let of_one_row = matches!(access, "const" | "system");
    if row.says("Using index") && !is_table && !of_one_row && row.made().is_none() {
        format!("covering {access}")
    } else {
        access.to_owned()
    }
}

/// How this table is joined with those before it.
fn join_method(row: &ExplainRow) -> &'static str {
    let Some(buffer) = row.after("Using join buffer (") else { return "Nested loop" };
    let buffer = buffer.to_ascii_lowercase();
    if buffer.contains("hash join") || buffer.contains("bnlh") {
        "Hash join"
    } else if buffer.contains("batched key access") || buffer.contains("bka") {
        "Batched key access"
    } else {
        "Block nested loop"
    }
}

/// Words of Extra that say how a table takes part. What filters comes and goes beside the same
/// access, and the others are in the tree.
fn is_strategy(words: &str) -> bool {
    const STRATEGIES: [&str; 9] = [
        "FirstMatch",
        "LooseScan",
        "Start temporary",
        "End temporary",
        "Not exists",
        "Using MRR",
        "Range checked for each record",
        "Full scan on NULL key",
        "Rematerialize",
    ];
    STRATEGIES.iter().any(|known| words.starts_with(known))
}

/// `shop.v.room_no,const` as `v.room_no,const`.
fn without_database(refs: &str) -> String {
    let part = |part: &str| match part.splitn(3, '.').collect::<Vec<_>>()[..] {
        [_, table, column] if table.starts_with('<') => {
            let _ = column;
            "func".to_owned()
        }
        [_, table, column] => format!("{table}.{column}"),
        _ => part.to_owned(),
    };
    refs.split(',').map(part).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree of rows: id, select type, table, access, key, rows, Extra.
    fn tree_of(rows: &str) -> PlanNode {
        let row = |line: &str| {
            let cells: Vec<Option<String>> = line
                .split('|')
                .map(|cell| Some(cell.trim().to_owned()).filter(|cell| cell != "-"))
                .collect();
            let [id, kind, table, access, key, rows, extra] = cells.try_into().unwrap();
            let none = || None;
            let cells = [id, kind, table, none(), access, none(), key, none(), none(), rows, extra];
            ExplainRow::read(&cells).unwrap()
        };
        tree(&rows.lines().map(row).collect::<Vec<_>>())
    }

    fn check(rows: &str, want: &str) {
        let want: Vec<&str> = want.split(" / ").collect();
        let text = tree_of(rows).text();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert_eq!(lines, want, "{text}");
    }

    #[test]
    fn rows_become_joins_in_their_order() {
        check(
            "1|SIMPLE|a|ALL|-|10|Using where; Using temporary; Using filesort\n\
             1|SIMPLE|b|ref|k|3|Using index; FirstMatch(a)\n\
             1|SIMPLE|c|ALL|-|4|Using where; Using join buffer (hash join)",
            "Filesort / Temporary table / Hash join / Nested loop / ALL on a  (rows=10) / \
             covering ref using k on b  (rows=3) / how: FirstMatch / ALL on c  (rows=4)",
        );
        let loops = |buffer: &str| {
            tree_of(&format!(
                "1|SIMPLE|a|ALL|-|1|-\n1|SIMPLE|b|ALL|-|1|Using join buffer ({buffer})"
            ))
            .kind
        };
        assert_eq!(loops("Block Nested Loop"), "Block nested loop");
        assert_eq!(loops("flat, BNLH join"), "Hash join");
        assert_eq!(loops("flat, BKA join"), "Batched key access");
    }

    #[test]
    fn numbers_of_subqueries_are_no_difference() {
        let plan = |derived: u64, beside: u64| {
            tree_of(&format!(
                "1|PRIMARY|<derived{derived}>|ALL|-|9|-\n\
                 {beside}|SUBQUERY|s|const|PRIMARY|1|Using index\n\
                 {derived}|DERIVED|d|range|PRIMARY|5 (2%)|Using index condition"
            ))
        };
        assert_eq!(plan(2, 3), plan(3, 2));
        let text = plan(2, 3).text();
        assert!(text.contains("ALL on <derived of d>"), "{text}");
        assert!(text.contains("range using PRIMARY on d  (rows=5)"), "{text}");
        assert!(text.contains("SUBQUERY\n  const using PRIMARY on s"), "{text}");
    }

    #[test]
    fn unions_keep_their_members_with_and_without_a_table() {
        check(
            "1|PRIMARY|a|ALL|-|1|-\n2|UNION|b|ALL|-|2|-\n-|UNION RESULT|<union1,2>|ALL|-|-|-",
            "Temporary table / Union / ALL on a  (rows=1) / ALL on b  (rows=2)",
        );
        check(
            "1|PRIMARY|<derived2>|ALL|-|4|-\n2|DERIVED|a|ALL|-|1|-\n3|UNION|b|ALL|-|2|-",
            "ALL on <derived of a, b>  (rows=4) / Union / ALL on a  (rows=1) / ALL on b  (rows=2)",
        );
    }

    #[test]
    fn words_without_meaning_are_left_out() {
        let same = |one: &str, other: &str| assert_eq!(tree_of(one), tree_of(other));
        same("1|SIMPLE|a|ref|k|1|Using index condition", "1|PRIMARY|a|ref|k|1|Using where");
        same("1|SIMPLE|a|const|u|1|Using index", "1|SIMPLE|a|const|u|1|-");
        same(
            "1|SIMPLE|-|-|-|-|Impossible WHERE",
            "1|SIMPLE|-|-|-|-|no matching row in const table",
        );
        let counted = tree_of("1|SIMPLE|-|-|-|-|Select tables optimized away");
        assert_eq!(counted.kind, "Select tables optimized away");
    }

    #[test]
    fn rows_that_refer_to_each_other_end() {
        let rows = "1|PRIMARY|<derived2>|ALL|-|1|-\n2|DERIVED|<derived1>|ALL|-|1|-";
        assert!(tree_of(rows).text().contains("<derived>"));
        let many: Vec<String> =
            (1..200).map(|id| format!("{id}|DERIVED|<derived{}>|ALL|-|1|-", id + 1)).collect();
        tree_of(&many.join("\n"));
        tree_of("-|UNION RESULT|<union1,1,1>|ALL|-|-|-\n1|PRIMARY|a|ALL|-|1|-");
        assert_eq!(ExplainRow::read(&[]), None);
    }
}
