//! A storage controller: the time that commands take of its cores, and the way of a write into a
//! cache that survives a power cut, mirrored to a partner.
//!
//! Processor time of a command, all of it spent on one of equal cores
//! ([`crate::station`]):
//!
//! ```text
//! command   per_command + KiB of data × per_kib
//! drives    commands to drives × per_drive_command
//! parity    KiB of parity × per_parity_kib
//! log       per_write + copies × KiB × per_log_kib
//! ```
//!
//! A write is safe when it is in the controller's own non-volatile memory and, if it is
//! mirrored, when the partner has said that it is in its memory, too. Both go on side by side;
//! memory and interconnect take one write at a time. With `m` bytes per second of memory, the
//! interconnect a [`crate::link`]:
//!
//! ```text
//! own     = max(now, memory free) + bytes / m
//! partner = arrived over the interconnect + answer        safe = the later one
//! ```
//!
//! Costs are picoseconds, as a KiB takes some tens of nanoseconds; what comes out is rounded
//! up to nanoseconds once.

mod presets;

pub use presets::{ALL, ASHLAR, named};

use crate::link::{Lane, Link};
use crate::station::Station;
use base::Time;
use std::time::Duration;

/// Processor time, picoseconds of one core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Of a host's command.
    pub per_command_ps: u64,
    /// Of a KiB between host and cache.
    pub per_kib_ps: u64,
    /// Of a command to a drive.
    pub per_drive_command_ps: u64,
    /// Of a KiB of parity.
    pub per_parity_kib_ps: u64,
    /// Of a write, besides its command and the bytes of the log.
    pub per_write_ps: u64,
    /// Of a KiB of a copy of the write log.
    pub per_log_kib_ps: u64,
}

fn nanos(ps: u128) -> Duration {
    Duration::from_nanos(u64::try_from(ps.div_ceil(1_000)).unwrap_or(u64::MAX))
}

fn of_bytes(bytes: u64, per_kib_ps: u64) -> u128 {
    (u128::from(bytes) * u128::from(per_kib_ps)).div_ceil(1024)
}

impl Costs {
    /// A host's command with so much data, in or out.
    pub fn command(&self, data_bytes: u64) -> Duration {
        nanos(u128::from(self.per_command_ps) + of_bytes(data_bytes, self.per_kib_ps))
    }

    /// So many commands to drives.
    pub fn drive_commands(&self, count: u64) -> Duration {
        nanos(u128::from(count) * u128::from(self.per_drive_command_ps))
    }

    /// So many bytes of parity.
    pub fn parity(&self, parity_bytes: u64) -> Duration {
        nanos(of_bytes(parity_bytes, self.per_parity_kib_ps))
    }

    /// A write of so many bytes in so many copies of the write log.
    pub fn log(&self, bytes: u64, copies: u64) -> Duration {
        let copied = u128::from(copies) * of_bytes(bytes, self.per_log_kib_ps);
        nanos(u128::from(self.per_write_ps) + copied)
    }

    /// The same work on cores that take `numerator / denominator` of the time.
    pub const fn times(self, numerator: u64, denominator: u64) -> Costs {
        Costs {
            per_command_ps: self.per_command_ps * numerator / denominator,
            per_kib_ps: self.per_kib_ps * numerator / denominator,
            per_drive_command_ps: self.per_drive_command_ps * numerator / denominator,
            per_parity_kib_ps: self.per_parity_kib_ps * numerator / denominator,
            per_write_ps: self.per_write_ps * numerator / denominator,
            per_log_kib_ps: self.per_log_kib_ps * numerator / denominator,
        }
    }
}

/// Memory that survives a power cut, for writes that are not on drives yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteCache {
    /// How much it holds.
    pub bytes: u64,
    /// What it takes in, bytes per second.
    pub bytes_per_second: u64,
}

/// The file system of a NAS head, which keeps its maps on two volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Bytes of data that a block of the map, of 4 KiB, tells the place of.
    pub mapped_bytes: u64,
}

impl FileSystem {
    /// Derived: pointers of eight bytes to blocks of 4 KiB.
    pub const POINTERS: FileSystem = FileSystem {
        mapped_bytes: 4096 / 8 * 4096,
    };
}

/// The way between two controllers, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interconnect {
    /// What carries the data.
    pub link: Link,
    /// From the data's arrival until the sender knows of it.
    pub answer: Duration,
}

/// What a controller is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controller {
    /// As sites name it.
    pub name: &'static str,
    /// Cores, all equal, that share the work.
    pub cores: u16,
    /// Processor time that each kind of work takes.
    pub costs: Costs,
    /// RAM that caches data for reads, bytes.
    pub cache_bytes: u64,
    /// RAM for checksums of blocks, bytes; of no account where these go along with the blocks.
    pub checksum_bytes: u64,
    /// Write cache, where it has one; else the write log is on the drives.
    pub write_cache: Option<WriteCache>,
    /// The way to a partner, where it has one.
    pub interconnect: Interconnect,
    /// Whether writes go to free stripes, whole ones, and never over what is there: n ÷ (n − parity)
    /// drive writes for each, and no reads.
    pub writes_anywhere: bool,
    /// The file system between hosts and pools, if it is a NAS head: one that writes in place.
    pub file_system: Option<FileSystem>,
    /// Commands that it lets a drive have at once, where that is fewer than the drive's queue takes;
    /// the others wait in it, in their order.
    pub drive_queue: Option<u16>,
}

/// A controller at work: its cores, its non-volatile memory and the way to its partner.
#[derive(Clone, Debug)]
pub struct State {
    /// Its cores and the jobs that wait for them.
    pub cores: Station,
    memory: Station,
    interconnect: Lane,
}

impl State {
    /// A controller at rest.
    ///
    /// # Panics
    /// When it has no core.
    pub fn new(controller: &Controller) -> State {
        State {
            cores: Station::new(usize::from(controller.cores)),
            memory: Station::new(1),
            interconnect: Lane::default(),
        }
    }

    /// When a write of so many bytes that begins at `now` is safe in the write cache and,
    /// where there is a partner to mirror it to, in the partner's.
    ///
    /// # Panics
    /// When `now` is before the write before.
    pub fn keep(
        &mut self,
        cache: &WriteCache,
        partner: Option<&Interconnect>,
        now: Time,
        bytes: u64,
    ) -> Time {
        let takes_ps = u128::from(bytes) * 1_000_000_000_000 / u128::from(cache.bytes_per_second);
        let own = self.memory.serve(now, nanos(takes_ps)).end;
        partner.map_or(own, |partner| own.max(self.cross(partner, now, bytes)))
    }

    /// When the partner has said that it has so many bytes that are sent at `now`.
    ///
    /// # Panics
    /// When `now` is before what was sent last.
    pub fn cross(&mut self, partner: &Interconnect, now: Time, bytes: u64) -> Time {
        let sent = self.interconnect.send(&partner.link, now, bytes);
        sent.arrived + partner.answer
    }

    /// The non-volatile memory, for what it did.
    pub fn memory(&self) -> &Station {
        &self.memory
    }

    /// The way to the partner, for what it did.
    pub fn interconnect(&self) -> &Lane {
        &self.interconnect
    }
}
