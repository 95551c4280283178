//! Rules for plans that need more than one value.
//!
//! Names lead somewhere, drives are enough, networks have no loop, and hosts reach the pools that
//! their VMs are on.

use super::resolve::Resolved;
use super::types::{
    Adapter, Balance, Event, Happening, Initiator, Lot, Network, NetworkKind, Plan, Ports, VmGroup,
};
use crate::diagnostic::Diagnostic;
use crate::logs;
use crate::references::{one_of, plural, push};
use std::collections::{BTreeMap, BTreeSet};

/// Checks the plan; what is wrong goes to `found`.
pub(super) fn check(rows: &Resolved, found: &mut Vec<Diagnostic>) {
    let plan = &rows.plan;
    names(plan, found);
    controllers(plan, found);
    lots(plan, found);
    pools(rows, found);
    logs::check_plan(plan, &rows.group_lines, found);
    networks(plan, found);
    hosts(plan, found);
    vm_groups(plan, found);
    measured(plan, found);
    events(plan, found);
    // Of names that lead nowhere it would only say the same again.
    if found.is_empty() {
        for vm_group in &plan.vm_groups {
            reachable(plan, vm_group, found);
        }
    }
}

/// Names, each with its line.
type Named<'a> = Box<dyn Iterator<Item = (&'a str, usize)> + 'a>;

/// The names of each kind of thing.
fn named(plan: &Plan) -> [(&'static str, Named<'_>); 7] {
    [
        (
            "controller",
            Box::new(plan.controllers.iter().map(|c| (c.name.as_str(), c.line))),
        ),
        (
            "bus",
            Box::new(plan.buses.iter().map(|b| (b.name.as_str(), b.line))),
        ),
        (
            "lot of drives",
            Box::new(plan.lots.iter().map(|l| (l.name.as_str(), l.line))),
        ),
        (
            "drive model",
            Box::new(plan.drive_models.iter().map(|m| (m.name.as_str(), m.line))),
        ),
        (
            "network",
            Box::new(plan.networks.iter().map(|n| (n.name.as_str(), n.line))),
        ),
        (
            "profile",
            Box::new(plan.profiles.iter().map(|p| (p.name.as_str(), p.line))),
        ),
        (
            "VM group",
            Box::new(plan.vm_groups.iter().map(|g| (g.name.as_str(), g.line))),
        ),
    ]
}

/// Names that are given out twice.
fn names(plan: &Plan, found: &mut Vec<Diagnostic>) {
    for (kind, named) in named(plan) {
        let mut first = BTreeMap::new();
        for (name, line) in named {
            if let Some(earlier) = first.insert(name, line) {
                let what = format!("{name:?}, as on line {earlier}");
                let allowed = format!("one that no other {kind} has");
                let table = match kind {
                    "lot of drives" => "drives",
                    "drive model" => "drive_model",
                    "VM group" => "vm_group",
                    kind => kind,
                };
                push(found, line, &format!("{table}.name"), what, allowed);
            }
        }
    }
}

/// Reports a name that leads nowhere.
fn lookup<'a>(
    name: &str,
    what: &str,
    names: impl Iterator<Item = &'a str> + Clone,
    (line, key): (usize, &str),
    found: &mut Vec<Diagnostic>,
) -> bool {
    let known = names.clone().any(|other| other == name);
    if !known {
        let allowed = one_of(what, names);
        push(
            found,
            line,
            key,
            format!("{name:?}, which no {what} has"),
            allowed,
        );
    }
    known
}

fn controllers(plan: &Plan, found: &mut Vec<Diagnostic>) {
    let names = plan.controllers.iter().map(|c| c.name.as_str());
    for controller in &plan.controllers {
        let at = (controller.line, "controller.partner");
        if let Some(partner) = &controller.partner {
            if *partner == controller.name {
                let allowed = "another controller".to_owned();
                push(found, at.0, at.1, "itself".to_owned(), allowed);
            } else {
                lookup(partner, "controller", names.clone(), at, found);
            }
        }
        let at = (controller.line, "controller.ports");
        ports(plan, &controller.ports, at, found);
    }
}

fn ports(plan: &Plan, ports: &[Ports], at: (usize, &str), found: &mut Vec<Diagnostic>) {
    let names = plan.networks.iter().map(|n| n.name.as_str());
    for port in ports {
        lookup(&port.network, "network", names.clone(), at, found);
    }
}

fn lots(plan: &Plan, found: &mut Vec<Diagnostic>) {
    let buses = plan.buses.iter().map(|bus| bus.name.as_str());
    // Drives that have names of their own were looked at one by one.
    for lot in plan.lots.iter().filter(|lot| lot.names.is_empty()) {
        let at = (lot.line, "drives.bus");
        lookup(&lot.bus, "bus", buses.clone(), at, found);
    }
}

fn pools(rows: &Resolved, found: &mut Vec<Diagnostic>) {
    let plan = &rows.plan;
    let controllers = plan.controllers.iter().map(|c| c.name.as_str());
    let lots = plan.lots.iter().map(|lot| lot.name.as_str());
    let mut taken: BTreeMap<&str, u64> = BTreeMap::new();
    for (pool, lines) in plan.pools.iter().zip(&rows.group_lines) {
        let at = (pool.line, "pool.controller");
        lookup(
            &pool.controller,
            "controller",
            controllers.clone(),
            at,
            found,
        );
        for (groups, line) in pool.groups.iter().zip(lines) {
            let at = (*line, "pool.groups.from");
            if lookup(&groups.from, "lot of drives", lots.clone(), at, found) {
                let drives = u64::from(groups.drives) * u64::from(groups.count);
                *taken.entry(&groups.from).or_default() += drives;
            }
            let drives = usize::from(groups.drives);
            // Of drives by their names, the pool's own rules have said it.
            let is_named = |lot: &&Lot| lot.name == groups.from && !lot.names.is_empty();
            if !plan.lots.iter().any(|lot| is_named(&lot))
                && groups.protection().data_drives(drives).is_none()
            {
                let allowed = groups.protection().drives_rule();
                push(
                    found,
                    *line,
                    "pool.groups.drives",
                    plural(drives, "drive"),
                    allowed,
                );
            }
        }
        for spares in &pool.spares {
            let at = (pool.line, "pool.spares.from");
            if lookup(&spares.from, "lot of drives", lots.clone(), at, found) {
                *taken.entry(&spares.from).or_default() += u64::from(spares.count);
            }
        }
    }
    for lot in &plan.lots {
        let taken = taken.get(lot.name.as_str()).copied().unwrap_or(0);
        if taken > u64::from(lot.count) {
            let what = format!(
                "{}, of which pools take {taken}",
                plural(lot.count as usize, "drive")
            );
            push(
                found,
                lot.line,
                "drives.count",
                what,
                format!("{taken} or more"),
            );
        }
    }
}

fn networks(plan: &Plan, found: &mut Vec<Diagnostic>) {
    let names = plan.networks.iter().map(|n| n.name.as_str());
    for network in &plan.networks {
        if let Some(uplink) = &network.uplink {
            let at = (network.line, "network.uplink");
            if lookup(&uplink.to, "network", names.clone(), at, found)
                && way_up(plan, &network.name).is_none()
            {
                let what = format!("{:?}, from where the way leads back here", uplink.to);
                push(
                    found,
                    at.0,
                    at.1,
                    what,
                    "networks without a loop".to_owned(),
                );
            }
        }
        if network.kind == NetworkKind::FibreChannel
            && ![1, 2, 4, 8, 16, 32].contains(&(network.bits_per_s / 1_000_000_000))
        {
            let what = format!("{} Mb/s of Fibre Channel", network.bits_per_s / 1_000_000);
            let allowed = "1, 2, 4, 8, 16 or 32 Gb/s".to_owned();
            push(found, network.line, "network.speed", what, allowed);
        }
    }
}

fn network<'a>(plan: &'a Plan, name: &str) -> Option<&'a Network> {
    plan.networks.iter().find(|network| network.name == name)
}

/// The networks from `name` on upwards, itself first; none when they make a loop.
fn way_up(plan: &Plan, name: &str) -> Option<Vec<String>> {
    let mut way: Vec<String> = Vec::new();
    let mut at = network(plan, name);
    while let Some(here) = at {
        if way.contains(&here.name) {
            return None;
        }
        way.push(here.name.clone());
        let uplink = here.uplink.as_ref();
        at = uplink.and_then(|uplink| network(plan, &uplink.to));
    }
    Some(way)
}

fn hosts(plan: &Plan, found: &mut Vec<Diagnostic>) {
    let mut first: BTreeMap<String, usize> = BTreeMap::new();
    for host in &plan.hosts {
        for name in host.names() {
            // Of the same name as a whole, `names` has said it.
            if let Some(earlier) = first.insert(name.clone(), host.line)
                && plan.hosts.iter().filter(|h| h.name == host.name).count() == 1
            {
                let what = format!("a host called {name:?}, as from line {earlier}");
                let allowed = "one that no other host has, with its number".to_owned();
                push(found, host.line, "host.name", what, allowed);
                break;
            }
        }
        ports(plan, &host.ports, (host.line, "host.ports"), found);
        let storage = host.ports.iter().filter(|ports| {
            network(plan, &ports.network).is_none_or(|network| network.carries.storage())
        });
        let all: u32 = storage.map(|ports| u32::from(ports.count)).sum();
        let group = [Balance::Port, Balance::Mac, Balance::IpHash].contains(&host.balance);
        if group && all == 1 {
            let what = "a group of links over one port".to_owned();
            let allowed = "two ports or more, or balance = \"round-robin\"".to_owned();
            push(found, host.line, "host.balance", what, allowed);
        }
        for ports in &host.ports {
            let Some(network) = network(plan, &ports.network) else {
                continue;
            };
            let is_fc = network.kind == NetworkKind::FibreChannel;
            if network.carries.storage() && is_fc != (host.initiator == Initiator::FibreChannel) {
                let what = format!("{:?}, which can't carry that", network.name);
                let allowed = "initiator = \"fibre-channel\" on Fibre Channel, any other on \
                               Ethernet";
                push(found, host.line, "host.initiator", what, allowed.to_owned());
            }
        }
    }
}

fn vm_groups(plan: &Plan, found: &mut Vec<Diagnostic>) {
    let hosts = plan.hosts.iter().map(|host| host.name.as_str());
    let pools = plan.pools.iter().map(|pool| pool.name.as_str());
    for group in &plan.vm_groups {
        let at = |key| (group.line, key);
        if group.hosts.is_empty() {
            let allowed = one_of("host", hosts.clone());
            let (line, key) = at("vm_group.hosts");
            push(found, line, key, "nothing".to_owned(), allowed);
        }
        if group.pools.is_empty() == group.disk_pools.is_empty() {
            let what = "both or neither of pools and disk_pools".to_owned();
            let (line, key) = at("vm_group.pools");
            push(found, line, key, what, "one of the two".to_owned());
        }
        if group.limit_iops.is_some() {
            limitable(group, at("vm_group.limit_iops"), found);
        }
        for host in &group.hosts {
            lookup(host, "host", hosts.clone(), at("vm_group.hosts"), found);
        }
        for pool in group.pools.iter().chain(&group.disk_pools) {
            lookup(pool, "pool", pools.clone(), at("vm_group.pools"), found);
        }
    }
}

/// What was measured is of VM groups, once each, and a capture has measured something.
fn measured(plan: &Plan, found: &mut Vec<Diagnostic>) {
    if let Some(capture) = plan.capture.as_ref().filter(|_| plan.measured.is_empty()) {
        let allowed = "tables [[measured]], as `ashlar capture` writes them".to_owned();
        push(
            found,
            capture.line,
            "measured",
            "nothing".to_owned(),
            allowed,
        );
    }
    let groups = plan.vm_groups.iter().map(|group| group.name.as_str());
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    for one in &plan.measured {
        let at = (one.line, "measured.vm_group");
        lookup(&one.vm_group, "VM group", groups.clone(), at, found);
        if let Some(earlier) = first.insert(&one.vm_group, one.line) {
            let what = format!("{:?}, as on line {earlier}", one.vm_group);
            push(found, at.0, at.1, what, "each VM group once".to_owned());
        }
    }
}

/// Every host of a VM group has a network in common with every controller of its pools.
fn reachable(plan: &Plan, vm_group: &VmGroup, found: &mut Vec<Diagnostic>) {
    let networks = |ports: &[Ports]| -> BTreeSet<String> {
        let ways = ports.iter().filter_map(|p| way_up(plan, &p.network));
        let carries = |name: &String| network(plan, name).is_some_and(|n| n.carries.storage());
        ways.filter(|way| way.iter().all(carries))
            .flatten()
            .collect()
    };
    let of_vm_group = |name: &String| vm_group.hosts.contains(name);
    for host in plan.hosts.iter().filter(|host| of_vm_group(&host.name)) {
        for pool in vm_group.pools.iter().chain(&vm_group.disk_pools) {
            let pool = plan.pools.iter().find(|other| other.name == *pool);
            let controller = pool.and_then(|pool| {
                let mut controllers = plan.controllers.iter();
                controllers.find(|controller| controller.name == pool.controller)
            });
            let Some(controller) = controller else {
                continue;
            };
            if networks(&host.ports).is_disjoint(&networks(&controller.ports)) {
                let what = format!(
                    "host {:?}, which has no network for storage in common with controller {:?}",
                    host.name, controller.name
                );
                let allowed = "hosts that reach the controllers of its pools".to_owned();
                push(found, vm_group.line, "vm_group.hosts", what, allowed);
                return;
            }
        }
    }
}

fn events(plan: &Plan, found: &mut Vec<Diagnostic>) {
    let hosts = plan.host_names();
    let hosts = || hosts.iter().map(String::as_str);
    let end = plan.run.warmup + plan.run.measure;
    for event in &plan.events {
        let line = event.line;
        if event.at >= end {
            let what = format!("{} s", event.at.as_secs_f64());
            let allowed = format!("a time of the run, before {} s", end.as_secs_f64());
            push(found, line, "event.at", what, allowed);
        }
        match &event.what {
            Happening::DriveFails { drive } => {
                let drives = plan.drive_names();
                let names = drives.iter().map(String::as_str);
                lookup(drive, "drive", names, (line, "event.drive"), found);
            }
            Happening::HostFails { host, .. } | Happening::Drain { host, .. } => {
                lookup(host, "host", hosts(), (line, "event.host"), found);
            }
            Happening::ControllerFails { controller, .. } => {
                let names = plan.controllers.iter().map(|c| c.name.as_str());
                lookup(
                    controller,
                    "controller",
                    names,
                    (line, "event.controller"),
                    found,
                );
            }
            Happening::LinkDown { host, network } | Happening::LinkUp { host, network } => {
                lookup(host, "host", hosts(), (line, "event.host"), found);
                let names = plan.networks.iter().map(|n| n.name.as_str());
                lookup(network, "network", names, (line, "event.network"), found);
            }
            Happening::Snapshot { vm_group }
            | Happening::Clone { vm_group, .. }
            | Happening::AddCpu { vm_group, .. }
            | Happening::BootStorm { vm_group, .. } => {
                group_of(plan, vm_group, line, found);
            }
            Happening::LimitIops { vm_group, .. } => {
                if let Some(vm_group) = group_of(plan, vm_group, line, found) {
                    limitable(vm_group, (line, "event.vm_group"), found);
                }
            }
            Happening::Restore { vm_group } => {
                if group_of(plan, vm_group, line, found).is_some() {
                    snapshot_before(plan, event, vm_group, found);
                }
            }
            Happening::LiveMigration { vm_group, to, .. } => {
                group_of(plan, vm_group, line, found);
                lookup(to, "host", hosts(), (line, "event.to"), found);
            }
            Happening::MoveStorage { vm_group, to, .. } => {
                group_of(plan, vm_group, line, found);
                let pools = plan.pools.iter().map(|pool| pool.name.as_str());
                lookup(to, "pool", pools, (line, "event.to"), found);
            }
        }
    }
}

/// The VM group that an event names.
fn group_of<'a>(
    plan: &'a Plan,
    name: &str,
    line: usize,
    found: &mut Vec<Diagnostic>,
) -> Option<&'a VmGroup> {
    let names = plan.vm_groups.iter().map(|group| group.name.as_str());
    lookup(name, "VM group", names, (line, "event.vm_group"), found);
    plan.vm_groups.iter().find(|group| group.name == name)
}

/// A hypervisor limits what it hands out.
fn limitable(vm_group: &VmGroup, (line, key): (usize, &str), found: &mut Vec<Diagnostic>) {
    if vm_group.adapter == Adapter::None {
        let what = format!(
            "a limit of VM group {:?}, whose disks are raw LUNs",
            vm_group.name
        );
        let allowed = "disks that a hypervisor hands out: with adapter \"lsi-sas\", \"pvscsi\", \
                       \"vmbus\" or \"virtio\"";
        push(found, line, key, what, allowed.to_owned());
    }
}

/// There is something to restore.
fn snapshot_before(plan: &Plan, event: &Event, vm_group: &str, found: &mut Vec<Diagnostic>) {
    let taken = plan.events.iter().any(|other| {
        other.at < event.at
            && matches!(&other.what, Happening::Snapshot { vm_group: of } if of == vm_group)
    });
    if !taken {
        let what = format!("VM group {vm_group:?}, of which there is no snapshot by then");
        let allowed = "a VM group with an event \"snapshot\" before".to_owned();
        push(found, event.line, "event.vm_group", what, allowed);
    }
}
