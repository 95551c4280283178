//! Finds drives by name, and says which names new ones may have.
//!
//! Invariant: a drive's name is unique over all open pools.

use crate::control::{ArrayError, ArrayErrorKind, ControlPlane};
use engine::World;
use engine::pool::{MemberInfo, PoolInfo};
use std::path::PathBuf;

/// A drive to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDrive {
    /// The name that it is to have.
    pub name: String,
    /// A file relative to the data directory, or an absolute path.
    pub path: PathBuf,
    /// It is a device: never made.
    pub is_device: bool,
    /// Size to make the file with when it is not there; as large as the pool's
    /// largest drive unless said otherwise.
    pub size_bytes: Option<u64>,
}

impl<W: World> ControlPlane<W> {
    /// The drive called `name`, and its pool.
    ///
    /// # Errors
    /// There is none, or a shard has stopped.
    pub async fn drive(&self, name: &str) -> Result<(PoolInfo, MemberInfo), ArrayError> {
        for (_, info) in self.pools().await? {
            let mut all = info.members.iter().chain(&info.spares);
            if let Some(member) = all.find(|member| member.name == name).cloned() {
                return Ok((info, member));
            }
        }
        let context = format!("there is no drive {name}");
        Err(ArrayError::new(ArrayErrorKind::NotFound, context))
    }

    /// That no drive has this name.
    ///
    /// # Errors
    /// One has, or a shard has stopped.
    pub async fn check_free(&self, name: &str) -> Result<(), ArrayError> {
        match self.drive(name).await {
            Err(error) if error.kind == ArrayErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok((info, _)) => {
                let pool = info.name;
                let context =
                    format!("there is a drive {name} already, in pool {pool}; choose another name");
                Err(ArrayError::new(ArrayErrorKind::Exists, context))
            }
        }
    }

    /// That each name and each place is new, and there once.
    ///
    /// # Errors
    /// One is not, or a shard has stopped.
    pub async fn check_new_drives(&self, drives: &[NewDrive]) -> Result<(), ArrayError> {
        for (index, drive) in drives.iter().enumerate() {
            let before = &drives[..index];
            let twice = |what: String| {
                let context = format!("drives: found {what} twice; allowed: each once");
                Err(ArrayError::new(ArrayErrorKind::Invalid, context))
            };
            if before.iter().any(|other| other.name == drive.name) {
                return twice(format!("the name {:?}", drive.name));
            }
            if before.iter().any(|other| other.path == drive.path) {
                return twice(drive.path.display().to_string());
            }
            self.check_free(&drive.name).await?;
        }
        Ok(())
    }
}
