//! A session with one connection, as its initiator has it.
//!
//! What is checked of the PDUs:
//! - StatSN goes on by one, and the command window never shrinks.
//! - Data comes in order and whole, and R2Ts ask for what was not sent yet.
//! - No task is answered that is not there.

use super::functions::{ABORT_TASK, Functions, Managed};
use super::login::{Agreed, FIRST_CMD_SN};
use super::network::{End, Wire};
use super::pdu::{NO_TAG, Pdu, Reader, request, response};
use array::stream::Stream;
use futures_channel::oneshot;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::poll_fn;
use std::io::IoSlice;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Flags of a command.
const FINAL: u8 = 0x80;
const READS: u8 = 0x40;
const WRITES: u8 = 0x20;
const SIMPLE: u8 = 1;

/// Flags of Data-In: an answer is in it.
const STATUS: u8 = 1;

/// Events that a target announces (clause 11.9.1).
const EVENT_LOGOUT: u8 = 1;
const EVENT_DROP: u8 = 2;

/// What came of a command.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u8,
    pub(crate) sense: Vec<u8>,
    pub(crate) data: Vec<u8>,
}

impl Answer {
    pub(crate) fn sense_key(&self) -> Option<u8> {
        self.sense.get(2).map(|key| key & 0xf)
    }
}

/// How a command is over.
pub(crate) enum Outcome {
    Said(Answer),
    /// Nobody hears of it any more; it is over since this instant.
    Over(u64),
}

/// A command to be.
#[derive(Clone)]
pub(crate) struct Command {
    pub(crate) lun: u16,
    pub(crate) cdb: [u8; 16],
    pub(crate) data_out: Rc<[u8]>,
    pub(crate) read_bytes: usize,
}

/// A command that runs.
struct Task {
    command: Command,
    data_in: Vec<u8>,
    data_sn: u32,
    /// Data-out that was sent or asked for, from the beginning.
    given: usize,
    cmd_sn: u32,
    /// A function was done that may have aborted it: then it was over by this instant.
    gone_by: Option<u64>,
    done: oneshot::Sender<Outcome>,
}

struct State {
    cmd_sn: u32,
    max_cmd_sn: u32,
    stat_sn: u32,
    next_tag: u32,
    tasks: BTreeMap<u32, Task>,
    /// Tags of commands that were answered.
    answered: BTreeSet<u32>,
    functions: Functions,
    pings: BTreeMap<u32, oneshot::Sender<()>>,
    logout: Option<oneshot::Sender<()>>,
    outgoing: VecDeque<u8>,
    /// Wait for the window to open.
    waiting: Vec<Waker>,
    /// Of the task that moves bytes.
    waker: Option<Waker>,
}

impl State {
    fn new_tag(&mut self) -> u32 {
        self.next_tag += 1;
        self.next_tag - 1
    }
}

/// A session.
pub(crate) struct Path {
    pub(crate) agreed: Agreed,
    wire: Wire,
    end: RefCell<Option<End>>,
    reader: RefCell<Reader>,
    state: RefCell<State>,
    /// Why it is of no use any more.
    pub(crate) dead: RefCell<Option<String>>,
    /// The target has asked for a logout.
    pub(crate) is_asked_to_leave: Cell<bool>,
    /// It gives no data that it is asked for.
    pub(crate) withholds: Cell<bool>,
    /// The target has closed it.
    is_closed: Cell<bool>,
    /// It reads nothing.
    is_deaf: Cell<bool>,
    /// A bit was turned on its way: what comes may be refused.
    pub(crate) is_garbled: Cell<bool>,
    /// By LUN: somebody has reset the unit, or is about to. Tasks there may go without an answer.
    excuses: RefCell<BTreeMap<u16, u64>>,
    /// Something is wrong with it that the target may part with it for.
    pub(crate) is_disturbed: Cell<bool>,
    /// A command was left out: what comes behind it is not there for those who would abort it.
    has_gap: Cell<bool>,
}

impl Path {
    pub(crate) fn new(end: End, (agreed, reader): (Agreed, Reader)) -> Rc<Path> {
        let wire = end.wire();
        let state = State {
            cmd_sn: FIRST_CMD_SN,
            max_cmd_sn: agreed.max_cmd_sn,
            stat_sn: agreed.stat_sn,
            next_tag: 1,
            tasks: BTreeMap::new(),
            answered: BTreeSet::new(),
            functions: Functions::default(),
            pings: BTreeMap::new(),
            logout: None,
            outgoing: VecDeque::new(),
            waiting: Vec::new(),
            waker: None,
        };
        Rc::new(Path {
            agreed,
            wire: wire.clone(),
            end: RefCell::new(Some(end)),
            reader: RefCell::new(reader),
            state: RefCell::new(state),
            dead: RefCell::default(),
            is_asked_to_leave: Cell::new(false),
            withholds: Cell::new(false),
            is_closed: Cell::new(false),
            is_deaf: Cell::new(false),
            is_garbled: Cell::new(false),
            excuses: RefCell::default(),
            is_disturbed: Cell::new(wire.is_slow()),
            has_gap: Cell::new(false),
        })
    }

    pub(crate) fn is_up(&self) -> bool {
        self.dead.borrow().is_none()
    }

    pub(crate) fn wire(&self) -> &Wire {
        &self.wire
    }

    /// It is of no use any more. What runs has no answer yet.
    pub(crate) fn die(&self, why: impl Into<String>) {
        self.dead.borrow_mut().get_or_insert(why.into());
        self.end.take();
        let mut state = self.state.borrow_mut();
        state.logout = None;
        state.functions.clear();
        state.pings.clear();
        state.waiting.drain(..).for_each(Waker::wake);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    /// What ran when it died, to be told when it is over.
    pub(crate) fn take_orphans(&self) -> Vec<oneshot::Sender<Outcome>> {
        let tasks = std::mem::take(&mut self.state.borrow_mut().tasks);
        tasks.into_values().map(|task| task.done).collect()
    }

    /// Moves bytes until it is dead.
    ///
    /// # Errors
    /// The target has broken a rule.
    pub(crate) async fn run(&self) -> Result<(), String> {
        let ended = poll_fn(|cx| self.poll(cx)).await;
        let why = match &ended {
            Ok(why) | Err(why) => why.clone(),
        };
        // The target says before that it will, or has a reason.
        let may_be = self.is_disturbed.get() || self.is_asked_to_leave.get();
        if self.is_closed.get() && !may_be && self.is_up() {
            self.die(why);
            return Err("the target closed it for no reason".to_owned());
        }
        self.die(why);
        ended.map(drop)
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<String, String>> {
        self.state.borrow_mut().waker = Some(cx.waker().clone());
        if let Some(why) = self.dead.borrow().clone() {
            return Poll::Ready(Ok(why));
        }
        loop {
            let mut moved = match self.poll_send(cx) {
                Ok(moved) => moved,
                Err(why) => return Poll::Ready(Ok(why)),
            };
            moved |= match self.poll_receive(cx) {
                Poll::Pending => false,
                Poll::Ready(Ok(())) => true,
                Poll::Ready(Err(why)) => return Poll::Ready(Ok(why)),
            };
            loop {
                let next = self.reader.borrow_mut().next();
                match next {
                    Ok(None) => break,
                    Ok(Some(pdu)) => self.take(pdu)?,
                    Err(_) if self.is_garbled.get() => {
                        return Poll::Ready(Ok("a digest does not match".to_owned()));
                    }
                    Err(_) => return Poll::Ready(Err("a digest does not match".to_owned())),
                }
                // It may have been the end of it.
                if let Some(why) = self.dead.borrow().clone() {
                    return Poll::Ready(Ok(why));
                }
            }
            if !moved {
                return Poll::Pending;
            }
        }
    }

    fn poll_send(&self, cx: &mut Context<'_>) -> Result<bool, String> {
        let mut state = self.state.borrow_mut();
        let mut end = self.end.borrow_mut();
        let Some(end) = end.as_mut() else {
            return Err("it is gone".to_owned());
        };
        if state.outgoing.is_empty() {
            return Ok(false);
        }
        let (front, back) = state.outgoing.as_slices();
        match end.poll_write(cx, &[IoSlice::new(front), IoSlice::new(back)]) {
            Poll::Pending => Ok(false),
            Poll::Ready(Ok(sent)) => {
                state.outgoing.drain(..sent);
                Ok(true)
            }
            Poll::Ready(Err(error)) => Err(format!("sending: {error}")),
        }
    }

    fn poll_receive(&self, cx: &mut Context<'_>) -> Poll<Result<(), String>> {
        if self.is_deaf.get() {
            return Poll::Pending;
        }
        let mut end = self.end.borrow_mut();
        let Some(end) = end.as_mut() else {
            return Poll::Ready(Err("it is gone".to_owned()));
        };
        let mut space = [0; 4096];
        match end.poll_read(cx, &mut space) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(0)) => {
                self.is_closed.set(true);
                Poll::Ready(Err("the target closed it".to_owned()))
            }
            Poll::Ready(Ok(came)) => {
                self.reader.borrow_mut().bytes.extend(&space[..came]);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(format!("receiving: {error}"))),
        }
    }

    /// Puts a PDU behind those that wait to be sent.
    fn put(&self, state: &mut State, pdu: Pdu) {
        let pdu = pdu.with(28, state.stat_sn);
        state.outgoing.extend(pdu.bytes(self.agreed.digests));
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    /// Begins a command as soon as the window allows it; gives its tag, and what tells its end.
    /// Nothing, where the path is of no use any more.
    pub(crate) async fn begin(
        &self,
        command: Command,
    ) -> Option<(u32, oneshot::Receiver<Outcome>)> {
        poll_fn(|cx| self.poll_window(cx)).await?;
        let mut state = self.state.borrow_mut();
        let tag = state.new_tag();
        let (done, ended) = oneshot::channel();
        let cmd_sn = state.cmd_sn;
        let given = self.send_command(&mut state, tag, &command);
        let task = Task {
            cmd_sn,
            command,
            data_in: Vec::new(),
            data_sn: 0,
            given,
            gone_by: None,
            done,
        };
        state.tasks.insert(tag, task);
        Some((tag, ended))
    }

    fn poll_window(&self, cx: &mut Context<'_>) -> Poll<Option<()>> {
        if !self.is_up() {
            return Poll::Ready(None);
        }
        let mut state = self.state.borrow_mut();
        if is_behind(state.max_cmd_sn, state.cmd_sn) {
            state.waiting.push(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Some(()))
    }

    /// Sends a command with what of its data goes unasked, and says how much that is.
    fn send_command(&self, state: &mut State, tag: u32, command: &Command) -> usize {
        let agreed = &self.agreed;
        let data = &command.data_out;
        let first = agreed.first_burst_bytes.min(data.len());
        let immediate = match agreed.immediate_data {
            true => first.min(agreed.segment_bytes),
            false => 0,
        };
        let unasked = if agreed.initial_r2t { immediate } else { first };
        let mut flags = SIMPLE | if unasked == immediate { FINAL } else { 0 };
        flags |= if data.is_empty() { 0 } else { WRITES };
        flags |= if command.read_bytes > 0 { READS } else { 0 };
        let length = data.len().max(command.read_bytes) as u32;
        let mut pdu = Pdu::new(request::COMMAND, flags)
            .with_lun(command.lun)
            .with(16, tag)
            .with(20, length)
            .with(24, state.cmd_sn)
            .with_data(data[..immediate].to_vec());
        pdu.header[32..48].copy_from_slice(&command.cdb);
        state.cmd_sn = state.cmd_sn.wrapping_add(1);
        self.put(state, pdu);
        if unasked > immediate {
            self.give(state, (tag, NO_TAG, command), immediate..unasked);
        }
        unasked
    }

    /// Sends a run of data-out.
    fn give(
        &self,
        state: &mut State,
        (tag, transfer, command): (u32, u32, &Command),
        run: std::ops::Range<usize>,
    ) {
        let (mut at, mut data_sn) = (run.start, 0);
        while at < run.end {
            let next = run.end.min(at + self.agreed.segment_bytes);
            let flags = if next == run.end { FINAL } else { 0 };
            let pdu = Pdu::new(request::DATA_OUT, flags)
                .with_lun(command.lun)
                .with(16, tag)
                .with(20, transfer)
                .with(36, data_sn)
                .with(40, at as u32)
                .with_data(command.data_out[at..next].to_vec());
            self.put(state, pdu);
            (at, data_sn) = (next, data_sn + 1);
        }
    }

    /// A hole in the order of commands, which nothing ever fills.
    pub(crate) fn skip_a_command(&self) {
        self.is_disturbed.set(true);
        self.has_gap.set(true);
        let mut state = self.state.borrow_mut();
        state.cmd_sn = state.cmd_sn.wrapping_add(1);
    }

    /// Reads nothing for a while, or reads on.
    pub(crate) fn set_deaf(&self, is_deaf: bool) {
        self.is_deaf.set(is_deaf);
        self.is_disturbed.set(true);
        if let Some(waker) = self.state.borrow_mut().waker.take() {
            waker.wake();
        }
    }

    /// Sends a request that does not wait for its turn, once whoever hears of its answer is noted.
    /// The answer; nothing, where the path died.
    async fn ask<T>(
        &self,
        note: impl FnOnce(&mut State, u32, oneshot::Sender<T>),
        request: Pdu,
    ) -> Option<T> {
        if !self.is_up() {
            return None;
        }
        let (done, ended) = oneshot::channel();
        {
            let mut state = self.state.borrow_mut();
            let tag = state.new_tag();
            note(&mut state, tag, done);
            let request = request.with(16, tag).with(24, state.cmd_sn);
            self.put(&mut state, request);
        }
        ended.await.ok()
    }

    /// Has a task management function of a unit done; its response. Nothing, where the path died.
    pub(crate) async fn manage(&self, function: u8, lun: u16) -> Option<u8> {
        let managed = self.have_done(function, lun, NO_TAG).await?;
        Some(managed.response)
    }

    /// Has a task aborted, as [`Path::manage`] does.
    pub(super) async fn abort_task(&self, lun: u16, referenced: u32) -> Option<Managed> {
        self.have_done(ABORT_TASK, lun, referenced).await
    }

    async fn have_done(&self, function: u8, lun: u16, referenced: u32) -> Option<Managed> {
        let ref_cmd_sn = {
            let state = self.state.borrow();
            let meant = state.tasks.get(&referenced).map(|task| task.cmd_sn);
            // It is of ABORT TASK only (clause 11.5.5).
            meant.unwrap_or(state.cmd_sn)
        };
        let request = Pdu::new(request::MANAGE, FINAL | function)
            .with_lun(lun)
            .with(20, referenced)
            .with(32, ref_cmd_sn);
        let note = |state: &mut State, tag, done| state.functions.begin(tag, referenced, done);
        self.ask(note, request).await
    }

    /// Whether a command runs that was sent with this tag.
    pub(crate) fn has(&self, tag: u32) -> bool {
        self.state.borrow().tasks.contains_key(&tag)
    }

    /// Whether a command was answered that was sent with this tag.
    pub(crate) fn has_answered(&self, tag: u32) -> bool {
        self.state.borrow().answered.contains(&tag)
    }

    /// Whether a task at this LUN may be gone without an answer.
    pub(crate) fn is_excused(&self, lun: u16) -> bool {
        let excuses = self.excuses.borrow();
        self.has_gap.get() || excuses.get(&lun).is_some_and(|count| *count > 0)
    }

    /// A reset of this unit begins or ends.
    pub(crate) fn excuse(&self, lun: u16, begins: bool) {
        let mut excuses = self.excuses.borrow_mut();
        let count = excuses.entry(lun).or_default();
        *count = match begins {
            true => *count + 1,
            false => count.saturating_sub(1),
        };
    }

    /// Whether no command runs.
    pub(crate) fn is_idle(&self) -> bool {
        self.state.borrow().tasks.is_empty()
    }

    /// The commands at a LUN.
    pub(crate) fn tasks_at(&self, lun: u16) -> Vec<u32> {
        self.tasks_with(|task| task.command.lun == lun)
    }

    /// Those that [`Path::may_be_gone`] was said of.
    pub(crate) fn gone_at(&self, lun: u16) -> Vec<u32> {
        self.tasks_with(|task| task.command.lun == lun && task.gone_by.is_some())
    }

    fn tasks_with(&self, is_meant: impl Fn(&Task) -> bool) -> Vec<u32> {
        let state = self.state.borrow();
        let meant = state.tasks.iter().filter(|(_, task)| is_meant(task));
        meant.map(|(tag, _)| *tag).collect()
    }

    /// What was aborted of the commands at a LUN that have no answer yet was over by `now`.
    pub(crate) fn may_be_gone(&self, lun: u16, now: u64) {
        let mut state = self.state.borrow_mut();
        let tasks = state.tasks.values_mut();
        for task in tasks.filter(|task| task.command.lun == lun) {
            task.gone_by = Some(now);
        }
    }

    /// Nobody is to hear of this command: it is over since `now`.
    pub(crate) fn end(&self, tag: u32, now: u64) {
        if let Some(task) = self.state.borrow_mut().tasks.remove(&tag) {
            // Its host may have gone with the boot.
            let _ = task.done.send(Outcome::Over(now));
        }
    }

    /// Others have aborted this command, by `now` or before that.
    pub(crate) fn give_up(&self, tag: u32, now: u64) {
        let gone_by = {
            let state = self.state.borrow();
            state.tasks.get(&tag).and_then(|task| task.gone_by)
        };
        self.end(tag, gone_by.unwrap_or(now));
    }

    /// Waits for the answer to a ping; whether it came.
    pub(crate) async fn ping(&self) -> bool {
        let note = |state: &mut State, tag, done| drop(state.pings.insert(tag, done));
        let request = Pdu::new(request::NOP, FINAL).with(20, NO_TAG);
        self.ask(note, request).await.is_some()
    }

    /// Logs out; whether the target has answered that.
    pub(crate) async fn log_out(&self) -> bool {
        let note = |state: &mut State, _, done| state.logout = Some(done);
        self.ask(note, Pdu::new(request::LOGOUT, FINAL))
            .await
            .is_some()
    }

    /// Acts on a PDU of the target.
    fn take(&self, pdu: Pdu) -> Result<(), String> {
        let mut state = self.state.borrow_mut();
        self.check_numbers(&mut state, &pdu)?;
        match pdu.opcode() {
            response::COMMAND => answer(&mut state, &pdu),
            response::DATA_IN => data_in(&mut state, &pdu, self.agreed.own_segment_bytes),
            response::READY => self.take_ready(&mut state, &pdu),
            response::MANAGED => {
                let State {
                    functions, tasks, ..
                } = &mut *state;
                let is_there = |tag| tasks.contains_key(&tag);
                match functions.end(pdu.tag(), pdu.header[2], is_there) {
                    true => Ok(()),
                    false => Err(format!("{pdu:02x?} answers no function")),
                }
            }
            response::NOP => self.take_nop(&mut state, &pdu),
            response::LOGOUT => {
                if let Some(done) = state.logout.take() {
                    let _ = done.send(());
                }
                drop(state);
                self.die("logged out");
                Ok(())
            }
            response::EVENT => {
                // Or it says that it drops the connection.
                self.is_disturbed
                    .set(self.is_disturbed.get() || pdu.header[36] == EVENT_DROP);
                self.is_asked_to_leave
                    .set(self.is_asked_to_leave.get() || pdu.header[36] == EVENT_LOGOUT);
                Ok(())
            }
            response::REJECT if self.is_garbled.get() => Ok(()),
            _ => Err(format!("an unexpected PDU: {pdu:02x?}")),
        }
    }

    /// Answers a ping, or hears that one was answered.
    fn take_nop(&self, state: &mut State, pdu: &Pdu) -> Result<(), String> {
        if pdu.tag() != NO_TAG {
            let done = state.pings.remove(&pdu.tag());
            let done = done.ok_or_else(|| format!("{pdu:02x?} answers no ping"))?;
            // Whoever asked may have gone.
            let _ = done.send(());
            return Ok(());
        }
        if pdu.word(20) != NO_TAG {
            let answer = Pdu::new(request::NOP, FINAL)
                .with(16, NO_TAG)
                .with(20, pdu.word(20))
                .with(24, state.cmd_sn);
            self.put(state, answer);
        }
        Ok(())
    }

    fn check_numbers(&self, state: &mut State, pdu: &Pdu) -> Result<(), String> {
        let counts = match pdu.opcode() {
            response::READY => false,
            response::DATA_IN => pdu.header[1] & STATUS != 0,
            response::NOP => pdu.tag() != NO_TAG,
            _ => true,
        };
        let has_stat_sn = pdu.opcode() != response::DATA_IN || counts;
        if has_stat_sn && pdu.word(24) != state.stat_sn {
            return Err(format!(
                "StatSN {} is due, and comes in {pdu:02x?}",
                state.stat_sn
            ));
        }
        state.stat_sn = state.stat_sn.wrapping_add(u32::from(counts));
        let max = pdu.word(32);
        if is_behind(max, state.max_cmd_sn) {
            return Err(format!(
                "MaxCmdSN goes back from {} to {max}",
                state.max_cmd_sn
            ));
        }
        if max != state.max_cmd_sn {
            state.max_cmd_sn = max;
            state.waiting.drain(..).for_each(Waker::wake);
        }
        Ok(())
    }

    fn take_ready(&self, state: &mut State, pdu: &Pdu) -> Result<(), String> {
        let (tag, transfer) = (pdu.tag(), pdu.word(20));
        let (from, bytes) = (pdu.word(40) as usize, pdu.word(44) as usize);
        let Some(task) = state.tasks.get_mut(&tag) else {
            return Err(format!("an R2T for no task: {pdu:02x?}"));
        };
        if transfer == NO_TAG {
            return Err(format!("an R2T without a tag: {pdu:02x?}"));
        }
        let whole = task.command.data_out.len();
        let run = from..from + bytes;
        if from != task.given
            || run.end > whole
            || bytes == 0
            || bytes > self.agreed.max_burst_bytes
        {
            let given = task.given;
            return Err(format!(
                "an R2T for {run:?}, when {given} of {whole} bytes are given"
            ));
        }
        task.given = run.end;
        let command = task.command.clone();
        if !self.withholds.get() {
            self.give(state, (tag, transfer, &command), run);
        }
        Ok(())
    }
}

/// Whether the serial number `a` comes before `b` (RFC 1982).
fn is_behind(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

fn answer(state: &mut State, pdu: &Pdu) -> Result<(), String> {
    let task = state.tasks.remove(&pdu.tag());
    let task = task.ok_or_else(|| format!("{pdu:02x?} answers no command"))?;
    state.answered.insert(pdu.tag());
    if pdu.header[2] != 0 {
        return Err(format!("not completed at the target: {pdu:02x?}"));
    }
    let sense = pdu.data.split_at_checked(2);
    let answer = Answer {
        status: pdu.header[3],
        sense: sense.map(|(_, sense)| sense.to_vec()).unwrap_or_default(),
        data: task.data_in,
    };
    // Whoever asked may have gone with the boot.
    let _ = task.done.send(Outcome::Said(answer));
    Ok(())
}

fn data_in(state: &mut State, pdu: &Pdu, segment_bytes: usize) -> Result<(), String> {
    let Some(task) = state.tasks.get_mut(&pdu.tag()) else {
        return Err(format!("data of no task: {:02x?}", pdu.header));
    };
    if pdu.word(36) != task.data_sn || pdu.word(40) as usize != task.data_in.len() {
        return Err(format!("data out of order: {:02x?}", pdu.header));
    }
    if pdu.data.len() > segment_bytes {
        let bytes = pdu.data.len();
        return Err(format!("a segment of {bytes} bytes, more than is taken"));
    }
    task.data_sn += 1;
    task.data_in.extend(&pdu.data);
    if task.data_in.len() > task.command.read_bytes {
        return Err(format!("more data than was asked for: {:02x?}", pdu.header));
    }
    if pdu.header[1] & STATUS != 0 {
        let Some(task) = state.tasks.remove(&pdu.tag()) else {
            return Ok(());
        };
        state.answered.insert(pdu.tag());
        let answer = Answer {
            status: pdu.header[3],
            sense: Vec::new(),
            data: task.data_in,
        };
        let _ = task.done.send(Outcome::Said(answer));
    }
    Ok(())
}
