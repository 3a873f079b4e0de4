//! Names and rows of the tables sbtest1 … sbtestT. A row depends only on seed, table and id, so a load may be
//! split in any way.

use rqps_model::benchmark::Workload;
use rqps_model::datagen::rng::StreamKey;
use rqps_model::dialect::Dialect;

/// Bytes of column c: ten groups of eleven digits joined by `-`.
pub const C_LEN: usize = 119;
/// Bytes of column pad: five groups of eleven digits joined by `-`.
pub const PAD_LEN: usize = 59;

/// The rows of one table.
#[derive(Clone, Copy, Debug)]
pub struct SbtestTable {
    key: StreamKey,
    rows: u64,
}

impl SbtestTable {
    /// Table `table` (from 1) with ids 1..=`rows`.
    pub fn new(seed: u64, table: u32, rows: u64) -> SbtestTable {
        SbtestTable { key: StreamKey::new(seed, "sbtest").and(u64::from(table)), rows: rows.max(1) }
    }

    /// Writes the texts c and pad of the row with this id into `text` and returns its k. Allocates
    /// nothing.
    #[inline]
    pub fn texts(&self, id: u64, text: &mut [u8; C_LEN + PAD_LEN]) -> u64 {
        let mut rng = self.key.at(id);
        let k = rng.uniform(1, self.rows);
        let (c, pad) = text.split_at_mut(C_LEN);
        rng.digit_groups(c);
        rng.digit_groups(pad);
        k
    }
}

/// Names of all tables, and of indexes that share a name space with tables.
pub(super) fn names_made(dialect: Dialect, workload: &Workload) -> Vec<String> {
    let of_table = |table: u32| match dialect {
        Dialect::Mysql => vec![format!("sbtest{table}")],
        _ => vec![format!("sbtest{table}"), format!("k_{table}")],
    };
    (1..=workload.tables).flat_map(of_table).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(table: u32, id: u64) -> String {
        let mut texts = [0; C_LEN + PAD_LEN];
        let k = SbtestTable::new(1, table, 1000).texts(id, &mut texts);
        let (c, pad) = texts.split_at(C_LEN);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        format!("{id}\t{k}\t{}\t{}\n", text(c), text(pad))
    }

    #[test]
    fn rows_keep_their_text() {
        // From an independent program in another language.
        assert_eq!(
            text(1, 1),
            "1\t828\t\
             17082072816-05315275885-98975208171-12867295065-17722050019-\
             19504870913-67825309465-39968673758-76370017692-80316196777\t\
             36103809696-29772566121-51982980830-23298199492-30675610922\n"
        );
        assert_eq!(
            text(2, 1),
            "1\t934\t\
             74002573416-59537545985-79291995735-45195029203-70571264600-\
             99454134948-87185158969-36886660721-25171942479-42072172834\t\
             60381252003-38835415599-68471184535-20997676947-86941464682\n"
        );
        assert!(text(1, 1000).starts_with("1000\t799\t55296161130-29988064866-"));
    }

    #[test]
    fn k_is_uniform_over_the_rows() {
        let table = SbtestTable::new(1, 1, 20);
        let mut counts = [0u64; 20];
        let mut texts = [0; C_LEN + PAD_LEN];
        for id in 1..=20_000 {
            counts[table.texts(id, &mut texts) as usize - 1] += 1;
        }
        assert!(rqps_stats::goodness_of_fit(&counts, &[1.0; 20]) > 1e-5);
    }
}
