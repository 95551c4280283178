//! Adds groups to a pool in use, removes them, and changes their level.

use crate::agreement;
use crate::session::Session;
use base::{BLOCK_BYTES, Prng};
use engine::pool::EventKind;
use engine::{PoolError, PoolErrorKind, World};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Weak;
use std::time::Duration;

/// How often it is looked whether drives are free.
const PAUSE: Duration = Duration::from_millis(100);

/// Takes drives for something else as soon as the pool says that they are free: what was on
/// them is gone.
pub async fn take_free_drives(session: Weak<Session>) {
    let mut members: BTreeMap<u16, BTreeSet<String>> = BTreeMap::new();
    let mut taken = BTreeSet::new();
    loop {
        let world = {
            let Some(session) = session.upgrade() else {
                return;
            };
            for group in session.pool.info().groups {
                let names = group.members.into_iter().map(|member| member.name);
                members.entry(group.index).or_default().extend(names);
            }
            for (index, names) in &members {
                if !taken.contains(index) && is_told_free(&session, *index) {
                    taken.insert(*index);
                    overwrite(&session, names);
                }
            }
            session.world.clone()
        };
        world.sleep(PAUSE).await;
    }
}

fn is_told_free(session: &Session, group: u16) -> bool {
    let text = format!("group {group} has left the pool");
    let events = session.pool.events();
    let mut groups = events.iter().filter(|event| event.kind == EventKind::Group);
    groups.any(|event| event.text.contains(&text))
}

fn overwrite(session: &Session, names: &BTreeSet<String>) {
    session
        .world
        .note(|| format!("{names:?} are free: somebody else writes to them"));
    // One that stood there in some lanes may wait as a spare in others.
    let spares = session.pool.info().spares;
    let is_spare = |name: &String| spares.iter().any(|spare| spare.name == *name);
    for (name, media) in session.pool.given.borrow().iter() {
        if names.contains(name) && !is_spare(name) {
            let blocks = media.spec().capacity_bytes / BLOCK_BYTES as u64;
            (0..blocks).for_each(|block| media.corrupt(block));
        }
    }
}

/// Does one of these, when the run has any.
pub async fn change(session: &Session, prng: &mut Prng) {
    let config = &session.books.config;
    match prng.below(3) {
        0 => convert(session, prng).await,
        1 if config.group_later.is_some() => add(session).await,
        2 if config.groups_leave => remove(session, prng).await,
        _ => {}
    }
}

fn group(session: &Session, prng: &mut Prng) -> u16 {
    let groups = session.pool.info().groups;
    prng.pick(&groups).index
}

/// What may stand in the way at any time.
fn expect(session: &Session, what: &str, outcome: Result<(), PoolError>) {
    session.world.note(|| format!("{what}: {outcome:?}"));
    if let Err(error) = outcome {
        let usual = matches!(
            error.kind,
            PoolErrorKind::Busy | PoolErrorKind::Full | PoolErrorKind::Invalid
        );
        if !usual {
            session.fail(format!("{what}: {:?}: {error}", error.kind));
        }
    }
}

async fn convert(session: &Session, prng: &mut Prng) {
    let Some(level) = session.books.config.level_later else {
        return;
    };
    let index = group(session, prng);
    let outcome = session.pool.convert_group(index, level);
    let what = format!("{index} to {level}");
    let outcome = session.ask("convert group", what, outcome).await;
    expect(session, &format!("group {index} to {level}"), outcome);
}

async fn add(session: &Session) {
    let Some((level, _)) = session.books.config.group_later else {
        return;
    };
    if session.books.later_begun.replace(true) {
        return;
    }
    if session.pool.all().len() > 1 {
        add_unfit(session).await;
    }
    let media = session.books.later.borrow().clone();
    session
        .books
        .media
        .borrow_mut()
        .extend(media.iter().cloned());
    let drives = session.books.later_drives();
    let outcome = session.pool.add_group(&session.world, level, &drives);
    let outcome = session.ask("add group", String::new(), outcome).await;
    match outcome {
        // A drive that is a victim may be struck before it is part of the pool.
        Err(error) if error.kind == PoolErrorKind::Drive && session.books.config.damage => {
            session
                .world
                .note(|| format!("a group is not added: {error}"));
        }
        outcome => expect(session, "a group is added", outcome),
    }
}

/// Adds a group that only the last lane can refuse: nothing is left of it.
async fn add_unfit(session: &Session) {
    let Some((level, _)) = session.books.config.group_later else {
        return;
    };
    let before = agreement::groups_ever(&session.pool);
    let drives = session.books.later_drives();
    let outcome = session
        .pool
        .add_unfit_group(&session.world, level, &drives)
        .await;
    let after = agreement::groups_ever(&session.pool);
    session
        .world
        .note(|| format!("a group that does not fit: {outcome:?}"));
    if outcome.is_ok() || before != after {
        session.fail(format!(
            "a refused group is not nothing: {outcome:?}, {before:?}, {after:?}"
        ));
    }
}

async fn remove(session: &Session, prng: &mut Prng) {
    let index = group(session, prng);
    let outcome = session.pool.remove_group(index);
    let outcome = session
        .ask("remove group", format!("{index}"), outcome)
        .await;
    expect(session, &format!("group {index} is to leave"), outcome);
}
