//! What new drives are for, and how a lane judges and takes them.

use super::new_drives::NewDrive;
use crate::error::ArrayError;
use crate::shard::ShardState;
use engine::pool::GroupRole;
use engine::pool::maintenance::candidates::Candidate;
use engine::raid::Protection;
use engine::{Lane, World};
use std::rc::Rc;

/// What new drives are for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// A group that protects data so, for data or for the logs.
    Group(Protection, GroupRole),
    /// To stand in, in the group of this number or in any.
    Spare(Option<u16>),
}

impl Purpose {
    /// That a lane could take the drives. Nothing changes.
    pub async fn judge<W: World, D: NewDrive<W>>(
        self,
        state: Rc<ShardState<W>>,
        lane: Lane<W>,
        drives: Vec<D>,
    ) -> Result<(), ArrayError> {
        let mut seen = Vec::new();
        for drive in &drives {
            seen.push((drive.name(), drive.look_at(&state, &lane).await?));
        }
        let candidates = seen
            .iter()
            .map(|(name, (drive, capacity_bytes))| Candidate {
                name,
                capacity_bytes: *capacity_bytes,
                drive: drive.as_ref().map(|named| &named.drive),
            });
        let group = match self {
            Purpose::Group(protection, role) => {
                let candidates: Vec<_> = candidates.collect();
                return Ok(lane
                    .check_add_group((protection, role), &candidates)
                    .await?);
            }
            Purpose::Spare(group) => group,
        };
        for candidate in candidates {
            lane.check_add_spare(group, candidate).await?;
        }
        Ok(())
    }

    /// Has a lane take the drives.
    pub async fn take<W: World, D: NewDrive<W>>(
        self,
        state: Rc<ShardState<W>>,
        lane: Lane<W>,
        drives: Vec<D>,
    ) -> Result<(), ArrayError> {
        match self {
            Purpose::Group(protection, role) => {
                let mut opened = Vec::new();
                for drive in drives {
                    opened.push(drive.open(&state, &lane).await?);
                }
                lane.add_group((protection, role), opened).await?;
            }
            Purpose::Spare(group) => {
                for drive in drives {
                    let drive = drive.open(&state, &lane).await?;
                    lane.add_spare_for(group, drive).await?;
                }
            }
        }
        Ok(())
    }
}
