//! Measures the user CPU time per row for making and encoding batches of the Insert Benchmark,
//! without a server: `cargo bench --bench insert_generation`. The limit is 0.5 µs per row with 100
//! rows per batch.

#![allow(clippy::print_stdout, reason = "the figures are the point")]

use std::hint::black_box;

use rqps_bench_insert::rows::Rows;
use rqps_host::tree::own_cpu;
use rqps_model::insert::PriceKind;

/// Rows per measurement: about a second at the limit.
const ROWS: u32 = 2_000_000;
/// The best of these rounds counts, because the machine may be busy.
const ROUNDS: u32 = 5;

fn main() {
    for price in [PriceKind::Whole, PriceKind::Correlated] {
        for rows_per_batch in [5, 50, 100] {
            let best = (0..ROUNDS).map(|round| measure(price, rows_per_batch, round));
            let best = best.fold(f64::INFINITY, f64::min);
            println!("{price:?}\t{rows_per_batch} rows/batch\t{best:.4} us of user CPU per row");
        }
    }
}

/// User CPU time per row, microseconds.
fn measure(price: PriceKind, rows_per_batch: u32, round: u32) -> f64 {
    let mut rows = Rows::new(u64::from(round), 0, price);
    let mut text = Vec::with_capacity(16 << 10);
    let mut packet = Vec::with_capacity(16 << 10);
    let time = b"2026-01-31 08:05:09";
    let before = own_cpu();
    for _ in 0..ROWS / rows_per_batch {
        text.clear();
        text.extend_from_slice(b"INSERT INTO pi1 (dateandtime,cashregisterid,customerid,");
        text.extend_from_slice(b"productid,price,data) VALUES ");
        for row in 0..rows_per_batch {
            if row > 0 {
                text.push(b',');
            }
            rows.append_tuple(&mut text, time);
        }
        // The session's work on it: a look at its bytes, and a copy behind a header.
        let sql = std::str::from_utf8(&text).unwrap_or_default();
        packet.clear();
        packet.extend_from_slice(&[0; 5]);
        packet.extend_from_slice(sql.as_bytes());
        black_box(&packet);
    }
    own_cpu().since(before).user_us / f64::from(ROWS)
}
