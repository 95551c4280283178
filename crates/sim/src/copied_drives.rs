//! Has drives be copied to new ones, which take their places.
//!
//! Invariant: the new drive of one that may be struck may be struck, too; the others are as sound as
//! those whose places they get. So while a drive is copied as many others may be lost as ever.

use crate::session::Session;
use array::error::ArrayErrorKind;
use base::Prng;
use engine::{MemberState, World};
use std::rc::Rc;
use std::time::Duration;

/// Drives that a run begins to copy, at most.
const COPIES_MAX: usize = 6;

/// Has a drive be replaced now and then that answers.
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
            replace(&session, &name).await;
        }
    }
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
    session.world.note(|| format!("{what}: {outcome:?}"));
    if let Err(error) = outcome
        && !matches!(
            error.kind,
            ArrayErrorKind::NotFound
                | ArrayErrorKind::Invalid
                | ArrayErrorKind::Internal
                | ArrayErrorKind::Busy
        )
    {
        session.fail(format!("{what}: {:?}: {error}", error.kind));
    }
}
