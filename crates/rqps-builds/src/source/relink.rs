//! The functions of a build in another order. Compilers put each function into a section of its
//! own (`-ffunction-sections`); a linker script then names all of them in a shuffled order.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::folder;
use crate::elf;
use crate::error::Reason;
use rqps_model::build::Dbms;

/// Writes the linker script of an order of the functions in all objects below a folder. An order
/// is the same on every host: functions are sorted by the hash of their name and its number.
pub(super) fn write_script(
    dbms: Dbms,
    objects: &Path,
    order: u32,
    script: &Path,
) -> Result<(), Reason> {
    let mut found = BTreeSet::new();
    // Who built them may still change them: no link is followed below.
    let objects = objects.canonicalize().map_err(Reason::io("find", objects))?;
    for path in folder::files(&objects)?.into_iter().filter(|path| !path.is_symlink()) {
        if path.extension().is_some_and(|ending| ending == "o") {
            found.extend(elf::functions(&path).map_err(Reason::io("read", &path))?);
        }
    }
    if found.len() < 2 {
        let reason = "the objects have no sections of functions; leave out lto";
        return Err(Reason::no_relink(dbms, reason));
    }
    let text = text(shuffled(found, order));
    fs::write(script, text).map_err(Reason::io("write", script))
}

fn shuffled(names: BTreeSet<String>, order: u32) -> Vec<String> {
    let mut keyed: Vec<([u8; 32], String)> = names
        .into_iter()
        .map(|name| {
            let mut hash = Sha256::new();
            hash.update(order.to_le_bytes());
            hash.update(&name);
            (hash.finalize().into(), name)
        })
        .collect();
    keyed.sort();
    keyed.into_iter().map(|(_, name)| name).collect()
}

/// GNU ld, gold and lld put the sections of an inserted statement before those of the script that
/// they have by default.
fn text(sections: Vec<String>) -> String {
    let lines: String = sections.iter().map(|name| format!("    *({name})\n")).collect();
    format!("SECTIONS {{\n  .text.reordered : {{\n{lines}  }}\n}}\nINSERT BEFORE .text;\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_an_order_of_its_own() {
        let names = || ('a'..='z').map(|name| format!(".text.{name}")).collect();
        let (first, again, other) =
            (shuffled(names(), 1), shuffled(names(), 1), shuffled(names(), 2));
        assert_eq!(first, again);
        assert_ne!(first, other);
        let all = |list: &[String]| list.iter().cloned().collect::<BTreeSet<_>>();
        assert_eq!((all(&first), all(&other)), (names(), names()));
        // The hash of the bytes 1, 0, 0, 0 and the name decides, by sha256sum.
        assert!(first.iter().position(|name| name == ".text.a").is_some_and(|at| at < 26));
        let script = text(first);
        assert!(script.contains("*(.text.a)") && script.ends_with("INSERT BEFORE .text;\n"));
    }
}
