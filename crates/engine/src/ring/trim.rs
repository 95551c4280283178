//! Trimming the oldest batches, and adding another drive.

use super::format::Superblock;
use super::{Ring, RingError};
use crate::drives::Member;
use crate::world::World;
use futures_channel::oneshot;
use std::rc::Rc;

impl<W: World> Ring<W> {
    /// Frees the space of the oldest batches that nobody holds. Nothing of it is used
    /// again before that is durable.
    ///
    /// # Errors
    /// When the ring is dead.
    pub async fn trim(self: &Rc<Self>) -> Result<(), RingError> {
        let _alone = self.trimming.lock().await;
        self.check()?;
        let free = {
            let mut state = self.state.borrow_mut();
            let idle = |batch: &&super::Batch| batch.acknowledged && batch.live.get() == 0;
            let free = state.batches.iter().take_while(idle).count();
            if free == 0 {
                return Ok(());
            }
            let head = (state.head, self.stamps.get() + 1);
            let (tail, stamp) = state
                .batches
                .get(free)
                .map_or(head, |batch| (batch.at, batch.first_stamp));
            if self.world.planted("log trimmed before it is durable") {
                drop(state);
                self.let_go(free, tail, stamp);
                return Ok(());
            }
            state.version += 1;
            (free, tail, stamp)
        };
        self.world.reached("log tail moves");
        let (free, tail, stamp) = free;
        let superblock = {
            let state = self.state.borrow();
            Superblock {
                version: state.version,
                incarnation: state.incarnation,
                since_sequence: state.since_sequence,
                tail,
                tail_sequence: state.tail_sequence + free as u64,
                tail_stamp: stamp,
            }
        };
        self.write_superblock(superblock).await?;
        self.let_go(free, tail, stamp);
        Ok(())
    }

    fn let_go(self: &Rc<Self>, free: usize, tail: u64, stamp: u64) {
        {
            let mut state = self.state.borrow_mut();
            let taken: u64 = state
                .batches
                .drain(..free)
                .map(|batch| batch.taken_bytes)
                .sum();
            state.used_bytes -= taken;
            state.tail = tail;
            state.tail_sequence += free as u64;
            state.tail_stamp = stamp;
            if state.batches.is_empty() {
                // What was appended meanwhile would be here.
                assert!(
                    state.used_bytes == 0,
                    "{} bytes of no batch",
                    state.used_bytes
                );
            }
        }
        self.kick();
    }

    /// The superblocks of the present state, in the next version.
    pub(super) async fn write_superblocks(&self) -> Result<(), RingError> {
        self.state.borrow_mut().version += 1;
        self.write_superblock(self.present_superblock()).await
    }

    pub(super) fn present_superblock(&self) -> Superblock {
        let state = self.state.borrow();
        Superblock {
            version: state.version,
            incarnation: state.incarnation,
            since_sequence: state.since_sequence,
            tail: state.tail,
            tail_sequence: state.tail_sequence,
            tail_stamp: state.tail_stamp,
        }
    }

    /// Writes both superblocks anew: one that went bad is seen only when it is needed.
    ///
    /// # Errors
    /// When the ring is dead.
    pub async fn refresh(&self) -> Result<(), RingError> {
        let _alone = self.trimming.lock().await;
        self.check()?;
        self.write_superblocks().await?;
        self.write_superblocks().await
    }

    async fn write_superblock(&self, superblock: Superblock) -> Result<(), RingError> {
        let block = self
            .world
            .buffers()
            .copy_of(&superblock.encode(&self.spec))
            .freeze();
        self.write_all(self.spec.superblock_at(superblock.version), &block)
            .await
    }

    /// Takes in a drive: it gets all that is in the ring, and everything from then
    /// on. Appends wait for the last part of that.
    ///
    /// # Errors
    /// `Drive` when the new drive can't be written or nobody can be read; the ring is
    /// as before then.
    pub async fn add_member(self: &Rc<Self>, member: Rc<Member<W>>) -> Result<(), RingError> {
        let copies = !self.world.planted("log moved without what is in it");
        self.check()?;
        let next = match copies {
            true => self.copy_beside_appends(&member).await?,
            false => 0,
        };
        let _alone = self.trimming.lock().await;
        self.check()?;
        let quiet = {
            let mut state = self.state.borrow_mut();
            state.paused = true;
            (state.in_flight > 0).then(|| {
                let (quiet, wait) = oneshot::channel();
                state.quiet = Some(quiet);
                wait
            })
        };
        if let Some(quiet) = quiet {
            let _ = quiet.await;
        }
        let copied = match copies {
            true => self.copy_rest(next, &member).await,
            false => Ok(()),
        };
        if copied.is_ok() {
            let mut members = self.members.borrow_mut();
            members.retain(|old| old.is_writable() && !Rc::ptr_eq(old, &member));
            members.push(member);
        }
        self.state.borrow_mut().paused = false;
        self.kick();
        copied
    }

    /// Writes to those drives only for which `stays` says so.
    pub fn keep_members(&self, stays: impl Fn(&Member<W>) -> bool) {
        self.members.borrow_mut().retain(|member| stays(member));
    }
}
