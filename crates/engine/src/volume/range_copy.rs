//! Copying inside the engine: a range of a volume gets the content of a range of another volume, or
//! of its own.
//!
//! Invariants:
//! - A piece is copied at one instant: its source is held as by a reader and its destination
//!   as by a writer, both from before the first byte is looked at until all is durable. Of
//!   two volumes that with the lower number is held first, as groups of snapshots do; of one
//!   volume both ranges come together. So nobody waits in a circle.
//! - Pieces are bounded, and others come in between: [`SHARED_PAGES_MAX`] pages by one record,
//!   or [`MOVED_BYTES_MAX`] bytes by reading and writing.
//! - Whole pages that lie alike on both sides are shared: nothing is read. What others have is
//!   never written, so the source keeps what it had whatever becomes of the copy.
//! - A thick destination has pages of its own: they are promised to it, and what it shared it
//!   could not overwrite in a full pool.
//! - What the source has not mapped is not mapped in a thin destination afterwards, but for
//!   parts of pages; where it stays mapped it is zeroes.
//! - Ranges of one volume that overlap end as if all had been read before anything was
//!   written.

use super::io::{block_span, failed};
use super::{IoError, IoErrorKind, Volume};
use crate::meta::InFlight as _;
use crate::meta::Record;
use crate::meta::page_map::CHUNK;
use crate::range_lock::Guard;
use crate::space::Claim;
use crate::space::VolumeCore;
use crate::world::World;
use base::{PageIndex, Slice, Uuid, VolumeOffset};
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

/// Pages shared at once, at most: by whole chunks of maps.
const SHARED_PAGES_MAX: u64 = 64 * CHUNK as u64;
/// Pages shared at once where each is entered into the map for itself.
const ENTERED_PAGES_MAX: u64 = 4 * CHUNK as u64;
/// Bytes read and written at once.
const MOVED_BYTES_MAX: u64 = 1 << 20;
/// Bytes at once that are not there on the source's side.
const CLEARED_PAGES_MAX: u64 = 1024;
/// After so many pieces others have their turn, whatever came of them.
const PIECES_AT_ONCE: u64 = 32;
const REST: Duration = Duration::from_micros(1);

/// A part of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    from: u64,
    to: u64,
    len: u64,
    way: PieceCopy,
    /// When not all of it can be copied at once, its end comes first.
    backwards: bool,
}

/// How a piece is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PieceCopy {
    /// Neither side has anything there.
    Nothing,
    /// Whole pages, by reference.
    Shared,
    /// By reading and writing; holes are cleared.
    Moved,
}

impl<W: World> Volume<W> {
    /// Whether both are volumes of one lane: what one has can be another's by reference.
    pub fn is_beside(&self, other: &Volume<W>) -> bool {
        Rc::ptr_eq(&self.inner, &other.inner)
    }

    /// The volume with this identity, if it is in the same lane. A copy of it that is on its
    /// way here is not it.
    pub fn beside(&self, uuid: Uuid) -> Option<Volume<W>> {
        let state = self.inner.state();
        let there = |core: &&Rc<VolumeCore>| {
            core.ready.get() && !core.is_elsewhere() && !core.live.is_deleted()
        };
        let mut there = state.volumes.values().filter(there);
        let found = there.find(|core| core.uuid == uuid);
        found.map(|core| Volume::new(Rc::clone(&self.inner), Rc::clone(core)))
    }

    /// Makes `len` bytes from `to` on what `source` has from `from` on, all multiples of
    /// [`base::SECTOR_BYTES`]. In pieces, each at one instant and durable when it ends;
    /// `goes_on` is told after each how many bytes are done, and says whether to go on.
    /// How many are done; all, unless it said no.
    ///
    /// # Errors
    /// `OutOfRange`, `Media`, `PoolFull`, `Deleted`, `ReadOnly`, `PoolFailed`. Pieces that
    /// were done stay; of the one that failed each sector is what was there or what the
    /// source has.
    ///
    /// # Panics
    /// When the volumes are not of one lane.
    pub async fn copy_from(
        &self,
        source: &Volume<W>,
        (from, to): (VolumeOffset, VolumeOffset),
        len: u64,
        mut goes_on: impl FnMut(u64) -> bool,
    ) -> Result<u64, IoError> {
        assert!(self.is_beside(source), "volumes of different lanes");
        source.check_range(from, len as usize)?;
        self.check_range(to, len as usize)?;
        self.check_writable(to)?;
        let same = self.core.id == source.core.id;
        // Into what is still to be read: from the end on.
        let backwards = same && to.0 > from.0 && to.0 < from.0 + len;
        let (mut done, mut pieces) = (0, 0u64);
        while done < len && !(same && from == to) {
            let piece = match backwards {
                false => self.next_piece(source, (from.0 + done, to.0 + done), len - done),
                true => self.last_piece((from.0, to.0), len - done),
            };
            done += self.copy_one(source, piece).await?;
            pieces += 1;
            if !goes_on(done) {
                break;
            }
            if pieces.is_multiple_of(PIECES_AT_ONCE) {
                self.inner.world().sleep(REST).await;
            }
        }
        self.settle(to)?;
        match same && from == to {
            true => Ok(len),
            false => Ok(done),
        }
    }

    /// Whether a range may be shared, page by page.
    fn lie_alike(&self, (from, to): (u64, u64)) -> bool {
        let page_bytes = self.inner.page_bytes();
        from % page_bytes == to % page_bytes && !self.keeps_pages()
    }

    /// The first piece of `len` bytes.
    fn next_piece(&self, source: &Volume<W>, (from, to): (u64, u64), len: u64) -> Piece {
        let page_bytes = self.inner.page_bytes();
        let piece = |len, way| Piece {
            from,
            to,
            len,
            way,
            backwards: false,
        };
        let hole = source.hole(from, len);
        let nothing = match hole {
            0 => 0,
            hole => self.hole(to, hole),
        };
        if nothing > 0 {
            return piece(nothing, PieceCopy::Nothing);
        }
        if self.lie_alike((from, to)) {
            let before_page = from.next_multiple_of(page_bytes) - from;
            let pages = (len.saturating_sub(before_page)) / page_bytes;
            if before_page == 0 && pages > 0 {
                let chunk = CHUNK as u64;
                // Up to where both have whole chunks, if that is ever so.
                let (first, theirs) = (to / page_bytes, from / page_bytes);
                let most = match first % chunk == theirs % chunk {
                    true if first.is_multiple_of(chunk) => SHARED_PAGES_MAX,
                    true => first.next_multiple_of(chunk) - first,
                    false => ENTERED_PAGES_MAX,
                };
                return piece(pages.min(most) * page_bytes, PieceCopy::Shared);
            }
            if before_page > 0 && pages > 0 {
                return piece(before_page.min(MOVED_BYTES_MAX), PieceCopy::Moved);
            }
        }
        let most = match hole {
            0 => MOVED_BYTES_MAX,
            hole => hole.min(CLEARED_PAGES_MAX * page_bytes),
        };
        piece(len.min(most), PieceCopy::Moved)
    }

    /// The last piece of `len` bytes, of ranges that overlap.
    fn last_piece(&self, (from, to): (u64, u64), len: u64) -> Piece {
        let page_bytes = self.inner.page_bytes();
        let piece = |len_here: u64, way| Piece {
            from: from + len - len_here,
            to: to + len - len_here,
            len: len_here,
            way,
            backwards: true,
        };
        if self.lie_alike((from, to)) {
            let behind_page = (from + len) % page_bytes;
            let pages = (len - behind_page.min(len)) / page_bytes;
            if behind_page == 0 && pages > 0 {
                return piece(pages.min(ENTERED_PAGES_MAX) * page_bytes, PieceCopy::Shared);
            }
            if behind_page > 0 && pages > 0 {
                return piece(behind_page.min(MOVED_BYTES_MAX), PieceCopy::Moved);
            }
        }
        piece(len.min(MOVED_BYTES_MAX), PieceCopy::Moved)
    }

    /// Bytes from `at` on, `max` at most, that are not mapped.
    pub(super) fn hole(&self, at: u64, max: u64) -> u64 {
        match self.mapped_run(at, max) {
            (true, _) => 0,
            (false, len) => len,
        }
    }

    /// Copies a piece; how much of it.
    async fn copy_one(&self, source: &Volume<W>, piece: Piece) -> Result<u64, IoError> {
        let (from, to) = (VolumeOffset(piece.from), VolumeOffset(piece.to));
        let begun = source.core.live.begin();
        let _read = begun.ok_or_else(|| source.deleted(from))?;
        let _written = self.core.live.begin().ok_or_else(|| self.deleted(to))?;
        if piece.way == PieceCopy::Nothing {
            source.check_end(from, piece.len)?;
            self.check_end(to, piece.len)?;
            self.check_stays(source, to)?;
            return Ok(piece.len);
        }
        let _held = self.hold_both(source, piece).await;
        source.check_end(from, piece.len)?;
        self.check_end(to, piece.len)?;
        self.check_stays(source, to)?;
        if piece.way == PieceCopy::Shared {
            return match self.keeps_pages() {
                // It became thick while it was waited for: another piece is next.
                true => Ok(0),
                false => self.share_pages(source, piece).await,
            };
        }
        // What was a hole may be none any more.
        let len = match source.hole(piece.from, piece.len) == piece.len {
            true => piece.len,
            false => piece.len.min(MOVED_BYTES_MAX),
        };
        let piece = Piece { len, ..piece };
        self.move_bytes(source, piece).await?;
        Ok(piece.len)
    }

    /// That neither is another pool's by now, and that the destination is not on its way to
    /// one: what is shared would not be on the other side.
    fn check_stays(&self, source: &Volume<W>, to: VolumeOffset) -> Result<(), IoError> {
        let (live, theirs) = (&self.core.live, &source.core.live);
        let name = match (
            theirs.moved(),
            live.moved().is_some() || live.mirror().is_some(),
        ) {
            (None, false) => return Ok(()),
            (Some(_), _) => &source.core.name,
            (None, true) => &self.core.name,
        };
        Err(IoError {
            kind: IoErrorKind::Withheld,
            at: to,
            context: format!("volume '{name}' goes to another pool: copy when it is there"),
        })
    }

    /// Holds the source's range as a reader and the destination's as a writer.
    async fn hold_both(&self, source: &Volume<W>, piece: Piece) -> Vec<Guard> {
        let read = block_span(piece.from, piece.len);
        let written = block_span(piece.to, piece.len);
        let reading = async || {
            let planted = self.inner.world().planted("copy without the source's lock");
            match planted {
                true => None,
                false => Some(source.core.live.ranges.shared(read.0, read.1).await),
            }
        };
        let (own, theirs) = (&self.core.live.ranges, source.core.id);
        if theirs == self.core.id {
            return vec![own.both(read, written).await];
        }
        let first = match theirs < self.core.id {
            true => reading().await,
            false => None,
        };
        let held = own.exclusive(written.0, written.1).await;
        let last = match theirs > self.core.id {
            true => reading().await,
            false => None,
        };
        first.into_iter().chain([held]).chain(last).collect()
    }

    /// Whole pages by reference; the caller holds both ranges. Fewer, where the metadata has
    /// no room for all at once.
    async fn share_pages(&self, source: &Volume<W>, piece: Piece) -> Result<u64, IoError> {
        let page_bytes = self.inner.page_bytes();
        let at = VolumeOffset(piece.to);
        let all = piece.len / page_bytes;
        let mut count = all;
        let nth = |at: u64, count: u64| match piece.backwards {
            false => PageIndex(at / page_bytes),
            true => PageIndex(at / page_bytes + all - count),
        };
        let _reserved = loop {
            match self.reserve_copies(nth(piece.to, count), count) {
                Some(reserved) => break reserved,
                None if count > 1 => count = (count / 2).max(1),
                None => return Err(self.no_room_for_copy(at)),
            }
        };
        let (page, from_page) = (nth(piece.to, count), nth(piece.from, count));
        let record = Record::Copy {
            id: self.core.id,
            page,
            from: source.core.id,
            from_page,
            // At most `SHARED_PAGES_MAX`.
            count: count as u32,
        };
        let shared = self.inner.journal().commit(vec![record]).await;
        shared.map_err(|error| failed(at, error))?;
        if self.inner.world().planted("copied page not counted") {
            self.inner.spoil(|state| {
                for page in page.0..page.0 + count {
                    let phys = self.lookup(PageIndex(page));
                    phys.map(|phys| state.refs.take(phys));
                }
            });
        }
        self.inner.world().reached("pages copied by reference");
        Ok(count * page_bytes)
    }

    /// Bytes by reading and writing; the caller holds both ranges. All is read first.
    async fn move_bytes(&self, source: &Volume<W>, piece: Piece) -> Result<(), IoError> {
        let mut parts: Vec<(Range<u64>, Option<Slice>)> = Vec::new();
        let mut done = 0;
        while done < piece.len {
            let (from, left) = (piece.from + done, piece.len - done);
            let (len, data) = match source.mapped_run(from, left) {
                (true, len) => (len, Some(source.read_held(from, len).await?)),
                (false, len) => (len, None),
            };
            let to = piece.to + done;
            parts.push((to..to + len, data));
            done += len;
        }
        for (bytes, data) in parts {
            match data {
                None => self.clear_held(bytes.clone(), Claim::Clearing).await,
                Some(data) => self.write_held(VolumeOffset(bytes.start), data).await,
            }
            .map_err(|error| error.within(VolumeOffset(bytes.start), bytes.end - bytes.start))?;
        }
        self.inner.world().reached("bytes copied by reading");
        Ok(())
    }

    fn no_room_for_copy(&self, at: VolumeOffset) -> IoError {
        self.inner.metadata_room().refuse_maps();
        IoError {
            kind: IoErrorKind::PoolFull,
            at,
            context: format!(
                "the metadata of pool '{}' has no room for what volume '{}' would share: delete snapshots, clones or copies",
                self.inner.identity().name,
                self.core.name
            ),
        }
    }
}
