//! `hetero10`: ten VMs of a mid-size company on one array.
//!
//! vCPUs, memory, sizes, random : sequential, read : write and disks are those of
//! the published reference architecture (ten-VM heterogeneous mix), and so is that
//! each VM keeps 30 % of its vCPUs busy and holds 70 % of its memory. What it leaves
//! open is chosen here:
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
//! - **Memory** is in GiB, as hypervisors count it.
//! - **Scale-up** (`hetero10-web6`, `-web12`, `-web22`, `-web24`): so many copies of
//!   the web server and nothing else; the last has dynamic memory.
//! - **As a closed network** (`hetero10-closed`): threads in the place of rates, by the rule of
//!   [`super::closed`].
//! - **Scale-out** (`hetero10x2`): the ten VMs twice. Those of the second block,
//!   which is meant for the second pool, are called NET01-2 and so on.

use super::closed::closed;
use super::{Compute, DiskProfile, Entry, GIB, Limits, Mix, Pacing, Profile, Stream, VmProfile};

/// The name of the ten VMs.
const NAME: &str = "hetero10";

const CLOSED: &str = "hetero10-closed";

const SCALE_OUT: &str = "hetero10x2";

const SCALE_UP: &str = "hetero10-web";

/// Scale-up from so many VMs on is with dynamic memory.
const DYNAMIC_FROM: usize = 24;

/// The profiles of this module.
pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: NAME,
        summary: "ten VMs of a mid-size company: mail, OLTP, reports, files, web; 3860/s",
        make: |_| profile(),
    },
    Entry {
        name: CLOSED,
        summary: "the ten VMs as threads that wait: 3860/s at 20 ms, 5790/s at 0 ms",
        make: |name| closed(name, profile()),
    },
    Entry {
        name: SCALE_OUT,
        summary: "the ten VMs twice, one block for each of two pools; 7720/s",
        make: |_| scale_out(),
    },
    Entry {
        name: "hetero10-web6",
        summary: "6 web servers of the ten-VM mix; 600/s",
        make: scale_up,
    },
    Entry {
        name: "hetero10-web12",
        summary: "12 web servers of the ten-VM mix; 1200/s",
        make: scale_up,
    },
    Entry {
        name: "hetero10-web22",
        summary: "22 web servers of the ten-VM mix; 2200/s",
        make: scale_up,
    },
    Entry {
        name: "hetero10-web24",
        summary: "24 web servers of the ten-VM mix, with dynamic memory; 2400/s",
        make: scale_up,
    },
];

const KIB: u32 = 1024;
const SMALL: &[u32] = &[4 * KIB, 8 * KIB, 16 * KIB];
const MEDIUM: &[u32] = &[32 * KIB, 64 * KIB];
const MEDIUM_SMALL: &[u32] = &[4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB];
const LARGE: &[u32] = &[128 * KIB, 256 * KIB];

/// One line of the published table: vCPUs and GiB, (capacity GB, weight) per disk.
struct Row {
    name: &'static str,
    role: &'static str,
    host: (u32, u64),
    sizes: &'static [u32],
    random_percent: u32,
    read_percent: u32,
    per_second: f64,
    disks: &'static [(u64, u32)],
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row { name: "NET01", role: "network services", host: (2, 4), sizes: SMALL, random_percent: 80, read_percent: 80,
          per_second: 30.0, disks: &[(50, 1)] },
    Row { name: "EXCH01", role: "messaging front end", host: (4, 8), sizes: MEDIUM_SMALL, random_percent: 80, read_percent: 70,
          per_second: 100.0, disks: &[(50, 1)] },
    Row { name: "MBX01", role: "messaging back end", host: (4, 32), sizes: MEDIUM_SMALL, random_percent: 80, read_percent: 50,
          per_second: 700.0, disks: &[(60, 4), (350, 24), (350, 24), (350, 24), (350, 24)] },
    Row { name: "SQL01", role: "OLTP database", host: (4, 24), sizes: SMALL, random_percent: 100, read_percent: 66,
          per_second: 1500.0, disks: &[(50, 5), (50, 15), (80, 5), (200, 25), (200, 25), (200, 25)] },
    Row { name: "DSS01", role: "decision support", host: (4, 48), sizes: LARGE, random_percent: 0, read_percent: 95,
          per_second: 100.0, disks: &[(70, 2), (50, 3), (80, 15), (900, 80)] },
    Row { name: "FS01", role: "file server", host: (2, 16), sizes: MEDIUM, random_percent: 100, read_percent: 70,
          per_second: 200.0, disks: &[(40, 5), (1500, 95)] },
    Row { name: "SPS01", role: "content management", host: (4, 8), sizes: MEDIUM_SMALL, random_percent: 75, read_percent: 95,
          per_second: 1000.0, disks: &[(50, 1)] },
    Row { name: "LYNC01", role: "communication services", host: (2, 8), sizes: MEDIUM_SMALL, random_percent: 75, read_percent: 95,
          per_second: 30.0, disks: &[(50, 1)] },
    Row { name: "WEB01", role: "web server", host: (4, 8), sizes: MEDIUM_SMALL, random_percent: 75, read_percent: 95,
          per_second: 100.0, disks: &[(50, 1)] },
    Row { name: "WEB02", role: "web server", host: (4, 8), sizes: MEDIUM_SMALL, random_percent: 75, read_percent: 95,
          per_second: 100.0, disks: &[(50, 1)] },
];

/// The profile of the ten VMs, once each.
pub fn profile() -> Profile {
    of_vms(NAME, ROWS.iter().map(vm).collect())
}

fn scale_out() -> Profile {
    let mut vms = profile().vms;
    let second = profile().vms.into_iter().map(|vm| VmProfile {
        name: format!("{}-2", vm.name),
        ..vm
    });
    vms.extend(second);
    of_vms(SCALE_OUT, vms)
}

/// Web servers, as many as the name says.
fn scale_up(name: &str) -> Profile {
    let count = name.strip_prefix(SCALE_UP).map(str::parse);
    let Some(Ok(count)) = count else {
        unreachable!("{name} is one of the names of this module")
    };
    let Some(row) = ROWS.iter().find(|row| row.name == "WEB01") else {
        unreachable!("the table has the web server")
    };
    let mut web = vm(row);
    web.compute.dynamic_memory = count >= DYNAMIC_FROM;
    of_vms(name, web.copies("WEB", count))
}

fn of_vms(name: &str, vms: Vec<VmProfile>) -> Profile {
    Profile {
        name: name.into(),
        vms,
        limits: Limits::default(),
    }
}

fn vm(row: &Row) -> VmProfile {
    let (vcpus, memory_gib) = row.host;
    let mix = Mix {
        sizes: row.sizes.to_vec(),
        random_percent: row.random_percent,
        read_percent: row.read_percent,
    };
    let pacing = Pacing::Open {
        per_second: row.per_second,
    };
    let weights: Vec<u32> = row.disks.iter().map(|disk| disk.1).collect();
    VmProfile {
        name: row.name.into(),
        role: row.role.into(),
        compute: Compute {
            vcpus,
            memory_bytes: memory_gib * GIB,
            dynamic_memory: false,
            cpu_percent: 30,
            memory_percent: 70,
        },
        disks: row
            .disks
            .iter()
            .map(|disk| DiskProfile::gigabytes(disk.0))
            .collect(),
        streams: vec![Stream::alone(mix, pacing, &weights)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_adds_up() {
        let profile = profile();
        assert_eq!(profile.vms.len(), 10);
        assert_eq!(profile.per_second(), 3860.0);
        let disks: usize = profile.vms.iter().map(|vm| vm.disks.len()).sum();
        assert_eq!(disks, 23);
        for vm in profile.vms.iter().filter(|vm| vm.disks.len() > 1) {
            let weights: u32 = vm.streams[0].weights.iter().sum();
            assert_eq!(weights, 100, "{}: weights are per cent", vm.name);
        }
        let vcpus: u32 = profile.vms.iter().map(|vm| vm.compute.vcpus).sum();
        let memory: u64 = profile.vms.iter().map(|vm| vm.compute.memory_bytes).sum();
        assert_eq!((vcpus, memory / GIB), (34, 164));
    }

    #[test]
    fn the_variants_are_made_of_the_same_vms() {
        let two = Profile::named("hetero10x2").unwrap();
        assert_eq!((two.vms.len(), two.per_second()), (20, 7720.0));
        assert_eq!(two.vms[12].name, "MBX01-2");
        assert_eq!(two.vms[12].disks, two.vms[2].disks);
        for (count, dynamic) in [(6, false), (12, false), (22, false), (24, true)] {
            let web = Profile::named(&format!("hetero10-web{count}")).unwrap();
            assert_eq!(web.vms.len(), count);
            assert_eq!(web.per_second(), 100.0 * count as f64);
            let last = web.vms.last().unwrap();
            assert_eq!(last.name, format!("WEB{count:02}"));
            assert_eq!(last.compute.dynamic_memory, dynamic);
        }
    }
}
