//! Creates, changes and deletes exports: targets, their LUNs, and their access rules.
//!
//! Those that the array makes are kept before the target takes logins, and so is each change.

use super::adoption::check_admits;
use super::portals::{check_portals, missing_portal};
use super::{Accounts, ArrayError, ArrayErrorKind, ControlPlane, PlacedVolume};
use crate::directory::{Access, TargetEntry};
use crate::shard::remote_volume::RemoteVolume;
use crate::shard::{ShardHandle, ShardState, UnitTraits};
use base::Uuid;
use engine::{Disk, World};
use futures_util::FutureExt;
use futures_util::future::join_all;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

/// A target and what is behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// iSCSI qualified name, in lower case.
    pub target: String,
    /// Names of volumes, by LUN.
    pub volumes: Vec<String>,
    /// The LUN of each of them, rising.
    pub luns: Vec<u16>,
    /// Identities of the volumes, by which they are found when names change; empty when
    /// they are not known yet.
    pub uuids: Vec<Uuid>,
    /// Who may log in.
    pub access: Access,
    /// How its units are shown.
    pub traits: UnitTraits,
    /// Why it is not served, if it isn't: a volume of it is in a pool that is not open.
    pub withheld: Option<String>,
}

impl Export {
    /// The volume at a LUN, by its identity where that is known: another may have its name.
    fn find<'a>(&self, lun: usize, volumes: &'a [PlacedVolume]) -> Option<&'a PlacedVolume> {
        let name = self.volumes.get(lun)?;
        volumes.iter().find(|volume| match self.uuids.get(lun) {
            Some(uuid) => volume.info.uuid == *uuid,
            None => volume.info.name == *name,
        })
    }
}

impl<W: World> ControlPlane<W> {
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
            .ok_or_else(|| ArrayError::no_export(&target))
    }

    /// Where the volume called `name` is exported: target and LUN. With its identity, a target
    /// that is withheld and shows another one of that name does not count.
    pub fn lun_of(&self, name: &str, uuid: Option<Uuid>) -> Option<(String, usize)> {
        let exports = self.export_map();
        exports.values().find_map(|export| {
            let at = export.volumes.iter().position(|volume| volume == name)?;
            let is_another = export.uuids.get(at).zip(uuid);
            let is_it = is_another.is_none_or(|(known, uuid)| *known == uuid);
            let lun = usize::from(*export.luns.get(at)?);
            is_it.then(|| (export.target.clone(), lun))
        })
    }

    /// Shows volumes behind a new target.
    ///
    /// # Errors
    /// The target is there already, a volume isn't there or is behind another
    /// target, or the export can't be kept.
    pub async fn create_export(self: &Arc<Self>, export: Export) -> Result<(), ArrayError> {
        self.add_export(export, None, true).await
    }

    /// As [`ControlPlane::create_export`], for what is kept already, and at the first start. One with a volume that may be in a pool that is not open is withheld, whole:
    /// initiators are told that it is not operational, and try again, while a LUN that went
    /// missing would be one that was taken away. So is one whose volume is another by now than
    /// the one that it was made with: initiators would take it for that.
    ///
    /// One that was `seen` withheld is tried again, unless somebody has changed it since.
    pub async fn restore_export(
        self: &Arc<Self>,
        export: Export,
        seen: Option<Export>,
    ) -> Result<(), ArrayError> {
        let closed = self.closed_names();
        let there = self.volumes().await?;
        let mut missing = Vec::new();
        let mut is_another = false;
        for (lun, name) in export.volumes.iter().enumerate() {
            if export.find(lun, &there).is_some() {
                continue;
            }
            let other = there.iter().find(|volume| volume.info.name == *name);
            is_another |= other.is_some();
            missing.push(match other {
                Some(other) => format!(
                    "{name} (another volume is called so in pool {})",
                    other.pool
                ),
                None => name.clone(),
            });
        }
        // What is nowhere at all is refused there, by name.
        if missing.is_empty() || closed.is_none() && !is_another {
            return self.add_export(export, seen, false).await;
        }
        let then = match closed {
            Some(closed) => format!("not open: {closed}; see ashlar status"),
            None => "delete the export, and create it again with the right volume".into(),
        };
        let why = format!("not there: {}; {then}", missing.join(", "));
        self.withhold_export(export, seen, why).await
    }

    /// The target that is withheld and shows a volume of this name, which may be in a pool that
    /// is not open.
    pub(super) fn withheld_with(&self, name: &str) -> Option<String> {
        let exports = self.export_map();
        let mut withheld = exports.values().filter(|export| export.withheld.is_some());
        let with = withheld.find(|export| export.volumes.iter().any(|volume| volume == name));
        with.map(|export| export.target.clone())
    }

    /// Has an export be there, and not served.
    pub async fn withhold_export(
        self: &Arc<Self>,
        mut export: Export,
        seen: Option<Export>,
        why: String,
    ) -> Result<(), ArrayError> {
        export.withheld = Some(why.clone());
        if seen.as_ref() == Some(&export) {
            return Ok(());
        }
        self.change(move |array| async move {
            let target = export.target.clone();
            let before = array.exports_by_target().remove(&target);
            if seen.is_some() && before != seen {
                return Ok(());
            }
            if before
                .as_ref()
                .is_none_or(|before| before.withheld.as_ref() != Some(&why))
            {
                tracing::warn!("target {target} is withheld: {why}");
            }
            array
                .directory
                .withhold_target(&target, export.access.clone());
            array.export_map().insert(target, export);
            Ok(())
        })
        .await
    }

    async fn add_export(
        self: &Arc<Self>,
        mut export: Export,
        seen: Option<Export>,
        is_new: bool,
    ) -> Result<(), ArrayError> {
        // One that was withheld may not have known which volumes it is of.
        let keep = is_new || seen.is_some() && export.uuids.is_empty();
        self.change(move |array| async move {
            let now = array.export_map().get(&export.target).cloned();
            if seen.is_some() && now != seen {
                return Ok(());
            }
            let (shard, volumes) = array.check(&export, is_new).await?;
            array.check_access(&export)?;
            if is_new {
                check_portals(&export, &array.settings())?;
            }
            export.withheld = None;
            export.uuids = volumes.iter().map(|(_, volume)| volume.info.uuid).collect();
            array.show(&shard, &export, volumes).await?;
            if keep {
                let mut configuration = array.configuration();
                let exports = &mut configuration.exports;
                exports.insert(export.target.clone(), export.clone());
                if let Err(error) = array.keep(configuration).await {
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

    /// Changes who may log in to `target`, and what initiators may do there. Sessions that are not
    /// admitted any more end.
    ///
    /// # Errors
    /// There is no such target, or what is named isn't there.
    pub async fn change_export(
        self: &Arc<Self>,
        target: &str,
        change: impl FnOnce(&mut Access, &mut UnitTraits) + Send + 'static,
    ) -> Result<Export, ArrayError> {
        let target = target.to_ascii_lowercase();
        self.change(move |array| async move {
            let mut configuration = array.configuration();
            let Some(export) = configuration.exports.get_mut(&target) else {
                return Err(ArrayError::no_export(&target));
            };
            let (before, traits) = (export.access.portals.clone(), export.traits);
            change(&mut export.access, &mut export.traits);
            let export = export.clone();
            array.check_access(&export)?;
            if export.access.portals != before {
                check_portals(&export, &array.settings())?;
            }
            let planted = "access of an export counts before it is kept";
            if array.runtime.planted(planted) {
                array.publish_access(&export);
            }
            array.keep(configuration).await?;
            array.export_map().insert(target.clone(), export.clone());
            // Before anybody else is admitted.
            array.permit_soon(&target, export.traits.both(traits));
            array.publish_access(&export);
            let uuids = export.uuids.clone();
            let changed = [(export.clone(), traits)];
            array.follow_access(&changed, &uuids).await?;
            Ok(export)
        })
        .await
    }

    /// Has who may log in to a target be as its export says.
    fn publish_access(&self, export: &Export) {
        let (target, access) = (&export.target, export.access.clone());
        if export.withheld.is_some() {
            self.directory.withhold_target(target, access);
        } else if let Some(entry) = self.directory.target(target) {
            let entry = TargetEntry { access, ..entry };
            self.directory.set_target(target, entry);
        }
    }

    /// Has the units of `target` permit what `traits` permit, if it is served.
    ///
    /// # Errors
    /// Its shard has stopped.
    pub(super) async fn permit(&self, target: &str, traits: UnitTraits) -> Result<(), ArrayError> {
        let entry = self.directory.target(target);
        let Some(shard) = entry.and_then(|entry| self.shards.get(entry.shard)) else {
            return Ok(());
        };
        let target = target.to_owned();
        let permit = move |state: Rc<ShardState<W>>| async move { state.permit(&target, traits) };
        Ok(self.turns.wait("", shard.call(permit)).await?)
    }

    /// Has the units of a target permit that, without waiting: whatever is sent to its shard from now
    /// on comes later.
    pub(super) fn permit_soon(&self, target: &str, traits: UnitTraits) {
        let entry = self.directory.target(target);
        let Some(shard) = entry.and_then(|entry| self.shards.get(entry.shard)) else {
            return;
        };
        let target = target.to_owned();
        // Nobody does anything on a shard that has stopped.
        let _ = shard.post(move |state| async move { state.permit(&target, traits) });
    }

    /// Closes the sessions of `target` and takes it away. The volumes stay.
    ///
    /// # Errors
    /// There is none, or its removal can't be kept.
    pub async fn delete_export(self: &Arc<Self>, target: &str) -> Result<(), ArrayError> {
        let target = target.to_ascii_lowercase();
        self.change(move |array| async move {
            let mut configuration = array.configuration();
            let Some(export) = configuration.exports.remove(&target) else {
                return Err(ArrayError::no_export(&target));
            };
            array.keep(configuration).await?;
            array.export_map().remove(&target);
            let entry = array.directory.remove_target(&target);
            let shard = entry.and_then(|entry| array.shards.get(entry.shard));
            let volumes = array.volumes().await?.into_iter();
            let of = volumes.filter(|volume| export.uuids.contains(&volume.info.uuid));
            let pools: BTreeSet<String> = of.map(|volume| volume.pool).collect();
            // Commands of its sessions end when their pools answer.
            let hiding = async {
                let planted = "sessions outlive their export";
                match shard.filter(|_| !array.runtime.planted(planted)) {
                    Some(shard) => hide(shard, &target).await,
                    None => Ok(()),
                }
            };
            let hiding = hiding.shared();
            let waits = pools.iter();
            join_all(waits.map(|pool| array.turns.wait(pool, hiding.clone()))).await;
            let hidden = hiding.await;
            let ended = array.end_offload(&export.uuids).await;
            hidden.and(ended)
        })
        .await
    }

    /// Ends the copies that reach these volumes by other logical units, and waits for them: nobody
    /// else changes the volumes' pools meanwhile. Ends the tokens that were made of the volumes,
    /// those that a command under way has made included: hosts copy by themselves then.
    ///
    /// # Errors
    /// A shard has stopped.
    pub(super) async fn end_offload(&self, volumes: &[Uuid]) -> Result<(), ArrayError> {
        let offload = &self.offload;
        let all = self.volumes().await;
        if let Ok(all) = &all {
            let left = volumes.iter().map(|uuid| {
                let there = all.iter().find(|volume| volume.info.uuid == *uuid);
                let pool = there.map_or("", |volume| &volume.pool);
                self.turns.wait(pool, offload.leave_alone(*uuid))
            });
            join_all(left).await;
        }
        if self
            .runtime
            .planted("tokens outlive the LUN of their volume")
        {
            return all.map(drop);
        }
        let revoked = volumes.iter().map(|volume| offload.revoke_volume(*volume));
        // Pages that they keep are given back when their pool answers.
        self.turns.wait("", join_all(revoked)).await;
        all.map(drop)
    }

    /// All exports, each by its target.
    pub fn exports_by_target(&self) -> BTreeMap<String, Export> {
        self.export_map().clone()
    }

    /// The shard that serves `export`, which is that of its first volume, and where the
    /// volumes are, if nothing speaks against it.
    async fn check(
        &self,
        export: &Export,
        is_new: bool,
    ) -> Result<(ShardHandle<W>, Vec<FoundVolume<W>>), ArrayError> {
        let target = &export.target;
        let exists = |context| Err(ArrayError::new(ArrayErrorKind::Exists, context));
        let before = self.export_map().get(target).cloned();
        if before.is_some_and(|before| is_new || before.withheld.is_none()) {
            return exists(format!(
                "there is a target {target} already; choose another name"
            ));
        }
        let volumes = self.volumes().await?;
        let mut found = Vec::new();
        for (lun, name) in export.volumes.iter().enumerate() {
            let volume = export.find(lun, &volumes);
            let volume = volume.ok_or_else(|| ArrayError::no_volume(name))?;
            self.jobs.check_whole(name)?;
            found.push((self.home_of(volume)?, volume.clone()));
            let behind = self.lun_of(name, Some(volume.info.uuid));
            if let Some((other, lun)) = behind.filter(|(other, _)| other != target) {
                return Err(self.is_shown(name, lun, &other)?);
            }
        }
        let none = || {
            let context = format!("target {target} has no volumes; name one or more");
            ArrayError::new(ArrayErrorKind::Invalid, context)
        };
        let (shard, _) = found.first().ok_or_else(none)?;
        Ok((shard.clone(), found))
    }

    /// Whether what an export says of who may log in can be so.
    fn check_access(&self, export: &Export) -> Result<(), ArrayError> {
        let mut configuration = self.configuration();
        check_admits(export, &configuration.known)?;
        let exports = &mut configuration.exports;
        exports.insert(export.target.clone(), export.clone());
        self.check_secrets(configuration.accounts())
    }

    /// A portal that an export names and the array has not.
    pub fn missing_portal(&self, access: &Access) -> Option<SocketAddr> {
        missing_portal(access, &self.settings())
    }

    /// Puts the volumes behind the target on its shard, all or none.
    async fn show(
        &self,
        shard: &ShardHandle<W>,
        export: &Export,
        volumes: Vec<FoundVolume<W>>,
    ) -> Result<(), ArrayError> {
        let target = export.target.clone();
        let traits = export.traits;
        let volumes: Vec<_> = export.luns.iter().copied().zip(volumes).collect();
        let accounts = Arc::clone(&self.accounts);
        let visit = move |state: Rc<ShardState<W>>| async move {
            let shown = show_on(&state, &target, volumes, (traits, &accounts));
            if shown.is_err() {
                // What was shown goes again; a target that isn't there is fine.
                let _ = state.remove_target(&target).await;
            }
            shown
        };
        shard.call(visit).await?
    }
}

/// A volume, and the shard that it is on.
pub(super) type FoundVolume<W> = (ShardHandle<W>, PlacedVolume);

/// Puts volumes behind a target, at their LUNs.
pub(super) fn show_on<W: World>(
    state: &ShardState<W>,
    target: &str,
    volumes: Vec<(u16, FoundVolume<W>)>,
    (traits, accounts): (UnitTraits, &Accounts),
) -> Result<(), ArrayError> {
    state.add_target(target);
    for (lun, (home, placed)) in volumes {
        let account = accounts.open(&placed, state.world());
        let volume: Disk<W> = if home.index() == state.index() {
            let pool = state.lane(&placed.pool, placed.lane);
            let volume = pool.and_then(|pool| pool.volume(&placed.info.name));
            let gone = || ArrayError::no_volume(&placed.info.name);
            volume.ok_or_else(gone)?.into()
        } else {
            let at = (placed.pool, placed.lane);
            let memo = placed.properties.whole_memo();
            Disk::There(Rc::new(
                RemoteVolume::new(home, at, placed.info).with_memo(memo),
            ))
        };
        state.export_with(target, lun, volume, traits)?;
        state.limit(target, lun, account);
    }
    Ok(())
}

async fn hide<W: World>(shard: &ShardHandle<W>, target: &str) -> Result<(), ArrayError> {
    let target = target.to_owned();
    let visit = move |state: Rc<ShardState<W>>| async move { state.remove_target(&target).await };
    Ok(shard.call(visit).await??)
}

impl<W: World> ControlPlane<W> {
    /// That a volume is behind a target already.
    pub(super) fn is_shown(
        &self,
        name: &str,
        lun: usize,
        target: &str,
    ) -> Result<ArrayError, ArrayError> {
        let way = self.way_to_hide(target, name)?;
        let context = format!(
            "volume {name} is LUN {lun} of target {target} already: remove it there first, with \
             `ashlar {way}`"
        );
        Ok(ArrayError::new(ArrayErrorKind::Exists, context))
    }
}
