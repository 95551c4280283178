//! Has drives be copied to new ones, which take their places: by command, or because they are slow.
//!
//! Invariant: the new drive of one that may be struck may be struck, too; the others are as sound as
//! those whose places they get. So while a drive is copied as many others may be lost as ever.

use crate::damage;
use crate::session::Session;
use array::error::ArrayError;
use base::Prng;
use engine::{MemberState, World};
use std::rc::Rc;
use std::time::Duration;

/// Drives that a run begins to copy, at most.
const COPIES_MAX: usize = 6;

/// How many times slower a drive is that should be suspect.
const SLOWDOWN: u32 = 30;

/// A slow drive is fast again after this time, where none of its copies has ended.
const SLOW_FOR: Duration = Duration::from_secs(2);

/// Has drives be replaced now and then that answer, and others become slow.
pub(crate) async fn copy(session: Rc<Session>, mut prng: Prng) {
    let most = *prng.pick(&[5_000, 50_000, 500_000]);
    while session.take_operation() {
        let pause = Duration::from_micros(prng.below(most));
        session.world.sleep(pause).await;
        let books = &session.books;
        if books.media.borrow().len() >= books.config.drive_bytes.len() + COPIES_MAX {
            return;
        }
        let mut members = session.pool.info().members;
        members.retain(|member| {
            let answers = matches!(member.state, MemberState::Healthy | MemberState::Suspect);
            answers && member.successor.is_none()
        });
        if !members.is_empty() {
            let name = prng.pick(&members).name.clone();
            match session.books.config.is_struck() || prng.chance(1, 2) {
                true => replace(&session, &name).await,
                false => slow_down(&session, &name).await,
            }
        }
    }
}

/// Has a drive be slow for a while, with a spare at hand.
async fn slow_down(session: &Session, name: &str) {
    let (books, world) = (&session.books, &session.world);
    let find = || {
        let media = books.media.borrow();
        media
            .iter()
            .find(|media| media.spec().name == name)
            .cloned()
    };
    let Some(media) = find() else { return };
    let before = media.with_faults(|faults| std::mem::replace(&mut faults.slowdown, SLOWDOWN));
    world.note(|| format!("{name} is slow"));
    let new = books.blank();
    let what = format!("{} as a spare for {name}", new.0);
    let added = session.pool.add_spare(new, None);
    let outcome = session.ask("add spare", what.clone(), added).await;
    judge(session, &what, outcome);
    let began = world.now();
    let is_there = || {
        let members = session.pool.info().members;
        members.iter().any(|member| member.name == name)
    };
    while is_there() && world.now().since(began) < SLOW_FOR {
        world.sleep(SLOW_FOR / 20).await;
    }
    media.with_faults(|faults| faults.slowdown = before);
}

async fn replace(session: &Session, name: &str) {
    let books = &session.books;
    let new = books.blank();
    let is_victim = |name: &str| {
        let victims = books.victims.borrow();
        victims.iter().any(|media| media.spec().name == name)
    };
    if is_victim(name) {
        books.victims.borrow_mut().push(Rc::clone(&new.1));
    }
    let what = format!("{name} by {}", new.0);
    session.world.note(|| format!("{what} is to be copied"));
    let replaced = session.pool.replace_drive(name, new, None);
    let outcome = session.ask("copy drive", what.clone(), replaced).await;
    judge(session, &what, outcome);
}

fn judge(session: &Session, what: &str, outcome: Result<(), ArrayError>) {
    session.world.note(|| format!("{what}: {outcome:?}"));
    damage::judge(session, what, outcome);
}
