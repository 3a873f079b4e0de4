//! Compares the search for exact neighbours with a blocked sgemm of OpenBLAS (through numpy), in
//! turns on the same CPUs.
//!
//!     cargo bench --bench ground_truth -- --python PYTHON [--rows 60000] [--queries 10000]
//!         [--dims 784] [--rounds 5] [--floats]
//!
//! PYTHON must have numpy. The time of rqps includes packing, products and selection; that of numpy
//! only the products. Without `--python`, only rqps is timed.

#![allow(clippy::print_stdout)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Instant;

use rqps_bench_vector::data::truth::exact;
use rqps_bench_vector::data::{Matrix, Numbers};
use rqps_model::datagen::rng::Rng;
use rqps_model::vector::Distance;

const PYTHON: &str = "
import sys, time, numpy as np
rows, queries, dims = map(int, sys.argv[1:4])
rng = np.random.default_rng(1)
a = rng.integers(0, 256, (rows, dims)).astype(np.float32)
b = rng.integers(0, 256, (queries, dims)).astype(np.float32)
for line in sys.stdin:
    begun = time.perf_counter()
    for start in range(0, rows, 4096):
        for first in range(0, queries, 2048):
            a[start:start + 4096] @ b[first:first + 2048].T
    print(time.perf_counter() - begun, flush=True)
";

struct Options {
    python: Option<String>,
    rows: usize,
    queries: usize,
    dims: usize,
    rounds: usize,
    floats: bool,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        python: None,
        rows: 60_000,
        queries: 10_000,
        dims: 784,
        rounds: 5,
        floats: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = |name: &str| -> Result<usize, String> {
            let value = words.next().unwrap_or_default();
            value.parse().map_err(|_| format!("{name} takes a number, not `{value}`"))
        };
        match word.as_str() {
            "--rows" => options.rows = number("--rows")?,
            "--queries" => options.queries = number("--queries")?,
            "--dims" => options.dims = number("--dims")?,
            "--rounds" => options.rounds = number("--rounds")?,
            "--floats" => options.floats = true,
            "--python" => options.python = words.next(),
            // cargo passes this option.
            "--bench" => {}
            other => return Err(format!("there is no option `{other}`")),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    match options().and_then(|options| compare(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            println!("ground_truth: {fault}");
            ExitCode::FAILURE
        }
    }
}

fn compare(options: &Options) -> Result<(), String> {
    let train = random(1, options.rows, options);
    let test = random(2, options.queries, options);
    let mut theirs = match &options.python {
        Some(python) => Some(Numpy::start(python, options)?),
        None => None,
    };
    let mut ratios = Vec::new();
    let products = options.rows as f64 * options.queries as f64 * options.dims as f64;
    println!("round  ours_s  numpy_s  ratio  (ours: {} exact neighbours of each query)", 100);
    // Round 0 is the warm-up.
    for round in 0..=options.rounds {
        let begun = Instant::now();
        let truth = exact(&train, &test, Distance::Euclidean, None, 100, 0);
        let ours = begun.elapsed().as_secs_f64();
        std::hint::black_box(truth);
        let numpy = theirs.as_mut().map(Numpy::round).transpose()?;
        if let Some(numpy) = numpy {
            println!("{round:5}  {ours:6.3}  {numpy:7.3}  {:5.2}", numpy / ours);
            if round > 0 {
                ratios.push(numpy / ours);
            }
        } else {
            println!(
                "{round:5}  {ours:6.3}        -      -  {:.0} G products/s",
                products / ours / 1e9
            );
        }
    }
    ratios.sort_by(f64::total_cmp);
    if let Some(median) = ratios.get(ratios.len() / 2) {
        println!("median of numpy's time / ours: {median:.2}");
    }
    Ok(())
}

fn random(seed: u64, rows: usize, options: &Options) -> Matrix {
    let mut rng = Rng::new(seed);
    let count = rows * options.dims;
    let values = if options.floats {
        Numbers::Floats((0..count).map(|_| rng.unit() as f32).collect())
    } else {
        Numbers::Bytes((0..count).map(|_| rng.below(256) as u8).collect())
    };
    Matrix { dims: options.dims, values }
}

/// numpy in a process that runs a round per line.
struct Numpy {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Numpy {
    fn start(python: &str, options: &Options) -> Result<Numpy, String> {
        let sizes = [options.rows, options.queries, options.dims].map(|size| size.to_string());
        let mut child = Command::new(python)
            .arg("-c")
            .arg(PYTHON)
            .args(sizes)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("failed to start {python}: {error}"))?;
        let output = child.stdout.take().ok_or("python has no output")?;
        Ok(Numpy { child, output: BufReader::new(output) })
    }

    fn round(&mut self) -> Result<f64, String> {
        let input = self.child.stdin.as_mut().ok_or("python has no input")?;
        input.write_all(b"go\n").map_err(|error| format!("failed to ask python: {error}"))?;
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(|error| error.to_string())?;
        line.trim().parse().map_err(|_| "python did not answer; has it numpy?".to_owned())
    }
}

impl Drop for Numpy {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
