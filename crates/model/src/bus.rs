//! The bus between a controller and its drives.
//!
//! A bus has lanes; each carries one transfer at a time, in the order of arrival, and any of
//! them reaches any drive. On a full-duplex bus the two directions do not disturb each other;
//! on a loop they share it. With `w` bytes on the wire of a lane of `b` bits per second:
//!
//! ```text
//! service = per_command + 8 w / b        arrived = sent + latency
//! ```
//!
//! `per_command` is what the lane is occupied beyond the data: connections are arbitrated,
//! opened and closed, and the command and its status cross. So a lane carries at most
//! `1 / service` commands a second, and Poisson arrivals wait as at a [`crate::station`].
//! Drives are slower than the buses here but in large numbers; then the bus is what bounds
//! sequential work. Times are nanoseconds, rounded up.

use crate::link::{Delivery, Ethernet, Link, Packets};
use crate::station::Station;
use base::Time;
use std::time::Duration;

/// What a bus is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bus {
    /// As sites name it.
    pub name: &'static str,
    /// The rate and framing of each lane.
    pub lane: Link,
    /// Lanes that transfer side by side.
    pub lanes: u16,
    /// Time of a lane for each command beyond its data.
    pub per_command: Duration,
    /// Whether reads and writes have a direction of their own.
    pub full_duplex: bool,
}

/// Which way data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Data of writes, from the controller.
    ToDrives,
    /// Data of reads, to the controller.
    FromDrives,
}

/// Ports of a loop in [`Bus::FC_AL_4`]: a shelf of fourteen drives and the controller.
/// Shelves with switched hubs show the loop no more than one shelf at a time.
const LOOP_PORTS: u64 = 15;
/// A port of a loop passes a word on after six words at most (FC-AL-2, monitoring state);
/// a word is 40 bits at 4.25 GBd, 9.41 ns.
const PORT_DELAY_PS: u64 = 6 * 9_412;
/// Turns of the loop for a command: two tenancies, command and data with status, each of
/// which arbitrates for a turn, and opens and is answered in another. Derived.
const LOOP_TURNS: u64 = 4;

impl Bus {
    /// SAS 6 Gb/s through a wide port of four lanes and an expander.
    pub const SAS_6_X4: Bus = Bus {
        name: "sas-6g-x4",
        lane: Link::SAS_6,
        lanes: 4,
        // Derived from SAS-2: two connections with OPEN address frame (40 bytes), its
        // acceptance (4), DONE (4) and CLOSE (12), a command frame (64) and a response (60) are
        // 244 bytes, 0.41 us; twice there and back through an expander, 0.15 us each way.
        per_command: Duration::from_nanos(1_000),
        full_duplex: true,
    };

    /// Fibre Channel arbitrated loop, 4 Gb/s: one circuit at a time.
    pub const FC_AL_4: Bus = Bus {
        name: "fc-al-4g",
        lane: Link::FC_4,
        lanes: 1,
        per_command: Duration::from_nanos(LOOP_TURNS * LOOP_PORTS * PORT_DELAY_PS / 1_000),
        full_duplex: false,
    };

    /// iSCSI over four 1 GbE links inside an array, MTU 9000, one switch that stores frames.
    pub const ISCSI_1G_X4: Bus = Bus {
        name: "iscsi-1g-x4",
        lane: Link {
            switches: 1,
            ..Link::ethernet(1_000_000_000, Ethernet::JUMBO)
        },
        lanes: 4,
        // Two frames with a PDU header alone, command and response: 138 bytes each, 1.1 us.
        // Both are charged to the direction of the data, which is the busier one.
        per_command: Duration::from_nanos(2 * 1_104),
        full_duplex: true,
    };

    /// PCI Express of the fourth generation, sixteen lanes that are one link to a switch before
    /// NVMe drives: 16 GT/s with 128b/130b coding.
    pub const PCIE_4_X16: Bus = Bus {
        name: "pcie",
        lane: Link::packets(16 * 16_000_000_000 / 130 * 128, Packets::PCIE),
        lanes: 1,
        // Derived: doorbell, command of 64 bytes and completion of 16, an interrupt: four
        // packets, 0.01 us.
        per_command: Duration::from_nanos(10),
        full_duplex: true,
    };

    /// All that a site can name.
    pub const ALL: [Bus; 4] = [
        Bus::SAS_6_X4,
        Bus::FC_AL_4,
        Bus::ISCSI_1G_X4,
        Bus::PCIE_4_X16,
    ];

    /// The bus of this name.
    pub fn named(name: &str) -> Option<Bus> {
        Bus::ALL.into_iter().find(|bus| bus.name == name)
    }

    /// Time that a command with so much data occupies a lane.
    pub fn service(&self, data_bytes: u64) -> Duration {
        self.per_command + self.lane.serialisation(data_bytes)
    }

    /// Commands of so much data that all lanes carry in one direction, per second.
    pub fn commands_per_second(&self, data_bytes: u64) -> f64 {
        f64::from(self.lanes) / self.service(data_bytes).as_secs_f64()
    }
}

/// A bus at work.
#[derive(Clone, Debug)]
pub struct State {
    to_drives: Station,
    /// None on a loop, where both directions share the first.
    from_drives: Option<Station>,
}

impl State {
    /// A bus at rest.
    ///
    /// # Panics
    /// When it has no lane.
    pub fn new(bus: &Bus) -> State {
        let direction = Station::new(usize::from(bus.lanes));
        State {
            from_drives: bus.full_duplex.then(|| direction.clone()),
            to_drives: direction,
        }
    }

    /// Carries the data of a command handed over at `now`.
    ///
    /// # Panics
    /// When `now` is before what was handed over last in this direction; on a loop, in
    /// any.
    pub fn transfer(
        &mut self,
        bus: &Bus,
        now: Time,
        direction: Direction,
        data_bytes: u64,
    ) -> Delivery {
        let station = match (direction, &mut self.from_drives) {
            (Direction::FromDrives, Some(from)) => from,
            _ => &mut self.to_drives,
        };
        let served = station.serve(now, bus.service(data_bytes));
        Delivery {
            begun: served.begun,
            sent: served.end,
            arrived: served.end + bus.lane.latency(data_bytes),
        }
    }

    /// The lanes of a direction, for what they did.
    pub fn lanes(&self, direction: Direction) -> &Station {
        match (direction, &self.from_drives) {
            (Direction::FromDrives, Some(from)) => from,
            _ => &self.to_drives,
        }
    }
}
