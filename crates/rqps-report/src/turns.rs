//! Turns within a step: their lengths, and the precision of a block's ratio.

use super::document::{Block, Cell, Column, Digits, Section, Table};
use rqps_analysis::Comparison;
use rqps_analysis::pairing::{TurnScatter, carry_over, share_between_turns, turn_scatter};

/// A row for each step and target; `None` if no targets took turns.
pub(super) fn section(comparison: &Comparison) -> Option<Section> {
    let rows: Vec<Vec<Cell>> = turn_scatter(comparison).iter().map(cells).collect();
    let columns = vec![
        Column::numbers("turn_ms").with_legend("shortest turn"),
        Column::words("waiting").with_legend("state of the DBMS during the turns of others"),
        Column::numbers("turns").with_legend("turns of this target in a block"),
        Column::numbers("inside").with_legend("standard error of a block's ratio, from its turns"),
        Column::numbers("between").with_legend("standard deviation of the ratio between blocks"),
        Column::words("target"),
        Column::words("step"),
    ];
    let explained = "Targets took turns within each step, so a slow disturbance affects all of \
                     them. If `between` is about as large as `inside`, longer windows help as much \
                     as more blocks; if it is larger, only more blocks help. Intervals and \
                     verdicts of rates use `inside` where the blocks scatter less, because a few \
                     blocks may agree by luck.";
    let share = share_between_turns(comparison).map_or_else(String::new, |share| {
        format!(" {:.2} % of the windows lie between turns.", 100.0 * share)
    });
    (!rows.is_empty()).then(|| Section {
        id: "turns",
        heading: "Turns within steps".to_owned(),
        blocks: vec![
            Block::Paragraph(format!("{explained}{share}{}", carry_over_sentence(comparison))),
            Block::Table(Table { caption: String::new(), columns, rows }),
        ],
    })
}

/// The carry-over of each target, as a sentence; empty if no target has two turns in a row.
fn carry_over_sentence(comparison: &Comparison) -> String {
    let all = comparison.targets.iter().zip(carry_over(comparison));
    let told = all.filter_map(|(target, found)| {
        let found = found?;
        let [slower, margin] = [found.slower, 1.96 * found.error].map(|share| 100.0 * share);
        Some(format!("{slower:.1} % ± {margin:.1} ({})", target.label))
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() {
        return String::new();
    }
    format!(
        " Carry-over, by how much a turn after another target's is slower than the target's own \
         next turn (± 95 %): {}.",
        told.join(", ")
    )
}

fn cells(of: &TurnScatter) -> Vec<Cell> {
    let percent = |ln: Option<f64>, why: &str| match ln {
        Some(ln) => Cell::text(format!("{:.2} %", 100.0 * ln.exp_m1())),
        None => Cell::missing(why),
    };
    vec![
        Cell::number(of.slice_ms, Digits::Significant(3), "ms"),
        Cell::text(of.waiting),
        Cell::number(f64::from(of.turns), Digits::Fixed(0), ""),
        percent(of.inside_ln, "the window has one part"),
        percent(of.between_ln, "one block"),
        Cell::text(of.label.clone()),
        Cell::text(of.step.clone()),
    ]
}

/// The turns in a few words for the head of a report: the number of steps with turns, of all steps;
/// empty if there are none.
pub(super) fn line(comparison: &Comparison) -> Option<String> {
    let records = |step: &rqps_analysis::comparison::StepComparison| -> Vec<bool> {
        let samples = step.targets.iter().flat_map(|target| &target.samples);
        samples.map(|sample| sample.record.outcome.turns.is_some()).collect()
    };
    let steps: Vec<Vec<bool>> = comparison.steps.iter().map(records).collect();
    let within = steps.iter().filter(|step| step.contains(&true)).count();
    if within == 0 {
        return None;
    }
    let rest = match steps.len() - within {
        0 => String::new(),
        rest => format!("; one target after another in {rest}"),
    };
    let slices = comparison.steps.iter().flat_map(|step| &step.targets).flat_map(|target| {
        target
            .samples
            .iter()
            .filter_map(|sample| Some(sample.record.outcome.turns.as_ref()?.slice_ms))
    });
    let (least, most) =
        slices.fold((f64::INFINITY, 0.0f64), |(least, most), ms| (least.min(ms), most.max(ms)));
    let length = if most - least < 0.5 {
        format!("{least:.0} ms")
    } else {
        format!("{least:.0} to {most:.0} ms")
    };
    Some(format!("of {length} within {within} of {} steps{rest}", steps.len()))
}
