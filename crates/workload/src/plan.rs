//! The plan of a run: a profile and targets, with a place for each VM's disk.
//!
//! Targets are given to a profile in one of these ways:
//! - one per disk, in the order of the profile: each disk is a target;
//! - one per VM: a VM's disks lie one behind the other on its target, in the
//!   proportion of their published capacities;
//! - one for all: all disks of all VMs do so;
//! - any number, for a profile of one VM: one such VM on each;
//! - by name, from a site file: per VM one target or one per disk.
//!
//! Invariants of a [`Plan`]: the profile passed [`Profile::check`]; every disk of
//! the profile has a place, in its order.

use crate::profile::{Profile, VmProfile};
use crate::url::TargetUrl;
use std::time::Duration;

/// A run, ready to go.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is run, with its rates as they will be.
    pub profile: Profile,
    /// One per VM of the profile.
    pub vms: Vec<VmPlaces>,
    /// Not measured, from the start on.
    pub warmup: Duration,
    /// Measured, after the warm-up.
    pub duration: Duration,
    /// The seed of operations and data.
    pub seed: u64,
    /// Whether every disk is written once before the warm-up.
    pub fill: bool,
    /// The rate scale that was applied, for the report.
    pub rate_scale: f64,
    /// A target that is lost during the run is opened again for up to this long; zero ends
    /// the VM's part at the first loss.
    pub reconnect_for: Duration,
    /// Whether outages that end are no failure of the run, nor what was under way then.
    pub allow_outages: bool,
}

/// Where the disks of one VM lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmPlaces {
    /// One per disk of the VM.
    pub disks: Vec<DiskShare>,
}

/// A share of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskShare {
    /// The target that the disk lies on.
    pub url: TargetUrl,
    /// The disk takes the part of the target from `before` to `before + share`,
    /// both counted in `of` parts.
    pub before: u64,
    /// Parts that the disk takes; see `before`.
    pub share: u64,
    /// Parts that the whole target counts as; see `before`.
    pub of: u64,
}

/// Offsets of disks on a shared target are multiples of this many bytes.
const PLACE_GRAIN_BYTES: u64 = 1 << 20;

/// A target that several disks share is only cut on whole mebibytes if each disk
/// gets at least this many; smaller ones are cut on 4 KiB.
const COARSE_FROM_BYTES: u64 = 64 << 20;

impl DiskShare {
    fn whole(url: &TargetUrl) -> DiskShare {
        DiskShare {
            url: url.clone(),
            before: 0,
            share: 1,
            of: 1,
        }
    }

    /// First byte and size of the disk on a target of this capacity, in bytes.
    pub fn extent(&self, capacity_bytes: u64) -> (u64, u64) {
        let cut = |parts: u64| {
            let wide = u128::from(capacity_bytes) * u128::from(parts) / u128::from(self.of);
            let at = u64::try_from(wide).unwrap_or(capacity_bytes);
            let grain = if capacity_bytes / self.of.max(1) >= COARSE_FROM_BYTES {
                PLACE_GRAIN_BYTES
            } else {
                u64::from(crate::profile::IO_GRAIN_BYTES)
            };
            at - at % grain
        };
        let start = cut(self.before);
        let end = cut(self.before + self.share);
        (start, end - start)
    }
}

/// The places of the disks of `profile` on `urls`.
///
/// # Errors
/// When the number of targets fits in none of the ways of the module.
pub fn places(profile: &Profile, urls: &[TargetUrl]) -> Result<Vec<VmPlaces>, String> {
    let vms = &profile.vms;
    let disks: usize = vms.iter().map(|vm| vm.disks.len()).sum();
    if urls.len() == disks {
        let mut urls = urls.iter();
        let of_vm = |vm: &VmProfile| {
            urls.by_ref()
                .take(vm.disks.len())
                .map(DiskShare::whole)
                .collect()
        };
        return Ok(vms
            .iter()
            .map(of_vm)
            .map(|disks| VmPlaces { disks })
            .collect());
    }
    if urls.len() == vms.len() {
        return Ok(vms
            .iter()
            .zip(urls)
            .map(|(vm, url)| side_by_side(&[vm], url).remove(0))
            .collect());
    }
    if let [url] = urls {
        let all: Vec<&VmProfile> = vms.iter().collect();
        return Ok(side_by_side(&all, url));
    }
    Err(format!(
        "profile {} takes 1 target (shared by all), {} (one per VM) or {disks} (one per disk); \
         {} were given",
        profile.name,
        vms.len(),
        urls.len()
    ))
}

/// The places of the disks of one VM on the LUNs that a site gives it.
///
/// # Errors
/// When there is neither one LUN nor one per disk.
pub fn places_of_vm(vm: &VmProfile, urls: &[TargetUrl]) -> Result<VmPlaces, String> {
    if urls.len() == vm.disks.len() {
        return Ok(VmPlaces {
            disks: urls.iter().map(DiskShare::whole).collect(),
        });
    }
    match urls {
        [url] => Ok(side_by_side(&[vm], url).remove(0)),
        _ => Err(format!(
            "VM {}: its role takes 1 LUN (shared by its disks) or {} (one per disk); its target \
             has {}",
            vm.name,
            vm.disks.len(),
            urls.len()
        )),
    }
}

/// All disks of `vms` one behind the other on one target.
fn side_by_side(vms: &[&VmProfile], url: &TargetUrl) -> Vec<VmPlaces> {
    // Megabytes keep the parts small; a disk has at least one.
    let parts = |bytes: u64| (bytes / 1_000_000).max(1);
    let of = vms
        .iter()
        .flat_map(|vm| &vm.disks)
        .map(|disk| parts(disk.nominal_bytes))
        .sum();
    let mut before = 0;
    let mut places = Vec::with_capacity(vms.len());
    for vm in vms {
        let mut disks = Vec::with_capacity(vm.disks.len());
        for disk in &vm.disks {
            let share = parts(disk.nominal_bytes);
            disks.push(DiskShare {
                url: url.clone(),
                before,
                share,
                of,
            });
            before += share;
        }
        places.push(VmPlaces { disks });
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::hetero10;

    fn urls(count: usize) -> Vec<TargetUrl> {
        (0..count)
            .map(|index| format!("file:/t{index}").parse().unwrap())
            .collect()
    }

    #[test]
    fn one_target_per_disk_is_whole() {
        let places = places(&hetero10::profile(), &urls(23)).unwrap();
        assert_eq!(places[2].disks.len(), 5);
        assert_eq!(places[2].disks[0].url.to_string(), "file:/t2");
        assert_eq!(places[2].disks[0].extent(12345 * 4096), (0, 12345 * 4096));
    }

    #[test]
    fn disks_on_a_shared_target_do_not_overlap_and_fill_it() {
        for count in [1, 10] {
            let places = places(&hetero10::profile(), &urls(count)).unwrap();
            let capacity = 3 << 30;
            for url in urls(count) {
                let mut end = 0;
                let here = places
                    .iter()
                    .flat_map(|vm| &vm.disks)
                    .filter(|disk| disk.url == url);
                for disk in here {
                    let (start, bytes) = disk.extent(capacity);
                    assert_eq!(start, end, "no gap, no overlap");
                    assert!(bytes > 0 && start % 4096 == 0 && bytes % 4096 == 0);
                    end = start + bytes;
                }
                assert_eq!(end, capacity);
            }
        }
    }

    #[test]
    fn a_number_of_targets_that_fits_nothing_is_refused() {
        let refused = places(&hetero10::profile(), &urls(7)).unwrap_err();
        assert!(
            refused.contains("1 target") && refused.contains("23"),
            "{refused}"
        );
        let mailbox = &hetero10::profile().vms[2];
        let refused = places_of_vm(mailbox, &urls(3)).unwrap_err();
        assert!(
            refused.contains("MBX01") && refused.contains('5'),
            "{refused}"
        );
        assert_eq!(places_of_vm(mailbox, &urls(1)).unwrap().disks.len(), 5);
    }
}
