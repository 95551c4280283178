//! Runs QEMU's programs, for image formats that we do not read and write ourselves.
//!
//! `qemu-nbd` opens an image and serves it on a socket in a directory that only we may look into.
//! `qemu-img` makes an empty image.
//!
//! Invariants:
//! - They get no name to resolve or format to guess: each file of an image is said, with
//!   its driver, as [`super::header`] has found and allowed it.
//! - They can open these files and nothing else, connect to no socket, and have no privileges
//!   ([`world_real::confine`]). Where the kernel can't keep them so, they are not started.
//! - None of them outlives its job, or the server, however that ends.

use super::header::Layer;
use super::nbd::Client;
use crate::array::ArrayError;
use crate::jobs::invalid;
use crate::programs::{self, NotStarted};
use api::Format;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout_at};
use world_real::Reach;

/// Longest that an image may take to be opened, and to be closed.
const OPEN_MAX: Duration = Duration::from_secs(60);
const CLOSE_MAX: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Of what a program says, this much is told.
const SAID_MAX: u64 = 2000;

/// An image that `qemu-nbd` serves.
#[derive(Debug)]
pub(super) struct Served {
    child: Child,
    home: Home,
}

/// The directory of a socket; goes with it.
#[derive(Debug)]
struct Home {
    path: PathBuf,
}

impl Drop for Home {
    fn drop(&mut self) {
        // What is left is removed at the next start.
        let _ = fs::remove_dir_all(&self.path);
    }
}

impl Served {
    /// Serves the image with these layers, to be read only, at a socket in the new
    /// directory `home`.
    ///
    /// # Errors
    /// What `qemu-nbd` says.
    pub(super) async fn to_read(layer: &Layer, home: &Path) -> Result<(Self, Client), String> {
        let read = files(layer);
        let reach = Reach {
            read,
            ..Reach::default()
        };
        Self::start(&node(layer, true), reach, home, &["--read-only"]).await
    }

    /// Serves the empty image at `path`, to be written.
    ///
    /// # Errors
    /// What `qemu-nbd` says.
    pub(super) async fn to_write(
        path: &Path,
        format: Format,
        home: &Path,
    ) -> Result<(Self, Client), String> {
        let layer = Layer {
            path: path.to_owned(),
            format,
            is_unrecognised: false,
            size_bytes: 0,
            extents: Vec::new(),
            backing: None,
        };
        let reach = Reach {
            write: files(&layer),
            ..Reach::default()
        };
        Self::start(&node(&layer, false), reach, home, &[]).await
    }

    async fn start(
        node: &Value,
        mut reach: Reach,
        home: &Path,
        more: &[&str],
    ) -> Result<(Self, Client), String> {
        let made = DirBuilder::new().mode(0o700).create(home);
        made.map_err(|error| format!("can't make {}: {error}", home.display()))?;
        let home = Home {
            path: home.to_owned(),
        };
        let socket = home.path.join("nbd");
        reach.sockets = Some(home.path.clone());
        let mut command = program("qemu-nbd", &reach)?;
        // It serves one connection and ends with it.
        command
            .args(more)
            .arg("--shared=1")
            .arg("--socket")
            .arg(&socket);
        command.arg(format!("json:{node}")).kill_on_drop(true);
        let child = command
            .spawn()
            .map_err(|error| absent("qemu-nbd", &error))?;
        let mut served = Served { child, home };
        let deadline = Instant::now() + OPEN_MAX;
        loop {
            match Client::connect(&socket).await {
                Ok(Some(client)) => return Ok((served, client)),
                Ok(None) => {}
                // It listens before it opens the image, and says itself why it can't.
                Err(why) => {
                    let ended = timeout_at(deadline, served.child.wait()).await;
                    return Err(match ended {
                        Ok(_) => served.said().await,
                        Err(_) => why,
                    });
                }
            }
            let ended = served.child.try_wait().map_err(|error| error.to_string())?;
            if ended.is_some() {
                return Err(served.said().await);
            }
            if Instant::now() > deadline {
                return Err(format!("not opened within {} s", OPEN_MAX.as_secs()));
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Ends when the image is closed.
    ///
    /// # Errors
    /// It wasn't closed as it should.
    pub(super) async fn close(mut self, client: Client) -> Result<(), String> {
        client.disconnect().await?;
        match timeout_at(Instant::now() + CLOSE_MAX, self.child.wait()).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(_) => Err(self.said().await),
            Err(_) => Err(format!("not closed within {} s", CLOSE_MAX.as_secs())),
        }
    }

    /// What it has said of why it ended, on one line.
    async fn said(&mut self) -> String {
        let mut said = Vec::new();
        if let Some(stderr) = self.child.stderr.take() {
            // What can't be read isn't told.
            let _ = stderr.take(SAID_MAX).read_to_end(&mut said).await;
        }
        plain("qemu-nbd", &said, &self.home.path)
    }
}

/// What a program has said, for people; names of ours are of no use to them.
fn plain(program: &str, said: &[u8], home: &Path) -> String {
    let said = String::from_utf8_lossy(said);
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let said = lines.collect::<Vec<_>>().join("; ");
    let said: String = said.chars().filter(|c| !c.is_control()).collect();
    let home = home.display().to_string();
    let said = if home.is_empty() {
        said
    } else {
        said.replace(&home, "")
    };
    let said = said.strip_prefix(&format!("{program}: ")).unwrap_or(&said);
    let said: String = said.chars().take(SAID_MAX as usize).collect();
    match said.is_empty() {
        true => format!("{program} has ended without a word"),
        false => format!("{program}: {said}"),
    }
}

/// A program with nothing of our surroundings, which reaches these files only.
fn program(name: &str, reach: &Reach) -> Result<Command, String> {
    match programs::confined(name, reach) {
        Ok(command) => Ok(command.into()),
        Err(NotStarted::Absent) => Err(absent(name, &io::ErrorKind::NotFound.into())),
        Err(NotStarted::Unconfined(error)) => Err(format!(
            "can't confine {name}: {error}; raw and VHDX images can be imported without"
        )),
    }
}

/// The files of an image, those of the images below included.
fn files(layer: &Layer) -> Vec<PathBuf> {
    let mut files = vec![layer.path.clone()];
    files.extend(layer.extents.iter().cloned());
    files.extend(layer.backing.iter().flat_map(|below| self::files(below)));
    files
}

fn absent(program: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!(
            "{program} is not installed (package qemu-utils on Debian and Ubuntu); raw images \
             need no other program, and VHDX can be imported without"
        ),
        _ => format!("can't start {program}: {error}"),
    }
}

/// An image as QEMU's block layer describes it.
fn node(layer: &Layer, read_only: bool) -> Value {
    let file = json!({
        "driver": "file",
        "filename": layer.path,
        "read-only": read_only,
    });
    if layer.format == Format::Raw {
        return json!({ "driver": "raw", "read-only": read_only, "file": file });
    }
    let mut node = json!({
        "driver": layer.format.to_string(),
        "read-only": read_only,
        "file": file,
    });
    if matches!(layer.format, Format::Qcow2 | Format::Vmdk) {
        // Said in either case, so that the header's own name is never followed.
        let backing = layer.backing.as_ref();
        node["backing"] = backing.map_or(Value::Null, |below| self::node(below, true));
    }
    node
}

/// What may be said of a new image, with what is allowed there.
const OPTIONS: [(Format, &str, &[&str]); 12] = [
    (Format::Qcow2, "cluster_size", &[]),
    (Format::Qcow2, "compat", &["0.10", "1.1"]),
    (Format::Qcow2, "lazy_refcounts", &["on", "off"]),
    (Format::Qcow2, "extended_l2", &["on", "off"]),
    (Format::Qcow2, "refcount_bits", &[]),
    (Format::Qcow2, "preallocation", &["off", "metadata"]),
    (Format::Vhdx, "subformat", &["dynamic", "fixed"]),
    (Format::Vhdx, "block_size", &[]),
    (Format::Vhdx, "log_size", &[]),
    (
        Format::Vmdk,
        "subformat",
        &["monolithicSparse", "streamOptimized"],
    ),
    (
        Format::Vmdk,
        "adapter_type",
        &["ide", "buslogic", "lsilogic", "legacyESX"],
    ),
    (Format::Vmdk, "hwversion", &[]),
];

/// Whether these options may be given for a new image: none that names files.
///
/// # Errors
/// Which one may not, and what may.
pub(super) fn check_options(
    format: Format,
    options: &BTreeMap<String, String>,
) -> Result<(), ArrayError> {
    let known: Vec<_> = OPTIONS.iter().filter(|(of, ..)| *of == format).collect();
    for (key, value) in options {
        let Some((_, _, values)) = known.iter().find(|(_, known, _)| known == key) else {
            let names: Vec<&str> = known.iter().map(|(_, name, _)| *name).collect();
            let names = match names.is_empty() {
                true => "none".to_owned(),
                false => names.join(", "),
            };
            return Err(invalid(format!(
                "options: found {key:?}; allowed for {format}: {names}"
            )));
        };
        let is_number = value.len() <= 16
            && value.starts_with(|c: char| c.is_ascii_digit())
            && value.chars().all(|c| c.is_ascii_alphanumeric());
        let is_good = match values.is_empty() {
            true => is_number,
            false => values.contains(&value.as_str()),
        };
        if !is_good {
            let values = match values.is_empty() {
                true => "a number such as 65536 or 64k".to_owned(),
                false => values.join(", "),
            };
            return Err(invalid(format!(
                "options: found {key}={value:?}; allowed: {values}"
            )));
        }
    }
    Ok(())
}

/// Makes an empty image of the file that is at `path`.
///
/// # Errors
/// What `qemu-img` says.
pub(super) async fn create(
    path: &Path,
    format: Format,
    options: &BTreeMap<String, String>,
    size_bytes: u64,
) -> Result<(), String> {
    let reach = Reach {
        write: vec![path.to_owned()],
        ..Reach::default()
    };
    let mut command = program("qemu-img", &reach)?;
    command.args(["create", "-q", "-f", &format.to_string()]);
    for (key, value) in options {
        command.args(["-o", &format!("{key}={value}")]);
    }
    // A path is absolute, so it is neither an option nor a protocol.
    command
        .arg(path)
        .arg(size_bytes.to_string())
        .kill_on_drop(true);
    let child = command
        .spawn()
        .map_err(|error| absent("qemu-img", &error))?;
    let ended = timeout_at(Instant::now() + OPEN_MAX, child.wait_with_output()).await;
    match ended {
        Ok(Ok(output)) if output.status.success() => Ok(()),
        Ok(Ok(output)) => Err(plain("qemu-img", &output.stderr, path)),
        Ok(Err(error)) => Err(format!("qemu-img: {error}")),
        Err(_) => Err(format!("not made within {} s", OPEN_MAX.as_secs())),
    }
}

/// Leaked clusters are no damage.
const LEAKS: i32 = 3;

/// Looks through the tables of an image: what lies past the end of a file that was cut
/// short would read as zeroes.
///
/// # Errors
/// What is damaged.
pub(super) async fn check(layer: &Layer) -> Result<(), String> {
    let mut next = Some(layer);
    while let Some(layer) = next {
        next = layer.backing.as_deref();
        if !matches!(layer.format, Format::Qcow2 | Format::Vmdk) {
            continue;
        }
        let alone = Layer {
            backing: None,
            ..layer.clone()
        };
        let read = files(&alone);
        let reach = Reach {
            read,
            ..Reach::default()
        };
        let mut command = program("qemu-img", &reach)?;
        command
            .args(["check", "-q"])
            .arg(format!("json:{}", node(&alone, true)));
        // However long that takes: the job can be cancelled.
        let ended = command.kill_on_drop(true).output().await;
        let output = ended.map_err(|error| absent("qemu-img", &error))?;
        if !output.status.success() && output.status.code() != Some(LEAKS) {
            let why = plain("qemu-img check", &output.stderr, Path::new(""));
            let path = layer.path.display();
            return Err(format!("{path} is damaged or was cut short: {why}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(path: &str, format: Format, backing: Option<Layer>) -> Layer {
        Layer {
            path: path.into(),
            format,
            is_unrecognised: false,
            size_bytes: 0,
            extents: Vec::new(),
            backing: backing.map(Box::new),
        }
    }

    #[test]
    fn every_file_is_said_with_its_driver() {
        let below = layer("/i/a,b:c.raw", Format::Raw, None);
        let node = node(&layer("/i/top", Format::Qcow2, Some(below)), true);
        assert_eq!(node["file"]["filename"], "/i/top");
        assert_eq!(node["backing"]["driver"], "raw");
        assert_eq!(node["backing"]["file"]["filename"], "/i/a,b:c.raw");
        let alone = self::node(&layer("/i/top", Format::Vmdk, None), true);
        assert!(alone.as_object().unwrap().contains_key("backing") && alone["backing"].is_null());
    }

    /// What `qemu-nbd` says of an image that it opens as it pleases: nothing says what is below,
    /// and nobody has looked.
    async fn opened(driver: &str, top: &Path, reach: Reach) -> Result<(), String> {
        let node = json!({
            "driver": driver,
            "read-only": true,
            "file": { "driver": "file", "filename": top, "read-only": true },
        });
        let home = top.with_extension("socket");
        let (served, client) = Served::start(&node, reach, &home, &["--read-only"]).await?;
        served.close(client).await
    }

    #[tokio::test]
    async fn an_image_leads_qemu_to_no_file_that_is_not_named() {
        let home = tempfile::tempdir().unwrap();
        let [secret, qcow2, vmdk] =
            ["secret", "top.qcow2", "top.vmdk"].map(|name| home.path().join(name));
        fs::write(&secret, vec![7; 1 << 20]).unwrap();
        let mut make = std::process::Command::new("qemu-img");
        make.args(["create", "-q", "-f", "qcow2", "-F", "raw", "-b"]);
        assert!(make.args([&secret, &qcow2]).status().unwrap().success());
        let descriptor = "# Disk DescriptorFile\nversion=1\nCID=1\nparentCID=ffffffff\n\
             createType=\"monolithicFlat\"\nRW 2048 FLAT \"/etc/passwd\" 0\n";
        fs::write(&vmdk, descriptor).unwrap();
        for (driver, top, other) in [
            ("qcow2", &qcow2, secret.as_path()),
            ("vmdk", &vmdk, Path::new("/etc/passwd")),
        ] {
            let reach = |read: &[&Path]| Reach {
                read: read.iter().map(|path| path.to_path_buf()).collect(),
                ..Reach::default()
            };
            let refused = opened(driver, top, reach(&[top])).await.unwrap_err();
            assert!(refused.contains("Permission denied"), "{driver}: {refused}");
            // It would, if it could.
            assert_eq!(opened(driver, top, reach(&[top, other])).await, Ok(()));
        }
    }

    #[test]
    fn options_that_name_files_are_refused() {
        let check = |format, key: &str, value: &str| {
            check_options(format, &[(key.to_owned(), value.to_owned())].into())
        };
        assert!(check(Format::Qcow2, "cluster_size", "64k").is_ok());
        assert!(check(Format::Vhdx, "subformat", "fixed").is_ok());
        for (format, key, value) in [
            (Format::Qcow2, "backing_file", "/etc/passwd"),
            (Format::Qcow2, "data_file", "/etc/passwd"),
            (Format::Qcow2, "cluster_size", "64k,data_file=/etc/passwd"),
            (Format::Qcow2, "preallocation", "full"),
            (Format::Vmdk, "subformat", "monolithicFlat"),
            (Format::Raw, "preallocation", "off"),
        ] {
            assert!(check(format, key, value).is_err(), "{key}={value}");
        }
    }
}
