//! `rqps import`: converts published results into run folders.

use anyhow::Result;

use crate::cli::exit;
use crate::cli::import_args::{AcrossWhat, Import};
use rqps_import::{self as import, Across, ImportOptions, Named};
use rqps_lab::benchmarks;

/// `rqps import`.
pub(super) fn import(words: &Import) -> Result<u8> {
    let format = benchmarks::import_format(&words.format)?;
    let options = ImportOptions {
        compat: words.compat,
        device: words.device.clone(),
        clients: words.clients.clone(),
        steps: words.steps.clone(),
        cpus: words.cpus,
        labels: words.labels.clone(),
        repeats: words.repeats,
        size: words.size.clone(),
        across: Across {
            sizes: words.across.contains(&AcrossWhat::Sizes),
            hosts: words.across.contains(&AcrossWhat::Hosts),
        },
    };
    let paths: Vec<Named> = words.paths.iter().map(|word| Named::of(word)).collect();
    let published = import::read(format, &paths, &options)?;
    for notice in &published.notices {
        info!("rqps: {notice}");
    }
    for check in &published.checks {
        info!("rqps: {}: {} of {} cells as published", check.what, check.agree, check.of);
    }
    if published.cells.totals().read > 0 {
        info!("rqps: cells: {}", published.cells.totals());
    }
    let written = import::write(format, &published, &words.out)?;
    out!(
        "imported {} targets, {} runs, {} steps into {}",
        written.targets,
        written.runs,
        written.steps,
        words.out.display()
    );
    Ok(exit::FINE)
}
