//! Describes a whole array as a site, ready to be written as a site file.

use crate::control::consistency::group_of;
use crate::control::hosts::said_of;
use crate::control::limits;
use crate::control::{
    ArrayError, ClosedPool, ControlPlane, Export, PlacedVolume, Schedule, attributes, schedule,
};
use crate::directory;
use engine::World;
use engine::pool::SNAPSHOT_MARK;
use site::Site;
use std::sync::Arc;

/// The exported snapshots, which a site file cannot name, and the volumes of pools that are not open, as
/// comments of a site file.
pub fn left_out<W: World>(array: &ControlPlane<W>) -> String {
    let closed = array.closed_pools().into_iter();
    let closed = closed.map(|ClosedPool { name, .. }| {
        format!(
            "# Left out: the volumes of pool {name}, which is not open: bring its drives back, and make \
             this file again.\n"
        )
    });
    let mut text: String = closed.collect();
    for export in array.exports() {
        for (lun, name) in by_lun(&export).filter(is_snapshot) {
            let target = &export.target;
            text += &format!("# Left out: LUN {lun} of target {target} is snapshot {name}.\n");
        }
    }
    text
}

fn is_snapshot((_, name): &(u16, &String)) -> bool {
    name.contains(SNAPSHOT_MARK)
}

fn by_lun(export: &Export) -> impl Iterator<Item = (u16, &String)> {
    export.luns.iter().copied().zip(&export.volumes)
}

/// What a site file would say of the array, but what is [`left_out`].
///
/// # Errors
/// A shard has stopped.
pub async fn site_of<W: World>(array: &Arc<ControlPlane<W>>) -> Result<Site, ArrayError> {
    let mut site = array.current_settings().await?;
    let volumes = array.volumes().await?;
    let whole = volumes.iter().filter(|volume| !volume.is_snapshot());
    site.volumes = whole.clone().map(volume).collect();
    for there in array.consistency_groups().await? {
        let of_group = whole
            .clone()
            .filter(|volume| group_of(volume) == Some(&there.name));
        site.groups.push(site::ConsistencyGroup {
            volumes: of_group.map(|volume| volume.info.name.clone()).collect(),
            schedules: there.schedules.iter().map(schedule_of).collect(),
            name: there.name,
        });
    }
    let configuration = array.configuration();
    site.hosts = configuration.known.hosts.values().map(host).collect();
    let planted = "description of an array leaves out what hosts prove";
    if array.runtime().planted(planted) {
        site.hosts.iter_mut().for_each(|host| host.chap = None);
    }
    site.host_groups = configuration
        .known
        .groups
        .values()
        .map(host_group)
        .collect();
    let exports = configuration.exports.values().map(export);
    site.exports = exports
        .filter(|export| !export.volumes.is_empty())
        .collect();
    site.chap.discovery = configuration.discovery.as_deref().map(said_of);
    Ok(site)
}

fn volume(there: &PlacedVolume) -> site::Volume {
    let tags = attributes::tags(&there.properties).into_iter();
    let description = attributes::description(&there.properties).to_owned();
    site::Volume {
        name: there.info.name.clone(),
        pool: there.pool.clone(),
        size_bytes: there.info.size_bytes,
        provisioning: match there.info.provisioning {
            engine::Provisioning::Thin => site::Provisioning::Thin,
            engine::Provisioning::Thick => site::Provisioning::Thick,
        },
        description: Some(description).filter(|text| !text.is_empty()),
        tags: tags.collect(),
        detect_zeroes: Some(there.info.detects_zeroes).filter(|detects| *detects),
        limits: Some(limits(&there.properties)).filter(|limits| !limits.is_none()),
        schedules: schedule::of(there).iter().map(schedule_of).collect(),
    }
}

fn schedule_of(there: &Schedule) -> site::Schedule {
    site::Schedule {
        every: std::time::Duration::from_secs(there.every_s),
        keep: there.keep,
    }
}

fn host(there: &crate::control::Host) -> site::Host {
    site::Host {
        name: there.name.clone(),
        initiators: there.initiators.iter().cloned().collect(),
        chap: there.account.as_deref().map(said_of),
    }
}

fn host_group(there: &crate::control::HostGroup) -> site::HostGroup {
    site::HostGroup {
        name: there.name.clone(),
        hosts: there.hosts.iter().cloned().collect(),
    }
}

fn export(there: &Export) -> site::Export {
    let access = &there.access;
    let of_file = by_lun(there).filter(|one| !is_snapshot(one));
    let (luns, volumes) = of_file.map(|(lun, name)| (lun, name.clone())).unzip();
    site::Export {
        target: there.target.clone(),
        volumes,
        luns,
        initiators: match &access.initiators {
            directory::Initiators::Any => site::Initiators::Any,
            directory::Initiators::Named(names) => {
                site::Initiators::Named(names.iter().cloned().collect())
            }
        },
        hosts: access.hosts.iter().cloned().collect(),
        host_groups: access.host_groups.iter().cloned().collect(),
        chap: access.account.as_deref().map(said_of),
        portals: access.portals.iter().flatten().copied().collect(),
        physical_block_bytes: there.traits.physical_block_bytes,
        may_sanitize: there.traits.may_sanitize,
        may_affect_others: there.traits.may_affect_others,
    }
}
