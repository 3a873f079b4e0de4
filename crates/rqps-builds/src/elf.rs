//! Reads from ELF files what a build is asked for: compiler, needed libraries, search paths.
//!
//! Only 64-bit little-endian files, only through their section headers, and only the few sections
//! of interest: a server binary may have 400 MB. Every offset and length comes from the file and
//! is checked against it. Format: System V ABI, chapters 4 and 5.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use rqps_host::plain;

/// A section that is larger is not read.
const SECTION_BYTES: u64 = 16 << 20;
/// A longer text of a file is none: a file may name one text of megabytes a million times.
const TEXT_BYTES: usize = 4096;
/// More texts of one kind are not kept.
const TEXTS: usize = 10_000;
/// Size of one entry of the section header table.
const HEADER_BYTES: u64 = 64;

const SHT_DYNAMIC: u32 = 6;
const SHT_NOBITS: u32 = 8;
const DT_NEEDED: u64 = 1;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;

/// Facts from an ELF file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Elf {
    /// `e_machine`: 62 for x86-64, 183 for 64-bit ARM.
    pub(super) machine: u16,
    /// The different strings of `.comment`, in order: one for each compiler that took part.
    pub(super) comment: Vec<String>,
    /// DT_NEEDED: libraries by name.
    pub(super) needed: Vec<String>,
    /// DT_RPATH: folders, searched for the libraries of libraries too.
    pub(super) rpath: Vec<String>,
    /// DT_RUNPATH: folders, searched for this file's own libraries only.
    pub(super) runpath: Vec<String>,
}

/// Reads a file. `None` if it is no 64-bit little-endian ELF file or contradicts itself.
pub(super) fn read(path: &Path) -> io::Result<Option<Elf>> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    parse(&mut ElfReader { file, length })
}

/// Names of the sections of single functions in an object file (`-ffunction-sections`), without
/// cold parts. Empty for another file.
pub(super) fn functions(path: &Path) -> io::Result<Vec<String>> {
    let file = plain::open_without_links(path)?;
    let length = file.metadata()?.len();
    let Some((sections, names)) = sections(&mut ElfReader { file, length })? else {
        return Ok(Vec::new());
    };
    let named = sections.iter().filter_map(|section| text(&names, u64::from(section.name)));
    let is_function = |name: &String| {
        name.strip_prefix(".text.")
            .is_some_and(|name| !["unlikely", "startup", "exit", "hot"].contains(&part(name)))
    };
    Ok(named.filter(is_function).collect())
}

/// The part of a name before its first dot.
fn part(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

struct ElfReader<F> {
    file: F,
    length: u64,
}

/// One entry of the section header table.
struct Section {
    name: u32,
    kind: u32,
    offset: u64,
    size: u64,
    link: u32,
}

impl<F: Read + Seek> ElfReader<F> {
    /// A piece of the file; `None` if it is not wholly in it, or too large.
    fn piece(&mut self, offset: u64, size: u64) -> io::Result<Option<Vec<u8>>> {
        let end = offset.checked_add(size);
        if size > SECTION_BYTES || end.is_none_or(|end| end > self.length) {
            return Ok(None);
        }
        let mut bytes = vec![0; size as usize];
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.read_exact(&mut bytes)?;
        Ok(Some(bytes))
    }

    fn content(&mut self, section: &Section) -> io::Result<Option<Vec<u8>>> {
        if section.kind == SHT_NOBITS {
            return Ok(None);
        }
        self.piece(section.offset, section.size)
    }
}

fn parse<F: Read + Seek>(source: &mut ElfReader<F>) -> io::Result<Option<Elf>> {
    let Some((sections, names)) = sections(source)? else { return Ok(None) };
    let Some(machine) = source.piece(0, 64)?.and_then(|head| half(&head, 18)) else {
        return Ok(None);
    };
    let mut elf = Elf { machine, ..Elf::default() };
    for section in &sections {
        if text(&names, u64::from(section.name)).as_deref() == Some(".comment") {
            elf.comment = comments(&source.content(section)?.unwrap_or_default());
        }
        if section.kind == SHT_DYNAMIC {
            let strings = sections.get(section.link as usize);
            let Some(strings) = strings.map(|strings| source.content(strings)).transpose()? else {
                continue;
            };
            let entries = source.content(section)?.unwrap_or_default();
            dynamic(&mut elf, &entries, &strings.unwrap_or_default());
        }
    }
    Ok(Some(elf))
}

/// The section headers, and the table of their names.
fn sections<F: Read + Seek>(
    source: &mut ElfReader<F>,
) -> io::Result<Option<(Vec<Section>, Vec<u8>)>> {
    let Some(head) = source.piece(0, 64)? else { return Ok(None) };
    if !head.starts_with(b"\x7fELF\x02\x01") || half(&head, 58) != Some(HEADER_BYTES as u16) {
        return Ok(None);
    }
    let (Some(table), Some(count), Some(names)) =
        (wide(&head, 40), half(&head, 60), half(&head, 62))
    else {
        return Ok(None);
    };
    let Some(table) = source.piece(table, u64::from(count) * HEADER_BYTES)? else {
        return Ok(None);
    };
    let sections: Vec<Section> =
        table.chunks_exact(HEADER_BYTES as usize).filter_map(section).collect();
    let Some(names) = sections.get(usize::from(names)) else { return Ok(None) };
    let Some(names) = source.content(names)? else { return Ok(None) };
    Ok(Some((sections, names)))
}

fn section(bytes: &[u8]) -> Option<Section> {
    Some(Section {
        name: word(bytes, 0)?,
        kind: word(bytes, 4)?,
        offset: wide(bytes, 24)?,
        size: wide(bytes, 32)?,
        link: word(bytes, 40)?,
    })
}

fn dynamic(elf: &mut Elf, entries: &[u8], strings: &[u8]) {
    for entry in entries.chunks_exact(16) {
        let (Some(tag), Some(value)) = (wide(entry, 0), wide(entry, 8)) else { continue };
        let Some(value) = text(strings, value) else { continue };
        let folders = || value.split(':').filter(|folder| !folder.is_empty()).map(String::from);
        match tag {
            DT_NEEDED => elf.needed.push(value),
            DT_RPATH => elf.rpath.extend(folders()),
            DT_RUNPATH => elf.runpath.extend(folders()),
            _ => {}
        }
        if elf.needed.len().max(elf.rpath.len()).max(elf.runpath.len()) > TEXTS {
            return;
        }
    }
}

fn comments(bytes: &[u8]) -> Vec<String> {
    let (mut comments, mut known) = (Vec::new(), HashSet::new());
    for comment in bytes.split(|byte| *byte == 0) {
        let comment = String::from_utf8_lossy(comment).trim().to_string();
        if !comment.is_empty() && known.insert(comment.clone()) {
            comments.push(comment);
        }
    }
    comments
}

/// The zero-ended text at an offset of a string table.
fn text(table: &[u8], offset: u64) -> Option<String> {
    let rest = table.get(usize::try_from(offset).ok()?..)?;
    let end = rest.iter().take(TEXT_BYTES).position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(&rest[..end]).into_owned())
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn wide(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::io::Cursor;

    /// An ELF file with five sections: null, .comment, .dynstr, .dynamic, .shstrtab.
    pub(crate) fn made(comment: &[u8], needed: &[&str], runpath: &str) -> Vec<u8> {
        let mut strings = vec![0];
        let mut entries = Vec::new();
        for (tag, value) in
            needed.iter().map(|name| (DT_NEEDED, *name)).chain([(DT_RUNPATH, runpath)])
        {
            entries.extend_from_slice(&u64::to_le_bytes(tag));
            entries.extend_from_slice(&u64::to_le_bytes(strings.len() as u64));
            strings.extend_from_slice(value.as_bytes());
            strings.push(0);
        }
        let names = b"\0.comment\0.dynstr\0.dynamic\0.shstrtab\0";
        let contents: [(u32, u32, u32, &[u8]); 5] = [
            (0, 0, 0, b""),
            (1, 1, 0, comment),
            (10, 3, 0, &strings),
            (18, SHT_DYNAMIC, 2, &entries),
            (27, 3, 0, names),
        ];
        let mut body = Vec::new();
        let mut table = Vec::new();
        for (name, kind, link, content) in contents {
            let mut header = [0; 64];
            header[0..4].copy_from_slice(&name.to_le_bytes());
            header[4..8].copy_from_slice(&kind.to_le_bytes());
            header[24..32].copy_from_slice(&(64 + body.len() as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(content.len() as u64).to_le_bytes());
            header[40..44].copy_from_slice(&link.to_le_bytes());
            table.extend_from_slice(&header);
            body.extend_from_slice(content);
        }
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(64, 0);
        file[18..20].copy_from_slice(&62u16.to_le_bytes());
        file[40..48].copy_from_slice(&(64 + body.len() as u64).to_le_bytes());
        file[58..60].copy_from_slice(&64u16.to_le_bytes());
        file[60..62].copy_from_slice(&5u16.to_le_bytes());
        file[62..64].copy_from_slice(&4u16.to_le_bytes());
        file.extend_from_slice(&body);
        file.extend_from_slice(&table);
        file
    }

    fn parsed(bytes: &[u8]) -> Option<Elf> {
        let length = bytes.len() as u64;
        parse(&mut ElfReader { file: Cursor::new(bytes), length }).unwrap()
    }

    #[test]
    fn a_made_file_gives_back_what_was_put_in() {
        let bytes = made(
            b"GCC: (Debian 12.2.0) 12.2.0\0\0GCC: (Debian 12.2.0) 12.2.0\0clang 14\0",
            &["libaio.so.1", "libc.so.6"],
            "$ORIGIN/../lib:/opt/lib",
        );
        let elf = parsed(&bytes).unwrap();
        assert_eq!(elf.machine, 62);
        assert_eq!(elf.comment, ["GCC: (Debian 12.2.0) 12.2.0", "clang 14"]);
        assert_eq!(elf.needed, ["libaio.so.1", "libc.so.6"]);
        assert_eq!(elf.runpath, ["$ORIGIN/../lib", "/opt/lib"]);
        assert!(elf.rpath.is_empty());
    }

    #[test]
    fn no_damage_makes_it_read_outside_of_the_file() {
        let bytes = made(b"GCC\0", &["libc.so.6"], "/opt");
        for length in 0..bytes.len() {
            parsed(&bytes[..length]);
        }
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                parsed(&damaged);
            }
        }
        assert_eq!(parsed(b"#!/bin/sh\necho hello\n"), None);
        assert_eq!(parsed(b""), None);
    }

    #[test]
    fn one_long_text_that_is_named_often_is_kept_never() {
        let long = "x".repeat(TEXT_BYTES);
        let found = parsed(&made(b"", &[&long, "libz.so.1"], "")).unwrap();
        assert_eq!(found.needed, ["libz.so.1"]);
        let many = vec!["l"; 3 * TEXTS];
        assert_eq!(parsed(&made(b"", &many, "")).unwrap().needed.len(), TEXTS + 1);
    }

    #[test]
    fn this_very_program_needs_the_c_library() {
        let elf = read(Path::new("/proc/self/exe")).unwrap().unwrap();
        assert!(elf.needed.iter().any(|name| name.starts_with("libc.so")), "{elf:?}");
        assert!(elf.comment.iter().any(|text| text.contains("rustc")), "{elf:?}");
    }
}
