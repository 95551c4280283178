//! What the control plane is told of jobs.

use super::{Entry, Jobs};
use ::array::control::{JobWork, PendingJob};
use api::JobKind;

impl ::array::control::Jobs for Jobs {
    fn pending(&self) -> Vec<PendingJob> {
        let entries = self.entries();
        let pending = entries.values().filter(|entry| !entry.job.state.is_ended());
        pending.map(told).collect()
    }
}

fn told(entry: &Entry) -> PendingJob {
    let job = &entry.job;
    PendingJob {
        id: job.id,
        volume: job.order.volume.clone(),
        uuid: job
            .volume_uuid
            .as_deref()
            .and_then(|uuid| uuid.parse().ok()),
        work: match job.order.kind {
            JobKind::Import => JobWork::Import,
            JobKind::Export => JobWork::Export,
            JobKind::Move => JobWork::Move {
                leaves_snapshots: job.order.leave_snapshots,
            },
            JobKind::Copy => JobWork::Copy,
        },
    }
}
