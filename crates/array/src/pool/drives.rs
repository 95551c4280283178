//! Takes drives of a pool out of use.

use super::Pool;
use crate::error::ArrayError;
use engine::pool::MemberInfo;
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
        let name = self.name_of(drive);
        let visit = |_, lane: Lane<W>| async move { Ok(lane.fail_drive(&name).await?) };
        self.visit_backwards(visit).await
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
    pub async fn check_dispensable(&self, drive: &MemberInfo) -> Result<(), ArrayError> {
        let uuid = drive.uuid.to_string();
        let visit = |_, lane: Lane<W>| async move {
            match lane.has_drive(&uuid) {
                true => Ok(lane.can_do_without(&uuid)?),
                false => Ok(()),
            }
        };
        self.ask(visit).await
    }

    /// How lanes are told of a drive. Several are not told its name: another drive may come to its
    /// place under the same one.
    pub(super) fn name_of(&self, drive: &MemberInfo) -> String {
        match self.lanes() {
            1 => drive.name.clone(),
            _ => drive.uuid.to_string(),
        }
    }
}
