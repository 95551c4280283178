//! Names that volumes are to have, beside those that there are.
//!
//! Invariant: a snapshot is called after its volume as long as it was taken under that name, and keeps
//! up with it.

use super::PlacedVolume;
use engine::pool::SNAPSHOT_MARK;
use std::collections::BTreeMap;

/// A volume, or a snapshot that keeps up with it, under the name that it is to have.
#[derive(Clone, Debug)]
pub struct Renamed<'a> {
    /// As it is before it is renamed.
    pub volume: &'a PlacedVolume,
    /// What it is to be called.
    pub name: String,
}

/// What `volume` and its snapshots are called once it is called `new`, the volume first; `all` are
/// the volumes that there are.
pub fn renamed<'a>(
    volume: &'a PlacedVolume,
    new: &str,
    all: &'a [PlacedVolume],
) -> Vec<Renamed<'a>> {
    let prefix = format!("{}{SNAPSHOT_MARK}", volume.info.name);
    let follower = |snapshot: &'a PlacedVolume| {
        let own = snapshot.info.name.strip_prefix(&prefix)?;
        let name = format!("{new}{SNAPSHOT_MARK}{own}");
        // Only its own keep up with its name, not those of one that was called so.
        snapshot.is_of(volume).then_some(Renamed {
            volume: snapshot,
            name,
        })
    };
    let name = new.to_owned();
    let mut renamed = vec![Renamed { volume, name }];
    renamed.extend(all.iter().filter_map(follower));
    renamed
}

/// What each name of these volumes is the name of.
pub fn by_name(all: &[PlacedVolume]) -> BTreeMap<&str, &PlacedVolume> {
    let named = all.iter().map(|volume| (volume.info.name.as_str(), volume));
    named.collect()
}

impl Renamed<'_> {
    /// The other volume that has its new name, if one has.
    pub fn taken_by<'a>(
        &self,
        by_name: &BTreeMap<&str, &'a PlacedVolume>,
    ) -> Option<&'a PlacedVolume> {
        let there = by_name.get(self.name.as_str()).copied();
        there.filter(|there| there.info.uuid != self.volume.info.uuid)
    }
}
