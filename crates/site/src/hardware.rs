//! Reads hardware and load to model: tables of their own, and what drives, pools and hosts say
//! besides.

use crate::diagnostic::Lines;
use crate::drive_models;
use crate::event;
use crate::loads::{self, Loads};
use crate::names::{NAME_RULE, is_name};
use crate::plan::{
    Adapter, Balance, Bus, Carries, Controller, Costs, DriveModel, DriveShare, Event, Groups,
    Initiator, Lot, Luns, Network, NetworkKind, Placement, Ports, Run, TRACE, Uplink, VmGroup,
};
use crate::quantity::{RATE_RULE, TIME_RULE, number, rate, time};
use crate::read::{LEVEL_RULE, level_of, name, role, size_of, tables, whole};
use crate::size::SIZE_RULE;
use crate::spread;
use crate::table::{Row, TableReader};
use crate::types::Provisioning;
use engine::Level;
use engine::raid::spread::SPREAD_DRIVES_MAX;
use std::time::Duration;
use toml::de::DeValue;

/// Tables that are only modelled.
pub(crate) const TABLES: [&str; 13] = [
    "drive_model",
    "profile",
    "capture",
    "measured",
    "controller",
    "bus",
    "drives",
    "network",
    "vm_group",
    "run",
    "event",
    "variant",
    "vary",
];

/// What is only modelled, as the file says it.
pub(crate) struct Hardware {
    pub(crate) run: Run,
    pub(crate) controllers: Vec<Controller>,
    pub(crate) buses: Vec<Bus>,
    /// The bus is empty where the file names none.
    pub(crate) lots: Vec<Lot>,
    pub(crate) drive_models: Vec<DriveModel>,
    pub(crate) networks: Vec<Network>,
    pub(crate) vm_groups: Vec<VmGroup>,
    pub(crate) events: Vec<Event>,
    pub(crate) loads: Loads,
}

/// What a pool says for its model.
pub(crate) struct PoolHardware {
    pub(crate) controller: Option<String>,
    /// Groups out of lots, in the place of drives by their names.
    pub(crate) groups: Vec<Row<Groups>>,
    pub(crate) spares: Vec<DriveShare>,
}

/// What a host says for its model.
pub(crate) struct MachineRow {
    pub(crate) count: u16,
    pub(crate) cores: Option<u16>,
    pub(crate) clock_ghz: Option<f64>,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) numa_nodes: Option<u16>,
    pub(crate) witness: bool,
    /// None where the file says nothing.
    pub(crate) ports: Vec<Ports>,
    pub(crate) initiator: Initiator,
    pub(crate) balance: Balance,
    pub(crate) addresses: u16,
    pub(crate) lun_queue: Option<u16>,
}

/// Keys of a host that are only modelled.
pub(crate) const MACHINE_KEYS: [&str; 11] = [
    "count",
    "cores",
    "clock_ghz",
    "memory",
    "numa_nodes",
    "witness",
    "ports",
    "initiator",
    "balance",
    "addresses",
    "lun_queue",
];

/// Reads the tables that are only modelled.
pub(crate) fn read(file: &mut TableReader<'_, '_>, lines: &Lines) -> Hardware {
    let hardware = Hardware {
        run: run(file, lines),
        controllers: items(tables(file, lines, "controller", controller)),
        buses: items(tables(file, lines, "bus", bus)),
        lots: items(tables(file, lines, "drives", lot)),
        drive_models: drive_models::read(file, lines),
        networks: items(tables(file, lines, "network", network)),
        vm_groups: items(tables(file, lines, "vm_group", vm_group)),
        events: items(tables(file, lines, "event", event::event)),
        loads: loads::read(file, lines),
    };
    // Read by `variants`, which takes them out before a plan is read.
    for key in ["variant", "vary"] {
        file.tables(key);
    }
    hardware
}

fn items<T>(rows: Vec<Row<T>>) -> Vec<T> {
    rows.into_iter().map(|row| row.item).collect()
}

const RUN_DEFAULT: Run = Run {
    warmup: Duration::from_secs(30),
    measure: Duration::from_secs(120),
    seed: 1,
    seeds: 1,
    limit: Duration::from_millis(20),
};

fn run(file: &mut TableReader<'_, '_>, lines: &Lines) -> Run {
    let Some((line, table)) = file.table("run") else {
        return RUN_DEFAULT;
    };
    let mut reader = TableReader::new("run", line, table, lines, file.found());
    let warmup = reader.optional("warmup", TIME_RULE, time);
    let rule = format!("{TIME_RULE}, above zero");
    let mut span = |key| reader.optional(key, &rule, |value| time(value).filter(|t| !t.is_zero()));
    let (measure, limit) = (span("measure"), span("limit"));
    let seed = reader.optional("seed", "a whole number from 0 to 65535", whole);
    let rule = "a whole number from 1 to 100";
    let seeds = reader.optional("seeds", rule, |value| between(value, 1, 100));
    let run = Run {
        warmup: warmup.unwrap_or(RUN_DEFAULT.warmup),
        measure: measure.unwrap_or(RUN_DEFAULT.measure),
        seed: seed.map_or(RUN_DEFAULT.seed, u64::from),
        seeds: seeds.unwrap_or(RUN_DEFAULT.seeds),
        limit: limit.unwrap_or(RUN_DEFAULT.limit),
    };
    reader.finish(run).item
}

/// The highest limit of I/Os per second: more than any virtual disk does.
pub(crate) const IOPS_MAX: u32 = 1_000_000;

/// A whole number from `min` to `max`, which may be large.
pub(crate) fn counted(value: &DeValue<'_>, min: u32, max: u32) -> Option<u32> {
    let number = number(value)?;
    let whole = number.fract() == 0.0 && (f64::from(min)..=f64::from(max)).contains(&number);
    whole.then_some(number as u32)
}

/// A whole number from `min` to `max`.
pub(crate) fn between(value: &DeValue<'_>, min: u16, max: u16) -> Option<u16> {
    whole(value).filter(|number| (min..=max).contains(number))
}

/// How many of something: 1 when the file says nothing.
fn count(reader: &mut TableReader<'_, '_>, max: u16) -> u16 {
    let rule = format!("a whole number from 1 to {max}");
    let count = reader.optional("count", &rule, |value| between(value, 1, max));
    count.unwrap_or(1)
}

/// A name that something else has.
pub(crate) fn word(reader: &mut TableReader<'_, '_>, key: &'static str, what: &str) -> String {
    let rule = format!("{what}, {NAME_RULE}");
    let word = reader.required(key, &rule, named);
    word.unwrap_or_default()
}

pub(crate) fn named(value: &DeValue<'_>) -> Option<String> {
    let word = value.as_str().filter(|word| is_name(word));
    word.map(str::to_owned)
}

/// Names that something else has, which may be absent.
fn words(reader: &mut TableReader<'_, '_>, key: &'static str, what: &str) -> Vec<String> {
    let rule = format!("a list of names: {what}, {NAME_RULE}");
    let words = reader.optional(key, &rule, |value| {
        let words: Option<Vec<String>> = value
            .as_array()?
            .iter()
            .map(|element| named(element.get_ref()))
            .collect();
        words.filter(|words| !words.is_empty())
    });
    words.unwrap_or_default()
}

/// The same, where it may be absent.
pub(crate) fn word_if_there(
    reader: &mut TableReader<'_, '_>,
    key: &'static str,
    what: &str,
) -> Option<String> {
    reader.optional(key, &format!("{what}, {NAME_RULE}"), named)
}

fn controller(mut reader: TableReader<'_, '_>) -> Row<Controller> {
    let line = reader.header_line();
    let name = name(&mut reader, "name");
    let model = word(&mut reader, "model", "a controller model's name");
    let cores = reader.optional("cores", "a whole number from 1 to 1024", |value| {
        between(value, 1, 1024)
    });
    let cache_bytes = room(&mut reader, "cache");
    let checksum_bytes = reader.optional("checksum_memory", SIZE_RULE, size_of);
    let write_cache_bytes = room(&mut reader, "write_cache");
    let partner = word_if_there(&mut reader, "partner", "a controller's name");
    let placement = choice(&mut reader, "placement", PLACEMENTS);
    let writes_anywhere = choice(&mut reader, "writes", WRITES);
    let file_system = choice(&mut reader, "file_system", FILE_SYSTEMS);
    let drive_queue = reader.optional("drive_queue", "a whole number from 1 to 1024", |value| {
        between(value, 1, 1024)
    });
    let costs = costs(&mut reader);
    let ports = ports(&mut reader, "controller.ports");
    if ports.is_empty() && reader.line_of("ports").is_none() {
        reader.report(line, "ports", "nothing".to_owned(), PORTS_RULE);
    }
    reader.finish(Controller {
        name,
        line,
        model,
        cores,
        cache_bytes,
        checksum_bytes,
        write_cache_bytes,
        partner,
        placement,
        writes_anywhere,
        file_system,
        drive_queue,
        costs,
        ports,
    })
}

fn costs(reader: &mut TableReader<'_, '_>) -> Costs {
    let mut cost = |key| {
        let rule = "microseconds: a number, zero or above";
        reader.optional(key, rule, |value| number(value).filter(|us| *us >= 0.0))
    };
    Costs {
        per_command_us: cost("per_command_us"),
        per_kib_us: cost("per_kib_us"),
        per_drive_command_us: cost("per_drive_command_us"),
        per_parity_kib_us: cost("per_parity_kib_us"),
        per_log_kib_us: cost("per_log_kib_us"),
    }
}

/// Where pools lie on their drives.
const PLACEMENTS: &[(&str, Placement)] = &[
    ("outside-in", Placement::OutsideIn),
    ("spread", Placement::Spread),
];

/// Where writes of its hosts go, and whether that is anywhere.
const WRITES: &[(&str, bool)] = &[("in-place", false), ("anywhere", true)];

/// File systems before pools, and whether there is one.
const FILE_SYSTEMS: &[(&str, bool)] = &[("none", false), ("mapped", true)];

/// A size, or none of it.
fn room(reader: &mut TableReader<'_, '_>, key: &'static str) -> Option<u64> {
    let rule = format!("\"none\", or {SIZE_RULE}");
    reader.optional(key, &rule, |value| match value.as_str()? {
        "none" => Some(0),
        _ => size_of(value),
    })
}

const PORTS_RULE: &str = "a list of ports, such as { network = \"san\", count = 2 }";

fn ports(reader: &mut TableReader<'_, '_>, table: &'static str) -> Vec<Ports> {
    let tables = reader.tables_as("ports", PORTS_RULE);
    let one = |at| {
        let mut reader = reader.nested(table, at);
        let network = word(&mut reader, "network", "a network's name");
        let count = count(&mut reader, 64);
        reader.finish(Ports { network, count }).item
    };
    tables.into_iter().map(one).collect()
}

fn bus(mut reader: TableReader<'_, '_>) -> Row<Bus> {
    let line = reader.header_line();
    let name = name(&mut reader, "name");
    let kind = word(&mut reader, "kind", "a bus model's name");
    reader.finish(Bus { name, line, kind })
}

fn lot(mut reader: TableReader<'_, '_>) -> Row<Lot> {
    let line = reader.header_line();
    let name = name(&mut reader, "name");
    let model = word(&mut reader, "model", "a drive model's name");
    let rule = "a whole number from 1 to 20000";
    let count = reader.required("count", rule, |value| between(value, 1, 20_000));
    let bus = word_if_there(&mut reader, "bus", "a bus's name");
    reader.finish(Lot {
        name,
        line,
        model,
        count: count.map_or(1, u32::from),
        bus: bus.unwrap_or_default(),
        names: Vec::new(),
        drive_bytes: None,
        measured: None,
    })
}

/// What a pool says for its model.
pub(crate) fn pool(reader: &mut TableReader<'_, '_>) -> PoolHardware {
    let controller = word_if_there(reader, "controller", "a controller's name");
    let rule = "a list of groups, such as { level = \"5\", drives = 5, from = \"sas\", count = 8 }";
    let tables = reader.tables_as("groups", rule);
    if let Some(line) = reader.line_of("groups").filter(|_| tables.is_empty()) {
        reader.report(line, "groups", "an empty list".to_owned(), rule);
    }
    let groups = tables.into_iter();
    let groups = groups.map(|at| self::groups(reader.nested("pool.groups", at)));
    let groups = groups.collect();
    let spares = match reader.lists_tables("spares") {
        true => reader.tables_as("spares", "a list such as { from = \"sas\", count = 2 }"),
        false => Vec::new(),
    };
    let one = |at| {
        let mut reader = reader.nested("pool.spares", at);
        let from = word(&mut reader, "from", "the name of a lot of drives");
        let count = count(&mut reader, 1_000);
        reader.finish(DriveShare { from, count }).item
    };
    let spares = spares.into_iter().map(one).collect();
    PoolHardware {
        controller,
        groups,
        spares,
    }
}

fn groups(mut reader: TableReader<'_, '_>) -> Row<Groups> {
    let level = reader.required("level", LEVEL_RULE, level_of);
    let rule = format!("a whole number from 1 to {SPREAD_DRIVES_MAX}");
    let most = SPREAD_DRIVES_MAX as u16;
    let drives = reader.required("drives", &rule, |value| between(value, 1, most));
    let count = count(&mut reader, 1_000);
    let from = word(&mut reader, "from", "the name of a lot of drives");
    let role = role(&mut reader);
    let spread = spread::spread(&mut reader, level, role);
    let groups = Groups {
        level: level.unwrap_or(Level::Simple),
        spread,
        role,
        drives: drives.unwrap_or(1),
        count,
        from,
    };
    reader.finish(groups)
}

fn network(mut reader: TableReader<'_, '_>) -> Row<Network> {
    let line = reader.header_line();
    let name = name(&mut reader, "name");
    let is_fc = reader.text("kind") == Some("fibre-channel");
    let rule = "\"ethernet\" or \"fibre-channel\"";
    reader.required("kind", rule, |value| {
        matches!(value.as_str(), Some("ethernet" | "fibre-channel")).then_some(())
    });
    let choices = [
        ("storage", Carries::Storage),
        ("lan", Carries::Lan),
        ("both", Carries::Both),
    ];
    let carries = choice(&mut reader, "carries", &choices);
    let bits_per_s = reader.required("speed", RATE_RULE, rate);
    let rule = "bytes of a frame of Ethernet, a whole number from 576 to 9216";
    let mtu = reader.optional("mtu", rule, |value| {
        between(value, 576, 9216).filter(|_| !is_fc)
    });
    let switches = reader.optional("switches", "a whole number from 0 to 16", |value| {
        between(value, 0, 16)
    });
    let uplink = reader.table("uplink").map(|at| {
        let mut reader = reader.nested("network.uplink", at);
        let to = word(&mut reader, "to", "a network's name");
        let links = reader.optional("links", "a whole number from 1 to 64", |value| {
            between(value, 1, 64)
        });
        let links = links.unwrap_or(1);
        reader.finish(Uplink { to, links }).item
    });
    let kind = match is_fc {
        true => NetworkKind::FibreChannel,
        false => NetworkKind::Ethernet {
            mtu_bytes: mtu.unwrap_or(1500),
        },
    };
    reader.finish(Network {
        name,
        line,
        kind,
        carries: carries.unwrap_or(Carries::Storage),
        bits_per_s: bits_per_s.unwrap_or(1),
        switches: switches.unwrap_or(1),
        uplink,
    })
}

/// One of several words.
pub(crate) fn choice<T: Copy>(
    reader: &mut TableReader<'_, '_>,
    key: &'static str,
    choices: &[(&str, T)],
) -> Option<T> {
    let words: Vec<String> = choices
        .iter()
        .map(|(word, _)| format!("{word:?}"))
        .collect();
    reader.optional(key, &words.join(" or "), |value| {
        let text = value.as_str()?;
        choices
            .iter()
            .find(|(word, _)| *word == text)
            .map(|(_, choice)| *choice)
    })
}

/// What a host says for its model.
pub(crate) fn machine(reader: &mut TableReader<'_, '_>) -> MachineRow {
    let count = count(reader, 10_000);
    let cores = reader.optional("cores", "a whole number from 1 to 1024", |value| {
        between(value, 1, 1024)
    });
    let clock_ghz = reader.optional("clock_ghz", "a number from 0.1 to 10", |value| {
        number(value).filter(|ghz| (0.1..=10.0).contains(ghz))
    });
    let memory_bytes = reader.optional("memory", SIZE_RULE, size_of);
    let rule = "a whole number from 1 to 64";
    let numa_nodes = reader.optional("numa_nodes", rule, |value| between(value, 1, 64));
    let witness = reader.optional("witness", "true or false", DeValue::as_bool);
    let ports = ports(reader, "host.ports");
    let initiators = [
        ("iscsi", Initiator::IscsiSoftware),
        ("iscsi-adapter", Initiator::IscsiHardware),
        ("fibre-channel", Initiator::FibreChannel),
        ("nfs", Initiator::Nfs),
        ("none", Initiator::None),
    ];
    let initiator = choice(reader, "initiator", &initiators);
    let balances = [
        ("round-robin", Balance::RoundRobin),
        ("least-queue", Balance::LeastQueue),
        ("port", Balance::Port),
        ("mac", Balance::Mac),
        ("ip-hash", Balance::IpHash),
    ];
    let balance = choice(reader, "balance", &balances);
    let rule = "a whole number from 1 to 256";
    let addresses = reader.optional("addresses", rule, |value| between(value, 1, 256));
    let rule = "a whole number from 1 to 4096";
    let lun_queue = reader.optional("lun_queue", rule, |value| between(value, 1, 4096));
    MachineRow {
        count,
        cores,
        clock_ghz,
        memory_bytes,
        numa_nodes,
        witness: witness.unwrap_or(false),
        ports,
        initiator: initiator.unwrap_or(Initiator::IscsiSoftware),
        balance: balance.unwrap_or(Balance::RoundRobin),
        addresses: addresses.unwrap_or(1),
        lun_queue,
    }
}

/// How much of each disk is written before, percent.
pub(crate) fn filled(reader: &mut TableReader<'_, '_>) -> Option<u8> {
    let rule = "a whole number from 0 to 100, in percent";
    let percent = reader.optional("filled", rule, |value| between(value, 0, 100))?;
    u8::try_from(percent).ok()
}

const ADAPTERS: [(&str, Adapter); 5] = [
    ("lsi-sas", Adapter::LsiSas),
    ("pvscsi", Adapter::Pvscsi),
    ("vmbus", Adapter::Vmbus),
    ("virtio", Adapter::Virtio),
    ("none", Adapter::None),
];

/// The profile of a VM group, or a trace.
fn profile(reader: &mut TableReader<'_, '_>) -> Option<String> {
    let rule = format!(
        "a workload profile's name, {NAME_RULE}, or \"{TRACE}FILE\" (\"{TRACE}FILE,FORMAT\")"
    );
    reader.required("profile", &rule, |value| {
        let trace = value.as_str().filter(|text| {
            let file = text.strip_prefix(TRACE);
            file.is_some_and(|file| !file.is_empty())
        });
        named(value).or_else(|| trace.map(str::to_owned))
    })
}

/// How much VMs ask for, where a VM group says otherwise than the profile.
struct Asks {
    scale: Option<f64>,
    outstanding: Option<u16>,
    think: Option<Duration>,
    work: Option<Duration>,
    connections: Option<u16>,
}

fn asks(reader: &mut TableReader<'_, '_>) -> Asks {
    let rule = "a whole number from 1 to 4096";
    Asks {
        scale: reader.optional("scale", "a number above zero, at most 1000", |value| {
            number(value).filter(|scale| *scale > 0.0 && *scale <= 1000.0)
        }),
        outstanding: reader.optional("outstanding", rule, |value| between(value, 1, 4096)),
        think: reader.optional("think", TIME_RULE, time),
        work: reader.optional("work", TIME_RULE, time),
        connections: reader.optional("connections", rule, |value| between(value, 1, 4096)),
    }
}

fn vm_group(mut reader: TableReader<'_, '_>) -> Row<VmGroup> {
    let line = reader.header_line();
    let name = name(&mut reader, "name");
    let profile = profile(&mut reader);
    let profile = profile.unwrap_or_default();
    let roles = words(&mut reader, "roles", "VMs of the profile");
    let count = count(&mut reader, 10_000);
    let hosts = words(&mut reader, "hosts", "hosts");
    let pools = words(&mut reader, "pools", "pools");
    let disk_pools = words(&mut reader, "disk_pools", "a pool for each disk of a VM");
    let adapter = choice(&mut reader, "adapter", &ADAPTERS);
    let rule = "\"per-disk\", \"per-vm\", or a number of datastores from 1 to 256";
    let luns = reader.optional("luns", rule, |value| match value.as_str() {
        Some("per-disk") => Some(Luns::PerDisk),
        Some("per-vm") => Some(Luns::PerVm),
        _ => between(value, 1, 256).map(Luns::Shared),
    });
    let provisionings = [("thin", Provisioning::Thin), ("thick", Provisioning::Thick)];
    let provisioning = choice(&mut reader, "provisioning", &provisionings);
    let filled = filled(&mut reader);
    let asks = asks(&mut reader);
    let memory_bytes = reader.optional("memory", SIZE_RULE, size_of);
    let rule = "I/Os per second, a whole number from 1 to 1000000";
    let limit_iops = reader.optional("limit_iops", rule, |value| counted(value, 1, IOPS_MAX));
    reader.finish(VmGroup {
        name,
        line,
        profile,
        roles,
        count,
        hosts,
        pools,
        disk_pools,
        adapter: adapter.unwrap_or(Adapter::None),
        luns: luns.unwrap_or(Luns::PerDisk),
        provisioning: provisioning.unwrap_or(Provisioning::Thick),
        filled_percent: filled.unwrap_or(100),
        scale: asks.scale.unwrap_or(1.0),
        outstanding: asks.outstanding,
        think: asks.think,
        work: asks.work,
        connections: asks.connections,
        memory_bytes,
        limit_iops,
        disk_bytes: Vec::new(),
        disk_provisioning: Vec::new(),
    })
}
