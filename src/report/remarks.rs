//! What the authors of imported results wrote beside their numbers.

use super::document::{Block, Section};
use crate::analyze::Comparison;
use crate::analyze::remarks::Remark;

/// `None` where nothing was published but numbers.
pub(super) fn section(comparison: &Comparison) -> Option<Section> {
    let points: Vec<String> =
        comparison.remarks.iter().map(|remark| point(comparison, remark)).collect();
    (!points.is_empty()).then(|| Section {
        id: "remarks",
        heading: "Published beside the numbers".to_owned(),
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
    let cells =
        if remark.cells == 1 { "1 cell".to_owned() } else { format!("{} cells", remark.cells) };
    format!("{column} of {targets}: {cells}, in the records of the steps (imported.annotations)")
}
