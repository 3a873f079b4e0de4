//! A report as one self-contained HTML file: no network, no other files.
//!
//! The document is plain HTML, with its charts and the overview as JSON beside it; scripts draw
//! those when they scroll into view. A policy in the head forbids every request.

mod blocks;
mod data;
mod file;

pub(super) use data::id;
pub(super) use file::RunLink;
pub use file::{Material, SitePage, render, render_families, render_for_site, site_assets};
pub(super) use file::{PageFrame, render_document};

#[cfg(test)]
mod tests;
