//! The metadata read back: newest checkpoint, and the journal since.

use super::{PoolError, PoolErrorKind};
use crate::label::PoolIdentity;
use crate::meta::{State, checkpoint, journal};
use crate::raid::Member;
use crate::world::World;
use base::{BLOCK_BYTES, DriveOffset};
use std::rc::Rc;

/// Large metadata reads go in pieces of this size.
const TRANSFER_BYTES: u64 = 1 << 20;

fn refuse(kind: PoolErrorKind, context: String) -> PoolError {
    PoolError::new(kind, context)
}

/// The generation of the newest checkpoint, and the state after every record
/// journalled since.
pub(super) async fn recover<W: World>(
    world: &W,
    pool: &PoolIdentity,
    members: &[Rc<Member<W>>],
) -> Result<(u64, State), PoolError> {
    let copies = || {
        members
            .iter()
            .filter(|m| m.metadata() && m.is_writable())
            .map(AsRef::as_ref)
    };
    let corrupt = |what: String| {
        refuse(
            PoolErrorKind::Corrupt,
            format!("metadata of pool '{}': {what}", pool.name),
        )
    };
    let mut best: Option<(u64, State)> = None;
    for member in copies() {
        for slot in 0..2 {
            let found = read_checkpoint(world, pool, member, slot).await;
            let Some((generation, state)) = found.map_err(corrupt)? else {
                continue;
            };
            if best.as_ref().is_none_or(|(newest, _)| *newest < generation) {
                best = Some((generation, state));
            }
        }
    }
    let (generation, mut state) =
        best.ok_or_else(|| corrupt("no copy of it is whole".to_owned()))?;
    // The generation after it, too: a crash may have come between the switch of the
    // journal area and the end of the checkpoint that goes with it.
    for generation in [generation, generation + 1] {
        let mut longest = (0, Vec::new());
        for member in copies() {
            let at = pool.journal_offset(generation);
            let len = u64::from(pool.journal_bytes);
            // A copy that can't be read is one copy fewer.
            let Some(area) = read_run(world, member, at, len).await else {
                continue;
            };
            let found = journal::scan(&area, pool.uuid, generation).map_err(corrupt)?;
            if found.0 > longest.0 {
                longest = found;
            }
        }
        for record in &longest.1 {
            state.apply(record).map_err(corrupt)?;
        }
    }
    Ok((generation, state))
}

async fn read_checkpoint<W: World>(
    world: &W,
    pool: &PoolIdentity,
    member: &Member<W>,
    slot: u64,
) -> Result<Option<(u64, State)>, String> {
    let at = pool.checkpoint_offset(slot);
    let Some(block) = read_run(world, member, at, checkpoint::HEADER_BYTES as u64).await else {
        return Ok(None);
    };
    let Some(header) = checkpoint::decode_header(&block, pool.uuid) else {
        return Ok(None);
    };
    let room = pool.checkpoint_bytes - checkpoint::HEADER_BYTES as u64;
    if header.payload_bytes > room || header.generation % 2 != slot {
        return Ok(None);
    }
    let at = at + checkpoint::HEADER_BYTES as u64;
    let Some(payload) = read_run(world, member, at, header.payload_bytes).await else {
        return Ok(None);
    };
    let state = checkpoint::decode_payload(&header, &payload)?;
    Ok(state.map(|state| (header.generation, state)))
}

/// `len` bytes of a member, or `None` when they can't be read.
async fn read_run<W: World>(world: &W, member: &Member<W>, at: u64, len: u64) -> Option<Vec<u8>> {
    let mut run = Vec::new();
    while (run.len() as u64) < len {
        let left = len - run.len() as u64;
        let piece = left.min(TRANSFER_BYTES) as usize;
        let buf = world.buffers().bytes(piece.next_multiple_of(BLOCK_BYTES));
        let buf = member
            .read(DriveOffset(at + run.len() as u64), buf)
            .await
            .ok()?;
        run.extend_from_slice(&buf.bytes()?[..piece]);
    }
    Some(run)
}
