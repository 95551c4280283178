//! WRITE USING TOKEN (SBC-3 clause 5.53): the data of a token, or zeroes, into ranges of a logical
//! unit.

use super::desk::Transferred;
use super::ranges::{self, WriteUsing};
use super::stream::{self, Failure, Run};
use super::token::TokenError;
use super::tokens::Lease;
use super::{CancelToken, Copier, HeldData, Outcome, PATIENCE};
use crate::cdb::Extent;
use crate::commands::transfer::failure;
use crate::nexus::Nexus;
use crate::sense::Sense;
use crate::unit::LogicalUnit;
use base::{SECTOR_BYTES, VolumeOffset};
use engine::{Disk, World};

/// Its service action.
const WRITE_USING_TOKEN: u8 = 0x11;

impl<W: World> Nexus<W> {
    pub(super) async fn write_using_token(
        &self,
        copier: &dyn Copier<W>,
        unit: &LogicalUnit<W>,
        (list_id, list): (u32, &[u8]),
        cancel: &CancelToken,
    ) -> Outcome {
        let order = match ranges::write_using(list, unit.blocks()) {
            Ok(order) => order,
            Err(sense) => return sense.into(),
        };
        let action = (WRITE_USING_TOKEN, list_id);
        let written = self.transfer(unit, action, &order.ranges, cancel, async |transferred| {
            let written = write(copier, unit, &order, cancel, transferred);
            stream::within(copier, PATIENCE, cancel, written).await
        });
        written.await
    }
}

/// Writes, and counts the blocks.
async fn write<W: World>(
    copier: &dyn Copier<W>,
    unit: &LogicalUnit<W>,
    order: &WriteUsing,
    cancel: &CancelToken,
    transferred: &mut Transferred,
) -> Result<(), Sense> {
    let blocks = &mut transferred.blocks;
    if unit.is_write_protected() {
        return Err(Sense::WRITE_PROTECTED);
    }
    // A server that can't have tokens knows none.
    let mut lease = Err(TokenError::Unknown);
    copier.tokens(&mut |tokens| lease = tokens.begin(&order.token, copier.now()));
    let (number, held) = match lease.map_err(TokenError::sense)? {
        Lease::Zeroes => return clear(&unit.volume(), order, cancel, blocks).await,
        Lease::Kept { number, held } => (number, held),
    };
    let planted = copier.world().planted("token not held while it is used");
    let end_use = |deletes| {
        let mut left = Vec::new();
        copier.tokens(&mut |tokens| left = tokens.end_use(number, deletes, copier.now()));
        if !left.is_empty() {
            copier.release(left);
        }
    };
    if planted {
        end_use(order.deletes);
    }
    let written = match runs(&held, order) {
        Ok(runs) => place(copier, unit, (&held, &runs), cancel, blocks).await,
        Err(sense) => Err(sense),
    };
    let deletes = order.deletes && written.is_ok() && *blocks == transferred.asked_blocks;
    if !planted {
        end_use(deletes);
    }
    written
}

/// Zeroes.
async fn clear<W: World>(
    disk: &Disk<W>,
    order: &WriteUsing,
    cancel: &CancelToken,
    blocks: &mut u64,
) -> Result<(), Sense> {
    for range in order.ranges.iter().filter(|range| range.blocks > 0) {
        if !cancel.goes_on() {
            break;
        }
        let at = VolumeOffset(range.lba.0 * SECTOR_BYTES as u64);
        let cleared = disk.clear(at, range.bytes()).await;
        cleared.map_err(|error| failure(&error, Sense::write_error))?;
        *blocks += u64::from(range.blocks);
    }
    Ok(())
}

/// What is kept, into the unit.
async fn place<W: World>(
    copier: &dyn Copier<W>,
    unit: &LogicalUnit<W>,
    (held, runs): (&HeldData, &[Run]),
    cancel: &CancelToken,
    blocks: &mut u64,
) -> Result<(), Sense> {
    let holder = copier.holder(held.holder).await;
    let holder = holder.ok_or(TokenError::Unknown.sense())?;
    let disk = unit.volume();
    for run in runs {
        if !cancel.goes_on() {
            break;
        }
        let (bytes, copied) = stream::copy(copier, (&holder, &disk), *run, cancel).await;
        *blocks += bytes / SECTOR_BYTES as u64;
        copied.map_err(|failed| match failed {
            // Where in the token it was means nothing to the host.
            Failure::Source(error) => Sense {
                information: None,
                ..failure(&error, Sense::read_error)
            },
            Failure::Destination(error) => failure(&error, Sense::write_error),
        })?;
    }
    Ok(())
}

/// From where to where: pieces of what is kept, into pieces of the ranges.
///
/// # Errors
/// 26/00 when the token has less than that.
fn runs(held: &HeldData, order: &WriteUsing) -> Result<Vec<Run>, Sense> {
    let sector = SECTOR_BYTES as u64;
    // What is kept from the offset on.
    let beyond = Sense::invalid_parameter(8);
    let mut skip = order.offset_blocks.checked_mul(sector).ok_or(beyond)?;
    let mut sources = Vec::new();
    for (at, len) in &held.places {
        let skipped = skip.min(*len);
        skip -= skipped;
        if skipped < *len {
            sources.push((at + skipped, len - skipped));
        }
    }
    let mut sources = sources.into_iter();
    let mut source = (0, 0);
    let mut runs = Vec::new();
    for Extent { lba, blocks } in &order.ranges {
        let (mut to, mut left) = (lba.0 * sector, u64::from(*blocks) * sector);
        while left > 0 {
            if source.1 == 0 {
                source = sources.next().ok_or(beyond)?;
            }
            let (from, len) = (source.0, source.1.min(left));
            runs.push(Run { from, to, len });
            source = (source.0 + len, source.1 - len);
            to += len;
            left -= len;
        }
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Lba, Uuid};

    fn runs_of(
        places: &[(u64, u64)],
        offset: u64,
        ranges: &[(u64, u32)],
    ) -> Result<Vec<(u64, u64, u64)>, Sense> {
        let blocks = |(at, len): &(u64, u64)| (at * 512, len * 512);
        let held = HeldData {
            holder: Uuid::default(),
            slot: 0..1 << 40,
            places: places.iter().map(blocks).collect(),
        };
        let extent = |(lba, blocks): &(u64, u32)| Extent {
            lba: Lba(*lba),
            blocks: *blocks,
        };
        let order = WriteUsing {
            deletes: false,
            offset_blocks: offset,
            token: Vec::new(),
            ranges: ranges.iter().map(extent).collect(),
        };
        let runs = runs(&held, &order)?.into_iter();
        Ok(runs
            .map(|run| (run.from / 512, run.to / 512, run.len / 512))
            .collect())
    }

    #[test]
    fn ranges_of_both_sides_are_cut_where_the_other_ends() {
        let places = [(100, 10), (200, 5), (300, 0), (400, 5)];
        let all = runs_of(&places, 0, &[(0, 20)]);
        assert_eq!(all, Ok(vec![(100, 0, 10), (200, 10, 5), (400, 15, 5)]));
        let parts = runs_of(&places, 8, &[(50, 1), (9, 0), (70, 5)]);
        assert_eq!(parts, Ok(vec![(108, 50, 1), (109, 70, 1), (200, 71, 4)]));
        assert_eq!(runs_of(&places, 19, &[(0, 1)]), Ok(vec![(404, 0, 1)]));
        assert_eq!(runs_of(&places, 20, &[]), Ok(vec![]));
    }

    #[test]
    fn what_the_token_does_not_have_is_refused() {
        let beyond = Err(Sense::invalid_parameter(8));
        assert_eq!(runs_of(&[(100, 10)], 0, &[(0, 11)]), beyond);
        assert_eq!(runs_of(&[(100, 10)], 10, &[(0, 1)]), beyond);
        assert_eq!(runs_of(&[(100, 10)], u64::MAX, &[(0, 1)]), beyond);
        assert_eq!(runs_of(&[(100, 10)], u64::MAX >> 9, &[(0, 1)]), beyond);
        assert_eq!(runs_of(&[], 0, &[(0, 1)]), beyond);
    }
}
