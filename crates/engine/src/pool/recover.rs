//! The metadata read back: newest checkpoint, and the journal since.
//!
//! Headers are read first, of all copies; then one payload, a piece at a time, from the
//! first copy that has the newest. Another copy, and an older checkpoint after all of
//! them, is read only when that one is not whole.

use super::{PoolError, PoolErrorKind};
use crate::label::PoolIdentity;
use crate::meta::State;
use crate::meta::checkpoint::{self, Decoder, Header};
use crate::meta::journal::Scan;
use crate::raid::Member;
use crate::world::World;
use base::{BLOCK_BYTES, Buf, DriveOffset};
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream;
use std::rc::Rc;

/// Journals are read in pieces of this size.
const TRANSFER_BYTES: u64 = 1 << 20;

/// Pieces of a payload that are read ahead.
const PIECES_AHEAD: usize = 4;

const UNREADABLE: &str = "metadata copy unreadable in recovery";

/// The generation of the newest checkpoint, and the state after every record
/// journalled since.
pub(super) async fn recover<W: World>(
    world: &W,
    pool: &PoolIdentity,
    members: &[Rc<Member<W>>],
) -> Result<(u64, State), PoolError> {
    let copies = members
        .iter()
        .filter(|m| m.metadata() && m.is_writable())
        .map(AsRef::as_ref)
        .collect();
    let copies = Copies {
        world,
        pool,
        copies,
    };
    let recovered = copies.recover().await;
    recovered.map_err(|what| {
        let context = format!("metadata of pool '{}': {what}", pool.name);
        PoolError::new(PoolErrorKind::Corrupt, context)
    })
}

/// The drives that carry the metadata.
struct Copies<'a, W: World> {
    world: &'a W,
    pool: &'a PoolIdentity,
    copies: Vec<&'a Member<W>>,
}

impl<'a, W: World> Copies<'a, W> {
    async fn recover(&self) -> Result<(u64, State), String> {
        let (generation, mut state) = self.newest_checkpoint().await?;
        // The generation after it, too: a crash may have come between the switch of the
        // journal area and the end of the checkpoint that goes with it.
        for generation in [generation, generation + 1] {
            let journal = self.journal(generation).await;
            for record in journal.iter().flat_map(Scan::records) {
                state.apply(&record?)?;
            }
        }
        Ok((generation, state))
    }

    async fn newest_checkpoint(&self) -> Result<(u64, State), String> {
        let slots = self
            .copies
            .iter()
            .flat_map(|member| [self.read_header(member, 0), self.read_header(member, 1)]);
        let mut found: Vec<(Header, &Member<W>)> =
            join_all(slots).await.into_iter().flatten().collect();
        // The sort is stable: of one generation, the first drive comes first.
        found.sort_by_key(|(header, _)| std::cmp::Reverse(header.generation));
        for (header, member) in found {
            if let Some(state) = self.read_payload(member, header).await? {
                return Ok((header.generation, state));
            }
            self.world.reached(UNREADABLE);
        }
        Err("no copy of it is whole".to_owned())
    }

    async fn read_header(
        &self,
        member: &'a Member<W>,
        slot: u64,
    ) -> Option<(Header, &'a Member<W>)> {
        let at = self.pool.checkpoint_offset(slot);
        let len = checkpoint::HEADER_BYTES as u64;
        let block = self.read(member, at, len as usize).await?;
        let header = checkpoint::decode_header(block.bytes()?, self.pool.lane_uuid())?;
        let room = self.pool.checkpoint_bytes - len;
        let fits = header.payload_bytes <= room && header.generation % 2 == slot;
        fits.then_some((header, member))
    }

    /// The state that `header` speaks of, when this copy of it is whole.
    async fn read_payload(
        &self,
        member: &Member<W>,
        header: Header,
    ) -> Result<Option<State>, String> {
        let slot = self.pool.checkpoint_offset(header.generation);
        let from = slot + checkpoint::HEADER_BYTES as u64;
        let piece = u64::from(header.segment_bytes);
        let pieces = (0..header.payload_bytes.div_ceil(piece)).map(|index| {
            let len = piece.min(header.payload_bytes - index * piece);
            self.read(member, from + index * piece, len as usize)
        });
        let mut pieces = stream::iter(pieces).buffered(PIECES_AHEAD);
        let mut decoder = Decoder::new(header);
        while let Some(buf) = pieces.next().await {
            let whole = match buf.as_ref().and_then(Buf::bytes) {
                Some(segment) => decoder.take(segment),
                None => false,
            };
            if !whole {
                return Ok(None);
            }
        }
        decoder.finish()
    }

    /// The journal of a generation, from the copy that has the most of it: every
    /// acknowledged batch is on all.
    async fn journal(&self, generation: u64) -> Option<Scan> {
        let scans = self
            .copies
            .iter()
            .map(|member| self.scan(member, generation));
        // A copy that can't be read is one copy fewer.
        let scans = join_all(scans).await.into_iter().flatten();
        scans.reduce(|longest, scan| match scan.batches() > longest.batches() {
            true => scan,
            false => longest,
        })
    }

    async fn scan(&self, member: &Member<W>, generation: u64) -> Option<Scan> {
        let at = self.pool.journal_offset(generation);
        let area = u64::from(self.pool.journal_bytes);
        let mut scan = Scan::new(self.pool.lane_uuid(), generation);
        let mut done = 0;
        while done < area {
            let len = (area - done).min(TRANSFER_BYTES);
            let buf = self.read(member, at + done, len as usize).await?;
            if !scan.take(buf.bytes()?) {
                break;
            }
            done += len;
        }
        Some(scan)
    }

    async fn read(&self, member: &Member<W>, at: u64, len: usize) -> Option<Buf> {
        assert!(len.is_multiple_of(BLOCK_BYTES), "metadata is whole blocks");
        let buf = self.world.buffers().bytes(len);
        let read = member.read(DriveOffset(at), buf).await;
        if read.is_err() {
            self.world.reached(UNREADABLE);
        }
        read.ok()
    }
}
