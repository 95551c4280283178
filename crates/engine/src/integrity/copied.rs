//! The sums of a drive that is copied, given to its successor; and those of a place of a zone that goes
//! to another drive.
//!
//! Invariant: nothing of this is written to the drive that is copied. Its copy may be the only one.

use super::Integrity;
use super::areas::Areas;
use super::flush::BLOCKS_AT_ONCE;
use crate::drive::{DriveError, DriveErrorKind};
use crate::drives::{DriveFault, Taker, Zone};
use crate::world::World;
use futures_util::future::join_all;
use std::rc::Rc;

/// How often a copy is looked for that is whole; between two looks all that is to be written is.
const LOOKS: u32 = 3;

impl<W: World> Integrity<W> {
    /// Gives a drive the copies of a zone's sums that the drive of `place` is to hold.
    ///
    /// # Errors
    /// What a drive said that can't be done without; no copy of some block can be read.
    pub async fn copy_copies(
        &self,
        zone: &Zone<W>,
        place: usize,
        taker: &Taker<W>,
    ) -> Result<(), DriveError> {
        let hosted = self.hosted(zone, place);
        for some in hosted.chunks(BLOCKS_AT_ONCE) {
            self.load_ahead(zone, some.iter().copied()).await;
            let mut left = some.to_vec();
            for _ in 0..LOOKS {
                left = self.give_some(zone, place, taker, &left).await?;
                if left.is_empty() {
                    break;
                }
                // Blocks without a whole copy are written anew, to both drives.
                self.flush().await?;
            }
            if !left.is_empty() {
                return Err(DriveError {
                    kind: DriveErrorKind::Other,
                    operation: "read",
                    at: zone.shape.area,
                    len_bytes: 0,
                    context: format!("no copy of checksums {left:?} is whole"),
                });
            }
        }
        Ok(())
    }

    /// Gives these blocks to a successor; the numbers of those of which no whole copy was found.
    async fn give_some(
        &self,
        zone: &Zone<W>,
        place: usize,
        taker: &Taker<W>,
        indices: &[u64],
    ) -> Result<Vec<u64>, DriveError> {
        let mut left = Vec::new();
        let mut faults = Vec::new();
        {
            // Otherwise an older version could be written over a newer one.
            let _alone = self.write_alone().await;
            let blocks = indices.iter().map(|index| (*index, vec![place]));
            let areas = self.read_one_of_each(zone, blocks).await;
            let gifts = indices
                .iter()
                .map(|index| self.give_one(zone, (place, *index), taker, &areas));
            for (index, given) in indices.iter().zip(join_all(gifts).await) {
                match given {
                    Ok(true) => {}
                    Ok(false) => left.push(*index),
                    Err(fault) => faults.push(fault),
                }
            }
        }
        match faults.is_empty() && self.drives.are_losses_durable() {
            true => Ok(left),
            false => self.drives.absorb(faults).await.map(|()| left),
        }
    }

    /// Gives a block to a successor. False when no whole copy of it was found.
    async fn give_one(
        &self,
        zone: &Zone<W>,
        (place, index): (usize, u64),
        taker: &Taker<W>,
        areas: &Areas,
    ) -> Result<bool, DriveFault<W>> {
        if !taker.goes_on() {
            // That is noticed at the end of the move.
            return Ok(true);
        }
        let cached = self.cached(zone.shape.zone, index).await;
        let version = cached.version.get();
        let of = (index, version);
        // The drive that is copied is asked last: it is in trouble, most likely.
        let mut slots = self.whole_pair(zone, of, &[place], areas).await;
        if slots.is_none() {
            slots = self.whole_pair(zone, of, &[], &Areas::default()).await;
        }
        let mut copies = zone.shape.copies(index);
        let pair = copies.find(|(at, _)| *at == place);
        let (Some(slots), Some((_, pair))) = (slots, pair) else {
            return Ok(false);
        };
        let member = Rc::clone(&taker.member);
        match self.put_pair(member, zone, pair, slots, version).await {
            Some(_) if taker.excuses() => Ok(true),
            Some(fault) => Err(fault),
            None => Ok(true),
        }
    }
}
