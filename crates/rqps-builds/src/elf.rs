//! Reads from ELF files what a build is asked for: compilers, and functions that can be placed.
//!
//! Only 64-bit little-endian files, only through their section headers, and only the few sections
//! of interest: a server binary may have 400 MB. Every offset and length comes from the file and
//! is checked against it. Format: System V ABI, chapters 4 and 5.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::Path;

use object::LittleEndian as LE;
use object::elf::{FileHeader64, SHT_NOBITS, SectionHeader64};
use object::read::elf::{FileHeader as _, SectionHeader as _};
use object::read::{ReadCache, ReadCacheOps};
use rqps_host::plain;

/// A section that is larger is not read.
const SECTION_BYTES: u64 = 16 << 20;
/// A longer text of a file is none: a file may name one text of megabytes a million times.
const TEXT_BYTES: usize = 4096;

type Section = SectionHeader64<LE>;

/// The different strings of `.comment`, in order: one for each compiler that took part. Empty for
/// another file, or one that contradicts itself.
pub(super) fn comments(path: &Path) -> io::Result<Vec<String>> {
    Ok(comments_in(&ReadCache::new(File::open(path)?)).unwrap_or_default())
}

/// Names of the sections of single functions in an object file (`-ffunction-sections`), without
/// cold parts. Empty for another file.
pub(super) fn functions(path: &Path) -> io::Result<Vec<String>> {
    let data = ReadCache::new(plain::open_without_links(path)?);
    let Some((sections, names)) = sections(&data) else { return Ok(Vec::new()) };
    let named = sections.iter().filter_map(|section| name(names, section));
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

fn comments_in<R: ReadCacheOps>(data: &ReadCache<R>) -> Option<Vec<String>> {
    let (sections, names) = sections(data)?;
    let is_comment = |section: &&Section| name(names, section).as_deref() == Some(".comment");
    let bytes = content(sections.iter().find(is_comment)?, data)?;
    let (mut comments, mut known) = (Vec::new(), HashSet::new());
    for comment in bytes.split(|byte| *byte == 0) {
        let comment = String::from_utf8_lossy(comment).trim().to_string();
        if !comment.is_empty() && known.insert(comment.clone()) {
            comments.push(comment);
        }
    }
    Some(comments)
}

/// The sections, and the table of their names.
fn sections<R: ReadCacheOps>(data: &ReadCache<R>) -> Option<(&[Section], &[u8])> {
    let header = FileHeader64::<LE>::parse(data).ok()?;
    if !header.is_little_endian() {
        return None;
    }
    let sections = header.section_headers(LE, data).ok()?;
    let names = sections.get(header.shstrndx(LE, data).ok()? as usize)?;
    Some((sections, content(names, data)?))
}

/// The bytes of a section; `None` if it has none in the file, or too many.
fn content<'a, R: ReadCacheOps>(section: &Section, data: &'a ReadCache<R>) -> Option<&'a [u8]> {
    let is_read = section.sh_type(LE) != SHT_NOBITS && section.sh_size(LE) <= SECTION_BYTES;
    is_read.then(|| section.data(LE, data).ok()).flatten()
}

/// The zero-ended name of a section.
fn name(names: &[u8], section: &Section) -> Option<String> {
    let rest = names.get(section.sh_name(LE) as usize..)?;
    let end = rest.iter().take(TEXT_BYTES).position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(&rest[..end]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// An ELF file with three sections: null, .comment, .shstrtab.
    fn made(comment: &[u8]) -> Vec<u8> {
        let names = b"\0.comment\0.shstrtab\0";
        let contents: [(u32, u32, &[u8]); 3] = [(0, 0, b""), (1, 1, comment), (10, 3, names)];
        let mut body = Vec::new();
        let mut table = Vec::new();
        for (name, kind, content) in contents {
            let mut header = [0; 64];
            header[0..4].copy_from_slice(&name.to_le_bytes());
            header[4..8].copy_from_slice(&kind.to_le_bytes());
            header[24..32].copy_from_slice(&(64 + body.len() as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(content.len() as u64).to_le_bytes());
            table.extend_from_slice(&header);
            body.extend_from_slice(content);
        }
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(64, 0);
        file[40..48].copy_from_slice(&(64 + body.len() as u64).to_le_bytes());
        file[58..60].copy_from_slice(&64u16.to_le_bytes());
        file[60..62].copy_from_slice(&3u16.to_le_bytes());
        file[62..64].copy_from_slice(&2u16.to_le_bytes());
        file.extend_from_slice(&body);
        file.extend_from_slice(&table);
        file
    }

    fn read(bytes: &[u8]) -> Option<Vec<String>> {
        comments_in(&ReadCache::new(Cursor::new(bytes)))
    }

    #[test]
    fn a_made_file_gives_back_what_was_put_in() {
        let gcc = "GCC: (Debian 12.2.0) 12.2.0";
        let bytes = made(format!("{gcc}\0\0{gcc}\0clang 14\0").as_bytes());
        assert_eq!(read(&bytes).unwrap(), [gcc, "clang 14"]);
    }

    #[test]
    fn no_damage_makes_it_read_outside_of_the_file() {
        let bytes = made(b"GCC\0");
        for length in 0..bytes.len() {
            read(&bytes[..length]);
        }
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                read(&damaged);
            }
        }
        assert_eq!(read(b"#!/bin/sh\necho hello\n"), None);
        assert_eq!(read(b""), None);
    }

    #[test]
    fn this_very_program_names_its_compiler() {
        let found = comments(Path::new("/proc/self/exe")).unwrap();
        assert!(found.iter().any(|text| text.contains("rustc")), "{found:?}");
    }
}
