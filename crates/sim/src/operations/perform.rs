//! Makes a request of the control plane, as the API does.

use super::request::Request;
use array::control::attributes::NewAttributes;
use array::control::jobs::{NewCopy, NewMove};
use array::control::{
    ArrayError, ControlPlane, Deletion, Export, Host, HostChange, HostGroup, NewLun, NewPlace,
    Present, Restoring,
};
use array::directory::{Access, Initiators};
use array::shard::UnitTraits;
use engine::pool::VolumeChange;
use engine::pool::maintenance::Rates;
use engine::pool::maintenance::fullness::Thresholds;
use engine::{Provisioning, VolumeSpec};
use iscsi::chap::{Account, Credential, Secret};
use site::Setting;
use std::collections::BTreeMap;
use std::sync::Arc;
use world_sim::SimWorld;

type Array = Arc<ControlPlane<SimWorld>>;

/// Makes it, and waits for its end.
///
/// # Errors
/// What the control plane says.
pub(super) async fn perform(array: &Array, request: Request) -> Result<(), ArrayError> {
    match request {
        Request::Create {
            name,
            pool,
            size_bytes,
        } => {
            let provisioning = Provisioning::Thin;
            let spec = VolumeSpec {
                name,
                size_bytes,
                provisioning,
            };
            array.create_volume(pool, spec, Vec::new()).await.map(drop)
        }
        Request::Resize { name, size_bytes } => {
            array.resize_volume(name, size_bytes, true).await.map(drop)
        }
        Request::Delete { name, at_once } => {
            let how = Deletion {
                at_once,
                ..Deletion::default()
            };
            array.delete_volume(name, how).await.map(drop)
        }
        Request::Recover { name, new } => array.recover_volume(name, new).await.map(drop),
        Request::DeleteTrashed { name } => array.delete_trashed(&name).await,
        Request::EmptyTrash => array.empty_trash().await.map(drop),
        Request::Convert {
            name,
            provisioning,
            detects_zeroes,
        } => {
            let change = VolumeChange {
                provisioning,
                detects_zeroes,
            };
            array.convert_volume(name, change).await.map(drop)
        }
        other => of_attributes(array, other).await,
    }
}

async fn of_attributes(array: &Array, request: Request) -> Result<(), ArrayError> {
    match request {
        Request::Rename { name, new } => {
            let attributes = NewAttributes {
                name: Some(new),
                ..NewAttributes::default()
            };
            array.change_attributes(name, attributes).await.map(drop)
        }
        Request::Tag { name, key, value } => {
            let attributes = NewAttributes {
                tags: vec![(key, value)],
                ..NewAttributes::default()
            };
            array.change_attributes(name, attributes).await.map(drop)
        }
        Request::Describe { name, text } => {
            let attributes = NewAttributes {
                description: Some(text),
                ..NewAttributes::default()
            };
            array.change_attributes(name, attributes).await.map(drop)
        }
        other => of_snapshots(array, other).await,
    }
}

async fn of_snapshots(array: &Array, request: Request) -> Result<(), ArrayError> {
    match request {
        Request::Clone { source, name } => array.clone_volume(source, name).await.map(drop),
        Request::Snapshot { volumes, own } => match &volumes[..] {
            [volume] => array.take_snapshot(volume.clone(), &own).await.map(drop),
            _ => {
                let pairs = volumes.into_iter().map(|volume| (volume, own.clone()));
                array.take_snapshots(pairs.collect()).await.map(drop)
            }
        },
        Request::SnapshotGroup { group, own } => array.snapshot_group(group, own).await.map(drop),
        Request::DeleteSnapshot { name, at_once } => {
            let how = Deletion {
                at_once,
                ..Deletion::default()
            };
            array.delete_snapshot(name, how).await.map(drop)
        }
        Request::Restore { volume, own, keep } => {
            let snapshot = super::request::snapshot_name(&volume, &own);
            let how = Restoring {
                present: keep.map_or(Present::Discarded, Present::Kept),
                by_force: false,
                only_check: false,
            };
            array.restore(volume, snapshot, how).await.map(drop)
        }
        other => of_groups(array, other).await,
    }
}

async fn of_groups(array: &Array, request: Request) -> Result<(), ArrayError> {
    match request {
        Request::CreateGroup { group, volumes } => {
            array.create_group(group, volumes).await.map(drop)
        }
        Request::ChangeGroup { group, add, remove } => {
            array.change_group(group, add, remove).await.map(drop)
        }
        Request::DeleteGroup { group } => array.delete_group(group).await,
        Request::Gather { group, volumes } => array.gather(group, volumes).await.map(drop),
        Request::AddSchedule {
            name,
            every_s,
            keep,
        } => array.add_schedule(&name, every_s, keep).await.map(drop),
        Request::RemoveSchedule { name, number } => array.remove_schedule(&name, number).await,
        Request::AddGroupSchedule {
            group,
            every_s,
            keep,
        } => array
            .add_group_schedule(group, every_s, keep)
            .await
            .map(drop),
        Request::RemoveGroupSchedule { group, number } => {
            array.remove_group_schedule(group, number).await
        }
        other => of_access(array, other).await,
    }
}

async fn of_access(array: &Array, request: Request) -> Result<(), ArrayError> {
    match request {
        Request::CreateExport { target, export } => {
            array.create_export(described(target, export)).await
        }
        Request::ChangeExport {
            target,
            hosts,
            host_groups,
        } => {
            let change = move |access: &mut Access, _: &mut UnitTraits| {
                (access.hosts, access.host_groups) = (hosts, host_groups);
            };
            array.change_export(&target, change).await.map(drop)
        }
        Request::DeleteExport { target } => array.delete_export(&target).await,
        Request::AddLun { target, volume } => {
            let add = vec![NewLun { volume, lun: None }];
            array.change_luns(&target, add, Vec::new()).await.map(drop)
        }
        Request::RemoveLun { target, volume } => {
            let luns = array.change_luns(&target, Vec::new(), vec![volume]);
            luns.await.map(drop)
        }
        other => of_hosts(array, other).await,
    }
}

async fn of_hosts(array: &Array, request: Request) -> Result<(), ArrayError> {
    match request {
        Request::CreateHost {
            host: name,
            initiators,
        } => {
            let account = None;
            array
                .create_host(Host {
                    name,
                    initiators,
                    account,
                })
                .await
        }
        Request::ChangeHost { host, add, remove } => {
            let (add, remove, account) = (vec![add], vec![remove], None);
            array
                .change_host(
                    host,
                    HostChange {
                        add,
                        remove,
                        account,
                    },
                )
                .await
        }
        Request::DeleteHost { host } => array.delete_host(host).await,
        Request::CreateHostGroup { group: name, hosts } => {
            array.create_host_group(HostGroup { name, hosts }).await
        }
        Request::ChangeHostGroup { group, add, remove } => {
            array
                .change_host_group(group, vec![add], vec![remove])
                .await
        }
        Request::DeleteHostGroup { group } => array.delete_host_group(group).await,
        other => of_jobs(array, other).await,
    }
}

async fn of_jobs(array: &Array, request: Request) -> Result<(), ArrayError> {
    let jobs = array.jobs();
    match request {
        Request::Move {
            volume,
            to,
            leave_snapshots,
        } => {
            let new = move_of(volume, to, leave_snapshots);
            array.move_volume(new).await.map(drop)
        }
        Request::Copy {
            source,
            target,
            pool,
        } => {
            let new = copy_of(source, target, pool);
            array.copy_to_volume(new).await.map(drop)
        }
        Request::CancelJob { volume } => {
            let mut pending = jobs.pending().into_iter();
            match pending.find(|job| job.order.volume == volume) {
                Some(job) => jobs.cancel(job.id).await,
                None => Err(ArrayError::no_volume(&volume)),
            }
        }
        // One that is at work again stays so: its end was not on record when the power went.
        Request::ForgetJob { id } => match jobs.job(id)?.state.is_ended() {
            true => jobs.cancel(id).await,
            false => Ok(()),
        },
        other => of_settings(array, other).await,
    }
}

async fn of_settings(array: &Array, request: Request) -> Result<(), ArrayError> {
    match request {
        Request::LimitScrub { pool, bytes_per_s } => {
            let change = move |rates: Rates| Rates {
                scrub_bytes_per_s: bytes_per_s,
                ..rates
            };
            array.change_rates(pool, change).await
        }
        Request::LimitRebuild {
            pool,
            bytes_per_s,
            yields,
        } => {
            let change = move |rates: Rates| Rates {
                rebuild_bytes_per_s: bytes_per_s,
                yields,
                ..rates
            };
            array.change_rates(pool, change).await
        }
        Request::ChangeThresholds {
            pool,
            warn_percent,
            alarm_percent,
        } => {
            let thresholds = Thresholds {
                warn_percent,
                alarm_percent,
            };
            array.change_thresholds(pool, move |_| Ok(thresholds)).await
        }
        Request::ChangeCache {
            pool,
            capacity_bytes,
        } => array.change_cache(pool, capacity_bytes).await,
        other => of_all_settings(array, other).await,
    }
}

async fn of_all_settings(array: &Array, request: Request) -> Result<(), ArrayError> {
    match request {
        Request::Pace { pool, pace } => array.pace_pool(pace.of_pool(&pool)).await,
        Request::ChangeDiscovery { account } => {
            array.change_discovery(account.and_then(account_of)).await
        }
        Request::LimitSessions { sessions } => edit(array, "sessions", sessions).await,
        Request::LimitLogins { logins } => edit(array, "logins", logins).await,
        other => unreachable!("nobody asks for {other:?}"),
    }
}

/// An account of this name.
fn account_of(name: String) -> Option<Arc<Account>> {
    let secret = Secret::new(format!("the secret of {name}").as_bytes())?;
    let initiator = Credential { name, secret };
    let mutual = None;
    Some(Arc::new(Account { initiator, mutual }))
}

async fn edit(array: &Array, limit: &str, value: u16) -> Result<(), ArrayError> {
    let keys = BTreeMap::from([(limit.to_owned(), Some(Setting::from(i64::from(value))))]);
    let changes = BTreeMap::from([("limits".to_owned(), keys)]);
    array.edit_settings(changes).await
}

fn move_of(volume: String, pool: String, leave_snapshots: bool) -> NewMove {
    NewMove {
        volume,
        to: NewPlace {
            pool,
            leave_snapshots,
            force: false,
        },
        rate_bytes_per_s: None,
    }
}

/// All of it, to a volume that is made.
fn copy_of(source: String, target: String, pool: Option<String>) -> NewCopy {
    NewCopy {
        source,
        target,
        pool,
        provisioning: Provisioning::Thin,
        from_bytes: 0,
        to_bytes: 0,
        len_bytes: None,
        overwrite: false,
        live: false,
        rate_bytes_per_s: None,
    }
}

/// A target as the API is asked for it.
fn described(target: String, export: super::model::Export) -> Export {
    let (luns, volumes) = export.luns.into_iter().unzip();
    Export {
        target,
        volumes,
        luns,
        uuids: Vec::new(),
        access: Access {
            initiators: Initiators::Named(export.initiators),
            hosts: export.hosts,
            host_groups: export.host_groups,
            ..Access::default()
        },
        traits: UnitTraits::default(),
        withheld: None,
    }
}
