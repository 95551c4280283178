//! A drive that takes the time a model says.
//!
//! It keeps only writes that have bytes (labels, journal) and drops length-only
//! ones, so a modelled drive of any size costs what its metadata costs.

use super::{Blocks, SimWorld, Sleep};
use base::{BLOCK_BYTES, Buf, DriveOffset, Prng, Slice, Time};
use engine::{DriveError, DriveErrorKind, Geometry, World};
use model::constant::{Constant, State};
use model::{Request, RequestKind};
use std::cell::RefCell;
use std::rc::Rc;

/// What lies on a modelled drive, and the state of its model.
pub struct ModelledMedia {
    capacity_bytes: u64,
    model: Constant,
    state: RefCell<State>,
    prng: RefCell<Prng>,
    blocks: Blocks,
}

impl ModelledMedia {
    /// A blank drive of `capacity_bytes` that takes the time that `model` says.
    pub fn new(capacity_bytes: u64, model: Constant, prng: Prng) -> Self {
        ModelledMedia {
            capacity_bytes,
            model,
            state: RefCell::new(State::new(&model)),
            prng: RefCell::new(prng),
            blocks: Blocks::default(),
        }
    }

    fn serve(&self, now: Time, request: Request) -> Time {
        self.state
            .borrow_mut()
            .serve(&self.model, now, request, &mut self.prng.borrow_mut())
    }
}

/// The door of one world to [`ModelledMedia`].
pub(super) struct Modelled {
    world: SimWorld,
    media: Rc<ModelledMedia>,
}

impl Modelled {
    pub(super) fn new(world: SimWorld, media: Rc<ModelledMedia>) -> Self {
        Modelled { world, media }
    }

    pub(super) fn geometry(&self) -> Geometry {
        Geometry {
            capacity_bytes: self.media.capacity_bytes,
            rotational: false,
            discards: true,
        }
    }

    pub(super) async fn read(
        &self,
        at: DriveOffset,
        mut buf: Buf,
    ) -> (Buf, Result<(), DriveError>) {
        match self.serve(RequestKind::Read, at, buf.len() as u64) {
            Ok(served) => served.await,
            Err(error) => return (buf, Err(error)),
        }
        if let Some(bytes) = buf.bytes_mut() {
            self.media.blocks.fill(at, bytes);
        }
        (buf, Ok(()))
    }

    pub(super) async fn write(&self, at: DriveOffset, data: Slice) -> Result<(), DriveError> {
        self.serve(RequestKind::Write, at, data.len() as u64)?.await;
        self.media.blocks.keep(at, &data);
        Ok(())
    }

    pub(super) async fn write_durable(
        &self,
        at: DriveOffset,
        data: Slice,
    ) -> Result<(), DriveError> {
        self.write(at, data).await?;
        self.flush().await
    }

    pub(super) async fn flush(&self) -> Result<(), DriveError> {
        self.serve(RequestKind::Flush, DriveOffset(0), 0)?.await;
        Ok(())
    }

    pub(super) async fn discard(&self, at: DriveOffset, len_bytes: u64) -> Result<(), DriveError> {
        self.serve(RequestKind::Discard, at, len_bytes)?.await;
        Ok(())
    }

    /// Begins an operation; what ends when it does.
    fn serve(
        &self,
        kind: RequestKind,
        at: DriveOffset,
        len_bytes: u64,
    ) -> Result<Sleep, DriveError> {
        let block = BLOCK_BYTES as u64;
        let end = at.0.checked_add(len_bytes);
        let inside = end.is_some_and(|end| end <= self.media.capacity_bytes);
        if !inside || !at.0.is_multiple_of(block) || !len_bytes.is_multiple_of(block) {
            let operation = match kind {
                RequestKind::Read => "read",
                RequestKind::Write | RequestKind::DurableWrite => "write",
                RequestKind::Flush => "flush",
                RequestKind::Discard => "discard",
            };
            let kind = DriveErrorKind::OutOfRange;
            let context = "modelled drive".to_owned();
            return Err(DriveError {
                kind,
                operation,
                at,
                len_bytes,
                context,
            });
        }
        let ends = self.media.serve(
            self.world.now(),
            Request {
                kind,
                at,
                len_bytes,
            },
        );
        self.world
            .mark(at.0 ^ len_bytes << 40 ^ ends.as_nanos() << 8);
        Ok(self.world.sleep_until(ends))
    }
}
