//! The settings that a server said it had, all defaults included: files in `logs/` of a run.

use std::collections::BTreeMap;
use std::path::Path;

use crate::{ResultsError, files};
use rqps_model::run::Run;

/// One of these is in `logs/`, by DBMS. Their first two columns are name and value, under a head.
const FILES: [&str; 3] = ["pg_settings.tsv", "variables.tsv", "pragmas.tsv"];

/// The options of RocksDB, as the library writes them.
const OPTIONS: &str = "rocksdb-options.ini";

/// Name → value of the settings that the DBMS of a run had; nothing where none were kept.
pub fn settings_of(run: &Run) -> Result<BTreeMap<String, String>, ResultsError> {
    let logs = Path::new(&run.folder).join("logs");
    let options = logs.join(OPTIONS);
    if options.is_file() {
        return Ok(of_sections(&files::text(&options)?));
    }
    let found = FILES.iter().map(|name| logs.join(name)).find(|path| path.is_file());
    match found {
        Some(path) => Ok(settings(&files::text(&path)?)),
        None => Ok(BTreeMap::new()),
    }
}

fn settings(text: &str) -> BTreeMap<String, String> {
    let row = |line: &str| {
        let mut cells = line.split('\t');
        let name = cells.next().filter(|name| !name.is_empty())?;
        Some((name.to_owned(), cells.next().unwrap_or_default().to_owned()))
    };
    text.lines().skip(1).filter_map(row).collect()
}

/// Options by section; those of tables have the beginning that configs give them.
fn of_sections(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut prefix = "";
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            prefix = if section.starts_with("TableOptions") { "table." } else { "" };
        } else if let Some((name, value)) = line.split_once('=') {
            found.insert(format!("{prefix}{name}"), value.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_tables_have_their_beginning() {
        let found = of_sections("# x\n[DBOptions]\n  a=1\n[TableOptions/B \"d\"]\n  a={b=2;c=3}\n");
        let found: Vec<(&str, &str)> =
            found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(found, [("a", "1"), ("table.a", "{b=2;c=3}")]);
    }

    #[test]
    fn names_and_values_are_the_first_columns() {
        let found = settings("name\tsetting\tunit\tsource\nwork_mem\t4096\tkB\tdefault\nempty\n");
        let found: Vec<(&str, &str)> =
            found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(found, [("empty", ""), ("work_mem", "4096")]);
    }
}
