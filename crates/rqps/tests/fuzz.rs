//! The fuzz targets of `fuzz/`, each on its corpus and on changes of it. Short and seeded: a case
//! that fails comes again. CONTRIBUTING.md has the long form, with libFuzzer.

#![allow(clippy::unwrap_used)] // A test file throughout; clippy only sees the marked functions.

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use rqps_model::datagen::rng::Rng;
use rqps_model::units;

#[path = "../../../fuzz/targets/mod.rs"]
mod targets;

use targets::FuzzTarget;

/// Changes of the corpus of each target.
const CASES: u64 = 200;
/// Most bytes of a change, but for those that repeat something.
const MOST_BYTES: usize = 16 << 10;
/// Bytes of a text that repeats something: deep nesting, long lines, many rows.
const STRETCHED: usize = 256 << 10;

/// Words that mean something in some format, or are hard on a reader of any.
const WORDS: [&str; 64] = [
    "", " ", "\t", "\n", "\r\n", ",", ";", ":", "=", "%", "/", "..", ".", "-", "--", "---", "'",
    "\"", "''", "\\", "\\\\", "$", "$$", "$a$", "/*", "*/", "/*!", "#", "[", "]", "{", "}", "(",
    ")", "((", "0", "-1", "1e308", "1e-320", "NaN", "inf", "-inf", "null", "true",
    "18446744073709551616", "9223372036854775808", "99999999999999999999999999", "4294967296", "é",
    "\u{0}", "\u{202e}", "\u{fffd}", "x.my8044_rel.z12a_c8r32.pk1", "--- absolute", "Relative to:",
    "col-1 : x", "avg-cpu:", "DELIMITER //", "COPY t FROM stdin;", "\\.", "BEGIN ATOMIC", "\\if 1",
    "[[step]]", "://",
];

fn below(rng: &mut Rng, n: usize) -> usize {
    (rng.next_u64() % n.max(1) as u64) as usize
}

/// A piece of some bytes.
fn piece<'a>(bytes: &'a [u8], most: usize, rng: &mut Rng) -> &'a [u8] {
    let from = below(rng, bytes.len() + 1);
    let length = below(rng, most.min(bytes.len() - from) + 1);
    &bytes[from..from + length]
}

/// One to six changes of one of the samples.
fn changed(samples: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = samples[below(rng, samples.len())].clone();
    for _ in 0..=below(rng, 6) {
        change(&mut bytes, samples, rng);
    }
    bytes.truncate(MOST_BYTES);
    if below(rng, 40) == 0 {
        let from = below(rng, bytes.len() + 1);
        let repeated = piece(&bytes[from..], 64, rng).to_vec();
        let times = STRETCHED / repeated.len().max(1);
        bytes.splice(from..from, repeated.repeat(if repeated.is_empty() { 0 } else { times }));
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, samples: &[Vec<u8>], rng: &mut Rng) {
    let at = below(rng, bytes.len() + 1);
    let end = at + below(rng, 32.min(bytes.len() - at) + 1);
    let word = WORDS[below(rng, WORDS.len())].bytes();
    match below(rng, 11) {
        0 => drop(bytes.splice(at..at, word)),
        1 => drop(bytes.splice(at..end, word)),
        2 => drop(bytes.drain(at..end)),
        3 => bytes.truncate(at),
        4 => {
            let other = &samples[below(rng, samples.len())];
            drop(bytes.splice(at..at, piece(other, 512, rng).to_vec()));
        }
        5 => {
            let again = bytes[at..end].to_vec();
            drop(bytes.splice(at..at, again));
        }
        6 => swap_lines(bytes, rng),
        // A number in binary: nothing, everything, the largest with a sign, a few.
        7 | 8 => {
            let number = [0, u64::MAX, i64::MAX as u64, 255, 65_535, 1 << 31][below(rng, 6)];
            let digits = match below(rng, 2) {
                0 => number.to_le_bytes(),
                _ => number.to_be_bytes(),
            };
            let place = &mut bytes[at..end.min(at + 8)];
            let length = place.len();
            place.copy_from_slice(&digits[..length]);
        }
        _ if at < bytes.len() => bytes[at] ^= 1 << below(rng, 8),
        _ => bytes.push(rng.next_u64() as u8),
    }
}

fn swap_lines(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let (one, other) = (below(rng, lines.len()), below(rng, lines.len()));
    if lines.len() > 1 {
        lines.swap(one, other);
    }
    *bytes = lines.concat();
}

/// The files of the folders of a target, in order.
fn corpus(target: &FuzzTarget) -> Vec<Vec<u8>> {
    let own = format!("fuzz/corpus/{}", target.name);
    let folders = target.seeds.iter().copied().chain([own.as_str()]);
    let mut paths: Vec<PathBuf> = folders
        .flat_map(|folder| fs::read_dir(targets::root().join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths.iter().filter(|path| path.is_file()).map(|path| fs::read(path).unwrap()).collect()
}

/// Keeps an input that a target does not survive.
fn keep(target: &FuzzTarget, bytes: &[u8]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{}-{}", target.name, units::short_hash(bytes)));
    fs::write(&path, bytes).unwrap();
    path
}

/// With `RQPS_FUZZ_KEEP=1` each input is written down first: the last one is what ended the process
/// for want of memory or stack.
fn survives(target: &'static FuzzTarget, bytes: &[u8], is_kept: bool) -> Result<(), String> {
    let path = is_kept.then(|| keep(target, bytes));
    let ended = catch_unwind(|| targets::held(target, bytes));
    if ended.is_err() {
        return Err(format!("{}: {}", target.name, keep(target, bytes).display()));
    }
    path.map_or(Ok(()), |path| fs::remove_file(path).map_err(|error| error.to_string()))
}

fn failures(target: &'static FuzzTarget, cases: u64) -> Vec<String> {
    let is_kept = std::env::var("RQPS_FUZZ_KEEP").is_ok();
    let samples = corpus(target);
    assert!(!samples.is_empty(), "{}: its corpus is empty", target.name);
    let seed = target.name.bytes().fold(7u64, |seed, byte| seed * 31 % 1_000_003 + u64::from(byte));
    let mut rng = Rng::new(seed);
    let own = samples.iter().map(|sample| survives(target, sample, is_kept));
    let mut failed: Vec<String> = own.filter_map(Result::err).collect();
    for _ in 0..cases {
        let changed = changed(&samples, &mut rng);
        failed.extend(survives(target, &changed, is_kept).err());
        if failed.len() > 3 {
            break;
        }
    }
    failed
}

/// Every reader survives its corpus and what comes of it, on a stack as a program begins with.
#[test]
fn readers_survive_what_strangers_write() {
    let only = std::env::var("RQPS_FUZZ").ok();
    let cases = std::env::var("RQPS_FUZZ_CASES").ok().map_or(CASES, |said| said.parse().unwrap());
    let wanted = |target: &&FuzzTarget| only.as_deref().is_none_or(|only| only == target.name);
    let mut failed = Vec::new();
    for target in targets::ALL.iter().filter(wanted) {
        let thread = thread::Builder::new().stack_size(targets::STACK_BYTES);
        let thread = thread.name(target.name.to_owned());
        failed.extend(thread.spawn(move || failures(target, cases)).unwrap().join().unwrap());
    }
    assert!(failed.is_empty(), "these inputs end a reader:\n{}", failed.join("\n"));
}

/// The table has each name once, and no corpus is without a target.
#[test]
fn every_corpus_has_its_target() {
    for target in &targets::ALL {
        assert!(std::ptr::eq(targets::named(target.name).unwrap(), target), "{}", target.name);
    }
    for entry in fs::read_dir(targets::root().join("fuzz/corpus")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(targets::named(&name).is_some(), "fuzz/corpus/{name}: no such target");
    }
}
