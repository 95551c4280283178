//! The device that a drive lies on, as smartctl takes it.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use world_real::within;

/// How long the file system may take to say what is at a path.
const PLACE_TIME: Duration = Duration::from_secs(5);

/// The whole device at `path`, or that a partition there is in.
///
/// # Errors
/// There is none: it is a file, or it is gone.
pub(super) async fn device(path: &Path) -> Result<PathBuf, String> {
    let looked = within(path, PLACE_TIME, |path| Ok(whole_device(path)));
    looked.await.map_err(|error| error.to_string())?
}

fn whole_device(path: &Path) -> Result<PathBuf, String> {
    let gone = |error: std::io::Error| format!("{}: {error}", path.display());
    let node = fs::metadata(path).map_err(gone)?;
    if !node.file_type().is_block_device() {
        return Err("it is a file, which has no health of its own".to_owned());
    }
    let about = world_real::about_device(&node);
    match about.join("partition").exists() {
        // The links of /dev/disk have names that smartctl does not know.
        false => fs::canonicalize(path).map_err(gone),
        true => disk_of(&about).map_err(gone),
    }
}

/// The node of the disk that a partition is in, by the partition's directory.
fn disk_of(partition: &Path) -> std::io::Result<PathBuf> {
    let disk = fs::canonicalize(partition.join(".."))?;
    let name = disk.file_name().unwrap_or_default().to_string_lossy();
    // sysfs has no slashes in names.
    Ok(Path::new("/dev").join(name.replace('!', "/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn files_and_what_is_gone_have_no_health() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("d0.img");
        fs::write(&file, "").unwrap();
        assert!(device(&file).await.unwrap_err().contains("is a file"));
        let gone = device(&home.path().join("none")).await.unwrap_err();
        assert!(gone.contains("none: No such file"), "{gone}");
    }

    #[test]
    fn a_partition_is_in_its_disk() {
        let home = tempfile::tempdir().unwrap();
        let partition = home.path().join("cciss!c0d0/cciss!c0d0p1");
        fs::create_dir_all(&partition).unwrap();
        let disk = disk_of(&partition).unwrap();
        assert_eq!(disk, Path::new("/dev/cciss/c0d0"));
    }
}
