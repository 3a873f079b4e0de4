//! SQL by DBMS: tables, indexes, queries, settings. Texts only, so that they can be read and tested
//! in one place.

use rqps_model::dialect::Dialect;
use rqps_model::sql_name::Identifier;
use rqps_model::vector::{Distance, Filter, Index, Iterative, Search, Variant, VectorWork};
use rqps_wire::ValueType;

/// The table.
pub(super) const TABLE: &str = "items";
/// Its vector index.
pub(super) const INDEX: &str = "items_v";
/// Most values of a row with `STORAGE PLAIN` in a page of Postgres.
const PLAIN_DIMS: usize = 1_990;

/// The facts that determine statements.
#[derive(Clone)]
pub(super) struct Sql {
    pub(super) dialect: Dialect,
    pub(super) dims: usize,
    pub(super) distance: Distance,
    pub(super) work: VectorWork,
    pub(super) storage_engine: Option<String>,
    /// `public.` as prefix for names of pgvector's types, operators and functions if sessions do
    /// not see the extension's schema; otherwise empty.
    pub(super) types: String,
    /// The comment of the table on a server that rqps does not run; `None` on its own.
    pub(super) mark: Option<String>,
}

impl Sql {
    /// Creates the empty table.
    pub(super) fn create(&self) -> Vec<String> {
        let (dims, types) = (self.dims, &self.types);
        let drop = format!("DROP TABLE IF EXISTS {TABLE}");
        match self.dialect {
            Dialect::Mysql => {
                let storage_engine = self.storage_engine.as_deref().unwrap_or("InnoDB");
                let storage_engine = Identifier::plain(self.dialect, storage_engine);
                let create = format!(
                    "CREATE TABLE {TABLE} (id INT PRIMARY KEY, class INT NOT NULL, u INT NOT NULL, \
                     fate INT NOT NULL, v VECTOR({dims}) NOT NULL) ENGINE={storage_engine}"
                );
                vec![drop, create]
            }
            _ => {
                // Vectors stay in their rows if they fit: reading them from elsewhere would be
                // another benchmark.
                let (column, most) = match self.work.variant {
                    Variant::HalfvecColumn => ("halfvec", 2 * PLAIN_DIMS),
                    _ => ("vector", PLAIN_DIMS),
                };
                let storage = if dims <= most { "PLAIN" } else { "EXTERNAL" };
                vec![
                    "CREATE EXTENSION IF NOT EXISTS vector".to_owned(),
                    drop,
                    format!(
                        "CREATE TABLE {TABLE} (id int, class int, u int, fate int, \
                         v {types}{column}({dims}))"
                    ),
                    format!("ALTER TABLE {TABLE} ALTER COLUMN v SET STORAGE {storage}"),
                ]
            }
        }
    }

    /// Drops the index.
    pub(super) fn drop_index(&self) -> String {
        match self.dialect {
            Dialect::Mysql => format!("ALTER TABLE {TABLE} DROP INDEX IF EXISTS {INDEX}"),
            _ => format!("DROP INDEX IF EXISTS {INDEX}"),
        }
    }

    /// Creates the index.
    pub(super) fn create_index(&self, index: &Index) -> String {
        let Index { m, .. } = index;
        if self.dialect == Dialect::Mysql {
            let distance = match self.distance {
                Distance::Euclidean => "euclidean",
                Distance::Cosine => "cosine",
            };
            return format!(
                "ALTER TABLE {TABLE} ADD VECTOR INDEX {INDEX} (v) M={m} DISTANCE={distance}"
            );
        }
        let family = match self.distance {
            Distance::Euclidean => "l2",
            Distance::Cosine => "cosine",
        };
        let types = &self.types;
        let key = match self.work.variant {
            Variant::Vector => format!("v {types}vector_{family}_ops"),
            Variant::HalfvecColumn => format!("v {types}halfvec_{family}_ops"),
            Variant::Halfvec | Variant::HalfvecRerank => {
                format!("({}) {types}halfvec_{family}_ops", self.kept())
            }
            Variant::Bit => format!("({}) {types}bit_hamming_ops", self.kept()),
        };
        let width = index.ef_construction.map(|width| format!(", ef_construction = {width}"));
        let width = width.unwrap_or_default();
        format!("CREATE INDEX {INDEX} ON {TABLE} USING hnsw ({key}) WITH (m = {m}{width})")
    }

    /// The content of pgvector's index, as an expression of the column.
    fn kept(&self) -> String {
        let (dims, types) = (self.dims, &self.types);
        match self.work.variant {
            Variant::Vector | Variant::HalfvecColumn => "v".to_owned(),
            Variant::Halfvec | Variant::HalfvecRerank => format!("v::{types}halfvec({dims})"),
            Variant::Bit => format!("{types}binary_quantize(v)::bit({dims})"),
        }
    }

    /// The query. `vector` and `filter` stand for the values: placeholders, or literals for
    /// EXPLAIN.
    fn query(&self, search: &Search, vector: &str, filter: &str) -> String {
        let k = self.work.k;
        let condition = match search.filter {
            Filter::None => String::new(),
            Filter::Random { .. } => format!(" WHERE u < {filter}"),
            Filter::OwnClass | Filter::OtherClass => format!(" WHERE class = {filter}"),
        };
        if self.dialect == Dialect::Mysql {
            let function = match self.distance {
                Distance::Euclidean => "vec_distance_euclidean",
                Distance::Cosine => "vec_distance_cosine",
            };
            return format!(
                "SELECT id FROM {TABLE}{condition} ORDER BY {function}(v, {vector}) LIMIT {k}"
            );
        }
        let (kept, dims, types) = (self.kept(), self.dims, &self.types);
        let operator = self.nearness();
        // The index returns as many rows as the search is wide; they are ranked again.
        let ranked_again = |first: &str| {
            format!(
                "SELECT id FROM (SELECT id, v FROM {TABLE}{condition} ORDER BY {kept} {first} \
                 LIMIT {}) near ORDER BY v {operator} {vector}::{types}vector LIMIT {k}",
                search.ef.max(k)
            )
        };
        match self.work.variant {
            Variant::Vector | Variant::HalfvecColumn => format!(
                "SELECT id FROM {TABLE}{condition} ORDER BY v {operator} {vector} LIMIT {k}"
            ),
            Variant::Halfvec => format!(
                "SELECT id FROM {TABLE}{condition} ORDER BY {kept} {operator} \
                 {vector}::{types}halfvec({dims}) LIMIT {k}"
            ),
            Variant::HalfvecRerank => {
                let near = format!("{vector}::{types}vector::{types}halfvec({dims})");
                ranked_again(&format!("{operator} {near}"))
            }
            Variant::Bit => {
                let hamming = self.operator("<~>");
                let near = format!("{types}binary_quantize({vector}::{types}vector)");
                ranked_again(&format!("{hamming} {near}"))
            }
        }
    }

    /// The operator of the distance.
    fn nearness(&self) -> String {
        self.operator(match self.distance {
            Distance::Euclidean => "<->",
            Distance::Cosine => "<=>",
        })
    }

    /// An operator of pgvector.
    fn operator(&self, name: &str) -> String {
        match self.types.as_str() {
            "" => name.to_owned(),
            types => format!("OPERATOR({types}{name})"),
        }
    }

    /// The query with placeholders, and their types. The filter's value comes first.
    pub(super) fn prepared(&self, search: &Search) -> (String, Vec<ValueType>) {
        let filtered = search.filter != Filter::None;
        let (vector, filter) = match (self.dialect, filtered) {
            (Dialect::Mysql, _) => ("?", "?"),
            (_, true) => ("$2", "$1"),
            (_, false) => ("$1", ""),
        };
        let mut types = vec![ValueType::Bytes];
        if filtered {
            types.insert(0, ValueType::Int);
        }
        (self.query(search, vector, filter), types)
    }

    /// A statement that takes a query's vector and returns one number.
    pub(super) fn payload(&self) -> (String, Vec<ValueType>) {
        let types = &self.types;
        let text = match (self.dialect, self.work.variant) {
            (Dialect::Mysql, _) => "SELECT 1 FROM DUAL WHERE ? IS NOT NULL".to_owned(),
            (_, Variant::Halfvec | Variant::HalfvecColumn) => {
                format!("SELECT 1 WHERE $1::{types}halfvec IS NOT NULL")
            }
            _ => format!("SELECT 1 WHERE $1::{types}vector IS NOT NULL"),
        };
        (text, vec![ValueType::Bytes])
    }

    /// EXPLAIN of the query with these values.
    pub(super) fn explain(&self, search: &Search, vector: &[f32], filter: i64) -> String {
        let (numbers, filter) = (numbers(vector), filter.to_string());
        match self.dialect {
            Dialect::Mysql => {
                let vector = format!("vec_fromtext('[{numbers}]')");
                format!("EXPLAIN {}", self.query(search, &vector, &filter))
            }
            _ => {
                let vector = format!("'[{numbers}]'");
                format!("EXPLAIN (COSTS OFF) {}", self.query(search, &vector, &filter))
            }
        }
    }

    /// Settings of a session that searches.
    pub(super) fn settings(&self, search: &Search) -> Vec<String> {
        if self.dialect == Dialect::Mysql {
            return vec![self.set_ef(search.ef)];
        }
        // The first use of the type loads the library, which defines its settings.
        let load = format!("SELECT '[1]'::{}vector", self.types);
        let mut settings = vec![load, self.set_ef(search.ef)];
        if search.iterative != Iterative::Off {
            settings.push(format!("SET hnsw.iterative_scan = {}", search.iterative.name()));
        }
        settings
    }

    /// Sets the width of the search.
    fn set_ef(&self, ef: u32) -> String {
        match self.dialect {
            Dialect::Mysql => format!("SET mhnsw_ef_search = {ef}"),
            _ => format!("SET hnsw.ef_search = {ef}"),
        }
    }

    /// The largest width that the DBMS accepts.
    pub(super) fn largest_ef(&self) -> u32 {
        if self.dialect == Dialect::Mysql { 10_000 } else { 1_000 }
    }

    /// Inserts `rows` rows.
    pub(super) fn insert(&self, rows: usize) -> (String, Vec<ValueType>) {
        let places = |row: usize| match self.dialect {
            Dialect::Mysql => "(?,?,?,?,?)".to_owned(),
            _ => {
                let first = row * 5 + 1;
                let places: Vec<String> = (first..first + 5).map(|n| format!("${n}")).collect();
                format!("({})", places.join(","))
            }
        };
        let values: Vec<String> = (0..rows).map(places).collect();
        let mut types = Vec::new();
        for _ in 0..rows {
            types.extend([ValueType::Int; 4]);
            types.push(ValueType::Bytes);
        }
        (format!("INSERT INTO {TABLE} (id, class, u, fate, v) VALUES {}", values.join(",")), types)
    }

    /// Updates the vector of the row with an id.
    pub(super) fn update(&self) -> (String, Vec<ValueType>) {
        let [vector, id] = match self.dialect {
            Dialect::Mysql => ["?", "?"],
            _ => ["$1", "$2"],
        };
        let text = format!("UPDATE {TABLE} SET v = {vector} WHERE id = {id}");
        (text, vec![ValueType::Bytes, ValueType::Int])
    }

    /// Selects row `id` if it is nearer than `near` to a vector. Without ORDER BY, so that no
    /// vector index is used.
    pub(super) fn shows(&self, id: u32, vector: &[f32], near: f64) -> String {
        let numbers = numbers(vector);
        let distance = match (self.dialect, self.distance) {
            (Dialect::Mysql, Distance::Euclidean) => {
                format!("vec_distance_euclidean(v, vec_fromtext('[{numbers}]'))")
            }
            (Dialect::Mysql, Distance::Cosine) => {
                format!("vec_distance_cosine(v, vec_fromtext('[{numbers}]'))")
            }
            _ => format!("v {} '[{numbers}]'", self.nearness()),
        };
        format!("SELECT id FROM {TABLE} WHERE id = {id} AND {distance} < {near}")
    }

    /// Cleans the table after deletes.
    pub(super) fn clean(&self) -> String {
        match self.dialect {
            Dialect::Mysql => format!("OPTIMIZE TABLE {TABLE}"),
            _ => format!("VACUUM {TABLE}"),
        }
    }

    /// Selects bytes of the table and bytes of the vector index, in one row.
    pub(super) fn sizes(&self) -> String {
        match self.dialect {
            // In InnoDB, a vector index is a table of its own.
            Dialect::Mysql => format!(
                "SELECT SUM(IF(name LIKE '%/{TABLE}', file_size, NULL)), \
                 SUM(IF(name LIKE '%/{TABLE}#i#%', file_size, NULL)) \
                 FROM information_schema.innodb_sys_tablespaces \
                 WHERE name LIKE CONCAT(DATABASE(), '/{TABLE}%')"
            ),
            _ => format!(
                "SELECT pg_relation_size('{TABLE}'), pg_relation_size(to_regclass('{INDEX}'))"
            ),
        }
    }

    /// Selects the bytes of log written so far.
    pub(super) fn log_bytes(&self) -> &'static str {
        match self.dialect {
            Dialect::Mysql => {
                "SELECT variable_value FROM information_schema.global_status \
                 WHERE variable_name = 'INNODB_OS_LOG_WRITTEN'"
            }
            _ => "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')",
        }
    }

    /// The rows of EXPLAIN as text without the vector's numbers, and true if the plan uses the
    /// index.
    pub(super) fn plan(&self, rows: &[Vec<Option<String>>]) -> (String, bool) {
        let line = |row: &Vec<Option<String>>| {
            let cells: Vec<&str> =
                row.iter().map(|cell| cell.as_deref().unwrap_or("NULL")).collect();
            without_numbers(&cells.join("\t"))
        };
        let text = rows.iter().map(line).collect::<Vec<_>>().join("\n");
        let used = match self.dialect {
            // Column `key` is the sixth.
            Dialect::Mysql => {
                rows.iter().any(|row| row.iter().any(|cell| cell.as_deref() == Some(INDEX)))
            }
            _ => text.contains(&format!("using {INDEX}")),
        };
        (text, used)
    }
}

/// Numbers as `1,2,3`.
fn numbers(vector: &[f32]) -> String {
    let numbers: Vec<String> = vector.iter().map(f32::to_string).collect();
    numbers.join(",")
}

/// Replaces `'[1,2,3]'` by `'[…]'`.
fn without_numbers(text: &str) -> String {
    let mut short = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        short.push_str(before);
        short.push_str("[…]");
        rest = after.split_once(']').map_or("", |(_, after)| after);
    }
    short.push_str(rest);
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::vector::{DataSource, Present, VectorOperation};

    fn work(variant: Variant) -> VectorWork {
        let data = DataSource::Fashion { dims: 3, queries: 1, rounded: true, seed: 1 };
        VectorWork { data, rows: 10, k: 10, variant, operation: VectorOperation::Clean }
    }

    fn search(filter: Filter) -> Search {
        Search {
            ef: 40,
            clients: 1,
            filter,
            rows: Present::All,
            iterative: Iterative::Off,
            cold: false,
        }
    }

    fn check(dialect: Dialect, variant: Variant, filter: Filter, index: &str, query: &str) {
        let work = work(variant);
        let distance = Distance::Euclidean;
        let (types, mark, storage_engine) = (String::new(), None, None);
        let sql = Sql { dialect, dims: 3, distance, work, storage_engine, types, mark };
        let parameters = Index { m: 16, ef_construction: Some(64), workers: 0 };
        assert_eq!(sql.create_index(&parameters), index);
        assert_eq!(sql.prepared(&search(filter)).0, query);
    }

    #[test]
    fn queries_name_just_what_the_index_holds() {
        check(
            Dialect::Postgres,
            Variant::Vector,
            Filter::None,
            "CREATE INDEX items_v ON items USING hnsw (v vector_l2_ops) \
             WITH (m = 16, ef_construction = 64)",
            "SELECT id FROM items ORDER BY v <-> $1 LIMIT 10",
        );
        check(
            Dialect::Postgres,
            Variant::Halfvec,
            Filter::Random { percent: 1.0 },
            "CREATE INDEX items_v ON items USING hnsw ((v::halfvec(3)) halfvec_l2_ops) \
             WITH (m = 16, ef_construction = 64)",
            "SELECT id FROM items WHERE u < $1 ORDER BY v::halfvec(3) <-> $2::halfvec(3) LIMIT 10",
        );
        check(
            Dialect::Postgres,
            Variant::HalfvecRerank,
            Filter::None,
            "CREATE INDEX items_v ON items USING hnsw ((v::halfvec(3)) halfvec_l2_ops) \
             WITH (m = 16, ef_construction = 64)",
            "SELECT id FROM (SELECT id, v FROM items ORDER BY v::halfvec(3) <-> \
             $1::vector::halfvec(3) LIMIT 40) near ORDER BY v <-> $1::vector LIMIT 10",
        );
        check(
            Dialect::Postgres,
            Variant::HalfvecColumn,
            Filter::None,
            "CREATE INDEX items_v ON items USING hnsw (v halfvec_l2_ops) \
             WITH (m = 16, ef_construction = 64)",
            "SELECT id FROM items ORDER BY v <-> $1 LIMIT 10",
        );
        check(
            Dialect::Postgres,
            Variant::Bit,
            Filter::None,
            "CREATE INDEX items_v ON items USING hnsw ((binary_quantize(v)::bit(3)) \
             bit_hamming_ops) WITH (m = 16, ef_construction = 64)",
            "SELECT id FROM (SELECT id, v FROM items ORDER BY binary_quantize(v)::bit(3) <~> \
             binary_quantize($1::vector) LIMIT 40) near ORDER BY v <-> $1::vector LIMIT 10",
        );
        check(
            Dialect::Mysql,
            Variant::Vector,
            Filter::OwnClass,
            "ALTER TABLE items ADD VECTOR INDEX items_v (v) M=16 DISTANCE=euclidean",
            "SELECT id FROM items WHERE class = ? ORDER BY vec_distance_euclidean(v, ?) LIMIT 10",
        );
    }

    #[test]
    fn a_plan_without_the_index_is_seen() {
        let work = work(Variant::Vector);
        let sql = |dialect| Sql {
            dialect,
            dims: 3,
            distance: Distance::Cosine,
            work: work.clone(),
            storage_engine: None,
            types: String::new(),
            mark: None,
        };
        let row = |cells: &[&str]| cells.iter().map(|cell| Some((*cell).to_owned())).collect();
        let plan = [row(&["Limit"]), row(&["  ->  Index Scan using items_v on items"])];
        assert!(sql(Dialect::Postgres).plan(&plan).1);
        let plan = [row(&["Sort Key: ((v <=> '[1,2,3]'::vector))"]), row(&["Seq Scan on items"])];
        let (text, used) = sql(Dialect::Postgres).plan(&plan);
        assert!(!used);
        assert_eq!(text, "Sort Key: ((v <=> '[…]'::vector))\nSeq Scan on items");
        assert!(sql(Dialect::Mysql).plan(&[row(&["1", "SIMPLE", "items", "index", "items_v"])]).1);
        assert!(!sql(Dialect::Mysql).plan(&[row(&["1", "SIMPLE", "items", "ALL", "NULL"])]).1);
    }
}
