//! Tells an empty drive from a drive that holds data of other programs.

use base::DriveOffset;
use engine::World;
use engine::drive::Drive as _;

/// How much of a drive has to be zero for it to count as empty: partition tables,
/// superblocks and volume managers' labels all lie in there.
const LOOK_BYTES: usize = 1 << 20;

/// What to do about one that is not empty.
pub const REMEDY: &str = "has no label and isn't empty; if what is on it can go, wipe it \
     (wipefs --all, or remove the file), else take another drive";

/// Whether nothing is on a drive.
///
/// # Errors
/// It can't be read; says why.
pub async fn is_blank<W: World>(world: &W, drive: &W::Drive) -> Result<bool, String> {
    let capacity = usize::try_from(drive.geometry().capacity_bytes).unwrap_or(usize::MAX);
    let buf = world.buffers().bytes(LOOK_BYTES.min(capacity));
    let (buf, read) = drive.read(DriveOffset(0), buf).await;
    read.map_err(|error| error.to_string())?;
    Ok(buf
        .bytes()
        .is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0)))
}
