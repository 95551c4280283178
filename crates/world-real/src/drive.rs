//! A drive of the real world: a file or a block device behind the shard's ring.
//!
//! Invariants:
//! - What reaches the kernel lies inside the drive, on block boundaries, in
//!   memory that suits direct I/O.
//! - A transfer that the kernel cuts short is continued. A read that meets the
//!   end of a file that was cut off under us is an error, never old bytes.
//! - What the kernel refused for want of something is tried again ([`super::retry`]), before
//!   it is an error of the drive.
//! - The drive is locked for this process as long as it is open.

use super::aside;
use super::open::{self, Opened};
use super::retry::Retries;
use super::ring::{Durability, FileIdentity, FileNow, Ring, Target, Transfer};
use super::suspicion::Suspicion;
use super::{OpenError, RealWorld, errno};
use base::size::{human, human_pair};
use base::{BLOCK_BYTES, Buf, BufPool, DriveOffset, Slice};
use engine::drive::{Drive, DriveError, DriveErrorKind, Geometry};
use engine::world::World;
use std::cell::Cell;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A file or block device as a drive. Opened with direct I/O where its file
/// system has it.
///
/// On tmpfs a flush does nothing: there is no medium below the page cache, and
/// a power cut takes everything. Drive files there are for tests and demos.
///
/// A file keeps the space it was created with: a discard of a file does nothing,
/// or later writes would have to find space and journal it anew.
pub struct RealDrive {
    ring: Ring,
    buffers: BufPool,
    file: Arc<File>,
    geometry: Geometry,
    direct: bool,
    syncs: bool,
    suspicion: Suspicion,
    serial: Option<Arc<str>>,
    /// The absolute path that it was opened by.
    path: Option<Arc<CStr>>,
    path_now: Rc<PathNow>,
}

/// What is at a drive's path. It is asked apart: the path may lie on another file system than the
/// file, and one that hangs is no reason not to look at the file.
#[derive(Debug, Default)]
struct PathNow {
    is_asked: Cell<bool>,
    /// It led to another file than the open one, or to none, when it was asked last.
    is_elsewhere: Cell<bool>,
}

/// A file or block device, open and locked. Several shards may have a [`RealDrive`] to
/// the same one; it is closed when all of them and this are gone.
#[derive(Clone, Debug)]
pub struct OpenDrive {
    file: Arc<File>,
    geometry: Geometry,
    direct: bool,
    syncs: bool,
    suspicion: Suspicion,
    serial: Option<Arc<str>>,
    /// The absolute path that it was opened by.
    path: Option<Arc<CStr>>,
}

impl OpenDrive {
    /// Opens the file or block device at `path`. Blocks for as long as open(2) does.
    ///
    /// # Errors
    /// When it is not there, not fit to be a drive, or in use.
    pub fn open(path: &Path) -> Result<OpenDrive, OpenError> {
        open::open(path).map(OpenDrive::from)
    }

    /// As [`OpenDrive::open`], on a thread of its own, so that nobody waits for longer than
    /// `patience`: a file system whose server is gone may hold it for ever. Meanwhile the
    /// same path is not tried again.
    ///
    /// # Errors
    /// The same, and when nothing answers.
    pub async fn open_within(path: &Path, patience: Duration) -> Result<OpenDrive, OpenError> {
        let open = |path: &Path| open::open(path).map(OpenDrive::from);
        aside::within(path, patience, open).await
    }
}

impl From<Opened> for OpenDrive {
    fn from(opened: Opened) -> Self {
        OpenDrive {
            file: Arc::new(opened.file),
            geometry: opened.geometry,
            direct: opened.direct,
            syncs: opened.syncs,
            suspicion: Suspicion::new(opened.may_block),
            serial: opened.serial.map(Arc::from),
            path: opened.path.map(Arc::from),
        }
    }
}

impl RealDrive {
    /// Opens the file or block device at `path` as a drive of `world`. Its
    /// capacity is its size, less what does not fill a block. Blocks for as long
    /// as open(2) does.
    ///
    /// # Errors
    /// When it is not there, not fit to be a drive, or in use.
    pub fn open(world: &RealWorld, path: &Path) -> Result<RealDrive, OpenError> {
        Ok(Self::over(world, open::open(path)?))
    }

    /// Creates a drive file of `capacity_bytes` (a multiple of
    /// [`base::BLOCK_BYTES`]) with all its space reserved, and makes it durable.
    /// Blocks for as long as fallocate(2) does. What is there is never
    /// overwritten, and after an error nothing is left behind.
    ///
    /// # Errors
    /// When something is there already, or the space is not.
    pub fn create_file(path: &Path, capacity_bytes: u64) -> Result<(), OpenError> {
        open::create_file(path, capacity_bytes)
    }

    /// A door of `world` to a drive that is open.
    pub fn of(world: &RealWorld, open: &OpenDrive) -> RealDrive {
        RealDrive {
            ring: world.ring().clone(),
            buffers: world.buffers().clone(),
            file: Arc::clone(&open.file),
            geometry: open.geometry,
            direct: open.direct,
            syncs: open.syncs,
            suspicion: open.suspicion.clone(),
            serial: open.serial.clone(),
            path: open.path.clone(),
            path_now: Rc::default(),
        }
    }

    /// Whether transfers go around the kernel's cache of pages.
    pub fn is_direct(&self) -> bool {
        self.direct
    }

    fn over(world: &RealWorld, opened: Opened) -> RealDrive {
        Self::of(world, &OpenDrive::from(opened))
    }

    /// Whether `len` bytes at `at` are whole blocks of this drive.
    fn check_range(
        &self,
        operation: &'static str,
        at: DriveOffset,
        len: u64,
    ) -> Result<(), DriveError> {
        let grain = BLOCK_BYTES as u64;
        let inside =
            at.0.checked_add(len)
                .is_some_and(|end| end <= self.geometry.capacity_bytes);
        if inside && at.0.is_multiple_of(grain) && len.is_multiple_of(grain) {
            return Ok(());
        }
        let context = format!(
            "the drive has {} in blocks of {grain} bytes",
            human(self.geometry.capacity_bytes)
        );
        Err(DriveError {
            kind: DriveErrorKind::OutOfRange,
            operation,
            at,
            len_bytes: len,
            context,
        })
    }

    async fn write_as(
        &self,
        at: DriveOffset,
        data: Slice,
        durability: Durability,
    ) -> Result<(), DriveError> {
        self.check_range("write", at, data.len() as u64)?;
        let data = match data.bytes() {
            Some(bytes) if self.direct && !data.is_aligned() => {
                self.buffers.copy_of(bytes).freeze()
            }
            _ => data,
        };
        // In the page cache, its error may be that of a write before it, told once.
        let retries = match self.direct || durability == Durability::AtNextSync {
            true => Retries::some(),
            false => Retries::none(),
        };
        let mut progress = self.progress("write", at, data.len(), retries);
        while !progress.is_complete() {
            let write = self
                .ring
                .write(self.target(), data.clone(), progress.next(), durability);
            let (result, _) = write.await;
            pause(progress.advance(result)?).await;
        }
        Ok(())
    }

    fn target(&self) -> Target<'_> {
        Target {
            file: &self.file,
            suspicion: &self.suspicion,
        }
    }

    fn progress(
        &self,
        operation: &'static str,
        at: DriveOffset,
        len: usize,
        retries: Retries,
    ) -> Progress {
        let grain = if self.direct { BLOCK_BYTES } else { 1 };
        Progress {
            operation,
            at,
            len,
            done: 0,
            grain,
            in_worker: false,
            retries,
        }
    }

    /// What the file is by now; none of a device, whose size says nothing here.
    async fn file_now(&self) -> Result<Option<FileNow>, DriveError> {
        let (result, held) = self.ring.status(self.target(), None).await;
        match result {
            Ok(_) => Ok(held.file_now()),
            // The kernel is too old, or short of something: it is asked again soon.
            Err(error) if errno::kind(&error) == DriveErrorKind::Other => Ok(None),
            Err(error) => Err(self.whole("check", errno::kind(&error), error.to_string())),
        }
    }

    /// Asks what is at the drive's path, unless that is under way. Where it is another file than the
    /// open one, or none, the next start does not find the drive. A path that can't be asked counts as right.
    fn ask_path(&self, own: FileIdentity) {
        let Some(path) = self.path.clone() else {
            return;
        };
        if self.path_now.is_asked.replace(true) {
            return;
        }
        let (ring, file, suspicion) =
            (self.ring.clone(), self.file.clone(), self.suspicion.clone());
        let path_now = Rc::clone(&self.path_now);
        tokio::task::spawn_local(async move {
            let target = Target {
                file: &file,
                suspicion: &suspicion,
            };
            let (result, held) = ring.status(target, Some(path)).await;
            let is_elsewhere = match result {
                Ok(_) => held.file_now().is_none_or(|now| now.identity != own),
                Err(error) => matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR)),
            };
            path_now.is_elsewhere.set(is_elsewhere);
            path_now.is_asked.set(false);
        });
    }

    /// An error that is not about some of the drive's bytes.
    fn whole(&self, operation: &'static str, kind: DriveErrorKind, context: String) -> DriveError {
        DriveError {
            kind,
            operation,
            at: DriveOffset(0),
            len_bytes: self.geometry.capacity_bytes,
            context,
        }
    }
}

/// Waits before the next try, if it is to wait.
async fn pause(pause: Option<Duration>) {
    if let Some(pause) = pause {
        tokio::time::sleep(pause).await;
    }
}

impl Drive for RealDrive {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn serial(&self) -> Option<&str> {
        self.serial.as_deref()
    }

    async fn read(&self, at: DriveOffset, mut buf: Buf) -> (Buf, Result<(), DriveError>) {
        let mut progress = self.progress("read", at, buf.len(), Retries::some());
        if let Err(error) = self.check_range("read", at, buf.len() as u64) {
            return (buf, Err(error));
        }
        while !progress.is_complete() {
            let (result, held) = self.ring.read(self.target(), buf, progress.next()).await;
            buf = held.into_buf();
            match progress.advance(result) {
                Ok(wait) => pause(wait).await,
                Err(error) => return (buf, Err(error)),
            }
        }
        (buf, Ok(()))
    }

    async fn write(&self, at: DriveOffset, data: Slice) -> Result<(), DriveError> {
        self.write_as(at, data, Durability::AtNextSync).await
    }

    async fn write_durable(&self, at: DriveOffset, data: Slice) -> Result<(), DriveError> {
        let durability = if self.syncs {
            Durability::AtOnce
        } else {
            Durability::AtNextSync
        };
        self.write_as(at, data, durability).await
    }

    async fn flush(&self) -> Result<(), DriveError> {
        if !self.syncs {
            return Ok(());
        }
        // What the page cache could not write, it tells once.
        let mut retries = match self.direct {
            true => Retries::some(),
            false => Retries::none(),
        };
        loop {
            let (result, _) = self.ring.sync_data(self.target()).await;
            let Err(error) = result else { return Ok(()) };
            let Some(wait) = retries.pause(&error) else {
                let kind = errno::flush_kind(&error);
                return Err(self.whole("flush", kind, error.to_string()));
            };
            pause(Some(wait)).await;
        }
    }

    async fn check(&self) -> Result<(), DriveError> {
        let Some(now) = self.file_now().await? else {
            return Ok(());
        };
        // The answer counts from the next check on.
        self.ask_path(now.identity);
        let (bytes, capacity_bytes) = (now.bytes, self.geometry.capacity_bytes);
        let (kind, context) = if bytes < capacity_bytes {
            let (now, was) = human_pair(bytes, capacity_bytes);
            let context = format!("its file has {now} and had {was}: it was cut off");
            (DriveErrorKind::Gone, context)
        } else if now.is_deleted {
            let context = "its file was deleted, and is lost when the array closes it: have another drive take its place before that";
            (DriveErrorKind::Other, context.into())
        } else if self.path_now.is_elsewhere.get() {
            let path = self.path.as_deref().unwrap_or_default().to_string_lossy();
            let context = format!(
                "its file was not at {path} a moment ago, where the next start looks for it: move the file back, or have another drive take its place"
            );
            (DriveErrorKind::Other, context)
        } else {
            return Ok(());
        };
        Err(self.whole("check", kind, context))
    }

    async fn discard(&self, at: DriveOffset, len_bytes: u64) -> Result<(), DriveError> {
        self.check_range("discard", at, len_bytes)?;
        if !self.geometry.discards || len_bytes == 0 {
            return Ok(());
        }
        let (result, _) = self.ring.punch_hole(self.target(), at.0, len_bytes).await;
        match result {
            // A hint that the device does not take is no failure.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(()),
            Err(error) => Err(DriveError {
                kind: errno::kind(&error),
                operation: "discard",
                at,
                len_bytes,
                context: error.to_string(),
            }),
            Ok(_) => Ok(()),
        }
    }
}

/// How far a transfer is, over as many operations as the kernel makes of it.
struct Progress {
    operation: &'static str,
    at: DriveOffset,
    len: usize,
    done: usize,
    /// Direct I/O goes on from a block boundary; what came of the block before
    /// it is transferred again.
    grain: usize,
    in_worker: bool,
    retries: Retries,
}

impl Progress {
    fn is_complete(&self) -> bool {
        self.done == self.len
    }

    fn next(&self) -> Transfer {
        let offset = self.at.0 + self.done as u64;
        Transfer {
            offset,
            done: self.done,
            in_worker: self.in_worker,
        }
    }

    /// Takes in what the kernel said to [`Progress::next`], and gives how long to wait before
    /// the next.
    fn advance(&mut self, result: io::Result<usize>) -> Result<Option<Duration>, DriveError> {
        match result {
            Ok(count) => {
                let whole = count - count % self.grain;
                if whole == 0 {
                    let end = self.at.0 + (self.done + count) as u64;
                    let context = format!("the drive ends at {end}; was it cut off while open?");
                    return Err(self.error(DriveErrorKind::Media, context));
                }
                self.done += whole;
                assert!(
                    self.done <= self.len,
                    "{} transferred more than asked",
                    self.operation
                );
                Ok(None)
            }
            Err(error) if errno::wants_a_worker(&error) && !self.in_worker => {
                self.in_worker = true;
                Ok(None)
            }
            Err(error) => match self.retries.pause(&error) {
                Some(wait) => Ok(Some(wait)),
                None => Err(self.error(errno::kind(&error), error.to_string())),
            },
        }
    }

    fn error(&self, kind: DriveErrorKind, context: String) -> DriveError {
        DriveError {
            kind,
            operation: self.operation,
            at: self.at,
            len_bytes: self.len as u64,
            context,
        }
    }
}

#[cfg(test)]
mod tests;
