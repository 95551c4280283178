//! Adds LUNs to a target in service, and removes them.
//!
//! Invariants:
//! - A LUN that stays keeps its number and its commands.
//! - What comes is shown before it is on record, and what goes is off the record before it is
//!   taken away: after a crash a target shows what is on record.

use super::exports::{FoundVolume, show_on};
use super::{Accounts, ArrayError, ArrayErrorKind, ControlPlane, Export};
use crate::shard::{ShardHandle, ShardState};
use base::Uuid;
use engine::World;
use futures_util::future::join_all;
use std::rc::Rc;
use std::sync::Arc;

/// A volume to be put behind a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLun {
    /// Name of the volume to export.
    pub volume: String,
    /// The LUN; the lowest one that is free unless said.
    pub lun: Option<u16>,
}

impl<W: World> ControlPlane<W> {
    /// Puts volumes behind `target`, and takes others away; all of that or nothing. Initiators
    /// are told that the LUNs have changed.
    ///
    /// # Errors
    /// No such target or volume; a volume is behind a target; a LUN is taken; none would be
    /// left; the target is withheld; or it can't be kept.
    pub async fn change_luns(
        self: &Arc<Self>,
        target: &str,
        add: Vec<NewLun>,
        remove: Vec<String>,
    ) -> Result<Export, ArrayError> {
        let target = target.to_ascii_lowercase();
        self.change(move |array| async move {
            let mut configuration = array.configuration();
            let export = configuration.exports.get_mut(&target);
            let export = export.ok_or_else(|| ArrayError::no_export(&target))?;
            let shard = array.serving_shard(&target, export)?;
            let mut new = Vec::new();
            for one in add {
                new.push(array.add_lun(export, one).await?);
            }
            let gone = remove.iter().map(|name| take_out(export, name));
            let gone: Vec<_> = gone.collect::<Result<_, _>>()?;
            if export.volumes.is_empty() {
                let context = format!("target {target} would have no LUN left; delete it instead");
                return Err(ArrayError::new(ArrayErrorKind::Invalid, context));
            }
            let export = export.clone();
            let added: Vec<u16> = new.iter().map(|(lun, _)| *lun).collect();
            show(shard, &export, new, Arc::clone(&array.accounts)).await?;
            let planted = "LUN that was removed stays on record";
            let kept = match gone.is_empty() || !array.runtime.planted(planted) {
                true => array.keep(configuration).await,
                false => Ok(()),
            };
            if let Err(error) = kept {
                hide(shard, &target, added).await?;
                return Err(error);
            }
            array.export_map().insert(target.clone(), export.clone());
            array.hide_all(shard, &target, &gone).await?;
            let uuids: Vec<Uuid> = gone.iter().map(|(_, uuid)| *uuid).collect();
            array.end_offload(&uuids).await?;
            Ok(export)
        })
        .await
    }

    /// The shard that serves a target.
    fn serving_shard(&self, target: &str, export: &Export) -> Result<&ShardHandle<W>, ArrayError> {
        let entry = self.directory.target(target);
        let shard = entry.and_then(|entry| self.shards.get(entry.shard));
        // One that is served knows which volumes it is of.
        let is_served = export.withheld.is_none() && export.uuids.len() == export.volumes.len();
        shard.filter(|_| is_served).ok_or_else(|| {
            let why = export.withheld.clone().unwrap_or_default();
            let context = format!("target {target} is withheld: {why}");
            ArrayError::new(ArrayErrorKind::Busy, context)
        })
    }

    /// Takes LUNs of a target away, and waits for their commands. Each ends when its pool answers.
    async fn hide_all(
        &self,
        shard: &ShardHandle<W>,
        target: &str,
        gone: &[(u16, Uuid)],
    ) -> Result<(), ArrayError> {
        let volumes = self.volumes().await?;
        let hidden = gone.iter().map(|(lun, uuid)| {
            let there = volumes.iter().find(|volume| volume.info.uuid == *uuid);
            let pool = there.map_or("", |volume| &volume.pool);
            self.turns.wait(pool, hide(shard, target, vec![*lun]))
        });
        join_all(hidden).await.into_iter().collect()
    }

    /// Has `export` list one more volume; gives its LUN and where it is.
    async fn add_lun(
        &self,
        export: &mut Export,
        new: NewLun,
    ) -> Result<(u16, FoundVolume<W>), ArrayError> {
        let name = &new.volume;
        let volumes = self.volumes().await?;
        let volume = volumes.iter().find(|volume| volume.info.name == *name);
        let volume = volume.ok_or_else(|| ArrayError::no_volume(name))?;
        self.jobs.check_whole(name)?;
        if let Some((other, lun)) = self.lun_of(name, Some(volume.info.uuid)) {
            return Err(self.is_shown(name, lun, &other)?);
        }
        let of_target = |lun: &u16| export.luns.contains(lun);
        let mut free = (0..site::LUNS_MAX as u16).filter(|lun| !of_target(lun));
        let target = &export.target;
        let lun = match new.lun {
            Some(lun) if of_target(&lun) => {
                let context =
                    format!("target {target} has a LUN {lun} already; choose another one");
                return Err(ArrayError::new(ArrayErrorKind::Exists, context));
            }
            Some(lun) if usize::from(lun) < site::LUNS_MAX => Some(lun),
            Some(_) => None,
            None => free.next(),
        };
        let lun = lun.ok_or_else(|| {
            let most = site::LUNS_MAX;
            let context = format!(
                "target {target}: allowed are {most} LUNs, from 0 to {}",
                most - 1
            );
            ArrayError::new(ArrayErrorKind::Invalid, context)
        })?;
        let at = export.luns.iter().take_while(|other| **other < lun).count();
        export.luns.insert(at, lun);
        export.volumes.insert(at, new.volume);
        export.uuids.insert(at, volume.info.uuid);
        Ok((lun, (self.home_of(volume)?, volume.clone())))
    }
}

/// Has `export` not list a volume any more; gives its LUN and its identity.
fn take_out(export: &mut Export, name: &str) -> Result<(u16, Uuid), ArrayError> {
    let at = export.volumes.iter().position(|volume| volume == name);
    let at = at.ok_or_else(|| {
        let target = &export.target;
        let what = format!("volume {name} among the LUNs of target {target}");
        ArrayError::not_there(&what, &format!("export show {target}"))
    })?;
    export.volumes.remove(at);
    Ok((export.luns.remove(at), export.uuids.remove(at)))
}

/// Puts `new` volumes behind the target of an export, all or none.
async fn show<W: World>(
    shard: &ShardHandle<W>,
    export: &Export,
    new: Vec<(u16, FoundVolume<W>)>,
    accounts: Arc<Accounts>,
) -> Result<(), ArrayError> {
    let (target, traits) = (export.target.clone(), export.traits);
    let visit = move |state: Rc<ShardState<W>>| async move {
        let luns: Vec<u16> = new.iter().map(|(lun, _)| *lun).collect();
        let shown = show_on(&state, &target, new, (traits, &accounts));
        if shown.is_err() {
            // Those that were free before, and were shown just now.
            for lun in luns {
                let _ = state.unexport(&target, lun).await;
            }
        }
        shown
    };
    shard.call(visit).await?
}

/// Takes LUNs of a target away.
async fn hide<W: World>(
    shard: &ShardHandle<W>,
    target: &str,
    luns: Vec<u16>,
) -> Result<(), ArrayError> {
    let target = target.to_owned();
    let visit = move |state: Rc<ShardState<W>>| async move {
        for lun in luns {
            state.unexport(&target, lun).await?;
        }
        Ok(())
    };
    shard.call(visit).await?
}
