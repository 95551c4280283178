//! The places of drives, and what is there: devices that hold nothing, files that come and go, drives
//! of others.
//!
//! Invariant: what is there outlives boots, as files and devices do. Files are made and removed at one
//! instant.

use base::{Prng, Time};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use world_sim::{Media, MediaSpec, Snapshot};

/// The data directory.
pub(crate) const DATA: &str = "/data";

/// The data directory of another array: in this one's, so that it is allowed.
pub(crate) const OTHER_ARRAY: &str = "/data/other";

/// Drives of others.
const OTHERS: usize = 4;

/// The first of the others, which are of a pool that is called as one of this array.
pub(crate) const NAMESAKES: usize = 2;

/// How many drives there are, and how large.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stock {
    /// Devices that hold nothing at first.
    pub(crate) devices: usize,
    /// Files that are not there at first.
    pub(crate) files: usize,
    pub(crate) drive_bytes: u64,
}

/// That of runs in which pools are made: a site file allows no smaller file.
pub(crate) const OF_POOLS: Stock = Stock {
    devices: 7,
    files: 4,
    drive_bytes: 64 << 20,
};

/// A place of a drive.
pub(crate) struct Bay {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) media: Rc<Media>,
    pub(crate) is_file: bool,
    /// A file is there. A device always is, but for [`Bay::is_away`].
    exists: Cell<bool>,
    /// Nobody finds it.
    pub(crate) is_away: Cell<bool>,
    /// It can't be opened before.
    pub(crate) ready_at: Cell<Time>,
    /// Where it is away, its node is there all the same.
    pub(crate) is_dead: Cell<bool>,
    /// Where it is away, somebody has put this drive in its place.
    instead: RefCell<Option<Rc<Media>>>,
    blank: Snapshot,
    /// What is on a drive of others.
    kept: RefCell<Option<Snapshot>>,
}

impl Bay {
    fn device(prng: &Prng, name: String, bytes: u64) -> Bay {
        Bay::new(prng, name.clone(), (&format!("/dev/{name}"), false), bytes)
    }

    fn file(prng: &Prng, name: String, bytes: u64) -> Bay {
        Bay::new(
            prng,
            name.clone(),
            (&format!("{DATA}/{name}.img"), true),
            bytes,
        )
    }

    /// A place anywhere.
    pub(crate) fn new(prng: &Prng, name: String, (path, is_file): (&str, bool), bytes: u64) -> Bay {
        let spec = MediaSpec::new(name.clone(), bytes);
        let media = Media::new(spec, prng.stream(&name));
        Bay {
            path: path.into(),
            blank: media.snapshot(),
            media: Rc::new(media),
            is_file,
            exists: Cell::new(!is_file),
            is_away: Cell::new(false),
            ready_at: Cell::default(),
            is_dead: Cell::new(false),
            instead: RefCell::default(),
            kept: RefCell::default(),
            name,
        }
    }

    /// Whether somebody who looks finds something.
    pub(crate) fn is_there(&self) -> bool {
        self.exists.get() && !self.is_away.get()
    }

    /// What somebody finds who opens it.
    pub(crate) fn found(&self) -> Option<Rc<Media>> {
        match self.is_there() {
            true => Some(Rc::clone(&self.media)),
            false => self.instead.borrow().clone(),
        }
    }

    /// It is away, and another drive is in its place.
    pub(crate) fn replace(&self, other: &Bay) {
        self.is_away.set(true);
        self.instead.replace(Some(Rc::clone(&other.media)));
    }

    /// It is back in its place.
    pub(crate) fn bring_back(&self) {
        self.is_away.set(false);
        self.is_dead.set(false);
        self.ready_at.take();
        self.instead.replace(None);
    }

    /// Whether the file exists, wherever it is now.
    pub(crate) fn exists(&self) -> bool {
        self.exists.get()
    }

    /// Makes the file, which holds nothing.
    pub(crate) fn make(&self) {
        self.media.restore(&self.blank);
        self.exists.set(true);
    }

    pub(crate) fn remove(&self) {
        self.exists.set(false);
    }

    /// How a site file names it.
    pub(crate) fn drive(&self) -> site::Drive {
        site::Drive {
            name: self.name.clone(),
            source: match self.is_file {
                true => site::DriveSource::File {
                    path: format!("{}.img", self.name).into(),
                    size_bytes: self.media.spec().capacity_bytes,
                },
                false => site::DriveSource::Device {
                    path: self.path.clone(),
                },
            },
        }
    }
}

/// All places.
pub(crate) struct Shelf {
    all: BTreeMap<PathBuf, Rc<Bay>>,
    others: Vec<Rc<Bay>>,
}

impl Shelf {
    pub(crate) fn new(prng: &Prng, stock: Stock) -> Shelf {
        Self::beside(prng, stock, Vec::new())
    }

    /// The same, and `apart`: places that are there, and that this array may not use.
    pub(crate) fn beside(prng: &Prng, stock: Stock, apart: Vec<Bay>) -> Shelf {
        let bytes = stock.drive_bytes;
        let device = |number| Rc::new(Bay::device(prng, format!("d{number}"), bytes));
        let file = |number| Rc::new(Bay::file(prng, format!("f{number}"), bytes));
        let other = |number| Rc::new(Bay::device(prng, format!("o{number}"), bytes));
        let others = (0..OTHERS).map(other);
        let apart = apart.into_iter().map(Rc::new);
        let others: Vec<Rc<Bay>> = others.chain(apart).collect();
        let all = (0..stock.devices).map(device);
        let all = all.chain((0..stock.files).map(file));
        let all = all.chain(others.iter().cloned());
        Shelf {
            all: all.map(|bay| (bay.path.clone(), bay)).collect(),
            others,
        }
    }

    pub(crate) fn at(&self, path: &Path) -> Option<Rc<Bay>> {
        self.all.get(path).cloned()
    }

    pub(crate) fn called(&self, name: &str) -> Option<&Rc<Bay>> {
        self.all.values().find(|bay| bay.name == name)
    }

    /// The drives of others.
    pub(crate) fn others(&self) -> &[Rc<Bay>] {
        &self.others
    }

    fn is_of_others(&self, bay: &Bay) -> bool {
        self.others.iter().any(|other| other.path == bay.path)
    }

    /// All but the drives of others.
    pub(crate) fn own(&self) -> impl Iterator<Item = &Rc<Bay>> {
        self.all.values().filter(|bay| !self.is_of_others(bay))
    }

    /// The files that are there.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let files = self
            .all
            .values()
            .filter(|bay| bay.is_file && bay.is_there());
        files.map(|bay| bay.path.clone()).collect()
    }

    pub(crate) fn media(&self) -> Vec<Rc<Media>> {
        self.all.values().map(|bay| Rc::clone(&bay.media)).collect()
    }

    /// Notes what is on the drives of others, which nobody may change from now on.
    pub(crate) fn note_others(&self) {
        for bay in &self.others {
            let mut kept = bay.kept.borrow_mut();
            kept.get_or_insert_with(|| bay.media.snapshot());
        }
    }

    /// The drive of others that has been changed.
    pub(crate) fn changed(&self) -> Option<&str> {
        let is_changed = |bay: &&Rc<Bay>| {
            let kept = bay.kept.borrow();
            kept.as_ref()
                .is_some_and(|kept| *kept != bay.media.snapshot())
        };
        self.others
            .iter()
            .find(is_changed)
            .map(|bay| bay.name.as_str())
    }

    /// Everything that was away is there.
    pub(crate) fn bring_back(&self) {
        self.all.values().for_each(|bay| bay.bring_back());
    }
}
