//! `ecommerce20`: a medium e-commerce block of 20 VMs.
//!
//! Applications, rates, mixes and volumes are those of the published reference
//! architecture. Its rows add up to 8750 operations per second, its text says 8350; the
//! rows are taken. The whole block is scaled by one common factor (`--rate-scale`) until
//! the mean response time of the random I/O meets 20 ms, which is a limit of the profile
//! ([`Limits::random_mean`]); blocks are then added. Published runs last 8 hours.
//!
//! Chosen here:
//! - **Rates** are Poisson arrivals, with at most 64 operations under way in a stream.
//! - **Volumes**: several of the same kind get equal shares. The system disks get
//!   nothing: the planned rates are those of the applications.
//! - **"70/30"** is 70 % reads. The mail server's "50/50 random" is random with half
//!   reads.
//! - **Web servers**: the first four have 8 KiB, the last four 32 KiB.
//! - **As a closed network** (`ecommerce20-closed`): threads in the place of rates, by the rule of
//!   [`super::closed`], in which a log is what transactions end with.
//! - Random I/O is uniform, and the VMs have of their hosts what [`Compute::UNTOLD`] says.

use super::closed::closed;
use super::{
    Compute, DiskProfile, Entry, Limits, MEAN_LATENCY_LIMIT, Mix, Pacing, Profile, Stream,
    VmProfile,
};

const NAME: &str = "ecommerce20";

/// The profiles of this module.
pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: NAME,
        summary: "20 VMs of a shop: OLTP, mail, web, within 20 ms over all random I/O; 8750/s",
        make: |_| profile(),
    },
    Entry {
        name: "ecommerce20-closed",
        summary: "the shop as threads that wait: 8750/s at 20 ms, 13125/s at 0 ms",
        make: |name| closed(name, profile()),
    },
];

/// What one of the streams does to the VM's volumes of one kind.
struct Work {
    name: &'static str,
    per_second: f64,
    kib: u32,
    random_percent: u32,
    read_percent: u32,
    /// So many volumes of so many gigabytes.
    volumes: (usize, u64),
}

struct Row {
    name: &'static str,
    role: &'static str,
    copies: usize,
    work: &'static [Work],
}

/// Random I/O on volumes of a kind.
const fn random(per_second: f64, kib: u32, read_percent: u32, volumes: (usize, u64)) -> Work {
    Work {
        name: "data",
        per_second,
        kib,
        random_percent: 100,
        read_percent,
        volumes,
    }
}

/// Sequential writes of 8 KiB.
const fn log(per_second: f64, volumes: (usize, u64)) -> Work {
    Work {
        name: "log",
        per_second,
        kib: 8,
        random_percent: 0,
        read_percent: 0,
        volumes,
    }
}

/// Every VM has one of these in front.
const SYSTEM_GIGABYTES: u64 = 50;

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row { name: "DC", role: "directory", copies: 1,
          work: &[random(30.0, 8, 70, (1, 200))] },
    Row { name: "MAIL", role: "mail server", copies: 1,
          work: &[random(500.0, 32, 50, (4, 310)), log(200.0, (4, 30))] },
    Row { name: "OLTP", role: "OLTP database", copies: 4,
          work: &[random(1200.0, 8, 70, (4, 125)), log(300.0, (1, 50))] },
    Row { name: "SPS", role: "SharePoint", copies: 1,
          work: &[random(1000.0, 8, 70, (1, 300))] },
    Row { name: "WEB", role: "web server", copies: 4,
          work: &[random(100.0, 8, 100, (1, 300))] },
    Row { name: "WEB", role: "web server", copies: 4,
          work: &[random(100.0, 32, 100, (1, 300))] },
    Row { name: "MW", role: "middleware", copies: 4,
          work: &[random(30.0, 8, 70, (1, 300))] },
    Row { name: "APP", role: "web 2.0", copies: 1,
          work: &[random(100.0, 8, 100, (1, 300))] },
];

fn profile() -> Profile {
    let mut vms: Vec<VmProfile> = Vec::new();
    for row in ROWS {
        let vm = vm(row);
        for _ in 0..row.copies {
            let same = vms.iter().filter(|other| other.role == row.role).count();
            vms.push(VmProfile {
                name: format!("{}{:02}", row.name, same + 1),
                ..vm.clone()
            });
        }
    }
    Profile {
        name: NAME.into(),
        vms,
        limits: Limits {
            random_mean: Some(MEAN_LATENCY_LIMIT),
            ..Limits::default()
        },
    }
}

fn vm(row: &Row) -> VmProfile {
    let mut disks = vec![DiskProfile::gigabytes(SYSTEM_GIGABYTES)];
    for work in row.work {
        let (count, gigabytes) = work.volumes;
        disks.extend(vec![DiskProfile::gigabytes(gigabytes); count]);
    }
    let mut streams = Vec::new();
    let mut first = 1;
    for work in row.work {
        let own = first..first + work.volumes.0;
        let weights: Vec<u32> = (0..disks.len())
            .map(|disk| u32::from(own.contains(&disk)))
            .collect();
        let mix = Mix::new(work.kib * 1024, work.random_percent, work.read_percent);
        let pacing = Pacing::Open {
            per_second: work.per_second,
        };
        streams.push(Stream::alone(mix, pacing, &weights).named(work.name));
        first = own.end;
    }
    VmProfile {
        name: row.name.into(),
        role: row.role.into(),
        compute: Compute::UNTOLD,
        disks,
        streams,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published table, row by row: VMs, operations per second and VM, bytes of all
    /// volumes but the system disk's.
    #[test]
    fn the_table_adds_up() {
        let profile = profile();
        let mut of_role: Vec<(&str, usize, f64, u64)> = Vec::new();
        for vm in &profile.vms {
            let data: u64 = vm.disks[1..].iter().map(|disk| disk.nominal_bytes).sum();
            match of_role.iter_mut().find(|row| row.0 == vm.role) {
                Some(row) => {
                    assert_eq!((row.2, row.3), (vm.per_second(), data / 1_000_000_000));
                    row.1 += 1;
                }
                None => of_role.push((&vm.role, 1, vm.per_second(), data / 1_000_000_000)),
            }
        }
        let expected = [
            ("directory", 1, 30.0, 200),
            ("mail server", 1, 700.0, 4 * 310 + 4 * 30),
            ("OLTP database", 4, 1500.0, 4 * 125 + 50),
            ("SharePoint", 1, 1000.0, 300),
            ("web server", 8, 100.0, 300),
            ("middleware", 4, 30.0, 300),
            ("web 2.0", 1, 100.0, 300),
        ];
        assert_eq!(of_role, expected);
        assert_eq!((profile.vms.len(), profile.per_second()), (20, 8750.0));
        let sizes = |vm: &VmProfile| vm.bytes_max();
        let large = profile.vms.iter().filter(|vm| vm.name.starts_with("WEB"));
        assert_eq!(large.filter(|vm| sizes(vm) == 32 << 10).count(), 4);
    }

    #[test]
    fn logs_are_on_their_own_volumes_and_count_for_no_random_mean() {
        let mail = profile().role("MAIL01").cloned().unwrap();
        let [data, log] = mail.streams.as_slice() else {
            panic!("{:?}", mail.streams)
        };
        assert_eq!(data.weights, [0, 1, 1, 1, 1, 0, 0, 0, 0]);
        assert_eq!(log.weights, [0, 0, 0, 0, 0, 1, 1, 1, 1]);
        assert!(data.is_random() && !log.is_random());
        assert_eq!((data.mix.read_percent, log.mix.read_percent), (50, 0));
        assert_eq!(profile().limits.random_mean, Some(MEAN_LATENCY_LIMIT));
    }
}
