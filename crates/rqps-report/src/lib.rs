//! Converts a comparison to a document, the document to text, and the comparison to tables and JSON
//! for programs. No clock, no network, no environment: the same comparison gives the same bytes.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod blocks;
mod brief;
mod build;
mod campaign;
mod clients;
mod counted;
pub mod document;
mod explain;
pub mod export;
mod facts;
mod families;
mod form;
pub mod gate;
mod history;
pub mod html;
pub mod plot;
pub mod site;
pub mod stacks;
pub mod tables;
pub mod timeline;
mod verdicts;

pub use brief::{BriefPlace, brief};
pub use build::{ReportOptions, Sections, document, explanation};
pub use campaign::{
    BEST_RATE_SCHEMA, BISECTION_SCHEMA, GAP_SCHEMA, REPETITION_SCHEMA, best_rate_json,
    best_rate_text, bisection_document, bisection_json, gap_html, gap_json, gap_text,
    repetition_document, repetition_json,
};
pub use document::Document;
pub use facts::sentence as terms_sentence;
pub use families::{FamilyReport, write_families};
pub use form::{Format, SCHEMA, brief_markdown, post, render, render_markdown, render_text, write};
pub use history::{
    DATES_SCHEMA, HISTORY_SCHEMA, dates_csv, dates_document, dates_json, history_csv,
    history_document, history_json,
};
