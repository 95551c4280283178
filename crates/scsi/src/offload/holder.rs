//! The hidden volume of a lane that keeps the data of tokens: it shares the pages of the sources. A
//! later write to a source gets other pages.
//!
//! Invariants:
//! - The volume is there while something is kept, and no longer. One that a crash left is
//!   deleted before another is made.
//! - Each of what is kept has addresses of its own, which lie in their pages and chunks as
//!   they do in the source, so that pages are shared and not copied.

use super::CancelToken;
use base::{Uuid, VolumeOffset};
use engine::meta::page_map::CHUNK;
use engine::pool::PoolErrorKind;
use engine::{IoError, IoErrorKind, Lane, PoolError, Volume, VolumeInfo, World};
use futures_util::lock::Mutex;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

/// What the hidden volume is called.
const NAME: &str = "held-for-tokens";
/// Pages of its addresses: more than the tokens of a server can take.
const PAGES: u64 = 1 << 30;

/// What is kept for a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldData {
    /// The volume that keeps it.
    pub holder: Uuid,
    /// Its range of addresses in the holder, bytes.
    pub slot: Range<u64>,
    /// Where the data is, in the order of the ranges: offset and length in bytes.
    pub places: Vec<(u64, u64)>,
}

impl HeldData {
    /// How much it is.
    pub fn bytes(&self) -> u64 {
        self.places.iter().map(|(_, len)| len).sum()
    }
}

/// What keeps data for tokens in one lane.
pub struct Holder<W: World> {
    pool: Lane<W>,
    /// Held while it is made or deleted.
    volume: Mutex<Option<Volume<W>>>,
    /// Addresses in use: from where to where.
    slots: RefCell<BTreeMap<u64, u64>>,
}

impl<W: World> Holder<W> {
    /// One of this lane that keeps nothing.
    pub fn new(pool: Lane<W>) -> Self {
        Holder {
            pool,
            volume: Mutex::new(None),
            slots: RefCell::default(),
        }
    }

    /// The pool in this lane, which holds the data.
    pub fn pool(&self) -> &Lane<W> {
        &self.pool
    }

    /// Keeps the ranges of `source`, a volume of this lane, as they are now. Less than all
    /// of it when `cancel` is stopped.
    ///
    /// # Errors
    /// `PoolFull`, also when the metadata has no room; or what reading the source says.
    /// Nothing is kept then.
    pub async fn hold(
        &self,
        source: &Volume<W>,
        ranges: &[(u64, u64)],
        cancel: &CancelToken,
    ) -> Result<HeldData, IoError> {
        let (slot, mut places) = self.reserve(ranges);
        let kept = self.keep(source, ranges, &mut places, cancel).await;
        match kept {
            Ok(holder) => Ok(HeldData {
                holder,
                slot,
                places,
            }),
            Err(error) => {
                let holder = Uuid::default();
                let places = Vec::new();
                self.release(HeldData {
                    holder,
                    slot,
                    places,
                })
                .await;
                Err(error)
            }
        }
    }

    /// Lets go of what was kept. Ends when its pages are free, as far as nobody else has
    /// them.
    pub async fn release(&self, held: HeldData) {
        let volume = self.volume.lock().await.clone();
        if self
            .pool
            .world()
            .planted("addresses of a token given away early")
        {
            self.slots.borrow_mut().remove(&held.slot.start);
        }
        if let Some(volume) = volume {
            let len = held.slot.end - held.slot.start;
            // A pool that has stopped forgets it at its next opening.
            let _ = volume.clear(VolumeOffset(held.slot.start), len).await;
        }
        self.slots.borrow_mut().remove(&held.slot.start);
        let mut volume = self.volume.lock().await;
        if !self.slots.borrow().is_empty() {
            return;
        }
        if let Some(volume) = volume.take() {
            // As above.
            let _ = self.pool.delete_hidden(volume.info().uuid).await;
        }
    }

    /// Deletes what a crash has left.
    ///
    /// # Errors
    /// What the pool says.
    pub async fn forget_leftovers(&self) -> Result<(), PoolError> {
        let volume = self.volume.lock().await;
        let own = volume.as_ref().map(|volume| volume.info().uuid);
        let left = self.pool.hidden().into_iter();
        let planted = self
            .pool
            .world()
            .planted("hidden volume left behind at the restart");
        let is_left = |left: &VolumeInfo| left.name == NAME && Some(left.uuid) != own && !planted;
        for left in left.filter(is_left) {
            self.pool.delete_hidden(left.uuid).await?;
        }
        Ok(())
    }

    async fn keep(
        &self,
        source: &Volume<W>,
        ranges: &[(u64, u64)],
        places: &mut [(u64, u64)],
        cancel: &CancelToken,
    ) -> Result<Uuid, IoError> {
        let volume = self.made().await?;
        for ((from, len), (to, kept)) in ranges.iter().zip(places) {
            let ends = (VolumeOffset(*from), VolumeOffset(*to));
            *kept = match cancel.goes_on() && *len > 0 {
                true => {
                    let watch = |_| cancel.goes_on();
                    volume.copy_from(source, ends, *len, watch).await?
                }
                false => 0,
            };
        }
        Ok(volume.info().uuid)
    }

    /// The volume, made if need be.
    async fn made(&self) -> Result<Volume<W>, IoError> {
        let mut volume = self.volume.lock().await;
        if let Some(there) = volume.as_ref() {
            return Ok(there.clone());
        }
        let failed = |error: PoolError| IoError {
            kind: match error.kind {
                PoolErrorKind::Full => IoErrorKind::PoolFull,
                _ => IoErrorKind::PoolFailed,
            },
            at: VolumeOffset(0),
            context: error.context,
        };
        for left in self
            .pool
            .hidden()
            .into_iter()
            .filter(|left| left.name == NAME)
        {
            self.pool.delete_hidden(left.uuid).await.map_err(failed)?;
        }
        let page_bytes = u64::from(self.pool.info().page_bytes);
        let made = self.pool.create_hidden(NAME, PAGES * page_bytes).await;
        Ok(volume.insert(made.map_err(failed)?).clone())
    }

    /// Takes addresses for ranges; where each of them goes.
    fn reserve(&self, ranges: &[(u64, u64)]) -> (Range<u64>, Vec<(u64, u64)>) {
        let chunk = CHUNK as u64 * u64::from(self.pool.info().page_bytes);
        let (mut places, mut end) = (Vec::new(), 0);
        for (from, len) in ranges {
            let at = end + from % chunk;
            places.push((at, *len));
            end = (at + len).next_multiple_of(chunk);
        }
        // Not nothing: each has a beginning of its own.
        let len = end.max(chunk);
        let mut slots = self.slots.borrow_mut();
        let mut start = 0;
        for (from, to) in slots.iter() {
            if start + len <= *from {
                break;
            }
            start = *to;
        }
        slots.insert(start, start + len);
        for (at, _) in &mut places {
            *at += start;
        }
        (start..start + len, places)
    }
}
