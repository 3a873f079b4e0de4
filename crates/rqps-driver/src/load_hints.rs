//! The way out of errors of servers that a load meets.

use rqps_wire::WireError;

/// Code of MySQL and MariaDB for a collation that they do not have.
const UNKNOWN_COLLATION: &str = "1273";

/// Code of MySQL and MariaDB for a database that is not there.
const UNKNOWN_DATABASE: &str = "1049";

/// Code of Postgres for a value of a column that it computes.
const ALWAYS_GENERATED: &str = "428C9";

/// Codes for a row whose foreign key finds no row: of Postgres, of MySQL and MariaDB.
const NO_PARENT: [&str; 2] = ["23503", "1452"];

/// Words in the message for a value of a generated column: of MySQL (3105), MariaDB (1906),
/// Postgres (42P10) and SQLite.
const GENERATED: &str = "generated column";

/// A line with the way out, to be put behind the message of the error; empty where none is known.
pub(super) fn hint(error: &WireError) -> &'static str {
    let message = error.to_string();
    if error.code() == Some(ALWAYS_GENERATED) || message.contains(GENERATED) {
        return "\nhint: the server computes generated columns: a CSV file has no field for them, \
                and INSERT names the other columns (mysqldump --complete-insert)";
    }
    match error.code() {
        Some(code) if NO_PARENT.contains(&code) => {
            "\nhint: load a table before those that reference it: `data` keeps its order with \
             `threads = 1`; or make foreign keys in a file of `index`"
        }
        Some(UNKNOWN_DATABASE) => {
            "\nhint: the file spells the name of its database: `database = \"NAME\"` in [load] gives \
             it that name on builds that rqps starts"
        }
        Some(UNKNOWN_COLLATION) => collation_hint(&message),
        _ => "",
    }
}

/// The hint for a collation that the server does not know: the DBMS that has it.
fn collation_hint(message: &str) -> &'static str {
    if message.contains("_0900_") {
        return "\nhint: collations such as utf8mb4_0900_ai_ci exist only in MySQL 8; replace it in \
                the file, for instance by utf8mb4_general_ci";
    }
    if message.contains("uca1400") {
        return "\nhint: collations such as utf8mb4_uca1400_ai_ci exist only in MariaDB from 10.10; \
                replace it in the file, for instance by utf8mb4_general_ci";
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_with_a_way_out_tell_it() {
        let of = |code: &str, message: &str| {
            let (code, message) = (code.to_owned(), message.to_owned());
            hint(&WireError::Server { code, message })
        };
        let computed = "\nhint: the server computes generated columns";
        let value = "The value specified for generated column 'b' in table 't' is not allowed.";
        assert!(of("3105", value).starts_with(computed));
        let message = "cannot insert a non-DEFAULT value into column \"b\"";
        assert!(of("428C9", message).starts_with(computed));
        let warned = WireError::Protocol(format!("the server did not take 2 rows: {value} (3105)"));
        assert!(hint(&warned).starts_with(computed));
        assert!(of("1273", "Unknown collation: 'utf8mb4_0900_ai_ci'").contains("only in MySQL 8"));
        assert!(of("1273", "Unknown collation: 'utf8mb4_uca1400_ai_ci'").contains("in MariaDB"));
        assert!(of("1049", "Unknown database 'shop'").contains("`database = \"NAME\"`"));
        assert_eq!(of("1273", "Unknown collation: 'x'"), "");
        assert_eq!(of("1146", "Table 't' doesn't exist"), "");
        let child = "Cannot add or update a child row: a foreign key constraint fails";
        assert!(of("1452", child).starts_with("\nhint: load a table before those that reference"));
    }
}
