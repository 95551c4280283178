//! The connections of a site at the start of a run, for drawings.
//!
//! Invariant: links, lanes, pools' drives and drives are called as [`crate::run::share`] calls them.

use crate::parts::pool::PoolRig;
use crate::rig::Rig;
use serde::{Deserialize, Serialize};
use site::plan::{Plan, Ports};
use std::rc::Rc;

/// The parts of a site, as the page draws them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LayoutReport {
    /// Each by itself, in the order of the file.
    pub hosts: Vec<HostLayout>,
    /// In the order of the file.
    pub networks: Vec<NetworkLayout>,
    /// In the order of the file.
    pub controllers: Vec<ControllerLayout>,
    /// In the order of the file.
    pub buses: Vec<BusLayout>,
    /// In the order of the file.
    pub pools: Vec<PoolLayout>,
}

/// A host that runs VMs of the site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostLayout {
    /// The name of the host in the file.
    pub name: String,
    /// Its ports: links are called so, with their direction.
    pub ports: Vec<String>,
    /// Names of its VMs.
    pub vms: Vec<String>,
}

/// A network between hosts and controllers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkLayout {
    /// The name of the network in the file.
    pub name: String,
    /// Of each of its links, as it is sold.
    pub bits_per_s: u64,
    /// Its links to another network.
    pub uplinks: Vec<String>,
}

/// A controller that serves pools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ControllerLayout {
    /// The name of the controller in the file.
    pub name: String,
    /// Whom it mirrors its write cache to.
    pub partner: Option<String>,
    /// Its ports: links are called so, with their direction.
    pub ports: Vec<String>,
}

/// A bus between a controller and its drives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BusLayout {
    /// The name of the bus in the file.
    pub name: String,
    /// Its directions, as they are told; one where both share them.
    pub lanes: Vec<String>,
}

/// A pool with its groups and spares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PoolLayout {
    /// The name of the pool in the file.
    pub name: String,
    /// The name of the controller that serves it.
    pub controller: String,
    /// Its drives together, kind by kind, as they are told.
    pub kinds: Vec<String>,
    /// The drives of its groups.
    pub drives: Vec<String>,
    /// Drives that stand in for those that fail.
    pub spares: Vec<String>,
}

/// Reads the layout of a rig, which is of `plan`.
pub fn layout(plan: &Plan, rig: &Rig) -> LayoutReport {
    LayoutReport {
        hosts: hosts(plan, rig),
        networks: plan.networks.iter().map(network).collect(),
        controllers: plan.controllers.iter().map(controller).collect(),
        buses: rig
            .buses
            .iter()
            .map(|bus| BusLayout {
                name: bus.name.clone(),
                lanes: bus.lane_names(),
            })
            .collect(),
        pools: rig.pools.iter().zip(&plan.pools).map(pool).collect(),
    }
}

fn hosts(plan: &Plan, rig: &Rig) -> Vec<HostLayout> {
    let of_host = |host: &site::plan::Machine| {
        let named = |name: String| {
            let vms = rig.vms.iter().filter(|vm| vm.host.borrow().name == name);
            HostLayout {
                ports: ports(&name, &host.ports),
                vms: vms.map(|vm| vm.name.clone()).collect(),
                name,
            }
        };
        host.names().into_iter().map(named).collect::<Vec<_>>()
    };
    plan.hosts.iter().flat_map(of_host).collect()
}

/// Names of the ports of a host or controller.
fn ports(owner: &str, ports: &[Ports]) -> Vec<String> {
    let of_network = |of: &Ports| {
        let network = of.network.clone();
        (1..=of.count).map(move |number| format!("{owner} {network} {number}"))
    };
    ports.iter().flat_map(of_network).collect()
}

fn network(network: &site::plan::Network) -> NetworkLayout {
    let uplinks = network.uplink.iter().flat_map(|uplink| {
        let to = &uplink.to;
        (1..=uplink.links).map(move |number| format!("{} to {to} {number}", network.name))
    });
    NetworkLayout {
        name: network.name.clone(),
        bits_per_s: network.bits_per_s,
        uplinks: uplinks.collect(),
    }
}

fn controller(controller: &site::plan::Controller) -> ControllerLayout {
    ControllerLayout {
        name: controller.name.clone(),
        partner: controller.partner.clone(),
        ports: ports(&controller.name, &controller.ports),
    }
}

fn pool((rig, plan): (&Rc<PoolRig>, &site::plan::Layout)) -> PoolLayout {
    let spares: usize = plan
        .spares
        .iter()
        .map(|taken| usize::from(taken.count))
        .sum();
    let (drives, spares) = rig.drives.split_at(rig.drives.len() - spares);
    let mut kinds: Vec<String> = Vec::new();
    for drive in &rig.drives {
        let kind = format!("{}, {}", rig.name, drive.kind().name());
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let names = |drives: &[std::rc::Rc<crate::parts::drive::DriveRig>]| {
        drives.iter().map(|drive| drive.name.clone()).collect()
    };
    PoolLayout {
        name: rig.name.clone(),
        controller: plan.controller.clone(),
        kinds,
        drives: names(drives),
        spares: names(spares),
    }
}
