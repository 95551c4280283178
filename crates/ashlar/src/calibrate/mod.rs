//! `ashlar calibrate`: measures a drive of this machine and writes a model of it, so that a rehearsal
//! runs on the drives that are there.
//!
//! Invariants: nothing that was there before is overwritten unless somebody agrees, and a drive of a pool
//! never; the file that it makes is gone when the command ends, however it ends.

mod measure;
mod text;

use crate::confirm::Confirm;
use crate::failure::Failure;
use crate::load::duration;
use crate::output;
use base::BLOCK_BYTES;
use engine::Drive;
use engine::drive::DriveError;
use measure::{Figures, Places};
use server::offline::find_labels;
use site::human;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use world_real::{RealDrive, RealWorld};

/// Measure a drive of this machine, and write it as a model for `ashlar rehearse`
///
/// The command measures random reads, writes and durable writes of five sizes, with 1 to 32
/// outstanding, through Ashlar's own drive layer. It takes about a minute. Other load on the drive
/// spoils the figures.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// A directory, in which a file is made and deleted; or a block device or file, whose content
    /// is lost
    path: PathBuf,
    /// Bytes to measure on: of a device they are spread over all of it
    #[arg(long, value_name = "SIZE", default_value = "1 GiB", value_parser = size)]
    size: u64,
    /// How long to measure each of the ninety points
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = point)]
    each: Duration,
    /// Name of the model
    #[arg(long, value_name = "NAME", default_value = "measured", value_parser = name)]
    name: String,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    confirm: Confirm,
}

const AFTER_HELP: &str = "\
`ashlar rehearse SITE --drive-model FILE` gives all drives of a site this model. To give it to some,
put the table into the site file, and say `model = \"measured\"` at these drives.

The model knows rates and times, but no places: commands in order cost what random ones cost. For a
disk with an arm, a built-in model such as sas-10k-600 knows more.";

/// The largest command that is measured; each place has room for it.
const PLACE_BYTES: u64 = 1 << 20;

/// The fewest bytes that say anything.
const SIZE_MIN: u64 = 64 << 20;

fn size(text: &str) -> Result<u64, String> {
    let rule = || format!("{text:?} is not {}", site::SIZE_RULE);
    let bytes = site::parse_size(text).ok_or_else(rule)?;
    match bytes >= SIZE_MIN && bytes.is_multiple_of(PLACE_BYTES) {
        true => Ok(bytes),
        false => Err(format!(
            "{text:?} is not whole MiB, {} or more",
            human(SIZE_MIN)
        )),
    }
}

fn point(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    let range = Duration::from_millis(10)..=Duration::from_secs(60);
    match range.contains(&time) {
        true => Ok(time),
        false => Err(format!("{text:?} is not a time from 10ms to 60s")),
    }
}

fn name(text: &str) -> Result<String, String> {
    match site::is_name(text) {
        true => Ok(text.to_owned()),
        false => Err(format!("{text:?} is no name: {}", site::NAME_RULE)),
    }
}

/// What is measured.
struct Target {
    path: PathBuf,
    /// Made for this, and without a name as soon as it is open.
    is_made: bool,
    is_device: bool,
}

/// Runs the command.
///
/// # Errors
/// `Wrong` for a path that is not fit, or that nobody wants to be overwritten; `Failed` when the drive fails
/// or the file can't be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let target = target(args)?;
    let measured = world_real::run(|world| async move { measured(&world, &target, args).await });
    let measured = measured.map_err(|error| Failure::Failed(error.to_string()))?;
    let text = text::text(&args.name, &measured?);
    match &args.output {
        None => output::print(&text),
        Some(path) => std::fs::write(path, text)
            .map_err(|error| Failure::Failed(format!("can't write {}: {error}", path.display()))),
    }
}

/// The file or device, which is there after this.
fn target(args: &Args) -> Result<Target, Failure> {
    let path = &args.path;
    let about = std::fs::metadata(path);
    let about = about.map_err(|error| {
        let what = format!(
            "{}: {error}; name a directory, a block device or a file that is there",
            path.display()
        );
        Failure::Wrong(what)
    })?;
    if !about.is_dir() {
        return Ok(Target {
            path: path.clone(),
            is_made: false,
            is_device: about.file_type().is_block_device(),
        });
    }
    let path = path.join(format!("ashlar-calibrate-{}.img", std::process::id()));
    RealDrive::create_file(&path, args.size).map_err(|error| Failure::Wrong(error.to_string()))?;
    Ok(Target {
        path,
        is_made: true,
        is_device: false,
    })
}

/// All that the model is made of.
struct Measurement {
    figures: Figures,
    capacity_bytes: Option<u64>,
    rotational: bool,
}

async fn measured(world: &RealWorld, target: &Target, args: &Args) -> Result<Measurement, Failure> {
    let opened = RealDrive::open(world, &target.path);
    if target.is_made {
        // It lives on until it is closed, and nothing is left behind, also after a kill.
        let gone = std::fs::remove_file(&target.path);
        gone.map_err(|error| failed(&target.path, &error))?;
    }
    let drive = opened.map_err(|error| Failure::Wrong(error.to_string()))?;
    let geometry = drive.geometry();
    if !target.is_made {
        may_be_overwritten(world, &drive, target, args).await?;
    }
    let size = args
        .size
        .min(geometry.capacity_bytes / PLACE_BYTES * PLACE_BYTES);
    if size < SIZE_MIN {
        let (is, min) = (human(geometry.capacity_bytes), human(SIZE_MIN));
        let what = format!("{}: it has {is}; {min} are needed", target.path.display());
        return Err(Failure::Wrong(what));
    }
    let places = Places {
        count: size / PLACE_BYTES,
        stride_bytes: geometry.capacity_bytes / (size / PLACE_BYTES) / BLOCK_BYTES as u64
            * BLOCK_BYTES as u64,
        bytes: PLACE_BYTES,
    };
    let figures = measure::all(world, drive, places, args.each).await;
    Ok(Measurement {
        figures: figures.map_err(|error: DriveError| failed(&target.path, &error))?,
        capacity_bytes: target.is_device.then_some(geometry.capacity_bytes),
        rotational: geometry.rotational,
    })
}

fn failed(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::Failed(format!("{}: {error}", path.display()))
}

/// That it is no drive of a pool, and that somebody agrees.
async fn may_be_overwritten(
    world: &RealWorld,
    drive: &RealDrive,
    target: &Target,
    args: &Args,
) -> Result<(), Failure> {
    let path = target.path.display();
    for label in find_labels(world, &[drive]).await {
        let label = label.map_err(|error| failed(&target.path, &error))?;
        if let Some(label) = label {
            let what = format!(
                "{path}: it is a drive of pool {}; measure a directory beside it, or a drive of the same kind",
                label.pool_name
            );
            return Err(Failure::Wrong(what));
        }
    }
    let holds = human(drive.geometry().capacity_bytes);
    args.confirm
        .overwriting(&format!("{path} has {holds}, which will be lost"))
}
