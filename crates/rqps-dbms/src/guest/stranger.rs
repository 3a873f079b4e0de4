//! Existing objects with a name that the benchmark needs, and whether they may be dropped.

use crate::guest::catalogue::Relation;
use rqps_model::escape;

/// Something that has a name which the benchmark needs.
pub(super) struct ExternalTable {
    pub(super) relation: Relation,
    /// The maker, if it is another plan's table.
    pub(super) maker: Option<String>,
}

impl ExternalTable {
    pub(super) fn is_replaceable(&self) -> bool {
        self.relation.kind == "table" && self.relation.tie.is_empty()
    }

    pub(super) fn words(&self) -> String {
        let Relation { name, kind, of_table, tie, .. } = &self.relation;
        let of_table = if of_table.is_empty() { String::new() } else { format!(" of {of_table}") };
        let more = [tie.as_str(), self.maker.as_deref().unwrap_or_default()];
        let more: Vec<&str> = more.into_iter().filter(|text| !text.is_empty()).collect();
        let more = if more.is_empty() { String::new() } else { format!(": {}", more.join("; ")) };
        // Whoever made it chose its name.
        escape::line(&format!("{kind} {name}{of_table}{more}")).into_owned()
    }
}

/// The first names and how many there are more.
pub(super) fn shortened(names: &[String]) -> String {
    const MOST: usize = 4;
    match names.len() {
        0..=MOST => names.join(", "),
        more => format!("{} and {} more", names[..MOST].join(", "), more - MOST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_way_is_named_with_the_reason() {
        let check = |kind: &str, tie: &str, maker: Option<&str>, words: &str, replaceable| {
            let relation = Relation {
                name: "items".to_owned(),
                kind: kind.to_owned(),
                comment: String::new(),
                of_table: if kind == "index" { "t".to_owned() } else { String::new() },
                tie: tie.to_owned(),
                is_own: true,
            };
            let stranger = ExternalTable { relation, maker: maker.map(str::to_owned) };
            assert_eq!(
                (stranger.words().as_str(), stranger.is_replaceable()),
                (words, replaceable)
            );
        };
        check("table", "", None, "table items", true);
        check(
            "table",
            "it is a partition of x",
            None,
            "table items: it is a partition of x",
            false,
        );
        check("table", "", Some("rqps made it"), "table items: rqps made it", true);
        check("view", "", None, "view items", false);
        check("index", "", None, "index items of t", false);
    }

    #[test]
    fn long_lists_of_names_are_shortened() {
        let names = |count: u32| (1..=count).map(|n| format!("t{n}")).collect::<Vec<_>>();
        assert_eq!(shortened(&names(4)), "t1, t2, t3, t4");
        assert_eq!(shortened(&names(6)), "t1, t2, t3, t4 and 2 more");
    }
}
