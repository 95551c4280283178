//! How disks are copied, and the volume that a copy goes to.

use crate::parts::disk::DiskRig;
use crate::parts::pool::PoolRig;
use crate::parts::world::RigWorld;
use engine::Volume;
use site::plan::HostCopy;

/// How disks are copied.
#[derive(Clone, Copy)]
pub(super) struct CopyMethod {
    /// By the host, and how; else by the array.
    pub by_host: Option<HostCopy>,
    /// VMs that a host works on at once.
    pub at_once: usize,
    /// Of the event, for names of volumes.
    pub number: usize,
}

impl CopyMethod {
    pub fn who(&self) -> String {
        match self.by_host {
            None => "the array".to_owned(),
            Some(how) => format!(
                "the host, {} pieces of {} KiB at a time",
                how.outstanding,
                how.transfer_bytes >> 10
            ),
        }
    }
}

/// An empty volume like that of `disk`: in its lane, where `is_beside`, since what refers to the same data is
/// in one lane; else in the emptiest of the pool.
pub(super) async fn make_like(
    disk: &DiskRig,
    (pool, name): (&PoolRig, &str),
    is_beside: bool,
) -> Result<Volume<RigWorld>, String> {
    let like = disk.volume.borrow().info();
    let lane = match is_beside {
        true => pool.lane_of(&like.name)?,
        false => pool.emptiest_lane(),
    };
    let provisioning = match like.provisioning {
        engine::Provisioning::Thin => site::Provisioning::Thin,
        engine::Provisioning::Thick => site::Provisioning::Thick,
    };
    let made = pool.make_volume_in(lane, provisioning, (name, disk.size_bytes));
    made.await
}
