//! Converts a comparison to a document, the document to text, and the comparison to tables and JSON
//! for programs. No clock, no network, no environment: the same comparison gives the same bytes.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod bisection;
mod blocks;
mod brief;
mod build;
pub mod chart;
mod client_hosts;
mod counted;
mod counted_functions;
mod crossing;
mod dates;
pub mod document;
mod evenness;
mod explain;
pub mod export;
mod facts;
mod families;
mod figures;
mod flame;
mod flat;
mod form;
mod gap;
pub mod gate;
pub mod heat;
mod history;
pub mod html;
mod json;
mod ladder;
mod markdown;
mod other_metrics;
mod page;
mod remarks;
mod repetition;
mod sampled;
mod scaling;
mod sessions;
mod settings;
pub mod site;
pub mod stacks;
pub mod tables;
mod terms;
mod text;
pub mod timeline;
mod turns;
mod verdicts;
mod waits;

pub use bisection::{BISECTION_SCHEMA, bisection_document, bisection_json};
pub use brief::{BriefPlace, brief};
pub use build::Sections;
pub use build::{ReportOptions, document, explanation};
pub use dates::{DATES_SCHEMA, dates_csv, dates_document, dates_json};
pub use document::Document;
pub use families::{FamilyReport, write_families};
pub use form::{Format, brief_markdown, render, render_markdown, render_text, write};
pub use gap::{GAP_SCHEMA, gap_json, gap_text};
pub use history::{HISTORY_SCHEMA, history_csv, history_document, history_json};
pub use json::SCHEMA;
pub use repetition::{REPETITION_SCHEMA, repetition_document, repetition_json};
pub use terms::sentence as terms_sentence;
