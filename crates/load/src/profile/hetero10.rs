//! `hetero10`: ten VMs of a mid-size company on one array.
//!
//! Sizes, random : sequential, read : write and disks are those of the published
//! reference architecture (ten-VM heterogeneous mix). What it leaves open is
//! chosen here:
//!
//! - **Sizes inside a class** are equally likely powers of two: small 4, 8, 16
//!   KiB; medium 32, 64 KiB; medium-small all five; large 128, 256 KiB.
//! - **EXCH01** is given as 60–80 % reads: 70 % here.
//! - **Rates** are not published for this mix. Where the published planning
//!   figures of a medium e-commerce block have the same role they are used:
//!   directory 30, mail store 500 + 200, OLTP 1200 + 300, SharePoint 1000, web
//!   100, middleware 30 (for LYNC01, which is one). The other three are ours:
//!   EXCH01 100 (a front end that mostly speaks HTTP, like a web server), DSS01
//!   100 (19 MiB/s of report scans), FS01 200 (9.4 MiB/s of home folders).
//!   Together 3860 per second, what 24 fast hard drives were bought for.
//! - **Disk choice**: a VM with data volumes sends 2–5 % of its I/O to its system
//!   disk. MBX01 spreads the rest evenly over its four mailbox stores, whose logs
//!   lie on the same volume. SQL01: log 15 %, tempdb 5 %, each of three data
//!   volumes 25 %. DSS01: log 3 %, tempdb 15 %, data 80 %.

use super::{DiskProfile, Limits, Mix, Pacing, Profile, VmProfile};

/// The name of this profile.
pub const NAME: &str = "hetero10";

const KIB: u32 = 1024;
const SMALL: &[u32] = &[4 * KIB, 8 * KIB, 16 * KIB];
const MEDIUM: &[u32] = &[32 * KIB, 64 * KIB];
const MEDIUM_SMALL: &[u32] = &[4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB];
const LARGE: &[u32] = &[128 * KIB, 256 * KIB];

/// Operations a VM may have under way: what a paravirtual adapter gives a disk.
const OUTSTANDING_MAX: usize = 64;

/// One line of the published table: (capacity GB, weight) per disk.
struct Row {
    name: &'static str,
    role: &'static str,
    sizes: &'static [u32],
    random_percent: u32,
    read_percent: u32,
    per_second: f64,
    disks: &'static [(u64, u32)],
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row { name: "NET01", role: "network services", sizes: SMALL, random_percent: 80, read_percent: 80,
          per_second: 30.0, disks: &[(50, 1)] },
    Row { name: "EXCH01", role: "messaging front end", sizes: MEDIUM_SMALL, random_percent: 80, read_percent: 70,
          per_second: 100.0, disks: &[(50, 1)] },
    Row { name: "MBX01", role: "messaging back end", sizes: MEDIUM_SMALL, random_percent: 80, read_percent: 50,
          per_second: 700.0, disks: &[(60, 4), (350, 24), (350, 24), (350, 24), (350, 24)] },
    Row { name: "SQL01", role: "OLTP database", sizes: SMALL, random_percent: 100, read_percent: 66,
          per_second: 1500.0, disks: &[(50, 5), (50, 15), (80, 5), (200, 25), (200, 25), (200, 25)] },
    Row { name: "DSS01", role: "decision support", sizes: LARGE, random_percent: 0, read_percent: 95,
          per_second: 100.0, disks: &[(70, 2), (50, 3), (80, 15), (900, 80)] },
    Row { name: "FS01", role: "file server", sizes: MEDIUM, random_percent: 100, read_percent: 70,
          per_second: 200.0, disks: &[(40, 5), (1500, 95)] },
    Row { name: "SPS01", role: "content management", sizes: MEDIUM_SMALL, random_percent: 75, read_percent: 95,
          per_second: 1000.0, disks: &[(50, 1)] },
    Row { name: "LYNC01", role: "communication services", sizes: MEDIUM_SMALL, random_percent: 75, read_percent: 95,
          per_second: 30.0, disks: &[(50, 1)] },
    Row { name: "WEB01", role: "web server", sizes: MEDIUM_SMALL, random_percent: 75, read_percent: 95,
          per_second: 100.0, disks: &[(50, 1)] },
    Row { name: "WEB02", role: "web server", sizes: MEDIUM_SMALL, random_percent: 75, read_percent: 95,
          per_second: 100.0, disks: &[(50, 1)] },
];

/// The profile.
pub fn profile() -> Profile {
    Profile {
        name: NAME.into(),
        vms: ROWS.iter().map(vm).collect(),
        limits: Limits::default(),
    }
}

fn vm(row: &Row) -> VmProfile {
    let disk = |&(gigabytes, weight): &(u64, u32)| DiskProfile {
        nominal_bytes: gigabytes * 1_000_000_000,
        weight,
    };
    VmProfile {
        name: row.name.into(),
        role: row.role.into(),
        mix: Mix {
            sizes: row.sizes.to_vec(),
            random_percent: row.random_percent,
            read_percent: row.read_percent,
        },
        pacing: Pacing::Open {
            per_second: row.per_second,
        },
        disks: row.disks.iter().map(disk).collect(),
        outstanding_max: OUTSTANDING_MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_adds_up() {
        let profile = profile();
        assert_eq!(profile.vms.len(), 10);
        assert_eq!(ROWS.iter().map(|row| row.per_second).sum::<f64>(), 3860.0);
        let disks: usize = profile.vms.iter().map(|vm| vm.disks.len()).sum();
        assert_eq!(disks, 23);
        for vm in profile.vms.iter().filter(|vm| vm.disks.len() > 1) {
            let weights: u32 = vm.disks.iter().map(|disk| disk.weight).sum();
            assert_eq!(weights, 100, "{}: weights are per cent", vm.name);
        }
    }
}
