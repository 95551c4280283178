//! Takes new drives into all lanes of a pool, or into none.
//!
//! Invariants:
//! - Every lane judges the drives before anything is made for them, and before any lane takes them.
//! - When new drives are not taken, nothing is left of them. Where a lane can't take them back,
//!   they stay, since the lane may have data on them.

use super::new_drives::{NewDrive, NewDrives};
use super::purpose::Purpose;
use super::{Pool, is_settled};
use crate::error::{ArrayError, ArrayErrorKind};
use engine::lane::steps::{self, Halted};
use engine::pool::{MemberInfo, PoolInfo};
use engine::{Lane, World};

impl<W: World> Pool<W> {
    /// Has all lanes take new drives, or none.
    ///
    /// # Errors
    /// What the first lane that can't says, and which lanes could not take the drives back.
    pub(super) async fn take_in<N: NewDrives<W>>(
        &self,
        purpose: Purpose,
        new: &N,
    ) -> Result<(), ArrayError> {
        let before = self.info().await?;
        // One that has failed may be open still where the new one is.
        self.free_places(new.drives()).await?;
        self.judge(purpose, new.drives()).await?;
        new.make().await?;
        let Err(halted) = self.take_in_all(&before, purpose, new.drives()).await else {
            return Ok(());
        };
        if self.is_taken_back(&before, new.drives()).await {
            new.unmake().await;
        }
        Err(with_lanes_that_keep(&self.name, halted))
    }

    /// Asks all lanes whether they could take drives.
    async fn judge<D: NewDrive<W>>(
        &self,
        purpose: Purpose,
        drives: &[D],
    ) -> Result<(), ArrayError> {
        let drives = drives.to_vec();
        let visit = move |state, lane| async move { purpose.judge(state, lane, drives).await };
        let lanes = self.lanes_asked();
        steps::ask_all(lanes, |lane| self.visit(lane, visit.clone())).await
    }

    async fn take_in_all<D: NewDrive<W>>(
        &self,
        before: &PoolInfo,
        purpose: Purpose,
        drives: &[D],
    ) -> Result<(), Halted<ArrayError>> {
        self.fail_successors(before, drives).await?;
        let change = |lane| {
            let drives = drives.to_vec();
            let visit = move |state, lane| async move { purpose.take(state, lane, drives).await };
            self.visit(lane, visit)
        };
        // By name: a spare of before that has the same one would go, too.
        let is_new = |name: &String| before.spares.iter().all(|spare| spare.name != *name);
        let names = drives.iter().map(|drive| drive.name().to_owned());
        let names: Vec<String> = names.filter(is_new).collect();
        let names = &names;
        let take_back = |lane, others_have| async move {
            if self.waiter.planted("refused drives not taken back") {
                return Ok(());
            }
            self.take_back(lane, names, others_have).await
        };
        steps::change_all(self.lanes(), change, take_back).await
    }

    /// Has all lanes let go of drives that they have taken, the first lane last.
    pub(super) async fn take_back_all<D: NewDrive<W>>(&self, drives: &[D]) {
        let names: Vec<String> = drives.iter().map(|drive| drive.name().to_owned()).collect();
        let mut others_have = true;
        for lane in (0..self.lanes()).rev() {
            others_have &= self.take_back(lane, &names, others_have).await.is_ok();
        }
    }

    async fn take_back(
        &self,
        lane: u16,
        names: &[String],
        others_have: bool,
    ) -> Result<(), ArrayError> {
        let names = names.to_vec();
        let visit =
            move |_, lane: Lane<W>| async move { Ok(lane.take_back(&names, others_have).await?) };
        self.visit(lane, visit).await
    }

    /// Whether no lane has any of these drives.
    pub(super) async fn is_taken_back<D: NewDrive<W>>(
        &self,
        before: &PoolInfo,
        drives: &[D],
    ) -> bool {
        let Ok(now) = self.info().await else {
            return false;
        };
        let names: Vec<&str> = drives.iter().map(NewDrive::name).collect();
        let known: Vec<_> = before.members.iter().chain(&before.spares).collect();
        let is_new = |member: &MemberInfo| {
            let is_known = known.iter().any(|old| old.uuid == member.uuid);
            names.contains(&member.name.as_str()) && !is_known
        };
        let mut all = now.members.iter().chain(&now.spares);
        let mut departed = now.departed.iter();
        let is_there = all.any(is_new) || departed.any(|name| names.contains(&name.as_str()));
        if is_there {
            tracing::warn!(
                "pool {}: {} could not be added to all lanes; what has them keeps them until the \
                 next start, or until their group has left",
                self.name,
                names.join(", ")
            );
        }
        !is_there
    }

    /// Has all lanes close drives that are out of use where new ones come.
    async fn free_places<D: NewDrive<W>>(&self, drives: &[D]) -> Result<(), ArrayError> {
        for holder in drives.iter().filter_map(NewDrive::holder) {
            let name = holder.name.to_owned();
            let visit = move |_, lane: Lane<W>| async move { Ok(lane.let_go(&name)?) };
            match self.visit_all(visit).await {
                // It is in use until the new one is judged.
                Err(error) if error.kind == ArrayErrorKind::Busy && holder.is_replaced => {}
                freed => is_settled(freed)?,
            }
        }
        Ok(())
    }

    /// Has all lanes fail and close drives that come back to their own places.
    async fn fail_successors<D: NewDrive<W>>(
        &self,
        before: &PoolInfo,
        drives: &[D],
    ) -> Result<(), ArrayError> {
        let successors = drives.iter().filter(|drive| drive.is_its_own_successor());
        for holder in successors.filter_map(NewDrive::holder) {
            let name = holder.name.to_owned();
            let is_spare = before.spares.iter().any(|spare| spare.name == name);
            if is_spare && self.lanes() > 1 {
                let context = format!("spare {name} is in that place already, and is whole");
                return Err(ArrayError::new(ArrayErrorKind::Invalid, context));
            }
            let visit = move |_, lane: Lane<W>| async move {
                lane.fail_drive(&name).await?;
                Ok(lane.let_go(&name)?)
            };
            is_settled(self.visit_all(visit).await)?;
        }
        Ok(())
    }
}

/// Why drives were not taken, and the lanes that could not take them back.
fn with_lanes_that_keep(pool: &str, halted: Halted<ArrayError>) -> ArrayError {
    let Halted { mut error, kept } = halted;
    for (lane, why) in kept {
        let text = format!("lane {lane} of pool {pool} could not take the drives back: {why}");
        tracing::warn!("{text}");
        error.context += &format!("; {text}");
    }
    error
}
