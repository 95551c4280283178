//! Opens withheld exports when their pools are open.

use super::BringUpError;
use crate::array::Array;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Tries those again that are withheld, with the names that volumes have by now. Gives the
/// targets that can't be served for another reason than that a volume is not there, and why.
///
/// # Errors
/// A shard has stopped.
pub(super) async fn again(array: &Arc<Array>) -> Result<BTreeMap<String, String>, BringUpError> {
    let there = array.volumes().await?;
    let mut failed = BTreeMap::new();
    for seen in array.exports() {
        if seen.withheld.is_none() {
            continue;
        }
        let mut export = seen.clone();
        for (name, uuid) in export.volumes.iter_mut().zip(&export.uuids) {
            if let Some(volume) = there.iter().find(|volume| volume.info.uuid == *uuid) {
                name.clone_from(&volume.info.name);
            }
        }
        let target = export.target.clone();
        match array.restore_export(export, Some(seen)).await {
            Ok(())
                if array
                    .export(&target)
                    .is_ok_and(|now| now.withheld.is_none()) =>
            {
                tracing::info!("target {target} is served now");
            }
            Ok(()) => {}
            Err(error) => drop(failed.insert(target, error.to_string())),
        }
    }
    Ok(failed)
}
