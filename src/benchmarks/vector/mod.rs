//! Vector search: steps as data. A table is filled, indexes are built on it one after the other,
//! and each is asked with every width; then come the cases that filter, write and restart.

pub mod analyze;
pub mod data;
pub mod driver;
pub mod import;
mod presets;
pub(crate) mod report;
mod settings;
mod steps;

use crate::domain::benchmark::{BenchmarkParameters, Phase, Workload};
use crate::domain::build::{Dbms, Dialect};
use crate::domain::target::Target;
use crate::domain::vector::{Case, DataSource, Variant, VectorOperation, VectorShape, VectorWork};
use crate::workload::select::{SelectError, select};

pub use self::presets::workload;
pub use self::settings::set;
pub(super) use self::steps::stages;

/// Tells the steps what the config of a target says: `postgres@17+pgvector:halfvec` keeps half
/// precision in its index. A config whose name begins with the word and a hyphen does so too.
pub fn for_target(stages: &mut [Phase], target: &Target) {
    let Some(variant) = Variant::of_config(&target.config) else { return };
    for work in stages.iter_mut().filter_map(work_of) {
        work.variant = variant;
    }
}

fn work_of(stage: &mut Phase) -> Option<&mut VectorWork> {
    match stage {
        Phase::Measure(step) => match &mut step.work {
            crate::domain::benchmark::StepBody::Vector(work) => Some(work),
            _ => None,
        },
        Phase::Settle => None,
    }
}

/// Keeps the steps that `globs` choose, with the loads, builds and deletes that they rest on.
///
/// # Errors
/// A glob that matches no step.
pub(super) fn choose(stages: Vec<Phase>, globs: &[String]) -> Result<Vec<Phase>, SelectError> {
    let chosen = select(stages.clone(), globs)?;
    let name = |stage: &Phase| match stage {
        Phase::Measure(step) => step.name.clone(),
        Phase::Settle => String::new(),
    };
    let mut wanted: Vec<String> = chosen.iter().map(name).collect();
    // From the end on: a step needs the build before it, a build the load before it, and what is
    // asked after deletes needs the deletes.
    let (mut build, mut load, mut deletes, mut fill) = (false, false, false, false);
    for stage in stages.iter().rev() {
        let mut stage = stage.clone();
        let is_wanted = wanted.contains(&name(&stage));
        let step = name(&stage);
        let Some(work) = work_of(&mut stage) else { continue };
        let needed = match work.act {
            VectorOperation::Load { .. } => std::mem::take(&mut load),
            VectorOperation::Fill { .. } => std::mem::take(&mut fill),
            VectorOperation::Build(_) => std::mem::take(&mut build),
            VectorOperation::Delete { .. } | VectorOperation::Clean => deletes,
            _ => false,
        };
        if is_wanted || needed {
            match work.act {
                VectorOperation::Load { .. } | VectorOperation::Fill { .. } => {
                    (build, load, deletes, fill) = (false, false, false, false);
                }
                VectorOperation::Build(_) => (build, load, deletes) = (false, true, false),
                // What a table was filled with rests on the filling alone.
                _ if step.starts_with("capacity.") => fill = true,
                _ => {
                    (build, load) = (true, true);
                    deletes |= step.starts_with("churn.");
                }
            }
            wanted.push(step);
        }
    }
    Ok(stages.into_iter().filter(|stage| wanted.contains(&name(stage))).collect())
}

/// Refuses what cannot be measured.
///
/// # Errors
/// The text says which settings are at fault and what to do.
pub(super) fn check(workload: &Workload, dialect: Dialect) -> Result<(), String> {
    let BenchmarkParameters::Vector(shape) = &workload.shape else { return Ok(()) };
    match dialect {
        Dialect::Postgres | Dialect::Mysql => {}
        Dialect::Sqlite | Dialect::KeyValue | Dialect::Fake => {
            return Err(
                "search vectors on this DBMS: only postgres with pgvector and mariadb since 11.7 \
                 have a vector index"
                    .to_owned(),
            );
        }
    }
    let least = shape.ef.iter().min().copied().unwrap_or(0);
    if dialect == Dialect::Postgres && least < shape.k {
        return Err(format!(
            "search with ef={least} and k={}: pgvector returns at most ef_search rows; use an ef \
             of at least k",
            shape.k
        ));
    }
    if let DataSource::Fashion { .. } = shape.data
        && workload.rows < u64::from(shape.k)
    {
        return Err(format!(
            "search with rows={} and k={}: k cannot exceed the number of rows",
            workload.rows, shape.k
        ));
    }
    let spare = steps::spare(workload, shape);
    if shape.cases.contains(&Case::Mixed)
        && matches!(shape.data, DataSource::Fashion { .. })
        && spare + u64::from(shape.k) > workload.rows
    {
        return Err(format!(
            "run the case mixed: it inserts {spare} rows at insert_rate={} but the set has {}; use \
             a lower rate, shorter windows or more rows",
            shape.insert_rate, workload.rows
        ));
    }
    Ok(())
}

/// Refuses a DBMS that has no vectors, before anything is fetched.
///
/// # Errors
/// The text names the DBMS that would do.
pub fn check_target(target: &Target) -> Result<(), String> {
    match target.dbms {
        Dbms::Mysql => Err(format!(
            "search vectors on {}: MySQL has no vector index; MariaDB has one since 11.7 \
             (mariadb@11.8)",
            target.label
        )),
        Dbms::Mariadb if target.storage_engine.as_deref() == Some("rocksdb") => Err(format!(
            "search vectors on {}: MyRocks has no vector index; InnoDB has one (leave out \
             +myrocks)",
            target.label
        )),
        _ => Ok(()),
    }
}

/// Empty where the shape is another benchmark's.
fn shape_of(workload: &Workload) -> Option<&VectorShape> {
    match &workload.shape {
        BenchmarkParameters::Vector(shape) => Some(shape),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
