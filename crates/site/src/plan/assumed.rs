//! Hardware that is modelled where the file does not say it.

use super::types::{Assumption, Bus, Controller, Costs, Machine, Network, NetworkKind, Ports};
use super::types::{Carries, Initiator};
use crate::read::Rows;
use crate::size::human;
use crate::table::Row;
use std::collections::BTreeSet;

/// The model of a drive.
pub(super) const DRIVE_MODEL: &str = "nvme-7680";
/// The model of a controller: Ashlar, on four cores of a server of today.
const CONTROLLER_MODEL: &str = "ashlar";
const BUS_KIND: &str = "pcie";
const NETWORK: &str = "san";
const BITS_PER_S: u64 = 10_000_000_000;
const MTU_BYTES: u16 = 1500;
const SWITCHES: u16 = 1;
const CORES: u16 = 32;
const CLOCK_GHZ: f64 = 2.4;
const MEMORY_BYTES: u64 = 512 << 30;
/// Names that are listed of several.
const LISTED: usize = 3;
/// Where a file says what it does not say.
const NO_LINE: usize = 1;

/// All that was assumed so far.
#[derive(Default)]
pub(super) struct Assumed {
    pub(super) list: Vec<Assumption>,
}

impl Assumed {
    /// `key` would say otherwise.
    pub(super) fn say(&mut self, key: &str, value: String) {
        let key = key.to_owned();
        self.list.push(Assumption { key, value });
    }
}

/// Some names, and how many more.
pub(super) fn listed(names: &[&str]) -> String {
    let first: Vec<&str> = names.iter().copied().take(LISTED).collect();
    match names.len() - first.len() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

pub(super) fn networks(rows: &Rows, assumed: &mut Assumed) -> Vec<Network> {
    if !rows.hardware.networks.is_empty() {
        return rows.hardware.networks.clone();
    }
    let gigabits = BITS_PER_S / 1_000_000_000;
    let value = format!("\"{NETWORK}\": {gigabits} Gb/s Ethernet, MTU {MTU_BYTES}, one switch");
    assumed.say("network", value);
    vec![Network {
        name: NETWORK.to_owned(),
        line: NO_LINE,
        kind: NetworkKind::Ethernet {
            mtu_bytes: MTU_BYTES,
        },
        carries: Carries::Storage,
        bits_per_s: BITS_PER_S,
        switches: SWITCHES,
        uplink: None,
    }]
}

/// One controller where there is none: the RAM for reads of all pools, and a port for each
/// address of a portal.
pub(super) fn controllers(
    rows: &Rows,
    networks: &[Network],
    assumed: &mut Assumed,
) -> Vec<Controller> {
    if !rows.hardware.controllers.is_empty() {
        return rows.hardware.controllers.clone();
    }
    let storage = networks.iter().find(|network| network.carries.storage());
    let network = storage.map_or(NETWORK, |network| network.name.as_str());
    let addresses = rows.portals.iter().map(|row| row.item.address.ip());
    let ports = addresses.collect::<BTreeSet<_>>().len().clamp(1, 64) as u16;
    let caches = rows.pools.iter().map(|row| row.item.pool.cache_bytes);
    let cache_bytes = caches.fold(0, u64::saturating_add);
    let cache = human(cache_bytes);
    let value = format!(
        "one of model \"{CONTROLLER_MODEL}\", {cache} of cache, ports in network \"{network}\": {ports}"
    );
    assumed.say("controller", value);
    vec![Controller {
        name: "array".to_owned(),
        line: NO_LINE,
        model: CONTROLLER_MODEL.to_owned(),
        cores: None,
        cache_bytes: Some(cache_bytes),
        checksum_bytes: rows.limits.checksum_memory_bytes,
        write_cache_bytes: None,
        partner: None,
        placement: None,
        writes_anywhere: None,
        file_system: None,
        drive_queue: None,
        costs: Costs::default(),
        ports: vec![Ports {
            network: network.to_owned(),
            count: ports,
        }],
    }]
}

pub(super) fn buses(rows: &Rows, assumed: &mut Assumed) -> Vec<Bus> {
    if !rows.hardware.buses.is_empty() {
        return rows.hardware.buses.clone();
    }
    assumed.say("bus", format!("one of kind \"{BUS_KIND}\", for all drives"));
    vec![Bus {
        name: "bus".to_owned(),
        line: NO_LINE,
        kind: BUS_KIND.to_owned(),
    }]
}

/// Says which pools the first controller owns without being named.
pub(super) fn owners(rows: &Rows, controllers: &[Controller], assumed: &mut Assumed) {
    let pools = rows.pools.iter().map(|row| &row.item);
    let without = pools.filter(|row| row.modelled.controller.is_none());
    let without: Vec<&str> = without.map(|row| row.pool.name.as_str()).collect();
    // The only controller is no guess.
    if let [first, _, ..] = controllers
        && !without.is_empty()
    {
        let value = format!("\"{}\", for {}", first.name, listed(&without));
        assumed.say("pool.controller", value);
    }
}

/// The machines of the hosts; one where there is none.
pub(super) fn hosts(
    rows: &Rows,
    (controllers, networks): (&[Controller], &[Network]),
    assumed: &mut Assumed,
) -> Vec<Machine> {
    let ports = controllers.iter().flat_map(|controller| &controller.ports);
    let mut ports = ports.map(|ports| ports.network.as_str());
    let storage = |name: &&str| {
        let mut networks = networks.iter();
        networks.any(|network| network.name == *name && network.carries.storage())
    };
    let first = ports.clone().find(storage);
    let network = first.or_else(|| ports.next()).unwrap_or(NETWORK);
    let memory = human(MEMORY_BYTES);
    if rows.hosts.is_empty() {
        let value = format!(
            "one with {CORES} cores of {CLOCK_GHZ} GHz, {memory} of memory and a port in network \
             \"{network}\""
        );
        assumed.say("host", value);
        return vec![usual("host", network)];
    }
    let hosts = rows.hosts.iter().map(|row| machine(row, network)).collect();
    for (key, value) in [
        ("cores", format!("{CORES}")),
        ("clock_ghz", format!("{CLOCK_GHZ}")),
        ("memory", format!("\"{memory}\"")),
        ("ports", format!("one in network \"{network}\"")),
    ] {
        let without = rows.hosts.iter().filter(|row| !row.has(key));
        let without: Vec<&str> = without.map(|row| row.item.host.name.as_str()).collect();
        if !without.is_empty() {
            let value = format!("{value}, for {}", listed(&without));
            assumed.say(&format!("host.{key}"), value);
        }
    }
    hosts
}

/// A machine that nothing is said of.
fn usual(name: &str, network: &str) -> Machine {
    Machine {
        name: name.to_owned(),
        line: NO_LINE,
        count: 1,
        cores: CORES,
        clock_ghz: CLOCK_GHZ,
        memory_bytes: MEMORY_BYTES,
        numa_nodes: None,
        witness: false,
        ports: vec![Ports {
            network: network.to_owned(),
            count: 1,
        }],
        initiator: Initiator::IscsiSoftware,
        balance: super::types::Balance::RoundRobin,
        addresses: 1,
        lun_queue: None,
    }
}

fn machine(row: &Row<crate::read::HostRow>, network: &str) -> Machine {
    let said = &row.item.machine;
    let usual = usual(&row.item.host.name, network);
    Machine {
        line: row.header_line(),
        count: said.count,
        cores: said.cores.unwrap_or(usual.cores),
        clock_ghz: said.clock_ghz.unwrap_or(usual.clock_ghz),
        memory_bytes: said.memory_bytes.unwrap_or(usual.memory_bytes),
        numa_nodes: said.numa_nodes,
        witness: said.witness,
        ports: match row.has("ports") {
            true => said.ports.clone(),
            false => usual.ports,
        },
        initiator: said.initiator,
        balance: said.balance,
        addresses: said.addresses,
        lun_queue: said.lun_queue,
        name: usual.name,
    }
}
