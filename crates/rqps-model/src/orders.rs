//! Parameters of the order mix: its scale, and the work of its step. The workload is derived from
//! TPC-C; its results are not comparable with published TPC-C results.

use serde::{Deserialize, Serialize};

/// Scale and shape. Clients and seconds are in the common workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrdersShape {
    /// Warehouses.
    pub warehouses: u32,
    /// The warehouses of a client.
    pub spread: WarehouseSpread,
    /// Waits for keying and thinking between transactions.
    pub keying: bool,
    /// Hash partitions of the table of order lines; 0 for none.
    pub partitions: u32,
    /// Customers and items of new orders are chosen unevenly.
    pub nurand: bool,
    /// True if the server stores the transactions as procedures, and clients call them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub procedures: bool,
}

/// The warehouses of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WarehouseSpread {
    /// A random one, for good; two clients may share it.
    Home,
    /// Client i of c for the warehouses i, i + c, …, another for each transaction.
    All,
}
