//! A client: reads, writes and flushes at random, and checks each answer.

use crate::answers::{LOST, WRONG};
use crate::oracle::WriteEnd;
use crate::oracle::volume::Exists;
use crate::pattern::{self, SectorPlace};
use crate::session::Session;
use base::{BLOCK_BYTES, Prng, SECTOR_BYTES, Slice, VolumeOffset};
use engine::{IoError, IoErrorKind, Volume, World};
use futures_util::future::join;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;
use world_sim::SimWorld;

const SECTOR: u64 = SECTOR_BYTES as u64;

/// Reads of a scan, after its first.
const SCAN_READS: u64 = 24;

/// Issues requests one after the other until none is left.
pub async fn run(session: Rc<Session>, mut prng: Prng) {
    while session.take_operation() {
        pause(&session, &mut prng).await;
        match session.pick_volume(&mut prng) {
            Some((id, volume)) => request(&session, id, &volume, &mut prng).await,
            None => session.world.sleep(Duration::from_micros(50)).await,
        }
    }
}

/// Waits between two requests, as a client does now and then.
async fn pause(session: &Session, prng: &mut Prng) {
    let (world, config) = (&session.world, &session.books.config);
    if prng.chance(1, 4) {
        let pause = Duration::from_nanos(prng.below(200_000));
        world.sleep(pause).await;
    }
    if config.think_us_max > 0 {
        let pause = Duration::from_micros(prng.below(config.think_us_max));
        world.sleep(pause).await;
    }
    if config.rests && prng.chance(1, 24) {
        let rest = Duration::from_millis(prng.between(200, 1_000));
        world.sleep(rest).await;
    }
}

/// Issues one request to a volume.
async fn request(session: &Session, id: u64, volume: &Volume<SimWorld>, prng: &mut Prng) {
    let config = &session.books.config;
    let draw = prng.below(100);
    if draw < 2 {
        return out_of_range(session, volume, prng).await;
    }
    if draw < 4 {
        return flush(session, id, volume).await;
    }
    let sectors = range(session, id, prng);
    if draw >= 4 + config.reads_of_100 * 96 / 100 {
        return change(session, id, volume, sectors, prng).await;
    }
    let scans = prng.chance(config.scans_of_100, 100);
    read(session, id, volume, sectors.clone()).await;
    if scans {
        scan(session, id, volume, sectors, prng).await;
    }
}

/// Writes, clears or copies.
async fn change(
    session: &Session,
    id: u64,
    volume: &Volume<SimWorld>,
    mut sectors: Range<u64>,
    prng: &mut Prng,
) {
    let config = &session.books.config;
    if prng.chance(config.whole_pages_of_8, 8) {
        sectors = whole_pages(session, id, sectors, prng);
    }
    if config.copies_of_8 > 0 && prng.chance(config.copies_of_8, 8) {
        return crate::copies::copy(session, id, volume, prng).await;
    }
    if config.clears_of_8 > 0 && prng.chance(config.clears_of_8, 8) {
        if prng.chance(1, 2) {
            sectors = whole_pages(session, id, sectors, prng);
        }
        clear(session, id, volume, sectors).await;
    } else if config.zeroes_of_8 > 0 && prng.chance(config.zeroes_of_8, 8) {
        write_zeroes(session, id, volume, sectors, prng).await;
    } else {
        write(session, id, volume, sectors).await;
    }
}

/// Goes on reading in order behind `first`, from the drives: what is in the log would
/// come from RAM. Now and then it writes into what is being read ahead of it. What it
/// came by is read once more when the log is empty again: what was kept of it must be
/// what is in place by then.
async fn scan(
    session: &Session,
    id: u64,
    volume: &Volume<SimWorld>,
    first: Range<u64>,
    prng: &mut Prng,
) {
    if !drain(session).await {
        return;
    }
    let (mut next, step) = (first.end, (first.end - first.start).min(16));
    let mut end = next;
    for _ in 0..SCAN_READS {
        end = session.books.oracle.borrow().volume(id).sectors();
        if next >= end || !session.take_operation() {
            break;
        }
        let sectors = next..(next + step).min(end);
        next += step;
        let start = next + prng.below(128);
        let overtakes = prng.chance(1, 3) && start < end && session.take_operation();
        let ahead = start..(start + prng.between(1, 64)).min(end);
        let write = async {
            if overtakes {
                write(session, id, volume, ahead).await;
            }
        };
        join(read(session, id, volume, sectors), write).await;
    }
    let again = first.start..next.min(end).min(first.start + 512);
    if next > first.end && first.start < end && session.take_operation() && drain(session).await {
        read(session, id, volume, again).await;
    }
}

/// Has all that is in the log put in place.
async fn drain(session: &Session) -> bool {
    let drained = session.pool.drain();
    let drained = session.ask("drain", String::new(), drained).await;
    if let Err(error) = &drained {
        session.fail(format!("emptying the log: {error}"));
    }
    drained.is_ok()
}

/// The pages around the start of `sectors`, as far as the volume goes: what goes
/// around the log.
fn whole_pages(session: &Session, id: u64, sectors: Range<u64>, prng: &mut Prng) -> Range<u64> {
    let config = &session.books.config;
    let page = u64::from(config.pool.page_bytes) / SECTOR;
    let end = session.books.oracle.borrow().volume(id).sectors();
    let start = sectors.start / page * page;
    let pages = prng.between(1, (config.request_sectors_max / page).max(1));
    start..(start + pages * page).min(end)
}

/// A run of sectors of the volume, mostly from a hot spot.
fn range(session: &Session, id: u64, prng: &mut Prng) -> Range<u64> {
    let config = &session.books.config;
    let sectors = session.books.oracle.borrow().volume(id).sectors();
    let start = match prng.below(8) {
        0 => prng.below(sectors),
        1 => sectors - 1 - prng.below(sectors.min(8)),
        _ => {
            let spot = prng.below(config.hot_spots) * sectors / config.hot_spots;
            (spot + prng.below(16)).min(sectors - 1)
        }
    };
    let most = config.request_sectors_max.min(sectors - start);
    let len = match prng.below(4) {
        0 => 1,
        1 => prng.between(1, most.min(8)),
        _ => prng.between(1, most),
    };
    start..start + len
}

/// Whether an error is what a volume that goes away may answer.
pub fn excused(session: &Session, id: u64, error: &IoError) -> bool {
    if error.kind == IoErrorKind::Media {
        return is_lost(session, id, error);
    }
    let exists = session.books.oracle.borrow().volume(id).exists;
    let read_only = session.books.oracle.borrow().volume(id).read_only;
    if error.kind == IoErrorKind::ReadOnly && read_only {
        return true;
    }
    if error.kind == IoErrorKind::OutOfRange && session.books.oracle.borrow().volume(id).shrinks() {
        return true;
    }
    error.kind == IoErrorKind::Deleted && matches!(exists, Exists::Deleting | Exists::No)
}

/// Whether what a medium error names may be lost: it lies beyond the redundancy, and was not
/// written since. Where pages are shared, a change of one reads all of it.
fn is_lost(session: &Session, id: u64, error: &IoError) -> bool {
    let config = &session.books.config;
    let grain = match config.shares() {
        true => u64::from(config.pool.page_bytes),
        false => BLOCK_BYTES as u64,
    };
    let first = error.at.0 / grain * grain / SECTOR;
    let block = first..first + grain / SECTOR;
    let lost = session.books.oracle.borrow().may_be_lost(id, block);
    let mut answers = session.books.answers.borrow_mut();
    answers.entry(LOST).or_default().good += u64::from(lost);
    lost
}

/// Reads `sectors` and has what comes checked.
pub async fn read(session: &Session, id: u64, volume: &Volume<SimWorld>, sectors: Range<u64>) {
    let world = &session.world;
    let ticket = session
        .books
        .oracle
        .borrow_mut()
        .begin_read(id, sectors.start);
    world.note(|| format!("read of volume {id} sectors {sectors:?} begins"));
    let len = ((sectors.end - sectors.start) * SECTOR) as usize;
    let outcome = volume.read(VolumeOffset(sectors.start * SECTOR), len);
    let what = format!("of volume {id} sectors {sectors:?}");
    let outcome = session.ask("read", what, outcome).await;
    let seen = match outcome {
        Ok(payload) if payload.len() == len => {
            let bytes = payload.to_vec();
            world.note(|| format!("read of volume {id} sectors {sectors:?} ends"));
            let first = bytes
                .first_chunk()
                .map_or(0, |word| u64::from_le_bytes(*word));
            world.mark(first);
            session
                .books
                .oracle
                .borrow_mut()
                .end_read(&ticket, Some(&bytes))
        }
        Ok(payload) => {
            session.fail(format!("a read of {len} bytes gave {}", payload.len()));
            Ok(())
        }
        Err(error) => {
            world.note(|| format!("read of volume {id} sectors {sectors:?} fails: {error}"));
            if !excused(session, id, &error) {
                session.fail(format!("read of volume {id} sectors {sectors:?}: {error}"));
            }
            session.books.oracle.borrow_mut().end_read(&ticket, None)
        }
    };
    session.check(seen);
}

/// Writes zeroes, or a content of its own with zeroes in it: whole pages, or parts of
/// them.
async fn write_zeroes(
    session: &Session,
    id: u64,
    volume: &Volume<SimWorld>,
    sectors: Range<u64>,
    prng: &mut Prng,
) {
    let sectors = match prng.chance(1, 2) {
        true => whole_pages(session, id, sectors, prng),
        false => sectors,
    };
    let zeroes = match prng.below(3) {
        0 => {
            let start = sectors.start + prng.below(sectors.end - sectors.start);
            start..sectors.end
        }
        1 => sectors.start..sectors.start + prng.below(sectors.end - sectors.start),
        _ => sectors.clone(),
    };
    write_with(session, id, volume, sectors, zeroes).await;
}

/// Writes `sectors` with a content of its own.
pub async fn write(session: &Session, id: u64, volume: &Volume<SimWorld>, sectors: Range<u64>) {
    let zeroes = sectors.end..sectors.end;
    write_with(session, id, volume, sectors, zeroes).await;
}

/// Writes `sectors`, with zeroes for those of `zeroes`, which are among them.
async fn write_with(
    session: &Session,
    id: u64,
    volume: &Volume<SimWorld>,
    sectors: Range<u64>,
    zeroes: Range<u64>,
) {
    let promised = session.is_promised_all(id);
    let world = &session.world;
    let fullness = session.fullness();
    let ticket =
        session
            .books
            .oracle
            .borrow_mut()
            .begin_write_of(id, sectors.clone(), zeroes.clone());
    world.note(|| {
        format!(
            "write {} of volume {id} sectors {sectors:?} begins",
            ticket.id
        )
    });
    let data = data(session, (ticket.id, id), &sectors, zeroes);
    let outcome = volume.write(VolumeOffset(sectors.start * SECTOR), data);
    let what = format!("{} of volume {id} sectors {sectors:?}", ticket.id);
    let outcome = session.ask("write", what, outcome).await;
    let ended = match outcome {
        Ok(()) => WriteEnd::Acknowledged,
        Err(error) => {
            let is_full = error.kind == IoErrorKind::PoolFull;
            let promised = promised && is_full && session.is_promised_all(id);
            let may_be_full = is_full && !promised && session.may_have_been_full(fullness);
            check_refused(session, (ticket.id, id), &sectors, (&error, may_be_full));
            WriteEnd::Failed
        }
    };
    world.note(|| format!("write {} of volume {id} ends: {ended:?}", ticket.id));
    session.books.oracle.borrow_mut().end_write(&ticket, ended);
}

/// That there is an excuse for a write that failed.
fn check_refused(
    session: &Session,
    (write, id): (u64, u64),
    sectors: &Range<u64>,
    (error, may_be_full): (&IoError, bool),
) {
    let is_full = error.kind == IoErrorKind::PoolFull;
    if is_full && !may_be_full {
        let room = session.room();
        session.fail(format!(
            "write {write} of volume {id}, with room: {error}; {room}"
        ));
    }
    if !is_full && !excused(session, id, error) {
        session.fail(format!("write {write} of volume {id} {sectors:?}: {error}"));
    }
}

/// What a write brings to `sectors` of a volume, with zeroes where they are wanted.
fn data(
    session: &Session,
    (write, volume): (u64, u64),
    sectors: &Range<u64>,
    zeroes: Range<u64>,
) -> Slice {
    let bytes = (sectors.end - sectors.start) * SECTOR;
    let mut buf = session.world.buffers().data(bytes as usize);
    if let Some(bytes) = buf.bytes_mut() {
        let place = SectorPlace {
            volume,
            sector: sectors.start,
        };
        pattern::fill(bytes, write, place);
        let byte = |sector: u64| ((sector - sectors.start) * SECTOR) as usize;
        bytes[byte(zeroes.start)..byte(zeroes.end)].fill(0);
    }
    buf.freeze()
}

/// Clears `sectors`, and has the pages looked for that should be gone.
async fn clear(session: &Session, id: u64, volume: &Volume<SimWorld>, sectors: Range<u64>) {
    let world = &session.world;
    let oracle = || session.books.oracle.borrow_mut();
    let ticket = oracle().begin_clear(id, sectors.clone());
    let number = ticket.id;
    world.note(|| format!("clear {number} of volume {id} sectors {sectors:?} begins"));
    let len = (sectors.end - sectors.start) * SECTOR;
    let fullness = session.fullness();
    let outcome = volume.clear(VolumeOffset(sectors.start * SECTOR), len);
    let what = format!("{number} of volume {id} sectors {sectors:?}");
    let outcome = session.ask("clear", what, outcome).await;
    let ended = match outcome {
        Ok(()) => WriteEnd::Acknowledged,
        Err(error) => {
            // A part of a page that others have, too, needs a copy.
            let shares = session.books.config.shares();
            let full = shares
                && error.kind == IoErrorKind::PoolFull
                && session.may_have_been_full(fullness);
            if !full && !excused(session, id, &error) {
                session.fail(format!(
                    "clear {number} of volume {id} {sectors:?}: {error}"
                ));
            }
            WriteEnd::Failed
        }
    };
    world.note(|| format!("clear {number} of volume {id} ends: {ended:?}"));
    oracle().end_write(&ticket, ended);
}

async fn flush(session: &Session, id: u64, volume: &Volume<SimWorld>) {
    let flushed = session.ask("flush", format!("of volume {id}"), volume.flush());
    if let Err(error) = flushed.await
        && !excused(session, id, &error)
    {
        session.fail(format!("flush of volume {id}: {error}"));
    }
}

/// Past the end of any volume, or off the sector grain: refused, nothing else.
async fn out_of_range(session: &Session, volume: &Volume<SimWorld>, prng: &mut Prng) {
    let past = 1 << 40;
    let (at, len) = *prng.pick(&[
        (past, SECTOR),
        (0, past),
        (1, SECTOR),
        (0, 100),
        (u64::MAX - 511, SECTOR),
    ]);
    let read = volume.read(VolumeOffset(at), len as usize);
    let what = format!("read of {len} bytes at {at}");
    let Err(error) = session.ask(WRONG, what, read).await else {
        session.fail(format!("a read of {len} bytes at {at} was not refused"));
        return;
    };
    if !matches!(error.kind, IoErrorKind::OutOfRange | IoErrorKind::Deleted) {
        session.fail(format!(
            "a read of {len} bytes at {at} was refused wrongly: {error}"
        ));
    }
}

/// Reads every sector of every volume, in pieces, and has them checked.
pub async fn verify(session: &Session, prng: &mut Prng) {
    let volumes: Vec<_> = session
        .volumes
        .borrow()
        .iter()
        .map(|(&id, volume)| (id, volume.clone()))
        .collect();
    for (id, volume) in volumes {
        let end = session.books.oracle.borrow().volume(id).sectors();
        let mut start = 0;
        while start < end {
            let len = prng.between(1, 512).min(end - start);
            read(session, id, &volume, start..start + len).await;
            start += len;
        }
    }
}
