//! The login state machine: stages, continuation, refusals.
//!
//! Invariants:
//! - A login ends after at most [`REQUESTS_MAX`] requests, and holds at most
//!   [`Limits::max_text_bytes`] of text.
//! - After a refusal nothing more is read or written.
//! - No stage is left before the initiator has proved what the directory asks for.

use super::keys::{Keys, Outcome};
use super::security::Security;
use super::status::{
    FORBIDDEN, FULL_FEATURE, INITIATOR_ERROR, INVALID_DURING_LOGIN, MISSING_PARAMETER, NOT_FOUND,
    OPERATIONAL, OUT_OF_RESOURCES, Refused, SECURITY, SERVICE_UNAVAILABLE, SESSION_DOES_NOT_EXIST,
    Status, UNSUPPORTED_VERSION,
};
use super::{
    Admission, Limits, LoginPortal, LoginProgress, Negotiated, Refusal, SessionKey, TargetDirectory,
};
use crate::chap::Chap;
use crate::pdu::request::{self, opcodes};
use crate::pdu::response::{self, Numbers};
use crate::pdu::{self, BHS_BYTES, Bhs, Request, Response};
use crate::text;

/// Requests that one login may take; usual ones take one to three.
pub const REQUESTS_MAX: u32 = 64;

/// Data segments during login, either way (clause 13.12: the default holds until
/// full-feature phase).
const SEGMENT_BYTES_MAX: usize = 8192;

fn status_of(refusal: Refusal) -> Status {
    match refusal {
        Refusal::NotFound => NOT_FOUND,
        Refusal::Forbidden => FORBIDDEN,
        Refusal::Unavailable => SERVICE_UNAVAILABLE,
        Refusal::OutOfResources => OUT_OF_RESOURCES,
    }
}

/// The answer to the first request of a login that is not even begun, once all of its
/// header is in `input`; nothing for what is no login request.
pub fn turn_away(input: &[u8], refusal: Refusal) -> Option<Bhs> {
    match Request::parse(input.first_chunk::<BHS_BYTES>()?)? {
        Request::Login(request) => Some(refusal_of(&request, 1, status_of(refusal))),
        _ => None,
    }
}

/// One connection until full-feature phase.
pub struct Login {
    portal: LoginPortal,
    tsih: u16,
    limits: Limits,
    keys: Keys,
    /// The first request: later ones must agree with it.
    first: Option<request::Login>,
    stage: u8,
    requests: u32,
    stat_sn: u32,
    /// Text of requests with the C bit, until one without.
    text: Vec<u8>,
    /// Answers that did not fit into the last response.
    answers: Vec<u8>,
    /// The initiator has introduced itself and is admitted.
    admitted: bool,
    security: Security,
    /// We have declared MaxRecvDataSegmentLength.
    declared: bool,
    ended: bool,
}

impl Login {
    /// A connection from which nothing has been read. `tsih` (not zero) will name
    /// its session; `chap` is for this login alone.
    ///
    /// # Panics
    /// When `tsih` is zero: that value is reserved.
    pub fn new(portal: LoginPortal, tsih: u16, limits: Limits, chap: Chap) -> Login {
        assert!(tsih != 0, "a session without a handle");
        Login {
            portal,
            tsih,
            limits,
            keys: Keys::default(),
            first: None,
            stage: SECURITY,
            requests: 0,
            stat_sn: 1,
            text: Vec::new(),
            answers: Vec::new(),
            admitted: false,
            security: Security::new(chap),
            declared: false,
            ended: false,
        }
    }

    /// Where the connection came in.
    pub fn portal(&self) -> LoginPortal {
        self.portal
    }

    /// Whether the initiator has proved who it is.
    pub fn has_proved(&self) -> bool {
        self.security.proved().is_some()
    }

    /// Consumes whole PDUs from the front of `input`, appends answers to `out`.
    ///
    /// Feed it until it says anything but [`LoginProgress::More`]. `input` never
    /// needs to grow past one PDU of 8 KiB: owners may stop reading there.
    pub fn receive(
        &mut self,
        input: &mut Vec<u8>,
        directory: &dyn TargetDirectory,
        out: &mut Vec<u8>,
    ) -> LoginProgress {
        loop {
            if self.ended {
                return close("the login is over");
            }
            let Some(bhs) = input.first_chunk::<BHS_BYTES>().copied() else {
                return LoginProgress::More;
            };
            let request = match self.check_frame(&bhs) {
                Ok(request) => request,
                Err(refused) => return self.refuse(&bhs, refused, out),
            };
            let len = pdu::data_segment_bytes(&bhs);
            let whole = BHS_BYTES + len + pdu::padding_bytes(len);
            if input.len() < whole {
                return LoginProgress::More;
            }
            let text: Vec<u8> = input.drain(..whole).skip(BHS_BYTES).take(len).collect();
            match self.handle(&request, &text, directory, out) {
                Ok(None) => {}
                Ok(Some(negotiated)) => {
                    self.ended = true;
                    return LoginProgress::Done(Box::new(negotiated));
                }
                Err(refused) => return self.refuse(&bhs, refused, out),
            }
        }
    }

    fn check_frame(&self, bhs: &Bhs) -> Result<request::Login, Refused> {
        let len = pdu::data_segment_bytes(bhs);
        let Some(Request::Login(request)) = Request::parse(bhs) else {
            let why = format!(
                "opcode {:#04x} before the login is complete",
                pdu::opcode(bhs)
            );
            return Err((INVALID_DURING_LOGIN, why));
        };
        if pdu::ahs_bytes(bhs) != 0 {
            return Err((
                INITIATOR_ERROR,
                "a login request with additional headers".into(),
            ));
        }
        if len > SEGMENT_BYTES_MAX {
            return Err((
                INITIATOR_ERROR,
                format!("a login data segment of {len} bytes"),
            ));
        }
        Ok(request)
    }

    /// Takes one request. `Some` when the login is complete.
    fn handle(
        &mut self,
        request: &request::Login,
        text: &[u8],
        directory: &dyn TargetDirectory,
        out: &mut Vec<u8>,
    ) -> Result<Option<Negotiated>, Refused> {
        self.requests += 1;
        if self.requests > REQUESTS_MAX {
            return Err((
                INITIATOR_ERROR,
                format!("more than {REQUESTS_MAX} login requests"),
            ));
        }
        self.check_request(request)?;
        if self.text.len() + text.len() > self.limits.max_text_bytes as usize {
            let bound = self.limits.max_text_bytes;
            return Err((
                INITIATOR_ERROR,
                format!("more than {bound} bytes of login text"),
            ));
        }
        if !self.answers.is_empty() && !text.is_empty() {
            return Err((INITIATOR_ERROR, "text while an answer is incomplete".into()));
        }
        self.text.extend_from_slice(text);
        if request.continues {
            self.respond(request, false, &[], false, out);
            return Ok(None);
        }
        if self.answers.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.take_text(&text)?;
            let admitted = !self.admitted;
            self.admit(directory)?;
            self.security
                .take(&mut self.keys.declared, request, &mut self.answers)?;
            if admitted && !self.keys.declared.discovery {
                let tag = self.portal.portal_group.to_string();
                text::push(&mut self.answers, "TargetPortalGroupTag", &tag);
            }
            self.declare(request.current_stage);
        }
        self.answer(request, directory, out)
    }

    fn check_request(&mut self, request: &request::Login) -> Result<(), Refused> {
        match &self.first {
            None => self.check_first(request)?,
            Some(first) => {
                let same = first.isid == request.isid
                    && first.cid == request.cid
                    && first.task_tag == request.task_tag
                    && first.tsih == request.tsih
                    && first.cmd_sn == request.cmd_sn;
                if !same {
                    let why = "ISID, TSIH, CID, CmdSN or task tag differ from the first request's";
                    return Err((INITIATOR_ERROR, why.into()));
                }
            }
        }
        if request.current_stage != self.stage {
            let why = format!("stage {} in stage {}", request.current_stage, self.stage);
            return Err((INVALID_DURING_LOGIN, why));
        }
        let allowed = match request.current_stage {
            SECURITY => [OPERATIONAL, FULL_FEATURE].contains(&request.next_stage),
            _ => request.next_stage == FULL_FEATURE,
        };
        if request.transit && (!allowed || request.continues) {
            let why = format!(
                "transit from stage {} to {}",
                self.stage, request.next_stage
            );
            return Err((INVALID_DURING_LOGIN, why));
        }
        Ok(())
    }

    fn check_first(&mut self, request: &request::Login) -> Result<(), Refused> {
        if request.version_min != 0 {
            let why = format!(
                "the initiator needs version {} or later",
                request.version_min
            );
            return Err((UNSUPPORTED_VERSION, why));
        }
        if request.tsih != 0 {
            let why = format!(
                "session {:#06x}: sessions have one connection",
                request.tsih
            );
            return Err((SESSION_DOES_NOT_EXIST, why));
        }
        if !matches!(request.current_stage, SECURITY | OPERATIONAL) {
            let why = format!("the first stage is {}", request.current_stage);
            return Err((INVALID_DURING_LOGIN, why));
        }
        self.stage = request.current_stage;
        self.first = Some(*request);
        Ok(())
    }

    fn take_text(&mut self, bytes: &[u8]) -> Result<(), Refused> {
        let pairs = text::parse(bytes).map_err(|error| (INITIATOR_ERROR, error.to_string()))?;
        let admitted_as = self.admitted.then(|| self.keys.declared.who());
        for (key, value) in pairs {
            match self.keys.take(self.stage, key, value, &self.limits) {
                Outcome::Silent => {}
                Outcome::Answer(answer) => text::push(&mut self.answers, key, &answer),
                Outcome::Refuse(detail, why) => return Err(((2, detail), why)),
            }
        }
        // What it had to prove was asked for by what it said then.
        if admitted_as.is_some_and(|before| before != self.keys.declared.who()) {
            let why = "InitiatorName, TargetName or SessionType after the initiator was admitted";
            return Err((INITIATOR_ERROR, why.into()));
        }
        Ok(())
    }

    /// Checks who comes and where to, once, with the first complete text.
    fn admit(&mut self, directory: &dyn TargetDirectory) -> Result<(), Refused> {
        if self.admitted {
            return Ok(());
        }
        let declared = &self.keys.declared;
        let Some(initiator) = &declared.initiator else {
            return Err((MISSING_PARAMETER, "no InitiatorName".into()));
        };
        let target = match (&declared.target, declared.discovery) {
            (_, true) => None,
            (Some(target), false) => Some(target.as_str()),
            (None, false) => {
                let why = format!("{initiator} gives no TargetName");
                return Err((MISSING_PARAMETER, why));
            }
        };
        let account = directory.admit(initiator, target, &self.portal);
        let account = account.map_err(|refusal| refused(refusal, initiator, target))?;
        self.security.require(account);
        self.admitted = true;
        Ok(())
    }

    /// Says once what we take, as soon as operational keys may be sent.
    fn declare(&mut self, stage: u8) {
        if stage == OPERATIONAL && !self.declared {
            let bytes = self.limits.max_recv_data_segment_bytes.to_string();
            text::push(&mut self.answers, "MaxRecvDataSegmentLength", &bytes);
            self.declared = true;
        }
    }

    /// Sends as much of the answers as fits, and moves on when all is said and proved.
    fn answer(
        &mut self,
        request: &request::Login,
        directory: &dyn TargetDirectory,
        out: &mut Vec<u8>,
    ) -> Result<Option<Negotiated>, Refused> {
        let rest = self
            .answers
            .split_off(self.answers.len().min(SEGMENT_BYTES_MAX));
        let piece = std::mem::replace(&mut self.answers, rest);
        let continues = !self.answers.is_empty();
        let transit = request.transit && !continues && self.security.is_satisfied();
        let complete = transit && request.next_stage == FULL_FEATURE;
        if complete {
            let (initiator, target) = self.who();
            let session = SessionKey {
                initiator,
                isid: request.isid,
                target,
                portal_group: self.portal.portal_group,
            };
            let placed = directory.take_permit(session);
            placed.map_err(|refusal| refused(refusal, initiator, target))?;
        }
        self.respond(request, transit, &piece, continues, out);
        if transit {
            self.stage = request.next_stage;
        }
        Ok(complete.then(|| self.negotiated(request)))
    }

    /// The initiator, and the target that it wants, if any.
    fn who(&self) -> (&str, Option<&str>) {
        let declared = &self.keys.declared;
        let target = declared.target.as_deref().filter(|_| !declared.discovery);
        (declared.initiator.as_deref().unwrap_or_default(), target)
    }

    fn negotiated(&mut self, request: &request::Login) -> Negotiated {
        let declared = std::mem::take(&mut self.keys.declared);
        Negotiated {
            admission: Admission {
                initiator: declared.initiator.unwrap_or_default(),
                account: self.security.proved(),
                portal: self.portal,
            },
            initiator_alias: declared.alias,
            target: declared.target.filter(|_| !declared.discovery),
            isid: request.isid,
            tsih: self.tsih,
            cid: request.cid,
            parameters: self.keys.agreed(),
            cmd_sn: request.cmd_sn,
            stat_sn: self.stat_sn,
        }
    }

    fn respond(
        &mut self,
        request: &request::Login,
        transit: bool,
        text: &[u8],
        continues: bool,
        out: &mut Vec<u8>,
    ) {
        let complete = transit && request.next_stage == FULL_FEATURE;
        let window = if complete {
            self.limits.queue_depth.wrapping_sub(1)
        } else {
            0
        };
        let response = response::Login {
            numbers: Numbers {
                stat_sn: self.stat_sn,
                exp_cmd_sn: request.cmd_sn,
                max_cmd_sn: request.cmd_sn.wrapping_add(window),
            },
            transit,
            continues,
            current_stage: request.current_stage,
            next_stage: if transit { request.next_stage } else { 0 },
            version_max: 0,
            version_active: 0,
            isid: request.isid,
            tsih: if complete { self.tsih } else { request.tsih },
            task_tag: request.task_tag,
            status_class: 0,
            status_detail: 0,
        };
        self.stat_sn = self.stat_sn.wrapping_add(1);
        let mut bhs = Response::Login(response).encode();
        pdu::set_data_segment_bytes(&mut bhs, text.len());
        out.extend_from_slice(&bhs);
        out.extend_from_slice(text);
        out.resize(out.len() + pdu::padding_bytes(text.len()), 0);
    }

    /// Tells a peer that speaks iSCSI why it is refused, and ends.
    fn refuse(&mut self, bhs: &Bhs, refused: Refused, out: &mut Vec<u8>) -> LoginProgress {
        self.ended = true;
        let (status, reason) = refused;
        if let (opcodes::LOGIN, Some(Request::Login(request))) =
            (pdu::opcode(bhs), Request::parse(bhs))
        {
            out.extend_from_slice(&refusal_of(&request, self.stat_sn, status));
        }
        close(&reason)
    }
}

fn refused(refusal: Refusal, initiator: &str, target: Option<&str>) -> Refused {
    let place = target.unwrap_or("discovery");
    let why = match refusal {
        Refusal::NotFound => "there is no such target, or its export does not admit this initiator",
        Refusal::Forbidden => "this initiator may not log in there",
        Refusal::Unavailable => "the target is withheld, or the array is stopping",
        Refusal::OutOfResources => "there are too many sessions",
    };
    let why = format!("{initiator} is refused at {place}: {why}");
    (status_of(refusal), why)
}

/// A response that ends the login.
fn refusal_of(request: &request::Login, stat_sn: u32, status: Status) -> Bhs {
    let (status_class, status_detail) = status;
    let response = response::Login {
        numbers: Numbers {
            stat_sn,
            exp_cmd_sn: request.cmd_sn,
            max_cmd_sn: request.cmd_sn,
        },
        transit: false,
        continues: false,
        current_stage: request.current_stage,
        next_stage: 0,
        version_max: 0,
        version_active: 0,
        isid: request.isid,
        tsih: request.tsih,
        task_tag: request.task_tag,
        status_class,
        status_detail,
    };
    Response::Login(response).encode()
}

fn close(reason: &str) -> LoginProgress {
    LoginProgress::Close {
        reason: reason.to_owned(),
    }
}
