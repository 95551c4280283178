//! The time that modelled drives take for what a layout asks of them.
//!
//! All drives of a group do the same work on the average. So writes are counted at one drive, and
//! reads at each drive of the group, with the slowest one.
//!
//! In favour of both layouts alike: the logs lie on flash (a log group), the processor takes no time,
//! and each queue is as deep as the drive or the log allows.

use crate::cleaning::{Aged, Load};
use base::{DriveOffset, Prng, Time};
use model::hdd::closed_loop::run;
use model::hdd::{Hdd, State};
use model::{Request, RequestKind};
use std::time::Duration;

/// A host's random write.
pub const WRITE_BYTES: u64 = 8 << 10;
const MIB: u64 = 1 << 20;
/// A stripe unit.
const STRIPE_UNIT_BYTES: u64 = 64 << 10;
/// What a segment is on each drive: long enough that the arm's way to it is a small part.
const SEGMENT_BYTES: u64 = 4 * MIB;
/// The data log of a pool with a log group.
const LOG_BYTES: u64 = 256 * MIB;
/// Writes in it that wait to go in place.
pub const WAITING_WRITES: u64 = LOG_BYTES / 4 * 3 / WRITE_BYTES;
/// One in so many of the writes that wait makes a sweep over the drives.
const SWEEP_PARTS: u64 = 8;
/// Stripes under way for each drive.
const WINDOW_PER_DRIVE: u64 = 16;
/// Checksum blocks that wait as records in such a log, and the data that one speaks for.
const WAITING_SUM_BLOCKS: f64 = 360_000.0;
const SUM_BLOCK_DATA_BYTES: f64 = 3.9 * MIB as f64;
/// What a reader has under way.
const OUTSTANDING_BYTES: u64 = 16 * MIB;
/// Rows that lie together in the small log, which stands for all of a drive.
const ROWS_TOGETHER: u64 = 8;
const COMMAND_BYTES_MAX: u64 = 512 << 10;

/// A RAID group.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Level and drives.
    pub name: &'static str,
    pub drives: u64,
    /// Drives' worth of data.
    pub data: u64,
    /// Drives that a random write in place writes to.
    pub written: u64,
    /// Whether it reads them first: there is parity.
    pub reads: bool,
}

/// The groups that are compared.
pub const GROUPS: [Group; 4] = [
    group("RAID 6, 8 drives", 8, 6, 3, true),
    group("RAID 6, 12 drives", 12, 10, 3, true),
    group("RAID 5, 8 drives", 8, 7, 2, true),
    group("RAID 10, 8 drives", 8, 4, 2, false),
];

const fn group(name: &'static str, drives: u64, data: u64, written: u64, reads: bool) -> Group {
    Group {
        name,
        drives,
        data,
        written,
        reads,
    }
}

impl Group {
    /// Bytes of data at a fill level.
    pub fn filled_bytes(self, drive: &Hdd, fill: u32) -> f64 {
        (drive.capacity_bytes * self.data) as f64 * f64::from(fill) / 100.0
    }

    /// The drive of a data column of a row. Parity goes round; a mirror's copies take turns.
    fn drive_of(self, row: u64, column: u64) -> usize {
        let place = match self.reads {
            true => (row + column) % self.drives,
            false => 2 * column + row % 2,
        };
        place as usize
    }
}

fn request(kind: RequestKind, at: u64, len_bytes: u64) -> Request {
    Request {
        kind,
        at: DriveOffset(at),
        len_bytes,
    }
}

fn elapsed(drive: &Hdd, depth: u64, commands: &[Request]) -> Duration {
    let mut state = State::new(drive, &mut Prng::from_seed(1).stream("drive"));
    let mut next = commands.iter().copied();
    let mut begun = || next.next().unwrap_or(request(RequestKind::Flush, 0, 0));
    let count = commands.len() as u64;
    run(&mut state, Time(0), depth, count, &mut begun).elapsed
}

/// Checksum blocks that are written for each host write in place.
///
/// A block waits, as a record in the log, until as many others wait. The longer, the more writes
/// change it.
fn sum_blocks_per_write(blocks: f64, load: Load) -> f64 {
    let most = 1e6 * blocks;
    let (mut low, mut high) = (0.0, most);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        match load.distinct(blocks, middle) < WAITING_SUM_BLOCKS {
            true => low = middle,
            false => high = middle,
        }
    }
    (WAITING_SUM_BLOCKS / high).min(1.0)
}

/// Random writes per second of a group that writes in place, in sweeps over the part of the drives
/// that is filled; `with_sums`: its checksum blocks, too.
pub fn in_place(drive: &Hdd, group: Group, fill: u32, load: Load, with_sums: bool) -> f64 {
    let region = drive.capacity_bytes / 100 * u64::from(fill) - MIB;
    let blocks = group.filled_bytes(drive, fill) / SUM_BLOCK_DATA_BYTES;
    let sums = f64::from(u8::from(with_sums)) * sum_blocks_per_write(blocks, load);
    let writes = WAITING_WRITES / SWEEP_PARTS;
    let places = writes * group.written / group.drives;
    let sum_places = (places as f64 * sums) as u64;
    // Half of the window reads, the other half writes what was read.
    let window = (WINDOW_PER_DRIVE * group.written) as usize;
    let lag = if group.reads { window / 2 } else { 0 };
    let mut prng = Prng::from_seed(1).stream("places");
    let (mut commands, sweeps) = (Vec::new(), 4);
    let mut waiting = std::collections::VecDeque::new();
    for _ in 0..sweeps {
        let mut draw = |size: u64| prng.below(region / size) * size;
        let data = (0..places).map(|_| draw(WRITE_BYTES));
        let mut sweep: Vec<(u64, u64)> = data.map(|at| (at, WRITE_BYTES)).collect();
        sweep.extend((0..sum_places).map(|_| (draw(4096), 4096)));
        sweep.sort_unstable();
        for (at, len_bytes) in sweep {
            if group.reads && len_bytes == WRITE_BYTES {
                commands.push(request(RequestKind::Read, at, len_bytes));
            }
            waiting.push_back(request(RequestKind::Write, at, len_bytes));
            if waiting.len() > lag {
                commands.extend(waiting.pop_front());
            }
        }
    }
    commands.extend(waiting);
    (sweeps * writes) as f64 / elapsed(drive, window as u64, &commands).as_secs_f64()
}

/// Random writes per second of a group that appends units of such a size.
pub fn appended(drive: &Hdd, group: Group, unit_bytes: u64, aged: &Aged, gathered: f64) -> f64 {
    let (segments, drives) = (200u64, group.drives as f64);
    let units = (SEGMENT_BYTES * group.data / unit_bytes) as f64 / aged.amplification;
    // The rest of a unit that a host writes a part of is read: from each stripe unit of it.
    let rest_bytes = unit_bytes.min(STRIPE_UNIT_BYTES);
    let rests = match unit_bytes > WRITE_BYTES {
        true => units * (unit_bytes / rest_bytes) as f64 / drives,
        false => 0.0,
    };
    // One copy of a mirror is enough for the cleaner.
    let cleaned = aged.read_per_written * if group.reads { 1.0 } else { 0.5 };
    // The checksums of a segment lie together; each of their copies is one write.
    let sums = group.written as f64 / drives;
    let mut prng = Prng::from_seed(1).stream("segments");
    let mut place = |size: u64| prng.below(drive.capacity_bytes / size) * size;
    let (mut commands, mut owed) = (Vec::new(), [0.0; 4]);
    for _ in 0..segments {
        let kinds = [
            (RequestKind::Write, 1.0, SEGMENT_BYTES),
            (RequestKind::Read, cleaned, SEGMENT_BYTES),
            (RequestKind::Write, sums, 32 << 10),
            (RequestKind::Read, rests, rest_bytes),
        ];
        for ((kind, each, len_bytes), owed) in kinds.into_iter().zip(&mut owed) {
            *owed += each;
            while *owed >= 1.0 {
                *owed -= 1.0;
                commands.push(request(kind, place(len_bytes), len_bytes));
            }
        }
    }
    let depth = if rests > 0.0 { 64 } else { 4 };
    let seconds = elapsed(drive, depth, &commands).as_secs_f64();
    segments as f64 * units * gathered / seconds
}

/// Random reads of 8 KiB per second of one drive with a deep queue, over so much of it.
pub fn random_reads(drive: &Hdd, fill: u32) -> f64 {
    let region = drive.capacity_bytes / 100 * u64::from(fill);
    let mut prng = Prng::from_seed(1).stream("reads");
    let mut draw = || prng.below(region / WRITE_BYTES) * WRITE_BYTES;
    let commands = (0..4000).map(|_| request(RequestKind::Read, draw(), WRITE_BYTES));
    let commands: Vec<Request> = commands.collect();
    commands.len() as f64 / elapsed(drive, 32, &commands).as_secs_f64()
}

/// Where the units of a volume lie.
#[derive(Clone, Copy)]
pub struct Places<'a> {
    pub unit_bytes: u64,
    pub slot_of: &'a [u32],
    /// Slots of the small log, which are spread over all of each drive. None: units lie in one run.
    pub spread: Option<u64>,
}

impl Places<'_> {
    /// Bytes per second of reads of so many bytes each, that begin at these units.
    pub fn read(self, drive: &Hdd, group: Group, len_bytes: u64, from: &[u64]) -> f64 {
        let bytes = len_bytes * from.len() as u64;
        let mut of_drives = vec![Vec::new(); group.drives as usize];
        for first in from {
            for unit in *first..first + len_bytes / self.unit_bytes {
                self.read_unit(drive, group, unit, &mut of_drives);
            }
        }
        let times = of_drives.iter().map(|commands: &Vec<Request>| {
            let depth = commands.len() as u64 * OUTSTANDING_BYTES / bytes;
            elapsed(drive, depth.clamp(1, drive.tags as u64), commands)
        });
        bytes as f64 / times.max().unwrap_or_default().as_secs_f64()
    }

    fn read_unit(self, drive: &Hdd, group: Group, unit: u64, of_drives: &mut [Vec<Request>]) {
        let step = self.unit_bytes.min(STRIPE_UNIT_BYTES);
        let begin = u64::from(self.slot_of[unit as usize]) * self.unit_bytes;
        for at in (begin..begin + self.unit_bytes).step_by(step as usize) {
            let stripe_unit = at / STRIPE_UNIT_BYTES;
            let (row, column) = (stripe_unit / group.data, stripe_unit % group.data);
            let offset = self.offset(drive, group, row) + at % STRIPE_UNIT_BYTES;
            let commands = &mut of_drives[group.drive_of(row, column)];
            let goes_on = |last: &&mut Request| {
                last.at.0 + last.len_bytes == offset && last.len_bytes < COMMAND_BYTES_MAX
            };
            match commands.last_mut().filter(goes_on) {
                Some(last) => last.len_bytes += step,
                None => commands.push(request(RequestKind::Read, offset, step)),
            }
        }
    }

    /// Where a row lies on each drive.
    fn offset(self, drive: &Hdd, group: Group, row: u64) -> u64 {
        let together = ROWS_TOGETHER * STRIPE_UNIT_BYTES;
        let inside = row % ROWS_TOGETHER * STRIPE_UNIT_BYTES;
        match self.spread {
            None => drive.capacity_bytes / 5 * 2 + row * STRIPE_UNIT_BYTES,
            Some(slots) => {
                let rows = slots * self.unit_bytes / STRIPE_UNIT_BYTES / group.data + 1;
                let stride = drive.capacity_bytes / (rows / ROWS_TOGETHER + 1);
                row / ROWS_TOGETHER * (stride / together * together) + inside
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_that_was_filled_in_order_is_read_at_the_rate_of_the_data_drives() {
        let slot_of: Vec<u32> = (0..1 << 16).collect();
        let places = Places {
            unit_bytes: WRITE_BYTES,
            slot_of: &slot_of,
            spread: None,
        };
        for group in GROUPS {
            let each = places.read(&Hdd::SAS_10K, group, 128 * MIB, &[0]) / group.data as f64;
            let printed = Hdd::SAS_10K.inner_bytes_per_s..Hdd::SAS_10K.outer_bytes_per_s;
            assert!(printed.contains(&(each as u64)), "{group:?}: {each}");
        }
    }

    #[test]
    fn checksum_blocks_are_written_less_often_the_fewer_there_are() {
        let rates = [1e5, 5e5, 2e6, 1e7].map(|blocks| sum_blocks_per_write(blocks, Load::Uniform));
        assert!(
            rates.is_sorted() && rates[0] < 0.1 && rates[3] > 0.9 && rates[3] <= 1.0,
            "{rates:?}"
        );
    }
}
