//! The heads of log entries, encoded and decoded.
//!
//! The data log has changes of blocks by pool address; the intent log has changes of
//! drives, block by block, with the sums that go with them. Bytes: `docs/internals/format.md`,
//! "Data log" and "Intent log". What comes off a drive has passed the ring's
//! checksums; a head that is no head all the same is a newer version's or a bug, and
//! is refused.

use super::address::StripeRef;
use crate::codec::{Reader, Writer};
use crate::integrity::{SUMS_ITEM, SUMS_ON_THEIR_WAY_ITEM, Sum, SumRecord};

/// A change of a run of blocks, in the data log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// `blocks` blocks of the entry's data, in order, from `at` on.
    Data { at: u64, blocks: u32 },
    /// They read as zeroes.
    Zero { at: u64, blocks: u32 },
    /// They were written in place, and these are their sums.
    InPlace { at: u64, sums: Vec<Sum> },
    /// What has changed in an integrity block since its version on the drives.
    Sums(SumRecord),
}

const DATA: u8 = 1;
const ZERO: u8 = 2;
const IN_PLACE: u8 = 3;

/// The head of an entry with these items.
pub fn encode_items(items: &[Item]) -> Vec<u8> {
    let mut w = Writer::default();
    for item in items {
        let (code, at, blocks) = match item {
            Item::Data { at, blocks } => (DATA, at, *blocks),
            Item::Zero { at, blocks } => (ZERO, at, *blocks),
            Item::InPlace { at, sums } => (IN_PLACE, at, sums.len() as u32),
            Item::Sums(record) => {
                record.encode(&mut w);
                continue;
            }
        };
        w.u8(code);
        w.u64(*at);
        w.u32(blocks);
        if let Item::InPlace { sums, .. } = item {
            sums.iter().for_each(|sum| w.u32(sum.0));
        }
    }
    w.bytes
}

/// The items of a head; `None` when it is none.
pub fn decode_items(head: &[u8]) -> Option<Vec<Item>> {
    let mut r = Reader::new(head);
    let mut items = Vec::new();
    while !r.is_empty() {
        let code = r.u8()?;
        let (at, blocks) = (r.u64()?, r.u32()?);
        items.push(match code {
            DATA => Item::Data { at, blocks },
            ZERO => Item::Zero { at, blocks },
            IN_PLACE => {
                let sums = (0..blocks)
                    .map(|_| r.u32().map(Sum))
                    .collect::<Option<_>>()?;
                Item::InPlace { at, sums }
            }
            SUMS_ITEM | SUMS_ON_THEIR_WAY_ITEM => {
                Item::Sums(SumRecord::decode(code, at, blocks, &mut r)?)
            }
            _ => return None,
        });
    }
    Some(items)
}

/// One stripe's part of an intent: what is about to be written where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// The stripe that is about to change.
    pub stripe: StripeRef,
    /// Place in the group, first row, rows: the data follows in this order.
    pub writes: Vec<(u8, u32, u32)>,
    /// Blocks of the zone and their new sums.
    pub sums: Vec<(u64, Sum)>,
}

/// The head of an entry with these intents.
pub fn encode_intents<'a>(intents: impl IntoIterator<Item = &'a Intent>) -> Vec<u8> {
    let mut w = Writer::default();
    for intent in intents {
        w.u32(intent.stripe.zone);
        w.u32(intent.stripe.number);
        w.u16(intent.stripe.span);
        w.u32(intent.writes.len() as u32);
        for (place, row, rows) in &intent.writes {
            w.u8(*place);
            w.u32(*row);
            w.u32(*rows);
        }
        w.u32(intent.sums.len() as u32);
        for (block, sum) in &intent.sums {
            w.u64(*block);
            w.u32(sum.0);
        }
    }
    w.bytes
}

/// The intents of a head; `None` when it is none.
pub fn decode_intents(head: &[u8]) -> Option<Vec<Intent>> {
    let mut r = Reader::new(head);
    let mut intents = Vec::new();
    while !r.is_empty() {
        let stripe = StripeRef {
            zone: r.u32()?,
            number: r.u32()?,
            span: r.u16()?,
        };
        let count = r.u32()?;
        let writes = (0..count)
            .map(|_| Some((r.u8()?, r.u32()?, r.u32()?)))
            .collect::<Option<_>>()?;
        let count = r.u32()?;
        let sums = (0..count)
            .map(|_| Some((r.u64()?, Sum(r.u32()?))))
            .collect::<Option<_>>()?;
        intents.push(Intent {
            stripe,
            writes,
            sums,
        });
    }
    Some(intents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_come_back_and_cut_ones_are_none() {
        let items = [
            Item::Data { at: 7, blocks: 2 },
            Item::Zero {
                at: 1 << 40,
                blocks: 64,
            },
            Item::InPlace {
                at: 3,
                sums: vec![Sum(5), Sum::UNWRITTEN],
            },
            Item::Sums(SumRecord {
                zone: 7,
                incarnation: 2,
                index: 9,
                base: 1 << 33,
                newest: 1 << 33,
                up_to: 77,
                changes: vec![(0, Sum(5)), (1007, Sum::LOST)],
            }),
            Item::Sums(SumRecord {
                zone: 7,
                incarnation: 2,
                index: 10,
                base: 1 << 33,
                newest: (1 << 33) + 1,
                up_to: 78,
                changes: vec![(3, Sum(6))],
            }),
        ];
        let head = encode_items(&items);
        assert_eq!(decode_items(&head).unwrap(), items);
        assert_eq!(decode_items(&head[..head.len() - 1]), None);
        assert_eq!(decode_items(&[9; 13]), None);
        let intents = [Intent {
            stripe: StripeRef {
                zone: 1,
                number: 2,
                span: 3,
            },
            writes: vec![(4, 5, 6), (7, 8, 9)],
            sums: vec![(10, Sum::LOST)],
        }];
        let head = encode_intents(&intents);
        assert_eq!(decode_intents(&head).unwrap(), intents);
        assert_eq!(decode_intents(&head[..head.len() - 1]), None);
    }
}
