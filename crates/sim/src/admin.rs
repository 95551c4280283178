//! The administrator: creates, grows and deletes volumes while clients use them.

use crate::answers::WRONG;
use crate::config::Theme;
use crate::oracle::WriteEnd;
use crate::oracle::volume::{Change, Exists};
use crate::session::Session;
use base::{Prng, SECTOR_BYTES, Uuid, VolumeOffset};
use engine::pool::VolumeChange;
use engine::{IoErrorKind, PoolError, PoolErrorKind, Provisioning, VolumeSpec, World};
use std::rc::Rc;
use std::time::Duration;

const SECTOR: u64 = SECTOR_BYTES as u64;

/// Changes volumes from time to time until no request is left.
pub async fn run(session: Rc<Session>, mut prng: Prng) {
    while session.take_operation() {
        change(&session, &mut prng).await;
        let pause = prng.below(session.books.config.pause_us_max);
        session.world.sleep(Duration::from_micros(pause)).await;
    }
}

async fn change(session: &Session, prng: &mut Prng) {
    if prng.chance(1, 12) {
        session.world.note(|| "a scrub is wanted".to_owned());
        let begun = session.pool.start_scrub();
        if let Err(error) = session.ask("scrub", String::new(), begun).await {
            session.fail(format!("starting a scrub: {error}"));
        }
        return;
    }
    let regroups_of_10 = match session.books.config.has(Theme::Departures) {
        true => 4,
        false => 1,
    };
    if prng.chance(regroups_of_10, 10) {
        crate::regroup::change(session, prng).await;
        return;
    }
    // Those in the trash, too.
    let count = session.books.oracle.borrow().volumes().count() as u64;
    if count == 0 || (count < session.books.config.volumes && prng.chance(1, 3)) {
        create(session, prng).await;
        return;
    }
    let conversions = session.books.config.conversions_of_16;
    if conversions > 0 && prng.chance(conversions, 16) {
        convert(session, prng).await;
        return;
    }
    let clones = session.books.config.clones_of_16;
    if clones > 0 && count < 2 * session.books.config.volumes && prng.chance(clones, 16) {
        crate::snapshots::change(session, prng).await;
        return;
    }
    let shrinks = session.books.config.shrinks_of_16;
    if shrinks > 0 && prng.chance(shrinks, 16) {
        shrink(session, prng).await;
        return;
    }
    let attributes = session.books.config.attributes_of_16;
    if attributes > 0 && prng.chance(attributes, 16) {
        crate::attributes::change(session, prng).await;
        return;
    }
    let deletions = session.books.config.deletions_of_16;
    match prng.below(16) {
        draw if draw < deletions => delete(session, prng).await,
        draw if draw < deletions + 2 => wrong_request(session, prng).await,
        _ => resize(session, prng).await,
    }
}

fn size_up_to(most_bytes: u64, prng: &mut Prng) -> u64 {
    prng.between(1, most_bytes.div_ceil(SECTOR)) * SECTOR
}

async fn create(session: &Session, prng: &mut Prng) {
    let spec = VolumeSpec {
        name: format!("v{}", prng.below(2 * session.books.config.volumes)),
        size_bytes: size_up_to(session.books.config.volume_bytes_max, prng),
        provisioning: *prng.pick(&[Provisioning::Thin, Provisioning::Thin, Provisioning::Thick]),
    };
    let taken = session.books.oracle.borrow().is_taken(&spec.name);
    session
        .world
        .note(|| format!("creation of {spec:?} begins"));
    if taken {
        let outcome = session.pool.create_volume_as(spec.clone(), false);
        let outcome = session.ask(WRONG, "creation".to_owned(), outcome).await;
        let outcome = outcome.map(drop);
        expect(
            session,
            &format!("creation of {:?} again", spec.name),
            outcome,
            PoolErrorKind::Exists,
        );
        return;
    }
    let detects_zeroes = session.books.config.zeroes_of_8 > 0 && prng.chance(1, 2);
    let id = session.books.oracle.borrow_mut().begin_create(
        &spec.name,
        spec.size_bytes,
        (spec.provisioning, detects_zeroes),
    );
    let fullness = session.fullness();
    let made = session.pool.create_volume_as(spec.clone(), detects_zeroes);
    let change = match session.ask("create", format!("{spec:?}"), made).await {
        Ok(volume) => {
            let uuid = volume.info().uuid;
            session.volumes.borrow_mut().insert(id, volume);
            Change::Done(uuid)
        }
        Err(error) => {
            let full = error.kind == PoolErrorKind::Full && session.may_have_been_full(fullness);
            if !full {
                session.fail(format!("creation of {spec:?}: {error}"));
            }
            Change::Refused
        }
    };
    session
        .world
        .note(|| format!("creation of volume {id} ends: {change:?}"));
    session.books.oracle.borrow_mut().end_change(id, change);
}

/// Has a volume take space in another way, or in the same.
async fn convert(session: &Session, prng: &mut Prng) {
    let Some((id, _)) = session.pick_volume(prng) else {
        return;
    };
    let model = session.books.oracle.borrow().volume(id).clone();
    let change = VolumeChange {
        provisioning: prng
            .chance(3, 4)
            .then(|| *prng.pick(&[Provisioning::Thin, Provisioning::Thick])),
        detects_zeroes: prng.chance(1, 2).then(|| prng.chance(1, 2)),
    };
    let to = (
        change.provisioning.unwrap_or(model.provisioning),
        change.detects_zeroes.unwrap_or(model.detects_zeroes),
    );
    let note = |what: String| {
        session
            .world
            .note(|| format!("change of volume {id} {what}"))
    };
    note(format!("to {to:?} begins"));
    session.books.oracle.borrow_mut().begin_convert(id, to);
    let fullness = session.fullness();
    let changed = session.pool.change_volume(&model.name, change);
    let what = format!("of volume {id}");
    let change = match session.ask("convert", what, changed).await {
        Ok(()) => Change::Done(Uuid::nil()),
        Err(error) => {
            let excused = match error.kind {
                PoolErrorKind::Full => session.may_have_been_full(fullness),
                PoolErrorKind::Invalid => model.read_only,
                _ => false,
            };
            if !excused {
                session.fail(format!("change of volume {id} to {to:?}: {error}"));
            }
            Change::Refused
        }
    };
    note(format!("ends: {change:?}"));
    session.books.oracle.borrow_mut().end_convert(id, change);
}

async fn resize(session: &Session, prng: &mut Prng) {
    let Some((id, volume)) = session.pick_volume(prng) else {
        return;
    };
    let (name, size_bytes) = {
        let oracle = session.books.oracle.borrow();
        let model = oracle.volume(id);
        (model.name.clone(), model.size_bytes)
    };
    let wanted = size_bytes + size_up_to(session.books.config.volume_bytes_max, prng);
    if wanted > 4 * session.books.config.volume_bytes_max {
        return;
    }
    session
        .world
        .note(|| format!("resize of volume {id} to {wanted} begins"));
    session.books.oracle.borrow_mut().begin_resize(id, wanted);
    let fullness = session.fullness();
    let outcome = session.pool.resize_volume(&name, wanted);
    let what = format!("of volume {id} to {wanted}");
    let outcome = session.ask("resize", what, outcome).await;
    let change = match outcome {
        Ok(()) if volume.size_bytes() == wanted => Change::Done(Uuid::nil()),
        Ok(()) => {
            session.fail(format!(
                "volume {id} has {} bytes, not {wanted}",
                volume.size_bytes()
            ));
            Change::Refused
        }
        Err(error) => {
            if error.kind != PoolErrorKind::Full || !session.may_have_been_full(fullness) {
                let room = session.room();
                session.fail(format!(
                    "resize of volume {id} to {wanted}: {error}; {room}"
                ));
            }
            Change::Refused
        }
    };
    session
        .world
        .note(|| format!("resize of volume {id} ends: {change:?}"));
    session.books.oracle.borrow_mut().end_change(id, change);
}

/// Makes a volume smaller; what is behind its new end is gone.
async fn shrink(session: &Session, prng: &mut Prng) {
    let Some((id, volume)) = session.pick_volume(prng) else {
        return;
    };
    let model = session.books.oracle.borrow().volume(id).clone();
    if model.sectors() < 2 {
        return;
    }
    let page = u64::from(session.books.config.pool.page_bytes);
    let wanted = prng.between(1, model.sectors() - 1) * SECTOR;
    let wanted = match prng.chance(1, 4) {
        true if wanted > page => wanted / page * page,
        _ => wanted,
    };
    if model.read_only {
        let outcome = session.pool.shrink_volume(&model.name, wanted);
        let outcome = session.ask(WRONG, "shrinking".to_owned(), outcome).await;
        return expect(
            session,
            "shrinking a snapshot",
            outcome,
            PoolErrorKind::Invalid,
        );
    }
    let note = |what: String| {
        session
            .world
            .note(|| format!("shrinking of volume {id} to {wanted} {what}"))
    };
    note("begins".to_owned());
    let fullness = session.fullness();
    let behind = wanted.next_multiple_of(page).min(model.size_bytes);
    let ticket = session
        .books
        .oracle
        .borrow_mut()
        .begin_shrink(id, wanted, behind);
    let outcome = session.pool.shrink_volume(&model.name, wanted);
    let what = format!("of volume {id} to {wanted}");
    let outcome = session.ask("shrink", what, outcome).await;
    let change = match outcome {
        Ok(()) if volume.size_bytes() == wanted => Change::Done(Uuid::nil()),
        Ok(()) => {
            session.fail(format!("volume {id} has {} bytes", volume.size_bytes()));
            Change::Refused
        }
        Err(error) => {
            let lost = error.kind == PoolErrorKind::Drive && session.books.beyond.get();
            let full = error.kind == PoolErrorKind::Full && session.may_have_been_full(fullness);
            if !full && !lost {
                session.fail(format!("shrinking of volume {id} to {wanted}: {error}"));
            }
            Change::Refused
        }
    };
    note(format!("ends: {change:?}"));
    let mut oracle = session.books.oracle.borrow_mut();
    oracle.end_change(id, change);
    let ended = match change {
        Change::Done(_) => WriteEnd::Acknowledged,
        Change::Refused => WriteEnd::Failed,
    };
    oracle.end_write(&ticket, ended);
}

async fn delete(session: &Session, prng: &mut Prng) {
    let Some((id, volume)) = session.pick_volume(prng) else {
        return;
    };
    let name = session.books.oracle.borrow().volume(id).name.clone();
    session
        .world
        .note(|| format!("deletion of volume {id} begins"));
    session.books.oracle.borrow_mut().begin_delete(id);
    let deleted = session.pool.delete_volume(&name);
    let deleted = session.ask("delete", format!("of volume {id}"), deleted);
    if let Err(error) = deleted.await {
        session.fail(format!("deletion of volume {id}: {error}"));
        session
            .books
            .oracle
            .borrow_mut()
            .end_change(id, Change::Refused);
        return;
    }
    session
        .world
        .note(|| format!("deletion of volume {id} ends"));
    session.volumes.borrow_mut().remove(&id);
    session
        .books
        .oracle
        .borrow_mut()
        .end_change(id, Change::Done(Uuid::nil()));
    let read = volume.read(VolumeOffset(0), SECTOR_BYTES);
    let what = format!("read of volume {id}, which is deleted");
    match session.ask(WRONG, what, read).await {
        Err(error) if error.kind == IoErrorKind::Deleted => {}
        Err(error) => session.fail(format!("a read of a deleted volume: {error}")),
        Ok(_) => session.fail("a deleted volume was read"),
    }
}

/// Requests that must be refused, each by its kind.
async fn wrong_request(session: &Session, prng: &mut Prng) {
    let Some((id, _)) = session.pick_volume(prng) else {
        return;
    };
    let model = session.books.oracle.borrow().volume(id).clone();
    let spec = |name: &str, size_bytes| VolumeSpec {
        name: name.to_owned(),
        size_bytes,
        provisioning: Provisioning::Thin,
    };
    let pool = &session.pool;
    let (what, outcome, kind) = match prng.below(5) {
        0 if model.exists == Exists::Yes && model.size_bytes > SECTOR => {
            let smaller = pool.resize_volume(&model.name, model.size_bytes - SECTOR);
            let smaller = session.ask(WRONG, "size".to_owned(), smaller).await;
            ("shrinking", smaller, PoolErrorKind::Invalid)
        }
        1 => {
            let outcome = pool.create_volume_as(spec("of/two", SECTOR), false);
            let outcome = session.ask(WRONG, "creation".to_owned(), outcome).await;
            let outcome = outcome.map(drop);
            ("a name with a slash", outcome, PoolErrorKind::Invalid)
        }
        2 => {
            let outcome = pool.create_volume_as(spec("odd", 1000), false);
            let outcome = session.ask(WRONG, "creation".to_owned(), outcome).await;
            let outcome = outcome.map(drop);
            ("a size off the grain", outcome, PoolErrorKind::Invalid)
        }
        3 => {
            let outcome = pool.create_volume_as(spec("none", 0), false);
            let outcome = session.ask(WRONG, "creation".to_owned(), outcome).await;
            let outcome = outcome.map(drop);
            ("a size of zero", outcome, PoolErrorKind::Invalid)
        }
        _ => {
            let outcome = pool.delete_volume("nobody");
            let outcome = session.ask(WRONG, "deletion".to_owned(), outcome).await;
            (
                "deleting what is not there",
                outcome,
                PoolErrorKind::NotFound,
            )
        }
    };
    expect(session, what, outcome, kind);
}

pub(crate) fn expect(
    session: &Session,
    what: &str,
    outcome: Result<(), PoolError>,
    kind: PoolErrorKind,
) {
    match outcome {
        Err(error) if error.kind == kind => {}
        Err(error) => session.fail(format!(
            "{what}: not {kind:?} but {:?}: {error}",
            error.kind
        )),
        Ok(()) => session.fail(format!("{what} was not refused")),
    }
}
