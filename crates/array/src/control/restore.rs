//! Has an array be what its record says, at the start and when pools come late.
//!
//! Volumes are found by identity: a name may have changed just before the last stop.

use super::{ArrayError, Configuration, ControlPlane, Export, PlacedVolume};
use engine::World;
use std::collections::BTreeMap;
use std::sync::Arc;

impl<W: World> ControlPlane<W> {
    /// Takes over what was kept. What can't be served is withheld, so that a start never fails for
    /// what a running array accepted; `is_first` is for what no array has accepted yet.
    ///
    /// # Errors
    /// A shard has stopped; at the first start, what can't be served.
    pub(super) async fn restore_configuration(
        self: &Arc<Self>,
        configuration: Configuration,
        is_first: bool,
    ) -> Result<(), ArrayError> {
        self.begin_with(
            configuration.known,
            configuration.is_complete,
            configuration.is_lost,
        );
        self.directory.set_discovery(configuration.discovery);
        self.unfinished.begin_with(configuration.unfinished);
        let there = self.volumes().await?;
        for mut export in configuration.exports.into_values() {
            follow_names(&mut export, &there);
            if let Some(portal) = self.missing_portal(&export.access) {
                let target = &export.target;
                tracing::warn!("target {target}: the array has no portal {portal}");
            }
            match self.restore_export(export.clone(), None).await {
                Err(error) if is_first => return Err(error),
                Err(error) => self.withhold_export(export, None, error.context).await?,
                Ok(()) => {}
            }
        }
        // Last, because it writes the record.
        if let Err(error) = self.take_back_unfinished().await {
            // The first change tries again.
            tracing::error!("what takes changes back stays on record: {error}");
        }
        Ok(())
    }

    /// Tries those exports again that are withheld. Gives the targets that can't be served for
    /// another reason than that a volume is not there, and why.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn restore_withheld(
        self: &Arc<Self>,
    ) -> Result<BTreeMap<String, String>, ArrayError> {
        let there = self.volumes().await?;
        let mut failed = BTreeMap::new();
        for seen in self.exports() {
            if seen.withheld.is_none() {
                continue;
            }
            let mut export = seen.clone();
            follow_names(&mut export, &there);
            let target = export.target.clone();
            match self.restore_export(export, Some(seen)).await {
                Ok(()) if self.is_served(&target) => {
                    tracing::info!("target {target} is served now")
                }
                Ok(()) => {}
                Err(error) => drop(failed.insert(target, error.to_string())),
            }
        }
        Ok(failed)
    }

    fn is_served(&self, target: &str) -> bool {
        self.export(target).is_ok_and(|now| now.withheld.is_none())
    }
}

/// Has an export name its volumes as they are called by now.
fn follow_names(export: &mut Export, there: &[PlacedVolume]) {
    for (name, uuid) in export.volumes.iter_mut().zip(&export.uuids) {
        if let Some(volume) = there.iter().find(|volume| volume.info.uuid == *uuid) {
            name.clone_from(&volume.info.name);
        }
    }
}
