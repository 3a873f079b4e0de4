//! Rows and query parameters of the Insert Benchmark (tables pi1, pi2 …): uniform columns without a
//! relation to each other, and a filler whose tail is random.
//!
//! A row costs some tens of nanoseconds and no memory: numbers are spelled from a table of digits,
//! and random characters come from the bits of one random integer. The published client cuts them
//! out of 4 MiB of base64 at a uniform offset, which is the same distribution.

use crate::steps::shape;
use rqps_bench::spec::DataSize;
use rqps_model::benchmark::Workload;
use rqps_model::datagen::rng::Rng;
use rqps_model::dialect::Dialect;
use rqps_model::insert::{
    Deletes, Draw, InsertShape, PriceKind, Profile, Queries, Query, QueryKind,
};
use rqps_model::script::Protocol;

/// Values of cashregisterid: 0..1000.
pub const CASH_REGISTERS: u64 = 1_000;
/// Values of productid: 0..10000.
pub const PRODUCTS: u64 = 10_000;
/// Values of customerid: 0..100000.
pub const CUSTOMERS: u64 = 100_000;
/// The largest price is below this, in whole units.
pub const MAX_PRICE: u64 = 500;
/// Bytes of a date and time: `2026-01-31 08:05:09`.
pub const TIME_LEN: usize = 19;

/// Shortest and longest filler of the standard runs, bytes.
const DATA_LENGTHS: (u64, u64) = (10, 20);
/// Bytes of the longest filler.
const DATA_MAX: usize = 20;
/// The random characters: those of base64.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The rows of one client in order.
#[derive(Clone, Debug)]
pub struct Rows {
    rng: Rng,
    price: PriceKind,
}

/// One row without its key and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PurchaseRow {
    /// In 0..1000.
    pub cash_register: u64,
    /// In 0..10000.
    pub product: u64,
    /// In 0..100000.
    pub customer: u64,
    /// In hundredths of the unit.
    pub price: u64,
    data: [u8; DATA_MAX],
    data_length: usize,
}

impl PurchaseRow {
    /// The filler.
    pub fn data(&self) -> &[u8] {
        &self.data[..self.data_length]
    }
}

impl Rows {
    /// The rows of client `client` in the step with `seed`.
    pub fn new(seed: u64, client: u32, price: PriceKind) -> Rows {
        Rows { rng: Rng::stream(seed, "iibench rows", u64::from(client)), price }
    }

    /// Draws the next row in the published order: cash register, product, customer, price, length,
    /// random characters.
    #[inline]
    pub fn next_row(&mut self) -> PurchaseRow {
        let rng = &mut self.rng;
        let cash_register = rng.below(CASH_REGISTERS);
        let product = rng.below(PRODUCTS);
        let customer = rng.below(CUSTOMERS);
        let price = price(rng, self.price, customer);
        let (shortest, longest) = DATA_LENGTHS;
        let length = rng.uniform(shortest, longest) as usize;
        let mut data = [b'a'; DATA_MAX];
        let mut bits = rng.next_u64();
        for place in &mut data[length - random_length(length)..length] {
            *place = ALPHABET[(bits & 63) as usize];
            bits >>= 6;
        }
        PurchaseRow { cash_register, product, customer, price, data, data_length: length }
    }

    /// Appends the next row as a tuple of a multi-row INSERT, without a comma after it:
    /// `('2026-01-31 08:05:09',12,34567,890,123.00,'aaaaaaXyZ')` for the columns dateandtime,
    /// cashregisterid, customerid, productid, price, data.
    #[inline]
    pub fn append_tuple(&mut self, out: &mut Vec<u8>, time: &[u8; TIME_LEN]) {
        let row = self.next_row();
        let mut text = [0; 96];
        let mut at = 0;
        put(&mut text, &mut at, b"('");
        put(&mut text, &mut at, time);
        put(&mut text, &mut at, b"',");
        for number in [row.cash_register, row.customer, row.product] {
            put_number(&mut text, &mut at, number);
            put(&mut text, &mut at, b",");
        }
        put_price(&mut text, &mut at, row.price);
        put(&mut text, &mut at, b",'");
        put(&mut text, &mut at, row.data());
        put(&mut text, &mut at, b"')");
        out.extend_from_slice(&text[..at]);
    }
}

/// The number of random characters in a filler of `length`: 50 per cent of three quarters.
fn random_length(length: usize) -> usize {
    // floor(length × 0.75 × 0.50)
    length * 3 / 8
}

/// Draws a price in hundredths.
#[inline]
fn price(rng: &mut Rng, price: PriceKind, customer: u64) -> u64 {
    match price {
        PriceKind::Whole => rng.below(MAX_PRICE) * 100,
        PriceKind::Correlated => (rng.unit() * MAX_PRICE as f64 + customer as f64).round() as u64,
    }
}

/// Draws a price for a query, in hundredths, like that of a row.
pub fn query_price(rng: &mut Rng, kind: PriceKind) -> u64 {
    let customer = match kind {
        PriceKind::Whole => 0,
        PriceKind::Correlated => rng.below(CUSTOMERS),
    };
    price(rng, kind, customer)
}

#[inline]
fn put(text: &mut [u8; 96], at: &mut usize, bytes: &[u8]) {
    text[*at..*at + bytes.len()].copy_from_slice(bytes);
    *at += bytes.len();
}

/// Writes a number below 1,000,000.
#[inline]
fn put_number(text: &mut [u8; 96], at: &mut usize, number: u64) {
    let mut digits = [0; 6];
    let mut first = digits.len();
    let mut rest = number;
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 || first == 0 {
            break;
        }
    }
    put(text, at, &digits[first..]);
}

#[inline]
fn put_price(text: &mut [u8; 96], at: &mut usize, hundredths: u64) {
    put_number(text, at, hundredths / 100);
    let cents = hundredths % 100;
    put(text, at, &[b'.', b'0' + (cents / 10) as u8, b'0' + (cents % 10) as u8]);
}

/// Appends a number in decimal digits.
#[inline]
pub fn append_number(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    let mut first = digits.len();
    let mut rest = number;
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[first..]);
}

/// Appends a price in hundredths as `123.45`.
pub fn append_price(out: &mut Vec<u8>, hundredths: u64) {
    append_number(out, hundredths / 100);
    let cents = hundredths % 100;
    out.extend_from_slice(&[b'.', b'0' + (cents / 10) as u8, b'0' + (cents % 10) as u8]);
}

// Tables, indexes and statements of the Insert Benchmark, by dialect.

/// Rows that a query requests.
const ROWS_PER_QUERY: u32 = 10;

/// The name of a table.
pub(super) const TABLE: &str = "pi{table}";

/// Partitioning of a table by its primary key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Partitioning {
    /// Number of ranges; 1 for a plain table.
    pub(super) parts: u32,
    /// Keys per range.
    pub(super) rows: u64,
}

/// The statements that drop and create a table, in order.
pub(super) fn create(
    dialect: Dialect,
    profile: Profile,
    partitioning: Partitioning,
) -> Vec<String> {
    let mut statements = vec![format!("DROP TABLE IF EXISTS {TABLE}")];
    match dialect {
        Dialect::Postgres => {
            let price = if profile.is_2021() { "real" } else { "int" };
            let split =
                if partitioning.parts > 1 { " PARTITION BY RANGE (transactionid)" } else { "" };
            statements.push(format!(
                "CREATE TABLE {TABLE} (transactionid bigserial PRIMARY KEY, \
                 dateandtime timestamp without time zone, cashregisterid int NOT NULL, \
                 customerid int NOT NULL, productid int NOT NULL, price {price} NOT NULL, \
                 data varchar(4000)){split}"
            ));
            statements.extend(postgres_partitions(partitioning));
            // Each session takes a thousand keys at a time; unused ones become gaps.
            statements.push(format!("ALTER SEQUENCE {TABLE}_transactionid_seq CACHE 1000"));
        }
        Dialect::Mysql => {
            let price = if profile.is_2021() { "float" } else { "int" };
            statements.push(format!(
                "CREATE TABLE {TABLE} (transactionid bigint NOT NULL AUTO_INCREMENT, \
                 dateandtime datetime, cashregisterid int NOT NULL, customerid int NOT NULL, \
                 productid int NOT NULL, price {price} NOT NULL, data varchar(4000), \
                 PRIMARY KEY (transactionid)) ENGINE={{engine}}{}",
                mysql_partitions(partitioning)
            ));
        }
        Dialect::Sqlite | Dialect::KeyValue | Dialect::Fake => {
            let price = if profile.is_2021() { "REAL" } else { "INTEGER" };
            statements.push(format!(
                "CREATE TABLE {TABLE} (transactionid INTEGER PRIMARY KEY, dateandtime TEXT, \
                 cashregisterid INTEGER NOT NULL, customerid INTEGER NOT NULL, \
                 productid INTEGER NOT NULL, price {price} NOT NULL, data TEXT)"
            ));
        }
    }
    statements
}

fn postgres_partitions(Partitioning { parts, rows }: Partitioning) -> Vec<String> {
    if parts <= 1 {
        return Vec::new();
    }
    let part = |index: u32| {
        let low = u64::from(index) * rows;
        let from = if index == 0 { "MINVALUE".to_owned() } else { low.to_string() };
        let last = index + 1 == parts;
        let to = if last { "MAXVALUE".to_owned() } else { (low + rows).to_string() };
        format!(
            "CREATE TABLE {TABLE}_p{index} PARTITION OF {TABLE} FOR VALUES FROM ({from}) TO ({to})"
        )
    };
    (0..parts).map(part).collect()
}

fn mysql_partitions(Partitioning { parts, rows }: Partitioning) -> String {
    if parts <= 1 {
        return String::new();
    }
    let part = |index: u32| {
        if index + 1 == parts {
            format!("PARTITION p{index} VALUES LESS THAN MAXVALUE")
        } else {
            format!("PARTITION p{index} VALUES LESS THAN ({})", u64::from(index + 1) * rows)
        }
    };
    let parts: Vec<String> = (0..parts).map(part).collect();
    format!(" PARTITION BY RANGE (transactionid) ({})", parts.join(", "))
}

/// Names of the sequence, indexes and partitions of a Postgres table.
fn names_beside(profile: Profile, partitions: u32) -> Vec<String> {
    let mut names = vec![format!("{TABLE}_transactionid_seq")];
    names.extend(index_columns(profile).map(|(name, _)| format!("{TABLE}_{name}")));
    if partitions > 1 {
        names.extend((0..partitions).map(|index| format!("{TABLE}_p{index}")));
    }
    names
}

/// Names and columns of the secondary indexes in the order of their creation.
fn index_columns(profile: Profile) -> [(&'static str, &'static str); 3] {
    if profile.is_2021() {
        [
            ("marketsegment", "price, customerid"),
            ("registersegment", "cashregisterid, price, customerid"),
            ("pdc", "price, dateandtime, customerid"),
        ]
    } else {
        [
            ("marketsegment", "productid, customerid, price"),
            ("registersegment", "cashregisterid, customerid, price"),
            ("pdc", "price, dateandtime, customerid"),
        ]
    }
}

/// The statements that make the first `count` secondary indexes: a single one if the DBMS supports
/// that, otherwise one each.
pub(super) fn indexes(
    dialect: Dialect,
    profile: Profile,
    count: u32,
) -> (Vec<String>, Vec<String>) {
    let wanted = index_columns(profile).into_iter().take(count as usize);
    if dialect == Dialect::Mysql {
        let adds: Vec<String> =
            wanted.map(|(name, columns)| format!("ADD INDEX {TABLE}_{name} ({columns})")).collect();
        let alone = adds.iter().map(|add| format!("ALTER TABLE {TABLE} {add}")).collect();
        let together = format!("ALTER TABLE {TABLE} {}", adds.join(", "));
        let together = if adds.is_empty() { Vec::new() } else { vec![together] };
        return (together, alone);
    }
    let all: Vec<String> = wanted
        .map(|(name, columns)| format!("CREATE INDEX {TABLE}_{name} ON {TABLE} ({columns})"))
        .collect();
    (all.clone(), all)
}

/// An INSERT up to its first tuple.
pub(super) fn insert_sql() -> String {
    format!(
        "INSERT INTO {TABLE} \
         (dateandtime,cashregisterid,customerid,productid,price,data) VALUES "
    )
}

/// The deleter's statements. They delete exactly `{rows}` rows in spite of gaps between keys; the
/// lower bound keeps the scan off deleted rows.
pub(super) fn deletes(dialect: Dialect, resync_every: u32) -> Deletes {
    let sql = if dialect == Dialect::Mysql {
        format!(
            "DELETE FROM {TABLE} WHERE transactionid >= {{key}} \
             ORDER BY transactionid ASC LIMIT {{rows}}"
        )
    } else {
        format!(
            "DELETE FROM {TABLE} WHERE transactionid IN (SELECT transactionid FROM {TABLE} \
             WHERE transactionid >= {{key}} ORDER BY transactionid ASC LIMIT {{rows}})"
        )
    };
    let min_sql = format!("SELECT min(transactionid) FROM {TABLE}");
    Deletes { sql, min_sql, resync_every }
}

/// The queries of a step.
pub(super) fn queries(
    dialect: Dialect,
    profile: Profile,
    kind: QueryKind,
    workers: u32,
) -> Queries {
    let (kinds, max_sql) = match kind {
        QueryKind::Range => (range_queries(dialect, profile), None),
        QueryKind::Point => {
            let max_sql = format!("SELECT max(transactionid) FROM {TABLE}");
            (vec![point_query(dialect, profile)], Some(max_sql))
        }
    };
    Queries { workers, kinds, rows_per_query: ROWS_PER_QUERY, max_sql }
}

/// A range query before it is written for a dialect.
struct Range {
    name: &'static str,
    /// Columns of the index, in order.
    columns: &'static str,
    /// `productid >=`
    condition: &'static str,
    draw: Draw,
    /// Type of the parameter on Postgres.
    kind: &'static str,
}

fn range_queries(dialect: Dialect, profile: Profile) -> Vec<Query> {
    let [(market, market_columns), (register, register_columns), (pdc, pdc_columns)] =
        index_columns(profile);
    let (first, price) = if profile.is_2021() {
        (("price >=", Draw::Price, "real"), (Draw::Price, "real"))
    } else {
        (("productid >=", Draw::Product, "int"), (Draw::WholePrice, "int"))
    };
    let ranges = [
        Range {
            name: market,
            columns: market_columns,
            condition: first.0,
            draw: first.1,
            kind: first.2,
        },
        Range {
            name: register,
            columns: register_columns,
            condition: "cashregisterid >",
            draw: Draw::CashRegister,
            kind: "int",
        },
        Range {
            name: pdc,
            columns: pdc_columns,
            condition: "price >=",
            draw: price.0,
            kind: price.1,
        },
    ];
    ranges.iter().map(|range| range_query(dialect, profile, range)).collect()
}

fn range_query(dialect: Dialect, profile: Profile, range: &Range) -> Query {
    let Range { name, columns, condition, draw, kind } = *range;
    let hint = match dialect {
        Dialect::Mysql => format!(" FORCE INDEX ({TABLE}_{name})"),
        Dialect::Postgres | Dialect::Sqlite | Dialect::KeyValue | Dialect::Fake => String::new(),
    };
    let spelled = |parameter: &str| {
        format!(
            "SELECT {columns} FROM {TABLE}{hint} WHERE {condition} {parameter} \
             ORDER BY {columns} LIMIT {ROWS_PER_QUERY}"
        )
    };
    query(dialect, profile, name, &[draw], kind, &spelled)
}

fn point_query(dialect: Dialect, profile: Profile) -> Query {
    let draws = [Draw::Key; ROWS_PER_QUERY as usize];
    let spelled = |parameters: &str| {
        format!(
            "SELECT transactionid, productid, data FROM {TABLE} \
             WHERE transactionid IN ({parameters})"
        )
    };
    query(dialect, profile, "point", &draws, "bigint", &spelled)
}

/// A query for a dialect. Postgres prepares it in the versions of the benchmark that did, MySQL
/// gets text, and SQLite prepares it through its own interface, because compiling would take most
/// of the time.
fn query(
    dialect: Dialect,
    profile: Profile,
    name: &str,
    draws: &[Draw],
    kind: &str,
    spelled: &dyn Fn(&str) -> String,
) -> Query {
    let numbers = 1..=draws.len();
    let list = |form: &dyn Fn(usize) -> String| {
        numbers.clone().map(form).collect::<Vec<String>>().join(",")
    };
    let text = list(&|number| format!("{{{number}}}"));
    let (prepare, sql, protocol) = match dialect {
        Dialect::Postgres if !profile.is_2021() => {
            let dollars = list(&|number| format!("${number}"));
            let kinds = list(&|_| kind.to_owned());
            let prepare = format!("PREPARE {name} ({kinds}) AS {}", spelled(&dollars));
            (Some(prepare), format!("EXECUTE {name}({text})"), Protocol::Text)
        }
        Dialect::Sqlite => {
            // The bound value is a whole number; a price is in hundredths.
            let place = if draws.contains(&Draw::Price) { "?/100.0" } else { "?" };
            (None, spelled(&list(&|_| place.to_owned())), Protocol::Prepared)
        }
        Dialect::Postgres | Dialect::Mysql | Dialect::KeyValue | Dialect::Fake => {
            (None, spelled(&text), Protocol::Text)
        }
    };
    Query { name: name.to_owned(), prepare, sql, protocol, parameters: draws.to_vec() }
}

/// Queries for the background activity of the server: rows of name and value, where names with the
/// ending `_total` are counters and others levels; and InnoDB's own status. A version uses the
/// first group of queries that it answers with rows.
pub(super) fn observe(dialect: Dialect) -> Vec<Vec<String>> {
    match dialect {
        Dialect::Postgres => {
            let workers = "SELECT 'autovacuum_workers', count(*) FROM pg_stat_activity \
                           WHERE query LIKE 'autovacuum:%'";
            let checkpointer = format!(
                "SELECT 'checkpoints_total', (num_timed + num_requested)::bigint \
                 FROM pg_stat_checkpointer \
                 UNION ALL SELECT 'checkpoint_pages_total', buffers_written \
                 FROM pg_stat_checkpointer UNION ALL {workers}"
            );
            let bgwriter = format!(
                "SELECT 'checkpoints_total', (checkpoints_timed + checkpoints_req)::bigint \
                 FROM pg_stat_bgwriter \
                 UNION ALL SELECT 'checkpoint_pages_total', buffers_checkpoint \
                 FROM pg_stat_bgwriter \
                 UNION ALL SELECT 'backend_pages_total', buffers_backend FROM pg_stat_bgwriter \
                 UNION ALL {workers}"
            );
            vec![vec![checkpointer], vec![bgwriter]]
        }
        Dialect::Mysql => {
            // One query for all status variables: it costs the server up to 1 ms of CPU. MySQL
            // since 8.0.30 and MariaDB report the redo log in it.
            let status = "SHOW GLOBAL STATUS WHERE Variable_name IN \
                          ('Innodb_buffer_pool_pages_dirty', 'Innodb_buffer_pool_pages_flushed', \
                          'Innodb_log_waits', 'Innodb_buffer_pool_wait_free', \
                          'Innodb_history_list_length', 'Innodb_redo_log_logical_size', \
                          'Innodb_checkpoint_age', 'Innodb_checkpoint_max_age', \
                          'Rocksdb_stall_micros')";
            let since_8_0_30 = ["SELECT 'redo_capacity', @@innodb_redo_log_capacity", status];
            let until_8_0_29 = [
                "SELECT 'redo_capacity', @@innodb_log_file_size * @@innodb_log_files_in_group",
                "SHOW ENGINE INNODB STATUS",
                status,
            ];
            let groups: [&[&str]; 3] = [&since_8_0_30, &until_8_0_29, &[status]];
            let owned = |group: &[&str]| group.iter().map(|sql| (*sql).to_owned()).collect();
            groups.into_iter().map(owned).collect()
        }
        Dialect::Sqlite | Dialect::KeyValue | Dialect::Fake => Vec::new(),
    }
}

/// The queries for the bytes of the database, as published for Postgres. rqps measures the tables
/// of its own MySQL on disk, as published; another MySQL reports its statistics.
pub(super) fn size(dialect: Dialect) -> Vec<String> {
    let sql = match dialect {
        Dialect::Postgres => "SELECT pg_database_size(current_database())",
        Dialect::Mysql => {
            "SELECT sum(data_length + index_length + data_free) FROM information_schema.tables \
             WHERE table_schema = database()"
        }
        Dialect::Sqlite => {
            "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
        }
        Dialect::KeyValue | Dialect::Fake => return Vec::new(),
    };
    vec![sql.to_owned()]
}

/// Names of all tables and of objects in the same name space.
pub(super) fn names_made(dialect: Dialect, workload: &Workload) -> Vec<String> {
    let Some(shape) = shape(workload) else { return Vec::new() };
    let tables = if shape.shared { 1 } else { workload.clients };
    let mut names = vec![TABLE.to_owned()];
    if dialect == Dialect::Postgres {
        names.extend(names_beside(shape.profile, shape.partitions));
    }
    let of_table = |table: u32| {
        let table = table.to_string();
        names.iter().map(move |name| name.replace("{table}", &table)).collect::<Vec<_>>()
    };
    (1..=tables).flat_map(of_table).collect()
}

/// The size of the data.
pub(super) fn data_size(workload: &Workload) -> DataSize {
    let rows = shape(workload).map_or(0, |shape| rows_written(workload, shape));
    DataSize::of_tables(workload, rows)
}

/// Rows that are inserted and not deleted.
fn rows_written(workload: &Workload, shape: &InsertShape) -> u64 {
    let clients = u64::from(workload.clients);
    if shape.deletes {
        return workload.rows * clients;
    }
    let rates: u64 = shape.query_steps.iter().map(|step| u64::from(step.rows_per_second)).sum();
    let queried = (rates as f64 * shape.query_seconds) as u64;
    (workload.rows + shape.i1_rows + shape.i2_rows + queried) * clients
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: &[u8; TIME_LEN] = b"2026-01-31 08:05:09";

    const GOLDEN_WHOLE: [&str; 3] = [
        "('2026-01-31 08:05:09',887,75577,9734,208.00,'aaaaaaaaskPg')",
        "('2026-01-31 08:05:09',683,76374,2222,358.00,'aaaaaaaaa9p25')",
        "('2026-01-31 08:05:09',139,28838,6501,316.00,'aaaaaaaaaPUaYm')",
    ];
    const GOLDEN_CORRELATED: [&str; 3] = [
        "('2026-01-31 08:05:09',374,64983,9203,654.46,'aaaaaaaaapouu')",
        "('2026-01-31 08:05:09',611,58808,3863,591.72,'aaaaaaaaaaB85qFk')",
        "('2026-01-31 08:05:09',934,2164,2415,26.20,'aaaaaaaaaW2BU')",
    ];

    fn tuples(seed: u64, client: u32, price: PriceKind, count: usize) -> Vec<String> {
        let mut rows = Rows::new(seed, client, price);
        let one = |_| {
            let mut out = Vec::new();
            rows.append_tuple(&mut out, TIME);
            String::from_utf8(out).unwrap()
        };
        (0..count).map(one).collect()
    }

    // An independent program in another language made the golden values.

    #[test]
    fn rows_keep_their_text() {
        assert_eq!(tuples(42, 0, PriceKind::Whole, 3), GOLDEN_WHOLE);
        assert_eq!(tuples(42, 1, PriceKind::Correlated, 3), GOLDEN_CORRELATED);
    }

    #[test]
    fn the_random_tail_has_the_published_length() {
        let want = [3, 4, 4, 4, 5, 5, 6, 6, 6, 7, 7];
        for (length, want) in (10..=20).zip(want) {
            assert_eq!(random_length(length), want, "{length}");
        }
        let mut rows = Rows::new(1, 0, PriceKind::Whole);
        for _ in 0..1000 {
            let row = rows.next_row();
            let length = row.data().len();
            let fixed = length - random_length(length);
            assert!((10..=20).contains(&length));
            assert!(row.data()[..fixed].iter().all(|byte| *byte == b'a'), "{row:?}");
            assert!(row.data()[fixed..].iter().all(|byte| ALPHABET.contains(byte)), "{row:?}");
        }
    }

    #[test]
    fn columns_are_uniform_and_prices_have_their_form() {
        let mut rows = Rows::new(3, 0, PriceKind::Whole);
        let (mut registers, mut products) = (vec![0u64; 1000], vec![0u64; 100]);
        let (mut customers, mut prices) = (vec![0u64; 100], vec![0u64; 500]);
        for _ in 0..200_000 {
            let row = rows.next_row();
            registers[row.cash_register as usize] += 1;
            products[row.product as usize / 100] += 1;
            customers[row.customer as usize / 1000] += 1;
            assert_eq!(row.price % 100, 0);
            prices[row.price as usize / 100] += 1;
        }
        for counts in [registers, products, customers, prices] {
            let expected = vec![1.0; counts.len()];
            assert!(rqps_stats::goodness_of_fit(&counts, &expected) > 1e-5);
        }
        let mut rows = Rows::new(3, 0, PriceKind::Correlated);
        for _ in 0..10_000 {
            let row = rows.next_row();
            assert!((row.customer..=row.customer + 500).contains(&row.price), "{row:?}");
        }
    }

    #[test]
    fn clients_and_seeds_have_rows_of_their_own() {
        let first = tuples(7, 0, PriceKind::Whole, 50);
        assert_eq!(first, tuples(7, 0, PriceKind::Whole, 50));
        assert_ne!(first, tuples(7, 1, PriceKind::Whole, 50));
        assert_ne!(first, tuples(8, 0, PriceKind::Whole, 50));
    }

    #[test]
    fn numbers_are_those_of_format() {
        for number in [0, 7, 10, 99_999, 100_499, u64::MAX] {
            let mut out = Vec::new();
            append_number(&mut out, number);
            assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
        let mut out = Vec::new();
        append_price(&mut out, 100_407);
        assert_eq!(out, b"1004.07");
    }
}
