//! Live migrations: published figures, and the figures that no source gives.

use super::{error, table};
use model::link::{Ethernet, Link, TcpCost};
use model::migration::{
    Activity, MEMORY_GB, Method, Outcome, Path, Transport, Vm, core_seconds_per_byte, migrate,
};

const GIGABIT: u64 = 1_000_000_000;

/// Links of MTU 1500 between hosts with eight cores free, one machine at a time.
fn path(links: usize, bits_per_second: u64) -> Path {
    Path {
        links,
        link: Link::ethernet(bits_per_second, Ethernet::STANDARD),
        free_cores: 8.0,
        at_once: 1,
    }
}

fn idle(gigabytes: u64) -> Vm {
    Vm::idle(gigabytes * MEMORY_GB)
}

/// SQL Server with its memory as buffer pool, and I/O of 8 KiB.
fn database(iops: f64) -> Vm {
    let memory = 61 * MEMORY_GB;
    Vm {
        activity: Activity::io(memory, iops, 8192),
        ..Vm::idle(memory)
    }
}

fn seconds(outcome: &Outcome) -> f64 {
    outcome.duration().as_secs_f64()
}

pub fn given() -> String {
    let cases = [
        (
            "8 GB, 1 GbE, TCP",
            78.0,
            Method::HYPER_V_TCP,
            path(1, GIGABIT),
            idle(8),
        ),
        (
            "35 GB, 6 Gb/s of a 10 GbE team, TCP",
            68.0,
            Method::HYPER_V_TCP,
            path(1, 6 * GIGABIT),
            idle(35),
        ),
        (
            "61 GB SQL Server, idle, one 1 GbE NIC, vSphere 5",
            579.0,
            Method::VSPHERE_5,
            path(1, GIGABIT),
            database(0.0),
        ),
    ];
    let rows = cases.map(|(what, given, method, path, vm)| {
        let outcome = migrate(&method, &path, &[vm]);
        let model = seconds(&outcome);
        vec![
            what.into(),
            format!("{given:.0}"),
            format!("{model:.1}"),
            error(model, given),
            format!("{:.0} %", outcome.mean_links_used() * 100.0),
        ]
    });
    table(
        &[
            "migration",
            "given, s",
            "model, s",
            "error",
            "use of the link",
        ],
        rows,
    )
}

/// What the 35 GB would take if a core did TCP faster or slower.
pub fn costs() -> String {
    let rule_of_thumb = TcpCost::BYTES_ONLY.cycles_per_byte as f64;
    let costs = [
        (
            "vSphere's reservation, a core for 10 Gb/s",
            Method::VSPHERE_5.transport,
        ),
        (
            "a Windows lab, a core for 4 Gb/s",
            Method::HYPER_V_TCP.transport,
        ),
        (
            "rule of thumb, a cycle per bit, 2.4 GHz",
            Transport::Tcp {
                core_seconds_per_byte: core_seconds_per_byte(rule_of_thumb, 2_400_000_000),
            },
        ),
    ];
    let rows = costs.map(|(what, transport)| {
        let method = Method {
            transport,
            ..Method::HYPER_V_TCP
        };
        let model = seconds(&migrate(&method, &path(1, 6 * GIGABIT), &[idle(35)]));
        vec![what.into(), format!("{model:.1}"), error(model, 68.0)]
    });
    table(&["TCP costs", "35 GB, 6 Gb/s, model, s", "error"], rows)
}

/// The SQL Server at other loads: seconds, and its speed where it is slowed down.
pub fn loads() -> String {
    let rows = [0, 2_500, 5_000, 10_000, 12_500, 15_000, 20_000].map(|iops| {
        let over = [1, 2, 4].map(|links| {
            let vm = database(f64::from(iops));
            let outcome = migrate(&Method::VSPHERE_5, &path(links, GIGABIT), &[vm]);
            let took = seconds(&outcome);
            match outcome.migrations[0].speed {
                1.0 => format!("{took:.0}"),
                slowed => format!("{took:.0}, at {:.0} % speed", slowed * 100.0),
            }
        });
        [vec![format!("{iops}")], over.to_vec()].concat()
    });
    table(&["IOPS", "one 1 GbE, s", "two, s", "four, s"], rows)
}

/// Of the ten machines of `hetero10`, by the memory that they have in all.
const GROUPS: [(&str, &[u64]); 8] = [
    ("3 of 24 GB", &[8, 8, 8]),
    ("3 of 28 GB", &[4, 8, 16]),
    ("3 of 48 GB", &[8, 16, 24]),
    ("3 of 76 GB", &[4, 24, 48]),
    ("6 of 52 GB", &[4, 8, 8, 8, 8, 16]),
    ("6 of 72 GB", &[8, 8, 8, 8, 16, 24]),
    ("6 of 124 GB", &[4, 8, 8, 24, 32, 48]),
    ("10 of 164 GB", &[4, 8, 32, 24, 48, 16, 8, 8, 8, 8]),
];

/// Gigabits per second on the wire, over all of the time, and the time.
fn over_two_links(vms: &[Vm]) -> (f64, f64) {
    let path = Path {
        at_once: vms.len(),
        ..path(2, GIGABIT)
    };
    let outcome = migrate(&Method::HYPER_V_TCP, &path, vms);
    (outcome.mean_links_used(), seconds(&outcome))
}

/// Mean over all ways in which a hash may bind so many machines to two links.
fn hashed(sizes: &[u64]) -> f64 {
    let ways = 1usize << sizes.len();
    let bound = |way: usize| {
        let bind = |(number, &size): (usize, &u64)| Vm {
            link: Some(way >> number & 1),
            ..idle(size)
        };
        over_two_links(&sizes.iter().enumerate().map(bind).collect::<Vec<_>>()).0
    };
    (0..ways).map(bound).sum::<f64>() / ways as f64
}

pub fn groups() -> String {
    let singles = [4u64, 8, 16, 24, 32, 48];
    let singles = singles.iter().map(|&size| {
        let (gigabits, took) = over_two_links(&[idle(size)]);
        let no_more = "no more than one link".to_owned();
        let name = format!("1 of {size} GB");
        vec![
            name,
            no_more,
            format!("{gigabits:.2}"),
            "–".into(),
            format!("{took:.0}"),
        ]
    });
    let groups = GROUPS.iter().map(|(name, sizes)| {
        let vms: Vec<Vm> = sizes.iter().map(|&size| idle(size)).collect();
        let (gigabits, took) = over_two_links(&vms);
        let given = if sizes.len() == 3 {
            "1.4 to 1.6"
        } else {
            "1.6 to 1.8"
        };
        vec![
            (*name).to_owned(),
            given.into(),
            format!("{gigabits:.2}"),
            format!("{:.2}", hashed(sizes)),
            format!("{took:.0}"),
        ]
    });
    table(
        &[
            "machines at once",
            "given, Gb/s",
            "links in turn, Gb/s",
            "links by hash, mean, Gb/s",
            "in turn, s",
        ],
        singles.chain(groups),
    )
}

pub fn predictions() -> String {
    let ten = 10 * GIGABIT;
    let drained: Vec<Vm> = (0..10).map(|_| idle(25)).collect();
    let drain = |links, rate| Path {
        at_once: Method::HYPER_V_AT_ONCE,
        ..path(links, rate)
    };
    let eight = || vec![idle(8)];
    let loaded = || vec![database(10_000.0)];
    let cases = [
        (
            "8 GB, 1 GbE",
            Method::HYPER_V_COMPRESSED,
            path(1, GIGABIT),
            eight(),
        ),
        (
            "8 GB, 10 GbE",
            Method::HYPER_V_SMB_DIRECT,
            path(1, ten),
            eight(),
        ),
        (
            "8 GB, two 10 GbE",
            Method::HYPER_V_SMB_DIRECT,
            path(2, ten),
            eight(),
        ),
        (
            "56 GB, two 10 GbE",
            Method::HYPER_V_SMB_DIRECT,
            path(2, ten),
            vec![idle(56)],
        ),
        (
            "host of 250 GB, 1 GbE",
            Method::HYPER_V_TCP,
            drain(1, GIGABIT),
            drained.clone(),
        ),
        (
            "host of 250 GB, 1 GbE",
            Method::HYPER_V_COMPRESSED,
            drain(1, GIGABIT),
            drained.clone(),
        ),
        (
            "host of 250 GB, 10 GbE",
            Method::HYPER_V_TCP,
            drain(1, ten),
            drained.clone(),
        ),
        (
            "host of 250 GB, 10 GbE",
            Method::HYPER_V_COMPRESSED,
            drain(1, ten),
            drained.clone(),
        ),
        (
            "host of 250 GB, 10 GbE",
            Method::HYPER_V_SMB_DIRECT,
            drain(1, ten),
            drained.clone(),
        ),
        (
            "host of 250 GB, two 10 GbE",
            Method::HYPER_V_SMB_DIRECT,
            drain(2, ten),
            drained,
        ),
        (
            "SQL Server, 10,000 IOPS, 1 GbE",
            Method::VSPHERE_5,
            path(1, GIGABIT),
            loaded(),
        ),
        (
            "SQL Server, 10,000 IOPS, two 1 GbE",
            Method::VSPHERE_5,
            path(2, GIGABIT),
            loaded(),
        ),
        (
            "SQL Server, 10,000 IOPS, four 1 GbE",
            Method::VSPHERE_5,
            path(4, GIGABIT),
            loaded(),
        ),
    ];
    let rows = cases.map(|(what, method, path, vms)| {
        let outcome = migrate(&method, &path, &vms);
        let dark = outcome.migrations.iter().map(|each| each.blackout());
        let rounds = outcome.migrations.iter().map(|each| each.rounds.len());
        let copied: f64 = outcome
            .migrations
            .iter()
            .map(|each| each.memory_bytes())
            .sum();
        vec![
            what.into(),
            method.name.into(),
            format!("{:.1}", seconds(&outcome)),
            format!("{}", rounds.max().unwrap_or(0)),
            format!("{:.1}", copied / MEMORY_GB as f64),
            format!("{:.2}", dark.max().unwrap_or_default().as_secs_f64()),
            format!("{:.1}", outcome.core_seconds().0),
        ]
    });
    table(
        &[
            "what",
            "method",
            "model, s",
            "rounds",
            "copied, GB",
            "blackout, s",
            "core-seconds of the source",
        ],
        rows,
    )
}
