//! A client that has the engine copy ranges of volumes.
//!
//! It copies whole pages and unaligned ranges, within a volume and between volumes, while other
//! clients read and write both.

use crate::client::excused;
use crate::oracle::WriteEnd;
use crate::session::Session;
use base::{Prng, SECTOR_BYTES, VolumeOffset};
use engine::{IoErrorKind, Volume};
use world_sim::SimWorld;

const SECTOR: u64 = SECTOR_BYTES as u64;
/// Pages of a chunk of a map.
const CHUNK: u64 = 256;

/// Copies a range of some volume to `target`.
pub async fn copy(session: &Session, id: u64, target: &Volume<SimWorld>, prng: &mut Prng) {
    let Some((source_id, source)) = session.pick_volume(prng) else {
        return;
    };
    let may = session.books.oracle.borrow().may_copy(source_id, id);
    if !may || !target.is_beside(&source) {
        return;
    }
    let sectors = |id: u64| session.books.oracle.borrow().volume(id).sectors();
    let page = u64::from(session.books.config.pool.page_bytes) / SECTOR;
    let grain = *prng.pick(&[1, 8, page, page, page, CHUNK * page]);
    let (theirs, own) = (sectors(source_id) / grain, sectors(id) / grain);
    let most = theirs.min(own).min((12 * page / grain).max(2));
    if most == 0 {
        return;
    }
    let len = prng.between(1, most);
    let from = prng.below(theirs - len + 1) * grain;
    let to = prng.below(own - len + 1) * grain;
    let copied = from..from + len * grain;
    if !session.books.oracle.borrow().knows_well(source_id, copied) {
        return;
    }
    run(
        session,
        (source_id, &source, from),
        (id, target, to),
        len * grain,
        prng,
    )
    .await;
}

async fn run(
    session: &Session,
    (source_id, source, from): (u64, &Volume<SimWorld>, u64),
    (id, target, to): (u64, &Volume<SimWorld>, u64),
    sectors: u64,
    prng: &mut Prng,
) {
    let oracle = || session.books.oracle.borrow_mut();
    let ticket = oracle().begin_copy((source_id, from), (id, to), sectors);
    let number = ticket.write.id;
    session.world.note(|| {
        format!("copy {number} of {sectors} sectors of volume {source_id} from {from} to volume {id} at {to} begins")
    });
    let fullness = session.fullness();
    let ends = (VolumeOffset(from * SECTOR), VolumeOffset(to * SECTOR));
    let calls_off = prng.chance(1, 12);
    let len = sectors * SECTOR;
    let copied = target.copy_from(source, ends, len, |_| !calls_off);
    let what = format!("{number} of volume {source_id} to volume {id}");
    let copied = session.ask("copy", what, copied).await;
    let ended = match copied {
        Ok(done) if done == len => WriteEnd::Acknowledged,
        Ok(_) if calls_off => WriteEnd::Failed,
        Ok(done) => {
            session.fail(format!("copy {number} ended with {done} of {len} bytes"));
            WriteEnd::Failed
        }
        Err(error) => {
            let full = error.kind == IoErrorKind::PoolFull && session.may_have_been_full(fullness);
            if !full && !excused(session, id, &error) && !excused(session, source_id, &error) {
                session.fail(format!("copy {number} to volume {id}: {error}"));
            }
            WriteEnd::Failed
        }
    };
    session
        .world
        .note(|| format!("copy {number} to volume {id} ends: {ended:?}"));
    oracle().end_copy(&ticket, ended);
}
