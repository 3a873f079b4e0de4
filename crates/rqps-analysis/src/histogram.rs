//! Quantiles of a stored latency histogram: HdrHistogram's V2 encoding, deflated or not, in base64.
//!
//! A report over many runs reads tens of thousands of these. The general reader fills an array of
//! all the steps that the range could have (270 kB) for each; this one leaves the counts as they
//! are encoded, a few thousand bytes, and sets marks between them. The two are compared in the
//! tests.

use std::io::Read;

use base64::Engine;

const PLAIN: u32 = 0x1c84_9313;
const DEFLATED: u32 = 0x1c84_9314;
const HEADER: usize = 40;
/// Most bytes of a histogram that is inflated: five digits, and a count of one byte for each step.
const PLAIN_BYTES: u64 = 8 << 20;

/// A histogram: how many values fell on which step.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// All of it as it was encoded; its counts by place are known to be in order.
    bytes: Vec<u8>,
    /// The end of the counts.
    end: usize,
    /// By place.
    marks: Vec<Mark>,
    total: u64,
    layout: Layout,
}

/// The steps of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    /// Bits below the smallest distinguished value.
    unit_bits: u32,
    /// Each power of two above the linear part has two to this many steps.
    half_bits: u32,
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
        Histogram::from_bytes(bytes)
            .map_err(|fault| format!("the latency histogram cannot be read: {fault}"))
    }

    fn from_bytes(bytes: Vec<u8>) -> Result<Histogram, String> {
        let cookie = be_u32(&bytes, 0)?;
        if cookie == DEFLATED {
            let packed = bytes.get(8..).unwrap_or_default();
            let mut plain = Vec::new();
            // No histogram of a step comes near this; a damaged one may claim anything, and a
            // result set has one for each step.
            let mut reader = flate2::read::ZlibDecoder::new(packed).take(PLAIN_BYTES);
            reader.read_to_end(&mut plain).map_err(|fault| fault.to_string())?;
            return match be_u32(&plain, 0)? {
                PLAIN => Histogram::from_plain(plain),
                _ => Err("it is not version 2".to_owned()),
            };
        }
        match cookie {
            PLAIN => Histogram::from_plain(bytes),
            _ => Err("it is not version 2".to_owned()),
        }
    }

    fn from_plain(bytes: Vec<u8>) -> Result<Histogram, String> {
        let end = HEADER + be_u32(&bytes, 4)? as usize;
        let layout = Layout::new(be_u32(&bytes, 12)?, be_u64(&bytes, 16)?)?;
        // Normalizing offset and ratio: features that no writer of ours uses.
        if be_u32(&bytes, 8)? != 0 || f64::from_bits(be_u64(&bytes, 32)?) != 1.0 {
            return Err("it is shifted or scaled".to_owned());
        }
        let counts = bytes.get(HEADER..end).ok_or("it is truncated")?;
        let (marks, total) = survey(counts, layout.places())?;
        Ok(Histogram { bytes, end, marks, total, layout })
    }

    /// Counts by place, encoded.
    fn counts(&self) -> &[u8] {
        &self.bytes[HEADER..self.end]
    }

    /// Number of recorded values.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The largest value of each step that holds something, and how many values fell on it.
    pub fn steps(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut walk = Walk::new(self.counts());
        let counts = std::iter::from_fn(move || walk.one().ok());
        counts
            .filter(|(_, count)| *count > 0)
            .map(|(place, count)| (self.layout.largest_on(place as u32), count))
    }

    /// The largest values that count as equal to the quantiles, 0 to 1. All zero for an empty
    /// histogram.
    pub fn quantiles<const N: usize>(&self, quantiles: [f64; N]) -> [u64; N] {
        quantiles.map(|quantile| {
            let rank = (quantile.clamp(0.0, 1.0) * self.total as f64).ceil().max(1.0) as u64;
            self.place_of(rank.min(self.total)).map_or(0, |place| self.layout.largest_on(place))
        })
    }

    /// The step on which the value of a rank fell, from 1 to the total.
    fn place_of(&self, rank: u64) -> Option<u32> {
        let before = self.marks.partition_point(|mark| mark.sum < rank).checked_sub(1)?;
        let Mark { at, place, mut sum } = self.marks[before];
        let mut walk = Walk { counts: self.counts(), at, place };
        while let Some(stretch) = walk.stretch().filter(|stretch| sum + stretch.sum < rank) {
            sum += stretch.sum;
            walk.pass(&stretch);
        }
        while let Ok((place, count)) = walk.one() {
            sum += count;
            if sum >= rank {
                return Some(place as u32);
            }
        }
        None
    }
}

/// The position of a walk.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: usize,
    place: u64,
    /// The sum of all counts before.
    sum: u64,
}

/// A mark is set after so many bytes.
const MARK_BYTES: usize = 64;

/// Marks on the way, and the sum of all counts, if they are in order.
fn survey(counts: &[u8], places: u64) -> Result<(Vec<Mark>, u64), String> {
    let mut walk = Walk::new(counts);
    let mut marks = Vec::with_capacity(counts.len() / MARK_BYTES + 1);
    let mut sum = 0u64;
    while !walk.is_done() {
        if walk.at >= marks.len() * MARK_BYTES {
            marks.push(Mark { at: walk.at, place: walk.place, sum });
        }
        let more = match walk.stretch() {
            Some(stretch) if walk.place.saturating_add(stretch.places) <= places => {
                walk.pass(&stretch);
                stretch.sum
            }
            _ => {
                let (place, count) = walk.one()?;
                if count > 0 && place >= places {
                    return Err("it has more steps than values".to_owned());
                }
                count
            }
        };
        sum = sum.checked_add(more).ok_or("it counts more than possible")?;
    }
    Ok((marks, sum))
}

/// Eight numbers.
struct Stretch {
    /// Steps that they tell of.
    places: u64,
    /// The sum of their counts.
    sum: u64,
}

/// Sum of the eight bytes of a word. Each is at most 127, so no sum overflows.
fn sum_of_bytes(word: u64) -> u64 {
    const LOW: u64 = 0x00ff_00ff_00ff_00ff;
    let pairs = (word & LOW) + ((word >> 8) & LOW);
    // The upper quarter of the product is the sum of the quarters.
    pairs.wrapping_mul(0x0001_0001_0001_0001) >> 48
}

/// A way through encoded counts.
struct Walk<'a> {
    counts: &'a [u8],
    /// The next byte.
    at: usize,
    /// The place that it is of.
    place: u64,
}

impl<'a> Walk<'a> {
    fn new(counts: &'a [u8]) -> Walk<'a> {
        Walk { counts, at: 0, place: 0 }
    }

    fn is_done(&self) -> bool {
        self.at >= self.counts.len()
    }

    /// The next eight bytes, if each encodes a whole number, as most do. [`Walk::one`] explains the
    /// encoding.
    fn stretch(&self) -> Option<Stretch> {
        const ONES: u64 = 0x0101_0101_0101_0101;
        let word = u64::from_le_bytes(*self.counts.get(self.at..)?.first_chunk()?);
        let (odd, long) = (word & ONES, word & (0x80 * ONES));
        if long != 0 {
            return None;
        }
        // Where steps are dense, no step is empty.
        if odd == 0 {
            return Some(Stretch { places: 8, sum: sum_of_bytes(word) / 2 });
        }
        let is_empty = odd * 0xff;
        let halves = (word >> 1) & (0x3f * ONES);
        let places = 8 + sum_of_bytes(halves & is_empty);
        Some(Stretch { places, sum: sum_of_bytes(halves & !is_empty) })
    }

    fn pass(&mut self, stretch: &Stretch) {
        self.at += 8;
        self.place = self.place.saturating_add(stretch.places);
    }

    /// The next place that is told of and its count, which is 0 for the first of some empty steps.
    fn one(&mut self) -> Result<(u64, u64), String> {
        let (encoded, read) = match short(self.counts, self.at) {
            Some(number) => number,
            None => varint(self.counts.get(self.at..).unwrap_or_default())?,
        };
        self.at += read;
        // Zigzag: an even number is twice a count, and an odd one n stands for (n + 1) / 2 empty
        // steps. Without a branch: where steps are sparse nobody could foretell it.
        let (half, empty) = (encoded >> 1, encoded & 1);
        let place = self.place;
        self.place = place.saturating_add(1 + half * empty);
        Ok((place, half * (1 - empty)))
    }
}

impl Layout {
    /// For so many significant decimal digits, from a lowest distinguished value on.
    fn new(digits: u32, lowest: u64) -> Result<Layout, String> {
        if digits > 5 || lowest == 0 {
            return Err("its parameters are invalid".to_owned());
        }
        // Twice ten to the digits must be told apart in the linear part.
        let linear = (2 * 10u64.pow(digits)).next_power_of_two().trailing_zeros();
        let unit_bits = lowest.ilog2();
        match unit_bits + linear <= 62 {
            true => Ok(Layout { unit_bits, half_bits: linear - 1 }),
            false => Err("its parameters are invalid".to_owned()),
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

/// LEB128 of one or two bytes, and how many; `None` for a longer one and at the end.
fn short(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    match bytes.get(at..at + 2)? {
        [low, _] if *low < 0x80 => Some((u64::from(*low), 1)),
        [low, high] if *high < 0x80 => Some((u64::from(low & 0x7f) | u64::from(*high) << 7, 2)),
        _ => None,
    }
}

/// LEB128 of at most nine bytes, the ninth of which is taken whole. The number, and its bytes.
fn varint(bytes: &[u8]) -> Result<(u64, usize), String> {
    let mut number = 0;
    for (index, byte) in bytes.iter().take(9).enumerate() {
        let last = index == 8;
        let bits = if last { *byte } else { byte & 0x7f };
        number |= u64::from(bits) << (7 * index);
        if last || byte & 0x80 == 0 {
            return Ok((number, index + 1));
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
            let ours = Histogram::from_bytes(bytes).unwrap();
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
            let _ = Histogram::from_bytes(bytes.clone());
            // The same behind a head that is in order, its length that of the rest.
            let mut head = PLAIN.to_be_bytes().to_vec();
            head.extend((bytes.len() as u32).to_be_bytes());
            head.extend([0, 0, 0, 0, 0, 0, 0, 3]);
            head.extend(1u64.to_be_bytes());
            head.extend(u64::MAX.to_be_bytes());
            head.extend(1f64.to_be_bytes());
            head.append(&mut bytes);
            if let Ok(histogram) = Histogram::from_bytes(head) {
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
        assert_eq!(Histogram::from_bytes(bytes).unwrap_err(), "it is truncated");
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
        let ours = Histogram::from_bytes(bytes).unwrap();
        assert_eq!(ours.total(), i64::MAX as u64 - 5);
        assert_eq!(ours.quantiles([0.5]), [77]);
    }
}
