//! Tables, views and other objects that a load makes, changes or drops.

use rqps_model::dialect::Dialect;
use rqps_model::sql_name::{Identifier, Literal, TableName};

/// Something that a statement makes, changes or drops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedRelation {
    /// Its name as the statement has it, with quotes and schema.
    pub name: String,
    /// Its kind in the statement.
    pub kind: RelationKind,
}

/// The kind of an object, as a statement names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RelationKind {
    /// A table.
    Table,
    /// A view.
    View,
    /// A materialized view.
    MaterializedView,
    /// A sequence.
    Sequence,
    /// A type or a domain.
    Type,
    /// An index.
    Index,
    /// A function, a procedure, a trigger: only `drop` of a workload file names one.
    Routine,
}

impl ChangedRelation {
    /// A table of this name.
    pub fn table(name: &str) -> ChangedRelation {
        ChangedRelation { name: name.to_owned(), kind: RelationKind::Table }
    }

    /// True if both names may mean one relation: those without a schema are in any.
    pub fn is_same(&self, other: &ChangedRelation) -> bool {
        let (own, others) = (self.parts(), other.parts());
        let mut pairs = own.iter().rev().zip(others.iter().rev());
        pairs.all(|(one, other)| one.eq_ignore_ascii_case(other))
    }

    /// Its parts without quotes, from the outermost.
    fn parts(&self) -> Vec<String> {
        match TableName::try_from(self.name.clone()) {
            // Another dialect would fold the case.
            Ok(name) => name.folded(Dialect::Mysql),
            Err(_) => vec![self.name.clone()],
        }
    }

    /// The name as SQL.
    pub fn identifier(&self, dialect: Dialect) -> Identifier {
        match TableName::try_from(self.name.clone()) {
            Ok(name) => name.identifier(dialect),
            Err(_) => Identifier::quoted(dialect, &self.name),
        }
    }

    /// The statement that returns a row if there is such an object.
    pub fn presence_query(&self, dialect: Dialect) -> String {
        if dialect != Dialect::Mysql {
            let name = Literal::quoted(dialect, &self.identifier(dialect).to_string());
            return match self.kind {
                RelationKind::Type => {
                    format!("SELECT 1 WHERE pg_catalog.to_regtype({name}) IS NOT NULL")
                }
                _ => format!("SELECT 1 WHERE pg_catalog.to_regclass({name}) IS NOT NULL"),
            };
        }
        format!("SELECT 1 FROM information_schema.tables WHERE {}", self.mysql_condition())
    }

    /// The statement that returns the names of the columns that MySQL or MariaDB computes.
    pub fn generated_columns_query(&self) -> String {
        format!(
            "SELECT column_name FROM information_schema.columns WHERE {} \
             AND (extra LIKE '%STORED GENERATED%' OR extra LIKE '%VIRTUAL GENERATED%')",
            self.mysql_condition()
        )
    }

    /// The condition on MySQL's tables about tables that is true for this one.
    fn mysql_condition(&self) -> String {
        let parts = self.parts();
        let literal = |text: &str| Literal::quoted(Dialect::Mysql, text).to_string();
        let name = literal(parts.last().map_or("", String::as_str));
        let place = match parts.as_slice() {
            [database, _] => literal(database),
            _ => "DATABASE()".to_owned(),
        };
        format!("table_schema = {place} AND table_name = {name}")
    }

    /// The entry for it in `drop` of a workload file, which drops it before the load.
    pub fn drop_entry(&self) -> String {
        let kind = match self.kind {
            RelationKind::Table => return self.name.clone(),
            RelationKind::View => "VIEW",
            RelationKind::MaterializedView => "MATERIALIZED VIEW",
            RelationKind::Sequence => "SEQUENCE",
            RelationKind::Type => "TYPE",
            RelationKind::Index => "INDEX",
            RelationKind::Routine => "FUNCTION",
        };
        format!("DROP {kind} IF EXISTS {}", self.name)
    }
}

/// The statement that returns the schema or database in which a load makes its tables.
pub fn place_query(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Mysql => "SELECT DATABASE()",
        _ => "SELECT pg_catalog.current_schema()",
    }
}

/// The message about files that name another place than the one that the login leads to.
pub fn elsewhere(place: &str, own: &str) -> String {
    format!(
        "its files name `{place}`, but the login leads to `{own}`\nhint: a load goes into the \
         schema or database of the login; name no other in the files"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_whatever_their_quotes() {
        let check = |one: &str, other: &str, same| {
            let found = ChangedRelation::table(one).is_same(&ChangedRelation::table(other));
            assert_eq!(found, same, "{one} {other}");
        };
        check("t", "\"T\"", true);
        check("public.t", "t", true);
        check("public.t", "shop.t", false);
        check("`a``b`", "\"a`b\"", true);
        check("`a.b`", "b", false);
        check("t", "u", false);
    }

    #[test]
    fn a_server_is_asked_for_the_name_as_it_reads_it() {
        let query = |name: &str, dialect| ChangedRelation::table(name).presence_query(dialect);
        let postgres = query("public.\"It's\"", Dialect::Postgres);
        assert_eq!(
            postgres,
            "SELECT 1 WHERE pg_catalog.to_regclass('public.\"It''s\"') IS NOT NULL"
        );
        let own = query("`t`", Dialect::Mysql);
        assert!(own.ends_with("table_schema = DATABASE() AND table_name = 't'"), "{own}");
        let other = query("shop.t", Dialect::Mysql);
        assert!(other.ends_with("table_schema = 'shop' AND table_name = 't'"), "{other}");
        let backslash = query(r"`It's \n`", Dialect::Mysql);
        assert!(backslash.ends_with(r"table_name = 'It''s \\n'"), "{backslash}");
    }
}
