//! Groups with distributed spares: once the other drives hold what failed ones held, others may fail.
//!
//! The budget: a drive counts as lost until all lanes have said for a while that it has failed and that
//! no place of its group is lost. By then the labels say so, too.

use crate::session::{Session, is_blank};
use base::Prng;
use engine::{Lane, MemberState, World};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;
use world_sim::{Media, SimWorld};

/// Labels are written within that, whatever hangs: it has failed by then.
const SETTLED: Duration = Duration::from_millis(500);

/// Has others be the victims whenever those before are replaced by distributed spares.
pub async fn lose(session: Rc<Session>, mut prng: Prng) {
    while session.take_operation() {
        let pause = Duration::from_micros(prng.below(200_000));
        session.world.sleep(pause).await;
        for group in 0..session.books.config.groups {
            let Some(failed) = replaced(&session, group) else {
                continue;
            };
            session.world.sleep(SETTLED).await;
            if replaced(&session, group).as_ref() == Some(&failed) && !session.has_stopped() {
                next_victims(&session, group, &failed, &mut prng);
            }
        }
    }
}

/// The victims of a group, when all have failed in all lanes, and others hold all that they held.
fn replaced(session: &Session, group: usize) -> Option<BTreeSet<String>> {
    let (books, config) = (&session.books, &session.books.config);
    let first = group * config.drives_of_group;
    let media = books.media.borrow();
    let of_group = &media[first..first + config.drives_of_group];
    let victims = books.victims.borrow();
    let is_victim = |name: &str| victims.iter().any(|victim| victim.spec().name == name);
    let names = of_group.iter().map(|media| media.spec().name.clone());
    let names: BTreeSet<String> = names.filter(|name| is_victim(name)).collect();
    let is_so = |lane: &Lane<SimWorld>| {
        let info = lane.info();
        let members = info
            .members
            .iter()
            .filter(|member| usize::from(member.group) == group);
        let failed = members.filter(|member| member.state == MemberState::Failed);
        let failed: BTreeSet<String> = failed.map(|member| member.name.clone()).collect();
        let places = info.groups.iter().find(|of| usize::from(of.index) == group);
        failed == names
            && !info.copies_are_short
            && places.is_some_and(|of| of.places.lost == 0 && !of.leaving)
    };
    let all = session.pool.all();
    (!names.is_empty() && all.iter().all(is_so)).then_some(names)
}

/// As many of the other drives as the group can lose are victims, too, where there is spare room for
/// what they hold.
fn next_victims(session: &Session, group: usize, failed: &BTreeSet<String>, prng: &mut Prng) {
    let (books, config) = (&session.books, &session.books.config);
    let Some(spread) = config.spread else { return };
    let is_added = |media: &Rc<Media>| is_blank(&media.spec().name);
    // Those that stand in are victims, too, beside those that they stand in for.
    let is_one_more = config.spares > 0 || books.media.borrow().iter().any(is_added);
    if failed.len() > usize::from(spread.spares) || is_one_more {
        return;
    }
    let first = group * config.drives_of_group;
    let media = books.media.borrow();
    let mut others = media[first..first + config.drives_of_group].to_vec();
    others.retain(|media| !failed.contains(&media.spec().name));
    let mut victims = books.victims.borrow_mut();
    for _ in 0..config.pool.level.redundancy().min(others.len()) {
        let next = others.swap_remove(prng.below(others.len() as u64) as usize);
        session
            .world
            .note(|| format!("{} may fail, after {failed:?}", next.spec().name));
        let is_next = |media: &Rc<Media>| Rc::ptr_eq(media, &next);
        if let Some(place) = media.iter().position(is_next) {
            books.sound.borrow_mut()[place] = false;
        }
        victims.push(next);
    }
    books.replaced.borrow_mut().extend(failed.iter().cloned());
}
