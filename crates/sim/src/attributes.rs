//! The administrator's changes of attributes: renames and tags volumes, and uses the trash.

use crate::answers::WRONG;
use crate::oracle::properties::is_usual;
use crate::oracle::volume::Change;
use crate::session::Session;
use base::{Prng, Uuid};
use engine::pool::AttributesChange;
use engine::{PoolError, PoolErrorKind};

/// Does one of these.
pub async fn change(session: &Session, prng: &mut Prng) {
    match prng.below(8) {
        0 | 1 => trash(session, prng).await,
        2 => recover(session, prng).await,
        3 => delete(session, prng).await,
        _ => say(session, prng).await,
    }
}

fn draw(session: &Session, name: &str, prng: &mut Prng) -> AttributesChange {
    let number = prng.below(2 * session.books.config.volumes);
    let renames = prng.chance(1, 2).then(|| match name.split_once('@') {
        Some((volume, _)) => format!("{volume}@r{number}"),
        None => format!("v{number}"),
    });
    let attribute = |prng: &mut Prng| {
        let value = match prng.below(3) {
            0 => String::new(),
            length => "x".repeat(length as usize * 20),
        };
        (format!("k{}", prng.below(3)), value)
    };
    let attributes = (0..prng.below(3)).map(|_| attribute(prng)).collect();
    AttributesChange {
        name: renames,
        attributes,
    }
}

async fn say(session: &Session, prng: &mut Prng) {
    let Some((id, _)) = session.pick_volume(prng) else {
        return;
    };
    let oracle = || session.books.oracle.borrow_mut();
    let name = oracle().volume(id).name.clone();
    let change = draw(session, &name, prng);
    let new = change.name.as_ref().filter(|new| **new != name);
    let fits = new.is_none_or(|new| oracle().can_be_called(id, new));
    if !fits {
        let outcome = session.pool.change_attributes(&name, &change);
        let outcome = session.ask(WRONG, "attributes".to_owned(), outcome).await;
        expect(session, &format!("{name} as {new:?}"), outcome);
        return;
    }
    session
        .world
        .note(|| format!("of volume {id} is said {change:?}: begins"));
    oracle().begin_attributes(id, &change, false);
    let outcome = session.pool.change_attributes(&name, &change);
    let what = format!("of volume {id}");
    let outcome = session.ask("attributes", what, outcome).await;
    end(session, id, &outcome);
}

async fn trash(session: &Session, prng: &mut Prng) {
    let Some((id, _)) = session.pick_volume(prng) else {
        return;
    };
    let oracle = || session.books.oracle.borrow_mut();
    let name = oracle().volume(id).name.clone();
    session
        .world
        .note(|| format!("volume {id} goes into the trash"));
    oracle().begin_attributes(id, &AttributesChange::default(), true);
    let outcome = session.pool.trash_volume(&name, prng.below(1000));
    let what = format!("of volume {id}");
    let outcome = session.ask("trash", what, outcome).await;
    if outcome.is_ok() {
        session.volumes.borrow_mut().remove(&id);
        if session.pool.volume(&name).is_some() {
            session.fail(format!("volume {name:?} is in the trash and found"));
        }
    }
    end(session, id, &outcome);
}

/// One of those in the trash.
fn pick(session: &Session, prng: &mut Prng) -> Option<(u64, Uuid)> {
    let oracle = session.books.oracle.borrow();
    let trashed = oracle
        .volumes()
        .filter(|volume| volume.properties.is_trashed);
    let all: Vec<_> = trashed
        .filter_map(|volume| Some((volume.id, volume.uuid()?)))
        .collect();
    (!all.is_empty()).then(|| *prng.pick(&all))
}

async fn recover(session: &Session, prng: &mut Prng) {
    let Some((id, uuid)) = pick(session, prng) else {
        return;
    };
    let oracle = || session.books.oracle.borrow_mut();
    let name = oracle().volume(id).name.clone();
    let change = match prng.chance(1, 2) {
        true => draw(session, &name, prng).name,
        false => None,
    };
    let wanted = change.clone().unwrap_or_else(|| name.clone());
    let fits = match wanted == name {
        true => !oracle().is_taken(&wanted),
        false => oracle().can_be_called(id, &wanted),
    };
    let recovered = session.pool.recover_trashed(uuid, change.as_deref());
    if !fits {
        let outcome = session.ask(WRONG, "name".to_owned(), recovered).await;
        expect(session, &format!("{wanted} again"), outcome);
        return;
    }
    session
        .world
        .note(|| format!("volume {id} comes back as {wanted:?}"));
    let change = AttributesChange {
        name: change.clone(),
        attributes: Vec::new(),
    };
    oracle().begin_attributes(id, &change, false);
    let what = format!("of volume {id}");
    let outcome = session.ask("recover", what, recovered).await;
    end(session, id, &outcome);
    if outcome.is_ok() {
        find_again(session, id, &wanted);
    }
}

/// A volume is there again, out of the trash.
fn find_again(session: &Session, id: u64, name: &str) {
    match session.pool.volume(name) {
        Some(volume) => {
            session.volumes.borrow_mut().insert(id, volume);
        }
        None => session.fail(format!("volume {name:?} is out of the trash and not found")),
    }
}

async fn delete(session: &Session, prng: &mut Prng) {
    let Some((id, uuid)) = pick(session, prng) else {
        return;
    };
    session
        .world
        .note(|| format!("volume {id} is deleted in the trash"));
    session.books.oracle.borrow_mut().begin_delete(id);
    let deleted = session.pool.delete_trashed(uuid);
    let what = format!("of volume {id}, in the trash");
    let change = match session.ask("delete", what, deleted).await {
        Ok(()) => Change::Done(Uuid::nil()),
        Err(error) => {
            session.fail(format!("deletion of volume {id} in the trash: {error}"));
            Change::Refused
        }
    };
    session.books.oracle.borrow_mut().end_change(id, change);
}

fn end(session: &Session, id: u64, outcome: &Result<(), PoolError>) {
    session
        .world
        .note(|| format!("what is said of volume {id} ends: {outcome:?}"));
    session.books.oracle.borrow_mut().end_attributes(outcome);
    if !is_usual(outcome) {
        session.fail(format!("what is said of volume {id}: {outcome:?}"));
    }
}

fn expect(session: &Session, what: &str, outcome: Result<(), PoolError>) {
    match outcome {
        Err(error) if error.kind == PoolErrorKind::Exists => {}
        other => session.fail(format!("{what}, which is taken: {other:?}")),
    }
}
