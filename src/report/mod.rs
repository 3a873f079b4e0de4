//! Converts a comparison to a document, the document to text, and the comparison to tables and JSON
//! for programs. No clock, no network, no environment: the same comparison gives the same bytes.

mod bisection;
mod blocks;
mod build;
pub mod chart;
mod counted;
mod dates;
pub mod document;
mod evenness;
mod explain;
pub mod export;
mod facts;
mod figures;
mod flame;
mod flat;
mod form;
pub mod gate;
pub mod heat;
mod history;
pub mod html;
mod json;
mod markdown;
mod other_metrics;
mod page;
mod remarks;
mod sampled;
mod scaling;
mod sections;
mod sessions;
mod settings;
pub mod site;
pub mod stacks;
pub mod tables;
mod text;
pub mod timeline;
mod turns;
mod verdicts;

pub use bisection::{BISECTION_SCHEMA, bisection_document, bisection_json};
pub use build::{ReportOptions, document, explanation};
pub use dates::{DATES_SCHEMA, dates_csv, dates_document, dates_json};
pub use document::Document;
pub use flat::quoted;
pub use form::{Format, render, render_markdown, render_text, write};
pub use history::{HISTORY_SCHEMA, history_csv, history_document, history_json};
pub use json::SCHEMA;
pub use sections::Sections;
