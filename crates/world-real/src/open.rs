//! Opens and locks files and devices as drives, and creates new drive files.
//!
//! Invariants:
//! - A drive that is open is locked (flock(2); for a block device also O_EXCL,
//!   so that nothing mounted is ever taken).
//! - Creating never overwrites, and leaves nothing behind when it fails.

use super::serial;
use base::BLOCK_BYTES;
use base::size::{human, human_pair};
use engine::drive::Geometry;
use std::ffi::CString;
use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Why a path could not be opened or created as a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenErrorKind {
    /// There is nothing at the path.
    NotFound,
    /// This process may not open it.
    Denied,
    /// Another drive, process or mount has it.
    InUse,
    /// Something is there that creating would overwrite.
    Exists,
    /// The file system has not the space asked for.
    NoSpace,
    /// It can't be a drive: neither file nor block device, or sizes that do not
    /// fit.
    Unfit,
    /// The call that looks at the path does not come back.
    Silent,
    /// The device is there, and can't be used now: it has no medium, spins up, or fails.
    NotReady,
    /// Anything else the kernel said.
    Other,
}

/// A path that could not be opened or created as a drive: which, why, and what
/// can be done.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}: {kind}{}{context}", path.display(), if context.is_empty() { "" } else { ": " })]
pub struct OpenError {
    /// What callers match on.
    pub kind: OpenErrorKind,
    /// The path as the caller gave it.
    pub path: PathBuf,
    /// Details and advice for people; may be empty.
    pub context: String,
}

impl fmt::Display for OpenErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OpenErrorKind::NotFound => "not found",
            OpenErrorKind::Denied => "permission denied",
            OpenErrorKind::InUse => "in use",
            OpenErrorKind::Exists => "exists already",
            OpenErrorKind::NoSpace => "not enough space",
            OpenErrorKind::Unfit => "can't be a drive",
            OpenErrorKind::Silent => "does not answer",
            OpenErrorKind::NotReady => "is not ready",
            OpenErrorKind::Other => "can't be used",
        })
    }
}

impl OpenError {
    pub(super) fn new(kind: OpenErrorKind, path: &Path, context: impl Into<String>) -> Self {
        OpenError {
            kind,
            path: path.to_owned(),
            context: context.into(),
        }
    }

    fn said(path: &Path, error: &io::Error) -> Self {
        let kind = match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) => OpenErrorKind::NotFound,
            Some(libc::EACCES | libc::EPERM | libc::EROFS) => OpenErrorKind::Denied,
            Some(libc::EBUSY | libc::ETXTBSY) => OpenErrorKind::InUse,
            Some(libc::EEXIST) => OpenErrorKind::Exists,
            Some(libc::ENOSPC | libc::EDQUOT) => OpenErrorKind::NoSpace,
            _ => OpenErrorKind::Other,
        };
        Self::new(kind, path, error.to_string())
    }
}

/// What a device that could not be opened says. The kernel says the same of a node that no driver has
/// and of a disk that is not ready, but it knows only the disk.
fn of_device(path: &Path, error: &io::Error, is_known: bool) -> OpenError {
    let said = OpenError::said(path, error);
    match error.raw_os_error() {
        Some(libc::EIO | libc::ENXIO | libc::ENOMEDIUM) if is_known => OpenError {
            kind: OpenErrorKind::NotReady,
            ..said
        },
        _ => said,
    }
}

/// What a path says that could not be opened.
fn not_opened(path: &Path, metadata: &Metadata, error: &io::Error) -> OpenError {
    let is_block = metadata.file_type().is_block_device();
    of_device(
        path,
        error,
        is_block && serial::about_device(metadata).exists(),
    )
}

/// An open, locked drive and how to treat it.
#[derive(Debug)]
pub(super) struct Opened {
    pub file: File,
    pub geometry: Geometry,
    /// Whether transfers go round the page cache.
    pub direct: bool,
    /// Whether there is a medium to flush to.
    pub syncs: bool,
    /// Whether the mere submission of a transfer may wait for somebody: a server of the
    /// file system, in a program of its own or on another machine.
    pub may_block: bool,
    /// Of a block device that has one.
    pub serial: Option<String>,
    /// The path, made absolute, where it can be told.
    pub path: Option<CString>,
}

/// Opens and locks the file or block device at `path`.
pub(super) fn open(path: &Path) -> Result<Opened, OpenError> {
    let said = |e: io::Error| OpenError::said(path, &e);
    let metadata = fs::metadata(path).map_err(said)?;
    let is_block = metadata.file_type().is_block_device();
    if !is_block && !metadata.is_file() {
        let context = "it is neither a file nor a block device";
        return Err(OpenError::new(OpenErrorKind::Unfit, path, context));
    }
    let exclusive = if is_block { libc::O_EXCL } else { 0 };
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(exclusive)
        .open(path)
        .map_err(|error| not_opened(path, &metadata, &error))?;
    lock(&file, path)?;
    let queue = BlockQueue::under(&metadata);
    let capacity_bytes = capacity(&file, path, is_block, &queue)?;
    // What a device node lies on says nothing of the device: /dev is in memory, too.
    let under = match is_block {
        true => Under::Device,
        false => Under::of(&file).map_err(said)?,
    };
    let in_memory = under == Under::Memory;
    let direct = prepare(&file, in_memory).map_err(said)?;
    let rotational = !in_memory && queue.number("rotational") == Some(1);
    let discards = is_block && queue.number("discard_max_bytes").is_some_and(|max| max > 0);
    let geometry = Geometry {
        capacity_bytes,
        rotational,
        discards,
    };
    Ok(Opened {
        file,
        geometry,
        direct,
        syncs: !in_memory,
        may_block: under == Under::Other,
        serial: serial::of(&metadata),
        path: absolute(path),
    })
}

fn absolute(path: &Path) -> Option<CString> {
    let path = std::path::absolute(path).ok()?;
    CString::new(path.into_os_string().into_vec()).ok()
}

fn lock(file: &File, path: &Path) -> Result<(), OpenError> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => {
            let context = "another open drive or a running ashlar has it locked";
            OpenError::new(OpenErrorKind::InUse, path, context)
        }
        TryLockError::Error(error) => OpenError::said(path, &error),
    })
}

fn capacity(
    mut file: &File,
    path: &Path,
    is_block: bool,
    queue: &BlockQueue,
) -> Result<u64, OpenError> {
    let unfit = |context: String| Err(OpenError::new(OpenErrorKind::Unfit, path, context));
    let grain = BLOCK_BYTES as u64;
    if is_block
        && let Some(logical) = queue.number("logical_block_size")
        && !grain.is_multiple_of(logical)
    {
        return unfit(format!(
            "its blocks of {logical} bytes do not divide {grain}"
        ));
    }
    // Gives the size of files and of block devices.
    let size = file
        .seek(SeekFrom::End(0))
        .map_err(|e| OpenError::said(path, &e))?;
    if size < grain {
        return unfit(format!(
            "it has {size} bytes, less than one block of {grain}"
        ));
    }
    Ok(size - size % grain)
}

/// Sets the open file's flags for its kind. True when transfers are direct.
fn prepare(file: &File, in_memory: bool) -> io::Result<bool> {
    if in_memory {
        // Without this io_uring hands every transfer to a kernel worker, though
        // none of them ever waits; writes also without O_DIRECT, which tmpfs takes
        // (and has no use for) since Linux 6.6.
        set_flag(file, libc::O_NONBLOCK)?;
        return match set_flag(file, libc::O_DIRECT) {
            Err(error) if error.raw_os_error() != Some(libc::EINVAL) => Err(error),
            _ => Ok(false),
        };
    }
    if direct_alignment(file).is_some_and(|grain| grain == 0 || grain > BLOCK_BYTES) {
        return Ok(false);
    }
    match set_flag(file, libc::O_DIRECT) {
        Ok(()) => Ok(true),
        // A file system without direct I/O: flushes make cached writes durable.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(false),
        Err(error) => Err(error),
    }
}

fn set_flag(file: &File, flag: libc::c_int) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the commands take no pointers.
    let done = unsafe {
        let flags = libc::fcntl(file.as_raw_fd(), libc::F_GETFL);
        flags >= 0 && libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags | flag) == 0
    };
    if done {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The grain of offsets for direct I/O; 0 without direct I/O, `None` when the
/// kernel (before Linux 6.1) doesn't say.
fn direct_alignment(file: &File) -> Option<usize> {
    let mut status = MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: the path is empty and NUL-terminated, `status` has room for the
    // answer, and all-zero is a valid statx.
    let status = unsafe {
        let result = libc::statx(
            file.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            libc::STATX_DIOALIGN,
            status.as_mut_ptr(),
        );
        if result != 0 {
            return None;
        }
        status.assume_init()
    };
    let known = status.stx_mask & libc::STATX_DIOALIGN != 0;
    known.then_some(status.stx_dio_offset_align as usize)
}

/// What a drive lies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Under {
    /// It is a block device.
    Device,
    /// Memory, and nothing else (tmpfs, ramfs).
    Memory,
    /// A file system of this machine that starts a transfer, or says that it can't now,
    /// without waiting.
    Local,
    /// Any other: FUSE, NFS, and what nobody here knows.
    Other,
}

impl Under {
    fn of(file: &File) -> io::Result<Under> {
        const RAMFS_MAGIC: u64 = 0x8584_58f6;
        // The types of these differ between architectures.
        let kind = file_system(file)?.f_type as u64;
        let is_any = |known: &[u64]| known.contains(&kind);
        let memory = [libc::TMPFS_MAGIC as u64, RAMFS_MAGIC];
        let local = [
            libc::EXT4_SUPER_MAGIC as u64,
            libc::XFS_SUPER_MAGIC as u64,
            libc::BTRFS_SUPER_MAGIC as u64,
        ];
        Ok(match kind {
            _ if is_any(&memory) => Under::Memory,
            _ if is_any(&local) => Under::Local,
            _ => Under::Other,
        })
    }
}

fn file_system(file: &File) -> io::Result<libc::statfs> {
    let mut status = MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: `status` has room for the answer, and all-zero is a valid statfs.
    unsafe {
        match libc::fstatfs(file.as_raw_fd(), status.as_mut_ptr()) {
            0 => Ok(status.assume_init()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// What sysfs says of the block device that a file lies on or is.
struct BlockQueue {
    dir: PathBuf,
}

impl BlockQueue {
    fn under(metadata: &Metadata) -> Self {
        let is_block = metadata.file_type().is_block_device();
        let device = if is_block {
            metadata.rdev()
        } else {
            metadata.dev()
        };
        let (major, minor) = (libc::major(device), libc::minor(device));
        let device = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
        let own = device.join("queue");
        // A partition has the queue of the disk it is in.
        BlockQueue {
            dir: if own.is_dir() {
                own
            } else {
                device.join("../queue")
            },
        }
    }

    fn number(&self, attribute: &str) -> Option<u64> {
        fs::read_to_string(self.dir.join(attribute))
            .ok()?
            .trim()
            .parse()
            .ok()
    }
}

/// Creates a file of `capacity_bytes` with its space reserved, durably.
pub(super) fn create_file(path: &Path, capacity_bytes: u64) -> Result<(), OpenError> {
    let said = |e: io::Error| OpenError::said(path, &e);
    if capacity_bytes == 0 || !capacity_bytes.is_multiple_of(BLOCK_BYTES as u64) {
        let context = format!("{capacity_bytes} bytes are not a whole number of blocks");
        return Err(OpenError::new(OpenErrorKind::Unfit, path, context));
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(said)?;
    let made = fill(&mut file, path, capacity_bytes).and_then(|()| {
        file.sync_all().map_err(said)?;
        sync_directory_of(path).map_err(said)
    });
    if made.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(path);
    }
    made
}

fn sync_directory_of(path: &Path) -> io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    File::open(dir.unwrap_or(Path::new(".")))?.sync_all()
}

fn fill(file: &mut File, path: &Path, capacity_bytes: u64) -> Result<(), OpenError> {
    // Asked first, so that a file that can't fit doesn't fill the disk up to the
    // last block before it fails.
    let free_bytes = free(file).map_err(|e| OpenError::said(path, &e))?;
    if free_bytes < capacity_bytes {
        let missing = human(capacity_bytes - free_bytes);
        let (wanted, free) = human_pair(capacity_bytes, free_bytes);
        let context = format!(
            "{wanted} are wanted and {free} are free: free {missing} more, or ask for a smaller drive"
        );
        return Err(OpenError::new(OpenErrorKind::NoSpace, path, context));
    }
    match reserve(file, capacity_bytes, 0) {
        Err(e) if e.raw_os_error() == Some(libc::EOPNOTSUPP) => write_zeroes(file, capacity_bytes),
        other => other,
    }
    .map_err(|e| OpenError::said(path, &e))
}

/// Reserves the space that a drive file of before lacks: one that was restored or copied may have
/// holes, and a write into a hole fails when the file system is full. Gives the bytes that it
/// lacked. What the file holds stays.
///
/// # Errors
/// It can't be opened, or the file system has not the space.
pub fn reserve_holes(path: &Path) -> Result<u64, OpenError> {
    let said = |e: io::Error| OpenError::said(path, &e);
    let taken = |about: &Metadata| about.blocks().saturating_mul(512);
    let before = fs::metadata(path).map_err(said)?;
    if !before.is_file() || taken(&before) >= before.len() {
        return Ok(0);
    }
    let file = OpenOptions::new().write(true).open(path).map_err(said)?;
    // Asked first: a reservation that does not fit may take all there is before it fails.
    let (lacks, free_bytes) = (before.len() - taken(&before), free(&file).map_err(said)?);
    if free_bytes < lacks {
        let (lacks, free) = human_pair(lacks, free_bytes);
        let context = format!("it lacks {lacks} of its size, and {free} are free");
        return Err(OpenError::new(OpenErrorKind::NoSpace, path, context));
    }
    match reserve(&file, before.len(), libc::FALLOC_FL_KEEP_SIZE) {
        // It can't be helped there, and has been so since the file was made.
        Err(e) if e.raw_os_error() == Some(libc::EOPNOTSUPP) => return Ok(0),
        other => other.map_err(said)?,
    }
    let after = file.metadata().map_err(said)?;
    Ok(taken(&after).saturating_sub(taken(&before)))
}

/// Bytes that the file system has free for us.
fn free(file: &File) -> io::Result<u64> {
    let status = file_system(file)?;
    Ok(status.f_bavail.saturating_mul(status.f_bsize as u64))
}

/// Reserves space without writing it. The first write to a block then also
/// journals that it is written now; see docs/internals/performance.md for what that costs
/// and why drives are not written through when they are created.
fn reserve(file: &File, len_bytes: u64, mode: libc::c_int) -> io::Result<()> {
    let len =
        libc::off_t::try_from(len_bytes).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
    loop {
        // SAFETY: the descriptor is open, and the call takes no pointers.
        if unsafe { libc::fallocate(file.as_raw_fd(), mode, 0, len) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn write_zeroes(file: &mut File, len_bytes: u64) -> io::Result<()> {
    let zeroes = vec![0u8; 1 << 20];
    let mut left = len_bytes;
    while left > 0 {
        let run = left.min(zeroes.len() as u64) as usize;
        file.write_all(&zeroes[..run])?;
        left -= run as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
