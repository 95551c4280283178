//! Where administrators say that new drives are: at places that are free, and at places that the array
//! must not use.
//!
//! Invariant: what has to come of an offer is known when it is made, and holds until the request ends.

use crate::pools::shelf::{Bay, NAMESAKES, OTHER_ARRAY, Shelf, Stock};
use array::control::{ArrayErrorKind, KnownDrive, NewDrive};
use base::Prng;
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Of a drive: a site file allows no smaller file.
const DRIVE_BYTES: u64 = 64 << 20;

const STOCK: Stock = Stock {
    devices: 34,
    files: 16,
    drive_bytes: DRIVE_BYTES,
};

/// Of the drives of others, that which has no label.
const UNLABELLED: usize = NAMESAKES + 1;

/// Of new drives one in so many is not offered at a free place.
const ODD_ONE_OF: u64 = 3;

/// In one of so many cases a file is there already.
const THERE_ONE_OF: u64 = 4;

/// Whether a new drive may be at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// Nobody has it, and it holds nothing.
    Free,
    /// A drive of the pool is there, or failed there.
    Own,
    /// It has to be refused, for this kind of reason.
    Barred(ArrayErrorKind),
}

/// A new drive that somebody offers.
#[derive(Clone, Debug)]
pub(super) struct Offer {
    pub(super) drive: NewDrive,
    pub(super) fit: Fit,
    /// The drive that uses the place.
    user: Option<String>,
    /// Somebody puts a drive of others there before it is offered.
    is_swapped: bool,
    /// A file was there before.
    was_there: bool,
}

impl Offer {
    /// The same drive under another name.
    pub(super) fn called(self, name: String) -> Offer {
        let drive = NewDrive { name, ..self.drive };
        Offer { drive, ..self }
    }

    /// Whether its place is what a refusal is about.
    pub(super) fn is_named_in(&self, refusal: &str) -> bool {
        let path = self.drive.path.display();
        [format!("{path} "), format!("{path}:")]
            .iter()
            .any(|text| refusal.contains(text))
    }

    /// A drive that is replaced may have its own place under another name.
    pub(super) fn in_stead_of(mut self, name: &str) -> Offer {
        if self.user.as_deref() == Some(name) {
            self.fit = Fit::Own;
        }
        self
    }

    /// Nobody has the place.
    pub(super) fn is_free(&self) -> bool {
        self.fit == Fit::Free
    }

    /// The array must not use the place.
    pub(super) fn is_barred(&self) -> bool {
        matches!(self.fit, Fit::Barred(_))
    }

    /// The drives that it is about.
    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        let new = std::iter::once(self.drive.name.clone());
        new.chain(self.user.clone())
    }
}

/// All drives, and who has not had them.
pub(super) struct Places {
    pub(super) shelf: Rc<Shelf>,
    /// The drives that nobody has had.
    fresh: RefCell<Vec<Rc<Bay>>>,
    /// Number of the next new drive.
    next: Cell<u64>,
}

/// Who has which places: what the array tells of its drives.
pub(super) struct Tenants {
    /// Drives that the pool uses, and goes on to use while nobody asks for anything.
    pub(super) users: Vec<(String, PathBuf)>,
    /// Drives that have failed, and have no place in the pool any more.
    pub(super) departed: Vec<KnownDrive>,
    /// All drives of the pool.
    pub(super) taken: Vec<(String, PathBuf)>,
    /// Drives of another pool.
    pub(super) others: Vec<PathBuf>,
}

impl Places {
    pub(super) fn new(prng: &Prng) -> Places {
        let apart = [
            ("e0", "/elsewhere/e0".to_owned(), false),
            ("e1", format!("{OTHER_ARRAY}/e1.img"), true),
        ];
        let apart = apart.map(|(name, path, is_file)| {
            Bay::new(prng, name.to_owned(), (&path, is_file), DRIVE_BYTES)
        });
        let shelf = Rc::new(Shelf::beside(prng, STOCK, apart.into()));
        Places {
            fresh: RefCell::new(shelf.own().cloned().collect()),
            shelf,
            next: Cell::new(0),
        }
    }

    /// A device for a pool that is made at first.
    pub(super) fn take_device(&self) -> Option<Rc<Bay>> {
        let mut fresh = self.fresh.borrow_mut();
        let at = fresh.iter().position(|bay| !bay.is_file)?;
        Some(fresh.swap_remove(at))
    }

    fn take(&self, prng: &mut Prng) -> Option<Rc<Bay>> {
        let mut fresh = self.fresh.borrow_mut();
        let at = prng.below(fresh.len().max(1) as u64) as usize;
        (at < fresh.len()).then(|| fresh.swap_remove(at))
    }

    /// A name that no drive has had.
    fn name(&self) -> String {
        let number = self.next.get();
        self.next.set(number + 1);
        format!("n{number}")
    }

    fn offer(&self, name: String, path: &Path, fit: Fit) -> Offer {
        let bay = self.shelf.at(path);
        Offer {
            drive: NewDrive {
                name,
                path: path.to_owned(),
                is_device: path.extension().is_none(),
                size_bytes: None,
            },
            fit,
            user: None,
            is_swapped: false,
            was_there: bay.is_some_and(|bay| bay.exists()),
        }
    }

    /// A drive that nobody has had; none when all are used up.
    pub(super) fn fresh(&self, prng: &mut Prng) -> Option<Offer> {
        let bay = self.take(prng)?;
        if bay.is_file && prng.chance(1, THERE_ONE_OF) {
            bay.make();
        }
        Some(self.offer(self.name(), &bay.path, Fit::Free))
    }

    /// A drive at a free place, or at one that is not.
    pub(super) fn some(&self, prng: &mut Prng, tenants: &Tenants) -> Option<Offer> {
        match prng.chance(1, ODD_ONE_OF) {
            true => self.odd(prng, tenants),
            false => self.fresh(prng),
        }
    }

    /// A drive at a place that the array must not use, or that a drive of the pool has had.
    pub(super) fn odd(&self, prng: &mut Prng, tenants: &Tenants) -> Option<Offer> {
        let others = self.shelf.others();
        let (path, fit) = match prng.below(10) {
            0 => (prng.pick(&others[..=NAMESAKES]).path.clone(), EXISTS),
            1 => (others[UNLABELLED].path.clone(), EXISTS),
            2 => ("/elsewhere/e0".into(), INVALID),
            3 => (format!("{OTHER_ARRAY}/e1.img").into(), INVALID),
            4 => ("/dev/none".into(), INVALID),
            5 => ("/data/none.img".into(), INVALID),
            6 => (prng.pick(&tenants.others).clone(), EXISTS),
            7 => {
                let (user, path) = some_of(prng, &tenants.users)?;
                let offer = self.offer(self.name(), path, BUSY);
                let user = Some(user.clone());
                return Some(Offer { user, ..offer });
            }
            _ => {
                let path = some_of(prng, &tenants.departed)?.path.clone()?;
                return self.where_one_failed(prng, (self.name(), &path), tenants);
            }
        };
        Some(self.offer(self.name(), &path, fit))
    }

    /// A drive where one failed that has no place in the pool any more: that one, or somebody has put
    /// a drive of others there.
    pub(super) fn where_one_failed(
        &self,
        prng: &mut Prng,
        (name, path): (String, &Path),
        tenants: &Tenants,
    ) -> Option<Offer> {
        let is_here = |place: &&(String, PathBuf)| place.1 == path;
        if let Some((user, _)) = tenants.users.iter().find(is_here) {
            let user = Some(user.clone());
            return Some(Offer {
                user,
                ..self.offer(name, path, BUSY)
            });
        }
        let is_empty = tenants.taken.iter().all(|(_, taken)| taken != path);
        let is_swapped = is_empty && prng.chance(1, 2);
        let fit = if is_swapped { EXISTS } else { Fit::Own };
        let offer = self.offer(name, path, fit);
        Some(Offer {
            is_swapped,
            ..offer
        })
    }

    /// The drive of this name at its own place.
    pub(super) fn own(&self, name: &str, path: &Path) -> Offer {
        self.offer(name.to_owned(), path, Fit::Own)
    }

    /// Where somebody has put a drive of others, it is there from now on, or gone.
    pub(super) fn swap(&self, offer: &Offer, is_there: bool) {
        let bay = self.shelf.at(&offer.drive.path);
        let Some(bay) = bay.filter(|_| offer.is_swapped) else {
            return;
        };
        match is_there {
            true => bay.replace(&self.shelf.others()[UNLABELLED]),
            false => bay.bring_back(),
        }
    }

    /// What is wrong with the file of an offer that was refused, if anything is.
    pub(super) fn wrong_with(&self, offer: &Offer) -> Option<String> {
        let (name, path) = (&offer.drive.name, offer.drive.path.display());
        let bay = self.shelf.at(&offer.drive.path)?;
        match (bay.exists(), offer.was_there) {
            (true, false) => Some(format!("{name} is not taken, and its file {path} stays")),
            (false, true) => Some(format!("{name} is not taken, and {path} is removed")),
            _ => None,
        }
    }
}

const EXISTS: Fit = Fit::Barred(ArrayErrorKind::Exists);
const INVALID: Fit = Fit::Barred(ArrayErrorKind::Invalid);
const BUSY: Fit = Fit::Barred(ArrayErrorKind::Busy);

/// One of these, if there is any.
pub(super) fn some_of<'a, T>(prng: &mut Prng, of: &'a [T]) -> Option<&'a T> {
    (!of.is_empty()).then(|| prng.pick(of))
}
