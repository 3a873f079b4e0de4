//! Version texts of binaries of the family, and their paths in Debian.

use crate::spec::Arrangement;
use rqps_model::build::Version;

/// Packages of Debian have them in the usual folders.
pub(crate) const ARRANGEMENT: Arrangement =
    Arrangement::Usr { servers: &["mariadbd", "mysqld"], programs: &["my", "mariadb"] };

/// The version in `mysqld  Ver 8.0.33 for Linux on x86_64 (MySQL Community …)`.
pub(crate) fn version_in(words: &str) -> Option<Version> {
    let (_, rest) = words.split_once(" Ver ")?;
    let version = rest.split_whitespace().next()?.split('-').next()?;
    version.starts_with(|first: char| first.is_ascii_digit()).then(|| Version::new(version))
}
