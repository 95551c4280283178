//! A libiscsi context with one LUN: no other module touches its pointers.
//!
//! Invariants:
//! - A session is used by one thread at a time; it may move to another one as a whole.
//! - For every task libiscsi took there is one boxed [`Pending`], owned by
//!   libiscsi until it calls [`completed`], which it does exactly once: with the
//!   answer, on a timeout, or as cancelled when the connection or the context
//!   goes. The buffer of the task lives in that box.
//! - Connecting and logging out may be called back twice (libiscsi says so), so
//!   they own nothing: they get the address of the sink, which outlives the
//!   context.
//! - Callbacks run inside `iscsi_service` or `iscsi_destroy_context`, where
//!   nothing of ours is borrowed.

#![allow(unsafe_code)]

use super::ffi::{self, Library};
use crate::os;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::fd::RawFd;
use std::rc::Rc;
use workload::generator::Kind;

/// Seconds after which a session is lost in which a command got no answer.
pub const COMMAND_TIMEOUT_S: c_int = 30;

/// The sense key (SPC-4, 4.5.6).
const UNIT_ATTENTION: c_int = 0x06;

/// A command that meets more unit attentions has failed; each tells of one thing.
const ATTENTIONS_MAX: u32 = 8;

/// Token of connecting and of the logout. No other command has it while they run.
pub const CONTROL: u64 = u64::MAX;

/// MODE SENSE: all pages (SPC-4, 7.5.1).
const MODE_PAGE_ALL: c_int = 0x3f;
/// Write protect in the device-specific parameter (SBC-3, 6.5.1).
const MODE_WRITE_PROTECT: u8 = 0x80;

/// How a command ended.
#[derive(Clone, Debug)]
pub enum CommandEnd {
    /// GOOD, with what the command was asked to find out.
    Good(CommandData),
    /// The target answered with another status.
    Failed(String),
    /// The target did not answer in time.
    Unanswered,
    /// The connection or the session went away.
    Cancelled,
}

/// The result of a command that asks.
#[derive(Clone, Debug)]
pub enum CommandData {
    /// Nothing but that it succeeded.
    Nothing,
    /// READ CAPACITY (16): last LBA and block length.
    Capacity { last_lba: u64, block_bytes: u32 },
    /// MODE SENSE: whether the LUN is write-protected.
    WriteProtect(bool),
    /// READ (16): the data.
    Content(Vec<u8>),
}

/// A command that met a unit attention: its token, and what the target told.
pub type Attention = (u64, String);

/// A finished command: its token and its end.
pub type Finished = (u64, CommandEnd);

/// Where callbacks leave what finished, and buffers to use again.
struct Sink {
    libiscsi: &'static Library,
    finished: Vec<Finished>,
    spare: Vec<Vec<u8>>,
    /// Transfers that the target has not done, for it had to tell something first.
    again: Vec<Transfer>,
    attentions: Vec<Attention>,
}

/// What libiscsi holds for a command under way.
struct Pending {
    libiscsi: &'static Library,
    token: u64,
    asked: AskedOfUnit,
    /// How to repeat it, without its buffer; of a transfer only.
    again: Option<Transfer>,
    buffer: Vec<u8>,
    sink: Rc<RefCell<Sink>>,
}

#[derive(Clone, Copy)]
enum AskedOfUnit {
    Status,
    Capacity,
    WriteProtect,
    Content,
}

/// A context of libiscsi.
pub struct Session {
    libiscsi: &'static Library,
    context: *mut ffi::Context,
    lun: c_int,
    sink: Rc<RefCell<Sink>>,
}

// SAFETY: libiscsi keeps no state by thread, and a context may be used by one thread after
// another. Whatever shares the sink moves along: the session itself, and the boxes that its
// context owns.
unsafe impl Send for Session {}

/// A transfer that is one READ or WRITE command.
#[derive(Clone)]
pub struct Transfer {
    /// Comes back in [`Finished`].
    pub token: u64,
    /// Whether it reads or writes.
    pub kind: Kind,
    /// The first logical block, of `block_bytes` each.
    pub lba: u64,
    /// The LUN's block length.
    pub block_bytes: u32,
    /// What is written, or the space to read into.
    pub buffer: Vec<u8>,
    /// Whether what was read is wanted: it comes as [`CommandData::Content`].
    pub keep: bool,
    /// How often it met a unit attention before.
    pub attentions: u32,
}

impl Session {
    /// A context for `target`, not connected yet.
    ///
    /// # Errors
    /// When a name holds a zero byte or libiscsi refuses it.
    pub fn new(
        libiscsi: &'static Library,
        initiator: &str,
        target: &str,
        credentials: Option<&(String, String)>,
    ) -> Result<Session, String> {
        let initiator = c_string(initiator)?;
        // SAFETY: a zero-terminated string that libiscsi copies.
        let context = unsafe { (libiscsi.iscsi_create_context)(initiator.as_ptr()) };
        if context.is_null() {
            return Err("libiscsi cannot make a context: out of memory?".into());
        }
        let sink = Sink {
            libiscsi,
            finished: Vec::new(),
            spare: Vec::new(),
            again: Vec::new(),
            attentions: Vec::new(),
        };
        let session = Session {
            libiscsi,
            context,
            lun: 0,
            sink: Rc::new(RefCell::new(sink)),
        };
        session.set_target(target)?;
        if let Some((user, password)) = credentials {
            session.set_credentials(user, password)?;
        }
        Ok(session)
    }

    fn set_target(&self, target: &str) -> Result<(), String> {
        let (libiscsi, context) = (self.libiscsi, self.context);
        let target = c_string(target)?;
        // SAFETY: the context is live; the string is zero-terminated and copied.
        let refused = unsafe {
            // A lost connection is a finding, not something to hide behind a silent second attempt.
            (libiscsi.iscsi_set_noautoreconnect)(context, 1);
            (libiscsi.iscsi_set_targetname)(context, target.as_ptr()) != 0
                || (libiscsi.iscsi_set_session_type)(context, ffi::SESSION_NORMAL) != 0
                || (libiscsi.iscsi_set_header_digest)(context, ffi::HEADER_DIGEST_NONE_CRC32C) != 0
                || (libiscsi.iscsi_set_timeout)(context, COMMAND_TIMEOUT_S) != 0
        };
        match refused {
            true => Err(self.error()),
            false => Ok(()),
        }
    }

    fn set_credentials(&self, user: &str, password: &str) -> Result<(), String> {
        let (user, password) = (c_string(user)?, c_string(password)?);
        let set = self.libiscsi.iscsi_set_initiator_username_pwd;
        // SAFETY: the context is live; the strings are zero-terminated and copied.
        match unsafe { set(self.context, user.as_ptr(), password.as_ptr()) } {
            0 => Ok(()),
            _ => Err(self.error()),
        }
    }

    /// Starts connecting, logging in and testing the LUN; ends as [`CONTROL`].
    ///
    /// # Errors
    /// When the address cannot be resolved or no socket can be had.
    pub fn connect(&mut self, portal: &str, lun: u16) -> Result<(), String> {
        let portal = c_string(portal)?;
        self.lun = c_int::from(lun);
        // SAFETY: the context is live, the string is copied; the sink lives until
        // after the context is destroyed.
        let started = unsafe {
            (self.libiscsi.iscsi_full_connect_async)(
                self.context,
                portal.as_ptr(),
                self.lun,
                controlled,
                self.sink_address(),
            )
        };
        if started != 0 {
            Err(self.error())
        } else {
            Ok(())
        }
    }

    /// Asks for capacity and block length.
    ///
    /// # Errors
    /// When libiscsi does not take the command.
    pub fn read_capacity(&mut self, token: u64) -> Result<(), String> {
        let pending = self.pend(token, AskedOfUnit::Capacity, Vec::new());
        // SAFETY: the context is live; `pending` stays valid until the callback,
        // which takes it back.
        let task = unsafe {
            (self.libiscsi.iscsi_readcapacity16_task)(
                self.context,
                self.lun,
                completed,
                pending.cast(),
            )
        };
        self.taken(task, pending)
    }

    /// Asks whether the LUN is write-protected.
    ///
    /// # Errors
    /// When libiscsi does not take the command.
    pub fn mode_sense(&mut self, token: u64) -> Result<(), String> {
        let pending = self.pend(token, AskedOfUnit::WriteProtect, Vec::new());
        // SAFETY: as in `read_capacity`.
        let task = unsafe {
            (self.libiscsi.iscsi_modesense6_task)(
                self.context,
                self.lun,
                0,
                0,
                MODE_PAGE_ALL,
                0,
                255,
                completed,
                pending.cast(),
            )
        };
        self.taken(task, pending)
    }

    /// Starts a read or write of the whole buffer.
    ///
    /// # Errors
    /// When libiscsi does not take the command.
    pub fn transfer(&mut self, mut transfer: Transfer) -> Result<(), String> {
        let block = c_int::try_from(transfer.block_bytes);
        let block = block.map_err(|_| "a block length above 2 GiB")?;
        let length = c_int::try_from(transfer.buffer.len());
        let length = length.map_err(|_| "a transfer above 2 GiB")?;
        let asked = match transfer.keep {
            true => AskedOfUnit::Content,
            false => AskedOfUnit::Status,
        };
        let buffer = std::mem::take(&mut transfer.buffer);
        let pending = self.pend(transfer.token, asked, buffer);
        let (kind, lba) = (transfer.kind, transfer.lba);
        // SAFETY: it comes from `pend`, and nobody else has it yet.
        unsafe { (*pending).again = Some(transfer) };
        // SAFETY: as in `read_capacity`; `length` is that of the buffer in `pending`.
        let task = unsafe {
            match kind {
                Kind::Write => self.write(lba, block, length, pending),
                Kind::Read => self.read(lba, block, length, pending),
            }
        };
        self.taken(task, pending)
    }

    /// # Safety
    /// `pending` is from [`Session::pend`]. The data pointer is that of its buffer, which is
    /// `length` long and not touched until the callback.
    unsafe fn write(
        &self,
        lba: u64,
        block: c_int,
        length: c_int,
        pending: *mut Pending,
    ) -> *mut ffi::Task {
        let (context, lun, bytes) = (self.context, self.lun, length as u32);
        // SAFETY: the context is live, and the caller promises the rest.
        unsafe {
            let data = (*pending).buffer.as_mut_ptr();
            let private = pending.cast();
            (self.libiscsi.iscsi_write16_task)(
                context, lun, lba, data, bytes, block, 0, 0, 0, 0, 0, completed, private,
            )
        }
    }

    /// # Safety
    /// As [`Session::write`].
    unsafe fn read(
        &self,
        lba: u64,
        block: c_int,
        length: c_int,
        pending: *mut Pending,
    ) -> *mut ffi::Task {
        let (context, lun, bytes) = (self.context, self.lun, length as u32);
        // SAFETY: the context is live, and the caller promises the rest. A buffer may be added
        // as long as the command was not sent, and it is only sent by iscsi_service.
        unsafe {
            let data = (*pending).buffer.as_mut_ptr();
            let private = pending.cast();
            let task = (self.libiscsi.iscsi_read16_task)(
                context, lun, lba, bytes, block, 0, 0, 0, 0, 0, completed, private,
            );
            if !task.is_null() {
                // Without our buffer, libiscsi receives into one of its own.
                let _ = (self.libiscsi.scsi_task_add_data_in_buffer)(task, length, data);
            }
            task
        }
    }

    /// Asks the target to end the session; ends as [`CONTROL`].
    ///
    /// # Errors
    /// When libiscsi does not take the command.
    pub fn logout(&mut self) -> Result<(), String> {
        // SAFETY: as in `connect`.
        let started = unsafe {
            (self.libiscsi.iscsi_logout_async)(self.context, controlled, self.sink_address())
        };
        if started != 0 {
            Err(self.error())
        } else {
            Ok(())
        }
    }

    fn sink_address(&self) -> *mut c_void {
        Rc::as_ptr(&self.sink).cast_mut().cast()
    }

    /// The descriptor to wait on and the events to wait for; `None` when there is
    /// no connection.
    pub fn interest(&self) -> Option<(RawFd, i16)> {
        // SAFETY: the context is live.
        let (fd, events) = unsafe {
            (
                (self.libiscsi.iscsi_get_fd)(self.context),
                (self.libiscsi.iscsi_which_events)(self.context),
            )
        };
        (fd >= 0).then_some((fd, events as i16))
    }

    /// Moves bytes and runs callbacks.
    ///
    /// # Errors
    /// When the connection failed.
    pub fn service(&mut self, revents: i16) -> Result<(), String> {
        // libiscsi sends the header and the data of each command by calls of their own;
        // the kernel's initiator lets TCP make full segments of them.
        let sending = self
            .interest()
            .map(|(fd, _)| fd)
            .filter(|_| revents & libc::POLLOUT != 0);
        if let Some(fd) = sending {
            os::hold_small_segments(fd, true);
        }
        let outcome = self.move_bytes(revents);
        if let Some(fd) = sending
            && self.interest().is_some_and(|(now, _)| now == fd)
        {
            os::hold_small_segments(fd, false);
        }
        outcome?;
        self.repeat()
    }

    /// Sends transfers again that met a unit attention.
    fn repeat(&mut self) -> Result<(), String> {
        let again = std::mem::take(&mut self.sink.borrow_mut().again);
        again
            .into_iter()
            .try_for_each(|transfer| self.transfer(transfer))
    }

    /// The unit attentions since the last call.
    pub fn attentions(&mut self) -> Vec<Attention> {
        std::mem::take(&mut self.sink.borrow_mut().attentions)
    }

    fn move_bytes(&mut self, revents: i16) -> Result<(), String> {
        // SAFETY: the context is live; callbacks run here, and `sink` is not
        // borrowed.
        let failed = unsafe { (self.libiscsi.iscsi_service)(self.context, c_int::from(revents)) };
        if failed < 0 {
            Err(self.error())
        } else {
            Ok(())
        }
    }

    /// What finished since the last call.
    pub fn finished(&mut self) -> Vec<Finished> {
        std::mem::take(&mut self.sink.borrow_mut().finished)
    }

    /// A buffer of `bytes` with unspecified content.
    pub fn buffer(&mut self, bytes: usize) -> Vec<u8> {
        let mut buffer = self.sink.borrow_mut().spare.pop().unwrap_or_default();
        buffer.resize(bytes, 0);
        buffer
    }

    /// The last error as libiscsi tells it.
    pub fn error(&self) -> String {
        // SAFETY: the context is live; the string is copied before any other call.
        unsafe { text((self.libiscsi.iscsi_get_error)(self.context)) }
    }

    fn pend(&self, token: u64, asked: AskedOfUnit, buffer: Vec<u8>) -> *mut Pending {
        Box::into_raw(Box::new(Pending {
            libiscsi: self.libiscsi,
            token,
            asked,
            again: None,
            buffer,
            sink: Rc::clone(&self.sink),
        }))
    }

    fn taken(&self, task: *mut ffi::Task, pending: *mut Pending) -> Result<(), String> {
        if task.is_null() {
            self.reclaim(pending);
            return Err(self.error());
        }
        Ok(())
    }

    /// Takes back a box that libiscsi refused.
    fn reclaim(&self, pending: *mut Pending) {
        // SAFETY: it came from `pend`, and libiscsi did not take the command, so
        // no callback will see it.
        drop(unsafe { Box::from_raw(pending) });
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: the context is live and not used after this. Callbacks of
        // commands under way run here and take back their boxes.
        unsafe { (self.libiscsi.iscsi_destroy_context)(self.context) };
    }
}

fn c_string(text: &str) -> Result<CString, String> {
    CString::new(text).map_err(|_| format!("{text:?} holds a zero byte"))
}

/// # Safety
/// `pointer` is null or a zero-terminated string that lives during the call.
unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: promised by the caller.
    unsafe { CStr::from_ptr(pointer) }
        .to_string_lossy()
        .trim()
        .to_string()
}

/// The end of connecting or of a logout.
unsafe extern "C" fn controlled(
    context: *mut ffi::Context,
    status: c_int,
    _data: *mut c_void,
    private: *mut c_void,
) {
    // SAFETY: `private` is `Session::sink_address`, which lives longer than the
    // context that calls back.
    let sink = unsafe { &*private.cast::<RefCell<Sink>>() };
    let libiscsi = sink.borrow().libiscsi;
    let ended = match status {
        ffi::STATUS_GOOD => CommandEnd::Good(CommandData::Nothing),
        ffi::STATUS_CANCELLED => CommandEnd::Cancelled,
        // SAFETY: libiscsi calls back with its live context.
        _ => CommandEnd::Failed(unsafe { text((libiscsi.iscsi_get_error)(context)) }),
    };
    sink.borrow_mut().finished.push((CONTROL, ended));
}

/// The end of a SCSI command.
unsafe extern "C" fn completed(
    context: *mut ffi::Context,
    status: c_int,
    data: *mut c_void,
    private: *mut c_void,
) {
    // SAFETY: `private` is the box of `Session::pend` for this command, and
    // libiscsi calls back once.
    let mut pending = unsafe { Box::from_raw(private.cast::<Pending>()) };
    let (libiscsi, task) = (pending.libiscsi, data.cast::<ffi::Task>());
    // SAFETY: libiscsi passes its live context and the task of the command (or
    // null), which is ours to free from here on and not used after.
    let (ended, told) = unsafe {
        let ended = end_of(libiscsi, (context, task), status, pending.asked);
        let told = is_attention(libiscsi, status, task);
        if !task.is_null() {
            (libiscsi.scsi_free_scsi_task)(task);
        }
        (ended, told)
    };
    let buffer = std::mem::take(&mut pending.buffer);
    if let (true, CommandEnd::Failed(why), Some(mut again)) = (told, &ended, pending.again.take())
        && again.attentions < ATTENTIONS_MAX
    {
        (again.attentions, again.buffer) = (again.attentions + 1, buffer);
        let mut sink = pending.sink.borrow_mut();
        sink.attentions.push((pending.token, why.clone()));
        sink.again.push(again);
        return;
    }
    let (ended, buffer) = match (ended, pending.asked) {
        (CommandEnd::Good(_), AskedOfUnit::Content) => {
            (CommandEnd::Good(CommandData::Content(buffer)), Vec::new())
        }
        (ended, _) => (ended, buffer),
    };
    let mut sink = pending.sink.borrow_mut();
    sink.finished.push((pending.token, ended));
    if buffer.capacity() > 0 {
        sink.spare.push(buffer);
    }
}

/// Whether a command ended with a unit attention: the target has not done it (SAM-5, 5.14).
///
/// # Safety
/// `task` is null or live.
unsafe fn is_attention(libiscsi: &Library, status: c_int, task: *mut ffi::Task) -> bool {
    if status != ffi::STATUS_CHECK_CONDITION || task.is_null() {
        return false;
    }
    let mut sense = ffi::Sense::default();
    // SAFETY: `task` is live and `sense` writable.
    unsafe { (libiscsi.scsi_task_get_status)(task, &mut sense) };
    sense.key == UNIT_ATTENTION
}

/// # Safety
/// `context` is live; `task` is null or live.
unsafe fn end_of(
    libiscsi: &Library,
    (context, task): (*mut ffi::Context, *mut ffi::Task),
    status: c_int,
    asked: AskedOfUnit,
) -> CommandEnd {
    match status {
        ffi::STATUS_GOOD => {
            // SAFETY: promised by the caller.
            let found = unsafe { found(libiscsi, task, asked) };
            found.map_or_else(
                || CommandEnd::Failed("the answer is too short".into()),
                CommandEnd::Good,
            )
        }
        ffi::STATUS_CANCELLED => CommandEnd::Cancelled,
        ffi::STATUS_TIMEOUT => CommandEnd::Unanswered,
        ffi::STATUS_CHECK_CONDITION if !task.is_null() => {
            let mut sense = ffi::Sense::default();
            // SAFETY: `task` is live and `sense` writable; the strings are static.
            unsafe {
                (libiscsi.scsi_task_get_status)(task, &mut sense);
                let key = text((libiscsi.scsi_sense_key_str)(sense.key));
                let ascq = text((libiscsi.scsi_sense_ascq_str)(sense.ascq));
                CommandEnd::Failed(format!("{key}, {ascq} (ASC/ASCQ {:#06x})", sense.ascq))
            }
        }
        ffi::STATUS_ERROR => {
            // SAFETY: promised by the caller.
            CommandEnd::Failed(unsafe { text((libiscsi.iscsi_get_error)(context)) })
        }
        other => CommandEnd::Failed(format!("SCSI status {other:#04x}")),
    }
}

/// # Safety
/// `task` is null or live.
unsafe fn found(
    libiscsi: &Library,
    task: *mut ffi::Task,
    asked: AskedOfUnit,
) -> Option<CommandData> {
    // What was read is in the buffer.
    if let AskedOfUnit::Status | AskedOfUnit::Content = asked {
        return Some(CommandData::Nothing);
    }
    if task.is_null() {
        return None;
    }
    // SAFETY: the task is live and its data-in complete; libiscsi returns a
    // structure of the kind the CDB asks for, owned by the task, or null.
    unsafe {
        let answer = (libiscsi.scsi_datain_unmarshall)(task);
        match asked {
            AskedOfUnit::Capacity => {
                let capacity = answer.cast::<ffi::ReadCapacity16>().as_ref()?;
                let last_lba = capacity.returned_lba;
                Some(CommandData::Capacity {
                    last_lba,
                    block_bytes: capacity.block_length,
                })
            }
            AskedOfUnit::WriteProtect => {
                let mode = answer.cast::<ffi::ModeSense>().as_ref()?;
                let protected = mode.device_specific_parameter & MODE_WRITE_PROTECT != 0;
                Some(CommandData::WriteProtect(protected))
            }
            AskedOfUnit::Status | AskedOfUnit::Content => Some(CommandData::Nothing),
        }
    }
}
