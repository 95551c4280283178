//! Chooses the configuration to start with: the record, or at first the site file.

use super::{RecordFiles, StartError, StartErrorKind};
use crate::control::{ArrayErrorKind, Basis, Configuration, Settled};
use crate::openings::MadePools;
use crate::site_file;
use engine::World;
use site::Site;
use std::path::Path;
use std::sync::Arc;

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
/// There is neither a file, nor are there settings. `data` is where they would be.
pub fn described(
    file: Option<&Site>,
    kept: Option<&Configuration>,
    (data, made): (&Path, &MadePools),
) -> Result<Site, StartError> {
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
            let path = data.display();
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
            Err(StartError::record(context))
        }
    }
}

/// Finds out what to begin with, given what is `kept`, now or by a version of before. Where there was a
/// configuration and `is_lost`, that is nothing: what the site file says may admit more than was
/// admitted last.
///
/// # Errors
/// What is kept can't be understood; or, at the first start, initiators would be of two hosts.
pub(super) fn begin(
    site: &Site,
    (kept, of_before): (Option<Configuration>, Option<Result<Configuration, String>>),
    is_lost: bool,
    files: RecordFiles<'_>,
) -> Result<Beginning, StartError> {
    let settings = Some(Arc::new(site.settings()));
    if let Some(kept) = kept {
        return Ok(accepted(settings, kept));
    }
    if is_lost {
        return Ok(lost(settings, files));
    }
    let of_before = of_before.transpose().map_err(StartError::record)?;
    let of_before = of_before.unwrap_or_default();
    let mut configuration = site_file::configuration(site);
    add_commands(&mut configuration, of_before);
    match configuration.known.complaint() {
        None => Ok(Beginning {
            configuration,
            basis: Basis::New,
        }),
        Some(complaint) => {
            let file = files.hosts.display();
            let context =
                format!("{complaint}; correct the site file, or remove the entry from {file}");
            Err(StartError::new(StartErrorKind::Export, context))
        }
    }
}

/// Adds to what the site file says what commands made before: it was made after the file was written, so
/// it counts.
fn add_commands(configuration: &mut Configuration, of_before: Configuration) {
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
fn lost(settings: Option<Arc<Site>>, files: RecordFiles<'_>) -> Beginning {
    tracing::error!(
        "{} is not there, and pools are: nobody can log in. Put the record back and start \
         again, or have the array be as the site file says with `ashlar site apply`",
        files.configuration.display()
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

/// Has the array be what it begins with; `are_made` says whether the volumes are that it began with.
///
/// # Errors
/// A shard has stopped, or the record can't be written; at the first start, what can't be served.
pub(super) async fn take_over<W: World>(
    Beginning {
        configuration,
        basis,
    }: Beginning,
    settled: Settled<W>,
    are_made: bool,
) -> Result<(), StartError> {
    let taken = settled.take_over_all(configuration, basis, are_made).await;
    taken.map_err(|error| match basis {
        Basis::New if error.kind != ArrayErrorKind::Internal => {
            StartError::new(StartErrorKind::Export, error.context)
        }
        _ => error.into(),
    })
}
