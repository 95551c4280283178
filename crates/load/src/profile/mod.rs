//! Workload profiles: what each VM asks of its disks, as data.
//!
//! A profile is a list of VMs. Each VM has a mix (sizes, share of random I/O,
//! share of reads), a pacing and its disks with the share of I/O that each gets.
//! Nothing here draws a number or reads a clock: [`crate::generator`] turns a
//! VM of a profile into its stream of operations.
//!
//! Invariants, held by [`Profile::check`]: percentages are at most 100, sizes are
//! multiples of 4 KiB and at most [`IO_BYTES_MAX`], every VM has a disk, weights
//! do not sum to zero, names are unique.

pub mod hetero10;
pub mod single;

use std::time::Duration;

/// The largest I/O a profile may ask for, in bytes.
pub const IO_BYTES_MAX: u32 = 1 << 20;

/// Sizes and offsets are multiples of this many bytes.
pub const IO_GRAIN_BYTES: u32 = 4096;

/// Mean latency a VM's reads and its writes stay below, unless told otherwise:
/// the planning limit of the published reference architectures.
pub const MEAN_LATENCY_LIMIT: Duration = Duration::from_millis(20);

/// A named workload of one or more VMs.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The name it is asked for by.
    pub name: String,
    /// The VMs, in the order in which targets are given to them.
    pub vms: Vec<VmProfile>,
    /// What its KPIs are held against.
    pub limits: Limits,
}

/// One VM of a profile.
#[derive(Clone, Debug, PartialEq)]
pub struct VmProfile {
    /// Its name, unique in the profile.
    pub name: String,
    /// What the VM stands for, for people.
    pub role: String,
    /// What its operations look like.
    pub mix: Mix,
    /// When they start.
    pub pacing: Pacing,
    /// Its disks, the system disk first.
    pub disks: Vec<DiskProfile>,
    /// At most this many operations are under way at a time; further ones wait
    /// and keep their intended start times.
    pub outstanding_max: usize,
}

/// What operations look like.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// Sizes in bytes; each equally likely.
    pub sizes: Vec<u32>,
    /// Per cent of operations at a random place; the others continue where the
    /// VM's previous operation on that disk ended.
    pub random_percent: u32,
    /// Per cent of operations that read; the others write.
    pub read_percent: u32,
}

/// When operations start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// Poisson arrivals: independent of how fast the target answers.
    Open {
        /// Mean operations per second.
        per_second: f64,
    },
    /// The next operation starts when one of `outstanding` completes.
    Closed {
        /// Operations kept under way.
        outstanding: usize,
    },
}

/// One disk of a VM.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskProfile {
    /// The capacity in the published configuration, in bytes. Only its ratio to
    /// the VM's other disks counts, and only where disks share one target.
    pub nominal_bytes: u64,
    /// This disk's share of the VM's operations, relative to its other disks.
    pub weight: u32,
}

/// What KPIs are held against, per VM.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Mean response time of reads.
    pub read_mean: Duration,
    /// Mean response time of writes.
    pub write_mean: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            read_mean: MEAN_LATENCY_LIMIT,
            write_mean: MEAN_LATENCY_LIMIT,
        }
    }
}

impl Mix {
    /// The largest size in bytes.
    pub fn bytes_max(&self) -> u32 {
        self.sizes.iter().copied().max().unwrap_or(0)
    }

    /// Whether any operation writes.
    pub fn writes(&self) -> bool {
        self.read_percent < 100
    }
}

impl Profile {
    /// The names that [`Profile::named`] knows.
    pub fn names() -> Vec<&'static str> {
        let mut names = vec![hetero10::NAME];
        names.extend(single::NAMES);
        names
    }

    /// The profile called `name`, or `None`.
    pub fn named(name: &str) -> Option<Profile> {
        if name == hetero10::NAME {
            Some(hetero10::profile())
        } else {
            single::profile(name)
        }
    }

    /// Every rate multiplied by `factor`. Closed loops stay as they are.
    pub fn scaled(mut self, factor: f64) -> Profile {
        for vm in &mut self.vms {
            if let Pacing::Open { per_second } = &mut vm.pacing {
                *per_second *= factor;
            }
        }
        self
    }

    /// The VM that stands for `role`: by its name, or the only one there is.
    pub fn role(&self, role: &str) -> Option<&VmProfile> {
        match self.vms.as_slice() {
            [only] => Some(only),
            vms => vms.iter().find(|vm| vm.name == role),
        }
    }

    /// Whether any VM writes.
    pub fn writes(&self) -> bool {
        self.vms.iter().any(|vm| vm.mix.writes())
    }

    /// Refuses what no generator can produce.
    ///
    /// # Errors
    /// The first broken invariant of the module, as a sentence.
    pub fn check(&self) -> Result<(), String> {
        for (index, vm) in self.vms.iter().enumerate() {
            vm.check()
                .map_err(|what| format!("profile {}: VM {}: {what}", self.name, vm.name))?;
            if self.vms[..index].iter().any(|other| other.name == vm.name) {
                return Err(format!(
                    "profile {}: two VMs are called {}",
                    self.name, vm.name
                ));
            }
        }
        if self.vms.is_empty() {
            return Err(format!("profile {}: it has no VM", self.name));
        }
        Ok(())
    }
}

impl VmProfile {
    fn check(&self) -> Result<(), String> {
        let sizes = &self.mix.sizes;
        let fits =
            |&size: &u32| size > 0 && size <= IO_BYTES_MAX && size.is_multiple_of(IO_GRAIN_BYTES);
        if sizes.is_empty() || !sizes.iter().all(fits) {
            return Err(format!(
                "I/O sizes {sizes:?} must be multiples of {IO_GRAIN_BYTES} up to {IO_BYTES_MAX}"
            ));
        }
        if self.mix.random_percent > 100 || self.mix.read_percent > 100 {
            return Err("a share is above 100 %".into());
        }
        if self
            .disks
            .iter()
            .map(|disk| u64::from(disk.weight))
            .sum::<u64>()
            == 0
        {
            return Err("no disk gets any I/O".into());
        }
        if self.outstanding_max == 0 {
            return Err("it may have no operation under way".into());
        }
        match self.pacing {
            Pacing::Open { per_second } if !(per_second.is_finite() && per_second > 0.0) => {
                Err(format!("a rate of {per_second} per second"))
            }
            Pacing::Closed { outstanding: 0 } => Err("a queue depth of 0".into()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_profile_holds_its_invariants() {
        for name in Profile::names() {
            let profile = Profile::named(name).unwrap();
            assert_eq!(profile.check(), Ok(()));
            assert_eq!(profile.name, name);
        }
        assert_eq!(Profile::named("nonsense"), None);
    }

    #[test]
    fn a_rate_that_is_no_rate_is_refused() {
        for factor in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let refused = hetero10::profile().scaled(factor).check().unwrap_err();
            assert!(
                refused.contains("NET01") && refused.contains("rate"),
                "{refused}"
            );
        }
    }

    #[test]
    fn broken_mixes_are_refused_by_name() {
        let whole = single::profile("rand-4k-read").unwrap();
        let broken = |change: &dyn Fn(&mut VmProfile)| {
            let mut profile = whole.clone();
            change(&mut profile.vms[0]);
            profile.check().unwrap_err()
        };
        assert!(broken(&|vm| vm.mix.sizes = vec![512]).contains("multiples of 4096"));
        assert!(broken(&|vm| vm.mix.sizes.clear()).contains("I/O sizes"));
        assert!(broken(&|vm| vm.mix.read_percent = 101).contains("above 100"));
        assert!(broken(&|vm| vm.disks.clear()).contains("no disk"));
        assert!(broken(&|vm| vm.pacing = Pacing::Closed { outstanding: 0 }).contains("depth"));
        let twice = Profile {
            vms: vec![whole.vms[0].clone(); 2],
            ..whole.clone()
        };
        assert!(twice.check().unwrap_err().contains("two VMs"));
    }
}
