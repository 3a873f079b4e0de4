//! Rows and query parameters of the Insert Benchmark (tables pi1, pi2 …): uniform columns without a
//! relation to each other, and a filler whose tail is random.
//!
//! A row costs some tens of nanoseconds and no memory: numbers are spelled from a table of digits,
//! and random characters come from the bits of one random integer. The published client cuts them
//! out of 4 MiB of base64 at a uniform offset, which is the same distribution.

use rqps_model::datagen::rng::Rng;
use rqps_model::insert::PriceKind;

/// Values of cashregisterid: 0..1000.
pub const CASH_REGISTERS: u64 = 1_000;
/// Values of productid: 0..10000.
pub const PRODUCTS: u64 = 10_000;
/// Values of customerid: 0..100000.
pub const CUSTOMERS: u64 = 100_000;
/// The largest price is below this, in whole units.
pub const MAX_PRICE: u64 = 500;
/// Bytes of a date and time: `2026-01-31 08:05:09`.
pub const TIME_LEN: usize = 19;

/// Shortest and longest filler of the standard runs, bytes.
const DATA_LENGTHS: (u64, u64) = (10, 20);
/// Bytes of the longest filler.
const DATA_MAX: usize = 20;
/// The random characters: those of base64.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The rows of one client in order.
#[derive(Clone, Debug)]
pub struct Rows {
    rng: Rng,
    price: PriceKind,
}

/// One row without its key and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PurchaseRow {
    /// In 0..1000.
    pub cash_register: u64,
    /// In 0..10000.
    pub product: u64,
    /// In 0..100000.
    pub customer: u64,
    /// In hundredths of the unit.
    pub price: u64,
    data: [u8; DATA_MAX],
    data_length: usize,
}

impl PurchaseRow {
    /// The filler.
    pub fn data(&self) -> &[u8] {
        &self.data[..self.data_length]
    }
}

impl Rows {
    /// The rows of client `client` in the step with `seed`.
    pub fn new(seed: u64, client: u32, price: PriceKind) -> Rows {
        Rows { rng: Rng::stream(seed, "iibench rows", u64::from(client)), price }
    }

    /// Draws the next row in the published order: cash register, product, customer, price, length,
    /// random characters.
    #[inline]
    pub fn next_row(&mut self) -> PurchaseRow {
        let rng = &mut self.rng;
        let cash_register = rng.below(CASH_REGISTERS);
        let product = rng.below(PRODUCTS);
        let customer = rng.below(CUSTOMERS);
        let price = price(rng, self.price, customer);
        let (shortest, longest) = DATA_LENGTHS;
        let length = rng.uniform(shortest, longest) as usize;
        let mut data = [b'a'; DATA_MAX];
        let mut bits = rng.next_u64();
        for place in &mut data[length - random_length(length)..length] {
            *place = ALPHABET[(bits & 63) as usize];
            bits >>= 6;
        }
        PurchaseRow { cash_register, product, customer, price, data, data_length: length }
    }

    /// Appends the next row as a tuple of a multi-row INSERT, without a comma after it:
    /// `('2026-01-31 08:05:09',12,34567,890,123.00,'aaaaaaXyZ')` for the columns dateandtime,
    /// cashregisterid, customerid, productid, price, data.
    #[inline]
    pub fn append_tuple(&mut self, out: &mut Vec<u8>, time: &[u8; TIME_LEN]) {
        let row = self.next_row();
        let mut text = [0; 96];
        let mut at = 0;
        put(&mut text, &mut at, b"('");
        put(&mut text, &mut at, time);
        put(&mut text, &mut at, b"',");
        for number in [row.cash_register, row.customer, row.product] {
            put_number(&mut text, &mut at, number);
            put(&mut text, &mut at, b",");
        }
        put_price(&mut text, &mut at, row.price);
        put(&mut text, &mut at, b",'");
        put(&mut text, &mut at, row.data());
        put(&mut text, &mut at, b"')");
        out.extend_from_slice(&text[..at]);
    }
}

/// The number of random characters in a filler of `length`: 50 per cent of three quarters.
fn random_length(length: usize) -> usize {
    // floor(length × 0.75 × 0.50)
    length * 3 / 8
}

/// Draws a price in hundredths.
#[inline]
fn price(rng: &mut Rng, price: PriceKind, customer: u64) -> u64 {
    match price {
        PriceKind::Whole => rng.below(MAX_PRICE) * 100,
        PriceKind::Correlated => (rng.unit() * MAX_PRICE as f64 + customer as f64).round() as u64,
    }
}

/// Draws a price for a query, in hundredths, like that of a row.
pub fn query_price(rng: &mut Rng, kind: PriceKind) -> u64 {
    let customer = match kind {
        PriceKind::Whole => 0,
        PriceKind::Correlated => rng.below(CUSTOMERS),
    };
    price(rng, kind, customer)
}

#[inline]
fn put(text: &mut [u8; 96], at: &mut usize, bytes: &[u8]) {
    text[*at..*at + bytes.len()].copy_from_slice(bytes);
    *at += bytes.len();
}

/// Writes a number below 1,000,000.
#[inline]
fn put_number(text: &mut [u8; 96], at: &mut usize, number: u64) {
    let mut digits = [0; 6];
    let mut first = digits.len();
    let mut rest = number;
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 || first == 0 {
            break;
        }
    }
    put(text, at, &digits[first..]);
}

#[inline]
fn put_price(text: &mut [u8; 96], at: &mut usize, hundredths: u64) {
    put_number(text, at, hundredths / 100);
    let cents = hundredths % 100;
    put(text, at, &[b'.', b'0' + (cents / 10) as u8, b'0' + (cents % 10) as u8]);
}

/// Appends a number in decimal digits.
#[inline]
pub fn append_number(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    let mut first = digits.len();
    let mut rest = number;
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[first..]);
}

/// Appends a price in hundredths as `123.45`.
pub fn append_price(out: &mut Vec<u8>, hundredths: u64) {
    append_number(out, hundredths / 100);
    let cents = hundredths % 100;
    out.extend_from_slice(&[b'.', b'0' + (cents / 10) as u8, b'0' + (cents % 10) as u8]);
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: &[u8; TIME_LEN] = b"2026-01-31 08:05:09";

    const GOLDEN_WHOLE: [&str; 3] = [
        "('2026-01-31 08:05:09',887,75577,9734,208.00,'aaaaaaaaskPg')",
        "('2026-01-31 08:05:09',683,76374,2222,358.00,'aaaaaaaaa9p25')",
        "('2026-01-31 08:05:09',139,28838,6501,316.00,'aaaaaaaaaPUaYm')",
    ];
    const GOLDEN_CORRELATED: [&str; 3] = [
        "('2026-01-31 08:05:09',374,64983,9203,654.46,'aaaaaaaaapouu')",
        "('2026-01-31 08:05:09',611,58808,3863,591.72,'aaaaaaaaaaB85qFk')",
        "('2026-01-31 08:05:09',934,2164,2415,26.20,'aaaaaaaaaW2BU')",
    ];

    fn tuples(seed: u64, client: u32, price: PriceKind, count: usize) -> Vec<String> {
        let mut rows = Rows::new(seed, client, price);
        let one = |_| {
            let mut out = Vec::new();
            rows.append_tuple(&mut out, TIME);
            String::from_utf8(out).unwrap()
        };
        (0..count).map(one).collect()
    }

    // An independent program in another language made the golden values.

    #[test]
    fn rows_keep_their_text() {
        assert_eq!(tuples(42, 0, PriceKind::Whole, 3), GOLDEN_WHOLE);
        assert_eq!(tuples(42, 1, PriceKind::Correlated, 3), GOLDEN_CORRELATED);
    }

    #[test]
    fn the_random_tail_has_the_published_length() {
        let want = [3, 4, 4, 4, 5, 5, 6, 6, 6, 7, 7];
        for (length, want) in (10..=20).zip(want) {
            assert_eq!(random_length(length), want, "{length}");
        }
        let mut rows = Rows::new(1, 0, PriceKind::Whole);
        for _ in 0..1000 {
            let row = rows.next_row();
            let length = row.data().len();
            let fixed = length - random_length(length);
            assert!((10..=20).contains(&length));
            assert!(row.data()[..fixed].iter().all(|byte| *byte == b'a'), "{row:?}");
            assert!(row.data()[fixed..].iter().all(|byte| ALPHABET.contains(byte)), "{row:?}");
        }
    }

    #[test]
    fn columns_are_uniform_and_prices_have_their_form() {
        let mut rows = Rows::new(3, 0, PriceKind::Whole);
        let (mut registers, mut products) = (vec![0u64; 1000], vec![0u64; 100]);
        let (mut customers, mut prices) = (vec![0u64; 100], vec![0u64; 500]);
        for _ in 0..200_000 {
            let row = rows.next_row();
            registers[row.cash_register as usize] += 1;
            products[row.product as usize / 100] += 1;
            customers[row.customer as usize / 1000] += 1;
            assert_eq!(row.price % 100, 0);
            prices[row.price as usize / 100] += 1;
        }
        for counts in [registers, products, customers, prices] {
            let expected = vec![1.0; counts.len()];
            assert!(rqps_stats::goodness_of_fit(&counts, &expected) > 1e-5);
        }
        let mut rows = Rows::new(3, 0, PriceKind::Correlated);
        for _ in 0..10_000 {
            let row = rows.next_row();
            assert!((row.customer..=row.customer + 500).contains(&row.price), "{row:?}");
        }
    }

    #[test]
    fn clients_and_seeds_have_rows_of_their_own() {
        let first = tuples(7, 0, PriceKind::Whole, 50);
        assert_eq!(first, tuples(7, 0, PriceKind::Whole, 50));
        assert_ne!(first, tuples(7, 1, PriceKind::Whole, 50));
        assert_ne!(first, tuples(8, 0, PriceKind::Whole, 50));
    }

    #[test]
    fn numbers_are_those_of_format() {
        for number in [0, 7, 10, 99_999, 100_499, u64::MAX] {
            let mut out = Vec::new();
            append_number(&mut out, number);
            assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
        let mut out = Vec::new();
        append_price(&mut out, 100_407);
        assert_eq!(out, b"1004.07");
    }
}
