//! Loads that a site file describes itself (`[[profile]]`) as workloads: one VM with one disk.

use site::plan;
use workload::locality::Locality;
use workload::profile::{Compute, DiskProfile, Limits, Mix, Pacing, Profile, Stream, VmProfile};

/// The name of the VM of such a profile.
pub const VM: &str = "vm";

/// What skew of 50 % is: none.
const NO_SKEW_PERCENT: u16 = 50;

/// The workload that the file describes.
///
/// # Errors
/// A sentence, where no generator can produce it.
pub fn profile(own: &plan::Profile) -> Result<Profile, String> {
    let vm = VmProfile {
        name: VM.to_owned(),
        role: own.name.clone(),
        compute: Compute::UNTOLD,
        disks: vec![DiskProfile {
            nominal_bytes: own.disk_bytes,
        }],
        streams: own.streams.iter().map(stream).collect(),
    };
    let (min, disk) = (vm.disk_bytes_min(), own.disk_bytes);
    if disk < min {
        return Err(format!(
            "profile {}: a disk of {disk} bytes, too small for its operations: it needs {min}",
            own.name
        ));
    }
    let profile = Profile {
        name: own.name.clone(),
        vms: vec![vm],
        limits: Limits::default(),
    };
    profile.check().map(|()| profile)
}

fn stream(own: &plan::Stream) -> Stream {
    let repeated = own.sizes.iter();
    let repeated = repeated.flat_map(|(bytes, share)| (0..*share).map(|_| *bytes));
    let mix = Mix {
        sizes: repeated.collect(),
        random_percent: u32::from(own.random_percent),
        read_percent: u32::from(own.read_percent),
    };
    let pacing = Pacing::Open {
        per_second: own.per_second,
    };
    let locality = match own.hot_percent {
        NO_SKEW_PERCENT => Locality::Uniform,
        hot => Locality::SelfSimilar {
            hot_percent: u32::from(hot),
            host_keeps_percent: 0,
            drift: None,
        },
    };
    Stream {
        locality,
        active_percent: u32::from(own.active_percent),
        outstanding_max: usize::from(own.outstanding),
        ..Stream::alone(mix, pacing, &[1]).named(&own.name)
    }
}
