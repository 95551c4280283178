//! Drives that do not answer: the operations that wait for them, and the limit of that wait.
//!
//! Invariants:
//! - Who looks after drives that hang waits for no I/O, and for nobody who does: not for
//!   labels either. So whatever waits for a drive ends, if the pool can do without it.
//! - All drives that hang at a look are given up in that look. Where a span can't do
//!   without all of its own, none of these goes: what they have in common is the reason (a shelf, a
//!   cable), and without the first the rest are needed. One that the pool needs stays, too,
//!   and is waited for.
//! - Only time in which the process ran counts against a drive: after a pause everything
//!   in flight counts as begun when the process went on.
//! - Nor does time in which none of a pool's drives answers, of several: what they have
//!   in common is the reason (a controller that resets, a host whose storage stands
//!   still), and there is nothing to go on with.
//! - No opening waits for a drive for ever: from the first label that is read until the
//!   pool is started, each drive that does not answer counts as missing.

use super::limits::{Limits, median};
use crate::drives::Drives;
use crate::drives::Member;
use crate::label::SLOT_OFFSETS;
use crate::world::World;
use base::{BLOCK_BYTES, DriveOffset, Time};
use futures_util::future::{Either, select};
use std::cmp::Reverse;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::time::Duration;

/// Looks in the time after which a drive hangs.
pub(crate) const LOOKS: u32 = 6;

/// A disk that has answered in the last one of so many parts of the limit of a late read works.
const LATE_SILENCE_PARTS: u32 = 3;

/// A read on such a disk is late all the same after so many times the usual limit.
const STARVES_MAX: u32 = 4;

/// Looks, one after the other, at what is in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looks {
    last: Time,
    /// What is in flight counts as begun no earlier.
    floor: Time,
}

impl Looks {
    /// The first is still to come.
    pub fn new(now: Time) -> Looks {
        Looks {
            last: now,
            floor: now,
        }
    }

    /// A look that was to come after `pause`. Whether it came much later: the process, or
    /// this shard, stood still, and has not heard yet of what has ended since.
    pub fn look(&mut self, now: Time, pause: Duration) -> bool {
        let stood_still = now.since(self.last) > pause * 2;
        self.last = now;
        if stood_still {
            self.floor = now;
        }
        stood_still
    }

    /// What went before counts against nobody.
    fn forgive(&mut self) {
        self.floor = self.last;
    }

    /// How long something that began then has been waited for.
    pub fn waited(&self, begun: Time) -> Duration {
        self.last.since(begun.max(self.floor))
    }

    /// How long the oldest operation in flight on a drive has been waited for.
    pub fn waited_for<W: World>(&self, member: &Member<W>) -> Option<Duration> {
        let oldest = member.vitals().oldest();
        oldest.map(|begun| self.waited(begun))
    }
}

/// What comes of `operation`; none when it has not ended after `patience`.
pub(crate) async fn in_time<W: World, T>(
    world: &W,
    patience: Duration,
    operation: impl Future<Output = T>,
) -> Option<T> {
    let pause = patience / LOOKS;
    let begun = world.now();
    let mut looks = Looks::new(begun);
    let mut operation = pin!(operation);
    loop {
        match select(operation.as_mut(), pin!(world.sleep(pause))).await {
            Either::Left((outcome, _)) => return Some(outcome),
            Either::Right(_) => looks.look(world.now(), pause),
        };
        if looks.waited(begun) >= patience {
            return None;
        }
    }
}

/// Drives on which an operation has not ended for longer than `hung`, and how that is
/// told: those first that hold least, and then those that have been waited for longest.
fn hung<W: World>(
    drives: &Drives<W>,
    looks: &Looks,
    hung: Duration,
) -> Vec<(Rc<Member<W>>, String)> {
    let members = drives.members().into_iter().chain(drives.spares());
    let mut found: Vec<(Duration, Rc<Member<W>>)> = members
        .filter_map(|member| Some((looks.waited_for(&member)?, member)))
        .filter(|(waited, _)| *waited > hung)
        .collect();
    found.sort_by_key(|(waited, member)| (member.is_whole(), Reverse(*waited)));
    let told = found.into_iter().map(|(waited, member)| {
        let reason = format!("an operation has not ended after {waited:.1?}");
        (member, reason)
    });
    told.collect()
}

/// Whether anything is in flight on any drive.
pub(crate) fn is_busy<W: World>(drives: &Drives<W>) -> bool {
    let beside = drives.spares().into_iter().chain(drives.retired());
    let mut members = drives.members().into_iter().chain(beside);
    members.any(|member| member.outstanding() > 0)
}

/// Looks after drives that have no pool around them yet, until they have.
pub(crate) fn guard<W: World>(drives: &Rc<Drives<W>>) {
    let (world, drives) = (drives.world().clone(), Rc::downgrade(drives));
    world.spawn(guarding(world.clone(), drives));
}

async fn guarding<W: World>(world: W, drives: Weak<Drives<W>>) {
    let limits = Limits::default();
    let pause = limits.hung / LOOKS;
    let mut looks = Looks::new(world.now());
    loop {
        world.sleep(pause).await;
        let Some(drives) = drives.upgrade().filter(|drives| !drives.is_watched()) else {
            return;
        };
        looks.look(world.now(), pause);
        ask_all(&drives, &looks, pause);
        let hung = hung(&drives, &looks, limits.hung);
        let waiting = waiting(&drives, &looks, &limits);
        let goes = |(member, _): &(Rc<Member<W>>, String)| {
            !member.is_writable() || can_do_without_all(&drives, &waiting, member)
        };
        let (alone, together): (Vec<_>, Vec<_>) = hung.into_iter().partition(goes);
        // Labels are the opening's: it writes none before it has found everything good.
        let needed = drives.give_up(alone).into_iter();
        for needed in needed.chain(together.into_iter().map(|(member, _)| member)) {
            drives.stop_for_silence(&needed);
        }
    }
}

/// Asks the drives that are idle, once any lets others wait: what took that one may have taken
/// more, and then none of these goes out of use for it.
fn ask_all<W: World>(drives: &Rc<Drives<W>>, looks: &Looks, patience: Duration) {
    let members = drives.members();
    let lets_wait = |member: &Rc<Member<W>>| {
        let waited = looks.waited_for(member);
        waited.is_some_and(|waited| waited >= patience)
    };
    if !members.iter().any(lets_wait) {
        return;
    }
    let world = drives.world();
    for member in members {
        if member.is_writable() && member.outstanding() == 0 {
            let buf = world.buffers().data(BLOCK_BYTES);
            world.spawn(async move { drop(member.probe(DriveOffset(SLOT_OFFSETS[0]), buf).await) });
        }
    }
}

/// Drives in use that have let somebody wait for half of what makes a drive hung: all that were
/// idle when the first did so were asked then.
fn waiting<W: World>(drives: &Drives<W>, looks: &Looks, limits: &Limits) -> Vec<Rc<Member<W>>> {
    let mut members = drives.members();
    members.retain(|member| {
        let waited = looks.waited_for(member);
        member.is_writable() && waited.is_some_and(|waited| waited > limits.hung / 2)
    });
    members
}

impl<W: World> Drives<W> {
    /// Takes drives out of use on which an operation does not end. In a pool that has
    /// stopped nothing is lost by that, and nobody waits any more.
    pub(crate) fn give_up_hung(self: &Rc<Self>, limits: &Limits, looks: &mut Looks) {
        for member in self.departed().into_iter().chain(self.retired()) {
            // What was in flight when it left is waited for by nobody else.
            let waited = looks.waited_for(&member);
            if waited.is_some_and(|waited| waited > limits.hung) {
                member.vitals().give_up();
            }
        }
        let mut hung = hung(self, looks, limits.hung);
        if hung.is_empty() {
            return;
        }
        if self.check_failure().is_err() {
            hung.iter()
                .for_each(|(member, _)| member.vitals().give_up());
            return;
        }
        let waiting = waiting(self, looks, limits);
        let members = self.members();
        let in_use = members.iter().filter(|member| member.is_writable()).count();
        if in_use > 1 && waiting.len() == in_use {
            looks.forgive();
            return;
        }
        hung.retain(|(member, _)| can_do_without_all(self, &waiting, member));
        if !hung.is_empty() {
            self.give_up(hung);
            self.settle_labels_soon();
        }
    }

    /// Ends reads that others can answer, on drives that let them wait. A drive is late
    /// only where its group can do without it, and without all that are asked last.
    pub(crate) fn leave_late(&self, limits: &Limits, looks: &Looks) {
        for group in self.groups() {
            let places = group.places();
            for member in &places {
                let vitals = member.vitals();
                let Some(oldest) = vitals.oldest_read() else {
                    continue;
                };
                let waited = looks.waited(oldest);
                if waited <= limits.hedge || !member.is_writable() {
                    continue;
                }
                // When all take their time, the load is the reason, and more of it no help.
                let usual = usual_read(&places, member) * limits.ratio;
                let patience = limits.hedge.max(usual);
                let asked_last = places.iter().filter(|other| other.is_asked_last());
                let mut around: Vec<usize> =
                    asked_last.map(|other| usize::from(other.place())).collect();
                around.push(usize::from(member.place()));
                let now = self.world.now();
                if waited <= patience || starves(member, waited, patience, (now, limits)) {
                    continue;
                }
                if self.survives_without(&group, &around) {
                    let up_to = now.as_nanos() - patience.as_nanos() as u64;
                    vitals.leave(Time(up_to));
                }
            }
        }
    }
}

/// Whether a read only has the longest way on a disk that works off its queue. Others make way for it
/// (`overdue.rs`), and to put it together from other drives would cost these more. That is believed for
/// [`STARVES_MAX`] times the patience, and for half of the time of a drive that hangs.
fn starves<W: World>(
    member: &Member<W>,
    waited: Duration,
    patience: Duration,
    (now, limits): (Time, &Limits),
) -> bool {
    let silence = limits.hedge / LATE_SILENCE_PARTS;
    let then = Time(now.as_nanos().saturating_sub(silence.as_nanos() as u64));
    member.is_rotational()
        && waited <= (patience * STARVES_MAX).min(limits.hung / 2)
        && member.vitals().has_answered_since(then)
}

/// Whether the group of `member` can do without it and without all of `waiting` that are
/// of its span. One that is not whole counts as lost already, and a spare is in no group.
fn can_do_without_all<W: World>(
    drives: &Drives<W>,
    waiting: &[Rc<Member<W>>],
    member: &Rc<Member<W>>,
) -> bool {
    let own = usize::from(member.place());
    let group = drives.groups().into_iter().find(|group| {
        let mut places = group.places().into_iter();
        places.any(|place| Rc::ptr_eq(&place, member))
    });
    let Some(group) = group.filter(|_| member.is_whole()) else {
        return true;
    };
    let of_group = group.places();
    let waits = |place: &usize| {
        let mut waiting = waiting.iter();
        let is_waited_for = waiting.any(|other| Rc::ptr_eq(other, &of_group[*place]));
        is_waited_for && drives.share_a_span(&group, own, *place)
    };
    let places = 0..of_group.len();
    let places: Vec<usize> = places.filter(|at| *at == own || waits(at)).collect();
    drives.survives_without(&group, &places)
}

/// What a read takes of late on the other drives of a group, the median of those that
/// have read anything.
fn usual_read<W: World>(places: &[Rc<Member<W>>], member: &Rc<Member<W>>) -> Duration {
    let others = places.iter().filter(|other| !Rc::ptr_eq(other, member));
    let means = others.map(|other| other.vitals().read_latency());
    median(means.filter(|mean| !mean.is_zero())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(seconds: u64) -> Time {
        Time(seconds * 1_000_000_000)
    }

    #[test]
    fn what_was_in_flight_before_a_pause_counts_from_its_end() {
        let pause = Duration::from_secs(1);
        let mut looks = Looks::new(second(0));
        for at in 1..=5 {
            assert!(!looks.look(second(at), pause));
        }
        assert_eq!(looks.waited(second(1)), Duration::from_secs(4));
        // One look was missed, and no more.
        assert!(!looks.look(second(7), pause));
        assert_eq!(looks.waited(second(1)), Duration::from_secs(6));
        assert!(looks.look(second(67), pause));
        assert_eq!(looks.waited(second(1)), Duration::ZERO);
        assert!(!looks.look(second(68), pause));
        assert_eq!(looks.waited(second(1)), Duration::from_secs(1));
    }
}
