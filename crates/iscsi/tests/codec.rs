//! The codec: encoded PDUs parse to equal values, and parsed PDUs encode to equal fields.

#![allow(clippy::expect_used, reason = "tests fail by panicking")]

use iscsi::pdu::request::{self, Order, Request};
use iscsi::pdu::response::{self, Numbers, Residual, Response};
use iscsi::pdu::{BHS_BYTES, Bhs};
use proptest::prelude::*;

fn header() -> impl Strategy<Value = Bhs> {
    proptest::collection::vec(any::<u8>(), BHS_BYTES)
        .prop_map(|bytes| Bhs::try_from(bytes).expect("48 bytes were drawn"))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_header_parses_to_what_its_encoding_parses_to(bhs in header()) {
        if let Some(request) = Request::parse(&bhs) {
            prop_assert_eq!(Request::parse(&request.encode()), Some(request));
        }
        if let Some(response) = Response::parse(&bhs) {
            prop_assert_eq!(Response::parse(&response.encode()), Some(response));
        }
    }
}

/// Fields land where RFC 7143 draws them: one PDU of each kind, written by hand.
#[test]
fn fields_are_where_the_clauses_put_them() {
    let order = Order {
        immediate: true,
        cmd_sn: 0x0102_0304,
        exp_stat_sn: 0x0506_0708,
    };
    let command = request::ScsiCommand {
        order,
        is_final: true,
        read: false,
        write: true,
        attribute: 1,
        lun: [0, 2, 0, 0, 0, 0, 0, 0],
        task_tag: 0x1122_3344,
        expected_bytes: 4096,
        cdb: [0x2a, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    };
    let bytes = Request::ScsiCommand(command).encode();
    assert_eq!(bytes[..4], [0x41, 0xa1, 0, 0]);
    assert_eq!(bytes[8..16], [0, 2, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes[16..24], [0x11, 0x22, 0x33, 0x44, 0, 0, 0x10, 0]);
    assert_eq!(bytes[24..32], [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(bytes[32..], command.cdb);

    let numbers = Numbers {
        stat_sn: 0x0a0b_0c0d,
        exp_cmd_sn: 0x1a1b_1c1d,
        max_cmd_sn: 0x2a2b_2c2d,
    };
    let data_in = response::DataIn {
        numbers,
        is_final: true,
        acknowledge: false,
        status: Some((0, Residual::Under(5))),
        lun: [0; 8],
        task_tag: 0x1122_3344,
        target_tag: 0xffff_ffff,
        data_sn: 2,
        offset: 0x2000,
    };
    let bytes = Response::DataIn(data_in).encode();
    assert_eq!(bytes[..4], [0x25, 0x83, 0, 0]);
    assert_eq!(
        bytes[16..24],
        [0x11, 0x22, 0x33, 0x44, 0xff, 0xff, 0xff, 0xff]
    );
    assert_eq!(
        bytes[24..36],
        [
            0x0a, 0x0b, 0x0c, 0x0d, 0x1a, 0x1b, 0x1c, 0x1d, 0x2a, 0x2b, 0x2c, 0x2d
        ]
    );
    assert_eq!(bytes[36..], [0, 0, 0, 2, 0, 0, 0x20, 0, 0, 0, 0, 5]);

    let r2t = response::ReadyToTransfer {
        numbers,
        lun: [0; 8],
        task_tag: 1,
        target_tag: 2,
        r2t_sn: 3,
        offset: 4,
        desired_bytes: 5,
    };
    let bytes = Response::ReadyToTransfer(r2t).encode();
    assert_eq!(bytes[..2], [0x31, 0x80]);
    assert_eq!(bytes[36..], [0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5]);

    let reject = response::Reject {
        numbers,
        reason: 9,
        data_sn: 0,
    };
    let bytes = Response::Reject(reject).encode();
    assert_eq!(bytes[..4], [0x3f, 0x80, 9, 0]);
    assert_eq!(bytes[16..20], [0xff; 4]);

    let both = response::ScsiResponse {
        numbers,
        response: 0,
        status: 2,
        residual: Residual::Over(7),
        bidirectional_residual: Residual::Under(9),
        task_tag: 1,
        snack_tag: 0,
        exp_data_sn: 4,
    };
    let bytes = Response::ScsiResponse(both).encode();
    assert_eq!(bytes[..4], [0x21, 0x8c, 0, 2]);
    assert_eq!(bytes[36..], [0, 0, 0, 4, 0, 0, 0, 9, 0, 0, 0, 7]);
}

#[test]
fn an_unknown_opcode_is_neither() {
    let mut bhs = [0; BHS_BYTES];
    bhs[0] = 0x1c;
    assert_eq!(Request::parse(&bhs), None);
    assert_eq!(Response::parse(&bhs), None);
}

#[test]
fn residuals_compare_what_is_presented_with_what_is_expected() {
    assert_eq!(Residual::of(512, 512), Residual::None);
    assert_eq!(Residual::of(200, 512), Residual::Over(312));
    assert_eq!(Residual::of(10_000, 512), Residual::Under(9488));
    assert_eq!(Residual::of(0, u64::MAX), Residual::Over(u32::MAX));
}
