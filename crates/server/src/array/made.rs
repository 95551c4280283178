//! Keeps the record of the pools that were made in a data directory, in a file there.

use crate::data_dir::DataDir;
use crate::own_files::kept_path;
use crate::record::{self, RecordError};
use ::array::openings::{Made, MadePools};
use ::array::records::Store;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::{Arc, Weak};

/// The pools that were made in `data`; none in a new directory.
///
/// # Errors
/// The record is there and can't be read or understood.
pub(crate) fn made_pools(data: &Arc<DataDir>) -> Result<MadePools, RecordError> {
    let kept: Option<Made> = record::read(&data.made_file())?;
    let made = kept.unwrap_or_default().at(|path| data.path().join(path));
    let file = MadeFile(Arc::downgrade(data));
    Ok(MadePools::new(made, Arc::new(file)))
}

/// The record in its file. The data directory is gone when the array has ended.
#[derive(Debug)]
struct MadeFile(Weak<DataDir>);

impl Store<Made> for MadeFile {
    fn keep(&self, made: Made) -> BoxFuture<'static, Result<(), String>> {
        let Some(data) = self.0.upgrade() else {
            return std::future::ready(Err("the array ends".to_owned())).boxed();
        };
        let write = move || {
            let kept = made.at(|path| kept_path(data.path(), path));
            record::write(&data.made_file(), &kept)
        };
        record::write_aside("the record of pools", write).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::configuration::InFile;
    use crate::array::drive_record;
    use crate::drive_files::FileBays;
    use crate::shard::Shard;
    use ::array::openings::{KeptRecords, KnownPools, MadePool, Openings};
    use std::collections::BTreeMap;
    use std::fs::{self, File};
    use std::path::PathBuf;

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
    async fn places_in_the_data_directory_move_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        let data = Arc::new(DataDir::take(&old).unwrap());
        let outside = PathBuf::from("/dev/sdb");
        let drives = vec![data.path().join("d0.img"), outside.clone()];
        let uuid = String::new();
        let state = MadePool::BeingDestroyed { uuid, drives };
        let made = made_pools(&data).unwrap();
        made.set("p", Some(state)).await.unwrap();
        drop(data);
        std::fs::rename(&old, &new).unwrap();
        let data = Arc::new(DataDir::take(&new).unwrap());
        let kept = made_pools(&data).unwrap().now();
        let own = data.path().join("d0.img");
        let is_there = |state: &MadePool| match state {
            MadePool::BeingDestroyed { drives, .. } => *drives == [own.clone(), outside.clone()],
            _ => false,
        };
        assert!(kept.pools.values().all(is_there), "{kept:?}");
    }

    #[tokio::test]
    async fn what_a_making_leaves_is_on_record_until_it_is_taken_back() {
        let home = tempfile::tempdir().unwrap();
        let data = Arc::new(DataDir::take(&home.path().join("data")).unwrap());
        let shard = Shard::start(0).await.unwrap();
        let shards = [shard.handle().clone()];
        let mut site = site::parse("test", SITE).unwrap();
        let bays = Arc::new(FileBays::new(data.path().to_owned()));
        let made = made_pools(&data).unwrap();
        let openings = Openings::new(bays, made, data.path().to_owned());
        let made = openings.made();
        made.set_configured((&site, false)).await.unwrap();
        let mark = Some(MadePool::made_of_nothing());
        made.set("p", mark).await.unwrap();
        let [new, old] = ["new.img", "old.img"].map(|name| data.path().join(name));
        File::create(&old).unwrap().set_len(64 << 20).unwrap();
        let known = KnownPools {
            site: &site,
            made: &made.now(),
            added: &[],
            failed: &BTreeMap::new(),
        };
        let plan = openings.plan(&known, &shards).await.unwrap();
        // Somebody else takes the drive that was found empty just now.
        let held = File::open(&old).unwrap();
        held.lock().unwrap();
        let refused = openings.make(plan, &shards).await;
        let said = refused.unwrap_err().to_string();
        assert!(said.contains("old.img"), "{said}");
        assert!(!fs::exists(&new).unwrap());
        made.forget("p").await.unwrap();
        let left = made_pools(&data).unwrap().pool("p");
        assert!(left.as_ref().is_some_and(MadePool::is_being_made));
        assert_eq!(left.unwrap().left_by_making(), [old]);
        drop(held);
        let kept = KeptRecords {
            described: &mut site,
            configuration: None,
            store: &InFile::new(data.configuration_file()),
            added: &mut Vec::new(),
            drives: &*drive_record(data.path()),
        };
        let gone = openings.forget_gone(&shards[0], kept).await;
        assert_eq!(gone.unwrap(), ["p"]);
        assert!(made_pools(&data).unwrap().now().pools.is_empty());
        assert!(site.pools.is_empty());
        shard.stop().await;
    }
}
