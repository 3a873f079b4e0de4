//! Bundles: a result folder and all that repeats it, in one archive (docs/bundles.md).

mod error;
mod list;
mod pack;
mod unpack;

pub use error::BundleError;
pub use list::{BUNDLE_FORMAT, BundleHead, BundledFile, BundledTarget};
pub use pack::{BundleSize, FileContent, PackedFile, pack};
pub use unpack::Bundle;
