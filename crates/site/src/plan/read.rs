//! Reads TOML tables into the rows of a plan, every key with its own rule.

use super::event;
use super::quantity::{RATE_RULE, TIME_RULE, number, rate, time};
use super::types::{
    Adapter, Balance, Bus, Carries, Controller, Costs, Groups, Host, Initiator, Lot, Luns, Network,
    NetworkKind, Plan, Pool, Ports, Run, TRACE, Taken, Uplink, VmGroup,
};
use crate::diagnostic::{Diagnostic, Lines};
use crate::names::{NAME_RULE, is_name};
use crate::read::{LEVEL_RULE, level_of, name, power_of_two, size_of, tables, whole};
use crate::size::SIZE_RULE;
use crate::table::{Row, TableReader};
use crate::types::Provisioning;
use engine::Level;
use std::time::Duration;
use toml::de::{DeTable, DeValue};

/// A plan whose values are each right, not yet checked against each other.
pub(super) struct Rows {
    pub(super) plan: Plan,
    /// Of `plan.pools`, the lines of the groups.
    pub(super) group_lines: Vec<Vec<usize>>,
}

const RUN_DEFAULT: Run = Run {
    warmup: Duration::from_secs(30),
    measure: Duration::from_secs(120),
    seed: 1,
    seeds: 1,
    limit: Duration::from_millis(20),
};

/// Reads the whole document; what is wrong goes to `found`, and wrong values are replaced
/// by defaults that never leave this crate.
pub(super) fn plan(document: &DeTable<'_>, lines: &Lines, found: &mut Vec<Diagnostic>) -> Rows {
    let mut file = TableReader::new("", 1, document, lines, found);
    let (name, about) = site(&mut file, lines);
    let run = run(&mut file, lines);
    let controllers = items(tables(&mut file, lines, "controller", controller));
    let buses = items(tables(&mut file, lines, "bus", bus));
    let lots = items(tables(&mut file, lines, "drives", lot));
    let pools = tables(&mut file, lines, "pool", pool);
    let networks = items(tables(&mut file, lines, "network", network));
    let hosts = items(tables(&mut file, lines, "host", host));
    let vm_groups = items(tables(&mut file, lines, "vm_group", vm_group));
    let events = items(tables(&mut file, lines, "event", event::event));
    // Read by `variants`, which takes them out before anything else is read.
    for key in ["variant", "vary"] {
        file.tables(key);
    }
    for (key, count) in [
        ("controller", controllers.len()),
        ("bus", buses.len()),
        ("drives", lots.len()),
        ("pool", pools.len()),
        ("network", networks.len()),
        ("host", hosts.len()),
        ("vm_group", vm_groups.len()),
    ] {
        if count == 0 && !file.is_there(key) {
            let rule = format!("one or more tables [[{key}]]");
            file.report(1, key, "nothing".to_owned(), &rule);
        }
    }
    file.finish(());
    let (pools, group_lines) = pools.into_iter().map(|row| row.item).unzip();
    let plan = Plan {
        name,
        about,
        run,
        controllers,
        buses,
        lots,
        pools,
        networks,
        hosts,
        vm_groups,
        events,
    };
    Rows { plan, group_lines }
}

fn items<T>(rows: Vec<Row<T>>) -> Vec<T> {
    rows.into_iter().map(|row| row.item).collect()
}

fn site(file: &mut TableReader<'_, '_>, lines: &Lines) -> (String, Option<String>) {
    let Some((line, table)) = file.table("site") else {
        if file.line_of("site").is_none() {
            let rule = "a table [site] with a name";
            file.report(1, "site", "nothing".to_owned(), rule);
        }
        return (String::new(), None);
    };
    let mut reader = TableReader::new("site", line, table, lines, file.found());
    let name = name(&mut reader, "name");
    let about = reader.optional("about", "a sentence", |value| {
        value.as_str().map(str::to_owned)
    });
    reader.finish((name, about)).item
}

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
pub(super) const IOPS_MAX: u32 = 1_000_000;

/// A whole number from `min` to `max`, which may be large.
pub(super) fn counted(value: &DeValue<'_>, min: u32, max: u32) -> Option<u32> {
    let number = number(value)?;
    let whole = number.fract() == 0.0 && (f64::from(min)..=f64::from(max)).contains(&number);
    whole.then_some(number as u32)
}

/// A whole number from `min` to `max`.
pub(super) fn between(value: &DeValue<'_>, min: u16, max: u16) -> Option<u16> {
    whole(value).filter(|number| (min..=max).contains(number))
}

/// How many of something: 1 when the file says nothing.
fn count(reader: &mut TableReader<'_, '_>, max: u16) -> u16 {
    let rule = format!("a whole number from 1 to {max}");
    let count = reader.optional("count", &rule, |value| between(value, 1, max));
    count.unwrap_or(1)
}

/// A name that something else has.
pub(super) fn word(reader: &mut TableReader<'_, '_>, key: &'static str, what: &str) -> String {
    let rule = format!("{what}, {NAME_RULE}");
    let word = reader.required(key, &rule, named);
    word.unwrap_or_default()
}

pub(super) fn named(value: &DeValue<'_>) -> Option<String> {
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

fn controller(mut reader: TableReader<'_, '_>) -> Row<Controller> {
    let line = reader.header_line();
    let name = name(&mut reader, "name");
    let model = word(&mut reader, "model", "a controller model's name");
    let cores = reader.optional("cores", "a whole number from 1 to 1024", |value| {
        between(value, 1, 1024)
    });
    let cache_bytes = room(&mut reader, "cache");
    let write_cache_bytes = room(&mut reader, "write_cache");
    let rule = format!("a controller's name, {NAME_RULE}");
    let partner = reader.optional("partner", &rule, named);
    let mut cost = |key| {
        let rule = "microseconds: a number, zero or above";
        reader.optional(key, rule, |value| number(value).filter(|us| *us >= 0.0))
    };
    let costs = Costs {
        per_command_us: cost("per_command_us"),
        per_kib_us: cost("per_kib_us"),
        per_drive_command_us: cost("per_drive_command_us"),
        per_parity_kib_us: cost("per_parity_kib_us"),
        per_log_kib_us: cost("per_log_kib_us"),
    };
    let ports = ports(&mut reader, "controller.ports");
    reader.finish(Controller {
        name,
        line,
        model,
        cores,
        cache_bytes,
        write_cache_bytes,
        partner,
        costs,
        ports,
    })
}

/// A size, or none of it.
fn room(reader: &mut TableReader<'_, '_>, key: &'static str) -> Option<u64> {
    let rule = format!("\"none\", or {SIZE_RULE}");
    reader.optional(key, &rule, |value| match value.as_str()? {
        "none" => Some(0),
        _ => size_of(value),
    })
}

fn ports(reader: &mut TableReader<'_, '_>, table: &'static str) -> Vec<Ports> {
    let rule = "a list of ports, such as { network = \"san\", count = 2 }";
    let tables = reader.tables_as("ports", rule);
    if tables.is_empty() && reader.line_of("ports").is_none() {
        reader.report(reader.header_line(), "ports", "nothing".to_owned(), rule);
    }
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
    let bus = word(&mut reader, "bus", "a bus's name");
    reader.finish(Lot {
        name,
        line,
        model,
        count: count.map_or(1, u32::from),
        bus,
    })
}

fn pool(mut reader: TableReader<'_, '_>) -> Row<(Pool, Vec<usize>)> {
    let line = reader.header_line();
    let name = name(&mut reader, "name");
    let controller = word(&mut reader, "controller", "a controller's name");
    let rule = "a list of groups, such as { level = \"5\", drives = 5, from = \"sas\", count = 8 }";
    let tables = reader.tables_as("groups", rule);
    if tables.is_empty() {
        reader.report(line, "groups", "nothing".to_owned(), rule);
    }
    let group_lines = tables.iter().map(|(line, _)| *line).collect();
    let groups = tables
        .into_iter()
        .map(|at| groups(reader.nested("pool.groups", at)))
        .collect();
    let rule = "a list such as { from = \"sas\", count = 2 }";
    let tables = reader.tables_as("spares", rule);
    let one = |at| {
        let mut reader = reader.nested("pool.spares", at);
        let from = word(&mut reader, "from", "the name of a lot of drives");
        let count = count(&mut reader, 1_000);
        reader.finish(Taken { from, count }).item
    };
    let spares = tables.into_iter().map(one).collect();
    let stripe_unit_bytes = power_of_two(&mut reader, "stripe_unit", 4 << 10, 1 << 20);
    let page_bytes = power_of_two(&mut reader, "page", 4 << 10, 16 << 20);
    let pool = Pool {
        name,
        line,
        controller,
        groups,
        spares,
        stripe_unit_bytes: stripe_unit_bytes.unwrap_or(64 << 10),
        page_bytes: page_bytes.unwrap_or(256 << 10),
    };
    reader.finish((pool, group_lines))
}

fn groups(mut reader: TableReader<'_, '_>) -> Groups {
    let level = reader.required("level", LEVEL_RULE, level_of);
    let rule = "a whole number from 1 to 32";
    let drives = reader.required("drives", rule, |value| between(value, 1, 32));
    let count = count(&mut reader, 1_000);
    let from = word(&mut reader, "from", "the name of a lot of drives");
    let groups = Groups {
        level: level.unwrap_or(Level::Simple),
        drives: drives.unwrap_or(1),
        count,
        from,
    };
    reader.finish(groups).item
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
pub(super) fn choice<T: Copy>(
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

fn host(mut reader: TableReader<'_, '_>) -> Row<Host> {
    let line = reader.header_line();
    let name = name(&mut reader, "name");
    let count = count(&mut reader, 10_000);
    let cores = reader.required("cores", "a whole number from 1 to 1024", |value| {
        between(value, 1, 1024)
    });
    let clock_ghz = reader.required("clock_ghz", "a number from 0.1 to 10", |value| {
        number(value).filter(|ghz| (0.1..=10.0).contains(ghz))
    });
    let memory_bytes = reader.required("memory", SIZE_RULE, size_of);
    let rule = "a whole number from 1 to 64";
    let numa_nodes = reader.optional("numa_nodes", rule, |value| between(value, 1, 64));
    let witness = reader.optional("witness", "true or false", DeValue::as_bool);
    let ports = ports(&mut reader, "host.ports");
    let initiators = [
        ("iscsi", Initiator::IscsiSoftware),
        ("iscsi-adapter", Initiator::IscsiHardware),
        ("fibre-channel", Initiator::FibreChannel),
        ("nfs", Initiator::Nfs),
    ];
    let initiator = choice(&mut reader, "initiator", &initiators);
    let balances = [
        ("round-robin", Balance::RoundRobin),
        ("least-queue", Balance::LeastQueue),
        ("port", Balance::Port),
        ("mac", Balance::Mac),
        ("ip-hash", Balance::IpHash),
    ];
    let balance = choice(&mut reader, "balance", &balances);
    let rule = "a whole number from 1 to 256";
    let addresses = reader.optional("addresses", rule, |value| between(value, 1, 256));
    let rule = "a whole number from 1 to 4096";
    let lun_queue = reader.optional("lun_queue", rule, |value| between(value, 1, 4096));
    reader.finish(Host {
        name,
        line,
        count,
        cores: cores.unwrap_or(1),
        clock_ghz: clock_ghz.unwrap_or(1.0),
        memory_bytes: memory_bytes.unwrap_or(1),
        numa_nodes,
        witness: witness.unwrap_or(false),
        ports,
        initiator: initiator.unwrap_or(Initiator::IscsiSoftware),
        balance: balance.unwrap_or(Balance::RoundRobin),
        addresses: addresses.unwrap_or(1),
        lun_queue,
    })
}

fn vm_group(mut reader: TableReader<'_, '_>) -> Row<VmGroup> {
    let line = reader.header_line();
    let name = name(&mut reader, "name");
    let rule = format!("a workload profile's name, {NAME_RULE}, or \"{TRACE}FILE\"");
    let profile = reader.required("profile", &rule, |value| {
        let trace = value.as_str().filter(|text| {
            let file = text.strip_prefix(TRACE);
            file.is_some_and(|file| !file.is_empty())
        });
        named(value).or_else(|| trace.map(str::to_owned))
    });
    let profile = profile.unwrap_or_default();
    let roles = words(&mut reader, "roles", "VMs of the profile");
    let count = count(&mut reader, 10_000);
    let hosts = words(&mut reader, "hosts", "hosts");
    let pools = words(&mut reader, "pools", "pools");
    let disk_pools = words(&mut reader, "disk_pools", "a pool for each disk of a VM");
    let adapters = [
        ("lsi-sas", Adapter::LsiSas),
        ("pvscsi", Adapter::Pvscsi),
        ("vmbus", Adapter::Vmbus),
        ("virtio", Adapter::Virtio),
        ("none", Adapter::None),
    ];
    let adapter = choice(&mut reader, "adapter", &adapters);
    let rule = "\"per-disk\", \"per-vm\", or a number of datastores from 1 to 256";
    let luns = reader.optional("luns", rule, |value| match value.as_str() {
        Some("per-disk") => Some(Luns::PerDisk),
        Some("per-vm") => Some(Luns::PerVm),
        _ => between(value, 1, 256).map(Luns::Shared),
    });
    let provisionings = [("thin", Provisioning::Thin), ("thick", Provisioning::Thick)];
    let provisioning = choice(&mut reader, "provisioning", &provisionings);
    let rule = "a whole number from 0 to 100, in percent";
    let filled = reader.optional("filled", rule, |value| between(value, 0, 100));
    let scale = reader.optional("scale", "a number above zero, at most 1000", |value| {
        number(value).filter(|scale| *scale > 0.0 && *scale <= 1000.0)
    });
    let rule = "a whole number from 1 to 4096";
    let outstanding = reader.optional("outstanding", rule, |value| between(value, 1, 4096));
    let think = reader.optional("think", TIME_RULE, time);
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
        filled_percent: filled.map_or(100, |percent| percent as u8),
        scale: scale.unwrap_or(1.0),
        outstanding,
        think: think.unwrap_or_default(),
        memory_bytes,
        limit_iops,
    })
}
