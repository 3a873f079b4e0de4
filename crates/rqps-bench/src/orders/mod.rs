//! An order mix: wholesalers with warehouses, derived from TPC-C; its results are not comparable
//! with published TPC-C results.

mod driver;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::spec::{BenchmarkSpec, DataSize, scaled};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::StepComparison;
use rqps_analysis::measurement::Histogram;
use rqps_driver::part::DriverPart;
use rqps_driver::workload::{ScalePreset, Settings, choice, count, own_settings};
use rqps_model::benchmark::{
    BenchmarkParameters, Group, OwnParameters, Phase, RateUnit, Step, StepTurns, Workload,
};
use rqps_model::dialect::Dialect;
use rqps_model::run::Outcome;
use rqps_model::sql_name::Identifier;
use rqps_model::ycsb::{OrdersShape, WarehouseSpread};
use rqps_report::Sections;
use rqps_report::document::{Block, Cell, Column, Digits, Section, Table};

/// Sizes are numbers of warehouses. `standard` has the usual five, for two minutes.
const SIZES: [ScalePreset; 3] = [
    ScalePreset { name: "quick", size: 1, clients: 2, seconds: 5.0, warmup_seconds: 1.0 },
    ScalePreset { name: "standard", size: 10, clients: 4, seconds: 300.0, warmup_seconds: 120.0 },
    ScalePreset { name: "full", size: 100, clients: 8, seconds: 300.0, warmup_seconds: 120.0 },
];

/// The row of the benchmark.
pub static SPEC: BenchmarkSpec = BenchmarkSpec {
    name: "orders",
    workload: |name| {
        scaled(&SIZES, name, |warehouses| {
            BenchmarkParameters::Orders(OrdersShape {
                warehouses,
                spread: WarehouseSpread::Home,
                keying: false,
                partitions: 0,
                nurand: false,
                procedures: false,
            })
        })
    },
    set: |workload, said| SETTINGS.set(workload, said),
    finish,
    check,
    phases: |_, _, workload| phases(workload),
    placement: None,
    load: Some(driver::load),
    driver: DriverPart {
        benchmark: "orders",
        step_loop: Some(driver::step_loop),
        answers: true,
        part_rows: Some(driver::part_rows),
        ..DriverPart::NONE
    },
    names_made: |dialect, workload| {
        let shape = shape(workload);
        let (partitions, procedures) =
            shape.map_or((0, false), |shape| (shape.partitions, shape.procedures));
        names_made(dialect, partitions, procedures)
    },
    size: data_size,
    sections: SECTIONS,
    ..BenchmarkSpec::PLAIN
};

// Settings `key=value` of the order mix.

/// Reads `on` or `off`.
fn switch(value: &str) -> Result<bool, String> {
    choice(value, &[("on", true), ("off", false)])
}

own_settings! { OrdersShape:
    "warehouses", |_, shape, value| shape.warehouses = count(value, 1, 100_000)? as u32;
    "spread", |_, shape, value| {
        let choices = [("home", WarehouseSpread::Home), ("all", WarehouseSpread::All)];
        shape.spread = choice(value, &choices)?;
    };
    "keying", |_, shape, value| shape.keying = switch(value)?;
    "partitions", |_, shape, value| shape.partitions = count(value, 0, 1024)? as u32;
    "procedures", |_, shape, value| shape.procedures = switch(value)?;
    "nurand", |_, shape, value| shape.nurand = switch(value)?;
}

const SETTINGS: Settings<OrdersShape> =
    Settings { benchmark: "orders", own: OWN, common: &[], others: true, open: &[] };

/// Rows per warehouse, approximately, and rows of the load besides.
const ROWS_PER_WAREHOUSE: u64 = 499_011;
const ROWS_ONCE: u64 = 100_000;

/// Bytes of a warehouse, on disk and in a cache.
const WAREHOUSE_BYTES: u64 = 110 << 20;

/// Computes the size of the load.
pub(super) fn finish(workload: &mut Workload) {
    let Some(shape) = shape(workload) else { return };
    workload.rows = ROWS_ONCE + u64::from(shape.warehouses) * ROWS_PER_WAREHOUSE;
}

/// The size of the data.
pub(super) fn data_size(workload: &Workload) -> DataSize {
    let warehouses = shape(workload).map_or(1, |shape| u64::from(shape.warehouses));
    let bytes = (warehouses + 1) * WAREHOUSE_BYTES;
    // The data, and their growth during the step.
    DataSize { data_bytes: 1.5 * bytes as f64, cached_bytes: bytes }
}

// The only step of the order mix, and the targets that cannot execute it.

/// The note on the workload in each report.
pub(super) const DERIVED: &str =
    "a workload derived from TPC-C; not comparable with published TPC-C results";

/// Kinds of transactions in the order of records: names in records, and in reports.
pub(super) const KINDS: [(&str, &str); 5] = [
    ("new_order", "new order"),
    ("payment", "payment"),
    ("delivery", "delivery"),
    ("stock_level", "stock level"),
    ("order_status", "order status"),
];

/// The parameters of this benchmark; `None` for another workload.
pub(super) fn shape(workload: &Workload) -> Option<&OrdersShape> {
    OwnParameters::of(&workload.shape)
}

/// All phases after the load.
pub(super) fn phases(workload: &Workload) -> Vec<Phase> {
    let Some(shape) = shape(workload) else { return Vec::new() };
    let step = Step {
        seconds: workload.write_seconds,
        warmup_seconds: workload.warmup_seconds,
        detail: format!(
            "operations are new orders, among five kinds of transactions{}; {DERIVED}",
            if shape.procedures { " stored in the server" } else { "" }
        ),
        // The waits of keying would fill the turns.
        turns: StepTurns::of_clients(!shape.keying),
        ..Step::new("orders", Group::Write, RateUnit::Operations, shape.clone())
    };
    vec![Phase::Measure(Box::new(step))]
}

/// Refuses a workload that cannot run on a DBMS of this dialect.
///
/// # Errors
///
/// The text names the setting.
pub(super) fn check(workload: &Workload, dialect: Dialect) -> Result<(), String> {
    let Some(shape) = shape(workload) else { return Ok(()) };
    match dialect {
        Dialect::Sqlite if shape.partitions > 0 => {
            Err("SQLite has no partitions; leave out `partitions`".to_owned())
        }
        Dialect::Sqlite if shape.procedures => {
            Err("SQLite has no stored procedures; leave out `procedures`".to_owned())
        }
        Dialect::Fake => {
            Err("the order mix reads its own rows, and the fake DBMS stores nothing".to_owned())
        }
        _ => Ok(()),
    }
}

// Report sections of the order mix: the workload, and response times by kind of transaction.

/// The hooks.
pub(super) const SECTIONS: Sections =
    Sections { workload: line, sections: |comparison| Vec::from_iter(section(comparison)) };

/// Quantiles of response times with their heads.
const QUANTILES: [(f64, &str); 4] =
    [(0.5, "p50_ms"), (0.95, "p95_ms"), (0.99, "p99_ms"), (1.0, "max_ms")];

fn line(workload: &Workload, cache: &str) -> Option<String> {
    let shape = shape(workload)?;
    let mut parts = vec![workload.data_text(), workload.clients_text()];
    parts.push(match shape.spread {
        WarehouseSpread::Home => "a client keeps one warehouse".to_owned(),
        WarehouseSpread::All => "the clients share all warehouses".to_owned(),
    });
    if shape.keying {
        parts.push("keying and thinking times".to_owned());
    }
    if shape.partitions > 0 {
        parts.push(format!("{} partitions of order lines", shape.partitions));
    }
    if shape.nurand {
        parts.push("uneven customers and items".to_owned());
    }
    parts.push(format!("{} s", workload.write_seconds));
    parts.push(format!("{} s warm-up", workload.warmup_seconds));
    parts.push(cache.to_owned());
    Some(format!("{} ({DERIVED})", parts.join(", ")))
}

/// The section; `None` without a step of the order mix.
fn section(comparison: &Comparison) -> Option<Section> {
    let tables: Vec<Table> = comparison.steps.iter().filter_map(response_times).collect();
    if tables.is_empty() {
        return None;
    }
    let text = "Transactions of each kind, and their response times over all blocks. With \
                --rate they begin at the scheduled time.";
    let mut blocks = vec![Block::Paragraph(text.to_owned())];
    blocks.extend(tables.into_iter().map(Block::Table));
    let heading = "Order mix: response times".to_owned();
    Some(Section { id: "orders-response-times", heading, blocks })
}

fn response_times(step: &StepComparison) -> Option<Table> {
    let samples = || step.targets.iter().flat_map(|target| &target.samples);
    let is_mix = |kind: &str| samples().any(|it| it.record.outcome.roles.contains_key(kind));
    if !KINDS.iter().any(|(kind, _)| is_mix(kind)) {
        return None;
    }
    let measured = || step.targets.iter().filter(|target| !target.samples.is_empty());
    let of_kind = |kind: &(&'static str, &'static str)| {
        let rows = measured().map(|target| {
            let outcomes: Vec<&Outcome> =
                target.samples.iter().map(|sample| &sample.record.outcome).collect();
            row(&target.label, &outcomes, *kind)
        });
        rows.collect::<Vec<_>>()
    };
    let rows: Vec<Vec<Cell>> = KINDS.iter().flat_map(of_kind).collect();
    let mut columns = vec![Column::of_row("target"), Column::words("transaction")];
    columns.push(
        Column::numbers("per_minute")
            .with_legend("60 × transactions of the kind / seconds of all windows"),
    );
    columns.extend(QUANTILES.map(|(_, head)| Column::numbers(head)));
    Some(Table { caption: step.name.clone(), columns, rows })
}

/// One kind of transaction on one target. If a run has no record of the kind, its cells have no
/// numbers, because the rate would still contain the seconds of that run.
fn row(label: &str, outcomes: &[&Outcome], (kind, name): (&str, &str)) -> Vec<Cell> {
    let (mut operations, mut seconds) = (0, 0.0);
    let (mut times, mut broken) = (BTreeMap::new(), None);
    let without = outcomes.iter().filter(|outcome| !outcome.roles.contains_key(kind)).count();
    let lacking =
        (without > 0).then(|| format!("{without} of {} runs have no record of it", outcomes.len()));
    for outcome in outcomes {
        let Some(role) = outcome.roles.get(kind) else { continue };
        operations += role.operations;
        seconds += outcome.seconds;
        match Histogram::from_base64(&role.latency) {
            Ok(histogram) => {
                histogram.steps().for_each(|(ns, count)| *times.entry(ns).or_insert(0) += count);
            }
            Err(why) => broken = Some(why),
        }
    }
    let per_minute = 60.0 * operations as f64 / seconds;
    let mut cells = vec![Cell::text(label), Cell::text(name)];
    cells.push(match (&lacking, seconds > 0.0) {
        (Some(why), _) => Cell::missing(why.clone()),
        (None, true) => Cell::number(per_minute, Digits::Fixed(1), "1/min"),
        (None, false) => Cell::missing("the measured window is 0 s long"),
    });
    let why = lacking.or(broken);
    cells.extend(QUANTILES.map(|(share, _)| match (quantile(&times, share), &why) {
        (_, Some(why)) => Cell::missing(why.clone()),
        (Some(ns), None) => Cell::number(ns as f64 / 1e6, Digits::Fixed(3), "ms"),
        (None, None) => Cell::missing("no such transaction ended in the window"),
    }));
    cells
}

/// The smallest value with at least this share of all values at or below it.
fn quantile(counts: &BTreeMap<u64, u64>, share: f64) -> Option<u64> {
    let total: u64 = counts.values().sum();
    let rank = (share * total as f64).ceil().max(1.0) as u64;
    let mut sum = 0;
    let mut values = counts.iter().map(|(value, count)| {
        sum += count;
        (*value, sum)
    });
    values.find(|(_, sum)| *sum >= rank).map(|(value, _)| value)
}

// The nine tables of the order mix.

/// Districts per warehouse.
pub(super) const DISTRICTS: u32 = 10;
/// Customers per district, and orders per district after the load.
pub(super) const CUSTOMERS: u32 = 3000;
/// Orders per district that are delivered in the load.
pub(super) const DELIVERED: u32 = 2100;
/// Items; each warehouse has a stock of each.
pub(super) const ITEMS: u32 = 100_000;

/// A table.
#[derive(Deserialize)]
pub(super) struct OrdersTable {
    pub(super) name: String,
    /// Its columns with their types, one a line.
    columns: String,
    /// Columns of the primary key; empty without one.
    key: String,
    /// The second index, if there is one.
    index: Option<OrdersIndex>,
}

/// Name and columns of an index.
#[derive(Deserialize)]
struct OrdersIndex {
    name: String,
    columns: String,
}

/// All tables in the order of the load.
pub(super) fn tables() -> &'static [OrdersTable] {
    static TABLES: LazyLock<BTreeMap<String, Vec<OrdersTable>>> =
        LazyLock::new(|| toml::from_str(include_str!("tables.toml")).unwrap_or_default());
    TABLES.get("table").map_or(&[], Vec::as_slice)
}

impl OrdersTable {
    /// Names of its columns.
    pub(super) fn column_names(&self) -> Vec<String> {
        let name = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
        self.columns.lines().map(name).collect()
    }

    /// The statements that create the table and its partitions.
    pub(super) fn create(
        &self,
        dialect: Dialect,
        engine: Option<&str>,
        partitions: u32,
    ) -> Vec<String> {
        let name = &self.name;
        let moment = match dialect {
            Dialect::Mysql => "DATETIME",
            _ => "TIMESTAMP",
        };
        let mut parts: Vec<String> = self.columns.lines().map(str::to_owned).collect();
        // Postgres builds indexes faster on a loaded table.
        if dialect != Dialect::Postgres && !self.key.is_empty() {
            parts.push(format!("PRIMARY KEY ({})", self.key));
        }
        let mut sql = format!("CREATE TABLE {name} ({})", parts.join(", "));
        sql = sql.replace("{moment}", moment);
        match (dialect, engine) {
            (Dialect::Mysql, Some(engine)) => {
                sql.push_str(&format!(" ENGINE = {}", Identifier::plain(dialect, engine)));
            }
            // Rows are stored in key order, as in InnoDB.
            (Dialect::Sqlite, _) if !self.key.is_empty() => sql.push_str(" WITHOUT ROWID"),
            _ => {}
        }
        if partitions == 0 || name != "order_line" {
            return vec![sql];
        }
        if dialect == Dialect::Mysql {
            return vec![format!("{sql} PARTITION BY HASH (ol_w_id) PARTITIONS {partitions}")];
        }
        let part = |rest| {
            format!(
                "CREATE TABLE {name}_p{rest} PARTITION OF {name} \
                 FOR VALUES WITH (MODULUS {partitions}, REMAINDER {rest})"
            )
        };
        std::iter::once(format!("{sql} PARTITION BY HASH (ol_w_id)"))
            .chain((0..partitions).map(part))
            .collect()
    }

    /// Statements after the load: indexes and statistics.
    pub(super) fn finish(&self, dialect: Dialect) -> Vec<String> {
        let name = &self.name;
        let mut statements = Vec::new();
        if dialect == Dialect::Postgres && !self.key.is_empty() {
            statements.push(format!("ALTER TABLE {name} ADD PRIMARY KEY ({})", self.key));
        }
        if let Some(OrdersIndex { name: index, columns }) = &self.index {
            statements.push(format!("CREATE INDEX {index} ON {name} ({columns})"));
        }
        statements.push(match dialect {
            Dialect::Postgres => format!("VACUUM (ANALYZE) {name}"),
            Dialect::Mysql => format!("ANALYZE TABLE {name}"),
            _ => format!("ANALYZE {name}"),
        });
        statements
    }
}

/// Names of the transactions as procedures, in the order of their kinds.
pub(super) const PROCEDURES: [&str; 5] = [
    "orders_new_order", "orders_payment", "orders_delivery", "orders_stock_level",
    "orders_order_status",
];

/// Names of all objects in the database; those of procedures end with `()`.
pub(super) fn names_made(dialect: Dialect, partitions: u32, procedures: bool) -> Vec<String> {
    let mut names: Vec<String> = tables().iter().map(|table| table.name.clone()).collect();
    if dialect != Dialect::Mysql {
        let indexes = tables().iter().filter_map(|table| table.index.as_ref());
        names.extend(indexes.map(|index| index.name.clone()));
        names.extend((0..partitions).map(|part| format!("order_line_p{part}")));
    }
    if procedures {
        names.extend(PROCEDURES.iter().map(|name| format!("{name}()")));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::run::Role;
    use rqps_report::document::CellValue;

    #[test]
    fn the_file_of_tables_is_read() {
        let names: Vec<&str> = tables().iter().map(|table| table.name.as_str()).collect();
        assert_eq!((names.len(), names[0], names[8]), (9, "item", "order_line"));
        assert_eq!(tables()[7].column_names(), ["no_w_id", "no_d_id", "no_o_id"]);
    }

    #[test]
    fn a_run_without_a_record_of_a_kind_leaves_no_number() {
        let outcome = |operations: Option<u64>| {
            let role = |operations| Role { operations, ..Role::default() };
            let roles = operations.map(|count| ("delivery".to_owned(), role(count)));
            Outcome { seconds: 30.0, roles: roles.into_iter().collect(), ..Outcome::default() }
        };
        let cells = |outcomes: &[Outcome]| {
            let outcomes: Vec<&Outcome> = outcomes.iter().collect();
            row("a", &outcomes, ("delivery", "Delivery"))
        };
        let both = cells(&[outcome(Some(10)), outcome(Some(20))]);
        assert_eq!(both[2].plain(), "30.0");
        let one = cells(&[outcome(Some(10)), outcome(None)]);
        let CellValue::Missing(why) = &one[2].value else { panic!("{one:?}") };
        assert_eq!(why, "1 of 2 runs have no record of it");
        assert_eq!(one.len(), both.len());
    }

    #[test]
    fn a_quantile_is_the_value_of_its_rank() {
        let counts = BTreeMap::from([(10, 50), (20, 45), (30, 5)]);
        let found = [0.5, 0.51, 0.95, 0.99, 1.0].map(|share| quantile(&counts, share));
        assert_eq!(found, [Some(10), Some(20), Some(20), Some(30), Some(30)]);
        assert_eq!(quantile(&BTreeMap::new(), 0.5), None);
    }
}
