//! Drives that a lane has no use for, or that have no label of the lane.
//!
//! A drive belongs to its pool when any lane has a label there. Where those of the other
//! lanes lie follows from the labels of the pool's other drives.

use super::label_reads::read_slots;
use super::{LabelSummary, Lane, PoolError, PoolErrorKind};
use crate::drive::Drive;
use crate::drives::Leftover;
use crate::label::Label;
use crate::lane::{Part, View};
use crate::world::World;
use std::collections::BTreeMap;
use std::rc::Rc;

impl<W: World> Lane<W> {
    /// Reads the label that any lane has on a drive, where it is to be looked for as on
    /// other drives: of the pools that `known` says. `None` when it has none of them; for
    /// drives on which [`Lane::probe`] finds none.
    ///
    /// # Errors
    /// As [`Lane::probe`].
    pub async fn probe_beside(
        world: &W,
        drive: &W::Drive,
        known: &[LabelSummary],
    ) -> Result<Option<LabelSummary>, PoolError> {
        let mut seen: Vec<Part> = Vec::new();
        for part in known.iter().map(|label| label.part) {
            if seen.contains(&part) {
                continue;
            }
            seen.push(part);
            let labels = labels_of_others(world, drive, part).await?;
            let ours = |label: &&Label| {
                let mut known = known.iter();
                known.any(|known| known.pool_uuid == label.pool.uuid && known.part == part)
            };
            if let Some(label) = labels.iter().find(ours) {
                return Ok(LabelSummary::of(label));
            }
        }
        Ok(None)
    }

    /// Whether a drive has a label of this lane of the pool that another label, `known`, is of.
    ///
    /// # Errors
    /// As [`Lane::probe`].
    pub async fn has_label(
        world: &W,
        drive: &W::Drive,
        known: &LabelSummary,
        lane: u16,
    ) -> Result<bool, PoolError> {
        let part = Part { lane, ..known.part };
        let label = read_slots(world, drive, part).await?;
        Ok(label.is_some_and(|label| label.pool.uuid == known.pool_uuid))
    }
}

impl LabelSummary {
    /// What a label says of its drive; `None` when its own table has it not.
    pub(super) fn of(label: &Label) -> Option<LabelSummary> {
        let mut members = label.members.iter();
        let own = members.find(|member| member.uuid == label.drive_uuid)?;
        Some(LabelSummary {
            pool_uuid: label.pool.uuid,
            pool_name: label.pool.name.clone(),
            drive_uuid: label.drive_uuid,
            group: own.group,
            place: own.place,
            part: Part {
                lane: 0,
                ..label.pool.part()
            },
            is_clean: label.clean,
        })
    }
}

/// The labels of all lanes but that of `part`.
async fn labels_of_others<W: World>(
    world: &W,
    drive: &impl Drive,
    part: Part,
) -> Result<Vec<Label>, PoolError> {
    let mut labels = Vec::new();
    for lane in (0..part.lanes).filter(|lane| *lane != part.lane) {
        labels.extend(read_slots(world, drive, Part { lane, ..part }).await?);
    }
    Ok(labels)
}

/// Of the drives that are no members of the pool's `newest` table, those that are to be
/// wiped, by group: their groups have left. What is to be said of the others goes to
/// `notes`.
pub(super) async fn leftovers<W: World>(
    world: &W,
    newest: &Label,
    strangers: Vec<(String, View<W::Drive>, Label)>,
    notes: &mut Vec<(PoolErrorKind, String)>,
) -> BTreeMap<u16, Vec<Leftover<W::Drive>>> {
    let mut found: BTreeMap<u16, Vec<Leftover<W::Drive>>> = BTreeMap::new();
    for (name, drive, label) in strangers {
        let mut members = label.members.iter();
        let entry = members.find(|member| member.uuid == label.drive_uuid);
        let has_left = |group: u16| {
            let group = newest.groups.get(usize::from(group));
            group.is_some_and(|group| group.drives == 0)
        };
        if let Some(entry) = entry.filter(|entry| has_left(entry.group))
            && is_nothing_else(world, &drive, &label).await
        {
            let entry = entry.clone();
            let group = found.entry(entry.group).or_default();
            group.push(Leftover { name, drive, entry });
            continue;
        }
        let pool = &newest.pool.name;
        notes.push((
            PoolErrorKind::Stale,
            format!(
                "drive '{name}' is not a member of pool '{pool}' any more: `ashlar drive replace \
                 {name}` adds it as a spare, `ashlar drive remove {name}` forgets it"
            ),
        ));
    }
    found
}

/// Whether no other lane says that a drive is another than its old label here says: it came
/// back to the pool, and this lane has not heard of it yet.
async fn is_nothing_else<W: World>(world: &W, drive: &View<W::Drive>, label: &Label) -> bool {
    let others = labels_of_others(world, drive.whole().as_ref(), label.pool.part()).await;
    let same = |other: &Label| other.drive_uuid == label.drive_uuid;
    others.is_ok_and(|others| others.iter().all(same))
}

/// Says of drives without a label of a lane why it can't use them, if it should.
pub(super) async fn unlabelled<W: World>(
    world: &W,
    newest: &Label,
    drives: Vec<(String, Rc<W::Drive>)>,
    notes: &mut Vec<(PoolErrorKind, String)>,
) {
    for (name, drive) in drives {
        let others = labels_of_others(world, drive.as_ref(), newest.pool.part()).await;
        let others = others.unwrap_or_default();
        let ours = others
            .iter()
            .find(|label| label.pool.uuid == newest.pool.uuid);
        let text = match ours {
            None => has_no_label(&name),
            Some(label) => {
                let mut members = newest.members.iter();
                if members.all(|member| member.uuid != label.drive_uuid) {
                    // This lane has let it go, or does not have it yet.
                    continue;
                }
                format!(
                    "drive '{name}' has lost its labels of lane {}, and has one of lane {}: `ashlar pool salvage` says whether they can be written again",
                    newest.pool.lane, label.pool.lane
                )
            }
        };
        notes.push((PoolErrorKind::Unlabelled, text));
    }
}

/// What is to be said of a drive without any label.
pub(super) fn has_no_label(name: &str) -> String {
    format!("drive '{name}' has no label: it belongs to no pool, or was replaced")
}
