//! Exports: targets, the volumes behind them, and who may log in.
//!
//! The site file's exports come from the site file at every start; those made by
//! the API are kept in a file of their own, written whole and synced before the
//! target takes logins.

use super::{Array, ArrayError, ArrayErrorKind, PlacedVolume};
use crate::directory::{Access, Initiators, TargetEntry};
use crate::record;
use crate::shard::distant::Distant;
use crate::shard::{ShardHandle, ShardState};
use base::Uuid;
use engine::Disk;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use world::real::RealWorld;

/// Who described an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The site file; there again after every start.
    Site,
    /// The API; kept in the data directory.
    Api,
}

/// A target and what is behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// iSCSI qualified name, in lower case.
    pub target: String,
    /// Names of volumes: LUN 0, 1, and so on.
    pub volumes: Vec<String>,
    /// Identities of the volumes, by which they are found when names change; empty when
    /// they are not known yet.
    pub uuids: Vec<Uuid>,
    /// Who may log in.
    pub access: Access,
    /// Who described it.
    pub origin: Origin,
}

/// How an export is kept.
#[derive(Debug, Serialize, Deserialize)]
struct KeptExport {
    target: String,
    volumes: Vec<String>,
    /// Absent where it was written before volumes could be renamed.
    #[serde(default)]
    uuids: Vec<String>,
    /// Absent for any.
    initiators: Option<Vec<String>>,
}

/// The exports that the API made, as kept in `file`.
///
/// # Errors
/// The file is there and can't be read or understood.
pub(crate) fn kept(file: &Path) -> Result<Vec<Export>, record::RecordError> {
    let kept: Vec<KeptExport> = record::read(file)?.unwrap_or_default();
    let export = |kept: KeptExport| Export {
        uuids: known(&kept),
        target: kept.target,
        volumes: kept.volumes,
        access: Access {
            initiators: match kept.initiators {
                None => Initiators::Any,
                Some(names) => Initiators::Named(names.into_iter().collect()),
            },
            ..Access::default()
        },
        origin: Origin::Api,
    };
    Ok(kept.into_iter().map(export).collect())
}

/// The identities of an export's volumes, when all of them are known.
fn known(kept: &KeptExport) -> Vec<Uuid> {
    let uuids = kept.uuids.iter().map(|text| Uuid::parse_str(text).ok());
    let uuids: Option<Vec<Uuid>> = uuids.collect();
    let uuids = uuids.filter(|uuids| uuids.len() == kept.volumes.len());
    uuids.unwrap_or_default()
}

impl Array {
    /// All exports, by target.
    pub fn exports(&self) -> Vec<Export> {
        self.export_map().values().cloned().collect()
    }

    /// The export of `target`.
    ///
    /// # Errors
    /// There is none.
    pub fn export(&self, target: &str) -> Result<Export, ArrayError> {
        let target = target.to_ascii_lowercase();
        self.export_map()
            .get(&target)
            .cloned()
            .ok_or_else(|| no_export(&target))
    }

    /// Where the volume called `name` is exported: target and LUN.
    pub fn lun_of(&self, name: &str) -> Option<(String, usize)> {
        let exports = self.export_map();
        exports.values().find_map(|export| {
            let lun = export.volumes.iter().position(|volume| volume == name)?;
            Some((export.target.clone(), lun))
        })
    }

    /// Shows volumes behind a new target.
    ///
    /// # Errors
    /// The target is there already, a volume isn't there or is behind another
    /// target, or the export can't be kept.
    pub async fn create_export(self: &Arc<Self>, export: Export) -> Result<(), ArrayError> {
        let keep = export.origin == Origin::Api;
        self.add_export(export, keep).await
    }

    /// As [`Array::create_export`], for what is kept already or comes from the
    /// site file.
    pub(crate) async fn restore_export(self: &Arc<Self>, export: Export) -> Result<(), ArrayError> {
        self.add_export(export, false).await
    }

    async fn add_export(
        self: &Arc<Self>,
        mut export: Export,
        keep: bool,
    ) -> Result<(), ArrayError> {
        self.change(move |array| async move {
            let (shard, volumes) = array.check(&export).await?;
            export.uuids = volumes.iter().map(|(_, volume)| volume.info.uuid).collect();
            array.show(&shard, &export, volumes).await?;
            if keep {
                let mut exports = array.exports_by_target();
                exports.insert(export.target.clone(), export.clone());
                if let Err(error) = array.keep(&exports).await {
                    hide(&shard, &export.target).await?;
                    return Err(error);
                }
            }
            array
                .export_map()
                .insert(export.target.clone(), export.clone());
            let (index, access) = (shard.index(), export.access);
            array.directory.set_target(
                &export.target,
                TargetEntry {
                    shard: index,
                    access,
                },
            );
            Ok(())
        })
        .await
    }

    /// Closes the sessions of `target` and takes it away. The volumes stay. An
    /// export of the site file is there again after the next start.
    ///
    /// # Errors
    /// There is none, or its removal can't be kept.
    pub async fn delete_export(self: &Arc<Self>, target: &str) -> Result<(), ArrayError> {
        let target = target.to_ascii_lowercase();
        self.change(move |array| async move {
            let mut exports = array.exports_by_target();
            let Some(export) = exports.remove(&target) else {
                return Err(no_export(&target));
            };
            if export.origin == Origin::Api {
                array.keep(&exports).await?;
            }
            array.export_map().remove(&target);
            let entry = array.directory.remove_target(&target);
            let shard = entry.and_then(|entry| array.shards.get(entry.shard));
            match shard {
                Some(shard) => hide(shard, &target).await,
                None => Ok(()),
            }
        })
        .await
    }

    pub(super) fn exports_by_target(&self) -> BTreeMap<String, Export> {
        self.export_map().clone()
    }

    /// The shard that serves `export`, which is that of its first volume, and where the
    /// volumes are, if nothing speaks against it.
    async fn check(&self, export: &Export) -> Result<(ShardHandle, Vec<Found>), ArrayError> {
        let target = &export.target;
        let exists = |context| Err(ArrayError::new(ArrayErrorKind::Exists, context));
        if self.export_map().contains_key(target) {
            return exists(format!(
                "there is a target {target} already; choose another name"
            ));
        }
        let volumes = self.volumes().await?;
        let mut found = Vec::new();
        for name in &export.volumes {
            let volume = volumes.iter().find(|volume| volume.info.name == *name);
            let volume = volume.ok_or_else(|| ArrayError::no_volume(name))?;
            self.images.check_whole(name)?;
            found.push((self.home_of(volume)?, volume.clone()));
            if let Some((other, lun)) = self.lun_of(name) {
                return exists(format!(
                    "volume {name} is LUN {lun} of target {other} already; delete that export first"
                ));
            }
        }
        let none = || {
            let context = format!("target {target} has no volumes; name one or more");
            ArrayError::new(ArrayErrorKind::Invalid, context)
        };
        let (shard, _) = found.first().ok_or_else(none)?;
        Ok((shard.clone(), found))
    }

    /// Puts the volumes behind the target on its shard, all or none.
    async fn show(
        &self,
        shard: &ShardHandle,
        export: &Export,
        volumes: Vec<Found>,
    ) -> Result<(), ArrayError> {
        let target = export.target.clone();
        let visit = move |state: Rc<ShardState>| async move {
            let shown = show_on(&state, &target, volumes);
            if shown.is_err() {
                // What was shown goes again; a target that isn't there is fine.
                let _ = state.remove_target(&target).await;
            }
            shown
        };
        shard.call(visit).await?
    }

    /// Writes the exports that the API made.
    pub(super) async fn keep(&self, exports: &BTreeMap<String, Export>) -> Result<(), ArrayError> {
        let kept: Vec<KeptExport> = exports
            .values()
            .filter(|export| export.origin == Origin::Api)
            .map(|export| KeptExport {
                target: export.target.clone(),
                volumes: export.volumes.clone(),
                uuids: export.uuids.iter().map(ToString::to_string).collect(),
                initiators: match &export.access.initiators {
                    Initiators::Any => None,
                    Initiators::Named(names) => Some(names.iter().cloned().collect()),
                },
            })
            .collect();
        let file = self.exports_file.clone();
        let written = tokio::task::spawn_blocking(move || record::write(&file, &kept)).await;
        let failed = |context: String| ArrayError::new(ArrayErrorKind::Internal, context);
        match written {
            Ok(outcome) => outcome.map_err(|error| failed(error.to_string())),
            Err(error) => Err(failed(format!("writing the exports ended early: {error}"))),
        }
    }
}

/// A volume, and the shard that it is on.
type Found = (ShardHandle, PlacedVolume);

fn show_on(state: &ShardState, target: &str, volumes: Vec<Found>) -> Result<(), ArrayError> {
    state.add_target(target);
    for (lun, (home, placed)) in volumes.into_iter().enumerate() {
        let volume: Disk<RealWorld> = if home.index() == state.index() {
            let pool = state.lane(&placed.pool, placed.lane);
            let volume = pool.and_then(|pool| pool.volume(&placed.info.name));
            let gone = || ArrayError::no_volume(&placed.info.name);
            volume.ok_or_else(gone)?.into()
        } else {
            let at = (placed.pool, placed.lane);
            let memo = placed.about.whole_memo();
            Disk::There(Rc::new(Distant::new(home, at, placed.info).with_memo(memo)))
        };
        let lun = u16::try_from(lun).map_err(|_| {
            let context = format!("target {target} can't have a LUN {lun}");
            ArrayError::new(ArrayErrorKind::Invalid, context)
        })?;
        state.export(target, lun, volume)?;
    }
    Ok(())
}

async fn hide(shard: &ShardHandle, target: &str) -> Result<(), ArrayError> {
    let target = target.to_owned();
    let visit = move |state: Rc<ShardState>| async move { state.remove_target(&target).await };
    Ok(shard.call(visit).await??)
}

fn no_export(target: &str) -> ArrayError {
    ArrayError::new(
        ArrayErrorKind::NotFound,
        format!("there is no target {target}"),
    )
}
