//! What reports say of the workload.

use crate::benchmarks::orders::steps::{DERIVED, shape};
use crate::domain::benchmark::Workload;
use crate::domain::orders::WarehouseSpread;
use crate::report::Sections;

/// The hooks of this benchmark.
pub(super) const SECTIONS: Sections = Sections { workload: line, ..Sections::NONE };

fn line(workload: &Workload, cache: &str) -> Option<String> {
    let shape = shape(workload)?;
    let mut parts = vec![workload.data_text(), workload.clients_text()];
    parts.push(match shape.spread {
        WarehouseSpread::Home => "a client keeps one warehouse".to_owned(),
        WarehouseSpread::All => "clients share out all warehouses".to_owned(),
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
