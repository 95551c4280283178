//! The initiator's side, sans-IO, as far as tests need it.
#![allow(dead_code, reason = "each test program uses its own part")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

use base::checksum::crc32c_of;
use base::{BufPool, Payload};
use iscsi::chap::{Account, Algorithm, Challenge, Chap, Credential, RANDOM_BYTES, Secret};
use iscsi::connection::{Completion, Connection, Event, TaskId};
use iscsi::login::{
    Admission, Limits, Login, LoginPortal, LoginProgress, Negotiated, Parameters, Refusal,
    SessionKey, TargetDirectory, VisibleTarget,
};
use iscsi::pdu::request::{self, Order};
use iscsi::pdu::{self, BHS_BYTES, Bhs, NO_TAG, Request, Response};
use std::sync::Arc;

pub const INITIATOR: &str = "iqn.2026-11.org.example:host";
pub const TARGET: &str = "iqn.2026-11.dev.ashlar:disk";

/// What has to be proved at two of the targets.
pub fn account(mutual: bool) -> Arc<Account> {
    let credential = |name: &str, secret: &str| Credential {
        name: name.to_owned(),
        secret: Secret::new(secret.as_bytes()).unwrap(),
    };
    let ours = credential("the-target", "secret-of-the-target");
    Arc::new(Account {
        initiator: credential("the-host", "secret-of-the-host"),
        mutual: mutual.then_some(ours),
    })
}

/// All algorithms, and a challenge that tests foresee.
pub fn chap() -> Chap {
    let mut random = [0xab; RANDOM_BYTES];
    random[0] = 200;
    Chap {
        algorithms: Algorithm::ALL.to_vec(),
        challenge: Challenge::from_random(random),
    }
}

/// Knows a few targets; refuses others in every way there is.
pub struct Directory;

impl TargetDirectory for Directory {
    fn admit(
        &self,
        _initiator: &str,
        target: Option<&str>,
        _portal: &LoginPortal,
    ) -> Result<Option<Arc<Account>>, Refusal> {
        match target.map(|target| target.rsplit(':').next().unwrap()) {
            None | Some("disk" | "full") => Ok(None),
            Some("safe") => Ok(Some(account(false))),
            Some("mutual") => Ok(Some(account(true))),
            Some("forbidden") => Err(Refusal::Forbidden),
            Some("later") => Err(Refusal::Unavailable),
            Some(_) => Err(Refusal::NotFound),
        }
    }

    fn take_permit(&self, session: SessionKey<'_>) -> Result<(), Refusal> {
        assert_eq!(
            (session.initiator, session.isid),
            (INITIATOR, [0x40, 0, 0, 1, 0, 0])
        );
        match session.target {
            Some("iqn.2026-11.dev.ashlar:full") => Err(Refusal::OutOfResources),
            _ => Ok(()),
        }
    }

    fn visible(&self, _initiator: &str, _portal: &LoginPortal) -> Vec<VisibleTarget> {
        visible()
    }
}

pub fn visible() -> Vec<VisibleTarget> {
    let portals = vec![
        ("127.0.0.1:3260".parse().unwrap(), 1),
        ("[::1]:3261".parse().unwrap(), 2),
    ];
    let other = "iqn.2026-11.dev.ashlar:other".to_owned();
    vec![
        VisibleTarget {
            name: TARGET.into(),
            portals: portals.clone(),
        },
        VisibleTarget {
            name: other,
            portals: portals[..1].to_vec(),
        },
    ]
}

pub fn portal() -> LoginPortal {
    LoginPortal {
        portal_group: 1,
        address: "127.0.0.1:3260".parse().unwrap(),
    }
}

/// A PDU as bytes, without digests.
pub fn bytes_of(bhs: Bhs, data: &[u8]) -> Vec<u8> {
    bytes_with(&Parameters::default(), bhs, data)
}

/// A PDU as bytes, with the digests that `parameters` ask for.
pub fn bytes_with(parameters: &Parameters, mut bhs: Bhs, data: &[u8]) -> Vec<u8> {
    pdu::set_data_segment_bytes(&mut bhs, data.len());
    let mut bytes = bhs.to_vec();
    if parameters.header_digest {
        bytes.extend(crc32c_of([&bhs[..]]).to_le_bytes());
    }
    let mut segment = data.to_vec();
    segment.resize(data.len() + pdu::padding_bytes(data.len()), 0);
    bytes.extend(&segment);
    if parameters.data_digest && !data.is_empty() {
        bytes.extend(crc32c_of([&segment[..]]).to_le_bytes());
    }
    bytes
}

/// A PDU from the target.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub response: Response,
    pub data: Vec<u8>,
}

/// Splits what the target sent, checking digests and padding.
pub fn answers_in(parameters: &Parameters, mut bytes: &[u8]) -> Vec<Answer> {
    let mut answers = Vec::new();
    while !bytes.is_empty() {
        let bhs = *bytes
            .first_chunk::<BHS_BYTES>()
            .expect("whole headers are sent");
        let mut take = |len: usize| {
            let (taken, rest) = bytes.split_at(len);
            bytes = rest;
            taken
        };
        take(BHS_BYTES);
        assert_eq!(pdu::ahs_bytes(&bhs), 0);
        if parameters.header_digest {
            assert_eq!(take(4), crc32c_of([&bhs[..]]).to_le_bytes());
        }
        let len = pdu::data_segment_bytes(&bhs);
        let segment = take(len + pdu::padding_bytes(len));
        assert!(
            segment[len..].iter().all(|byte| *byte == 0),
            "padding is zero"
        );
        if parameters.data_digest && len > 0 {
            assert_eq!(take(4), crc32c_of([segment]).to_le_bytes());
        }
        let response = Response::parse(&bhs).expect("a target's opcode");
        answers.push(Answer {
            response,
            data: segment[..len].to_vec(),
        });
    }
    answers
}

pub fn login_request(stage: u8, next: u8, transit: bool) -> request::Login {
    request::Login {
        transit,
        continues: false,
        current_stage: stage,
        next_stage: next,
        version_max: 0,
        version_min: 0,
        isid: [0x40, 0, 0, 1, 0, 0],
        tsih: 0,
        task_tag: 7,
        cid: 3,
        cmd_sn: 100,
        exp_stat_sn: 0,
    }
}

pub fn text_of(pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut text = Vec::new();
    pairs
        .iter()
        .for_each(|(key, value)| iscsi::text::push(&mut text, key, value));
    text
}

/// Feeds one login request and gives its answers.
pub fn log_in(
    login: &mut Login,
    request: request::Login,
    pairs: &[(&str, &str)],
) -> (LoginProgress, Vec<Answer>) {
    let mut input = bytes_of(Request::Login(request).encode(), &text_of(pairs));
    let mut out = Vec::new();
    let progress = login.receive(&mut input, &Directory, &mut out);
    (progress, answers_in(&Parameters::default(), &out))
}

pub fn negotiated(parameters: Parameters) -> Negotiated {
    Negotiated {
        admission: Admission {
            initiator: INITIATOR.into(),
            account: None,
            portal: portal(),
        },
        initiator_alias: None,
        target: Some(TARGET.into()),
        isid: [0x40, 0, 0, 1, 0, 0],
        tsih: 1,
        cid: 3,
        parameters,
        cmd_sn: 100,
        stat_sn: 10,
    }
}

/// A connection and the initiator at its other end.
pub struct Session {
    pub connection: Connection,
    pub parameters: Parameters,
    pub cmd_sn: u32,
    pub pool: BufPool,
}

impl Session {
    pub fn new() -> Session {
        Session::with(Parameters::default(), Limits::default())
    }

    pub fn with(parameters: Parameters, limits: Limits) -> Session {
        Session::from(negotiated(parameters), limits)
    }

    pub fn discovery() -> Session {
        let negotiated = Negotiated {
            target: None,
            ..negotiated(Parameters::default())
        };
        Session::from(negotiated, Limits::default())
    }

    pub fn from(negotiated: Negotiated, limits: Limits) -> Session {
        let pool = BufPool::new();
        let (parameters, cmd_sn) = (negotiated.parameters.clone(), negotiated.cmd_sn);
        let connection = Connection::new(negotiated, pool.clone(), limits);
        Session {
            connection,
            parameters,
            cmd_sn,
            pool,
        }
    }

    /// The next place in the order of commands.
    pub fn order(&mut self) -> Order {
        self.cmd_sn = self.cmd_sn.wrapping_add(1);
        Order {
            immediate: false,
            cmd_sn: self.cmd_sn.wrapping_sub(1),
            exp_stat_sn: 0,
        }
    }

    pub fn immediate(&self) -> Order {
        Order {
            immediate: true,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: 0,
        }
    }

    pub fn send(&mut self, request: Request, data: &[u8]) {
        let bytes = bytes_with(&self.parameters, request.encode(), data);
        self.connection.receive(&bytes);
    }

    pub fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.connection.next_event()).collect()
    }

    pub fn event(&mut self) -> Event {
        let mut events = self.events();
        assert_eq!(events.len(), 1, "{events:?}");
        events.remove(0)
    }

    /// All that the target has sent since the last call.
    pub fn answers(&mut self) -> Vec<Answer> {
        let sent = self.sent();
        answers_in(&self.parameters, &sent)
    }

    pub fn answer(&mut self) -> Answer {
        let mut answers = self.answers();
        assert_eq!(answers.len(), 1, "{answers:?}");
        answers.remove(0)
    }

    pub fn sent(&mut self) -> Vec<u8> {
        let output = self.connection.output();
        let mut iov = Vec::new();
        output.slices(&mut iov, usize::MAX);
        let sent: Vec<u8> = iov.iter().flat_map(|run| run.iter().copied()).collect();
        assert_eq!(sent.len(), output.len());
        output.advance(sent.len());
        sent
    }

    /// Sends a read and gives its task.
    pub fn read(&mut self, task_tag: u32, expected_bytes: u32) -> TaskId {
        let command = read_command(self.order(), task_tag, expected_bytes);
        self.send(Request::ScsiCommand(command), &[]);
        self.command_task()
    }

    /// Sends a write with immediate data and gives its task.
    pub fn write(
        &mut self,
        task_tag: u32,
        expected_bytes: u32,
        immediate: &[u8],
        is_final: bool,
    ) -> TaskId {
        let command = write_command(self.order(), task_tag, expected_bytes, is_final);
        self.send(Request::ScsiCommand(command), immediate);
        self.command_task()
    }

    pub fn command_task(&mut self) -> TaskId {
        match self.event() {
            Event::Command { task, .. } => task,
            event => panic!("a command was sent, {event:?} came"),
        }
    }

    pub fn data_out(&mut self, pdu: request::DataOut, data: &[u8]) {
        self.send(Request::DataOut(pdu), data);
    }

    pub fn complete_good(&mut self, task: TaskId, data: &[u8], wanted_bytes: u64) {
        let data = Payload::from(self.pool.copy_of(data).freeze());
        let completion = Completion {
            data,
            wanted_bytes,
            ..Completion::default()
        };
        self.connection.complete(task, completion);
    }
}

pub fn read_command(order: Order, task_tag: u32, expected_bytes: u32) -> request::ScsiCommand {
    request::ScsiCommand {
        order,
        is_final: true,
        read: true,
        write: false,
        attribute: 1,
        lun: [0, 1, 0, 0, 0, 0, 0, 0],
        task_tag,
        expected_bytes,
        cdb: [0x28, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0],
    }
}

pub fn write_command(
    order: Order,
    task_tag: u32,
    expected_bytes: u32,
    is_final: bool,
) -> request::ScsiCommand {
    let read = read_command(order, task_tag, expected_bytes);
    request::ScsiCommand {
        is_final,
        read: false,
        write: true,
        ..read
    }
}

pub fn unsolicited(task_tag: u32, data_sn: u32, offset: u32, is_final: bool) -> request::DataOut {
    let target_tag = NO_TAG;
    request::DataOut {
        is_final,
        lun: [0; 8],
        task_tag,
        target_tag,
        exp_stat_sn: 0,
        data_sn,
        offset,
    }
}

pub fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

pub fn nop(order: Order, task_tag: u32, target_tag: u32) -> Request {
    Request::NopOut(request::NopOut {
        order,
        lun: [0; 8],
        task_tag,
        target_tag,
    })
}

pub fn rejected(session: &mut Session) -> (u8, Vec<u8>) {
    let answer = session.answer();
    match answer.response {
        Response::Reject(pdu) => (pdu.reason, answer.data),
        other => panic!("{other:?} instead of a reject"),
    }
}

pub fn assert_closed(session: &mut Session) {
    let event = session.event();
    assert!(matches!(event, Event::Close { .. }), "{event:?}");
    let order = session.order();
    session.send(nop(order, 1, NO_TAG), &[]);
    assert!(session.events().is_empty() && session.answers().is_empty());
    assert!(!session.connection.takes_input() && !session.connection.nop_in());
    session.connection.request_logout(1);
    session.connection.answer_targets(&visible());
    assert!(session.answers().is_empty());
}
