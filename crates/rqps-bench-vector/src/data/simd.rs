//! Inner loops of exact nearest-neighbour search: inner products of a few queries with a panel of
//! rows, by the widest instructions that this CPU has.
//!
//! A panel holds [`ROWS`] rows side by side, so that each lane of a register belongs to one row and
//! nothing is ever summed across lanes. Bytes are multiplied exactly, in 32-bit integers.

/// Rows of a panel.
pub const ROWS: usize = 64;
/// Queries of a tile.
pub const QUERIES: usize = 6;

/// Bytes that a cache moves at once.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// Inner products of a tile.
pub type Tile<T> = [[T; ROWS]; QUERIES];

/// The instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// AVX-512 with VNNI: four byte products a lane.
    Avx512,
    /// AVX2 with FMA.
    Avx2,
    /// Instructions that every CPU of the architecture has.
    Plain,
}

/// The best that this CPU has.
#[cfg(target_arch = "x86_64")]
pub fn instructions() -> Instructions {
    if is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vnni")
    {
        Instructions::Avx512
    } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        Instructions::Avx2
    } else {
        Instructions::Plain
    }
}

/// The best that this CPU has.
#[cfg(not(target_arch = "x86_64"))]
pub fn instructions() -> Instructions {
    Instructions::Plain
}

/// Four dimensions of the bytes of a panel: `0[4 * row + dimension]`.
#[repr(align(64))]
#[derive(Clone, Copy)]
pub struct ByteQuad(pub [u8; 4 * ROWS]);

/// One dimension of the floats of a panel.
#[repr(align(64))]
#[derive(Clone, Copy)]
pub struct FloatRow(pub [f32; ROWS]);

/// Four dimensions of the queries of a tile, each value less 128: VNNI multiplies unsigned bytes by
/// signed ones. Adding [`OFFSET`] × the sum of a row corrects the product.
pub type SignedQuads = [[i8; 4]; QUERIES];

/// The number that was subtracted from the values of [`SignedQuads`].
pub const OFFSET: i32 = 128;

/// Σ row × (query − 128) for all pairs of a tile: `panel[g]` and `queries[g]` are dimensions 4 g to
/// 4 g + 3. Exact for up to 2^16 dimensions.
pub fn bytes(by: Instructions, panel: &[ByteQuad], queries: &[SignedQuads], out: &mut Tile<i32>) {
    match by {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: these instructions come from `instructions`, which checks that the CPU has them.
        #[allow(unsafe_code)]
        Instructions::Avx512 if instructions() == by => unsafe {
            x86::bytes_avx512(panel, queries, out);
        },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: AVX-512 implies AVX2; the guard looked at the CPU.
        #[allow(unsafe_code)]
        Instructions::Avx2 if instructions() != Instructions::Plain => unsafe {
            x86::bytes_avx2(panel, queries, out);
        },
        _ => bytes_plain(panel, queries, out),
    }
}

/// Σ row × query for all pairs of a tile, in single precision.
pub fn floats(
    by: Instructions,
    panel: &[FloatRow],
    queries: &[[f32; QUERIES]],
    out: &mut Tile<f32>,
) {
    match by {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the guard looked at the CPU.
        #[allow(unsafe_code)]
        Instructions::Avx512 if instructions() == by => unsafe {
            x86::floats_avx512(panel, queries, out);
        },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: AVX-512 implies AVX2 and FMA; the guard looked at the CPU.
        #[allow(unsafe_code)]
        Instructions::Avx2 if instructions() != Instructions::Plain => unsafe {
            x86::floats_avx2(panel, queries, out);
        },
        _ => floats_plain(panel, queries, out),
    }
}

/// Σ (a − b)² of two vectors of bytes, which are equally long: exact for up to 2^16 dimensions.
pub fn squared_bytes(by: Instructions, a: &[u8], b: &[u8]) -> u32 {
    match by {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the guard looked at the CPU.
        #[allow(unsafe_code)]
        Instructions::Avx512 if instructions() == by => unsafe { x86::squared_bytes_avx512(a, b) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: AVX-512 implies AVX2; the guard looked at the CPU.
        #[allow(unsafe_code)]
        Instructions::Avx2 if instructions() != Instructions::Plain => unsafe {
            x86::squared_bytes_avx2(a, b)
        },
        _ => squared_bytes_plain(a, b),
    }
}

/// Asks for memory that will be read soon. What lies far apart is else waited for piece by piece.
#[cfg(target_arch = "x86_64")]
pub fn fetch(bytes: &[u8]) {
    for line in bytes.chunks(LINE) {
        // SAFETY: a hint, which reads nothing and cannot fault; every x86-64 has it.
        #[allow(unsafe_code)]
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
                line.as_ptr().cast(),
            );
        }
    }
}

/// Asks for memory that will be read soon: here nothing is known to do it with.
#[cfg(not(target_arch = "x86_64"))]
pub fn fetch(_: &[u8]) {}

fn squared_bytes_plain(a: &[u8], b: &[u8]) -> u32 {
    a.iter().zip(b).map(|(a, b)| u32::from(a.abs_diff(*b)).pow(2)).sum()
}

fn bytes_plain(panel: &[ByteQuad], queries: &[SignedQuads], out: &mut Tile<i32>) {
    *out = [[0; ROWS]; QUERIES];
    for (rows, queries) in panel.iter().zip(queries) {
        for (sums, query) in out.iter_mut().zip(queries) {
            let [a, b, c, d] = query.map(i32::from);
            for (sum, row) in sums.iter_mut().zip(rows.0.as_chunks::<4>().0) {
                let [p, q, r, s] = row.map(i32::from);
                *sum += a * p + b * q + c * r + d * s;
            }
        }
    }
}

fn floats_plain(panel: &[FloatRow], queries: &[[f32; QUERIES]], out: &mut Tile<f32>) {
    *out = [[0.0; ROWS]; QUERIES];
    for (rows, queries) in panel.iter().zip(queries) {
        for (sums, query) in out.iter_mut().zip(queries) {
            for (sum, row) in sums.iter_mut().zip(&rows.0) {
                *sum += query * row;
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86 {
    use std::arch::x86_64::*;

    use super::{ByteQuad, FloatRow, QUERIES, ROWS, SignedQuads, Tile};

    /// Registers of 16 lanes that a panel fills.
    const WIDE: usize = ROWS / 16;
    /// Rows that two registers of 8 lanes hold: with [`QUERIES`] twelve sums, which leaves four of
    /// the sixteen registers.
    const NARROW: usize = 16;

    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(super) fn bytes_avx512(panel: &[ByteQuad], queries: &[SignedQuads], out: &mut Tile<i32>) {
        let mut sums = [[_mm512_setzero_si512(); WIDE]; QUERIES];
        for (rows, queries) in panel.iter().zip(queries) {
            let at = rows.0.as_ptr();
            // SAFETY: the four loads cover just the 256 bytes of the array.
            let rows: [__m512i; WIDE] =
                std::array::from_fn(|j| unsafe { _mm512_loadu_si512(at.add(64 * j).cast()) });
            for (sums, query) in sums.iter_mut().zip(queries) {
                let query = _mm512_set1_epi32(i32::from_le_bytes(query.map(i8::cast_unsigned)));
                for (sum, row) in sums.iter_mut().zip(rows) {
                    *sum = _mm512_dpbusd_epi32(*sum, row, query);
                }
            }
        }
        for (out, sums) in out.iter_mut().zip(sums) {
            for (lanes, sum) in out.as_chunks_mut::<16>().0.iter_mut().zip(sums) {
                // SAFETY: 16 lanes of 32 bits.
                unsafe { _mm512_storeu_si512(lanes.as_mut_ptr().cast(), sum) };
            }
        }
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn bytes_avx2(panel: &[ByteQuad], queries: &[SignedQuads], out: &mut Tile<i32>) {
        let low = _mm256_set1_epi16(0xff);
        for part in 0..ROWS / NARROW {
            let mut sums = [[_mm256_setzero_si256(); 2]; QUERIES];
            for (rows, queries) in panel.iter().zip(queries) {
                // SAFETY: two loads within the 64 bytes of this part of the array.
                let rows: [__m256i; 2] = std::array::from_fn(|j| unsafe {
                    _mm256_loadu_si256(rows.0.as_ptr().add(64 * part + 32 * j).cast())
                });
                // Even and odd dimensions as 16-bit numbers.
                let even = rows.map(|row| _mm256_and_si256(row, low));
                let odd = rows.map(|row| _mm256_srli_epi16::<8>(row));
                for (sums, query) in sums.iter_mut().zip(queries) {
                    let [a, b, c, d] = query.map(i16::from);
                    let pair = |x: i16, y: i16| {
                        let bits = (i32::from(y) << 16) | i32::from(x.cast_unsigned());
                        _mm256_set1_epi32(bits)
                    };
                    let (ac, bd) = (pair(a, c), pair(b, d));
                    for (j, sum) in sums.iter_mut().enumerate() {
                        let four = _mm256_add_epi32(
                            _mm256_madd_epi16(even[j], ac),
                            _mm256_madd_epi16(odd[j], bd),
                        );
                        *sum = _mm256_add_epi32(*sum, four);
                    }
                }
            }
            for (out, sums) in out.iter_mut().zip(sums) {
                for (j, sum) in sums.into_iter().enumerate() {
                    let lanes = &mut out[NARROW * part + 8 * j..][..8];
                    // SAFETY: eight lanes of 32 bits.
                    unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), sum) };
                }
            }
        }
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn squared_bytes_avx2(a: &[u8], b: &[u8]) -> u32 {
        let ((a, rest_of_a), (b, rest_of_b)) = (a.as_chunks::<32>(), b.as_chunks::<32>());
        let zero = _mm256_setzero_si256();
        let mut sums = [zero; 2];
        for (a, b) in a.iter().zip(b) {
            // SAFETY: each array has just the 32 bytes of a load.
            let [a, b] = [a, b].map(|array| unsafe { _mm256_loadu_si256(array.as_ptr().cast()) });
            let apart = _mm256_sub_epi8(_mm256_max_epu8(a, b), _mm256_min_epu8(a, b));
            let halves = [_mm256_unpacklo_epi8(apart, zero), _mm256_unpackhi_epi8(apart, zero)];
            for (sum, half) in sums.iter_mut().zip(halves) {
                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(half, half));
            }
        }
        let mut lanes = [0u32; 8];
        let sum = _mm256_add_epi32(sums[0], sums[1]);
        // SAFETY: eight lanes of 32 bits.
        unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), sum) };
        lanes.iter().sum::<u32>() + super::squared_bytes_plain(rest_of_a, rest_of_b)
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(super) fn squared_bytes_avx512(a: &[u8], b: &[u8]) -> u32 {
        let ((a, rest_of_a), (b, rest_of_b)) = (a.as_chunks::<64>(), b.as_chunks::<64>());
        let zero = _mm512_setzero_si512();
        let mut sums = [zero; 2];
        for (a, b) in a.iter().zip(b) {
            // SAFETY: each array has just the 64 bytes of a load.
            let [a, b] = [a, b].map(|array| unsafe { _mm512_loadu_si512(array.as_ptr().cast()) });
            let apart = _mm512_sub_epi8(_mm512_max_epu8(a, b), _mm512_min_epu8(a, b));
            let halves = [_mm512_unpacklo_epi8(apart, zero), _mm512_unpackhi_epi8(apart, zero)];
            for (sum, half) in sums.iter_mut().zip(halves) {
                *sum = _mm512_dpwssd_epi32(*sum, half, half);
            }
        }
        // Lanes hold their bits; above 2^31 they count as unsigned.
        let sum = _mm512_reduce_add_epi32(_mm512_add_epi32(sums[0], sums[1]));
        sum.cast_unsigned() + super::squared_bytes_plain(rest_of_a, rest_of_b)
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn floats_avx512(
        panel: &[FloatRow],
        queries: &[[f32; QUERIES]],
        out: &mut Tile<f32>,
    ) {
        let mut sums = [[_mm512_setzero_ps(); WIDE]; QUERIES];
        for (rows, queries) in panel.iter().zip(queries) {
            let at = rows.0.as_ptr();
            // SAFETY: the four loads cover just the 64 numbers of the array.
            let rows: [__m512; WIDE] =
                std::array::from_fn(|j| unsafe { _mm512_loadu_ps(at.add(16 * j)) });
            for (sums, query) in sums.iter_mut().zip(queries) {
                let query = _mm512_set1_ps(*query);
                for (sum, row) in sums.iter_mut().zip(rows) {
                    *sum = _mm512_fmadd_ps(row, query, *sum);
                }
            }
        }
        for (out, sums) in out.iter_mut().zip(sums) {
            for (lanes, sum) in out.as_chunks_mut::<16>().0.iter_mut().zip(sums) {
                // SAFETY: 16 lanes of 32 bits.
                unsafe { _mm512_storeu_ps(lanes.as_mut_ptr(), sum) };
            }
        }
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn floats_avx2(panel: &[FloatRow], queries: &[[f32; QUERIES]], out: &mut Tile<f32>) {
        for part in 0..ROWS / NARROW {
            let mut sums = [[_mm256_setzero_ps(); 2]; QUERIES];
            for (rows, queries) in panel.iter().zip(queries) {
                // SAFETY: two loads within the 16 numbers of this part of the array.
                let rows: [__m256; 2] = std::array::from_fn(|j| unsafe {
                    _mm256_loadu_ps(rows.0.as_ptr().add(NARROW * part + 8 * j))
                });
                for (sums, query) in sums.iter_mut().zip(queries) {
                    let query = _mm256_set1_ps(*query);
                    for (sum, row) in sums.iter_mut().zip(rows) {
                        *sum = _mm256_fmadd_ps(row, query, *sum);
                    }
                }
            }
            for (out, sums) in out.iter_mut().zip(sums) {
                for (j, sum) in sums.into_iter().enumerate() {
                    let lanes = &mut out[NARROW * part + 8 * j..][..8];
                    // SAFETY: eight lanes of 32 bits.
                    unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), sum) };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Instructions; 3] = [Instructions::Avx512, Instructions::Avx2, Instructions::Plain];

    /// Values that walk over all bytes.
    fn value(seed: usize, place: usize) -> u8 {
        ((seed * 2_654_435_761 + place * 40_503 + (place >> 7) * 97) >> 3) as u8
    }

    #[test]
    fn products_of_bytes_are_exact_by_any_instructions() {
        const GROUPS: usize = 50;
        let panel: Vec<ByteQuad> =
            (0..GROUPS).map(|g| ByteQuad(std::array::from_fn(|i| value(g, i)))).collect();
        let queries: Vec<SignedQuads> = (0..GROUPS)
            .map(|g| {
                std::array::from_fn(|q| {
                    std::array::from_fn(|i| value(g + 99, 4 * q + i).cast_signed())
                })
            })
            .collect();
        for by in ALL {
            let mut out = [[0; ROWS]; QUERIES];
            bytes(by, &panel, &queries, &mut out);
            for (q, sums) in out.iter().enumerate() {
                for (row, sum) in sums.iter().enumerate() {
                    let products = panel.iter().zip(&queries).flat_map(|(rows, queries)| {
                        let row = &rows.0[4 * row..4 * row + 4];
                        row.iter().zip(queries[q]).map(|(a, b)| i32::from(*a) * i32::from(b))
                    });
                    let want: i32 = products.sum();
                    assert_eq!(*sum, want, "{by:?} query {q} row {row}");
                }
            }
        }
    }

    #[test]
    fn squares_of_bytes_are_exact_by_any_instructions() {
        for dims in [1, 31, 32, 100, 784, 65_536] {
            let a: Vec<u8> = (0..dims).map(|i| value(1, i)).collect();
            let b: Vec<u8> = (0..dims).map(|i| value(8, i * 7)).collect();
            let apart = |(a, b): (&u8, &u8)| (i64::from(*a) - i64::from(*b)).pow(2);
            let want: i64 = a.iter().zip(&b).map(apart).sum();
            for by in ALL {
                assert_eq!(i64::from(squared_bytes(by, &a, &b)), want, "{by:?} {dims}");
            }
        }
        let (least, most) = (vec![0; 65_536], vec![255; 65_536]);
        assert_eq!(squared_bytes(instructions(), &least, &most), 65_536 * 255 * 255);
    }

    #[test]
    fn products_of_floats_agree_to_rounding() {
        const DIMS: usize = 300;
        let number = |seed: usize, i: usize| f32::from(value(seed, i)) / 64.0 - 2.0;
        let panel: Vec<FloatRow> =
            (0..DIMS).map(|d| FloatRow(std::array::from_fn(|i| number(d, i)))).collect();
        let queries: Vec<[f32; QUERIES]> =
            (0..DIMS).map(|d| std::array::from_fn(|q| number(d + 7, q))).collect();
        for by in ALL {
            let mut out = [[0.0; ROWS]; QUERIES];
            floats(by, &panel, &queries, &mut out);
            for (q, sums) in out.iter().enumerate() {
                for (row, sum) in sums.iter().enumerate() {
                    let product = |d: usize| f64::from(panel[d].0[row] * queries[d][q]);
                    let want: f64 = (0..DIMS).map(product).sum();
                    assert!((f64::from(*sum) - want).abs() < 1e-3, "{by:?} {q} {row}");
                }
            }
        }
    }
}
