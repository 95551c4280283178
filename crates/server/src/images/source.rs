//! Sources that jobs read content from: a file or an image.

use super::header::{Block, Layer, Vhdx};
use super::nbd::Client;
use super::qemu::Served;
use ::array::control::jobs::copy;
use api::Format;
use base::Buf;
use site::human_pair;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// Something to read from, from its beginning to its end.
pub(super) struct Source {
    /// For messages.
    name: String,
    from: From,
}

enum From {
    /// A raw image.
    Raw(Arc<File>),
    /// A VHDX, from the top of its chain down.
    Vhdx(Arc<Vec<Vhdx>>),
    /// An image that QEMU has open.
    Nbd(Box<(Served, Client)>),
}

impl Source {
    /// Opens the image with these layers. `home` is a directory for a socket, to be made.
    ///
    /// # Errors
    /// It can't be opened, or is not as large as its header says.
    pub(super) async fn image(layer: Layer, home: &Path) -> Result<Self, String> {
        let name = layer.path.display().to_string();
        match From::image(layer, home).await {
            Ok(from) => Ok(Source { name, from }),
            Err(why) => Err(format!("{name}: {why}")),
        }
    }
}

impl copy::Source for Source {
    async fn extent(&mut self, at: u64) -> Result<(bool, u64), String> {
        let extent = self.from.extent(at).await;
        extent.map_err(|why| format!("{}: {why}", self.name))
    }

    async fn read(&mut self, at: u64, buf: Buf, part: Range<usize>) -> Result<Buf, String> {
        let read = self.from.read(at, buf, part).await;
        read.map_err(|why| format!("{}: {why}", self.name))
    }
}

impl From {
    async fn image(layer: Layer, home: &Path) -> Result<Self, String> {
        match layer.format {
            Format::Raw => off(move || Ok(From::Raw(Arc::new(open(&layer.path)?)))).await,
            Format::Vhdx => off(move || Ok(From::Vhdx(Arc::new(chain(&layer)?)))).await,
            Format::Qcow2 | Format::Vmdk => {
                let (served, client) = Served::to_read(&layer, home).await?;
                // Another size would be that of another file.
                if client.size_bytes() != layer.size_bytes {
                    let (said, served) = human_pair(layer.size_bytes, client.size_bytes());
                    return Err(format!(
                        "by its header its size is {said}, by qemu-nbd {served}"
                    ));
                }
                Ok(From::Nbd(Box::new((served, client))))
            }
        }
    }

    async fn extent(&mut self, at: u64) -> Result<(bool, u64), String> {
        match self {
            From::Raw(file) => {
                let file = Arc::clone(file);
                off(move || world_real::extent(&file, at).map_err(|error| error.to_string())).await
            }
            From::Vhdx(chain) => {
                let chain = Arc::clone(chain);
                off(move || locate(&chain, at).map(|(block, len, _)| (block != Block::Zeroes, len)))
                    .await
            }
            From::Nbd(served) => served.1.extent(at).await,
        }
    }

    async fn read(&mut self, at: u64, mut buf: Buf, part: Range<usize>) -> Result<Buf, String> {
        match self {
            From::Raw(file) => {
                let file = Arc::clone(file);
                off(move || {
                    let read = file.read_exact_at(place(&mut buf, part), at);
                    read.map_err(|error| format!("can't read it at byte {at}: {error}"))?;
                    Ok(buf)
                })
                .await
            }
            From::Vhdx(chain) => {
                let chain = Arc::clone(chain);
                off(move || {
                    read_chain(&chain, at, place(&mut buf, part))?;
                    Ok(buf)
                })
                .await
            }
            From::Nbd(served) => served.1.read(at, buf, part).await,
        }
    }
}

fn place(buf: &mut Buf, part: Range<usize>) -> &mut [u8] {
    buf.bytes_mut()
        .and_then(|bytes| bytes.get_mut(part))
        .unwrap_or_default()
}

/// Does what may wait for a drive, beside the threads that must not.
pub(super) async fn off<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    match spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) => Err(format!("work on a file ended early: {error}")),
    }
}

fn open(path: &Path) -> Result<File, String> {
    File::open(path).map_err(|error| error.to_string())
}

fn chain(layer: &Layer) -> Result<Vec<Vhdx>, String> {
    let mut chain: Vec<Vhdx> = Vec::new();
    let mut next = Some(layer);
    while let Some(layer) = next {
        let disk = Vhdx::open(open(&layer.path)?)?;
        if let Some(above) = chain.last() {
            above.check_parent(&disk)?;
        }
        chain.push(disk);
        next = layer.backing.as_deref();
    }
    Ok(chain)
}

/// Where the bytes from `at` on are, how many are alike, and in which disk of the chain.
fn locate(chain: &[Vhdx], at: u64) -> Result<(Block, u64, usize), String> {
    let mut alike = u64::MAX;
    for (depth, disk) in chain.iter().enumerate() {
        // A parent may be smaller than what was made upon it.
        if at >= disk.size_bytes() {
            break;
        }
        let (block, len) = disk.locate(at)?;
        alike = alike.min(len);
        if block != Block::Below {
            return Ok((block, alike, depth));
        }
    }
    Ok((Block::Zeroes, alike, 0))
}

fn read_chain(chain: &[Vhdx], mut at: u64, mut into: &mut [u8]) -> Result<(), String> {
    while !into.is_empty() {
        let (block, alike, depth) = locate(chain, at)?;
        let len = usize::try_from(alike).map_or(into.len(), |len| len.min(into.len()));
        let (now, rest) = into.split_at_mut(len);
        match block {
            Block::Here(place) => chain[depth].read(place, now)?,
            Block::Zeroes | Block::Below => now.fill(0),
        }
        into = rest;
        at += len as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
