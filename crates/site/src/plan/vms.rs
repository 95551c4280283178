//! The load of a plan: VM groups of the file, or the VMs of a served array.

use super::assumed::{Assumed, listed};
use super::types::{Adapter, Luns, Machine, VmGroup};
use crate::read::{Rows, VmRow};
use crate::table::Row;
use crate::types::{Export, Host, Initiators, Provisioning, Vm, Volume};

/// How much of each thin disk is written before, percent.
const FILLED_PERCENT: u8 = 100;

/// The VM groups; where the file has none, one for each VM.
pub(super) fn groups(rows: &Rows, hosts: &[Machine], assumed: &mut Assumed) -> Vec<VmGroup> {
    let said = &rows.hardware.vm_groups;
    if said.is_empty() {
        let groups: Vec<VmGroup> = rows.vms.iter().map(|vm| of_vm(rows, vm, hosts)).collect();
        say_filled(rows, &groups, assumed);
        say_hosts(rows, assumed);
        return groups;
    }
    let vms: Vec<&str> = rows
        .vms
        .iter()
        .map(|row| row.item.vm.name.as_str())
        .collect();
    if !vms.is_empty() {
        let value = format!("left out beside [[vm_group]]: {}", listed(&vms));
        assumed.say("vm", value);
    }
    said.clone()
}

/// Says which thin disks are modelled as written before.
fn say_filled(rows: &Rows, groups: &[VmGroup], assumed: &mut Assumed) {
    let vms = rows.vms.iter().zip(groups);
    let without = vms.filter(|(row, group)| {
        let disks = &group.disk_provisioning;
        row.item.filled_percent.is_none() && disks.contains(&Provisioning::Thin)
    });
    let without: Vec<&str> = without.map(|(_, group)| group.name.as_str()).collect();
    if !without.is_empty() {
        let value = format!("{FILLED_PERCENT}, for {}", listed(&without));
        assumed.say("vm.filled", value);
    }
}

/// A group of one: the VM's role of its profile, with disks as large as the volumes of its target
/// and in their pools. VMs go to the hosts that may log in, in turn.
fn of_vm(rows: &Rows, row: &Row<VmRow>, hosts: &[Machine]) -> VmGroup {
    let vm = &row.item.vm;
    let export = export_of(rows, vm);
    let named = |name: &String| rows.volumes.iter().find(|row| row.item.name == *name);
    let volumes = export.iter().flat_map(|export| &export.volumes);
    let volumes: Vec<&Volume> = volumes.filter_map(named).map(|row| &row.item).collect();
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
        provisioning: Provisioning::Thin,
        filled_percent: row.item.filled_percent.unwrap_or(FILLED_PERCENT),
        scale: vm.rate_scale,
        outstanding: None,
        think: None,
        work: None,
        connections: None,
        memory_bytes: None,
        limit_iops: None,
        disk_bytes: volumes.iter().map(|volume| volume.size_bytes).collect(),
        disk_provisioning: volumes.iter().map(|volume| volume.provisioning).collect(),
    }
}

/// Says which VMs run on any host, because no host of the file may log in.
fn say_hosts(rows: &Rows, assumed: &mut Assumed) {
    let homeless = |row: &&Row<VmRow>| {
        let export = export_of(rows, &row.item.vm);
        export.is_some_and(|one| one.initiators != Initiators::Any)
            && admitted(rows, export).is_empty()
    };
    let all = rows.vms.iter().filter(homeless);
    let all: Vec<&str> = all.map(|row| row.item.vm.name.as_str()).collect();
    // A host that is assumed is the only one.
    if !all.is_empty() && !rows.hosts.is_empty() {
        let value = format!("on any host, for VMs {}", listed(&all));
        assumed.say("host.initiators", value);
    }
}

fn export_of<'a>(rows: &'a Rows, vm: &Vm) -> Option<&'a Export> {
    let mut exports = rows.exports.iter().map(|row| &row.item);
    exports.find(|one| one.target == vm.target)
}

/// Hosts that an export names, by itself, by a group or by an initiator; none where it admits
/// any, or initiators of no host.
fn admitted<'a>(rows: &'a Rows, export: Option<&'a Export>) -> Vec<&'a str> {
    let Some(export) = export else {
        return Vec::new();
    };
    let initiators: &[String] = match &export.initiators {
        Initiators::Any => return Vec::new(),
        Initiators::Named(names) => names,
    };
    let groups = rows.host_groups.iter().map(|row| &row.item);
    let groups = groups.filter(|group| export.host_groups.contains(&group.name));
    let of_groups = groups.flat_map(|group| &group.hosts);
    let hosts = rows.hosts.iter().map(|row| &row.item.host);
    let has_one = |host: &&Host| host.initiators.iter().any(|one| initiators.contains(one));
    let of_initiators = hosts.filter(has_one).map(|host| &host.name);
    let all = export.hosts.iter().chain(of_groups).chain(of_initiators);
    all.map(String::as_str).collect()
}
