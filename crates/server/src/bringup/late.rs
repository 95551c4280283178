//! Runs the rounds that look for pools and drives which were missing at the start
//! ([`::array::bring_up::late_rounds`]).
//!
//! Invariant: what waits for a drive does not hold up the end of the array.

use crate::array::Array;
use ::array::bring_up::late_rounds;
use ::array::openings::LATE_PAUSE;
use site::Site;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// What is under way when the array stops has so long to end.
const STOP_TIME: Duration = Duration::from_secs(5);

/// The task that looks.
#[derive(Debug)]
pub(super) struct Late {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Late {
    /// Looks from now on.
    pub(super) fn begin(site: Option<Site>, array: &Arc<Array>) -> Self {
        let (stop, mut stopped) = watch::channel(false);
        let mut rounds = late_rounds(array.openings(), array.control(), site);
        let task = tokio::spawn(async move {
            loop {
                // Ends also when nobody could stop it any more.
                let wait = stopped.wait_for(|stop| *stop);
                if timeout(LATE_PAUSE, wait).await.is_ok() || !rounds.look().await {
                    break;
                }
            }
            // What does not end is left alone.
            let _ = timeout(STOP_TIME, rounds.end()).await;
        });
        Late { stop, task }
    }

    /// Ends the looking: once what is under way has ended, but soon.
    pub(super) async fn stop(mut self) {
        self.stop.send_replace(true);
        match timeout(STOP_TIME, &mut self.task).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::error!("looking for what was missing ended early: {error}");
            }
            Err(_) => {
                self.task.abort();
                tracing::warn!(
                    "a pool that opens, or has opened just now, does not answer: it is left as it is"
                );
            }
        }
    }
}
