//! The check of a row of a stripe: copies of a mirror against the sum, or columns against their
//! sums and the parity against the columns.

use super::data::{Content, Scope, Stripe};
use crate::integrity::Sum;
use crate::raid::{Code, parity};
use crate::store::address::ZoneAddress;
use crate::world::World;
use base::{BLOCK_BYTES, Slice};

/// What is said of a block that is not what its sum says.
const ALTERED: &str = "this block of data is not what was written there";

/// A data column of a row.
struct Column {
    sum: Sum,
    block: u64,
    /// What it holds, when that is what the sum says.
    content: Option<Slice>,
}

impl Column {
    fn is_bad(&self) -> bool {
        self.sum.is_written() && self.content.is_none()
    }
}

/// What is wrong with a block on its drive, if anything is; a drive that is not there
/// was named once.
fn fault(content: &Content, sum: Sum) -> Option<&str> {
    match content {
        Content::Block(data) if Sum::of(data) == sum => None,
        Content::Block(_) => Some(ALTERED),
        Content::Unreadable(why) => Some(why),
        Content::Absent => None,
    }
}

impl<W: World> Scope<'_, W> {
    /// Every copy of a mirror's row.
    pub(super) fn check_copies(&self, stripe: &Stripe, row: u32) {
        let block = self.block(stripe.stripe, 0, row);
        let sum = self.sums.of(block);
        self.subject.count(|counts| counts.data_blocks += 1);
        let geometry = self.zone.shape.geometry;
        let mut good = false;
        for place in geometry.mirror_places(usize::from(stripe.stripe.span)) {
            let content = stripe.block(place, row);
            good |= matches!(content, Content::Block(data) if Sum::of(data) == sum);
            if let Some(text) = fault(content, sum) {
                self.damaged(stripe.stripe, place, row, text);
            }
        }
        if !good {
            self.lost(block);
        }
    }

    /// Every column of a row with parity.
    pub(super) fn check_columns(&self, stripe: &Stripe, row: u32) {
        let logged = self.held.has_row(self.zone, stripe.stripe, row);
        let columns: Vec<Column> = (0..self.zone.shape.geometry.data_columns())
            .map(|column| self.column(stripe, column, row, logged))
            .collect();
        if !logged {
            self.check_parity(stripe, row, columns);
        }
    }

    fn column(&self, stripe: &Stripe, column: usize, row: u32, logged: bool) -> Column {
        let block = self.block(stripe.stripe, column, row);
        let place = self.zone.data_place(stripe.stripe, column);
        let sum = self.sums.of(block);
        let mut found = Column {
            sum,
            block,
            content: None,
        };
        let counts = self.counts(block);
        if !sum.is_written() || (logged && !counts) {
            return found;
        }
        self.subject
            .count(|sums| sums.data_blocks += u64::from(counts));
        let content = stripe.block(place, row);
        if let Some(text) = fault(content, sum) {
            self.damaged(stripe.stripe, place, row, text);
        } else if let Content::Block(data) = content {
            found.content = Some(data.clone());
        }
        found
    }

    /// Puts together what is bad, if the parity can, and compares the parity with all.
    fn check_parity(&self, stripe: &Stripe, row: u32, mut columns: Vec<Column>) {
        let geometry = self.zone.shape.geometry;
        let (p, q) = geometry.parity_places(
            u64::from(stripe.stripe.number),
            usize::from(stripe.stripe.span),
        );
        let parity = |place: Option<usize>| match stripe.block(place?, row) {
            Content::Block(data) => Some(data.clone()),
            _ => None,
        };
        let found = [parity(p), parity(q)];
        if columns.iter().any(Column::is_bad) && !self.recover(&mut columns, &found) {
            for column in columns.iter().filter(|column| column.is_bad()) {
                self.lost(column.block);
            }
            return;
        }
        // Whether the parity takes what was lost for zeroes is not certain.
        if columns.iter().any(|column| column.sum == Sum::LOST) {
            return;
        }
        self.subject.count(|counts| counts.parity_rows += 1);
        let right = self.parity_of(&columns);
        for (place, right) in [p, q].into_iter().zip(right) {
            let Some(place) = place else { continue };
            match stripe.block(place, row) {
                Content::Absent => {}
                Content::Unreadable(why) => self.damaged(stripe.stripe, place, row, why),
                Content::Block(data) if data.bytes() == Some(&right) => {}
                Content::Block(_) => {
                    let text = "this block of parity is not that of the data";
                    self.damaged(stripe.stripe, place, row, text);
                }
            }
        }
    }

    /// Whether the bad columns come out of the others and the parity as their sums say.
    fn recover(&self, columns: &mut [Column], [p, q]: &[Option<Slice>; 2]) -> bool {
        let bad: Vec<usize> = (0..columns.len())
            .filter(|column| columns[*column].is_bad())
            .collect();
        for (p, q) in [(p, &None), (&None, q), (p, q)] {
            if bad.len() > usize::from(p.is_some()) + usize::from(q.is_some()) {
                continue;
            }
            let known: Vec<Option<&[u8]>> = columns
                .iter()
                .map(|column| column.content.as_ref().and_then(Slice::bytes))
                .collect();
            let solved = parity::solve(
                &known,
                &bad,
                p.as_ref().and_then(Slice::bytes),
                q.as_ref().and_then(Slice::bytes),
            );
            let Some(solved) = solved else { continue };
            let found: Vec<Slice> = solved
                .iter()
                .map(|bytes| self.buffers().copy_of(bytes).freeze())
                .collect();
            let mut pairs = bad.iter().zip(&found);
            if pairs.all(|(column, data)| Sum::of(data) == columns[*column].sum) {
                for (column, data) in bad.iter().zip(found) {
                    columns[*column].content = Some(data);
                }
                return true;
            }
        }
        false
    }

    fn parity_of(&self, columns: &[Column]) -> [Vec<u8>; 2] {
        let (mut p, mut q) = (vec![0; BLOCK_BYTES], vec![0; BLOCK_BYTES]);
        let known: Vec<Option<&[u8]>> = columns
            .iter()
            .map(|column| column.content.as_ref().and_then(Slice::bytes))
            .collect();
        match self.zone.shape.geometry.code {
            Code::PQ => parity::pq_of(&mut p, &mut q, &known),
            _ => parity::p_of(&mut p, &known),
        }
        [p, q]
    }
}
