//! Measures the client's cost of a vector query beyond the system calls of any query: encoding a
//! parameter of 784 floats, and reading ten row numbers.
//!
//!     cargo bench --bench vector_client
//!
//! A thread answers like Postgres, from memory. The bench compares the CPU time of the client's
//! thread for a vector and ten rows with that for an integer and no row. The vectors of a measured
//! window are encoded before it, so encoding is timed separately.

#![allow(clippy::print_stdout)]

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rqps_bench_vector::driver::searcher::Encoding;
use rqps_host::tree;
use rqps_model::endpoint::{Address, Login};
use rqps_wire::postgres::PostgresClient;
use rqps_wire::{Value, ValueType};

const DIMS: usize = 784;
const K: u32 = 10;
const QUERIES: u32 = 100_000;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            println!("vector_client: {fault}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let values: Vec<f32> = (0..DIMS).map(|dim| dim as f32 / 3.0).collect();
    let mut vector = Vec::with_capacity(Encoding::Vector.size(DIMS));
    let mut encoding = [0.0; 3];
    for (cost, form) in
        encoding.iter_mut().zip([Encoding::Vector, Encoding::Halfvec, Encoding::Plain])
    {
        let begun = Instant::now();
        for _ in 0..QUERIES {
            vector.clear();
            form.push(std::hint::black_box(&values), &mut vector);
            std::hint::black_box(&vector);
        }
        *cost = begun.elapsed().as_secs_f64() * 1e6 / f64::from(QUERIES);
    }
    vector.clear();
    Encoding::Vector.push(&values, &mut vector);
    let (mut searches, mut pings) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        searches.push(cost(ValueType::Bytes, &Value::Bytes(&vector), K)?);
        pings.push(cost(ValueType::Int, &Value::Int(1), 0)?);
    }
    let (search, ping) = (median(searches), median(pings));
    println!(
        "encoding {DIMS} floats: vector {:.2} us, halfvec {:.2} us, MariaDB {:.2} us",
        encoding[0], encoding[1], encoding[2]
    );
    println!(
        "client CPU of a query: {search:.2} us with a vector and {K} rows, {ping:.2} us with \
        an integer and none"
    );
    println!(
        "a vector and {K} rows cost {:.2} us more, encoding included {:.2} us (limit 3 us)",
        search - ping,
        search - ping + encoding[0]
    );
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// CPU time of the client's thread per query, microseconds.
fn cost(kind: ValueType, value: &Value<'_>, rows: u32) -> Result<f64, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("s");
    let listener = UnixListener::bind(&path).map_err(|error| error.to_string())?;
    let server = std::thread::spawn(move || serve(&listener, rows));
    let login = Login { user: "u".to_owned(), ..Login::default() };
    let mut client = PostgresClient::connect(&Address::Unix(path), &login, Duration::from_secs(5))
        .map_err(|error| error.to_string())?;
    let statement = client.prepare("q", &[kind]).map_err(|error| error.to_string())?;
    let mut ids = Vec::with_capacity(K as usize);
    let mut ask = |count: u32| -> Result<(), String> {
        for _ in 0..count {
            client
                .execute_ids(statement, std::slice::from_ref(value), &mut ids)
                .map_err(|error| error.to_string())?;
        }
        Ok(())
    };
    ask(QUERIES / 10)?;
    let before = tree::thread_cpu_ns();
    ask(QUERIES)?;
    let used = tree::thread_cpu_ns() - before;
    drop(client);
    let _ = server.join();
    Ok(used as f64 / 1e3 / f64::from(QUERIES))
}

/// Answers from memory: the login, a prepare, and the same rows for each execution.
fn serve(listener: &UnixListener, rows: u32) -> std::io::Result<()> {
    let (mut stream, _) = listener.accept()?;
    let mut input = [0; 64 * 1024];
    let _ = stream.read(&mut input)?;
    stream.write_all(b"R\0\0\0\x08\0\0\0\0K\0\0\0\x0c\0\0\0\x01\0\0\0\x01Z\0\0\0\x05I")?;
    until_sync(&mut stream, &mut input)?;
    stream.write_all(b"1\0\0\0\x04t\0\0\0\x0a\0\x01\0\0\0\x14T\0\0\0\x06\0\0Z\0\0\0\x05I")?;
    let mut reply = b"2\0\0\0\x04".to_vec();
    for row in 0..rows {
        reply.extend(b"D\0\0\0\x0e\0\x01\0\0\0\x04");
        reply.extend(row.to_be_bytes());
    }
    reply.extend(b"C\0\0\0\x0eSELECT 10\0Z\0\0\0\x05I");
    loop {
        until_sync(&mut stream, &mut input)?;
        stream.write_all(&reply)?;
    }
}

/// Reads until a Sync.
fn until_sync(stream: &mut UnixStream, input: &mut [u8]) -> std::io::Result<()> {
    let mut length = 0;
    loop {
        match stream.read(&mut input[length..])? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            more => length += more,
        }
        if input[..length].ends_with(&[b'S', 0, 0, 0, 4]) {
            return Ok(());
        }
    }
}
