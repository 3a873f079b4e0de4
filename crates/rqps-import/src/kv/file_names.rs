//! Reads workloads and dates in the names of published files.

use std::path::Path;

/// Workloads in names of published files and folders.
const WORKLOADS: [&str; 4] = ["byrx", "byos", "iobuf", "iodir"];

/// The workload of `res.byrx` or `sum.iobuf.8x.txt`.
pub(super) fn workload_of(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_string_lossy().into_owned();
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let parts: Vec<&str> = name.split('.').collect();
    let of = |parts: &[&str]| WORKLOADS.into_iter().find(|workload| parts.contains(workload));
    of(&parts).or_else(|| of(&folder.split('.').collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variants::kin;

    #[test]
    fn names_tell_workload_and_kin() {
        assert_eq!(workload_of(Path::new("a/sum.iobuf.8x.txt")), Some("iobuf"));
        assert_eq!(workload_of(Path::new("res.byrx/summary.tsv")), Some("byrx"));
        assert_eq!(workload_of(Path::new("summary.tsv")), None);
        let of = |name: &str| kin(Path::new(name));
        assert_eq!(of("a/abs.iobuf.8x.tsv"), of("a/sum.iobuf.8x.txt"));
        assert_eq!(of("a/fmt.byrx.lru.abs0.tsv"), of("a/sum.byrx.lru.txt"));
        assert_ne!(of("a/abs.iobuf.7x.tsv"), of("a/sum.iobuf.8x.txt"));
    }
}
