//! Adds groups to a pool in use, removes them, and changes their level.

use crate::agreement;
use crate::lanes::NamedMedia;
use crate::pool_changes::Unfit;
use crate::session::Session;
use array::error::{ArrayError, ArrayErrorKind};
use base::{BLOCK_BYTES, Prng};
use engine::pool::{EventKind, GroupRole};
use engine::{MemberState, World};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};
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
    match prng.below(4) {
        0 => convert(session, prng).await,
        1 if config.group_later.is_some() => add(session).await,
        2 if config.groups_leave => remove(session, prng).await,
        3 if may_refuse(session) => refuse(session, prng).await,
        _ => {}
    }
}

fn group(session: &Session, prng: &mut Prng) -> u16 {
    let groups = session.pool.info().groups;
    prng.pick(&groups).index
}

/// What may stand in the way at any time.
fn expect(session: &Session, what: &str, outcome: Result<(), ArrayError>) {
    session.world.note(|| format!("{what}: {outcome:?}"));
    if let Err(error) = outcome {
        let usual = matches!(
            error.kind,
            ArrayErrorKind::Busy | ArrayErrorKind::Full | ArrayErrorKind::Invalid
        );
        if !usual {
            session.fail(format!("{what}: {:?}: {error}", error.kind));
        }
    }
}

/// The same of a change of a group. One that has left meanwhile is not found.
fn expect_of(session: &Session, index: u16, what: &str, outcome: Result<(), ArrayError>) {
    let groups = session.pool.info().groups;
    let has_left = !groups.iter().any(|group| group.index == index);
    match outcome {
        Err(error) if error.kind == ArrayErrorKind::NotFound && has_left => {
            session.world.note(|| format!("{what}: {error}"));
        }
        outcome => expect(session, what, outcome),
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
    expect_of(
        session,
        index,
        &format!("group {index} to {level}"),
        outcome,
    );
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
    let outcome = session
        .pool
        .add_group((level, GroupRole::Data), &drives, None);
    let outcome = session.ask("add group", String::new(), outcome).await;
    match outcome {
        // A drive that is a victim may be struck before it is part of the pool.
        Err(error) if error.kind == ArrayErrorKind::Internal && session.books.config.damage => {
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
    let unfit = Some(Unfit::Asked);
    let outcome = session
        .pool
        .add_group((level, GroupRole::Data), &drives, unfit)
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
    expect_of(
        session,
        index,
        &format!("group {index} is to leave"),
        outcome,
    );
}

/// So many drives are made for log groups in a run, at most.
const LOG_DRIVES_MAX: usize = 12;

/// Adds a group for the logs where there is none, and has it leave again.
pub(crate) async fn log_groups(session: Rc<Session>, mut prng: Prng) {
    while session.take_operation() {
        let pause = Duration::from_micros(prng.below(200_000));
        session.world.sleep(pause).await;
        let groups = session.pool.info().groups;
        let mut logs = groups.iter().filter(|group| group.role == GroupRole::Log);
        match logs.find(|group| !group.leaving) {
            Some(group) => {
                let index = group.index;
                let removed = session.pool.remove_group(index);
                let what = format!("{index}, for the logs");
                let outcome = session.ask("remove group", what, removed).await;
                expect_of(&session, index, "the log group is to leave", outcome);
            }
            None => add_log_group(&session, &mut prng).await,
        }
    }
}

async fn add_log_group(session: &Session, prng: &mut Prng) {
    let Some((level, drives, _)) = session.books.config.log_group else {
        return;
    };
    if session.books.logs.borrow().len() + drives > LOG_DRIVES_MAX {
        return;
    }
    let media = session.books.new_log_drives(prng);
    let named = media
        .iter()
        .map(|media| (media.spec().name.clone(), Rc::clone(media)));
    let named: Vec<NamedMedia> = named.collect();
    let added = session
        .pool
        .add_group((level, GroupRole::Log), &named, None);
    let outcome = session
        .ask("add group", "for the logs".to_owned(), added)
        .await;
    match outcome {
        // A drive that is a victim may be struck before it is part of the pool.
        Err(error) if error.kind == ArrayErrorKind::Internal && session.books.config.damage => {
            session
                .world
                .note(|| format!("a log group is not added: {error}"));
        }
        outcome => expect(session, "a log group is added", outcome),
    }
}

/// So many drives are offered and refused in a run, at most.
const REFUSED_MAX: usize = 3;

/// Whether one lane can refuse what others take, and nothing else befalls drives.
fn may_refuse(session: &Session) -> bool {
    let is_sound = !session.books.config.is_struck();
    is_sound && session.pool.all().len() > 1 && session.books.refused.borrow().len() < REFUSED_MAX
}

/// Offers a drive that the last lane refuses. No lane has it then, and none has lost another.
async fn refuse(session: &Session, prng: &mut Prng) {
    let books = &session.books;
    let unfit = Some(*prng.pick(&[Unfit::Asked, Unfit::Opened]));
    let (new, pool) = (books.blank(), &session.pool);
    let name = new.0.clone();
    books.refused.borrow_mut().insert(name.clone());
    let members = pool.info().members;
    let old = prng.pick(&members).name.clone();
    let (what, outcome) = match prng.chance(1, 2) {
        true => {
            let added = pool.add_spare(new, unfit);
            let what = format!("{unfit:?}");
            ("a spare", session.ask("add spare", what, added).await)
        }
        false => {
            let replaced = pool.replace_drive(&old, new, unfit);
            let what = format!("of {old}, {unfit:?}");
            let outcome = session.ask("replace drive", what, replaced).await;
            ("a replacement", outcome)
        }
    };
    let why = format!("{what} that does not fit, {unfit:?}: {outcome:?}");
    session.world.note(|| why.clone());
    if outcome.is_ok() || has_changed(session, &name) {
        session.fail(format!("a refused drive is not nothing: {why}"));
    }
}

/// Whether a lane has a drive of this name, or one out of use.
fn has_changed(session: &Session, name: &str) -> bool {
    let infos = session.pool.all().iter().map(|lane| lane.info());
    let mut drives = infos.flat_map(|info| info.members.into_iter().chain(info.spares));
    drives.any(|drive| drive.name == name || drive.state == MemberState::Failed)
}
