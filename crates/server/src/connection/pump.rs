//! The pump: moves bytes between the socket and the state machine, and runs
//! commands.
//!
//! One task per connection. Every time it is woken it takes all that has come,
//! begins the commands, collects those that have ended, and sends all answers
//! with one call: a queue of 32 costs few system calls.

use super::management::{function, manage, response};
use super::tasks::{Aborted, Order, Tasks};
use crate::directory::Directory;
use crate::shard::ShardState;
use crate::shard::session::{AbortRequest, Closing, Session, add};
use base::Slice;
use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use iscsi::connection::{Completion, Connection, Event, TaskId};
use iscsi::login::TargetDirectory;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Interval, Sleep, interval, sleep};

/// A peer that was silent for this long is pinged; one that is silent for as
/// long again is given up.
const IDLE: Duration = Duration::from_secs(30);

/// A connection that is to close has this long to take its last answers.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Turns before other connections of the shard get theirs.
const TURNS_MAX: usize = 16;

/// At most this many runs of bytes in one send (the system's limit is 1024).
const RUNS_MAX: usize = 256;

/// What has ended.
enum Ended {
    Command {
        task: TaskId,
        order: Order,
        written_bytes: u64,
        response: scsi::Response,
    },
    Managed {
        task: TaskId,
        function: u8,
        response: u8,
    },
}

/// How far the connection is on its way to the end.
enum Course {
    Open,
    /// Reads no more; answers what runs, then closes.
    Draining(Pin<Box<Sleep>>),
    /// The socket is of no use; only waits for what runs.
    Broken,
}

/// A connection with its socket and its commands.
pub(crate) struct Pump {
    stream: TcpStream,
    connection: Connection,
    session: Rc<Session>,
    state: Rc<ShardState>,
    directory: Arc<Directory>,
    tasks: Tasks,
    running: FuturesUnordered<LocalBoxFuture<'static, Ended>>,
    course: Course,
    reason: String,
    idle: Interval,
    /// Whether anything came since the last tick of `idle`.
    heard: bool,
    /// Data-out of commands that have none.
    nothing: Slice,
}

impl Pump {
    pub(crate) fn new(
        stream: TcpStream,
        connection: Connection,
        session: Rc<Session>,
        state: &Rc<ShardState>,
        directory: Arc<Directory>,
    ) -> Self {
        Pump {
            stream,
            connection,
            session,
            state: Rc::clone(state),
            directory,
            tasks: Tasks::default(),
            running: FuturesUnordered::new(),
            course: Course::Open,
            reason: String::new(),
            idle: interval(IDLE),
            heard: true,
            nothing: engine::World::buffers(state.world()).copy_of(&[]).freeze(),
        }
    }

    /// Runs the connection to its end, starting with bytes that came behind the
    /// login. Says why it ended.
    pub(crate) async fn run(mut self, input: &[u8]) -> String {
        self.connection.receive(input);
        self.take_events();
        let session = Rc::clone(&self.session);
        loop {
            // Armed before the requests are looked at, so that none is missed.
            let woken = session.wake.notified();
            tokio::pin!(woken);
            let over = poll_fn(|cx| {
                if woken.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(false);
                }
                self.poll(cx).map(|()| true)
            });
            if over.await {
                return self.reason;
            }
            self.take_requests();
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..TURNS_MAX {
            let mut moved = self.receive(cx);
            moved |= self.collect(cx);
            moved |= self.send(cx);
            if self.is_over() {
                return Poll::Ready(());
            }
            if !moved {
                return self.rest(cx);
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Nothing can be moved: looks at the clocks.
    fn rest(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.course {
            Course::Open => {
                while self.idle.poll_tick(cx).is_ready() {
                    if !std::mem::take(&mut self.heard) && !self.connection.nop_in() {
                        self.give_up("the initiator does not answer".to_owned());
                    }
                    // What it has to say goes out before anything else.
                    cx.waker().wake_by_ref();
                }
            }
            Course::Draining(deadline) => {
                ready!(deadline.as_mut().poll(cx));
                self.give_up("the last answers were not taken".to_owned());
                cx.waker().wake_by_ref();
            }
            Course::Broken => {}
        }
        Poll::Pending
    }

    fn is_over(&mut self) -> bool {
        if !self.running.is_empty() {
            return false;
        }
        match self.course {
            Course::Open => false,
            Course::Draining(_) => self.connection.output().is_empty(),
            Course::Broken => true,
        }
    }

    /// Reads what has come, and acts on it.
    fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        if !matches!(self.course, Course::Open) || !self.connection.takes_input() {
            return false;
        }
        let state = Rc::clone(&self.state);
        let mut space = state.receive_space();
        let mut space = ReadBuf::new(&mut space);
        match Pin::new(&mut self.stream).poll_read(cx, &mut space) {
            Poll::Pending => return false,
            Poll::Ready(Ok(())) if space.filled().is_empty() => {
                self.give_up("the initiator closed the connection".to_owned());
            }
            Poll::Ready(Ok(())) => {
                self.heard = true;
                self.connection.receive(space.filled());
                self.take_events();
            }
            Poll::Ready(Err(error)) => self.give_up(format!("receiving: {error}")),
        }
        true
    }

    /// Sends what waits.
    fn send(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        while !matches!(self.course, Course::Broken) && !self.connection.output().is_empty() {
            let output = self.connection.output();
            let mut runs = Vec::with_capacity(RUNS_MAX.min(64));
            output.slices(&mut runs, RUNS_MAX);
            let sent = Pin::new(&mut self.stream).poll_write_vectored(cx, &runs);
            drop(runs);
            match sent {
                Poll::Pending => break,
                Poll::Ready(Ok(bytes)) => output.advance(bytes),
                Poll::Ready(Err(error)) => self.give_up(format!("sending: {error}")),
            }
            moved = true;
        }
        if moved {
            self.begin();
        }
        moved
    }

    /// Answers for commands that have ended.
    fn collect(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        while let Poll::Ready(Some(ended)) = self.running.poll_next_unpin(cx) {
            moved = true;
            match ended {
                Ended::Command {
                    task,
                    order,
                    written_bytes,
                    response,
                } => {
                    self.count(&order, written_bytes, &response);
                    if self.tasks.end(task) {
                        self.connection.complete(task, completion(response));
                    }
                    self.begin();
                }
                Ended::Managed {
                    task,
                    function: code,
                    response,
                } => {
                    self.connection.managed(task, response);
                    if code == function::TARGET_COLD_RESET {
                        self.drain("the target was reset".to_owned());
                    }
                }
            }
        }
        // A command that has ended makes its connection take events again.
        if moved {
            self.take_events();
        }
        self.session.counters.in_flight.set(self.tasks.len() as u64);
        moved
    }

    fn count(&self, order: &Order, written_bytes: u64, response: &scsi::Response) {
        let counters = &self.session.counters;
        add(&counters.commands, 1);
        match scsi::cdb::Kind::of(order.cdb[0]) {
            scsi::cdb::Kind::Read => {
                add(&counters.reads, 1);
                add(&counters.read_bytes, response.data.len() as u64);
            }
            scsi::cdb::Kind::Write => {
                add(&counters.writes, 1);
                add(&counters.written_bytes, written_bytes);
            }
            scsi::cdb::Kind::Other => {}
        }
    }

    fn take_events(&mut self) {
        while matches!(self.course, Course::Open)
            && let Some(event) = self.connection.next_event()
        {
            self.act(event);
        }
        self.begin();
    }

    fn act(&mut self, event: Event) {
        match event {
            Event::Command {
                task,
                lun,
                cdb,
                write,
                ..
            } => {
                let bytes = scsi::cdb::data_bytes(&cdb);
                self.tasks.add(
                    task,
                    Order {
                        lun,
                        cdb,
                        write,
                        bytes,
                    },
                );
                self.begin();
            }
            Event::DataOut { task, data } => {
                if let Some(order) = self.tasks.run(task) {
                    self.execute(task, order, data);
                }
            }
            Event::TaskManagement {
                task,
                function,
                lun,
                referenced,
            } => {
                self.manage(task, function, lun, referenced);
            }
            // Discovery sessions are the front's. A session with a target may ask
            // for that target only.
            Event::SendTargets { target } => {
                let mut targets = self.directory.visible(&self.session.initiator);
                let own = &self.session.target;
                let asked = target.is_none_or(|name| name.eq_ignore_ascii_case(own));
                targets.retain(|row| asked && row.name == *own);
                self.connection.answer_targets(&targets);
            }
            Event::Dropped { task } => self.tasks.forget(task),
            Event::Close { reason } => self.drain(reason),
        }
    }

    /// Begins commands for which there is room, in flight and in what waits to be
    /// sent.
    fn begin(&mut self) {
        while self.connection.takes_input()
            && let Some((task, order)) = self.tasks.next()
        {
            if order.write {
                self.connection
                    .accept(task, scsi::data_out_bytes(&order.cdb));
            } else {
                self.execute(task, order, self.nothing.clone());
            }
        }
    }

    fn execute(&mut self, task: TaskId, order: Order, data: Slice) {
        let session = Rc::clone(&self.session);
        let written_bytes = data.len() as u64;
        self.running.push(Box::pin(async move {
            let response = session.nexus.execute(order.lun, order.cdb, data).await;
            Ended::Command {
                task,
                order,
                written_bytes,
                response,
            }
        }));
    }

    fn manage(&mut self, task: TaskId, code: u8, lun: [u8; 8], referenced: Option<TaskId>) {
        if code == function::ABORT_TASK {
            return self.abort_task(task, referenced);
        }
        let (state, session) = (Rc::clone(&self.state), Rc::clone(&self.session));
        self.running.push(Box::pin(async move {
            let response = manage(state, session, code, lun).await;
            Ended::Managed {
                task,
                function: code,
                response,
            }
        }));
    }

    fn abort_task(&mut self, task: TaskId, referenced: Option<TaskId>) {
        let found = referenced.and_then(|meant| Some((meant, self.tasks.abort(meant)?)));
        let Some((meant, aborted)) = found else {
            return self.connection.managed(task, response::NO_TASK);
        };
        self.connection.abort(meant);
        if aborted == Aborted::AtOnce {
            return self.connection.managed(task, response::COMPLETE);
        }
        let (request, done) = AbortRequest::of_one();
        self.tasks.answer_when_ended(request, 1, [meant]);
        self.running.push(Box::pin(async move {
            // Both ends live in this connection: the answer always comes.
            let _ = done.await;
            let response = response::COMPLETE;
            Ended::Managed {
                task,
                function: function::ABORT_TASK,
                response,
            }
        }));
    }

    /// What others on the shard ask of this connection.
    fn take_requests(&mut self) {
        for request in self.session.aborts.take() {
            let within = self.tasks.within(request.scope);
            let mut running = Vec::new();
            for task in &within {
                self.connection.abort(*task);
                if self.tasks.abort(*task) == Some(Aborted::WhenEnded) {
                    running.push(*task);
                }
            }
            self.tasks.answer_when_ended(request, within.len(), running);
        }
        match self.session.closing.get() {
            None => {}
            Some(Closing::Drain) => self.drain("closed by the server".to_owned()),
            Some(Closing::Now) => self.give_up("another session has taken its place".to_owned()),
        }
    }

    /// Takes no more commands; answers those that run, then closes.
    fn drain(&mut self, reason: String) {
        if matches!(self.course, Course::Open) {
            self.course = Course::Draining(Box::pin(sleep(LAST_WORDS)));
            self.reason = reason;
            self.tasks.forget_idle();
        }
    }

    /// Gives the socket up; commands that run end unanswered.
    fn give_up(&mut self, reason: String) {
        if !matches!(self.course, Course::Broken) {
            if self.reason.is_empty() {
                self.reason = reason;
            }
            self.course = Course::Broken;
            self.tasks.forget_idle();
        }
    }
}

fn completion(response: scsi::Response) -> Completion {
    let scsi::Response {
        status,
        sense,
        data,
        wanted_bytes,
    } = response;
    Completion {
        status,
        sense,
        data,
        wanted_bytes,
    }
}
