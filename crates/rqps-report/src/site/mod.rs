//! A site over many result sets: an overview, a page per series, a feed of changes, and all of it
//! as JSON. The pages are those of a report, with style and scripts in files that they share.

mod change;
mod feed;
mod index;
mod series;

pub use feed::feed;
pub use index::index_page;
pub use index::{SITE_SCHEMA, index_json};
pub use index::{SiteMaterial, SiteSet, data_file, set_file};
pub use series::{series_file, series_page};
