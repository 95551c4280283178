//! `ashlar calibrate`: measures a drive of this machine and writes a model of it, so that a rehearsal
//! runs on the drives that are there.
//!
//! Invariants: a device or a file is written only if it is blank, as a new drive of a pool has to be, and
//! somebody agrees; it is as blank afterwards. The file that the command makes has no name once there is anything
//! in it, so none is left behind.

mod measure;
mod text;

use crate::confirm::Confirm;
use crate::failure::Failure;
use crate::load::duration;
use crate::output;
use base::DriveOffset;
use engine::{Drive, World};
use measure::{Figures, Places};
use site::human;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use world_real::{RealDrive, RealWorld};

/// Measure a drive of this machine, and write it as a model for `ashlar rehearse`
///
/// The command measures random reads, writes and durable writes of five sizes, and flushes, with 1
/// to 32 outstanding, through Ashlar's own drive layer. It takes about a minute, and longer on slow
/// drives. Other load on the drive spoils the figures.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// A directory, in which the command makes a file and deletes it; or a block device or a file that
    /// is blank
    path: PathBuf,
    /// Bytes to measure on: of a device they are spread over all of it
    #[arg(long, value_name = "SIZE", default_value = "1 GiB", value_parser = size)]
    size: u64,
    /// How long to measure each of the 97 points
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
disk with an arm, a built-in model such as sas-10k-600 knows more. The first MiB of a device or a
file stays blank, so that a pool can take it afterwards.";

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
    // What --set takes for a key, or for a number.
    let is_plain = !text.contains('.') && text.bytes().any(|byte| !byte.is_ascii_digit());
    match site::is_name(text) && is_plain {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "{text:?} is no name: {}, without dots, and no number",
            site::NAME_RULE
        )),
    }
}

/// Runs the command.
///
/// # Errors
/// `Wrong` for a path that is not fit, or that nobody wants to be overwritten; `Failed` when the drive fails
/// or the file can't be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    // Before anything takes its time.
    let output = args.output.as_deref();
    let output = output.map(|path| opened(path, &args.path)).transpose()?;
    let target = target(args)?;
    let measured = world_real::run(|world| async move { measured(&world, &target, args).await });
    let measured = measured.map_err(|error| Failure::Failed(error.to_string()))?;
    let text = text::text(&args.name, &measured?);
    match output {
        None => output::print(&text),
        Some((mut file, path)) => file
            .set_len(0)
            .and_then(|()| file.write_all(text.as_bytes()))
            .map_err(|error| failed(path, &error)),
    }
}

/// The file that the model goes to. What it holds stays until the model is there.
fn opened<'a>(path: &'a Path, measured: &Path) -> Result<(File, &'a Path), Failure> {
    let cannot = |error: std::io::Error| failed(path, &format!("can't write it: {error}"));
    let mut options = File::options();
    let file = options.write(true).create(true).truncate(false).open(path);
    let file = file.map_err(cannot)?;
    let about = file.metadata().map_err(cannot)?;
    let is_measured = fs::metadata(measured)
        .is_ok_and(|other| (other.dev(), other.ino()) == (about.dev(), about.ino()));
    if is_measured || about.file_type().is_block_device() {
        let what = "it is a drive, and not a file for the model; name another one";
        return Err(Failure::Wrong(format!("{}: {what}", path.display())));
    }
    Ok((file, path))
}

/// What is measured.
enum Target {
    /// A file that was made for this, and has no name.
    Made(File),
    /// A file that was there.
    File,
    Device,
}

/// The file or device.
fn target(args: &Args) -> Result<Target, Failure> {
    let path = &args.path;
    let about = fs::metadata(path).map_err(|error| {
        let what = "name a directory, a block device or a file that is there";
        Failure::Wrong(format!("{}: {error}; {what}", path.display()))
    })?;
    if about.is_dir() {
        return made(path, args.size).map(Target::Made);
    }
    match about.file_type().is_block_device() {
        true => Ok(Target::Device),
        false => Ok(Target::File),
    }
}

/// A new file in a directory, whose name goes before it has any content.
fn made(directory: &Path, bytes: u64) -> Result<File, Failure> {
    let path = directory.join(format!("ashlar-calibrate-{}.img", std::process::id()));
    let wrong = |error: std::io::Error| Failure::Wrong(format!("{}: {error}", path.display()));
    let mut options = File::options();
    let options = options.read(true).write(true).create_new(true).mode(0o600);
    let file = options.open(&path).map_err(wrong)?;
    fs::remove_file(&path).map_err(wrong)?;
    file.set_len(bytes).map_err(wrong)?;
    Ok(file)
}

/// All that the model is made of.
struct Measurement {
    figures: Figures,
    /// Of a device; a file may be of any size.
    capacity_bytes: Option<u64>,
    rotational: bool,
}

async fn measured(world: &RealWorld, target: &Target, args: &Args) -> Result<Measurement, Failure> {
    let path = match target {
        Target::Made(file) => PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())),
        Target::File | Target::Device => args.path.clone(),
    };
    let opened = RealDrive::open(world, &path);
    let drive = opened.map_err(|error| Failure::Wrong(error.to_string()))?;
    let geometry = drive.geometry();
    let is_made = matches!(target, Target::Made(_));
    if !is_made {
        refuse_unless_blank(world, &drive, args).await?;
    }
    let places = places(target, geometry.capacity_bytes, args)?;
    if !is_made {
        let (path, holds) = (args.path.display(), human(geometry.capacity_bytes));
        let held = format!("{path} has {holds}, which will be lost");
        args.confirm.overwriting(&held)?;
    }
    if !drive.is_direct() {
        let path = args.path.display();
        eprintln!("{path}: its file system has no direct I/O: the figures are those of memory");
    }
    let figures = measure::all(world, drive, places, args.each).await;
    let is_device = matches!(target, Target::Device);
    Ok(Measurement {
        figures: figures.map_err(|what| failed(&args.path, &what))?,
        capacity_bytes: is_device.then_some(geometry.capacity_bytes),
        rotational: geometry.rotational,
    })
}

/// Where commands go: all of a file that was made, else behind the first MiB.
fn places(target: &Target, capacity_bytes: u64, args: &Args) -> Result<Places, Failure> {
    let start_bytes = match target {
        Target::Made(_) => 0,
        Target::File | Target::Device => PLACE_BYTES,
    };
    let whole = capacity_bytes.saturating_sub(start_bytes) / PLACE_BYTES;
    let count = whole.min(args.size / PLACE_BYTES);
    if count * PLACE_BYTES < SIZE_MIN {
        let (is, min) = (human(capacity_bytes), human(SIZE_MIN + start_bytes));
        let what = format!("{}: it has {is}; {min} are needed", args.path.display());
        return Err(Failure::Wrong(what));
    }
    Ok(Places {
        start_bytes,
        count,
        stride_bytes: whole / count * PLACE_BYTES,
        bytes: PLACE_BYTES,
    })
}

fn failed(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::Failed(format!("{}: {error}", path.display()))
}

/// That it is blank, as pools want their drives.
async fn refuse_unless_blank(
    world: &RealWorld,
    drive: &RealDrive,
    args: &Args,
) -> Result<(), Failure> {
    let path = args.path.display();
    let capacity_bytes = drive.geometry().capacity_bytes;
    let looked_at = PLACE_BYTES.min(capacity_bytes) as usize;
    let buf = world.buffers().zeroed(looked_at);
    let (buf, read) = drive.read(DriveOffset(0), buf).await;
    read.map_err(|error| failed(&args.path, &error))?;
    let bytes = buf.bytes().unwrap_or_default();
    match bytes.iter().all(|byte| *byte == 0) {
        true => Ok(()),
        false => Err(Failure::Wrong(format!(
            "{path}: its first MiB is not blank: it may be a drive of a pool, or hold partitions or a file \
             system; name a directory on it, or another drive of the same kind, or blank it first"
        ))),
    }
}
