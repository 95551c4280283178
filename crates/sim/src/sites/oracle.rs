//! What an array is to be, given what it was and what was done to it.
//!
//! What was under way when the power went may have happened or not, in part as well.

use super::command::Command;
use super::seen::{Seen, SeenVolume, access_of};
use array::control::hosts::{account_of, of_site};
use base::Uuid;
use site::Site;
use std::collections::BTreeMap;

/// What was done since the array was looked at last.
#[derive(Clone, Debug, Default)]
pub(super) struct Did {
    /// Site files that were applied, or that a start completed.
    pub(super) files: Vec<Site>,
    pub(super) commands: Vec<Command>,
}

impl Did {
    fn describes(&self, volume: &str) -> bool {
        let mut volumes = self.files.iter().flat_map(|file| &file.volumes);
        volumes.any(|said| said.name == volume)
    }

    fn creates(&self, volume: &str) -> bool {
        let is_it =
            |command: &Command| matches!(command, Command::Create { name, .. } if name == volume);
        self.commands.iter().any(is_it)
    }
}

/// A volume that there is, also in a pool that is not open.
#[derive(Clone, Debug)]
struct Known {
    seen: SeenVolume,
    /// The name that site files had for it, as far as no file says the new one.
    was: Option<String>,
}

/// What there is.
#[derive(Debug, Default)]
pub(super) struct Oracle {
    volumes: BTreeMap<Uuid, Known>,
    /// The array when it was looked at last.
    last: Option<Seen>,
    /// What was done while a pool was not open: that may have a part of it.
    hidden: Did,
}

impl Oracle {
    pub(super) fn last(&self) -> Option<&Seen> {
        self.last.as_ref()
    }

    /// The file, with the names that volumes have now.
    pub(super) fn followed(&self, file: &Site) -> Site {
        let describes = |name: &str| file.volumes.iter().any(|volume| volume.name == name);
        let mut names = BTreeMap::new();
        for known in self.volumes.values().filter(|known| !known.seen.is_trashed) {
            let now = &known.seen.name;
            if let Some(was) = &known.was
                && !describes(now)
                && !self.volumes.values().any(|other| other.seen.name == *was)
            {
                names.entry(was.clone()).or_insert(now.clone());
            }
        }
        array::site_file::follow(file, &names)
    }

    /// A volume that has been renamed: how site files called it, and how it is called.
    pub(super) fn renamed(&self) -> Option<(String, String)> {
        let living = self.volumes.values().filter(|known| !known.seen.is_trashed);
        living
            .filter_map(|known| Some((known.was.clone()?, known.seen.name.clone())))
            .next()
    }

    /// Compares the array with what it may be after what was `did`, and knows it from then on.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn observe(&mut self, seen: &Seen, did: &Did) -> Result<(), String> {
        if let Some(last) = self.last.as_ref().filter(|_| did.commands.is_empty()) {
            keeps(last, seen, did)?;
        }
        self.hidden.files.extend(did.files.iter().cloned());
        self.hidden.commands.extend(did.commands.iter().cloned());
        let is_open = |pool: &String| !seen.closed.contains(pool);
        let by_files_only = self.hidden.commands.is_empty();
        for (uuid, known) in &self.volumes {
            if by_files_only && is_open(&known.seen.pool) && !seen.volumes.contains_key(uuid) {
                return Err(format!("volume {} is gone", known.seen.name));
            }
        }
        let is_there = |uuid: &Uuid, known: &mut Known| {
            !is_open(&known.seen.pool) || seen.volumes.contains_key(uuid)
        };
        self.volumes.retain(is_there);
        for (uuid, known) in &mut self.volumes {
            if let Some(now) = seen.volumes.get(uuid) {
                known.follow(now, did);
            }
        }
        let is_new = |(uuid, _): &(&Uuid, &SeenVolume)| !self.volumes.contains_key(*uuid);
        let new: Vec<_> = seen.volumes.iter().filter(is_new).collect();
        for (_, volume) in &new {
            self.may_be_new(volume, &self.hidden)?;
        }
        if seen.closed.is_empty() {
            self.hidden = Did::default();
        }
        for (uuid, volume) in new {
            let known = Known {
                seen: volume.clone(),
                was: None,
            };
            self.volumes.insert(*uuid, known);
        }
        self.last = Some(seen.clone());
        Ok(())
    }

    /// Whether a volume may have been made.
    fn may_be_new(&self, volume: &SeenVolume, did: &Did) -> Result<(), String> {
        let name = &volume.name;
        if volume.is_snapshot || did.creates(name) {
            return match did.commands.is_empty() {
                true => Err(format!("nobody has taken snapshot {name}")),
                false => Ok(()),
            };
        }
        if !did.describes(name) {
            return Err(format!("volume {name} is there, which nobody describes"));
        }
        match self.had(name) {
            Some(other) => Err(format!(
                "volume {name} is made anew: there is {} in pool {}, which had the name",
                other.name, other.pool
            )),
            None => Ok(()),
        }
    }

    /// The volume that has or had this name, in the trash and in pools that are not open as well.
    fn had(&self, name: &str) -> Option<&SeenVolume> {
        let had = |known: &&Known| known.seen.name == name || known.was.as_deref() == Some(name);
        self.volumes.values().find(had).map(|known| &known.seen)
    }

    /// Whether the array is what a file says that was applied, which has the names that volumes have
    /// now.
    ///
    /// # Errors
    /// Where it is not.
    pub(super) fn is_as_said(&self, file: &Site, seen: &Seen) -> Result<(), String> {
        for said in &file.volumes {
            match seen.called(&said.name) {
                Some(there) => volume_is_as_said(said, there)?,
                None if self.may_be_missing(&said.name, seen) => {}
                None => return Err(format!("volume {} is not made", said.name)),
            }
        }
        for group in &file.groups {
            for volume in group.volumes.iter().filter_map(|name| seen.called(name)) {
                if volume.group.as_ref() != Some(&group.name) {
                    let name = &volume.name;
                    return Err(format!("volume {name} is not in group {}", group.name));
                }
            }
        }
        access_is_as_said(file, seen)?;
        settings_are_as_said(file, seen)
    }

    fn may_be_missing(&self, name: &str, seen: &Seen) -> bool {
        let of_it = format!("{name}@");
        let mut snapshots = self.volumes.values();
        let has_snapshot = snapshots.any(|known| known.seen.name.starts_with(&of_it));
        !seen.closed.is_empty() || has_snapshot || self.had(name).is_some()
    }
}

impl Known {
    /// It is so by now.
    fn follow(&mut self, now: &SeenVolume, did: &Did) {
        if now.name != self.seen.name {
            // A file that says the name of before may have come before the new name, or after it.
            let may_be_forgotten = did.describes(&self.seen.name);
            let is_forgotten = may_be_forgotten && now.site_name.as_ref() == Some(&self.seen.name);
            let was = self.was.take().filter(|_| !is_forgotten);
            let was = was.unwrap_or_else(|| self.seen.name.clone());
            self.was = Some(was).filter(|was| *was != now.name && !now.is_snapshot);
        }
        if did.describes(&now.name) {
            self.was = None;
        }
        self.seen = now.clone();
    }
}

fn volume_is_as_said(said: &site::Volume, there: &SeenVolume) -> Result<(), String> {
    let differs = |what: &str| Err(format!("volume {}: {what} is not as said", said.name));
    let lacks = |(key, value): (&String, &String)| there.tags.get(key) != Some(value);
    let has = |one: &site::Schedule| there.schedules.contains(&(one.every.as_secs(), one.keep));
    if there.size_bytes < said.size_bytes {
        return differs("size");
    }
    if said.tags.iter().any(lacks) {
        return differs("a tag");
    }
    let description = said.description.as_ref();
    if description.is_some_and(|text| *text != there.description) {
        return differs("description");
    }
    let zeroes = said.detect_zeroes;
    if zeroes.is_some_and(|detects| detects != there.detects_zeroes) {
        return differs("detect_zeroes");
    }
    if said.limits.is_some_and(|limits| limits != there.limits) {
        return differs("limits");
    }
    match said.schedules.iter().all(has) {
        true => Ok(()),
        false => differs("a schedule"),
    }
}

fn access_is_as_said(file: &Site, seen: &Seen) -> Result<(), String> {
    let said = of_site(file);
    for (name, host) in &said.hosts {
        if seen.known.hosts.get(name) != Some(host) {
            return Err(format!("host {name} is not as said"));
        }
    }
    for (name, group) in &said.groups {
        if seen.known.groups.get(name) != Some(group) {
            return Err(format!("host group {name} is not as said"));
        }
    }
    for export in &file.exports {
        let target = &export.target;
        let Some(there) = seen.exports.get(target) else {
            return Err(format!("target {target} is not there"));
        };
        let permits = (export.may_sanitize, export.may_affect_others);
        let traits = &there.traits;
        let is_permitted = (traits.may_sanitize, traits.may_affect_others) == permits;
        if there.access != access_of(export) || !is_permitted {
            return Err(format!("target {target} admits others than is said"));
        }
        for (lun, volume) in export.luns.iter().zip(&export.volumes) {
            // One that is elsewhere, and one whose place is taken, stay.
            if !there.luns.contains(lun) && !there.volumes.contains(volume) {
                return Err(format!("target {target} lacks LUN {lun}, volume {volume}"));
            }
        }
    }
    let discovery = file.chap.discovery.as_ref().map(account_of);
    match discovery.is_none() || discovery == seen.discovery {
        true => Ok(()),
        false => Err("CHAP of discovery is not as said".to_owned()),
    }
}

fn settings_are_as_said(file: &Site, seen: &Seen) -> Result<(), String> {
    let now = &seen.settings;
    if now.trash != file.trash || now.limits != file.limits {
        return Err("settings are not as said".to_owned());
    }
    if let Some(lacks) = file.portals.iter().find(|one| !now.portals.contains(one)) {
        return Err(format!("portal {} is not as said", lacks.address));
    }
    for pool in &file.pools {
        let Some(there) = now.pool(&pool.name) else {
            return Err(format!("pool {} is not made", pool.name));
        };
        let is_open = !seen.closed.contains(&pool.name);
        let paces = |pool: &site::Pool| (pool.warn_at, pool.background);
        if is_open && paces(there) != paces(pool) {
            return Err(format!("pool {} is not as fast as said", pool.name));
        }
    }
    Ok(())
}

/// That nothing was deleted, shrunk or moved, and that all is as it was that no file describes. Nobody
/// has done anything beside files.
fn keeps(last: &Seen, now: &Seen, did: &Did) -> Result<(), String> {
    for (uuid, before) in &last.volumes {
        if let Some(after) = now.volumes.get(uuid) {
            keeps_volume(before, after, did)?;
        }
    }
    for (target, before) in &last.exports {
        let Some(after) = now.exports.get(target) else {
            return Err(format!("target {target} is gone"));
        };
        let luns = before.luns.iter().zip(&before.volumes);
        let has = |(lun, volume): (&u16, &String)| {
            let mut there = after.luns.iter().zip(&after.volumes);
            there.any(|one| one == (lun, volume))
        };
        if !luns.into_iter().all(has) {
            return Err(format!("target {target} lacks a LUN that it had"));
        }
        let mut described = did.files.iter().flat_map(|file| &file.exports);
        let is_described = described.any(|export| export.target == *target);
        if !is_described && after.access != before.access {
            return Err(format!("target {target} admits others, which no file says"));
        }
    }
    keeps_hosts(last, now, did)?;
    for pool in &last.open {
        let [before, after] = [last, now].map(|seen| seen.settings.pool(pool));
        if before.map(|pool| &pool.groups) != after.map(|pool| &pool.groups) {
            return Err(format!("pool {pool} is gone, or another one"));
        }
    }
    let addresses = |seen: &Seen| -> Vec<_> {
        let portals = seen.settings.portals.iter();
        portals.map(|portal| portal.address).collect()
    };
    let after = addresses(now);
    match addresses(last).iter().all(|at| after.contains(at)) {
        true => Ok(()),
        false => Err("a portal is gone".to_owned()),
    }
}

fn keeps_volume(before: &SeenVolume, after: &SeenVolume, did: &Did) -> Result<(), String> {
    let name = &before.name;
    let place = |volume: &SeenVolume| (volume.pool.clone(), volume.is_thick, volume.is_trashed);
    if after.name != *name || place(after) != place(before) {
        return Err(format!("{before:?} became {after:?}"));
    }
    if after.size_bytes < before.size_bytes {
        return Err(format!("volume {name} is smaller than it was"));
    }
    let is_said = |key: &String| {
        let mut volumes = did.files.iter().flat_map(|file| &file.volumes);
        volumes.any(|volume| volume.tags.contains_key(key))
    };
    for (key, value) in &before.tags {
        if after.tags.get(key) != Some(value) && !is_said(key) {
            return Err(format!("volume {name} lost or changed tag {key}"));
        }
    }
    let is_of_file = |group: &String| {
        let mut groups = did.files.iter().flat_map(|file| &file.groups);
        groups.any(|said| said.name == *group)
    };
    if after.group != before.group && !after.group.as_ref().is_some_and(is_of_file) {
        return Err(format!("volume {name} left its group"));
    }
    let mut schedules = before.schedules.iter();
    let keeps = schedules.all(|one| after.schedules.contains(one));
    match keeps || after.group != before.group {
        true => Ok(()),
        false => Err(format!("volume {name} lost a schedule")),
    }
}

fn keeps_hosts(last: &Seen, now: &Seen, did: &Did) -> Result<(), String> {
    for (name, before) in &last.known.hosts {
        let mut said = did.files.iter().flat_map(|file| &file.hosts);
        let is_said = said.any(|host| host.name == *name);
        match now.known.hosts.get(name) {
            None => return Err(format!("host {name} is gone")),
            Some(after) if after != before && !is_said => {
                return Err(format!("host {name} is another one, which no file says"));
            }
            Some(_) => {}
        }
    }
    for (name, before) in &last.known.groups {
        let mut said = did.files.iter().flat_map(|file| &file.host_groups);
        let is_said = said.any(|group| group.name == *name);
        match now.known.groups.get(name) {
            None => return Err(format!("host group {name} is gone")),
            Some(after) if after != before && !is_said => {
                return Err(format!(
                    "host group {name} is another one, which no file says"
                ));
            }
            Some(_) => {}
        }
    }
    let discovery = last.discovery.is_some() && now.discovery.is_none();
    match discovery {
        true => Err("discovery asks for nothing any more".to_owned()),
        false => Ok(()),
    }
}
