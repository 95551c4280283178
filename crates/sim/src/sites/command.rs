//! What administrators do beside the site file.

use super::author::{INITIATORS, TARGETS};
use super::seen::{Seen, SeenVolume};
use array::control::{ArrayError, ControlPlane, Deletion, HostChange, NewAttributes};
use base::Prng;
use engine::{Provisioning, VolumeSpec};
use std::sync::Arc;
use world_sim::SimWorld;

#[derive(Clone, Debug)]
pub(super) enum Command {
    /// A volume that the site file may describe later, under a name that none has had.
    Create {
        name: String,
        pool: String,
    },
    Rename {
        name: String,
        new: String,
    },
    Delete {
        name: String,
        at_once: bool,
    },
    Recover {
        name: String,
    },
    Grow {
        name: String,
        size_bytes: u64,
    },
    Tag {
        name: String,
        value: String,
    },
    Snapshot {
        name: String,
        own: String,
    },
    RemoveLun {
        target: String,
        volume: String,
    },
    DeleteExport {
        target: String,
    },
    /// It takes an initiator from a host, and gives it another one.
    ChangeHost {
        host: String,
        add: String,
        remove: String,
    },
}

/// Draws a command to an array that is so; none where there is nothing to ask for. `number` is that of
/// the command.
pub(super) fn draw(prng: &mut Prng, seen: &Seen, number: u64) -> Option<Command> {
    let volumes = seen.living().filter(|volume| !volume.is_snapshot);
    let volumes: Vec<&SeenVolume> = volumes.collect();
    let trashed = seen.volumes.values().filter(|volume| volume.is_trashed);
    let trashed: Vec<&SeenVolume> = trashed.collect();
    let open = seen.settings.pools.iter().map(|pool| pool.name.clone());
    let open: Vec<String> = open.filter(|name| !seen.closed.contains(name)).collect();
    let kind = prng.below(12);
    match kind {
        0 if !open.is_empty() => {
            return Some(Command::Create {
                name: format!("c{number}"),
                pool: prng.pick(&open).clone(),
            });
        }
        1 if !trashed.is_empty() => {
            let name = prng.pick(&trashed).name.clone();
            return Some(Command::Recover { name });
        }
        2 => return of_exports(prng, seen),
        3 => return of_hosts(prng, seen),
        _ => {}
    }
    match volumes.is_empty() {
        true => None,
        false => Some(of_volume(prng, &volumes, (kind, number))),
    }
}

fn of_volume(prng: &mut Prng, volumes: &[&SeenVolume], (kind, number): (u64, u64)) -> Command {
    let volume = *prng.pick(volumes);
    let name = volume.name.clone();
    match kind {
        4..=6 => Command::Rename {
            name,
            new: format!("r{number}"),
        },
        7 | 8 => Command::Delete {
            name,
            at_once: prng.chance(1, 3),
        },
        9 => Command::Grow {
            name,
            size_bytes: volume.size_bytes + (64 << 10),
        },
        10 => Command::Tag {
            name,
            value: format!("of command {number}"),
        },
        _ => Command::Snapshot {
            name,
            own: format!("s{number}"),
        },
    }
}

fn of_exports(prng: &mut Prng, seen: &Seen) -> Option<Command> {
    let target = (*prng.pick(&TARGETS)).to_owned();
    let export = seen.exports.get(&target)?;
    let volume = prng.pick(&export.volumes).clone();
    Some(match prng.chance(1, 2) {
        true => Command::DeleteExport { target },
        false => Command::RemoveLun { target, volume },
    })
}

fn of_hosts(prng: &mut Prng, seen: &Seen) -> Option<Command> {
    let hosts: Vec<&String> = seen.known.hosts.keys().collect();
    if hosts.is_empty() {
        return None;
    }
    let host = (*prng.pick(&hosts)).clone();
    let remove = seen.known.hosts.get(&host)?.initiators.first()?.clone();
    let add = (*prng.pick(&INITIATORS)).to_owned();
    Some(Command::ChangeHost { host, add, remove })
}

/// Has the array do it.
///
/// # Errors
/// What it says.
pub(super) async fn perform(
    array: &Arc<ControlPlane<SimWorld>>,
    command: Command,
) -> Result<(), ArrayError> {
    match command {
        Command::Create { name, pool } => {
            let spec = VolumeSpec {
                name,
                size_bytes: 64 << 10,
                provisioning: Provisioning::Thin,
            };
            array.create_volume(pool, spec, Vec::new()).await.map(drop)
        }
        Command::Rename { name, new } => {
            let attributes = NewAttributes {
                name: Some(new),
                ..NewAttributes::default()
            };
            array.change_attributes(name, attributes).await.map(drop)
        }
        Command::Delete { name, at_once } => {
            let how = Deletion {
                at_once,
                ..Deletion::default()
            };
            array.delete_volume(name, how).await.map(drop)
        }
        Command::Recover { name } => array.recover_volume(name, None).await.map(drop),
        Command::Grow { name, size_bytes } => {
            array.resize_volume(name, size_bytes, false).await.map(drop)
        }
        Command::Tag { name, value } => {
            let attributes = NewAttributes {
                tags: vec![("command".to_owned(), value)],
                ..NewAttributes::default()
            };
            array.change_attributes(name, attributes).await.map(drop)
        }
        Command::Snapshot { name, own } => array.take_snapshot(name, &own).await.map(drop),
        other => of_access(array, other).await,
    }
}

async fn of_access(
    array: &Arc<ControlPlane<SimWorld>>,
    command: Command,
) -> Result<(), ArrayError> {
    match command {
        Command::RemoveLun { target, volume } => {
            let removed = array.change_luns(&target, Vec::new(), vec![volume]);
            removed.await.map(drop)
        }
        Command::DeleteExport { target } => array.delete_export(&target).await,
        Command::ChangeHost { host, add, remove } => {
            let change = HostChange {
                add: vec![add],
                remove: vec![remove],
                account: None,
            };
            array.change_host(host, change).await
        }
        _ => Ok(()),
    }
}
