//! The standard tables and the built-in scripts of pgbench by dialect.

use rqps_model::dialect::Dialect;
use rqps_model::pgbench::PgbenchLoad;
use rqps_model::sql_name::Identifier;

/// Branches per unit of scale.
pub const BRANCHES: u64 = 1;
/// Tellers per unit of scale.
pub const TELLERS: u64 = 10;
/// Accounts per unit of scale.
pub const ACCOUNTS: u64 = 100_000;

/// The scale from which on account numbers need 64 bits.
const WIDE_SCALE: u32 = 20_000;

/// All tables.
pub const TABLES: [&str; 4] =
    ["pgbench_accounts", "pgbench_branches", "pgbench_history", "pgbench_tellers"];

/// The built-in scripts: name and commands.
pub const BUILTINS: [(&str, &[&str]); 3] = [
    (
        "tpcb-like",
        &[AID, BID, TID, DELTA, "BEGIN;", ACCOUNT, BALANCE, TELLER, BRANCH, HISTORY, "END;"],
    ),
    ("simple-update", &[AID, BID, TID, DELTA, "BEGIN;", ACCOUNT, BALANCE, HISTORY, "END;"]),
    ("select-only", &[AID, BALANCE]),
];

const AID: &str = "\\set aid random(1, 100000 * :scale)";
const BID: &str = "\\set bid random(1, 1 * :scale)";
const TID: &str = "\\set tid random(1, 10 * :scale)";
const DELTA: &str = "\\set delta random(-5000, 5000)";
const ACCOUNT: &str = "UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;";
const BALANCE: &str = "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;";
const TELLER: &str = "UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;";
const BRANCH: &str = "UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;";
const HISTORY: &str = "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) \
                       VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);";

/// The text of a built-in script in a dialect.
pub fn builtin(name: &str, dialect: Dialect) -> Option<String> {
    let (_, lines) = BUILTINS.iter().find(|(known, _)| *known == name)?;
    let line = |line: &&str| match (dialect, *line) {
        (Dialect::Mysql | Dialect::Sqlite, "END;") => "COMMIT;\n".to_owned(),
        (_, line) => format!("{line}\n"),
    };
    Some(lines.iter().map(line).collect())
}

/// A table with rows in the load.
pub struct FilledTable {
    /// Its name.
    pub name: &'static str,
    /// The columns with values.
    pub columns: &'static str,
    /// Rows per unit of scale.
    pub rows: u64,
    /// True if the branch column follows the row's own number.
    pub has_branch: bool,
    /// True if the column of blanks is filled too.
    pub has_filler: bool,
}

/// The tables in the order of the load.
pub const FILLED: [FilledTable; 3] = [
    FilledTable {
        name: "pgbench_branches",
        columns: "bid, bbalance",
        rows: BRANCHES,
        has_branch: false,
        has_filler: false,
    },
    FilledTable {
        name: "pgbench_tellers",
        columns: "tid, bid, tbalance",
        rows: TELLERS,
        has_branch: true,
        has_filler: false,
    },
    FilledTable {
        name: "pgbench_accounts",
        columns: "aid, bid, abalance, filler",
        rows: ACCOUNTS,
        has_branch: true,
        has_filler: true,
    },
];

/// The text form of a row.
pub struct RowForm {
    /// Text before the first value.
    pub begin: &'static str,
    /// Text between two values.
    pub between: &'static str,
    /// A text of blanks.
    pub blank: &'static str,
    /// Text after the last value.
    pub end: &'static str,
}

impl RowForm {
    /// The form of COPY.
    pub const COPY: RowForm = RowForm { begin: "", between: "\t", blank: "", end: "\n" };
    /// The form of VALUES.
    pub const VALUES: RowForm = RowForm { begin: "(", between: ", ", blank: "''", end: ")" };
}

impl FilledTable {
    /// Appends the row with this number, from 1.
    pub fn write(&self, out: &mut String, id: u64, form: &RowForm) {
        use std::fmt::Write;
        let RowForm { begin, between, blank, end } = form;
        // Writing to a string cannot fail.
        write!(out, "{begin}{id}{between}").unwrap_or(());
        if self.has_branch {
            write!(out, "{}{between}", (id - 1) / self.rows + 1).unwrap_or(());
        }
        out.push('0');
        if self.has_filler {
            out.push_str(between);
            out.push_str(blank);
        }
        out.push_str(end);
    }
}

/// An action while tables are created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InitStep {
    /// A statement that makes or drops a table.
    Make(String),
    /// Another statement.
    Run(String),
    /// Loads the rows from the client.
    Fill,
}

/// The columns of a table after its name; with the primary key, its columns first.
fn columns(table: &str, dialect: Dialect, scale: u32) -> &'static str {
    let is_wide = scale >= WIDE_SCALE && dialect != Dialect::Sqlite;
    match (table, is_wide) {
        ("pgbench_history", false) => {
            "tid int, bid int, aid int, delta int, mtime {time}, filler char(22)"
        }
        ("pgbench_history", true) => {
            "tid int, bid int, aid bigint, delta int, mtime {time}, filler char(22)"
        }
        ("pgbench_tellers", _) => "tid {key}, bid int, tbalance int, filler char(84)",
        ("pgbench_branches", _) => "bid {key}, bbalance int, filler char(88)",
        (_, false) => "aid {key}, bid int, abalance int, filler char(84)",
        (_, true) => "aid {wide}, bid int, abalance int, filler char(84)",
    }
}

/// All actions that create the tables, in order.
pub fn init(dialect: Dialect, load: &PgbenchLoad) -> Vec<InitStep> {
    let mut steps = Vec::new();
    for letter in load.tables.steps.chars() {
        match letter {
            'd' => steps.extend(
                TABLES.map(|table| InitStep::Make(format!("DROP TABLE IF EXISTS {table}"))),
            ),
            't' => create(dialect, load, &mut steps),
            'g' => steps.push(InitStep::Fill),
            'G' => generate(dialect, load.scale, &mut steps),
            'v' => steps.extend(
                ["pgbench_branches", "pgbench_tellers", "pgbench_accounts", "pgbench_history"]
                    .map(|table| InitStep::Run(analyze(dialect, table))),
            ),
            // On other dialects, tables are created with their keys.
            'p' if dialect == Dialect::Postgres => primary_keys(load, &mut steps),
            'f' => foreign_keys(dialect, &mut steps),
            _ => {}
        }
    }
    steps
}

fn analyze(dialect: Dialect, table: &str) -> String {
    match dialect {
        Dialect::Postgres => format!("VACUUM ANALYZE {table}"),
        Dialect::Mysql => format!("ANALYZE TABLE {table}"),
        _ => format!("ANALYZE {table}"),
    }
}

fn create(dialect: Dialect, load: &PgbenchLoad, steps: &mut Vec<InitStep>) {
    let tables = &load.tables;
    let (key, wide, time) = match dialect {
        Dialect::Postgres => ("int NOT NULL", "bigint NOT NULL", "timestamp"),
        Dialect::Mysql => {
            ("int NOT NULL PRIMARY KEY", "bigint NOT NULL PRIMARY KEY", "timestamp NULL")
        }
        _ => ("integer NOT NULL PRIMARY KEY", "integer NOT NULL PRIMARY KEY", "timestamp"),
    };
    let space =
        tables.tablespace.as_ref().map(|name| format!(" TABLESPACE {name}")).unwrap_or_default();
    let word = if tables.unlogged { "UNLOGGED TABLE" } else { "TABLE" };
    for table in ["pgbench_history", "pgbench_tellers", "pgbench_accounts", "pgbench_branches"] {
        let columns = columns(table, dialect, load.scale);
        let columns = columns.replace("{key}", key).replace("{wide}", wide).replace("{time}", time);
        let is_split = table == "pgbench_accounts" && tables.partitions > 0;
        let end = match dialect {
            Dialect::Postgres if is_split => {
                let way = if tables.by_hash { "HASH" } else { "RANGE" };
                format!(" PARTITION BY {way} (aid){space}")
            }
            Dialect::Postgres if table == "pgbench_history" => space.clone(),
            Dialect::Postgres => {
                format!(" WITH (fillfactor={}){space}", tables.fillfactor.unwrap_or(100))
            }
            Dialect::Mysql => {
                let engine = load.storage_engine.as_deref().unwrap_or("innodb");
                let engine = Identifier::plain(dialect, engine);
                format!(" ENGINE = {engine}{}", mysql_partitions(load, is_split))
            }
            _ => String::new(),
        };
        // A partitioned table stores nothing itself.
        let word = if is_split { "TABLE" } else { word };
        steps.push(InitStep::Make(format!("CREATE {word} {table} ({columns}){end}")));
        if is_split && dialect == Dialect::Postgres {
            partitions(load, &space, steps);
        }
    }
}

/// The last account of each partition except the last.
fn bounds(load: &PgbenchLoad) -> Vec<u64> {
    let all = ACCOUNTS * u64::from(load.scale);
    let size = all.div_ceil(u64::from(load.tables.partitions));
    (1..u64::from(load.tables.partitions)).map(|number| number * size + 1).collect()
}

fn partitions(load: &PgbenchLoad, space: &str, steps: &mut Vec<InitStep>) {
    let tables = &load.tables;
    let bounds = bounds(load);
    let word = if tables.unlogged { "UNLOGGED TABLE" } else { "TABLE" };
    for number in 0..tables.partitions as usize {
        let values = if tables.by_hash {
            format!("WITH (modulus {}, remainder {number})", tables.partitions)
        } else {
            let bound = |at: Option<usize>, open: &str| {
                let bound = at.and_then(|at| bounds.get(at));
                bound.map_or(open.to_owned(), u64::to_string)
            };
            let from = bound(number.checked_sub(1), "MINVALUE");
            let to = bound(Some(number), "MAXVALUE");
            format!("FROM ({from}) TO ({to})")
        };
        steps.push(InitStep::Make(format!(
            "CREATE {word} pgbench_accounts_{} PARTITION OF pgbench_accounts FOR VALUES {values} \
             WITH (fillfactor={}){space}",
            number + 1,
            tables.fillfactor.unwrap_or(100)
        )));
    }
}

fn mysql_partitions(load: &PgbenchLoad, is_split: bool) -> String {
    match (is_split, load.tables.by_hash) {
        (false, _) => String::new(),
        (true, true) => format!(" PARTITION BY HASH (aid) PARTITIONS {}", load.tables.partitions),
        (true, false) => {
            let bounds = bounds(load);
            let part = |number: usize| {
                let bound = bounds.get(number).map_or("MAXVALUE".to_owned(), |b| format!("({b})"));
                format!("PARTITION p{} VALUES LESS THAN {bound}", number + 1)
            };
            let parts: Vec<String> = (0..load.tables.partitions as usize).map(part).collect();
            format!(" PARTITION BY RANGE (aid) ({})", parts.join(", "))
        }
    }
}

/// Statements with which the server makes the rows itself.
fn generate(dialect: Dialect, scale: u32, steps: &mut Vec<InitStep>) {
    if dialect != Dialect::Postgres {
        steps.push(InitStep::Fill);
        return;
    }
    let mut run = |sql: String| steps.push(InitStep::Run(sql));
    let scale = u64::from(scale);
    run(format!(
        "BEGIN; TRUNCATE TABLE {}; \
         INSERT INTO pgbench_branches (bid, bbalance) \
         SELECT bid, 0 FROM generate_series(1, {}) AS bid; \
         INSERT INTO pgbench_tellers (tid, bid, tbalance) \
         SELECT tid, (tid - 1) / {TELLERS} + 1, 0 FROM generate_series(1, {}) AS tid; \
         INSERT INTO pgbench_accounts (aid, bid, abalance, filler) \
         SELECT aid, (aid - 1) / {ACCOUNTS} + 1, 0, '' FROM generate_series(1, {}) AS aid; \
         COMMIT",
        TABLES.join(", "),
        BRANCHES * scale,
        TELLERS * scale,
        ACCOUNTS * scale,
    ));
}

fn primary_keys(load: &PgbenchLoad, steps: &mut Vec<InitStep>) {
    let space = load.tables.index_tablespace.as_ref();
    let space = space.map(|name| format!(" USING INDEX TABLESPACE {name}")).unwrap_or_default();
    for (table, key) in
        [("pgbench_branches", "bid"), ("pgbench_tellers", "tid"), ("pgbench_accounts", "aid")]
    {
        let sql = format!("ALTER TABLE {table} ADD PRIMARY KEY ({key}){space}");
        steps.push(InitStep::Run(sql));
    }
}

/// Table, column, and the referenced table.
const FOREIGN_KEYS: [[&str; 3]; 5] = [
    ["pgbench_tellers", "bid", "pgbench_branches"],
    ["pgbench_accounts", "bid", "pgbench_branches"],
    ["pgbench_history", "bid", "pgbench_branches"],
    ["pgbench_history", "tid", "pgbench_tellers"],
    ["pgbench_history", "aid", "pgbench_accounts"],
];

fn foreign_keys(dialect: Dialect, steps: &mut Vec<InitStep>) {
    for [table, column, other] in FOREIGN_KEYS {
        let key = if dialect == Dialect::Postgres { "" } else { &format!(" ({column})") };
        steps.push(InitStep::Run(format!(
            "ALTER TABLE {table} ADD CONSTRAINT {table}_{column}_fkey FOREIGN KEY ({column}) \
             REFERENCES {other}{key}"
        )));
    }
}
