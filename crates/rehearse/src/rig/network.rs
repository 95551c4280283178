//! Ports of all hosts and controllers, links between networks, and the ways over them.

use crate::parts::network::{PortPath, PortRig};
use crate::plan::catalog;
use site::plan::{Machine, Network, Plan, Ports};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A port and its network.
struct Connected {
    network: String,
    port: Rc<PortRig>,
}

/// All ports of a site.
pub struct Fabric {
    hosts: BTreeMap<String, Vec<Connected>>,
    controllers: BTreeMap<String, Vec<Connected>>,
    /// Links out of a network, with the network that they lead to.
    uplinks: BTreeMap<String, (String, Vec<Rc<PortRig>>)>,
}

fn network<'a>(plan: &'a Plan, name: &str) -> &'a Network {
    let found = plan.networks.iter().find(|network| network.name == name);
    match found {
        Some(network) => network,
        None => unreachable!("a plan's names lead somewhere: {name}"),
    }
}

fn connect(plan: &Plan, owner: &str, ports: &[Ports]) -> Vec<Connected> {
    let mut connected = Vec::new();
    for of_network in ports {
        let link = catalog::link(network(plan, &of_network.network));
        for number in 1..=of_network.count {
            let name = format!("{owner} {} {number}", of_network.network);
            connected.push(Connected {
                network: of_network.network.clone(),
                port: Rc::new(PortRig::new(name, link)),
            });
        }
    }
    connected
}

impl Fabric {
    /// The ports of `plan`, at rest.
    pub(super) fn new(plan: &Plan) -> Fabric {
        let of_host = |host: &Machine| {
            let named = |name: String| {
                let ports = connect(plan, &name, &host.ports);
                (name, ports)
            };
            host.names().into_iter().map(named).collect::<Vec<_>>()
        };
        let uplink = |network: &Network| {
            let uplink = network.uplink.as_ref()?;
            let link = catalog::link(network);
            let ports = (1..=uplink.links).map(|number| {
                let name = format!("{} to {} {number}", network.name, uplink.to);
                Rc::new(PortRig::new(name, link))
            });
            Some((network.name.clone(), (uplink.to.clone(), ports.collect())))
        };
        let controllers = plan.controllers.iter();
        Fabric {
            hosts: plan.hosts.iter().flat_map(of_host).collect(),
            controllers: controllers
                .map(|c| (c.name.clone(), connect(plan, &c.name, &c.ports)))
                .collect(),
            uplinks: plan.networks.iter().filter_map(uplink).collect(),
        }
    }

    /// All ways from a host to a controller: each of the host's ports with each of the
    /// controller's that it reaches, neighbours in the list over different ports.
    pub fn ways(&self, host: &str, controller: &str) -> Vec<PortPath> {
        let none = Vec::new();
        let here = self.hosts.get(host).unwrap_or(&none);
        let there = self.controllers.get(controller).unwrap_or(&none);
        let mut ways = Vec::new();
        for turn in 0..there.len() {
            for (place, from) in here.iter().enumerate() {
                let to = &there[(place + turn) % there.len()];
                if let Some(between) = self.between(&from.network, &to.network, place + turn) {
                    let ends = [Rc::clone(&from.port), Rc::clone(&to.port)];
                    let [first, last] = ends;
                    let hops: Vec<Rc<PortRig>> =
                        [first].into_iter().chain(between).chain([last]).collect();
                    ways.push(PortPath(hops.into()));
                }
            }
        }
        ways
    }

    /// Ways from a controller to another, each with the way back: of both, a port in turn.
    pub fn between_controllers(&self, from: &str, to: &str) -> Vec<[PortPath; 2]> {
        let none = Vec::new();
        let here = self.controllers.get(from).unwrap_or(&none);
        let there = self.controllers.get(to).unwrap_or(&none);
        let mut ways = Vec::new();
        for turn in 0..here.len().max(there.len()) {
            // Each with the first from its turn on that it reaches.
            let reached = here.get(turn % here.len().max(1)).and_then(|from| {
                let others = (0..there.len()).map(|place| &there[(turn + place) % there.len()]);
                let mut others = others.filter_map(|to| {
                    let between = self.between(&from.network, &to.network, turn)?;
                    Some((from, between, to))
                });
                others.next()
            });
            if let Some((from, between, to)) = reached {
                let mut hops = vec![Rc::clone(&from.port)];
                hops.extend(between);
                hops.push(Rc::clone(&to.port));
                let back = hops.iter().rev().cloned().collect();
                ways.push([PortPath(hops.into()), PortPath(back)]);
            }
        }
        ways
    }

    /// Links on the way from one network to another, which may meet above both; none when
    /// there is no way.
    fn between(&self, from: &str, to: &str, turn: usize) -> Option<Vec<Rc<PortRig>>> {
        let (up, down) = (self.upwards(from, turn), self.upwards(to, turn));
        let met = up
            .iter()
            .position(|(name, _)| down.iter().any(|(other, _)| other == name))?;
        let other = down.iter().position(|(name, _)| *name == up[met].0)?;
        let mut hops: Vec<Rc<PortRig>> = up[1..=met]
            .iter()
            .filter_map(|(_, port)| port.clone())
            .collect();
        let back = down[1..=other].iter().rev();
        hops.extend(back.filter_map(|(_, port)| port.clone()));
        Some(hops)
    }

    /// The networks from one on upwards, each with the link that leads to it.
    fn upwards(&self, from: &str, turn: usize) -> Vec<(String, Option<Rc<PortRig>>)> {
        let mut way = vec![(from.to_owned(), None)];
        let mut at = from;
        while let Some((next, links)) = self.uplinks.get(at) {
            let link = Rc::clone(&links[turn % links.len()]);
            way.push((next.clone(), Some(link)));
            at = next;
        }
        way
    }

    /// Ports of a host into a network.
    pub fn host_ports(&self, host: &str, network: &str) -> Vec<Rc<PortRig>> {
        let connected = self.hosts.get(host).into_iter().flatten();
        let of_network = connected.filter(|connected| connected.network == network);
        of_network
            .map(|connected| Rc::clone(&connected.port))
            .collect()
    }

    /// All ports: of hosts, of links between networks, of controllers.
    pub fn ports(&self) -> impl Iterator<Item = &Rc<PortRig>> {
        let of_hosts = self.hosts.values().flatten().map(|c| &c.port);
        let of_uplinks = self.uplinks.values().flat_map(|(_, ports)| ports);
        let of_controllers = self.controllers.values().flatten().map(|c| &c.port);
        of_hosts.chain(of_uplinks).chain(of_controllers)
    }
}
