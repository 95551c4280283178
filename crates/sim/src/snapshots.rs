//! The administrator's snapshots: clones, snapshots of one instant, and restores.

use crate::admin::expect;
use crate::answers::WRONG;
use crate::oracle::WriteEnd;
use crate::oracle::volume::{Change, VolumeModel};
use crate::session::Session;
use array::control::STANDSTILL_MAX;
use base::Prng;
use engine::{PoolError, PoolErrorKind, Volume, World};
use world_sim::SimWorld;

/// The most that are taken together.
const TOGETHER: u64 = 3;

/// Makes one of these changes.
pub async fn change(session: &Session, prng: &mut Prng) {
    match prng.below(8) {
        0 | 1 => restore(session, prng).await,
        2 => together(session, prng).await,
        _ => clone(session, prng).await,
    }
}

/// A name for a clone of a volume, and whether there is a volume of that name.
fn name(session: &Session, of: &str, read_only: bool, prng: &mut Prng) -> (String, bool) {
    let number = prng.below(4 * session.books.config.volumes);
    let name = match read_only && !of.contains('@') {
        true => format!("{of}@s{number}"),
        false => format!("c{number}"),
    };
    let taken = session.books.oracle.borrow().is_taken(&name);
    (name, taken)
}

fn model(session: &Session, id: u64) -> VolumeModel {
    session.books.oracle.borrow().volume(id).clone()
}

async fn clone(session: &Session, prng: &mut Prng) {
    let Some((of, _)) = session.pick_volume(prng) else {
        return;
    };
    let source = model(session, of).name;
    let read_only = prng.chance(1, 2);
    let (name, taken) = name(session, &source, read_only, prng);
    let at_s = prng.below(1000);
    let made = session.pool.clone_volume(&source, &name, read_only, at_s);
    if taken {
        let what = format!("clone {name:?} again");
        let made = session.ask(WRONG, what.clone(), made).await;
        expect(session, &what, made.map(drop), PoolErrorKind::Exists);
        return;
    }
    let begun = begin(session, &[(of, &name)], read_only, at_s);
    session
        .world
        .note(|| format!("clone {begun:?} of volume {of} begins"));
    let made = session.ask("clone", format!("{begun:?} of volume {of}"), made);
    let made = made.await.map(|volume| vec![volume]);
    made_or_not(session, &begun, made);
}

/// Volumes and names of their snapshots, `(volume's id, volume, name)`: some that are free.
fn group(session: &Session, prng: &mut Prng) -> Vec<(u64, String, String)> {
    let mut group: Vec<(u64, String, String)> = Vec::new();
    for _ in 0..prng.between(2, TOGETHER) {
        let Some((of, _)) = session.pick_volume(prng) else {
            return Vec::new();
        };
        let source = model(session, of).name;
        let (name, taken) = name(session, &source, true, prng);
        if !taken && group.iter().all(|(_, _, other)| *other != name) {
            group.push((of, source, name));
        }
    }
    group
}

async fn together(session: &Session, prng: &mut Prng) {
    let group = group(session, prng);
    if group.is_empty() {
        return;
    }
    let of: Vec<(u64, &str)> = group
        .iter()
        .map(|(of, _, name)| (*of, name.as_str()))
        .collect();
    let at_s = prng.below(1000);
    let begun = begin(session, &of, true, at_s);
    session
        .world
        .note(|| format!("snapshots {begun:?} of {of:?} at one instant begin"));
    let pairs = group
        .iter()
        .map(|(_, source, name)| (source.as_str(), name.as_str()));
    let pairs: Vec<_> = pairs.collect();
    let asked_at = session.world.now();
    let made = session.pool.snapshot_together(&session.world, &pairs, at_s);
    let made = session.ask("snapshots", format!("{begun:?}"), made).await;
    let waited = session.world.now().since(asked_at);
    match made {
        // A lane did not come to a stand in time, and the others do not wait longer.
        Err(error) if error.kind == PoolErrorKind::Busy && waited >= STANDSTILL_MAX => {
            session
                .world
                .note(|| format!("snapshots {begun:?} are called off"));
            refused(session, &begun);
        }
        made => {
            let made = made.map(|volumes| in_order(&pairs, &volumes));
            made_or_not(session, &begun, made);
        }
    }
}

/// The snapshots in the order asked for: they come lane by lane.
fn in_order(pairs: &[(&str, &str)], made: &[Volume<SimWorld>]) -> Vec<Volume<SimWorld>> {
    let of_name = |name: &str| made.iter().find(|volume| volume.info().name == name);
    let names = pairs.iter().map(|(_, name)| *name);
    names.filter_map(|name| of_name(name).cloned()).collect()
}

fn begin(session: &Session, of: &[(u64, &str)], read_only: bool, at_s: u64) -> Vec<u64> {
    let mut oracle = session.books.oracle.borrow_mut();
    let begun = oracle.begin_clones(of, read_only);
    for (id, (of, _)) in begun.iter().zip(of) {
        oracle.note_origin(*id, *of, at_s);
    }
    begun
}

/// What came of clones that were begun.
fn made_or_not(session: &Session, begun: &[u64], made: Result<Vec<Volume<SimWorld>>, PoolError>) {
    match made {
        Ok(volumes) if volumes.len() == begun.len() => {
            for (id, volume) in begun.iter().zip(volumes) {
                let uuid = volume.info().uuid;
                session.volumes.borrow_mut().insert(*id, volume);
                end(session, *id, Change::Done(uuid));
            }
        }
        Ok(volumes) => session.fail(format!("{} clones of {}", volumes.len(), begun.len())),
        Err(error) => {
            if error.kind != PoolErrorKind::Full {
                session.fail(format!("clones {begun:?}: {error}"));
            }
            refused(session, begun);
        }
    }
}

/// None of these clones was made.
fn refused(session: &Session, begun: &[u64]) {
    begun
        .iter()
        .for_each(|id| end(session, *id, Change::Refused));
}

fn end(session: &Session, id: u64, change: Change) {
    session
        .world
        .note(|| format!("clone {id} ends: {change:?}"));
    session.books.oracle.borrow_mut().end_change(id, change);
}

/// A volume and one of the snapshots of its family.
fn family(session: &Session, prng: &mut Prng) -> Option<(VolumeModel, VolumeModel)> {
    let (id, _) = session.pick_volume(prng)?;
    let there: Vec<u64> = session.volumes.borrow().keys().copied().collect();
    let snapshots = there.iter().map(|other| model(session, *other));
    let of = |snapshot: &VolumeModel| snapshot.read_only && snapshot.is_descendant_of(id);
    let snapshots: Vec<VolumeModel> = snapshots.filter(of).collect();
    match snapshots.is_empty() {
        true => None,
        false => Some((model(session, id), prng.pick(&snapshots).clone())),
    }
}

async fn restore(session: &Session, prng: &mut Prng) {
    let Some((volume, snapshot)) = family(session, prng) else {
        return;
    };
    let (keep, taken) = name(session, &volume.name, true, prng);
    let at_s = prng.below(1000);
    let keep = (!taken && prng.chance(1, 2)).then_some(keep.as_str());
    let (world, pool) = (&session.world, &session.pool);
    if volume.read_only || snapshot.size_bytes > volume.size_bytes {
        let outcome = pool.restore(&volume.name, &snapshot.name, keep, at_s);
        let outcome = session.ask(WRONG, "restoring".to_owned(), outcome).await;
        let invalid = PoolErrorKind::Invalid;
        return expect(session, "restoring this volume", outcome, invalid);
    }
    let oracle = || session.books.oracle.borrow_mut();
    let (ticket, kept) = oracle().begin_restore(volume.id, snapshot.id, keep);
    if let Some(kept) = kept {
        oracle().note_origin(kept, volume.id, at_s);
    }
    world.note(|| {
        let (to, from, number) = (volume.id, snapshot.id, ticket.id);
        format!("restoring {number} of volume {to} from {from}, kept as {kept:?}, begins")
    });
    let outcome = pool.restore(&volume.name, &snapshot.name, keep, at_s);
    let what = format!("{} of volume {}", ticket.id, volume.id);
    let outcome = session.ask("restore", what, outcome).await;
    world.note(|| format!("restoring {} ends: {outcome:?}", ticket.id));
    if let Some(id) = kept {
        end_kept(session, (ticket.id, id), keep, outcome.is_ok());
    }
    let ended = match outcome {
        Ok(()) => WriteEnd::Acknowledged,
        Err(error) => {
            if error.kind != PoolErrorKind::Full {
                session.fail(format!("restoring {}: {error}", ticket.id));
            }
            // Nothing was changed; that it may have been is not far from it.
            WriteEnd::Failed
        }
    };
    oracle().end_write(&ticket, ended);
}

/// The state before a restore is a snapshot now, or is not.
fn end_kept(session: &Session, (number, id): (u64, u64), keep: Option<&str>, is_restored: bool) {
    let handle = keep.and_then(|name| session.pool.volume(name));
    let change = handle
        .as_ref()
        .map_or(Change::Refused, |volume| Change::Done(volume.info().uuid));
    if handle.is_some() != is_restored {
        session.fail(format!("restoring {number}: kept {change:?}"));
    }
    session.books.oracle.borrow_mut().end_change(id, change);
    if let Some(volume) = handle {
        session.volumes.borrow_mut().insert(id, volume);
    }
}
