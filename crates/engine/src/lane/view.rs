//! A drive as a lane sees it: its own part of the front, then the zones, which all lanes share.

use crate::drive::{Drive, DriveError, Geometry};
use crate::label::Part;
use base::{Buf, DriveOffset, Slice};
use std::rc::Rc;

/// A drive as a lane sees it.
pub struct View<D> {
    drive: Rc<D>,
    part: Part,
}

impl<D: Drive> View<D> {
    /// The part of `drive` that is a lane's.
    pub fn new(drive: Rc<D>, part: Part) -> Self {
        View { drive, part }
    }

    /// All of the drive, as no lane sees it.
    pub fn whole(&self) -> &Rc<D> {
        &self.drive
    }

    /// Sees the drive as another lane does, or one that knows better where its part is.
    pub fn set_part(&mut self, part: Part) {
        self.part = part;
    }
}

impl<D: Drive> Drive for View<D> {
    fn geometry(&self) -> Geometry {
        let geometry = self.drive.geometry();
        let others = self.part.of_others_bytes();
        Geometry {
            capacity_bytes: geometry.capacity_bytes.saturating_sub(others),
            ..geometry
        }
    }

    fn serial(&self) -> Option<&str> {
        self.drive.serial()
    }

    fn read(
        &self,
        at: DriveOffset,
        buf: Buf,
    ) -> impl Future<Output = (Buf, Result<(), DriveError>)> {
        self.drive.read(self.part.place(at, buf.len() as u64), buf)
    }

    fn write(&self, at: DriveOffset, data: Slice) -> impl Future<Output = Result<(), DriveError>> {
        let at = self.part.place(at, data.len() as u64);
        self.drive.write(at, data)
    }

    fn write_durable(
        &self,
        at: DriveOffset,
        data: Slice,
    ) -> impl Future<Output = Result<(), DriveError>> {
        let at = self.part.place(at, data.len() as u64);
        self.drive.write_durable(at, data)
    }

    fn flush(&self) -> impl Future<Output = Result<(), DriveError>> {
        self.drive.flush()
    }

    fn discard(
        &self,
        at: DriveOffset,
        len_bytes: u64,
    ) -> impl Future<Output = Result<(), DriveError>> {
        self.drive
            .discard(self.part.place(at, len_bytes), len_bytes)
    }

    fn check(&self) -> impl Future<Output = Result<(), DriveError>> {
        self.drive.check()
    }
}
