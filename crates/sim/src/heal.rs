//! Checks that everything heals when faults stop.
//!
//! Blank drives take the places of those that failed, a scrub puts right what is
//! left, and the next one must find nothing. All of it in bounded virtual time.

use crate::agreement;
use crate::session::Session;
use engine::pool::maintenance::Rates;
use engine::pool::{MemberInfo, PlaceCounts};
use engine::{Lane, MemberState, PoolInfo, World};
use std::time::Duration;
use world_sim::SimWorld;

/// Looks at the state so many times, [`PAUSE`] apart.
const LOOKS: usize = 2_000;
const PAUSE: Duration = Duration::from_millis(500);

/// Whether all lanes come to have the same groups without another start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneGroups {
    Agree,
    /// A group that some lanes lack had lost a drive when this start looked for it.
    MayDiffer,
}

/// Ends all faults and has everything healed; what is not is noted as wrong.
pub async fn everything(session: &Session) -> LaneGroups {
    crate::damage::mend(&session.books.media.borrow());
    if !session.books.config.is_struck() {
        return LaneGroups::Agree;
    }
    let expected = expected_groups(session);
    // A scrub may be under way that began before the faults ended: the first whole one
    // after it puts right what is left.
    look_through(session).await;
    look_through(session).await;
    replace_failed(session).await;
    if session.books.config.rates.scrub_within.is_some() {
        // Another one goes by itself, and then none does.
        look_through(session).await;
        let rates = session.books.config.rates;
        let scrub_within = None;
        for lane in session.pool.all() {
            lane.set_rates(Rates {
                scrub_within,
                ..rates
            });
        }
    }
    // What was rebuilt and what was put right must be right now.
    scrub(session).await;
    if !session.pool.last_scrub_clean() {
        session.fail(format!(
            "a scrub after a scrub found damage: {:?}",
            session.pool.events().last()
        ));
    }
    wait(session, "the log does not empty", || {
        session.pool.info().log_used_bytes == 0
    })
    .await;
    places(session).await;
    expected
}

/// A start gives a lane the groups that it lacks, but none of which a drive is out of use.
fn expected_groups(session: &Session) -> LaneGroups {
    let had = |lane: &Lane<SimWorld>| lane.groups_ever();
    let fewest = session.pool.all().iter().map(had).min().unwrap_or(0);
    let info = session.pool.info();
    let is_failed = |member: &&MemberInfo| member.state == MemberState::Failed;
    let mut failed = info.members.iter().filter(is_failed);
    match failed.any(|member| usize::from(member.group) >= fewest) {
        true => LaneGroups::MayDiffer,
        false => LaneGroups::Agree,
    }
}

/// All places stand at home again, but those of groups that leave.
async fn places(session: &Session) {
    wait(session, "places do not go home", || {
        let groups = session.pool.info().groups;
        let mut stay = groups.iter().filter(|group| !group.leaving);
        stay.all(|group| group.places == PlaceCounts::default())
    })
    .await;
}

/// Pages that lie over others are made whole, and nothing is kept for them any more.
pub async fn pages(session: &Session) {
    wait(session, "pages are not made whole", || {
        session.pool.info().backed_bytes == 0
    })
    .await;
}

/// With nothing in the pool there is room to empty every zone: groups get to their
/// levels, and those that leave are gone.
pub async fn groups(session: &Session, expected: LaneGroups) {
    wait(session, "groups do not get to their levels", || {
        let groups = session.pool.info().groups;
        groups
            .iter()
            .all(|group| group.zones_to_empty == 0 && !group.leaving)
    })
    .await;
    if expected == LaneGroups::Agree {
        lanes(session).await;
    }
}

/// All lanes come to have the same groups, drives and spares.
async fn lanes(session: &Session) {
    // A lane may keep a drive that another could not use.
    let with_drives = !session.books.config.is_struck();
    let difference = || agreement::difference(&session.pool, with_drives);
    wait(session, "lanes do not agree", || difference().is_none()).await;
    if let Some(difference) = difference() {
        session.fail(format!("lanes do not agree: {difference}"));
    }
}

/// The whole pool is scrubbed: by itself, if it is.
async fn look_through(session: &Session) {
    if session.books.config.rates.scrub_within.is_none() {
        return scrub(session).await;
    }
    let ended = session.pool.scrub_rounds_ended();
    wait(session, "a scrub by itself does not end", || {
        let now = session.pool.scrub_rounds_ended();
        now.iter().zip(&ended).all(|(now, before)| now > before)
    })
    .await;
}

async fn scrub(session: &Session) {
    let ended = session.pool.scrubs_ended();
    if let Err(error) = session.pool.start_scrub().await {
        session.fail(format!("starting a scrub: {error}"));
    }
    wait(session, "a scrub does not end", || {
        let now = session.pool.scrubs_ended();
        now.iter().zip(&ended).all(|(now, before)| now > before)
    })
    .await;
}

/// Offers blank drives until all places are whole again. A drive may fail late: of
/// what it had begun before the faults ended.
async fn replace_failed(session: &Session) {
    for look in 0..LOOKS {
        let count = |info: &PoolInfo, state| {
            let members = info.members.iter();
            members.filter(|member| member.state == state).count()
        };
        let infos: Vec<PoolInfo> = session.pool.all().iter().map(Lane::info).collect();
        let is_whole = |info: &PoolInfo| count(info, MemberState::Healthy) == info.members.len();
        session.world.note(|| drives(&infos));
        if infos.iter().all(is_whole) {
            return;
        }
        let failed = |info: &PoolInfo| count(info, MemberState::Failed);
        let failed_most = infos.iter().map(failed).max().unwrap_or(0);
        let spares_least = infos
            .iter()
            .map(|info| info.spares.len())
            .min()
            .unwrap_or(0);
        // A spare that one lane has at one place is of no use at another.
        let stuck = infos.len() > 1 && failed_most > 0 && look % 16 == 15;
        for _ in spares_least.min(failed_most)..failed_most + usize::from(stuck) {
            let blank = session.books.blank();
            let added = session.pool.add_spare(blank, None);
            let added = session.ask("add spare", "at the end".to_owned(), added);
            if let Err(error) = added.await {
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

/// The drives of each lane, for a trace.
fn drives(infos: &[PoolInfo]) -> String {
    let lane = |info: &PoolInfo| {
        let all = info.members.iter().chain(&info.spares);
        let each = all.map(|one| format!("{} ({}) {:?}", one.name, one.uuid, one.state));
        each.collect::<Vec<_>>().join(", ")
    };
    let lanes: Vec<String> = infos.iter().map(lane).collect();
    format!("drives, lane by lane: {}", lanes.join("; "))
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
    let events = session.pool.events();
    let last = events.iter().rev().take(5).map(|event| event.text.clone());
    last.collect::<Vec<_>>().join("; ")
}
