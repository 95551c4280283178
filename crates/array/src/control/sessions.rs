//! Lists and ends sessions over all shards.

use super::{ArrayError, ArrayErrorKind, ControlPlane};
use crate::shard::SessionInfo;
use engine::World;

impl<W: World> ControlPlane<W> {
    /// The sessions that are connected, by TSIH.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn sessions(&self) -> Result<Vec<SessionInfo>, ArrayError> {
        let mut all = Vec::new();
        for shard in &self.shards {
            all.extend(shard.call(|state| async move { state.sessions() }).await?);
        }
        all.sort_by_key(|session| session.tsih);
        Ok(all)
    }

    /// Closes the session with this TSIH once its commands have ended. The
    /// initiator may log in again.
    ///
    /// # Errors
    /// There is none, or a shard has stopped.
    pub async fn drop_session(&self, tsih: u16) -> Result<(), ArrayError> {
        for shard in &self.shards {
            if shard
                .call(move |state| async move { state.drop_session(tsih).await })
                .await?
            {
                return Ok(());
            }
        }
        Err(ArrayError::new(
            ArrayErrorKind::NotFound,
            format!("there is no session {tsih}"),
        ))
    }
}
