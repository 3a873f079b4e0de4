//! A shared library loaded at run time, its symbols bound once and copied out.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// A loaded library. Function pointers taken out of it are valid for as long as it lives.
pub struct Library {
    path: PathBuf,
    handle: libloading::Library,
}

/// The reason why a library cannot be used.
#[derive(Debug, Error)]
pub enum LibraryError {
    /// It could not be loaded.
    #[error(
        "load the shared library {}: {reason}; give the path of the .so file itself",
        .path.display()
    )]
    Load {
        /// The file.
        path: PathBuf,
        /// The dynamic linker's words.
        reason: String,
    },
    /// It is not the library that was meant, or too old.
    #[error(
        "find the function {symbol} in {}: {reason}; the file is a different library or its \
         version is too old",
        .path.display()
    )]
    Symbol {
        /// The function.
        symbol: String,
        /// The file.
        path: PathBuf,
        /// The dynamic linker's words.
        reason: String,
    },
}

impl Library {
    /// Loads `path` with its symbols kept to itself, so that a second version of the same library
    /// does not see them.
    #[expect(unsafe_code, reason = "loading runs the library's initialisers")]
    pub fn load(path: &Path) -> Result<Library, LibraryError> {
        // SAFETY: the initialisers of the libraries meant here (SQLite) do nothing that this
        // process relies on; that the user names a file that is fit to be loaded is what `--help`
        // and the error ask for, as with any dynamic linking.
        let handle = unsafe { libloading::Library::new(path) }
            .map_err(|error| LibraryError::Load { path: path.to_owned(), reason: words(&error) })?;
        Ok(Library { path: path.to_owned(), handle })
    }

    /// The address of the function `name`, as a function pointer of type `F`.
    ///
    /// # Safety
    /// `F` must be the function pointer type that the library's header declares for `name`, and the
    /// pointer must not be called after this library is dropped.
    #[expect(unsafe_code, reason = "the type of a symbol cannot be checked")]
    pub unsafe fn function<F: Copy>(&self, name: &str) -> Result<F, LibraryError> {
        // SAFETY: the caller promises that `F` is the declared type.
        unsafe { self.handle.get::<F>(name) }.map(|symbol| *symbol).map_err(|error| {
            LibraryError::Symbol {
                symbol: name.to_owned(),
                path: self.path.clone(),
                reason: words(&error),
            }
        })
    }
}

/// The linker's words lie one level deeper than libloading's own.
fn words(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_library_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "not a library").unwrap();
        let error = Library::load(file.path()).err().unwrap().to_string();
        assert!(error.contains(&file.path().display().to_string()), "{error}");
    }
}
