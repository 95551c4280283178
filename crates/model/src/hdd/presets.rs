//! The drives that sites are made of, by class, every figure with its source.
//!
//! "Manual" is the maker's product manual. What no manual at hand prints is
//! derived here and says from what.

use super::{Hdd, SeekPoints};
use std::time::Duration;

const fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

/// Access times with and without controller overhead differ by 0.2 ms for both
/// reads and writes: Savvio 10K.4 manual (100539221), 4.2.1; Constellation.2
/// manual (100620418), 5.2.1; Savvio manual (ST973401SS), 4.2.1.
const OVERHEAD: Duration = us(200);

/// "Approximately 13,000 kbytes can be used as a cache": Cheetah 15K.7 manual
/// (100516226), 4.5. Taken for the other drives of the same 16 MB too.
const CACHE_BYTES: u64 = 13_000 * 1000;

/// One segment of the buffer. The number of segments is not printed; assumed to
/// be 16 equal ones.
const READ_AHEAD_BYTES: u64 = CACHE_BYTES / 16;

/// "SAS Interface maximum instantaneous transfer rate 600 Mbytes/sec per port":
/// Cheetah 15K.7 manual, 4.2.3; the others have the same SAS 6 Gb/s interface.
const INTERFACE_BYTES_PER_S: u64 = 600_000_000;

/// Not printed. Linear zones have the same means with any count above a few.
const ZONES: u32 = 24;

/// Our assumption for commands that a SAS drive reorders at once.
const TAGS: usize = 128;

/// Commands that a SATA drive can have at once: a tag of native command queuing has five
/// bits (Serial ATA, READ and WRITE FPDMA QUEUED).
const SATA_TAGS: usize = 32;

/// What a seek takes more or less than the drive reckons, at most, in per cent of a
/// revolution. No manual prints it. Chosen once for all SAS drives, so that the gain of
/// deep queues is what is published: more than double at 32 and over, and above 400 random
/// reads per second for a 10k drive, which it does with 128. The deviation is then 6 % of a revolution.
const SEEK_ERROR_PERCENT: u32 = 15;

/// The same of SATA drives, which gain "nearly 100 %" of their 32 tags. Here they gain 124 %:
/// a larger error changes little, as an order by seeks alone gains as much.
const SATA_SEEK_ERROR_PERCENT: u32 = 40;

/// That part of a revolution.
const fn part_of_revolution(rpm: u32, percent: u32) -> Duration {
    Duration::from_nanos(60_000_000_000 / rpm as u64 * percent as u64 / 100)
}

/// Our choice: far below the 30 s and more that hosts wait for a command, and so
/// long that few reach it with a full queue.
const AGE_LIMIT: Duration = Duration::from_secs(2);

impl Hdd {
    /// SAS, 15,000 rpm, 3.5 inch, 600 GB, after the Seagate Cheetah 15K.7
    /// (ST3600057SS, manual 100516226).
    pub const SAS_15K: Hdd = Hdd {
        name: "SAS 15k",
        capacity_bytes: 600_000_000_000,
        rpm: 15_000,
        // Models of 300, 450 and 600 GB: one disc of two surfaces is 150 GB.
        heads: 8,
        zones: ZONES,
        // Manual, 4.2.3: sustainable 122 to 204 MB/s.
        outer_bytes_per_s: 204_000_000,
        inner_bytes_per_s: 122_000_000,
        // Average and single track as commonly given for it, not yet checked against
        // the manual's 4.2.1, which was not at hand. Nor was its full stroke: the
        // Savvio 10K.4's ratio of full stroke to average for
        // reads (7.81 / 3.8), and the averages' difference more for writes.
        read_seek: SeekPoints {
            single_track: us(200),
            average: us(3_400),
            full_stroke: us(6_988),
        },
        write_seek: SeekPoints {
            single_track: us(440),
            average: us(3_900),
            full_stroke: us(7_488),
        },
        // As the write's single track: a skew must do for writes.
        switch: us(440),
        seek_error: part_of_revolution(15_000, SEEK_ERROR_PERCENT),
        overhead: OVERHEAD,
        interface_bytes_per_s: INTERFACE_BYTES_PER_S,
        cache_bytes: CACHE_BYTES,
        read_ahead_bytes: READ_AHEAD_BYTES,
        write_cache: false,
        tags: TAGS,
        age_limit: AGE_LIMIT,
    };

    /// SAS, 10,000 rpm, 2.5 inch, 600 GB, after the Seagate Savvio 10K.4
    /// (ST9600204SS, manual 100539221).
    pub const SAS_10K: Hdd = Hdd {
        name: "SAS 10k",
        rpm: 10_000,
        // Manual, 4.1: 6 heads, 677,557 bytes in a track on the average. Its
        // sustained rates were not at hand. The mean is 677,557 bytes in a
        // revolution (6 ms) and a switch; the ends have the ratio of the first
        // Savvio's internal rates (753 to 506 Mb/s, manual of ST973401SS, 4.1).
        heads: 6,
        outer_bytes_per_s: 123_550_000,
        inner_bytes_per_s: 83_020_000,
        // Manual, 4.2.1, not including controller overhead.
        read_seek: SeekPoints {
            single_track: us(300),
            average: us(3_800),
            full_stroke: us(7_810),
        },
        write_seek: SeekPoints {
            single_track: us(560),
            average: us(4_400),
            full_stroke: us(8_180),
        },
        switch: us(560),
        seek_error: part_of_revolution(10_000, SEEK_ERROR_PERCENT),
        ..Hdd::SAS_15K
    };

    /// Nearline SAS, 7,200 rpm, 2.5 inch, 1 TB, after the Seagate Constellation.2
    /// (ST91000640SS, manual 100620418).
    pub const NL_SAS_7K2: Hdd = Hdd {
        name: "NL-SAS 7.2k",
        capacity_bytes: 1_000_000_000_000,
        rpm: 7_200,
        // Manual, 5.1: 8 heads, 165,800 tracks a surface, so 753,920 bytes in a
        // track (it prints 732,998, which makes 972 GB). The mean rate is that in
        // a revolution (8.33 ms) and a switch; the ends have the ratio of the
        // printed internal rates, 163 to 84 MB/s.
        heads: 8,
        outer_bytes_per_s: 113_420_000,
        inner_bytes_per_s: 58_450_000,
        // Manual, 5.2.1, not including controller overhead.
        read_seek: SeekPoints {
            single_track: us(230),
            average: us(7_500),
            full_stroke: us(17_060),
        },
        write_seek: SeekPoints {
            single_track: us(440),
            average: us(8_500),
            full_stroke: us(18_080),
        },
        switch: us(440),
        seek_error: part_of_revolution(7_200, SEEK_ERROR_PERCENT),
        ..Hdd::SAS_15K
    };

    /// SAS, 15,000 rpm, 3.5 inch, 300 GB: the Cheetah 15K.7's model ST3300657SS, two discs
    /// of the four of [`Hdd::SAS_15K`].
    pub const SAS_15K_300: Hdd = Hdd {
        name: "SAS 15k, 300 GB",
        capacity_bytes: 300_000_000_000,
        heads: 4,
        ..Hdd::SAS_15K
    };

    /// SAS, 10,000 rpm, 2.5 inch, 300 GB. The Savvio 10K.4 has no such model: here it is one
    /// with half of the heads of [`Hdd::SAS_10K`], so its tracks are as dense and its seeks
    /// as long.
    pub const SAS_10K_300: Hdd = Hdd {
        name: "SAS 10k, 300 GB",
        capacity_bytes: 300_000_000_000,
        heads: 3,
        ..Hdd::SAS_10K
    };

    /// SAS, 10,000 rpm, 2.5 inch, 900 GB, after the Seagate Savvio 10K.5 (ST9900805SS,
    /// manual 100628561).
    pub const SAS_10K_900: Hdd = Hdd {
        name: "SAS 10k, 900 GB",
        capacity_bytes: 900_000_000_000,
        // The family has models of 300, 450, 600 and 900 GB, so a head for 150 GB.
        heads: 6,
        // As commonly given for it, not yet checked against the manual. Its seeks were
        // not at hand either: those of the 10K.4 are taken.
        outer_bytes_per_s: 168_000_000,
        inner_bytes_per_s: 93_000_000,
        ..Hdd::SAS_10K
    };

    /// SATA, 7,200 rpm, 2.5 inch, 1 TB: the mechanism of [`Hdd::NL_SAS_7K2`] behind SATA 3
    /// Gb/s, whose 8b/10b code leaves 300 MB/s.
    pub const SATA_7K2: Hdd = Hdd {
        name: "SATA 7.2k",
        tags: SATA_TAGS,
        seek_error: part_of_revolution(7_200, SATA_SEEK_ERROR_PERCENT),
        interface_bytes_per_s: 300_000_000,
        ..Hdd::NL_SAS_7K2
    };

    /// All of them, fastest first.
    pub const ALL: [&'static Hdd; 7] = [
        &Hdd::SAS_15K,
        &Hdd::SAS_15K_300,
        &Hdd::SAS_10K,
        &Hdd::SAS_10K_300,
        &Hdd::SAS_10K_900,
        &Hdd::NL_SAS_7K2,
        &Hdd::SATA_7K2,
    ];
}
