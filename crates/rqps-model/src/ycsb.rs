//! Parameters of YCSB (core workloads, and the shape of a record) and of the order mix.

use serde::{Deserialize, Serialize};

/// Scale and shape. Records, clients and seconds are in the common workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct YcsbShape {
    /// The core workloads, in the order of their steps.
    pub workloads: Vec<YcsbWorkload>,
    /// Fields of a record beside its key.
    pub fields: u32,
    /// Bytes of a field.
    pub field_bytes: u32,
    /// The most rows of a scan.
    pub scan_rows: u32,
    /// The distribution of keys; `None` for that of each workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<YcsbKeys>,
}

/// A core workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum YcsbWorkload {
    /// Half reads, half updates.
    A,
    /// 95 % reads, 5 % updates.
    B,
    /// Reads.
    C,
    /// 95 % reads of the latest records, 5 % inserts.
    D,
    /// 95 % scans, 5 % inserts.
    E,
    /// Half reads, half reads with an update of the same record.
    F,
}

impl YcsbWorkload {
    /// All, in the published order of their runs.
    pub const ALL: [YcsbWorkload; 6] = [
        YcsbWorkload::A,
        YcsbWorkload::B,
        YcsbWorkload::C,
        YcsbWorkload::F,
        YcsbWorkload::D,
        YcsbWorkload::E,
    ];

    /// Its letter.
    pub fn letter(self) -> &'static str {
        match self {
            YcsbWorkload::A => "a",
            YcsbWorkload::B => "b",
            YcsbWorkload::C => "c",
            YcsbWorkload::D => "d",
            YcsbWorkload::E => "e",
            YcsbWorkload::F => "f",
        }
    }

    /// True if it adds records.
    pub fn inserts(self) -> bool {
        matches!(self, YcsbWorkload::D | YcsbWorkload::E)
    }
}

/// The distribution of the records of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum YcsbKeys {
    /// Some much more often, scattered over all.
    Zipfian,
    /// All alike.
    Uniform,
    /// The newest most often.
    Latest,
}

// Parameters of the order mix: its scale, and the work of its step. The workload is derived from
// TPC-C; its results are not comparable with published TPC-C results.

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
