//! The drives that there are, each at a place of its own for ever.

use crate::lanes::NamedMedia;
use crate::pool_changes::{Door, NewMedia};
use array::control::{ArrayError, NewDrive, Placing};
use array::error::ArrayErrorKind;
use base::Prng;
use engine::pool::PoolInfo;
use send_wrapper::SendWrapper;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use world_sim::{Media, MediaSpec, SimWorld};

/// New drives of a run, at most.
const NEW: usize = 40;

/// All drives, by their places.
pub(super) struct Shelf {
    all: BTreeMap<PathBuf, Rc<Media>>,
    next: Cell<usize>,
}

fn place(name: &str) -> PathBuf {
    PathBuf::from(format!("/dev/{name}"))
}

impl Shelf {
    /// The drives that the pool is made of, and new ones as large as those.
    pub(super) fn new(prng: &Prng, first: &[Rc<Media>]) -> Self {
        let new = |number: usize| {
            let spec = MediaSpec::new(format!("n{number}"), first[0].spec().capacity_bytes);
            Rc::new(Media::new(spec, prng.stream(&format!("n{number}"))))
        };
        let all = first.iter().cloned().chain((0..NEW).map(new));
        Shelf {
            all: all.map(|one| (place(&one.spec().name), one)).collect(),
            next: Cell::new(0),
        }
    }

    pub(super) fn all(&self) -> Vec<Rc<Media>> {
        self.all.values().cloned().collect()
    }

    /// Where a drive is that nobody has had, and a name that no drive has had; none when all are
    /// used up.
    pub(super) fn take(&self) -> Option<NewDrive> {
        let number = self.next.get();
        self.next.set(number + 1);
        let name = format!("n{number}");
        (number < NEW).then(|| NewDrive {
            path: place(&name),
            name,
            is_device: true,
            size_bytes: None,
        })
    }

    /// Those at these places, under these names.
    pub(super) fn at(&self, places: impl Iterator<Item = (String, PathBuf)>) -> Vec<NamedMedia> {
        let there = places.filter_map(|(name, path)| Some((name, self.on(&path)?)));
        there.collect()
    }

    fn on(&self, path: &Path) -> Option<Rc<Media>> {
        self.all.get(path).cloned()
    }

    /// Doors to these, under their own names.
    pub(super) fn doors(&self, media: &[Rc<Media>]) -> Vec<Door> {
        let door = |one: &Rc<Media>| Door::from(&(one.spec().name.clone(), Rc::clone(one)));
        media.iter().map(door).collect()
    }

    pub(super) fn placing(self: &Rc<Self>) -> OnTheShelf {
        OnTheShelf(SendWrapper::new(Rc::clone(self)))
    }
}

/// Finds new drives there.
pub(super) struct OnTheShelf(SendWrapper<Rc<Shelf>>);

impl Placing<SimWorld> for OnTheShelf {
    type Drives = NewMedia;

    async fn place(
        &self,
        _: &PoolInfo,
        new: Vec<NewDrive>,
        _: Option<&str>,
    ) -> Result<NewMedia, ArrayError> {
        let there = |drive: &NewDrive| {
            let missing = || ArrayError::new(ArrayErrorKind::Invalid, "it is not there".to_owned());
            let media = self.0.on(&drive.path).ok_or_else(missing)?;
            Ok((drive.name.clone(), media))
        };
        let there: Result<Vec<NamedMedia>, ArrayError> = new.iter().map(there).collect();
        Ok(NewMedia::of(&there?))
    }
}
