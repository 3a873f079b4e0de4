//! Compares the replies to one statement, and tells apart what may differ.

use super::finding::{Sides, Told};
use super::order;
use super::rows::{are_excused, are_near, count, difference, row};
use rqps_model::answers::{AnswerReply, StatementAnswer, StepAnswers};
use rqps_model::dialect::Dialect;
use rqps_model::order_digest::OrderRecord;
use rqps_model::row_digest::RowsRecord;
use rqps_text as user_text;

/// Words of functions and values that depend on the time, the version or the session.
const OF_THE_MOMENT: &str = "\
     NOW CURRENT_TIMESTAMP CURRENT_DATE CURRENT_TIME LOCALTIME LOCALTIMESTAMP CLOCK_TIMESTAMP \
     STATEMENT_TIMESTAMP TRANSACTION_TIMESTAMP TIMEOFDAY SYSDATE CURDATE CURTIME UTC_DATE \
     UTC_TIME UTC_TIMESTAMP UNIX_TIMESTAMP AGE DATE TIME DATETIME JULIANDAY STRFTIME \
     UNIXEPOCH VERSION SQLITE_VERSION SQLITE_SOURCE_ID RANDOM RAND RANDOMBLOB RANDOM_NORMAL \
     GEN_RANDOM_UUID UUID UUID_SHORT UUID_GENERATE_V4 UUIDV4 UUIDV7 SYS_GUID RANDOM_BYTES \
     CONNECTION_ID PG_BACKEND_PID TXID_CURRENT PG_CURRENT_XACT_ID LAST_INSERT_ID LASTVAL \
     CURRVAL PG_CATALOG INFORMATION_SCHEMA PERFORMANCE_SCHEMA PG_CLASS PG_STATS SQLITE_MASTER \
     SQLITE_SCHEMA PG_TABLE_SIZE PG_RELATION_SIZE PG_TOTAL_RELATION_SIZE PG_DATABASE_SIZE \
     CURRENT_SETTING TABLESAMPLE SLEEP PG_SLEEP";

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
        let is_listed = |word: &&String| list.split(' ').any(|listed| listed == word.as_str());
        self.words.iter().find(is_listed).map(|it| it.to_lowercase())
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
    if let Some(word) = words.first_of(OF_THE_MOMENT) {
        return harmless(format!("its rows depend on `{word}`"));
    }
    if same_rows {
        let told = orders.map(|orders| order::compare(orders, one.rows, true));
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
            return Some(order::compare(orders, one.rows, false));
        }
        if words.has("DISTINCT", "ON") || words.first_of("LIMIT FETCH").is_some() {
            return harmless("the order of rows decides which of them it returns".to_owned());
        }
    }
    Some(Told::answer(difference(sides)))
}

#[cfg(test)]
mod tests {
    use super::super::finding::AnswerWeight;
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
        let answer = StatementAnswer { statement: 0, values: Vec::new(), reply, plan: None };
        StepAnswers { answers: vec![answer], statements: vec![sql.to_owned()], note: None }
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
            answers.answers.push(StatementAnswer { statement: 1, values: Vec::new(), reply, plan });
        }
        assert_eq!(weights(&one, &other), []);
    }
}
