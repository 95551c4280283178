//! `boot-storm`: VMs that start at the same time.
//!
//! Two published measurements of a Windows 7 boot agree well enough to make one load:
//! - 500 to 600 MB are read and 20 to 30 MB written in some 70,000 operations within 2 to
//!   3 minutes, 8 KB each on average (ThinScale, "ThinIO facts and figures, Part 2: The
//!   Bootstorm chestnut", 2014);
//! - 62,000 operations in 330 s on the drive of a laptop, 188 a second, 16 % of them
//!   writes (H. Klein, "Remarks on Windows Disk and File IO During System Boot", 2013).
//!
//! So 84 % are reads, and sizes are 8 KiB on average: of eight operations six have 4 KiB,
//! one 8 and one 32. Chosen here:
//! - **Order**: 80 % random, the rest in runs; many small files, read whole.
//! - **Outstanding: 2** per VM. A boot waits for what it reads, so it is a closed loop;
//!   188 a second on a drive that takes about 10 ms for a random access are two under way
//!   by Little's law.
//! - **VMs**: eight, the most that the reference clones at once, each with a system disk
//!   of 50 GB and idle before. Places are uniform.
//!
//! The load does not end by itself: a boot is over after [`OPERATIONS_PER_BOOT`].

use super::{Compute, DiskProfile, Entry, Limits, Mix, Pacing, Profile, Stream, VmProfile};

/// The name of this profile.
pub const NAME: &str = "boot-storm";

/// What one VM does until it is up.
pub const OPERATIONS_PER_BOOT: u64 = 70_000;

const VMS: usize = 8;

const KIB: u32 = 1024;

/// The profiles of this module.
pub(super) const ENTRIES: &[Entry] = &[Entry {
    name: NAME,
    summary: "8 VMs that boot: 8 KiB on average, 84 % reads, 80 % random, 2 outstanding each",
    make: |_| profile(),
}];

fn profile() -> Profile {
    let mut sizes = vec![4 * KIB; 6];
    sizes.extend([8 * KIB, 32 * KIB]);
    let mix = Mix {
        sizes,
        random_percent: 80,
        read_percent: 84,
    };
    let pacing = Pacing::Closed { outstanding: 2 };
    let vm = VmProfile {
        name: String::new(),
        role: "boot".into(),
        compute: Compute::UNTOLD,
        disks: vec![DiskProfile::gigabytes(50)],
        streams: vec![Stream::alone(mix, pacing, &[1])],
    };
    Profile {
        name: NAME.into(),
        vms: vm.copies("VM", VMS),
        limits: Limits::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_reads_and_writes_what_was_measured() {
        let mix = profile().vms.remove(0).streams.remove(0).mix;
        let mean = mix.sizes.iter().sum::<u32>() / mix.sizes.len() as u32;
        assert_eq!(mean, 8 * KIB);
        let all = OPERATIONS_PER_BOOT * u64::from(mean) / 1_000_000;
        assert!((520..=630).contains(&all), "{all} MB");
    }
}
