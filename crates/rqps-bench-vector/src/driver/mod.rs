//! Runs the steps of vector search.

mod build;
mod capacity;
mod churn;
mod context;
pub mod encode;
pub mod graph;
mod isolation;
mod load;
mod mixed;
pub(crate) mod score;
mod search;
pub(crate) mod searcher;
mod sql;
mod step;
mod target;
mod untimed;
mod visibility;

pub(crate) use step::step_loop;
