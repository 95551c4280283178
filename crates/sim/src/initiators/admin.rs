//! An administrator of volumes that hosts use.
//!
//! It hides units, deletes volumes, moves them to the other pool, revokes tokens, and waits until
//! their time is over.

use super::array::Array;
use super::unit::Unit;
use crate::transit;
use base::Prng;
use engine::volume::VolumeIo;
use engine::{Disk, PoolError, PoolErrorKind, World};
use std::rc::Rc;
use std::time::Duration;

impl Array {
    /// One thing, while hosts are at work.
    pub(super) async fn administer(&self, prng: &mut Prng) {
        let pause = Duration::from_nanos(prng.below(100_000));
        self.world.sleep(pause).await;
        let unit = prng.pick(&self.books.units);
        let what = prng.below(8);
        self.world
            .note(|| format!("administration {what} of {}", unit.name));
        match what {
            0 | 1 => self.hide_for_a_while(unit, prng).await,
            2 => self.delete(unit).await,
            3..=5 => self.carry(unit).await,
            6 => self.offload.expire(self.world.now()).await,
            // Long enough for tokens that nobody uses.
            _ => {
                self.world
                    .sleep(Duration::from_secs(prng.between(1, 3)))
                    .await
            }
        }
    }

    /// Logical unit reset.
    pub(super) fn reset(&self, unit: usize) {
        let shown = &self.books.units[unit];
        let target = &self.targets[shown.target];
        if target.unit(shown.lun()).is_some() {
            self.owe(unit, 1);
            target.unit_reset(shown.lun());
            self.all_hosts().iter().for_each(|host| host.is_due(unit));
        }
    }

    /// Nobody is shown it, and tokens that were made of it are taken back. While somebody
    /// changes reservations, not.
    async fn withdraw(&self, unit: &Unit) -> bool {
        if unit.calling.get().is_some() {
            return false;
        }
        unit.turn();
        self.hide(unit);
        self.revoke_volume(unit).await;
        true
    }

    async fn hide_for_a_while(&self, unit: &Unit, prng: &mut Prng) {
        if !self.withdraw(unit).await {
            return;
        }
        let pause = Duration::from_nanos(prng.below(50_000));
        self.world.sleep(pause).await;
        self.show(unit);
        unit.turn();
    }

    /// It is made anew when nobody does anything.
    async fn delete(&self, unit: &Unit) {
        if !self.withdraw(unit).await {
            return;
        }
        unit.is_going.set(true);
        let Some((pool, _)) = self.volume_of(unit.uuid.get()) else {
            return self.fail(format!("{} is in no pool", unit.name));
        };
        self.expect(
            "a deletion",
            self.pools[pool].delete_volume(&unit.name).await,
        );
    }

    /// To the other pool.
    async fn carry(&self, unit: &Unit) {
        unit.upsets.set(unit.upsets.get() + 1);
        let moved = self.move_volume(unit).await;
        unit.upsets.set(unit.upsets.get() + 1);
        self.expect("a move", moved);
    }

    async fn move_volume(&self, unit: &Unit) -> Result<(), PoolError> {
        let uuid = unit.uuid.get();
        let Some((from, there)) = self.volume_of(uuid) else {
            self.fail(format!("{} is in no pool", unit.name));
            return Ok(());
        };
        let (a, b) = (&self.pools[from], &self.pools[1 - from]);
        let (own, others) = (transit::other(a), transit::other(b));
        let (info, properties) = (there.info(), there.properties());
        let copy = match b.begin_arrival(&info, &properties, &own).await {
            Err(error) if error.kind == PoolErrorKind::Full => return Ok(()),
            copy => copy?,
        };
        let to: Rc<dyn VolumeIo> = match self.as_seen_from(from, (1 - from, copy)) {
            Disk::Here(copy) => Rc::new(copy),
            Disk::There(copy) => copy,
        };
        let (volume, mirror) = a.begin_departure(&unit.name, to, None).await?;
        let copied = volume.copy_to(&mirror).await;
        let arrive = async |info, properties| b.arrive(&info, &properties).await;
        let handed = match copied {
            Ok(_) => a.hand_over(uuid, &others, arrive).await.is_ok(),
            Err(_) => false,
        };
        if !handed {
            a.call_off_departure(uuid).await?;
            return b.call_off_arrival(uuid).await;
        }
        let place = (b.name().to_owned(), b.lane());
        let state = &self.shards.states[self.home(unit.target)];
        // No more than this: it may look as before.
        self.owe(unit.number, 1);
        state.volume_moved(&self.shards.handles[1 - from], &place, &info);
        a.end_departure(uuid).await?;
        b.end_arrival(uuid).await
    }
}
