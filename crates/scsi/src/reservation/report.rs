//! The reports of PERSISTENT RESERVE IN (SPC-4 clause 6.15).

use super::{Kind, Reservations};
use crate::cdb::ReserveIn;

/// Parameter data for `action`.
pub(crate) fn report(reservations: &Reservations, action: ReserveIn) -> Vec<u8> {
    match action {
        ReserveIn::Keys => keys(reservations),
        ReserveIn::Reservation => reservation(reservations),
        ReserveIn::Capabilities => capabilities(reservations),
        ReserveIn::FullStatus => full_status(reservations),
    }
}

fn headed(reservations: &Reservations, body: &[u8]) -> Vec<u8> {
    let mut data = reservations.generation.to_be_bytes().to_vec();
    data.extend((body.len() as u32).to_be_bytes());
    data.extend(body);
    data
}

fn keys(reservations: &Reservations) -> Vec<u8> {
    let keys = reservations.registrants.iter();
    let keys: Vec<u8> = keys.flat_map(|one| one.key.to_be_bytes()).collect();
    headed(reservations, &keys)
}

/// Of a kind for all registrants the key is zero.
fn reservation(reservations: &Reservations) -> Vec<u8> {
    let Some(held) = &reservations.held else {
        return headed(reservations, &[]);
    };
    let key = match held.kind.is_of_all() {
        true => 0,
        false => reservations.registrant(&held.by).map_or(0, |one| one.key),
    };
    let mut body = key.to_be_bytes().to_vec();
    body.extend([0, 0, 0, 0, 0, held.kind as u8, 0, 0]);
    headed(reservations, &body)
}

/// CRH, SIP_C, ATP_C, PTPL_C; TMV, and that commands are allowed as table 66 has it (ALLOW
/// COMMANDS 001b); PTPL_A as it is now; all six kinds.
fn capabilities(reservations: &Reservations) -> Vec<u8> {
    const CRH: u8 = 0x10;
    const SIP_C: u8 = 0x08;
    const ATP_C: u8 = 0x04;
    const PTPL_C: u8 = 0x01;
    const TMV: u8 = 0x80;
    const ALLOW_TABLE: u8 = 0x10;
    let mask = Kind::ALL
        .iter()
        .fold(0u16, |mask, kind| mask | 1 << *kind as u8);
    let [high_kinds, low_kinds] = mask.to_be_bytes();
    vec![
        0,
        8,
        CRH | SIP_C | ATP_C | PTPL_C,
        TMV | ALLOW_TABLE | u8::from(reservations.is_kept),
        // The mask stands with its bytes the other way round (SPC-4 table 216).
        low_kinds,
        high_kinds,
        0,
        0,
    ]
}

fn full_status(reservations: &Reservations) -> Vec<u8> {
    const R_HOLDER: u8 = 0x01;
    let mut body = Vec::new();
    for one in &reservations.registrants {
        let id = one.nexus.initiator.transport_id();
        let held = reservations.held.as_ref();
        let held = held.filter(|_| reservations.is_holder(&one.nexus));
        body.extend(one.key.to_be_bytes());
        body.extend([0, 0, 0, 0]);
        body.extend(match held {
            Some(held) => [R_HOLDER, held.kind as u8],
            None => [0, 0],
        });
        body.extend([0, 0, 0, 0]);
        body.extend(one.nexus.target_port.to_be_bytes());
        body.extend((id.len() as u32).to_be_bytes());
        body.extend(id);
    }
    headed(reservations, &body)
}
