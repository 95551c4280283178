//! A LUN behind an iSCSI portal, through libiscsi: an initiator that we did not write, so that the
//! server is measured as others reach it.
//!
//! Each endpoint has a session of its own. READ (16) and WRITE (16) are used.
//! A lost connection is reported, not repaired, and so is a command that gets no answer. A READ or
//! WRITE that meets a unit attention is sent again, as all initiators do, and the attention is told.

mod ffi;
mod session;

use super::{Completion, Endpoint, Geometry, Interest, OpenOptions, Request};
use super::{LOOK_TIMEOUT, TargetError, TargetErrorKind};
use crate::os;
use session::{COMMAND_TIMEOUT_S, CONTROL, CommandData, CommandEnd, Session, Transfer};
use std::sync::Arc;
use std::time::{Duration, Instant};
use workload::generator::Kind;
use workload::pattern::Pattern;
use workload::url::{IscsiLun, TargetUrl};

/// The name we log in with.
pub const INITIATOR: &str = "iqn.2026-11.dev.ashlar:load";

/// How long a logout may take before the connection is just closed.
const LOGOUT_TIMEOUT: Duration = Duration::from_secs(1);

/// A logged-in session with its LUN.
pub struct IscsiEndpoint {
    url: TargetUrl,
    session: Session,
    geometry: Geometry,
    pattern: Arc<Pattern>,
    lost: bool,
}

impl IscsiEndpoint {
    /// Connects, logs in and asks the LUN for its size and write protection.
    ///
    /// # Errors
    /// `Library`, `Url`, `Unreachable`, `Refused`, `Absent`, `Protocol`.
    pub fn open(
        url: &TargetUrl,
        lun: &IscsiLun,
        options: &OpenOptions,
    ) -> Result<Self, TargetError> {
        let error = |kind, detail: String| TargetError::new(kind, url, detail);
        let library = ffi::library().map_err(|detail| error(TargetErrorKind::Library, detail))?;
        let mut session = Session::new(library, INITIATOR, &lun.target, lun.credentials.as_ref())
            .map_err(|detail| error(TargetErrorKind::Url, detail))?;
        let deadline = Instant::now() + options.timeout;
        session
            .connect(&lun.portal, lun.lun)
            .and_then(|()| control(&mut session, deadline).map(|_| ()))
            .map_err(|detail| connect_error(url, detail))?;
        let geometry = geometry(&mut session, deadline);
        let geometry = geometry.map_err(|detail| error(TargetErrorKind::Protocol, detail))?;
        let pattern = Arc::clone(&options.pattern);
        Ok(IscsiEndpoint {
            url: url.clone(),
            session,
            geometry,
            pattern,
            lost: false,
        })
    }

    fn lose(&mut self, detail: &str) -> TargetError {
        self.lost = true;
        TargetError::new(
            TargetErrorKind::Lost,
            &self.url,
            format!("session lost: {detail}"),
        )
    }

    fn serviced(&mut self, revents: i16) -> Result<(), TargetError> {
        match self.session.service(revents) {
            Ok(()) => Ok(()),
            Err(detail) => Err(self.lose(&detail)),
        }
    }
}

/// Asks a LUN for its size, block and write protection.
fn geometry(session: &mut Session, deadline: Instant) -> Result<Geometry, String> {
    session.read_capacity(CONTROL)?;
    let CommandData::Capacity {
        last_lba,
        block_bytes,
    } = control(session, deadline)?
    else {
        return Err("READ CAPACITY (16) did not tell the capacity".into());
    };
    if !(512..=4096).contains(&block_bytes) || !block_bytes.is_power_of_two() {
        return Err(format!("a block length of {block_bytes} bytes"));
    }
    session.mode_sense(CONTROL)?;
    let read_only = matches!(control(session, deadline)?, CommandData::WriteProtect(true));
    let blocks = last_lba.checked_add(1);
    let capacity_bytes = blocks.and_then(|blocks| blocks.checked_mul(u64::from(block_bytes)));
    Ok(Geometry {
        capacity_bytes: capacity_bytes.ok_or_else(|| format!("a last LBA of {last_lba}"))?,
        block_bytes,
        read_only,
    })
}

/// libiscsi tells these apart in its text only.
fn connect_error(url: &TargetUrl, detail: String) -> TargetError {
    let lower = detail.to_lowercase();
    let (kind, advice) = if lower.contains("unit_not_supported")
        || lower.contains("unit not supported")
        || lower.contains("testunitready")
    {
        (TargetErrorKind::Absent, "check the LUN's number")
    } else if lower.contains("login") || lower.contains("target not found") {
        (
            TargetErrorKind::Refused,
            "check the target's name, its access list and the credentials",
        )
    } else {
        (
            TargetErrorKind::Unreachable,
            "is the portal listening there?",
        )
    };
    TargetError::new(kind, url, format!("{detail}; {advice}"))
}

/// Runs the session until the control command has ended.
fn control(session: &mut Session, deadline: Instant) -> Result<CommandData, String> {
    let mut revents = Vec::new();
    loop {
        if let Some((_, ended)) = session
            .finished()
            .into_iter()
            .find(|&(token, _)| token == CONTROL)
        {
            return result(ended);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err("no answer in time".into());
        }
        let Some((fd, events)) = session.interest() else {
            return Err(session.error());
        };
        let interest = Interest { fd, events };
        os::wait(
            &[interest],
            left.min(Duration::from_millis(100)),
            &mut revents,
        )
        .map_err(|error| format!("cannot wait for the socket: {error}"))?;
        let ready = revents.first().copied().unwrap_or(0);
        let hung_up = ready & (libc::POLLHUP | libc::POLLERR) != 0;
        let serviced = session.service(ready);
        // A callback may have told more than the return value does.
        let told = session.finished().into_iter().next();
        match (told, serviced) {
            (Some((_, ended)), _) => return result(ended),
            (None, Err(detail)) => return Err(detail),
            (None, Ok(())) if hung_up => return Err("the target closed the connection".into()),
            (None, Ok(())) => {}
        }
    }
}

/// What a control command found, or why it found nothing.
fn result(ended: CommandEnd) -> Result<CommandData, String> {
    match ended {
        CommandEnd::Good(found) => Ok(found),
        CommandEnd::Failed(detail) => Err(detail),
        CommandEnd::Cancelled => Err("the target closed the connection".into()),
        CommandEnd::Unanswered => Err("no answer in time".into()),
    }
}

impl Endpoint for IscsiEndpoint {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn submit(&mut self, request: Request) -> Result<(), TargetError> {
        if self.lost {
            return Err(self.lose("it was lost before"));
        }
        let mut buffer = self.session.buffer(request.bytes as usize);
        if request.kind == Kind::Write {
            self.pattern
                .fill(request.offset_bytes, request.sequence, &mut buffer);
        }
        let block_bytes = self.geometry.block_bytes;
        let transfer = Transfer {
            token: request.token,
            kind: request.kind,
            lba: request.offset_bytes / u64::from(block_bytes),
            block_bytes,
            buffer,
            keep: false,
            attentions: 0,
        };
        match self.session.transfer(transfer) {
            Ok(()) => Ok(()),
            Err(detail) => Err(self.lose(&detail)),
        }
    }

    fn flush(&mut self) -> Result<(), TargetError> {
        match self.session.interest() {
            Some((_, events)) if events & libc::POLLOUT != 0 => self.serviced(libc::POLLOUT),
            _ => Ok(()),
        }
    }

    fn interest(&self) -> Interest {
        // poll(2) ignores a negative descriptor.
        let (fd, events) = self.session.interest().unwrap_or((-1, 0));
        Interest {
            fd,
            events: events | libc::POLLRDHUP,
        }
    }

    fn service(
        &mut self,
        revents: i16,
        completions: &mut Vec<Completion>,
    ) -> Result<(), TargetError> {
        let closed = revents & (libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR) != 0;
        let serviced = self.serviced(revents & (libc::POLLIN | libc::POLLOUT));
        let (mut cancelled, mut unanswered) = (false, false);
        for (token, ended) in self.session.finished() {
            if token == CONTROL {
                // The second call-back of connecting: the connection is gone.
                cancelled = true;
                continue;
            }
            let outcome = match ended {
                CommandEnd::Good(_) => Ok(()),
                CommandEnd::Failed(detail) => Err(detail),
                CommandEnd::Cancelled => {
                    cancelled = true;
                    continue;
                }
                CommandEnd::Unanswered => {
                    unanswered = true;
                    continue;
                }
            };
            completions.push(Completion { token, outcome });
        }
        serviced?;
        if unanswered {
            // As initiators do: what a target does not answer ends its session.
            return Err(self.lose(&format!("no answer within {COMMAND_TIMEOUT_S} seconds")));
        }
        if closed || cancelled || self.session.interest().is_none() {
            return Err(self.lose("the target closed the connection"));
        }
        Ok(())
    }

    fn attentions(&mut self) -> Vec<(u64, String)> {
        self.session.attentions()
    }

    fn look(&mut self, offset_bytes: u64, bytes: u32) -> Result<Vec<u8>, String> {
        let transfer = Transfer {
            token: CONTROL,
            kind: Kind::Read,
            lba: offset_bytes / u64::from(self.geometry.block_bytes),
            block_bytes: self.geometry.block_bytes,
            buffer: self.session.buffer(bytes as usize),
            keep: true,
            attentions: 0,
        };
        self.session.transfer(transfer)?;
        match control(&mut self.session, Instant::now() + LOOK_TIMEOUT)? {
            CommandData::Content(data) => Ok(data),
            _ => Err("the answer has no data".into()),
        }
    }
}

impl Drop for IscsiEndpoint {
    /// Logs out, so that the target does not have to find out by itself.
    fn drop(&mut self) {
        if !self.lost && self.session.logout().is_ok() {
            // Closing the connection is all that is left when this fails.
            let _ = control(&mut self.session, Instant::now() + LOGOUT_TIMEOUT);
        }
    }
}
