//! The end of the driver proxy on the host of the servers: asks for drivers and hands out what they say.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, thread};

use anyhow::{Context, Result, anyhow, bail};

use super::{ClientSide, ClientWord, ServerWord};
use crate::lab::driver_child::BoundedLines;

/// The other end says who carries clients at once.
const GREETING: Duration = Duration::from_secs(60);
/// The other end is never silent for so long, unless the network loses all that it says.
const SILENCE: Duration = Duration::from_secs(60);
/// Between two looks at how long it was silent.
const LOOK: Duration = Duration::from_secs(1);

/// The line to the rqps that starts drivers: standard input and output of this process.
pub struct ClientLine {
    output: Mutex<Box<dyn Write + Send>>,
    drivers: Arc<Drivers>,
    /// The first message of the other end.
    side: Mutex<Receiver<ClientSide>>,
    last_number: AtomicU32,
}

/// The receivers of each driver's lines, by its number.
type Listeners = BTreeMap<u32, Sender<Result<String>>>;

/// The known state of the other end.
struct Drivers {
    /// `None` once the line is cut.
    listeners: Mutex<Option<Listeners>>,
    /// Becomes true then.
    stop: Arc<AtomicBool>,
    /// Time of its last message.
    heard: Mutex<Instant>,
}

/// A driver at the other end. Dropping it ends the driver.
#[derive(Debug)]
pub(in crate::lab) struct ProxiedDriver {
    number: u32,
    line: Arc<ClientLine>,
}

impl ClientLine {
    /// Begins to listen on standard input. Sets `stop` when that ends, or is silent for long: the
    /// connection was cut, or the rqps at the other end is gone.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn open(
        stop: &Arc<AtomicBool>,
        input: Box<dyn Read + Send>,
        output: Box<dyn Write + Send>,
    ) -> Result<Arc<ClientLine>> {
        ClientLine::with_patience(stop, (input, output), (SILENCE, LOOK))
    }

    fn with_patience(
        stop: &Arc<AtomicBool>,
        (input, output): (Box<dyn Read + Send>, Box<dyn Write + Send>),
        (silence, look): (Duration, Duration),
    ) -> Result<Arc<ClientLine>> {
        let drivers = Arc::new(Drivers {
            listeners: Mutex::new(Some(BTreeMap::new())),
            stop: Arc::clone(stop),
            heard: Mutex::new(Instant::now()),
        });
        let (sender, side) = channel();
        let (listening, waiting) = (Arc::clone(&drivers), Arc::clone(&drivers));
        let begin = |name: &str, work: Box<dyn FnOnce() + Send>| {
            thread::Builder::new().name(name.to_owned()).spawn(work).context("start a thread")
        };
        begin("client line", Box::new(move || listening.listen(input, &sender)))?;
        let watch = move || {
            while !waiting.is_cut() {
                thread::sleep(look);
                if waiting.heard().elapsed() > silence {
                    waiting.cut();
                }
            }
        };
        begin("silence", Box::new(watch))?;
        let (output, side) = (Mutex::new(output), Mutex::new(side));
        Ok(Arc::new(ClientLine { output, drivers, side, last_number: AtomicU32::new(0) }))
    }

    /// Waits for the message of the other end about the clients. It comes once.
    ///
    /// # Errors
    /// No message comes.
    pub(in crate::lab) fn side(&self) -> Result<ClientSide> {
        let side = self.side.lock().unwrap_or_else(PoisonError::into_inner);
        side.recv_timeout(GREETING).context("learn from the rqps that starts drivers who runs them")
    }

    /// Has a driver started on the host at that place of the list. Its lines come until it has
    /// ended: then comes an error.
    ///
    /// # Errors
    /// The line is cut.
    pub(in crate::lab) fn start(
        self: &Arc<Self>,
        host: usize,
        request: String,
    ) -> Result<(ProxiedDriver, Receiver<Result<String>>)> {
        let number = self.last_number.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, lines) = channel();
        match self.drivers.lock().as_mut() {
            Some(drivers) => drop(drivers.insert(number, sender)),
            None => bail!("the connection to the rqps that starts drivers was cut"),
        }
        let driver = ProxiedDriver { number, line: Arc::clone(self) };
        self.say(&ServerWord::Start { driver: number, host, request })?;
        Ok((driver, lines))
    }

    fn say(&self, word: &ServerWord) -> Result<()> {
        let line = serde_json::to_string(word)?;
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(output, "{line}")
            .and_then(|()| output.flush())
            .context("speak to the rqps that starts drivers")
    }
}

impl Drivers {
    fn lock(&self) -> MutexGuard<'_, Option<Listeners>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn heard(&self) -> MutexGuard<'_, Instant> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_cut(&self) -> bool {
        self.lock().is_none()
    }

    /// Lets nobody wait for the other end any more.
    fn cut(&self) {
        self.stop.store(true, Ordering::Relaxed);
        *self.lock() = None;
    }

    /// Hands out what the other end says, until it says nothing more.
    fn listen(&self, input: Box<dyn Read + Send>, side: &Sender<ClientSide>) {
        // An error is an end, too.
        for line in BoundedLines::of(input).map_while(Result::ok) {
            *self.heard() = Instant::now();
            match serde_json::from_str(&line) {
                // Nobody waits for it a second time.
                Ok(ClientWord::Side(said)) => drop(side.send(said)),
                Ok(ClientWord::Alive) => {}
                Ok(ClientWord::Said { driver, line }) => self.hear(driver, Ok(line)),
                Ok(ClientWord::Ended { driver, why }) => self.hear(driver, Err(anyhow!("{why}"))),
                Err(error) => self.fail_all(&format!("understand `{line}`: {error}")),
            }
        }
        self.cut();
    }

    /// Passes on what a driver said, unless nobody cares any more.
    fn hear(&self, driver: u32, said: Result<String>) {
        if let Some(listener) = self.lock().as_ref().and_then(|drivers| drivers.get(&driver)) {
            listener.send(said).ok();
        }
    }

    fn fail_all(&self, why: &str) {
        for listener in self.lock().iter().flat_map(BTreeMap::values) {
            listener.send(Err(anyhow!("{why}"))).ok();
        }
    }
}

impl ProxiedDriver {
    /// Passes a line on to it.
    ///
    /// # Errors
    /// The line is cut.
    pub(in crate::lab) fn tell(&self, line: String) -> Result<()> {
        self.line.say(&ServerWord::Tell { driver: self.number, line })
    }
}

impl Drop for ProxiedDriver {
    fn drop(&mut self) {
        if let Some(drivers) = self.line.drivers.lock().as_mut() {
            drivers.remove(&self.number);
        }
        // If the line is cut, the other end has ended it.
        self.line.say(&ServerWord::End { driver: self.number }).ok();
    }
}

impl fmt::Debug for ClientLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientLine").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::net::UnixStream;
    use std::path::PathBuf;

    use super::*;
    use crate::lab::driver_proxy::CarrierHost;

    const LONG: Duration = Duration::from_secs(3600);

    /// A line, its other end, and whether the block is to stop.
    fn line(silence: Duration) -> (Arc<ClientLine>, UnixStream, Arc<AtomicBool>) {
        let (near, far) = UnixStream::pair().expect("a pair");
        let stop = Arc::new(AtomicBool::new(false));
        let input = Box::new(near.try_clone().expect("clone"));
        let patience = (silence, Duration::from_millis(1));
        let line = ClientLine::with_patience(&stop, (input, Box::new(near)), patience);
        (line.expect("a line"), far, stop)
    }

    fn say(far: &mut UnixStream, word: &ClientWord) {
        writeln!(far, "{}", serde_json::to_string(word).expect("a word")).expect("say");
    }

    #[test]
    fn a_driver_is_asked_for_and_heard_and_ended() {
        let (line, mut far, stop) = line(LONG);
        let host = CarrierHost { name: "h".to_owned(), datasets: PathBuf::from("/d") };
        let side = ClientSide { address: [127, 0, 0, 1].into(), hosts: vec![host] };
        say(&mut far, &ClientWord::Side(side.clone()));
        assert_eq!(line.side().expect("it was said"), side);
        let mut words = BufReader::new(far.try_clone().expect("clone")).lines();
        let mut next = || -> ServerWord {
            serde_json::from_str(&words.next().expect("a line").expect("text")).expect("a word")
        };
        let (driver, heard) = line.start(0, "{}".to_owned()).expect("a driver");
        let request = "{}".to_owned();
        assert_eq!(next(), ServerWord::Start { driver: 1, host: 0, request });
        driver.tell("clock".to_owned()).expect("tell");
        assert_eq!(next(), ServerWord::Tell { driver: 1, line: "clock".to_owned() });
        say(&mut far, &ClientWord::Said { driver: 2, line: "of another".to_owned() });
        say(&mut far, &ClientWord::Said { driver: 1, line: "a \"word\"".to_owned() });
        say(&mut far, &ClientWord::Ended { driver: 1, why: "it was killed".to_owned() });
        assert_eq!(heard.recv().expect("a line").expect("no error"), "a \"word\"");
        let why = heard.recv().expect("its end").expect_err("an error");
        assert_eq!(why.to_string(), "it was killed");
        drop(driver);
        assert_eq!(next(), ServerWord::End { driver: 1 });
        assert!(!stop.load(Ordering::Relaxed));
    }

    #[test]
    fn who_is_gone_or_silent_stops_the_block() {
        let check = |silence: Duration, is_gone: bool| {
            let (line, far, stop) = line(silence);
            let (_driver, heard) = line.start(0, "{}".to_owned()).expect("a driver");
            let kept = (!is_gone).then_some(far);
            assert!(heard.recv().is_err(), "nobody speaks any more");
            assert!(stop.load(Ordering::Relaxed));
            assert!(line.start(0, "{}".to_owned()).is_err());
            drop(kept);
        };
        check(LONG, true);
        check(Duration::from_millis(50), false);
    }
}
