//! Task management as initiators do it: tasks that they abort, and those that others abort.
//!
//! Whoever asks for a function hears when it is done. Others hear nothing of tasks that it has
//! aborted: they abort them, too, and are told that there are none. Such a task was over when the
//! function was done.

use super::front::Front;
pub(crate) use super::functions::DONE;
use super::functions::NO_TASK;
use super::path::Path;
use array::wake::in_time;
use engine::World;
use std::rc::Rc;
use std::time::Duration;

/// Task management functions (RFC 7143 clause 11.5.1).
pub(crate) const ABORT_TASK_SET: u8 = 2;
pub(crate) const CLEAR_TASK_SET: u8 = 4;
pub(crate) const UNIT_RESET: u8 = 5;

/// A request that has no answer after this time, and whose session lives, has none.
pub(crate) const ANSWER_MAX: Duration = Duration::from_secs(60);

/// Has a task aborted. It is over when the target says so, and has been answered or aborted when the
/// target knows it no more. `tick` gives the next instant.
///
/// # Errors
/// The target has broken a rule.
pub(crate) async fn abort(
    front: &Front,
    path: &Path,
    (tag, lun): (u32, u16),
    tick: &dyn Fn() -> u64,
) -> Result<(), String> {
    if !path.has(tag) {
        return Ok(());
    }
    let is_excused = path.is_excused(lun);
    let aborted = path.abort_task(lun, tag);
    let answer = in_time(&front.world, ANSWER_MAX, aborted).await;
    let is_excused = is_excused || path.is_excused(lun);
    let said = match answer {
        Some(None) => return Ok(()),
        Some(Some(said)) => said,
        None => return Err(format!("task {tag} is not aborted in {ANSWER_MAX:?}")),
    };
    match said.response {
        DONE => {
            if path.has_answered(tag) {
                return Err(format!("task {tag} was answered, and aborted"));
            }
            path.end(tag, tick());
            front.check_idle(path)
        }
        // Whoever has aborted it may be about to hear of that.
        NO_TASK if said.was_over => Ok(()),
        // A function has aborted it, and it runs no more.
        NO_TASK if is_excused => {
            path.give_up(tag, tick());
            front.check_idle(path)
        }
        _ => Err(format!(
            "aborting task {tag}, which has no answer: {said:?}"
        )),
    }
}

/// Something under way that may abort what these sessions have at a LUN.
pub(crate) struct Aborting {
    lun: u16,
    paths: Vec<Rc<Path>>,
}

impl Aborting {
    pub(crate) fn begin(lun: u16, paths: Vec<Rc<Path>>) -> Aborting {
        let aborting = Aborting { lun, paths };
        aborting.excuse(true);
        aborting
    }

    fn excuse(&self, begins: bool) {
        self.paths
            .iter()
            .for_each(|path| path.excuse(self.lun, begins));
    }

    /// It is done: what it has aborted is over by `now`. Of these sessions some may have begun
    /// since, and are meant, too.
    pub(crate) fn done(&mut self, now: u64, paths: Vec<Rc<Path>>) {
        for path in paths {
            if !self.paths.iter().any(|known| Rc::ptr_eq(known, &path)) {
                path.excuse(self.lun, true);
                self.paths.push(path);
            }
        }
        for path in &self.paths {
            path.may_be_gone(self.lun, now);
        }
    }

    /// After a while hosts give up what has no answer.
    ///
    /// # Errors
    /// The target has broken a rule.
    pub(crate) async fn give_up(
        self,
        front: &Front,
        after: Duration,
        tick: &dyn Fn() -> u64,
    ) -> Result<(), String> {
        front.world.sleep(after).await;
        let mut given_up = Ok(());
        for path in &self.paths {
            for tag in path.gone_at(self.lun) {
                given_up = given_up.and(abort(front, path, (tag, self.lun), tick).await);
            }
        }
        self.excuse(false);
        given_up
    }
}
