//! The health of drives: by errors, by latency beside the others of their group, by operations that
//! never end. `HealthWatch` is what the task remembers.
//!
//! Invariants:
//! - A drive is compared with the others of its group only, kind by kind of operation:
//!   when all are slow, the load is the reason.
//! - A disk is slow when its operations take long, and it is long at work for each. One with the longest
//!   queue does as much as the others: reads that avoid it would cost these more.
//! - Suspect is a matter of speed, not of truth: the drive gets every write, and counts
//!   as a copy. It is read last.
//! - A drive goes out of use only where the pool can do without it. Where it can't, and the drive
//!   says that it is gone or cut off, the pool stops: the next start would not find what is written.
//! - The task waits for nothing but time: see `drives/hung.rs`.
//! - A suspect drive that nobody asks is asked from here, so that it can show that it
//!   is well again.

use crate::drive::{DriveError, DriveErrorKind};
pub use crate::drives::Limits;
use crate::drives::Member;
use crate::drives::hung::{self, Looks};
use crate::drives::limits::median;
use crate::drives::vitals::{Kind, Window};
use crate::drives::{Drives, EventKind};
use crate::pool::{Lane, MemberState};
use crate::space::LaneState;
use crate::world::World;
use base::size::counted;
use base::{BLOCK_BYTES, DriveOffset, Prng, Time, Uuid};
use futures_util::FutureExt;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};
use std::time::Duration;

/// Probes of a suspect drive in a window.
const PROBES: u32 = 5;

/// A drive that is busy for less than so many times what others need for an operation only has a longer
/// queue.
const WORK_RATIO: u32 = 2;

/// Looks in the time after which a read is late.
const LOOKS_FOR_LATE: u32 = 3;

impl Limits {
    /// How long the task sleeps between looks.
    fn pause(&self) -> Duration {
        let longest = (self.window / PROBES)
            .min(self.hung / hung::LOOKS)
            .min(self.hedge / LOOKS_FOR_LATE);
        longest.max(PAUSE_MIN)
    }
}

/// However short a time is asked for, the task rests in between.
const PAUSE_MIN: Duration = Duration::from_micros(100);

/// What drives say when they are asked whether they are what they were.
#[derive(Default)]
struct Checks {
    /// Those that have been asked, and have not answered.
    under_way: RefCell<BTreeSet<Uuid>>,
    /// Those that are not, and stay in use.
    wrong: RefCell<BTreeMap<Uuid, String>>,
}

/// The words of a drive that is still what it was, and will not be for long.
fn said(error: DriveError) -> String {
    match error.context.is_empty() {
        true => error.to_string(),
        false => error.context,
    }
}

/// Windows in a row of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Streak {
    bad: u32,
    quiet: u32,
    /// The drive itself said that it is not well: it is again when it says so no more.
    by_its_word: bool,
}

/// A drive as [`trouble`] looks at it.
#[derive(Clone, Copy, Debug)]
struct Looked {
    window: Window,
    is_disk: bool,
    is_suspect: bool,
}

impl Looked {
    fn of<W: World>(member: &Member<W>, window: Window) -> Looked {
        Looked {
            window,
            is_disk: member.is_rotational(),
            is_suspect: member.is_suspect(),
        }
    }
}

/// What is wrong with a drive, beside the `others` of its group. Of one that is suspect
/// already, few operations say enough.
fn trouble(drive: Looked, others: &[Window], limits: &Limits) -> Option<String> {
    let Looked {
        window: own,
        is_disk,
        is_suspect,
    } = drive;
    if own.errors >= limits.errors || own.mends >= limits.errors {
        return Some(format!(
            "{} failed and {} had to be repaired in {:?}",
            counted(own.errors, "operation"),
            counted(own.mends, "block"),
            limits.window
        ));
    }
    // A suspect disk is asked too little for a queue.
    if is_disk && !is_suspect && !works_slowly(&own, others, limits) {
        return None;
    }
    let mut kinds = Kind::ALL.into_iter();
    kinds.find_map(|kind| slowness(kind, &drive, others, limits))
}

/// How slow a drive is in one kind of operations, if it is.
fn slowness(kind: Kind, drive: &Looked, others: &[Window], limits: &Limits) -> Option<String> {
    let Looked {
        window: own,
        is_suspect,
        ..
    } = *drive;
    let ended = own.ended[kind as usize];
    let (count, mean) = (ended.count, ended.mean());
    let is_busy = ended.took * 2 >= limits.window;
    let enough = match is_suspect {
        true => count >= 1,
        false => count >= limits.operations || (is_busy && count * 4 >= limits.operations),
    };
    if !enough || ended.slow * 4 < ended.count || mean < limits.slow {
        return None;
    }
    let usual = match usual_mean(kind, others, limits.operations) {
        None if is_suspect => return Some(format!("{} take {mean:.1?}", kind.name())),
        usual => usual?,
    };
    (mean >= usual * limits.ratio).then(|| {
        format!(
            "{} {} of {:?} took {mean:.1?} each, {} of them more than {:?}; those of the other drives of its group took {usual:.1?}",
            ended.count,
            kind.name(),
            limits.window,
            ended.slow,
            limits.slow
        )
    })
}

/// Whether a disk does less than others in the time that it is busy; true where nobody can tell. Flash does
/// many operations at a time, so it may be busy all the time and not slow, or slow.
fn works_slowly(own: &Window, others: &[Window], limits: &Limits) -> bool {
    let did_enough = others
        .iter()
        .filter(|other| other.done >= limits.operations);
    let usual = median(did_enough.map(Window::work));
    usual.is_none_or(|usual| own.work() >= usual * WORK_RATIO)
}

/// Whether so much fails on a drive that it has to go, and not on the others.
fn fails_alone(own: &Window, others: &[Window], limits: &Limits) -> bool {
    let usual = median(others.iter().map(|other| other.errors)).unwrap_or(0);
    let alone = usual * u64::from(limits.ratio);
    own.errors >= limits.errors_out && own.errors >= alone
}

/// The median of the means of those that did enough.
fn usual_mean(kind: Kind, windows: &[Window], enough: u64) -> Option<Duration> {
    let ended = windows.iter().map(|window| window.ended[kind as usize]);
    let did_enough = ended.filter(|ended| ended.count >= enough);
    median(did_enough.map(|ended| ended.mean()))
}

/// What the task remembers from one look to the next.
struct HealthWatch {
    prng: Prng,
    streaks: BTreeMap<Uuid, Streak>,
    /// Looks for operations that hang, and for reads that are late.
    hung: Looks,
    late: Looks,
    probed: Time,
    asked_all: Time,
    judged: Time,
    /// The process stood still in this window: what it saw says nothing of the drives.
    disturbed: bool,
    checks: Rc<Checks>,
}

/// Watches the drives until the pool is gone; one that has stopped, until nothing is in
/// flight.
pub(super) async fn watch<W: World>(world: W, pool: Weak<LaneState<W>>) {
    let now = world.now();
    let mut watch = HealthWatch {
        prng: world.prng("probes of suspect drives"),
        streaks: BTreeMap::new(),
        hung: Looks::new(now),
        late: Looks::new(now),
        probed: now,
        asked_all: now,
        judged: now,
        disturbed: false,
        checks: Rc::default(),
    };
    let mut before = None;
    loop {
        let Some(limits) = pool.upgrade().map(|inner| inner.background().limits()) else {
            return;
        };
        if before.replace(limits) != Some(limits) {
            // A gap between two looks that was short by the limits before may be a pause of
            // the process by these.
            (watch.hung, watch.late) = (Looks::new(world.now()), Looks::new(world.now()));
        }
        world.sleep(limits.pause()).await;
        let Some(inner) = pool.upgrade() else { return };
        watch.look(&inner, &limits);
        if inner.drives().check_failure().is_err() && !hung::is_busy(inner.drives()) {
            return;
        }
        if world.planted("watchdog waits for the labels") {
            inner.drives().settle_labels().await;
        }
    }
}

impl HealthWatch {
    fn look<W: World>(&mut self, lane: &LaneState<W>, limits: &Limits) {
        let now = lane.world().now();
        self.late.look(now, limits.pause());
        // Shorter pauses are part of what a busy shard is: they do not add up to one.
        let pause = limits.pause().max(limits.hung / hung::LOOKS);
        self.disturbed |= self.hung.look(now, pause);
        lane.drives().give_up_hung(limits, &mut self.hung);
        if lane.check().is_err() {
            return;
        }
        lane.drives().leave_late(limits, &self.late);
        self.probe(lane.drives(), limits);
        if now.since(self.judged) >= limits.window {
            self.judged = now;
            self.check_drives(lane.drives());
            self.judge(lane, limits);
        }
    }

    /// Reads a block of drives of which it is to be known how they fare, if nothing is
    /// under way that says it: of each that is late, of those that are suspect when it is
    /// their turn, and of all once one lets others wait. What took that one from the host
    /// may have taken more, and the labels, which then tell of it, go to all.
    fn probe<W: World>(&mut self, drives: &Drives<W>, limits: &Limits) {
        let now = drives.world().now();
        let probes_suspects = now.since(self.probed) >= limits.window / PROBES;
        if probes_suspects {
            self.probed = now;
        }
        let members = drives.members();
        let lets_wait = |member: &Rc<Member<W>>| {
            let waited = self.late.waited_for(member);
            waited.is_some_and(|waited| waited > limits.hedge)
        };
        let asks_all =
            now.since(self.asked_all) >= limits.hung / hung::LOOKS && members.iter().any(lets_wait);
        if asks_all {
            self.asked_all = now;
        }
        for member in members.into_iter().chain(drives.spares()) {
            let (vitals, is_idle) = (member.vitals(), member.outstanding() == 0);
            let is_late = vitals.is_late() && vitals.oldest_read().is_none();
            let is_its_turn = asks_all || (probes_suspects && member.is_suspect());
            let is_failed = member.state() == MemberState::Failed;
            if is_failed || !(is_late || (is_its_turn && is_idle)) {
                continue;
            }
            let blocks = member.capacity_bytes / BLOCK_BYTES as u64;
            let at = DriveOffset(self.prng.below(blocks) * BLOCK_BYTES as u64);
            let buf = drives.world().buffers().data(BLOCK_BYTES);
            // An error is counted, and that is all it is for.
            drives
                .world()
                .spawn(async move { drop(member.probe(at, buf).await) });
        }
    }

    /// Asks each drive whether it is still what it was: one that was cut off goes out of use
    /// before somebody needs what is gone. Nobody waits for one that does not answer.
    fn check_drives<W: World>(&self, drives: &Rc<Drives<W>>) {
        for member in drives.members().into_iter().chain(drives.spares()) {
            let is_in_use = member.is_writable() || member.state() == MemberState::Spare;
            if !is_in_use || !self.checks.under_way.borrow_mut().insert(member.uuid) {
                continue;
            }
            let world = drives.world();
            let (drives, checks) = (Rc::clone(drives), Rc::clone(&self.checks));
            let mut check = Box::pin(async move {
                let answer = member.check().await;
                checks.under_way.borrow_mut().remove(&member.uuid);
                checks.wrong.borrow_mut().remove(&member.uuid);
                let Err(error) = answer else { return };
                let is_gone = error.kind == DriveErrorKind::Gone;
                let loss = (Rc::clone(&member), error.to_string());
                if !is_gone {
                    let mut wrong = checks.wrong.borrow_mut();
                    wrong.insert(member.uuid, said(error));
                } else if drives.give_up(vec![loss]).is_empty() {
                    drives.settle_labels().await;
                } else {
                    let name = &member.name;
                    drives.stop(format!("it can't do without drive '{name}': {error}"));
                }
            });
            // Most answer at once, and need no task.
            if check.as_mut().now_or_never().is_none() {
                world.spawn(check);
            }
        }
    }

    /// Has spares that say that they are not well stand in for no other drive, and tells of it.
    fn judge_spares<W: World>(&self, lane: &LaneState<W>) {
        for spare in lane.drives().spares() {
            let wrong = self.checks.wrong.borrow().get(&spare.uuid).cloned();
            let (kind, text) = match (&wrong, spare.has_trouble()) {
                (Some(why), false) => {
                    let text = format!("spare '{}' can't stand in: {why}", spare.name);
                    (EventKind::DriveSuspect, text)
                }
                (None, true) => {
                    let text = format!("spare '{}' can stand in again", spare.name);
                    (EventKind::DriveHealthy, text)
                }
                _ => continue,
            };
            spare.set_trouble(wrong);
            lane.drives().event(kind, text);
            lane.wake_background();
        }
    }

    /// Looks at the window that ends now.
    fn judge<W: World>(&mut self, lane: &LaneState<W>, limits: &Limits) {
        let now = lane.world().now();
        let take = |member: &Member<W>| member.vitals().take_window(now, limits.slow);
        let disturbed = std::mem::take(&mut self.disturbed);
        self.judge_spares(lane);
        for group in lane.drives().groups() {
            let places = group.places().into_iter();
            let seen: Vec<(Rc<Member<W>>, Window)> = places
                .map(|member| (Rc::clone(&member), take(&member)))
                .filter(|(member, _)| member.is_whole() && !disturbed)
                .collect();
            for (at, (member, window)) in seen.iter().enumerate() {
                let others = seen.iter().enumerate().filter(|(other, _)| *other != at);
                let others: Vec<Window> = others.map(|(_, (_, window))| *window).collect();
                if fails_alone(window, &others, limits) {
                    let failed = counted(window.errors, "operation");
                    let reason = format!("{failed} failed in {:?}", limits.window);
                    lane.drives().give_up(vec![(Rc::clone(member), reason)]);
                    lane.drives().settle_labels_soon();
                    if !member.is_writable() {
                        continue;
                    }
                }
                let streak = self.streaks.entry(member.uuid).or_default();
                let wrong = self.checks.wrong.borrow().get(&member.uuid).cloned();
                let says_so = wrong.is_some();
                let looked = Looked::of(member, *window);
                let trouble = wrong.or_else(|| trouble(looked, &others, limits));
                if says_so {
                    // That is no matter of a bad moment.
                    (streak.bad, streak.by_its_word) = (limits.bad_windows, true);
                } else if trouble.is_some() {
                    streak.by_its_word = false;
                }
                doubt(lane.drives(), member, trouble, streak, limits);
            }
        }
    }
}

/// Takes the state of a drive on or back, by one more window.
fn doubt<W: World>(
    drives: &Rc<Drives<W>>,
    member: &Rc<Member<W>>,
    trouble: Option<String>,
    streak: &mut Streak,
    limits: &Limits,
) {
    *streak = match trouble {
        Some(_) => Streak {
            bad: streak.bad + 1,
            quiet: 0,
            ..*streak
        },
        None if streak.by_its_word => Streak {
            quiet: limits.quiet_windows,
            ..Streak::default()
        },
        None => Streak {
            quiet: streak.quiet + 1,
            ..Streak::default()
        },
    };
    if trouble.is_some() {
        member.set_trouble(trouble.clone());
    }
    let (state, kind, mark, text) = match (member.state(), trouble) {
        (MemberState::Healthy, Some(reason)) if streak.bad >= limits.bad_windows => (
            MemberState::Suspect,
            EventKind::DriveSuspect,
            "drive suspect",
            format!(
                "drive '{}' is suspect, and read last: {reason}",
                member.name
            ),
        ),
        (MemberState::Suspect, None) if streak.quiet >= limits.quiet_windows => (
            MemberState::Healthy,
            EventKind::DriveHealthy,
            "suspect drive healthy again",
            format!(
                "drive '{}' is healthy again: nothing is wrong with it any more",
                member.name
            ),
        ),
        _ => return,
    };
    if state == MemberState::Healthy {
        member.set_trouble(None);
    }
    member.set_state(state);
    drives.world().reached(mark);
    drives.event(kind, text);
    drives.want_labels();
    drives.settle_labels_soon();
}
impl<W: World> Lane<W> {
    /// Changes from when on a drive is not trusted.
    pub fn set_health_limits(&self, limits: Limits) {
        self.inner.background().set_limits(limits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drives::vitals::EndedOperations;

    fn window(reads: u64, mean_ms: u64) -> Window {
        let mut window = Window::default();
        window.ended[Kind::Read as usize] = EndedOperations {
            count: reads,
            slow: if mean_ms >= 20 { reads } else { 0 },
            took: Duration::from_millis(mean_ms) * reads as u32,
        };
        // One at a time.
        (window.busy, window.done) = (window.ended[Kind::Read as usize].took, reads);
        window
    }

    fn is_wrong(own: Window, others: &[Window], is_suspect: bool) -> bool {
        let disk = Looked {
            window: own,
            is_disk: true,
            is_suspect,
        };
        trouble(disk, others, &Limits::default()).is_some()
    }

    #[test]
    fn slow_is_who_is_slower_than_the_others() {
        let (fast, slow) = (window(100, 1), window(100, 300));
        assert!(is_wrong(slow, &[fast, fast, slow], false));
        assert!(!is_wrong(fast, &[fast, slow], false));
        assert!(!is_wrong(slow, &[slow, slow, fast], false), "the load");
        assert!(!is_wrong(slow, &[], false), "alone");
        assert!(!is_wrong(window(100, 19), &[fast], false), "not that slow");
        assert!(!is_wrong(window(100, 30), &[window(99, 10)], false));
        assert!(!is_wrong(window(15, 160), &[fast], false), "too few");
        assert!(is_wrong(window(4, 700), &[fast], false), "few, and busy");
        assert!(
            !is_wrong(window(3, 900), &[fast], false),
            "too few all the same"
        );
        assert!(
            !is_wrong(slow, &[window(15, 1)], false),
            "nothing beside it"
        );
        let mut one_long = slow;
        one_long.ended[Kind::Read as usize].slow = 24;
        assert!(!is_wrong(one_long, &[fast], false), "a few long ones");
    }

    #[test]
    fn a_disk_with_a_longer_queue_is_not_slow() {
        let others = [window(500, 7), window(500, 7)];
        let mut own = window(1225, 170);
        assert!(is_wrong(own, &others, false), "one at a time");
        own.busy = Duration::from_secs(5);
        assert!(!is_wrong(own, &others, false), "4 ms of work each");
        assert!(is_wrong(own, &others, true), "it was slow before");
        let flash = Looked {
            window: own,
            is_disk: false,
            is_suspect: false,
        };
        assert!(trouble(flash, &others, &Limits::default()).is_some());
        let mut slow = window(300, 170);
        slow.busy = Duration::from_secs(5);
        assert!(is_wrong(slow, &others, false), "17 ms of work each");
    }

    #[test]
    fn a_suspect_drive_is_judged_by_the_little_that_it_does() {
        let probes = window(5, 300);
        assert!(is_wrong(probes, &[], true));
        assert!(is_wrong(probes, &[window(100, 1)], true));
        assert!(!is_wrong(probes, &[window(100, 100)], true));
        assert!(!is_wrong(window(5, 1), &[], true));
        assert!(!is_wrong(Window::default(), &[], true));
    }

    #[test]
    fn errors_and_mends_are_wrong_each_by_themselves() {
        for (errors, mends, wrong) in [(7, 7, false), (8, 0, true), (0, 8, true)] {
            let own = Window {
                errors,
                mends,
                ..Window::default()
            };
            assert_eq!(is_wrong(own, &[], false), wrong, "{errors}, {mends}");
        }
    }

    #[test]
    fn only_a_drive_that_fails_alone_has_to_go() {
        let limits = Limits::default();
        let failed = |errors| Window {
            errors,
            ..Window::default()
        };
        let (many, few, none) = (failed(1_000), failed(999), failed(0));
        assert!(fails_alone(&many, &[none, none], &limits));
        assert!(!fails_alone(&few, &[none, none], &limits));
        assert!(fails_alone(&many, &[], &limits));
        assert!(fails_alone(&many, &[failed(125)], &limits));
        // A cable that all hang on, an adapter that resets.
        assert!(!fails_alone(&many, &[failed(126)], &limits));
        assert!(!fails_alone(&many, &[many, many, none], &limits));
        // Two of four that fail together are two drives.
        assert!(fails_alone(&many, &[many, none, none], &limits));
    }

    fn of_kind(kind: Kind, count: u64, mean_ms: u64) -> Window {
        let mut window = window(count, mean_ms);
        window.ended.swap(Kind::Read as usize, kind as usize);
        window
    }

    #[test]
    fn kinds_are_not_compared_with_each_other() {
        for kind in Kind::ALL {
            for other in Kind::ALL {
                let (slow, fast) = (of_kind(kind, 100, 300), of_kind(other, 100, 1));
                assert_eq!(is_wrong(slow, &[fast], false), kind == other, "{kind:?}");
            }
        }
    }
}
