//! Rows of the tables sbtest1 … sbtestT. A row depends only on seed, table and id, so a load may be
//! split in any way.

pub use crate::benchmarks::sysbench::schema::{C_LEN, PAD_LEN};
use crate::datagen::rng::StreamKey;

/// One row without its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SbtestRow {
    /// Uniform in 1..=rows.
    pub k: u64,
    /// ASCII.
    pub c: [u8; C_LEN],
    /// ASCII.
    pub pad: [u8; PAD_LEN],
}

impl Default for SbtestRow {
    fn default() -> SbtestRow {
        SbtestRow { k: 0, c: [0; C_LEN], pad: [0; PAD_LEN] }
    }
}

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

    /// Writes the row with this id into `row`. Allocates nothing.
    #[inline]
    pub fn row(&self, id: u64, row: &mut SbtestRow) {
        let mut rng = self.key.at(id);
        row.k = rng.uniform(1, self.rows);
        rng.digit_groups(&mut row.c);
        rng.digit_groups(&mut row.pad);
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

    /// Appends the row with this id as a line of COPY … FROM STDIN in text format: `id k c pad`
    /// with tabs between. Digits and `-` need no escapes.
    pub fn copy_line(&self, out: &mut Vec<u8>, id: u64) {
        let mut row = SbtestRow::default();
        self.row(id, &mut row);
        append_number(out, id);
        out.push(b'\t');
        append_number(out, row.k);
        out.push(b'\t');
        out.extend_from_slice(&row.c);
        out.push(b'\t');
        out.extend_from_slice(&row.pad);
        out.push(b'\n');
    }

    /// Appends the row with this id as a tuple of a multi-row INSERT, `(id,k,'c','pad')`, without a
    /// comma after it.
    pub fn insert_tuple(&self, out: &mut Vec<u8>, id: u64) {
        let mut row = SbtestRow::default();
        self.row(id, &mut row);
        out.push(b'(');
        append_number(out, id);
        out.push(b',');
        append_number(out, row.k);
        out.extend_from_slice(b",'");
        out.extend_from_slice(&row.c);
        out.extend_from_slice(b"','");
        out.extend_from_slice(&row.pad);
        out.extend_from_slice(b"')");
    }
}

/// The row with this id in table `table` (from 1) of `rows` rows. For many rows, keep a
/// [`SbtestTable`].
pub fn row(seed: u64, table: u32, id: u64, rows: u64, row: &mut SbtestRow) {
    SbtestTable::new(seed, table, rows).row(id, row);
}

/// Appends `number` in decimal. The standard library's formatting costs as much as the rest of the
/// row.
fn append_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(table: u32, id: u64) -> String {
        let mut out = Vec::new();
        SbtestTable::new(1, table, 1000).copy_line(&mut out, id);
        String::from_utf8(out).unwrap()
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
    fn a_tuple_says_the_same_as_a_line() {
        for id in [1, 9, 10, 99, 100, 12_345, 2_147_483_647] {
            let mut tuple = Vec::new();
            SbtestTable::new(1, 3, 1000).insert_tuple(&mut tuple, id);
            let line = text(3, id);
            let fields: Vec<&str> = line.trim_end().split('\t').collect();
            let want = format!("({id},{},'{}','{}')", fields[1], fields[2], fields[3]);
            assert_eq!(String::from_utf8(tuple).unwrap(), want);
            assert_eq!((fields[2].len(), fields[3].len()), (C_LEN, PAD_LEN));
        }
    }

    #[test]
    fn rows_do_not_depend_on_the_split_of_a_load() {
        let table = SbtestTable::new(9, 1, 1000);
        let chunk = |from: u64, to: u64| {
            let mut out = Vec::new();
            (from..=to).for_each(|id| table.copy_line(&mut out, id));
            out
        };
        let whole = chunk(1, 1000);
        let parts = [chunk(1, 333), chunk(334, 400), chunk(401, 1000)].concat();
        assert!(whole == parts);
        let mut one = SbtestRow::default();
        row(9, 1, 500, 1000, &mut one);
        let mut other = SbtestRow::default();
        table.row(500, &mut other);
        assert_eq!(one, other);
    }

    #[test]
    fn k_is_uniform_over_the_rows() {
        let table = SbtestTable::new(1, 1, 20);
        let mut counts = [0u64; 20];
        let mut row = SbtestRow::default();
        for id in 1..=20_000 {
            table.row(id, &mut row);
            counts[row.k as usize - 1] += 1;
        }
        assert!(crate::stats::goodness_of_fit(&counts, &[1.0; 20]) > 1e-5);
    }

    #[test]
    fn numbers_are_those_of_format() {
        for number in [0, 7, 10, 99, 1_000_000, u64::MAX] {
            let mut out = Vec::new();
            append_number(&mut out, number);
            assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
    }
}
