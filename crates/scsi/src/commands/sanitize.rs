//! SANITIZE (SBC-3 clause 4.11): all of a thin unit is erased.
//!
//! Its pages are given back and read as zeroes. Snapshots keep what they have: they are
//! other units. A thick unit has no SANITIZE, since nothing in an array overwrites media in
//! place, and a thin one has it only where that is allowed.

use crate::commands::transfer::failure;
use crate::sense::Sense;
use crate::unit::LogicalUnit;
use base::VolumeOffset;
use engine::World;
use std::rc::Rc;

/// Says that nothing else runs while it is there.
struct Sanitizing<W: World>(Rc<LogicalUnit<W>>);

impl<W: World> Drop for Sanitizing<W> {
    fn drop(&mut self) {
        self.0.set_sanitizing(false);
    }
}

/// Erases the unit; `immediate`ly answered, if so asked.
///
/// # Errors
/// 20/00 for a unit that has no SANITIZE, 27/00 for one that nobody writes.
pub(crate) async fn block_erase<W: World>(
    unit: &Rc<LogicalUnit<W>>,
    immediate: bool,
    world: &W,
) -> Result<(), Sense> {
    if !unit.may_sanitize() {
        return Err(Sense::INVALID_OPCODE);
    }
    if unit.is_write_protected() {
        return Err(Sense::WRITE_PROTECTED);
    }
    unit.set_sanitizing(true);
    let busy = Sanitizing(Rc::clone(unit));
    let erase = async move {
        let volume = busy.0.volume();
        volume.clear(VolumeOffset(0), volume.size_bytes()).await
    };
    match immediate {
        true => {
            // What fails is in the events of the pool.
            world.spawn(async move { drop(erase.await) });
            Ok(())
        }
        false => erase
            .await
            .map_err(|error| failure(&error, Sense::write_error)),
    }
}
