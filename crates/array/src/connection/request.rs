//! Carries commands of a connection to its target, on the same shard or on another.
//!
//! The SCSI side of a session, its nexus with all that other sessions must see, is
//! always on the home shard of its target, and every command is run there. What crosses
//! are commands with their data and answers with theirs: many at a time, and buffers
//! change hands without a copy.
//!
//! Invariants:
//! - Requests begin in the order they were given, and each that began ends once.
//! - One that began runs to its end, also when the connection is gone; but no part of it
//!   begins again once nobody waits for it, or its connection is gone (`scsi`'s `room`).

use super::batch::{Receiver, Sender};
use super::gauge::Destination;
use super::management::manage;
use super::tasks::Order;
use crate::shard::ShardState;
use crate::shard::session::Session;
use base::Slice;
use engine::World;
use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use iscsi::connection::TaskId;
use rustc_hash::FxHashMap;
use scsi::offload::CancelToken;
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Turns before others on the shard get theirs.
const TURNS_MAX: usize = 16;

/// What is to be done at home.
pub(crate) enum Request {
    /// A command with its data-out.
    Command {
        task: TaskId,
        order: Order,
        data: Slice,
    },
    /// A task management function.
    Manage {
        task: TaskId,
        function: u8,
        lun: [u8; 8],
    },
    /// Nobody waits for this command any more: a copy ends early, and one that waits for
    /// room is not tried again. It has no end of its own.
    Stop { task: TaskId },
}

/// What has ended.
pub(crate) enum EndedWork {
    Command {
        task: TaskId,
        sent_to: Destination,
        written_bytes: u64,
        response: scsi::Response,
    },
    Managed {
        task: TaskId,
        function: u8,
        response: u8,
    },
}

/// Runs requests on the home shard.
pub(crate) struct Runner<W: World> {
    state: Rc<ShardState<W>>,
    session: Rc<Session<W>>,
    running: FuturesUnordered<LocalBoxFuture<'static, EndedWork>>,
    /// Of the commands that run.
    cancels: Rc<RefCell<FxHashMap<TaskId, CancelToken>>>,
}

impl<W: World> Runner<W> {
    pub(crate) fn new(state: Rc<ShardState<W>>, session: Rc<Session<W>>) -> Self {
        Runner {
            state,
            session,
            running: FuturesUnordered::new(),
            cancels: Rc::default(),
        }
    }

    /// What runs a command to its end.
    fn run(&self, task: TaskId, order: Order, data: Slice) -> LocalBoxFuture<'static, EndedWork> {
        let (session, cancels) = (Rc::clone(&self.session), Rc::clone(&self.cancels));
        let cancel = CancelToken::default();
        cancels.borrow_mut().insert(task, cancel.clone());
        let written_bytes = data.len() as u64;
        Box::pin(async move {
            let nexus = &session.nexus;
            let executed = nexus.execute_making_room(order.lun, order.cdb, data, cancel);
            let response = executed.await;
            cancels.borrow_mut().remove(&task);
            EndedWork::Command {
                task,
                sent_to: order.destination(),
                written_bytes,
                response,
            }
        })
    }

    /// Nobody waits for anything any more.
    fn stop_all(&self) {
        self.cancels.borrow().values().for_each(CancelToken::stop);
    }

    fn begin(&self, request: Request) {
        let session = Rc::clone(&self.session);
        match request {
            Request::Command { task, order, data } => {
                let running = self.run(task, order, data);
                self.running.push(running);
            }
            Request::Stop { task } => {
                if let Some(cancel) = self.cancels.borrow().get(&task) {
                    cancel.stop();
                }
            }
            Request::Manage {
                task,
                function,
                lun,
            } => {
                let state = Rc::clone(&self.state);
                self.running.push(Box::pin(async move {
                    let response = manage(state, session, function, lun).await;
                    EndedWork::Managed {
                        task,
                        function,
                        response,
                    }
                }));
            }
        }
    }

    /// One that has ended; pending also when there are none.
    fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<EndedWork> {
        match self.running.poll_next_unpin(cx) {
            Poll::Ready(Some(ended)) => Poll::Ready(ended),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    /// Runs what comes from the shard that carries the connection, until that is gone
    /// and all has ended.
    pub(crate) async fn serve(
        mut self,
        mut requests: Receiver<Request>,
        mut ended: Sender<EndedWork>,
    ) {
        let mut open = true;
        poll_fn(move |cx| {
            for _ in 0..TURNS_MAX {
                let mut moved = false;
                while open && let Poll::Ready(next) = requests.poll_next(cx) {
                    moved = true;
                    match next {
                        Some(request) => self.begin(request),
                        None => {
                            open = false;
                            self.stop_all();
                        }
                    }
                }
                while let Poll::Ready(one) = self.poll_ended(cx) {
                    moved = true;
                    ended.put(one);
                }
                ended.flush();
                if !open && self.running.is_empty() {
                    return Poll::Ready(());
                }
                if !moved {
                    return Poll::Pending;
                }
                self.state.world().note_work();
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}

/// The route from a connection to its home.
pub(crate) enum Route<W: World> {
    /// It is carried by its home shard.
    Here(Runner<W>),
    /// It is carried by another.
    There {
        requests: Sender<Request>,
        ended: Receiver<EndedWork>,
        running: usize,
    },
}

/// The home shard is gone, and with it what ran there.
pub(crate) struct HomeGone;

impl<W: World> Route<W> {
    pub(crate) fn between(requests: Sender<Request>, ended: Receiver<EndedWork>) -> Self {
        Route::There {
            requests,
            ended,
            running: 0,
        }
    }

    /// Has `request` done, from the next [`Route::flush`] on at the latest.
    pub(crate) fn begin(&mut self, request: Request) {
        match self {
            Route::Here(runner) => runner.begin(request),
            Route::There {
                requests, running, ..
            } => {
                requests.put(request);
                *running += 1;
            }
        }
    }

    /// Nobody waits for the command of `task` any more.
    pub(crate) fn stop(&mut self, task: TaskId) {
        match self {
            Route::Here(runner) => runner.begin(Request::Stop { task }),
            Route::There { requests, .. } => requests.put(Request::Stop { task }),
        }
    }

    /// Sends what was begun on its way.
    pub(crate) fn flush(&mut self) {
        if let Route::There { requests, .. } = self {
            requests.flush();
        }
    }

    /// One that has ended; pending also when there are none.
    pub(crate) fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<Result<EndedWork, HomeGone>> {
        match self {
            Route::Here(runner) => runner.poll_ended(cx).map(Ok),
            Route::There { ended, running, .. } => match ended.poll_next(cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Some(ended)) => {
                    *running -= 1;
                    Poll::Ready(Ok(ended))
                }
                Poll::Ready(None) => {
                    *running = 0;
                    Poll::Ready(Err(HomeGone))
                }
            },
        }
    }

    /// Whether nothing is being done.
    pub(crate) fn is_idle(&self) -> bool {
        match self {
            Route::Here(runner) => runner.running.is_empty(),
            Route::There { running, .. } => *running == 0,
        }
    }
}
