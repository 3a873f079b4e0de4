//! The claim on a place for tables of rqps.
//!
//! A place is claimed under a lock that ends with the session, so two of rqps never share one. The
//! table `rqps_owner` in it says who made which names; every table bears its owner's mark as its
//! comment, too, so that a table which somebody made anew under an old name is not taken for
//! rqps's. What is not in that table with that mark is never dropped, emptied or altered.

use std::time::{Duration, Instant};

use crate::control::DbmsError;
use crate::guest::catalogue::{Catalogue, LockAnswer, Relation, is_denied, own_name};
use crate::guest::{ExternalTable, Guest, Ledger, OWNER, OWNER_COMMENT, mark, shortened, trust};
use crate::sql_server::ControlConnection;
use rqps_model::build::GuestPlace;
use rqps_model::dialect::Dialect;
use rqps_model::sql_name::{Identifier, Literal};
use rqps_wire::WireError;

/// The server notices a moment late that the rqps which had a lock was killed.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// A server that somebody else runs.
pub(crate) struct Theirs<'a> {
    pub(crate) dialect: Dialect,
    /// The user of the login.
    pub(crate) user: &'a str,
    /// The database that the DSN leads to.
    pub(crate) database: &'a str,
    /// Logs in.
    pub(crate) connect: &'a dyn Fn() -> Result<Box<dyn ControlConnection>, DbmsError>,
}

/// A schema or database.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Namespace {
    name: String,
    /// True if rqps made it.
    own: bool,
}

/// A claim of a place: no other rqps can claim it while this exists, if the server has locks.
pub(crate) struct Ownership {
    catalogue: Catalogue,
    session: Box<dyn ControlConnection>,
    place: Namespace,
    user: String,
    /// Name of the database that the DSN leads to.
    database: String,
    /// The schema or database that the login leads to.
    given: Option<String>,
    /// True if the place was made by this claim.
    is_new: bool,
    /// False if the server has no such locks.
    is_locked: bool,
}

impl Ownership {
    /// Finds the place for `guest`, making one if the user may, and locks it. Nothing that is in a
    /// place is touched.
    ///
    /// # Errors
    /// [`DbmsError::Refused`] if another rqps is at work there or the place is not rqps's.
    pub(crate) fn open(theirs: &Theirs<'_>, guest: &Guest) -> Result<Ownership, DbmsError> {
        let mut claim = Ownership::on(theirs, own_name(&guest.tag))?;
        let given = claim.given.take();
        claim.lock()?;
        let name = claim.place.name.clone();
        if claim.ask(|catalogue, session| catalogue.is_there(session, &name))? {
            claim.check_sound()?;
            claim.enter()?;
            claim.check_own(guest)?;
            return Ok(claim);
        }
        match claim.catalogue.create(&mut *claim.session, &name) {
            Ok(()) => claim.is_new = true,
            Err(error) if is_denied(&error) => claim.take_given(given)?,
            Err(error) => return Err(DbmsError::sql(format!("make the {}", claim.words()))(error)),
        }
        claim.check_sound()?;
        claim.enter()?;
        Ok(claim)
    }

    /// A session for a place of rqps's own, which need not be there yet. Nothing is locked.
    pub(super) fn on(theirs: &Theirs<'_>, name: String) -> Result<Ownership, DbmsError> {
        let catalogue = Catalogue(theirs.dialect);
        let mut session = (theirs.connect)()?;
        let given = catalogue.current_place(&mut *session);
        let given = given.map_err(DbmsError::sql("look at the server".to_owned()))?;
        catalogue.keep_alive(&mut *session);
        Ok(Ownership {
            given,
            catalogue,
            session,
            place: Namespace { name, own: true },
            user: theirs.user.to_owned(),
            database: theirs.database.to_owned(),
            is_new: false,
            is_locked: false,
        })
    }

    /// The given schema or database, since there is no right to an own one.
    fn take_given(&mut self, given: Option<String>) -> Result<(), DbmsError> {
        let word = self.catalogue.place_word();
        let Some(name) = given else {
            return Err(DbmsError::Refused(format!(
                "make tables: the user may not make a {word}, and the DSN names none\n{}",
                self.grant_hint()
            )));
        };
        self.place = Namespace { name, own: false };
        self.lock()?;
        let name = self.place.name.clone();
        if self.ask(|catalogue, session| catalogue.may_make_tables(session, &name))? {
            return Ok(());
        }
        Err(DbmsError::Refused(format!(
            "make tables: the user may make no {word} of its own and no table in the {}\n{}",
            self.words(),
            self.grant_hint()
        )))
    }

    /// Refuses a place in which others can have their code run with the rights of this login.
    pub(super) fn check_sound(&mut self) -> Result<(), DbmsError> {
        let (name, own) = (self.place.name.clone(), self.place.own);
        let faults =
            self.ask(|catalogue, session| trust::faults(catalogue.0, session, &name, own))?;
        if faults.is_empty() {
            return Ok(());
        }
        let hint = trust::hint(&name, own, &self.grant_hint());
        Err(DbmsError::Refused(format!(
            "use the {}: code of others would run with the rights of {}: {}\n{hint}",
            self.words(),
            self.user,
            faults.join("; ")
        )))
    }

    /// The place of tables, and their mark.
    pub(crate) fn guest_place(&self, guest: &Guest) -> GuestPlace {
        GuestPlace { words: self.words(), mark: guest.mark() }
    }

    /// A message to the server's owner about rqps's use of the place.
    pub(crate) fn announcement(&mut self, guest: &Guest) -> String {
        let end = if guest.keep { "kept there (--keep)" } else { "removed at the end" };
        // They are superusers' and no fault; who measures should know of them.
        let triggers = self
            .ask(|catalogue, session| trust::event_triggers(catalogue.0, session))
            .unwrap_or_default();
        let triggers = if triggers.is_empty() {
            String::new()
        } else {
            format!("; event triggers run at each: {}", shortened(&triggers))
        };
        let words = if self.place.own {
            format!("rqps made the {} for its tables ({end})", self.words())
        } else {
            format!(
                "the user may not make a {}, so the tables ({}) go into the {} ({end}); rqps \
                 touches nothing else in it",
                self.catalogue.place_word(),
                shortened(&guest.names),
                self.words()
            )
        };
        words + &triggers
    }

    /// The first statement of sessions, and the database of their login.
    pub(crate) fn enter_statement(&self) -> Option<String> {
        self.catalogue.enter_statement(&self.place.name)
    }

    /// Name of the place.
    pub(crate) fn name(&self) -> &str {
        &self.place.name
    }

    /// `schema rqps_0123456789ab of the database app`.
    pub(super) fn words(&self) -> String {
        let (word, place) =
            (self.catalogue.place_word(), rqps_model::escape::line(&self.place.name));
        if self.catalogue.is_mysql() {
            format!("{word} {place}")
        } else {
            format!("{word} {place} of the database {}", self.database)
        }
    }

    /// An error if the server no longer answers this session.
    pub(crate) fn ping(&mut self) -> Result<(), WireError> {
        self.session.run("SELECT 1")
    }

    pub(super) fn ask<T>(
        &mut self,
        question: impl FnOnce(Catalogue, &mut dyn ControlConnection) -> Result<T, WireError>,
    ) -> Result<T, DbmsError> {
        let asked = question(self.catalogue, &mut *self.session);
        asked.map_err(DbmsError::sql(format!("look at the {}", self.words())))
    }

    fn run(&mut self, sql: &str) -> Result<(), DbmsError> {
        self.session.run(sql).map_err(DbmsError::sql(sql.to_owned()))
    }

    /// The ledger of this place.
    pub(super) fn ledger(&mut self) -> Ledger<'_> {
        let (place, words) = (self.place.name.clone(), self.words());
        Ledger { catalogue: self.catalogue, session: &mut *self.session, place, words }
    }

    pub(super) fn enter(&mut self) -> Result<(), DbmsError> {
        let name = self.place.name.clone();
        self.ask(|catalogue, session| catalogue.enter(session, &name))
    }

    pub(super) fn lock_name(&self) -> String {
        match self.place.own {
            true => self.place.name.clone(),
            // MySQL takes no longer names than 64.
            false => format!("rqps in {:.50}", self.place.name),
        }
    }

    /// Takes the lock of the place.
    fn lock(&mut self) -> Result<(), DbmsError> {
        let (name, end) = (self.lock_name(), Instant::now() + LOCK_PATIENCE);
        loop {
            match self.ask(|catalogue, session| catalogue.try_lock(session, &name))? {
                LockAnswer::Held => {}
                answer => {
                    self.is_locked = answer == LockAnswer::Taken;
                    return Ok(());
                }
            }
            if Instant::now() > end {
                let holder = self.catalogue.lock_holder(&mut *self.session, &name);
                let holder = holder.map(|id| format!(" (its session {id})")).unwrap_or_default();
                return Err(DbmsError::Refused(format!(
                    "use the {}: another rqps, or another target of this plan, is using \
                     it{holder}\nhint: wait for it, or give each target its own database",
                    self.words()
                )));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// True if a lock keeps others from the place.
    pub(crate) fn is_locked(&self) -> bool {
        self.is_locked
    }

    /// A place of our name must have been made by rqps for this tag: nothing is in it, or the
    /// table that says so.
    fn check_own(&mut self, guest: &Guest) -> Result<(), DbmsError> {
        let owned = self.ledger().rows()?;
        if owned.iter().any(|row| row.tag == guest.tag) {
            return Ok(());
        }
        let names: Vec<&str> = guest.names.iter().map(String::as_str).collect();
        let name = self.place.name.clone();
        let there = self.ask(|catalogue, session| catalogue.relations(session, &name, &names))?;
        if owned.is_empty() && there.is_empty() {
            return Ok(());
        }
        Err(DbmsError::Refused(format!(
            "use the {}: it holds objects that this plan did not make\nhint: check and drop it, or \
             use another result folder (--out), which gets another name there",
            self.words()
        )))
    }

    /// Divides the objects with names of the benchmark into tables of this plan and others.
    fn divide(&mut self, guest: &Guest) -> Result<(Vec<String>, Vec<ExternalTable>), DbmsError> {
        let owned = self.ledger().rows()?;
        let place = self.place.name.clone();
        let names: Vec<&str> = guest.names.iter().map(String::as_str).collect();
        let all = self.ask(|catalogue, session| catalogue.relations(session, &place, &names))?;
        let owner = |relation: &Relation| {
            owned.iter().find(|row| row.name == relation.name && relation.bears(&mark(&row.tag)))
        };
        let is_ours =
            |relation: &Relation| owner(relation).is_some_and(|row| row.plan == guest.plan);
        let (ours, others): (Vec<Relation>, Vec<Relation>) = all.into_iter().partition(is_ours);
        let ours: Vec<String> = ours.into_iter().map(|relation| relation.name).collect();
        // An index or a sequence comes and goes with its table.
        let tables: Vec<String> =
            ours.iter().chain(others.iter().map(|relation| &relation.name)).cloned().collect();
        let strangers = others.into_iter().filter(|other| !tables.contains(&other.of_table));
        let strangers: Vec<ExternalTable> = strangers
            .map(|relation| ExternalTable {
                maker: owner(&relation).map(|row| {
                    format!("rqps made it for {} on {} at {}", row.results, row.host, row.made)
                }),
                relation,
            })
            .collect();
        Ok((ours, strangers))
    }

    /// Looks whether the tables can be made, and leaves everything as it was.
    ///
    /// # Errors
    /// [`DbmsError::Refused`] names what is in the way.
    pub(crate) fn survey(&mut self, guest: &Guest) -> Result<(), DbmsError> {
        let (_, strangers) = self.divide(guest)?;
        let surveyed = self.check(guest, &strangers, &guest.replace);
        if self.is_new {
            self.drop_place()?;
        }
        surveyed
    }

    /// Drops the tables of others that the user gave up.
    ///
    /// # Errors
    /// [`DbmsError::Refused`] if more is in the way, and nothing is dropped then.
    pub(crate) fn replace(&mut self, guest: &Guest) -> Result<Vec<String>, DbmsError> {
        let (_, strangers) = self.divide(guest)?;
        self.check(guest, &strangers, &guest.replace)?;
        let given_up = |stranger: &&ExternalTable| guest.replace.contains(&stranger.relation.name);
        let names: Vec<String> =
            strangers.iter().filter(given_up).map(|it| it.relation.name.clone()).collect();
        if !names.is_empty() {
            // One statement: all of them or none.
            self.drop_tables(&names)?;
            for name in &names {
                let of_name = format!("name = {}", Literal::quoted(self.catalogue.0, name));
                self.ledger().forget(&of_name)?;
            }
        }
        if self.is_new {
            self.drop_place()?;
        }
        Ok(names)
    }

    fn check(
        &self,
        guest: &Guest,
        strangers: &[ExternalTable],
        replace: &[String],
    ) -> Result<(), DbmsError> {
        let given_up = |name: &String| replace.contains(name);
        let in_the_way: Vec<&ExternalTable> = strangers
            .iter()
            .filter(|it| !given_up(&it.relation.name) || !it.is_replaceable())
            .collect();
        if in_the_way.is_empty() {
            Ok(())
        } else {
            Err(DbmsError::Refused(self.refusal(guest, &in_the_way)))
        }
    }

    fn refusal(&self, guest: &Guest, in_the_way: &[&ExternalTable]) -> String {
        let mut text = format!("make tables in the {}: it holds other objects", self.words());
        for stranger in in_the_way {
            text.push_str(&format!("\n  {}", stranger.words()));
        }
        let (word, names) = (self.catalogue.place_word(), shortened(&guest.names));
        if self.place.own {
            return text
                + "\nrqps changed nothing.\nhint: drop or move them, or use another result folder \
                   (--out)";
        }
        text.push_str(&format!(
            "\nThe benchmark needs the names {names}, and the user may not make a {word} for them. \
             rqps changed nothing.\n{}\n      or name another database in the DSN",
            self.grant_hint()
        ));
        let replaceable: Vec<String> = in_the_way
            .iter()
            .filter(|stranger| stranger.is_replaceable())
            .map(|stranger| stranger.relation.name.clone())
            .collect();
        if !replaceable.is_empty() {
            text.push_str(&format!(
                "\n      or let rqps drop them with their data: --replace-tables {}",
                replaceable.join(",")
            ));
        }
        text
    }

    fn grant_hint(&self) -> String {
        if self.catalogue.is_mysql() {
            format!(
                "hint: let rqps make its own database: GRANT ALL ON `rqps\\_%`.* TO {}",
                self.user
            )
        } else {
            format!(
                "hint: let rqps make its own schema: GRANT CREATE ON DATABASE {} TO {}",
                self.database, self.user
            )
        }
    }

    /// Takes the place for this run: drops what an earlier run of this plan left in it, and writes
    /// down the names that will be made.
    ///
    /// # Errors
    /// [`DbmsError::Refused`] if anything else is in the way; nothing is dropped then.
    pub(crate) fn take(&mut self, guest: &Guest) -> Result<(), DbmsError> {
        let taken = self.divide(guest).and_then(|(ours, strangers)| {
            self.check(guest, &strangers, &[])?;
            self.drop_all(ours)?;
            self.ledger().write_down(guest)
        });
        if taken.is_err() && self.is_new {
            // The first error matters more than a place that stays empty.
            self.drop_place().ok();
        }
        taken
    }

    /// Removes what was made for a tag, and the place if it is rqps's own; with `keep` only writes
    /// down that it is to stay.
    ///
    /// # Errors
    /// The server refuses, for one because something of somebody else's depends on it.
    pub(crate) fn release(&mut self, tag: &str, keep: bool) -> Result<(), DbmsError> {
        let of_tag = format!("tag = {}", Literal::quoted(self.catalogue.0, tag));
        if keep {
            return self.ledger().keep(&of_tag);
        }
        let released = self.empty(tag, &of_tag);
        released.map_err(|error| {
            DbmsError::Refused(format!(
                "remove the {}: {error}\nhint: it stays on the server; the next run of this plan \
                 removes it, or drop it manually",
                self.words()
            ))
        })
    }

    fn empty(&mut self, tag: &str, of_tag: &str) -> Result<(), DbmsError> {
        let owned = self.ledger().rows()?;
        let names: Vec<&str> =
            owned.iter().filter(|row| row.tag == tag).map(|row| row.name.as_str()).collect();
        let place = self.place.name.clone();
        let there = self.ask(|catalogue, session| catalogue.relations(session, &place, &names))?;
        let mark = mark(tag);
        let ours = there.into_iter().filter(|it| it.bears(&mark));
        self.drop_all(ours.map(|relation| relation.name).collect())?;
        for extension in self.ask(|catalogue, session| catalogue.extensions(session, &mark))? {
            self.run(&format!(
                "DROP EXTENSION {}",
                Identifier::quoted(self.catalogue.0, &extension)
            ))?;
        }
        match owned.iter().all(|row| row.tag == tag) {
            true if self.place.own => self.drop_place(),
            true if !owned.is_empty() => self.drop_tables(&[OWNER.to_owned()]),
            _ => self.ledger().forget(of_tag),
        }
    }

    /// Drops rqps's objects one by one; a partition has gone with its table.
    fn drop_all(&mut self, names: Vec<String>) -> Result<(), DbmsError> {
        let place = self.place.name.clone();
        for name in names {
            let there =
                self.ask(|catalogue, session| catalogue.relations(session, &place, &[&name]))?;
            let Some(first) = there.first() else { continue };
            if !name.ends_with("()") {
                self.drop_tables(&[name])?;
                continue;
            }
            let mark = first.comment.clone();
            let drops = self
                .ask(|catalogue, session| catalogue.drop_routine(session, &place, &name, &mark))?;
            drops.iter().try_for_each(|sql| self.run(sql))?;
        }
        Ok(())
    }

    fn drop_tables(&mut self, names: &[String]) -> Result<(), DbmsError> {
        let place = Identifier::quoted(self.catalogue.0, &self.place.name);
        let full =
            |name: &String| format!("{place}.{}", Identifier::quoted(self.catalogue.0, name));
        let names: Vec<String> = names.iter().map(full).collect();
        self.run(&format!("DROP TABLE {}", names.join(", ")))
    }

    /// Drops rqps's own place, in which nothing but its table [`OWNER`] may be.
    fn drop_place(&mut self) -> Result<(), DbmsError> {
        let name = self.place.name.clone();
        let there = self.ask(|catalogue, session| catalogue.relations(session, &name, &[OWNER]))?;
        let owner = there.iter().any(|table| table.bears(OWNER_COMMENT));
        let doing = format!("drop the {}", self.words());
        self.is_new = false;
        let dropped = self.catalogue.drop_with(&mut *self.session, &name, owner.then_some(OWNER));
        dropped.map_err(DbmsError::sql(doing))
    }
}
