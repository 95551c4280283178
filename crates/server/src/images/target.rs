//! Targets that jobs write content to: a file or an image.
//!
//! Each of them reads as zeroes before the first write.

use super::nbd::Client;
use super::qemu::Served;
use super::source::off;
use ::array::control::jobs::copy;
use api::Format;
use base::{BLOCK_BYTES, Slice};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::Mutex;

/// Zeroes are left out of images of other formats in runs of this many bytes, which is
/// what most of them allocate by.
const IMAGE_GRAIN_BYTES: usize = 64 << 10;

/// Something to write to.
pub(super) enum Target {
    /// A raw image.
    Raw(Arc<File>),
    /// An image that QEMU has open.
    Nbd(Box<Served>, Arc<Mutex<Client>>),
}

impl Target {
    /// The empty image at `path`.
    ///
    /// # Errors
    /// It can't be opened.
    pub(super) async fn image(path: &Path, format: Format, home: &Path) -> Result<Self, String> {
        if format == Format::Raw {
            let path = path.to_owned();
            let open = move || {
                File::options()
                    .write(true)
                    .open(path)
                    .map_err(|e| e.to_string())
            };
            return Ok(Target::Raw(Arc::new(off(open).await?)));
        }
        let (served, client) = Served::to_write(path, format, home).await?;
        Ok(Target::Nbd(Box::new(served), Arc::new(Mutex::new(client))))
    }

    /// Ends when all that was written is on stable media.
    ///
    /// # Errors
    /// It can't be.
    pub(super) async fn flush(&self) -> Result<(), String> {
        match self {
            Target::Raw(file) => {
                let file = Arc::clone(file);
                off(move || file.sync_data().map_err(|error| error.to_string())).await
            }
            Target::Nbd(_, client) => client.lock().await.flush().await,
        }
    }

    /// As [`Target::flush`], and the image is closed.
    ///
    /// # Errors
    /// It can't be.
    pub(super) async fn finish(self) -> Result<(), String> {
        self.flush().await?;
        match self {
            Target::Nbd(served, client) => {
                let client = Arc::into_inner(client).ok_or("a write is still on its way")?;
                served.close(client.into_inner()).await
            }
            Target::Raw(_) => Ok(()),
        }
    }
}

impl copy::Target for Target {
    fn grain_bytes(&self) -> usize {
        match self {
            Target::Raw(_) => BLOCK_BYTES,
            Target::Nbd(..) => IMAGE_GRAIN_BYTES,
        }
    }

    fn depth(&self) -> usize {
        1
    }

    fn write(&self, at: u64, data: Slice) -> BoxFuture<'static, Result<(), String>> {
        match self {
            Target::Raw(file) => {
                let file = Arc::clone(file);
                let write = move || {
                    let written = file.write_all_at(data.bytes().unwrap_or_default(), at);
                    written.map_err(|error| format!("can't write it at byte {at}: {error}"))
                };
                off(write).boxed()
            }
            Target::Nbd(_, client) => {
                let client = Arc::clone(client);
                let write = async move {
                    let bytes = data.bytes().unwrap_or_default();
                    client.lock().await.write(at, bytes).await
                };
                write.boxed()
            }
        }
    }
}
