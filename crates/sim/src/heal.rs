//! Liveness: when faults stop, everything heals.
//!
//! Blank drives take the places of those that failed, a scrub puts right what is
//! left, and the next one must find nothing. All of it in bounded virtual time.

use crate::session::Session;
use engine::{MemberState, World};
use std::time::Duration;

/// Looks at the state so many times, [`PAUSE`] apart.
const LOOKS: usize = 2_000;
const PAUSE: Duration = Duration::from_millis(500);

/// Ends all faults and has everything healed; what is not is noted as wrong.
pub async fn everything(session: &Session) {
    crate::damage::mend(&session.books.media.borrow());
    if !session.books.config.damage && !session.books.config.beyond {
        return;
    }
    // A scrub may be under way that began before the faults ended: the first whole one
    // after it puts right what is left.
    scrub(session).await;
    scrub(session).await;
    replace_failed(session).await;
    // What was rebuilt and what was put right must be right now.
    scrub(session).await;
    if !session.pool.last_scrub_clean() {
        session.fail(format!(
            "a scrub after a scrub found damage: {:?}",
            session.pool.events(0).last()
        ));
    }
    wait(session, "the log does not empty", || {
        session.pool.info().log_used_bytes == 0
    })
    .await;
}

/// With nothing in the pool there is room to empty every zone: groups get to their
/// levels, and those that leave are gone.
pub async fn groups(session: &Session) {
    wait(session, "groups do not get to their levels", || {
        let groups = session.pool.info().groups;
        groups
            .iter()
            .all(|group| group.zones_to_empty == 0 && !group.leaving)
    })
    .await;
}

async fn scrub(session: &Session) {
    let ended = session.pool.scrubs_ended();
    if let Err(error) = session.pool.start_scrub() {
        session.fail(format!("starting a scrub: {error}"));
    }
    wait(session, "a scrub does not end", || {
        session.pool.scrubs_ended() > ended
    })
    .await;
}

/// Offers blank drives until all places are whole again. A drive may fail late: of
/// what it had begun before the faults ended.
async fn replace_failed(session: &Session) {
    for _ in 0..LOOKS {
        let info = session.pool.info();
        let of = |state| {
            info.members
                .iter()
                .filter(move |member| member.state == state)
        };
        if of(MemberState::Healthy).count() == info.members.len() {
            return;
        }
        for _ in info.spares.len()..of(MemberState::Failed).count() {
            let blank = session.books.blank(&session.world);
            if let Err(error) = session.pool.add_spare(blank).await {
                session.fail(format!("adding a spare: {error}"));
                return;
            }
        }
        session.world.sleep(PAUSE).await;
    }
    session.fail(format!(
        "drives are not whole again: {}",
        last_events(session)
    ));
}

async fn wait(session: &Session, what: &str, until: impl Fn() -> bool) {
    for _ in 0..LOOKS {
        if until() || session.books.failure.borrow().is_some() {
            return;
        }
        session.world.sleep(PAUSE).await;
    }
    session.fail(format!("{what}: {}", last_events(session)));
}

fn last_events(session: &Session) -> String {
    let events = session.pool.events(0);
    let last = events.iter().rev().take(5).map(|event| event.text.clone());
    last.collect::<Vec<_>>().join("; ")
}
