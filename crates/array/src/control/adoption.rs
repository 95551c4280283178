//! Takes over at one instant who may log in: hosts, their groups, the access of targets, and new
//! portals.
//!
//! Invariants:
//! - Nobody is admitted in between whom neither the array before nor the array after admits. A host
//!   that gets an initiator, and a target that does not name the host any more, change together.
//! - A new portal shows no target that is yet as it was before.

use super::hosts::KnownHosts;
use super::portals::{BoundPortals, check_portals};
use super::{ArrayError, ArrayErrorKind, Configuration, ControlPlane, Export};
use crate::directory::Access;
use crate::shard::UnitTraits;
use base::Uuid;
use engine::World;
use site::Portal;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// Who may log in to a target that there is, and what initiators may do there.
#[derive(Clone, Debug)]
pub struct NewAccess {
    /// Name of the target.
    pub target: String,
    /// Who may log in.
    pub access: Access,
    /// Whether initiators may erase thin LUNs.
    pub may_sanitize: bool,
    /// Whether they may do what affects others.
    pub may_affect_others: bool,
}

/// Hosts that are to be known, targets that are to admit others, and portals that are to be opened.
#[derive(Clone, Debug, Default)]
pub struct AccessToAdopt {
    /// Hosts and groups with other names stay.
    pub known: KnownHosts,
    /// Targets that are not among these stay.
    pub targets: Vec<NewAccess>,
    /// Those that the array does not have.
    pub portals: Vec<Portal>,
}

/// What has come of it.
#[derive(Debug)]
pub struct Adopted {
    /// The targets that stay as they are, and why; or why nothing is changed at all.
    pub targets: Result<BTreeMap<String, String>, ArrayError>,
    /// The portals that can't be opened, by the address that settings have, and why.
    pub unopened: BTreeMap<SocketAddr, String>,
}

/// A configuration to be, and what is to be done for it.
struct Adoption {
    configuration: Configuration,
    /// The targets that change, each with what was permitted before.
    changed: Vec<(Export, UnitTraits)>,
    /// Why others do not, by target.
    left: BTreeMap<String, String>,
}

impl<W: World> ControlPlane<W> {
    /// Has hosts and groups be as these are, targets admit whom these say, and portals be open; others
    /// stay. Sessions that are not admitted any more end. A target that can't change is left as it is,
    /// and no new portal shows it. Nothing is changed where hosts and groups can't all be so, where a
    /// target can't and names one that changes, or where it can't be kept.
    ///
    /// # Errors
    /// The turn to change the array does not come.
    pub async fn adopt_access(
        self: &Arc<Self>,
        to_adopt: AccessToAdopt,
    ) -> Result<Adopted, ArrayError> {
        self.change(move |array| async move {
            let (bound, unopened) = array.bind_portals(&to_adopt.portals);
            let targets = array.adopt(to_adopt, bound).await;
            Ok(Adopted { targets, unopened })
        })
        .await
    }

    /// The same, with these new portals. Gives the targets that are left as they are, and why.
    async fn adopt(
        &self,
        to_adopt: AccessToAdopt,
        bound: BoundPortals,
    ) -> Result<BTreeMap<String, String>, ArrayError> {
        let Adoption {
            configuration,
            changed,
            left,
        } = self.adoption(&to_adopt, bound.described())?;
        let known = configuration.known.clone();
        let settings = configuration.settings.clone();
        let are_other_hosts = known != *self.known_hosts();
        if let Err(error) = self.keep(configuration).await {
            if self
                .runtime
                .planted("portal that is not opened stays bound")
            {
                std::mem::forget(bound);
            }
            return Err(error);
        }
        if let Some(settings) = settings {
            self.settings_are(settings);
        }
        *self.known_hosts() = known;
        for (export, before) in &changed {
            let target = export.target.clone();
            self.export_map().insert(target, export.clone());
            // Before anybody else is admitted: this reaches the shard before their commands do.
            self.permit_soon(&export.target, export.traits.both(*before));
        }
        self.publish_hosts_and(changed.iter().map(|(export, _)| export));
        self.show_portals(bound);
        let uuids = self.volumes_behind(are_other_hosts, &changed);
        self.follow_access(&changed, &uuids).await?;
        Ok(left)
    }

    /// The volumes whose copies and tokens may be of somebody who is not admitted any more. Hosts may be
    /// named by any target.
    fn volumes_behind(&self, are_other_hosts: bool, changed: &[(Export, UnitTraits)]) -> Vec<Uuid> {
        let volumes = |export: &Export| export.uuids.clone();
        match are_other_hosts {
            true => self.export_map().values().flat_map(volumes).collect(),
            false => changed
                .iter()
                .flat_map(|(export, _)| volumes(export))
                .collect(),
        }
    }

    /// The configuration with all of that, and with these new portals.
    fn adoption(
        &self,
        to_adopt: &AccessToAdopt,
        portals: &[Portal],
    ) -> Result<Adoption, ArrayError> {
        let adoption = self.unchecked_adoption(to_adopt.clone(), portals, false)?;
        match self.check_secrets(adoption.configuration.accounts()) {
            Ok(()) => Ok(adoption),
            // A target whose account can't be is no reason to leave the others.
            Err(_) => self.unchecked_adoption(to_adopt.clone(), portals, true),
        }
    }

    /// The same; the accounts are checked with each target, or not at all.
    fn unchecked_adoption(
        &self,
        AccessToAdopt { known, targets, .. }: AccessToAdopt,
        portals: &[Portal],
        checks: bool,
    ) -> Result<Adoption, ArrayError> {
        let before = self.configuration();
        let mut after = before.clone();
        after.settings = Some(self.settings_with(portals)?);
        after.known.hosts.extend(known.hosts);
        after.known.groups.extend(known.groups);
        if let Some(complaint) = after.known.complaint() {
            return Err(ArrayError::new(ArrayErrorKind::Invalid, complaint));
        }
        if checks {
            self.check_secrets(after.accounts())?;
        }
        let (mut changed, mut left) = (Vec::new(), BTreeMap::new());
        for new in targets {
            // One that has gone since is nobody's to change.
            let Some(was) = before.exports.get(&new.target) else {
                continue;
            };
            match self.admit_anew(&mut after, new, checks) {
                Ok(export) => changed.push((export, was.traits)),
                Err(error) if names_changed(&was.access, &before.known, &after.known) => {
                    return Err(error);
                }
                Err(error) => {
                    left.insert(was.target.clone(), error.context);
                    let stays = self.keep_from(&mut after, &was.target, portals);
                    changed.extend(stays.map(|export| (export, was.traits)));
                }
            }
        }
        Ok(Adoption {
            configuration: after,
            changed,
            left,
        })
    }

    /// Has a target that all portals show be shown by those that there are now, and not by new ones.
    /// Gives it, if that is another one.
    fn keep_from(&self, after: &mut Configuration, target: &str, new: &[Portal]) -> Option<Export> {
        if new.is_empty() || self.has_one_portal_only() {
            return None;
        }
        let export = after.exports.get_mut(target)?;
        if export.access.portals.is_some() {
            return None;
        }
        let settings = self.settings();
        let now = settings.portals.iter().map(|portal| portal.address);
        export.access.portals = Some(now.collect());
        self.runtime
            .reached("new portal does not show a target that is left");
        Some(export.clone())
    }

    /// Has a target admit others in a configuration, if it can. Gives it as it is then.
    fn admit_anew(
        &self,
        after: &mut Configuration,
        new: NewAccess,
        checks: bool,
    ) -> Result<Export, ArrayError> {
        let Some(there) = after.exports.get(&new.target) else {
            return Err(ArrayError::no_export(&new.target));
        };
        let mut export = there.clone();
        export.access = new.access;
        export.traits.may_sanitize = new.may_sanitize;
        export.traits.may_affect_others = new.may_affect_others;
        check_admits(&export, &after.known)?;
        if export.access.portals != there.access.portals {
            let settings = after.settings.clone().unwrap_or_else(|| self.settings());
            check_portals(&export, &settings)?;
        }
        let before = after.exports.insert(new.target.clone(), export.clone());
        if checks && let Err(error) = self.check_secrets(after.accounts()) {
            after
                .exports
                .extend(before.map(|there| (new.target, there)));
            return Err(error);
        }
        Ok(export)
    }

    /// Has sessions and units follow who may log in by now, and what is permitted: those who are not
    /// admitted any more end, and so do copies and tokens of these volumes. Each target comes with
    /// what it permitted before.
    ///
    /// # Errors
    /// A shard has stopped.
    pub(super) async fn follow_access(
        &self,
        changed: &[(Export, UnitTraits)],
        volumes: &[Uuid],
    ) -> Result<(), ArrayError> {
        let mut narrowed = Ok(());
        for (export, before) in changed {
            // Those who are not admitted any more get nothing that they could not do before.
            let permitted = self.permit(&export.target, export.traits.both(*before));
            narrowed = narrowed.and(permitted.await);
        }
        let planted = "host withdrawn from an export keeps its sessions";
        if !self.runtime.planted(planted) {
            self.end_not_admitted().await;
        }
        // Who makes copies, or has tokens, may not be admitted any more.
        let ended = self.end_offload(volumes).await;
        narrowed.and(ended)?;
        for (export, _) in changed {
            // Another change may have come meanwhile: what it said counts.
            let now = self.export_map().get(&export.target).map(|now| now.traits);
            if let Some(permitted) = now {
                self.permit(&export.target, permitted).await?;
            }
        }
        Ok(())
    }
}

/// Whether what an export says of who may log in can be so, with these hosts.
///
/// # Errors
/// Nobody may, or a host or a group is not there.
pub(super) fn check_admits(export: &Export, known: &KnownHosts) -> Result<(), ArrayError> {
    let (target, access) = (&export.target, &export.access);
    let wrong = |kind, why: String| Err(ArrayError::new(kind, format!("target {target}: {why}")));
    if access.is_closed() {
        let why = "nobody may log in; name initiators, hosts or host groups, or admit any";
        return wrong(ArrayErrorKind::Invalid, why.to_owned());
    }
    match known.missing(access) {
        Some(missing) => wrong(ArrayErrorKind::NotFound, missing),
        None => Ok(()),
    }
}

/// Whether access names a host or a group, or a group that has a host, which is another one after.
fn names_changed(access: &Access, before: &KnownHosts, after: &KnownHosts) -> bool {
    let is_other = |host: &String| before.hosts.get(host) != after.hosts.get(host);
    let is_other_group = |group: &String| {
        let (was, is) = (before.groups.get(group), after.groups.get(group));
        was != is || is.is_some_and(|group| group.hosts.iter().any(is_other))
    };
    access.hosts.iter().any(is_other) || access.host_groups.iter().any(is_other_group)
}
