//! Login and full-feature phase under arbitrary bytes and an arbitrary owner.
//!
//! The input is a byte of options, then steps: a step is one byte that says what,
//! and what it needs. So a fuzzer finds its way past CmdSN and lengths, and can
//! still send any bytes at all. Checked at every step: nothing panics, answers are
//! well formed, memory stays within the limits.

#![no_main]

use base::checksum::crc32c_of;
use base::{BufPool, Payload};
use iscsi::chap::{Account, Algorithm, Challenge, Chap, RANDOM_BYTES};
use iscsi::connection::{Completion, Connection, Event, TaskId};
use iscsi::login::{
    Admission, Limits, Login, LoginPortal, LoginProgress, Negotiated, Parameters, Refusal,
    TargetDirectory, VisibleTarget,
};
use iscsi::pdu::{self, BHS_BYTES, Bhs, DIGEST_BYTES, NO_TAG, Response};
use libfuzzer_sys::fuzz_target;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

const TARGET: &str = "iqn.2026-11.dev.ashlar:disk";

const LIMITS: Limits = Limits {
    max_recv_data_segment_bytes: 8192,
    max_text_bytes: 4096,
    queue_depth: 4,
    first_burst_bytes: 1024,
    max_burst_bytes: 2048,
    max_transfer_bytes: 8192,
    solicited_bytes: 4096,
};

/// Tasks that may hold a buffer: the window, and immediate commands.
const BUFFERS_MAX: usize = LIMITS.queue_depth as usize + 16;

struct Directory;

impl TargetDirectory for Directory {
    fn admit(
        &self,
        _initiator: &str,
        target: Option<&str>,
        _portal: &LoginPortal,
    ) -> Result<Option<Arc<Account>>, Refusal> {
        match target {
            None | Some(TARGET) => Ok(None),
            Some(_) => Err(Refusal::NotFound),
        }
    }

    fn visible(&self, _initiator: &str, _portal: &LoginPortal) -> Vec<VisibleTarget> {
        let portals = vec![(SocketAddr::from((Ipv4Addr::LOCALHOST, 3260)), 1)];
        (0..40)
            .map(|_| VisibleTarget {
                name: TARGET.into(),
                portals: portals.clone(),
            })
            .collect()
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&options, steps)) = bytes.split_first() else {
        return;
    };
    if options & 0x80 != 0 {
        if let Some((negotiated, rest)) = log_in(steps) {
            run(negotiated, &[], &rest);
        }
    } else {
        run(negotiated(options), steps, &[]);
    }
});

fn log_in(bytes: &[u8]) -> Option<(Negotiated, Vec<u8>)> {
    let mut login = Login::new(
        portal(),
        1,
        LIMITS,
        Chap {
            algorithms: Algorithm::ALL.to_vec(),
            challenge: Challenge::from_random([7; RANDOM_BYTES]),
        },
    );
    let (mut input, mut out) = (Vec::new(), Vec::new());
    let mut chunks = bytes.chunks(300);
    while let Some(chunk) = chunks.next() {
        input.extend_from_slice(chunk);
        match login.receive(&mut input, &Directory, &mut out) {
            LoginProgress::More => {}
            LoginProgress::Done(negotiated) => {
                chunks.for_each(|chunk| input.extend_from_slice(chunk));
                check_answers(&Parameters::default(), &out);
                return Some((*negotiated, input));
            }
            LoginProgress::Close { .. } => break,
        }
        assert!(
            input.len() < BHS_BYTES + 8192 + 300,
            "whole PDUs are consumed"
        );
    }
    check_answers(&Parameters::default(), &out);
    None
}

fn portal() -> LoginPortal {
    LoginPortal {
        portal_group: 1,
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 3260)),
    }
}

fn negotiated(options: u8) -> Negotiated {
    let set = |bit: u8| options & (1 << bit) != 0;
    Negotiated {
        admission: Admission {
            initiator: "iqn.2026-11.org.example:host".into(),
            account: None,
            portal: portal(),
        },
        initiator_alias: None,
        target: (!set(5)).then(|| TARGET.into()),
        isid: [0; 6],
        tsih: 1,
        cid: 0,
        parameters: Parameters {
            header_digest: set(0),
            data_digest: set(1),
            initial_r2t: set(2),
            immediate_data: !set(3),
            peer_max_recv_data_segment_bytes: 512,
            max_burst_bytes: LIMITS.max_burst_bytes,
            first_burst_bytes: LIMITS.first_burst_bytes,
            max_outstanding_r2t: if set(4) { 3 } else { 1 },
        },
        cmd_sn: u32::MAX - 2,
        stat_sn: 0,
    }
}

/// The owner and the peer of one connection.
struct Run<'a> {
    connection: Connection,
    parameters: Parameters,
    pool: BufPool,
    steps: &'a [u8],
    cmd_sn: u32,
    /// Target transfer tag that the target gave last.
    target_tag: u32,
    tasks: Vec<TaskId>,
    ended: bool,
}

fn run(negotiated: Negotiated, steps: &[u8], raw: &[u8]) {
    let pool = BufPool::new();
    let (parameters, cmd_sn) = (negotiated.parameters.clone(), negotiated.cmd_sn);
    let connection = Connection::new(negotiated, pool.clone(), LIMITS);
    let (tasks, target_tag) = (Vec::new(), NO_TAG);
    let mut run = Run {
        connection,
        parameters,
        pool,
        steps,
        cmd_sn,
        target_tag,
        tasks,
        ended: false,
    };
    for piece in raw.chunks(700) {
        run.connection.receive(piece);
        run.settle();
    }
    while let Some(step) = run.byte() {
        run.step(step);
        run.settle();
    }
    let pool = run.pool.clone();
    drop(run);
    assert_eq!(pool.outstanding_bytes(), 0, "buffers come back");
}

impl Run<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.steps.split_first()?;
        self.steps = rest;
        Some(*first)
    }

    fn take(&mut self, len: usize) -> &[u8] {
        let (taken, rest) = self.steps.split_at(len.min(self.steps.len()));
        self.steps = rest;
        taken
    }

    fn step(&mut self, step: u8) {
        let argument = self.byte().unwrap_or(0);
        let task = self
            .tasks
            .get(usize::from(argument) % self.tasks.len().max(1))
            .copied();
        match (step % 13, task) {
            (0, _) => {
                let bytes = self.take(usize::from(argument)).to_vec();
                self.connection.receive(&bytes);
            }
            (1..=5, _) => self.send_pdu(argument, step),
            (6, Some(task)) => self.connection.accept(task, u64::from(argument) * 64),
            (7, Some(task)) => self.complete(task, argument),
            (8, Some(task)) => self.connection.abort(task),
            (9, Some(task)) => self.connection.managed(task, argument),
            (10, _) => self
                .connection
                .answer_targets(&Directory.visible("", &portal())),
            (11, _) => drop(self.connection.nop_in()),
            (12, _) => self.connection.announce_drop(),
            _ => self.connection.request_logout(1),
        }
    }

    /// Sends a PDU with header bytes from the input, made right where chance would
    /// take too long: CmdSN, lengths, the target's tag, digests.
    fn send_pdu(&mut self, shape: u8, step: u8) {
        let mut bhs: Bhs = [0; BHS_BYTES];
        let header = self.take(BHS_BYTES - 8).to_vec();
        bhs[..2].copy_from_slice(&[header.first().copied().unwrap_or(0), shape]);
        bhs[8..8 + header.len()].copy_from_slice(&header);
        // Few tags, so that they meet; short expected lengths.
        bhs[16..20].copy_from_slice(&[0, 0, 0, header.get(8).copied().unwrap_or(0) % 8]);
        if step != 1 {
            bhs[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
            bhs[20..22].fill(0);
        }
        if step == 2 {
            bhs[20..24].copy_from_slice(&self.target_tag.to_be_bytes());
            bhs[36..42].fill(0);
        }
        if step == 3 {
            bhs[20..24].fill(0xff);
            bhs[36..42].fill(0);
        }
        let len = usize::from(header.last().copied().unwrap_or(0)) * 8;
        let data = vec![step; len];
        let mut bytes = self.framed(bhs, &data);
        if step == 4 {
            let at = usize::from(shape) % bytes.len();
            bytes[at] ^= 0x20;
        }
        let half = bytes.len() / 2;
        self.connection.receive(&bytes[..half]);
        self.connection.receive(&bytes[half..]);
        if bhs[0] & 0x40 == 0 {
            self.cmd_sn = self.cmd_sn.wrapping_add(1);
        }
    }

    fn framed(&self, mut bhs: Bhs, data: &[u8]) -> Vec<u8> {
        pdu::set_data_segment_bytes(&mut bhs, data.len());
        let mut bytes = bhs.to_vec();
        if self.parameters.header_digest {
            bytes.extend(crc32c_of([&bhs[..]]).to_le_bytes());
        }
        let mut segment = data.to_vec();
        segment.resize(data.len() + pdu::padding_bytes(data.len()), 0);
        bytes.extend(&segment);
        if self.parameters.data_digest && !data.is_empty() {
            bytes.extend(crc32c_of([&segment[..]]).to_le_bytes());
        }
        bytes
    }

    fn complete(&mut self, task: TaskId, argument: u8) {
        let data = self.pool.bytes(usize::from(argument) * 16).freeze();
        let sense = if argument & 1 == 0 {
            vec![]
        } else {
            vec![0x70; 18]
        };
        let status = if sense.is_empty() { 0 } else { 2 };
        let wanted_bytes = u64::from(argument) * 32;
        let completion = Completion {
            status,
            sense,
            descriptor_sense: argument & 2 != 0,
            data: Payload::from(data),
            wanted_bytes,
        };
        self.connection.complete(task, completion);
    }

    fn settle(&mut self) {
        while let Some(event) = self.connection.next_event() {
            assert!(!self.ended, "{event:?} after the end");
            match event {
                Event::Command { task, .. } | Event::TaskManagement { task, .. } => {
                    self.tasks.push(task);
                }
                Event::DataOut { data, .. } => {
                    assert!(data.len() <= LIMITS.max_transfer_bytes as usize);
                }
                Event::Dropped { task } => self.tasks.retain(|known| *known != task),
                Event::SendTargets { .. } => {}
                Event::Close { .. } => self.ended = true,
            }
        }
        let held = self.connection.tasks().count();
        assert!(held <= BUFFERS_MAX, "{held} commands in progress");
        let mut known = std::mem::take(&mut self.tasks);
        known.truncate(known.len().min(64));
        self.tasks = known;
        self.drain();
        let most = BUFFERS_MAX * LIMITS.max_transfer_bytes as usize;
        assert!(
            self.pool.outstanding_bytes() <= most,
            "{:?}",
            self.pool.outstanding_bytes()
        );
    }

    fn drain(&mut self) {
        let output = self.connection.output();
        let mut iov = Vec::new();
        output.slices(&mut iov, usize::MAX);
        let sent: Vec<u8> = iov.iter().flat_map(|run| run.iter().copied()).collect();
        assert_eq!(sent.len(), output.len());
        output.advance(sent.len());
        if let Some(tag) = check_answers(&self.parameters, &sent) {
            self.target_tag = tag;
        }
    }
}

/// Checks that whole PDUs of a target are there; gives the last target tag.
fn check_answers(parameters: &Parameters, mut bytes: &[u8]) -> Option<u32> {
    let mut tag = None;
    while !bytes.is_empty() {
        let bhs = bytes.first_chunk::<BHS_BYTES>().expect("a whole header");
        let response = Response::parse(bhs).expect("a target's opcode");
        assert_eq!(response.encode()[..4], bhs[..4], "no reserved bits");
        match response {
            Response::ReadyToTransfer(pdu) => tag = Some(pdu.target_tag),
            Response::Text(pdu) if pdu.target_tag != NO_TAG => tag = Some(pdu.target_tag),
            Response::NopIn(pdu) if pdu.target_tag != NO_TAG => tag = Some(pdu.target_tag),
            _ => {}
        }
        let len = pdu::data_segment_bytes(bhs);
        let header_digest = if parameters.header_digest {
            DIGEST_BYTES
        } else {
            0
        };
        let data_digest = if parameters.data_digest && len > 0 {
            DIGEST_BYTES
        } else {
            0
        };
        let whole = BHS_BYTES + header_digest + len + pdu::padding_bytes(len) + data_digest;
        bytes = bytes.get(whole..).expect("a whole PDU");
    }
    tag
}
