//! Changes how volumes take space, and says what they hold.

use super::{ArrayError, ControlPlane, PlacedVolume};
use crate::shard::ShardState;
use engine::pool::{Holdings, VolumeChange};
use engine::{Lane, World};
use std::rc::Rc;
use std::sync::Arc;

impl<W: World> ControlPlane<W> {
    /// Changes how the volume called `name` takes space, and tells its initiators.
    ///
    /// # Errors
    /// No such volume, a job moves it, or what the pool says.
    pub async fn convert_volume(
        self: &Arc<Self>,
        name: String,
        change: VolumeChange,
    ) -> Result<PlacedVolume, ArrayError> {
        self.change(move |array| async move {
            let there = array.volume(&name).await?;
            // A copy that is being made elsewhere takes space as the volume did when it began.
            array.jobs.check_still(&name)?;
            let visit =
                move |_, pool: Lane<W>| async move { Ok(pool.change_volume(&name, change).await?) };
            let info = array.with_lane(&there.pool, there.lane, visit).await?;
            let (uuid, provisioning) = (info.uuid, info.provisioning);
            if provisioning != there.info.provisioning {
                // Its target may be on any shard.
                for shard in &array.shards {
                    let told = move |state: Rc<ShardState<W>>| async move {
                        state.volume_converted(uuid, provisioning);
                    };
                    shard.call(told).await?;
                }
            }
            Ok(PlacedVolume { info, ..there })
        })
        .await
    }

    /// What the volume called `name` holds alone and what it shares.
    ///
    /// # Errors
    /// No such volume, or a shard has stopped.
    pub async fn holdings(&self, name: &str) -> Result<Holdings, ArrayError> {
        let there = self.volume(name).await?;
        let name = name.to_owned();
        let visit = move |_, pool: Lane<W>| async move { Ok(pool.holdings(&name).await?) };
        self.with_lane(&there.pool, there.lane, visit).await
    }
}
