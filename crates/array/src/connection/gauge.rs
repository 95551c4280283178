//! Counts the commands of a connection and their latencies, LUN by LUN.
//!
//! Once a LUN is known, a command costs an index and a few loads and stores: no lock, no
//! hashing, no allocation. The clock is looked at once for all that came with one read, and
//! once for all that ended in one turn, before they are answered: it costs more than the rest. With
//! it goes the look whether a capture has begun or ended.
//!
//! Invariant: a LUN gets a tally only when there is a logical unit at it, so a peer can't
//! have any made.

use crate::shard::session::ConnectionControl;
use crate::shard::tally::add;
use crate::shard::tally::{Kind, Outcome, Tally, Transfer, raise};
use crate::shard::watch::Watch;
use crate::wake::Clock;
use base::Time;
use scsi::Response;
use scsi::cdb::{Cdb, Extent, Work};
use scsi::sense::status;
use std::sync::Arc;

/// Of commands at a LUN without a tally, as yet or for good.
pub(crate) const NO_SLOT: u16 = 0;

/// A transfer goes on where one of so many before it, in the same direction, ended: hosts run
/// several sequential streams at once.
const STREAMS: usize = 8;

/// Or not further behind it than so many times its own length: a host with several paths sends
/// parts of a stream by each, and what went by the others is missing here.
const SKIPPED_MAX: u64 = 4;

/// Where a command was sent, as far as its end is counted by that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Destination {
    pub(crate) lun: [u8; 8],
    /// Also where there is no unit.
    pub(crate) is_answered_anywhere: bool,
}

/// What is known of a command when it comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    began: Time,
    pub(crate) work: Work,
    random: bool,
    /// Where its LUN is counted.
    pub(crate) slot: u16,
}

impl Mark {
    /// Of a command that comes at `began`, at a LUN that is not known.
    pub(crate) fn new(began: Time, work: Work) -> Self {
        Mark {
            began,
            work,
            random: true,
            slot: NO_SLOT,
        }
    }
}

/// The ends of the last transfers in one direction.
#[derive(Clone, Debug)]
struct Streams {
    ends: [u64; STREAMS],
    next: usize,
}

impl Default for Streams {
    fn default() -> Self {
        Streams {
            // No transfer begins there, or little behind it.
            ends: [1 << 63; STREAMS],
            next: 0,
        }
    }
}

impl Streams {
    /// Whether this transfer is random.
    fn is_random(&mut self, extent: Extent) -> bool {
        let (lba, blocks) = (extent.lba.0, u64::from(extent.blocks));
        let end = lba.saturating_add(blocks);
        let behind = self.ends.map(|last| lba.wrapping_sub(last));
        match (0..STREAMS).min_by_key(|at| behind[*at]) {
            Some(at) if behind[at] <= blocks * SKIPPED_MAX => {
                self.ends[at] = end;
                false
            }
            _ => {
                self.ends[self.next] = end;
                self.next = (self.next + 1) % STREAMS;
                true
            }
        }
    }
}

struct Slot {
    tally: Arc<Tally>,
    /// What counts for a capture, while one is under way.
    watch: Option<Arc<Watch>>,
    reads: Streams,
    writes: Streams,
    /// Commands in progress, and since when there are so many.
    depth: u64,
    since: Time,
}

/// The tallies of a connection.
pub(crate) struct Gauge<C> {
    clock: C,
    control: Arc<ConnectionControl>,
    /// The first is of commands at no logical unit.
    slots: Vec<Slot>,
    /// By LUN.
    by_lun: Vec<u16>,
    /// When the commands came that are being taken.
    now: Option<Time>,
    /// Commands that have ended in this turn.
    ended: Vec<EndedCommand>,
    /// The turn of watches that the slots have.
    watch_turn: u64,
}

/// A command that has ended, but for the time it took.
struct EndedCommand {
    slot: u16,
    began: Time,
    outcome: Outcome,
}

impl<C: Clock> Gauge<C> {
    pub(crate) fn new(control: Arc<ConnectionControl>, clock: C) -> Self {
        let mut gauge = Gauge {
            clock,
            control,
            slots: Vec::new(),
            by_lun: Vec::new(),
            now: None,
            ended: Vec::new(),
            watch_turn: 0,
        };
        gauge.add_slot(None);
        gauge
    }

    /// Others come than before.
    pub(crate) fn others_come(&mut self) {
        self.now = None;
    }

    /// A command comes.
    pub(crate) fn begin(&mut self, lun: [u8; 8], cdb: &Cdb) -> Mark {
        let now = match self.now {
            Some(now) => now,
            None => self.look(),
        };
        let mut mark = Mark::new(now, Work::of(cdb));
        mark.slot = self.slot(scsi::lun::decode(lun));
        if let Some(slot) = self.slots.get_mut(usize::from(mark.slot)) {
            slot.come(now);
            if mark.slot != NO_SLOT {
                mark.random = slot.is_random(mark.work);
                if let Some(watch) = &slot.watch {
                    watch.count(mark.work, mark.random, now);
                }
            }
        }
        mark
    }

    /// The time that commands come at which came with one read; captures begin and end between
    /// such reads.
    fn look(&mut self) -> Time {
        let turn = self.control.watch_turn();
        if turn != self.watch_turn {
            self.watch_turn = turn;
            for (lun, slot) in (0..)
                .zip(&self.by_lun)
                .filter(|(_, slot)| **slot != NO_SLOT)
            {
                if let Some(slot) = self.slots.get_mut(usize::from(*slot)) {
                    slot.watch = self.control.watch_of(lun);
                }
            }
        }
        let now = self.clock.now();
        self.now = Some(now);
        now
    }

    /// A command has ended; `bytes` of data went over the wire. It is counted by
    /// [`Gauge::count`].
    pub(crate) fn end(
        &mut self,
        sent_to: Destination,
        mark: &Mark,
        bytes: u64,
        response: &Response,
    ) {
        let mut at = mark.slot;
        if at == NO_SLOT {
            at = self.find(sent_to, mark.work, response);
        }
        self.ended.push(EndedCommand {
            slot: at,
            began: mark.began,
            outcome: outcome(mark, bytes, response),
        });
    }

    /// Counts those that have ended in this turn, and those that have `left` it, also
    /// without an end. To be called before they are answered.
    pub(crate) fn count(&mut self, left: impl ExactSizeIterator<Item = u16>) {
        if self.ended.is_empty() && left.len() == 0 {
            return;
        }
        self.count_at(self.clock.now(), left);
    }

    fn count_at(&mut self, now: Time, left: impl Iterator<Item = u16>) {
        for slot in left {
            if let Some(slot) = self.slots.get_mut(usize::from(slot)) {
                slot.go(now);
            }
        }
        for ended in self.ended.drain(..) {
            // A turn may be shorter than what the clock can tell.
            let latency_ns = nanoseconds(ended.began, now).max(1);
            if let Some(slot) = self.slots.get(usize::from(ended.slot)) {
                slot.tally.count(&ended.outcome, latency_ns);
            }
        }
    }

    fn slot(&self, lun: Option<u16>) -> u16 {
        let slot = lun.and_then(|lun| self.by_lun.get(usize::from(lun)));
        slot.copied().unwrap_or(NO_SLOT)
    }

    /// Where to count a command that came when its LUN was not known.
    fn find(&mut self, sent_to: Destination, work: Work, response: &Response) -> u16 {
        let Some(lun) = scsi::lun::decode(sent_to.lun).filter(|lun| *lun <= scsi::LUN_MAX) else {
            return NO_SLOT;
        };
        let known = self.slot(Some(lun));
        let nobody = sent_to.is_answered_anywhere || response.found_no_unit();
        if known != NO_SLOT || nobody {
            return known;
        }
        let slot = self.add_slot(Some(lun));
        let lun = usize::from(lun);
        if self.by_lun.len() <= lun {
            self.by_lun.resize(lun + 1, NO_SLOT);
        }
        self.by_lun[lun] = slot;
        if let Some(slot) = self.slots.get_mut(usize::from(slot)) {
            // What comes next may go on behind it.
            slot.is_random(work);
        }
        slot
    }

    fn add_slot(&mut self, lun: Option<u16>) -> u16 {
        // There are fewer LUNs than slots could be told apart.
        let number = self.slots.len() as u16;
        let tally = Arc::default();
        self.control.add_tally(lun, Arc::clone(&tally));
        self.slots.push(Slot {
            tally,
            watch: lun.and_then(|lun| self.control.watch_of(lun)),
            reads: Streams::default(),
            writes: Streams::default(),
            depth: 0,
            since: self.clock.now(),
        });
        number
    }
}

fn nanoseconds(from: Time, to: Time) -> u64 {
    u64::try_from(to.since(from).as_nanos()).unwrap_or(u64::MAX)
}

impl Slot {
    fn is_random(&mut self, work: Work) -> bool {
        match work {
            Work::Read(extent) => self.reads.is_random(extent),
            Work::Write(extent) => self.writes.is_random(extent),
            _ => false,
        }
    }

    /// A command comes.
    fn come(&mut self, now: Time) {
        self.pass(now);
        self.depth += 1;
        raise(&self.tally.depth_max, self.depth);
    }

    /// A command is in progress no more.
    fn go(&mut self, now: Time) {
        self.pass(now);
        self.depth = self.depth.saturating_sub(1);
    }

    /// So many were in progress until now.
    fn pass(&mut self, now: Time) {
        if now > self.since {
            add(
                &self.tally.depth_ns,
                self.depth * nanoseconds(self.since, now),
            );
            self.since = now;
        }
    }
}

fn outcome(mark: &Mark, bytes: u64, response: &Response) -> Outcome {
    match response.status {
        status::GOOD => {}
        status::RESERVATION_CONFLICT => return Outcome::Conflict,
        status::CHECK_CONDITION if !response.is_unit_attention() => return Outcome::Failed,
        _ => return Outcome::Other,
    }
    let (write, extent) = match mark.work {
        Work::Read(extent) => (false, extent),
        Work::Write(extent) => (true, extent),
        Work::Unmap => return Outcome::Did(Kind::Unmap),
        Work::WriteSame => return Outcome::Did(Kind::WriteSame),
        Work::CompareAndWrite => return Outcome::Did(Kind::CompareAndWrite),
        Work::Offload => return Outcome::Did(Kind::Offload),
        Work::Other => return Outcome::Other,
    };
    Outcome::Transferred(Transfer {
        write,
        bytes,
        wanted_bytes: extent.bytes(),
        random: mark.random,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tasks::Order;
    use super::*;
    use crate::shard::tally::Totals;
    use std::time::Duration;

    /// A clock that stands still, some time after the beginning.
    #[derive(Clone)]
    struct Still;

    impl Clock for Still {
        fn now(&self) -> Time {
            Time(60_000_000_000)
        }

        fn sleep(&self, _: Duration) -> impl Future<Output = ()> + 'static {
            std::future::pending()
        }
    }

    fn gauge() -> Gauge<Still> {
        Gauge::new(Arc::default(), Still)
    }

    const LUN3: [u8; 8] = [0, 3, 0, 0, 0, 0, 0, 0];

    fn cdb(opcode: u8, lba: u8, blocks: u8) -> [u8; 16] {
        let mut cdb = [0; 16];
        (cdb[0], cdb[5], cdb[8]) = (opcode, lba, blocks);
        cdb
    }

    fn begin(gauge: &mut Gauge<Still>, lun: [u8; 8], cdb: [u8; 16]) -> (Order, Mark) {
        let cdb = Cdb::from(cdb);
        let mark = gauge.begin(lun, &cdb);
        let (write, bytes) = (false, 0);
        let order = Order {
            lun,
            cdb,
            write,
            bytes,
        };
        (order, mark)
    }

    fn run(gauge: &mut Gauge<Still>, lun: [u8; 8], cdb: [u8; 16]) -> Mark {
        let (order, mark) = begin(gauge, lun, cdb);
        gauge.end(order.destination(), &mark, 512, &Response::default());
        gauge.count([mark.slot].into_iter());
        mark
    }

    fn totals(gauge: &Gauge<Still>, slot: usize) -> Totals {
        let mut totals = Totals::default();
        totals.add(&gauge.slots[slot].tally);
        totals
    }

    #[test]
    fn a_transfer_goes_on_where_one_of_its_direction_ended_lately() {
        let mut gauge = gauge();
        run(&mut gauge, LUN3, [0; 16]);
        let mut random =
            |opcode, lba, blocks| run(&mut gauge, LUN3, cdb(opcode, lba, blocks)).random;
        assert!(random(0x28, 0, 8));
        assert!(!random(0x28, 8, 8));
        assert!(random(0x2a, 16, 8), "a read ended there");
        assert!(random(0x28, 100, 8));
        assert!(!random(0x28, 16, 8), "two streams");
        assert!(!random(0x28, 108, 8));
        assert!(random(0x28, 16, 8), "again the same");
        for lba in 1..=STREAMS as u8 {
            assert!(random(0x28, 140 + 10 * lba, 1));
        }
        assert!(random(0x28, 116, 8), "too long ago");
    }

    #[test]
    fn a_lun_is_counted_apart_once_something_answers_there() {
        let mut gauge = gauge();
        for opcode in [0x12, 0xa0, 0x03] {
            let mut anywhere = cdb(opcode, 0, 0);
            anywhere[4] = 36;
            run(&mut gauge, LUN3, anywhere);
        }
        assert_eq!(gauge.slots.len(), 1);
        // Two that came before the first was known count, too.
        let reads = [cdb(0x28, 0, 8), cdb(0x28, 8, 8)].map(|cdb| begin(&mut gauge, LUN3, cdb));
        for (read, mark) in &reads {
            gauge.end(read.destination(), mark, 4096, &Response::default());
        }
        gauge.count([NO_SLOT; 2].into_iter());
        assert_eq!(gauge.slots.len(), 2);
        let third = run(&mut gauge, LUN3, cdb(0x28, 8, 1));
        assert!(!third.random, "behind the first");
        run(&mut gauge, [0xc1, 0, 0, 0, 0, 0, 0, 0], [0; 16]);
        assert_eq!((totals(&gauge, 0).commands, gauge.slots.len()), (4, 2));
        let Totals {
            reads, commands, ..
        } = totals(&gauge, 1);
        assert_eq!((commands, reads.random, reads.bytes), (3, 2, 8704));
    }

    #[test]
    fn a_stream_that_is_spread_over_paths_is_no_random_access() {
        for paths in [2, 4] {
            let mut gauges: Vec<Gauge<Still>> = (0..paths).map(|_| gauge()).collect();
            let mut random = [0; 2];
            for gauge in &mut gauges {
                run(gauge, LUN3, [0; 16]);
            }
            // In turn, and then eight by one before eight by the next.
            for n in 0..30u8 {
                let gauge = &mut gauges[usize::from(n) % paths];
                random[0] += usize::from(run(gauge, LUN3, cdb(0x28, n * 8, 8)).random);
            }
            // As far apart as another four fit in between twice: that is no stream.
            let gauge = &mut gauges[0];
            for n in 0..5u8 {
                random[1] += usize::from(run(gauge, LUN3, cdb(0x2a, n * 42, 8)).random);
            }
            assert_eq!(random, [paths, 5], "the first by each");
        }
    }

    #[test]
    fn a_capture_counts_what_comes_while_it_is_there() {
        use std::sync::atomic::Ordering::Relaxed;
        const LUN5: [u8; 8] = [0, 5, 0, 0, 0, 0, 0, 0];
        let mut gauge = gauge();
        let read = |gauge: &mut Gauge<Still>, lun, lba| {
            gauge.others_come();
            run(gauge, lun, cdb(0x28, lba, 8));
        };
        run(&mut gauge, LUN3, [0; 16]);
        let watch = || Arc::new(Watch::new(1 << 20, Still.now(), Duration::from_secs(1)));
        let (third, fifth) = (watch(), watch());
        read(&mut gauge, LUN3, 0);
        let watches = vec![(3, Arc::clone(&third)), (5, Arc::clone(&fifth))];
        gauge.control.watch(watches);
        read(&mut gauge, LUN3, 8);
        read(&mut gauge, LUN3, 100);
        // The first at a LUN is counted by its end, before its place is known.
        for lba in [0, 50] {
            read(&mut gauge, LUN5, lba);
        }
        gauge.control.watch(Vec::new());
        read(&mut gauge, LUN3, 200);
        let counted = |watch: &Watch| {
            let commands = watch.reads.periods.iter().map(|one| one.load(Relaxed));
            (commands.sum::<u32>(), watch.reads.random.load(Relaxed))
        };
        assert_eq!(counted(&third), (2, 1));
        assert_eq!(counted(&fifth), (1, 1));
        assert!(gauge.slots.iter().all(|slot| slot.watch.is_none()));
    }

    #[test]
    fn mean_depth_is_rate_times_mean_latency() {
        let mut gauge = gauge();
        run(&mut gauge, LUN3, [0; 16]);
        let start = gauge.slots[1].since + Duration::from_secs(1);
        let (mut state, mut now_ns, mut pending) = (7u64, 0u64, Vec::new());
        let [before, max_before] = [totals(&gauge, 1)].map(|t| [t.depth_ns, t.depth_max])[0];
        let mut most = 0;
        for step in 0..2000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(99);
            now_ns += (state >> 33) % 5000;
            let now = start + Duration::from_nanos(now_ns);
            // As many come as go, in runs; all that is left at the end.
            if step < 1900 && state >> 62 < 2 {
                gauge.now = Some(now);
                pending.push(begin(&mut gauge, LUN3, cdb(0x28, step as u8, 1)));
                most = most.max(pending.len() as u64);
            } else if !pending.is_empty() {
                let (order, mark) = pending.swap_remove((state >> 40) as usize % pending.len());
                gauge.end(order.destination(), &mark, 512, &Response::default());
                gauge.count_at(now, [mark.slot].into_iter());
            }
        }
        assert!(pending.is_empty(), "{} are left", pending.len());
        let Totals {
            reads,
            depth_ns,
            depth_max,
            ..
        } = totals(&gauge, 1);
        // Both sides times the time that passed: L = λW, with nothing rounded.
        assert_eq!(depth_ns - before, reads.timing.total_ns);
        assert_eq!(depth_max, most.max(max_before));
        assert!(most > 3 && reads.timing.commands > 500);
    }

    #[test]
    fn a_command_that_leaves_without_an_end_is_in_progress_no_more() {
        let mut gauge = gauge();
        run(&mut gauge, LUN3, [0; 16]);
        let start = gauge.slots[1].since + Duration::from_secs(1);
        let at = |ns| start + Duration::from_nanos(ns);
        let before = totals(&gauge, 1).depth_ns;
        gauge.now = Some(at(0));
        let marks = [0, 1, 2].map(|_| begin(&mut gauge, LUN3, [0; 16]).1.slot);
        // A second less than nothing passed: the clock was looked at before.
        gauge.count_at(Time(start.as_nanos() - 1_000_000_000), [].into_iter());
        gauge.count_at(at(100), marks[..2].iter().copied());
        gauge.count_at(at(150), marks[2..].iter().copied());
        gauge.count_at(at(1000), [1].into_iter());
        assert_eq!(totals(&gauge, 1).depth_ns - before, 3 * 100 + 50);
        assert_eq!(totals(&gauge, 1).depth_max, 3);
    }
}
