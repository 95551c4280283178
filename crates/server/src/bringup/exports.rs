//! Exports: those of the site file, and those that the API made before.

use super::data_dir::DataDir;
use super::{BringUpError, BringUpErrorKind};
use crate::array::hosts::{Known, account_of};
use crate::array::{self, Array, Export, Origin};
use crate::directory::{self, Access};
use site::{Initiators, Site};
use std::collections::BTreeMap;
use std::sync::Arc;

/// All exports to be served.
///
/// # Errors
/// Every export of the API that the site file, or a volume, host or portal that isn't
/// there, stands in the way of.
pub(super) async fn plan(
    site: &Site,
    data: &DataDir,
    array: &Array,
    hosts: &Known,
) -> Result<Vec<Export>, BringUpError> {
    let mut exports: Vec<Export> = site.exports.iter().map(from_site).collect();
    let there = array.volumes().await?;
    let is_there = |name: &str| {
        there.iter().any(|volume| volume.info.name == name)
            || site.volumes.iter().any(|volume| volume.name == name)
    };
    let file = data.exports_file();
    let mut wrong = Vec::new();
    for mut kept in array::kept(&file)? {
        for (name, uuid) in kept.volumes.iter_mut().zip(&kept.uuids) {
            // Its name may have changed just before the last stop.
            if let Some(volume) = there.iter().find(|volume| volume.info.uuid == *uuid) {
                name.clone_from(&volume.info.name);
            }
        }
        let same_target = exports.iter().find(|export| export.target == kept.target);
        if same_target.is_some_and(|export| export.volumes == kept.volumes) {
            continue;
        }
        let why = if same_target.is_some() {
            Some("the site file describes it with other volumes".to_owned())
        } else if let Some(missing) = missing(&kept.access, hosts, site) {
            Some(missing)
        } else {
            kept.volumes.iter().find_map(|volume| {
                if !is_there(volume) && array.closed_names().is_none() {
                    return Some(format!("volume {volume} isn't there"));
                }
                let other = site
                    .exports
                    .iter()
                    .find(|export| export.volumes.contains(volume))?;
                Some(format!(
                    "the site file has volume {volume} behind target {}",
                    other.target
                ))
            })
        };
        match why {
            Some(why) => wrong.push(format!(
                "target {}, made by the API: {why}; correct the site file, or take the target out \
                 of {}",
                kept.target,
                file.display()
            )),
            None => exports.push(kept),
        }
    }
    if wrong.is_empty() {
        Ok(exports)
    } else {
        Err(BringUpError::all(BringUpErrorKind::Export, &wrong))
    }
}

/// Serves them. Sessions come only after the portals are open. One with a volume that is not
/// there, as its pool is not open, is withheld.
///
/// # Errors
/// What the first one that can't be served says.
pub(super) async fn apply(exports: Vec<Export>, array: &Arc<Array>) -> Result<(), BringUpError> {
    for export in exports {
        let served = array.restore_export(export, None).await;
        served.map_err(|error| BringUpError::new(BringUpErrorKind::Export, error.context))?;
    }
    Ok(())
}

/// Tries those again that are withheld, with the names that volumes have by now. Gives the
/// targets that can't be served for another reason than that a volume is not there, and why.
///
/// # Errors
/// A shard has stopped.
pub(super) async fn again(
    site: &Site,
    array: &Arc<Array>,
) -> Result<BTreeMap<String, String>, BringUpError> {
    let there = array.volumes().await?;
    let mut failed = BTreeMap::new();
    for seen in array.exports() {
        if seen.withheld.is_none() {
            continue;
        }
        let mut export = seen.clone();
        let mut of_site = site.exports.iter();
        if let Some(described) = of_site.find(|described| described.target == export.target) {
            export = from_site(described);
        }
        for (name, uuid) in export.volumes.iter_mut().zip(&export.uuids) {
            if let Some(volume) = there.iter().find(|volume| volume.info.uuid == *uuid) {
                name.clone_from(&volume.info.name);
            }
        }
        let target = export.target.clone();
        match array.restore_export(export, Some(seen)).await {
            Ok(())
                if array
                    .export(&target)
                    .is_ok_and(|now| now.withheld.is_none()) =>
            {
                tracing::info!("target {target} is served now");
            }
            Ok(()) => {}
            Err(error) => drop(failed.insert(target, error.to_string())),
        }
    }
    Ok(failed)
}

/// What an export names and isn't there any more.
fn missing(access: &Access, hosts: &Known, site: &Site) -> Option<String> {
    let portals = || site.portals.iter().map(|portal| portal.address);
    let mut shown = access.portals.iter().flatten();
    let gone = shown.find(|address| !portals().any(|portal| portal == **address));
    let portal = gone.map(|address| format!("the site file describes no portal {address}"));
    hosts.missing(access).or(portal)
}

fn from_site(export: &site::Export) -> Export {
    Export {
        target: export.target.clone(),
        volumes: export.volumes.clone(),
        uuids: Vec::new(),
        access: Access {
            initiators: match &export.initiators {
                Initiators::Any => directory::Initiators::Any,
                Initiators::Named(names) => {
                    directory::Initiators::Named(names.iter().cloned().collect())
                }
            },
            hosts: export.hosts.iter().cloned().collect(),
            host_groups: export.host_groups.iter().cloned().collect(),
            account: export.chap.as_ref().map(account_of),
            portals: match export.portals.is_empty() {
                true => None,
                false => Some(export.portals.iter().copied().collect()),
            },
        },
        physical_block_bytes: export.physical_block_bytes,
        origin: Origin::Site,
        withheld: None,
    }
}
