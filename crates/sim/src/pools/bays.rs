//! The places of drives as the array's openings see them, in one boot.
//!
//! Each call takes its time, so that the power goes between any two of them.

use super::shelf::{OTHER_ARRAY, Shelf};
use array::openings::{DriveBays, MadeFiles, NotOpen, NotOpenKind, OpenBay, Patience};
use array::shard::ShardState;
use base::Prng;
use engine::{PoolSpec, World};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use send_wrapper::SendWrapper;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use world_sim::{Media, SimDrive, SimWorld};

/// The longest that a call takes, nanoseconds.
const SLOW_NS_MAX: u64 = 200_000;

/// A call of a drive that is not ready is given up after so long.
const OPEN_TIME: Duration = Duration::from_secs(5);

/// What is told of a drive that is not ready.
pub(crate) const NOT_READY: &str = "it spins up";

/// The bays of a boot.
pub(crate) struct SimBays {
    world: SendWrapper<SimWorld>,
    shelf: SendWrapper<Rc<Shelf>>,
    prng: SendWrapper<RefCell<Prng>>,
    /// Of the media that have been opened, by name: nobody can open one twice.
    locks: SendWrapper<RefCell<BTreeMap<String, Weak<()>>>>,
}

/// A drive that is open.
struct OpenMedia(SendWrapper<(Rc<Media>, Rc<()>)>);

impl OpenBay<SimWorld> for OpenMedia {
    fn door(&self, state: &ShardState<SimWorld>) -> SimDrive {
        let (media, lock) = &*self.0;
        SimDrive::adversarial(state.world(), media).locked_by(Rc::clone(lock))
    }
}

impl SimBays {
    pub(crate) fn new(world: &SimWorld, shelf: &Rc<Shelf>) -> SimBays {
        SimBays {
            prng: SendWrapper::new(RefCell::new(world.prng("bays"))),
            world: SendWrapper::new(world.clone()),
            shelf: SendWrapper::new(Rc::clone(shelf)),
            locks: SendWrapper::new(RefCell::default()),
        }
    }

    fn found(&self, path: &Path) -> Option<Rc<Media>> {
        self.shelf.at(path)?.found()
    }

    /// Whether somebody has it open, or writes under way: whoever has closed it may have.
    fn is_kept(&self, media: &Media) -> bool {
        let locks = self.locks.borrow();
        let lock = locks.get(&media.spec().name);
        media.running() > 0 || lock.is_some_and(|lock| lock.strong_count() > 0)
    }

    fn lock(&self, media: Rc<Media>) -> Arc<dyn OpenBay<SimWorld>> {
        let lock = Rc::new(());
        let name = media.spec().name.clone();
        self.locks.borrow_mut().insert(name, Rc::downgrade(&lock));
        Arc::new(OpenMedia(SendWrapper::new((media, lock))))
    }

    /// Some time passes.
    fn pause(&self) -> impl Future<Output = ()> + Send + 'static {
        let takes = self.prng.borrow_mut().below(SLOW_NS_MAX);
        SendWrapper::new(World::sleep(&*self.world, Duration::from_nanos(takes)))
    }

    /// How long the drive at `path` is not ready from now on.
    fn not_ready_for(&self, path: &Path) -> Duration {
        let now = World::now(&*self.world);
        match self.shelf.at(path) {
            Some(bay) if bay.is_dead.get() => Duration::MAX,
            Some(bay) => bay.ready_at.get().since(now),
            None => Duration::ZERO,
        }
    }

    /// Waits for a drive that is not ready, or does not: some say so, and others do not answer.
    async fn spin_up(&self, path: &Path) -> Result<(), NotOpen> {
        let left = self.not_ready_for(path);
        if left.is_zero() {
            return Ok(());
        }
        let is_silent = self.prng.borrow_mut().chance(1, 2);
        if is_silent {
            let waits = World::sleep(&*self.world, left.min(OPEN_TIME));
            SendWrapper::new(waits).await;
        }
        if is_silent && left <= OPEN_TIME {
            return Ok(());
        }
        let kind = match is_silent {
            true => NotOpenKind::Silent,
            false => NotOpenKind::NotReady,
        };
        let context = format!("{}: {NOT_READY}", path.display());
        Err(NotOpen { kind, context })
    }

    fn make_file(&self, path: &Path) -> Result<(), String> {
        match self.shelf.at(path) {
            Some(bay) if bay.is_file && !bay.is_away.get() && !bay.exists() => {
                bay.make();
                Ok(())
            }
            _ => Err(format!("{}: it can't be made", path.display())),
        }
    }
}

impl DriveBays<SimWorld> for SimBays {
    fn open<'a>(
        &'a self,
        path: &'a Path,
        patience: &'a mut Patience,
    ) -> BoxFuture<'a, Result<Arc<dyn OpenBay<SimWorld>>, NotOpen>> {
        let opened = async move {
            self.pause().await;
            self.spin_up(path).await?;
            let is_kept = || self.found(path).is_some_and(|media| self.is_kept(&media));
            while is_kept() {
                if !patience.look_again() {
                    let context = format!("{}: in use", path.display());
                    let kind = NotOpenKind::InUse;
                    return Err(NotOpen { kind, context });
                }
                self.pause().await;
            }
            let missing = || NotOpen {
                kind: NotOpenKind::NotFound,
                context: format!("{}: not found", path.display()),
            };
            let media = self.found(path).ok_or_else(missing)?;
            Ok(self.lock(media))
        };
        opened.boxed()
    }

    fn is_taken<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, bool> {
        let looked = async move {
            self.pause().await;
            self.found(path).is_some()
        };
        looked.boxed()
    }

    fn is_open_here<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, bool> {
        let asked = async move {
            self.pause().await;
            self.found(path).is_some_and(|media| self.is_kept(&media))
        };
        asked.boxed()
    }

    fn foreign<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Option<String>> {
        let is_foreign = path.starts_with(OTHER_ARRAY);
        let why = is_foreign.then(|| format!("{} is of another array", path.display()));
        std::future::ready(why).boxed()
    }

    fn is_below(&self, path: &Path, directories: &[PathBuf]) -> bool {
        let mut directories = directories.iter();
        directories.any(|directory| path.parent().unwrap_or(path).starts_with(directory))
    }

    fn make_files(&self, files: Vec<(PathBuf, u64)>) -> BoxFuture<'_, MadeFiles> {
        let making = async move {
            let mut made = Vec::new();
            for (path, _) in files {
                self.pause().await;
                if let Err(why) = self.make_file(&path) {
                    return (Some(made), Err(why));
                }
                made.push(path);
                self.pause().await;
            }
            (Some(made), Ok(()))
        };
        making.boxed()
    }

    fn remove_file<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<(), String>> {
        let removing = async move {
            self.pause().await;
            if let Some(bay) = self.shelf.at(path).filter(|bay| bay.is_there()) {
                bay.remove();
            }
            self.pause().await;
            Ok(())
        };
        removing.boxed()
    }

    fn files(&self) -> BoxFuture<'_, Vec<PathBuf>> {
        let files = async move {
            self.pause().await;
            self.shelf.files()
        };
        files.boxed()
    }

    fn suit(&self, spec: PoolSpec) -> Result<PoolSpec, String> {
        let mut prng = self.prng.borrow_mut();
        Ok(PoolSpec {
            nonce: prng.next_u64(),
            journal_bytes: Some(4096 * *prng.pick(&[2, 4, 16])),
            zone_bytes: Some(64 << 10),
            log_bytes: Some(256 << 10),
            volumes_max: 16,
            ..spec
        })
    }

    fn reached(&self, mark: &'static str) {
        World::reached(&*self.world, mark);
    }

    fn planted(&self, bug: &'static str) -> bool {
        World::planted(&*self.world, bug)
    }
}
