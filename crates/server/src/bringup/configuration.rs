//! Chooses the configuration to start with: the record, or at first the site file.

use super::{BringUpError, BringUpErrorKind};
use crate::apply;
use crate::array::configuration::{Configuration, before};
use crate::array::{ArrayErrorKind, Basis, Settled};
use crate::data_dir::DataDir;
use ::array::openings::MadePools;
use site::Site;
use std::sync::Arc;
use world_real::RealWorld;

/// What to begin with.
pub(super) struct Beginning {
    pub(super) configuration: Configuration,
    /// New where nothing was kept so far: it is the site file's. What was kept without settings is
    /// unwritten: a version did that which took them from the site file.
    pub(super) basis: Basis,
}

/// What the array is to be: settings that it keeps count over those of the site file. Volumes,
/// hosts and exports are the file's.
///
/// # Errors
/// There is neither a file, nor are there settings.
pub(super) fn described(
    file: Option<&Site>,
    kept: Option<&Configuration>,
    (data, made): (&DataDir, &MadePools),
) -> Result<Site, BringUpError> {
    let settings = kept.and_then(|kept| kept.settings.as_deref());
    match (file, settings) {
        (Some(file), None) => Ok(file.clone()),
        (None, Some(settings)) => Ok(settings.clone()),
        (Some(file), Some(settings)) => {
            let of_file = file.clone();
            Ok(Site {
                volumes: of_file.volumes,
                groups: of_file.groups,
                hosts: of_file.hosts,
                host_groups: of_file.host_groups,
                exports: of_file.exports,
                vms: of_file.vms,
                chap: site::Chap {
                    discovery: of_file.chap.discovery,
                    ..settings.chap.clone()
                },
                ..settings.clone()
            })
        }
        (None, None) => {
            let path = data.path().display();
            let context = match made.now().pools.is_empty() {
                true => format!(
                    "data directory {path}: no array is kept there; say which with --site FILE"
                ),
                false => format!(
                    "data directory {path}: it has pools, and ashlar-configuration.json, the record \
                     of targets and settings, is not there. Put the record back, or start with \
                     --site FILE and then run `ashlar site apply FILE`"
                ),
            };
            Err(BringUpError::new(BringUpErrorKind::Data, context))
        }
    }
}

/// Finds out what to begin with, given what is `kept`. Where there was a configuration and `is_lost`, that is nothing:
/// what the site file says may admit more than was admitted last.
///
/// # Errors
/// What is kept can't be understood; or, at the first start, initiators would be of two hosts.
pub(super) fn begin(
    site: &Site,
    data: &DataDir,
    kept: Option<Configuration>,
    is_lost: bool,
) -> Result<Beginning, BringUpError> {
    let settings = Some(Arc::new(site.settings()));
    if let Some(kept) = kept {
        return Ok(accepted(settings, kept));
    }
    if is_lost {
        return Ok(lost(settings, data));
    }
    let (exports, hosts) = (data.exports_file(), data.hosts_file());
    let of_before = before(&exports, &hosts)?;
    let mut configuration = apply::configuration(site);
    // What commands made counts: it was made after the site file was written.
    configuration.known.hosts.extend(of_before.known.hosts);
    configuration.known.groups.extend(of_before.known.groups);
    for (target, export) in of_before.exports {
        configuration.exports.retain(|other, of_site| {
            let shared = |volume: &String| export.volumes.contains(volume);
            let clash = of_site.volumes.iter().find(|volume| shared(volume));
            let Some(clash) = clash.filter(|_| *other != target) else {
                return true;
            };
            tracing::warn!(
                "target {other} of the site file is left out: volume {clash} is behind target \
                 {target}, which a command made"
            );
            false
        });
        configuration.exports.insert(target, export);
    }
    match configuration.known.complaint() {
        None => Ok(Beginning {
            configuration,
            basis: Basis::New,
        }),
        Some(complaint) => {
            let file = hosts.display();
            let context =
                format!("{complaint}; correct the site file, or remove the entry from {file}");
            Err(BringUpError::new(BringUpErrorKind::Export, context))
        }
    }
}

/// What an array begins with that has a record.
fn accepted(settings: Option<Arc<Site>>, kept: Configuration) -> Beginning {
    Beginning {
        basis: match kept.settings {
            Some(_) => Basis::Record,
            None => Basis::Unwritten,
        },
        configuration: Configuration { settings, ..kept },
    }
}

/// What an array begins with whose record is lost.
fn lost(settings: Option<Arc<Site>>, data: &DataDir) -> Beginning {
    tracing::error!(
        "{} is not there, and pools are: nobody can log in. Put the record back and start \
         again, or have the array be as the site file says with `ashlar site apply`",
        data.configuration_file().display()
    );
    Beginning {
        configuration: Configuration {
            is_complete: true,
            is_lost: true,
            settings,
            ..Configuration::default()
        },
        basis: Basis::New,
    }
}

/// Has the array be what it begins with.
///
/// # Errors
/// A shard has stopped, or the record can't be written; at the first start, what can't be served.
pub(super) async fn take_over(
    Beginning {
        configuration,
        basis,
    }: Beginning,
    settled: Settled<RealWorld>,
) -> Result<(), BringUpError> {
    let taken = settled.take_over(configuration, basis).await;
    taken.map_err(|error| match basis {
        Basis::New if error.kind != ArrayErrorKind::Internal => {
            BringUpError::new(BringUpErrorKind::Export, error.context)
        }
        _ => error.into(),
    })
}
