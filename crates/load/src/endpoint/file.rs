//! Files and block devices, read and written by a few blocking threads.
//!
//! Opened O_DIRECT where the file system can (so that the page cache is not what
//! is measured), without where it cannot (tmpfs). Writes are as durable as
//! O_DIRECT makes them: in the device, perhaps in its cache.

use super::{Completion, Endpoint, Geometry, Interest, OpenOptions, Request};
use super::{TargetError, TargetErrorKind};
use crate::os::Event;
use base::BufPool;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use workload::generator::Kind;
use workload::pattern::Pattern;
use workload::profile::IO_GRAIN_BYTES;
use workload::url::TargetUrl;

/// More threads than this do not help one file.
const THREADS_MAX: usize = 32;

/// An open file or block device.
#[derive(Debug)]
pub struct FileEndpoint {
    geometry: Geometry,
    url: TargetUrl,
    /// Dropped to end the threads.
    jobs: Sender<Request>,
    done: Arc<Done>,
    work: Arc<Work>,
}

/// Where the threads leave what completed.
#[derive(Debug)]
struct Done {
    completions: Mutex<Vec<Completion>>,
    event: Event,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that panicked leaves a vector in a valid state.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FileEndpoint {
    /// Opens `path`, which must exist.
    ///
    /// # Errors
    /// `Absent`, `Refused` (permissions), `ReadOnly`, `Unreachable` (anything else).
    pub fn open(url: &TargetUrl, path: &Path, options: &OpenOptions) -> Result<Self, TargetError> {
        let mut file = open_file(path, options.writes).map_err(|error| refused(url, &error))?;
        let capacity_bytes = capacity(url, &mut file)?;
        let event = Event::new().map_err(|error| refused(url, &error))?;
        let done = Arc::new(Done {
            completions: Mutex::default(),
            event,
        });
        let (jobs, queue) = mpsc::channel();
        let work = Arc::new(Work {
            file,
            queue: Mutex::new(queue),
            done: Arc::clone(&done),
            pattern: Arc::clone(&options.pattern),
        });
        for _ in 0..options.outstanding_max.clamp(1, THREADS_MAX) {
            let work = Arc::clone(&work);
            std::thread::Builder::new()
                .name("load-file".into())
                .spawn(move || work.run())
                .map_err(|error| refused(url, &error))?;
        }
        // A block that no file system tears and O_DIRECT always takes.
        let geometry = Geometry {
            capacity_bytes,
            block_bytes: IO_GRAIN_BYTES,
            read_only: false,
        };
        Ok(FileEndpoint {
            geometry,
            url: url.clone(),
            jobs,
            done,
            work,
        })
    }
}

/// The size in bytes of a file that is what its URL says.
fn capacity(url: &TargetUrl, file: &mut File) -> Result<u64, TargetError> {
    let refused = |error| refused(url, &error);
    let kind = file.metadata().map_err(refused)?.file_type();
    if matches!(url, TargetUrl::File { block: true, .. }) && !kind.is_block_device() {
        let detail = "is not a block device; name a file as file:PATH";
        return Err(TargetError::new(TargetErrorKind::Absent, url, detail));
    }
    file.seek(SeekFrom::End(0)).map_err(refused)
}

fn open_file(path: &Path, writes: bool) -> io::Result<File> {
    let mut options = File::options();
    options
        .read(true)
        .write(writes)
        .custom_flags(libc::O_DIRECT);
    match options.open(path) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            options.custom_flags(0).open(path)
        }
        opened => opened,
    }
}

fn refused(url: &TargetUrl, error: &io::Error) -> TargetError {
    use io::ErrorKind as Io;
    let (kind, advice) = match error.kind() {
        Io::NotFound => (
            TargetErrorKind::Absent,
            "create it with the size to test first",
        ),
        Io::ReadOnlyFilesystem => (TargetErrorKind::ReadOnly, "the profile writes"),
        Io::PermissionDenied => (TargetErrorKind::Refused, "check owner and mode of the file"),
        Io::IsADirectory => (TargetErrorKind::Absent, "name a file in it"),
        _ => (
            TargetErrorKind::Unreachable,
            "check the path and the device",
        ),
    };
    TargetError::new(kind, url, format!("cannot open: {error}; {advice}"))
}

impl Endpoint for FileEndpoint {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn submit(&mut self, request: Request) -> Result<(), TargetError> {
        self.jobs.send(request).map_err(|_| {
            TargetError::new(
                TargetErrorKind::Lost,
                &self.url,
                "its I/O threads have ended",
            )
        })
    }

    fn flush(&mut self) -> Result<(), TargetError> {
        Ok(())
    }

    fn interest(&self) -> Interest {
        Interest {
            fd: self.done.event.fd(),
            events: libc::POLLIN,
        }
    }

    fn service(
        &mut self,
        _revents: i16,
        completions: &mut Vec<Completion>,
    ) -> Result<(), TargetError> {
        // Cleared first: what completes in between signals again.
        self.done.event.clear();
        completions.append(&mut locked(&self.done.completions));
        Ok(())
    }

    fn look(&mut self, offset_bytes: u64, bytes: u32) -> Result<Vec<u8>, String> {
        // Aligned, as O_DIRECT wants it.
        let mut buffer = BufPool::new().bytes(bytes as usize);
        let Some(space) = buffer.bytes_mut() else {
            unreachable!("BufPool::bytes gives buffers with bytes")
        };
        let read = self.work.file.read_exact_at(space, offset_bytes);
        read.map(|()| space.to_vec())
            .map_err(|error| error.to_string())
    }
}

#[derive(Debug)]
struct Work {
    file: File,
    queue: Mutex<Receiver<Request>>,
    done: Arc<Done>,
    pattern: Arc<Pattern>,
}

impl Work {
    fn run(&self) {
        let buffers = BufPool::new();
        loop {
            let received = locked(&self.queue).recv();
            let Ok(request) = received else { return };
            let outcome = self
                .perform(&buffers, &request)
                .map_err(|error| error.to_string());
            locked(&self.done.completions).push(Completion {
                token: request.token,
                outcome,
            });
            self.done.event.signal();
        }
    }

    fn perform(&self, buffers: &BufPool, request: &Request) -> io::Result<()> {
        let mut buffer = buffers.bytes(request.bytes as usize);
        let Some(bytes) = buffer.bytes_mut() else {
            unreachable!("BufPool::bytes gives buffers with bytes")
        };
        match request.kind {
            Kind::Read => self.file.read_exact_at(bytes, request.offset_bytes),
            Kind::Write => {
                self.pattern
                    .fill(request.offset_bytes, request.sequence, bytes);
                self.file.write_all_at(bytes, request.offset_bytes)
            }
        }
    }
}
