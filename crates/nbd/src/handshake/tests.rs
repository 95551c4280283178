//! What servers say, and what comes of it.

use super::*;

fn greeting(flags: u16) -> Vec<u8> {
    let mut bytes = INIT_MAGIC.to_be_bytes().to_vec();
    bytes.extend(OPTION_MAGIC.to_be_bytes());
    bytes.extend(flags.to_be_bytes());
    bytes
}

fn reply_to(option: u32, kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = REPLY_MAGIC.to_be_bytes().to_vec();
    bytes.extend(option.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

fn reply(kind: u32, data: &[u8]) -> Vec<u8> {
    reply_to(GO, kind, data)
}

fn export(bytes: u64, flags: u16) -> Vec<u8> {
    let mut data = INFO_EXPORT.to_be_bytes().to_vec();
    data.extend(bytes.to_be_bytes());
    data.extend(flags.to_be_bytes());
    reply(INFO, &data)
}

/// What comes of a server that says all of this; nothing when it says too little.
fn negotiated(extents: bool, parts: &[Vec<u8>]) -> Option<Result<Export, Refusal>> {
    let said = parts.concat();
    let mut rest = said.as_slice();
    let wanted = Wanted {
        export: "disk",
        extents,
    };
    let mut handshake = Handshake::new(wanted).unwrap();
    loop {
        let (next, after) = rest.split_at_checked(handshake.wants_bytes())?;
        rest = after;
        match handshake.feed(next) {
            Ok(None) => {}
            Ok(Some(export)) => return Some(Ok(export)),
            Err(refusal) => return Some(Err(refusal)),
        }
    }
}

#[test]
fn an_export_tells_size_block_and_access() {
    let mut block = INFO_BLOCK_SIZE.to_be_bytes().to_vec();
    block.extend([0, 0, 2, 0, 0, 0, 16, 0, 2, 0, 0, 0]);
    let parts = [
        greeting(3),
        export(1 << 30, 1 | READ_ONLY),
        reply(INFO, &block),
        reply(ACK, &[]),
    ];
    let agreed = negotiated(false, &parts).unwrap().unwrap();
    let wanted = Export {
        size_bytes: 1 << 30,
        block_bytes: 512,
        is_read_only: true,
        has_extents: false,
    };
    assert_eq!(agreed, wanted);
}

#[test]
fn extents_are_there_when_the_server_has_both_options() {
    let structured = |kind| reply_to(STRUCTURED_REPLY, kind, &[]);
    let context = |kind, data: &[u8]| reply_to(SET_META_CONTEXT, kind, data);
    let end = [export(512, 1), reply(ACK, &[])].concat();
    let has_extents = |middle: &[Vec<u8>]| {
        let parts = [greeting(3), middle.concat(), end.clone()];
        negotiated(true, &parts).unwrap().unwrap().has_extents
    };
    let all = [
        structured(ACK),
        context(META_CONTEXT, b"\0\0\0\x01base:allocation"),
        context(ACK, &[]),
    ];
    assert!(has_extents(&all));
    assert!(!has_extents(&[structured(ACK), context(ACK, &[])]));
    assert!(!has_extents(&[structured(ACK), context(ERROR | 1, &[])]));
    assert!(
        !has_extents(&[structured(ERROR | 1)]),
        "nothing more is asked"
    );
}

#[test]
fn the_client_says_what_it_takes_and_wants() {
    let wanted = Wanted {
        export: "disk",
        extents: false,
    };
    let mut handshake = Handshake::new(wanted).unwrap();
    assert_eq!(handshake.take_output(), b"", "the server speaks first");
    handshake.feed(&greeting(0xff)).unwrap();
    let mut asked = 3u32.to_be_bytes().to_vec();
    asked.extend(OPTION_MAGIC.to_be_bytes());
    asked.extend([0, 0, 0, 7, 0, 0, 0, 12, 0, 0, 0, 4]);
    asked.extend(b"disk\0\x01\0\x03");
    assert_eq!(handshake.take_output(), asked);
    let long = "x".repeat(NAME_BYTES_MAX + 1);
    let wanted = Wanted {
        export: &long,
        extents: false,
    };
    assert_eq!(Handshake::new(wanted).unwrap_err().kind, RefusalKind::Name);
}

#[test]
fn what_a_server_refuses_or_breaks_is_told_apart() {
    use RefusalKind::{Absent, Protocol, Refused};
    let cases: [(&[Vec<u8>], RefusalKind); 10] = [
        (&[vec![0x48; 18]], Protocol),
        (&[greeting(0)], Protocol),
        (&[greeting(3), reply(ERROR_UNKNOWN, b"no")], Absent),
        (&[greeting(3), reply(ERROR_TLS_REQUIRED, b"")], Refused),
        (&[greeting(3), reply(ERROR_POLICY, b"")], Refused),
        (&[greeting(3), reply(ACK, &[])], Protocol),
        (&[greeting(3), reply(INFO, &[0])], Protocol),
        (&[greeting(3), reply(2, &[])], Protocol),
        (&[greeting(3), reply_to(8, ACK, &[])], Protocol),
        (&[greeting(3), vec![0; 20]], Protocol),
    ];
    for (index, (parts, kind)) in cases.iter().enumerate() {
        let refusal = negotiated(false, parts).unwrap().unwrap_err();
        assert_eq!(refusal.kind, *kind, "case {index}");
    }
    assert_eq!(negotiated(false, &[greeting(3)]), None, "it waits");
}

#[test]
fn answers_without_end_are_refused() {
    let more = export(512, 1).repeat(REPLIES_MAX as usize + 1);
    let refusal = negotiated(false, &[greeting(3), more]).unwrap();
    assert_eq!(refusal.unwrap_err().kind, RefusalKind::Protocol);
    let mut long = reply(INFO, &[]);
    long[16..].copy_from_slice(&(REPLY_BYTES_MAX + 1).to_be_bytes());
    let refusal = negotiated(false, &[greeting(3), long]).unwrap();
    assert_eq!(refusal.unwrap_err().kind, RefusalKind::Protocol);
}
