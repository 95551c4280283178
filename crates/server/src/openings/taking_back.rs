//! Takes back makings of pools that did not end.
//!
//! Invariants:
//! - What a making has left is on record until it is gone, and the record says what that is.
//! - It is tried again by each start, and before a pool of that name is made.
//! - Nothing is taken from another pool, or from another array.

use super::made::{Made, MadePool};
use crate::array::{Array, ArrayError, ArrayErrorKind};
use crate::bring_up_error::BringUpError;
use crate::data_dir::DataDir;
use crate::drive_files;
use crate::shard::{ShardGone, ShardHandle};
use std::path::{Path, PathBuf};

/// Removes the files that the making of a pool has made, and takes its labels off the drives that
/// were there `before`. Gives the mark that says what is left.
///
/// # Errors
/// The shard has stopped.
pub(super) async fn take_back(
    of: (&ShardHandle, &Path),
    name: &str,
    (new_files, before): (Vec<PathBuf>, Vec<PathBuf>),
) -> Result<MadePool, ShardGone> {
    Ok(MadePool::BeingMade {
        of_before: drive_files::unlabel(of, name, None, before).await?,
        new_files: drive_files::remove_unfinished(of, name, new_files).await?,
    })
}

/// The same for a pool that the record says is being made; nothing for any other.
async fn take_back_on_record(
    (shard, data): (&ShardHandle, &DataDir),
    made: &mut Made,
    name: &str,
) -> Result<(), BringUpError> {
    let Some(MadePool::BeingMade {
        new_files,
        of_before,
    }) = made.pools.get(name).cloned()
    else {
        return Ok(());
    };
    let left = take_back((shard, data.path()), name, (new_files, of_before)).await?;
    made.set(data, name, Some(left))
}

/// Takes back the makings of pools that a crash has cut short, or that failed, and gives the names
/// of those pools. Nobody was told that there is such a pool.
///
/// # Errors
/// The shard has stopped, or the record can't be written.
pub(crate) async fn take_back_makings(
    data: &DataDir,
    made: &mut Made,
    shard: &ShardHandle,
) -> Result<Vec<String>, BringUpError> {
    // A first start that was cut short makes its pools anew.
    if !made.is_configured {
        return Ok(Vec::new());
    }
    let unfinished = made.pools.iter().filter(|(_, state)| state.is_being_made());
    let names: Vec<String> = unfinished.map(|(name, _)| name.clone()).collect();
    for name in &names {
        take_back_on_record((shard, data), made, name).await?;
        tracing::info!("pool {name}: its making was cut short, and is taken back");
    }
    Ok(names)
}

/// Takes back what a making of before has left, so that a pool of its name can be made. The settings
/// do not name the pool.
///
/// # Errors
/// Something is left still, a shard has stopped, or the record can't be written.
pub(super) async fn before_making(
    array: &Array,
    data: &DataDir,
    name: &str,
) -> Result<(), ArrayError> {
    let mut made = Made::read(data)?;
    if !made.pools.get(name).is_some_and(MadePool::is_being_made) {
        return Ok(());
    }
    take_back_on_record((&array.shards()[0], data), &mut made, name).await?;
    made.forget(data, name)?;
    let left = made.pools.get(name).map(MadePool::left_by_making);
    let left = left.unwrap_or_default();
    if left.is_empty() {
        return Ok(());
    }
    let left: Vec<String> = left.iter().map(|path| path.display().to_string()).collect();
    let context = format!(
        "pool {name} could not be made before, and {} may still be labelled as its: see that \
         nobody else uses it, and that it answers, or choose another name",
        left.join(", ")
    );
    Err(ArrayError::new(ArrayErrorKind::Busy, context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openings::pools::{self, KnownPool};
    use crate::shard::Shard;
    use std::collections::BTreeMap;
    use std::fs::{self, File};

    const SITE: &str = r#"[site]
name = "test"
[[portal]]
address = "127.0.0.1:0"
[[drive]]
name = "new"
file = "new.img"
size = "64 MiB"
[[drive]]
name = "old"
file = "old.img"
size = "64 MiB"
[[pool]]
name = "p"
level = "10"
drives = ["new", "old"]
"#;

    #[tokio::test]
    async fn what_a_making_leaves_is_on_record_until_it_is_taken_back() {
        let home = tempfile::tempdir().unwrap();
        let data = DataDir::take(&home.path().join("data")).unwrap();
        let shard = Shard::start(0).await.unwrap();
        let shards = [shard.handle().clone()];
        let site = site::parse("test", SITE).unwrap();
        let mut made = Made::default();
        made.set_configured(&data, (&site, false)).unwrap();
        made.set(&data, "p", Some(MadePool::made_of_nothing()))
            .unwrap();
        let [new, old] = ["new.img", "old.img"].map(|name| data.path().join(name));
        File::create(&old).unwrap().set_len(64 << 20).unwrap();
        let known = KnownPool {
            site: &site,
            data: &data,
            made: &made.clone(),
            added: &[],
            failed: &BTreeMap::new(),
        };
        let plan = pools::plan(&known, &shards).await.unwrap();
        // Somebody else takes the drive that was found empty just now.
        let held = File::open(&old).unwrap();
        held.lock().unwrap();
        let refused = pools::make(plan, &shards, &data, &mut made).await;
        let said = refused.unwrap_err().to_string();
        assert!(said.contains("old.img"), "{said}");
        assert!(!fs::exists(&new).unwrap());
        made.forget(&data, "p").unwrap();
        let left = MadePool::BeingMade {
            new_files: Vec::new(),
            of_before: vec![old],
        };
        assert_eq!(Made::read(&data).unwrap().pools.get("p"), Some(&left));
        drop(held);
        let names = take_back_makings(&data, &mut made, &shards[0]).await;
        assert_eq!(names.unwrap(), ["p"]);
        made.forget(&data, "p").unwrap();
        assert!(Made::read(&data).unwrap().pools.is_empty());
        shard.stop().await;
    }
}
