//! The description of a volume beside its content: its name, its origin, the attributes that people
//! attach, and whether it is in the trash.
//!
//! Invariants:
//! - It changes by records only ([`Property`]), as all of the metadata does.
//! - No property is longer than [`super::record::RECORD_BYTES_MAX`], and all properties of a pool
//!   together fit its checkpoint slots: that is checked before one is journalled.

use crate::codec::{Reader, Writer};
use crate::label::NAME_BYTES_MAX;
use base::Uuid;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;

/// Bytes of an attribute's key, at most.
pub const KEY_BYTES_MAX: usize = 23;
/// Bytes of an attribute's value, at most.
pub const VALUE_BYTES_MAX: usize = 64;
/// Attributes of a volume, at most.
pub const ATTRIBUTES_MAX: usize = 32;

/// Key of the attribute of volumes that nobody is shown: those that hold data for a time,
/// and go at the next start at the latest.
pub const HIDDEN: &str = "/hidden";

/// Bytes of a piece of a memo, at most.
pub const MEMO_PIECE_BYTES: usize = 80;
/// Bytes of a memo, at most.
pub const MEMO_BYTES_MAX: usize = 64 << 10;

/// Bytes of properties that a checkpoint slot is laid out for, for each volume.
pub const PROPERTIES_BYTES: u64 = 128;

/// Bytes of the property that puts a volume into the trash.
pub const TRASHED_BYTES: u64 = (HEAD_BYTES + 8) as u64;

/// Bytes of the property that says that a volume is on its way.
const TRANSIT_BYTES: u64 = (HEAD_BYTES + 1 + 16 + NAME_BYTES_MAX) as u64;

/// Where a snapshot or a clone was taken from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Identity of the volume that it was taken from.
    pub uuid: Uuid,
    /// What that was called then.
    pub name: String,
    /// When, in seconds since 1970, as far as the one who asked knew.
    pub at_unix_s: u64,
}

/// How far a volume is on its way from one pool to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// A copy in the making: nobody's volume yet. The other pool has the volume.
    Incoming,
    /// It is about to be the other pool's, unless this is called off.
    Leaving,
    /// It is this pool's, unless the other has called that off.
    Arrived,
}

/// A volume on its way from one pool to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transit {
    /// How far it is.
    pub stage: Stage,
    /// Identity of the other pool.
    pub pool: Uuid,
    /// What that is called.
    pub pool_name: String,
}

/// A change of one property of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Property {
    /// It was taken from another volume.
    Origin(Origin),
    /// It is called so from now on.
    Name(String),
    /// It has this attribute; none when the value is empty.
    Attribute { key: String, value: String },
    /// It is in the trash, since then, in seconds since 1970.
    Trashed { at_unix_s: u64 },
    /// It is not in the trash any more.
    Recovered,
    /// It is on its way to or from another pool, or is so no more.
    Transit(Option<Transit>),
    /// This piece of its memo; none when there are no bytes.
    Memo { piece: u16, bytes: Vec<u8> },
}

const ORIGIN: u8 = 40;
const NAME: u8 = 41;
const ATTRIBUTE: u8 = 42;
const TRASHED: u8 = 43;
const RECOVERED: u8 = 44;
const TRANSIT: u8 = 60;
const MEMO: u8 = 61;

/// Stages of a [`Transit`] in journal and checkpoint.
const SETTLED: u8 = 0;
const INCOMING: u8 = 1;
const LEAVING: u8 = 2;
const ARRIVED: u8 = 3;

/// Bytes before what the property says: code, volume.
const HEAD_BYTES: usize = 1 + 4;

impl Property {
    /// Its code in journal and checkpoint.
    pub(super) fn code(&self) -> u8 {
        match self {
            Property::Origin(_) => ORIGIN,
            Property::Name(_) => NAME,
            Property::Attribute { .. } => ATTRIBUTE,
            Property::Trashed { .. } => TRASHED,
            Property::Recovered => RECOVERED,
            Property::Transit(_) => TRANSIT,
            Property::Memo { .. } => MEMO,
        }
    }

    /// Appends what follows code and volume.
    pub(super) fn encode(&self, w: &mut Writer) {
        match self {
            Property::Origin(origin) => {
                w.uuid(origin.uuid);
                w.u64(origin.at_unix_s);
                w.name(&origin.name, NAME_BYTES_MAX);
            }
            Property::Name(name) => w.name(name, NAME_BYTES_MAX),
            Property::Attribute { key, value } => {
                for text in [key, value] {
                    // Checked when it came in.
                    w.u8(text.len() as u8);
                    w.bytes.extend_from_slice(text.as_bytes());
                }
            }
            Property::Trashed { at_unix_s } => w.u64(*at_unix_s),
            Property::Recovered => {}
            Property::Transit(None) => w.u8(SETTLED),
            Property::Transit(Some(transit)) => {
                w.u8(match transit.stage {
                    Stage::Incoming => INCOMING,
                    Stage::Leaving => LEAVING,
                    Stage::Arrived => ARRIVED,
                });
                w.uuid(transit.pool);
                w.name(&transit.pool_name, NAME_BYTES_MAX);
            }
            Property::Memo { piece, bytes } => {
                w.u16(*piece);
                // Checked when it came in.
                w.u8(bytes.len() as u8);
                w.bytes.extend_from_slice(bytes);
            }
        }
    }

    /// Takes off `r` what follows code and volume; `None` when it is no property.
    pub(super) fn decode(code: u8, r: &mut Reader<'_>) -> Option<Property> {
        Some(match code {
            ORIGIN => Property::Origin(Origin {
                uuid: r.uuid()?,
                at_unix_s: r.u64()?,
                name: r.name(NAME_BYTES_MAX)?,
            }),
            NAME => Property::Name(r.name(NAME_BYTES_MAX)?),
            ATTRIBUTE => Property::Attribute {
                key: text(r, KEY_BYTES_MAX)?,
                value: text(r, VALUE_BYTES_MAX)?,
            },
            TRASHED => Property::Trashed {
                at_unix_s: r.u64()?,
            },
            RECOVERED => Property::Recovered,
            TRANSIT => Property::Transit(transit(r)?),
            MEMO => memo(r)?,
            _ => return None,
        })
    }

    /// Bytes that a checkpoint takes more for it, at most.
    fn more_bytes(&self) -> u64 {
        match self {
            Property::Name(_) | Property::Recovered | Property::Transit(None) => 0,
            // Counted for every volume, so that there is room for it always.
            Property::Trashed { .. } => 0,
            Property::Attribute { value, .. } if value.is_empty() => 0,
            Property::Memo { bytes, .. } if bytes.is_empty() => 0,
            property => property.bytes(),
        }
    }

    /// Bytes that it takes, with code and volume.
    pub fn bytes(&self) -> u64 {
        let mut w = Writer::default();
        self.encode(&mut w);
        (HEAD_BYTES + w.bytes.len()) as u64
    }
}

/// `None` when it is neither a stage nor none.
fn transit(r: &mut Reader<'_>) -> Option<Option<Transit>> {
    let stage = match r.u8()? {
        SETTLED => return Some(None),
        INCOMING => Stage::Incoming,
        LEAVING => Stage::Leaving,
        ARRIVED => Stage::Arrived,
        _ => return None,
    };
    Some(Some(Transit {
        stage,
        pool: r.uuid()?,
        pool_name: r.name(NAME_BYTES_MAX)?,
    }))
}

fn memo(r: &mut Reader<'_>) -> Option<Property> {
    let piece = r.u16()?;
    let len = usize::from(r.u8()?);
    let bytes = r.take(len).filter(|_| len <= MEMO_PIECE_BYTES)?;
    Some(Property::Memo {
        piece,
        bytes: bytes.to_vec(),
    })
}

fn text(r: &mut Reader<'_>, most: usize) -> Option<String> {
    let len = usize::from(r.u8()?);
    let bytes = r.take(len).filter(|_| len <= most)?;
    String::from_utf8(bytes.to_vec()).ok()
}

/// A name that can change.
#[derive(Debug, Default)]
pub struct Name(RefCell<String>);

impl Name {
    pub fn new(name: &str) -> Self {
        Name(RefCell::new(name.to_owned()))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.borrow())
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        *self.0.borrow() == *other
    }
}

/// The properties of a volume at an instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeProperties {
    /// Where it was taken from, if it is a snapshot or a clone.
    pub origin: Option<Origin>,
    /// What people, and programs that serve it, attached to it.
    pub attributes: BTreeMap<String, String>,
    /// Since when it is in the trash, in seconds since 1970.
    pub trashed_unix_s: Option<u64>,
    /// Where it comes from or goes to, while it is on its way.
    pub transit: Option<Transit>,
    /// What those who serve it have to remember of it, in pieces.
    pub memo: BTreeMap<u16, Vec<u8>>,
}

impl VolumeProperties {
    /// The properties that make another memo of the one there is; those that say nothing new
    /// are left out.
    pub fn new_memo(&self, memo: &[u8]) -> Vec<Property> {
        let chunks: Vec<&[u8]> = memo.chunks(MEMO_PIECE_BYTES).collect();
        let pieces = chunks.iter().enumerate();
        let pieces = pieces.map(|(piece, bytes)| (piece as u16, bytes.to_vec()));
        let changed = pieces.filter(|(piece, bytes)| self.memo.get(piece) != Some(bytes));
        let gone = self
            .memo
            .keys()
            .filter(|piece| usize::from(**piece) >= chunks.len());
        let gone = gone.map(|piece| (*piece, Vec::new()));
        let property = |(piece, bytes)| Property::Memo { piece, bytes };
        changed.chain(gone).map(property).collect()
    }

    /// The memo, whole; empty when there is none.
    pub fn whole_memo(&self) -> Vec<u8> {
        self.memo.values().flatten().copied().collect()
    }
}

/// The properties of a volume, but its name, as records change them.
#[derive(Debug, Default)]
pub struct LiveProperties {
    now: RefCell<VolumeProperties>,
    trashed: Cell<bool>,
    hidden: Cell<bool>,
    stage: Cell<Option<Stage>>,
}

impl LiveProperties {
    /// One more property, which is durable.
    pub(super) fn apply(&self, name: &Name, property: &Property) {
        let mut now = self.now.borrow_mut();
        match property {
            Property::Origin(origin) => now.origin = Some(origin.clone()),
            Property::Name(new) => {
                name.0.replace(new.clone());
            }
            Property::Attribute { key, value } if value.is_empty() => {
                now.attributes.remove(key);
            }
            Property::Attribute { key, value } => {
                now.attributes.insert(key.clone(), value.clone());
            }
            Property::Trashed { at_unix_s } => now.trashed_unix_s = Some(*at_unix_s),
            Property::Recovered => now.trashed_unix_s = None,
            Property::Transit(transit) => now.transit = transit.clone(),
            Property::Memo { piece, bytes } if bytes.is_empty() => {
                now.memo.remove(piece);
            }
            Property::Memo { piece, bytes } => {
                now.memo.insert(*piece, bytes.clone());
            }
        }
        self.stage
            .set(now.transit.as_ref().map(|transit| transit.stage));
        self.trashed.set(now.trashed_unix_s.is_some());
        self.hidden.set(now.attributes.contains_key(HIDDEN));
    }

    /// All of them, as they are now.
    pub fn get(&self) -> VolumeProperties {
        self.now.borrow().clone()
    }

    /// Whether it is in the trash.
    pub fn is_trashed(&self) -> bool {
        self.trashed.get()
    }

    /// Whether nobody is shown it.
    pub fn is_hidden(&self) -> bool {
        self.hidden.get()
    }

    /// How far it is on its way between pools, if it is.
    pub fn stage(&self) -> Option<Stage> {
        self.stage.get()
    }

    /// Bytes that a checkpoint takes more when this is said, too, at most.
    pub fn more_bytes(&self, property: &Property) -> u64 {
        let now = self.now.borrow();
        let before = match property {
            Property::Attribute { key, .. } => {
                let before = now.attributes.get_key_value(key);
                before.map(|(key, value)| (HEAD_BYTES + 2 + key.len() + value.len()) as u64)
            }
            Property::Transit(_) => now.transit.as_ref().map(|_| TRANSIT_BYTES),
            Property::Memo { piece, .. } => {
                let before = now.memo.get(piece);
                before.map(|bytes| (HEAD_BYTES + 3 + bytes.len()) as u64)
            }
            _ => None,
        };
        property.more_bytes().saturating_sub(before.unwrap_or(0))
    }

    /// Bytes that they take in a checkpoint.
    pub(super) fn bytes(&self) -> u64 {
        self.as_records().iter().map(Property::bytes).sum()
    }

    /// The properties that say all of this again.
    pub fn as_records(&self) -> Vec<Property> {
        let now = self.get();
        let origin = now.origin.map(Property::Origin);
        let attribute = |(key, value)| Property::Attribute { key, value };
        let trashed = now.trashed_unix_s;
        let trashed = trashed.map(|at_unix_s| Property::Trashed { at_unix_s });
        let attributes = now.attributes.into_iter().map(attribute);
        let transit = now.transit.map(|transit| Property::Transit(Some(transit)));
        let memo = now.memo.into_iter();
        let memo = memo.map(|(piece, bytes)| Property::Memo { piece, bytes });
        origin
            .into_iter()
            .chain(attributes)
            .chain(trashed)
            .chain(transit)
            .chain(memo)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::record::RECORD_BYTES_MAX;
    use crate::meta::{Record, VolumeId};

    fn longest() -> Vec<Property> {
        vec![
            Property::Origin(Origin {
                uuid: Uuid::from_u128(7),
                name: "o".repeat(NAME_BYTES_MAX),
                at_unix_s: 1_800_000_000,
            }),
            Property::Name("n".repeat(NAME_BYTES_MAX)),
            Property::Attribute {
                key: "k".repeat(KEY_BYTES_MAX),
                value: "ä".repeat(VALUE_BYTES_MAX / 2),
            },
            Property::Attribute {
                key: "gone".to_owned(),
                value: String::new(),
            },
            Property::Trashed { at_unix_s: 5 },
            Property::Recovered,
            on_its_way(Stage::Incoming),
            on_its_way(Stage::Leaving),
            on_its_way(Stage::Arrived),
            Property::Transit(None),
            Property::Memo {
                piece: u16::MAX,
                bytes: vec![0xa5; MEMO_PIECE_BYTES],
            },
            Property::Memo {
                piece: 7,
                bytes: Vec::new(),
            },
        ]
    }

    fn on_its_way(stage: Stage) -> Property {
        Property::Transit(Some(Transit {
            stage,
            pool: Uuid::from_u128(8),
            pool_name: "p".repeat(NAME_BYTES_MAX),
        }))
    }

    #[test]
    fn words_come_back_as_they_were_written_and_fit_a_record() {
        let mut w = Writer::default();
        let id = VolumeId(9);
        for property in longest() {
            let before = w.bytes.len();
            Record::Property(id, property.clone()).encode(&mut w);
            let bytes = w.bytes.len() - before;
            assert_eq!(bytes as u64, property.bytes());
            assert!(bytes <= RECORD_BYTES_MAX, "{property:?}");
        }
        let mut r = Reader::new(&w.bytes);
        for property in longest() {
            assert_eq!(Record::decode(&mut r), Some(Record::Property(id, property)));
        }
        assert!(r.is_empty());
    }

    #[test]
    fn a_word_that_is_cut_short_too_long_or_no_text_is_none() {
        for property in longest() {
            let mut w = Writer::default();
            Record::Property(VolumeId(1), property).encode(&mut w);
            for len in 0..w.bytes.len() {
                assert_eq!(Record::decode(&mut Reader::new(&w.bytes[..len])), None);
            }
        }
        let long = [&[ATTRIBUTE, 0, 0, 0, 0, 24][..], &[b'k'; 80]].concat();
        assert_eq!(Record::decode(&mut Reader::new(&long)), None);
        let garbage = [ATTRIBUTE, 0, 0, 0, 0, 1, 0xff, 0, 0, 0];
        assert_eq!(Record::decode(&mut Reader::new(&garbage)), None);
    }

    #[test]
    fn a_memo_changes_by_the_pieces_that_differ() {
        let (name, properties) = (Name::new("a"), LiveProperties::default());
        let remember = |memo: &[u8]| {
            let said = properties.get().new_memo(memo);
            let more: u64 = said
                .iter()
                .map(|property| properties.more_bytes(property))
                .sum();
            let before = properties.bytes();
            said.iter()
                .for_each(|property| properties.apply(&name, property));
            assert_eq!(properties.get().whole_memo(), memo);
            assert!(
                properties.bytes() <= before + more,
                "{} of {more}",
                properties.bytes()
            );
            said.len()
        };
        let long: Vec<u8> = (0..=255).collect();
        assert_eq!(remember(&long), 4);
        let mut other = long.clone();
        other[100] = 0;
        assert_eq!(remember(&other), 1, "one piece differs");
        assert_eq!(remember(&other), 0);
        assert_eq!(remember(&other[..80]), 3, "three go");
        assert_eq!(remember(&[]), 1);
        assert_eq!(properties.bytes(), 0);
    }

    #[test]
    fn the_last_word_counts_and_all_words_say_it_again() {
        let (name, properties) = (Name::new("a"), LiveProperties::default());
        for property in longest() {
            properties.apply(&name, &property);
        }
        assert_eq!(name.to_string(), "n".repeat(NAME_BYTES_MAX));
        assert!(!properties.is_trashed());
        let attribute = |value: &str| Property::Attribute {
            key: "k".repeat(KEY_BYTES_MAX),
            value: value.to_owned(),
        };
        properties.apply(&name, &attribute("second"));
        properties.apply(&name, &Property::Trashed { at_unix_s: 6 });
        let leaving = on_its_way(Stage::Leaving);
        assert_eq!(properties.more_bytes(&leaving), leaving.bytes());
        properties.apply(&name, &leaving);
        assert_eq!(properties.more_bytes(&on_its_way(Stage::Arrived)), 0);
        let again = LiveProperties::default();
        for property in properties.as_records() {
            again.apply(&name, &property);
        }
        assert_eq!(again.get(), properties.get());
        assert!(again.is_trashed());
        assert_eq!(again.stage(), Some(Stage::Leaving));
        assert_eq!(again.get().attributes.len(), 1);
        assert_eq!(properties.more_bytes(&attribute("")), 0);
        assert_eq!(properties.more_bytes(&attribute("2nd")), 0, "shorter");
        assert_eq!(properties.more_bytes(&attribute("the second")), 4);
        let trashed = Property::Trashed { at_unix_s: 6 };
        assert_eq!(trashed.bytes(), TRASHED_BYTES);
        properties.apply(&name, &attribute(""));
        assert!(properties.get().attributes.is_empty());
    }
}
