//! Encodes vectors in the binary forms of pgvector and MariaDB.

use rqps_model::dialect::Dialect;
use rqps_model::vector::Variant;

/// A binary form of vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// pgvector's `vector`: number of dimensions and a zero, 16 bits each, then single precision;
    /// all big-endian.
    Vector,
    /// pgvector's `halfvec`: the same with half precision.
    Halfvec,
    /// MariaDB: only single precision values, little-endian.
    Plain,
}

impl Encoding {
    /// The form of a query's parameter.
    pub fn of_query(dialect: Dialect, variant: Variant) -> Encoding {
        match (dialect, variant) {
            (Dialect::Mysql, _) => Encoding::Plain,
            (_, Variant::Halfvec | Variant::HalfvecColumn) => Encoding::Halfvec,
            // Rows are ranked again in single precision.
            (_, Variant::Vector | Variant::HalfvecRerank | Variant::Bit) => Encoding::Vector,
        }
    }

    /// The form of a row.
    pub fn of_row(dialect: Dialect, variant: Variant) -> Encoding {
        match (dialect, variant) {
            (Dialect::Mysql, _) => Encoding::Plain,
            (_, Variant::HalfvecColumn) => Encoding::Halfvec,
            _ => Encoding::Vector,
        }
    }

    /// Bytes of a vector with `dims` dimensions.
    pub fn size(self, dims: usize) -> usize {
        match self {
            Encoding::Vector => 4 + 4 * dims,
            Encoding::Halfvec => 4 + 2 * dims,
            Encoding::Plain => 4 * dims,
        }
    }

    /// Appends a vector. Allocates nothing if `out` has room.
    pub fn push(self, values: &[f32], out: &mut Vec<u8>) {
        if self != Encoding::Plain {
            out.extend_from_slice(&(values.len() as u16).to_be_bytes());
            out.extend_from_slice(&[0, 0]);
        }
        match self {
            Encoding::Vector => append(out, values, f32::to_be_bytes),
            Encoding::Halfvec => append(out, values, |value| half(value).to_be_bytes()),
            Encoding::Plain => append(out, values, f32::to_le_bytes),
        }
    }
}

/// Appends all values after reserving room once, so that the loop has no check per value.
fn append<const N: usize>(out: &mut Vec<u8>, values: &[f32], bytes: impl Fn(f32) -> [u8; N]) {
    let start = out.len();
    out.resize(start + N * values.len(), 0);
    for (place, value) in out[start..].as_chunks_mut::<N>().0.iter_mut().zip(values) {
        *place = bytes(*value);
    }
}

/// The nearest half-precision number (IEEE 754 binary16), ties to even, as bits. It computes all
/// cases and selects one, so that the compiler can convert many values at once.
#[inline]
fn half(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    // 13 bits are lost: more than half of them rounds up, exactly half to even.
    let rounded = magnitude.wrapping_add(0xfff + ((magnitude >> 13) & 1));
    let normal = rounded.wrapping_sub(0x3800_0000) >> 13;
    // Below 2^-14, numbers are multiples of 2^-24; adding 0.5 rounds to these.
    let small = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let special = if magnitude > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
    let finite = if magnitude < 0x3880_0000 { small } else { normal };
    // 65520 and more round to infinity.
    let result = if magnitude >= 0x477f_f000 { special } else { finite };
    (sign | result) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_those_of_the_servers() {
        let check = |form: Encoding, expected: &[u8]| {
            let mut out = Vec::new();
            form.push(&[1.0, -2.5], &mut out);
            assert_eq!(out, expected);
            assert_eq!(out.len(), form.size(2));
        };
        check(Encoding::Vector, &[0, 2, 0, 0, 0x3f, 0x80, 0, 0, 0xc0, 0x20, 0, 0]);
        check(Encoding::Halfvec, &[0, 2, 0, 0, 0x3c, 0, 0xc1, 0]);
        check(Encoding::Plain, &[0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0]);
    }

    #[test]
    fn half_precision_rounds_to_nearest_even() {
        // Values from numpy.float16.
        for (value, bits) in [
            (0.0, 0x0000),
            (-0.0, 0x8000),
            (1.0, 0x3c00),
            (255.0, 0x5bf8),
            (0.1, 0x2e66),
            (-1.0 / 3.0, 0xb555),
            (2049.0, 0x6800),
            (2051.0, 0x6802),
            (65504.0, 0x7bff),
            (65519.0, 0x7bff),
            (65520.0, 0x7c00),
            (1e30, 0x7c00),
            (5.960_464_5e-8, 0x0001),
            (2.980_232_2e-8, 0x0000),
            (8.940_697e-8, 0x0002),
            (6.097_555e-5, 0x03ff),
            (6.103_515_6e-5, 0x0400),
            (f32::INFINITY, 0x7c00),
            (f32::NAN, 0x7e00),
        ] {
            assert_eq!(half(value), bits, "{value}");
        }
    }
}
