//! A drive that moves so many bytes a second and no more, reads and writes together.
//!
//! Files of one disk share what that disk can do. Drives that are slower than their
//! share of it don't: so what a pool makes of its drives shows apart from the disk.

use base::{Buf, DriveOffset, Slice, Time};
use engine::drive::{Drive, DriveError, Geometry};
use engine::world::World;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use world_real::{RealDrive, RealWorld};

/// Bytes a second of each drive; none is what there is.
pub type Limit = Rc<Cell<Option<u64>>>;

/// See the module.
pub struct LimitedDrive {
    drive: RealDrive,
    world: RealWorld,
    limit: Limit,
    /// When what was begun so far is over.
    free_at: Cell<Time>,
}

impl LimitedDrive {
    pub fn over(world: &RealWorld, drive: RealDrive, limit: &Limit) -> Self {
        LimitedDrive {
            drive,
            world: world.clone(),
            limit: Rc::clone(limit),
            free_at: Cell::default(),
        }
    }

    /// Ends when the drive has had the time for `len_bytes` more, one operation after
    /// the other.
    fn turn(&self, len_bytes: u64) -> impl Future<Output = ()> + use<> {
        let now = self.world.now();
        let end = self.limit.get().map(|limit| {
            let takes = Duration::from_secs_f64(len_bytes as f64 / limit as f64);
            let end = self.free_at.get().max(now) + takes;
            self.free_at.set(end);
            end
        });
        let world = self.world.clone();
        async move {
            if let Some(end) = end {
                world.sleep(end.since(now)).await;
            }
        }
    }
}

impl Drive for LimitedDrive {
    fn geometry(&self) -> Geometry {
        self.drive.geometry()
    }

    async fn read(&self, at: DriveOffset, buf: Buf) -> (Buf, Result<(), DriveError>) {
        let turn = self.turn(buf.len() as u64);
        let read = self.drive.read(at, buf).await;
        turn.await;
        read
    }

    async fn write(&self, at: DriveOffset, data: Slice) -> Result<(), DriveError> {
        let turn = self.turn(data.len() as u64);
        self.drive.write(at, data).await?;
        turn.await;
        Ok(())
    }

    async fn write_durable(&self, at: DriveOffset, data: Slice) -> Result<(), DriveError> {
        let turn = self.turn(data.len() as u64);
        self.drive.write_durable(at, data).await?;
        turn.await;
        Ok(())
    }

    async fn flush(&self) -> Result<(), DriveError> {
        self.drive.flush().await
    }

    async fn discard(&self, at: DriveOffset, len_bytes: u64) -> Result<(), DriveError> {
        self.drive.discard(at, len_bytes).await
    }
}
