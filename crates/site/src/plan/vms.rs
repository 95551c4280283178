//! The load of a plan: VM groups of the file, or the VMs of a served array.

use super::assumed::{Assumed, listed};
use super::types::{Adapter, Luns, Machine, VmGroup};
use crate::read::Rows;
use crate::table::Row;
use crate::types::{Export, Provisioning, Vm, Volume};
use std::time::Duration;

/// The VM groups; where the file has none, one for each VM.
pub(super) fn groups(rows: &Rows, hosts: &[Machine], assumed: &mut Assumed) -> Vec<VmGroup> {
    let said = &rows.hardware.vm_groups;
    if said.is_empty() {
        return rows.vms.iter().map(|vm| of_vm(rows, vm, hosts)).collect();
    }
    let vms: Vec<&str> = rows.vms.iter().map(|row| row.item.name.as_str()).collect();
    if !vms.is_empty() {
        let value = format!("left out beside [[vm_group]]: {}", listed(&vms));
        assumed.say("vm", value);
    }
    said.clone()
}

/// A group of one: the VM's role of its profile, with disks as large as the volumes of its target
/// and in their pools. VMs go to the hosts that may log in, in turn.
fn of_vm(rows: &Rows, row: &Row<Vm>, hosts: &[Machine]) -> VmGroup {
    let vm = &row.item;
    let exports = rows.exports.iter().map(|row| &row.item);
    let export = exports.into_iter().find(|one| one.target == vm.target);
    let named = |name: &String| rows.volumes.iter().find(|row| row.item.name == *name);
    let volumes = export.iter().flat_map(|export| &export.volumes);
    let volumes: Vec<&Volume> = volumes.filter_map(named).map(|row| &row.item).collect();
    let is_thick = |volume: &&Volume| volume.provisioning == Provisioning::Thick;
    let provisioning = match volumes.iter().any(is_thick) {
        true => Provisioning::Thick,
        false => Provisioning::Thin,
    };
    let admitted = admitted(rows, export);
    let mut of_hosts = hosts
        .iter()
        .map(|host| host.name.clone())
        .collect::<Vec<_>>();
    if !admitted.is_empty() {
        of_hosts.retain(|name| admitted.contains(&name.as_str()));
    }
    VmGroup {
        name: vm.name.clone(),
        line: row.header_line(),
        profile: vm.profile.clone(),
        roles: vec![vm.role.clone()],
        count: 1,
        hosts: of_hosts,
        pools: Vec::new(),
        disk_pools: volumes.iter().map(|volume| volume.pool.clone()).collect(),
        adapter: Adapter::None,
        luns: Luns::PerDisk,
        provisioning,
        filled_percent: 100,
        scale: vm.rate_scale,
        outstanding: None,
        think: Duration::ZERO,
        memory_bytes: None,
        limit_iops: None,
        disk_bytes: volumes.iter().map(|volume| volume.size_bytes).collect(),
    }
}

/// Hosts that an export names, by itself or by a group; none where it names initiators only.
fn admitted<'a>(rows: &'a Rows, export: Option<&'a Export>) -> Vec<&'a str> {
    let Some(export) = export else {
        return Vec::new();
    };
    let groups = rows.host_groups.iter().map(|row| &row.item);
    let groups = groups.filter(|group| export.host_groups.contains(&group.name));
    let of_groups = groups.flat_map(|group| &group.hosts);
    let all = export.hosts.iter().chain(of_groups);
    all.map(String::as_str).collect()
}
