//! Writes the kept corpus: one small file per kind of PDU, whole sessions, and copies.
//! Run as `cargo run --manifest-path fuzz/Cargo.toml --example seeds`.

use iscsi::pdu::request::{
    DataOut, Login, Logout, NopOut, Order, ScsiCommand, Snack, TaskManagement, Text,
};
use iscsi::pdu::response::{self, Numbers, Residual};
use iscsi::pdu::{self, BHS_BYTES, Bhs, NO_TAG, Request, Response};
use iscsi::text;
use std::path::Path;

const ORDER: Order = Order {
    immediate: false,
    cmd_sn: u32::MAX - 2,
    exp_stat_sn: 0,
};
const IMMEDIATE: Order = Order {
    immediate: true,
    ..ORDER
};
const LUN: [u8; 8] = [0; 8];

/// A PDU as bytes, without digests.
fn bytes_of(mut bhs: Bhs, data: &[u8]) -> Vec<u8> {
    pdu::set_data_segment_bytes(&mut bhs, data.len());
    let mut bytes = [&bhs[..], data].concat();
    bytes.resize(bytes.len() + pdu::padding_bytes(data.len()), 0);
    bytes
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    pairs
        .iter()
        .for_each(|(key, value)| text::push(&mut bytes, key, value));
    bytes
}

fn command(order: Order, write: bool, tag: u32) -> Request {
    let mut cdb = [0; 16];
    cdb[0] = if write { 0x2a } else { 0x28 };
    cdb[8] = 2;
    Request::ScsiCommand(ScsiCommand {
        order,
        is_final: true,
        read: !write,
        write,
        attribute: 1,
        lun: LUN,
        task_tag: tag,
        expected_bytes: 1024,
        cdb,
    })
}

fn login(stage: u8, next: u8) -> Request {
    Request::Login(Login {
        transit: true,
        continues: false,
        current_stage: stage,
        next_stage: next,
        version_max: 0,
        version_min: 0,
        isid: [0x80, 1, 2, 3, 0, 0],
        tsih: 0,
        task_tag: 1,
        cid: 0,
        cmd_sn: ORDER.cmd_sn,
        exp_stat_sn: 0,
    })
}

fn requests() -> Vec<(&'static str, Request, Vec<u8>)> {
    let unsolicited = DataOut {
        is_final: true,
        lun: LUN,
        task_tag: 2,
        target_tag: NO_TAG,
        exp_stat_sn: 0,
        data_sn: 0,
        offset: 0,
    };
    let text = |order| Text {
        order,
        is_final: true,
        continues: false,
        lun: LUN,
        task_tag: 3,
        target_tag: NO_TAG,
    };
    let abort = TaskManagement {
        order: IMMEDIATE,
        function: 1,
        lun: LUN,
        task_tag: 4,
        referenced_tag: 1,
        referenced_cmd_sn: ORDER.cmd_sn,
        exp_data_sn: 0,
    };
    let nop = |order| NopOut {
        order,
        lun: LUN,
        task_tag: 5,
        target_tag: NO_TAG,
    };
    let snack = Snack {
        kind: 0,
        lun: LUN,
        task_tag: 1,
        target_tag: 2,
        exp_stat_sn: 3,
        begin: 4,
        run_length: 5,
    };
    let logout = Logout {
        order: ORDER,
        reason: 0,
        task_tag: 6,
        cid: 0,
    };
    vec![
        ("read", command(ORDER, false, 1), vec![]),
        ("read-immediate", command(IMMEDIATE, false, 1), vec![]),
        ("write", command(ORDER, true, 2), vec![7; 512]),
        ("data-out", Request::DataOut(unsolicited), vec![7; 512]),
        (
            "text",
            Request::Text(text(ORDER)),
            pairs(&[("SendTargets", "All")]),
        ),
        (
            "text-own",
            Request::Text(text(IMMEDIATE)),
            pairs(&[("SendTargets", ""), ("X-a", "b")]),
        ),
        ("abort-task", Request::TaskManagement(abort), vec![]),
        (
            "lun-reset",
            Request::TaskManagement(TaskManagement {
                function: 5,
                ..abort
            }),
            vec![],
        ),
        ("nop-out", Request::NopOut(nop(ORDER)), b"ping".to_vec()),
        ("nop-out-immediate", Request::NopOut(nop(IMMEDIATE)), vec![]),
        ("snack", Request::Snack(snack), vec![]),
        ("logout", Request::Logout(logout), vec![]),
        ("login", login(0, 1), login_keys()),
    ]
}

fn login_keys() -> Vec<u8> {
    pairs(&[
        ("InitiatorName", "iqn.2026-11.org.example:host"),
        ("TargetName", "iqn.2026-11.dev.ashlar:disk"),
        ("SessionType", "Normal"),
        ("AuthMethod", "None"),
    ])
}

fn operational_keys() -> Vec<u8> {
    pairs(&[
        ("HeaderDigest", "None,CRC32C"),
        ("DataDigest", "None"),
        ("InitialR2T", "No"),
        ("ImmediateData", "Yes"),
        ("MaxBurstLength", "262144"),
        ("FirstBurstLength", "65536"),
        ("MaxRecvDataSegmentLength", "262144"),
        ("MaxOutstandingR2T", "1"),
        ("ErrorRecoveryLevel", "0"),
    ])
}

fn responses() -> Vec<(&'static str, Response)> {
    let numbers = Numbers {
        stat_sn: 1,
        exp_cmd_sn: 2,
        max_cmd_sn: 3,
    };
    let nop = response::NopIn {
        numbers,
        lun: LUN,
        task_tag: 1,
        target_tag: NO_TAG,
    };
    let scsi = response::ScsiResponse {
        numbers,
        response: 0,
        status: 2,
        residual: Residual::Over(4),
        bidirectional_residual: Residual::Under(5),
        task_tag: 1,
        snack_tag: 0,
        exp_data_sn: 6,
    };
    let data = response::DataIn {
        numbers,
        is_final: true,
        acknowledge: false,
        status: Some((0, Residual::Under(7))),
        lun: LUN,
        task_tag: 1,
        target_tag: NO_TAG,
        data_sn: 8,
        offset: 9,
    };
    let reject = response::Reject {
        numbers,
        reason: 4,
        data_sn: 0,
    };
    vec![
        ("nop-in", Response::NopIn(nop)),
        ("scsi-response", Response::ScsiResponse(scsi)),
        ("data-in", Response::DataIn(data)),
        ("reject", Response::Reject(reject)),
    ]
}

/// The step of the session target that sends this PDU (see its `send_pdu`).
fn step(kind: u8, request: &Request, data_words: u8) -> Vec<u8> {
    let bhs = request.encode();
    let mut header = bhs[8..].to_vec();
    header[0] = bhs[0];
    header[BHS_BYTES - 9] = data_words;
    [&[kind, bhs[1]][..], &header].concat()
}

fn sessions() -> Vec<(&'static str, Vec<u8>)> {
    let read = step(5, &command(ORDER, false, 1), 0);
    let write = step(5, &command(ORDER, true, 2), 64);
    let whole = bytes_of(command(ORDER, false, 1).encode(), &[]);
    let raw = [&[0, whole.len() as u8][..], &whole].concat();
    let mut login_bytes = bytes_of(login(0, 1).encode(), &login_keys());
    login_bytes.extend(bytes_of(login(1, 3).encode(), &operational_keys()));
    for (_, request, data) in requests() {
        login_bytes.extend(bytes_of(request.encode(), &data));
    }
    let all: Vec<u8> = requests()
        .iter()
        .flat_map(|(_, request, _)| step(5, request, 2))
        .collect();
    let text_and_answer = [step(3, &requests()[4].1, 0), vec![10, 0]].concat();
    let logout = step(5, &requests()[11].1, 0);
    let data_out = step(2, &requests()[3].1, 64);
    vec![
        ("login", [&[0x80][..], &login_bytes].concat()),
        ("read", [&[0][..], &read, &[7, 64]].concat()),
        ("read-digests", [&[3][..], &read, &[7, 64]].concat()),
        ("read-raw", [&[0][..], &raw, &[7, 65]].concat()),
        (
            "write",
            [&[4][..], &write, &[6, 16], &data_out, &[7, 64]].concat(),
        ),
        (
            "write-digests",
            [&[7][..], &write, &[6, 16], &data_out, &[7, 64]].concat(),
        ),
        (
            "write-aborted",
            [&[4][..], &write, &[6, 16, 8, 0], &data_out].concat(),
        ),
        ("discovery", [&[0x20][..], &text_and_answer].concat()),
        (
            "ping-and-logout",
            [&[0][..], &[11, 0, 24, 0], &all].concat(),
        ),
        (
            "accept-after-logout",
            [&[4][..], &write, &logout, &[6, 0]].concat(),
        ),
        ("all", [&[0][..], &all].concat()),
    ]
}

/// Rounds of the login target: options, then pieces of text (see its `Round`).
fn logins() -> Vec<(&'static str, Vec<u8>)> {
    // Pieces: 1 names, 2 AuthMethod=CHAP, 3 AuthMethod=None, 4 CHAP_A, 5 CHAP_N, 6 the right
    // CHAP_R, 7 a challenge of ours, 8 the challenge that came, 9 any bytes, 0 the end.
    let names = [0x00, 1, 2, 0];
    let algorithm = [0x00, 4, 0];
    let proof = [0x07, 5, 6, 0];
    let all = |parts: &[&[u8]]| [&[0][..], &parts.concat()].concat();
    let any = [9, 8, b'C', b'H', b'A', b'P', b'_', b'A', b'=', b'5', 0];
    vec![
        ("proved", all(&[&names, &algorithm, &proof])),
        ("mutual", all(&[&names, &algorithm, &[0x07, 5, 6, 7, 0]])),
        ("reflected", all(&[&names, &algorithm, &[0x07, 5, 6, 8, 0]])),
        ("without", all(&[&[0x07, 1, 3, 0]])),
        ("skipped", all(&[&[0x0f, 1, 0]])),
        (
            "continued",
            all(&[&[0x10, 1, 0], &[0x00, 2, 0], &algorithm, &proof]),
        ),
        (
            "any-text",
            all(&[&names, &[0x00], &any, &[0x07, 5, 9, 3, b'a', b'=', b'b', 0]]),
        ),
        ("md5-only", [&[1][..], &names, &algorithm, &proof].concat()),
    ]
}

/// Steps of third-party copies, as the target of that name takes them.
fn copies() -> Vec<(&'static str, Vec<u8>)> {
    // Segments: which units, blocks, from, to.
    let copy = [0, 2, 0b10, 8, 0, 8, 0b00, 30, 0, 5];
    let populate = [1, 2, 0, 16, 40, 9];
    let write = |at: u8, bits: u8| [3, 2, at, bits, 1, 3, 20];
    let tokens = [&populate[..], &[2], &write(0, 0)].concat();
    vec![
        ("copy", copy.to_vec()),
        ("tokens", tokens.clone()),
        ("forged", [&populate[..], &[2], &write(250, 1)].concat()),
        (
            "expired",
            [&populate[..], &[2, 4, 200], &write(0, 0)].concat(),
        ),
        ("any-list", [&[0x45, 8][..], &[0x11; 32]].concat()),
        ("any", [&[7, 0x84, 3][..], &[0; 14], &[1, 2, 3, 4]].concat()),
        ("all", [&copy[..], &tokens, &tokens].concat()),
    ]
}

fn main() -> std::io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for target in ["pdu", "session", "login", "offload"] {
        std::fs::create_dir_all(corpus.join(target))?;
    }
    for (name, request, data) in requests() {
        std::fs::write(
            corpus.join("pdu").join(name),
            bytes_of(request.encode(), &data),
        )?;
    }
    for (name, response) in responses() {
        std::fs::write(corpus.join("pdu").join(name), response.encode())?;
    }
    let extended = [
        &bytes_of(command(ORDER, false, 1).encode(), &[])[..],
        &[0, 5, 2, 0, 0, 0, 2, 0],
    ];
    std::fs::write(
        corpus.join("pdu").join("read-bidirectional"),
        extended.concat(),
    )?;
    for (name, bytes) in sessions() {
        std::fs::write(corpus.join("session").join(name), bytes)?;
    }
    for (name, bytes) in logins() {
        std::fs::write(corpus.join("login").join(name), bytes)?;
    }
    for (name, bytes) in copies() {
        std::fs::write(corpus.join("offload").join(name), bytes)?;
    }
    Ok(())
}
