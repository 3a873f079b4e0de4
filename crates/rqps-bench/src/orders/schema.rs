//! The nine tables of the order mix.

use rqps_model::dialect::Dialect;
use rqps_model::sql_name::Identifier;

/// Districts per warehouse.
pub(super) const DISTRICTS: u32 = 10;
/// Customers per district, and orders per district after the load.
pub(super) const CUSTOMERS: u32 = 3000;
/// Orders per district that are delivered in the load.
pub(super) const DELIVERED: u32 = 2100;
/// Items; each warehouse has a stock of each.
pub(super) const ITEMS: u32 = 100_000;

/// A table: its columns with their types, and its key.
pub(super) struct OrdersTable {
    pub(super) name: &'static str,
    pub(super) columns: &'static [(&'static str, &'static str)],
    /// Columns of the primary key; empty without one.
    pub(super) key: &'static str,
    /// Name and columns of a second index.
    pub(super) index: Option<(&'static str, &'static str)>,
}

/// All tables in the order of the load.
pub(super) const TABLES: [OrdersTable; 9] = [
    OrdersTable {
        name: "item",
        columns: &[
            ("i_id", "INT NOT NULL"),
            ("i_im_id", "INT NOT NULL"),
            ("i_name", "VARCHAR(24) NOT NULL"),
            ("i_price", "DECIMAL(5,2) NOT NULL"),
            ("i_data", "VARCHAR(50) NOT NULL"),
        ],
        key: "i_id",
        index: None,
    },
    OrdersTable {
        name: "warehouse",
        columns: &[
            ("w_id", "INT NOT NULL"),
            ("w_name", "VARCHAR(10) NOT NULL"),
            ("w_street_1", "VARCHAR(20) NOT NULL"),
            ("w_street_2", "VARCHAR(20) NOT NULL"),
            ("w_city", "VARCHAR(20) NOT NULL"),
            ("w_state", "CHAR(2) NOT NULL"),
            ("w_zip", "CHAR(9) NOT NULL"),
            ("w_tax", "DECIMAL(4,4) NOT NULL"),
            ("w_ytd", "DECIMAL(12,2) NOT NULL"),
        ],
        key: "w_id",
        index: None,
    },
    OrdersTable {
        name: "district",
        columns: &[
            ("d_w_id", "INT NOT NULL"),
            ("d_id", "INT NOT NULL"),
            ("d_name", "VARCHAR(10) NOT NULL"),
            ("d_street_1", "VARCHAR(20) NOT NULL"),
            ("d_street_2", "VARCHAR(20) NOT NULL"),
            ("d_city", "VARCHAR(20) NOT NULL"),
            ("d_state", "CHAR(2) NOT NULL"),
            ("d_zip", "CHAR(9) NOT NULL"),
            ("d_tax", "DECIMAL(4,4) NOT NULL"),
            ("d_ytd", "DECIMAL(12,2) NOT NULL"),
            ("d_next_o_id", "INT NOT NULL"),
        ],
        key: "d_w_id, d_id",
        index: None,
    },
    OrdersTable {
        name: "stock",
        columns: &[
            ("s_w_id", "INT NOT NULL"),
            ("s_i_id", "INT NOT NULL"),
            ("s_quantity", "INT NOT NULL"),
            ("s_dist_01", "CHAR(24) NOT NULL"),
            ("s_dist_02", "CHAR(24) NOT NULL"),
            ("s_dist_03", "CHAR(24) NOT NULL"),
            ("s_dist_04", "CHAR(24) NOT NULL"),
            ("s_dist_05", "CHAR(24) NOT NULL"),
            ("s_dist_06", "CHAR(24) NOT NULL"),
            ("s_dist_07", "CHAR(24) NOT NULL"),
            ("s_dist_08", "CHAR(24) NOT NULL"),
            ("s_dist_09", "CHAR(24) NOT NULL"),
            ("s_dist_10", "CHAR(24) NOT NULL"),
            ("s_ytd", "INT NOT NULL"),
            ("s_order_cnt", "INT NOT NULL"),
            ("s_remote_cnt", "INT NOT NULL"),
            ("s_data", "VARCHAR(50) NOT NULL"),
        ],
        key: "s_w_id, s_i_id",
        index: None,
    },
    OrdersTable {
        name: "customer",
        columns: &[
            ("c_w_id", "INT NOT NULL"),
            ("c_d_id", "INT NOT NULL"),
            ("c_id", "INT NOT NULL"),
            ("c_first", "VARCHAR(16) NOT NULL"),
            ("c_middle", "CHAR(2) NOT NULL"),
            ("c_last", "VARCHAR(16) NOT NULL"),
            ("c_street_1", "VARCHAR(20) NOT NULL"),
            ("c_street_2", "VARCHAR(20) NOT NULL"),
            ("c_city", "VARCHAR(20) NOT NULL"),
            ("c_state", "CHAR(2) NOT NULL"),
            ("c_zip", "CHAR(9) NOT NULL"),
            ("c_phone", "CHAR(16) NOT NULL"),
            ("c_since", "{moment} NOT NULL"),
            ("c_credit", "CHAR(2) NOT NULL"),
            ("c_credit_lim", "DECIMAL(12,2) NOT NULL"),
            ("c_discount", "DECIMAL(4,4) NOT NULL"),
            ("c_balance", "DECIMAL(12,2) NOT NULL"),
            ("c_ytd_payment", "DECIMAL(12,2) NOT NULL"),
            ("c_payment_cnt", "INT NOT NULL"),
            ("c_delivery_cnt", "INT NOT NULL"),
            ("c_data", "VARCHAR(500) NOT NULL"),
        ],
        key: "c_w_id, c_d_id, c_id",
        index: Some(("customer_name", "c_w_id, c_d_id, c_last, c_first")),
    },
    OrdersTable {
        name: "history",
        columns: &[
            ("h_c_id", "INT NOT NULL"),
            ("h_c_d_id", "INT NOT NULL"),
            ("h_c_w_id", "INT NOT NULL"),
            ("h_d_id", "INT NOT NULL"),
            ("h_w_id", "INT NOT NULL"),
            ("h_date", "{moment} NOT NULL"),
            ("h_amount", "DECIMAL(6,2) NOT NULL"),
            ("h_data", "VARCHAR(24) NOT NULL"),
        ],
        key: "",
        index: None,
    },
    OrdersTable {
        name: "orders",
        columns: &[
            ("o_w_id", "INT NOT NULL"),
            ("o_d_id", "INT NOT NULL"),
            ("o_id", "INT NOT NULL"),
            ("o_c_id", "INT NOT NULL"),
            ("o_entry_d", "{moment} NOT NULL"),
            ("o_carrier_id", "INT NULL"),
            ("o_ol_cnt", "INT NOT NULL"),
            ("o_all_local", "INT NOT NULL"),
        ],
        key: "o_w_id, o_d_id, o_id",
        index: Some(("orders_customer", "o_w_id, o_d_id, o_c_id, o_id")),
    },
    OrdersTable {
        name: "new_order",
        columns: &[
            ("no_w_id", "INT NOT NULL"),
            ("no_d_id", "INT NOT NULL"),
            ("no_o_id", "INT NOT NULL"),
        ],
        key: "no_w_id, no_d_id, no_o_id",
        index: None,
    },
    OrdersTable {
        name: "order_line",
        columns: &[
            ("ol_w_id", "INT NOT NULL"),
            ("ol_d_id", "INT NOT NULL"),
            ("ol_o_id", "INT NOT NULL"),
            ("ol_number", "INT NOT NULL"),
            ("ol_i_id", "INT NOT NULL"),
            ("ol_supply_w_id", "INT NOT NULL"),
            ("ol_delivery_d", "{moment} NULL"),
            ("ol_quantity", "INT NOT NULL"),
            ("ol_amount", "DECIMAL(6,2) NOT NULL"),
            ("ol_dist_info", "CHAR(24) NOT NULL"),
        ],
        key: "ol_w_id, ol_d_id, ol_o_id, ol_number",
        index: None,
    },
];

impl OrdersTable {
    /// The statements that create the table and its partitions.
    pub(super) fn create(
        &self,
        dialect: Dialect,
        engine: Option<&str>,
        partitions: u32,
    ) -> Vec<String> {
        let name = self.name;
        let moment = match dialect {
            Dialect::Mysql => "DATETIME",
            _ => "TIMESTAMP",
        };
        let column = |(name, holds): &(&str, &str)| format!("{name} {holds}");
        let mut parts: Vec<String> = self.columns.iter().map(column).collect();
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
        let name = self.name;
        let mut statements = Vec::new();
        if dialect == Dialect::Postgres && !self.key.is_empty() {
            statements.push(format!("ALTER TABLE {name} ADD PRIMARY KEY ({})", self.key));
        }
        if let Some((index, columns)) = self.index {
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
    let mut names: Vec<String> = TABLES.iter().map(|table| table.name.to_owned()).collect();
    if dialect != Dialect::Mysql {
        let indexes = TABLES.iter().filter_map(|table| table.index);
        names.extend(indexes.map(|(name, _)| name.to_owned()));
        names.extend((0..partitions).map(|part| format!("order_line_p{part}")));
    }
    if procedures {
        names.extend(PROCEDURES.iter().map(|name| format!("{name}()")));
    }
    names
}
