//! Names for the functions of a callgrind file that valgrind did not name: those of stripped
//! programs and libraries.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::symbols::Symbols;

/// Reads symbols once for each file.
#[derive(Debug, Default)]
pub struct ProfileNames {
    debug_folders: Vec<PathBuf>,
    files: HashMap<String, Symbols>,
}

impl ProfileNames {
    /// Looks for debug files in these folders, by build id.
    pub fn new(debug_folders: Vec<PathBuf>) -> ProfileNames {
        ProfileNames { debug_folders, files: HashMap::new() }
    }

    /// The text of callgrind with a name in the place of each bare address.
    pub fn put_into(&mut self, text: &str) -> String {
        let mut objects: HashMap<&str, &str> = HashMap::new();
        let (mut object, mut called) = ("", None);
        let mut named = String::with_capacity(text.len());
        for line in text.lines() {
            let (key, value) = line.split_once('=').unwrap_or((line, ""));
            match key {
                "ob" => object = known(&mut objects, value),
                "cob" => called = Some(known(&mut objects, value)),
                _ => {}
            }
            let of = match key {
                "fn" => Some(object),
                // Without an object of its own, a called function is in that of its caller.
                "cfn" => Some(called.take().unwrap_or(object)),
                _ => None,
            };
            match of.and_then(|object| self.name(object, value)) {
                Some(name) => named.extend([key, "=", &name]),
                None => named.push_str(line),
            }
            named.push('\n');
        }
        named
    }

    /// `(12) 0x00051234` with the name of the function at that address; `None` if it has a name.
    fn name(&mut self, object: &str, value: &str) -> Option<String> {
        let (number, name) = match value.strip_prefix('(').and_then(|rest| rest.split_once(") ")) {
            Some((number, name)) => (format!("({number}) "), name),
            None => (String::new(), value),
        };
        let address = u64::from_str_radix(name.strip_prefix("0x")?, 16).ok()?;
        if !Path::new(object).is_absolute() {
            return None;
        }
        if !self.files.contains_key(object) {
            // A file that is gone, or that is no file, leaves the address as it is.
            let symbols = Symbols::read(Path::new(object), &self.debug_folders).ok()?;
            self.files.insert(object.to_owned(), symbols);
        }
        Some(format!("{number}{}", self.files.get(object)?.name(address)))
    }
}

/// The file that `(3) /bin/db` names and `(3)` means from then on.
fn known<'t>(objects: &mut HashMap<&'t str, &'t str>, value: &'t str) -> &'t str {
    match value.split_once(") ") {
        Some((number, name)) => {
            objects.insert(number, name);
            name
        }
        None => objects.get(value.trim_end_matches(')')).copied().unwrap_or(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_named_by_their_own_file() {
        let folder = tempfile::tempdir().unwrap();
        let [db, lib] = ["db", "lib.so"].map(|name| folder.path().join(name));
        for file in [&db, &lib] {
            std::fs::write(file, "no functions").unwrap();
        }
        let (db, lib) = (db.display(), lib.display());
        let text = format!(
            "events: Ir\n\nob=(1) {db}\nfl=(1) ???\nfn=(1) 0x00001230\n5 7\ncob=(2) {lib}\n\
             cfn=(2) 0x0000000000000040\ncalls=1 0\n0 9\ncfn=(3) 0x50\ncalls=1 0\n0 1\n\
             ob=(2)\nfn=(2)\n0 9\nfn=(4) main\n1 1\ncob=(1)\ncfn=(5) 0x10\ncalls=1 0\n0 1\n\
             ob=(3) ???\nfn=(6) 0x99\n0 1\ntotals: 18\n"
        );
        let named = ProfileNames::default().put_into(&text);
        let names: Vec<&str> = named.lines().filter(|line| line.contains("fn=")).collect();
        let expected = [
            "fn=(1) db+0x1230", "cfn=(2) lib.so+0x40", "cfn=(3) db+0x50", "fn=(2)", "fn=(4) main",
            "cfn=(5) db+0x10", "fn=(6) 0x99",
        ];
        assert_eq!(names, expected);
        let others = |text: &str| {
            text.lines().filter(|line| !line.contains("fn=")).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(others(&named), others(&text));
    }
}
