//! Bundles: archives of a result folder and everything needed to repeat it (docs/bundles.md).

mod error;
mod list;
mod pack;
mod unpack;

pub use error::BundleError;
pub use list::{BUNDLE_FORMAT, BundleHead, BundledFile, BundledTarget};
pub use pack::{BundleSize, FileContent, PackedFile, pack};
pub use unpack::Bundle;
