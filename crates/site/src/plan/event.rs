//! `[[event]]`: what happens at a time of the run.

use super::quantity::{TIME_RULE, time};
use super::read::{between, word};
use super::types::{Event, Happening};
use crate::table::{Row, TableReader};
use toml::de::DeValue;

const RULE: &str = "\"drive-fails\", \"host-fails\", \"controller-fails\", \"link-down\", \
    \"link-up\", \"snapshot\", \"restore\", \"clone\", \"move-storage\", \"boot-storm\" or \"drain\"";

pub(super) fn event(mut reader: TableReader<'_, '_>) -> Row<Event> {
    let line = reader.header_line();
    let at = reader.required("at", TIME_RULE, time);
    let what = reader.text("what").unwrap_or_default();
    let what = happening(&mut reader, what);
    reader.required("what", RULE, |_| what.as_ref().map(|_| ()));
    reader.finish(Event {
        line,
        at: at.unwrap_or_default(),
        what: what.unwrap_or(Happening::Drain {
            host: String::new(),
        }),
    })
}

fn happening(reader: &mut TableReader<'_, '_>, what: &str) -> Option<Happening> {
    let block = |reader: &mut TableReader<'_, '_>| word(reader, "block", "a block's name");
    let host = |reader: &mut TableReader<'_, '_>| word(reader, "host", "a host's name");
    let network = |reader: &mut TableReader<'_, '_>| word(reader, "network", "a network's name");
    let offload = |reader: &mut TableReader<'_, '_>| {
        let offload = reader.optional("offload", "true or false", DeValue::as_bool);
        offload.unwrap_or(true)
    };
    Some(match what {
        "drive-fails" => Happening::DriveFails {
            drive: word(reader, "drive", "a drive's name"),
        },
        "host-fails" => Happening::HostFails { host: host(reader) },
        "controller-fails" => Happening::ControllerFails {
            controller: word(reader, "controller", "a controller's name"),
        },
        "link-down" => Happening::LinkDown {
            host: host(reader),
            network: network(reader),
        },
        "link-up" => Happening::LinkUp {
            host: host(reader),
            network: network(reader),
        },
        "snapshot" => Happening::Snapshot {
            block: block(reader),
        },
        "restore" => Happening::Restore {
            block: block(reader),
        },
        "clone" => {
            let rule = "a whole number from 1 to 1000";
            let vms = reader.optional("vms", rule, |value| between(value, 1, 1000));
            Happening::Clone {
                block: block(reader),
                vms: vms.unwrap_or(1),
                offload: offload(reader),
            }
        }
        "move-storage" => Happening::MoveStorage {
            block: block(reader),
            to: word(reader, "to", "a pool's name"),
            offload: offload(reader),
        },
        "boot-storm" => Happening::BootStorm {
            block: block(reader),
        },
        "drain" => Happening::Drain { host: host(reader) },
        _ => return None,
    })
}
