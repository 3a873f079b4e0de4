//! Compares the replies to one statement, and tells apart what may differ.

use std::cmp::Ordering;

use super::{Sides, Told};
use rqps_model::dialect::Dialect;
use rqps_model::row_digest::{
    AnswerReply, OrderRecord, RowsRecord, SampleRow, StatementAnswer, StepAnswers, is_near,
};
use rqps_text as user_text;

/// Functions, with a parenthesis, and values that depend on the time, the version or the session.
const OF_THE_MOMENT: &str = "\
     NOW( CURRENT_TIMESTAMP CURRENT_DATE CURRENT_TIME LOCALTIME LOCALTIMESTAMP CLOCK_TIMESTAMP( \
     STATEMENT_TIMESTAMP( TRANSACTION_TIMESTAMP( TIMEOFDAY( SYSDATE CURDATE( CURTIME( UTC_DATE \
     UTC_TIME UTC_TIMESTAMP UNIX_TIMESTAMP( AGE( DATE( TIME( DATETIME( JULIANDAY( STRFTIME( \
     UNIXEPOCH( VERSION( SQLITE_VERSION( SQLITE_SOURCE_ID( CONNECTION_ID( PG_BACKEND_PID( \
     TXID_CURRENT( PG_CURRENT_XACT_ID( LAST_INSERT_ID( LASTVAL( CURRVAL( CURRENT_SETTING( \
     SLEEP( PG_SLEEP(";

/// The same for what may be anything: random values, catalogs, sizes of files.
const OF_CHANCE: &str = "\
     RANDOM( RAND( RANDOMBLOB( RANDOM_NORMAL( GEN_RANDOM_UUID( UUID( UUID_SHORT( \
     UUID_GENERATE_V4( UUIDV4( UUIDV7( SYS_GUID( RANDOM_BYTES( TABLESAMPLE PG_CATALOG \
     INFORMATION_SCHEMA PERFORMANCE_SCHEMA PG_CLASS PG_STATS SQLITE_MASTER SQLITE_SCHEMA \
     PG_TABLE_SIZE( PG_RELATION_SIZE( PG_TOTAL_RELATION_SIZE( PG_DATABASE_SIZE(";

/// The largest share by which two moments explain other numbers of rows.
const MOMENTS_APART: f64 = 0.02;

/// Words of values that say where a row lies.
const OF_THE_PLACE: &str = "\
     CTID XMIN XMAX TABLEOID ROWID OID";

/// Words of aggregates and windows whose result depends on the order of rows.
const OF_THE_ORDER: &str = "\
     ARRAY_AGG STRING_AGG GROUP_CONCAT JSON_AGG JSONB_AGG JSON_ARRAYAGG JSON_GROUP_ARRAY \
     XMLAGG OVER ANY_VALUE FIRST_VALUE LAST_VALUE";

/// Operators and functions of distances, by which indexes order rows as nearly as they can.
const DISTANCES: [&str; 4] = ["<->", "<=>", "<#>", "<+>"];
const OF_DISTANCE: &str = "VEC_DISTANCE VEC_DISTANCE_EUCLIDEAN VEC_DISTANCE_COSINE DISTANCE";

/// Codes of a statement that took too long.
const TOO_LONG: [&str; 2] = ["57014", "1317"];

/// Codes of a statement that writes after all.
const WRITES: [&str; 3] = ["25006", "1792", "8"];

/// Most characters of a statement.
const STATEMENT: usize = 200;

/// What is known of the statements of a step.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) dialect: Dialect,
    /// Their tables hold values that differ on any two servers.
    pub(super) own_values: bool,
    /// Each target wrote to their tables at its own rate, so that only errors are compared.
    pub(super) is_changed: bool,
}

/// The first difference of each weight in the answers of a step.
pub(super) fn compare(sides: &Sides<'_, StepAnswers>, asked: &Asked) -> Vec<Told> {
    let (one, other) = (sides.base, sides.target);
    let text = |answers: &StepAnswers, answer: &StatementAnswer| {
        answers.statements.get(answer.statement as usize).cloned().unwrap_or_default()
    };
    let mut found: Vec<Told> = Vec::new();
    for (a, b) in one.answers.iter().zip(&other.answers) {
        let sql = text(one, a);
        if sql != text(other, b) || a.values != b.values {
            // After another answer, a script may go another way.
            break;
        }
        let pair = sides.with(&a.reply, &b.reply);
        let is_refused = |reply: &AnswerReply| matches!(reply, AnswerReply::Refused { .. });
        if asked.is_changed && !is_refused(pair.base) && !is_refused(pair.target) {
            continue;
        }
        let is_distance = asked.dialect == Dialect::Postgres
            && DISTANCES.iter().any(|operator| sql.contains(operator));
        let words = user_text::words(asked.dialect, &sql);
        let words = Words { words, own_values: asked.own_values, is_distance };
        for Told { weight, text } in reply(&words, &pair).into_iter().chain(warnings(&pair)) {
            if !found.iter().any(|known| known.weight == weight) {
                let text = format!("{}: {text}", statement(&sql, &a.values));
                found.push(Told { weight, text });
            }
        }
    }
    for (label, answers) in sides.labels.iter().zip([one, other]) {
        if let Some(note) = answers.note.as_ref().filter(|_| one.note != other.note) {
            found.push(Told::uncompared(format!("on {label}: {note}")));
        }
    }
    found
}

/// The statement and its values in one line.
fn statement(sql: &str, values: &[Option<String>]) -> String {
    let mut text = sql.split_whitespace().collect::<Vec<&str>>().join(" ");
    if text.chars().count() > STATEMENT {
        text = text.chars().take(STATEMENT).chain(['…']).collect();
    }
    match values {
        [] => format!("`{text}`"),
        values => format!("`{text}` with {}", row(values)),
    }
}

/// How two replies differ; `None` if they do not.
fn reply(words: &Words, replies: &Sides<'_, AnswerReply>) -> Option<Told> {
    let (one, other) = (replies.base, replies.target);
    let code = |reply: &AnswerReply| match reply {
        AnswerReply::Refused { code, .. } => Some(code.clone()),
        AnswerReply::Rows { .. } => None,
    };
    let codes = [code(one), code(other)];
    let is_of = |list: &[&str]| codes.iter().flatten().any(|code| list.contains(&code.as_str()));
    match (one, other) {
        _ if is_of(&TOO_LONG) => {
            return Some(Told::uncompared("not compared: it takes longer than 10 s"));
        }
        _ if is_of(&WRITES) => {
            return Some(Told::uncompared("not compared: it writes"));
        }
        _ if codes[0] == codes[1] && codes[0].is_some() => return None,
        (
            AnswerReply::Rows { rows: one, repeats: first, order: by, .. },
            AnswerReply::Rows { rows: other, repeats: second, order: other_by, .. },
        ) => {
            let changes = [first, second].into_iter().any(|repeats| *repeats == Some(false));
            let orders = by.as_deref().zip(other_by.as_deref());
            let orders = orders.map(|(by, other_by)| replies.with(by, other_by));
            return rows(words, &replies.with(one, other), orders.as_ref(), changes);
        }
        _ => {}
    }
    let said = |label: &str, reply: &AnswerReply| match reply {
        AnswerReply::Refused { code, message } => format!("error {code} on {label} ({message})"),
        AnswerReply::Rows { rows, .. } => format!("{} on {label}", count(rows.rows)),
    };
    Some(Told::answer(replies.told(said).join(", ")))
}

/// How the warnings of two replies with rows differ; `None` if they do not. Versions add notes and
/// say that something will go; other warnings mean that values were read otherwise.
fn warnings(replies: &Sides<'_, AnswerReply>) -> Option<Told> {
    let (AnswerReply::Rows { warnings: one, .. }, AnswerReply::Rows { warnings: other, .. }) =
        (replies.base, replies.target)
    else {
        return None;
    };
    // Versions word them differently.
    let code = |text: &String| text.split(':').next().unwrap_or_default().to_owned();
    let only = |of: &[String], against: &[String]| -> Vec<String> {
        let is_new = |text: &&String| !against.iter().any(|known| code(known) == code(text));
        of.iter().filter(is_new).cloned().collect()
    };
    let only = [only(one, other), only(other, one)];
    let said: Vec<String> = only
        .iter()
        .zip(replies.labels)
        .filter_map(|(texts, label)| Some(format!("`{}` only on {label}", texts.first()?)))
        .collect();
    let is_grave = |text: &String| {
        text.to_ascii_lowercase().starts_with("warning") && !text.contains("deprecated")
    };
    let text = said.join(", ");
    match only.iter().flatten().any(is_grave) {
        _ if said.is_empty() => None,
        true => Some(Told::answer(text)),
        false => Some(Told::harmless(text)),
    }
}

/// The words of a statement.
struct Words {
    words: Vec<String>,
    /// Its tables hold values that differ on any two servers.
    own_values: bool,
    /// It has an operator of distances.
    is_distance: bool,
}

impl Words {
    fn first_of(&self, list: &str) -> Option<String> {
        let next = self.words.iter().skip(1).map(Some).chain([None]);
        let mut found = self.words.iter().zip(next).filter(|(word, next)| {
            list.split_whitespace().any(|listed| match listed.strip_suffix('(') {
                Some(call) => call == word.as_str() && next.is_some_and(|it| it == "("),
                None => listed == word.as_str(),
            })
        });
        found.next().map(|(word, _)| word.to_lowercase())
    }

    /// True if a query within the statement may have a limit, too.
    fn limits_within(&self) -> bool {
        self.words.iter().filter(|word| ["LIMIT", "FETCH"].contains(&word.as_str())).count() > 1
    }

    fn has(&self, word: &str, next: &str) -> bool {
        let mut pairs = self.words.iter().zip(self.words.iter().skip(1));
        pairs.any(|(one, other)| one == word && other == next)
    }
}

/// How two results differ; `None` if they do not.
fn rows(
    words: &Words,
    sides: &Sides<'_, RowsRecord>,
    orders: Option<&Sides<'_, OrderRecord>>,
    changes: bool,
) -> Option<Told> {
    let (one, other) = (sides.base, sides.target);
    let harmless = |text: String| Some(Told::harmless(text));
    let same_rows = one.any_order == other.any_order && one.rows == other.rows;
    if same_rows && (one.in_order == other.in_order || !words.has("ORDER", "BY")) {
        return None;
    }
    if changes {
        return harmless("its rows change from one execution to the next".to_owned());
    }
    let moment = words.first_of(OF_THE_MOMENT).filter(|_| !are_far(words, sides));
    if let Some(word) = words.first_of(OF_CHANCE).or(moment) {
        return harmless(format!("its rows depend on `{word}`"));
    }
    if same_rows {
        let told = orders.map(|orders| compare_orders(orders, one.rows, true));
        return told.or_else(|| harmless("the same rows in another order".to_owned()));
    }
    if let Some(word) = words.first_of(OF_THE_PLACE) {
        return harmless(format!("its rows hold `{word}`, which says where a row lies"));
    }
    if one.rows == other.rows {
        if are_near(sides) {
            return harmless("numbers differ in their last digits".to_owned());
        }
        if words.own_values && are_excused(sides) {
            return harmless("it returns values that each load makes for itself".to_owned());
        }
        if let Some(word) = words.first_of(OF_THE_ORDER) {
            return harmless(format!("the order of rows decides what `{word}` gives"));
        }
        if words.is_distance || words.first_of(OF_DISTANCE).is_some() {
            return harmless("an index of distances finds about the nearest rows".to_owned());
        }
        if let Some(orders) = orders.filter(|it| it.base.is_limited && !words.limits_within()) {
            return Some(compare_orders(orders, one.rows, false));
        }
        if words.has("DISTINCT", "ON") || words.first_of("LIMIT FETCH").is_some() {
            return harmless("the order of rows decides which of them it returns".to_owned());
        }
    }
    Some(Told::answer(difference(sides)))
}

// Rows in words, and rows that are alike.

/// Most characters of a row.
const ROW: usize = 160;

/// `(1, abc, NULL)`.
pub(super) fn row(values: &[Option<String>]) -> String {
    let values: Vec<&str> = values.iter().map(|it| it.as_deref().unwrap_or("NULL")).collect();
    let text = values.join(", ");
    if text.chars().count() > ROW {
        format!("({}…)", text.chars().take(ROW).collect::<String>())
    } else {
        format!("({text})")
    }
}

/// `1 row`, `2 rows`.
pub(super) fn count(rows: u64) -> String {
    if rows == 1 { "1 row".to_owned() } else { format!("{rows} rows") }
}

/// True if numbers of rows, or what the statement counts, differ by more than two moments explain.
fn are_far(words: &Words, sides: &Sides<'_, RowsRecord>) -> bool {
    let is_far =
        |one: f64, other: f64| (one - other).abs() > (MOMENTS_APART * one.max(other)).max(1.0);
    let (one, other) = (sides.base, sides.target);
    let alike = |a: &str, b: &str| match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => !is_far(a, b),
        _ => true,
    };
    let is_counted = words.has("COUNT", "(") && one.is_whole() && other.is_whole();
    is_far(one.rows as f64, other.rows as f64) || (is_counted && !match_up(one, other, alike))
}

/// True if only digits of numbers differ.
fn are_near(sides: &Sides<'_, RowsRecord>) -> bool {
    let (one, other) = (sides.base, sides.target);
    if one.without_floats != other.without_floats || !one.floats.is_near(&other.floats) {
        return false;
    }
    if !(one.is_whole() && other.is_whole()) {
        return true;
    }
    match_up(one, other, is_near)
}

/// True if only values differ that each load makes for itself: its time, random identifiers.
fn are_excused(sides: &Sides<'_, RowsRecord>) -> bool {
    let (one, other) = (sides.base, sides.target);
    let is_excused = |a: &str, b: &str| {
        is_near(a, b) || [begins_with_date, is_uuid].iter().any(|is_of| is_of(a) && is_of(b))
    };
    !(one.is_whole() && other.is_whole()) || match_up(one, other, is_excused)
}

/// True if each of few rows has one on the other side with values that are the same or alike.
fn match_up(one: &RowsRecord, other: &RowsRecord, alike: impl Fn(&str, &str) -> bool) -> bool {
    let matches = |a: &SampleRow, b: &SampleRow| {
        let mut pairs = a.values.iter().zip(&b.values);
        pairs.all(|(a, b)| match (a, b) {
            (Some(a), Some(b)) => a == b || alike(a, b),
            (a, b) => a == b,
        })
    };
    one.sample.iter().all(|a| other.sample.iter().any(|b| matches(a, b)))
}

/// Numbers of rows, and the first row that only one of both has.
pub(super) fn difference(sides: &Sides<'_, RowsRecord>) -> String {
    let (one, other) = (sides.base, sides.target);
    let first = |of: &RowsRecord, against: &RowsRecord| {
        // Beyond its last checksum, the other sample tells nothing.
        let end = against.sample.last().map(|row| row.checksum.as_str());
        let known = |row: &&SampleRow| {
            let is_known =
                against.is_whole() || end.is_some_and(|end| row.checksum.as_str() <= end);
            is_known && !against.sample.iter().any(|other| other.checksum == row.checksum)
        };
        of.sample.iter().find(known).map(|found| row(&found.values))
    };
    let said = |label: &str, of: &RowsRecord, against: &RowsRecord| {
        let only = first(of, against).map(|row| format!(", {row} only there"));
        format!("{} on {label}{}", count(of.rows), only.unwrap_or_default())
    };
    format!("{}; {}", said(sides.labels[0], one, other), said(sides.labels[1], other, one))
}

/// `2026-01-31…`.
pub(super) fn begins_with_date(text: &str) -> bool {
    let is_date = |(place, byte): (usize, &u8)| match place {
        4 | 7 => *byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    text.len() >= 10 && text.as_bytes()[..10].iter().enumerate().all(is_date)
}

/// `123e4567-e89b-42d3-a456-426614174000`.
pub(super) fn is_uuid(text: &str) -> bool {
    let is_of_uuid = |(place, byte): (usize, u8)| match place {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.bytes().enumerate().all(is_of_uuid)
}

// Tells rows with equal sort keys, which may come in any order, from a wrong order or other rows,
// and both from text that two versions of a collation sort in their own way.

/// The keys of a row.
type Keys = [Option<String>];

/// How two results of one statement with ORDER BY differ, of `rows` rows each. `same_rows` if only
/// their order does.
fn compare_orders(sides: &Sides<'_, OrderRecord>, rows: u64, same_rows: bool) -> Told {
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
mod replies_tests {
    use super::super::AnswerWeight;
    use super::*;
    use rqps_model::row_digest::RowDigest;

    const ASKED: Asked = Asked { dialect: Dialect::Postgres, own_values: false, is_changed: false };

    /// Rows of columns with `|` between them.
    fn record(rows: &[&str]) -> RowsRecord {
        let mut digest = RowDigest::default();
        for row in rows {
            digest.add(row.split('|').map(|value| Some(value.as_bytes())));
        }
        digest.record()
    }

    fn given(sql: &str, reply: AnswerReply) -> StepAnswers {
        StepAnswers { answers: vec![reply.into()], statements: vec![sql.to_owned()], note: None }
    }

    fn of_rows(sql: &str, rows: &[&str]) -> StepAnswers {
        given(sql, reply_of(rows, &[]))
    }

    fn reply_of(rows: &[&str], warnings: &[&str]) -> AnswerReply {
        let warnings = warnings.iter().map(|text| (*text).to_owned()).collect();
        AnswerReply::Rows { rows: record(rows), repeats: Some(true), order: None, warnings }
    }

    fn weights(one: &StepAnswers, other: &StepAnswers) -> Vec<AnswerWeight> {
        let sides = Sides { base: one, target: other, labels: ["a", "b"] };
        compare(&sides, &ASKED).into_iter().map(|told| told.weight).collect()
    }

    #[test]
    fn harmless_kinds_are_told_apart_from_other_answers() {
        use AnswerWeight::{Answer, Harmless};
        let check = |sql: &str, one: &[&str], other: &[&str], want: &[AnswerWeight]| {
            assert_eq!(weights(&of_rows(sql, one), &of_rows(sql, other)), want, "{sql}");
        };
        check("SELECT a FROM t", &["1", "2"], &["2", "1"], &[]);
        check("SELECT a FROM t ORDER BY b", &["1", "2"], &["2", "1"], &[Harmless]);
        check("SELECT a FROM t", &["1", "2"], &["1", "3"], &[Answer]);
        check("SELECT a FROM t", &["1", "2"], &["1"], &[Answer]);
        check("SELECT sum(a) FROM t", &["1|0.30000000000000004"], &["1|0.3"], &[Harmless]);
        check("SELECT sum(a) FROM t", &["1|0.31"], &["1|0.3"], &[Answer]);
        check("SELECT sum(a) FROM t", &["2|0.30000000000000004"], &["1|0.3"], &[Answer]);
        check("SELECT a FROM t LIMIT 1", &["1"], &["2"], &[Harmless]);
        check("SELECT a FROM t LIMIT 2", &["1"], &["2", "3"], &[Answer]);
        check("SELECT a FROM t ORDER BY b <-> '[1]' LIMIT 1", &["1"], &["2"], &[Harmless]);
        check("SELECT now(), a FROM t", &["1"], &["2"], &[Harmless]);
        check("SELECT 'now', a FROM t", &["1"], &["2"], &[Answer]);
        // A moment explains some rows, not most of them; a column may have the name of a function.
        check("SELECT count(*) FROM t WHERE d < now()", &["200"], &["197"], &[Harmless]);
        check("SELECT count(*) FROM t WHERE d < now()", &["200"], &["0"], &[Answer]);
        check("SELECT a FROM t WHERE d < CURRENT_DATE", &["1", "2", "3"], &["1"], &[Answer]);
        check("SELECT date FROM t WHERE age > 30", &["1"], &["2"], &[Answer]);
        check("SELECT count(*) FROM t WHERE random() < 0.1", &["9"], &["19"], &[Harmless]);
        check("SELECT array_agg(a) FROM t", &["{1,2}"], &["{2,1}"], &[Harmless]);
        // A column before Postgres 16, a keyword since.
        check("SELECT count(*) FROM t WHERE system_user = 'x'", &["200"], &["0"], &[Answer]);
    }

    #[test]
    fn an_error_on_one_side_is_another_answer_unless_time_ran_out() {
        let refused = |code: &str| {
            let (code, message) = (code.to_owned(), "no".to_owned());
            given("SELECT 1", AnswerReply::Refused { code, message })
        };
        let rows = of_rows("SELECT 1", &["1"]);
        let check = |one: &StepAnswers, other: &StepAnswers, want: &[AnswerWeight]| {
            assert_eq!(weights(one, other), want);
        };
        check(&rows, &refused("42703"), &[AnswerWeight::Answer]);
        check(&refused("42P01"), &refused("42703"), &[AnswerWeight::Answer]);
        check(&refused("42703"), &refused("42703"), &[]);
        check(&refused("57014"), &refused("57014"), &[AnswerWeight::Uncompared]);
        check(&rows, &refused("57014"), &[AnswerWeight::Uncompared]);
        check(&refused("25006"), &rows, &[AnswerWeight::Uncompared]);
    }

    #[test]
    fn the_text_holds_a_row_of_each_side() {
        let (base, target) =
            (of_rows("SELECT\n a", &["1", "2"]), of_rows("SELECT\n a", &["2", "3"]));
        let sides = Sides { base: &base, target: &target, labels: ["old", "new"] };
        let told = compare(&sides, &ASKED);
        let want = "`SELECT a`: 2 rows on old, (1) only there; 2 rows on new, (3) only there";
        assert_eq!(told, [Told::answer(want.to_owned())]);
    }

    #[test]
    fn other_warnings_are_another_answer_but_notes_are_not() {
        use AnswerWeight::{Answer, Harmless};
        let check = |one: &[&str], other: &[&str], want: &[AnswerWeight]| {
            let of = |warnings: &[&str]| given("SELECT 1", reply_of(&["1"], warnings));
            assert_eq!(weights(&of(one), &of(other)), want, "{one:?} {other:?}");
        };
        check(&["Warning 1292: Truncated 'a'"], &["Warning 1292: truncated a"], &[]);
        check(&["Warning 1292: Truncated 'a'"], &[], &[Answer]);
        check(&[], &["Warning 1287: 'x' is deprecated"], &[Harmless]);
        check(&["NOTICE: no such thing"], &[], &[Harmless]);
        check(&["WARNING: odd"], &["NOTICE: no such thing"], &[Answer]);
    }

    #[test]
    fn what_follows_another_answer_is_not_compared() {
        let mut one = of_rows("SELECT 1", &["1"]);
        let mut other = of_rows("SELECT 1", &["1"]);
        one.statements.push("SELECT 2".to_owned());
        other.statements.push("SELECT 3".to_owned());
        for (answers, rows) in [(&mut one, "2"), (&mut other, "3")] {
            let reply = reply_of(&[rows], &[]);
            let plan = None;
            let answer = StatementAnswer { statement: 1, plan, ..StatementAnswer::from(reply) };
            answers.answers.push(answer);
        }
        assert_eq!(weights(&one, &other), []);
    }
}

#[cfg(test)]
mod order_tests {
    use super::super::AnswerWeight::{self, Answer, Harmless};
    use super::*;
    use rqps_model::row_digest::OrderDigest;
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
            let told = compare_orders(&sides, one.len() as u64 - 1, false);
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
            assert_eq!(
                compare_orders(&sides, one.len() as u64, true).weight,
                want,
                "{one:?} {other:?}"
            );
        };
        check(&["1", "2", "3"], &["1", "3", "2"], Answer);
        check(&["2026-01-02", "2026-01-03"], &["2026-01-03", "2026-01-02"], Answer);
        check(&["B", "a", "c"], &["a", "B", "c"], Harmless);
        check(&["a", "b", "c"], &["a", "c", "b"], Answer);
        check(&["é", "f"], &["f", "é"], Harmless);
    }
}
