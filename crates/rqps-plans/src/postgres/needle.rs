//! Files of tables and indexes without content: holes of the true size. A B-tree gets the few pages
//! that the planner reads: the metapage with the true level, and one page for each level, which
//! lead to an empty leaf.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::path::Path;

use rqps_host::beneath::{self, Folder};
use rqps_host::user::Identity;

/// Bytes of a page.
const PAGE: usize = 8192;

/// Blocks of a segment of a file.
const SEGMENT: u64 = 131_072;

/// Most bytes of the file of an empty table or index.
const EMPTY_MAX: u64 = 1 << 20;

/// Bytes of the header of a page.
const HEADER: usize = 24;

/// The magic number at the beginning of the metapage's content.
const MAGIC: u32 = 0x0005_3162;

/// Gives a file its true size. `level` is that of the root of a B-tree.
///
/// # Errors
/// The system refuses.
pub(super) fn extend(
    folder: &Folder,
    file: &str,
    (blocks, level): (u64, Option<u32>),
    owner: Option<Identity>,
) -> io::Result<()> {
    let path = Path::new(file);
    let name = path.file_name().ok_or_else(|| io::Error::other("it has no name"))?;
    let folder = folder.below(path.parent().unwrap_or(Path::new("")))?;
    let mut content = Vec::new();
    folder.read_of(name, owner)?.take(EMPTY_MAX + 1).read_to_end(&mut content)?;
    if content.len() as u64 > EMPTY_MAX {
        return Err(io::Error::other("it is not empty"));
    }
    if let Some(level) = level
        && blocks >= 2
    {
        content = needle(&content, level.min(u32::try_from(blocks - 2).unwrap_or(u32::MAX)));
    }
    folder.remove_file(Path::new(name))?;
    let blocks = blocks.max((content.len() / PAGE) as u64);
    for segment in 0..blocks.div_ceil(SEGMENT).max(1) {
        let mut part = OsString::from(name);
        if segment > 0 {
            part.push(format!(".{segment}"));
        }
        let mut made = folder.new_file(OsStr::new(&part), 0o600)?;
        if segment == 0 {
            made.write_all(&content)?;
        }
        made.set_len((blocks - segment * SEGMENT).min(SEGMENT) * PAGE as u64)?;
        if let Some(owner) = owner {
            beneath::give_file(&made, owner)?;
        }
    }
    Ok(())
}

/// The first pages of a B-tree with a root of this level, from the metapage of an empty one.
fn needle(empty: &[u8], level: u32) -> Vec<u8> {
    let number = |at: usize| empty.get(at..at + 4).map(|it| [it[0], it[1], it[2], it[3]]);
    if number(HEADER).map(u32::from_le_bytes) != Some(MAGIC) {
        return empty.to_vec();
    }
    let mut made = empty[..PAGE.min(empty.len())].to_vec();
    made.resize(PAGE, 0);
    let root = level + 1;
    // The root and its level, and both again as the place where searches may begin.
    for (at, value) in [(32, root), (36, level), (40, root), (44, level)] {
        made[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    for page in 0..=level {
        made.extend(page_of_level(page, page == level));
    }
    made
}

/// An empty leaf, or a page whose only entry leads to the page before it.
fn page_of_level(level: u32, is_root: bool) -> Vec<u8> {
    let special = PAGE - 16;
    let mut page = vec![0; PAGE];
    let mut put = |at: usize, value: u16| page[at..at + 2].copy_from_slice(&value.to_le_bytes());
    let (mut lower, mut upper) = (HEADER, special);
    if level > 0 {
        (lower, upper) = (HEADER + 4, special - 8);
        // A pointer to 8 bytes: offset in 15 bits, used in 2, length in 15.
        let item = upper as u32 | 1 << 15 | 8 << 17;
        put(HEADER, item as u16);
        put(HEADER + 2, (item >> 16) as u16);
        // The entry: the block below, no key, and the mark that says so with its length.
        put(upper, (level >> 16) as u16);
        put(upper + 2, level as u16);
        put(upper + 4, 0);
        put(upper + 6, 8 | 0x2000);
    }
    put(12, lower as u16);
    put(14, upper as u16);
    put(16, special as u16);
    // The size of pages and the version of their layout.
    put(18, PAGE as u16 | 4);
    put(special + 8, level as u16);
    put(special + 12, u16::from(level == 0) | (u16::from(is_root) << 1));
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_become_holes_with_a_way_to_a_leaf() {
        let place = tempfile::tempdir().unwrap();
        let mut meta = vec![0; PAGE];
        meta[HEADER..HEADER + 4].copy_from_slice(&MAGIC.to_le_bytes());
        std::fs::create_dir(place.path().join("base")).unwrap();
        let file = place.path().join("base/7");
        std::fs::write(&file, &meta).unwrap();
        let folder = Folder::open(place.path()).unwrap();
        extend(&folder, "base/7", (SEGMENT + 3, Some(2)), None).unwrap();
        let size = |path: &Path| std::fs::metadata(path).unwrap().len();
        assert_eq!(size(&file), SEGMENT * PAGE as u64);
        assert_eq!(size(&place.path().join("base/7.1")), 3 * PAGE as u64);
        let mut start = vec![0; 4 * PAGE];
        std::fs::File::open(&file).unwrap().read_exact(&mut start).unwrap();
        assert_eq!((start[32], start[36]), (3, 2), "root and level");
        let flags = |page: usize| start[page * PAGE + PAGE - 4];
        assert_eq!([flags(1), flags(2), flags(3)], [1, 0, 2]);
        // No level fits into two blocks, and what is no B-tree stays as it is.
        std::fs::write(&file, &meta).unwrap();
        std::fs::remove_file(place.path().join("base/7.1")).unwrap();
        extend(&folder, "base/7", (2, Some(5)), None).unwrap();
        assert_eq!((size(&file), std::fs::read(&file).unwrap()[36]), (2 * PAGE as u64, 0));
        assert!(extend(&folder, "../7", (2, None), None).is_err());
        assert_eq!(needle(&[1, 2, 3], 1), [1, 2, 3]);
    }
}
