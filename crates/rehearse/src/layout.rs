//! The connections of a site at the start of a run, for drawings.
//!
//! Invariant: links, lanes, pools' drives and drives are called as [`crate::share`] calls them.

use crate::report::schema::{
    BusLayout, ControllerLayout, HostLayout, LayoutReport, NetworkLayout, PoolLayout,
};
use crate::rig::{PoolRig, Rig};
use site::plan::{Plan, Ports};
use std::rc::Rc;

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
    let names = |drives: &[std::rc::Rc<crate::drive::DriveRig>]| {
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
