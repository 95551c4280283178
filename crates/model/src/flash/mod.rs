//! Flash drives: dies behind channels, with a protected write buffer and garbage
//! collection in steady state.
//!
//! ```text
//! command   the controller t_command; the interface length / rate, reads and writes side
//!           by side; and t_firmware more at its end, in which nothing is occupied
//! read      each page: its die t_read, then its channel for the bytes asked for
//! write     acknowledged when it is in the buffer; waits while the buffer is full
//! destage   each program unit: channel, then die t_program; after programs_per_block
//!           of a die t_erase more
//! collect   for each byte written at random WA - 1 bytes are moved: die t_read,
//!           channel out and in, die t_program
//! ```
//!
//! At most `programs_at_once` units are under way; that bounds sequential writes at
//! about `programs_at_once × unit / (transfer + t_program + t_erase / programs_per_block)`
//! and random ones at about 1/WA of it. Collecting goes before destaging, so hosts wait
//! for it once the buffer is full. Reads go before programs that have not begun; one that
//! has begun is suspended where the drive can do that, and is waited for where not.
//!
//! A write is sequential when it continues one of the last [`STREAMS`] writes; then it
//! invalidates whole blocks and nothing is moved. The drive is full and has been written
//! over: there is no fast time after a format, and a discard changes nothing.
//!
//! Invariants: every command ends exactly once; bytes in the buffer never exceed it; a
//! die and a channel do one thing at a time; ties go by the order in which events were
//! put down. Randomness only staggers how full the dies' blocks are at the beginning.

mod agenda;
pub mod closed_loop;
mod nand;
mod presets;
mod state;
mod write_amplification;

pub use nand::Counters;
pub use presets::DATASHEETS;
pub use state::State;
pub use write_amplification::write_amplification;

use std::time::Duration;

/// Sequential streams that the drive follows at the same time.
pub const STREAMS: usize = 16;
/// How often one program or erase is suspended before it is left to end: reads must
/// not starve writes. Derived; drives bound it, none publishes the figure.
pub const MOST_SUSPENDS: u8 = 8;

/// What a drive is like. Sources of the figures: [`Flash::SLC_SAS_200`] and the other
/// presets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flash {
    /// Class, as sites name it.
    pub name: &'static str,
    /// Bytes that it offers.
    pub capacity_bytes: u64,
    /// Raw bytes that hold data over capacity, less one: what collection lives on.
    pub over_provisioning: f64,
    /// Channels between the controller and the dies.
    pub channels: usize,
    /// Dies on each channel.
    pub dies_per_channel: usize,
    /// What a channel transfers, bytes per second.
    pub channel_bytes_per_second: u64,
    /// What a read senses at once, bytes.
    pub page_bytes: u64,
    /// What a program writes at once (all planes), bytes.
    pub program_bytes: u64,
    /// Programs until a block of all planes is full.
    pub programs_per_block: u32,
    /// Time in which a die senses a page.
    pub t_read: Duration,
    /// Time in which a die programs a unit of `program_bytes`.
    pub t_program: Duration,
    /// Erasing a block of all planes.
    pub t_erase: Duration,
    /// Until a program or an erase lets a read go first; none where it cannot.
    pub suspend: Option<Duration>,
    /// Units that may be programmed at the same time: power and the controller.
    pub programs_at_once: usize,
    /// The least time between two commands.
    pub t_command: Duration,
    /// What the interface reads, bytes per second.
    pub read_bytes_per_second: u64,
    /// What the interface writes, bytes per second.
    pub write_bytes_per_second: u64,
    /// What firmware and interface add to a command alone.
    pub t_firmware: Duration,
    /// The write buffer that survives a power loss, bytes.
    pub buffer_bytes: u64,
}

impl Flash {
    /// Dies on all channels together.
    pub const fn dies(&self) -> usize {
        self.channels * self.dies_per_channel
    }

    /// Bytes programmed for each byte written at random, once the drive is full.
    pub fn write_amplification(&self) -> f64 {
        write_amplification(self.over_provisioning)
    }
}
