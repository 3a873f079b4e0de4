//! The byte stream under a session (unix socket, TCP, TLS) with its read buffer. Replies are parsed
//! straight from that buffer, so one recv(2) usually brings a whole reply.
//!
//! Over TCP, a statement costs send and recv. Over a unix socket there is a poll in between, which
//! is cheaper than a blocking recv: when the server takes the request, Linux signals our end that
//! it can write again (`unix_write_space`), which wakes a blocked recv for nothing; poll waits only
//! for input. Measured with client and server on one CPU: 1.0 instead of 1.9 switches, and 4.4
//! instead of 6.1 µs of client CPU time per query.

use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::error::{self, GRACE, SLICE, connect_tcp, is_stopped};
use crate::{WireError, tls};
use rqps_model::endpoint::{Address, Consent};

/// Bytes. A reply of any statement except a scan fits; a scan gains nothing from more, because
/// servers flush every 8 or 16 KiB.
const INPUT_BYTES: usize = 64 * 1024;

/// Most bytes of a whole login: greetings, settings and certificates have some thousand.
const LOGIN_BYTES: usize = 1 << 20;

/// Most bytes of an answer with a time limit, whatever they are: rows, notices, one value.
const ANSWER_BYTES: u64 = 128 << 20;

/// The activity in errors before the login is complete.
const LOG_IN: &str = "log in to";

/// A connection to a server.
enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
    Tls(Box<tls::TlsStream>),
}

/// A function that a client calls before each request.
pub(super) type Pause = Box<dyn FnMut() + Send>;

/// A connection with its received and not yet parsed bytes.
pub(super) struct Channel {
    stream: Stream,
    /// Its length is its capacity; only `start..end` holds bytes.
    input: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes consumed since the channel was opened.
    consumed: u64,
    /// True between a request and the first bytes of its reply.
    awaiting: bool,
    /// Time limit of a read.
    limit: Option<Duration>,
    /// The same, for poll.
    timeout: Option<Timespec>,
    /// The end of the login's time; `None` after it.
    deadline: Option<Instant>,
    /// True if reads look at the clock and at the wish to stop: in logins, and in the lab.
    is_watched: bool,
    /// Time limit of a whole answer, and the end of the time of this one.
    answer_limit: Option<Duration>,
    answer_by: Option<Instant>,
    /// Bytes consumed before it.
    answer_from: u64,
    /// The end of the time of this answer, once the user wants to stop.
    stop_by: Option<Instant>,
    /// True if the server's certificate was checked.
    is_verified: bool,
    consent: Consent,
    /// Called before each request.
    pause: Option<Pause>,
    /// The activity in errors: "run a statement on" or "log in to".
    doing: &'static str,
    peer: String,
    /// True once the stream has failed or is out of step; the channel is then unusable.
    broken: bool,
}

impl Channel {
    /// Connects. `timeout` limits the connection and the login as a whole.
    pub(super) fn connect(address: &Address, timeout: Duration) -> Result<Channel, WireError> {
        let fault = |source| WireError::Io { doing: format!("connect to {address}"), source };
        let deadline = Instant::now() + timeout;
        let (stream, consent) = match address {
            Address::Unix(path) => {
                (Stream::Unix(connect_unix(path).map_err(fault)?), Consent::default())
            }
            Address::Tcp { host, port, tls } => {
                let stream = connect_tcp(host, *port, deadline).map_err(fault)?;
                (Stream::Tcp(stream), tls.consent.clone())
            }
        };
        let mut channel = Channel::over(stream, address.to_string());
        (channel.deadline, channel.is_watched, channel.consent) = (Some(deadline), true, consent);
        Ok(channel)
    }

    fn over(stream: Stream, peer: String) -> Channel {
        Channel {
            stream,
            input: vec![0; INPUT_BYTES],
            start: 0,
            end: 0,
            consumed: 0,
            awaiting: false,
            limit: None,
            timeout: None,
            deadline: None,
            is_watched: false,
            answer_limit: None,
            answer_by: None,
            answer_from: 0,
            stop_by: None,
            is_verified: false,
            consent: Consent::default(),
            pause: None,
            doing: LOG_IN,
            peer,
            broken: false,
        }
    }

    /// A channel over one end of a socket pair, for tests and fuzz targets.
    pub(super) fn over_pair(stream: UnixStream) -> Channel {
        Channel::over(Stream::Unix(stream), "a test".to_owned())
    }

    /// Ends the login: removes the time limit of reads; errors now mention statements.
    pub(super) fn logged_in(&mut self) -> Result<(), WireError> {
        self.doing = "run a statement on";
        self.deadline = None;
        self.is_watched = error::may_stop();
        self.set_read_timeout(None)
    }

    /// True if nobody in between can read or change the traffic: a unix socket, or TLS with a
    /// certificate that was checked.
    pub(super) fn is_trusted(&self) -> bool {
        match self.stream {
            Stream::Unix(_) => true,
            Stream::Tcp(_) => false,
            Stream::Tls(_) => self.is_verified,
        }
    }

    /// What the login may send if the channel is not trusted.
    pub(super) fn consent(&self) -> &Consent {
        &self.consent
    }

    /// Calls `pause` before each request.
    pub(super) fn set_pause(&mut self, pause: Pause) {
        self.pause = Some(pause);
    }

    /// Time limit of each whole answer, which then is bounded, too, however often the server says something.
    pub(super) fn set_answer_limit(&mut self, limit: Option<Duration>) {
        self.answer_limit = limit;
        self.is_watched |= limit.is_some();
    }

    /// Time limit of a read; `None` means no limit.
    pub(super) fn set_read_timeout(&mut self, timeout: Option<Duration>) -> Result<(), WireError> {
        // A zero would be an error of the call; the caller means "hardly any time".
        self.limit = timeout.map(|timeout| timeout.max(Duration::from_millis(1)));
        self.timeout = self.limit.and_then(|timeout| Timespec::try_from(timeout).ok());
        self.set_socket_timeout(self.limit)
    }

    fn set_socket_timeout(&self, timeout: Option<Duration>) -> Result<(), WireError> {
        let set = match &self.stream {
            Stream::Unix(stream) => stream.set_read_timeout(timeout),
            Stream::Tcp(stream) => stream.set_read_timeout(timeout),
            Stream::Tls(stream) => stream.sock.set_read_timeout(timeout),
        };
        set.map_err(|source| WireError::Io {
            doing: format!("set the read timeout of {}", self.peer),
            source,
        })
    }

    /// Writes all bytes, in one call of send(2) unless the socket's buffer is full.
    #[inline]
    pub(super) fn send(&mut self, mut bytes: &[u8]) -> Result<(), WireError> {
        if self.broken {
            return Err(self.out_of_step());
        }
        if let Some(pause) = &mut self.pause {
            pause();
        }
        self.awaiting = true;
        self.stop_by = None;
        while !bytes.is_empty() {
            match write(&mut self.stream, bytes) {
                Ok(written) if written == bytes.len() => return Ok(()),
                Ok(0) => return Err(self.fault(ErrorKind::WriteZero.into())),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The server has left. The next read finds its last message, or the end.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
                Err(error) => return Err(self.fault(error)),
            }
        }
        Ok(())
    }

    /// Bytes received and not yet consumed.
    #[inline]
    pub(super) fn available(&self) -> &[u8] {
        &self.input[self.start..self.end]
    }

    /// Bytes consumed since the channel was opened.
    #[inline]
    pub(super) fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Waits until at least `count` bytes are available.
    #[inline]
    pub(super) fn need(&mut self, count: usize) -> Result<(), WireError> {
        while self.end - self.start < count {
            self.receive(count)?;
        }
        Ok(())
    }

    /// Removes `count` bytes, which must be available.
    #[inline]
    pub(super) fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.end - self.start, "only what is there can be consumed");
        self.start += count;
        self.consumed += count as u64;
    }

    /// Removes `count` bytes, received or not, without keeping them.
    #[inline]
    pub(super) fn skip(&mut self, mut count: usize) -> Result<(), WireError> {
        loop {
            let now = count.min(self.end - self.start);
            self.consume(now);
            count -= now;
            if count == 0 {
                return Ok(());
            }
            self.receive(1)?;
        }
    }

    /// Reads once. Makes room for `count` bytes, but at most doubles the buffer: a length that the
    /// server only claims costs no memory until the bytes come.
    fn receive(&mut self, count: usize) -> Result<(), WireError> {
        if self.broken {
            return Err(self.out_of_step());
        }
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start + count > self.input.len() {
            self.input.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.input.len() {
            self.input.resize(self.input.len() * 2, 0);
        }
        if self.is_watched {
            return self.receive_watched(count);
        }
        if self.awaiting {
            self.awaiting = false;
            self.wait()?;
        }
        loop {
            match read(&mut self.stream, &mut self.input[self.end..]) {
                Ok(0) => return Err(self.closed()),
                Ok(received) => {
                    self.end += received;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(self.late()),
                Err(error) => return Err(self.fault(error)),
            }
        }
    }

    /// Reads once, within all limits of bytes and time.
    #[cold]
    fn receive_watched(&mut self, count: usize) -> Result<(), WireError> {
        if std::mem::take(&mut self.awaiting) {
            self.answer_by = self.answer_limit.map(|limit| Instant::now() + limit);
            self.answer_from = self.consumed;
        }
        let wanted = (self.end - self.start).max(count) as u64;
        if self.answer_limit.is_some() && self.consumed - self.answer_from + wanted > ANSWER_BYTES {
            return Err(self.confused("the server sent more than 128 MB in one answer"));
        }
        let received = self.consumed as usize + self.end - self.start;
        if self.deadline.is_some() && received.max(count) > LOGIN_BYTES {
            return Err(self.confused("the server sent more than 1 MB before the login ended"));
        }
        let read_by = self.limit.map(|limit| Instant::now() + limit);
        loop {
            let now = Instant::now();
            if is_stopped() {
                self.stop_by.get_or_insert(now + GRACE);
            }
            let by =
                [self.deadline, read_by, self.stop_by, self.answer_by].into_iter().flatten().min();
            let left = by.map_or(SLICE, |by| by.saturating_duration_since(now).min(SLICE));
            if left.is_zero() {
                return Err(self.late());
            }
            self.set_socket_timeout(Some(left.max(Duration::from_millis(1))))?;
            match read(&mut self.stream, &mut self.input[self.end..]) {
                Ok(0) => return Err(self.closed()),
                Ok(received) => {
                    self.end += received;
                    return Ok(());
                }
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut => {}
                    _ => return Err(self.fault(error)),
                },
            }
        }
    }

    /// Waits for the reply to begin, by poll where that is cheaper (see the top of this file).
    #[inline]
    fn wait(&mut self) -> Result<(), WireError> {
        let Stream::Unix(stream) = &self.stream else { return Ok(()) };
        loop {
            match poll(&mut [PollFd::new(stream, PollFlags::IN)], self.timeout.as_ref()) {
                Ok(0) => return Err(self.late()),
                // recv reports any other state.
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(self.fault(error.into())),
            }
        }
    }

    #[cold]
    fn late(&mut self) -> WireError {
        self.fault(io::Error::new(ErrorKind::TimedOut, "no reply within the time limit"))
    }

    /// The first byte that the server sends although nobody waits for it; `None` if it sends
    /// nothing, and always with TLS. A loader hears of a full disk before it has sent the last row.
    pub(super) fn spoken(&mut self) -> Result<Option<u8>, WireError> {
        if self.start < self.end {
            return Ok(Some(self.input[self.start]));
        }
        let set_nonblocking = |stream: &Stream, on| match stream {
            Stream::Unix(stream) => stream.set_nonblocking(on),
            Stream::Tcp(stream) => stream.set_nonblocking(on),
            Stream::Tls(_) => Ok(()),
        };
        if matches!(self.stream, Stream::Tls(_)) {
            return Ok(None);
        }
        (self.start, self.end) = (0, 0);
        set_nonblocking(&self.stream, true).map_err(|error| self.fault(error))?;
        let received = read(&mut self.stream, &mut self.input);
        set_nonblocking(&self.stream, false).map_err(|error| self.fault(error))?;
        match received {
            Ok(0) => Err(self.closed()),
            Ok(received) => {
                self.end = received;
                Ok(Some(self.input[0]))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(self.fault(error)),
        }
    }

    #[cold]
    fn closed(&mut self) -> WireError {
        self.fault(io::Error::new(
            ErrorKind::UnexpectedEof,
            "the server closed the connection; its log may say why",
        ))
    }

    /// Ends the connection with an error of the stream.
    pub(super) fn fault(&mut self, source: io::Error) -> WireError {
        self.broken = true;
        // With TLS 1.3, the server refuses the client's certificate after the handshake.
        if self.doing == LOG_IN
            && let Some(refused) = tls::refused_afterwards(&self.peer, &source)
        {
            return refused;
        }
        WireError::Io { doing: format!("{} {}", self.doing, self.peer), source }
    }

    /// Ends the connection with an error of the protocol.
    pub(super) fn confused(&mut self, what: impl Into<String>) -> WireError {
        self.broken = true;
        WireError::Protocol(format!("{} {}: {}", self.doing, self.peer, what.into()))
    }

    fn out_of_step(&self) -> WireError {
        WireError::Io {
            doing: format!("{} {}", self.doing, self.peer),
            source: io::Error::new(
                ErrorKind::NotConnected,
                "an earlier error ended the session; connect again",
            ),
        }
    }

    /// Encrypts the stream. Fails if unencrypted bytes are waiting: anybody could have sent them.
    pub(super) fn encrypt(mut self, address: &Address) -> Result<Channel, WireError> {
        if self.start != self.end {
            return Err(self.confused("the server sent extra bytes before TLS"));
        }
        let Address::Tcp { host, tls, .. } = address else { return Ok(self) };
        let Stream::Tcp(stream) = self.stream else { return Ok(self) };
        self.is_verified = tls.mode.verifies();
        self.stream = Stream::Tls(Box::new(tls::begin(stream, host, tls, self.deadline)?));
        Ok(self)
    }

    /// True if the stream is encrypted.
    pub(super) fn is_encrypted(&self) -> bool {
        matches!(self.stream, Stream::Tls(_))
    }

    /// The channel binding of this TLS session; `None` without TLS, or if none is defined for the
    /// signature of the server's certificate.
    pub(super) fn server_end_point(&self) -> Option<Vec<u8>> {
        let Stream::Tls(stream) = &self.stream else { return None };
        tls::server_end_point(stream.conn.peer_certificates()?.first()?)
    }
}

/// Connects to a unix socket. As root, not through a link of another user, and not to a socket that
/// another user may have given a second name: a server under test could lead this process to a
/// server that trusts root.
fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    if !rustix::process::geteuid().is_root() {
        return UnixStream::connect(path);
    }
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = rustix::fs::open(path, flags, Mode::empty())?;
    let facts = rustix::fs::fstat(&found)?;
    match (FileType::from_raw_mode(facts.st_mode), facts.st_uid, facts.st_nlink) {
        (FileType::Symlink, 0, _) => UnixStream::connect(path),
        (FileType::Symlink, user, _) => Err(io::Error::other(format!(
            "it is a link of user {user}, which root does not follow; name the socket itself"
        ))),
        // The very socket that was looked at.
        (_, _, 1) => UnixStream::connect(format!("/proc/self/fd/{}", found.as_raw_fd())),
        _ => Err(io::Error::other("it is a socket with several names, which root does not trust")),
    }
}

/// The descriptor of an unencrypted stream.
#[inline]
fn plain(stream: &Stream) -> Option<BorrowedFd<'_>> {
    match stream {
        Stream::Unix(stream) => Some(stream.as_fd()),
        Stream::Tcp(stream) => Some(stream.as_fd()),
        Stream::Tls(_) => None,
    }
}

#[inline]
fn write(stream: &mut Stream, bytes: &[u8]) -> io::Result<usize> {
    if let Some(descriptor) = plain(stream) {
        return Ok(send(descriptor, bytes, SendFlags::NOSIGNAL)?);
    }
    if let Stream::Tls(stream) = stream {
        use std::io::Write;
        let written = stream.write(bytes)?;
        stream.flush()?;
        return Ok(written);
    }
    Ok(0)
}

// Two callers, of which the watched one is rare.
#[inline(always)]
fn read(stream: &mut Stream, space: &mut [u8]) -> io::Result<usize> {
    if let Some(descriptor) = plain(stream) {
        return Ok(recv(descriptor, space, RecvFlags::empty())?.0);
    }
    if let Stream::Tls(stream) = stream {
        return std::io::Read::read(stream, space);
    }
    Ok(0)
}
