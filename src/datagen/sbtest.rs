//! Rows of the tables sbtest1 … sbtestT: a row depends on seed, table and id alone, so a load may
//! be split in any way and still makes the same data.

use crate::datagen::rng::StreamKey;

/// Bytes of column c: ten groups of eleven digits joined by `-`.
pub const C_LEN: usize = 119;
/// Bytes of column pad: five such groups.
pub const PAD_LEN: usize = 59;

/// One row but for its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Uniform in 1..=rows.
    pub k: u64,
    /// ASCII.
    pub c: [u8; C_LEN],
    /// ASCII.
    pub pad: [u8; PAD_LEN],
}

impl Default for Row {
    fn default() -> Row {
        Row { k: 0, c: [0; C_LEN], pad: [0; PAD_LEN] }
    }
}

/// The rows of one table.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    key: StreamKey,
    rows: u64,
}

impl Table {
    /// Table number `table` (from 1) with ids 1..=`rows`.
    pub fn new(seed: u64, table: u32, rows: u64) -> Table {
        Table { key: StreamKey::new(seed, "sbtest").and(u64::from(table)), rows: rows.max(1) }
    }

    /// Writes the row of `id` into `row`. Nothing is allocated.
    #[inline]
    pub fn row(&self, id: u64, row: &mut Row) {
        let mut rng = self.key.at(id);
        row.k = rng.uniform(1, self.rows);
        rng.digit_groups(&mut row.c);
        rng.digit_groups(&mut row.pad);
    }

    /// Appends the row of `id` as a line for COPY … FROM STDIN in text format: `id k c pad` with
    /// tabs between. Digits and `-` need no escapes.
    pub fn copy_line(&self, out: &mut Vec<u8>, id: u64) {
        let mut row = Row::default();
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

    /// Appends the row of `id` as a tuple of a multi-row INSERT, `(id,k,'c','pad')`, without a
    /// comma after it.
    pub fn insert_tuple(&self, out: &mut Vec<u8>, id: u64) {
        let mut row = Row::default();
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

/// The row of `id` in table `table` (from 1) of `rows` rows. For many rows, keep a [`Table`].
pub fn row(seed: u64, table: u32, id: u64, rows: u64, row: &mut Row) {
    Table::new(seed, table, rows).row(id, row);
}

/// Appends `number` in decimal. The formatting of the standard library costs as much as the rest of
/// the row.
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
