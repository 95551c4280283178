//! Adds spares to a pool, replaces its drives, and takes them out of use.

use super::new_drives::{NewDrive, NewDrives};
use super::purpose::Purpose;
use super::{Pool, is_settled};
use crate::error::ArrayError;
use engine::pool::{MemberInfo, MemberState, PoolInfo};
use engine::{Lane, World};

impl<W: World> Pool<W> {
    /// Takes a drive of a group out of use. A spare is part of the pool no more then.
    ///
    /// An order that one lane has on its labels, all lanes follow. A spare goes from the first lane
    /// last, so the next opening gives back what a crash cuts short.
    ///
    /// # Errors
    /// No such drive, or the pool can't do without it.
    pub async fn fail_drive(&self, drive: &MemberInfo) -> Result<(), ArrayError> {
        self.check_dispensable(drive).await?;
        // Several lanes are not told its name: another drive may come to its place under the same.
        let name = match self.lanes() {
            1 => drive.name.clone(),
            _ => drive.uuid.to_string(),
        };
        let visit = |_, lane: Lane<W>| async move { Ok(lane.fail_drive(&name).await?) };
        self.visit_backwards(visit).await
    }

    /// Adds drives that stand in for one that fails, or has failed: in the group of this number,
    /// or in any.
    ///
    /// # Errors
    /// A name or a drive is taken; one is too small, or not there. No lane has any of them then.
    pub async fn add_spares<N: NewDrives<W>>(
        &self,
        group: Option<u16>,
        new: &N,
    ) -> Result<(), ArrayError> {
        self.take_in(Purpose::Spare(group), new).await
    }

    /// Has `new` take the place of a drive, which goes; in the place of a spare it is one.
    ///
    /// A drive that still answers is copied first, and goes when the new one holds everything. It can't
    /// be where the new one comes to its own place, or has its name. Says whether it is copied.
    ///
    /// The old one goes once all lanes have the new one, so a refusal takes nothing out of use. A
    /// drive that comes back to its own place can't be opened before it has failed: it goes once
    /// all lanes have judged it by its size.
    ///
    /// # Errors
    /// As [`Pool::fail_drive`] and [`Pool::add_spares`].
    pub async fn replace_drive<N: NewDrives<W>>(
        &self,
        drive: &MemberInfo,
        new: &N,
    ) -> Result<bool, ArrayError> {
        let planted = "old drive fails before the new one is judged";
        if self.waiter.planted(planted) {
            self.fail_drive(drive).await?;
        } else if is_copied_first(drive, new) {
            return self.copy_drive(drive, new).await.map(|()| true);
        }
        self.check_dispensable(drive).await?;
        let before = self.info().await?;
        let is_spare = drive.state == MemberState::Spare;
        let group = (!is_spare).then_some(drive.group);
        self.take_in(Purpose::Spare(group), new).await?;
        // Not by name: the new one may have the same.
        let uuid = drive.uuid.to_string();
        let visit = move |_, lane: Lane<W>| async move {
            // A spare that stands in for another drive by now stays.
            match is_spare && lane.has_drive(&uuid) {
                true => Ok(()),
                false => Ok(lane.fail_drive(&uuid).await?),
            }
        };
        let gone = is_settled(self.visit_backwards(visit).await);
        if gone.is_err() {
            self.give_up_replacement(&before, drive, new).await;
        }
        gone.map(|()| false)
    }

    /// Has a drive be copied to `new`, in all lanes or in none.
    async fn copy_drive<N: NewDrives<W>>(
        &self,
        drive: &MemberInfo,
        new: &N,
    ) -> Result<(), ArrayError> {
        let before = self.info().await?;
        self.take_in(Purpose::Spare(Some(drive.group)), new).await?;
        let names = new.drives().iter().map(NewDrive::name);
        let name = names.collect::<Vec<_>>().concat();
        let uuid = drive.uuid.to_string();
        let visit = move |_, lane: Lane<W>| async move { Ok(lane.copy_drive(&uuid, &name).await?) };
        let begun = self.visit_all(visit).await;
        if begun.is_err() {
            self.give_up_replacement(&before, drive, new).await;
        }
        begun
    }

    /// Has no lane keep a new drive whose predecessor stays in use. Where a lane has taken that out
    /// of use already, or both have one name, the new one stays as a spare, and the log says so.
    async fn give_up_replacement<N: NewDrives<W>>(
        &self,
        before: &PoolInfo,
        old: &MemberInfo,
        new: &N,
    ) {
        let stays = self.info().await.is_ok_and(|now| {
            let mut all = now.members.iter().chain(&now.spares);
            all.any(|one| one.uuid == old.uuid && one.state != MemberState::Failed)
        });
        let has_name = new.drives().iter().any(|drive| drive.name() == old.name);
        if stays && !has_name {
            self.take_back_all(new.drives()).await;
            if self.is_taken_back(before, new.drives()).await {
                new.unmake().await;
            }
            return;
        }
        let (pool, old) = (self.name(), &old.name);
        tracing::warn!("pool {pool}: {old} could not be replaced; the new drive stays as a spare");
    }

    /// Whether the group of a drive keeps some redundancy without it. A spare's pool does.
    ///
    /// # Errors
    /// The pool can't do without it.
    pub async fn is_covered_without(&self, drive: &MemberInfo) -> Result<bool, ArrayError> {
        let mut is_covered = true;
        for lane in 0..self.lanes() {
            let uuid = drive.uuid.to_string();
            let visit = |_, lane: Lane<W>| async move {
                match lane.has_drive(&uuid) {
                    true => Ok(lane.is_covered_without(&uuid)?),
                    false => Ok(true),
                }
            };
            is_covered &= self.visit(lane, visit).await?;
        }
        Ok(is_covered)
    }

    /// That every lane could do without a drive: one that can't would be found
    /// after others have let it go.
    async fn check_dispensable(&self, drive: &MemberInfo) -> Result<(), ArrayError> {
        let uuid = drive.uuid.to_string();
        let visit = |_, lane: Lane<W>| async move {
            match lane.has_drive(&uuid) {
                true => Ok(lane.can_do_without(&uuid)?),
                false => Ok(()),
            }
        };
        self.ask(visit).await
    }
}

/// Whether a drive can be copied to its replacement, rather than taken out of use at once.
fn is_copied_first<W: World, N: NewDrives<W>>(drive: &MemberInfo, new: &N) -> bool {
    let answers = matches!(drive.state, MemberState::Healthy | MemberState::Suspect);
    let mut drives = new.drives().iter();
    answers && drives.all(|new| !new.is_its_own_successor() && new.name() != drive.name)
}
