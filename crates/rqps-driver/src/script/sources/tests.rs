//! Tests that sources draw the declared values, the same for the same seed.

use super::*;
use rqps_model::script::{Distribution, KeyChoice, ValueSpread};
use rqps_stats::goodness_of_fit;

/// Chi-squared test at a level of 1 in 100,000; seeds are fixed.
fn assert_fits(counts: &[u64], weights: &[f64]) {
    assert!(goodness_of_fit(counts, weights) > 1e-5, "{counts:?}");
}

fn source(name: &str, values: SourceValues) -> ValueSource {
    ValueSource {
        name: name.to_owned(),
        values,
        freshness: Freshness::Event,
        count: 1,
        distinct: false,
        nulls: 0.0,
    }
}

fn open(sources: Vec<ValueSource>, clients: u32) -> SharedSources {
    let script = Script { sources, ..Script::of(false, Vec::new(), Distribution::Uniform) };
    SharedSources::open(&script, clients).unwrap()
}

/// Values of all slots in `events` events of a client, as text.
fn values(shared: &SharedSources, seed: u64, client: u32, events: u32) -> Vec<Vec<String>> {
    let mut sources = shared.of_client(seed, client);
    let mut drawn: Vec<Drawn> = (0..shared.slots()).map(|_| Drawn::default()).collect();
    let all: Vec<u32> = (0..shared.0.sources.len() as u32).collect();
    let mut events = (0..events).map(|_| {
        sources.draw(&all, &mut drawn)?;
        let text = |one: &Drawn| match one.value {
            DrawnValue::Null => "NULL".to_owned(),
            DrawnValue::Whole(number) => number.to_string(),
            DrawnValue::Text => String::from_utf8(one.text.clone()).unwrap(),
        };
        Ok(drawn.iter().map(text).collect())
    });
    events.by_ref().collect::<Result<_, String>>().unwrap()
}

fn firsts(values: SourceValues, events: u32) -> Vec<String> {
    let rows = self::values(&open(vec![source("a", values)], 1), 1, 0, events);
    rows.into_iter().map(|mut row| row.remove(0)).collect()
}

fn whole(from: i64, to: i64, spread: ValueSpread) -> SourceValues {
    SourceValues::Whole { from, to, spread }
}

#[test]
fn every_spread_has_its_shares_over_a_range_that_begins_below_zero() {
    let counts = |spread| {
        let mut counts = vec![0; 20];
        for value in firsts(whole(-10, 9, spread), 100_000) {
            counts[(value.parse::<i64>().unwrap() + 10) as usize] += 1;
        }
        counts
    };
    assert_fits(&counts(ValueSpread::Uniform), &[1.0; 20]);
    let weights: Vec<f64> = (1..=20).map(|rank| 1.0 / f64::from(rank)).collect();
    let zipfian = |scramble| ValueSpread::Zipfian { exponent: 1.0, scramble };
    assert_fits(&counts(zipfian(false)), &weights);
    let mut scrambled = counts(zipfian(true));
    assert_ne!(scrambled.iter().max(), scrambled.first());
    scrambled.sort_unstable_by(|a, b| b.cmp(a));
    assert_fits(&scrambled, &weights);
    let exponential = |value: f64| (-0.2 * value).exp();
    let shares: Vec<f64> = (0..20).map(|i| exponential(f64::from(i))).collect();
    assert_fits(&counts(ValueSpread::Exponential { parameter: 4.0 }), &shares);
    for spread in [
        ValueSpread::Special,
        ValueSpread::Pareto { h: 0.2 },
        ValueSpread::Gaussian { parameter: 2.5 },
    ] {
        assert_eq!(counts(spread).iter().sum::<u64>(), 100_000);
    }
}

#[test]
fn the_whole_range_of_64_bits_can_be_drawn() {
    let drawn = firsts(whole(i64::MIN, i64::MAX, ValueSpread::Uniform), 1000);
    assert!(drawn.iter().any(|value| value.starts_with('-')));
    assert!(drawn.iter().any(|value| !value.starts_with('-')));
}

#[test]
fn clients_share_a_sequence_without_a_value_twice() {
    let sequential = |wrap| SourceValues::Sequential { from: 5, to: 10, wrap };
    let of = |client, events, wrap| {
        let shared = open(vec![source("a", sequential(wrap))], 2);
        values(&shared, 1, client, events).concat()
    };
    assert_eq!(of(0, 3, false), ["5", "7", "9"]);
    assert_eq!(of(1, 3, false), ["6", "8", "10"]);
    assert_eq!(of(1, 4, true), ["6", "8", "10", "6"]);
    let shared = open(vec![source("a", sequential(false))], 1);
    let (mut client, mut drawn) = (shared.of_client(1, 0), vec![Drawn::default()]);
    let end = (0..7).find_map(|_| client.draw(&[0], &mut drawn).err());
    assert_eq!(end.unwrap(), "parameter `a` has no value after 10");
}

#[test]
fn lists_have_weights() {
    let list = |texts: &[&str], weights: &[f64]| SourceValues::List {
        texts: texts.iter().map(|text| (*text).to_owned()).collect(),
        weights: weights.to_vec(),
        whole: false,
    };
    let drawn = firsts(list(&["a", "b", "c"], &[1.0, 0.0, 3.0]), 40_000);
    let count = |text| drawn.iter().filter(|value| *value == text).count() as u64;
    assert_eq!(count("b"), 0);
    assert_fits(&[count("a"), count("c")], &[1.0, 3.0]);
}

#[test]
fn fields_of_one_row_stay_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.csv");
    std::fs::write(&path, "id,name,w\n1,\"a,b\",1\n2,c,0\n3,d,2\n").unwrap();
    let file = |column: &str, row: Option<&str>| SourceValues::File {
        path: path.clone(),
        column: column.to_owned(),
        weight_column: Some("w".to_owned()),
        sequential: false,
        row: row.map(str::to_owned),
    };
    let pair = vec![source("i", file("id", Some("r"))), source("n", file("name", Some("r")))];
    let rows = values(&open(pair, 1), 3, 0, 200);
    assert!(rows.iter().all(|row| row == &["1", "a,b"] || row == &["3", "d"]), "{rows:?}");
    let missing = Script {
        sources: vec![source("x", file("nme", None))],
        ..Script::of(false, Vec::new(), Distribution::Uniform)
    };
    let Err(error) = SharedSources::open(&missing, 1) else { panic!("it opened") };
    assert!(error.contains("no column `nme`; there are id, name, w"), "{error}");
}

#[test]
fn texts_dates_and_decimals_are_as_they_are_described() {
    let text = SourceValues::Text { least: 2, most: 3, alphabet: "xé".to_owned() };
    for value in firsts(text, 100) {
        assert!((2..=3).contains(&value.chars().count()), "{value}");
        assert!(value.chars().all(|letter| "xé".contains(letter)), "{value}");
    }
    let template = firsts(SourceValues::Template { text: "A-##@".to_owned() }, 1).remove(0);
    assert!(template.starts_with("A-") && template.len() == 5, "{template}");
    let decimal = SourceValues::Decimal { from: -1.5, to: 1.5, digits: 2 };
    let drawn = firsts(decimal, 1000);
    assert!(drawn.iter().all(|value| (-1.5..=1.5).contains(&value.parse::<f64>().unwrap())));
    assert!(drawn.iter().any(|value| value.starts_with("-0.")), "{drawn:?}");
    let date = firsts(SourceValues::Date { from: 19_782, to: 19_782 }, 1);
    assert_eq!(date, ["2024-02-29"]);
    let time = firsts(SourceValues::Timestamp { from: 0, to: 59, step: 60 }, 1);
    assert_eq!(time, ["1970-01-01 00:00:00"]);
}

#[test]
fn values_drawn_at_once_differ_and_a_copy_follows_its_original() {
    let mut list = source("l", whole(1, 5, ValueSpread::Uniform));
    (list.count, list.distinct) = (5, true);
    let sources = vec![
        list,
        source("m", SourceValues::Same { of: 0, plus: 100 }),
        source("c", SourceValues::Client),
    ];
    let shared = open(sources, 3);
    for mut row in values(&shared, 9, 2, 50) {
        assert_eq!(row.pop().unwrap(), "2");
        let same: i64 = row.pop().unwrap().parse().unwrap();
        assert_eq!(same - 100, row[0].parse::<i64>().unwrap());
        row.sort_unstable();
        assert_eq!(row, ["1", "2", "3", "4", "5"]);
    }
    assert_eq!(values(&shared, 9, 2, 5), values(&shared, 9, 2, 5));
    assert_ne!(values(&shared, 9, 2, 5), values(&shared, 9, 1, 5));
    assert_ne!(values(&shared, 9, 2, 5), values(&shared, 8, 2, 5));
    let mut nulls = source("n", whole(1, 5, ValueSpread::Uniform));
    nulls.nulls = 0.25;
    let drawn = values(&open(vec![nulls], 1), 1, 0, 20_000).concat();
    let count = drawn.iter().filter(|value| *value == "NULL").count() as u64;
    assert_fits(&[count, 20_000 - count], &[1.0, 3.0]);
}

fn hashed(records: KeyChoice) -> SourceValues {
    SourceValues::HashedKey { prefix: "user".to_owned(), records }
}

#[test]
fn new_keys_are_those_of_the_published_hash_and_clients_share_none() {
    let new = source("new", hashed(KeyChoice::New { from: 0 }));
    let shared = open(vec![new], 2);
    let keys = |client| -> Vec<String> {
        let rows = values(&shared, 1, client, 2);
        rows.into_iter().map(|mut row| row.remove(0)).collect()
    };
    assert_eq!(keys(0), ["user6284781860667377211", "user1820151046732198393"]);
    assert_eq!(keys(1), ["user8517097267634966620", "user4052466453699787802"]);
}

#[test]
fn the_latest_records_are_the_ones_that_were_confirmed() {
    let (loaded, clients) = (1000, 2);
    let latest = KeyChoice::Latest { loaded, inserts: 0, exponent: 0.99 };
    let sources =
        vec![source("new", hashed(KeyChoice::New { from: loaded })), source("key", hashed(latest))];
    let shared = open(sources, clients);
    let mut sources = shared.of_client(3, 1);
    let mut drawn: Vec<Drawn> = (0..2).map(|_| Drawn::default()).collect();
    let key = |record: u64| format!("user{}", key_hash(record)).into_bytes();
    // Client 1 inserts records 1001, 1003, … and every fourth does not come in.
    let mut confirmed = Vec::new();
    for place in 0..40 {
        sources.begin();
        sources.draw(&[0], &mut drawn).unwrap();
        assert_eq!(drawn[0].text, key(loaded + 1 + 2 * place));
        if place % 4 != 3 {
            sources.confirm();
            confirmed.push(key(loaded + 1 + 2 * place));
        }
    }
    let mut newest = 0;
    for _ in 0..10_000 {
        sources.draw(&[1], &mut drawn).unwrap();
        let is_loaded = || (0..loaded).any(|record| key(record) == drawn[1].text);
        assert!(confirmed.contains(&drawn[1].text) || is_loaded());
        newest += u64::from(Some(&drawn[1].text) == confirmed.last());
    }
    // The last one is a gap: the one before has both shares, of 1 / Σ k^-0.99 of 1000.
    assert!((1000..2500).contains(&newest), "{newest}");
}

#[test]
fn the_latest_values_of_a_sequence_are_the_ones_that_were_confirmed() {
    let sequence = SourceValues::Sequential { from: 101, to: 1_000_000, wrap: false };
    let latest = SourceValues::Latest { of: 0, exponent: 0.99 };
    let shared = open(vec![source("new", sequence), source("old", latest)], 2);
    let mut sources = shared.of_client(3, 1);
    let mut drawn: Vec<Drawn> = (0..2).map(|_| Drawn::default()).collect();
    let whole = |drawn: &[Drawn], slot: usize| match drawn[slot].value {
        DrawnValue::Whole(number) => number,
        other => panic!("{other:?}"),
    };
    let mut confirmed = Vec::new();
    for event in 0..40 {
        sources.begin();
        // Before any insert, values are those of the load.
        sources.draw(&[1], &mut drawn).unwrap();
        let old = whole(&drawn, 1);
        assert!((1..=100).contains(&old) || confirmed.contains(&old), "{old}");
        // Two inserts of one event succeed together or not at all.
        for _ in 0..2 {
            sources.draw(&[0], &mut drawn).unwrap();
            if event % 3 != 2 {
                confirmed.push(whole(&drawn, 0));
            }
        }
        if event % 3 != 2 {
            sources.confirm();
        }
    }
    assert!(confirmed.iter().all(|value| value % 2 == 0), "client 1 of 2 has every second value");
    let mut newest = 0;
    for _ in 0..10_000 {
        sources.draw(&[1], &mut drawn).unwrap();
        let old = whole(&drawn, 1);
        assert!((1..=100).contains(&old) || confirmed.contains(&old), "{old}");
        newest += u64::from(Some(&old) == confirmed.last());
    }
    assert!((600..2500).contains(&newest), "{newest}");
}

#[test]
fn the_latest_of_few_values_have_the_shares_of_their_ranks() {
    let open = |from| {
        let sequence = SourceValues::Sequential { from, to: 1_000_000, wrap: false };
        let latest = SourceValues::Latest { of: 0, exponent: 0.99 };
        let sources = vec![source("new", sequence), source("old", latest)];
        let script = Script { sources, ..Script::of(false, Vec::new(), Distribution::Uniform) };
        SharedSources::open(&script, 1)
    };
    let mut sources = open(16).unwrap().of_client(5, 0);
    let mut drawn: Vec<Drawn> = (0..2).map(|_| Drawn::default()).collect();
    // 15 are loaded and 5 inserted.
    for _ in 0..5 {
        sources.begin();
        sources.draw(&[0], &mut drawn).unwrap();
        sources.confirm();
    }
    let mut counts = vec![0; 20];
    for _ in 0..50_000 {
        sources.draw(&[1], &mut drawn).unwrap();
        let DrawnValue::Whole(value) = drawn[1].value else { panic!("{:?}", drawn[1].value) };
        counts[20 - value as usize] += 1;
    }
    let weights: Vec<f64> = (1..=20).map(|rank| f64::from(rank).powf(-0.99)).collect();
    assert_fits(&counts, &weights);
    let error = open(1).err().unwrap();
    assert!(error.contains("its sequence begins at 1, so no value is before it"), "{error}");
}
