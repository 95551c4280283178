//! Moves volumes from pool to pool while hosts use them.
//!
//! The engine copies, mirrors and switches (`engine::pool::OtherPool`); here are the two
//! ends brought together, wherever they are, and after a crash found again.
//!
//! Invariants:
//! - A volume is served by one pool at any time. Which one that is follows from what both
//!   have on their drives, and where one of them is not there, by neither.
//! - LUNs are shown the volume's new place before the old pool lets go of it.

use super::{ArrayError, ArrayErrorKind, ControlPlane, PlacedVolume};
use crate::pool::distributed_spares;
use crate::shard::remote_volume::RemoteVolume;
use crate::shard::{ShardHandle, ShardState};
use base::Uuid;
use engine::pool::{EventKind, MemberInfo, OtherPool, PoolInfo, Settling, There};
use engine::volume::{MoveProgress, Stage, Transit, VolumeIo, VolumeProperties};
use engine::{Lane, MemberState, PoolError, PoolErrorKind, Provisioning, VolumeInfo, World};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Where a volume is going, and what it may leave behind.
#[derive(Clone, Debug)]
pub struct NewPlace {
    /// The pool that it goes to.
    pub pool: String,
    /// Its snapshots stay where they are.
    pub leave_snapshots: bool,
    /// Also to a pool without all of its redundancy.
    pub force: bool,
}

/// A copy in the making.
#[derive(Clone, Debug)]
pub struct CopyPlace {
    pool: String,
    lane: u16,
    info: VolumeInfo,
}

/// A volume that a crash left on its way between pools, and that can't be had now.
#[derive(Clone, Debug)]
pub struct Unsettled {
    pub volume: String,
    /// The pool that could not settle it.
    pub pool: String,
    pub error: ArrayError,
}

/// What a crash left on its way.
struct UnsettledMove {
    pool: String,
    pool_uuid: Uuid,
    lane: u16,
    info: VolumeInfo,
    transit: Transit,
}

impl UnsettledMove {
    /// The state of the other end of the move, with the volume there where it is on its way, too.
    fn other_end<'a>(
        &self,
        all: &'a [UnsettledMove],
        settled: &[PlacedVolume],
    ) -> (Option<&'a UnsettledMove>, There) {
        let uuid = self.info.uuid;
        let is_other =
            |one: &&UnsettledMove| one.info.uuid == uuid && one.pool_uuid != self.pool_uuid;
        let mut settled = settled.iter();
        match all.iter().find(is_other) {
            Some(other) => (Some(other), There::OnItsWay(other.transit.stage)),
            None if settled.any(|one| one.info.uuid == uuid && one.pool != self.pool) => {
                (None, There::Settled)
            }
            None => (None, There::Nothing),
        }
    }
}

impl<W: World> ControlPlane<W> {
    /// That a volume can go there: nothing has changed yet.
    ///
    /// # Errors
    /// What stands in the way.
    pub async fn check_move(
        &self,
        volume: &str,
        to: &NewPlace,
    ) -> Result<PlacedVolume, ArrayError> {
        let there = self.volume(volume).await?;
        self.jobs.check_free(volume, None)?;
        // Who has given a turn away may be about to delete it.
        self.check_turn(&there.pool)?;
        let no = |kind, context| Err(ArrayError::new(kind, context));
        if there.is_snapshot() {
            let why = format!("{volume} is a snapshot, and shares pages with its volume: clone it");
            return no(ArrayErrorKind::Invalid, why);
        }
        if there.pool == to.pool {
            let why = format!("volume {volume} is in pool {} already", to.pool);
            return no(ArrayErrorKind::Invalid, why);
        }
        if there.properties.transit.is_some() {
            let why = format!(
                "volume {volume} was on its way between pools: serve both of them, or end that \
                 with `ashlar volume move {volume} --abandon`"
            );
            return no(ArrayErrorKind::Busy, why);
        }
        let pool = self.pool(&to.pool).await;
        let (_, pool) = match pool {
            Err(error) if error.kind == ArrayErrorKind::NotFound => {
                let context = format!("{}; {}", error.context, self.other_pools(&there).await?);
                return no(ArrayErrorKind::NotFound, context);
            }
            found => found?,
        };
        let all = self.volumes().await?;
        if !to.leave_snapshots {
            check_has_no_snapshots(&there, &all)?;
        }
        check_pool(&pool, &there, to.force)?;
        Ok(there)
    }

    /// Says where a volume could go.
    async fn other_pools(&self, there: &PlacedVolume) -> Result<String, ArrayError> {
        let pools = self.pools().await?.into_iter();
        let others = pools.map(|(_, info)| info.name);
        let others: Vec<String> = others.filter(|name| *name != there.pool).collect();
        let volume = &there.info.name;
        Ok(match others.is_empty() {
            true => format!("volume {volume} is in pool {}, the only one", there.pool),
            false => format!("volume {volume} could move to {}", others.join(" or ")),
        })
    }

    /// Makes room for the copy of a volume: in the lane of the pool that has most, or, when
    /// it comes back, the one that its snapshots stayed in. One that is there since before a
    /// crash is gone on with.
    ///
    /// # Errors
    /// What the pool says.
    pub async fn begin_copy(
        self: &Arc<Self>,
        there: &PlacedVolume,
        to: &str,
    ) -> Result<CopyPlace, ArrayError> {
        let (there, to) = (there.clone(), to.to_owned());
        self.change(move |array| async move {
            let from = array.as_other(&there.pool).await?;
            let found = array.transits().await?.into_iter();
            let mut found = found.filter(|one| {
                one.pool == to
                    && one.info.uuid == there.info.uuid
                    && one.transit.stage == Stage::Incoming
            });
            let all = array.volumes().await?;
            let mut of = all.iter().filter(|one| one.pool == to && one.is_of(&there));
            let lane = match (found.next(), of.next()) {
                (Some(found), _) => found.lane,
                (None, Some(snapshot)) => snapshot.lane,
                (None, None) => array.emptiest_lane(&to).await?,
            };
            let visit = move |_, pool: Lane<W>| async move {
                let copy = pool
                    .begin_arrival(&there.info, &there.properties, &from)
                    .await?;
                Ok(copy.info())
            };
            let info = array.with_lane(&to, lane, visit).await?;
            Ok(CopyPlace {
                pool: to,
                lane,
                info,
            })
        })
        .await
    }

    /// Copies a volume to its copy, to the end; from then on what is written to it goes to
    /// the copy, too.
    ///
    /// # Errors
    /// Why there is no whole copy.
    pub async fn copy_volume(
        &self,
        there: &PlacedVolume,
        copy: &CopyPlace,
        rate_bytes_per_s: Option<u64>,
    ) -> Result<(), ArrayError> {
        let homes = self.homes(&copy.pool)?;
        let home = homes.get(usize::from(copy.lane));
        let home = home.ok_or_else(|| ArrayError::no_pool(&copy.pool))?.clone();
        let (name, copy) = (there.info.name.clone(), copy.clone());
        let visit = move |state: Rc<ShardState<W>>, pool: Lane<W>| async move {
            let to: Rc<dyn VolumeIo> = if home.index() == state.index() {
                let other = state.lane(&copy.pool, copy.lane);
                let volume = other.and_then(|other| other.volume_of(copy.info.uuid));
                Rc::new(volume.ok_or_else(|| ArrayError::no_volume(&name))?)
            } else {
                Rc::new(RemoteVolume::new(home, (copy.pool, copy.lane), copy.info))
            };
            let (volume, mirror) = pool.begin_departure(&name, to, rate_bytes_per_s).await?;
            let copied = volume.copy_to(&mirror).await;
            copied.map_err(|why| ArrayError::new(ArrayErrorKind::Internal, why))
        };
        self.with_lane(&there.pool, there.lane, visit).await
    }

    /// How far the copy of a volume is, if one is being made.
    pub async fn copy_progress(&self, there: &PlacedVolume) -> Option<MoveProgress> {
        let uuid = there.info.uuid;
        let visit = move |_, pool: Lane<W>| async move {
            Ok(pool.departure(uuid).map(|mirror| mirror.progress()))
        };
        let progress = self.with_lane(&there.pool, there.lane, visit).await;
        progress.ok().flatten()
    }

    /// Ends the copying of a volume, which stays where it is.
    ///
    /// # Errors
    /// What its pool says.
    pub async fn stop_copy(&self, there: &PlacedVolume) -> Result<(), ArrayError> {
        let uuid = there.info.uuid;
        let visit = move |_, pool: Lane<W>| async move { Ok(pool.call_off_departure(uuid).await?) };
        self.with_lane(&there.pool, there.lane, visit).await
    }

    /// Deletes what there is of a copy of the volume with this identity in a pool.
    ///
    /// # Errors
    /// What the pool says.
    pub async fn drop_copy(&self, uuid: Uuid, pool: &str) -> Result<(), ArrayError> {
        for found in self.transits().await? {
            if (found.info.uuid, found.pool.as_str()) != (uuid, pool)
                || found.transit.stage != Stage::Incoming
            {
                continue;
            }
            let visit =
                move |_, pool: Lane<W>| async move { Ok(pool.call_off_arrival(uuid).await?) };
            self.with_lane(pool, found.lane, visit).await?;
        }
        Ok(())
    }

    /// Has a volume that is copied be where its copy is. Says how long it stood still.
    ///
    /// # Errors
    /// It stays where it is, for this reason.
    pub async fn hand_over(
        self: &Arc<Self>,
        there: &PlacedVolume,
        copy: &CopyPlace,
    ) -> Result<Duration, ArrayError> {
        let (there, copy) = (there.clone(), copy.clone());
        self.change(move |array| async move {
            let uuid = there.info.uuid;
            let other = array.as_other(&copy.pool).await?;
            let homes = array.homes(&copy.pool)?;
            let home = homes.get(usize::from(copy.lane));
            let home = home.ok_or_else(|| ArrayError::no_pool(&copy.pool))?.clone();
            let (place, to) = ((copy.pool.clone(), copy.lane), home.clone());
            let visit = move |_, pool: Lane<W>| async move {
                let arrive =
                    async move |info, properties| arrive(&to, place, info, properties).await;
                Ok(pool.hand_over(uuid, &other, arrive).await?)
            };
            let stood = array.with_lane(&there.pool, there.lane, visit).await?;
            let info = array
                .volume(&there.info.name)
                .await
                .map_or(copy.info.clone(), |volume| volume.info);
            array.show_moved(&home, &copy, &info).await;
            let (from, to) = ((there.pool, there.lane), (copy.pool, copy.lane));
            if let Err(error) = array.end_move(uuid, &from, &to).await {
                // Nobody uses what is left; the next start puts it right.
                tracing::warn!("volume {}, moved to pool {}: {error}", info.name, to.0);
            }
            Ok(stood)
        })
        .await
    }

    /// Has all shards show a volume where it is now.
    async fn show_moved(&self, home: &ShardHandle<W>, copy: &CopyPlace, info: &VolumeInfo) {
        for shard in &self.shards {
            let (home, info) = (home.clone(), info.clone());
            let place = (copy.pool.clone(), copy.lane);
            let moved = move |state: Rc<ShardState<W>>| async move {
                state.volume_moved(&home, &place, &info)
            };
            // One that has stopped shows nothing.
            let _ = shard.call(moved).await;
        }
    }

    /// Has the old pool let go of a volume, and the new one of the note that it came.
    async fn end_move(
        &self,
        uuid: Uuid,
        from: &(String, u16),
        to: &(String, u16),
    ) -> Result<(), ArrayError> {
        let ends = move |_, pool: Lane<W>| async move { Ok(pool.end_departure(uuid).await?) };
        self.with_lane(&from.0, from.1, ends).await?;
        let ends = move |_, pool: Lane<W>| async move { Ok(pool.end_arrival(uuid).await?) };
        self.with_lane(&to.0, to.1, ends).await
    }

    async fn as_other(&self, pool: &str) -> Result<OtherPool, ArrayError> {
        let (_, info) = self.pool(pool).await?;
        Ok(OtherPool {
            uuid: info.uuid,
            name: info.name,
        })
    }

    /// What is on its way between pools, in all of them.
    async fn transits(&self) -> Result<Vec<UnsettledMove>, ArrayError> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let visit = |state: Rc<ShardState<W>>| async move {
                let mut here = Vec::new();
                for pool in state.pools() {
                    let found = |(info, transit)| UnsettledMove {
                        pool: pool.name().to_owned(),
                        pool_uuid: pool.info().uuid,
                        lane: pool.lane(),
                        info,
                        transit,
                    };
                    here.extend(pool.transits().into_iter().map(found));
                }
                here
            };
            all.extend(shard.call(visit).await?);
        }
        Ok(all)
    }

    /// Finds out, after a start, which pool has each volume that was on its way; of copies,
    /// those stay that a job goes on with. What can't be found out is withheld, and told.
    /// Where a pool is named, it was opened just now, and only what has to do with it is
    /// looked at. Volumes that a pool could not settle stay withheld, and are given.
    ///
    /// # Errors
    /// A shard has stopped.
    pub(super) async fn settle_moves(
        self: &Arc<Self>,
        late: Option<String>,
    ) -> Result<Vec<Unsettled>, ArrayError> {
        // In one turn: no move begins or ends between the looks at pools and at jobs.
        self.change(move |array| async move { array.settle_those_of(late).await })
            .await
    }

    async fn settle_those_of(&self, late: Option<String>) -> Result<Vec<Unsettled>, ArrayError> {
        let pools: BTreeSet<Uuid> = self
            .pools()
            .await?
            .into_iter()
            .map(|(_, info)| info.uuid)
            .collect();
        let all = self.transits().await?;
        let settled = self.volumes().await?;
        let jobs = self.jobs.moving();
        let of_late = |found: &&UnsettledMove| {
            let late = late.as_ref();
            late.is_none_or(|late| found.pool == *late || found.transit.pool_name == *late)
        };
        let mut unsettled = Vec::new();
        for found in all.iter().filter(of_late) {
            let (other, there) = found.other_end(&all, &settled);
            let is_there = pools.contains(&found.transit.pool);
            let what = Settling::of(found.transit.stage, there);
            if is_there && what == Settling::Copy && jobs.contains(&found.info.uuid) {
                continue;
            }
            let settled = match is_there {
                true => self.settle_both(found, other, what).await,
                false => self.withhold(found).await,
            };
            unsettled.extend(settled.err().map(|error| Unsettled {
                volume: found.info.name.clone(),
                pool: found.pool.clone(),
                error,
            }));
        }
        Ok(unsettled)
    }

    async fn settle_both(
        &self,
        found: &UnsettledMove,
        other: Option<&UnsettledMove>,
        what: Settling,
    ) -> Result<(), ArrayError> {
        self.settle_move(found, what).await?;
        match (what, other) {
            (Settling::EndDeparture, Some(other)) => {
                self.settle_move(other, Settling::EndArrival).await
            }
            _ => Ok(()),
        }
    }

    async fn settle_move(&self, found: &UnsettledMove, what: Settling) -> Result<(), ArrayError> {
        let uuid = found.info.uuid;
        let visit = move |_, pool: Lane<W>| async move {
            let settled = match what {
                Settling::CallOffDeparture => pool.call_off_departure(uuid).await,
                Settling::EndDeparture => pool.end_departure(uuid).await,
                Settling::EndArrival => pool.end_arrival(uuid).await,
                Settling::CallOffArrival | Settling::Copy => pool.call_off_arrival(uuid).await,
                Settling::Nothing => Ok(()),
            };
            Ok(settled?)
        };
        self.with_lane(&found.pool, found.lane, visit).await
    }

    /// Says of a volume that nobody can use it, and what can be done.
    async fn withhold(&self, found: &UnsettledMove) -> Result<(), ArrayError> {
        if found.transit.stage == Stage::Incoming {
            return Ok(());
        }
        let (name, other) = (&found.info.name, &found.transit.pool_name);
        let text = format!(
            "volume '{name}' was on its way between pools '{}' and '{other}', of which '{other}' \
             is not there: '{other}' may hold newer data, so the volume is not served. Bring \
             '{other}' back; only if it is lost for good, run `ashlar volume move {name} --abandon`",
            found.pool
        );
        let visit = move |_, pool: Lane<W>| async move {
            pool.tell(EventKind::Move, text);
            Ok(())
        };
        self.with_lane(&found.pool, found.lane, visit).await
    }

    /// Has a volume served as it is, that was on its way from or to a pool that is not
    /// there.
    ///
    /// # Errors
    /// No such volume, or it is not withheld.
    pub async fn abandon_move(self: &Arc<Self>, name: String) -> Result<PlacedVolume, ArrayError> {
        self.change(move |array| async move {
            let there = array.volume(&name).await?;
            let (uuid, called) = (there.info.uuid, name.clone());
            let visit = move |_, pool: Lane<W>| async move {
                if !pool.is_withheld(uuid) {
                    let context = format!(
                        "volume {called} is not withheld: nothing has to be abandoned (a job that \
                         moves it ends by `ashlar job cancel`)"
                    );
                    return Err(ArrayError::new(ArrayErrorKind::Busy, context));
                }
                match pool.end_arrival(uuid).await {
                    Err(error) if error.kind == PoolErrorKind::NotFound => {
                        Ok(pool.call_off_departure(uuid).await?)
                    }
                    ended => Ok(ended?),
                }
            };
            array.with_lane(&there.pool, there.lane, visit).await?;
            array.volume(&name).await
        })
        .await
    }
}

/// Has a volume be in the lane of a pool where its copy is.
async fn arrive<W: World>(
    home: &ShardHandle<W>,
    (pool, lane): (String, u16),
    info: VolumeInfo,
    properties: VolumeProperties,
) -> Result<(), PoolError> {
    let gone = PoolError {
        kind: PoolErrorKind::Failed,
        context: format!("pool {pool} is gone"),
    };
    let lost = gone.clone();
    let arrives = move |state: Rc<ShardState<W>>| async move {
        match state.lane(&pool, lane) {
            Some(pool) => pool.arrive(&info, &properties).await,
            None => Err(gone),
        }
    };
    home.call(arrives).await.unwrap_or(Err(lost))
}

/// That a volume has no snapshots, which can't move with it.
fn check_has_no_snapshots(there: &PlacedVolume, all: &[PlacedVolume]) -> Result<(), ArrayError> {
    let of = all.iter();
    let of = of.filter(|one| one.is_snapshot() && one.is_of(there));
    let of: Vec<&str> = of.map(|one| one.info.name.as_str()).collect();
    if of.is_empty() {
        return Ok(());
    }
    let context = format!(
        "volume {} has {}, which can't move with it: {}. Delete them, or say --leave-snapshots: they \
         stay in pool {} then, where they can be cloned, exported and deleted, but not restored",
        there.info.name,
        site::counted(of.len() as u64, "snapshot"),
        of.join(", "),
        there.pool
    );
    Err(ArrayError::new(ArrayErrorKind::Busy, context))
}

/// That a pool can take a volume.
fn check_pool(pool: &PoolInfo, there: &PlacedVolume, force: bool) -> Result<(), ArrayError> {
    let no = |kind, context| Err(ArrayError::new(kind, context));
    let name = &pool.name;
    if let Some(why) = &pool.failure {
        let why = format!("pool {name} has stopped: {why}");
        return no(ArrayErrorKind::Unavailable, why);
    }
    let is_whole = |state| matches!(state, MemberState::Healthy | MemberState::Suspect);
    let is_missed = |member: &MemberInfo| {
        !is_whole(member.state) && !distributed_spares::make_up_for(pool, member)
    };
    let is_degraded = pool.copies_are_short || pool.members.iter().any(is_missed);
    if is_degraded && !force {
        let why = format!(
            "pool {name} is degraded: wait until it is whole again, or move there all the same \
             with --force"
        );
        return no(ArrayErrorKind::Busy, why);
    }
    let needed = match there.info.provisioning {
        Provisioning::Thin => there.info.mapped_bytes,
        Provisioning::Thick => there.info.size_bytes,
    };
    let taken = pool.mapped_bytes + pool.promised_bytes;
    let free = pool.capacity_bytes.saturating_sub(taken);
    if needed > free {
        let (needed, free) = (site::human(needed), site::human(free));
        let why = format!(
            "volume {} takes {needed}, and pool {name} has {free} free",
            there.info.name
        );
        return no(ArrayErrorKind::Full, why);
    }
    Ok(())
}
