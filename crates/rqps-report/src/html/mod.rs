//! A report as one self-contained HTML file: no network, no other files.
//!
//! The document is plain HTML, with its charts and the overview as JSON beside it; scripts draw
//! those when they scroll into view. A policy in the head forbids every request.

mod blocks;
mod chart_library;
mod data;
mod escape;
mod file;
mod links;

pub(super) use escape::id;
pub use file::{Material, SitePage, render, render_families, render_for_site, site_assets};
pub(super) use file::{PageFrame, render_document};
pub(super) use links::RunLink;

#[cfg(test)]
mod tests;
