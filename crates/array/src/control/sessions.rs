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

    /// The initiator that is logged in to the target which shows a volume, and that target; the first
    /// of several.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn user_of(&self, volume: &str) -> Result<Option<(String, String)>, ArrayError> {
        let Some((target, _)) = self.lun_of(volume, None) else {
            return Ok(None);
        };
        let sessions = self.sessions().await?.into_iter();
        let mut on_it = sessions.filter(|session| session.target == target);
        Ok(on_it.next().map(|session| (session.initiator, target)))
    }
}
