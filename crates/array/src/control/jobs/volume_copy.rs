//! Jobs that copy from volume to volume.
//!
//! The engine copies inside a lane; between lanes, the job reads and writes.
//!
//! Invariants:
//! - A volume that the job has made goes with it when it fails or is cancelled; of one that
//!   was there before, what was copied stays.
//! - A copy that goes on after a restart begins anew, but for one that has begun to overwrite
//!   what it reads: that one fails.

use super::volume::Reached;
use super::{CopyOf, Digest, Job, Jobs, Order, invalid};
use crate::control::{ArrayError, ArrayErrorKind, ControlPlane, PlacedVolume};
use api::JobKind;
use engine::{Provisioning, VolumeSpec, World};
use site::{human, human_pair};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A range of a volume to be copied to a volume.
#[derive(Clone, Debug)]
pub struct NewCopy {
    /// The volume or snapshot that is read.
    pub source: String,
    /// The volume that is written; made when there is none.
    pub target: String,
    /// The pool that it is to be made in; that of the source unless said otherwise.
    pub pool: Option<String>,
    /// Thin or thick, if it is made.
    pub provisioning: Provisioning,
    /// Where in the source the range begins, a multiple of a sector.
    pub from_bytes: u64,
    /// Where in the target it goes, a multiple of a sector.
    pub to_bytes: u64,
    /// How much; up to the source's end unless said otherwise.
    pub len_bytes: Option<u64>,
    /// Also over what a volume that is there already holds.
    pub overwrite: bool,
    /// Also while hosts are logged in to the target's target.
    pub live: bool,
    /// Most data a second, between lanes.
    pub rate_bytes_per_s: Option<u64>,
}

impl<W: World> ControlPlane<W> {
    /// Begins to copy.
    ///
    /// # Errors
    /// There is no such volume or range; the target is there and may not be overwritten, is a
    /// snapshot, or hosts may write to it;
    /// or what making it says. Nothing has changed then.
    pub async fn copy_to_volume(self: &Arc<Self>, new: NewCopy) -> Result<api::Job, ArrayError> {
        let (id, made) = self
            .enter_in_turn("copy is entered beside other changes", |array| async move {
                array.enter_copy(new).await
            })
            .await?;
        let Some((new, pool, size_bytes)) = made else {
            self.begin_job(id);
            return self.jobs.job(id);
        };
        let spec = VolumeSpec {
            name: new.target,
            size_bytes,
            provisioning: new.provisioning,
        };
        let made = self.create_volume_beside(pool, spec, new.source, id).await;
        self.begin_made(id, made).await
    }

    /// Puts it on record; gives the pool and the size of a volume that is to be made.
    async fn enter_copy(
        &self,
        new: NewCopy,
    ) -> Result<(u64, Option<(NewCopy, String, u64)>), ArrayError> {
        let jobs = &self.jobs;
        let source = self.volume(&new.source).await?;
        jobs.check_whole(&new.source)?;
        source.check_sound()?;
        let len = check_source(&source, &new)?;
        let there = match self.volume(&new.target).await {
            Ok(there) => Some(there),
            Err(error) if error.kind == ArrayErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let pool = match &there {
            Some(there) => {
                jobs.check_free(&new.target, None)?;
                // Its record would go on, over what is copied.
                there.check_sound()?;
                check_target(there, &new, len)?;
                there.pool.clone()
            }
            None => new.pool.clone().unwrap_or_else(|| source.pool.clone()),
        };
        // As for a move.
        if !self.runtime.planted("copy is entered beside other changes") {
            self.check_turn(&pool)?;
        }
        let order = order(&new, pool.clone(), &source, there.is_none());
        if let Some(there) = there {
            self.check_quiet(&new).await?;
            let uuid = Some(there.info.uuid.to_string());
            return Ok((jobs.enter(order, len, uuid, Vec::new()).await?, None));
        }
        self.check_new(&pool, &new.target).await?;
        let size_bytes = new_size_bytes(&new, len)?;
        let id = jobs.enter(order, len, None, Vec::new()).await?;
        Ok((id, Some((new, pool, size_bytes))))
    }

    /// Complains when hosts are logged in to the target's target.
    async fn check_quiet(&self, new: &NewCopy) -> Result<(), ArrayError> {
        if new.live {
            return Ok(());
        }
        let Some((initiator, target)) = self.user_of(&new.target).await? else {
            return Ok(());
        };
        let context = format!(
            "{initiator} is logged in to {target} and would find other data on volume {}; log it out, or say --live",
            new.target
        );
        Err(ArrayError::new(ArrayErrorKind::Busy, context))
    }

    /// Copies, to the end.
    pub(super) async fn work_volume_copy(&self, job: &Job) -> Result<Option<Digest>, String> {
        let jobs = &self.jobs;
        let copy = job.order.copy.as_ref().ok_or("it does not say of what")?;
        let found = |name: String| async move {
            let found = Reached::find(self, &name).await;
            found.map_err(|error| error.context)
        };
        let source = found(copy.source.clone()).await?;
        let target = found(job.order.volume.clone()).await?;
        if source.uuid().to_string() != copy.source_uuid
            || job.volume_uuid.as_ref() != Some(&target.uuid().to_string())
        {
            return Err("a volume is another one than when the job began".to_owned());
        }
        let apart = copy.from_bytes.abs_diff(copy.to_bytes);
        let overlaps = source.uuid() == target.uuid() && apart < job.size_bytes;
        if overlaps && job.resumed_bytes.is_some() {
            return Err("the server ended while it overwrote what it copied".to_owned());
        }
        if target.is_beside(&source) {
            inside(jobs, job, copy, (&source, &target)).await?;
            return Ok(None);
        }
        let begun = job.checkpoint.clone().unwrap_or_else(Digest::empty);
        let target = target.from(copy.to_bytes);
        if begun.len_bytes() == 0 {
            // What is not written is zeroes.
            target.clear(job.size_bytes).await?;
        }
        let checkpoint = |digest| async {
            let kept = jobs.keep(job.id, digest).await;
            kept.map_err(|error| error.context)
        };
        let through = jobs.through(job, begun)?;
        let source = source.from(copy.from_bytes);
        let sum = through.run(source, Some(&target), checkpoint).await?;
        Ok(Some(sum))
    }
}

/// How large a volume is that is made for `len` bytes.
fn new_size_bytes(new: &NewCopy, len: u64) -> Result<u64, ArrayError> {
    let end = new.to_bytes.checked_add(len);
    let size_bytes = end.filter(|size| site::is_volume_size(*size));
    size_bytes.ok_or_else(|| {
        let (len, to) = (human(len), human(new.to_bytes));
        let rule = site::VOLUME_SIZES.rule();
        invalid(format!(
            "{}: found {len} from {to} on; allowed for a volume: {rule}",
            new.target
        ))
    })
}

fn order(new: &NewCopy, pool: String, source: &PlacedVolume, makes: bool) -> Order {
    Order {
        rate_bytes_per_s: new.rate_bytes_per_s,
        live: new.live,
        copy: Some(CopyOf {
            source: new.source.clone(),
            source_uuid: source.info.uuid.to_string(),
            from_bytes: new.from_bytes,
            to_bytes: new.to_bytes,
            makes,
        }),
        ..Order::new(JobKind::Copy, pool, new.target.clone())
    }
}

fn check_source(source: &PlacedVolume, new: &NewCopy) -> Result<u64, ArrayError> {
    let size = source.info.size_bytes;
    let left = size.saturating_sub(new.from_bytes);
    let len = new.len_bytes.unwrap_or(left);
    let grain = base::SECTOR_BYTES as u64;
    let whole = [new.from_bytes, new.to_bytes, len];
    if !whole.iter().all(|bytes| bytes.is_multiple_of(grain)) {
        let context = format!(
            "found {len} bytes, from {}, to {}; allowed: multiples of {grain} bytes",
            new.from_bytes, new.to_bytes
        );
        return Err(invalid(context));
    }
    if len == 0 || len > left {
        let (asked, size) = human_pair(new.from_bytes.saturating_add(len), size);
        let context = match len {
            0 => format!(
                "found nothing to copy from {asked} on; volume {} has {size}",
                new.source
            ),
            _ => format!(
                "found a range up to {asked}; volume {} has {size}",
                new.source
            ),
        };
        return Err(invalid(context));
    }
    Ok(len)
}

fn check_target(there: &PlacedVolume, new: &NewCopy, len: u64) -> Result<(), ArrayError> {
    let (name, size) = (&new.target, there.info.size_bytes);
    if there.is_snapshot() {
        return Err(invalid(format!(
            "{name} is a snapshot, and nobody writes it: clone it"
        )));
    }
    if new.to_bytes.checked_add(len).is_none_or(|end| end > size) {
        let (end, size) = human_pair(new.to_bytes.saturating_add(len), size);
        return Err(invalid(format!(
            "found a range up to {end}; volume {name} has {size}: grow it first, or say --length"
        )));
    }
    let other = new.pool.as_ref().filter(|pool| **pool != there.pool);
    if let Some(pool) = other {
        return Err(invalid(format!(
            "volume {name} is in pool {} already, not in {pool}",
            there.pool
        )));
    }
    if new.overwrite {
        return Ok(());
    }
    let (at, len) = (human(new.to_bytes), human(len));
    let context = format!(
        "volume {name} is there already, and the copy would overwrite {len} of it from {at} on: say \
         --overwrite for that, or another name"
    );
    Err(ArrayError::new(ArrayErrorKind::Exists, context))
}

/// Called off when nobody waits any more.
struct Wanted(Arc<AtomicBool>);

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.store(false, Relaxed);
    }
}

/// In one lane: the engine does it.
async fn inside<W: World>(
    jobs: &Jobs,
    job: &Job,
    copy: &CopyOf,
    (source, target): (&Reached<W>, &Reached<W>),
) -> Result<(), String> {
    let progress = jobs.progress(job.id).ok_or("the job is gone")?;
    progress.begin(0, job.size_bytes);
    let goes_on = Arc::new(AtomicBool::new(true));
    let _wanted = Wanted(Arc::clone(&goes_on));
    let mut told = 0;
    let watch = move |done: u64| {
        progress.advance(done - told, 0);
        told = done;
        goes_on.load(Relaxed)
    };
    let ends = (copy.from_bytes, copy.to_bytes);
    let done = target
        .copy_from(source, ends, job.size_bytes, watch)
        .await?;
    match done == job.size_bytes {
        true => Ok(()),
        false => Err("it was called off".to_owned()),
    }
}
