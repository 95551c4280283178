//! `ashlar fsck`: pools looked through while nobody serves them.
//!
//! Which drives make a pool is read off their labels, so a site file only says where
//! drives are, and so does the data directory of those that commands have added. Exit codes: 0 nothing is damaged; 1 something is damaged or lost; 2 it
//! can't be said, because drives are in use, can't be opened or belong to no pool.

use crate::failure::Failure;
use crate::output::{Format, percent, span};
use crate::{fsck_report, site_file};
use engine::fsck::{Options, Progress, Report, Severity};
use engine::{LabelSummary, NamedDrive, Pool, World};
use fsck_report::{Outcome, Remark};
use server::bringup::Patience;
use site::{DriveSource, human};
use std::cell::Cell;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;
use world::real::{OpenErrorKind, RealDrive, RealWorld};

/// How often progress is shown; what takes less than this shows none.
const SHOWN_EVERY: Duration = Duration::from_secs(1);

/// To the terminal: nothing stands on this line any more (ECMA-48, EL).
const CLEAR_LINE: &str = "\x1b[K";

#[derive(clap::Args)]
#[command(after_help = "\
Nothing is written. With --site, drives that were added or replaced by command are looked for,
too: the data directory remembers them. Drives that a running `ashlar serve` has are refused: stop it first.

Exit codes: 0 nothing is damaged; 1 something is damaged or lost; 2 it can't be said.")]
pub struct Args {
    /// Drives: files or block devices
    #[arg(value_name = "DRIVE-FILE", required_unless_present = "site")]
    drives: Vec<PathBuf>,
    /// Look through the drives of this site file
    #[arg(long, value_name = "FILE")]
    site: Option<PathBuf>,
    /// Directory that drive files and records of the site lie in [default: the current one]
    #[arg(long, value_name = "DIR", requires = "site")]
    data: Option<PathBuf>,
    /// Look through this pool only
    #[arg(long, value_name = "NAME")]
    pool: Option<String>,
    /// Read all data, and check copies and parity
    #[arg(long)]
    deep: bool,
    #[command(flatten)]
    format: Format,
}

/// Where a drive is, and what it is called.
struct Place {
    name: String,
    path: PathBuf,
    /// Whether it may be missing: then its pool says so.
    may_be_away: bool,
}

/// Drives whose labels name the same pool.
struct Found {
    name: String,
    uuid: String,
    drives: Vec<NamedDrive<RealWorld>>,
}

pub fn run(args: Args) -> Result<ExitCode, Failure> {
    let places = places(&args)?;
    let looked = world::real::run(|world| async move {
        let (found, remarks) = find(&world, places).await?;
        let found = choose(found, args.pool.as_deref())?;
        let options = Options { deep: args.deep };
        Ok(Outcome::new(remarks, look(&world, found, options).await?))
    });
    let looked: Result<Outcome, Failure> =
        looked.map_err(|error| Failure::Wrong(format!("can't look at drives: {error}")))?;
    let outcome = looked?;
    args.format
        .print_text(&outcome, |outcome| outcome.to_string())?;
    Ok(match outcome.worst() {
        None | Some(Severity::Note) => ExitCode::SUCCESS,
        Some(Severity::Damage | Severity::Loss) => ExitCode::from(1),
    })
}

fn places(args: &Args) -> Result<Vec<Place>, Failure> {
    let given = args.drives.iter().map(|path| Place {
        name: path.display().to_string(),
        path: path.clone(),
        may_be_away: false,
    });
    let mut places: Vec<Place> = Vec::new();
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
    if let Some(file) = &args.site {
        let site = site::load(file).map_err(site_file::wrong)?;
        let data = args.data.clone().unwrap_or_default();
        let of_site = site.drives.into_iter().map(|drive| Place {
            path: match drive.source {
                DriveSource::File { path, .. } => data.join(path),
                DriveSource::Device { path } => path,
            },
            name: drive.name,
            may_be_away: true,
        });
        let of_site: Vec<Place> = of_site.filter(|place| is_new(&places, place)).collect();
        places.extend(of_site);
        places.extend(added(&data, &places)?);
    }
    Ok(places)
}

/// The drives that commands have added, but those that the site file describes since.
fn added(data: &Path, known: &[Place]) -> Result<Vec<Place>, Failure> {
    let added = server::array::added(data).map_err(|error| Failure::Wrong(error.to_string()))?;
    let places = added.into_iter().map(|drive| Place {
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

fn is_new(known: &[Place], place: &Place) -> bool {
    known
        .iter()
        .all(|other| whole(&other.path) != whole(&place.path))
}

/// Opens all drives and sorts them by pool; what belongs to none is remarked on.
async fn find(world: &RealWorld, places: Vec<Place>) -> Result<(Vec<Found>, Vec<Remark>), Failure> {
    let (mut found, mut remarks) = (Vec::<Found>::new(), Vec::new());
    let mut wrong = Vec::new();
    let mut patience = Patience::default();
    for place in places {
        match label_of(world, &place, &mut patience).await {
            Ok(Ok((drive, label))) => {
                let name = place.name;
                let uuid = label.pool_uuid.to_string();
                let drive = NamedDrive { name, drive };
                match found.iter_mut().find(|pool| pool.uuid == uuid) {
                    Some(pool) => pool.drives.push(drive),
                    None => found.push(Found {
                        name: label.pool_name,
                        uuid,
                        drives: vec![drive],
                    }),
                }
            }
            Ok(Err(remark)) => remarks.push(Remark::new(&place.name, remark)),
            Err(error) => wrong.push(format!("drive {}: {error}", place.name)),
        }
    }
    if wrong.is_empty() && found.is_empty() {
        wrong.push("no drive has a label: there is no pool to look at".to_owned());
        wrong.extend(remarks.iter().map(Remark::to_string));
    }
    match wrong.is_empty() {
        true => Ok((found, remarks)),
        false => Err(Failure::Wrong(wrong.join("\n"))),
    }
}

/// Opens a drive and reads its label; a remark when it belongs to no pool.
async fn label_of(
    world: &RealWorld,
    place: &Place,
    patience: &mut Patience,
) -> Result<Result<(RealDrive, LabelSummary), String>, String> {
    let path = place.path.display();
    let drive = match patience.open(&place.path).await {
        Ok(open) => RealDrive::of(world, &open),
        Err(error) if error.kind == OpenErrorKind::NotFound && place.may_be_away => {
            return Ok(Err(format!("{path} is not there")));
        }
        // Such as a file that was emptied.
        Err(error) if error.kind == OpenErrorKind::Unfit && place.may_be_away => {
            return Ok(Err(error.to_string()));
        }
        Err(error) => return Err(error.to_string()),
    };
    match Pool::probe(world, &drive).await {
        Ok(Some(label)) => Ok(Ok((drive, label))),
        Ok(None) => Ok(Err(format!("{path} has no label: it belongs to no pool"))),
        Err(error) => Err(format!("{path}: {error}")),
    }
}

fn choose(found: Vec<Found>, pool: Option<&str>) -> Result<Vec<Found>, Failure> {
    let Some(wanted) = pool else { return Ok(found) };
    let names: Vec<&str> = found.iter().map(|pool| pool.name.as_str()).collect();
    let message = format!(
        "--pool: found {wanted:?}; the drives are of {}",
        names.join(", ")
    );
    let chosen: Vec<Found> = found
        .into_iter()
        .filter(|pool| pool.name == wanted)
        .collect();
    match chosen.is_empty() {
        true => Err(Failure::Wrong(message)),
        false => Ok(chosen),
    }
}

async fn look(
    world: &RealWorld,
    found: Vec<Found>,
    options: Options,
) -> Result<Vec<Report>, Failure> {
    let mut reports = Vec::new();
    for pool in found {
        let progress = Rc::new(Progress::default());
        let shown = Shown::start(world, &pool.name, &progress);
        let report = engine::fsck::check_watched(world, pool.drives, options, progress).await;
        shown.end();
        reports
            .push(report.map_err(|error| Failure::Wrong(format!("pool {}: {error}", pool.name)))?);
    }
    Ok(reports)
}

/// How far it is, on standard error, when that is a terminal and it takes a while.
struct Shown {
    /// Something stands on the terminal's last line.
    stands: Rc<Cell<bool>>,
    ended: Rc<Cell<bool>>,
}

impl Shown {
    fn start(world: &RealWorld, pool: &str, progress: &Rc<Progress>) -> Self {
        let shown = Shown {
            stands: Rc::default(),
            ended: Rc::default(),
        };
        if !io::stderr().is_terminal() {
            return shown;
        }
        let (stands, ended) = (Rc::clone(&shown.stands), Rc::clone(&shown.ended));
        let (world, began) = (world.clone(), world.now());
        let (pool, progress) = (pool.to_owned(), Rc::clone(progress));
        world.clone().spawn(async move {
            loop {
                world.sleep(SHOWN_EVERY).await;
                if ended.get() {
                    return;
                }
                let line = progress_line(&pool, &progress, world.now().since(began));
                eprint!("\r{CLEAR_LINE}{line}");
                stands.set(true);
            }
        });
        shown
    }

    fn end(self) {
        self.ended.set(true);
        if self.stands.get() {
            eprint!("\r{CLEAR_LINE}");
        }
    }
}

fn progress_line(pool: &str, progress: &Progress, took: Duration) -> String {
    let (done, all) = (progress.done_blocks.get(), progress.all_blocks.get());
    let read = human(progress.read_bytes.get());
    let seconds = took.as_secs_f64().max(1e-9);
    let rate = human((progress.read_bytes.get() as f64 / seconds) as u64);
    let left = match done {
        0 => String::new(),
        _ => {
            let left = seconds * (all.saturating_sub(done)) as f64 / done as f64;
            format!(", about {} left", span(left.ceil() as u64))
        }
    };
    let share = percent(done, all);
    format!("pool {pool}: {share} looked through, {read} read at {rate}/s{left}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_a_line() {
        let progress = Progress::default();
        let line = |took| progress_line("p", &progress, Duration::from_secs(took));
        assert_eq!(line(1), "pool p: - looked through, 0 B read at 0 B/s");
        progress.read_bytes.set(6 << 20);
        progress.done_blocks.set(1);
        progress.all_blocks.set(4);
        let wanted = "pool p: 25.0 % looked through, 6 MiB read at 3 MiB/s, about 6 s left";
        assert_eq!(line(2), wanted);
    }
}
