//! Compares what tables hold, and tells apart what each load makes for itself.

use std::collections::BTreeSet;

use super::finding::{AnswerWeight, Sides, Told};
use super::rows::{begins_with_date, count, difference, is_uuid};
use rqps_model::answers::TableRecord;
use rqps_model::row_digest::ColumnDigest;
use rqps_model::run::Run;

/// Tables that differ, by name.
pub(super) fn compare(runs: &Sides<'_, Run>) -> Vec<(String, Told)> {
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
}
