//! Chooses the data size of published Insert Benchmark results: results of two sizes are separate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::insert::sources::InsertSources;
use crate::insert::tables::split_size;
use crate::{ImportError, ImportOptions};

/// The sizes of all rows, and the chosen ones.
#[derive(Debug, Default)]
pub(crate) struct Sizes {
    /// Targets by size, from tables and raw files.
    targets: BTreeMap<String, BTreeSet<String>>,
    /// Chosen sizes; empty if no size is known.
    taken: BTreeSet<String>,
}

impl Sizes {
    /// Finds sizes in tags and names of files and folders, and chooses among them.
    ///
    /// # Errors
    ///
    /// The named files have different sizes, and ratios across sizes were not requested; the
    /// requested size does not exist.
    pub(crate) fn resolve(
        sources: &InsertSources,
        named: usize,
        options: &ImportOptions,
    ) -> Result<Sizes, ImportError> {
        let mut sizes = Sizes::default();
        let mut files: Vec<(String, String)> = Vec::new();
        let mut add = |size: Option<String>, target: &str, path: &Path| {
            let Some(size) = size else { return };
            sizes.targets.entry(size.clone()).or_default().insert(target.to_owned());
            if !files.iter().any(|(known, _)| *known == size) {
                files.push((size, path.display().to_string()));
            }
        };
        let tables = sources.sums.iter().chain(&sources.tables).chain(&sources.merged);
        for (text, table) in tables.chain(&sources.relative) {
            for row in &table.rows {
                add(size_of(&row.tag, text.path()), split_size(&row.tag).1, text.path());
            }
        }
        for raw in &sources.raw {
            add(raw.size.clone(), &raw.target, &raw.folder);
        }
        let of_tables = tables_have_sizes(sources);
        if !of_tables {
            for (text, tables) in &sources.summaries {
                for table in tables {
                    for (_, target, _) in &table.rows {
                        add(size_of(&table.name, text.path()), target, text.path());
                    }
                }
            }
        }
        let all: BTreeSet<String> = files.iter().map(|(size, _)| size.clone()).collect();
        sizes.taken = match (&options.size, files.as_slice()) {
            (Some(size), _) if !all.is_empty() && !all.contains(size) => {
                let all = all.into_iter().collect::<Vec<_>>().join(", ");
                let why = format!("--size {size}: sizes in these files: {all}");
                return Err(ImportError::Words(why));
            }
            (Some(size), _) => BTreeSet::from([size.clone()]),
            (None, _) if options.across.sizes => all,
            (None, [(first, a), (second, b), ..]) if named > 1 => {
                return Err(ImportError::Words(format!(
                    "`{a}` has {first} and `{b}` has {second} rows: results of different sizes \
                     belong in separate imports. Import each separately, choose one with --size \
                     {first}, or compare them with --across sizes"
                )));
            }
            (None, [(first, _), ..]) => BTreeSet::from([first.clone()]),
            (None, []) => BTreeSet::new(),
        };
        Ok(sizes)
    }

    /// The size of a row and the label of its target; the error is the reason for leaving the row
    /// out.
    pub(crate) fn take(&self, tag: &str, path: &Path) -> Result<(Option<String>, String), String> {
        let target = split_size(tag).1;
        self.label(size_of(tag, path), target)
    }

    /// The label of a target with a known size.
    pub(crate) fn label(
        &self,
        size: Option<String>,
        target: &str,
    ) -> Result<(Option<String>, String), String> {
        let size = size.or_else(|| {
            // Merged tables omit the size; their targets have one size.
            let mut with = self.targets.iter().filter(|(_, targets)| targets.contains(target));
            let first = with.next()?.0.clone();
            with.next().is_none().then_some(first)
        });
        match &size {
            Some(size) if !self.taken.is_empty() && !self.taken.contains(size) => {
                let taken: Vec<&str> = self.taken.iter().map(String::as_str).collect();
                let taken = taken.join(", ");
                Err(format!(
                    "rows of {size}; this import uses {taken} (--size {size} imports these)"
                ))
            }
            Some(size) if self.taken.len() > 1 => {
                Ok((Some(size.clone()), format!("{size}.{target}")))
            }
            _ => Ok((size, target.to_owned())),
        }
    }
}

/// True if a table of metrics or a raw file tells its size. A summary covers several reports, so
/// its sizes count only if nothing else tells one.
fn tables_have_sizes(sources: &InsertSources) -> bool {
    let tables = sources.sums.iter().chain(&sources.tables).chain(&sources.merged);
    let mut tables = tables.chain(&sources.relative);
    tables
        .any(|(text, table)| table.rows.iter().any(|row| size_of(&row.tag, text.path()).is_some()))
        || sources.raw.iter().any(|raw| raw.size.is_some())
}

/// `20m` of the tag `20m.my5649.cy8`, the file `24_03_17.30m.metrics.tsv` or its folders.
pub(crate) fn size_of(tag: &str, path: &Path) -> Option<String> {
    if let (Some(size), _) = split_size(tag) {
        return Some(size.to_owned());
    }
    // Higher folders are unrelated to the results.
    let near = path.components().rev().take(3);
    let names = near.map(|part| part.as_os_str().to_string_lossy().into_owned());
    names.into_iter().find_map(|name| {
        let mut parts = name.split(['.', '_', '-']);
        parts.find(|part| split_size(&format!("{part}.")).0.is_some()).map(str::to_owned)
    })
}

/// The number of rows for a size: `20m` is 20 million.
pub(crate) fn rows(size: &str) -> Option<u64> {
    size.strip_suffix('m')?.parse::<u64>().ok()?.checked_mul(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_by_tags_and_names() {
        let check = |tag: &str, path: &str, expected: Option<&str>| {
            assert_eq!(size_of(tag, Path::new(path)).as_deref(), expected, "{tag} {path}");
        };
        check("20m.my1", "500m/x", Some("20m"));
        check("my1", "a/24_03_17.30m.bee.inno.metrics.tsv", Some("30m"));
        check("my1", "2021-01.20m/res.pg/mrg.l.i0", Some("20m"));
        check("my1", "20m/a/b/mrg.l.i0", None);
        check("my1", "mem/mrg.l.i0", None);
        assert_eq!((rows("20m"), rows("99999999999999999m")), (Some(20_000_000), None));
    }
}
