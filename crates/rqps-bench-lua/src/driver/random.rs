//! The random numbers of sysbench 1.0: the same seed gives the same sequence.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rqps_embed::lua::{Binding, RandomDraw};
use rqps_model::dialect::{Dialect, push_literal};
use rqps_model::lua::{LuaRandom, LuaWork, RandomType};
use rqps_wire::{Value, ValueType};

/// Numbers of the C library's `random()` that seed a state.
const WORDS: usize = 4;

/// Largest prime below 2³².
const PRIME: u64 = 4_294_967_291;

/// The generator of one state: xoroshiro128+ in its version of 2016.
pub(super) struct Random {
    state: [u64; 2],
    options: LuaRandom,
    zipfian: Zipfian,
    unique: Arc<Unique>,
}

/// Numbers that no two clients get.
#[derive(Debug, Default)]
pub(super) struct Unique {
    base: u32,
    drawn: AtomicU32,
}

impl Unique {
    /// For the clients from number `first` on, of `of` on all hosts: each host has its own part of
    /// all numbers.
    pub(super) fn new(seed: u64, (first, of): (u32, u32)) -> Unique {
        let part = (u64::from(first) << 32) / u64::from(of.max(1));
        Unique { base: ((seed >> 16) as u32).wrapping_add(part as u32), drawn: AtomicU32::new(0) }
    }

    fn next(&self) -> u32 {
        let index = self.drawn.fetch_add(1, Ordering::Relaxed).wrapping_add(self.base);
        permuted(permuted(index).wrapping_add(0x6827_2291) ^ 0x9e37_79b9)
    }
}

/// Quadratic residues modulo a prime: a permutation of 32 bits without a visible pattern.
fn permuted(number: u32) -> u32 {
    let wide = u64::from(number);
    if wide >= PRIME {
        return number;
    }
    let residue = wide * wide % PRIME;
    (if wide <= PRIME / 2 { residue } else { PRIME - residue }) as u32
}

/// `random()` of glibc after `srandom(seed)`: additive feedback over 31 words.
struct LibcRandom {
    words: Vec<u32>,
}

impl LibcRandom {
    const DEGREE: usize = 31;
    const DISCARDED: usize = 310;

    fn seeded(seed: u32) -> LibcRandom {
        let mut word = i64::from(seed.max(1) as i32);
        let mut words = Vec::with_capacity(Self::DEGREE);
        for _ in 0..Self::DEGREE {
            words.push(word as u32);
            // The remainder has the sign of the dividend, as in C.
            word = 16_807 * i64::from(word as i32) % 2_147_483_647;
            if word < 0 {
                word += 2_147_483_647;
            }
        }
        // Three more that repeat the first, which makes the lag of three whole.
        words.extend_from_within(..3);
        let mut random = LibcRandom { words };
        for _ in 0..Self::DISCARDED {
            random.next();
        }
        random
    }

    fn next(&mut self) -> u32 {
        let length = self.words.len();
        let next = self.words[length - 3].wrapping_add(self.words[length - 31]);
        self.words.push(next);
        next >> 1
    }
}

impl Random {
    /// The generator of client `client`; states are seeded in the order of clients.
    pub(super) fn of_client(
        options: LuaRandom,
        seed: u32,
        client: u32,
        unique: Arc<Unique>,
    ) -> Random {
        let mut libc = LibcRandom::seeded(seed);
        for _ in 0..client as usize * WORDS {
            libc.next();
        }
        let mut pair = || u64::from(libc.next()) << 32 | u64::from(libc.next());
        let state = [pair(), pair()];
        Random { state, options, zipfian: Zipfian::default(), unique }
    }

    #[inline]
    pub(super) fn bits(&mut self) -> u64 {
        let [first, mut second] = self.state;
        let bits = first.wrapping_add(second);
        second ^= first;
        self.state = [first.rotate_left(55) ^ second ^ (second << 14), second.rotate_left(36)];
        bits
    }

    #[inline]
    pub(super) fn fraction(&mut self) -> f64 {
        (self.bits() >> 12) as f64 * (1.0 / (1u64 << 52) as f64)
    }

    pub(super) fn unique(&mut self) -> u32 {
        self.unique.next()
    }

    #[inline]
    pub(super) fn draw(&mut self, draw: RandomDraw, from: u32, to: u32) -> u32 {
        let draw = match (draw, self.options.kind) {
            (RandomDraw::Default, RandomType::Special) => RandomDraw::Special,
            (RandomDraw::Default, RandomType::Uniform) => RandomDraw::Uniform,
            (RandomDraw::Default, RandomType::Gaussian) => RandomDraw::Gaussian,
            (RandomDraw::Default, RandomType::Pareto) => RandomDraw::Pareto,
            (RandomDraw::Default, RandomType::Zipfian) => RandomDraw::Zipfian,
            (draw, _) => draw,
        };
        match draw {
            RandomDraw::Gaussian => self.gaussian(from, to),
            RandomDraw::Pareto => self.pareto(from, to),
            RandomDraw::Zipfian => self.zipfian(from, to),
            RandomDraw::Special => self.special(from, to),
            RandomDraw::Uniform | RandomDraw::Default => self.uniform(from, to),
        }
    }

    #[inline]
    fn uniform(&mut self, from: u32, to: u32) -> u32 {
        let span = f64::from(to.wrapping_sub(from)) + 1.0;
        from.wrapping_add((self.fraction() * span) as u32)
    }

    fn gaussian(&mut self, from: u32, to: u32) -> u32 {
        let span = f64::from(to.wrapping_sub(from)) + 1.0;
        let turns = self.options.iterations.max(1);
        let sum: f64 = (0..turns).map(|_| self.fraction() * span).sum();
        from.wrapping_add((sum / f64::from(turns)) as u32)
    }

    fn special(&mut self, from: u32, to: u32) -> u32 {
        let span = f64::from(to.wrapping_sub(from));
        let share = self.options.percent;
        let wide = span * (100.0 / (100.0 - f64::from(self.options.hot_percent)));
        let drawn = self.fraction();
        let place = drawn * wide;
        if place < span {
            let turns = self.options.iterations.max(1);
            let sum: f64 = (0..turns).map(|_| self.fraction()).sum();
            return from.wrapping_add((span * (sum / f64::from(turns))) as u32);
        }
        let band = span * (f64::from(share) / 100.0);
        let start = span / 2.0 - span * (f64::from(share) / 200.0);
        from.wrapping_add((drawn * (band + 1.0) + start) as u32)
    }

    fn pareto(&mut self, from: u32, to: u32) -> u32 {
        let span = f64::from(to.wrapping_sub(from)) + 1.0;
        let power = self.options.pareto_h.ln() / (1.0 - self.options.pareto_h).ln();
        from.wrapping_add((span * self.fraction().powf(power)) as u32)
    }

    fn zipfian(&mut self, from: u32, to: u32) -> u32 {
        let count = f64::from(to.wrapping_sub(from)) + 1.0;
        self.zipfian.prepare(count, self.options.zipfian_exponent);
        loop {
            let drawn = self.fraction();
            if let Some(rank) = self.zipfian.rank(drawn) {
                return from.wrapping_add(rank as u32 - 1);
            }
        }
    }

    /// Replaces `#` by a digit and `@` by a letter.
    pub(super) fn fill(&mut self, template: &[u8], output: &mut [u8]) {
        for (place, byte) in output.iter_mut().zip(template) {
            *place = match byte {
                b'#' => self.uniform(u32::from(b'0'), u32::from(b'9')) as u8,
                b'@' => self.uniform(u32::from(b'a'), u32::from(b'z')) as u8,
                other => *other,
            };
        }
    }
}

/// Ranks by rejection inversion (Hörmann and Derflinger).
#[derive(Default)]
struct Zipfian {
    count: f64,
    exponent: f64,
    lowest: f64,
    highest: f64,
    squeeze: f64,
}

impl Zipfian {
    fn prepare(&mut self, count: f64, exponent: f64) {
        if self.count == count && self.exponent == exponent {
            return;
        }
        (self.count, self.exponent) = (count, exponent);
        self.lowest = self.area(1.5) - 1.0;
        self.highest = self.area(count + 0.5);
        self.squeeze = 2.0 - self.place(self.area(2.5) - 2f64.powf(-exponent));
    }

    fn area(&self, place: f64) -> f64 {
        let rest = 1.0 - self.exponent;
        if rest.abs() < 1e-9 { place.ln() } else { (place.powf(rest) - 1.0) / rest }
    }

    fn place(&self, area: f64) -> f64 {
        let rest = 1.0 - self.exponent;
        if rest.abs() < 1e-9 { area.exp() } else { (1.0 + area * rest).powf(1.0 / rest) }
    }

    fn rank(&self, drawn: f64) -> Option<f64> {
        let area = self.highest + drawn * (self.lowest - self.highest);
        let place = self.place(area);
        let rank = (place + 0.5).floor().clamp(1.0, self.count);
        let taken = rank - place <= self.squeeze
            || area >= self.area(rank + 0.5) - rank.powf(-self.exponent);
        taken.then_some(rank)
    }
}

// Converts values of placeholders and names of dialects between scripts and the wire.

/// Most values of a statement that need no allocation.
const FEW: usize = 16;

/// True for a statement that changes the rows that it finds.
#[inline]
pub(super) fn may_miss(sql: &str) -> bool {
    let word = sql.trim_start().get(..6).unwrap_or_default();
    ["UPDATE", "DELETE", "INSERT", "REPLAC"].iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// The name of a dialect in scripts.
pub(super) fn driver_name(dialect: Dialect, work: &LuaWork) -> &str {
    match dialect {
        Dialect::Postgres => "pgsql",
        Dialect::Sqlite if work.driver.is_empty() => "sqlite",
        Dialect::Sqlite => &work.driver,
        _ => "mysql",
    }
}

/// The type of a placeholder for such a value.
pub(super) fn type_of(value: Binding<'_>) -> ValueType {
    match value {
        Binding::Whole(_) => ValueType::Int,
        Binding::Decimal(_) => ValueType::AnyText,
        Binding::Text(_) | Binding::Null => ValueType::Text,
    }
}

/// Calls `act` with the values in wire form.
#[inline]
pub(super) fn with_values<'a, R>(
    given: impl ExactSizeIterator<Item = Binding<'a>>,
    act: impl FnOnce(&[Binding<'a>], &[Value<'_>]) -> R,
) -> R {
    let count = given.len();
    let (mut few, mut many) = ([Binding::Null; FEW], Vec::new());
    if count <= FEW {
        few.iter_mut().zip(given).for_each(|(place, value)| *place = value);
    } else {
        many.extend(given);
    }
    let bindings = if count <= FEW { &few[..count] } else { &many[..] };
    let decimals: Vec<String> = if bindings.iter().any(|one| matches!(one, Binding::Decimal(_))) {
        bindings.iter().map(decimal_text).collect()
    } else {
        Vec::new()
    };
    let value = |(number, binding): (usize, &Binding<'a>)| match *binding {
        Binding::Null => Value::Null,
        Binding::Whole(whole) => Value::Int(whole),
        Binding::Decimal(_) => Value::Text(decimals[number].as_bytes()),
        Binding::Text(text) => Value::Text(text),
    };
    if count <= FEW {
        let mut values = [Value::Null; FEW];
        let places = values.iter_mut().zip(bindings.iter().enumerate());
        places.for_each(|(place, one)| *place = value(one));
        return act(bindings, &values[..count]);
    }
    let values: Vec<Value<'_>> = bindings.iter().enumerate().map(value).collect();
    act(bindings, &values)
}

fn decimal_text(binding: &Binding<'_>) -> String {
    match binding {
        Binding::Decimal(number) => number.to_string(),
        _ => String::new(),
    }
}

// Rewrites placeholders: `?` in scripts, `$1` on Postgres, literals for statements that are not
// prepared.

/// The SQL between placeholders: one more piece than placeholders.
pub(super) fn pieces(sql: &str) -> Vec<String> {
    let bytes = sql.as_bytes();
    let (mut pieces, mut start, mut at) = (Vec::new(), 0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'?' => {
                pieces.push(sql[start..at].to_owned());
                start = at + 1;
            }
            quote @ (b'\'' | b'"' | b'`') => {
                at += 1;
                while at < bytes.len() && bytes[at] != quote {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            b'-' if bytes.get(at + 1) == Some(&b'-') => {
                while at < bytes.len() && bytes[at] != b'\n' {
                    at += 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    pieces.push(sql[start..].to_owned());
    pieces
}

/// The statement to prepare.
pub(super) fn prepared(pieces: &[String], dialect: Dialect) -> String {
    let mut sql = String::new();
    for (number, piece) in pieces.iter().enumerate() {
        if number > 0 {
            match dialect {
                // Writing to a string does not fail.
                Dialect::Postgres => drop(write!(sql, "${number}")),
                _ => sql.push('?'),
            }
        }
        sql.push_str(piece);
    }
    sql
}

/// The statement with literals.
pub(super) fn plain(pieces: &[String], values: &[Binding<'_>], backslash: bool) -> String {
    let mut sql = pieces.first().cloned().unwrap_or_default();
    for (piece, value) in pieces.iter().skip(1).zip(values) {
        match value {
            Binding::Null => sql.push_str("NULL"),
            // Writing to a string does not fail.
            Binding::Whole(number) => drop(write!(sql, "{number}")),
            Binding::Decimal(number) => drop(write!(sql, "{number}")),
            Binding::Text(text) => push_literal(&mut sql, text, backslash),
        }
        sql.push_str(piece);
    }
    sql
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(seed: u32, client: u32) -> Random {
        let unique = Arc::new(Unique::new(7, (0, 1)));
        Random::of_client(LuaRandom::default(), seed, client, unique)
    }

    /// As printed by sysbench 1.0.20 with one thread.
    #[test]
    fn the_numbers_are_those_of_sysbench() {
        let mut one = random(1, 0);
        let bits: Vec<u64> = (0..8).map(|_| one.bits()).collect();
        assert_eq!(
            bits,
            [
                14_972_179_374_201_007_161, 6_937_875_558_910_519_049, 16_505_063_501_547_603_882,
                11_460_947_365_196_098_683, 14_795_407_320_640_308_136, 11_548_368_707_455_592_467,
                7_564_119_646_085_337_524, 3_628_332_523_127_513_051,
            ]
        );
        let mut eight = |draw| -> [u32; 8] { std::array::from_fn(|_| one.draw(draw, 1, 10_000)) };
        assert_eq!(eight(RandomDraw::Uniform), [9875, 1157, 2582, 2404, 8524, 7917, 7422, 3702]);
        assert_eq!(eight(RandomDraw::Gaussian), [5345, 4946, 5595, 5272, 3785, 5714, 3698, 4413]);
        assert_eq!(eight(RandomDraw::Special), [5033, 4992, 5028, 5041, 5017, 5029, 4982, 5028]);
        assert_eq!(eight(RandomDraw::Pareto), [1734, 23, 4622, 1, 1, 1, 5555, 290]);
        assert_eq!(eight(RandomDraw::Default), [4987, 4988, 4976, 4699, 6482, 4976, 5017, 5009]);
        let fractions: Vec<String> =
            (0..8).map(|_| format!("{:.11}", one.fraction())).take(3).collect();
        assert_eq!(fractions, ["0.20071834262", "0.03060414406", "0.27238922841"]);
        assert_eq!(random(42, 0).bits(), 6_678_695_823_595_818_893);
        assert_ne!(random(42, 0).bits(), random(42, 1).bits());
    }

    #[test]
    fn a_template_keeps_what_is_no_mark() {
        let mut one = random(1, 0);
        for _ in 0..8 {
            one.bits();
        }
        let mut text = *b"##@@-##";
        one.fill(b"##@@-##", &mut text);
        assert_eq!(text[4], b'-');
        assert!(text[..2].iter().all(u8::is_ascii_digit), "{text:?}");
        assert!(text[2..4].iter().all(u8::is_ascii_lowercase), "{text:?}");
    }

    #[test]
    fn unique_numbers_never_repeat() {
        let hosts = [(0, 3), (2, 3)].map(|part| Unique::new(99 << 16, part));
        let drawn = hosts.iter().flat_map(|host| (0..100_000).map(|_| host.next()));
        assert_eq!(drawn.collect::<std::collections::BTreeSet<u32>>().len(), 200_000);
    }

    #[test]
    fn zipfian_ranks_follow_the_law() {
        let mut one = random(3, 0);
        let mut hits = [0u32; 11];
        for _ in 0..100_000 {
            hits[one.draw(RandomDraw::Zipfian, 1, 10) as usize] += 1;
        }
        let total: f64 = (1..=10).map(|rank| f64::from(rank).powf(-0.8)).sum();
        for rank in 1..=10u32 {
            let expected = f64::from(rank).powf(-0.8) / total * 100_000.0;
            let seen = f64::from(hits[rank as usize]);
            // Five standard deviations of a seeded sequence.
            assert!((seen - expected).abs() < 5.0 * expected.sqrt(), "{rank}: {seen} {expected}");
        }
    }
}

#[cfg(test)]
mod values_tests {
    use super::*;

    #[test]
    fn only_marks_outside_of_literals_are_placeholders() {
        let sql = "SELECT '?', \"a?\", `b?` FROM t WHERE a = ? AND b = ? -- why?\n AND c = ?";
        let pieces = pieces(sql);
        assert_eq!(pieces.len(), 4);
        assert_eq!(prepared(&pieces, Dialect::Mysql), sql);
        let numbered = prepared(&pieces, Dialect::Postgres);
        assert!(numbered.ends_with("a = $1 AND b = $2 -- why?\n AND c = $3"), "{numbered}");
    }

    #[test]
    fn literals_are_quoted_as_the_server_reads_them() {
        let pieces = pieces("VALUES (?, ?, ?, ?)");
        let values = [
            Binding::Whole(-3),
            Binding::Text(br"it's \ here"),
            Binding::Null,
            Binding::Decimal(0.5),
        ];
        let mysql = plain(&pieces, &values, true);
        assert_eq!(mysql, r"VALUES (-3, 'it''s \\ here', NULL, 0.5)");
        let postgres = plain(&pieces, &values, false);
        assert_eq!(postgres, r"VALUES (-3, 'it''s \ here', NULL, 0.5)");
    }
}
