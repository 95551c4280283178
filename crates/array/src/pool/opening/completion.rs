//! Gives the lanes of a pool that was just opened what only its first lane has.
//!
//! A crash cuts short that something is added to all lanes, or a drive was away when a lane was to
//! have it.
//!
//! Invariants:
//! - The first lane decides: what its labels have, the others come to have. First the groups that a
//!   lane lacks, in their order, then the drives in groups that it has, and spares.
//! - What a lane can't take now is said in the log, and keeps nothing else back. The next opening
//!   offers it again.

use super::{Opening, PoolDrive, doors};
use crate::shard::{ShardGone, ShardState};
use engine::pool::{GroupInfo, PoolInfo};
use engine::raid::Protection;
use engine::{Lane, World};
use std::fmt::Display;
use std::rc::Rc;

impl<W: World> Opening<W> {
    /// Completes the lanes after the first, with the drives that the pool was opened from.
    ///
    /// # Errors
    /// A shard has stopped.
    pub(super) async fn complete<D: PoolDrive<W>>(
        &self,
        first: &PoolInfo,
        drives: &[D],
    ) -> Result<(), ShardGone> {
        for lane in 1..self.shards.len() {
            let (first, drives) = (first.clone(), drives.to_vec());
            let visit = move |state: Rc<ShardState<W>>, lane| async move {
                add_groups(&state, &lane, &first, &drives).await;
                add_drives(&state, &lane, &first, &drives).await;
            };
            self.visit(lane, visit).await?;
        }
        for lane in 0..self.shards.len() {
            let visit = async |_: Rc<ShardState<W>>, lane: Lane<W>| lane.say_completed();
            self.visit(lane, visit).await?;
        }
        Ok(())
    }
}

async fn add_groups<W: World, D: PoolDrive<W>>(
    state: &ShardState<W>,
    lane: &Lane<W>,
    first: &PoolInfo,
    drives: &[D],
) {
    while lane.groups_missing() > 0 {
        if state
            .world()
            .planted("lane that lacks a group is left without it")
        {
            return;
        }
        let index = lane.groups_ever();
        let mut groups = first.groups.iter();
        let Some(group) = groups.find(|group| usize::from(group.index) == index) else {
            return;
        };
        let added = match of_group(group, drives) {
            Some(members) => {
                let of = Protection {
                    level: group.level,
                    spread: group.spread,
                };
                let added = lane.add_group((of, group.role), doors(state, &members));
                added.await.map(drop).map_err(|error| error.to_string())
            }
            None => Err("a drive of it is away".to_owned()),
        };
        let is_refused = added.is_err();
        warn_unless(lane, &format!("group {index}"), added);
        if is_refused {
            // Those after it have to wait for their numbers.
            return;
        }
    }
}

/// The drives of a group, by place; `None` when one is not there. With fewer drives it would be
/// another group, whose zones lie elsewhere.
fn of_group<W: World, D: PoolDrive<W>>(group: &GroupInfo, drives: &[D]) -> Option<Vec<D>> {
    let drive = |name: &String| drives.iter().find(|drive| drive.name() == name).cloned();
    let members = group.members.iter();
    members.map(|member| drive(&member.name)).collect()
}

async fn add_drives<W: World, D: PoolDrive<W>>(
    state: &ShardState<W>,
    lane: &Lane<W>,
    first: &PoolInfo,
    drives: &[D],
) {
    if state
        .world()
        .planted("drives that a lane lacks are not offered to it")
    {
        return;
    }
    for missing in lane.drives_missing(first) {
        for drive in drives.iter().filter(|drive| drive.name() == missing) {
            let added = lane.add_spare(drive.door(state)).await;
            if added.is_ok() {
                state.world().reached("lane given a drive at the opening");
            }
            warn_unless(lane, &format!("drive {missing}"), added);
        }
    }
}

fn warn_unless<W: World>(lane: &Lane<W>, what: &str, added: Result<(), impl Display>) {
    if let Err(why) = added {
        let (lane, pool) = (lane.lane(), lane.name());
        tracing::warn!("lane {lane} of pool {pool}: {what}: {why}");
    }
}
