//! MySQL and MariaDB. Their planners look into the trees of indexes while they plan, so statistics
//! alone do not always suffice. There are three methods, by what the user gives: the data
//! themselves, empty tables with the statistics of the source, a sample of the same fraction of
//! every table. Where the source explains a statement, the first method by which the old version
//! plans as the source does, with the same rows, is the one that counts.

mod server;
mod source;
mod statistics;
mod tabular;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::compare::{PlanClass, compare};
use crate::mysql::server::{Private, Session, name};
use crate::mysql::source::{Column, Facts, ReadRow};
use crate::rehearsal::{
    PlanError, PlanNode, Planner, PrivatePlace, Rehearsal, SourceFiles, Statement, Tell,
};
use rqps_model::build::Build;
use rqps_model::dialect::Dialect;
use rqps_model::endpoint::{Address, Login};
use rqps_text::behind::Told;

/// The database where no source names one.
const DATABASE: &str = "test";

/// Where schema, statistics and rows come from.
#[derive(Debug)]
pub enum MysqlSource {
    /// A server of the user's: only SELECT, SHOW and EXPLAIN go there.
    Server {
        /// Its address.
        address: Box<Address>,
        /// The login, with a database.
        login: Login,
        /// True if values of rows may leave it: a sample, histograms.
        consent: bool,
        /// Dumps of its rows, if the user has them.
        data: Vec<PathBuf>,
    },
    /// SQL that both versions execute.
    Made(SourceFiles),
}

type Answer = Result<PlanNode, PlanError>;

/// Answers that are there already, by the number of the statement.
#[derive(Default)]
struct Answers {
    plans: BTreeMap<usize, Answer>,
    methods: BTreeMap<usize, String>,
    doubts: BTreeMap<usize, String>,
}

impl Planner for Answers {
    fn explain(&mut self, statement: &Statement) -> Result<Vec<(String, PlanNode)>, PlanError> {
        match self.plans.remove(&statement.number) {
            Some(answer) => answer.map(|plan| vec![(String::new(), plan)]),
            None => Err(PlanError::NotCovered("no plan was asked for".to_owned())),
        }
    }

    fn method(&self, statement: &Statement) -> Option<String> {
        self.methods.get(&statement.number).cloned()
    }

    fn doubt(&self, statement: &Statement) -> Option<String> {
        self.doubts.get(&statement.number).cloned()
    }
}

/// Rows of a table by which a method may be off: versions count ranges in their own ways.
const ROWS: f64 = 4.0;

/// So few rows are told apart by chance only.
const FEW: f64 = 3.0;

/// The answers of both versions by one method.
struct Attempt {
    method: String,
    /// One row in so many is there.
    fraction: f64,
    old: BTreeMap<usize, Answer>,
    new: BTreeMap<usize, Answer>,
}

/// Both versions, with their plans of all statements.
///
/// # Errors
/// The source cannot be read, or a server of one of the versions does not start.
pub fn prepare(
    (old, new): (&Build, &Build),
    source: &MysqlSource,
    statements: &[Statement],
    place: &PrivatePlace,
    tell: &mut Tell<'_>,
) -> Result<Rehearsal> {
    let (mut notes, mut lacking, mut preflight) = (Vec::new(), Vec::new(), Vec::new());
    let mut own = match source {
        MysqlSource::Server { address, login, .. } => {
            if login.database.is_empty() {
                bail!("read the source: its DSN names no database\nhint: add /NAME to it");
            }
            let session = Session::connect(address, login, true);
            Some(session.with_context(|| format!("connect to {address}"))?)
        }
        MysqlSource::Made(_) => None,
    };
    let database = match source {
        MysqlSource::Server { login, .. } => login.database.as_str(),
        MysqlSource::Made(_) => DATABASE,
    };
    tell("starting a private server of each version");
    let role = own.is_some().then_some(server::ROLE);
    let mut before = Private::start(place, old, "old", database, role)?;
    let mut after = Private::start(place, new, "new", database, role)?;
    let mut both = Pair { old: &mut before, new: &mut after, statements };
    let (attempts, source_plans) = match (source, &mut own) {
        (MysqlSource::Server { consent, data, .. }, Some(session)) => {
            tell("reading schema and plans of the source");
            let facts = source::facts(session, statements)?;
            notes.extend(facts.notes.iter().cloned());
            preflight = both.refused_settings(session)?;
            both.make(&facts, &mut lacking, &mut notes)?;
            let plans = explain_source(session, statements)?;
            let mut visit = Visit { session, facts: &facts, plans: &plans, notes: &mut notes };
            let attempts = both.attempts(&mut visit, *consent, data, tell)?;
            (attempts, Some(plans))
        }
        (MysqlSource::Made(files), _) => {
            let attempt = both.load(files, &mut lacking, tell)?;
            (vec![attempt], None)
        }
        (MysqlSource::Server { .. }, None) => bail!("read the source: there is no session"),
    };
    let plain = both.hide_what_one_version_tells();
    let (mut old_answers, mut new_answers) = (Answers::default(), Answers::default());
    for statement in statements {
        let number = statement.number;
        let own = source_plans.as_ref().and_then(|plans| plans.get(&number));
        let Some((best, doubt)) = choose(&attempts, number, own) else { continue };
        old_answers.methods.insert(number, best.method.clone());
        old_answers.doubts.extend(doubt.map(|doubt| (number, doubt)));
        for (from, to) in [(&best.old, &mut old_answers), (&best.new, &mut new_answers)] {
            if let Some(answer) = from.get(&number) {
                to.plans.insert(number, answer.clone().map(&plain));
            }
        }
    }
    let source = source_plans.map(|plans| {
        let plans = plans.into_iter().map(|(number, answer)| (number, answer.map(&plain)));
        Box::new(Answers { plans: plans.collect(), ..Answers::default() }) as Box<dyn Planner>
    });
    // The other version makes these.
    let of_new = lacking.iter().filter(|text| text.starts_with(&format!("{} ", after.name)));
    preflight.extend(of_new.cloned());
    Ok(Rehearsal {
        old_name: before.name.clone(),
        new_name: after.name.clone(),
        old: Box::new(old_answers),
        new: Box::new(new_answers),
        source,
        preflight,
        notes,
        lacking,
    })
}

/// The first method by which the old version plans as the source does, with the same rows; else
/// the first, with what speaks against it.
fn choose<'a>(
    attempts: &'a [Attempt],
    number: usize,
    own: Option<&Answer>,
) -> Option<(&'a Attempt, Option<String>)> {
    let best = attempts.iter().find(|one| one.doubt(number, own).is_none());
    match best {
        Some(best) => Some((best, None)),
        None => attempts.first().map(|first| (first, first.doubt(number, own))),
    }
}

fn explain_source(
    session: &mut Session,
    statements: &[Statement],
) -> Result<BTreeMap<usize, Answer>> {
    let mut plans = BTreeMap::new();
    let mut told = Told::default();
    for statement in statements {
        let mut ask = |sql: &str| session.rows(sql);
        // EXPLAIN executes what stands in FROM.
        let answer = match told.check(Dialect::Mysql, &[], &statement.text, &mut ask) {
            Ok(()) => session.explain(statement),
            Err(why) => Err(PlanError::NotCovered(format!("not planned on the source: {why}"))),
        };
        if let Err(PlanError::Broken(words)) = &answer {
            bail!("explain statement {} on the source: {words}", statement.number);
        }
        plans.insert(statement.number, answer);
    }
    Ok(plans)
}

impl Attempt {
    /// What speaks against the method for a statement: another plan than that of the source, or
    /// other rows.
    fn doubt(&self, number: usize, own: Option<&Answer>) -> Option<String> {
        let (own, old) = match (own?, self.old.get(&number)?) {
            (Ok(own), Ok(old)) => (own, old),
            (Ok(_), Err(_)) => return Some("the source itself plans this statement".to_owned()),
            _ => return None,
        };
        let found = compare(own, old);
        if !matches!(found.class, PlanClass::Same | PlanClass::Estimates) {
            return Some(format!(
                "{} plans in another way: {}",
                self.method,
                found.notes.join("; ")
            ));
        }
        let (mut before, mut after) = (Vec::new(), Vec::new());
        own.walk(&mut |node| before.push(node));
        old.walk(&mut |node| after.push(node));
        before.iter().zip(after).find_map(|(own, old)| {
            let (was, is) = (own.rows?.max(1.0), old.rows?.max(1.0));
            // Of a sample, a scan has its fraction of the rows, and a lookup those of one key.
            let ratios = [is / was, is * self.fraction / was];
            let is_near = |ratio: &f64| (1.0 / ROWS..ROWS).contains(ratio);
            let few = is < FEW && was < FEW * self.fraction;
            (!few && !ratios.iter().any(is_near)).then(|| {
                let name = own.alias.as_deref().unwrap_or("a table");
                format!(
                    "the method ({}) expects {is:.0} rows of {name}, the source {was:.0}",
                    self.method
                )
            })
        })
    }
}

/// What a method may use of the source.
struct Visit<'a> {
    session: &'a mut Session,
    facts: &'a Facts,
    plans: &'a BTreeMap<usize, Answer>,
    notes: &'a mut Vec<String>,
}

struct Pair<'a> {
    old: &'a mut Private,
    new: &'a mut Private,
    statements: &'a [Statement],
}

impl Pair<'_> {
    /// Settings that the source changed and the new version does not have, and modes of its
    /// `sql_mode` that are gone: a server with them in its configuration does not start.
    fn refused_settings(&mut self, source: &mut Session) -> Result<Vec<String>> {
        let mut usual = source::variables(&mut self.old.session)?;
        let known = source::variables(&mut self.new.session)?;
        let mut refused = Vec::new();
        for (name, value) in source::variables(source)? {
            let is_usual = usual.remove(&name).is_none_or(|usual| usual == value);
            if name == "sql_mode" {
                for mode in value.split(',').filter(|mode| !mode.is_empty()) {
                    if !self.new.takes_mode(mode)? {
                        refused.push(format!("sql_mode does not take {mode} any more"));
                    }
                }
            } else if !is_usual && !known.contains_key(&name) {
                refused.push(format!("the setting {name} = {value} is gone"));
            }
        }
        Ok(refused)
    }

    /// Makes the source's tables, empty, and sets what it has set.
    fn make(
        &mut self,
        facts: &Facts,
        lacking: &mut Vec<String>,
        notes: &mut Vec<String>,
    ) -> Result<()> {
        let usual = source::settings(&mut self.old.session)?;
        let changed = source::changed(&facts.settings, &usual);
        for private in [&mut *self.old, &mut *self.new] {
            for (variable, value) in &changed {
                if !private.set(variable, value)? {
                    let server = &private.name;
                    notes
                        .push(format!("{server} does not take {variable} = {value} of the source"));
                }
            }
            private.make(facts, lacking)?;
        }
        Ok(())
    }

    /// The methods that the user's gifts allow. Where copied statistics suffice, no row leaves the
    /// source.
    fn attempts(
        &mut self,
        visit: &mut Visit<'_>,
        consent: bool,
        data: &[PathBuf],
        tell: &mut Tell<'_>,
    ) -> Result<Vec<Attempt>> {
        if !data.is_empty() {
            let files = SourceFiles { schema: Vec::new(), data: data.to_vec() };
            return Ok(vec![self.load(&files, visit.notes, tell)?]);
        }
        tell("copying the statistics of the source");
        let found: Vec<(&Statement, &PlanNode)> = self
            .statements
            .iter()
            .filter_map(|one| Some((one, visit.plans.get(&one.number)?.as_ref().ok()?)))
            .collect();
        let columns = source::columns(visit.session, &visit.facts.base_tables())?;
        let read = source::rows_to_read(self.old, (visit.facts, &columns), &found)?;
        let mut attempts = vec![self.hollow(visit, &read, consent)?];
        let doubtful = self.statements.iter().any(|statement| {
            let own = visit.plans.get(&statement.number);
            choose(&attempts, statement.number, own).is_some_and(|(_, doubt)| doubt.is_some())
        });
        if doubtful && consent {
            tell("drawing a sample of the source's rows");
            attempts.push(self.sample(visit, &read, &columns)?);
        } else if doubtful {
            visit.notes.push(
                "the statistics of the source do not suffice for some statements: --yes lets rqps \
                 draw a sample of its rows, --data FILE loads a dump"
                    .to_owned(),
            );
        }
        Ok(attempts)
    }

    /// Empty tables with copied statistics. A look into an empty tree would find no row, so the
    /// averages of the statistics stand for it.
    fn hollow(
        &mut self,
        visit: &mut Visit<'_>,
        read: &[ReadRow],
        consent: bool,
    ) -> Result<Attempt> {
        let tables = visit.facts.base_tables();
        let statistics = statistics::read(visit.session, &tables, consent)?;
        visit.notes.extend(statistics.notes.iter().cloned());
        for private in [&mut *self.old, &mut *self.new] {
            source::insert_rows(private, read)?;
            visit.notes.extend(statistics.write(private)?);
            private.read_statistics()?;
            // MariaDB has it since 10.4.3.
            private.set_in_each_session("eq_range_index_dive_limit = 1");
        }
        self.explain("copied statistics".to_owned(), 1)
    }

    fn sample(
        &mut self,
        visit: &mut Visit<'_>,
        read: &[ReadRow],
        columns: &[Column],
    ) -> Result<Attempt> {
        let tables = visit.facts.base_tables();
        let fraction = statistics::fraction(&tables);
        self.empty(visit.facts)?;
        for private in [&mut *self.old, &mut *self.new] {
            private.run("SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO'")?;
            private.run("SET SESSION foreign_key_checks = 0")?;
            private.run("SET SESSION unique_checks = 0")?;
        }
        let (old, new) = (&mut *self.old, &mut *self.new);
        statistics::draw(visit.session, &tables, columns, (fraction, read), &mut |sql| {
            old.run(sql)?;
            new.run(sql)
        })?;
        self.gather()?;
        self.explain(format!("a sample of one row in {fraction}"), fraction)
    }

    /// Both servers execute the user's files.
    fn load(
        &mut self,
        files: &SourceFiles,
        lacking: &mut Vec<String>,
        tell: &mut Tell<'_>,
    ) -> Result<Attempt> {
        for private in [&mut *self.old, &mut *self.new] {
            tell(&format!("loading the data into {}", private.name));
            for path in files.schema.iter().chain(&files.data) {
                lacking.extend(private.load(path)?);
            }
        }
        self.gather()?;
        let method = if files.data.is_empty() { "empty tables" } else { "the data" };
        self.explain(method.to_owned(), 1)
    }

    fn empty(&mut self, facts: &Facts) -> Result<()> {
        for private in [&mut *self.old, &mut *self.new] {
            private.forget_setup()?;
            private.run("SET SESSION foreign_key_checks = 0")?;
            for table in facts.base_tables() {
                let sql = format!("TRUNCATE TABLE {}", name(&table.name));
                // A table that this version could not make is told already.
                private.session.client.simple(&sql).ok();
            }
        }
        Ok(())
    }

    fn gather(&mut self) -> Result<()> {
        for private in [&mut *self.old, &mut *self.new] {
            private.analyze()?;
            private.reconnect()?;
        }
        Ok(())
    }

    fn explain(&mut self, method: String, fraction: u64) -> Result<Attempt> {
        let (mut old, mut new) = (BTreeMap::new(), BTreeMap::new());
        for statement in self.statements {
            old.insert(statement.number, self.old.explain(statement)?);
            new.insert(statement.number, self.new.explain(statement)?);
        }
        Ok(Attempt { method, fraction: fraction as f64, old, new })
    }

    /// Versions before 8.0 read indexes backward, too, but do not say so.
    fn hide_what_one_version_tells(&self) -> impl Fn(PlanNode) -> PlanNode + use<> {
        let tells = |private: &Private| private.session.is_mysql(&[8]);
        let hides = !(tells(self.old) && tells(self.new));
        move |mut plan: PlanNode| {
            if hides {
                plan.change(&mut |node| node.direction = None);
            }
            plan
        }
    }
}
