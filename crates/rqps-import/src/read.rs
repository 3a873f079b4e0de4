//! Reads files of a format, and adds what holds for every format.

use std::collections::BTreeSet;
use std::path::Path;

use super::error::ImportError;
use super::format::ImportFormat;
use super::notice::{Notice, NoticeKind};
use super::options::{ImportOptions, Named};
use super::published::{self, Published};
use super::text::Text;
use super::{one_build, one_set, stream};

/// Reads others' results.
///
/// # Errors
/// See [`ImportError`].
pub fn read(
    format: ImportFormat,
    paths: &[Named],
    options: &ImportOptions,
) -> Result<Published, ImportError> {
    let mut published = (format.read)(paths, options)?;
    // A label that the user gave says that it is a build of its own.
    if !published.by_date
        && options.labels.is_empty()
        && paths.iter().all(|named| named.label.is_none())
    {
        one_build::join(&mut published);
    }
    check_labels(&published, options)?;
    one_set::check(&published, options.across)?;
    published.notices.extend(published.cells.notices());
    note_cut_files(&mut published)?;
    Ok(published)
}

/// Refuses labels that name nothing: somebody would take the result for what it is not.
fn check_labels(published: &Published, options: &ImportOptions) -> Result<(), ImportError> {
    let is_used = |label: &&String| {
        let name = published::safe(label);
        published.runs.iter().any(|run| run.record.key.label == name)
    };
    let Some(unused) = options.labels.iter().find(|label| !is_used(label)) else { return Ok(()) };
    let mut labels: Vec<&str> = Vec::new();
    for run in &published.runs {
        if !labels.contains(&run.record.key.label.as_str()) {
            labels.push(&run.record.key.label);
        }
    }
    Err(ImportError::Words(format!(
        "--labels: `{unused}` names no row and no column, because these files name their targets \
         ({}); leave it out",
        labels.join(", ")
    )))
}

/// A cut within the last line may leave something that reads well and is something else.
fn note_cut_files(published: &mut Published) -> Result<(), ImportError> {
    let steps = published.runs.iter().flat_map(|run| &run.steps);
    let files = steps.filter_map(|step| step.imported.as_ref()).flat_map(|from| &from.files);
    let files: BTreeSet<&String> = files.collect();
    let mut notices = Vec::new();
    for file in files {
        let path = Path::new(file);
        if stream::ends_whole(path).map_err(ImportError::io(path))? {
            continue;
        }
        let text = Text::read(path)?;
        // JSON that was cut is not JSON.
        if !text.is_whole() && !text.first().starts_with(['[', '{']) {
            let what = "the last line has no newline: is the file truncated?";
            notices.push(Notice::at(NoticeKind::Note, text.path(), text.len(), what));
        }
    }
    published.notices.append(&mut notices);
    Ok(())
}
