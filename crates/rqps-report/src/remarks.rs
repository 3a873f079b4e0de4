//! Remarks of the authors of imported results.

use super::document::{Block, Section};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::Remark;
use rqps_model::units::counted;

/// `None` if the import has only numbers.
pub(super) fn section(comparison: &Comparison) -> Option<Section> {
    let points: Vec<String> =
        comparison.remarks.iter().map(|remark| point(comparison, remark)).collect();
    (!points.is_empty()).then(|| Section {
        id: "remarks",
        heading: "Published remarks".to_owned(),
        blocks: vec![Block::List(points)],
    })
}

fn point(comparison: &Comparison, remark: &Remark) -> String {
    let targets = match remark.targets.len() {
        all if all >= comparison.targets.len() && all > 1 => "all targets".to_owned(),
        _ => remark.targets.join(", "),
    };
    let (column, text) = (&remark.column, &remark.text);
    if column.is_empty() {
        return format!("{}: {text} ({targets})", remark.step);
    }
    if !text.is_empty() {
        return format!("{column} of {targets}: {text}");
    }
    let cells = counted(remark.cells, "cell");
    format!("{column} of {targets}: {cells}, see the step records (imported.annotations)")
}
