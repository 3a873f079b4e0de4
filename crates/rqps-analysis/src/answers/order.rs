//! Tells rows with equal sort keys, which may come in any order, from a wrong order or other rows,
//! and both from text that two versions of a collation sort in their own way.

use std::cmp::Ordering;

use super::finding::{Sides, Told};
use super::rows::{count, row};
use rqps_model::order_digest::OrderRecord;
use rqps_model::row_digest::is_near;

/// The keys of a row.
type Keys = [Option<String>];

/// How two results of one statement with ORDER BY differ, of `rows` rows each. `same_rows` if only
/// their order does.
pub(super) fn compare(sides: &Sides<'_, OrderRecord>, rows: u64, same_rows: bool) -> Told {
    let (one, other) = (sides.base, sides.target);
    let place = one.keys.iter().zip(&other.keys).position(|(a, b)| !are_equal(a, b));
    let Some(place) = place else { return of_equal_keys(sides, rows, same_rows) };
    let [a, b] = [&one.keys[place], &other.keys[place]];
    let at = sides.labels;
    let keys = format!(
        "row {} has the sort key {} on {}, {} on {}",
        place + 1,
        row(a),
        at[0],
        row(b),
        at[1]
    );
    let differing = a.iter().zip(b).find(|(a, b)| !is_equal(a, b));
    let is_text = differing.is_some_and(|(a, b)| is_text(a) && is_text(b));
    let is_whole = [one, other].iter().all(|side| side.keys.len() as u64 == rows);
    if is_text && (!is_whole || (is_collated(one, other) && is_collated(other, one))) {
        return Told::harmless(format!("the collation sorts text in another order: {keys}"));
    }
    let what = if same_rows { "the same rows in a wrong order" } else { "other rows" };
    Told::answer(format!("{what}: {keys}"))
}

/// No known sort key differs.
fn of_equal_keys(sides: &Sides<'_, OrderRecord>, rows: u64, same_rows: bool) -> Told {
    let (one, other) = (sides.base, sides.target);
    let are_same = one.in_order == other.in_order && one.floats.is_near(&other.floats);
    if same_rows {
        return Told::harmless("the same rows in another order");
    }
    if !are_same && one.keys.len() as u64 == rows {
        // Keys that compare equal as numbers, or in capitals.
        return Told::harmless("rows with equal sort keys: the limit takes others of them");
    }
    if are_same && one.inner != other.inner {
        return Told::answer("other rows with sort keys before those of the last row".to_owned());
    }
    let is_total = [one, other].iter().any(|side| side.is_tied == Some(false));
    if are_same && is_total {
        let at = if one.is_tied == Some(false) { sides.labels[0] } else { sides.labels[1] };
        let text = format!(
            "other rows with the same sort keys, though no row beyond the limit has those of the \
             last of {} on {at}",
            count(rows)
        );
        return Told::answer(text);
    }
    Told::harmless("rows with equal sort keys: the limit takes others of them")
}

fn are_equal(a: &Keys, b: &Keys) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal(a, b))
}

fn is_equal(a: &Option<String>, b: &Option<String>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => {
            a == b || is_near(a, b) || number(a).is_some_and(|it| number(b) == Some(it))
        }
        (a, b) => a == b,
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// True of what a collation sorts, and not of numbers and times.
fn is_text(key: &Option<String>) -> bool {
    key.as_ref().is_some_and(|key| {
        let is_of_time = |letter: char| letter.is_ascii_digit() || "-+:. ".contains(letter);
        number(key).is_none() && !key.chars().all(is_of_time)
    })
}

/// True if some way to sort text gives the order of `side`, and puts no row before its last that
/// only `other` has.
fn is_collated(side: &OrderRecord, other: &OrderRecord) -> bool {
    WAYS.iter().any(|way| {
        let follows = |a: &Keys, b: &Keys| compare_keys(*way, &side.descending, a, b);
        let is_sorted =
            side.keys.windows(2).all(|pair| follows(&pair[0], &pair[1]) != Some(Ordering::Greater));
        let is_only_there =
            |keys: &&Vec<Option<String>>| !side.keys.iter().any(|own| are_equal(own, keys));
        let is_beyond = |keys: &Vec<Option<String>>| {
            let after = side.keys.last().map(|last| follows(keys, last) != Some(Ordering::Less));
            let before =
                side.keys.first().map(|first| follows(keys, first) != Some(Ordering::Greater));
            after == Some(true) || (side.skips && before == Some(true))
        };
        is_sorted && other.keys.iter().filter(is_only_there).all(is_beyond)
    })
}

/// A way to sort text.
#[derive(Clone, Copy)]
enum Way {
    /// By bytes.
    Bytes,
    /// By bytes of capitals, as `general_ci` of MySQL.
    Capitals,
    /// Signs before digits before letters, as new versions of glibc and ICU.
    Signs,
    /// Without signs, as old versions of glibc.
    NoSigns,
}

/// Ways to sort text, with numbers sorted as numbers and as text.
const WAYS: [(Way, bool); 8] = [
    (Way::Bytes, true),
    (Way::Capitals, true),
    (Way::Signs, true),
    (Way::NoSigns, true),
    (Way::Bytes, false),
    (Way::Capitals, false),
    (Way::Signs, false),
    (Way::NoSigns, false),
];

/// The order of the keys of two rows; `None` if it cannot be told.
fn compare_keys(way: (Way, bool), descending: &[bool], a: &Keys, b: &Keys) -> Option<Ordering> {
    for ((a, b), descends) in a.iter().zip(b).zip(descending) {
        let order = match (a, b) {
            (None, None) => Ordering::Equal,
            (Some(a), Some(b)) => match (number(a), number(b)) {
                (Some(a), Some(b)) if way.1 => a.partial_cmp(&b)?,
                _ => compare_texts(way.0, a, b)?,
            },
            // NULL is first or last.
            _ => return None,
        };
        if order != Ordering::Equal {
            return Some(if *descends { order.reverse() } else { order });
        }
    }
    Some(Ordering::Equal)
}

fn compare_texts(way: Way, a: &str, b: &str) -> Option<Ordering> {
    if matches!(way, Way::Bytes) {
        return Some(a.cmp(b));
    }
    // Where letters of other alphabets stand, only the collation knows.
    if !(a.is_ascii() && b.is_ascii()) {
        return None;
    }
    let class = |letter: char| match way {
        Way::Capitals => Some(u32::from(letter.to_ascii_uppercase())),
        _ if letter.is_ascii_alphanumeric() => Some(u32::from(letter.to_ascii_lowercase())),
        // All signs are one: their order is that of the version.
        Way::Signs => Some(0),
        _ => None,
    };
    Some(a.chars().filter_map(class).cmp(b.chars().filter_map(class)))
}

#[cfg(test)]
mod tests {
    use super::super::finding::AnswerWeight::{self, Answer, Harmless};
    use super::*;
    use rqps_model::order_digest::OrderDigest;
    use rqps_model::row_digest::RowDigest;

    /// Rows of a value and its key; the last is beyond the limit.
    fn record(rows: &[(&str, &str)]) -> OrderRecord {
        let order =
            OrderRecord { descending: vec![false], is_limited: true, ..OrderRecord::default() };
        let count = rows.len() as u64 - 1;
        let mut digest = RowDigest::of_order(OrderDigest::new(order, count, true));
        for (value, key) in rows {
            digest.add([Some(value.as_bytes()), Some(key.as_bytes())].into_iter());
        }
        digest.order().and_then(OrderDigest::record).unwrap()
    }

    #[test]
    fn ties_collations_and_wrong_rows_are_told_apart() {
        let check = |one: &[(&str, &str)], other: &[(&str, &str)], want: AnswerWeight| {
            let (base, target) = (record(one), record(other));
            let sides = Sides { base: &base, target: &target, labels: ["a", "b"] };
            let told = compare(&sides, one.len() as u64 - 1, false);
            assert_eq!(told.weight, want, "{one:?} {other:?} {told:?}");
        };
        let two = [("x", "1"), ("y", "2"), ("z", "2")];
        check(&two, &[("x", "1"), ("z", "2"), ("y", "2")], Harmless);
        check(&two, &[("w", "1"), ("z", "2"), ("y", "2")], Answer);
        check(&two, &[("x", "1"), ("z", "3"), ("y", "3")], Answer);
        // Another row with a key that no other row has.
        check(&[("x", "1"), ("y", "2"), ("z", "3")], &[("x", "1"), ("v", "2"), ("z", "3")], Answer);
        check(
            &[("x", "1.5"), ("y", "2.5"), ("z", "9.5")],
            &[("x", "1.50"), ("y", "3.5"), ("z", "9.5")],
            Answer,
        );
        // Z is before a by bytes, after c in a dictionary.
        let bytes = [("1", "Z"), ("2", "a"), ("3", "b"), ("4", "c")];
        check(&bytes, &[("2", "a"), ("3", "b"), ("4", "c"), ("1", "Z")], Harmless);
        // Old glibc passes over signs; new does not.
        check(
            &[("1", "a z"), ("2", "ab"), ("3", "b")],
            &[("2", "ab"), ("1", "a z"), ("3", "b")],
            Harmless,
        );
        // No way to sort leaves c out.
        check(
            &[("1", "a"), ("2", "b"), ("3", "c"), ("4", "d")],
            &[("1", "a"), ("2", "b"), ("4", "d"), ("5", "e")],
            Answer,
        );
        check(&bytes, &[("3", "b"), ("2", "a"), ("1", "Z"), ("4", "c")], Answer);
    }

    #[test]
    fn a_wrong_order_of_the_same_rows_is_another_answer() {
        let check = |one: &[&str], other: &[&str], want: AnswerWeight| {
            let of = |keys: &[&str]| {
                record(
                    &[keys, &["~"][..]].concat().iter().map(|key| (*key, *key)).collect::<Vec<_>>(),
                )
            };
            let (base, target) = (of(one), of(other));
            let sides = Sides { base: &base, target: &target, labels: ["a", "b"] };
            assert_eq!(compare(&sides, one.len() as u64, true).weight, want, "{one:?} {other:?}");
        };
        check(&["1", "2", "3"], &["1", "3", "2"], Answer);
        check(&["2026-01-02", "2026-01-03"], &["2026-01-03", "2026-01-02"], Answer);
        check(&["B", "a", "c"], &["a", "B", "c"], Harmless);
        check(&["a", "b", "c"], &["a", "c", "b"], Answer);
        check(&["é", "f"], &["f", "é"], Harmless);
    }
}
