//! A client of a `qemu-nbd` that we started.
//!
//! The socket is ours, and one request is under way at a time. [`nbd`] has the protocol.
//!
//! Invariant: after an error nothing is asked any more; the connection is out of step.

use ::nbd::{self as protocol, Chunk, ChunkKind, Export, Handshake, Header, Refusal, Wanted};
use base::Buf;
use std::collections::VecDeque;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// Longest wait for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(120);

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

/// Goes from a fresh connection to the transmission phase of the nameless export.
async fn negotiate(stream: &mut UnixStream) -> Outcome<Export> {
    let refused = |refusal: Refusal| format!("qemu-nbd: {}", refusal.context);
    let wanted = Wanted {
        export: "",
        extents: true,
    };
    let mut handshake = Handshake::new(wanted).map_err(refused)?;
    loop {
        let said = handshake.take_output();
        stream.write_all(&said).await.map_err(lost)?;
        let mut heard = vec![0; handshake.wants_bytes()];
        stream.read_exact(&mut heard).await.map_err(lost)?;
        if let Some(agreed) = handshake.feed(&heard).map_err(refused)? {
            return Ok(agreed);
        }
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
        let agreed = in_time(negotiate(&mut stream)).await?;
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
        self.request(protocol::BLOCK_STATUS, at, len as u32).await?;
        let mut end = at;
        loop {
            let chunk = self.chunk().await?;
            let payload = self.payload(&chunk).await?;
            if chunk.kind == ChunkKind::Extents {
                for (len, is_data) in protocol::extents(&payload) {
                    if len == 0 {
                        return Err("qemu-nbd tells of an extent without length".to_owned());
                    }
                    end = (end + u64::from(len)).min(self.size_bytes);
                    self.known.push_back((end, is_data));
                }
            }
            if chunk.is_last {
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
        self.request(protocol::READ, at, part.len() as u32).await?;
        let into = buf.bytes_mut().and_then(|bytes| bytes.get_mut(part));
        let into = into.ok_or("a read without a place to go to")?;
        let mut left = into.len();
        loop {
            let chunk = self.chunk().await?;
            match chunk.kind {
                ChunkKind::Data | ChunkKind::Hole => {
                    let head = if chunk.kind == ChunkKind::Data { 8 } else { 12 };
                    if chunk.len < head {
                        return Err("qemu-nbd answers with too little".to_owned());
                    }
                    let place = self.stream.read_u64().await.map_err(lost)?;
                    let len = match chunk.kind {
                        ChunkKind::Data => chunk.len - head,
                        _ => self.stream.read_u32().await.map_err(lost)?,
                    };
                    let from = place
                        .checked_sub(at)
                        .and_then(|from| usize::try_from(from).ok());
                    let run = from.and_then(|from| into.get_mut(from..)?.get_mut(..len as usize));
                    let run = run.ok_or("qemu-nbd answers with what was not asked for")?;
                    match chunk.kind {
                        ChunkKind::Data => drop(self.stream.read_exact(run).await.map_err(lost)?),
                        _ => run.fill(0),
                    }
                    left = left.saturating_sub(len as usize);
                }
                _ => drop(self.payload(&chunk).await?),
            }
            if chunk.is_last {
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
            self.request(protocol::WRITE, at, data.len() as u32).await?;
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
            self.request(protocol::FLUSH, 0, 0).await?;
            self.done().await
        })
        .await
    }

    /// Says goodbye: the server closes the image.
    ///
    /// # Errors
    /// The server has gone before.
    pub(super) async fn disconnect(mut self) -> Outcome<()> {
        in_time(self.request(protocol::DISCONNECT, 0, 0)).await
    }

    async fn request(&mut self, kind: u16, at: u64, len: u32) -> Outcome<()> {
        self.cookie += 1;
        let request = protocol::request(kind, self.cookie, at, len);
        self.stream.write_all(&request).await.map_err(lost)
    }

    /// An answer that is nothing but an outcome.
    async fn done(&mut self) -> Outcome<()> {
        loop {
            let chunk = self.chunk().await?;
            self.payload(&chunk).await?;
            if chunk.is_last {
                return Ok(());
            }
        }
    }

    async fn chunk(&mut self) -> Outcome<Chunk> {
        let strange = || "qemu-nbd does not answer as an NBD server does".to_owned();
        let mut magic = [0; protocol::MAGIC_BYTES];
        self.stream.read_exact(&mut magic).await.map_err(lost)?;
        let mut header = magic.to_vec();
        let rest = Header::rest_bytes(magic).ok_or_else(strange)?;
        header.resize(magic.len() + rest, 0);
        let rest = &mut header[magic.len()..];
        self.stream.read_exact(rest).await.map_err(lost)?;
        let header = Header::parse(&header).ok_or_else(strange)?;
        let (Header::Simple { cookie, .. } | Header::Chunk { cookie, .. }) = header;
        if cookie != self.cookie {
            return Err("qemu-nbd answers what was not asked".to_owned());
        }
        match header {
            Header::Chunk { chunk, .. } => Ok(chunk),
            Header::Simple { error: 0, .. } => Ok(Chunk {
                is_last: true,
                kind: ChunkKind::Other,
                len: 0,
            }),
            Header::Simple { error, .. } => {
                Err(format!("qemu-nbd: {}", protocol::error_text(error)))
            }
        }
    }

    /// The payload of a chunk without data of the disk; an error is one.
    async fn payload(&mut self, chunk: &Chunk) -> Outcome<Vec<u8>> {
        if chunk.len > protocol::ANSWER_BYTES_MAX {
            return Err("qemu-nbd answers with too much".to_owned());
        }
        let mut payload = vec![0; chunk.len as usize];
        self.stream.read_exact(&mut payload).await.map_err(lost)?;
        match chunk.kind {
            ChunkKind::Error => Err(format!("qemu-nbd: {}", protocol::error(&payload))),
            _ => Ok(payload),
        }
    }
}
