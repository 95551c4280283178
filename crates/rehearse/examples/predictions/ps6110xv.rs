//! The ten-VM mix on the PS6110XV: RAID levels, more web servers, twice of everything.

use crate::row::{Section, asked, given};
use crate::run::Run;

const RAID_6: Run = Run::of("ps6110xv", "", (20, 60));
const RAID_10: Run = Run::of("ps6110xv", "RAID 10", (20, 60));
const RAID_50: Run = Run::of("ps6110xv", "RAID 50", (20, 60));
const WEB_6: Run = Run::of("ps6110xv", "6 web servers", (20, 60));
const WEB_24: Run = Run::of("ps6110xv", "24 web servers", (20, 60));
const DOUBLED: Run = Run::of("ps6110xv", "two arrays, twenty VMs", (20, 60));

const RUNS: &[Run] = &[RAID_6, RAID_10, RAID_50, WEB_6, WEB_24, DOUBLED];

pub fn section() -> Section {
    Section {
        title: "E. PS6110XV, Hyper-V 2012",
        runs: RUNS,
        rows: vec![
            given(
                "24 web servers over 6, IO/s",
                "×",
                4.0,
                |o| Some(o.iops(WEB_24)? / o.iops(WEB_6)?),
                "given is that latency grows far slower than IO/s",
            ),
            given(
                "24 web servers, read latency, below",
                "ms",
                20.0,
                |o| o.read_ms(WEB_24),
                "given is only \"stays under 20 ms\"",
            ),
            asked(
                "RAID 6",
                "IO/s",
                |o| o.iops(RAID_6),
                "ten VMs; 3,860 are asked for",
            ),
            asked("RAID 6, read latency", "ms", |o| o.read_ms(RAID_6), ""),
            asked("RAID 10", "IO/s", |o| o.iops(RAID_10), ""),
            asked("RAID 10, read latency", "ms", |o| o.read_ms(RAID_10), ""),
            asked("RAID 50", "IO/s", |o| o.iops(RAID_50), ""),
            asked("RAID 50, read latency", "ms", |o| o.read_ms(RAID_50), ""),
            asked("two arrays, twenty VMs", "IO/s", |o| o.iops(DOUBLED), ""),
            asked(
                "two arrays, twenty VMs, read latency",
                "ms",
                |o| o.read_ms(DOUBLED),
                "",
            ),
        ],
    }
}
