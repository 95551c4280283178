//! Removing labels from the drives of a pool that no longer exists.
//!
//! Invariant: the label of the first lane goes last. It says where the others lie, so whoever was
//! cut short can begin again.

use super::label_reads::read_label;
use super::{Lane, PoolError, PoolErrorKind};
use crate::drive::Drive as _;
use crate::drives::{WIPED_BYTES, stamp};
use crate::lane::{Part, View};
use crate::world::World;
use base::{DriveOffset, Uuid};
use std::rc::Rc;

impl<W: World> Lane<W> {
    /// Lets go of all drives of a pool that was closed, so that others can open them, whoever has
    /// the pool still.
    pub fn release(&self) {
        let drives = self.inner.drives();
        let members = drives.members().into_iter();
        let all = members.chain(drives.spares()).chain(drives.departed());
        all.for_each(|member| member.release());
    }

    /// Wipes the labels of all lanes of a pool from a drive that nobody has open, so that it counts
    /// as empty. Where only a part of a label is left, the stamp says whose it is. Says whether there was
    /// anything; a drive of another pool is left alone. `is_its` knows the pool by its name and identity,
    /// or by its identity.
    ///
    /// # Errors
    /// `Drive` when it can't be read or written, `Version` for a label of another format.
    pub async fn unlabel(
        world: &W,
        drive: Rc<W::Drive>,
        is_its: impl FnOnce(Option<&str>, Uuid) -> bool,
    ) -> Result<bool, PoolError> {
        let label = read_label(world, &*drive, 0).await?;
        let (name, uuid, part) = match &label {
            Some(label) => {
                let pool = &label.pool;
                (Some(pool.name.as_str()), pool.uuid, pool.part())
            }
            None => match stamp::found_on(world, &*drive).await? {
                Some(uuid) => (None, uuid, Part::WHOLE),
                None => return Ok(false),
            },
        };
        if !is_its(name, uuid) {
            return Ok(false);
        }
        let front_bytes = match part.lanes {
            1 => drive.geometry().capacity_bytes,
            _ => part.front_bytes,
        };
        let bytes = WIPED_BYTES.min(front_bytes);
        let zeroes = world.buffers().zeroed(bytes as usize).freeze();
        for lane in (0..part.lanes).rev() {
            let view: View<W::Drive> = View::new(Rc::clone(&drive), Part { lane, ..part });
            let written = match lane {
                0 => stamp::wipe(world, &view, uuid, bytes).await,
                _ => view.write_durable(DriveOffset(0), zeroes.clone()).await,
            };
            written.map_err(|error| {
                let context = format!("the label of lane {lane} can't be wiped: {error}");
                PoolError::new(PoolErrorKind::Drive, context)
            })?;
        }
        Ok(true)
    }
}
