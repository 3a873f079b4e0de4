//! The table in which rqps writes down what it made in a place, for which plan, and when.

use crate::connection::ControlConnection;
use crate::error::DbmsError;
use crate::guest::catalogue::{Catalogue, Relation};
use crate::guest::owner::{Guest, OWNER, OWNER_COLUMNS, OWNER_COMMENT};
use rqps_model::sql_name::Literal;

/// A row of [`OWNER`].
pub(super) struct Owned {
    pub(super) tag: String,
    pub(super) name: String,
    pub(super) plan: String,
    pub(super) results: String,
    pub(super) host: String,
    pub(super) made: String,
    pub(super) kept: bool,
}

/// The table [`OWNER`] of a place, which need not be there.
pub(super) struct Ledger<'a> {
    pub(super) catalogue: Catalogue,
    pub(super) session: &'a mut dyn ControlConnection,
    /// Name of the place.
    pub(super) place: String,
    /// The place in words.
    pub(super) words: String,
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
    pub(super) fn rows(&mut self) -> Result<Vec<Owned>, DbmsError> {
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
    pub(super) fn write_down(&mut self, guest: &Guest) -> Result<(), DbmsError> {
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
    pub(super) fn forget(&mut self, condition: &str) -> Result<(), DbmsError> {
        match self.table()? {
            None => Ok(()),
            Some(_) => self.run(&format!("DELETE FROM {OWNER} WHERE {condition}")),
        }
    }

    /// Writes down that what these rows name is to stay.
    pub(super) fn keep(&mut self, condition: &str) -> Result<(), DbmsError> {
        self.run(&format!("UPDATE {OWNER} SET kept = 1 WHERE {condition}"))
    }
}
