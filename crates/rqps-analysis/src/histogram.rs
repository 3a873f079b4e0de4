//! Quantiles of a stored latency histogram: HdrHistogram's V2 encoding, deflated or not, in base64.
//!
//! A report over many runs reads tens of thousands of these. The general reader fills an array of
//! all the steps that the range could have (270 kB) for each; this one keeps those that hold
//! something. The two are compared in the tests.

use std::io::Read;

use base64::Engine;

const PLAIN: u32 = 0x1c84_9313;
const DEFLATED: u32 = 0x1c84_9314;
const HEADER: usize = 40;
/// Every histogram in results has three significant digits, and then at most 55,000 steps.
const DIGITS_MAX: u32 = 3;
/// Most bytes of a histogram that is inflated.
const PLAIN_BYTES: u64 = 1 << 20;

/// A histogram: how many values fell on which step.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// The largest value of each step that holds something, and how many values are no larger.
    steps: Vec<(u64, u64)>,
}

impl Histogram {
    /// Reads the base64 text of a step's record.
    pub fn from_base64(text: &str) -> Result<Histogram, String> {
        if text.is_empty() {
            return Err("no latencies were recorded".to_owned());
        }
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(text)
            .map_err(|fault| format!("the latency histogram is not base64: {fault}"))?;
        Histogram::from_bytes(&bytes)
            .map_err(|fault| format!("the latency histogram cannot be read: {fault}"))
    }

    fn from_bytes(bytes: &[u8]) -> Result<Histogram, String> {
        if be_u32(bytes, 0)? != DEFLATED {
            return Histogram::from_plain(bytes);
        }
        let packed = bytes.get(8..).unwrap_or_default();
        let mut plain = Vec::new();
        // No histogram of a step comes near this; a damaged one may claim anything, and a result
        // set has one for each step.
        let mut reader = flate2::read::ZlibDecoder::new(packed).take(PLAIN_BYTES);
        reader.read_to_end(&mut plain).map_err(|fault| fault.to_string())?;
        Histogram::from_plain(&plain)
    }

    fn from_plain(bytes: &[u8]) -> Result<Histogram, String> {
        if be_u32(bytes, 0)? != PLAIN {
            return Err("it is not version 2".to_owned());
        }
        let end = HEADER + be_u32(bytes, 4)? as usize;
        let layout = Layout::new(be_u32(bytes, 12)?, be_u64(bytes, 16)?)?;
        // Normalizing offset and ratio: features that no writer of ours uses.
        if be_u32(bytes, 8)? != 0 || f64::from_bits(be_u64(bytes, 32)?) != 1.0 {
            return Err("it is shifted or scaled".to_owned());
        }
        let mut counts = bytes.get(HEADER..end).ok_or("it is truncated")?;
        let places = layout.places();
        let mut steps = Vec::with_capacity(counts.len().min(places as usize));
        let (mut place, mut sum) = (0u64, 0u64);
        while !counts.is_empty() {
            // Zigzag: an even number is twice a count, and an odd one n stands for (n + 1) / 2
            // empty steps.
            let encoded = varint(&mut counts)?;
            let half = encoded >> 1;
            if encoded & 1 == 1 {
                place = place.saturating_add(half + 1);
                continue;
            }
            if half > 0 {
                if place >= places {
                    return Err("it has more steps than values".to_owned());
                }
                sum = sum.checked_add(half).ok_or("it counts more than possible")?;
                steps.push((layout.largest_on(place as u32), sum));
            }
            place = place.saturating_add(1);
        }
        Ok(Histogram { steps })
    }

    /// Number of recorded values.
    pub fn total(&self) -> u64 {
        self.steps.last().map_or(0, |(_, sum)| *sum)
    }

    /// The largest value of each step that holds something, and how many values fell on it.
    pub fn steps(&self) -> impl Iterator<Item = (u64, u64)> {
        let before = std::iter::once(0).chain(self.steps.iter().map(|(_, sum)| *sum));
        self.steps.iter().zip(before).map(|((largest, sum), before)| (*largest, sum - before))
    }

    /// The largest values that count as equal to the quantiles, 0 to 1. All zero for an empty
    /// histogram.
    pub fn quantiles<const N: usize>(&self, quantiles: [f64; N]) -> [u64; N] {
        let total = self.total();
        quantiles.map(|quantile| {
            let rank = (quantile.clamp(0.0, 1.0) * total as f64).ceil().max(1.0) as u64;
            let step = self.steps.partition_point(|(_, sum)| *sum < rank.min(total));
            self.steps.get(step).map_or(0, |(largest, _)| *largest)
        })
    }
}

/// The steps of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    /// Bits below the smallest distinguished value.
    unit_bits: u32,
    /// Each power of two above the linear part has two to this many steps.
    half_bits: u32,
}

impl Layout {
    /// For so many significant decimal digits, from a lowest distinguished value on.
    fn new(digits: u32, lowest: u64) -> Result<Layout, String> {
        if digits > DIGITS_MAX || lowest == 0 {
            return Err("its parameters are invalid".to_owned());
        }
        // Twice ten to the digits must be told apart in the linear part.
        let linear = (2 * 10u64.pow(digits)).next_power_of_two().trailing_zeros();
        let unit_bits = lowest.ilog2();
        if unit_bits + linear <= 62 {
            Ok(Layout { unit_bits, half_bits: linear - 1 })
        } else {
            Err("its parameters are invalid".to_owned())
        }
    }

    /// Bits by which the steps around a place are wider than one.
    fn shift(self, place: u32) -> u32 {
        (place >> self.half_bits).saturating_sub(1) + self.unit_bits
    }

    /// The number of steps with values of at most 63 bits: those whose [`Layout::shift`] and half
    /// bits together are below 63.
    fn places(self) -> u64 {
        u64::from(64 - self.unit_bits - self.half_bits) << self.half_bits
    }

    /// The largest value that falls on a step.
    fn largest_on(self, place: u32) -> u64 {
        let half = 1u64 << self.half_bits;
        let place_wide = u64::from(place);
        let within = if place_wide < half { place_wide } else { (place_wide & (half - 1)) + half };
        // Within the linear part the upper half is at its place already: both spellings agree.
        let shift = self.shift(place);
        (within << shift) + ((1u64 << shift) - 1)
    }
}

fn be_u32(bytes: &[u8], at: usize) -> Result<u32, String> {
    let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    four.map(u32::from_be_bytes).ok_or_else(|| "it is truncated".to_owned())
}

fn be_u64(bytes: &[u8], at: usize) -> Result<u64, String> {
    let eight = bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok());
    eight.map(u64::from_be_bytes).ok_or_else(|| "it is truncated".to_owned())
}

/// Takes LEB128 of at most nine bytes, the ninth of which is taken whole.
fn varint(bytes: &mut &[u8]) -> Result<u64, String> {
    let mut number = 0;
    for (index, byte) in bytes.iter().take(9).enumerate() {
        let is_last = index == 8;
        let bits = if is_last { *byte } else { byte & 0x7f };
        number |= u64::from(bits) << (7 * index);
        if is_last || byte & 0x80 == 0 {
            *bytes = &bytes[index + 1..];
            return Ok(number);
        }
    }
    Err("it is truncated".to_owned())
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::{Serializer, V2DeflateSerializer, V2Serializer};
    use proptest::prelude::*;

    use super::*;

    const QUANTILES: [f64; 7] = [0.0001, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0];

    fn check(values: &[u64], low: u64, high: u64, digits: u8) {
        let mut reference =
            hdrhistogram::Histogram::<u64>::new_with_bounds(low, high, digits).unwrap();
        values.iter().for_each(|value| reference.saturating_record(*value));
        let expected = QUANTILES.map(|quantile| reference.value_at_quantile(quantile));
        let recorded = reference.iter_recorded();
        let steps: Vec<(u64, u64)> =
            recorded.map(|step| (step.value_iterated_to(), step.count_at_value())).collect();
        let (mut plain, mut deflated) = (Vec::new(), Vec::new());
        V2Serializer::new().serialize(&reference, &mut plain).unwrap();
        V2DeflateSerializer::new().serialize(&reference, &mut deflated).unwrap();
        for bytes in [plain, deflated] {
            let ours = Histogram::from_bytes(&bytes).unwrap();
            assert_eq!(ours.total(), values.len() as u64);
            assert_eq!(ours.quantiles(QUANTILES), expected);
            assert!(ours.steps().eq(steps.iter().copied()));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn quantiles_are_those_of_the_reference(
            mut values in prop::collection::vec(prop_oneof![0..5000u64, 0..1u64 << 41], 0..300),
            // Steps side by side, with counts of one byte and of two.
            near in prop::collection::vec(2_000..2_040u64, 0..3_000),
            digits in 1..=3u8,
            low_bits in 0..4u32,
        ) {
            values.extend(near);
            check(&values, 1 << low_bits, (1 << 42) - 1, digits);
        }

        #[test]
        fn no_bytes_make_it_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = Histogram::from_bytes(&bytes);
            // The same behind a head that is in order, its length that of the rest.
            let mut head = PLAIN.to_be_bytes().to_vec();
            head.extend((bytes.len() as u32).to_be_bytes());
            head.extend([0, 0, 0, 0, 0, 0, 0, 3]);
            head.extend(1u64.to_be_bytes());
            head.extend(u64::MAX.to_be_bytes());
            head.extend(1f64.to_be_bytes());
            head.append(&mut bytes);
            if let Ok(histogram) = Histogram::from_bytes(&head) {
                let _ = histogram.quantiles(QUANTILES);
            }
        }
    }

    #[test]
    fn what_inflates_without_end_is_cut_off() {
        let mut packer =
            flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        let mut head = [PLAIN, 32 << 20, 0, 3].map(u32::to_be_bytes).concat();
        head.extend([1, 1 << 40, 1.0f64.to_bits()].map(u64::to_be_bytes).concat());
        std::io::Write::write_all(&mut packer, &head).unwrap();
        std::io::Write::write_all(&mut packer, &vec![0; 32 << 20]).unwrap();
        let packed = packer.finish().unwrap();
        let bytes = [&DEFLATED.to_be_bytes()[..], &[0; 4], &packed].concat();
        assert!(bytes.len() < 64 << 10);
        assert_eq!(Histogram::from_bytes(&bytes).unwrap_err(), "it is truncated");
    }

    #[test]
    fn an_empty_histogram_has_zeros() {
        check(&[], 1, 1000, 3);
    }

    #[test]
    fn large_counts_need_nine_bytes() {
        let mut reference = hdrhistogram::Histogram::<u64>::new(3).unwrap();
        reference.record_n(77, i64::MAX as u64 - 5).unwrap();
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&reference, &mut bytes).unwrap();
        let ours = Histogram::from_bytes(&bytes).unwrap();
        assert_eq!(ours.total(), i64::MAX as u64 - 5);
        assert_eq!(ours.quantiles([0.5]), [77]);
    }
}
