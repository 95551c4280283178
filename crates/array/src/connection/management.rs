//! Task management functions (RFC 7143 clause 11.5, SAM-5 clause 7).
//!
//! An answer is given when the tasks meant have ended, so that an initiator
//! which is told that a write was aborted never sees it land later. That is so, too, of ABORT TASK
//! for a task which the reset of another host has aborted already: its own host has not heard of
//! that. While the command still runs, the task exists, and the function is complete when it has
//! ended. Afterwards the task does not exist (RFC 7143 clause 11.6.1, case c).

use crate::shard::ShardState;
use crate::shard::session::{Closing, Scope, Session};
use engine::World;
use futures_util::future::join_all;
use scsi::management::Function;
use std::rc::Rc;

/// Response codes (RFC 7143 clause 11.6.1).
pub(crate) mod response {
    pub(crate) const COMPLETE: u8 = 0;
    pub(crate) const NO_TASK: u8 = 1;
    pub(crate) const NO_LUN: u8 = 2;
    pub(crate) const NO_REASSIGNMENT: u8 = 4;
    pub(crate) const NOT_SUPPORTED: u8 = 5;
    pub(crate) const NOT_AUTHORIZED: u8 = 6;
}

/// Function codes (RFC 7143 clause 11.5.1).
pub(crate) mod function {
    pub(crate) const ABORT_TASK: u8 = 1;
    pub(crate) const ABORT_TASK_SET: u8 = 2;
    pub(crate) const CLEAR_TASK_SET: u8 = 4;
    pub(crate) const LOGICAL_UNIT_RESET: u8 = 5;
    pub(crate) const TARGET_WARM_RESET: u8 = 6;
    pub(crate) const TARGET_COLD_RESET: u8 = 7;
    pub(crate) const TASK_REASSIGN: u8 = 8;
}

/// Does every function but ABORT TASK, which needs the connection itself, and
/// says what to answer.
pub(crate) async fn manage<W: World>(
    state: Rc<ShardState<W>>,
    session: Rc<Session<W>>,
    code: u8,
    lun: [u8; 8],
) -> u8 {
    let target = Rc::clone(session.nexus.target());
    if let Some(function) = of_unit(code) {
        let done = match scsi::lun::decode(lun) {
            Some(lun) => session.nexus.manage(function, lun).await,
            None => false,
        };
        return match done {
            true => response::COMPLETE,
            false => response::NO_LUN,
        };
    }
    // They end what other hosts have running, and their sessions. Linux, Windows and ESXi go on
    // by LOGICAL UNIT RESET, or by a new session, where a target refuses.
    let is_reset = [function::TARGET_WARM_RESET, function::TARGET_COLD_RESET].contains(&code);
    if is_reset && !target.may_be_reset() {
        return response::NOT_AUTHORIZED;
    }
    match code {
        function::TARGET_WARM_RESET | function::TARGET_COLD_RESET => {
            abort_all(&state, target.name()).await;
            target.target_reset();
            if code == function::TARGET_COLD_RESET {
                end_others(&state, &session).await;
            }
        }
        function::TASK_REASSIGN => return response::NO_REASSIGNMENT,
        _ => return response::NOT_SUPPORTED,
    }
    response::COMPLETE
}

/// Ends all other connections to the target (RFC 7143 clause 11.5.1); this one ends when the
/// answer has been sent.
async fn end_others<W: World>(state: &ShardState<W>, session: &Session<W>) {
    let target = session.nexus.target();
    // Two at once would wait for the end of each other's session: one ends them all.
    if let Some(_resetting) = state.begin_reset(target.name()) {
        let is_other =
            |one: &Session<W>| one.target() == target.name() && one.tsih() != session.tsih();
        state.close_sessions(Closing::Drain, is_other).await;
    }
}

/// The function that concerns one logical unit.
fn of_unit(code: u8) -> Option<Function> {
    match code {
        function::ABORT_TASK_SET => Some(Function::AbortTaskSet),
        function::CLEAR_TASK_SET => Some(Function::ClearTaskSet),
        function::LOGICAL_UNIT_RESET => Some(Function::UnitReset),
        _ => None,
    }
}

async fn abort_all<W: World>(state: &ShardState<W>, target: &str) {
    let sessions = state.sessions_of(target);
    join_all(sessions.iter().map(|session| session.abort(Scope::All))).await;
}
