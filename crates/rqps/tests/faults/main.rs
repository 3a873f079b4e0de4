//! Faults at random moments of real runs: what they leave behind, and whether the results stand.
//!
//!     cargo test --test faults                                      a short campaign
//!     cargo test --test faults -- --seed 7 --count 300 --csv FILE   a long one
//!     cargo test --test faults -- --seed 7 --only 12                its trial 12 again
//!     cargo test --test faults -- --table FILE                      the tables of docs/faults.md
//!
//! Each trial is in namespaces of its own: processes, mounts, networks and System V memory. All
//! that a run leaves there is seen, and gone with them. It needs root.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program of its own")]
#![allow(dead_code, reason = "other tests use the rest of what they share")]

mod judge;
mod kinds;
mod options;
mod record;
mod running;
mod scene;
mod setups;
mod strike;
#[path = "../it/support/mod.rs"]
mod support;

use std::fs::{self, File};
use std::io::Write;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use clap::Parser;

use kinds::Trial;
use options::Options;
use record::{HEADER, Outcome, Record};
use scene::Room;
use setups::Builds;
use support::skipped;

fn main() -> ExitCode {
    let options = Options::parse();
    if let Some(file) = &options.table {
        let text = fs::read_to_string(file).unwrap_or_default();
        let records: Vec<Record> = text.lines().filter_map(Record::read).collect();
        print!("{}", record::tables(&records));
        return ExitCode::SUCCESS;
    }
    if options.inside {
        return inside(&options);
    }
    if options.asks_for_others() {
        println!("\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored");
        return ExitCode::SUCCESS;
    }
    let room = match Room::prepare() {
        Ok(room) => room,
        Err(why) => {
            skipped::note("faults", &why);
            println!("\ntest result: ok. 0 passed; 0 failed; 0 ignored");
            return ExitCode::SUCCESS;
        }
    };
    let records = campaign(&options.settled(), &room);
    let count = |wanted: &dyn Fn(Outcome) -> bool| {
        records.iter().filter(|record| wanted(record.outcome)).count()
    };
    let lost = count(&|it| matches!(it, Outcome::Lost | Outcome::Broken));
    let survived = count(&|it| it.counts() && it != Outcome::Lost);
    let word = if lost == 0 { "ok" } else { "FAILED" };
    println!("\ntest result: {word}. {survived} passed; {lost} failed; 0 ignored");
    ExitCode::from(u8::from(lost > 0))
}

/// One trial, in its own namespaces.
fn inside(options: &Options) -> ExitCode {
    let Some(trial) = options.draw(options.only.unwrap_or_default()) else {
        return ExitCode::FAILURE;
    };
    let record = judge::judge(&trial, &options.builds());
    println!("RECORD {}\n{}", record.line(), record.details);
    ExitCode::SUCCESS
}

/// Trials until so many faults have met a run.
fn campaign(options: &Options, room: &Room) -> Vec<Record> {
    let next = AtomicU64::new(options.only.unwrap_or(options.first));
    let csv = options.csv.as_ref().map(|path| {
        let is_new = !path.exists();
        let mut file = File::options().create(true).append(true).open(path).expect("open the CSV");
        if is_new {
            writeln!(file, "{HEADER}").expect("write the CSV");
        }
        file
    });
    let done: Mutex<(Vec<Record>, Option<File>)> = Mutex::new((Vec::new(), csv));
    let met = || {
        let done = done.lock().unwrap_or_else(PoisonError::into_inner);
        done.0.iter().filter(|record| record.outcome.counts()).count() as u64
    };
    // A scene that can never be made would be tried for ever.
    let broken = || {
        let done = done.lock().unwrap_or_else(PoisonError::into_inner);
        done.0.iter().filter(|record| record.outcome == Outcome::Broken).count() as u64
    };
    let at_work = AtomicU64::new(0);
    let work = || loop {
        at_work.fetch_add(1, Ordering::SeqCst);
        if met() + at_work.load(Ordering::SeqCst) > options.count {
            break;
        }
        let number = next.fetch_add(1, Ordering::SeqCst);
        let Some(trial) = options.draw(number) else { break };
        if broken() > options.count {
            break;
        }
        let record = room.carry_out(options, &trial);
        tell(&record);
        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &mut done.1 {
            writeln!(file, "{}", record.line()).expect("write the CSV");
        }
        done.0.push(record);
        drop(done);
        at_work.fetch_sub(1, Ordering::SeqCst);
        if options.only.is_some() {
            break;
        }
    };
    thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(work);
        }
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner).0
}

fn tell(record: &Record) {
    let Record { trial, setup, fault, moment, struck, exit, outcome, note, .. } = record;
    let (moment, name) = (*moment as f64 / 1000.0, outcome.name());
    println!(
        "{trial:4} {setup:16} {fault:26} at {moment:5.1} s: {name}, exit {exit} [{struck}] {note}"
    );
}

impl Options {
    fn builds(&self) -> Builds {
        Builds {
            postgres: self.postgres.clone(),
            mysql: self.mysql.clone(),
            rocksdb: self.rocksdb.clone(),
        }
    }

    fn draw(&self, number: u64) -> Option<Trial> {
        let has = |list: &[String], name: &str| list.is_empty() || list.iter().any(|it| it == name);
        let wanted =
            |setup: &str, fault: &str| has(&self.setups, setup) && has(&self.faults, fault);
        Trial::draw((self.seed, number), &self.builds(), &wanted)
    }
}
