//! Names in SQL, with and without quotes.

use rqps_model::dialect::Dialect;

/// Words that need quotes as names in MySQL, MariaDB or SQLite, and that tables and columns may
/// well be called.
const RESERVED: &str = " \
    abort accessible action add after all alter always analyze and as asc attach before \
    begin between bigint binary blob both by call cascade case cast change char character \
    check collate column commit condition conflict constraint continue convert create cross \
    cube current cursor database databases default delayed delete desc describe detach \
    distinct div do double drop dual each else empty end escape except exclude exclusive \
    exists exit explain fail fetch filter first_value float following for force foreign from \
    full function generated get glob grant group grouping groups having high_priority if \
    ignore in index indexed infile initially inner inout insert instead int integer \
    intersect interval into is isnull join key keys kill lag last_value lateral lead leading \
    leave left like limit linear lines load lock long loop low_priority match mod natural no \
    not notnull nothing null nulls numeric of offset on optimize option or order others out \
    outer outfile over partition plan pragma precision preceding primary procedure query \
    raise range rank read reads real recursive references regexp reindex release rename \
    repeat replace require restrict return revoke right rlike rollback row row_number rows \
    savepoint schema schemas select sensitive separator set show signal smallint spatial \
    specific sql ssl starting system table temp temporary terminated then ties to trailing \
    transaction trigger unbounded undo union unique unlock unsigned update usage use using \
    vacuum values varchar varying view virtual when where while window with without write \
    xor zerofill ";

/// A name without quotes where it needs none. Postgres quotes only where it must.
pub(super) fn plain(dialect: Dialect, name: &str) -> String {
    let bare = name.trim_matches(['"', '`']);
    let begins = bare.starts_with(|letter: char| letter.is_ascii_lowercase() || letter == '_');
    let is_word = bare
        .chars()
        .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
    let needs_quotes = !begins || !is_word || RESERVED.contains(&format!(" {bare} "));
    if dialect == Dialect::Postgres || needs_quotes { name.to_owned() } else { bare.to_owned() }
}

/// A name in SQL without schema and quotes.
pub(super) fn bare(name: &str) -> &str {
    match name.chars().next_back() {
        Some(quote @ ('"' | '`')) => {
            let name = &name[..name.len() - 1];
            &name[name.rfind(quote).map_or(0, |at| at + 1)..]
        }
        _ => name.rsplit('.').next().unwrap_or(name),
    }
}
