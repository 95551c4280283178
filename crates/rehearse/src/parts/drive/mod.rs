//! A modelled drive as the engine sees it: behind its controller's processor and its bus.
//!
//! ```text
//! command   processor ─► queue ─► bus ─► drive ─► bus ─► done
//! ```
//!
//! The **queue** is the controller's, for each drive, where it bounds what a drive has at once.
//!
//! What is at its **front**, labels, metadata and logs, lies in the controller's write cache
//! where that has one: a write there goes into the cache, mirrored or not, once for all
//! drives that get it, and no drive is asked. Where it has none, the processor copies it once for each of these,
//! and they are asked.
//!
//! Drives of 520-byte sectors take the **sums** of blocks along with their data: where a
//! controller's are such, what the engine reads and writes of sums apart costs nothing.
//!
//! Arrays that write anywhere have data on the whole **stroke**, however little they hold: a drive
//! that is spread puts the zones of its pool there (`placement`).
//!
//! It keeps what is written with bytes, labels and metadata, and drops what has only a
//! length; so a drive of any size costs what its metadata costs.

mod device;
mod model;
mod placement;

pub use device::CommandCounts;
pub(crate) use device::{Device, Tally};
pub(crate) use model::DriveModel;
pub use model::{Busy, DriveKind};
pub use placement::Spread;

use crate::parts::bus::BusRig;
use crate::parts::controller::{ControllerRig, Kept};
use crate::parts::gate::{Gate, GatePass};
use ::model::bus::Direction;
use ::model::hdd::STROKE_PARTS;
use ::model::{Request, RequestKind};
use base::{BLOCK_BYTES, Buf, DriveOffset, Slice};
use engine::{Drive, DriveError, DriveErrorKind, Geometry, World};
use std::cell::{Cell, OnceCell};
use std::ptr;
use std::rc::{Rc, Weak};
use world_sim::Blocks;
use world_sim::SimWorld;

/// The front of the drives of a pool.
pub struct Front {
    /// The first byte behind the front, which begins at byte 0.
    pub end: DriveOffset,
    /// What of it each lane has, one after the other, bytes.
    pub lane_bytes: u64,
    /// The drives that carry the log of each lane.
    pub log_drives: Vec<Vec<Weak<DriveRig>>>,
    /// Whether it lies in the write cache.
    pub is_in_cache: bool,
}

impl Front {
    /// The drives of `lane` that carry its log, and are there still. The copy on the first one is what counts: the
    /// others are the same bytes.
    fn left(&self, at: DriveOffset) -> impl Iterator<Item = Rc<DriveRig>> {
        let lane = (at.0 / self.lane_bytes) as usize;
        let drives = self.log_drives.get(lane).into_iter().flatten();
        let drives = drives.filter_map(Weak::upgrade);
        drives.filter(|drive| !drive.is_dead())
    }
}

/// Where the sums of blocks lie, on a drive that takes them along with the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SumsAlong {
    /// The first zone begins here.
    pub start: DriveOffset,
    /// Bytes from one zone to the next.
    pub stride_bytes: u64,
    /// Bytes of sums at the beginning of each.
    pub sums_bytes: u64,
}

impl SumsAlong {
    fn holds(&self, at: DriveOffset) -> bool {
        at >= self.start && (at.0 - self.start.0) % self.stride_bytes < self.sums_bytes
    }
}

/// A drive, its bus and whose it is.
pub struct DriveRig {
    /// Unique over the site.
    pub name: String,
    kind: DriveKind,
    capacity_bytes: u64,
    world: SimWorld,
    device: Rc<Device>,
    /// What this drive took of the device.
    tally: Rc<Tally>,
    bus: Rc<BusRig>,
    controller: Rc<ControllerRig>,
    /// Where the controller bounds what the drive has at once.
    queue: Option<Gate>,
    /// Whether its pool's groups have parity, which the processor makes.
    parity: bool,
    front: OnceCell<Rc<Front>>,
    sums_along: Cell<Option<SumsAlong>>,
    spread: Cell<Option<Spread>>,
    dead: Cell<bool>,
    /// Its commands take no time.
    is_timeless: Cell<bool>,
    blocks: Blocks,
}

impl DriveRig {
    /// A drive that holds nothing yet, behind its bus and controller. It offers as many bytes,
    /// which may be less than its model has.
    pub fn new(
        world: &SimWorld,
        name: String,
        (kind, capacity_bytes): (DriveKind, u64),
        (bus, controller): (&Rc<BusRig>, &Rc<ControllerRig>),
        parity: bool,
    ) -> Rc<DriveRig> {
        let model = DriveModel::new(&kind, world.prng(&name));
        let device = Device::new(world.clone(), model);
        DriveRig::over(
            device,
            world,
            name,
            (kind, capacity_bytes),
            (bus, controller),
            parity,
        )
    }

    /// The same as a part of the device that `sibling` is a part of.
    pub fn beside(
        sibling: &DriveRig,
        name: String,
        capacity_bytes: u64,
        (bus, controller): (&Rc<BusRig>, &Rc<ControllerRig>),
        parity: bool,
    ) -> Rc<DriveRig> {
        let (device, of) = (
            Rc::clone(&sibling.device),
            (sibling.kind.clone(), capacity_bytes),
        );
        DriveRig::over(device, &sibling.world, name, of, (bus, controller), parity)
    }

    fn over(
        device: Rc<Device>,
        world: &SimWorld,
        name: String,
        (kind, capacity_bytes): (DriveKind, u64),
        (bus, controller): (&Rc<BusRig>, &Rc<ControllerRig>),
        parity: bool,
    ) -> Rc<DriveRig> {
        Rc::new(DriveRig {
            name,
            kind,
            capacity_bytes,
            world: world.clone(),
            device,
            tally: Tally::begun(world.now()),
            bus: Rc::clone(bus),
            controller: Rc::clone(controller),
            queue: controller
                .drive_queue()
                .map(|depth| Gate::new(usize::from(depth))),
            parity,
            front: OnceCell::new(),
            sums_along: Cell::new(None),
            spread: Cell::new(None),
            dead: Cell::new(false),
            is_timeless: Cell::new(false),
            blocks: Blocks::default(),
        })
    }

    /// Says where its front is.
    pub fn set_front(&self, front: Rc<Front>) {
        let _ = self.front.set(front);
    }

    /// Sums go along with the data.
    pub fn set_sums_along(&self, sums: SumsAlong) {
        self.sums_along.set(Some(sums));
    }

    /// Its zones lie spread over its stroke.
    pub fn set_spread(&self, spread: Spread) {
        self.spread.set(Some(spread));
    }

    /// Commands so far by where they lie on the stroke; none of a drive without an arm.
    pub fn by_stroke(&self) -> Option<[u64; STROKE_PARTS]> {
        self.device.by_stroke()
    }

    /// Has its commands take no time from now on, or their time again.
    pub(crate) fn set_timeless(&self, is_timeless: bool) {
        self.is_timeless.set(is_timeless);
    }

    /// It does not answer any more. The device that it shares with others serves these on.
    pub fn fail(&self) {
        self.dead.set(true);
        if !self.kind.is_shared() {
            self.device.die();
        }
    }

    /// Whether it has failed.
    pub fn is_dead(&self) -> bool {
        self.dead.get()
    }

    /// Bytes that it offers.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// The class and parameters of its model.
    pub fn kind(&self) -> &DriveKind {
        &self.kind
    }

    /// What its mechanism did so far, for all drives that share it.
    pub fn busy(&self) -> Busy {
        self.device.busy()
    }

    /// What commands took in it so far.
    pub fn taken(&self) -> CommandCounts {
        self.tally.taken(self.world.now())
    }

    /// The front, if a run lies in it.
    fn front(&self, at: DriveOffset, len_bytes: u64) -> Option<&Rc<Front>> {
        let front = self.front.get()?;
        (at.0 + len_bytes <= front.end.0).then_some(front)
    }

    async fn serve(&self, request: Request) -> Result<(), DriveError> {
        self.check(request)?;
        let takes_time = match request.kind {
            RequestKind::Flush => self.kind.has_flushes(),
            RequestKind::Discard => false,
            RequestKind::Read | RequestKind::Write | RequestKind::DurableWrite => true,
        };
        if self.is_timeless.get() || !takes_time {
            return Ok(());
        }
        let writes = request.kind.writes();
        let log = self.log(request).await;
        if log == Some(Kept::InCache) {
            return Ok(());
        }
        let sums = self.sums_along.get();
        if request.len_bytes > 0 && sums.is_some_and(|sums| sums.holds(request.at)) {
            return Ok(());
        }
        let (direction, parity_bytes) = match writes {
            // Logs and metadata have copies, and no parity.
            true if self.parity && log.is_none() => (Direction::ToDrives, request.len_bytes),
            true => (Direction::ToDrives, 0),
            false => (Direction::FromDrives, 0),
        };
        let (world, bus, len_bytes) = (&self.world, &self.bus, request.len_bytes);
        self.controller.drive_command(parity_bytes).await;
        let _place = self.place().await;
        if direction == Direction::ToDrives {
            bus.transfer(world, direction, len_bytes).await;
        }
        let ended = self.device.submit(self.placed(request), &self.tally).await;
        if direction == Direction::FromDrives {
            bus.transfer(world, direction, len_bytes).await;
        }
        match ended {
            Ok(()) if !self.dead.get() => Ok(()),
            _ => Err(self.error(request, DriveErrorKind::Gone)),
        }
    }

    /// A place among the commands that the controller lets the drive have, where it bounds them.
    async fn place(&self) -> Option<GatePass<'_>> {
        Some(self.queue.as_ref()?.pass().await)
    }

    /// Has the controller do what a command to the front takes; where that is kept.
    async fn log(&self, request: Request) -> Option<Kept> {
        // A flush is for what lies behind the front.
        let front = self.front(request.at, request.len_bytes);
        let front = front.filter(|_| request.kind != RequestKind::Flush)?;
        let mut left = front.left(request.at);
        let counts = left.next().is_some_and(|first| ptr::eq(&*first, self));
        let kept = match front.is_in_cache {
            true => Kept::InCache,
            false => Kept::OnDrives(1 + left.count() as u64),
        };
        if counts && request.kind.writes() {
            self.controller.log(request.len_bytes, kept).await;
        }
        Some(kept)
    }

    async fn write(
        &self,
        kind: RequestKind,
        at: DriveOffset,
        data: Slice,
    ) -> Result<(), DriveError> {
        self.serve(request(kind, at, data.len())).await?;
        self.blocks.keep(at, &data);
        Ok(())
    }

    /// The request where it lies on the medium.
    fn placed(&self, request: Request) -> Request {
        let place = |spread: Spread| spread.place(request.at, request.len_bytes);
        Request {
            at: self.spread.get().map_or(request.at, place),
            ..request
        }
    }

    fn check(&self, request: Request) -> Result<(), DriveError> {
        let block = BLOCK_BYTES as u64;
        let end = request.at.0.checked_add(request.len_bytes);
        let inside = end.is_some_and(|end| end <= self.capacity_bytes);
        let whole = request.at.0.is_multiple_of(block) && request.len_bytes.is_multiple_of(block);
        if self.dead.get() {
            return Err(self.error(request, DriveErrorKind::Gone));
        }
        match inside && whole {
            true => Ok(()),
            false => Err(self.error(request, DriveErrorKind::OutOfRange)),
        }
    }

    fn error(&self, request: Request, kind: DriveErrorKind) -> DriveError {
        let operation = match request.kind {
            RequestKind::Read => "read",
            RequestKind::Write | RequestKind::DurableWrite => "write",
            RequestKind::Flush => "flush",
            RequestKind::Discard => "discard",
        };
        DriveError {
            kind,
            operation,
            at: request.at,
            len_bytes: request.len_bytes,
            context: format!("modelled drive '{}'", self.name),
        }
    }
}

/// The engine's handle on a drive.
pub struct RigDrive(pub Rc<DriveRig>);

impl Drive for RigDrive {
    fn geometry(&self) -> Geometry {
        Geometry {
            capacity_bytes: self.0.capacity_bytes,
            rotational: self.0.kind.is_rotational(),
            discards: !self.0.kind.is_rotational(),
        }
    }

    async fn read(&self, at: DriveOffset, mut buf: Buf) -> (Buf, Result<(), DriveError>) {
        let request = request(RequestKind::Read, at, buf.len());
        let served = self.0.serve(request).await;
        if served.is_ok()
            && let Some(bytes) = buf.bytes_mut()
        {
            self.0.blocks.fill(at, bytes);
        }
        (buf, served)
    }

    async fn write(&self, at: DriveOffset, data: Slice) -> Result<(), DriveError> {
        self.0.write(RequestKind::Write, at, data).await
    }

    async fn write_durable(&self, at: DriveOffset, data: Slice) -> Result<(), DriveError> {
        self.0.write(RequestKind::DurableWrite, at, data).await
    }

    async fn flush(&self) -> Result<(), DriveError> {
        self.0
            .serve(request(RequestKind::Flush, DriveOffset(0), 0))
            .await
    }

    async fn discard(&self, at: DriveOffset, len_bytes: u64) -> Result<(), DriveError> {
        let kind = RequestKind::Discard;
        self.0
            .serve(Request {
                kind,
                at,
                len_bytes,
            })
            .await
    }
}

fn request(kind: RequestKind, at: DriveOffset, len: usize) -> Request {
    Request {
        kind,
        at,
        len_bytes: len as u64,
    }
}
