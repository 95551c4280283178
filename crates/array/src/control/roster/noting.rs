//! Notes which drives pools have by now, and says which have failed.

use super::following::{followed, is_it, told, untold};
use super::known::KnownDrive;
use crate::control::events::{ClockReading, events_on};
use crate::control::{ArrayError, ControlPlane, PoolEvent, lanes_on, merged};
use crate::shard::ShardState;
use engine::World;
use engine::pool::{MemberInfo, PoolInfo};
use std::collections::BTreeMap;
use std::rc::Rc;

impl<W: World> ControlPlane<W> {
    /// The drives that are out of use, by identity; why, to be read after the drive's name.
    pub fn failed_by_uuid(&self) -> BTreeMap<String, String> {
        self.roster.failed()
    }

    /// All drives that pools have, or had until they failed, by the roster.
    pub fn known_drives(&self) -> Vec<KnownDrive> {
        self.roster.drives()
    }

    /// The failed drives of a pool that have no place in it any more.
    pub fn departed_failures(&self, info: &PoolInfo) -> Vec<KnownDrive> {
        self.roster.departed_failures(info, self.unix_s())
    }

    /// What is known of a drive that a pool has.
    pub fn known_drive(&self, info: &PoolInfo, member: &MemberInfo) -> KnownDrive {
        let known = self.roster.known();
        let before = known.iter().find(|drive| is_it(drive, member)).cloned();
        let drive = before.unwrap_or_else(|| KnownDrive::new(info, member));
        drive.seen_as(member, |_| untold(self.unix_s()))
    }

    /// The failed drive of this name that has no place in its pool any more, and the pool.
    pub(in crate::control) async fn departed_failure(
        &self,
        name: &str,
    ) -> Result<Option<(PoolInfo, KnownDrive)>, ArrayError> {
        for (_, info) in self.pools().await? {
            let mut departed = self.departed_failures(&info).into_iter();
            if let Some(drive) = departed.find(|drive| drive.name == name) {
                return Ok(Some((info, drive)));
            }
        }
        Ok(None)
    }

    /// Notes which drives pools have by now, and which they have lost. Of a pool with a lane on a
    /// shard that does not answer, the roster keeps what it knows, until it does.
    ///
    /// # Errors
    /// A shard has stopped, or the record can't be written.
    pub(in crate::control) async fn note_drives(&self) -> Result<(), ArrayError> {
        let turn = self.roster.turn().await;
        let (pools, events) = self.pools_that_answer().await?;
        let now_unix_s = self.unix_s();
        let keep = self.roster.keep(self.runtime(), turn, |known| {
            for (_, info) in &pools {
                let why = |drive: &KnownDrive| told(drive, &events, now_unix_s);
                let mut now = followed(known, info, why);
                for drive in &mut now {
                    if let Some(place) = self.places().find(&drive.name) {
                        drive.path = Some(place.path);
                        drive.is_device = place.is_device;
                    }
                }
                known.retain(|drive| drive.pool != info.name);
                known.extend(now);
            }
            // A pool that was destroyed has no drives.
            let settings = self.settings();
            known.retain(|drive| {
                settings.pool(&drive.pool).is_some() || self.is_unlisted(&drive.pool)
            });
        });
        keep.await
    }

    /// The pools of which all shards answer, and the events of those shards, oldest first.
    async fn pools_that_answer(
        &self,
    ) -> Result<(Vec<(usize, PoolInfo)>, Vec<PoolEvent>), ArrayError> {
        let clock = ClockReading::now(self.runtime());
        let visit = |_| {
            move |state: Rc<ShardState<W>>| async move { (lanes_on(&state), events_on(&state, clock)) }
        };
        let (mut lanes, mut since, mut silent) = (Vec::new(), Vec::new(), Vec::new());
        for (shard, answer) in self.ask_all(false, visit).await? {
            match answer {
                Some((of_shard, events)) => {
                    let here = |(lane, info)| (lane, shard, info);
                    lanes.extend(of_shard.into_iter().map(here));
                    since.extend(events);
                }
                None => silent.push(shard),
            }
        }
        if !silent.is_empty() {
            self.roster.look_again();
        }
        let mut pools = merged(lanes);
        pools.retain(|(_, info)| self.silent_homes(&info.name, &silent).is_empty());
        Ok((pools, self.recorder.with_earlier(since)))
    }

    /// Notes the same; where that fails, the log says so.
    pub async fn note_drives_and_warn(&self) {
        if let Err(error) = self.note_drives().await {
            tracing::warn!("the drives of the pools are not on record: {error}");
            // A start asks the record which drives are out of use.
            self.roster.look_again();
        }
    }

    /// Notes that somebody has replaced or let go a drive: it is forgotten once it has no place.
    pub(in crate::control) async fn drive_is_replaced(&self, uuid: &str) {
        let turn = self.roster.turn().await;
        let is_marked = !self.runtime.planted("replaced drive is told of");
        let marked = self.roster.keep(self.runtime(), turn, |known| {
            for drive in known.iter_mut().filter(|drive| drive.uuid == uuid) {
                drive.is_replaced = is_marked;
            }
        });
        if let Err(error) = marked.await {
            tracing::warn!("that a drive is replaced is not on record: {error}");
        }
        self.note_drives_and_warn().await;
    }
}
