//! Counts what a connection does, LUN by LUN.
//!
//! Once a LUN is known, a command costs an index and a few loads and stores: no lock, no
//! hashing, no allocation. The clock is looked at once for all that came with one read, and
//! once for all that ended in one turn, before they are answered: it costs more than the rest.
//!
//! Invariant: a LUN gets a tally only when there is a logical unit at it, so a peer can't
//! have any made.

use super::tasks::Order;
use crate::shard::session::Reins;
use crate::shard::tally::{Outcome, Tally, Transfer};
use base::Slice;
use scsi::Response;
use scsi::cdb::Work;
use scsi::sense::status;
use std::sync::Arc;
use std::time::Instant;

/// Of commands at a LUN without a tally, as yet or for good.
pub(crate) const NO_SLOT: u16 = 0;

/// A transfer goes on where one of so many before it, in the same direction, ended: hosts run
/// several sequential streams at once.
const STREAMS: usize = 8;

/// Answered where there is no logical unit, too (SPC-4 clause 4.6.1): INQUIRY, REPORT LUNS,
/// REQUEST SENSE.
const ANSWERED_ANYWHERE: [u8; 3] = [0x12, 0xa0, 0x03];

/// What is known of a command when it comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    began: Instant,
    pub(crate) work: Work,
    random: bool,
    /// Where its LUN is counted.
    pub(crate) slot: u16,
    /// How many commands were in progress at the LUN, itself among them.
    pub(crate) depth: u32,
}

impl Mark {
    /// Of a command that comes at `began`, at a LUN that is not known.
    pub(crate) fn new(began: Instant, cdb: &[u8; 16]) -> Self {
        Mark {
            began,
            work: Work::of(cdb),
            random: true,
            slot: NO_SLOT,
            depth: 1,
        }
    }

    /// The data-out of the command has come: WRITE SAME of zeroes is an unmap.
    pub(crate) fn look_at(&mut self, data: &Slice) {
        let zeroes = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
        if self.work == Work::Repeat && data.bytes().is_some_and(zeroes) {
            self.work = Work::Unmap;
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
            // No transfer begins there.
            ends: [u64::MAX; STREAMS],
            next: 0,
        }
    }
}

impl Streams {
    /// Whether a transfer from `lba` on is random. It ends before `end`.
    fn is_random(&mut self, lba: u64, end: u64) -> bool {
        match self.ends.iter().position(|last| *last == lba) {
            Some(at) => {
                self.ends[at] = end;
                false
            }
            None => {
                self.ends[self.next] = end;
                self.next = (self.next + 1) % STREAMS;
                true
            }
        }
    }
}

struct Slot {
    tally: Arc<Tally>,
    reads: Streams,
    writes: Streams,
}

/// The tallies of a connection.
pub(crate) struct Gauge {
    reins: Arc<Reins>,
    /// The first is of commands at no logical unit.
    slots: Vec<Slot>,
    /// By LUN.
    by_lun: Vec<u16>,
    /// When the commands came that are being taken.
    now: Option<Instant>,
    /// Commands that have ended in this turn.
    ended: Vec<EndedCommand>,
}

/// A command that has ended, but for the time it took.
struct EndedCommand {
    slot: u16,
    depth: u32,
    began: Instant,
    outcome: Outcome,
}

impl Gauge {
    pub(crate) fn new(reins: Arc<Reins>) -> Self {
        let mut gauge = Gauge {
            reins,
            slots: Vec::new(),
            by_lun: Vec::new(),
            now: None,
            ended: Vec::new(),
        };
        gauge.add_slot(None);
        gauge
    }

    /// Others come than before.
    pub(crate) fn others_come(&mut self) {
        self.now = None;
    }

    /// A command comes.
    pub(crate) fn begin(&mut self, lun: [u8; 8], cdb: &[u8; 16]) -> Mark {
        let mut mark = Mark::new(*self.now.get_or_insert_with(Instant::now), cdb);
        mark.slot = self.slot(scsi::lun::decode(lun));
        if mark.slot != NO_SLOT
            && let Some(slot) = self.slots.get_mut(usize::from(mark.slot))
        {
            mark.random = slot.is_random(mark.work);
        }
        mark
    }

    /// A command has ended; `bytes` of data went over the wire. It is counted by
    /// [`Gauge::count`].
    pub(crate) fn end(&mut self, order: &Order, mark: &Mark, bytes: u64, response: &Response) {
        let mut at = mark.slot;
        if at == NO_SLOT {
            at = self.find(order, mark.work, response);
        }
        self.ended.push(EndedCommand {
            slot: at,
            depth: mark.depth,
            began: mark.began,
            outcome: outcome(mark, bytes, response),
        });
    }

    /// Counts those that have ended in this turn. To be called before they are answered.
    pub(crate) fn count(&mut self) {
        if self.ended.is_empty() {
            return;
        }
        let now = Instant::now();
        for mut ended in self.ended.drain(..) {
            if let Outcome::Transferred(transfer) = &mut ended.outcome {
                let latency = now.saturating_duration_since(ended.began).as_nanos();
                // A turn may be shorter than what the clock can tell.
                transfer.latency_ns = u64::try_from(latency).unwrap_or(u64::MAX).max(1);
            }
            if let Some(slot) = self.slots.get(usize::from(ended.slot)) {
                slot.tally.count(u64::from(ended.depth), &ended.outcome);
            }
        }
    }

    fn slot(&self, lun: Option<u16>) -> u16 {
        let slot = lun.and_then(|lun| self.by_lun.get(usize::from(lun)));
        slot.copied().unwrap_or(NO_SLOT)
    }

    /// Where to count a command that came when its LUN was not known.
    fn find(&mut self, order: &Order, work: Work, response: &Response) -> u16 {
        let Some(lun) = scsi::lun::decode(order.lun).filter(|lun| *lun <= scsi::LUN_MAX) else {
            return NO_SLOT;
        };
        let known = self.slot(Some(lun));
        let nobody = ANSWERED_ANYWHERE.contains(&order.cdb[0]) || response.found_no_unit();
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
        self.reins.add_tally(lun, Arc::clone(&tally));
        self.slots.push(Slot {
            tally,
            reads: Streams::default(),
            writes: Streams::default(),
        });
        number
    }
}

impl Slot {
    fn is_random(&mut self, work: Work) -> bool {
        let (streams, extent) = match work {
            Work::Read(extent) => (&mut self.reads, extent),
            Work::Write(extent) => (&mut self.writes, extent),
            _ => return false,
        };
        let end = extent.lba.0.saturating_add(u64::from(extent.blocks));
        streams.is_random(extent.lba.0, end)
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
        Work::Unmap => return Outcome::Unmapped,
        Work::CompareAndWrite => return Outcome::ComparedAndWritten,
        Work::Offload => return Outcome::Offloaded,
        Work::Repeat | Work::Other => return Outcome::Other,
    };
    Outcome::Transferred(Transfer {
        write,
        bytes,
        wanted_bytes: extent.bytes(),
        random: mark.random,
        latency_ns: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::tally::Totals;

    const LUN3: [u8; 8] = [0, 3, 0, 0, 0, 0, 0, 0];

    fn cdb(opcode: u8, lba: u8, blocks: u8) -> [u8; 16] {
        let mut cdb = [0; 16];
        (cdb[0], cdb[5], cdb[8]) = (opcode, lba, blocks);
        cdb
    }

    fn begin(gauge: &mut Gauge, lun: [u8; 8], cdb: [u8; 16]) -> (Order, Mark) {
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

    fn run(gauge: &mut Gauge, lun: [u8; 8], cdb: [u8; 16]) -> Mark {
        let (order, mark) = begin(gauge, lun, cdb);
        gauge.end(&order, &mark, 512, &Response::default());
        gauge.count();
        mark
    }

    fn totals(gauge: &Gauge, slot: usize) -> Totals {
        let mut totals = Totals::default();
        totals.add(&gauge.slots[slot].tally);
        totals
    }

    #[test]
    fn a_transfer_goes_on_where_one_of_its_direction_ended_lately() {
        let mut gauge = Gauge::new(Arc::default());
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
            assert!(random(0x28, 120 + 2 * lba, 1));
        }
        assert!(random(0x28, 116, 8), "too long ago");
    }

    #[test]
    fn a_lun_is_counted_apart_once_something_answers_there() {
        let mut gauge = Gauge::new(Arc::default());
        for opcode in ANSWERED_ANYWHERE {
            let mut anywhere = cdb(opcode, 0, 0);
            anywhere[4] = 36;
            run(&mut gauge, LUN3, anywhere);
        }
        assert_eq!(gauge.slots.len(), 1);
        // Two that came before the first was known count, too.
        let reads = [cdb(0x28, 0, 8), cdb(0x28, 8, 8)].map(|cdb| begin(&mut gauge, LUN3, cdb));
        for (read, mark) in &reads {
            gauge.end(read, mark, 4096, &Response::default());
        }
        gauge.count();
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
    fn write_same_is_an_unmap_when_its_block_is_zeroes() {
        let buffers = base::BufPool::new();
        let block = |byte| buffers.copy_of(&[byte; 512]).freeze();
        let work = |opcode, data: &Slice| {
            let mut mark = Mark::new(Instant::now(), &cdb(opcode, 0, 1));
            mark.look_at(data);
            mark.work
        };
        assert_eq!(work(0x41, &block(0)), Work::Unmap);
        assert_eq!(work(0x41, &block(1)), Work::Repeat);
        assert!(matches!(work(0x2a, &block(0)), Work::Write(_)));
    }

    /// What counting costs: `cargo test --release -p ashlar-server -- --ignored --nocapture
    /// cost_of_counting`.
    #[test]
    #[ignore = "a measurement"]
    fn cost_of_counting() {
        const COMMANDS: u32 = 8_000_000;
        let response = Response::default();
        for in_turn in [1, 4, 32] {
            let mut gauge = Gauge::new(Arc::default());
            run(&mut gauge, LUN3, [0; 16]);
            let began = Instant::now();
            for turn in 0..COMMANDS / in_turn {
                gauge.others_come();
                for at in 0..in_turn {
                    let lba = (turn * in_turn + at).wrapping_mul(2_654_435_761);
                    let mut cdb = cdb(0x28, 0, 8);
                    cdb[2..6].copy_from_slice(&lba.to_be_bytes());
                    let (order, mark) = begin(&mut gauge, LUN3, cdb);
                    gauge.end(&order, std::hint::black_box(&mark), 4096, &response);
                }
                gauge.count();
            }
            let each = began.elapsed().as_secs_f64() * 1e9 / f64::from(COMMANDS);
            assert_eq!(totals(&gauge, 1).reads.commands, u64::from(COMMANDS));
            println!("{each:.1} ns a command, {in_turn} in a turn");
        }
        let began = Instant::now();
        for _ in 0..COMMANDS {
            std::hint::black_box(Instant::now());
        }
        let each = began.elapsed().as_secs_f64() * 1e9 / f64::from(COMMANDS);
        println!("{each:.1} ns of each look at the clock");
    }
}
