//! Telling drives that are damaged from drives that are away for a moment, after a failed read.
//!
//! Invariants:
//! - A drive in use that does not answer may hold everything: nothing is given up for it.
//! - Damage that no other drive makes good is believed only when each of several looks,
//!   apart from each other, has found it, and the drive's labels can be read. A drive that
//!   is cut off (a cable, a link that resets) calls its blocks damaged as well. For a second
//!   after that one look is enough, and the labels.

use super::Member;
use crate::drive::{Drive, DriveError, DriveErrorKind};
use crate::label::SLOT_OFFSETS;
use crate::world::World;
use base::{BLOCK_BYTES, Buf, DriveOffset, Time};
use std::rc::Rc;
use std::time::Duration;

/// Looks after the first one, and the time between two.
pub(crate) const LOOKS: u32 = 2;
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

/// So long nobody waits again for drives whose damage has just been believed: many damaged
/// blocks cost little more than one.
const KNOWN: Duration = Duration::from_secs(1);

/// A read that takes longer, outside of a pool in use, is not repeated.
pub(crate) const PATIENCE: Duration = Duration::from_millis(500);

/// What is to be done about something that could not be read.
pub enum Verdict<W: World> {
    /// This drive may hold it, and does not answer.
    Away(Rc<Member<W>>),
    /// To look again: a drive that was away may be back.
    LookAgain,
    /// The data is lost: several looks have found it damaged.
    Damaged,
}

/// How often something was looked at that could not be read.
#[derive(Debug, Default)]
pub struct Doubt {
    looks: u32,
}

impl Doubt {
    /// What is to be done about something that none of `members` could give in a look that
    /// began at `began`. Before another look it waits.
    pub async fn judge<W: World>(
        &mut self,
        world: &W,
        members: &[Rc<Member<W>>],
        began: Time,
    ) -> Verdict<W> {
        let believes = world.planted("given up for a drive that is away");
        let mut silent = members
            .iter()
            .filter(|member| member.was_silent_since(began));
        if let Some(silent) = silent.next().filter(|_| !believes) {
            return Verdict::Away(Rc::clone(silent));
        }
        let damaged = members
            .iter()
            .filter(|member| member.was_damaged_since(began));
        let damaged: Vec<_> = damaged.cloned().collect();
        let believes = world.planted("damage believed of a drive that is cut off");
        for member in damaged.iter().filter(|_| !believes) {
            if !reads_labels(world, member).await {
                if !member.is_writable() {
                    // It went out of use meanwhile: what is left has to do without it.
                    return Verdict::LookAgain;
                }
                world.reached("damage of a drive that is cut off");
                return Verdict::Away(Rc::clone(member));
            }
        }
        let believes = world.planted("damage believed at the first look");
        if damaged.is_empty() || believes {
            return Verdict::Damaged;
        }
        let is_known = |member: &Rc<Member<W>>| {
            let since = member.believed_since();
            since.is_some_and(|since| since < KNOWN)
        };
        if self.looks == 0 && damaged.iter().all(is_known) {
            return Verdict::Damaged;
        }
        if self.looks == LOOKS {
            damaged.iter().for_each(|member| member.note_believed());
            return Verdict::Damaged;
        }
        self.looks += 1;
        world.sleep(PAUSE).await;
        Verdict::LookAgain
    }

    /// As [`Doubt::judge`], for an opening: whether to look again.
    ///
    /// # Errors
    /// The drive that may hold it, and does not answer.
    pub async fn opening_looks_again<W: World>(
        &mut self,
        world: &W,
        members: &[Rc<Member<W>>],
        began: Time,
    ) -> Result<bool, Rc<Member<W>>> {
        match self.judge(world, members, began).await {
            Verdict::Away(member) => Err(member),
            Verdict::Damaged => Ok(false),
            Verdict::LookAgain => {
                world.reached("opening looks again");
                Ok(true)
            }
        }
    }
}

/// Whether a read that failed after `took` is not worth another: the drive is gone, or has
/// tried hard by itself.
pub(crate) fn is_final(error: &DriveError, took: Duration) -> bool {
    error.kind == DriveErrorKind::Gone || took > PATIENCE
}

/// What `read` gives. A drive that was cut off for a moment is asked again: what others say may
/// be older.
///
/// # Errors
/// What the drive said last.
pub(crate) async fn read_again<W: World, T>(
    world: &W,
    mut read: impl AsyncFnMut() -> Result<T, DriveError>,
) -> Result<T, DriveError> {
    let mut looks = 0;
    loop {
        let began = world.now();
        match read().await {
            Err(error) if is_final(&error, world.now().since(began)) || looks == LOOKS => {
                return Err(error);
            }
            Err(_) => {}
            read => return read,
        }
        looks += 1;
        world.sleep(PAUSE).await;
    }
}

/// As [`read_again`], from a drive that is no member yet.
///
/// # Errors
/// As there.
pub(crate) async fn read_drive_again<W: World>(
    world: &W,
    drive: &impl Drive,
    at: DriveOffset,
    len_bytes: usize,
) -> Result<Buf, DriveError> {
    let read = async || {
        let (buf, outcome) = drive.read(at, world.buffers().bytes(len_bytes)).await;
        outcome.map(|()| buf)
    };
    read_again(world, read).await
}

async fn reads_labels<W: World>(world: &W, member: &Member<W>) -> bool {
    for slot in SLOT_OFFSETS {
        let buf = world.buffers().data(BLOCK_BYTES);
        if member.probe(DriveOffset(slot), buf).await.is_ok() {
            return true;
        }
    }
    false
}
