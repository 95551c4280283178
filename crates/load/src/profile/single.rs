//! One VM, one disk, one kind of I/O: for benchmarks and path studies.
//!
//! They run as a closed loop (16 outstanding, as in the published network path
//! study) unless the caller sets a depth or a rate.

use super::{DiskProfile, Limits, Mix, Pacing, Profile, VmProfile};

const KIB: u32 = 1024;

/// Outstanding operations when the caller says nothing.
const OUTSTANDING: usize = 16;

/// name, size in bytes, random %, read %
const ROWS: &[(&str, u32, u32, u32)] = &[
    ("rand-4k-read", 4 * KIB, 100, 100),
    ("rand-4k-write", 4 * KIB, 100, 0),
    ("rand-8k-67", 8 * KIB, 100, 67),
    ("rand-8k-90", 8 * KIB, 100, 90),
    ("seq-read-256k", 256 * KIB, 0, 100),
    ("seq-read-1m", 1024 * KIB, 0, 100),
    ("seq-write-64k", 64 * KIB, 0, 0),
    ("seq-write-1m", 1024 * KIB, 0, 0),
];

/// The names of the profiles of this module.
pub const NAMES: [&str; 8] = [
    "rand-4k-read",
    "rand-4k-write",
    "rand-8k-67",
    "rand-8k-90",
    "seq-read-256k",
    "seq-read-1m",
    "seq-write-64k",
    "seq-write-1m",
];

/// The profile called `name`, or `None` when it is not one of these.
pub fn profile(name: &str) -> Option<Profile> {
    let &(name, size, random_percent, read_percent) = ROWS.iter().find(|row| row.0 == name)?;
    let vm = VmProfile {
        name: "VM01".into(),
        role: name.into(),
        mix: Mix {
            sizes: vec![size],
            random_percent,
            read_percent,
        },
        pacing: Pacing::Closed {
            outstanding: OUTSTANDING,
        },
        disks: vec![DiskProfile {
            nominal_bytes: 300_000_000_000,
            weight: 1,
        }],
        outstanding_max: OUTSTANDING,
    };
    Some(Profile {
        name: name.into(),
        vms: vec![vm],
        limits: Limits::default(),
    })
}

impl Profile {
    /// Every VM as a closed loop of `outstanding` operations.
    pub fn with_depth(mut self, outstanding: usize) -> Profile {
        for vm in &mut self.vms {
            vm.pacing = Pacing::Closed { outstanding };
            vm.outstanding_max = outstanding;
        }
        self
    }

    /// Every VM as an open loop of `per_second` operations on average, with at
    /// most `outstanding_max` under way.
    pub fn with_rate(mut self, per_second: f64, outstanding_max: usize) -> Profile {
        for vm in &mut self.vms {
            vm.pacing = Pacing::Open { per_second };
            vm.outstanding_max = outstanding_max;
        }
        self
    }

    /// One VM of this profile for each of `count` targets (VM01, VM02, …), each
    /// the same. Does nothing to a profile of several VMs.
    pub fn repeated(mut self, count: usize) -> Profile {
        if let [vm] = self.vms.as_slice() {
            let vm = vm.clone();
            let name = |index| format!("VM{:02}", index + 1);
            self.vms = (0..count)
                .map(|index| VmProfile {
                    name: name(index),
                    ..vm.clone()
                })
                .collect();
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_rows_agree() {
        assert!(ROWS.iter().map(|row| row.0).eq(NAMES));
    }

    #[test]
    fn depth_and_rate_replace_the_pacing() {
        let profile = profile("rand-4k-write").unwrap();
        let deep = profile.clone().with_depth(32);
        assert_eq!(deep.vms[0].pacing, Pacing::Closed { outstanding: 32 });
        assert_eq!(deep.vms[0].outstanding_max, 32);
        let paced = profile.with_rate(50.0, 64).repeated(3);
        assert_eq!(paced.vms.len(), 3);
        assert_eq!(paced.vms[2].name, "VM03");
        assert_eq!(paced.vms[2].pacing, Pacing::Open { per_second: 50.0 });
    }
}
