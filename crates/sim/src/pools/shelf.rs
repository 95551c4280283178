//! The places of drives, and what is there: devices that hold nothing, files that come and go, drives
//! of others.
//!
//! Invariant: what is there outlives boots, as files and devices do. Files are made and removed at one
//! instant.

use base::Prng;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use world_sim::{Media, MediaSpec, Snapshot};

/// The data directory.
pub(crate) const DATA: &str = "/data";

/// Of each drive: a site file allows no smaller file.
const DRIVE_BYTES: u64 = 64 << 20;

/// Devices that hold nothing at first, files that are not there at first, and drives of others.
const DEVICES: usize = 7;
const FILES: usize = 4;
const OTHERS: usize = 4;

/// The first of the others, which are of a pool that is called as one of this array.
pub(super) const NAMESAKES: usize = 2;

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
    /// Where it is away, somebody has put this drive in its place.
    instead: RefCell<Option<Rc<Media>>>,
    blank: Snapshot,
    /// What is on a drive of others.
    kept: RefCell<Option<Snapshot>>,
}

impl Bay {
    fn new(prng: &Prng, name: String, is_file: bool) -> Bay {
        let spec = MediaSpec::new(name.clone(), DRIVE_BYTES);
        let media = Media::new(spec, prng.stream(&name));
        let path = match is_file {
            true => PathBuf::from(format!("{DATA}/{name}.img")),
            false => PathBuf::from(format!("/dev/{name}")),
        };
        Bay {
            path,
            blank: media.snapshot(),
            media: Rc::new(media),
            is_file,
            exists: Cell::new(!is_file),
            is_away: Cell::new(false),
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
    fn bring_back(&self) {
        self.is_away.set(false);
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
                    size_bytes: DRIVE_BYTES,
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
    pub(crate) fn new(prng: &Prng) -> Shelf {
        let device = |number| Rc::new(Bay::new(prng, format!("d{number}"), false));
        let file = |number| Rc::new(Bay::new(prng, format!("f{number}"), true));
        let other = |number| Rc::new(Bay::new(prng, format!("o{number}"), false));
        let others: Vec<Rc<Bay>> = (0..OTHERS).map(other).collect();
        let all = (0..DEVICES).map(device).chain((0..FILES).map(file));
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
