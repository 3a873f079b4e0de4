//! A private server with the source's schema, sizes, statistics and settings, and no rows.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use crate::Tell;
use crate::postgres::source::Facts;
use crate::postgres::statistics;
use crate::rehearsal::PrivatePlace;
use rqps_dbms::ControlPlane;
use rqps_host::beneath::{self, Folder};
use rqps_host::user::{Identity, User};
use rqps_model::build::Build;
use rqps_model::dialect::Dialect::Postgres;
use rqps_model::endpoint::{Address, Endpoint, Login};
use rqps_model::sql_name::{Identifier, Literal};
use rqps_wire::WireError;
use rqps_wire::postgres::PostgresClient;

/// The role that owns the schema and plans, and the database. It has no rights: definitions of the
/// source are executed by it.
const ROLE: &str = "rqps_plans";

/// Settings of private servers: nothing is kept, nothing moves by itself. Files of holes have no
/// checksums. Commits are synchronous: VACUUM marks no page as visible to all whose rows may not be in
/// the log yet, and plans would lack index-only scans.
pub(super) const PRIVATE: &str = "autovacuum = off\nfsync = off\nfull_page_writes = off\n\
    synchronous_commit = on\nignore_checksum_failure = on\nmax_connections = 20\n\
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
            extend(&data, file, *size, owner).with_context(doing)?;
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

// Files of tables and indexes without content: holes of the true size. A B-tree gets the few pages
// that the planner reads: the metapage with the true level, and one page for each level, which
// lead to an empty leaf.

/// Bytes of a page.
const PAGE: usize = 8192;

/// Blocks of a segment of a file.
const SEGMENT: u64 = 131_072;

/// Most bytes of the file of an empty table or index.
const EMPTY_MAX: u64 = 1 << 20;

/// Bytes of the header of a page.
const HEADER: usize = 24;

/// The magic number at the beginning of the metapage's content.
const MAGIC: u32 = 0x0005_3162;

/// Gives a file its true size. `level` is that of the root of a B-tree.
///
/// # Errors
/// The system refuses.
pub(super) fn extend(
    folder: &Folder,
    file: &str,
    (blocks, level): (u64, Option<u32>),
    owner: Option<Identity>,
) -> io::Result<()> {
    let path = Path::new(file);
    let name = path.file_name().ok_or_else(|| io::Error::other("it has no name"))?;
    let folder = folder.below(path.parent().unwrap_or(Path::new("")))?;
    let mut content = Vec::new();
    folder.read_of(name, owner)?.take(EMPTY_MAX + 1).read_to_end(&mut content)?;
    if content.len() as u64 > EMPTY_MAX {
        return Err(io::Error::other("it is not empty"));
    }
    if let Some(level) = level
        && blocks >= 2
    {
        content = needle(&content, level.min(u32::try_from(blocks - 2).unwrap_or(u32::MAX)));
    }
    folder.remove_file(Path::new(name))?;
    let blocks = blocks.max((content.len() / PAGE) as u64);
    for segment in 0..blocks.div_ceil(SEGMENT).max(1) {
        let mut part = OsString::from(name);
        if segment > 0 {
            part.push(format!(".{segment}"));
        }
        let mut made = folder.new_file(OsStr::new(&part), 0o600)?;
        if segment == 0 {
            made.write_all(&content)?;
        }
        made.set_len((blocks - segment * SEGMENT).min(SEGMENT) * PAGE as u64)?;
        if let Some(owner) = owner {
            beneath::give_file(&made, owner)?;
        }
    }
    Ok(())
}

/// The first pages of a B-tree with a root of this level, from the metapage of an empty one.
fn needle(empty: &[u8], level: u32) -> Vec<u8> {
    let number = |at: usize| empty.get(at..at + 4).map(|it| [it[0], it[1], it[2], it[3]]);
    if number(HEADER).map(u32::from_le_bytes) != Some(MAGIC) {
        return empty.to_vec();
    }
    let mut made = empty[..PAGE.min(empty.len())].to_vec();
    made.resize(PAGE, 0);
    let root = level + 1;
    // The root and its level, and both again as the place where searches may begin.
    for (at, value) in [(32, root), (36, level), (40, root), (44, level)] {
        made[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    for page in 0..=level {
        made.extend(page_of_level(page, page == level));
    }
    made
}

/// An empty leaf, or a page whose only entry leads to the page before it.
fn page_of_level(level: u32, is_root: bool) -> Vec<u8> {
    let special = PAGE - 16;
    let mut page = vec![0; PAGE];
    let mut put = |at: usize, value: u16| page[at..at + 2].copy_from_slice(&value.to_le_bytes());
    let (mut lower, mut upper) = (HEADER, special);
    if level > 0 {
        (lower, upper) = (HEADER + 4, special - 8);
        // A pointer to 8 bytes: offset in 15 bits, used in 2, length in 15.
        let item = upper as u32 | 1 << 15 | 8 << 17;
        put(HEADER, item as u16);
        put(HEADER + 2, (item >> 16) as u16);
        // The entry: the block below, no key, and the mark that says so with its length.
        put(upper, (level >> 16) as u16);
        put(upper + 2, level as u16);
        put(upper + 4, 0);
        put(upper + 6, 8 | 0x2000);
    }
    put(12, lower as u16);
    put(14, upper as u16);
    put(16, special as u16);
    // The size of pages and the version of their layout.
    put(18, PAGE as u16 | 4);
    put(special + 8, level as u16);
    put(special + 12, u16::from(level == 0) | (u16::from(is_root) << 1));
    page
}

// Sessions with Postgres, and what their rows become.

/// Time limit for connecting.
const CONNECT: Duration = Duration::from_secs(20);

/// Time limit for an answer.
const ANSWER: Duration = Duration::from_secs(600);

/// A row of text; NULL is `None`.
pub(super) type Row = Vec<Option<String>>;

/// The text of a column; empty for NULL and where there is none.
pub(super) fn cell(row: &[Option<String>], at: usize) -> &str {
    row.get(at).and_then(Option::as_deref).unwrap_or_default()
}

/// The number in a column, else 0.
pub(super) fn number(row: &[Option<String>], at: usize) -> f64 {
    cell(row, at).parse().ok().filter(|number: &f64| number.is_finite()).unwrap_or(0.0)
}

/// What a session on somebody else's server is for. Each of its statements is in a transaction of
/// its own that only reads and is rolled back, and its settings end with that: a pooler may give the
/// same connection to an application afterwards, and no lock outlives a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Queries of rqps. Names and operators are those of the catalogue, never of another user, and
    /// literals are read in one way. All names of definitions are quoted: a later version may have
    /// more reserved words, as `system_user` from 16 on.
    Catalogue,
    /// EXPLAIN of the user's statements, with the settings of the login.
    Plans,
}

/// The settings of a transaction, with the time limit of its statement in milliseconds.
fn settings(reading: Reading, limit_ms: u32) -> String {
    let limits = [
        "SELECT pg_catalog.set_config('lock_timeout', '2s', true), \
         pg_catalog.set_config('client_min_messages', 'error', true), \
         pg_catalog.set_config('statement_timeout', '",
        &limit_ms.to_string(),
        "', true)",
    ]
    .concat();
    match reading {
        Reading::Plans => limits,
        Reading::Catalogue => {
            limits
                + ", pg_catalog.set_config('search_path', 'pg_catalog', true), \
                   pg_catalog.set_config('standard_conforming_strings', 'on', true), \
                   pg_catalog.set_config('quote_all_identifiers', 'on', true), \
                   pg_catalog.set_config('extra_float_digits', '1', true)"
        }
    }
}

/// A session that sends one statement at a time, so that no text can hold a second one.
pub(super) struct Session {
    client: PostgresClient,
    address: Address,
    login: Login,
    first: &'static [&'static str],
    /// On somebody else's server.
    reading: Option<Reading>,
    /// Time limit of a statement there, milliseconds; 0 is none.
    limit_ms: u32,
}

impl Session {
    /// Connects, and runs these statements first.
    pub(super) fn connect(
        address: &Address,
        login: &Login,
        first: &'static [&'static str],
    ) -> Result<Session> {
        let mut client = open(address, login, first)?;
        client.one_statement_each();
        let (address, login) = (address.clone(), login.clone());
        Ok(Session { client, address, login, first, reading: None, limit_ms: 0 })
    }

    /// Connects to somebody else's server, to read its catalogue.
    pub(super) fn reader(address: &Address, login: &Login) -> Result<Session> {
        let session = Session::connect(address, login, &[])?;
        Ok(Session { reading: Some(Reading::Catalogue), ..session })
    }

    /// From now on, a session on somebody else's server is for this, with this time limit of a
    /// statement.
    pub(super) fn read(&mut self, reading: Reading, limit_ms: u32) {
        (self.reading, self.limit_ms) = (Some(reading), limit_ms);
    }

    /// Connects anew: the server has ended the session.
    pub(super) fn again(&mut self) -> Result<()> {
        let Session { reading, limit_ms, .. } = *self;
        let session = Session::connect(&self.address, &self.login, self.first)?;
        *self = Session { reading, limit_ms, ..session };
        Ok(())
    }

    /// Another session of the same kind, in which a text can hold several statements.
    pub(super) fn simple(&self) -> Result<Session> {
        let client = open(&self.address, &self.login, self.first)?;
        let (address, login) = (self.address.clone(), self.login.clone());
        let Session { first, reading, limit_ms, .. } = *self;
        Ok(Session { client, address, login, first, reading, limit_ms })
    }

    pub(super) fn try_rows(&mut self, sql: &str) -> Result<Vec<Row>, WireError> {
        let Some(reading) = self.reading else { return self.client.rows(sql) };
        self.client.rows("BEGIN TRANSACTION READ ONLY")?;
        let rows =
            self.client.rows(&settings(reading, self.limit_ms)).and_then(|_| self.client.rows(sql));
        // Nobody answers a session that has ended.
        if !matches!(rows, Err(WireError::Io { .. })) {
            self.client.rows("ROLLBACK")?;
        }
        rows
    }

    pub(super) fn rows(&mut self, sql: &str) -> Result<Vec<Row>> {
        self.try_rows(sql).map_err(|error| anyhow!("{error}"))
    }

    pub(super) fn run(&mut self, sql: &str) -> Result<()> {
        self.rows(sql).map(drop)
    }

    /// Sends rows in the text form of COPY.
    pub(super) fn copy(&mut self, sql: &str, rows: Vec<u8>) -> Result<()> {
        let mut rows = Some(rows);
        let copied = self.client.copy_in(sql, &mut |output| {
            output.extend(rows.take().unwrap_or_default());
            false
        });
        copied.map(drop).map_err(|error| anyhow!("{error}"))
    }

    /// True if the answer is one true value.
    pub(super) fn is_true(&mut self, sql: &str) -> Result<bool> {
        Ok(self.rows(sql)?.first().is_some_and(|row| cell(row, 0) == "t"))
    }
}

fn open(address: &Address, login: &Login, first: &[&str]) -> Result<PostgresClient> {
    let mut client = PostgresClient::connect(address, login, CONNECT)
        .with_context(|| format!("connect as {} to {}", login.user, login.database))?;
    client.set_answer_limit(Some(ANSWER));
    for sql in first {
        client.simple(sql).context("set up the session")?;
    }
    Ok(client)
}

/// Arrays in Postgres's text form.
pub(super) mod many {
    /// Places of elements of `{a,"b c",NULL}`.
    fn elements(text: &str) -> Vec<(usize, usize)> {
        let inner = text.len().saturating_sub(1);
        let (mut found, mut begin, mut quoted, mut escaped) = (Vec::new(), 1, false, false);
        for (at, byte) in text.bytes().enumerate().take(inner).skip(1) {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => quoted = !quoted,
                b',' if !quoted => {
                    found.push((begin, at));
                    begin = at + 1;
                }
                _ => {}
            }
        }
        if inner > 1 {
            found.push((begin, inner));
        }
        found
    }

    fn quoted(element: &str) -> String {
        format!("\"{}\"", element.replace('\\', "\\\\").replace('"', "\\\""))
    }

    /// The array with other first and last elements.
    pub(in crate::postgres) fn with_ends(array: &str, first: &str, last: &str) -> String {
        let places = elements(array);
        let ([(begin, end), .., (from, to)], true) = (places.as_slice(), array.starts_with('{'))
        else {
            return array.to_owned();
        };
        let middle = &array[*end..*from];
        [&array[..*begin], &quoted(first), middle, &quoted(last), &array[*to..]].concat()
    }

    /// The values of the elements.
    pub(in crate::postgres) fn values(array: &str) -> Vec<String> {
        let value = |(begin, end): (usize, usize)| {
            let text = &array[begin..end];
            let Some(inner) = text.strip_prefix('"').and_then(|it| it.strip_suffix('"')) else {
                return text.to_owned();
            };
            let (mut made, mut escaped) = (String::new(), false);
            for letter in inner.chars() {
                if letter == '\\' && !escaped {
                    escaped = true;
                } else {
                    made.push(letter);
                    escaped = false;
                }
            }
            made
        };
        if array.starts_with("{{") {
            return Vec::new();
        }
        elements(array).into_iter().map(value).collect()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn ends_replace_elements_whatever_they_hold() {
            let check = |array: &str, want: &str| assert_eq!(with_ends(array, "a\"b", "z"), want);
            check("{1,2,3}", r#"{"a\"b",2,"z"}"#);
            check(r#"{"x,y","q\"}",b}"#, r#"{"a\"b","q\"}","z"}"#);
            check("{1}", "{1}");
            check("{}", "{}");
            assert_eq!(values(r#"{1,"a \"b\", \\c",NULL}"#), ["1", "a \"b\", \\c", "NULL"]);
            assert!(values("{}").is_empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_become_holes_with_a_way_to_a_leaf() {
        let place = tempfile::tempdir().unwrap();
        let mut meta = vec![0; PAGE];
        meta[HEADER..HEADER + 4].copy_from_slice(&MAGIC.to_le_bytes());
        std::fs::create_dir(place.path().join("base")).unwrap();
        let file = place.path().join("base/7");
        std::fs::write(&file, &meta).unwrap();
        let folder = Folder::open(place.path()).unwrap();
        extend(&folder, "base/7", (SEGMENT + 3, Some(2)), None).unwrap();
        let size = |path: &Path| std::fs::metadata(path).unwrap().len();
        assert_eq!(size(&file), SEGMENT * PAGE as u64);
        assert_eq!(size(&place.path().join("base/7.1")), 3 * PAGE as u64);
        let mut start = vec![0; 4 * PAGE];
        std::fs::File::open(&file).unwrap().read_exact(&mut start).unwrap();
        assert_eq!((start[32], start[36]), (3, 2), "root and level");
        let flags = |page: usize| start[page * PAGE + PAGE - 4];
        assert_eq!([flags(1), flags(2), flags(3)], [1, 0, 2]);
        // No level fits into two blocks, and what is no B-tree stays as it is.
        std::fs::write(&file, &meta).unwrap();
        std::fs::remove_file(place.path().join("base/7.1")).unwrap();
        extend(&folder, "base/7", (2, Some(5)), None).unwrap();
        assert_eq!((size(&file), std::fs::read(&file).unwrap()[36]), (2 * PAGE as u64, 0));
        assert!(extend(&folder, "../7", (2, None), None).is_err());
        assert_eq!(needle(&[1, 2, 3], 1), [1, 2, 3]);
    }
}
