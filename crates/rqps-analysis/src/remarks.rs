//! Remarks on published numbers: texts of their authors, and cells without a metric.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use rqps_model::run::{Dataset, StepRecord};

/// Something that imported files say besides numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// The step whose row it stands beside; empty for what is the same in all steps.
    pub step: String,
    /// Its targets.
    pub targets: Vec<String>,
    /// The head of the column; empty for words of an author.
    pub column: String,
    /// The published text; empty for a column whose cells differ from step to step.
    pub text: String,
    /// Cells that it stands for.
    pub cells: usize,
}

/// All of them: words of authors by step; columns that say one thing of a target, such as the hash
/// of its build, with what they say; other columns with the number of their cells.
pub(super) fn find(dataset: &Dataset) -> Vec<Remark> {
    let mut words: Vec<Remark> = Vec::new();
    let mut columns: BTreeMap<(&str, &str), (BTreeSet<&str>, usize)> = BTreeMap::new();
    for run in &dataset.runs {
        let label = run.record.key.label.as_str();
        for step in &run.steps {
            let Some(imported) = &step.imported else { continue };
            for text in &imported.remarks {
                add(&mut words, step, label, text);
            }
            for (column, cell) in &imported.annotations {
                let (values, cells) = columns.entry((column, label)).or_default();
                values.insert(cell);
                *cells += 1;
            }
        }
    }
    let mut varying: BTreeMap<&str, Remark> = BTreeMap::new();
    for ((column, label), (values, cells)) in columns {
        let one = values.first().filter(|_| values.len() == 1 && cells > 1);
        let remark = Remark {
            step: String::new(),
            targets: vec![label.to_owned()],
            column: column.to_owned(),
            text: one.map_or_else(String::new, |one| (*one).to_owned()),
            cells,
        };
        if one.is_some() {
            words.push(remark);
        } else if let Some(other) = varying.get_mut(column) {
            other.targets.push(label.to_owned());
            other.cells += cells;
        } else {
            varying.insert(column, remark);
        }
    }
    words.extend(varying.into_values());
    words
}

fn add(words: &mut Vec<Remark>, step: &StepRecord, label: &str, text: &str) {
    let same = words.iter_mut().find(|word| word.step == step.name && word.text == text);
    match same {
        Some(word) if word.targets.iter().any(|other| other == label) => {}
        Some(word) => word.targets.push(label.to_owned()),
        None => words.push(Remark {
            step: step.name.clone(),
            targets: vec![label.to_owned()],
            column: String::new(),
            text: text.to_owned(),
            cells: 1,
        }),
    }
}
