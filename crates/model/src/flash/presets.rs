//! Drives with published figures. "Derived" marks figures that no source gives: they follow from
//! the figures named with them, not from measurement of a site.

use super::Flash;
use std::time::Duration;

const GB: u64 = 1_000_000_000;
const MB: u64 = 1_000_000;
const KIB: u64 = 1024;

/// The drives with what their datasheets say: the queue depth, then 4 KiB random reads and
/// steady writes per second, and MB/s read and written in sequence.
pub const DATASHEETS: [(Flash, u64, [f64; 4]); 3] = [
    (Flash::SLC_SAS_200, 32, [48e3, 16e3, 300.0, 200.0]),
    (Flash::SLC_SAS_100, 32, [48e3, 8e3, 300.0, 100.0]),
    (Flash::TLC_NVME_7680, 256, [900e3, 200e3, 6500.0, 3500.0]),
];

impl Flash {
    /// A 2011 SLC drive with SAS: Seagate Pulsar XT.2, 200 GB (ST200FX0002; product
    /// manual 100647497 rev. B, table 6, queue depth 32, preconditioned: 4 KiB random
    /// 48,000 reads/s and 16,000 writes/s sustained, 128 KiB sequential 300 and 200 MB/s).
    /// The 3,500 IOPS that array vendors plan with is a figure for sizing arrays with
    /// controllers, parity and mixed loads, not what the drive can do.
    pub const SLC_SAS_200: Flash = Flash {
        name: "SLC SAS 200 GB (2011)",
        capacity_bytes: 200 * GB,
        // Derived: WA = 2.7, which with the reads of collection gives the manual's ratio
        // of sequential to random writes. Raw capacity is not published.
        over_provisioning: 0.25,
        // Not published. Derived: enough for 300 MB/s, two dies to overlap transfers.
        channels: 16,
        dies_per_channel: 2,
        // 25 ns a byte: Numonyx NAND02G-B2D datasheet, sequential access.
        channel_bytes_per_second: 40 * MB,
        // Two planes of 2 KiB pages, 64 pages a block: Axia AX20NV2G8 (3x nm SLC) datasheet,
        // and its times: page read 30 us, program 300 us, erase 3.5 ms.
        page_bytes: 4 * KIB,
        program_bytes: 4 * KIB,
        programs_per_block: 64,
        t_read: Duration::from_micros(30),
        t_program: Duration::from_micros(300),
        t_erase: Duration::from_micros(3_500),
        suspend: None,
        // Derived from 200 MB/s sequential: 4 KiB in 102 + 300 + 3,500/64 us each.
        programs_at_once: 22,
        // Derived from 48,000 reads/s.
        t_command: Duration::from_nanos(20_833),
        read_bytes_per_second: 300 * MB,
        // SAS at 6 Gb/s, 8b/10b; the manual's "maximum burst transfer rate".
        write_bytes_per_second: 600 * MB,
        // As the NVMe drive's: not published.
        t_firmware: Duration::from_micros(20),
        // Not published. Derived: some hundredths of a second of writes.
        buffer_bytes: 4 * KIB * KIB,
    };

    /// Its 100 GB model (ST100FX0002, same table: 48,000 and 8,000/s, 300 and 100 MB/s):
    /// the same parts with half the dies and half the programs at once.
    pub const SLC_SAS_100: Flash = Flash {
        name: "SLC SAS 100 GB (2011)",
        capacity_bytes: 100 * GB,
        dies_per_channel: 1,
        programs_at_once: 11,
        ..Flash::SLC_SAS_200
    };

    /// A present-day TLC drive with NVMe: Samsung PM9A3, U.2, 7.68 TB, PCIe 4.0 x4, 128
    /// layer V-NAND (figures of its announcement, 2020: 4 KiB random 900,000 reads/s and
    /// 200,000 writes/s, sequential 6,500 and 3,500 MB/s).
    pub const TLC_NVME_7680: Flash = Flash {
        name: "TLC NVMe 7.68 TB",
        capacity_bytes: 7_680 * GB,
        // Derived: 128 dies of 512 Gb (64 GiB) hold 8.796 TB; 8.796 / 7.68 - 1.
        over_provisioning: 0.145,
        // Derived: 8 channels times 16 dies; the number of dies from the capacity.
        channels: 8,
        dies_per_channel: 16,
        // 1.4 Gb/s a pin, 8 pins: published for V-NAND of the generation before.
        channel_bytes_per_second: 1_400 * MB,
        // Two planes of 16 KiB pages. Derived: usual for the generation.
        page_bytes: 16 * KIB,
        program_bytes: 32 * KIB,
        // Derived: 128 layers, 4 strings, 3 pages a cell.
        programs_per_block: 1_536,
        // 45 us and 450 us: Samsung's announcement of this V-NAND (2019), as upper bounds.
        t_read: Duration::from_micros(45),
        t_program: Duration::from_micros(450),
        // Not published: that of the SLC datasheet above; it weighs half a per cent.
        t_erase: Duration::from_micros(3_500),
        // Derived: a program is a series of pulses, each verified, and is left between two;
        // with about twenty of them a suspension takes 20 us.
        suspend: Some(Duration::from_micros(20)),
        // Derived from 3,500 MB/s sequential: 32 KiB in 23 + 450 + 3,500/1,536 us each.
        programs_at_once: 51,
        // Derived from 900,000 reads/s.
        t_command: Duration::from_nanos(1_111),
        read_bytes_per_second: 6_500 * MB,
        // PCIe 4.0 x4 carries 7.9 GB/s; taken as fast as it reads. Derived.
        write_bytes_per_second: 6_500 * MB,
        // Derived: a write into a protected buffer is all firmware and interface, and
        // takes 21 us at queue depth 1 in the datasheet of the Micron 9200.
        t_firmware: Duration::from_micros(20),
        // Not published. Derived: some milliseconds of writes, what capacitors can save.
        buffer_bytes: 16 * KIB * KIB,
    };
}
