//! The section of effects of settings, where targets are all combinations of them.

use crate::document::{Block, Cell, Column, Digits, Section, Table};
use rqps_analysis::Comparison;
use rqps_analysis::families::Crossing;

/// Main effects and interactions in each step; `None` where targets are no full crossing.
pub(super) fn section(comparison: &Comparison) -> Option<Section> {
    let crossing = Crossing::of(comparison)?;
    let mut rows = Vec::new();
    for step in &comparison.steps {
        for effect in crossing.effects(comparison, step) {
            let ratio = Cell::number(effect.ratio, Digits::Fixed(3), "ratio");
            rows.push(vec![
                ratio.within(effect.interval),
                Cell::text(effect.n.to_string()),
                Cell::text(effect.name),
                Cell::text(step.name.clone()),
            ]);
        }
    }
    let heads = [Column::numbers("rQPS"), Column::numbers("n")];
    let words = [Column::words("effect"), Column::of_row("step")];
    let columns = heads.into_iter().chain(words).collect();
    let text = "Each setting against its first value, over all values of the others. `A with B` is a \
                ratio of two ratios: the effect of A where B is set, relative to its effect at the \
                first value of B; 1 if they do not depend on each other. Each interval stands for \
                itself, without a correction for their number.";
    (!rows.is_empty()).then(|| Section {
        id: "factors",
        heading: "Effects of settings".to_owned(),
        blocks: vec![
            Block::Paragraph(text.to_owned()),
            Block::Table(Table { caption: String::new(), columns, rows }),
        ],
    })
}
