//! Makes the files of new drives, and removes those of drives that are not taken.

use super::{ArrayError, ArrayErrorKind};
use std::path::PathBuf;
use world_real::RealDrive;

/// Makes the files of drives where nothing is; says which.
pub(super) async fn make_files(
    wanted: Vec<(String, PathBuf, u64)>,
) -> Result<Vec<PathBuf>, ArrayError> {
    let making = tokio::task::spawn_blocking(move || {
        let mut made = Vec::new();
        for (name, path, size_bytes) in wanted {
            if path.exists() {
                continue;
            }
            match RealDrive::create_file(&path, size_bytes) {
                Ok(()) => made.push(path),
                Err(error) => return Err((format!("drive {name}: {error}"), made)),
            }
        }
        Ok(made)
    });
    match making.await {
        Ok(Ok(made)) => Ok(made),
        Ok(Err((context, made))) => {
            remove_files(made).await;
            Err(ArrayError::new(ArrayErrorKind::Invalid, context))
        }
        Err(error) => {
            let context = format!("making drive files ended early: {error}");
            Err(ArrayError::new(ArrayErrorKind::Internal, context))
        }
    }
}

/// Removes files that were just made, and that nobody else has.
pub(super) async fn remove_files(made: Vec<PathBuf>) {
    let removing = tokio::task::spawn_blocking(move || {
        for path in made {
            if let Err(error) = std::fs::remove_file(&path) {
                tracing::warn!("{}: can't remove it: {error}", path.display());
            }
        }
    });
    // It only warns.
    let _ = removing.await;
}
