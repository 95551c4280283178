//! Runs the rounds that look for pools and drives which were missing at the start
//! ([`LateRounds`]), and does what they ask of this server.
//!
//! Invariant: what waits for a drive does not hold up the end of the array.

use super::{BringUpError, make_volumes};
use crate::apply;
use crate::array::Array;
use ::array::openings::{LATE_PAUSE, LateRounds, LateWork};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use site::Site;
use std::sync::{Arc, Weak};
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

/// What the server does in a round.
struct ServerWork {
    /// For the volumes that the first start could not make.
    site: Site,
    array: Weak<Array>,
}

impl Late {
    /// Looks from now on.
    pub(super) fn begin(site: Site, array: &Arc<Array>) -> Self {
        let (stop, mut stopped) = watch::channel(false);
        let work = ServerWork {
            site,
            array: Arc::downgrade(array),
        };
        let openings = Arc::clone(array.openings());
        let mut rounds = LateRounds::new(openings, array.control(), Arc::new(work));
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

impl LateWork for ServerWork {
    fn complete(&self) -> BoxFuture<'_, Result<(), String>> {
        let completed = async {
            match self.array.upgrade() {
                Some(array) => complete(&self.site, &array).await,
                None => Ok(()),
            }
        };
        completed
            .map(|ended| ended.map_err(|error| error.to_string()))
            .boxed()
    }

    fn open_portals(&self) -> BoxFuture<'_, ()> {
        let opened = async {
            if let Some(array) = self.array.upgrade() {
                // It was told of elsewhere.
                let _ = array.open_closed_portals().await;
            }
        };
        opened.boxed()
    }
}

/// Makes what the first start could not make.
async fn complete(site: &Site, array: &Arc<Array>) -> Result<(), BringUpError> {
    apply::forget(site, array).await?;
    let renamed = apply::renamed(site, array).await?;
    let site = apply::follow(site, &renamed);
    let plan = apply::plan(&site, array).await?;
    make_volumes(plan, &site, array).await?;
    if array.closed_names().is_none() {
        array.settle_configuration(true).await?;
    }
    Ok(())
}
