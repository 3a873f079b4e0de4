//! Marks for published colours in report cells.

use crate::analyze::rules::{Shade, share_gray};
use rqps_report::document::{Block, Column, Mark, Section};

pub(super) fn section(id: &'static str, heading: &str, blocks: Vec<Block>) -> Section {
    Section { id, heading: heading.to_owned(), blocks }
}

/// The sign and colour of a cell.
pub(super) fn mark(shade: Shade) -> Option<Mark> {
    let (sign, meaning) = match shade {
        Shade::Plain => return None,
        Shade::Red => (" -", "in the lowest quarter, or target missed"),
        Shade::Gray => (" ?", "target rate of inserts missed"),
        Shade::Green => (" +", "in the highest quarter"),
        Shade::Blue => (" +", "more than 5 % above the baseline"),
        Shade::Yellow => (" -", "more than 5 % below the baseline"),
    };
    Some(Mark { sign, colour: shade.css(), meaning })
}

/// The shade of a class of response times.
pub(super) fn gray(percent: f64) -> Option<Mark> {
    let meaning = "darker means more";
    share_gray(percent).map(|colour| Mark { sign: "", colour, meaning })
}

pub(super) fn with_heads(first: &str, heads: impl Iterator<Item = String>) -> Vec<Column> {
    std::iter::once(Column::of_row(first)).chain(heads.map(Column::numbers)).collect()
}
