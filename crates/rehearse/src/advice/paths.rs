//! Checks of controllers, ports and networks: the ways between hosts and drives.

use super::Severity::{Error, Info, Warning};
use super::{COMMON, Check, CheckFindings, FAN_IN, FS7500, IP_HASH, ISCSI, Scene};
use crate::plan::catalog;
use crate::plan::demand::Vm;
use site::plan::{Balance, Carries, Initiator, Luns, Machine, Network, NetworkKind, Plan, Ports};
use std::collections::{BTreeMap, BTreeSet};

/// Bits of host ports for each bit of controller ports.
const FAN_IN_MOST: u128 = 7;

/// Bits that come together for each bit of an uplink.
const UPLINK_MOST: u128 = 4;

/// Disks of one controller for each of another.
const DISKS_UNEVEN: usize = 2;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "single-controller",
        severity: Warning,
        why: "when it fails or is updated, all volumes are gone for as long",
        mend: "plan two controllers that are each other's partners",
        source: COMMON,
        look: single_controller,
    },
    Check {
        name: "no-partner",
        severity: Warning,
        why: "its write cache is not mirrored: what it has acknowledged is lost with it, or it has to write through",
        mend: "set `partner` on both controllers",
        source: COMMON,
        look: no_partner,
    },
    Check {
        name: "one-sided-partner",
        severity: Error,
        why: "a controller that mirrors to another which does not know of it is not taken over",
        mend: "set `partner` on both controllers",
        source: COMMON,
        look: one_sided_partner,
    },
    Check {
        name: "uneven-controllers",
        severity: Info,
        why: "one controller works while its partner waits",
        mend: "spread pools, or the disks in them, over both controllers",
        source: COMMON,
        look: uneven_controllers,
    },
    Check {
        name: "single-port-host",
        severity: Warning,
        why: "one cable, adapter or switch port takes all storage from the host",
        mend: "plan two ports, on two networks",
        source: ISCSI,
        look: single_port_host,
    },
    Check {
        name: "single-port-controller",
        severity: Warning,
        why: "one cable or port takes the controller from all hosts",
        mend: "plan two ports",
        source: COMMON,
        look: single_port_controller,
    },
    Check {
        name: "single-fabric",
        severity: Warning,
        why: "one switch, or one mistake in its configuration, takes all storage from the host",
        mend: "plan two networks for storage, with a port of every host and controller in each",
        source: COMMON,
        look: single_fabric,
    },
    Check {
        name: "lan-and-storage-mixed",
        severity: Warning,
        why: "what people and moving VMs send delays storage, and storage can be listened to",
        mend: "keep storage on networks of its own (`carries`)",
        source: ISCSI,
        look: lan_and_storage_mixed,
    },
    Check {
        name: "mtu-differs",
        severity: Error,
        why: "frames that are too large for the next network are dropped or cut into pieces",
        mend: "set one MTU on all networks of the way",
        source: ISCSI,
        look: mtu_differs,
    },
    Check {
        name: "small-frames",
        severity: Info,
        why: "frames of 1500 bytes cost hosts more processor time for each byte than frames of 9000",
        mend: "set `mtu = 9000`, if adapters and switches can",
        source: ISCSI,
        look: small_frames,
    },
    Check {
        name: "mixed-speeds",
        severity: Warning,
        why: "fast ports overrun slow ones: switches drop frames, or pause everybody",
        mend: "reach storage by links of one speed from end to end",
        source: COMMON,
        look: mixed_speeds,
    },
    Check {
        name: "port-fan-in",
        severity: Warning,
        why: "the ports of hosts can ask for far more than those of the controllers can give",
        mend: "plan more or faster controller ports: at most 7 to 1, less with VMs",
        source: FAN_IN,
        look: port_fan_in,
    },
    Check {
        name: "narrow-uplink",
        severity: Warning,
        why: "all hosts of a network share the links to the next one",
        mend: "plan more links, or put hosts and controllers into one network",
        source: FAN_IN,
        look: narrow_uplink,
    },
    Check {
        name: "links-too-thin",
        severity: Warning,
        why: "the planned I/O of a host's VMs is more than 70 % of what its links carry",
        mend: "plan more or faster links",
        source: COMMON,
        look: links_too_thin,
    },
    Check {
        name: "hash-of-one-address",
        severity: Warning,
        why: "one pair of addresses has one hash: all of it takes one link",
        mend: "serve several addresses, and set `addresses`",
        source: IP_HASH,
        look: hash_of_one_address,
    },
    Check {
        name: "one-link-policy",
        severity: Warning,
        why: "one virtual port or hardware address stays on one link, however many there are",
        mend: "balance by the hash of IP addresses over several addresses of the storage",
        source: FS7500,
        look: one_link_policy,
    },
    Check {
        name: "iscsi-over-a-link-group",
        severity: Warning,
        why: "a link group knows of links, not of paths: it fails over late, and one connection has one link",
        mend: "use multipath (`balance = \"round-robin\"` or \"least-queue\")",
        source: ISCSI,
        look: iscsi_over_a_link_group,
    },
    Check {
        name: "lun-queue-too-short",
        severity: Warning,
        why: "what a LUN's queue has no room for waits in the host, and the array never sees it",
        mend: "use more LUNs, or a longer queue (`lun_queue`)",
        source: COMMON,
        look: lun_queue_too_short,
    },
];

fn network<'a>(plan: &'a Plan, name: &str) -> Option<&'a Network> {
    plan.networks.iter().find(|network| network.name == name)
}

/// Ports that reach storage, with their networks.
fn storage<'a>(
    plan: &'a Plan,
    ports: &'a [Ports],
) -> impl Iterator<Item = (&'a Ports, &'a Network)> {
    let known = ports
        .iter()
        .filter_map(|ports| Some((ports, network(plan, &ports.network)?)));
    known.filter(|(_, network)| network.carries.storage())
}

fn count<'a>(ports: impl Iterator<Item = (&'a Ports, &'a Network)>) -> u32 {
    ports.map(|(ports, _)| u32::from(ports.count)).sum()
}

/// Controllers that own a pool.
fn at_work(plan: &Plan) -> BTreeSet<&str> {
    plan.pools
        .iter()
        .map(|pool| pool.controller.as_str())
        .collect()
}

fn single_controller(scene: &Scene<'_>, seen: &mut CheckFindings) {
    if let [only] = scene.plan.controllers.as_slice() {
        seen.add(only.line, format!("{:?} is the only controller", only.name));
    }
}

fn no_partner(scene: &Scene<'_>, seen: &mut CheckFindings) {
    let at_work = at_work(scene.plan);
    for controller in &scene.plan.controllers {
        if controller.partner.is_none() && at_work.contains(controller.name.as_str()) {
            seen.add(
                controller.line,
                format!(
                    "controller {:?} owns pools and has no partner",
                    controller.name
                ),
            );
        }
    }
}

fn one_sided_partner(scene: &Scene<'_>, seen: &mut CheckFindings) {
    let controllers = &scene.plan.controllers;
    for controller in controllers {
        let other = controllers
            .iter()
            .find(|other| Some(&other.name) == controller.partner.as_ref());
        if let Some(other) = other.filter(|other| other.partner.as_ref() != Some(&controller.name))
        {
            seen.add(
                controller.line,
                format!(
                    "{:?} has {:?} for a partner, which has another or none",
                    controller.name, other.name
                ),
            );
        }
    }
}

fn uneven_controllers(scene: &Scene<'_>, seen: &mut CheckFindings) {
    let disks = |name: &str| {
        let pools = scene
            .plan
            .pools
            .iter()
            .enumerate()
            .filter(|(_, pool)| pool.controller == name);
        pools
            .map(|(place, _)| scene.demand.disks_in(place).count())
            .sum::<usize>()
    };
    for controller in &scene.plan.controllers {
        let Some(partner) = &controller.partner else {
            continue;
        };
        let (ours, theirs) = (disks(&controller.name), disks(partner));
        if ours > DISKS_UNEVEN * theirs {
            seen.add(
                controller.line,
                format!(
                    "controller {:?} has {ours} disks and its partner {theirs}",
                    controller.name
                ),
            );
        }
    }
}

fn single_port_host(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for host in &scene.plan.hosts {
        if count(storage(scene.plan, &host.ports)) == 1 {
            seen.add(
                host.line,
                format!("host {:?} reaches its storage by one port", host.name),
            );
        }
    }
}

fn single_port_controller(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for controller in &scene.plan.controllers {
        if count(storage(scene.plan, &controller.ports)) == 1 {
            seen.add(
                controller.line,
                format!("controller {:?} has one port", controller.name),
            );
        }
    }
}

fn single_fabric(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for host in &scene.plan.hosts {
        let networks: BTreeSet<&str> = storage(scene.plan, &host.ports)
            .map(|(_, n)| n.name.as_str())
            .collect();
        if let (Some(only), 1) = (networks.first(), networks.len()) {
            seen.add(
                host.line,
                format!(
                    "host {:?} reaches its storage by network {only:?} alone",
                    host.name
                ),
            );
        }
    }
}

fn lan_and_storage_mixed(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for network in scene
        .plan
        .networks
        .iter()
        .filter(|network| network.carries == Carries::Both)
    {
        seen.add(
            network.line,
            format!(
                "network {:?} carries storage and everything else",
                network.name
            ),
        );
    }
}

/// Each network for storage with the one that it leads to.
fn uplinks(plan: &Plan) -> impl Iterator<Item = (&Network, &Network, u16)> {
    plan.networks
        .iter()
        .filter(|network| network.carries.storage())
        .filter_map(move |network| {
            let uplink = network.uplink.as_ref()?;
            Some((network, self::network(plan, &uplink.to)?, uplink.links))
        })
}

fn mtu_differs(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for (network, above, _) in uplinks(scene.plan) {
        if let (
            NetworkKind::Ethernet { mtu_bytes: here },
            NetworkKind::Ethernet { mtu_bytes: there },
        ) = (network.kind, above.kind)
            && here != there
        {
            seen.add(
                network.line,
                format!(
                    "network {:?} has an MTU of {here}, and {:?} behind it {there}",
                    network.name, above.name
                ),
            );
        }
    }
}

fn small_frames(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for network in scene
        .plan
        .networks
        .iter()
        .filter(|network| network.carries.storage())
    {
        if let NetworkKind::Ethernet { mtu_bytes } = network.kind
            && mtu_bytes <= 1500
        {
            seen.add(
                network.line,
                format!(
                    "network {:?} carries storage in frames of {mtu_bytes} bytes",
                    network.name
                ),
            );
        }
    }
}

fn mixed_speeds(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for host in &scene.plan.hosts {
        let speeds: BTreeSet<u64> = storage(scene.plan, &host.ports)
            .map(|(_, network)| network.bits_per_s)
            .collect();
        if let (Some(least), Some(most), true) = (speeds.first(), speeds.last(), speeds.len() > 1) {
            seen.add(
                host.line,
                format!(
                    "host {:?} reaches its storage at {} and at {} Mb/s",
                    host.name,
                    least / 1_000_000,
                    most / 1_000_000
                ),
            );
        }
    }
}

/// Bits a second of all `ports` in `network`.
fn bits_per_s(ports: &[Ports], network: &Network) -> u128 {
    let ours = ports.iter().filter(|ports| ports.network == network.name);
    ours.map(|ports| u128::from(ports.count)).sum::<u128>() * u128::from(network.bits_per_s)
}

fn hosts_bits_per_s(plan: &Plan, network: &Network) -> u128 {
    let hosts = plan.hosts.iter();
    hosts
        .map(|host| bits_per_s(&host.ports, network) * u128::from(host.count))
        .sum()
}

fn port_fan_in(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for network in scene
        .plan
        .networks
        .iter()
        .filter(|network| network.carries.storage())
    {
        let hosts = hosts_bits_per_s(scene.plan, network);
        let controllers: u128 = scene
            .plan
            .controllers
            .iter()
            .map(|one| bits_per_s(&one.ports, network))
            .sum();
        if controllers > 0 && hosts > FAN_IN_MOST * controllers {
            seen.add(
                network.line,
                format!(
                    "ports of hosts in {:?} have {} times the speed of those of controllers",
                    network.name,
                    hosts / controllers
                ),
            );
        }
    }
}

fn narrow_uplink(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for (network, above, links) in uplinks(scene.plan) {
        let uplink = u128::from(links) * u128::from(network.bits_per_s);
        let hosts = hosts_bits_per_s(scene.plan, network);
        if hosts > UPLINK_MOST * uplink {
            seen.add(
                network.line,
                format!(
                    "ports of hosts in {:?} have {} times the speed of the links to {:?}",
                    network.name,
                    hosts / uplink,
                    above.name
                ),
            );
        }
    }
}

fn links_too_thin(scene: &Scene<'_>, seen: &mut CheckFindings) {
    let hosts = scene.plan.hosts.iter();
    let numbered = hosts.flat_map(|host| host.names().into_iter().map(move |name| (host, name)));
    let planned = scene.demand.by_host(scene.plan, |vm| {
        flows(vm).map(|flow| flow.per_s * flow.bytes()).sum()
    });
    let mut said: BTreeSet<usize> = BTreeSet::new();
    for ((host, name), bytes) in numbered.zip(planned) {
        let links: f64 = storage(scene.plan, &host.ports)
            .map(|(ports, network)| f64::from(ports.count) * network.bits_per_s as f64 / 8.0)
            .sum();
        if bytes > 0.7 * links && said.insert(host.line) {
            seen.add(
                host.line,
                format!(
                    "VMs of host {name:?} plan {:.0} MB/s on links of {:.0} MB/s",
                    bytes / 1e6,
                    links / 1e6
                ),
            );
        }
    }
}

fn flows(vm: &Vm) -> impl Iterator<Item = &crate::plan::demand::Flow> {
    vm.disks.iter().flat_map(|disk| &disk.flows)
}

fn several_links(scene: &Scene<'_>, host: &Machine) -> bool {
    count(storage(scene.plan, &host.ports)) > 1
}

fn hash_of_one_address(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for host in &scene.plan.hosts {
        if host.balance == Balance::IpHash && host.addresses == 1 && several_links(scene, host) {
            seen.add(
                host.line,
                format!(
                    "host {:?} hashes one address of its storage over several links",
                    host.name
                ),
            );
        }
    }
}

fn one_link_policy(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for host in &scene.plan.hosts {
        if matches!(host.balance, Balance::Port | Balance::Mac) && several_links(scene, host) {
            seen.add(
                host.line,
                format!("host {:?} uses one of its links for all storage", host.name),
            );
        }
    }
}

fn iscsi_over_a_link_group(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for host in &scene.plan.hosts {
        let iscsi = matches!(
            host.initiator,
            Initiator::IscsiSoftware | Initiator::IscsiHardware
        );
        let group = matches!(host.balance, Balance::Port | Balance::Mac | Balance::IpHash);
        if iscsi && group {
            seen.add(
                host.line,
                format!("host {:?} has iSCSI over a group of links", host.name),
            );
        }
    }
}

fn lun_queue_too_short(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for (place, vm_group) in scene.plan.vm_groups.iter().enumerate() {
        let Some(host) = scene
            .plan
            .hosts
            .iter()
            .find(|host| vm_group.hosts.contains(&host.name))
        else {
            continue;
        };
        let mut under_way: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        let vms = scene.demand.vms.iter().filter(|vm| vm.vm_group == place);
        for (turn, vm) in vms.enumerate() {
            for (number, disk) in vm.disks.iter().enumerate() {
                let lun = match vm_group.luns {
                    Luns::PerDisk => (turn, number),
                    Luns::PerVm => (turn, 0),
                    Luns::Shared(luns) => (vm.host, turn % usize::from(luns)),
                };
                let closed: f64 = disk.flows.iter().filter_map(|flow| flow.outstanding).sum();
                *under_way.entry(lun).or_default() += closed;
            }
        }
        let most = under_way.values().copied().fold(0.0, f64::max);
        let is_shared = matches!(vm_group.luns, Luns::Shared(_));
        let queue = catalog::lun_queue(host, is_shared);
        if most > queue as f64 {
            seen.add(
                vm_group.line,
                format!(
                    "{most:.0} commands of VM group {:?} are meant for a LUN whose queue has {queue}",
                    vm_group.name
                ),
            );
        }
    }
}
