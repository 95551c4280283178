//! Shows and hides units, deletes their volumes and makes them anew, by the array's control plane.
//!
//! An administrator does so by the API in the same steps. A target with one LUN is deleted and
//! created again; of one with more, LUNs are removed and added.
//!
//! Invariants:
//! - What a unit expects is said before the control plane is asked, and is certain again once it
//!   has answered. So a power cut leaves what was before or what was to be, and nothing else.
//! - What hosts are to be told, which reservations are left and which tokens are over follows from
//!   what was asked, and is not read from the control plane.

use super::array::{Array, target_name};
use super::filler_of;
use super::unit::{Unit, Within};
use array::control::{ArrayError, Deletion, Export, NewLun};
use array::directory::Access;
use array::shard::UnitTraits;
use base::Uuid;
use engine::Provisioning;

/// Deletes whatever is left there, and not into the trash.
const FOR_GOOD: Deletion = Deletion {
    by_force: true,
    at_once: true,
    only_check: false,
};

impl Array {
    /// What the control plane says of something that has to succeed.
    pub(super) fn asked_for<T>(&self, what: &str, answer: Result<T, ArrayError>) -> Option<T> {
        match answer {
            Ok(value) => Some(value),
            Err(error) => {
                self.fail(format!("{what}: {:?}: {error}", error.kind));
                None
            }
        }
    }

    /// Shows a unit, with the reservations that were kept.
    pub(super) async fn show(&self, unit: &Unit) {
        unit.is_shown.set(Within::Coming);
        self.owe_all(unit.target);
        // From its first command on, whenever that finds the unit.
        let now = self.books.tick();
        for host in self.all_hosts() {
            host.told(unit.number).is_due(now);
        }
        let target = target_name(unit.target);
        let shown = match self.control.export(&target) {
            Ok(_) => {
                let lun = NewLun {
                    volume: unit.name.clone(),
                    lun: Some(unit.lun()),
                };
                let changed = self.control.change_luns(&target, vec![lun], Vec::new());
                changed.await.map(drop)
            }
            Err(_) => {
                let export = export_of(target, unit);
                self.control.create_export(export).await
            }
        };
        if self.asked_for("showing a unit", shown).is_some() {
            unit.is_shown.set(Within::There);
        }
    }

    /// Hides a unit. What was reserved and not to be kept is forgotten, and tokens that were made
    /// of it are over.
    pub(super) async fn hide(&self, unit: &Unit) {
        unit.is_shown.set(Within::Going);
        self.owe_all(unit.target);
        self.books.evict();
        let target = target_name(unit.target);
        let hidden = match self.is_alone(unit) {
            true => self.control.delete_export(&target).await,
            false => {
                let gone = vec![unit.name.clone()];
                let changed = self.control.change_luns(&target, Vec::new(), gone);
                changed.await.map(drop)
            }
        };
        if self.asked_for("hiding a unit", hidden).is_some() {
            self.is_hidden(unit);
        }
    }

    fn is_hidden(&self, unit: &Unit) {
        unit.is_shown.set(Within::Gone);
        let kept = unit.fence.borrow().after_a_restart();
        unit.fence.replace(kept);
        self.books.evict();
        self.books.take_back(|token| token.unit == unit.number);
    }

    /// Whether its target shows no other unit.
    fn is_alone(&self, unit: &Unit) -> bool {
        let mut units = self.books.units.iter();
        !units.any(|other| {
            other.number != unit.number && other.target == unit.target && !other.is_away()
        })
    }

    /// Deletes the volume of a unit. A target that shows nothing else goes with it; from another
    /// one it is taken first.
    pub(super) async fn delete(&self, unit: &Unit) {
        let is_shown = !unit.is_away();
        let goes_with_its_target = is_shown && self.is_alone(unit);
        if goes_with_its_target {
            unit.is_shown.set(Within::Going);
            self.owe_all(unit.target);
            self.books.evict();
        } else if is_shown {
            self.hide(unit).await;
        }
        unit.is_there.set(Within::Going);
        let deleted = self.control.delete_volume(unit.name.clone(), FOR_GOOD);
        if self.asked_for("a deletion", deleted.await).is_some() {
            unit.is_there.set(Within::Gone);
            if goes_with_its_target {
                self.is_hidden(unit);
            }
        }
    }

    /// Makes the volume of a unit.
    pub(super) async fn make(&self, unit: &Unit, kind: Provisioning, pool: usize) {
        unit.is_there.set(Within::Coming);
        let pool = self.pools[pool].name().to_owned();
        let made = self
            .control
            .create_volume(pool, unit.spec(kind), Vec::new())
            .await;
        if let Some(volume) = self.asked_for("making a volume", made) {
            unit.is_made_anew(volume.info.uuid);
        }
    }

    /// Deletes what only takes room.
    pub(super) async fn delete_fillers(&self) {
        for pool in &self.pools {
            let filler = filler_of(pool.name());
            if pool.volume(&filler).is_some() {
                let deleted = self.control.delete_volume(filler, FOR_GOOD).await;
                self.asked_for("a deletion", deleted);
            }
        }
    }

    /// What a start finds of the volume of a unit, and of its LUN, is what was before a change that
    /// the power cut has interrupted, or what was to be. Then it is there, and shown.
    pub(super) async fn find_unit(&self, unit: &Unit) {
        let found = self.found_volume(unit);
        let found = found.and_then(|uuid| Ok((uuid, self.is_shown_now(unit, uuid)?)));
        let (uuid, is_shown) = match found {
            Ok(found) => found,
            Err(why) => return self.fail(format!("{} after a start: {why}", unit.name)),
        };
        let (there, shown) = (unit.is_there.get(), unit.is_shown.get());
        // A volume that is made has an identity that nobody knows yet.
        let is_new = there == Within::Coming && uuid != Some(unit.uuid.get());
        let is_its = uuid.is_none_or(|uuid| is_new || uuid == unit.uuid.get());
        if !is_its || !there.may_be(uuid.is_some()) || !shown.may_be(is_shown) {
            let name = &unit.name;
            return self.fail(format!(
                "{name} after a start: volume {uuid:?} of {there:?}, shown {is_shown} of {shown:?}"
            ));
        }
        self.world.note(|| {
            let name = &unit.name;
            format!("{name}: volume {uuid:?} of {there:?}, shown {is_shown} of {shown:?}")
        });
        unit.is_there.set(Within::known(uuid.is_some()));
        unit.is_shown.set(Within::known(is_shown));
        match uuid {
            Some(uuid) if is_new => unit.is_made_anew(uuid),
            Some(_) => {}
            None => {
                self.end_moves_of(unit).await;
                self.make(unit, Provisioning::Thin, 0).await;
            }
        }
        if !is_shown {
            self.show(unit).await;
        }
    }

    /// The identity of the volume that is called as a unit's.
    fn found_volume(&self, unit: &Unit) -> Result<Option<Uuid>, String> {
        let mut found = self.pools.iter().filter_map(|pool| pool.volume(&unit.name));
        match (found.next(), found.next()) {
            (Some(_), Some(_)) => Err("it is in both pools".to_owned()),
            (first, _) => Ok(first.map(|volume| volume.info().uuid)),
        }
    }

    /// Whether a unit is at its LUN, and only there, with the volume that has this identity.
    fn is_shown_now(&self, unit: &Unit, uuid: Option<Uuid>) -> Result<bool, String> {
        let name = target_name(unit.target);
        if let Ok(export) = self.control.export(&name)
            && let Some(why) = export.withheld
        {
            return Err(format!("target {name} is withheld: {why}"));
        }
        let states = self.shards.states.iter();
        let luns = states.flat_map(|state| state.luns(&name));
        let at_its_lun = luns.filter(|(lun, _)| *lun == unit.lun());
        let shown: Vec<Uuid> = at_its_lun.map(|(_, disk)| disk.info().uuid).collect();
        match shown[..] {
            [] => Ok(false),
            [one] if Some(one) == uuid => Ok(true),
            _ => Err(format!("its LUN shows {shown:?} instead of {uuid:?}")),
        }
    }
}

/// A target that shows one unit to everybody.
fn export_of(target: String, unit: &Unit) -> Export {
    Export {
        target,
        volumes: vec![unit.name.clone()],
        luns: vec![unit.lun()],
        uuids: Vec::new(),
        access: Access::open(),
        traits: UnitTraits::default(),
        withheld: None,
    }
}
