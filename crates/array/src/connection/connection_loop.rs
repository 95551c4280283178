//! The loop of a connection: moves bytes between the socket and the state machine, and has commands
//! run.
//!
//! One task per connection. Every time it is woken it takes all that has come,
//! begins the commands, collects those that have ended, and sends all answers
//! with one call: a queue of 32 costs few system calls.

use super::gauge::Gauge;
use super::management::{function as functions, response};
use super::request::{EndedWork, HomeGone, Request, Route};
use super::tasks::{Aborted, Order, Tasks};
use super::{LoggedIn, Services, Timeouts};
use crate::memory::{Account, SEAT_UNASKED_BYTES};
use crate::shard::ShardState;
use crate::shard::session::{AbortRequest, Closing, ConnectionControl, Scope};
use crate::stream::Stream;
use crate::wake::Ticker;
use base::Slice;
use engine::World;
use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use iscsi::connection::{Completion, Connection, Event, TaskId};
use iscsi::login::{Admission, Parameters, TargetDirectory};
use std::future::{Future, poll_fn};
use std::io::{self, IoSliceMut};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// A connection that is to close has this long to take its last answers.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Turns before other connections of the shard get theirs.
const TURNS_MAX: usize = 16;

/// A write of this many bytes goes to the drives at once.
const LONG_WRITE_BYTES: usize = 128 << 10;

/// Read at once beside a long data segment: what is copied afterwards.
const BESIDE_LONG_BYTES: usize = 4 << 10;

/// What one read can have a connection hold, in bytes: its data, and a page for the data of
/// each command that it brings.
const READ_HOLDS_BYTES: u64 = SEAT_UNASKED_BYTES;

/// And where data is long, whole buffers save a copy.
const LONG_READ_HOLDS_BYTES: u64 = 2 << 20;

/// What a PDU has beside its data: header, digests, padding.
const PDU_BYTES: u64 = 48 + 4 + 4 + 3;

/// Looks at what a peer owes, in the time that it has for that.
const LOOKS: u32 = 4;

/// Who takes less of its answers than this in that time does not take them, in bytes.
const TAKEN_BYTES_MIN: usize = 1 << 20;

/// At most this many runs of bytes in one send (the system's limit is 1024).
const RUNS_MAX: usize = 256;

/// How far the connection is on its way to the end.
enum ConnectionState {
    Open,
    /// Reads no more; answers what runs, then closes.
    Draining(LocalBoxFuture<'static, ()>),
    /// The socket is of no use; only waits for what runs.
    Broken,
}

/// A connection with its socket and its commands.
pub(crate) struct ConnectionLoop<W: World, S: Stream> {
    stream: S,
    connection: Connection,
    control: Arc<ConnectionControl>,
    /// Of the shard that carries the connection.
    state: Rc<ShardState<W>>,
    services: Arc<Services<W>>,
    route: Route<W>,
    progress: Progress<W>,
}

/// How far a connection is.
pub(crate) struct Progress<W: World> {
    tasks: Tasks,
    gauge: Gauge<W>,
    /// Answers to ABORT TASK that wait for the end of what is aborted.
    aborting: FuturesUnordered<LocalBoxFuture<'static, TaskId>>,
    state_of_connection: ConnectionState,
    reason: String,
    idle: Ticker<W>,
    /// Whether anything came since the last tick of `idle`.
    heard: bool,
    /// The PDU that was on its way at the last tick.
    slow: Option<u64>,
    timeouts: Timeouts,
    /// What it holds of the memory of the process.
    account: Account,
    /// Nothing is read, for want of memory.
    held_up: bool,
    /// The next command waits for memory.
    waits_for_room: bool,
    /// When to look at what the peer owes.
    look: Ticker<W>,
    /// Bytes of answers that the peer has taken, and looks that found it too few, since it
    /// owed nothing or took enough.
    taken: usize,
    untaken: u32,
    /// Until then the initiator may log out, as it was asked to.
    leaving: Option<LocalBoxFuture<'static, ()>>,
    /// Data-out of commands that have none.
    nothing: Slice,
    /// A long write has begun in this turn: drives are to have it before the data of
    /// the next is read.
    began_long: bool,
}

impl<W: World> Progress<W> {
    pub(crate) fn new(world: &W, timeouts: Timeouts, gauge: Gauge<W>, account: Account) -> Self {
        Progress {
            tasks: Tasks::default(),
            gauge,
            aborting: FuturesUnordered::new(),
            state_of_connection: ConnectionState::Open,
            reason: String::new(),
            idle: Ticker::new(world, timeouts.silence),
            heard: false,
            slow: None,
            timeouts,
            account,
            held_up: false,
            waits_for_room: false,
            look: Ticker::new(world, timeouts.data / LOOKS),
            taken: 0,
            untaken: 0,
            leaving: None,
            nothing: world.buffers().copy_of(&[]).freeze(),
            began_long: false,
        }
    }
}

impl<W: World, S: Stream> ConnectionLoop<W, S> {
    /// One that begins with the bytes that came behind the login.
    pub(crate) fn new(
        login: LoggedIn<S>,
        (state, services): (Rc<ShardState<W>>, Arc<Services<W>>),
        control: Arc<ConnectionControl>,
        route: Route<W>,
        progress: Progress<W>,
    ) -> Self {
        let buffers = state.world().buffers().clone();
        let mut connection = Connection::new(*login.negotiated, buffers, services.limits);
        connection.receive(&login.input);
        ConnectionLoop {
            stream: login.stream,
            connection,
            control,
            state,
            services,
            route,
            progress,
        }
    }

    /// Runs the connection to its end. Says why it ended.
    pub(crate) async fn run(mut self) -> String {
        self.take_events();
        self.route.flush();
        let control = Arc::clone(&self.control);
        loop {
            // Armed before the requests are looked at, so that none is missed.
            let woken = control.wake.notified();
            let mut woken = pin!(woken);
            let over = poll_fn(|cx| {
                if woken.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(false);
                }
                self.poll(cx).map(|()| true)
            });
            if over.await {
                return self.progress.reason;
            }
            self.take_requests();
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..TURNS_MAX {
            let mut moved = self.receive(cx);
            moved |= self.collect(cx);
            moved |= self.send(cx);
            moved |= self.settle();
            self.route.flush();
            if self.is_over() {
                return Poll::Ready(());
            }
            if !moved {
                return self.rest(cx);
            }
            self.state.world().note_work();
            if std::mem::take(&mut self.progress.began_long) {
                break;
            }
        }
        // A peer that always has something more can't put the clocks off.
        let _: Poll<()> = self.rest(cx);
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Looks at the clocks.
    fn rest(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.progress.state_of_connection {
            ConnectionState::Open => {
                while self.progress.idle.poll_tick(cx).is_ready() {
                    self.look_after_peer();
                    // What it has to say goes out before anything else.
                    cx.waker().wake_by_ref();
                }
                while self.progress.look.poll_tick(cx).is_ready() {
                    self.look_at_debts();
                    cx.waker().wake_by_ref();
                }
                if let Some(deadline) = &mut self.progress.leaving
                    && deadline.as_mut().poll(cx).is_ready()
                {
                    self.connection.announce_drop();
                    self.drain("closed by the server: it did not log out".to_owned());
                    cx.waker().wake_by_ref();
                }
            }
            ConnectionState::Draining(deadline) => {
                ready!(deadline.as_mut().poll(cx));
                self.give_up("the last answers were not taken".to_owned());
                cx.waker().wake_by_ref();
            }
            ConnectionState::Broken => {}
        }
        Poll::Pending
    }

    /// Pings a peer that was silent, and gives up one that does not answer, or that takes
    /// from one tick to the next but one for a single PDU.
    fn look_after_peer(&mut self) {
        // What is not read because much waits to be sent, or for want of memory, is no fault
        // of this kind.
        let reads = self.connection.takes_input() && !self.progress.held_up;
        self.progress.heard |= self.progress.held_up;
        let slow = self.connection.unfinished().filter(|_| reads);
        if slow.is_some() && slow == self.progress.slow {
            self.state.world().reached("peer takes too long for a PDU");
            return self.give_up("the initiator takes too long for one PDU".to_owned());
        }
        self.progress.slow = slow;
        let is_silent = !std::mem::take(&mut self.progress.heard) && !self.connection.nop_in();
        if is_silent && !self.state.world().planted("silent peer is waited for") {
            self.state.world().reached("silent peer given up");
            self.give_up("the initiator does not answer".to_owned());
        }
    }

    /// Parts with a peer that keeps memory of ours for longer than it has time: with data-out
    /// that does not come, or answers that it does not take. At error recovery level 0 it logs
    /// in again and repeats its commands (RFC 7143 clause 7.3).
    fn look_at_debts(&mut self) {
        let time = self.progress.timeouts.data;
        let output_bytes = self.connection.output().len();
        if output_bytes == 0 || self.progress.taken >= TAKEN_BYTES_MIN {
            (self.progress.taken, self.progress.untaken) = (0, 0);
        } else {
            self.progress.untaken += 1;
        }
        if self.progress.untaken > LOOKS {
            return self.give_up(format!(
                "the initiator has not taken its answers in {time:?}: {output_bytes} bytes wait"
            ));
        }
        if let Some((cmd_sn, looks)) = self.connection.look_for_gap()
            && looks >= LOOKS
            && !self.state.world().planted("missing command is waited for")
        {
            self.state.world().reached("missing command given up");
            self.connection.announce_drop();
            return self.drain(format!(
                "the command with CmdSN {cmd_sn:#010x}, which others wait for, has not come in \
                 {time:?}"
            ));
        }
        if !self.connection.takes_input() || self.progress.held_up {
            return;
        }
        if let Some((tag, looks)) = self.connection.look_for_data()
            && looks >= LOOKS
            && !self.state.world().planted("missing data is waited for")
        {
            self.state.world().reached("missing data given up");
            self.connection.announce_drop();
            self.drain(format!(
                "data of the command with task tag {tag:#010x} has not come in {time:?}"
            ));
        }
    }

    fn is_over(&mut self) -> bool {
        if !self.route.is_idle() || !self.progress.aborting.is_empty() {
            return false;
        }
        match self.progress.state_of_connection {
            ConnectionState::Open => false,
            ConnectionState::Draining(_) => self.connection.output().is_empty(),
            ConnectionState::Broken => true,
        }
    }

    /// Reads what has come, and acts on it.
    fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        if !matches!(self.progress.state_of_connection, ConnectionState::Open)
            || !self.connection.takes_input()
        {
            return false;
        }
        if !self.may_read() {
            let is_gone = self.stream.is_closed();
            if is_gone {
                self.give_up("the initiator closed the connection".to_owned());
            }
            return is_gone;
        }
        match self.poll_read(cx) {
            Poll::Pending => return false,
            Poll::Ready(Ok(0)) => {
                self.give_up("the initiator closed the connection".to_owned());
            }
            Poll::Ready(Ok(_)) => {
                self.progress.heard = true;
                self.take_events();
            }
            Poll::Ready(Err(error)) => self.give_up(format!("receiving: {error}")),
        }
        true
    }

    /// Whether there is memory for all that a read can bring; the connection is woken when
    /// there may be some again. Data that a command waits for has to be read in any case, or
    /// nothing would ever be given back: what comes before it and finds no room is answered
    /// TASK SET FULL.
    fn may_read(&mut self) -> bool {
        let held = self.connection.unasked_bytes() as u64;
        let wanted = match self.connection.expects_long_data() {
            true => LONG_READ_HOLDS_BYTES,
            false => READ_HOLDS_BYTES,
        };
        let command_bytes = self.command_bytes();
        let account = &mut self.progress.account;
        let room = account.unasked_room(held + wanted);
        let has_room = room >= held + READ_HOLDS_BYTES || self.progress.tasks.awaits_data();
        let may = has_room && !account.is_overdrawn(command_bytes);
        self.connection
            .set_unasked_room(usize::try_from(room).unwrap_or(usize::MAX));
        self.progress.held_up = !may;
        may
    }

    /// Bytes that commands in progress and their answers hold.
    fn command_bytes(&mut self) -> u64 {
        self.progress.tasks.in_flight_bytes() + self.connection.output().len() as u64
    }

    /// Begins commands that have got room, gives back what is not held any more, and sees to
    /// it that no more commands come than there is memory for. Whether anything began.
    fn settle(&mut self) -> bool {
        let began = self.begin();
        if !self.progress.waits_for_room {
            let held = self.command_bytes();
            self.progress.account.hold(held);
        }
        let unasked = self.connection.unasked_bytes() as u64;
        self.progress.account.hold_unasked(unasked);
        let depth = self.connection.depth();
        let width = self.progress.account.window(depth);
        self.connection.set_window(width);
        began
    }

    /// Reads once.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.connection.expects_long_data() {
            return self.poll_read_long(cx);
        }
        let state = Rc::clone(&self.state);
        let mut space = state.receive_space();
        let came = ready!(self.stream.poll_read(cx, &mut space))?;
        self.connection.receive(&space[..came]);
        Poll::Ready(Ok(came))
    }

    /// Reads the rest of a long data segment right to where it belongs, and little of
    /// what comes behind it into the space that all connections share.
    fn poll_read_long(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let state = Rc::clone(&self.state);
        let mut shared = state.receive_space();
        let place = self.connection.space();
        let room = place.len();
        let beside = IoSliceMut::new(&mut shared[..BESIDE_LONG_BYTES]);
        let spaces = &mut [IoSliceMut::new(place), beside];
        let came = ready!(self.stream.poll_read_vectored(cx, spaces))?;
        let placed = came.min(room);
        self.connection.received(placed);
        self.connection.receive(&shared[..came - placed]);
        Poll::Ready(Ok(came))
    }

    /// Sends what waits.
    fn send(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        while !matches!(self.progress.state_of_connection, ConnectionState::Broken)
            && !self.connection.output().is_empty()
        {
            let output = self.connection.output();
            let mut runs = Vec::with_capacity(RUNS_MAX.min(64));
            output.slices(&mut runs, RUNS_MAX);
            let sent = self.stream.poll_write(cx, &runs);
            drop(runs);
            match sent {
                Poll::Pending => break,
                Poll::Ready(Ok(bytes)) => {
                    output.advance(bytes);
                    self.progress.taken += bytes;
                    if output.is_empty() {
                        (self.progress.taken, self.progress.untaken) = (0, 0);
                    }
                }
                Poll::Ready(Err(error)) => self.give_up(format!("sending: {error}")),
            }
            moved = true;
        }
        moved
    }

    /// Answers for commands that have ended.
    fn collect(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        while let Poll::Ready(ended) = self.route.poll_ended(cx) {
            moved = true;
            match ended {
                Ok(work) => self.answer(work),
                Err(HomeGone) => {
                    self.progress.aborting.clear();
                    self.give_up("the shard of its target has stopped".to_owned());
                    break;
                }
            }
        }
        self.progress.gauge.count(self.progress.tasks.left());
        while let Poll::Ready(Some(task)) = self.progress.aborting.poll_next_unpin(cx) {
            moved = true;
            self.connection.managed(task, response::COMPLETE);
        }
        // A command that has ended makes its connection take events again.
        if moved {
            self.take_events();
        }
        let in_flight = self.progress.tasks.len() as u64;
        self.control.in_flight.store(in_flight, Relaxed);
        moved
    }

    /// Answers for one command, or task management function.
    fn answer(&mut self, ended: EndedWork) {
        match ended {
            EndedWork::Command {
                task,
                sent_to,
                written_bytes,
                response,
            } => {
                let finished = self.progress.tasks.end(task);
                if let Some(mark) = &finished.mark {
                    let bytes = written_bytes.max(response.data.len() as u64);
                    self.progress.gauge.end(sent_to, mark, bytes, &response);
                }
                match finished.answer {
                    true => self.connection.complete(task, completion(response)),
                    false => self.connection.aborted_ended(task),
                }
                self.begin();
            }
            EndedWork::Managed {
                task,
                function: code,
                response,
            } => {
                self.connection.managed(task, response);
                let is_done = response == response::COMPLETE;
                if is_done && code == functions::TARGET_COLD_RESET {
                    self.drain("the target was reset".to_owned());
                }
            }
        }
    }

    fn take_events(&mut self) {
        self.progress.gauge.others_come();
        while matches!(self.progress.state_of_connection, ConnectionState::Open)
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
                expected_bytes,
                ..
            } => {
                let expects_out = write.then_some(expected_bytes);
                self.take_command(task, lun, cdb.into(), expects_out);
            }
            Event::DataOut { task, data } => {
                let task = self.taker_of_data(task);
                if let Some(order) = self.progress.tasks.run(task) {
                    self.progress.began_long |= data.len() >= LONG_WRITE_BYTES;
                    self.route.begin(Request::Command { task, order, data });
                }
            }
            Event::TaskManagement {
                task,
                function: functions::ABORT_TASK,
                referenced,
                ..
            } => self.abort_task(task, referenced),
            Event::TaskManagement {
                task,
                function,
                lun,
                ..
            } => self.route.begin(Request::Manage {
                task,
                function,
                lun,
            }),
            Event::SendTargets { target } => self.answer_targets(target.as_deref()),
            Event::Dropped { task } => self.progress.tasks.forget(task),
            Event::Close { reason } => self.drain(reason),
        }
    }

    /// The task that data-out which has come for `task` is given to: that one.
    fn taker_of_data(&self, task: TaskId) -> TaskId {
        let planted = "data of a command is given to another";
        match self.state.world().planted(planted) {
            true => self
                .progress
                .tasks
                .other_that_collects(task)
                .unwrap_or(task),
            false => task,
        }
    }

    fn take_command(
        &mut self,
        task: TaskId,
        lun: [u8; 8],
        cdb: scsi::Cdb,
        expects_out: Option<u32>,
    ) {
        let parameters = &self.connection.negotiated().parameters;
        let bytes = held_bytes(&cdb, expects_out, parameters);
        let mark = self.progress.gauge.begin(lun, &cdb);
        let order = Order {
            lun,
            cdb,
            write: expects_out.is_some(),
            bytes,
        };
        self.progress.tasks.add(task, order, mark);
        self.begin();
    }

    /// Answers which targets there are. Discovery sessions are the front's: a session with a target
    /// may ask for that target only.
    fn answer_targets(&mut self, asked: Option<&str>) {
        let negotiated = self.connection.negotiated();
        let Admission {
            initiator, portal, ..
        } = &negotiated.admission;
        let mut targets = self.services.directory.visible(initiator, portal);
        let own = negotiated.target_name();
        let is_asked = asked.is_none_or(|name| name.eq_ignore_ascii_case(own));
        targets.retain(|row| is_asked && row.name == own);
        self.connection.answer_targets(&targets);
    }

    /// Begins commands for which there is room: in flight, in what waits to be sent, and in the
    /// memory of the process. Whether there were any.
    fn begin(&mut self) -> bool {
        let mut began = false;
        self.progress.waits_for_room = false;
        while self.connection.takes_input()
            && let Some(bytes) = self.progress.tasks.next_bytes()
        {
            let held = self.command_bytes();
            if !self.progress.account.may_hold(held, bytes) {
                self.progress.waits_for_room = true;
                break;
            }
            let Some((task, order)) = self.progress.tasks.next() else {
                break;
            };
            began = true;
            if order.write {
                self.connection.accept(task, order.cdb.data_out_bytes());
            } else {
                let data = self.progress.nothing.clone();
                self.route.begin(Request::Command { task, order, data });
            }
        }
        began
    }

    fn abort_task(&mut self, task: TaskId, referenced: Option<TaskId>) {
        let found = referenced.and_then(|meant| Some((meant, self.progress.tasks.abort(meant)?)));
        let Some((meant, aborted)) = found else {
            return self.connection.managed(task, response::NO_TASK);
        };
        self.abort_at_connection(meant, aborted);
        let world = self.state.world();
        if aborted == Aborted::AtOnce || world.planted("task aborted while it runs") {
            return self.connection.managed(task, response::COMPLETE);
        }
        world.reached("abort waits for its task");
        self.route.stop(meant);
        let (request, done) = AbortRequest::of_one();
        self.progress.tasks.answer_when_ended(request, 1, [meant]);
        self.progress.aborting.push(Box::pin(async move {
            // Both ends live in this connection: the answer always comes.
            let _ = done.await;
            task
        }));
    }

    /// Nobody is answered for this task any more. Its initiator may not know that, and abort it
    /// again.
    fn abort_at_connection(&mut self, task: TaskId, aborted: Aborted) {
        let forgets = self
            .state
            .world()
            .planted("task that others aborted is forgotten");
        match aborted {
            Aborted::WhenEnded if !forgets => self.connection.abort_running(task),
            Aborted::AtOnce | Aborted::WhenEnded => self.connection.abort(task),
        }
    }

    /// What others ask of this connection.
    fn take_requests(&mut self) {
        for request in self.control.take_aborts() {
            let within = self.progress.tasks.within(request.scope);
            let mut running = Vec::new();
            for task in &within {
                let Some(aborted) = self.progress.tasks.abort(*task) else {
                    continue;
                };
                self.abort_at_connection(*task, aborted);
                if aborted == Aborted::WhenEnded {
                    self.route.stop(*task);
                    running.push(*task);
                }
            }
            self.progress
                .tasks
                .answer_when_ended(request, within.len(), running);
        }
        match self.control.closing() {
            None => {}
            Some(Closing::Drain) => self.drain("closed by the server".to_owned()),
            Some(Closing::Logout) => self.ask_to_leave(),
            Some(Closing::Now) => self.give_up("another session has taken its place".to_owned()),
        }
    }

    /// Asks the initiator to log out. Until it does, or its time is over, everything
    /// goes on.
    fn ask_to_leave(&mut self) {
        if matches!(self.progress.state_of_connection, ConnectionState::Open)
            && self.progress.leaving.is_none()
        {
            let time = self.progress.timeouts.logout;
            let seconds = u16::try_from(time.as_secs()).unwrap_or(u16::MAX);
            self.connection.request_logout(seconds.max(1));
            self.progress.leaving = Some(Box::pin(self.state.world().sleep(time)));
        }
    }

    /// Takes no more commands; answers those that run, then closes.
    fn drain(&mut self, reason: String) {
        if matches!(self.progress.state_of_connection, ConnectionState::Open) {
            let time = Box::pin(self.state.world().sleep(LAST_WORDS));
            self.progress.state_of_connection = ConnectionState::Draining(time);
            self.progress.reason = reason;
            self.progress.tasks.forget_idle();
        }
    }

    /// Gives the socket up; commands that run end unanswered.
    fn give_up(&mut self, reason: String) {
        if !matches!(self.progress.state_of_connection, ConnectionState::Broken) {
            if self.progress.reason.is_empty() {
                self.progress.reason = reason;
            }
            self.progress.state_of_connection = ConnectionState::Broken;
            self.progress.tasks.forget_idle();
            // Whoever logs in again waits for what still runs.
            for task in self.progress.tasks.within(Scope::All) {
                self.route.stop(task);
            }
        }
    }
}

/// Bytes that a command holds while it is in progress: its data, with the headers of its
/// answer; where data-out may come unasked, also that which the command does not want.
fn held_bytes(cdb: &scsi::Cdb, expects_out: Option<u32>, parameters: &Parameters) -> u64 {
    let data = cdb.data_bytes();
    match expects_out {
        Some(expected) => {
            let wanted = cdb.data_out_bytes().min(expected.into());
            let unasked = u64::from(expected.min(parameters.first_burst_bytes));
            let most = data.max(wanted).max(unasked);
            base::held_bytes(usize::try_from(most).unwrap_or(usize::MAX)) as u64
        }
        None => {
            let segment = u64::from(parameters.peer_max_recv_data_segment_bytes);
            data + data.div_ceil(segment.max(1)) * PDU_BYTES
        }
    }
}

fn completion(response: scsi::Response) -> Completion {
    let scsi::Response {
        status,
        sense,
        data,
        wanted_bytes,
        descriptor_sense,
        ..
    } = response;
    Completion {
        status,
        sense,
        descriptor_sense,
        data,
        wanted_bytes,
    }
}
