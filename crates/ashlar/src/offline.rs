//! Finds the drives of pools that no array uses, and sorts them by pool.
//!
//! Which drives make a pool is read off their labels. The data directory of an array says where
//! its drives are, and so does a site file.

use crate::failure::Failure;
use crate::fsck_report::Remark;
use crate::site_file;
use engine::{LabelSummary, NamedDrive};
use server::bringup::Patience;
use server::offline::find_labels;
use site::Site;
use std::path::{Path, PathBuf};
use world_real::{OpenErrorKind, RealDrive, RealWorld};

/// Options that name the drives to look at, one by one or all of an array.
#[derive(clap::Args)]
pub struct Drives {
    /// Drives: files or block devices
    #[arg(value_name = "DRIVE-FILE", required_unless_present_any = ["site", "data"])]
    drives: Vec<PathBuf>,
    /// Check the drives of the array with this data directory
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Check the drives of this site file, too; files are relative to --data, or to the current
    /// directory
    #[arg(long, value_name = "FILE")]
    site: Option<PathBuf>,
    /// Check only this pool
    #[arg(long, value_name = "NAME")]
    pub pool: Option<String>,
}

/// Where a drive is, and what it is called.
pub struct DrivePlace {
    pub name: String,
    path: PathBuf,
    /// Whether it may be missing: then its pool says so.
    may_be_away: bool,
}

/// Drives whose labels name the same pool.
pub struct FoundPool {
    pub name: String,
    pub uuid: String,
    pub drives: Vec<NamedDrive<RealWorld>>,
}

impl Drives {
    /// Where they are.
    ///
    /// # Errors
    /// One is given twice, or the site file or a record can't be read.
    pub fn places(&self) -> Result<Vec<DrivePlace>, Failure> {
        let given = self.drives.iter().map(|path| DrivePlace {
            name: path.display().to_string(),
            path: path.clone(),
            may_be_away: false,
        });
        let mut places: Vec<DrivePlace> = Vec::new();
        for place in given {
            if places
                .iter()
                .any(|other| whole(&other.path) == whole(&place.path))
            {
                let twice = format!("drive {}: it is given twice; give it once", place.name);
                return Err(Failure::Wrong(twice));
            }
            places.push(place);
        }
        let data = self.data.clone().unwrap_or_default();
        let of_file = self.site.as_deref().map(site::load).transpose();
        let sites = of_file.map_err(site_file::wrong)?.into_iter();
        let sites: Vec<Site> = self.kept_settings()?.into_iter().chain(sites).collect();
        if sites.is_empty() && self.data.is_some() {
            let data = data.display();
            let why = format!("--data {data}: no array is kept there; say --site, or the drives");
            return Err(Failure::Wrong(why));
        }
        for drive in sites.into_iter().flat_map(|site| site.drives) {
            let place = DrivePlace {
                path: data.join(drive.source.path()),
                name: drive.name,
                may_be_away: true,
            };
            if is_new(&places, &place) {
                places.push(place);
            }
        }
        if self.data.is_some() || self.site.is_some() {
            places.extend(added(&data, &places)?);
        }
        Ok(places)
    }

    /// The pools of the array with the data directory, by its settings.
    ///
    /// # Errors
    /// The settings can't be read.
    pub fn pools_of_array(&self) -> Result<Vec<String>, Failure> {
        let pools = self.kept_settings()?.map(|site| site.pools);
        Ok(pools.into_iter().flatten().map(|pool| pool.name).collect())
    }

    /// The settings of the array with the data directory.
    fn kept_settings(&self) -> Result<Option<Site>, Failure> {
        let kept = self.data.as_deref().map(server::array::kept_settings);
        let kept = kept.transpose();
        Ok(kept
            .map_err(|error| Failure::Wrong(error.to_string()))?
            .flatten())
    }
}

/// The drives that commands have added, but those that the site file describes since.
fn added(data: &Path, known: &[DrivePlace]) -> Result<Vec<DrivePlace>, Failure> {
    let added = server::array::added(data).map_err(|error| Failure::Wrong(error.to_string()))?;
    let places = added.into_iter().map(|drive| DrivePlace {
        name: drive.name,
        path: drive.path,
        may_be_away: true,
    });
    Ok(places.filter(|place| is_new(known, place)).collect())
}

/// A path by which one drive is one, however it is named.
fn whole(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn is_new(known: &[DrivePlace], place: &DrivePlace) -> bool {
    known
        .iter()
        .all(|other| whole(&other.path) != whole(&place.path))
}

/// What is on drives.
pub struct Sorted {
    /// Drives with labels, sorted by the pool that these name.
    pub pools: Vec<FoundPool>,
    /// What is to be said of others.
    pub remarks: Vec<Remark>,
    /// Drives without any label.
    pub unlabelled: Vec<NamedDrive<RealWorld>>,
}

impl Sorted {
    fn add(&mut self, name: String, drive: RealDrive, label: LabelSummary) {
        let uuid = label.pool_uuid.to_string();
        let drive = NamedDrive { name, drive };
        match self.pools.iter_mut().find(|pool| pool.uuid == uuid) {
            Some(pool) => pool.drives.push(drive),
            None => self.pools.push(FoundPool {
                name: label.pool_name,
                uuid,
                drives: vec![drive],
            }),
        }
    }
}

/// Opens all drives and sorts them by pool; what belongs to none is remarked on. A drive
/// that has lost its label of the first lane is known by those of others.
///
/// # Errors
/// Drives that can't be opened, or are in use.
pub async fn sort(world: &RealWorld, places: Vec<DrivePlace>) -> Result<Sorted, Failure> {
    let mut sorted = Sorted {
        pools: Vec::new(),
        remarks: Vec::new(),
        unlabelled: Vec::new(),
    };
    let (mut wrong, mut there) = (Vec::new(), Vec::new());
    let mut patience = Patience::default();
    for place in places {
        match open(world, &place, &mut patience).await {
            Ok(SeenPlace::There(drive)) => there.push((place, drive)),
            Ok(SeenPlace::Away(remark)) => sorted.remarks.push(Remark::new(&place.name, remark)),
            Err(error) => wrong.push(format!("drive {}: {error}", place.name)),
        }
    }
    let drives: Vec<&RealDrive> = there.iter().map(|(_, drive)| drive).collect();
    let labels = find_labels(world, &drives).await;
    for ((place, drive), label) in there.into_iter().zip(labels) {
        let path = place.path.display();
        match label {
            Ok(Some(label)) => sorted.add(place.name, drive, label),
            Ok(None) => {
                let remark = format!("{path} has no label: it belongs to no pool");
                sorted.remarks.push(Remark::new(&place.name, remark));
                let name = place.name;
                sorted.unlabelled.push(NamedDrive { name, drive });
            }
            Err(error) => wrong.push(format!("drive {}: {path}: {error}", place.name)),
        }
    }
    match wrong.is_empty() {
        true => Ok(sorted),
        false => Err(Failure::Wrong(wrong.join("\n"))),
    }
}

/// As [`sort`], where there has to be a pool.
///
/// # Errors
/// As there; and no drive has a label.
pub async fn find(world: &RealWorld, places: Vec<DrivePlace>) -> Result<Sorted, Failure> {
    let sorted = sort(world, places).await?;
    if !sorted.pools.is_empty() {
        return Ok(sorted);
    }
    let mut lines = vec!["no drive has a label: there is no pool to look at".to_owned()];
    lines.extend(sorted.remarks.iter().map(Remark::to_string));
    Err(Failure::Wrong(lines.join("\n")))
}

/// What is at a place.
enum SeenPlace {
    There(RealDrive),
    /// Why nothing is.
    Away(String),
}

/// Opens a drive.
async fn open(
    world: &RealWorld,
    place: &DrivePlace,
    patience: &mut Patience,
) -> Result<SeenPlace, String> {
    let path = place.path.display();
    match patience.open(&place.path).await {
        Ok(open) => Ok(SeenPlace::There(RealDrive::of(world, &open))),
        Err(error) if error.kind == OpenErrorKind::NotFound && place.may_be_away => {
            Ok(SeenPlace::Away(format!("{path} is not there")))
        }
        // Such as a file that was emptied.
        Err(error) if error.kind == OpenErrorKind::Unfit && place.may_be_away => {
            Ok(SeenPlace::Away(error.to_string()))
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Those of `found` that are called so.
///
/// # Errors
/// None is.
pub fn choose(found: Vec<FoundPool>, pool: Option<&str>) -> Result<Vec<FoundPool>, Failure> {
    let Some(wanted) = pool else { return Ok(found) };
    let names: Vec<&str> = found.iter().map(|pool| pool.name.as_str()).collect();
    let message = format!(
        "--pool: found {wanted:?}; the drives are of {}",
        names.join(", ")
    );
    let chosen: Vec<FoundPool> = found
        .into_iter()
        .filter(|pool| pool.name == wanted)
        .collect();
    match chosen.is_empty() {
        true => Err(Failure::Wrong(message)),
        false => Ok(chosen),
    }
}
