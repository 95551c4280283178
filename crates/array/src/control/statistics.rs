//! I/O statistics of volumes, initiators and sessions, over all shards.

use super::{ArrayError, ControlPlane, PlacedVolume};
use crate::shard::{Counted, CountedSession};
use engine::World;
use std::collections::BTreeMap;

impl<W: World> ControlPlane<W> {
    /// What was done at each volume, by name; at snapshots, if anything was.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn volume_totals(&self) -> Result<Vec<(PlacedVolume, Counted)>, ArrayError> {
        let mut all: BTreeMap<base::Uuid, Counted> = BTreeMap::new();
        for shard in &self.shards {
            let here = shard.call(|state| async move { state.volume_totals() });
            for (volume, counted) in here.await? {
                all.entry(volume).or_default().merge(&counted);
            }
        }
        let volumes = self.volumes().await?.into_iter();
        let counted = volumes.filter_map(|volume| {
            let counted = all.remove(&volume.info.uuid);
            let shown = counted.is_some() || !volume.is_snapshot();
            shown.then(|| (volume, counted.unwrap_or_default()))
        });
        Ok(counted.collect())
    }

    /// What each initiator did, by name.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn initiator_totals(&self) -> Result<BTreeMap<String, Counted>, ArrayError> {
        let mut all: BTreeMap<String, Counted> = BTreeMap::new();
        for shard in &self.shards {
            let here = shard.call(|state| async move { state.initiator_totals() });
            for (name, counted) in here.await? {
                all.entry(name).or_default().merge(&counted);
            }
        }
        Ok(all)
    }

    /// What each connected session did, by TSIH.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn session_totals(&self) -> Result<Vec<CountedSession>, ArrayError> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let here = shard.call(|state| async move { state.session_totals() });
            all.extend(here.await?);
        }
        all.sort_by_key(|session| session.info.tsih);
        Ok(all)
    }
}
