//! `[[event]]`: failures, moves and work at a time of the run.

use crate::hardware::{IOPS_MAX, between, choice, counted, named, word};
use crate::names::NAME_RULE;
use crate::plan::{Event, Happening, HostCopy, Method, Migration};
use crate::quantity::{TIME_RULE, number, time};
use crate::read::power_of_two;
use crate::table::{Row, TableReader};
use std::time::Duration;
use toml::de::DeValue;

const RULE: &str = "\"drive-fails\", \"host-fails\", \"controller-fails\", \"link-down\", \
    \"link-up\", \"snapshot\", \"restore\", \"clone\", \"move-storage\", \"boot-storm\", \
    \"drain\", \"live-migration\", \"limit-iops\" or \"add-cpu\"";

/// Pieces that a host copies, and how many at once, unless the file says otherwise: chosen
/// here, for hypervisors publish neither.
const HOST_COPY: HostCopy = HostCopy {
    transfer_bytes: 256 << 10,
    outstanding: 16,
};

/// VMs that a host clones at once: vCenter's limit of provisioning operations ("Limits on
/// Simultaneous Migrations": a cost of 1 each, 8 for a host).
const CLONES_AT_ONCE: u16 = 8;

/// VMs whose storage a host moves at once: vCenter's limit (the same: a cost of 4 each), and
/// Hyper-V's default (Set-VMHost, MaximumStorageMigrations).
const STORAGE_MOVES_AT_ONCE: u16 = 2;

pub(crate) fn event(mut reader: TableReader<'_, '_>) -> Row<Event> {
    let line = reader.header_line();
    let at = reader.required("at", TIME_RULE, time);
    let what = reader.text("what").unwrap_or_default();
    let what = happening(&mut reader, what);
    reader.required("what", RULE, |_| what.as_ref().map(|_| ()));
    reader.finish(Event {
        line,
        at: at.unwrap_or_default(),
        what: what.unwrap_or(Happening::DriveFails {
            drive: String::new(),
        }),
    })
}

fn vm_group(reader: &mut TableReader<'_, '_>) -> String {
    word(reader, "vm_group", "a VM group's name")
}

fn host(reader: &mut TableReader<'_, '_>) -> String {
    word(reader, "host", "a host's name")
}

fn network(reader: &mut TableReader<'_, '_>) -> String {
    word(reader, "network", "a network's name")
}

fn happening(reader: &mut TableReader<'_, '_>, what: &str) -> Option<Happening> {
    Some(match what {
        "drive-fails" => Happening::DriveFails {
            drive: word(reader, "drive", "a drive's name"),
        },
        "host-fails" => Happening::HostFails {
            host: host(reader),
            detection: span(reader, "detection"),
            operations: operations(reader),
            recovery: span(reader, "recovery"),
        },
        "controller-fails" => Happening::ControllerFails {
            controller: word(reader, "controller", "a controller's name"),
            takeover: span(reader, "takeover"),
        },
        "link-down" => Happening::LinkDown {
            host: host(reader),
            network: network(reader),
        },
        "link-up" => Happening::LinkUp {
            host: host(reader),
            network: network(reader),
        },
        "boot-storm" => Happening::BootStorm {
            vm_group: vm_group(reader),
            operations: operations(reader),
        },
        "drain" => Happening::Drain {
            host: host(reader),
            migration: migration(reader),
        },
        "live-migration" => Happening::LiveMigration {
            vm_group: vm_group(reader),
            vms: vms(reader),
            to: word(reader, "to", "a host's name"),
            migration: migration(reader),
        },
        "limit-iops" => limit_iops(reader),
        "add-cpu" => add_cpu(reader),
        _ => return of_volumes(reader, what),
    })
}

/// What happens to the disks of a VM group.
fn of_volumes(reader: &mut TableReader<'_, '_>, what: &str) -> Option<Happening> {
    Some(match what {
        "snapshot" => Happening::Snapshot {
            vm_group: vm_group(reader),
        },
        "restore" => Happening::Restore {
            vm_group: vm_group(reader),
        },
        "clone" => Happening::Clone {
            vm_group: vm_group(reader),
            vms: vms(reader).unwrap_or(1),
            at_once: at_once(reader).unwrap_or(CLONES_AT_ONCE),
            offload: offload(reader),
            copy: host_copy(reader),
        },
        "move-storage" => Happening::MoveStorage {
            vm_group: vm_group(reader),
            to: word(reader, "to", "a pool's name"),
            disks: disks(reader),
            at_once: at_once(reader).unwrap_or(STORAGE_MOVES_AT_ONCE),
            offload: offload(reader),
            copy: host_copy(reader),
        },
        _ => return None,
    })
}

fn add_cpu(reader: &mut TableReader<'_, '_>) -> Happening {
    let rule = "a whole number from 1 to 64";
    let vcpus = reader.required("vcpus", rule, |value| between(value, 1, 64));
    let rule = "a number from 0 to 1: the share of the work that only one processor can do";
    let contention = reader.optional("contention", rule, |value| {
        number(value).filter(|share| (0.0..=1.0).contains(share))
    });
    Happening::AddCpu {
        vm_group: vm_group(reader),
        vcpus: vcpus.unwrap_or(1),
        contention: contention.unwrap_or(0.0),
    }
}

fn limit_iops(reader: &mut TableReader<'_, '_>) -> Happening {
    let rule = format!("a VM's name, {NAME_RULE}");
    let vm = reader.optional("vm", &rule, named);
    let rule = "I/Os per second, a whole number from 1 to 1000000, or 0 or \"none\" for no limit";
    let iops = reader.required("iops", rule, |value| match value.as_str() {
        Some("none") => Some(0),
        _ => counted(value, 0, IOPS_MAX),
    });
    Happening::LimitIops {
        vm_group: vm_group(reader),
        vm,
        iops: iops.filter(|iops| *iops > 0),
    }
}

fn vms(reader: &mut TableReader<'_, '_>) -> Option<u16> {
    let rule = "a whole number from 1 to 1000";
    reader.optional("vms", rule, |value| between(value, 1, 1000))
}

fn at_once(reader: &mut TableReader<'_, '_>) -> Option<u16> {
    let rule = "a whole number from 1 to 64";
    reader.optional("at_once", rule, |value| between(value, 1, 64))
}

fn disks(reader: &mut TableReader<'_, '_>) -> Option<u16> {
    let rule = "disks of each VM, a whole number from 1 to 256";
    reader.optional("disks", rule, |value| between(value, 1, 256))
}

fn span(reader: &mut TableReader<'_, '_>, key: &'static str) -> Option<Duration> {
    reader.optional(key, TIME_RULE, time)
}

fn operations(reader: &mut TableReader<'_, '_>) -> Option<u32> {
    let rule = "I/Os of a VM's boot, a whole number from 1 to 10000000";
    reader.optional("operations", rule, |value| counted(value, 1, 10_000_000))
}

fn offload(reader: &mut TableReader<'_, '_>) -> bool {
    let offload = reader.optional("offload", "true or false", DeValue::as_bool);
    offload.unwrap_or(true)
}

fn host_copy(reader: &mut TableReader<'_, '_>) -> HostCopy {
    let transfer_bytes = power_of_two(reader, "transfer", 4 << 10, 1 << 20);
    let rule = "a whole number from 1 to 256";
    let outstanding = reader.optional("outstanding", rule, |value| between(value, 1, 256));
    HostCopy {
        transfer_bytes: transfer_bytes.unwrap_or(HOST_COPY.transfer_bytes),
        outstanding: outstanding.unwrap_or(HOST_COPY.outstanding),
    }
}

fn migration(reader: &mut TableReader<'_, '_>) -> Migration {
    let methods = [
        ("tcp", Method::Tcp),
        ("compressed", Method::Compressed),
        ("multichannel", Method::Multichannel),
        ("rdma", Method::Rdma),
    ];
    let method = choice(reader, "method", &methods);
    Migration {
        method: method.unwrap_or(Method::Tcp),
        at_once: at_once(reader),
    }
}
