//! Objects of others in the place of rqps's tables: a trigger, a policy or a better matching
//! function there would run with the rights of rqps's login (as CVE-2018-1058).

use crate::guest::OWNER;
use crate::sql_server::ControlConnection;
use rqps_model::dialect::{Dialect, SERVER_ONLY};
use rqps_model::escape;
use rqps_model::sql_name::Literal;
use rqps_text::behind::from_files;
use rqps_wire::WireError;

/// The role of the session.
const ME: &str = "(SELECT oid FROM pg_catalog.pg_roles WHERE rolname = current_user)";

/// Codes with which a server that is only compatible says that it has no such catalogue: feature
/// not supported, no such function, table or column.
const NO_SUCH_CATALOGUE: [&str; 4] = ["0A000", "42883", "42P01", "42703"];

/// The first schema of the session's path; leaves the session with [`SERVER_ONLY`].
pub(super) fn enter_catalogue(
    session: &mut dyn ControlConnection,
) -> Result<Option<String>, WireError> {
    let path = path_of(session)?;
    session.run(SERVER_ONLY)?;
    Ok(path.into_iter().next())
}

/// The schemas of the session's path.
fn path_of(session: &mut dyn ControlConnection) -> Result<Vec<String>, WireError> {
    // No operator and no function that somebody could have made, too.
    let sql = "SELECT pg_catalog.unnest(pg_catalog.current_schemas(false))";
    match session.rows(sql) {
        Ok(rows) => Ok(rows.into_iter().flatten().flatten().collect()),
        Err(error) if is_unknown(&error) => {
            let rows = session.rows("SELECT current_schema()")?;
            Ok(rows.into_iter().flatten().flatten().collect())
        }
        Err(error) => Err(error),
    }
}

fn is_unknown(error: &WireError) -> bool {
    error.code().is_some_and(|code| NO_SUCH_CATALOGUE.contains(&code))
}

/// The schemas of the session's path in which others may make functions: `public (PUBLIC)`. Leaves
/// the session with [`SERVER_ONLY`].
pub(crate) fn open_schemas(session: &mut dyn ControlConnection) -> Result<Vec<String>, WireError> {
    let path = path_of(session)?;
    session.run(SERVER_ONLY)?;
    let mut open = Vec::new();
    for schema in path {
        let mut makers = makers(session, &schema)?;
        makers.extend(strange_owner(session, &schema)?);
        if !makers.is_empty() {
            open.push(format!("{} ({})", escape::line(&schema), makers.join(", ")));
        }
    }
    Ok(open)
}

/// Roles besides this one, the owner and superusers that may make objects in a schema.
fn makers(session: &mut dyn ControlConnection, schema: &str) -> Result<Vec<String>, WireError> {
    let schema = Literal::quoted(Dialect::Postgres, schema);
    let sql = format!(
        "SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(a.grantee) END \
         FROM pg_namespace n, aclexplode(n.nspacl) a \
         WHERE n.nspname = {schema} AND a.privilege_type = 'CREATE' \
         AND a.grantee <> n.nspowner AND a.grantee <> {ME} AND NOT EXISTS \
         (SELECT 1 FROM pg_roles r WHERE r.oid = a.grantee AND r.rolsuper) ORDER BY 1"
    );
    texts(session, &sql)
}

/// The owner of a schema if it is an ordinary user that is not this one: it may make objects there,
/// too.
fn strange_owner(
    session: &mut dyn ControlConnection,
    schema: &str,
) -> Result<Vec<String>, WireError> {
    let schema = Literal::quoted(Dialect::Postgres, schema);
    let sql = format!(
        "SELECT pg_get_userbyid(n.nspowner) FROM pg_namespace n \
         WHERE n.nspname = {schema} AND n.nspowner <> {ME} \
         AND pg_get_userbyid(n.nspowner) <> 'pg_database_owner' AND n.nspowner <> \
         (SELECT datdba FROM pg_database WHERE datname = current_database()) AND NOT EXISTS \
         (SELECT 1 FROM pg_roles r WHERE r.oid = n.nspowner AND r.rolsuper)"
    );
    texts(session, &sql)
}

/// Why rqps must not work in a place; empty if nothing speaks against it. `own`: the place has a
/// name of rqps's own.
pub(super) fn faults(
    dialect: Dialect,
    session: &mut dyn ControlConnection,
    place: &str,
    own: bool,
) -> Result<Vec<String>, WireError> {
    let name = Literal::quoted(dialect, place);
    if dialect == Dialect::Mysql {
        return texts(session, &mysql_faults(&name, own));
    }
    let mut faults: Vec<String> = makers(session, place)?
        .into_iter()
        .map(|maker| format!("the user {maker} may make functions in it, which rqps would call"))
        .collect();
    if !own {
        let owner = strange_owner(session, place)?.into_iter();
        faults.extend(owner.map(|owner| format!("it belongs to the user {owner}")));
    }
    for sql in postgres_faults(&name, own) {
        faults.extend(texts(session, &sql)?);
    }
    Ok(faults)
}

/// Event triggers of the server, which run whenever rqps makes a table.
pub(super) fn event_triggers(
    dialect: Dialect,
    session: &mut dyn ControlConnection,
) -> Result<Vec<String>, WireError> {
    if dialect == Dialect::Mysql {
        return Ok(Vec::new());
    }
    // The first user is the owner of the server.
    let sql = "SELECT evtname FROM pg_catalog.pg_event_trigger WHERE evtenabled <> 'D' \
               AND evtowner <> 10 ORDER BY 1";
    texts(session, sql)
}

/// What to do about faults of a place.
pub(super) fn hint(place: &str, own: bool, grant_hint: &str) -> String {
    if own {
        "hint: check and drop it, or use another result folder (--out), which gets another \
                 name there"
            .to_owned()
    } else {
        format!(
            "hint: REVOKE CREATE ON SCHEMA {place} FROM PUBLIC, and from other users; or {}",
            grant_hint.trim_start_matches("hint: ")
        )
    }
}

/// Rows of one text, for messages: whoever makes objects chooses their names.
fn texts(session: &mut dyn ControlConnection, sql: &str) -> Result<Vec<String>, WireError> {
    match session.rows(sql) {
        Ok(rows) => {
            let texts = rows.into_iter().flatten().flatten();
            Ok(texts.map(|text| escape::line(&text).into_owned()).collect())
        }
        Err(error) if is_unknown(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Queries for reasons: the owner of the place, and objects on its tables that act by themselves.
fn postgres_faults(place: &Literal, own: bool) -> Vec<String> {
    // In a place of others, only rqps's own table counts: its tables are made anew.
    let tables = if own { String::new() } else { format!("AND c.relname = '{OWNER}' ") };
    let on_tables = |what: &str, of: &str| {
        format!(
            "SELECT 'its table ' || c.relname || ' has the {what} ' || {of} AND \
             n.nspname = {place} {tables}ORDER BY 1"
        )
    };
    let of_table = "JOIN pg_class c ON c.oid =";
    let of_place = "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE";
    let mut all = vec![
        on_tables(
            "trigger",
            &format!(
                "t.tgname FROM pg_trigger t {of_table} t.tgrelid {of_place} NOT t.tgisinternal"
            ),
        ),
        on_tables(
            "rule",
            &format!(
                "r.rulename FROM pg_rewrite r {of_table} r.ev_class {of_place} \
                 r.rulename <> '_RETURN'"
            ),
        ),
        on_tables(
            "policy",
            &format!("p.polname FROM pg_policy p {of_table} p.polrelid {of_place} true"),
        ),
        format!(
            "SELECT 'its object ' || c.relname || ' belongs to the user ' || \
             pg_get_userbyid(c.relowner) FROM pg_class c {of_place} c.relowner <> {ME} AND \
             n.nspname = {place} {tables}ORDER BY 1"
        ),
    ];
    if own {
        all.push(format!(
            "SELECT 'it belongs to the user ' || pg_get_userbyid(nspowner) FROM pg_namespace \
             WHERE nspname = {place} AND nspowner <> {ME}"
        ));
        let from_files = from_files();
        all.push(format!(
            "SELECT 'its function ' || p.proname || ' belongs to the user ' || \
             pg_get_userbyid(p.proowner) FROM pg_proc p JOIN pg_namespace n \
             ON n.oid = p.pronamespace WHERE n.nspname = {place} AND p.proowner <> {ME} \
             AND NOT {from_files} ORDER BY 1"
        ));
    }
    all
}

/// A trigger of MySQL runs with the rights of its definer, but it changes what rqps measures.
fn mysql_faults(place: &Literal, own: bool) -> String {
    let tables = if own { String::new() } else { format!(" AND event_object_table = '{OWNER}'") };
    format!(
        "SELECT CONCAT('its table ', event_object_table, ' has the trigger ', trigger_name) \
         FROM information_schema.triggers WHERE trigger_schema = {place}{tables}"
    )
}
