//! The check and repair of a whole stripe: every block against its sum, every copy and parity
//! against the data; wrong blocks are repaired, and the part of a drive that is being rebuilt is
//! written to it.
//!
//! First the whole stripe at once, in operations of a stripe unit; when anything is
//! not as it should be, row by row. The log has been emptied since the opening, so
//! nothing is unknown.

use super::Store;
use super::address::{StripeRef, ZoneAddress};
use super::change::{Change, PlaceWrite};
use super::counts::Purpose;
use super::locks::StripeGuard;
use super::row::{Row, Want};
use crate::drives::{DriveFault, EventKind, Taker, Zone};
use crate::error::{PoolError, PoolErrorKind};
use crate::integrity::{Pinned, Sum};
use crate::label::MemberState;
use crate::raid::{Code, parity};
use crate::world::World;
use base::{BLOCK_BYTES, Slice};
use futures_util::future::join_all;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

/// Blocks that can't be had, and of which that is remembered to have been told.
const TOLD_MAX: usize = 64 << 10;

/// What came of looking through a stripe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Healed {
    /// Blocks that were wrong and have been written again.
    pub mended: u64,
    /// Blocks that can't be had, and are marked so from now on.
    pub lost: u64,
    /// Blocks that were marked so before, and have not been written since.
    pub still_lost: u64,
    /// Bytes written to the drive that is being rebuilt.
    pub rebuilt_bytes: u64,
}

impl Healed {
    /// The sums of both, field by field.
    pub fn and(self, other: Healed) -> Healed {
        Healed {
            mended: self.mended + other.mended,
            lost: self.lost + other.lost,
            still_lost: self.still_lost + other.still_lost,
            rebuilt_bytes: self.rebuilt_bytes + other.rebuilt_bytes,
        }
    }
}

/// A stripe that is looked through: it is held meanwhile.
struct Held {
    stripe: StripeRef,
    guard: StripeGuard,
    /// How old a command of hosts may get on a disk before the work halts for it. None does not look at
    /// commands.
    patience: Option<Duration>,
}

/// Rows of a stripe that hold something, and each column's sums in them.
struct Written {
    rows: Range<u32>,
    /// By column, then by row from the first.
    sums: Vec<Vec<Sum>>,
}

/// The places of a stripe's units, data first, and what is needed of them.
struct Columns {
    places: Vec<usize>,
    /// Columns of data.
    data: usize,
    /// The units that are to be written to drives that are being rebuilt.
    targets: Vec<usize>,
    /// The columns of data that no drive can be asked for: those of targets, and of drives that
    /// are out of use.
    missing: Vec<usize>,
    /// The units that are read.
    needed: Vec<bool>,
}

impl Columns {
    /// Of a stripe, for the drives at the places `targets`.
    ///
    /// A scrub reads all that can be read, to compare it. A rebuild reads only what it takes: the
    /// data is known by its sums, and what is put together is checked against its own.
    fn of<W: World>(zone: &Zone<W>, stripe: StripeRef, targets: &[usize]) -> Columns {
        let geometry = zone.shape.geometry;
        let mut places: Vec<usize> = (0..geometry.data_columns())
            .map(|column| zone.data_place(stripe, column))
            .collect();
        let (p, q) = geometry.parity_places(u64::from(stripe.number), usize::from(stripe.span));
        let data = places.len();
        places.extend(p);
        places.extend(q);
        let is_target = |index: &usize| targets.contains(&places[*index]);
        let targets: Vec<usize> = (0..places.len()).filter(is_target).collect();
        let readable: Vec<bool> = (0..places.len())
            .map(|index| zone.is_readable(places[index]))
            .collect();
        let missing: Vec<usize> = (0..data).filter(|index| !readable[*index]).collect();
        let parities = (data..places.len()).filter(|index| readable[*index]);
        let wanted = match targets.is_empty() {
            true => places.len(),
            false => missing.len(),
        };
        let parities: Vec<usize> = parities.take(wanted).collect();
        // A drive that is copied gives itself what its successor is to hold.
        let is_of_data = !targets.is_empty() && targets.iter().all(|target| *target < data);
        let is_copy = missing.is_empty() && is_of_data;
        let needed = (0..places.len())
            .map(|index| match index < data {
                true if is_copy => targets.contains(&index),
                true => readable[index],
                false => parities.contains(&index),
            })
            .collect();
        Columns {
            places,
            data,
            targets,
            missing,
            needed,
        }
    }

    /// Whether parity is reckoned: to be written, or to be compared.
    fn reckons_parity(&self) -> bool {
        self.targets.is_empty() || self.targets.iter().any(|target| *target >= self.data)
    }
}

impl<W: World> Store<W> {
    /// Stripes of a zone.
    pub fn stripes(&self, zone: &Zone<W>) -> impl Iterator<Item = StripeRef> + use<W> {
        let spans = zone.shape.geometry.spans as u64;
        let count = zone.shape.blocks / u64::from(zone.stripe_blocks());
        let zone = zone.shape.zone;
        (0..count).map(move |linear| StripeRef {
            zone,
            number: (linear / spans) as u32,
            span: (linear % spans) as u16,
        })
    }

    /// Brings the sums of stripes, in order, into RAM together: read one by one they would break up
    /// the reads of data.
    pub async fn load_sums(&self, zone: &Zone<W>, stripes: &[StripeRef]) {
        let sums = &zone.shape.sums;
        let parts = |stripe: &StripeRef| sums.parts(zone.blocks_of(*stripe));
        let indices = stripes.iter().flat_map(parts).map(|(index, _)| index);
        self.integrity.load_ahead(zone, indices).await;
    }

    /// Looks a stripe through. What the places of `targets` should hold is written to them, not
    /// durably: the caller flushes them. What the others hold is read once for all of them. On disks it
    /// waits for commands that are older than a patience.
    ///
    /// # Errors
    /// When the pool has stopped; when a drive that is needed does not answer.
    pub async fn heal_stripe(
        &self,
        zone: &Rc<Zone<W>>,
        stripe: StripeRef,
        targets: &[usize],
        patience: Option<Duration>,
    ) -> Result<Healed, PoolError> {
        let held = Held {
            stripe,
            guard: self.locks.lock(stripe).await,
            patience,
        };
        let pinned = self
            .integrity
            .pin(&zone.shape, zone.blocks_of(stripe))
            .await;
        let found = Healed {
            still_lost: self.still_lost(zone, stripe, &pinned),
            ..Healed::default()
        };
        let Some(written) = written(zone, stripe, &pinned) else {
            return Ok(found);
        };
        let whole = match zone.shape.geometry.code {
            Code::Mirror => self.heal_copies(zone, &held, &written, targets).await,
            Code::P | Code::PQ => self.heal_columns(zone, &held, &written, targets).await,
        };
        if let Some(healed) = whole {
            return Ok(healed.and(found));
        }
        let mut healed = found;
        for row in written.rows {
            healed = healed.and(self.heal_row(zone, &held, row, &pinned, targets).await?);
        }
        Ok(healed)
    }

    /// Blocks of a stripe that are marked as lost, are in use, and have nothing new in the log.
    fn still_lost(&self, zone: &Rc<Zone<W>>, stripe: StripeRef, pinned: &Pinned) -> u64 {
        let is_still = |block: &u64| {
            pinned.get(*block) == Sum::LOST
                && self.is_used(zone, *block)
                && !self.is_young(zone, *block)
                && self.index.borrow().get(zone.locate(*block)).is_none()
        };
        zone.blocks_of(stripe).filter(is_still).count() as u64
    }

    async fn unit(
        &self,
        zone: &Zone<W>,
        held: &Held,
        place: usize,
        rows: &Range<u32>,
    ) -> Option<Slice> {
        let member = zone.place(place);
        if !member.is_readable(zone.shape.zone) {
            return None;
        }
        let len = rows.len() * BLOCK_BYTES;
        self.counts.count(Purpose::RepairRead, len);
        let at = zone.on_drive(held.stripe, rows.start);
        let read = member.read_in_turn((at, len), held.patience, held.guard.wanted());
        read.await.ok().map(base::Buf::freeze)
    }

    async fn put_unit(
        &self,
        zone: &Zone<W>,
        held: &Held,
        place: usize,
        row: u32,
        data: Slice,
    ) -> Option<u64> {
        let taker = self.target(zone, place)?;
        let len = data.len();
        self.counts.count(Purpose::RepairWrite, len);
        let at = zone.on_drive(held.stripe, row);
        let wanted = held.guard.wanted();
        let write = taker
            .member
            .write_in_turn((at, data), held.patience, wanted);
        let written = write.await;
        let is_excused = written.is_err() && taker.excuses();
        let member = taker.member;
        match written {
            Ok(()) => Some(len as u64),
            Err(error) if is_excused => {
                // It may be sound otherwise, and be needed.
                self.drives.absorb_read(DriveFault { member, error }).await;
                None
            }
            Err(error) => {
                // It is out of use then, and its rebuild ends.
                let _ = self.drives.absorb(vec![DriveFault { member, error }]).await;
                None
            }
        }
    }

    /// The drive that is to get what a place holds, if one is. The place may go there; or its drive is
    /// copied there, or is rebuilt itself.
    fn target(&self, zone: &Zone<W>, place: usize) -> Option<Taker<W>> {
        if let Some(to) = zone.move_of(place) {
            return Some(Taker::of_move(&to)).filter(|taker| taker.member.is_writable());
        }
        let member = zone.place(place);
        let member = member.successor().unwrap_or(member);
        (member.state() == MemberState::Rebuilding).then(|| Taker::alone(&member))
    }

    /// Whether every block of a column that holds something is what its sum says.
    fn all_right(&self, data: &Slice, sums: &[Sum]) -> bool {
        sums.iter().enumerate().all(|(index, sum)| {
            !sum.is_written() || Sum::of(&data.slice(index * BLOCK_BYTES, BLOCK_BYTES)) == *sum
        })
    }

    /// Writes what targets should hold to them, and says how many bytes that were.
    async fn put_units(
        &self,
        zone: &Zone<W>,
        held: &Held,
        row: u32,
        units: Vec<(usize, Slice)>,
    ) -> u64 {
        let puts = units
            .into_iter()
            .map(|(place, data)| self.put_unit(zone, held, place, row, data));
        join_all(puts).await.into_iter().flatten().sum()
    }

    /// A scrub compares all copies. A rebuild needs one, which its sums prove.
    async fn heal_copies(
        &self,
        zone: &Zone<W>,
        held: &Held,
        written: &Written,
        targets: &[usize],
    ) -> Option<Healed> {
        let places = zone
            .shape
            .geometry
            .mirror_places(usize::from(held.stripe.span));
        let is_target = |place: &usize| targets.contains(place);
        let written_to: Vec<usize> = places.clone().filter(is_target).collect();
        let is_readable = |place: &usize| zone.is_readable(*place);
        let mut others: Vec<usize> = places.filter(is_readable).collect();
        if !targets.is_empty() {
            // A drive that is copied gives itself what its successor is to hold.
            others.sort_by_key(|place| (zone.place(*place).is_asked_last(), !is_target(place)));
            others.truncate(1);
        }
        let reads = others
            .iter()
            .map(|place| self.unit(zone, held, *place, &written.rows));
        let copies: Vec<Option<Slice>> = join_all(reads).await;
        let copies: Vec<Slice> = copies.into_iter().collect::<Option<_>>()?;
        let content = copies.first()?;
        let is_right = |copy: &Slice| self.all_right(copy, &written.sums[0]);
        if !copies.iter().all(is_right) {
            return None;
        }
        let units = written_to.iter().map(|target| (*target, content.clone()));
        let row = written.rows.start;
        let put = self.put_units(zone, held, row, units.collect());
        Some(Healed {
            rebuilt_bytes: put.await,
            ..Healed::default()
        })
    }

    async fn heal_columns(
        &self,
        zone: &Zone<W>,
        held: &Held,
        written: &Written,
        targets: &[usize],
    ) -> Option<Healed> {
        let of = Columns::of(zone, held.stripe, targets);
        let mut units = self.right_units(zone, held, written, &of).await?;
        self.add_missing(written, &of, &mut units)?;
        if of.reckons_parity() {
            self.check_parity(zone, written, &of, &mut units)?;
        }
        let mut content = Vec::with_capacity(of.targets.len());
        for target in &of.targets {
            content.push((of.places[*target], units[*target].take()?));
        }
        let put = self.put_units(zone, held, written.rows.start, content);
        Some(Healed {
            rebuilt_bytes: put.await,
            ..Healed::default()
        })
    }

    /// Reads the units that are needed. None when one can't be read, or is not what its sums say.
    async fn right_units(
        &self,
        zone: &Zone<W>,
        held: &Held,
        written: &Written,
        of: &Columns,
    ) -> Option<Vec<Option<Slice>>> {
        let places = of.places.iter().zip(&of.needed);
        let reads = places.map(async |(place, is_needed)| match is_needed {
            true => self.unit(zone, held, *place, &written.rows).await,
            false => None,
        });
        let mut units = join_all(reads).await;
        if (0..units.len()).any(|index| of.needed[index] && units[index].is_none()) {
            return None;
        }
        for (unit, sums) in units.iter_mut().zip(&written.sums) {
            if let Some(whole) = unit {
                if !self.all_right(whole, sums) {
                    return None;
                }
                *unit = Some(self.without_unwritten(whole, sums));
            }
        }
        Some(units)
    }

    /// Puts the columns together that can't be read. None when the parity does not suffice, or what
    /// comes out is not what the sums say.
    fn add_missing(
        &self,
        written: &Written,
        of: &Columns,
        units: &mut [Option<Slice>],
    ) -> Option<()> {
        let parities = units[of.data..].iter().flatten().count();
        if of.missing.is_empty() {
            return Some(());
        }
        if of.missing.len() > parities {
            return None;
        }
        let (data, parity) = units.split_at(of.data);
        let found = self.missing_columns(data, &of.missing, parity)?;
        for (column, content) in of.missing.iter().zip(found) {
            if !self.all_right(&content, &written.sums[*column]) {
                return None;
            }
            units[*column] = Some(self.without_unwritten(&content, &written.sums[*column]));
        }
        Some(())
    }

    /// Puts the parity in the place of the targets, and compares that which was read. None when it
    /// is another.
    fn check_parity(
        &self,
        zone: &Zone<W>,
        written: &Written,
        of: &Columns,
        units: &mut [Option<Slice>],
    ) -> Option<()> {
        let len = written.rows.len() * BLOCK_BYTES;
        let right = self.parity_of(&units[..of.data], len, zone.shape.geometry.code);
        for (index, right) in (of.data..of.places.len()).zip(right) {
            if of.targets.contains(&index) {
                units[index] = Some(right);
            } else if of.needed[index]
                && !self.same_where_written(units[index].as_ref()?, &right, &written.sums)
            {
                return None;
            }
        }
        Some(())
    }

    /// A unit with zeroes where nothing was written: so it counts in the parity.
    fn without_unwritten(&self, unit: &Slice, sums: &[Sum]) -> Slice {
        if sums.iter().all(|sum| sum.is_written()) || unit.is_length_only() {
            return unit.clone();
        }
        let mut masked = self.world.buffers().zeroed(unit.len());
        for (index, _) in sums.iter().enumerate().filter(|(_, sum)| sum.is_written()) {
            masked.put(
                index * BLOCK_BYTES,
                &unit.slice(index * BLOCK_BYTES, BLOCK_BYTES),
            );
        }
        masked.freeze()
    }

    /// The columns `missing` out of the others and as much of the parity as was read.
    fn missing_columns(
        &self,
        columns: &[Option<Slice>],
        missing: &[usize],
        parities: &[Option<Slice>],
    ) -> Option<Vec<Slice>> {
        if self.world.buffers().is_length_only() {
            let like = parities.iter().flatten().next()?;
            return Some(missing.iter().map(|_| like.clone()).collect());
        }
        let known: Vec<Option<&[u8]>> = columns
            .iter()
            .map(|column| column.as_ref().and_then(Slice::bytes))
            .collect();
        let parity = |index: usize| {
            parities
                .get(index)
                .and_then(Option::as_ref)
                .and_then(Slice::bytes)
        };
        if let (Some(p), [_]) = (parity(0), missing) {
            // The exclusive or of all else: no way round by a copy.
            let all: Vec<Option<&[u8]>> = known.into_iter().chain([Some(p)]).collect();
            let mut column = self.world.buffers().data(p.len());
            parity::p_of(column.bytes_mut()?, &all);
            return Some(vec![column.freeze()]);
        }
        let solved = parity::solve(&known, missing, parity(0), parity(1))?;
        let copies = solved
            .iter()
            .map(|column| self.world.buffers().copy_of(column).freeze());
        Some(copies.collect())
    }

    /// Whether two parities agree in the rows that hold something.
    fn same_where_written(&self, found: &Slice, right: &Slice, sums: &[Vec<Sum>]) -> bool {
        let (Some(found), Some(right)) = (found.bytes(), right.bytes()) else {
            return true;
        };
        let blocks = found.chunks(BLOCK_BYTES).zip(right.chunks(BLOCK_BYTES));
        blocks.enumerate().all(|(row, (found, right))| {
            found == right || !sums.iter().any(|sums| sums[row].is_written())
        })
    }

    async fn heal_row(
        &self,
        zone: &Rc<Zone<W>>,
        held: &Held,
        row: u32,
        pinned: &Pinned,
        targets: &[usize],
    ) -> Result<Healed, PoolError> {
        // One whose old drive goes out of use meanwhile has its place, and lacks the row still.
        let is_copied = |place: &&usize| zone.is_copied(**place);
        let copied: Vec<usize> = targets.iter().filter(is_copied).copied().collect();
        let (loaded, silent) = self
            .look_at_row(zone, (held.stripe, row), pinned, Want::Everything)
            .await;
        let mut healed = Healed::default();
        let lost: Vec<usize> = loaded.lost().collect();
        if lost.is_empty() {
            healed.mended = self.mend(zone, &loaded).await;
        } else if let Some(member) = silent {
            let context = format!("drive '{}' does not answer, and is needed", member.name);
            return Err(PoolError::new(PoolErrorKind::Drive, context));
        } else {
            healed.lost = self.give_up(zone, &loaded, &lost, targets).await?;
        }
        let is_lost = !lost.is_empty();
        let skips = self
            .world
            .planted("row skipped of a copied drive that is lost");
        let wanted = targets.iter().filter_map(|place| {
            let bad = loaded.bad.iter().find(|bad| bad.place == *place);
            let content = match bad {
                Some(bad) => bad.content.clone(),
                // One that is being rebuilt holds nothing that is not bad.
                None if !copied.contains(place) || skips && !is_copied(&place) => return None,
                None => self.content_at(zone, &loaded, *place, is_lost)?,
            };
            Some((*place, content))
        });
        healed.rebuilt_bytes += self.put_units(zone, held, row, wanted.collect()).await;
        Ok(healed)
    }

    /// What a place holds of a row, and its successor should. Where a column is lost, the parity is
    /// written with its mark.
    fn content_at(&self, zone: &Zone<W>, row: &Row, place: usize, is_lost: bool) -> Option<Slice> {
        let geometry = zone.shape.geometry;
        if geometry.code == Code::Mirror {
            return row.content(0);
        }
        let columns = 0..row.columns.len();
        let mut columns = columns.filter(|column| zone.data_place(row.stripe, *column) == place);
        if let Some(column) = columns.next() {
            return row.content(column);
        }
        if is_lost {
            return None;
        }
        let stripe = row.stripe;
        let (p, q) = geometry.parity_places(u64::from(stripe.number), usize::from(stripe.span));
        let contents: Vec<Option<Slice>> = (0..row.columns.len())
            .map(|column| row.content(column))
            .collect();
        let parity = self.parity_of(&contents, BLOCK_BYTES, geometry.code);
        let mut parity = [p, q].into_iter().zip(parity);
        parity.find_map(|(of, content)| (of == Some(place)).then_some(content))
    }

    /// Tells of a block that can't be had, once until it is written again.
    pub(super) fn note_lost(&self, zone: &Zone<W>, block: u64) {
        if self.check().is_err() {
            // Nothing can be read of a pool that has stopped: that is no loss.
            return;
        }
        if self.is_young(zone, block) {
            // Of an owner before, most likely. Who reads it later tells of it.
            return;
        }
        let mut told = self.told_lost.borrow_mut();
        if told.len() == TOLD_MAX {
            told.clear();
        }
        if !told.insert(self.pool_block(zone, block)) {
            return;
        }
        self.counts.add(|counts| &counts.lost_blocks, 1);
        let at = self.offset_of(zone, block);
        let text = format!(
            "4096 bytes at pool address {at} are lost: more of their stripe was damaged than the level covers; \
             `ashlar fsck --deep` names the volume"
        );
        self.drives.event_of_loss(EventKind::BlockLost, text, 1);
    }

    /// Blocks that are written: what was told of them is of the past.
    pub(super) fn forget_lost(&self, blocks: Range<u64>) {
        let mut told = self.told_lost.borrow_mut();
        if !told.is_empty() {
            blocks.for_each(|block| {
                told.remove(&block);
            });
        }
    }

    /// Marks the blocks of `lost` as lost and reckons the parity without them, so
    /// that what is left of the row is protected again.
    async fn give_up(
        &self,
        zone: &Rc<Zone<W>>,
        row: &Row,
        lost: &[usize],
        targets: &[usize],
    ) -> Result<u64, PoolError> {
        self.world.reached("block given up");
        let blocks = zone.blocks_of(row.stripe);
        let pinned = self.integrity.pin(&zone.shape, blocks.clone()).await;
        let mut change = Change::new(zone, row.stripe, pinned);
        let mut given_up = 0;
        for column in lost {
            let index = *column as u32 * zone.rows() + row.row;
            let block = blocks.start + u64::from(index);
            let logged = self.index.borrow().get(zone.locate(block)).is_some();
            // What nobody uses, and what the log has anew, is no loss.
            if logged || !self.is_used(zone, block) {
                change.sums.push((block, Sum::UNWRITTEN));
                continue;
            }
            change.sums.push((block, Sum::LOST));
            given_up += 1;
            self.note_lost(zone, block);
        }
        let contents: Vec<Option<Slice>> = row
            .columns
            .iter()
            .map(|column| column.content.clone())
            .collect();
        if zone.has_parity() && contents.iter().any(Option::is_some) {
            let parity = self.parity_of(&contents, BLOCK_BYTES, zone.shape.geometry.code);
            let (p, q) = zone
                .shape
                .geometry
                .parity_places(u64::from(row.stripe.number), usize::from(row.stripe.span));
            for (place, data) in [p, q].into_iter().zip(parity) {
                change.writes.extend(place.map(|place| PlaceWrite {
                    place,
                    row: row.row,
                    data,
                    purpose: Purpose::ParityWrite,
                }));
            }
        }
        let is_readable = |place| zone.is_readable(place);
        let of_others = row.bad.iter().filter(|bad| stays(zone, bad.place, targets));
        for bad in of_others.filter(|bad| is_readable(bad.place)) {
            let (place, data) = (bad.place, bad.content.clone());
            change.writes.push(PlaceWrite {
                place,
                row: row.row,
                data,
                purpose: Purpose::RepairWrite,
            });
        }
        change.needs_intent = true;
        self.make(&change).await?;
        Ok(given_up)
    }
}

/// Whether a place is mended where it stands: no other drive gets what it holds, or it only goes there.
fn stays<W: World>(zone: &Zone<W>, place: usize, targets: &[usize]) -> bool {
    !targets.contains(&place) || zone.move_of(place).is_some()
}

/// The rows between the first and the last block of a stripe that holds something.
fn written<W: World>(zone: &Zone<W>, stripe: StripeRef, pinned: &Pinned) -> Option<Written> {
    let first = zone.blocks_of(stripe).start;
    let columns = zone.shape.geometry.data_columns() as u32;
    let sum = |column: u32, row: u32| pinned.get(first + u64::from(column * zone.rows() + row));
    let holds = |row: &u32| (0..columns).any(|column| sum(column, *row).is_written());
    let start = (0..zone.rows()).find(holds)?;
    let end = (start..zone.rows()).rev().find(holds)? + 1;
    let sums = (0..columns).map(|column| (start..end).map(|row| sum(column, row)).collect());
    Some(Written {
        rows: start..end,
        sums: sums.collect(),
    })
}
