//! Targets of a load: a range of bytes behind a URL.
//!
//! An [`Endpoint`] never blocks in [`Endpoint::submit`], [`Endpoint::flush`] or
//! [`Endpoint::service`]; its owner waits for many of them at once on their file
//! descriptors. Endpoints are made and used on one thread.
//!
//! Invariants:
//! - Every request that [`Endpoint::submit`] took completes exactly once, or
//!   the endpoint reports itself lost.
//! - An endpoint never reconnects or retries on its own: what the target did is
//!   what is measured. A run may open another one in its place. The exception is a unit
//!   attention, by which a target tells something instead of doing a command: that command is
//!   sent again, and [`Endpoint::attentions`] tells of it.

pub mod file;
pub mod iscsi;
pub mod nbd;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;
use workload::generator::Kind;
use workload::pattern::Pattern;
use workload::trace::TraceError;
use workload::url::TargetUrl;

/// How long connecting to a target may take.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// An open target, that another thread may have opened.
pub type AnyEndpoint = Box<dyn Endpoint + Send>;

/// What a caller can tell apart about a target that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetErrorKind {
    /// The URL does not say what to open.
    Url,
    /// The library that speaks its protocol is not on this machine.
    Library,
    /// No server answers at that address.
    Unreachable,
    /// The target does not let us in.
    Refused,
    /// There is no such file, export or LUN.
    Absent,
    /// The profile writes and the target is read-only.
    ReadOnly,
    /// The target is too small for the profile.
    Capacity,
    /// The target breaks its protocol.
    Protocol,
    /// The connection went away during the run.
    Lost,
    /// Nothing is wrong with a target: the trace that is replayed cannot be read.
    Trace,
}

/// Why a target cannot be used: which one and what to do.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{target}: {detail}")]
pub struct TargetError {
    /// What callers match on.
    pub kind: TargetErrorKind,
    /// The URL of the target, or the file and line of a trace.
    pub target: String,
    /// What was found, for people.
    pub detail: String,
}

impl TargetError {
    /// An error of `kind` about `target`.
    pub fn new(kind: TargetErrorKind, target: impl ToString, detail: impl Into<String>) -> Self {
        TargetError {
            kind,
            target: target.to_string(),
            detail: detail.into(),
        }
    }
}

impl From<TraceError> for TargetError {
    fn from(error: TraceError) -> TargetError {
        let place = match error.line {
            Some(line) => format!("{}:{line}", error.path.display()),
            None => error.path.display().to_string(),
        };
        TargetError::new(TargetErrorKind::Trace, place, error.what)
    }
}

/// What a target says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Size of the target in bytes.
    pub capacity_bytes: u64,
    /// Offsets and sizes must be multiples of this many bytes.
    pub block_bytes: u32,
    /// Whether writes are refused.
    pub read_only: bool,
}

/// One read or write.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The owner's name for it; comes back in the [`Completion`].
    pub token: u64,
    /// Whether it reads or writes.
    pub kind: Kind,
    /// Offset on the target in bytes.
    pub offset_bytes: u64,
    /// Size in bytes, a multiple of [`Geometry::block_bytes`].
    pub bytes: u32,
    /// Which write of its VM this is; chooses the data.
    pub sequence: u64,
}

/// The end of a request.
#[derive(Clone, Debug)]
pub struct Completion {
    /// The token of the request.
    pub token: u64,
    /// `Err` says what the target answered.
    pub outcome: Result<(), String>,
}

/// What to wait for before calling [`Endpoint::service`] again.
#[derive(Clone, Copy, Debug)]
pub struct Interest {
    /// The descriptor to poll, owned by the endpoint.
    pub fd: RawFd,
    /// The events to wait for, as `poll(2)` takes them.
    pub events: i16,
}

/// An open target that takes requests and completes them.
pub trait Endpoint {
    /// Size, block and access.
    fn geometry(&self) -> Geometry;

    /// Takes a request. It may stay queued until [`Endpoint::flush`].
    ///
    /// # Errors
    /// When the endpoint is lost; the request is not taken.
    fn submit(&mut self, request: Request) -> Result<(), TargetError>;

    /// Starts what was submitted, as far as that is possible without waiting.
    ///
    /// # Errors
    /// When the endpoint is lost.
    fn flush(&mut self) -> Result<(), TargetError>;

    /// What to wait for.
    fn interest(&self) -> Interest;

    /// Moves bytes after `poll(2)` reported `revents` (0: nothing, time passes)
    /// and appends what completed.
    ///
    /// # Errors
    /// When the endpoint is lost. Requests that were under way never complete.
    fn service(
        &mut self,
        revents: i16,
        completions: &mut Vec<Completion>,
    ) -> Result<(), TargetError>;

    /// Unit attentions since the last call: the request that met it, and what the target told.
    fn attentions(&mut self) -> Vec<(u64, String)> {
        Vec::new()
    }

    /// Reads, and waits for it: to look at a target on which nothing is under way. Offset and
    /// size are multiples of the block.
    ///
    /// # Errors
    /// What the target answered, or why there is no answer.
    fn look(&mut self, offset_bytes: u64, bytes: u32) -> Result<Vec<u8>, String>;
}

/// How long [`Endpoint::look`] waits for an answer.
const LOOK_TIMEOUT: Duration = Duration::from_secs(30);

/// How an endpoint is opened.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Whether it will be written.
    pub writes: bool,
    /// At most this many requests are under way at a time.
    pub outstanding_max: usize,
    /// Where the data of writes comes from.
    pub pattern: Arc<Pattern>,
    /// Connecting may take this long; [`CONNECT_TIMEOUT`] before a run.
    pub timeout: Duration,
}

/// Opens the target behind `url`.
///
/// # Errors
/// Of every [`TargetErrorKind`] but `Capacity`, `Lost` and `Trace`.
pub fn open(url: &TargetUrl, options: &OpenOptions) -> Result<AnyEndpoint, TargetError> {
    let endpoint: AnyEndpoint = match url {
        TargetUrl::File { path, .. } => Box::new(file::FileEndpoint::open(url, path, options)?),
        TargetUrl::Nbd { server, export } => {
            Box::new(nbd::NbdEndpoint::open(url, server, export, options)?)
        }
        TargetUrl::Iscsi(lun) => Box::new(iscsi::IscsiEndpoint::open(url, lun, options)?),
    };
    if options.writes && endpoint.geometry().read_only {
        let detail = "is read-only and the profile writes; export it writable or choose a profile \
                      that only reads";
        return Err(TargetError::new(TargetErrorKind::ReadOnly, url, detail));
    }
    Ok(endpoint)
}
