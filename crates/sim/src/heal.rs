//! Liveness: when faults stop, everything heals.
//!
//! Blank drives take the places of those that failed, a scrub puts right what is
//! left, and the next one must find nothing. All of it in bounded virtual time.

use crate::session::Session;
use base::{BLOCK_BYTES, Prng};
use engine::{MemberState, NamedDrive, World};
use std::rc::Rc;
use std::time::Duration;
use world::sim::{Media, MediaSpec, SimDrive};

/// Looks at the state so many times, [`PAUSE`] apart.
const LOOKS: usize = 2_000;
const PAUSE: Duration = Duration::from_millis(500);

/// Ends the faults of `victims` and has everything healed; what is not is noted as
/// wrong.
pub async fn everything(session: &Session, victims: &[Rc<Media>]) {
    crate::damage::mend(victims);
    if victims.is_empty() {
        return;
    }
    let capacity = session
        .books
        .config
        .drive_bytes
        .iter()
        .copied()
        .max()
        .unwrap_or(BLOCK_BYTES as u64);
    let failed = |state| state == MemberState::Failed;
    let missing = session
        .pool
        .info()
        .members
        .iter()
        .filter(|member| failed(member.state))
        .count();
    for index in 0..missing {
        let name = format!("blank{index}");
        let spec = MediaSpec {
            name: name.clone(),
            capacity_bytes: capacity,
            rotational: false,
            discards: false,
            ignores_flush: false,
        };
        let media = Rc::new(Media::new(spec, Prng::from_seed(7).stream(&name)));
        let drive = SimDrive::adversarial(&session.world, &media);
        if let Err(error) = session.pool.add_spare(NamedDrive { name, drive }).await {
            session.fail(format!("adding a spare: {error}"));
            return;
        }
    }
    let whole = || {
        session
            .pool
            .info()
            .members
            .iter()
            .all(|member| matches!(member.state, MemberState::Healthy))
    };
    wait(session, "drives are not whole again", whole).await;
    // A scrub may be under way that began before the faults ended. The first whole one
    // after it puts right what is left, the next must find nothing.
    for _ in 0..3 {
        let ended = session.pool.scrubs_ended();
        if let Err(error) = session.pool.start_scrub() {
            session.fail(format!("starting a scrub: {error}"));
            return;
        }
        wait(session, "a scrub does not end", || {
            session.pool.scrubs_ended() > ended
        })
        .await;
    }
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

async fn wait(session: &Session, what: &str, until: impl Fn() -> bool) {
    for _ in 0..LOOKS {
        if until() || session.books.failure.borrow().is_some() {
            return;
        }
        session.world.sleep(PAUSE).await;
    }
    let events: Vec<String> = session
        .pool
        .events(0)
        .into_iter()
        .map(|event| event.text)
        .collect();
    let last = events.iter().rev().take(5).cloned().collect::<Vec<_>>();
    session.fail(format!("{what}: {:?}; {last:?}", session.pool.info()));
}
