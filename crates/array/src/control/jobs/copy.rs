//! Copies content from a source to a target, piece by piece, with its digest.
//!
//! Pieces are read ahead while those before are summed and written, so memory is bounded by
//! what lies between. Runs of zeroes are never written: targets are zeroes before.
//!
//! Invariant: what the digest of a checkpoint is of has been written and acknowledged.

use super::{Digest, Job, Jobs, Progress};
use crate::control::Runtime;
use base::{Buf, BufPool, Slice, Time};
use futures_channel::{mpsc, oneshot};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Either, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::future::poll_fn;
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// Read and written at once: whole pages of most pools, and whole clusters of images.
const PIECE_BYTES: u64 = 1 << 20;
/// Pieces between reader and writer.
const AHEAD: usize = 4;
/// A run of zeroes longer than this is told in several, so that progress shows.
const ZEROES_MAX: u64 = 64 << 20;
/// Time between two checkpoints.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(1);

/// Something to read from, from its beginning to its end.
pub trait Source: Send {
    /// Whether there may be data at `at`, which lies before the end, and how many bytes
    /// from there on are alike.
    fn extent(&mut self, at: u64) -> impl Future<Output = Result<(bool, u64), String>> + Send;

    /// Reads what is at `at` into a part of `buf`.
    fn read(
        &mut self,
        at: u64,
        buf: Buf,
        part: Range<usize>,
    ) -> impl Future<Output = Result<Buf, String>> + Send;
}

/// Something to write to. It reads as zeroes before the first write.
pub trait Target: Send + Sync {
    /// Runs of zeroes that begin and end at multiples of this are not written.
    fn grain_bytes(&self) -> usize;

    /// How many writes may be on their way at once.
    fn depth(&self) -> usize;

    /// Writes `data` at `at`.
    fn write(&self, at: u64, data: Slice) -> BoxFuture<'static, Result<(), String>>;
}

/// A run of content.
#[derive(Debug)]
enum Piece {
    Zeroes(u64),
    Data(Slice),
}

/// What a copy is to keep to.
pub struct Copy {
    runtime: Arc<dyn Runtime>,
    pub progress: Arc<Progress>,
    /// What is copied already, with its sum.
    digest: Digest,
    pub size_bytes: u64,
    rate_bytes_per_s: Option<u64>,
}

impl Jobs {
    /// How to go through the disk of a job, of which `digest` has been done.
    ///
    /// # Errors
    /// There is no such job any more.
    pub fn through(&self, job: &Job, digest: Digest) -> Result<Copy, String> {
        Ok(Copy {
            runtime: Arc::clone(&self.runtime),
            progress: self.progress(job.id).ok_or("the job is gone")?,
            digest,
            size_bytes: job.size_bytes,
            rate_bytes_per_s: job.order.rate_bytes_per_s,
        })
    }
}

impl Copy {
    /// Copies all that is left, and gives the sum of everything. `checkpoint` is called
    /// with the sum of what has been written now and then.
    ///
    /// # Errors
    /// Of the source, the target or the checkpoint. What was written stays.
    pub async fn run<F>(
        self,
        source: impl Source,
        target: Option<&dyn Target>,
        checkpoint: impl FnMut(Digest) -> F,
    ) -> Result<Digest, String>
    where
        F: Future<Output = Result<(), String>>,
    {
        let from = self.digest.len_bytes();
        self.progress.begin(from, self.size_bytes);
        // The sender has a place of its own.
        let (pieces, inbox) = mpsc::channel(AHEAD - 1);
        let reads = pin!(read(source, from..self.size_bytes, pieces));
        let writes = pin!(self.write_all(inbox, target, checkpoint));
        match select(reads, writes).await {
            Either::Left(((), writes)) => writes.await,
            Either::Right((outcome, _)) => outcome,
        }
    }

    async fn write_all<F>(
        mut self,
        mut inbox: mpsc::Receiver<Result<Piece, String>>,
        target: Option<&dyn Target>,
        mut checkpoint: impl FnMut(Digest) -> F,
    ) -> Result<Digest, String>
    where
        F: Future<Output = Result<(), String>>,
    {
        let mut writes = Writes::new();
        let mut pace = Pace::new(&*self.runtime, self.rate_bytes_per_s);
        let mut kept = self.runtime.now();
        while let Some(piece) = inbox.next().await {
            let piece = piece?;
            let at = self.digest.len_bytes();
            let mut written = 0;
            let len = match &piece {
                Piece::Zeroes(len) => *len,
                Piece::Data(data) => {
                    pace.wait_for(&*self.runtime, data.len() as u64).await;
                    if let Some(target) = target {
                        written = send(&*self.runtime, target, (at, data), &mut writes).await?;
                    }
                    data.len() as u64
                }
            };
            self.digest = add(&*self.runtime, self.digest, piece).await?;
            self.progress.advance(len, written);
            if self.runtime.now().since(kept) >= CHECKPOINT_EVERY {
                drain(&mut writes, 0).await?;
                checkpoint(self.digest.clone()).await?;
                kept = self.runtime.now();
            }
        }
        drain(&mut writes, 0).await?;
        match self.digest.len_bytes() == self.size_bytes {
            true => Ok(self.digest),
            false => Err("reading ended early".to_owned()),
        }
    }
}

/// On their way, each in a task of its own.
type Writes = FuturesUnordered<BoxFuture<'static, Option<Result<(), String>>>>;

/// Sends what is not zeroes of a piece on its way; says how much that is.
async fn send(
    runtime: &dyn Runtime,
    target: &dyn Target,
    (at, data): (u64, &Slice),
    writes: &mut Writes,
) -> Result<u64, String> {
    let mut sent = 0;
    for run in runs(data.bytes().unwrap_or_default(), at, target.grain_bytes()) {
        drain(writes, target.depth() - 1).await?;
        let part = data.slice(run.start, run.len());
        sent += part.len() as u64;
        let write = target.write(at + run.start as u64, part);
        writes.push(runtime.run(write).boxed());
    }
    Ok(sent)
}

/// Waits until no more than `left` writes are on their way.
async fn drain(writes: &mut Writes, left: usize) -> Result<(), String> {
    while writes.len() > left {
        match writes.next().await {
            Some(Some(outcome)) => outcome?,
            Some(None) => return Err("a write ended early".to_owned()),
            None => {}
        }
    }
    Ok(())
}

async fn add(runtime: &dyn Runtime, mut digest: Digest, piece: Piece) -> Result<Digest, String> {
    let (answer, answered) = oneshot::channel();
    let sum = move || {
        match piece {
            Piece::Zeroes(len) => digest.add_zeroes(len),
            Piece::Data(data) => digest.add(data.bytes().unwrap_or_default()),
        }
        // Nobody may wait for it any more.
        let _ = answer.send(digest);
    };
    runtime.aside(Box::new(sum)).await?;
    answered.await.map_err(|_| "a sum ended early".to_owned())
}

/// The runs of `bytes`, which lie at `at`, that are not all zeroes, cut at multiples of
/// `grain`.
fn runs(bytes: &[u8], at: u64, grain: usize) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut from = 0;
    while from < bytes.len() {
        let inside = ((at + from as u64) % grain as u64) as usize;
        let to = (from + grain - inside).min(bytes.len());
        if !is_zero(&bytes[from..to]) {
            match runs.last_mut() {
                Some(last) if last.end == from => last.end = to,
                _ => runs.push(from..to),
            }
        }
        from = to;
    }
    runs
}

fn is_zero(bytes: &[u8]) -> bool {
    static ZEROES: [u8; 4096] = [0; 4096];
    let mut parts = bytes.chunks(ZEROES.len());
    parts.all(|part| part == &ZEROES[..part.len()])
}

/// Reads `what` in pieces, until nobody wants more.
async fn read(
    mut source: impl Source,
    what: Range<u64>,
    mut pieces: mpsc::Sender<Result<Piece, String>>,
) {
    let mut at = what.start;
    while at < what.end {
        let piece = next(&mut source, at, what.end).await;
        let is_last = piece.is_err();
        at += match &piece {
            Ok(Piece::Zeroes(len)) => *len,
            Ok(Piece::Data(data)) => data.len() as u64,
            Err(_) => 0,
        };
        let is_wanted = poll_fn(|cx| pieces.poll_ready(cx)).await.is_ok();
        if !is_wanted || pieces.start_send(piece).is_err() || is_last {
            return;
        }
    }
}

/// The piece at `at`: zeroes up to where a piece with data begins, or a piece with data.
async fn next(source: &mut impl Source, at: u64, end: u64) -> Result<Piece, String> {
    let piece_end = ((at / PIECE_BYTES + 1) * PIECE_BYTES).min(end);
    let (is_data, alike) = known(source.extent(at).await?, at, end)?;
    if !is_data && at + alike >= piece_end {
        let to = match at + alike >= end {
            true => end,
            false => (at + alike) / PIECE_BYTES * PIECE_BYTES,
        };
        return Ok(Piece::Zeroes((to - at).min(ZEROES_MAX)));
    }
    let mut buf = zeroes((piece_end - at) as usize);
    let mut from = at;
    while from < piece_end {
        let (is_data, alike) = known(source.extent(from).await?, from, end)?;
        let to = (from + alike).min(piece_end);
        if is_data {
            let part = (from - at) as usize..(to - at) as usize;
            buf = source.read(from, buf, part).await?;
        }
        from = to;
    }
    Ok(Piece::Data(buf.freeze()))
}

/// An extent that goes on: without length it would never end.
fn known((is_data, alike): (bool, u64), at: u64, end: u64) -> Result<(bool, u64), String> {
    match alike.min(end - at) {
        0 => Err(format!(
            "it ends at byte {at}, before its size of {end}: is it cut short?"
        )),
        alike => Ok((is_data, alike)),
    }
}

/// A buffer that is of no shard's pool: it goes from thread to thread.
fn zeroes(len: usize) -> Buf {
    BufPool::new().zeroed(len)
}

/// Keeps to a rate of data.
struct Pace {
    rate_bytes_per_s: Option<u64>,
    due: Time,
}

impl Pace {
    fn new(runtime: &dyn Runtime, rate_bytes_per_s: Option<u64>) -> Self {
        Pace {
            rate_bytes_per_s,
            due: runtime.now(),
        }
    }

    async fn wait_for(&mut self, runtime: &dyn Runtime, len: u64) {
        let Some(rate) = self.rate_bytes_per_s else {
            return;
        };
        let now = runtime.now();
        if self.due > now {
            runtime.sleep(self.due.since(now)).await;
        }
        let takes = Duration::from_secs_f64(len as f64 / rate.max(1) as f64);
        // What was missed is not made up for.
        self.due = self.due.max(runtime.now()) + takes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeroes_are_left_out_by_the_grain_of_the_disk() {
        let mut bytes = vec![0; 16384];
        let found = |bytes: &[u8], at, grain| -> Vec<(usize, usize)> {
            let runs = runs(bytes, at, grain).into_iter();
            runs.map(|run| (run.start, run.end)).collect()
        };
        assert_eq!(found(&bytes, 0, 4096), []);
        bytes[5000] = 1;
        assert_eq!(found(&bytes, 0, 4096), [(4096, 8192)]);
        // The piece begins in the middle of a grain.
        assert_eq!(found(&bytes, 1024, 4096), [(3072, 7168)]);
        bytes[8192] = 1;
        assert_eq!(found(&bytes, 0, 4096), [(4096, 12288)]);
        bytes[16383] = 1;
        assert_eq!(found(&bytes, 0, 4096), [(4096, 16384)]);
        bytes[8192] = 0;
        assert_eq!(found(&bytes, 0, 4096), [(4096, 8192), (12288, 16384)]);
        assert_eq!(found(&bytes, 0, 1 << 20), [(0, 16384)]);
    }
}
