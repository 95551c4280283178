//! The real world: io_uring, a monotonic clock, entropy from the kernel.
//!
//! A shard is one thread. [`run`] gives it a tokio executor of its own, a
//! private io_uring and a [`RealWorld`] handle to both, and drops everything at
//! the end. Nothing here is shared between threads.
//!
//! - `ring` batches drive operations and owns their buffers until the kernel is
//!   done with them.
//! - `drive` is the engine's [`engine::drive::Drive`] over a file or a block
//!   device.
//! - `open` finds out what a path is, locks it, and creates drive files.
//! - `retry` says what is tried again, `aside` keeps calls that may hang off the shard, and
//!   `descriptors` raises the limit of open files.
//! - `privacy` keeps files for their user only, and memory for root.
//! - `serial` reads the serial numbers of devices.
//! - `child` binds programs that we start to our life, `confine` keeps them to their files and
//!   `calls` to the system calls that they need, and `sparse` tells holes of files.
//! - `suspicion` knows the drives whose submissions may block.
//! - `setup` asks the kernel for a ring and says what to do when it refuses.
//! - `adaptive_polling` keeps the thread awake for a moment after work, when that pays.
#![allow(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this is the world whose clock is the real one"
)]

mod adaptive_polling;
mod aside;
mod calls;
mod child;
mod confine;
mod descriptors;
mod drive;
mod entropy;
mod errno;
mod host;
mod open;
mod privacy;
mod retry;
mod ring;
mod serial;
mod setup;
mod sparse;
mod suspicion;

pub use aside::within;
pub use child::ends_with_us;
pub use confine::{Reach, confine};
pub use descriptors::{Descriptors, is_open_here, raise_descriptors};
pub use drive::{OpenDrive, RealDrive};
pub use open::{OpenError, OpenErrorKind, reserve_holes};
pub use privacy::{make_files_private, make_memory_private};
pub use serial::about_device;
pub use setup::{StartError, StartErrorKind};
pub use sparse::extent;

use adaptive_polling::AdaptivePolling;
use base::{BufPool, Prng, Time};
use engine::world::{Host, World};
use io_uring::IoUring;
use ring::Ring;
use std::future::Future;
use std::rc::Rc;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The real world of one shard. A cheap handle; stays on its thread.
#[derive(Clone)]
pub struct RealWorld {
    shared: Rc<SharedWorld>,
}

/// The time of every real world of this process: their clocks begin together.
pub fn now() -> Time {
    Time::default() + began().elapsed()
}

fn began() -> Instant {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    *BEGAN.get_or_init(Instant::now)
}

struct SharedWorld {
    ring: Ring,
    buffers: BufPool,
    began: Instant,
    root: Prng,
    adaptive_polling: Rc<AdaptivePolling>,
    host: Host,
}

/// Runs `main` on this thread with an executor and a world of its own, and
/// gives back what it returned. Tasks still running then are dropped at an await
/// point; operations that the kernel still works on are waited for.
///
/// # Errors
/// When the kernel gives no event loop or no io_uring.
///
/// # Panics
/// When called from within another tokio runtime.
pub fn run<F, T>(main: impl FnOnce(RealWorld) -> F) -> Result<T, StartError>
where
    F: Future<Output = T>,
{
    run_over(setup::ring, main)
}

/// As [`run`], over the ring that `setup` gives.
fn run_over<F, T>(
    setup: impl FnOnce() -> Result<IoUring, StartError>,
    main: impl FnOnce(RealWorld) -> F,
) -> Result<T, StartError>
where
    F: Future<Output = T>,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(tokio::runtime::LocalOptions::default())
        .map_err(|e| StartError::event_loop(&e))?;
    runtime.block_on(async {
        let world = RealWorld::over(setup()?)?;
        Ok(main(world).await)
    })
}

impl RealWorld {
    /// A world on the executor that runs the caller: a tokio `LocalRuntime`, or a
    /// `LocalSet` on a current-thread runtime. [`run`] makes a fitting one.
    ///
    /// # Errors
    /// When the kernel gives no io_uring.
    ///
    /// # Panics
    /// When the caller does not run on such an executor.
    pub fn start() -> Result<RealWorld, StartError> {
        Self::over(setup::ring()?)
    }

    fn over(uring: IoUring) -> Result<RealWorld, StartError> {
        let root = Prng::from_seed(entropy::seed()?);
        let shared = SharedWorld {
            ring: Ring::over(uring)?,
            buffers: BufPool::new(),
            began: began(),
            host: host::this(&root),
            root,
            adaptive_polling: AdaptivePolling::start(),
        };
        Ok(RealWorld {
            shared: Rc::new(shared),
        })
    }

    fn ring(&self) -> &Ring {
        &self.shared.ring
    }
}

impl World for RealWorld {
    type Drive = RealDrive;

    fn now(&self) -> Time {
        Time::default() + self.shared.began.elapsed()
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        tokio::task::spawn_local(task);
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + 'static {
        // Without tokio's budget, which a peer that always has something to read would use up.
        tokio::task::coop::unconstrained(tokio::time::sleep(duration))
    }

    // The thread looks for more for a moment before it sleeps, if such a moment has paid lately.
    fn note_work(&self) {
        self.shared.adaptive_polling.work();
    }

    fn prng(&self, name: &str) -> Prng {
        self.shared.root.stream(name)
    }

    fn buffers(&self) -> &BufPool {
        &self.shared.buffers
    }

    fn host(&self) -> Host {
        self.shared.host.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn time_passes_and_a_sleep_is_never_short() {
        run(|world| async move {
            let before = world.now();
            world.sleep(Duration::from_millis(3)).await;
            assert!(world.now().since(before) >= Duration::from_millis(3));
        })
        .unwrap();
    }

    #[test]
    fn spawned_tasks_run_on_the_shard() {
        let ran = Rc::new(Cell::new(false));
        let seen = Rc::clone(&ran);
        run(|world| async move {
            world.spawn(async move { seen.set(true) });
            while !ran.get() {
                tokio::task::yield_now().await;
            }
        })
        .unwrap();
    }

    #[test]
    fn streams_repeat_within_a_world_and_differ_between_worlds() {
        let draw = || {
            run(|world| async move {
                let first = world.prng("a").next_u64();
                assert_eq!(first, world.prng("a").next_u64());
                assert_ne!(first, world.prng("b").next_u64());
                first
            })
            .unwrap()
        };
        assert_ne!(draw(), draw());
    }

    #[test]
    fn buffers_come_back_from_other_threads() {
        let pool = BufPool::new();
        let buf = pool.copy_of(b"goes away");
        let address = buf.bytes().unwrap().as_ptr() as usize;
        let slice = buf.freeze();
        let shared = slice.clone();
        std::thread::spawn(move || assert_eq!(slice.bytes().unwrap(), b"goes away"))
            .join()
            .unwrap();
        assert_eq!(pool.outstanding_bytes(), 4096, "one of two is left");
        std::thread::spawn(move || drop(shared)).join().unwrap();
        assert_eq!(pool.outstanding_bytes(), 0);
        let again = pool.bytes(1);
        assert_eq!(again.bytes().unwrap().as_ptr() as usize, address);
    }
}
