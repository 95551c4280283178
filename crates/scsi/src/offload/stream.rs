//! From disk to disk: by reference where both are in one lane, else by reading and writing
//! in pieces, wherever the two are.
//!
//! Invariants:
//! - No piece is larger than [`PIECE_BYTES`], and one is held at a time. Each is read, and
//!   each is written, in one order with what others do to those blocks.
//! - What the source has not mapped is cleared in the destination, not read.
//! - Ranges of one volume that overlap end as if all had been read before anything was
//!   written.
//! - Where the pool is full, room is asked for, and the copy goes on where it was.

use super::{Copier, Course};
use base::{Slice, VolumeOffset};
use engine::{Disk, IoError, IoErrorKind, World};
use futures_util::future::{Either, select};
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

/// Copies `run` until `course` is stopped; how many bytes came, from the start of it on, and
/// what stood in the way of the others.
pub(super) async fn copy<W: World>(
    copier: &dyn Copier<W>,
    (source, destination): (&Disk<W>, &Disk<W>),
    run: Run,
    course: &Course,
) -> (u64, Result<(), Failure>) {
    let (source_is, destination_is) = (source.info(), destination.info());
    let same = source_is.uuid == destination_is.uuid;
    let mut done = 0;
    for tries in 1.. {
        let part = run.after(done);
        let overlaps = same && part.overlaps();
        course.reach(0);
        let copied = match by_reference((source, destination), part, course).await {
            Ok(None) => stream(copier, (source, destination), part, course, overlaps).await,
            Ok(Some(bytes)) => {
                course.reach(bytes);
                Ok(())
            }
            // The engine says what it was about, not on which side.
            Err(error) => Err(failed_side(error)),
        };
        let came = course.done().min(part.len);
        // What came from the end on is no beginning.
        let from_the_end = overlaps && part.to > part.from;
        if !from_the_end || came == part.len {
            done += came;
        }
        let full = match &copied {
            Err(Failure::Destination(error)) => error.kind == IoErrorKind::PoolFull,
            _ => false,
        };
        let again = full && !overlaps && tries < TRIES_MAX && course.goes_on();
        if !again || !copier.make_room(destination_is.uuid).await {
            return (done, copied);
        }
    }
    (done, Ok(()))
}

/// In one lane: how many bytes, or `None` where that is not so, or can't be now.
async fn by_reference<W: World>(
    (source, destination): (&Disk<W>, &Disk<W>),
    run: Run,
    course: &Course,
) -> Result<Option<u64>, IoError> {
    let ends = (VolumeOffset(run.from), VolumeOffset(run.to));
    let uuid = source.info().uuid;
    let copied = destination.copy_beside(uuid, ends, run.len, course).await;
    match copied {
        // One of them is on its way to another pool: it is read and written there. Nothing
        // was done of a run that says so before its first piece.
        Err(error) if error.kind == IoErrorKind::Withheld && course.done() == 0 => Ok(None),
        copied => copied,
    }
}

fn failed_side(error: IoError) -> Failure {
    match error.kind {
        IoErrorKind::PoolFull | IoErrorKind::ReadOnly => Failure::Destination(error),
        _ => Failure::Source(error),
    }
}

/// By reading and writing.
async fn stream<W: World>(
    copier: &dyn Copier<W>,
    (source, destination): (&Disk<W>, &Disk<W>),
    run: Run,
    course: &Course,
    overlaps: bool,
) -> Result<(), Failure> {
    let backwards = overlaps && run.to > run.from;
    let mut done = 0;
    while done < run.len && course.goes_on() {
        let left = run.len - done;
        let piece = match backwards {
            true => Piece::Data(Run {
                len: left.min(PIECE_BYTES),
                ..run.after(left - left.min(PIECE_BYTES))
            }),
            false => next_piece(source, run.after(done)).await?,
        };
        done += match piece {
            Piece::Data(piece) => {
                move_piece(copier, (source, destination), piece).await?;
                piece.len
            }
            Piece::Hole(piece) => {
                let cleared = destination.clear(VolumeOffset(piece.to), piece.len).await;
                cleared.map_err(Failure::Destination)?;
                piece.len
            }
        };
        course.reach(done);
    }
    Ok(())
}

enum Piece {
    Data(Run),
    /// The source has nothing there.
    Hole(Run),
}

/// The first piece of `rest`. Pieces of data end where the destination has whole ones, which
/// are written fastest.
async fn next_piece<W: World>(source: &Disk<W>, rest: Run) -> Result<Piece, Failure> {
    let mapping = source.mapping(VolumeOffset(rest.from)).await;
    let mapping = mapping.map_err(Failure::Source)?;
    let len = mapping.len_bytes.min(rest.len);
    if !mapping.is_mapped && len > 0 {
        let len = len.min(CLEARED_BYTES);
        return Ok(Piece::Hole(Run { len, ..rest }));
    }
    let most = (PIECE_BYTES - rest.to % PIECE_BYTES).min(rest.len);
    let len = match len {
        // Nobody knows how far it goes: it is read.
        0 => most,
        len => len.min(most),
    };
    Ok(Piece::Data(Run { len, ..rest }))
}

async fn move_piece<W: World>(
    copier: &dyn Copier<W>,
    (source, destination): (&Disk<W>, &Disk<W>),
    piece: Run,
) -> Result<(), Failure> {
    let read = source
        .read(VolumeOffset(piece.from), piece.len as usize)
        .await;
    let read = read.map_err(Failure::Source)?;
    let data: Slice = match <[Slice; 1]>::try_from(read.parts.to_vec()) {
        Ok([whole]) if whole.is_aligned() => whole,
        _ => {
            let mut whole = copier.world().buffers().data(piece.len as usize);
            whole.put_all(0, &read);
            whole.freeze()
        }
    };
    let written = destination.write(VolumeOffset(piece.to), data).await;
    written.map_err(Failure::Destination)
}

/// Runs `copy` to its end; when it takes longer than `patience`, `course` is stopped.
pub(super) async fn within<W: World, T>(
    copier: &dyn Copier<W>,
    patience: Duration,
    course: &Course,
    copy: impl Future<Output = T>,
) -> T {
    let (copy, asleep) = (pin!(copy), pin!(copier.world().sleep(patience)));
    match select(copy, asleep).await {
        Either::Left((done, _)) => done,
        Either::Right(((), copy)) => {
            course.stop();
            copy.await
        }
    }
}
