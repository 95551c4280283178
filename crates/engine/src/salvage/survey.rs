//! The survey of all labels on the drives of a pool, of all its lanes.

use super::refuse;
use crate::drive::Drive;
use crate::drives::Limits;
use crate::drives::NamedDrive;
use crate::drives::heartbeat;
use crate::drives::hung::in_time;
use crate::error::{PoolError, PoolErrorKind};
use crate::label::{Label, SLOT_BYTES, SLOT_OFFSETS, Slot, other_version};
use crate::lane::Part;
use crate::world::World;
use base::{BLOCK_BYTES, DriveOffset, Uuid};
use std::collections::BTreeMap;
use std::rc::Rc;

/// How far into a drive labels of any lane are looked for when no drive has one of the
/// first, and in pieces of how much.
const SCANNED_BYTES: u64 = 2 << 30;
const PIECE_BYTES: u64 = 1 << 20;

/// A drive, and what its label slots hold.
pub(super) struct Surveyed<W: World> {
    pub name: String,
    pub drive: Rc<W::Drive>,
    /// Of each lane that has one there, the newest.
    pub labels: BTreeMap<u16, Label>,
    /// Lanes whose slots can't be read, and why.
    pub unreadable: BTreeMap<u16, String>,
}

/// The drives of one pool.
pub(super) struct Survey<W: World> {
    pub drives: Vec<Surveyed<W>>,
    /// Of each lane, the newest label: what it says is so.
    pub newest: Vec<Label>,
}

impl<W: World> Survey<W> {
    pub async fn make(world: &W, drives: Vec<NamedDrive<W>>) -> Result<Survey<W>, PoolError> {
        if drives.is_empty() {
            let context = "labels can't be salvaged without drives".to_owned();
            return refuse(PoolErrorKind::Invalid, context);
        }
        heartbeat::wait_for_others(world, &drives, Part::WHOLE).await?;
        let mut surveyed: Vec<Surveyed<W>> = Vec::new();
        for NamedDrive { name, drive } in drives {
            let mut drive = Surveyed {
                name,
                drive: Rc::new(drive),
                labels: BTreeMap::new(),
                unreadable: BTreeMap::new(),
            };
            drive.read(world, Part::WHOLE).await?;
            surveyed.push(drive);
        }
        let part = part_of(world, &surveyed).await?;
        for drive in &mut surveyed {
            for lane in 0..part.lanes {
                drive.read(world, Part { lane, ..part }).await?;
            }
        }
        let newest = (0..part.lanes).map(|lane| newest(&surveyed, lane));
        let newest = newest.collect::<Result<Vec<Label>, PoolError>>()?;
        let survey = Survey {
            drives: surveyed,
            newest,
        };
        survey.check_one_pool()?;
        Ok(survey)
    }

    fn check_one_pool(&self) -> Result<(), PoolError> {
        let pool = &self.newest[0].pool;
        for drive in &self.drives {
            for label in drive.labels.values() {
                let (own, theirs) = (&label.pool, pool);
                if own.uuid != theirs.uuid {
                    let context = format!(
                        "drive '{}' has a label of pool '{}' ({}), and others of pool '{}' ({}): look at one pool at a time",
                        drive.name, own.name, own.uuid, theirs.name, theirs.uuid
                    );
                    return refuse(PoolErrorKind::Foreign, context);
                }
                if (own.lanes, own.data_start) != (theirs.lanes, theirs.data_start) {
                    let context = format!(
                        "drive '{}' says that its pool is laid out in another way than others say: nothing is certain then",
                        drive.name
                    );
                    return refuse(PoolErrorKind::Corrupt, context);
                }
            }
        }
        Ok(())
    }
}

impl<W: World> Surveyed<W> {
    /// Reads both slots of a lane.
    async fn read(&mut self, world: &W, part: Part) -> Result<(), PoolError> {
        for offset in SLOT_OFFSETS {
            let at = part.place(DriveOffset(offset), SLOT_BYTES as u64);
            if at.0 + SLOT_BYTES as u64 > self.drive.geometry().capacity_bytes {
                continue;
            }
            let buf = world.buffers().bytes(SLOT_BYTES);
            let read = in_time(world, Limits::default().hung, self.drive.read(at, buf)).await;
            let Some((buf, outcome)) = read else {
                let text = "it does not answer".to_owned();
                self.unreadable.insert(part.lane, text);
                return Ok(());
            };
            if let Err(error) = outcome {
                self.unreadable.insert(part.lane, error.to_string());
                continue;
            }
            match Label::decode(buf.bytes().unwrap_or_default()) {
                Slot::Empty => {}
                Slot::Other(version) => {
                    let context = format!("drive '{}': {}", self.name, other_version(version));
                    return refuse(PoolErrorKind::Version, context);
                }
                // One that went astray says nothing here.
                Slot::Label(label) if label.pool.lane != part.lane => {}
                Slot::Label(label) => self.keep(*label),
            }
        }
        Ok(())
    }

    fn keep(&mut self, label: Label) {
        let before = self.labels.get(&label.pool.lane);
        if before.is_none_or(|before| before.generation < label.generation) {
            self.labels.insert(label.pool.lane, label);
        }
    }

    /// Which drive the current labels say that this is: of other lanes than `lane`, and
    /// which of them says so.
    pub fn named_by_others(&self, newest: &[Label], lane: u16) -> Option<(Uuid, u16)> {
        let mut others = self.labels.values().filter(|label| {
            let newest = &newest[usize::from(label.pool.lane)];
            label.pool.lane != lane && label.generation + 1 >= newest.generation
        });
        others.find_map(|label| {
            let newest = &newest[usize::from(label.pool.lane)];
            let mut members = newest.members.iter();
            let is_listed = members.any(|member| member.uuid == label.drive_uuid);
            is_listed.then_some((label.drive_uuid, label.pool.lane))
        })
    }
}

/// Where labels of lanes are: any label says it.
async fn part_of<W: World>(world: &W, drives: &[Surveyed<W>]) -> Result<Part, PoolError> {
    if let Some(label) = drives.iter().find_map(|drive| drive.labels.get(&0)) {
        return Ok(label.pool.part());
    }
    for drive in drives {
        if let Some(label) = scan(world, drive).await {
            return Ok(Part {
                lane: 0,
                ..label.pool.part()
            });
        }
    }
    let failure = drives.iter().find_map(|drive| {
        let (_, why) = drive.unreadable.first_key_value()?;
        Some(format!("drive '{}': {why}", drive.name))
    });
    match failure {
        Some(failure) => refuse(PoolErrorKind::Drive, failure),
        None => refuse(
            PoolErrorKind::Unlabelled,
            "no lane has a label on any of the drives: nothing says which pool they are of"
                .to_owned(),
        ),
    }
}

/// The first label on a drive that lies where it says that it does.
async fn scan<W: World>(world: &W, drive: &Surveyed<W>) -> Option<Label> {
    let end = drive.drive.geometry().capacity_bytes.min(SCANNED_BYTES);
    let mut at = 0;
    while at < end {
        let len = (end - at).min(PIECE_BYTES + SLOT_BYTES as u64) as usize;
        let buf = world.buffers().bytes(len / BLOCK_BYTES * BLOCK_BYTES);
        let (buf, read) = drive.drive.read(DriveOffset(at), buf).await;
        let bytes = match &read {
            Ok(()) => buf.bytes().unwrap_or_default(),
            Err(_) => &[],
        };
        for from in (0..PIECE_BYTES as usize).step_by(BLOCK_BYTES) {
            let Some(slot) = bytes.get(from..from + SLOT_BYTES) else {
                break;
            };
            if let Slot::Label(label) = Label::decode(slot)
                && lies_at(&label, at + from as u64)
            {
                return Some(*label);
            }
        }
        at += PIECE_BYTES;
    }
    None
}

fn lies_at(label: &Label, at: u64) -> bool {
    let slot = DriveOffset(SLOT_OFFSETS[(label.generation % 2) as usize]);
    label.pool.part().place(slot, SLOT_BYTES as u64).0 == at
}

/// The newest label of a lane, when those of its generation say one thing.
fn newest<W: World>(drives: &[Surveyed<W>], lane: u16) -> Result<Label, PoolError> {
    let labels = || {
        drives.iter().filter_map(|drive| {
            let label = drive.labels.get(&lane)?;
            Some((&drive.name, label))
        })
    };
    let Some((name, newest)) = labels().max_by_key(|(_, label)| label.generation) else {
        let context = format!(
            "no drive has a label of lane {lane}: what it says beside the tables (its salt, its epoch, which drives carry its metadata and its logs) is nowhere else"
        );
        return refuse(PoolErrorKind::Unlabelled, context);
    };
    if newest.generation == 1 {
        let context = format!(
            "the creation of pool '{}' was cut short and it holds nothing",
            newest.pool.name
        );
        return refuse(PoolErrorKind::Unlabelled, context);
    }
    let mut seen: BTreeMap<Uuid, &str> = BTreeMap::new();
    for (other, label) in labels() {
        if let Some(twin) = seen.insert(label.drive_uuid, other) {
            let context = format!(
                "drives '{twin}' and '{other}' are the same drive ({}), or one is a copy of the other: leave one of them out",
                label.drive_uuid
            );
            return refuse(PoolErrorKind::Invalid, context);
        }
        let theirs = Label {
            drive_uuid: newest.drive_uuid,
            ..label.clone()
        };
        if label.generation == newest.generation && theirs != *newest {
            let context = format!(
                "the labels of lane {lane} on drives '{name}' and '{other}' are of one generation and differ: the drives were used apart, and nothing says which of them is right"
            );
            return refuse(PoolErrorKind::Corrupt, context);
        }
    }
    Ok(newest.clone())
}
