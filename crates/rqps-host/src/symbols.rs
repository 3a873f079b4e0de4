//! Names of functions of programs and libraries, by their addresses in the file: from a debug file
//! of the same build, else by the place where the function begins.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

use rqps_model::{bounded, units};

/// The table of functions in `.eh_frame_hdr` that all linkers write: version 1, a count of 4
/// bytes, and pairs of 4 bytes relative to the section.
const TABLE_FORMAT: [u8; 4] = [1, 0x1b, 0x03, 0x3b];

/// Most bytes of a file with symbols, which a process under test had mapped and which may be anything
/// by now: debug files of MySQL have some 500 MB.
const FILE_BYTES: u64 = 4 << 30;

/// Most bytes of a function's name as it is in the source.
const PLAIN_BYTES: usize = 8192;
/// Most bytes of a name as it is in the file. All names of a file may end at the same place.
const MANGLED_BYTES: usize = 4096;

/// The functions of one file.
#[derive(Debug, Default)]
pub struct Symbols {
    /// Name of the file, for functions without a name of their own.
    file: String,
    /// First address, address after the last, name; ascending.
    named: Vec<(u64, u64, String)>,
    /// Start addresses of functions, ascending; stripped files keep them for unwinding.
    starts: Vec<u64>,
}

impl Symbols {
    /// Reads those of `path`, and the names in its debug file if one of the folders has it:
    /// `FOLDER/.build-id/ab/cdef….debug` or `FOLDER/ab/cdef….debug`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(path: &Path, debug_folders: &[PathBuf]) -> io::Result<Symbols> {
        let bytes = bounded::bytes(path, FILE_BYTES)?;
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // A file that is no ELF, such as a script, has no functions.
        let Ok(elf) = object::File::parse(&*bytes) else {
            return Ok(Symbols { file, ..Symbols::default() });
        };
        let mut named = names(&elf);
        let build_id = elf.build_id().ok().flatten();
        let debug = build_id.and_then(|id| debug_file(id, debug_folders));
        if let Some(debug) = debug {
            let bytes = bounded::bytes(&debug, FILE_BYTES)?;
            if let Ok(elf) = object::File::parse(&*bytes) {
                named.extend(names(&elf));
            }
        }
        named.sort();
        Ok(Symbols { file, named, starts: starts(&elf) })
    }

    /// The name of the function at an address, or `FILE+0x51230` with the address at which it
    /// begins.
    pub fn name(&self, address: u64) -> String {
        let before = self.named.partition_point(|(first, ..)| *first <= address);
        if let Some((_, end, name)) = before.checked_sub(1).and_then(|place| self.named.get(place))
            && address < *end
        {
            return name.clone();
        }
        let before = self.starts.partition_point(|start| *start <= address);
        let start = before.checked_sub(1).map_or(address, |place| self.starts[place]);
        format!("{}+{start:#x}", self.file)
    }
}

/// Whether the ELF file `path` names a function like this.
///
/// # Errors
/// The file cannot be read.
pub fn has_function(path: &Path, name: &str) -> io::Result<bool> {
    let bytes = bounded::bytes(path, FILE_BYTES)?;
    let elf = object::File::parse(&*bytes).map_err(io::Error::other)?;
    let mut symbols = elf.symbols().chain(elf.dynamic_symbols());
    Ok(symbols.any(|symbol| symbol.kind() == SymbolKind::Text && symbol.name() == Ok(name)))
}

/// Named functions with a size.
fn names(elf: &object::File<'_>) -> Vec<(u64, u64, String)> {
    let symbols = elf.symbols().chain(elf.dynamic_symbols());
    let function = |symbol: object::Symbol<'_, '_>| {
        let is_function = symbol.kind() == SymbolKind::Text && symbol.size() > 0;
        let name = symbol.name().ok().filter(|name| is_function && !name.is_empty())?;
        let (first, size) = (symbol.address(), symbol.size());
        Some((first, first.saturating_add(size), readable(name)))
    };
    symbols.filter_map(function).collect()
}

/// A name as it is in the source; the beginning of the name in the file if that is too long. A
/// short name may stand for one that fills the memory: its parts may be pairs of its other parts.
fn readable(name: &str) -> String {
    let mut plain = Limited { text: String::new() };
    let shown = cpp_demangle::Symbol::new(name)
        .ok()
        .and_then(|symbol| symbol.structured_demangle(&mut plain, &Default::default()).ok());
    match shown {
        Some(()) => plain.text,
        None => name[..name.floor_char_boundary(MANGLED_BYTES)].to_owned(),
    }
}

/// A text that takes no more than [`PLAIN_BYTES`].
struct Limited {
    text: String,
}

impl fmt::Write for Limited {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        if self.text.len() + piece.len() > PLAIN_BYTES {
            return Err(fmt::Error);
        }
        self.text.push_str(piece);
        Ok(())
    }
}

fn debug_file(build_id: &[u8], folders: &[PathBuf]) -> Option<PathBuf> {
    let (first, rest) = build_id.split_first()?;
    let file = Path::new(&units::hex(&[*first])).join(format!("{}.debug", units::hex(rest)));
    let places = folders
        .iter()
        .flat_map(|folder| [folder.join(".build-id").join(&file), folder.join(&file)]);
    places.into_iter().find(|place| place.is_file())
}

/// Start addresses of functions, from the unwinding table.
fn starts(elf: &object::File<'_>) -> Vec<u64> {
    let Some(section) = elf.section_by_name(".eh_frame_hdr") else { return Vec::new() };
    let Ok(table) = section.data() else { return Vec::new() };
    if !table.starts_with(&TABLE_FORMAT) {
        return Vec::new();
    }
    let rows = table.get(12..).unwrap_or_default().chunks_exact(8);
    let start = |row: &[u8]| {
        let relative = i32::from_le_bytes([row[0], row[1], row[2], row[3]]);
        section.address().wrapping_add_signed(i64::from(relative))
    };
    let mut starts: Vec<u64> = rows.map(start).collect();
    starts.sort_unstable();
    starts
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn symbols() -> Symbols {
        Symbols {
            file: "db".to_owned(),
            named: vec![(100, 120, "first".to_owned()), (130, 140, "second".to_owned())],
            starts: vec![100, 120, 130, 200],
        }
    }

    #[test]
    fn what_is_mapped_may_be_no_file_by_now() {
        let folder = tempfile::tempdir().unwrap();
        let [pipe, huge] = ["pipe", "huge"].map(|name| folder.path().join(name));
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, rustix::fs::Mode::RUSR, 0).unwrap();
        fs::File::create(&huge).unwrap().set_len(1 << 40).unwrap();
        assert!(Symbols::read(&pipe, &[]).is_err() && Symbols::read(&huge, &[]).is_err());
    }

    #[test]
    fn an_address_belongs_to_the_function_around_it() {
        let symbols = symbols();
        let check = |address, name: &str| assert_eq!(symbols.name(address), name, "{address}");
        check(100, "first");
        check(119, "first");
        check(120, "db+0x78");
        check(129, "db+0x78");
        check(139, "second");
        check(250, "db+0xc8");
        check(7, "db+0x7");
        assert_eq!(Symbols::default().name(5), "+0x5");
    }

    #[test]
    fn this_program_has_functions() {
        // A test is run from a file whose functions have symbols.
        let path = std::env::current_exe().unwrap();
        let symbols = Symbols::read(&path, &[]).unwrap();
        assert!(symbols.starts.len() > 1000, "{}", symbols.starts.len());
        let (first, ..) = symbols.named.iter().find(|named| named.2.contains("Symbols")).unwrap();
        assert!(symbols.starts.binary_search(first).is_ok());
        assert!(symbols.name(*first).contains("Symbols"));
        let text = tempfile::NamedTempFile::new().unwrap();
        let none = Symbols::read(text.path(), &[]).unwrap();
        assert!(none.name(16).ends_with("+0x10"));
        assert!(Symbols::read(Path::new("/no/such/file"), &[]).is_err());
    }

    #[test]
    fn a_short_name_for_an_endless_one_stays_as_it_is() {
        assert_eq!(readable("_ZN3foo3barEv"), "foo::bar()");
        // A pair of ints, a pair of two of these, and so on: 2^30 ints.
        let digit = |n| char::from_digit(n, 36).unwrap().to_ascii_uppercase();
        let pair = |n| format!("S_IS{0}_S{0}_E", digit(n));
        let pairs: String = (0..30).map(pair).collect();
        let bomb = format!("_Z1fSt4pairIiiE{pairs}");
        assert_eq!(readable(&bomb), bomb);
        assert_eq!(readable(&"x".repeat(5000)).len(), MANGLED_BYTES);
    }

    #[test]
    fn a_debug_file_is_found_by_its_build_id() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join(".build-id/ab");
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("cd01.debug"), "").unwrap();
        let folders = [folder.path().to_owned()];
        let found = debug_file(&[0xab, 0xcd, 0x01], &folders);
        assert_eq!(found, Some(place.join("cd01.debug")));
        assert_eq!(debug_file(&[0xab, 0xcd, 0x02], &folders), None);
        let inner = [folder.path().join(".build-id")];
        assert!(debug_file(&[0xab, 0xcd, 0x01], &inner).is_some());
        assert_eq!(debug_file(&[], &folders), None);
    }
}
