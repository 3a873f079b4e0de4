//! The files of a folder that an importer does not take, for one notice about all of them.

use std::path::Path;

use super::ImportError;
use super::notice::{Notice, NoticeKind};
use super::text::Text;

/// Names of files in one folder that were not taken.
#[derive(Default)]
pub(crate) struct Leftovers(Vec<String>);

impl Leftovers {
    /// Reads the file `name` in `folder` and passes its text to `take`, which returns false for an
    /// unknown form. True if the file was taken.
    ///
    /// # Errors
    ///
    /// The text of the file is damaged, or `take` fails.
    pub(crate) fn take(
        &mut self,
        folder: &Path,
        name: &str,
        take: impl FnOnce(Text) -> Result<bool, ImportError>,
    ) -> Result<bool, ImportError> {
        let is_taken = match Text::of_folder(&folder.join(name))? {
            Ok(text) => take(text)?,
            Err(why) => {
                self.0.push(format!("{name} ({why})"));
                return Ok(false);
            }
        };
        if !is_taken {
            self.add(name);
        }
        Ok(is_taken)
    }

    /// Adds a file or folder that was not taken.
    pub(crate) fn add(&mut self, name: &str) {
        self.0.push(name.to_owned());
    }

    /// The notice `WHY: NAME, NAME` about the folder; `None` if all was taken.
    pub(crate) fn notice(self, folder: &Path, why: &str) -> Option<Notice> {
        let text = format!("{why}: {}", self.0.join(", "));
        (!self.0.is_empty()).then(|| Notice::of(NoticeKind::Left, folder, text))
    }
}
