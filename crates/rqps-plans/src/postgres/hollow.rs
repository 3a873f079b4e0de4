//! A private server with the source's schema, sizes, statistics and settings, and no rows.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::needle;
use super::session::{Session, cell};
use super::source::Facts;
use super::statistics;
use crate::Tell;
use crate::place::PrivatePlace;
use rqps_dbms::ControlPlane;
use rqps_host::beneath::Folder;
use rqps_host::user::User;
use rqps_model::build::Build;
use rqps_model::dialect::Dialect::Postgres;
use rqps_model::endpoint::{Address, Endpoint, Login};
use rqps_model::sql_name::{Identifier, Literal};

/// The role that owns the schema and plans, and the database. It has no rights: definitions of the
/// source are executed by it.
const ROLE: &str = "rqps_plans";

/// Settings of private servers: nothing is kept, nothing moves by itself. Files of holes have no
/// checksums.
pub(super) const PRIVATE: &str = "autovacuum = off\nfsync = off\nfull_page_writes = off\n\
    synchronous_commit = off\nignore_checksum_failure = on\nmax_connections = 20\n\
    shared_buffers = 128MB\nmax_locks_per_transaction = 512\n";

/// Statements of the sessions that make the schema and its statistics: they see the catalogue only.
const AS_OWNER: [&str; 3] = [
    "SET check_function_bodies = off",
    "SET client_min_messages = error",
    "SET search_path = pg_catalog",
];

/// Most rounds of definitions that need each other.
const ROUNDS: usize = 12;

/// How often the making of definitions is told.
const TELL_EVERY: Duration = Duration::from_secs(2);

/// Most objects that are named one by one.
const NAMED: usize = 100;

/// A running private server.
pub(super) struct Hollow {
    pub(super) control: Box<dyn ControlPlane>,
    pub(super) address: Address,
    pub(super) login: Login,
    /// What it could not make.
    pub(super) lacking: Vec<String>,
    /// What is not as in the source.
    pub(super) notes: Vec<String>,
}

impl Hollow {
    /// Makes and starts one.
    ///
    /// # Errors
    /// The server does not start, or does not take sizes and statistics.
    pub(super) fn make(
        build: &Build,
        name: &str,
        facts: &Facts,
        place: &PrivatePlace,
        tell: &mut Tell<'_>,
    ) -> Result<Hollow> {
        let mut control = place.server(build, name, PRIVATE)?;
        control.init()?;
        control.start()?;
        let (address, admin) = server_address(&*control)?;
        let mut admin_session = Session::connect(&address, &admin, &[])?;
        let version = admin_session.rows("SELECT current_setting('server_version_num')")?;
        let version: u32 = version.first().map_or("", |row| cell(row, 0)).parse().unwrap_or(0);
        let mut notes: Vec<String> =
            make_database(&mut admin_session, facts)?.into_iter().collect();
        let here = |user: &str| Login {
            user: user.to_owned(),
            database: ROLE.to_owned(),
            password: String::new(),
        };
        let login = here(ROLE);
        let admin = here(&admin.user);
        let mut server = Session::connect(&address, &admin, &AS_OWNER[1..2])?;
        let mut lacking = make_extensions(&mut server, facts)?;
        // What the source made is there from now on, and a superuser must not call it.
        server = Session::connect(&address, &admin, &AS_OWNER)?;
        let mut owner = Session::connect(&address, &login, &AS_OWNER)?;
        lacking.extend(make_objects(&mut owner, facts, tell));
        drop(owner);
        drop_checks(&mut server)?;
        let refused = statistics::write(&mut server, facts, version)?;
        let left = lacking.len() + refused.len();
        if let Some(first) = refused.first() {
            notes.push(format!(
                "{} statistics could not be written; the first: {first}",
                refused.len()
            ));
        }
        if left > NAMED {
            lacking.truncate(NAMED);
            lacking.push(format!("and more objects, {left} in all"));
        }
        let number = &build.manifest.version;
        let lacking = lacking.into_iter().map(|it| format!("postgres {number} cannot make {it}"));
        let lacking = lacking.collect();
        let files = files(&mut server, facts)?;
        drop((server, admin_session));
        control.stop()?;
        let data = Folder::open(&place.path(name)).and_then(|data| data.below("db".as_ref()));
        let data = data.context("open the data of a private server")?;
        let owner = place.run_as.as_ref().map(User::identity);
        for (file, size) in &files {
            let doing = || format!("extend the file {file} of a private server");
            needle::extend(&data, file, *size, owner).with_context(doing)?;
        }
        control.start()?;
        Ok(Hollow { control, address, login, lacking, notes })
    }
}

/// The address and the superuser of a server of rqps's own.
pub(super) fn server_address(control: &dyn ControlPlane) -> Result<(Address, Login)> {
    match control.endpoint() {
        (Endpoint::Server(address), login) => Ok((address, login)),
        _ => bail!("connect to a private server: it has no address"),
    }
}

/// Makes the role and the database, with the source's locale where this host has it.
fn make_database(admin: &mut Session, facts: &Facts) -> Result<Option<String>> {
    admin.run(&["CREATE ROLE ", ROLE, " LOGIN"].concat())?;
    let make =
        ["CREATE DATABASE ", ROLE, " OWNER ", ROLE, " TEMPLATE template0 ENCODING "].concat();
    let literal = |text: &str| Literal::quoted(Postgres, text).to_string();
    let of = |at: usize| cell(&facts.database, at);
    let mut locale = [" LC_COLLATE ", &literal(of(1)), " LC_CTYPE ", &literal(of(2))].concat();
    match of(3) {
        "i" => locale += &[" LOCALE_PROVIDER icu ICU_LOCALE ", &literal(of(4))].concat(),
        "b" => locale += &[" LOCALE_PROVIDER builtin BUILTIN_LOCALE ", &literal(of(4))].concat(),
        _ => {}
    }
    let encoding = literal(of(0));
    match admin.run(&[make.as_str(), &encoding, &locale].concat()) {
        Ok(()) => Ok(None),
        Err(words) => {
            admin.run(&[&make, "'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'"].concat())?;
            Ok(Some(format!(
                "a private server has the order of texts C, not {}: estimates for ranges of texts \
                 may be wrong ({words:#})",
                of(1)
            )))
        }
    }
}

/// Makes extensions and the schemas that they are in. They are code of the build, so a superuser
/// may make them.
fn make_extensions(server: &mut Session, facts: &Facts) -> Result<Vec<String>> {
    let mut lacking = Vec::new();
    server.run(&["ALTER SCHEMA public OWNER TO ", ROLE].concat()).ok();
    for (name, schema) in &facts.extensions {
        let [quoted, place] =
            [name, schema].map(|name| Identifier::quoted(Postgres, name).to_string());
        let schema_made =
            ["CREATE SCHEMA IF NOT EXISTS ", &place, " AUTHORIZATION ", ROLE].concat();
        server.run(&schema_made).ok();
        let make = ["CREATE EXTENSION IF NOT EXISTS ", &quoted].concat();
        let made = server
            .run(&[&make, " SCHEMA ", &place, " CASCADE"].concat())
            .or_else(|_| server.run(&[&make, " CASCADE"].concat()));
        if let Err(words) = made {
            lacking.push(format!("extension \"{name}\": {words:#}"));
        }
    }
    Ok(lacking)
}

/// Executes the definitions, again and again while some of them succeed: their order follows from
/// what they need.
fn make_objects(owner: &mut Session, facts: &Facts, tell: &mut Tell<'_>) -> Vec<String> {
    let mut told = Instant::now();
    let mut left: Vec<_> = facts.objects.iter().map(|object| (object, String::new())).collect();
    for _ in 0..ROUNDS {
        let before = left.len();
        let mut failed = Vec::new();
        for (at, (object, _)) in left.into_iter().enumerate() {
            // A partition takes the longer, the more its table has.
            if told.elapsed() >= TELL_EVERY {
                tell(&format!("made {at} of {before} definitions on a private server"));
                told = Instant::now();
            }
            if let Err(words) = owner.run(&object.2) {
                // A session that the server ended is replaced.
                if owner.run("SELECT").is_err() {
                    owner.again().ok();
                }
                failed.push((object, format!("{words:#}")));
            }
        }
        left = failed;
        if left.is_empty() || left.len() == before {
            break;
        }
    }
    let is_other = |words: &String| !words.contains("already exists");
    let told = left.into_iter().filter(|(_, words)| is_other(words));
    told.map(|((kind, name, _), words)| format!("{kind} \"{name}\": {words}")).collect()
}

/// Drops the checks of domains, which a superuser who writes statistics would call. A source that
/// lies has them made.
fn drop_checks(server: &mut Session) -> Result<()> {
    let checks = server.rows(
        "SELECT format('ALTER DOMAIN %I.%I DROP CONSTRAINT %I', n.nspname, t.typname, k.conname) \
         FROM pg_constraint k JOIN pg_type t ON t.oid = k.contypid JOIN pg_namespace n ON n.oid = \
         t.typnamespace WHERE k.contype = 'c' AND k.oid >= 16384",
    )?;
    checks.iter().try_for_each(|row| server.run(cell(row, 0)))
}

/// A file below the data folder, with blocks and the level of a B-tree.
type Sized = (String, (u64, Option<u32>));

fn files(server: &mut Session, facts: &Facts) -> Result<Vec<Sized>> {
    let rows = server.rows(
        "SELECT n.nspname, c.relname, pg_relation_filepath(c.oid) FROM pg_class c JOIN \
         pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'm', 'i') AND n.nspname \
         !~ '^pg_' AND n.nspname <> 'information_schema'",
    )?;
    let wanted: std::collections::HashMap<(&str, &str), _> = facts
        .relations
        .iter()
        .map(|it| ((it.schema.as_str(), it.name.as_str()), (it.blocks, it.level)))
        .collect();
    let sized = rows.iter().filter_map(|row| {
        let size = wanted.get(&(cell(row, 0), cell(row, 1)))?;
        (size.0 > 0).then(|| (cell(row, 2).to_owned(), *size))
    });
    Ok(sized.collect())
}
