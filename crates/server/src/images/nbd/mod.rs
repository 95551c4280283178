//! A client of the Network Block Device protocol, for a `qemu-nbd` that we started.
//!
//! The protocol is `doc/proto.md` of <https://github.com/NetworkBlockDevice/nbd>. The socket is
//! ours, and one request is under way at a time.
//!
//! Invariant: after an error nothing is asked any more; the connection is out of step.

mod handshake;

use base::Buf;
use std::collections::VecDeque;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// Longest wait for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(120);

/// "Request types".
const READ: u16 = 0;
const WRITE: u16 = 1;
const DISCONNECT: u16 = 2;
const FLUSH: u16 = 3;
const BLOCK_STATUS: u16 = 7;

const REQUEST_MAGIC: u32 = 0x2560_9513;
const SIMPLE_MAGIC: u32 = 0x6744_6698;
const CHUNK_MAGIC: u32 = 0x668e_33ef;

/// "Structured reply flags" and "types".
const LAST: u16 = 1 << 0;
const NONE: u16 = 0;
const DATA: u16 = 1;
const HOLE: u16 = 2;
const STATUS: u16 = 5;
const ERRORS: u16 = 1 << 15;

/// Of `base:allocation`: reads as zeroes.
const ZERO: u32 = 1 << 1;

/// An answer of extents, or an error with its text, is not longer.
const ANSWER_BYTES_MAX: u32 = 1 << 20;
/// What extents are asked for at once.
const STATUS_BYTES_MAX: u64 = 1 << 30;

type Outcome<T> = Result<T, String>;

/// A connection.
#[derive(Debug)]
pub(super) struct Client {
    stream: UnixStream,
    size_bytes: u64,
    has_extents: bool,
    cookie: u64,
    /// What is known of the extents ahead: end, and whether there is data.
    known: VecDeque<(u64, bool)>,
}

/// What a chunk of an answer has beside its payload.
struct Chunk {
    flags: u16,
    kind: u16,
    len: u32,
}

fn lost(error: std::io::Error) -> String {
    format!("qemu-nbd has ended or failed: {error}")
}

/// `asked`, but not for ever.
async fn in_time<T>(asked: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    match tokio::time::timeout(ANSWER_MAX, asked).await {
        Ok(outcome) => outcome,
        Err(_) => Err(format!(
            "qemu-nbd has not answered for {} s",
            ANSWER_MAX.as_secs()
        )),
    }
}

impl Client {
    /// Connects to the server at `socket`; `None` when there is none yet.
    ///
    /// # Errors
    /// It does not speak as it should.
    pub(super) async fn connect(socket: &Path) -> Outcome<Option<Self>> {
        let Ok(mut stream) = UnixStream::connect(socket).await else {
            return Ok(None);
        };
        let agreed = in_time(handshake::negotiate(&mut stream)).await?;
        Ok(Some(Client {
            stream,
            size_bytes: agreed.size_bytes,
            has_extents: agreed.has_extents,
            cookie: 0,
            known: VecDeque::new(),
        }))
    }

    /// Size of the disk.
    pub(super) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Whether there is data at `at`, and up to where it is alike.
    ///
    /// # Errors
    /// The server fails.
    pub(super) async fn extent(&mut self, at: u64) -> Outcome<(bool, u64)> {
        if !self.has_extents {
            return Ok((true, self.size_bytes - at));
        }
        while self.known.front().is_some_and(|(end, _)| *end <= at) {
            self.known.pop_front();
        }
        if self.known.is_empty() {
            in_time(self.ask_extents(at)).await?;
        }
        match self.known.front() {
            Some((end, is_data)) => Ok((*is_data, end - at)),
            None => Err("qemu-nbd tells of no extents".to_owned()),
        }
    }

    async fn ask_extents(&mut self, at: u64) -> Outcome<()> {
        let len = (self.size_bytes - at).min(STATUS_BYTES_MAX);
        self.request(BLOCK_STATUS, at, len as u32).await?;
        let mut end = at;
        loop {
            let chunk = self.chunk().await?;
            let payload = self.payload(&chunk).await?;
            if chunk.kind == STATUS {
                // The context, then pairs of length and flags.
                for pair in payload.get(4..).unwrap_or_default().chunks_exact(8) {
                    let len = u32::from_be_bytes([pair[0], pair[1], pair[2], pair[3]]);
                    let flags = u32::from_be_bytes([pair[4], pair[5], pair[6], pair[7]]);
                    if len == 0 {
                        return Err("qemu-nbd tells of an extent without length".to_owned());
                    }
                    end = (end + u64::from(len)).min(self.size_bytes);
                    self.known.push_back((end, flags & ZERO == 0));
                }
            }
            if chunk.flags & LAST != 0 {
                return Ok(());
            }
        }
    }

    /// Reads what is at `at` into a part of `buf`.
    ///
    /// # Errors
    /// The server fails, or can't read it.
    pub(super) async fn read(&mut self, at: u64, buf: Buf, part: Range<usize>) -> Outcome<Buf> {
        in_time(self.read_chunks(at, buf, part)).await
    }

    async fn read_chunks(&mut self, at: u64, mut buf: Buf, part: Range<usize>) -> Outcome<Buf> {
        self.request(READ, at, part.len() as u32).await?;
        let into = buf.bytes_mut().and_then(|bytes| bytes.get_mut(part));
        let into = into.ok_or("a read without a place to go to")?;
        let mut left = into.len();
        loop {
            let chunk = self.chunk().await?;
            match chunk.kind {
                DATA | HOLE => {
                    let head = if chunk.kind == DATA { 8 } else { 12 };
                    if chunk.len < head {
                        return Err("qemu-nbd answers with too little".to_owned());
                    }
                    let place = self.stream.read_u64().await.map_err(lost)?;
                    let len = match chunk.kind {
                        DATA => chunk.len - head,
                        _ => self.stream.read_u32().await.map_err(lost)?,
                    };
                    let from = place
                        .checked_sub(at)
                        .and_then(|from| usize::try_from(from).ok());
                    let run = from.and_then(|from| into.get_mut(from..)?.get_mut(..len as usize));
                    let run = run.ok_or("qemu-nbd answers with what was not asked for")?;
                    match chunk.kind {
                        DATA => drop(self.stream.read_exact(run).await.map_err(lost)?),
                        _ => run.fill(0),
                    }
                    left = left.saturating_sub(len as usize);
                }
                _ => drop(self.payload(&chunk).await?),
            }
            if chunk.flags & LAST != 0 {
                return match left {
                    0 => Ok(buf),
                    _ => Err("qemu-nbd answers with too little".to_owned()),
                };
            }
        }
    }

    /// Writes `data` at `at`.
    ///
    /// # Errors
    /// The server fails, or can't write it.
    pub(super) async fn write(&mut self, at: u64, data: &[u8]) -> Outcome<()> {
        in_time(async {
            self.request(WRITE, at, data.len() as u32).await?;
            self.stream.write_all(data).await.map_err(lost)?;
            self.done().await
        })
        .await
    }

    /// Ends when all that was written is on stable media.
    ///
    /// # Errors
    /// The server fails, or can't.
    pub(super) async fn flush(&mut self) -> Outcome<()> {
        in_time(async {
            self.request(FLUSH, 0, 0).await?;
            self.done().await
        })
        .await
    }

    /// Says goodbye: the server closes the image.
    ///
    /// # Errors
    /// The server has gone before.
    pub(super) async fn disconnect(mut self) -> Outcome<()> {
        in_time(self.request(DISCONNECT, 0, 0)).await
    }

    async fn request(&mut self, kind: u16, at: u64, len: u32) -> Outcome<()> {
        self.cookie += 1;
        let mut request = Vec::with_capacity(28);
        request.extend(REQUEST_MAGIC.to_be_bytes());
        request.extend(0u16.to_be_bytes());
        request.extend(kind.to_be_bytes());
        request.extend(self.cookie.to_be_bytes());
        request.extend(at.to_be_bytes());
        request.extend(len.to_be_bytes());
        self.stream.write_all(&request).await.map_err(lost)
    }

    /// An answer that is nothing but an outcome.
    async fn done(&mut self) -> Outcome<()> {
        loop {
            let chunk = self.chunk().await?;
            self.payload(&chunk).await?;
            if chunk.flags & LAST != 0 {
                return Ok(());
            }
        }
    }

    async fn chunk(&mut self) -> Outcome<Chunk> {
        let magic = self.stream.read_u32().await.map_err(lost)?;
        let chunk = match magic {
            CHUNK_MAGIC => {
                let flags = self.stream.read_u16().await.map_err(lost)?;
                let kind = self.stream.read_u16().await.map_err(lost)?;
                self.check_cookie().await?;
                let len = self.stream.read_u32().await.map_err(lost)?;
                Chunk { flags, kind, len }
            }
            SIMPLE_MAGIC => {
                let error = self.stream.read_u32().await.map_err(lost)?;
                self.check_cookie().await?;
                if error != 0 {
                    let error = std::io::Error::from_raw_os_error(error as i32);
                    return Err(format!("qemu-nbd: {error}"));
                }
                Chunk {
                    flags: LAST,
                    kind: NONE,
                    len: 0,
                }
            }
            _ => return Err("qemu-nbd does not answer as an NBD server does".to_owned()),
        };
        Ok(chunk)
    }

    async fn check_cookie(&mut self) -> Outcome<()> {
        let cookie = self.stream.read_u64().await.map_err(lost)?;
        match cookie == self.cookie {
            true => Ok(()),
            false => Err("qemu-nbd answers what was not asked".to_owned()),
        }
    }

    /// The payload of a chunk without data of the disk; an error is one.
    async fn payload(&mut self, chunk: &Chunk) -> Outcome<Vec<u8>> {
        if chunk.len > ANSWER_BYTES_MAX {
            return Err("qemu-nbd answers with too much".to_owned());
        }
        let mut payload = vec![0; chunk.len as usize];
        self.stream.read_exact(&mut payload).await.map_err(lost)?;
        if chunk.kind & ERRORS == 0 {
            return Ok(payload);
        }
        let number = payload.first_chunk().map_or(0, |n| u32::from_be_bytes(*n));
        let error = std::io::Error::from_raw_os_error(number as i32);
        let said = payload
            .get(6..)
            .map(String::from_utf8_lossy)
            .unwrap_or_default();
        let said: String = said.chars().filter(|c| !c.is_control()).collect();
        Err(match said.is_empty() {
            true => format!("qemu-nbd: {error}"),
            false => format!("qemu-nbd: {error}: {said}"),
        })
    }
}
