//! Repairing lost labels of a pool that no array has open, where its other labels prove their
//! content.
//!
//! A lane's label is the same on all of its drives, but for whose it is. So a label that is
//! lost on one drive is known from the others, once it is known which drive that is: another
//! lane's label there says it. And a group that one lane has let go, labels and all, while
//! another has data in it, is known from that lane's table.
//!
//! Invariants:
//! - Nothing is written before all that there is to say is known, and nothing at all where two
//!   things that the drives say contradict each other.
//! - A label is written only for a drive that the newest table of its lane has in use, that a
//!   current label of another lane names, and that no other drive claims to be.
//! - What is written is a label that the lane has had, or, for a group that comes back, the
//!   next one: over labels only, never over metadata, logs or data.
//! - Cut short at any point, it leaves what the next opening or salvage can go on from.
//!
//! Rooms: `survey` (all labels there are), `proof` (what follows from them).

mod proof;
mod survey;

use crate::drive::Drive;
use crate::drives::NamedDrive;
use crate::error::{PoolError, PoolErrorKind};
use crate::label::{Label, SLOT_OFFSETS, Slot};
use crate::lane::{Part, View};
use crate::world::World;
use base::{DriveOffset, Uuid};
use std::rc::Rc;
use survey::Survey;

/// What could be written, and what could not.
pub struct Plan<W: World> {
    /// The pool's name and identity.
    pub pool: String,
    /// The pool's identity for life.
    pub uuid: Uuid,
    /// What is to be written, for people: a line each.
    pub steps: Vec<String>,
    /// Labels that are lost and can't be written, and why: a line each.
    pub obstacles: Vec<String>,
    works: Vec<Work<W>>,
}

/// A label of a lane, and the drives that get it, in order.
struct Work<W: World> {
    label: Label,
    targets: Vec<Target<W>>,
}

struct Target<W: World> {
    name: String,
    drive: Rc<W::Drive>,
    uuid: Uuid,
}

fn refuse<T>(kind: PoolErrorKind, context: String) -> Result<T, PoolError> {
    Err(PoolError::new(kind, context))
}

/// Says which labels of the pool on `drives` are lost, and which can be written anew.
/// Writes nothing.
///
/// # Errors
/// Why nothing can be said, or what contradicts what: `Unlabelled` when no drive has a
/// label, or none has one of some lane; `Foreign` for drives of several pools; `Invalid` for
/// two that claim to be one; `Corrupt` for labels that contradict each other; `Version`;
/// `Drive` when labels can't be read.
pub async fn plan<W: World>(world: &W, drives: Vec<NamedDrive<W>>) -> Result<Plan<W>, PoolError> {
    let survey = Survey::make(world, drives).await?;
    proof::plan(&survey)
}

impl<W: World> Plan<W> {
    /// Writes the labels, and reads each back.
    ///
    /// # Errors
    /// `Drive` when one can't be written: those before it are.
    pub async fn carry_out(self, world: &W) -> Result<(), PoolError> {
        for Work { label, targets } in self.works {
            for target in targets {
                let own = Label {
                    drive_uuid: target.uuid,
                    ..label.clone()
                };
                write(world, &target, &own).await?;
            }
        }
        Ok(())
    }
}

async fn write<W: World>(world: &W, target: &Target<W>, label: &Label) -> Result<(), PoolError> {
    let part: Part = label.pool.part();
    let view = View::new(Rc::clone(&target.drive), part);
    let at = DriveOffset(SLOT_OFFSETS[(label.generation % 2) as usize]);
    let bytes = label.encode();
    let len = bytes.len();
    let written = view
        .write_durable(at, world.buffers().copy_of(&bytes).freeze())
        .await;
    let failed = |error: String| {
        let context = format!(
            "drive '{}': its label can't be written: {error}",
            target.name
        );
        PoolError::new(PoolErrorKind::Drive, context)
    };
    written.map_err(|error| failed(error.to_string()))?;
    let (buf, read) = view.read(at, world.buffers().bytes(len)).await;
    read.map_err(|error| failed(error.to_string()))?;
    match Label::decode(buf.bytes().unwrap_or_default()) {
        Slot::Label(there) if *there == *label => Ok(()),
        _ => Err(failed("something else is read back".to_owned())),
    }
}
