//! The rows of the load: each depends only on the seed and its key.

use crate::orders::driver::inputs::{last_name, non_uniform};
use crate::orders::{CUSTOMERS, DELIVERED, DISTRICTS, ITEMS};
use rqps_driver::part::{FieldRow, PartRows};
use rqps_model::datagen::distribution::{Permutation, printable};
use rqps_model::datagen::rng::{Rng, StreamKey};

/// The time of all loaded records.
const MOMENT: &[u8] = b"2026-01-01 00:00:00";

/// One of ten customers has bad credit; one of ten items and stocks is an original.
const TENTH: u64 = 10;

/// The rows of a part in a table: part 0 has the items, part w warehouse w.
pub(crate) fn rows_of(seed: u64, part: u32, table: &str) -> Option<Box<dyn PartRows>> {
    let rows = |count: u32, write: fn(&LoadedPlace, u32, &mut FieldRow)| {
        let key = StreamKey::new(seed, table).and(u64::from(part));
        let order_key = StreamKey::new(seed, "orders").and(u64::from(part));
        let place = LoadedPlace { warehouse: part, key, order_key, seed };
        Some(Box::new(CountedRows { place, next: 0, count, write }) as Box<dyn PartRows>)
    };
    match (part, table) {
        (0, "item") => rows(ITEMS, item),
        (0, _) | (_, "item") => None,
        (_, "warehouse") => rows(1, warehouse),
        (_, "district") => rows(DISTRICTS, district),
        (_, "stock") => rows(ITEMS, stock),
        (_, "customer") => rows(DISTRICTS * CUSTOMERS, customer),
        (_, "history") => rows(DISTRICTS * CUSTOMERS, history),
        (_, "orders") => rows(DISTRICTS * CUSTOMERS, order),
        (_, "new_order") => rows(DISTRICTS * (CUSTOMERS - DELIVERED), new_order),
        (_, "order_line") => {
            let key = StreamKey::new(seed, "order_line").and(u64::from(part));
            let order_key = StreamKey::new(seed, "orders").and(u64::from(part));
            let place = LoadedPlace { warehouse: part, key, order_key, seed };
            Some(Box::new(LoadedLines { place, order: 0, line: 0, lines: 0 }))
        }
        _ => None,
    }
}

/// The place of rows, and the source of their values.
struct LoadedPlace {
    warehouse: u32,
    key: StreamKey,
    order_key: StreamKey,
    seed: u64,
}

/// A table with a known number of rows.
struct CountedRows {
    place: LoadedPlace,
    next: u32,
    count: u32,
    write: fn(&LoadedPlace, u32, &mut FieldRow),
}

impl PartRows for CountedRows {
    fn next(&mut self, row: &mut FieldRow) -> bool {
        if self.next == self.count {
            return false;
        }
        (self.write)(&self.place, self.next, row);
        self.next += 1;
        true
    }
}

/// District and number of a row, both from 1, with `each` rows per district.
fn in_district(index: u32, each: u32) -> (u64, u32) {
    (u64::from(index / each + 1), index % each + 1)
}

fn text(rng: &mut Rng, row: &mut FieldRow, least: u64, most: u64) {
    let length = rng.uniform(least, most) as usize;
    row.written(|out| {
        let from = out.len();
        out.resize(from + length, 0);
        printable(rng, &mut out[from..]);
    });
}

/// Appends a number in units of its last digit, with `digits` decimals.
pub(crate) fn decimal(out: &mut Vec<u8>, number: i64, digits: u32) {
    use std::io::Write;
    let scale = 10u64.pow(digits);
    let (sign, number) = (if number < 0 { "-" } else { "" }, number.unsigned_abs());
    let (whole, part) = (number / scale, number % scale);
    // Writing to memory cannot fail.
    write!(out, "{sign}{whole}.{part:0width$}", width = digits as usize).unwrap_or(());
}

fn money(row: &mut FieldRow, cents: i64) {
    row.written(|out| decimal(out, cents, 2));
}

/// Adds a rate of 0 to `most` ten-thousandths.
fn share(rng: &mut Rng, row: &mut FieldRow, most: u64) {
    let parts = rng.uniform(0, most) as i64;
    row.written(|out| decimal(out, parts, 4));
}

/// Adds streets, city, state and zip code.
fn address(rng: &mut Rng, row: &mut FieldRow) {
    for _ in 0..3 {
        text(rng, row, 10, 20);
    }
    row.written(|out| out.extend([rng.below(26), rng.below(26)].map(|n| b'A' + n as u8)));
    let mut zip = *b"000011111";
    rng.digits(&mut zip[..4]);
    row.text(&zip);
}

/// Adds a text; one of ten contains ORIGINAL.
fn original(rng: &mut Rng, row: &mut FieldRow) {
    const WORD: &[u8] = b"ORIGINAL";
    let is_original = rng.below(TENTH) == 0;
    let length = rng.uniform(26, 50) as usize;
    let at = rng.below((length - WORD.len()) as u64) as usize;
    row.written(|out| {
        let from = out.len();
        out.resize(from + length, 0);
        printable(rng, &mut out[from..]);
        if is_original {
            out[from + at..from + at + WORD.len()].copy_from_slice(WORD);
        }
    });
}

fn item(place: &LoadedPlace, index: u32, row: &mut FieldRow) {
    let mut rng = place.key.at(u64::from(index));
    row.number(u64::from(index) + 1);
    row.number(rng.uniform(1, 10_000));
    text(&mut rng, row, 14, 24);
    money(row, rng.uniform(100, 10_000) as i64);
    original(&mut rng, row);
}

fn warehouse(place: &LoadedPlace, _: u32, row: &mut FieldRow) {
    let mut rng = place.key.at(0);
    row.number(u64::from(place.warehouse));
    text(&mut rng, row, 6, 10);
    address(&mut rng, row);
    share(&mut rng, row, 2000);
    money(row, 30_000_000);
}

fn district(place: &LoadedPlace, index: u32, row: &mut FieldRow) {
    let mut rng = place.key.at(u64::from(index));
    row.number(u64::from(place.warehouse));
    row.number(u64::from(index) + 1);
    text(&mut rng, row, 6, 10);
    address(&mut rng, row);
    share(&mut rng, row, 2000);
    money(row, 3_000_000);
    row.number(u64::from(CUSTOMERS) + 1);
}

fn stock(place: &LoadedPlace, index: u32, row: &mut FieldRow) {
    let mut rng = place.key.at(u64::from(index));
    row.number(u64::from(place.warehouse));
    row.number(u64::from(index) + 1);
    row.number(rng.uniform(10, 100));
    for _ in 0..DISTRICTS {
        text(&mut rng, row, 24, 24);
    }
    for _ in 0..3 {
        row.number(0);
    }
    original(&mut rng, row);
}

fn customer(place: &LoadedPlace, index: u32, row: &mut FieldRow) {
    let mut rng = place.key.at(u64::from(index));
    let (district, customer) = in_district(index, CUSTOMERS);
    row.number(u64::from(place.warehouse));
    row.number(district);
    row.number(u64::from(customer));
    text(&mut rng, row, 8, 16);
    row.text(b"OE");
    // The first thousand have each name once; the others have names drawn as in the run.
    let name = match customer {
        1..=1000 => u64::from(customer) - 1,
        _ => non_uniform(&mut rng, 255, 0, 999),
    };
    row.written(|out| last_name(out, name));
    address(&mut rng, row);
    let mut phone = [0; 16];
    rng.digits(&mut phone);
    row.text(&phone);
    row.text(MOMENT);
    row.text(if rng.below(TENTH) == 0 { b"BC" } else { b"GC" });
    money(row, 5_000_000);
    share(&mut rng, row, 5000);
    money(row, -1000);
    money(row, 1000);
    row.number(1);
    row.number(0);
    text(&mut rng, row, 300, 500);
}

fn history(place: &LoadedPlace, index: u32, row: &mut FieldRow) {
    let mut rng = place.key.at(u64::from(index));
    let (district, customer) = in_district(index, CUSTOMERS);
    let warehouse = u64::from(place.warehouse);
    row.number(u64::from(customer));
    for number in [district, warehouse, district, warehouse] {
        row.number(number);
    }
    row.text(MOMENT);
    money(row, 1000);
    text(&mut rng, row, 12, 24);
}

/// Number of lines of an order.
fn lines_of(place: &LoadedPlace, index: u32) -> u32 {
    place.order_key.at(u64::from(index)).uniform(5, 15) as u32
}

fn order(place: &LoadedPlace, index: u32, row: &mut FieldRow) {
    let mut rng = place.order_key.at(u64::from(index));
    let lines = rng.uniform(5, 15);
    let (district, order) = in_district(index, CUSTOMERS);
    // Each customer has one order.
    let key = Rng::stream(place.seed, "customers", u64::from(place.warehouse) << 8 | district);
    let customers = Permutation::new(u64::from(CUSTOMERS), key.clone().next_u64());
    row.number(u64::from(place.warehouse));
    row.number(district);
    row.number(u64::from(order));
    row.number(customers.apply(u64::from(order) - 1) + 1);
    row.text(MOMENT);
    if order <= DELIVERED {
        row.number(rng.uniform(1, 10))
    } else {
        row.null()
    }
    row.number(lines);
    row.number(1);
}

fn new_order(place: &LoadedPlace, index: u32, row: &mut FieldRow) {
    let (district, number) = in_district(index, CUSTOMERS - DELIVERED);
    row.number(u64::from(place.warehouse));
    row.number(district);
    row.number(u64::from(DELIVERED + number));
}

/// The lines of all orders of a warehouse.
struct LoadedLines {
    place: LoadedPlace,
    /// The current order, from 0; its lines written so far, and all its lines.
    order: u32,
    line: u32,
    lines: u32,
}

impl PartRows for LoadedLines {
    fn next(&mut self, row: &mut FieldRow) -> bool {
        if self.line == self.lines {
            if self.lines > 0 {
                self.order += 1;
            }
            if self.order == DISTRICTS * CUSTOMERS {
                return false;
            }
            (self.line, self.lines) = (0, lines_of(&self.place, self.order));
        }
        self.line += 1;
        let (district, order) = in_district(self.order, CUSTOMERS);
        let mut rng = self.place.key.at(u64::from(self.order) << 8 | u64::from(self.line));
        let warehouse = u64::from(self.place.warehouse);
        row.number(warehouse);
        row.number(district);
        row.number(u64::from(order));
        row.number(u64::from(self.line));
        row.number(rng.uniform(1, u64::from(ITEMS)));
        row.number(warehouse);
        let is_delivered = order <= DELIVERED;
        if is_delivered {
            row.text(MOMENT)
        } else {
            row.null()
        }
        row.number(5);
        money(row, if is_delivered { 0 } else { rng.uniform(1, 999_999) as i64 });
        text(&mut rng, row, 24, 24);
        true
    }
}
