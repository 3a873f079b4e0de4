//! What the campaign measures while it strikes: small comparisons of a few seconds.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

/// Words of every comparison but those that say otherwise.
const SMALL: &str = "--set rows=1000 --set read_seconds=0.2 --set write_seconds=0.2 \
                     --set warmup_seconds=0 --set settle_scale=0 --blocks 2 --canaries off";
const STEPS: &str = "--steps update-index,point-query";

/// Where blocks and clients are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// All of it on this host.
    Here,
    /// Blocks by ssh.
    Ssh,
    /// Clients by ssh.
    Clients,
    /// Blocks by Slurm.
    Slurm,
    /// On a server that rqps does not run, through a proxy.
    Dsn,
}

/// A kind of run.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) name: &'static str,
    /// How often it is drawn.
    pub(crate) weight: u64,
    /// Lines of progress of a run that nothing disturbs.
    pub(crate) lines: u64,
    /// Words after `rqps`; `{pg}`, `{mysql}`, `{rocksdb}`, `{at}` and `{dsn}` stand for paths.
    words: &'static str,
    small: bool,
    pub(crate) place: Place,
    /// It starts processes of servers.
    pub(crate) serves: bool,
}

const fn setup(name: &'static str, weight: u64, lines: u64, words: &'static str) -> Setup {
    Setup { name, weight, lines, words, small: true, place: Place::Here, serves: false }
}

const fn serving(setup: Setup) -> Setup {
    Setup { serves: true, ..setup }
}

const fn at(place: Place, setup: Setup) -> Setup {
    Setup { place, ..setup }
}

const fn with_own_size(setup: Setup) -> Setup {
    Setup { small: false, ..setup }
}

const FAKE: &str = "compare a=fake@1:serving b=fake@1:serving --configs {at}/configs";

/// All of them.
pub(crate) static SETUPS: [Setup; 14] = [
    setup("sqlite", 8, 46, "compare a=sqlite b=sqlite:small-cache"),
    setup("sqlite-by-run", 5, 46, "compare a=sqlite b=sqlite:small-cache --interleave run"),
    with_own_size(setup(
        "sqlite-custom",
        5,
        44,
        "compare a=sqlite b=sqlite:small-cache --bench sql:{at}/sql/shop.toml --set seconds=0.2 \
         --set warmup_seconds=0.1 --blocks 2 --canaries off",
    )),
    with_own_size(setup(
        "sqlite-count",
        3,
        20,
        "count a=sqlite b=sqlite:small-cache --steps point-query --statements 100 --repeats 1 \
         --set rows=500",
    )),
    serving(setup("fake", 7, 40, FAKE)),
    at(Place::Ssh, serving(setup("fake-on-ssh", 4, 14, FAKE))),
    at(Place::Clients, serving(setup("fake-client-host", 3, 40, FAKE))),
    at(Place::Slurm, serving(setup("fake-on-slurm", 2, 14, FAKE))),
    serving(setup("postgres", 5, 50, "compare a={pg} b={pg}")),
    serving(setup("postgres-memory", 2, 50, "compare a={pg} b={pg} --memory-limit 128M")),
    with_own_size(serving(setup(
        "postgres-insert",
        3,
        40,
        "compare a={pg} b={pg} --bench insert --set rows=2000 --set i1_rows=1000 \
         --set i2_rows=500 --set query_seconds=1 --steps l.*,qr100* --blocks 1 --canaries off",
    ))),
    at(Place::Dsn, setup("postgres-dsn", 4, 40, "compare a{dsn} b{dsn}")),
    serving(setup("mysql", 2, 50, "compare a={mysql} b={mysql}")),
    with_own_size(setup(
        "rocksdb-kv",
        5,
        30,
        "compare a={rocksdb} b={rocksdb} --bench kv --set keys=5000 --set seconds=0.3 \
         --set drain_seconds=0.1 --set cache=64M --steps fillseq,readrandom,overwritesome \
         --idle os --blocks 1 --canaries off",
    )),
];

/// What is measured on this machine, by the word that stands for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Builds {
    pub(crate) postgres: Option<String>,
    pub(crate) mysql: Option<String>,
    pub(crate) rocksdb: Option<String>,
}

impl Builds {
    /// The target of a word in braces.
    fn of(&self, word: &str) -> Option<&str> {
        match word {
            "{pg}" => self.postgres.as_deref(),
            "{mysql}" => self.mysql.as_deref(),
            _ => self.rocksdb.as_deref(),
        }
    }
}

impl Setup {
    pub(crate) fn by_name(name: &str) -> Option<&'static Setup> {
        SETUPS.iter().find(|setup| setup.name == name)
    }

    /// Blocks of its plan.
    pub(crate) fn blocks(&self) -> usize {
        if self.small || self.name == "sqlite-custom" { 2 } else { 1 }
    }

    /// It can run with these builds.
    pub(crate) fn is_possible(&self, builds: &Builds) -> bool {
        let lacks = |word: &str| self.words.contains(word) && builds.of(word).is_none();
        !["{pg}", "{mysql}", "{rocksdb}"].into_iter().any(lacks)
            && (self.place != Place::Dsn || builds.postgres.is_some())
    }

    /// The words after `rqps`, with results below the folder `disk`.
    pub(crate) fn words(&self, builds: &Builds, at: &Path, dsn: &str) -> Vec<String> {
        let mut text = self.words.to_owned();
        for word in ["{pg}", "{mysql}", "{rocksdb}"] {
            text = text.replace(word, builds.of(word).unwrap_or_default());
        }
        text = text.replace("{at}", &at.display().to_string()).replace("{dsn}", dsn);
        if self.small {
            text = format!("{text} {STEPS} {SMALL}");
        }
        let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        words.extend(["--out".to_owned(), at.join("disk/out").display().to_string()]);
        words.extend(self.more(at));
        words
    }

    /// The words that resume it.
    pub(crate) fn resuming(&self, at: &Path) -> Vec<String> {
        let out = at.join("disk/out").display().to_string();
        let mut words = vec!["run".to_owned(), out, "--resume".to_owned()];
        if self.words.contains("--configs") {
            words.extend(["--configs".to_owned(), at.join("configs").display().to_string()]);
        }
        let mut more = self.more(at);
        if self.place == Place::Clients {
            // The client hosts are in the plan.
            more = more.drain(2..4).collect();
        }
        words.extend(more);
        words
    }

    /// Words about other hosts.
    fn more(&self, at: &Path) -> Vec<String> {
        let path = |name: &str| -> String { PathBuf::from(at).join(name).display().to_string() };
        match self.place {
            Place::Here | Place::Dsn => vec![],
            Place::Ssh => {
                let words = ["--on", "ssh:one,two", "--ssh-config"].map(str::to_owned);
                let (config, work) = (path("ssh_config"), path("data"));
                words.into_iter().chain([config, "--work".to_owned(), work]).collect()
            }
            Place::Clients => {
                let words = ["--clients", "4", "--ssh-config"].map(str::to_owned);
                let host = ["--client-host", "one"].map(str::to_owned);
                words.into_iter().chain([path("ssh_config")]).chain(host).collect()
            }
            Place::Slurm => {
                let words = ["--on", "slurm:bench", "--work"].map(str::to_owned);
                words.into_iter().chain([path("data")]).collect()
            }
        }
    }
}

// Stands between rqps and a server, and cuts connections after a random byte.

/// A socket that leads to another.
pub(crate) struct Proxy {
    pub(crate) socket: PathBuf,
    /// Bytes until the next cut; below zero: none.
    left: Arc<AtomicI64>,
}

impl Proxy {
    pub(crate) fn start(folder: &Path, to: &Path) -> Result<Proxy, String> {
        let socket = folder.join(".s.PGSQL.5432");
        let listener = UnixListener::bind(&socket).map_err(|error| error.to_string())?;
        let left = Arc::new(AtomicI64::new(-1));
        let (to, counter) = (to.to_owned(), Arc::clone(&left));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = UnixStream::connect(&to) else { continue };
                let ends = [client.try_clone(), server.try_clone()];
                let [Ok(client_again), Ok(server_again)] = ends else { continue };
                carry(client, server, &counter);
                carry(server_again, client_again, &counter);
            }
        });
        Ok(Proxy { socket, left })
    }

    /// The connection that carries this byte, counted from now, is cut.
    pub(crate) fn cut_after(&self, bytes: i64) {
        self.left.store(bytes, Ordering::SeqCst);
    }
}

fn carry(mut from: UnixStream, mut to: UnixStream, left: &Arc<AtomicI64>) {
    let left = Arc::clone(left);
    thread::spawn(move || {
        let mut buffer = [0; 16 << 10];
        while let Ok(bytes @ 1..) = from.read(&mut buffer) {
            let mut passed = bytes;
            if left.load(Ordering::SeqCst) >= 0 {
                let before = left.fetch_sub(bytes as i64, Ordering::SeqCst);
                if before <= bytes as i64 {
                    passed = usize::try_from(before).unwrap_or_default();
                }
            }
            if to.write_all(&buffer[..passed]).is_err() || passed < bytes {
                break;
            }
        }
        for end in [&from, &to] {
            end.shutdown(Shutdown::Both).ok();
        }
    });
}
