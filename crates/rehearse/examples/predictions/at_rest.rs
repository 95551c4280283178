//! Volumes of a site whose VMs do nothing: the space of thin volumes, and the time that the array
//! takes to clear them.

use super::run::Run;
use base::VolumeOffset;
use engine::{Volume, World};
use model::migration::MEMORY_GB;
use rehearse::parts::world::RigWorld;
use rehearse::plan::profiles::shipped;
use rehearse::rig::Rig;
use site::Provisioning;

/// A volume of so many GB in the first pool of a site, beside what is there.
fn volume(rig: &Rig, gigabytes: u64, provisioning: Provisioning) -> Option<Volume<RigWorld>> {
    let pool = rig.pools.first()?;
    let made = pool.make_volume(provisioning, "at-rest", gigabytes * MEMORY_GB);
    rig.finish(made).ok()?.ok()
}

/// Gigabytes that a thin volume of `gigabytes` holds with these files, one behind the other.
pub fn held_gb(run: Run, gigabytes: u64, files: &[u64]) -> Option<f64> {
    let rig = Rig::build(&run.plan().ok()?, 1, &shipped).ok()?;
    let volume = volume(&rig, gigabytes, Provisioning::Thin)?;
    let mut at = 0;
    for file in files {
        let end = at + file * MEMORY_GB;
        rig.finish(volume.lay_out(at..end)).ok()?.ok()?;
        at = end;
    }
    Some(volume.info().mapped_bytes as f64 / MEMORY_GB as f64)
}

/// Seconds until the array answers that so many gigabytes, which were written before, read as
/// zeros: a thick volume keeps its pages, a thin one gives them back.
pub fn cleared_s(run: Run, gigabytes: u64, provisioning: Provisioning) -> Option<f64> {
    let rig = Rig::build(&run.plan().ok()?, 1, &shipped).ok()?;
    let volume = volume(&rig, gigabytes, provisioning)?;
    let bytes = gigabytes * MEMORY_GB;
    rig.finish(volume.lay_out(0..bytes)).ok()?.ok()?;
    let began = rig.world.now();
    rig.finish(volume.clear(VolumeOffset(0), bytes))
        .ok()?
        .ok()?;
    Some(rig.world.now().since(began).as_secs_f64())
}
