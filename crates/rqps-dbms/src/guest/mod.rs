//! Tables of rqps on a server that somebody else runs: a schema or database of its own, or, where
//! it may not make one, the given one without anything in it that rqps did not make.

mod catalogue;
mod claim;
mod trust;

use crate::control::DbmsError;
use crate::guest::catalogue::{Catalogue, LockAnswer, Relation, own_name};
use crate::sql_server::ControlConnection;
use rqps_model::escape;
use rqps_model::sql_name::Literal;

pub(super) use self::claim::{Ownership, Theirs};
pub(super) use self::trust::open_schemas;

// Owners of tables on a server that rqps does not run: the table of owners, and the mark.

/// The table that says what rqps made in a place.
const OWNER: &str = "rqps_owner";

/// Its comment: a table of that name without it is somebody else's.
const OWNER_COMMENT: &str = "rqps: what rqps made here, for which plan, and when";

/// Its columns, as both dialects understand them.
const OWNER_COLUMNS: &str = "tag VARCHAR(16) NOT NULL, name VARCHAR(64) NOT NULL, \
     plan VARCHAR(16) NOT NULL, results VARCHAR(1000) NOT NULL, host VARCHAR(255) NOT NULL, \
     label VARCHAR(255) NOT NULL, version VARCHAR(32) NOT NULL, made VARCHAR(32) NOT NULL, \
     kept INT NOT NULL, PRIMARY KEY (tag, name)";

/// A visit of rqps to a server: its purpose and its permissions.
#[derive(Clone, Debug)]
pub struct Guest {
    /// 12 hex digits, another one for each host, result folder, plan and label: the same when a
    /// plan is resumed.
    pub tag: String,
    /// Hash of the plan.
    pub plan: String,
    /// The result folder.
    pub results: String,
    /// Name of the host that rqps runs on.
    pub host: String,
    /// Label of the target.
    pub label: String,
    /// The time of the visit, RFC 3339.
    pub time: String,
    /// Every name that the benchmark gives to a table, an index or a sequence.
    pub names: Vec<String>,
    /// True to keep what the benchmark made on the server (`--keep`).
    pub keep: bool,
    /// Tables of others that may be dropped for their names.
    pub replace: Vec<String>,
}

impl Guest {
    fn mark(&self) -> String {
        mark(&self.tag)
    }
}

/// The comment of the tables of one tag.
fn mark(tag: &str) -> String {
    format!("rqps {tag}: made for a benchmark, see {OWNER}")
}

// The table in which rqps writes down what it made in a place, for which plan, and when.

/// A row of [`OWNER`].
struct Owned {
    tag: String,
    name: String,
    plan: String,
    results: String,
    host: String,
    made: String,
    kept: bool,
}

/// The table [`OWNER`] of a place, which need not be there.
struct Ledger<'a> {
    catalogue: Catalogue,
    session: &'a mut dyn ControlConnection,
    /// Name of the place.
    place: String,
    /// The place in words.
    words: String,
}

impl Ledger<'_> {
    /// The table; nothing if it is not there.
    fn table(&mut self) -> Result<Option<Relation>, DbmsError> {
        let tables = self.catalogue.relations(self.session, &self.place, &[OWNER]);
        let tables = tables.map_err(DbmsError::sql(format!("look at the {}", self.words)))?;
        Ok(tables.into_iter().next())
    }

    fn run(&mut self, sql: &str) -> Result<(), DbmsError> {
        self.session.run(sql).map_err(DbmsError::sql(sql.to_owned()))
    }

    /// The objects that rqps made here; empty if there is no ledger.
    ///
    /// # Errors
    ///
    /// The table of the ledger is somebody else's.
    fn rows(&mut self) -> Result<Vec<Owned>, DbmsError> {
        match self.table()? {
            None => return Ok(Vec::new()),
            Some(table) if table.kind == "table" && table.bears(OWNER_COMMENT) => {}
            Some(_) => {
                return Err(DbmsError::Refused(format!(
                    "use the {}: its table {OWNER} does not belong to rqps\nhint: rename that \
                     table, or name another database in the DSN",
                    self.words
                )));
            }
        }
        let sql = format!("SELECT tag, name, plan, results, host, made, kept FROM {OWNER}");
        let rows = self.session.rows(&sql);
        let rows = rows.map_err(DbmsError::sql(format!("look at the {}", self.words)))?;
        let row = |row: Vec<Option<String>>| {
            let mut cells = row.into_iter().map(Option::unwrap_or_default);
            Some(Owned {
                tag: cells.next()?,
                name: cells.next()?,
                plan: cells.next()?,
                results: cells.next()?,
                host: cells.next()?,
                made: cells.next()?,
                kept: cells.next()? == "1",
            })
        };
        Ok(rows.into_iter().filter_map(row).collect())
    }

    /// Writes down the names that will be made for `guest`.
    fn write_down(&mut self, guest: &Guest) -> Result<(), DbmsError> {
        if self.table()?.is_none() {
            let comment = Literal::quoted(self.catalogue.0, OWNER_COMMENT);
            let table = format!("CREATE TABLE {OWNER} ({OWNER_COLUMNS})");
            self.run(&if self.catalogue.is_mysql() {
                format!("{table} COMMENT = {comment}")
            } else {
                format!("{table}; COMMENT ON TABLE {OWNER} IS {comment}")
            })?;
        }
        self.forget(&format!("plan = {}", Literal::quoted(self.catalogue.0, &guest.plan)))?;
        let literal = |text: &str, most: usize| {
            // No character set of a server refuses these.
            let plain = |letter: char| if letter.is_ascii() { letter } else { '?' };
            Literal::quoted(
                self.catalogue.0,
                &text.chars().map(plain).take(most).collect::<String>(),
            )
        };
        let rest = format!(
            "{}, {}, {}, {}, {}, {}, 0",
            literal(&guest.plan, 16),
            literal(&guest.results, 1000),
            literal(&guest.host, 255),
            literal(&guest.label, 255),
            literal(env!("CARGO_PKG_VERSION"), 32),
            literal(&guest.time, 32),
        );
        let tag = literal(&guest.tag, 16);
        let rows = guest.names.iter().map(|name| format!("({tag}, {}, {rest})", literal(name, 64)));
        let rows: Vec<String> = rows.collect();
        self.run(&format!(
            "INSERT INTO {OWNER} (tag, name, plan, results, host, label, version, made, kept) \
             VALUES {}",
            rows.join(", ")
        ))
    }

    /// Removes rows.
    fn forget(&mut self, condition: &str) -> Result<(), DbmsError> {
        match self.table()? {
            None => Ok(()),
            Some(_) => self.run(&format!("DELETE FROM {OWNER} WHERE {condition}")),
        }
    }

    /// Writes down that what these rows name is to stay.
    fn keep(&mut self, condition: &str) -> Result<(), DbmsError> {
        self.run(&format!("UPDATE {OWNER} SET kept = 1 WHERE {condition}"))
    }
}

// Existing objects with a name that the benchmark needs, and whether they may be dropped.

/// Something that has a name which the benchmark needs.
struct ExternalTable {
    relation: Relation,
    /// The maker, if it is another plan's table.
    maker: Option<String>,
}

impl ExternalTable {
    fn is_replaceable(&self) -> bool {
        self.relation.kind == "table" && self.relation.tie.is_empty()
    }

    fn words(&self) -> String {
        let Relation { name, kind, of_table, tie, .. } = &self.relation;
        let of_table = if of_table.is_empty() { String::new() } else { format!(" of {of_table}") };
        let more = [tie.as_str(), self.maker.as_deref().unwrap_or_default()];
        let more: Vec<&str> = more.into_iter().filter(|text| !text.is_empty()).collect();
        let more = if more.is_empty() { String::new() } else { format!(": {}", more.join("; ")) };
        // Whoever made it chose its name.
        escape::line(&format!("{kind} {name}{of_table}{more}")).into_owned()
    }
}

/// The first names and how many there are more.
fn shortened(names: &[String]) -> String {
    const MOST: usize = 4;
    match names.len() {
        0..=MOST => names.join(", "),
        more => format!("{} and {} more", names[..MOST].join(", "), more - MOST),
    }
}

// Places that killed runs left on a server.

/// Removes the places that killed runs of this plan left, and reports those of other plans. Skips
/// places that a running rqps has locked, and only reports those that cannot be locked.
///
/// # Errors
/// The server does not answer. Its refusals become notes.
pub(crate) fn sweep(theirs: &Theirs<'_>, guest: &Guest) -> Result<Vec<String>, DbmsError> {
    let own = own_name(&guest.tag);
    let places = Ownership::on(theirs, own.clone())?.ask(Catalogue::places_of_rqps)?;
    let mut notes = Vec::new();
    for name in places.into_iter().filter(|name| *name != own) {
        // Places that this user cannot read are not this plan's.
        if let Ok(Some(note)) = swept(Ownership::on(theirs, name)?, guest) {
            notes.push(note);
        }
    }
    Ok(notes)
}

fn swept(mut claim: Ownership, guest: &Guest) -> Result<Option<String>, DbmsError> {
    let name = claim.lock_name();
    let answer = claim.ask(|catalogue, session| catalogue.try_lock(session, &name))?;
    if answer == LockAnswer::Held {
        return Ok(None);
    }
    if claim.check_sound().is_err() {
        return Ok(None);
    }
    claim.enter()?;
    let owned = claim.ledger().rows()?;
    let Some(first) = owned.iter().find(|row| !row.kept) else { return Ok(None) };
    let whose = format!("results in {} on {}, {}", first.results, first.host, first.made);
    let whose = escape::line(&whose);
    if first.plan != guest.plan {
        return Ok(Some(format!(
            "the {} is left over from another plan ({whose}); resume that plan to remove it, or \
             drop it manually",
            claim.words()
        )));
    }
    if answer == LockAnswer::Unknown {
        return Ok(Some(format!(
            "the {} is of this plan ({whose}); no lock says whether an rqps uses it: drop it \
             manually if none does",
            claim.words()
        )));
    }
    let tag = first.tag.clone();
    Ok(Some(match claim.release(&tag, false) {
        Ok(()) => format!("removed the {}, left over from this plan ({whose})", claim.words()),
        Err(error) => error.to_string(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_way_is_named_with_the_reason() {
        let check = |kind: &str, tie: &str, maker: Option<&str>, words: &str, replaceable| {
            let relation = Relation {
                name: "items".to_owned(),
                kind: kind.to_owned(),
                comment: String::new(),
                of_table: if kind == "index" { "t".to_owned() } else { String::new() },
                tie: tie.to_owned(),
                is_own: true,
            };
            let stranger = ExternalTable { relation, maker: maker.map(str::to_owned) };
            assert_eq!(
                (stranger.words().as_str(), stranger.is_replaceable()),
                (words, replaceable)
            );
        };
        check("table", "", None, "table items", true);
        check(
            "table",
            "it is a partition of x",
            None,
            "table items: it is a partition of x",
            false,
        );
        check("table", "", Some("rqps made it"), "table items: rqps made it", true);
        check("view", "", None, "view items", false);
        check("index", "", None, "index items of t", false);
    }

    #[test]
    fn long_lists_of_names_are_shortened() {
        let names = |count: u32| (1..=count).map(|n| format!("t{n}")).collect::<Vec<_>>();
        assert_eq!(shortened(&names(4)), "t1, t2, t3, t4");
        assert_eq!(shortened(&names(6)), "t1, t2, t3, t4 and 2 more");
    }
}
