//! Judges drives that are to be spares: [`NewSpares`].
//!
//! Nothing changes here. The first lane judges how large a drive has to be; the others take what it has
//! taken, if that fits anywhere.

use super::candidates::Candidates;
use crate::drives::{Drives, Group, Member, stride_bytes};
use crate::label::MEMBERS_MAX;
use crate::pool::create::check_name;
use crate::pool::{LabelSummary, PoolError, PoolErrorKind};
use crate::world::World;
use base::Uuid;
use base::size::human_pair;
use std::rc::Rc;

/// Whether a spare can stand in where so many bytes are needed.
pub(super) fn is_fit<W: World>(drives: &Drives<W>, spare: &Member<W>, needed_bytes: u64) -> bool {
    !spare.succeeds()
        && !drives.is_still_written(spare)
        && !spare.is_reserved()
        && !spare.has_trouble()
        && spare.capacity_bytes >= needed_bytes
}

/// Drives that are to be spares.
pub(super) struct NewSpares<'a, W: World> {
    drives: &'a Rc<Drives<W>>,
}

impl<'a, W: World> NewSpares<'a, W> {
    pub(super) fn of(drives: &'a Rc<Drives<W>>) -> Self {
        NewSpares { drives }
    }

    /// That the pool may have another drive, of this name.
    pub(super) fn check_new_spare(&self, name: &str) -> Result<(), PoolError> {
        check_name("drive", name)?;
        if self.drives.members().len() + self.drives.spares().len() >= MEMBERS_MAX {
            return Err(PoolError::new(
                PoolErrorKind::Invalid,
                format!(
                    "pool '{}' has {MEMBERS_MAX} drives already",
                    self.drives.name()
                ),
            ));
        }
        Ok(())
    }

    /// That a drive with such a label of the first lane is free to be a spare.
    pub(super) async fn check_free(
        &self,
        name: &str,
        drive: &W::Drive,
        found: Option<&LabelSummary>,
    ) -> Result<(), PoolError> {
        let is_first = self.drives.lane().index == 0;
        // Lanes after the first find the label that the first has just given it.
        if !is_first && found.is_none_or(|label| label.pool_uuid != self.drives.uuid()) {
            let context = format!(
                "drive '{name}' is not part of the first lane of pool '{}' yet",
                self.drives.name()
            );
            return Err(PoolError::new(PoolErrorKind::Invalid, context));
        }
        let own = match is_first {
            true => None,
            false => Candidates::of(self.drives).own_label(drive).await?,
        };
        let mut labels = found.into_iter().chain(&own);
        if let Some(label) = labels.find(|label| self.drives.has_use_for(label)) {
            let context = format!(
                "drive '{name}' belongs to pool '{}' already; it is not taken as a spare",
                label.pool_name
            );
            return Err(PoolError::new(PoolErrorKind::Exists, context));
        }
        match found {
            Some(label) => Candidates::of(self.drives).check_unused_elsewhere(name, label),
            None => Ok(()),
        }
    }

    /// That a drive, of which this lane has so many bytes, can stand in in a group or in any.
    pub(super) fn check_large_enough(
        &self,
        name: &str,
        group: Option<u16>,
        whole_bytes: u64,
        capacity_bytes: u64,
    ) -> Result<(), PoolError> {
        let needed = match self.drives.lane().index {
            0 => self.needed_bytes(group),
            // The first lane has judged it.
            _ => self.least_needed_bytes(),
        };
        if capacity_bytes >= needed {
            return Ok(());
        }
        // Other lanes have parts of it, too.
        let beside = whole_bytes.saturating_sub(capacity_bytes);
        let (there, needed) = human_pair(whole_bytes, needed + beside);
        let what = match group {
            Some(group) => format!("a drive of group {group}"),
            None => "a spare".to_owned(),
        };
        let pool = self.drives.name();
        Err(PoolError::new(
            PoolErrorKind::TooSmall,
            format!(
                "drive '{name}' has {there}, and {what} of pool '{pool}' needs {needed}: use a \
                 larger drive, or delete the file and try again, and Ashlar makes a new one"
            ),
        ))
    }

    /// The identity of a spare that is added beside so many.
    pub(super) fn spare_uuid(&self, name: &str, spares: usize) -> Uuid {
        let at = self.drives.world().now().as_nanos();
        let stream = format!("spare {name} {at} {spares}");
        self.drives.world().prng(&stream).uuid()
    }

    /// Bytes that a drive must have to stand in in a group, or anywhere.
    fn needed_bytes(&self, of: Option<u16>) -> u64 {
        let groups = self.drives.groups();
        let all = groups.iter().filter(|group| group.drives() > 0);
        let all = all.filter(|group| of.is_none_or(|of| group.index == of));
        all.map(|group| self.needed_of(group)).max().unwrap_or(0)
    }

    /// Bytes that a drive must have to stand in somewhere.
    fn least_needed_bytes(&self) -> u64 {
        let groups = self.drives.groups();
        let all = groups.iter().filter(|group| group.drives() > 0);
        all.map(|group| self.needed_of(group)).min().unwrap_or(0)
    }

    /// Bytes that the drives of a group must have.
    pub(super) fn needed_of(&self, group: &Group<W>) -> u64 {
        let stride = stride_bytes(group.drives(), group.spread, self.drives.identity());
        self.drives.identity().data_start + u64::from(group.numbers.zones) * stride
    }
}
