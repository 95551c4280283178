//! Copies from one controller to another: the ways of the data between their pools.
//!
//! Partners have the interconnect that they mirror their write caches over; others the networks
//! that both have ports into, link by link in turn. Where there is neither, nobody knows how it gets there,
//! and it takes no time. Of the processors it takes what the engine's own work takes: drive
//! commands, parity and log; what a controller spends on the way to another is not known.

use super::Scene;
use crate::parts::controller::ControllerRig;
use crate::parts::disk::MESSAGE_BYTES;
use crate::parts::network::{Direction, PortPath};
use crate::parts::world::RigWorld;
use base::{Payload, Slice, Uuid, VolumeOffset};
use engine::volume::{Alteration, Altered, AvailableSpace, CancelToken, Mapping, VolumeIo};
use engine::{IoError, Provisioning, Volume, VolumeInfo};
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

/// What is between two controllers.
enum Between {
    Interconnect,
    /// Ways there, each with the way back.
    Network(Vec<[PortPath; 2]>),
}

/// The way from a controller to another.
pub(super) struct Crossing {
    world: RigWorld,
    from: Rc<ControllerRig>,
    between: Between,
    turn: Cell<usize>,
}

impl Crossing {
    /// The way; none within one controller, and where there is nothing between them.
    pub(super) fn between(
        scene: &Scene,
        from: &Rc<ControllerRig>,
        to: &Rc<ControllerRig>,
    ) -> Option<Crossing> {
        let (from, to) = (from.serving(), to.serving());
        if from.name == to.name {
            return None;
        }
        let partner = scene.partner(&from.name);
        let between = match partner.is_some_and(|partner| partner.name == to.name) {
            true => Between::Interconnect,
            false => {
                let ways = scene.fabric.between_controllers(&from.name, &to.name);
                (!ways.is_empty()).then_some(Between::Network(ways))?
            }
        };
        Some(Crossing {
            world: scene.world.clone(),
            from,
            between,
            turn: Cell::new(0),
        })
    }

    /// Takes so many bytes there, and the answer back.
    async fn cross(&self, data_bytes: u64) {
        match &self.between {
            Between::Interconnect => {
                self.from.cross(MESSAGE_BYTES + data_bytes).await;
            }
            Between::Network(ways) => {
                let turn = self.turn.get();
                self.turn.set((turn + 1) % ways.len());
                let [there, back] = &ways[turn];
                let (world, across) = (&self.world, Direction::Across);
                there.send(world, across, MESSAGE_BYTES + data_bytes).await;
                back.send(world, across, MESSAGE_BYTES).await;
            }
        }
    }
}

/// A volume of a pool of another controller.
pub(super) struct RemoteVolume {
    volume: Volume<RigWorld>,
    crossing: Crossing,
}

impl RemoteVolume {
    pub(super) fn new(volume: Volume<RigWorld>, crossing: Crossing) -> RemoteVolume {
        RemoteVolume { volume, crossing }
    }

    /// Does something there, with so many bytes to take along.
    fn with<'a, T>(
        &'a self,
        data_bytes: u64,
        then: impl Future<Output = T> + 'a,
    ) -> Pin<Box<dyn Future<Output = T> + 'a>> {
        Box::pin(async move {
            self.crossing.cross(data_bytes).await;
            then.await
        })
    }
}

/// What an asynchronous command gives.
type Coming<'a, T> = Pin<Box<dyn Future<Output = Result<T, IoError>> + 'a>>;

impl VolumeIo for RemoteVolume {
    fn info(&self) -> VolumeInfo {
        self.volume.info()
    }

    fn resized(&self, _: u64) {}

    fn converted(&self, _: Provisioning) {}

    fn read(&self, at: VolumeOffset, len: usize) -> Coming<'_, Payload> {
        self.with(len as u64, self.volume.read(at, len))
    }

    fn write(&self, at: VolumeOffset, data: Slice) -> Coming<'_, ()> {
        self.with(data.len() as u64, self.volume.write(at, data))
    }

    fn alter(&self, at: VolumeOffset, alteration: Alteration) -> Coming<'_, Altered> {
        self.with(0, self.volume.alter(at, alteration))
    }

    fn memo(&self) -> Vec<u8> {
        self.volume.memo()
    }

    fn keep_memo(&self, memo: Vec<u8>) -> Coming<'_, ()> {
        self.with(memo.len() as u64, self.volume.keep_memo(memo))
    }

    fn flush(&self) -> Coming<'_, ()> {
        self.with(0, self.volume.flush())
    }

    fn clear(&self, at: VolumeOffset, len: u64) -> Coming<'_, ()> {
        self.with(0, self.volume.clear(at, len))
    }

    fn room(&self) -> Coming<'_, AvailableSpace> {
        self.with(0, VolumeIo::room(&self.volume))
    }

    fn mapping(&self, at: VolumeOffset) -> Coming<'_, Mapping> {
        self.with(0, VolumeIo::mapping(&self.volume, at))
    }

    fn copy_beside(
        &self,
        source: Uuid,
        ends: (VolumeOffset, VolumeOffset),
        len: u64,
        cancel: CancelToken,
    ) -> Coming<'_, Option<u64>> {
        self.with(0, self.volume.copy_beside(source, ends, len, cancel))
    }
}
