//! An NBD export, by a small client of our own.
//!
//! Structured replies are an option that it does not ask for: a request has one reply, of 16 bytes and
//! the data of a read. [`nbd`] has the protocol.
//!
//! Invariants: the socket never blocks after the handshake; every reply's cookie
//! names a request that is under way, or the server breaks the protocol.

use super::{Completion, Endpoint, Geometry, Interest, OpenOptions, Request};
use super::{LOOK_TIMEOUT, TargetError, TargetErrorKind};
use crate::os;
use nbd::{Handshake, Header, Refusal, RefusalKind, Wanted};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};
use workload::generator::Kind;
use workload::pattern::Pattern;
use workload::url::{NbdServer, TargetUrl};

/// An open NBD export and its connection.
#[derive(Debug)]
pub struct NbdEndpoint {
    url: TargetUrl,
    geometry: Geometry,
    stream: Stream,
    pattern: Arc<Pattern>,
    /// Bytes to send, from `sent` on.
    outgoing: Vec<u8>,
    sent: usize,
    /// Bytes of a reply read so far.
    reply: [u8; nbd::SIMPLE_BYTES],
    reply_filled: usize,
    /// The read whose data is arriving, and how much of it is still to come.
    arriving: Option<(u64, usize)>,
    /// Requests under way: token to kind and size.
    pending: BTreeMap<u64, (Kind, u32)>,
    scratch: Vec<u8>,
    /// What is read goes here while somebody looks.
    looked_at: Option<Vec<u8>>,
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn connect(server: &NbdServer, timeout: Duration) -> io::Result<Stream> {
        match server {
            NbdServer::Unix(path) => UnixStream::connect(path).map(Stream::Unix),
            NbdServer::Tcp(address) => {
                let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
                for address in address.to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, timeout) {
                        Ok(stream) => {
                            stream.set_nodelay(true)?;
                            return Ok(Stream::Tcp(stream));
                        }
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
        }
    }

    /// Blocking with a timeout for the handshake, then, without one, never blocking.
    fn set_blocking(&self, timeout: Option<Duration>) -> io::Result<()> {
        let blocking = timeout.is_some();
        match self {
            Stream::Tcp(stream) => {
                stream.set_read_timeout(timeout)?;
                stream.set_write_timeout(timeout)?;
                stream.set_nonblocking(!blocking)
            }
            Stream::Unix(stream) => {
                stream.set_read_timeout(timeout)?;
                stream.set_write_timeout(timeout)?;
                stream.set_nonblocking(!blocking)
            }
        }
    }

    fn fd(&self) -> RawFd {
        match self {
            Stream::Tcp(stream) => stream.as_raw_fd(),
            Stream::Unix(stream) => stream.as_raw_fd(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(bytes),
            Stream::Unix(stream) => stream.read(bytes),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl NbdEndpoint {
    /// Connects and negotiates.
    ///
    /// # Errors
    /// `Unreachable`, `Refused`, `Absent`, `Protocol`.
    pub fn open(
        url: &TargetUrl,
        server: &NbdServer,
        export: &str,
        options: &OpenOptions,
    ) -> Result<Self, TargetError> {
        let mut stream = Stream::connect(server, options.timeout).map_err(|error| {
            let detail = format!("cannot connect: {error}; is the NBD server running there?");
            TargetError::new(TargetErrorKind::Unreachable, url, detail)
        })?;
        let unusable = |error: io::Error| {
            let detail = format!("the handshake failed: {error}; is this an NBD server?");
            TargetError::new(TargetErrorKind::Unreachable, url, detail)
        };
        stream
            .set_blocking(Some(options.timeout))
            .map_err(unusable)?;
        let geometry = negotiate(&mut stream, export)
            .map_err(|(kind, detail)| TargetError::new(kind, url, detail))?;
        stream.set_blocking(None).map_err(unusable)?;
        Ok(NbdEndpoint {
            url: url.clone(),
            geometry,
            stream,
            pattern: Arc::clone(&options.pattern),
            outgoing: Vec::new(),
            sent: 0,
            reply: [0; nbd::SIMPLE_BYTES],
            reply_filled: 0,
            arriving: None,
            pending: BTreeMap::new(),
            scratch: vec![0; 256 << 10],
            looked_at: None,
        })
    }

    fn lost(&self, detail: String) -> TargetError {
        TargetError::new(TargetErrorKind::Lost, &self.url, detail)
    }

    fn broken(&self, detail: String) -> TargetError {
        TargetError::new(TargetErrorKind::Protocol, &self.url, detail)
    }

    /// Reads once into `space`; 0 when nothing is there now.
    fn receive(&mut self, at: Incoming, limit: usize) -> Result<usize, TargetError> {
        let space = match at {
            Incoming::Reply => &mut self.reply[self.reply_filled..],
            Incoming::Data => {
                let limit = limit.min(self.scratch.len());
                &mut self.scratch[..limit]
            }
        };
        match self.stream.read(space) {
            Ok(0) => Err(self.lost("the server closed the connection".into())),
            Ok(count) => Ok(count),
            Err(error) if again(&error) => Ok(0),
            Err(error) => Err(self.lost(format!("the connection failed: {error}"))),
        }
    }

    /// A whole reply header is there.
    fn take_reply(&mut self, completions: &mut Vec<Completion>) -> Result<(), TargetError> {
        self.reply_filled = 0;
        let Some(Header::Simple { error, cookie }) = Header::parse(&self.reply) else {
            let magic = &self.reply[..nbd::MAGIC_BYTES];
            return Err(self.broken(format!("a reply starts with {magic:02x?}")));
        };
        let token = cookie;
        let Some(&(kind, bytes)) = self.pending.get(&token) else {
            return Err(self.broken(format!(
                "a reply to request {token}, which is not under way"
            )));
        };
        if error == 0 && kind == Kind::Read {
            self.arriving = Some((token, bytes as usize));
            return Ok(());
        }
        self.pending.remove(&token);
        let outcome = if error == 0 {
            Ok(())
        } else {
            Err(format!("the server answered {}", nbd::error_text(error)))
        };
        completions.push(Completion { token, outcome });
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Incoming {
    Reply,
    Data,
}

/// Goes from a fresh connection to the transmission phase of `export`.
fn negotiate(stream: &mut Stream, export: &str) -> Result<Geometry, (TargetErrorKind, String)> {
    let failed = |error: io::Error| {
        let detail = format!("the handshake failed: {error}; is this an NBD server?");
        (TargetErrorKind::Unreachable, detail)
    };
    let refused = |refusal: Refusal| {
        let kind = match refusal.kind {
            RefusalKind::Name => TargetErrorKind::Url,
            RefusalKind::Protocol => TargetErrorKind::Protocol,
            RefusalKind::Absent => TargetErrorKind::Absent,
            RefusalKind::Refused => TargetErrorKind::Refused,
        };
        (kind, refusal.context)
    };
    let wanted = Wanted {
        export,
        extents: false,
    };
    let mut handshake = Handshake::new(wanted).map_err(refused)?;
    loop {
        let said = handshake.take_output();
        stream.write_all(&said).map_err(failed)?;
        let mut heard = vec![0; handshake.wants_bytes()];
        stream.read_exact(&mut heard).map_err(failed)?;
        if let Some(agreed) = handshake.feed(&heard).map_err(refused)? {
            return Ok(Geometry {
                capacity_bytes: agreed.size_bytes,
                block_bytes: agreed.block_bytes,
                read_only: agreed.is_read_only,
            });
        }
    }
}

fn again(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

impl Endpoint for NbdEndpoint {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn submit(&mut self, request: Request) -> Result<(), TargetError> {
        let command = match request.kind {
            Kind::Read => nbd::READ,
            Kind::Write => nbd::WRITE,
        };
        let (at, len) = (request.offset_bytes, request.bytes);
        let out = &mut self.outgoing;
        out.extend(nbd::request(command, request.token, at, len));
        if request.kind == Kind::Write {
            let start = out.len();
            out.resize(start + request.bytes as usize, 0);
            self.pattern
                .fill(request.offset_bytes, request.sequence, &mut out[start..]);
        }
        let before = self
            .pending
            .insert(request.token, (request.kind, request.bytes));
        assert!(
            before.is_none(),
            "token {} is under way twice",
            request.token
        );
        Ok(())
    }

    fn flush(&mut self) -> Result<(), TargetError> {
        while self.sent < self.outgoing.len() {
            match self.stream.write(&self.outgoing[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if again(&error) => return Ok(()),
                Err(error) => return Err(self.lost(format!("the connection failed: {error}"))),
            }
        }
        self.outgoing.clear();
        self.sent = 0;
        Ok(())
    }

    fn interest(&self) -> Interest {
        let sending = if self.outgoing.is_empty() {
            0
        } else {
            libc::POLLOUT
        };
        Interest {
            fd: self.stream.fd(),
            events: libc::POLLIN | sending,
        }
    }

    fn service(
        &mut self,
        _revents: i16,
        completions: &mut Vec<Completion>,
    ) -> Result<(), TargetError> {
        self.flush()?;
        loop {
            if let Some((token, left)) = self.arriving {
                let count = self.receive(Incoming::Data, left)?;
                if count == 0 {
                    return Ok(());
                }
                if let Some(kept) = &mut self.looked_at {
                    kept.extend_from_slice(&self.scratch[..count]);
                }
                self.arriving = Some((token, left - count));
                if left == count {
                    self.arriving = None;
                    self.pending.remove(&token);
                    completions.push(Completion {
                        token,
                        outcome: Ok(()),
                    });
                }
                continue;
            }
            let count = self.receive(Incoming::Reply, nbd::SIMPLE_BYTES)?;
            if count == 0 {
                return Ok(());
            }
            self.reply_filled += count;
            if self.reply_filled == nbd::SIMPLE_BYTES {
                self.take_reply(completions)?;
            }
        }
    }

    fn look(&mut self, offset_bytes: u64, bytes: u32) -> Result<Vec<u8>, String> {
        let request = Request {
            token: 0,
            kind: Kind::Read,
            offset_bytes,
            bytes,
            sequence: 0,
        };
        self.looked_at = Some(Vec::with_capacity(bytes as usize));
        let submitted = self.submit(request).map_err(|error| error.detail);
        let ended = submitted.and_then(|()| self.one_ended());
        let data = self.looked_at.take().unwrap_or_default();
        ended.map(|()| data)
    }
}

impl NbdEndpoint {
    /// Waits until the one request under way has ended.
    fn one_ended(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + LOOK_TIMEOUT;
        let (mut completions, mut revents) = (Vec::new(), Vec::new());
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err("no answer in time".into());
            }
            os::wait(&[self.interest()], left, &mut revents)
                .map_err(|error| format!("cannot wait for the socket: {error}"))?;
            let serviced = self.service(0, &mut completions);
            serviced.map_err(|error| error.detail)?;
            if let Some(Completion { outcome, .. }) = completions.pop() {
                return outcome;
            }
        }
    }
}

impl Drop for NbdEndpoint {
    /// Says goodbye, as the protocol asks, if the socket takes it at once.
    fn drop(&mut self) {
        if self.outgoing.is_empty() {
            // A server that does not get it sees the connection close instead.
            let goodbye = nbd::request(nbd::DISCONNECT, 0, 0, 0);
            let _ = self.stream.write(&goodbye);
        }
    }
}
