//! The copy from disk to disk: by reference where both are in one lane, else by reading and writing
//! in pieces, wherever the two are.
//!
//! Invariants:
//! - No piece is larger than [`PIECE_BYTES`], and two are held at a time: one that is written,
//!   and the next one. Each is read, and each is written, in one order with what others do to
//!   those blocks.
//! - What was copied is what was written: a piece that was read ahead counts for nothing, and
//!   that it could not be read is told when those before it were written.
//! - What the source has not mapped is cleared in the destination, not read.
//! - Ranges of one volume that overlap end as if all had been read before anything was
//!   written.
//! - Where the pool is full, room is asked for, and the copy goes on where it was.

use super::{CancelToken, Copier};
use crate::retries;
use base::{Slice, VolumeOffset};
use engine::{Disk, IoError, IoErrorKind, World};
use futures_util::future::{Either, join, select};
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

/// Most bytes that are read and written at once.
pub(super) const PIECE_BYTES: u64 = 1 << 20;
/// Most bytes that are cleared at once.
const CLEARED_BYTES: u64 = 256 << 20;
/// How often room is asked for before a copy gives up.
const TRIES_MAX: usize = 8;

/// A run of bytes of one disk, and where on another they are to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) len: u64,
}

impl Run {
    /// The same without what lies before.
    fn after(&self, done: u64) -> Run {
        Run {
            from: self.from + done,
            to: self.to + done,
            len: self.len - done,
        }
    }

    fn overlaps(&self) -> bool {
        self.from.abs_diff(self.to) < self.len
    }
}

/// Which of the two disks it was.
pub(super) enum Failure {
    Source(IoError),
    Destination(IoError),
}

/// Copies `run` until `cancel` is stopped; how many bytes came, from the start of it on, and
/// what stood in the way of the others.
pub(super) async fn copy<W: World>(
    copier: &dyn Copier<W>,
    (source, destination): (&Disk<W>, &Disk<W>),
    run: Run,
    cancel: &CancelToken,
) -> (u64, Result<(), Failure>) {
    let (source_is, destination_is) = (source.info(), destination.info());
    let same = source_is.uuid == destination_is.uuid;
    let mut done = 0;
    let mut waits_since = None;
    for tries in 1.. {
        let part = run.after(done);
        let overlaps = same && part.overlaps();
        cancel.reach(0);
        let copied = match by_reference((source, destination), part, cancel).await {
            Ok(None) => stream(copier, (source, destination), part, cancel, overlaps).await,
            Ok(Some(bytes)) => {
                cancel.reach(bytes);
                Ok(())
            }
            // The engine says what it was about, not on which side.
            Err(error) => Err(failed_side(error)),
        };
        let came = cancel.done().min(part.len);
        // What came from the end on is no beginning.
        let from_the_end = overlaps && part.to > part.from;
        if !from_the_end || came == part.len {
            done += came;
        }
        let asked = copier.world().now();
        let full = match &copied {
            Err(Failure::Destination(error)) => error.kind == IoErrorKind::PoolFull,
            _ => false,
        };
        let again = full && !overlaps && tries < TRIES_MAX && cancel.goes_on();
        if !again || !retries::made(copier, destination_is.uuid, cancel).await {
            return (done, copied);
        }
        // As of a WRITE, all tries for want of room begin within a time: initiators that have
        // given this way up write newer data by another.
        let now = copier.world().now();
        if now.since(*waits_since.get_or_insert(asked)) >= retries::PATIENCE {
            return (done, copied);
        }
    }
    (done, Ok(()))
}

/// In one lane: how many bytes, or `None` where that is not so, or can't be now.
async fn by_reference<W: World>(
    (source, destination): (&Disk<W>, &Disk<W>),
    run: Run,
    cancel: &CancelToken,
) -> Result<Option<u64>, IoError> {
    let ends = (VolumeOffset(run.from), VolumeOffset(run.to));
    let uuid = source.info().uuid;
    let copied = destination.copy_beside(uuid, ends, run.len, cancel).await;
    match copied {
        // One of them is on its way to another pool: it is read and written there. Nothing
        // was done of a run that says so before its first piece.
        Err(error) if error.kind == IoErrorKind::Withheld && cancel.done() == 0 => Ok(None),
        copied => copied,
    }
}

fn failed_side(error: IoError) -> Failure {
    match error.kind {
        IoErrorKind::PoolFull | IoErrorKind::ReadOnly => Failure::Destination(error),
        _ => Failure::Source(error),
    }
}

/// By reading and writing: each piece is read while the one before it is written. Of one
/// volume that is in order, too: in the direction that overlapping ranges are copied in, no
/// piece lies where those before it are written.
async fn stream<W: World>(
    copier: &dyn Copier<W>,
    (source, destination): (&Disk<W>, &Disk<W>),
    run: Run,
    cancel: &CancelToken,
    overlaps: bool,
) -> Result<(), Failure> {
    let backwards = overlaps && run.to > run.from;
    let fetch = async |begun: u64| {
        let left = run.len - begun;
        if left == 0 || !cancel.goes_on() {
            return Ok(None);
        }
        let place = match backwards {
            true => StreamPart::Data(Run {
                len: left.min(PIECE_BYTES),
                ..run.after(left - left.min(PIECE_BYTES))
            }),
            false => next_place(source, run.after(begun)).await?,
        };
        read(copier, source, place).await.map(Some)
    };
    let mut next = fetch(0).await?;
    let mut done = 0;
    while let Some(piece) = next.filter(|_| cancel.goes_on()) {
        let end = done + piece.run.len;
        // Both run to their end, whatever comes of the other.
        let (written, fetched) = join(write(destination, piece), fetch(end)).await;
        written?;
        done = end;
        cancel.reach(done);
        next = fetched?;
    }
    Ok(())
}

enum StreamPart {
    Data(Run),
    /// The source has nothing there.
    Hole(Run),
}

/// The first part of `rest`. Data ends where the destination has whole pieces, which are
/// written fastest.
async fn next_place<W: World>(source: &Disk<W>, rest: Run) -> Result<StreamPart, Failure> {
    let mapping = source.mapping(VolumeOffset(rest.from)).await;
    let mapping = mapping.map_err(Failure::Source)?;
    let len = mapping.len_bytes.min(rest.len);
    if !mapping.is_mapped && len > 0 {
        let len = len.min(CLEARED_BYTES);
        return Ok(StreamPart::Hole(Run { len, ..rest }));
    }
    let most = (PIECE_BYTES - rest.to % PIECE_BYTES).min(rest.len);
    let len = match len {
        // Nobody knows how far it goes: it is read.
        0 => most,
        len => len.min(most),
    };
    Ok(StreamPart::Data(Run { len, ..rest }))
}

/// What is to be written; zeroes without data.
struct Piece {
    run: Run,
    data: Option<Slice>,
}

async fn read<W: World>(
    copier: &dyn Copier<W>,
    source: &Disk<W>,
    place: StreamPart,
) -> Result<Piece, Failure> {
    let run = match place {
        StreamPart::Data(run) => run,
        StreamPart::Hole(run) => return Ok(Piece { run, data: None }),
    };
    let read = source.read(VolumeOffset(run.from), run.len as usize).await;
    let read = read.map_err(Failure::Source)?;
    let data: Slice = match <[Slice; 1]>::try_from(read.parts.to_vec()) {
        Ok([whole]) if whole.is_aligned() => whole,
        _ => {
            let mut whole = copier.world().buffers().data(run.len as usize);
            whole.put_all(0, &read);
            whole.freeze()
        }
    };
    let data = Some(data);
    Ok(Piece { run, data })
}

async fn write<W: World>(destination: &Disk<W>, piece: Piece) -> Result<(), Failure> {
    let Piece { run, data } = piece;
    let at = VolumeOffset(run.to);
    let written = match data {
        Some(data) => destination.write(at, data).await,
        None => destination.clear(at, run.len).await,
    };
    written.map_err(Failure::Destination)
}

/// Runs `copy` to its end; when it takes longer than `patience`, `cancel` is stopped.
pub(super) async fn within<W: World, T>(
    copier: &dyn Copier<W>,
    patience: Duration,
    cancel: &CancelToken,
    copy: impl Future<Output = T>,
) -> T {
    let (copy, asleep) = (pin!(copy), pin!(copier.world().sleep(patience)));
    match select(copy, asleep).await {
        Either::Left((done, _)) => done,
        Either::Right(((), copy)) => {
            cancel.stop();
            copy.await
        }
    }
}
