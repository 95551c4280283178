//! Replaying the logs, after a crash or at any opening.
//!
//! Intents are redone, in their order, whether their writes had reached the drives
//! or not: redoing is harmless, and a row is whole afterwards also where a drive is
//! missing. In the same order sums of writes around the log are set, and what the data
//! log holds becomes the index, where nothing newer went around the log; it is destaged
//! anew in time.
//!
//! Before all that come the records of sums ([`crate::integrity`], `record`): what they say counts as
//! if it stood in the blocks on the drives. Entries that changed sums after a record are all in the
//! logs still.

use super::Store;
use super::address::ZoneAddress;
use super::change::{Change, PlaceWrite};
use super::counts::Purpose;
use super::entry::{Intent, Item, decode_intents, decode_items};
use super::index::{Block, Content};
use crate::drives::Zone;
use crate::error::{PoolError, PoolErrorKind};
use crate::integrity::Sum;
use crate::ring::{Hold, Recovered};
use crate::world::World;
use base::{BLOCK_BYTES, PhysPage, Slice};
use std::rc::Rc;

/// Something to do again, with its place in the order of all.
enum Redo {
    Intents(Vec<Intent>, Vec<Slice>),
    Sums { at: u64, sums: Vec<Sum> },
    Block(u64, Content, Rc<Hold>),
}

impl<W: World> Store<W> {
    /// Takes up what both logs hold. Nobody else uses the store yet.
    ///
    /// # Errors
    /// `Corrupt` for a head that is none; when the pool stops.
    pub async fn replay(
        &self,
        log: Vec<Recovered>,
        intents: Vec<Recovered>,
    ) -> Result<(), PoolError> {
        let mut redo: Vec<(u64, Redo)> = Vec::new();
        let mut holds = Vec::new();
        for entry in intents {
            let found = decode_intents(&entry.head)
                .ok_or_else(|| self.no_head("intent log", entry.stamp))?;
            redo.push((entry.stamp, Redo::Intents(found, entry.data)));
            holds.push(Rc::new(entry.hold));
        }
        for entry in log {
            self.redo_of(entry, &mut redo, &mut holds)?;
        }
        self.expect_torn_sums(&redo);
        redo.sort_by_key(|(stamp, _)| *stamp);
        if !redo.is_empty() {
            self.world.reached("replay after a crash");
        }
        // Sums that are flushed meanwhile have not all of it.
        let begun = self.integrity.watermark.begin_above(0);
        for (stamp, redo) in redo {
            match redo {
                Redo::Intents(intents, data) => self.redo(intents, data, stamp).await?,
                Redo::Sums { at, sums } => self.set_sums(at, &sums, stamp).await,
                Redo::Block(block, content, hold) => self.take_up(block, content, &hold),
            }
        }
        drop(begun);
        self.settled.borrow_mut().extend(holds);
        // Blocks that the log has records of are not read for that.
        self.integrity.choose_records(&self.log);
        self.relieve().await
    }

    /// What an entry of the data log has to be done again, with what holds it in the log.
    fn redo_of(
        &self,
        entry: Recovered,
        redo: &mut Vec<(u64, Redo)>,
        holds: &mut Vec<Rc<Hold>>,
    ) -> Result<(), PoolError> {
        let stamp = entry.stamp;
        let no_head = || self.no_head("data log", stamp);
        let items = decode_items(&entry.head).ok_or_else(no_head)?;
        let hold = Rc::new(entry.hold);
        let mut data = Cursor::new(entry.data);
        let block = |at, content| (stamp, Redo::Block(at, content, Rc::clone(&hold)));
        for item in items {
            match item {
                Item::InPlace { at, sums } => {
                    redo.push((stamp, Redo::Sums { at, sums }));
                    holds.push(Rc::clone(&hold));
                }
                // It stands for what was in place, before anything that is done again.
                Item::Sums(record) => self.integrity.found_record(record, stamp, &hold),
                Item::Data { at, blocks } => {
                    for at in at..at + u64::from(blocks) {
                        let slice = data.next().ok_or_else(no_head)?;
                        redo.push(block(at, Content::Data(Block::new(slice, None))));
                    }
                }
                Item::Zero { at, blocks } => {
                    let zeros = at..at + u64::from(blocks);
                    redo.extend(zeros.map(|at| block(at, Content::Zero)));
                }
            }
        }
        Ok(())
    }

    /// What the log has for a block counts until something newer does.
    fn take_up(&self, block: u64, content: Content, hold: &Rc<Hold>) {
        // A zone that went out of use was emptied first.
        if let Some((zone, inside)) = self.place_in_use(block) {
            let at = zone.locate(inside);
            self.index
                .borrow_mut()
                .insert(at, content, hold, self.world.now(), true);
            self.note_if_free(block);
        }
    }

    /// The zone in use that a block of the pool lies in, and the block's number there.
    fn place_in_use(&self, block: u64) -> Option<(Rc<Zone<W>>, u64)> {
        let (zone, inside) = self.place_of(block)?;
        Some((self.drives.zone(zone)?, inside))
    }

    /// The log has something for a block of a page that may be free: the page's next
    /// owner must not find it after the next crash.
    fn note_if_free(&self, block: u64) {
        let page = PhysPage(block / self.page_blocks());
        if !self.space.borrow().is_used(page) {
            self.note_freed(page);
        }
    }

    /// Sums that were on their way to the drives when the last owner ended: the logs
    /// have all that changed in them.
    fn expect_torn_sums(&self, redo: &[(u64, Redo)]) {
        let note_torn = |zone: u32, inside: u64| {
            if let Some(zone) = self.drives.zone(zone) {
                self.integrity.may_be_torn(&zone.shape, inside);
            }
        };
        let note = |block: u64| {
            if let Some((zone, inside)) = self.place_of(block) {
                note_torn(zone, inside);
                self.drives.doubt_successors(zone);
            }
        };
        for (_, redo) in redo {
            match redo {
                Redo::Intents(intents, _) => {
                    for intent in intents {
                        self.drives.doubt_successors(intent.stripe.zone);
                        for (block, _) in &intent.sums {
                            note_torn(intent.stripe.zone, *block);
                        }
                    }
                }
                Redo::Sums { at, sums } => (*at..*at + sums.len() as u64).for_each(note),
                Redo::Block(block, ..) => note(*block),
            }
        }
    }

    fn no_head(&self, log: &str, stamp: u64) -> PoolError {
        let name = self.drives.name();
        PoolError::new(
            PoolErrorKind::Corrupt,
            format!(
                "{log} of pool '{name}': entry {stamp} is whole and not to be understood: use the version that wrote it"
            ),
        )
    }

    async fn redo(
        &self,
        intents: Vec<Intent>,
        data: Vec<Slice>,
        stamp: u64,
    ) -> Result<(), PoolError> {
        if self.world.planted("intents not redone") {
            return Ok(());
        }
        let mut data = Cursor::new(data);
        let mut changes = Vec::new();
        for intent in intents {
            let mut writes = Vec::new();
            for (place, row, rows) in intent.writes {
                let blocks: Option<Vec<Slice>> = (0..rows).map(|_| data.next()).collect();
                let blocks = blocks.ok_or_else(|| self.no_head("intent log", stamp))?;
                for (offset, data) in (0..).zip(blocks) {
                    writes.push(PlaceWrite {
                        place: usize::from(place),
                        row: row + offset,
                        data,
                        purpose: Purpose::DataWrite,
                    });
                }
            }
            let Some(zone) = self.drives.zone(intent.stripe.zone) else {
                continue;
            };
            let pinned = self
                .integrity
                .pin(&zone.shape, zone.blocks_of(intent.stripe))
                .await;
            let mut change = Change::new(&zone, intent.stripe, pinned);
            change.writes = writes;
            change.sums = intent.sums;
            changes.push(change);
            self.last_intents.borrow_mut().insert(intent.stripe, stamp);
        }
        self.write_in_place(&changes).await?;
        for change in &changes {
            for (block, sum) in &change.sums {
                change.pinned.set(*block, *sum);
            }
        }
        Ok(())
    }

    async fn set_sums(&self, at: u64, sums: &[Sum], stamp: u64) {
        let Some((zone, first)) = self.place_in_use(at) else {
            return;
        };
        let pinned = self
            .integrity
            .pin(&zone.shape, first..first + sums.len() as u64)
            .await;
        for (block, sum) in (first..).zip(sums) {
            match self.world.planted("log believed above newer sums") {
                true => pinned.set(block, *sum),
                // What changed them since may be gone from the intent log already.
                false => pinned.set_again(block, *sum, stamp),
            }
            self.note_if_free(at - first + block);
            // What was in the log before was in place before.
            self.index.borrow_mut().forget(zone.locate(block));
        }
    }
}

/// The blocks of an entry's data, one after the other.
struct Cursor {
    slices: std::vec::IntoIter<Slice>,
    current: Option<(Slice, usize)>,
}

impl Cursor {
    fn new(slices: Vec<Slice>) -> Self {
        Cursor {
            slices: slices.into_iter(),
            current: None,
        }
    }

    fn next(&mut self) -> Option<Slice> {
        loop {
            if let Some((slice, at)) = &mut self.current
                && *at < slice.len()
            {
                let block = slice.slice(*at, BLOCK_BYTES);
                *at += BLOCK_BYTES;
                return Some(block);
            }
            self.current = Some((self.slices.next()?, 0));
        }
    }
}
