//! `ashlar volume`: creates, changes, copies and deletes volumes.

mod show;

use self::show::{show_space, table};
use crate::client::Client;
use crate::confirm::Confirm;
use crate::failure::Failure;
use crate::job;
use crate::moves;
use crate::output::Format;
use crate::overcommitment::VolumesBefore;
use crate::shared_space;
use api::{
    Deleted, Format as ImageFormat, Job, Provisioning, Session, Shrinking, Volume, VolumeChange,
    VolumeClone, VolumeConvert, VolumeCopy, VolumeCreate, VolumeExport, VolumeImport,
};
pub use show::{show, told};
use site::human;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const IMAGES: &str = "\
Ashlar reads and writes images only in the directories of the setting images.directories.
Imports and exports are jobs. Ctrl-C leaves a job running; `ashlar job` shows, follows and
cancels it. A job continues after a restart. docs/reference/images.md says more.";

#[derive(clap::Subcommand)]
pub enum Command {
    /// List the volumes; their snapshots are in `ashlar snapshot list`
    List {
        /// Only those with this tag: KEY=VALUE, or KEY for any value
        #[arg(long, value_name = "TAG")]
        tag: Option<String>,
        #[command(flatten)]
        format: Format,
    },
    /// Show a volume
    Show {
        /// Name of the volume
        name: String,
        #[command(flatten)]
        format: Format,
    },
    /// Create a volume
    Create(CreateArgs),
    /// Grow a volume, or shrink it by force; Ashlar notifies its initiators
    Resize(ResizeArgs),
    /// Create a volume with the content of another volume or of a snapshot
    ///
    /// A clone is ready at once. It takes no space until it or its source changes.
    Clone(CloneArgs),
    /// Copy a volume or snapshot, or a range of it, to another volume, or within it
    ///
    /// Ashlar creates the destination if it does not exist; an existing one needs --overwrite. In
    /// one lane of a pool, source and destination share whole aligned pages, at once and without
    /// space. Ashlar reads and writes the rest, and all of a thick destination; --rate limits that.
    ///
    /// A copy is a job. Ctrl-C leaves it running; `ashlar job` shows, follows and cancels it.
    Copy(CopyArgs),
    /// Rename a volume; snapshots and exports follow, initiators notice nothing
    Rename(RenameArgs),
    /// Set the description of a volume
    Describe(DescribeArgs),
    /// Set tags of a volume, such as its VM, role or owner
    Tag(TagArgs),
    /// Show the space that a volume holds alone, and what it shares with snapshots and clones
    Space {
        /// Name of the volume
        name: String,
        #[command(flatten)]
        format: Format,
    },
    /// Make a volume thick or thin, or have it detect zeroes, while it is used
    ///
    /// Ashlar sets all pages of a thick volume aside. If they do not fit, nothing changes. Ashlar
    /// notifies the initiators.
    Convert(ConvertArgs),
    /// Create a volume from an image: raw, qcow2, VHDX or VMDK
    #[command(after_help = IMAGES)]
    Import(ImportArgs),
    /// Create an image of a volume: raw, qcow2, VHDX or VMDK
    #[command(after_help = IMAGES)]
    Export(ExportArgs),
    /// Move a volume to another pool, while it is used
    #[command(after_help = moves::HELP)]
    Move(moves::Move),
    /// Delete a volume: it stays in the trash for a time; snapshots and clones stay
    Delete(DeleteArgs),
}

#[derive(clap::Args)]
pub struct CreateArgs {
    /// Name, unique over the array
    name: String,
    /// The pool that will hold it
    #[arg(long)]
    pool: String,
    /// Size, such as "40 GiB"
    #[arg(long, value_parser = volume_size)]
    size: u64,
    /// Set all pages aside now, and allocate each at its first write
    #[arg(long)]
    thick: bool,
    /// Pages that a host writes as zeroes take no space
    #[arg(long)]
    detect_zeroes: bool,
    #[command(flatten)]
    format: Format,
}

#[derive(clap::Args)]
pub struct ResizeArgs {
    /// Name of the volume
    name: String,
    /// New size, such as "80 GiB"
    #[arg(long, value_parser = volume_size)]
    size: u64,
    /// Shrink the volume, and lose the data beyond its new end; snapshots keep that data
    #[arg(long)]
    force_shrink: bool,
    #[command(flatten)]
    confirm: Confirm,
    #[command(flatten)]
    format: Format,
}

#[derive(clap::Args)]
pub struct CloneArgs {
    /// Name of the volume, or of the snapshot (VOLUME@NAME)
    source: String,
    /// Name of the new volume
    name: String,
    #[command(flatten)]
    format: Format,
}

#[derive(clap::Args)]
pub struct CopyArgs {
    /// Name of the volume, or of the snapshot (VOLUME@NAME)
    source: String,
    /// Name of the volume to write
    destination: String,
    /// Where in the source to begin, such as "1 GiB"
    #[arg(long, value_parser = offset, default_value = "0")]
    from: u64,
    /// Where in the destination to begin
    #[arg(long, value_parser = offset, default_value = "0")]
    to: u64,
    /// Length, such as "4 GiB" [default: up to the end of the source]
    #[arg(long, value_parser = size)]
    length: Option<u64>,
    /// Pool of a new destination [default: that of the source]
    #[arg(long)]
    pool: Option<String>,
    /// Create the destination as a thick volume
    #[arg(long)]
    thick: bool,
    /// Overwrite an existing destination; the command asks first
    #[arg(long)]
    overwrite: bool,
    /// Copy even while hosts are logged in to the destination's target
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    confirm: Confirm,
    #[command(flatten)]
    work: job::Work,
}

#[derive(clap::Args)]
pub struct RenameArgs {
    /// Name of the volume
    name: String,
    /// Its new name
    new: String,
    #[command(flatten)]
    format: Format,
}

#[derive(clap::Args)]
pub struct DescribeArgs {
    /// Name of the volume
    name: String,
    /// One line; "" removes the description
    text: String,
    #[command(flatten)]
    format: Format,
}

#[derive(clap::Args)]
pub struct TagArgs {
    /// Name of the volume
    name: String,
    /// KEY=VALUE, such as vm=web01; may be given more than once
    #[arg(value_name = "TAG", value_parser = tag)]
    tags: Vec<(String, String)>,
    /// Key of a tag to remove; may be given more than once
    #[arg(long, value_name = "KEY")]
    remove: Vec<String>,
    #[command(flatten)]
    format: Format,
}

#[derive(clap::Args)]
pub struct ConvertArgs {
    /// Name of the volume
    name: String,
    /// Set all pages aside
    #[arg(long, conflicts_with = "thin")]
    thick: bool,
    /// Take pages at the first write, from the free space of the pool
    #[arg(long)]
    thin: bool,
    /// Whether pages that are written as zeroes take no space
    #[arg(long, value_name = "on|off", value_parser = on_or_off)]
    detect_zeroes: Option<bool>,
    #[command(flatten)]
    format: Format,
}

#[derive(clap::Args)]
pub struct ImportArgs {
    /// The image file, on the machine that runs Ashlar
    file: PathBuf,
    /// The pool that will hold the volume
    #[arg(long)]
    pool: String,
    /// Name for the volume
    #[arg(long)]
    name: String,
    /// Format of the image [default: what its name says, if the content agrees]
    #[arg(long = "format", value_name = "FORMAT", value_parser = image_format)]
    image: Option<ImageFormat>,
    /// Set all pages aside now, and allocate each at its first write
    #[arg(long)]
    thick: bool,
    /// Read the volume back at the end, and compare
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    work: job::Work,
}

#[derive(clap::Args)]
pub struct ExportArgs {
    /// Name of the volume
    volume: String,
    /// The image file, on the machine that runs Ashlar; it must not exist
    file: PathBuf,
    /// Format of the image: raw, qcow2, vhdx or vmdk [default: what its name says: .raw or
    /// .img, .qcow2, .vhdx, .vmdk]
    #[arg(long = "format", value_name = "FORMAT", value_parser = image_format)]
    image: Option<ImageFormat>,
    /// Option of the format, as of qemu-img create -o: subformat=fixed
    #[arg(long, value_name = "KEY=VALUE", value_parser = option)]
    option: Vec<(String, String)>,
    /// Read the image back at the end, and compare
    #[arg(long)]
    verify: bool,
    /// Export even while hosts are logged in to the volume's target
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    work: job::Work,
}

#[derive(clap::Args)]
pub struct DeleteArgs {
    /// Name of the volume
    name: String,
    #[command(flatten)]
    pub confirm: Confirm,
    /// Delete even an exported volume, together with its export
    #[arg(long)]
    force: bool,
    /// Skip the trash: the space is free at once
    #[arg(long)]
    at_once: bool,
    #[command(flatten)]
    format: Format,
}

pub fn run(client: &Client, command: Command) -> Result<(), Failure> {
    match command {
        Command::List { tag, format } => {
            let query: Vec<_> = tag.iter().map(|tag| ("tag", tag.as_str())).collect();
            let volumes: Vec<Volume> = client.find(&["volumes"], &query)?;
            format.print(&volumes, |volumes| table(volumes))
        }
        Command::Show { name, format } => format.show(client, &["volumes", &name], show),
        Command::Create(args) => create(client, args),
        Command::Resize(args) => resize(client, args),
        Command::Clone(args) => clone_volume(client, args),
        Command::Copy(args) => copy(client, args),
        Command::Rename(args) => rename(client, args),
        Command::Describe(args) => describe(client, args),
        Command::Tag(args) => change_tags(client, args),
        Command::Space { name, format } => {
            format.show(client, &["volumes", &name, "space"], show_space)
        }
        Command::Convert(args) => convert(client, args),
        Command::Import(args) => import(client, args),
        Command::Export(args) => export(client, args),
        Command::Move(wanted) => moves::run(client, wanted),
        Command::Delete(args) => delete(client, args),
    }
}

fn create(client: &Client, args: CreateArgs) -> Result<(), Failure> {
    let CreateArgs {
        name,
        pool,
        size,
        thick,
        detect_zeroes,
        format,
    } = args;
    let create = VolumeCreate {
        name,
        pool,
        size_bytes: size,
        provisioning: provisioning(thick),
        detect_zeroes,
    };
    let before = VolumesBefore::look(client, format)?;
    let volume: Volume = client.post(&["volumes"], &create)?;
    format.print_text(&volume, show)?;
    before.warn(client);
    Ok(())
}

fn resize(client: &Client, args: ResizeArgs) -> Result<(), Failure> {
    let ResizeArgs {
        name,
        size,
        force_shrink,
        confirm,
        format,
    } = args;
    if force_shrink && !confirm.is_given() {
        agree_to_shrink(client, &name, size, confirm)?;
    }
    let change = VolumeChange {
        size_bytes: Some(size),
        force_shrink,
        ..VolumeChange::default()
    };
    let before = VolumesBefore::look(client, format)?;
    let volume: Volume = client.patch(&["volumes", &name], &change)?;
    format.print_text(&volume, show)?;
    before.warn(client);
    Ok(())
}

fn clone_volume(client: &Client, args: CloneArgs) -> Result<(), Failure> {
    let CloneArgs {
        source,
        name,
        format,
    } = args;
    let path = ["volumes", &source, "clone"];
    let volume: Volume = client.post(&path, &VolumeClone { name })?;
    format.print_text(&volume, show)?;
    shared_space::warn(client, &[&volume.name], format)
}

fn copy(client: &Client, args: CopyArgs) -> Result<(), Failure> {
    let CopyArgs {
        source,
        destination,
        from,
        to,
        length,
        pool,
        thick,
        overwrite,
        live,
        confirm,
        work,
    } = args;
    if overwrite && !confirm.is_given() {
        agree_to_overwrite(client, &destination, confirm)?;
    }
    let copy = VolumeCopy {
        destination,
        pool,
        provisioning: provisioning(thick),
        from_bytes: from,
        to_bytes: to,
        length_bytes: length,
        overwrite,
        live,
        rate_bytes_per_s: work.rate,
    };
    let job: Job = client.post(&["volumes", &source, "copy"], &copy)?;
    work.begun(client, job)
}

fn rename(client: &Client, args: RenameArgs) -> Result<(), Failure> {
    let RenameArgs { name, new, format } = args;
    let change = VolumeChange {
        name: Some(new),
        ..VolumeChange::default()
    };
    change_volume(client, &name, &change, format)
}

fn describe(client: &Client, args: DescribeArgs) -> Result<(), Failure> {
    let DescribeArgs { name, text, format } = args;
    let change = VolumeChange {
        description: Some(text),
        ..VolumeChange::default()
    };
    change_volume(client, &name, &change, format)
}

fn change_tags(client: &Client, args: TagArgs) -> Result<(), Failure> {
    let TagArgs {
        name,
        tags,
        remove,
        format,
    } = args;
    let mut changes: BTreeMap<String, Option<String>> = BTreeMap::new();
    changes.extend(remove.into_iter().map(|key| (key, None)));
    changes.extend(tags.into_iter().map(|(key, value)| (key, Some(value))));
    let change = VolumeChange {
        tags: changes,
        ..VolumeChange::default()
    };
    change_volume(client, &name, &change, format)
}

fn convert(client: &Client, args: ConvertArgs) -> Result<(), Failure> {
    let ConvertArgs {
        name,
        thick,
        thin,
        detect_zeroes,
        format,
    } = args;
    let convert = VolumeConvert {
        provisioning: match (thick, thin) {
            (true, _) => Some(Provisioning::Thick),
            (_, true) => Some(Provisioning::Thin),
            _ => None,
        },
        detect_zeroes,
    };
    if convert == VolumeConvert::default() {
        let what = "nothing to change: give --thick, --thin or --detect-zeroes on|off";
        return Err(Failure::Wrong(what.to_owned()));
    }
    let volume: Volume = client.put(&["volumes", &name, "provisioning"], &convert)?;
    format.print_text(&volume, show)
}

fn import(client: &Client, args: ImportArgs) -> Result<(), Failure> {
    let ImportArgs {
        file,
        pool,
        name,
        image,
        thick,
        verify,
        work,
    } = args;
    let import = VolumeImport {
        file: absolute(&file)?,
        format: image,
        pool,
        provisioning: provisioning(thick),
        verify,
        rate_bytes_per_s: work.rate,
    };
    let before = VolumesBefore::look(client, work.format())?;
    let job: Job = client.post(&["volumes", &name, "import"], &import)?;
    before.warn(client);
    work.begun(client, job)
}

fn export(client: &Client, args: ExportArgs) -> Result<(), Failure> {
    let ExportArgs {
        volume,
        file,
        image,
        option,
        verify,
        live,
        work,
    } = args;
    let export = VolumeExport {
        file: absolute(&file)?,
        format: image.map_or_else(|| format_of(&file), Ok)?,
        options: option.into_iter().collect(),
        verify,
        live,
        rate_bytes_per_s: work.rate,
    };
    let job: Job = client.post(&["volumes", &volume, "export"], &export)?;
    work.begun(client, job)
}

fn delete(client: &Client, args: DeleteArgs) -> Result<(), Failure> {
    let DeleteArgs {
        name,
        confirm,
        force,
        at_once,
        format,
    } = args;
    let mut query = Vec::new();
    query.extend(force.then_some(("force", "true")));
    query.extend(at_once.then_some(("at_once", "true")));
    let path = ["volumes", name.as_str()];
    let what = format!("volume {name}");
    confirm.deletion_at(client, (&path, &query), (&what, &name))?;
    let deleted: Deleted = client.remove(&path, &query)?;
    format.print_text(&deleted, |deleted| told("volume", deleted))
}

/// Of a volume that is to be created.
fn provisioning(thick: bool) -> Provisioning {
    match thick {
        true => Provisioning::Thick,
        false => Provisioning::Thin,
    }
}

/// Has somebody agree to what a volume loses that is to be smaller.
fn agree_to_shrink(
    client: &Client,
    name: &str,
    size: u64,
    confirm: Confirm,
) -> Result<(), Failure> {
    let to = size.to_string();
    let path = ["volumes", name, "shrinking"];
    let shrinking: Shrinking = client.find(&path, &[("size_bytes", &to)])?;
    if shrinking.lost_bytes == 0 {
        return Ok(());
    }
    let volume: Volume = client.get(&["volumes", name])?;
    let loss = format!(
        "volume {name} loses what is behind its new end: {}, of which {} are mapped and may be data",
        human(shrinking.lost_bytes),
        human(shrinking.lost_mapped_bytes)
    );
    let users = users_of(client, &volume)?;
    confirm.loss(&(loss + &users), &format!("Shrink volume {name}"))
}

/// Has somebody agree to what is lost when a copy overwrites the volume called `name`, if it exists.
fn agree_to_overwrite(client: &Client, name: &str, confirm: Confirm) -> Result<(), Failure> {
    let volumes: Vec<Volume> = client.get(&["volumes"])?;
    let Some(volume) = volumes.iter().find(|volume| volume.name == name) else {
        return Ok(());
    };
    let mut loss = format!("the copy overwrites data of volume {name}, which are lost then");
    if let Some(place) = &volume.export {
        loss += &format!("; initiators of {} are not told", place.target);
    }
    loss += &users_of(client, volume)?;
    confirm.loss(&loss, &format!("Overwrite volume {name}"))
}

/// A line that says who is logged in to the target of a volume; nothing when nobody is.
pub fn users_of(client: &Client, volume: &Volume) -> Result<String, Failure> {
    let Some(place) = &volume.export else {
        return Ok(String::new());
    };
    let sessions: Vec<Session> = client.get(&["sessions"])?;
    let of_target = sessions.iter().filter(|one| one.target == place.target);
    let mut names: Vec<&str> = of_target.map(|one| one.initiator.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let (target, names) = (&place.target, names.join(", "));
    Ok(match names.is_empty() {
        true => String::new(),
        false => format!("\nlogged in to its target {target}: {names}"),
    })
}

fn change_volume(
    client: &Client,
    name: &str,
    change: &VolumeChange,
    format: Format,
) -> Result<(), Failure> {
    let volume: Volume = client.patch(&["volumes", name], change)?;
    format.print_text(&volume, show)
}

fn tag(text: &str) -> Result<(String, String), String> {
    let tag = text.split_once('=');
    let (key, value) = tag.ok_or("allowed: KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// As a size, and 0.
fn offset(text: &str) -> Result<u64, String> {
    site::parse_offset(text).ok_or_else(|| format!("allowed: 0, or {}", site::SIZE_RULE))
}

fn on_or_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("allowed: on, off".to_owned()),
    }
}

/// The API knows no directory of ours.
fn absolute(file: &Path) -> Result<String, Failure> {
    let path = std::path::absolute(file)
        .map_err(|error| Failure::Wrong(format!("{}: {error}", file.display())))?;
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Failure::Wrong(format!("{}: names have to be UTF-8", path.display())))
}

fn image_format(text: &str) -> Result<ImageFormat, String> {
    match text {
        "raw" => Ok(ImageFormat::Raw),
        "qcow2" => Ok(ImageFormat::Qcow2),
        "vhdx" => Ok(ImageFormat::Vhdx),
        "vmdk" => Ok(ImageFormat::Vmdk),
        _ => Err("allowed: raw, qcow2, vhdx, vmdk".to_owned()),
    }
}

/// The format that a file's name says.
fn format_of(file: &Path) -> Result<ImageFormat, Failure> {
    let ending = file.extension().map(|ending| ending.to_string_lossy());
    let known = ending.and_then(|ending| match ending.to_ascii_lowercase().as_str() {
        "img" => Some(ImageFormat::Raw),
        other => image_format(other).ok(),
    });
    known.ok_or_else(|| {
        Failure::Wrong(format!(
            "{}: its name does not say which format it is to have (.raw, .img, .qcow2, .vhdx or \
             .vmdk would): say --format raw, qcow2, vhdx or vmdk",
            file.display()
        ))
    })
}

fn option(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(key, _)| !key.is_empty());
    let (key, value) = parts.ok_or("allowed: KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

fn volume_size(text: &str) -> Result<u64, String> {
    site::VOLUME_SIZES.parse(text)
}

/// A size of anything; the API says what it may be.
pub fn size(text: &str) -> Result<u64, String> {
    site::parse_size(text).ok_or_else(|| format!("allowed: {}", site::SIZE_RULE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_image_says_its_format() {
        for (name, format) in [
            ("/i/a.raw", ImageFormat::Raw),
            ("/i/a.img", ImageFormat::Raw),
            ("a.b.QCOW2", ImageFormat::Qcow2),
            ("a.vhdx", ImageFormat::Vhdx),
            ("a.vmdk", ImageFormat::Vmdk),
        ] {
            assert_eq!(format_of(Path::new(name)).unwrap(), format, "{name}");
        }
        for name in ["a", "a.iso", "a.", ".raw", "qcow2"] {
            let refused = format_of(Path::new(name));
            let Err(Failure::Wrong(why)) = refused else {
                panic!("{name} says {refused:?}");
            };
            assert!(why.contains("--format"), "{why}");
        }
    }
}
