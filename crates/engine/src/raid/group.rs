//! Reading and writing a RAID group.
//!
//! Invariants:
//! - A write goes to every healthy copy and is durable on each when it ends well;
//!   copies that did not take it are named as faults, and the caller must put them
//!   out of use before it acknowledges anything.
//! - A read is answered from one copy, or from the next when that copy can't.

use super::layout::{Layout, Piece};
use super::member::Member;
use crate::drive::{DriveError, DriveErrorKind};
use crate::world::World;
use base::{Buf, DriveOffset, GroupOffset, Payload, Slice};
use futures_util::future::join_all;
use std::cell::Cell;
use std::rc::Rc;

/// A member that failed an operation.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Its place in the group.
    pub place: usize,
    /// What it said.
    pub error: DriveError,
}

/// What a group read came to.
#[derive(Debug)]
pub struct ReadOutcome {
    /// The data, or the error of the last copy tried for the first piece that no
    /// copy could give.
    pub data: Result<Payload, (usize, DriveError)>,
    /// Members that failed on the way.
    pub faults: Vec<Fault>,
}

/// A RAID group.
pub struct Group<W: World> {
    world: W,
    /// By place.
    pub members: Vec<Rc<Member<W>>>,
    pub layout: Layout,
    data_start: u64,
    turn: Cell<usize>,
}

impl<W: World> Group<W> {
    /// A group of `members` by place.
    pub fn new(world: W, members: Vec<Rc<Member<W>>>, layout: Layout, data_start: u64) -> Self {
        assert_eq!(members.len(), layout.columns * layout.copies);
        Group {
            world,
            members,
            layout,
            data_start,
            turn: Cell::new(0),
        }
    }

    /// Whether data survives the loss of the member at `place` now.
    pub fn survives_without(&self, place: usize) -> bool {
        let column = self.layout.places(self.layout.column_of(place));
        column
            .into_iter()
            .any(|other| other != place && self.members[other].is_healthy())
    }

    /// Reads `len` bytes at `at`.
    pub async fn read(&self, at: GroupOffset, len: usize) -> ReadOutcome {
        let mut pieces = self.layout.pieces(at, len);
        let first = pieces.next();
        let Some(second) = pieces.next() else {
            // The common read is one piece: no list, no join.
            let mut faults = Vec::new();
            let data = match first {
                Some(piece) => self.read_piece(piece, &mut faults).await,
                None => Ok(self.world.buffers().zeros(0)),
            };
            let data = data.map(Payload::from).map_err(|error| (0, error));
            return ReadOutcome { data, faults };
        };
        let pieces: Vec<Piece> = first.into_iter().chain([second]).chain(pieces).collect();
        // Boxed, as are the other paths that are not the common one: the future of a
        // small read is then small, and there is one for every command.
        Box::pin(self.read_pieces(pieces)).await
    }

    async fn read_pieces(&self, pieces: Vec<Piece>) -> ReadOutcome {
        let mut outcome = ReadOutcome {
            data: Ok(Payload::new()),
            faults: Vec::new(),
        };
        let reads = pieces.into_iter().map(async |piece| {
            let mut faults = Vec::new();
            let data = self.read_piece(piece, &mut faults).await;
            (piece.start, data, faults)
        });
        for (start, data, faults) in join_all(reads).await {
            outcome.faults.extend(faults);
            match (&mut outcome.data, data) {
                (Ok(payload), Ok(part)) => payload.push(part),
                (Ok(_), Err(error)) => outcome.data = Err((start, error)),
                (Err(_), _) => {}
            }
        }
        outcome
    }

    async fn read_piece(&self, piece: Piece, faults: &mut Vec<Fault>) -> Result<Slice, DriveError> {
        let places = self.layout.places(piece.column);
        let first = self.least_busy(places.clone());
        let order = std::iter::once(first).chain(places.filter(|place| *place != first));
        let mut last = None;
        for place in order {
            let member = &self.members[place];
            if !member.is_healthy() {
                continue;
            }
            let buf = self.world.buffers().data(piece.len);
            match member.read(self.on_drive(piece.at), buf).await {
                Ok(buf) => return Ok(buf.freeze()),
                Err(error) => {
                    faults.push(Fault {
                        place,
                        error: error.clone(),
                    });
                    last = Some(error);
                }
            }
        }
        Err(last.unwrap_or_else(|| self.nobody("read", piece)))
    }

    /// The copy with the fewest operations in flight; in turns among equals.
    fn least_busy(&self, places: std::ops::Range<usize>) -> usize {
        self.turn.set(self.turn.get().wrapping_add(1));
        let copies = places.len();
        let rotated =
            (0..copies).map(|i| places.start + (self.turn.get().wrapping_add(i)) % copies);
        rotated
            .filter(|place| self.members[*place].is_healthy())
            .min_by_key(|place| self.members[*place].outstanding())
            .unwrap_or(places.start)
    }

    /// Writes `data` at `at` to every healthy copy, durably. Returns the copies
    /// that did not take it; a piece that no copy is there for is a fault of each.
    pub async fn write(&self, at: GroupOffset, data: &Slice) -> Vec<Fault> {
        let mut writes = Vec::with_capacity(self.layout.copies);
        let mut faults = Vec::new();
        for piece in self.layout.pieces(at, data.len()) {
            let places = self.layout.places(piece.column);
            let before = writes.len();
            for place in places
                .clone()
                .filter(|place| self.members[*place].is_healthy())
            {
                let part = data.slice(piece.start, piece.len);
                writes.push(self.write_copy(place, piece, part));
            }
            if writes.len() == before {
                let error = self.nobody("write", piece);
                faults.extend(places.map(|place| Fault {
                    place,
                    error: error.clone(),
                }));
            }
        }
        faults.extend(join_all(writes).await.into_iter().flatten());
        faults
    }

    async fn write_copy(&self, place: usize, piece: Piece, part: Slice) -> Option<Fault> {
        let at = self.on_drive(piece.at);
        let outcome = self.members[place].write_durably(at, part).await;
        outcome.err().map(|error| Fault { place, error })
    }

    /// Makes the copies of `len` bytes at `at` equal to the first that can be read.
    /// What is equal already is only read. Returns the copies that could not be
    /// written.
    pub async fn equalise(&self, at: GroupOffset, len: usize) -> Vec<Fault> {
        let mut faults = Vec::new();
        for piece in self.layout.pieces(at, len) {
            let healthy: Vec<usize> = self
                .layout
                .places(piece.column)
                .filter(|place| self.members[*place].is_healthy())
                .collect();
            let read = async |place: &usize| {
                let buf = self.world.buffers().data(piece.len);
                (
                    *place,
                    self.members[*place]
                        .read(self.on_drive(piece.at), buf)
                        .await,
                )
            };
            let mut copies = join_all(healthy.iter().map(read)).await;
            let readable = copies.iter().position(|(_, copy)| copy.is_ok());
            let source = readable.and_then(|index| copies.swap_remove(index).1.ok());
            let source = source.map(Buf::freeze);
            for (place, copy) in copies {
                let Some(source) = &source else { continue };
                // A copy that can't be read is written: drives remap on write.
                if copy.is_ok_and(|copy| copy.bytes() == source.bytes()) {
                    continue;
                }
                faults.extend(self.write_copy(place, piece, source.clone()).await);
            }
        }
        faults
    }

    fn on_drive(&self, at: u64) -> DriveOffset {
        DriveOffset(self.data_start + at)
    }

    fn nobody(&self, operation: &'static str, piece: Piece) -> DriveError {
        DriveError {
            kind: DriveErrorKind::Gone,
            operation,
            at: self.on_drive(piece.at),
            len_bytes: piece.len as u64,
            context: format!("no drive of column {} is left", piece.column),
        }
    }
}
