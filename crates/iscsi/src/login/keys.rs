//! The rules of each key (RFC 7143 clause 13): our answer to each offer.

use super::{Limits, Parameters};
use crate::text::number;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// R2Ts that we are ready to have outstanding per task.
const MAX_OUTSTANDING_R2T: u64 = 4;

/// What initiators say once and that is not negotiated.
#[derive(Debug, Default)]
pub(super) struct Declared {
    pub(super) initiator: Option<String>,
    pub(super) alias: Option<String>,
    pub(super) target: Option<String>,
    pub(super) discovery: bool,
    /// The offer of AuthMethod, until it is answered.
    pub(super) methods: Option<String>,
    /// CHAP_A and so on of this text, until they are taken.
    pub(super) chap: BTreeMap<String, String>,
}

impl Declared {
    /// All that decides what the initiator has to prove: its name, the target, and whether it
    /// wants a discovery session.
    pub(super) fn who(&self) -> (Option<String>, Option<String>, bool) {
        (self.initiator.clone(), self.target.clone(), self.discovery)
    }
}

/// What a key leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A declaration: nothing to answer.
    Silent,
    /// The value to answer.
    Answer(String),
    /// The login can't go on: status detail of class 2, and why.
    Refuse(u8, String),
}

/// The keys of one login so far.
#[derive(Debug, Default)]
pub(super) struct Keys {
    pub(super) parameters: Parameters,
    pub(super) declared: Declared,
    seen: BTreeMap<String, FirstValue>,
}

/// What a key was when it came first.
#[derive(Debug)]
struct FirstValue {
    stage: u8,
    /// Absent when it may not come again.
    value: Option<String>,
}

const INITIATOR_ERROR: u8 = 0x00;
const SESSION_TYPE_NOT_SUPPORTED: u8 = 0x09;

/// A value that is offered but not possible (clause 6.2).
const REJECT: &str = "Reject";

/// Longest iSCSI name (clause 4.2.7.1).
const NAME_BYTES_MAX: usize = 223;

/// Keys of one login; usual ones have twenty.
const KEYS_MAX: usize = 1024;

/// A key with a longer value can't be said again.
const REPEATED_BYTES_MAX: usize = 255;

/// Whether `key` is one of the operational keys that are negotiated at login
/// only. In full-feature phase they are rejected.
pub(crate) fn is_operational(key: &str) -> bool {
    matches!(
        key,
        "HeaderDigest"
            | "DataDigest"
            | "MaxConnections"
            | "InitialR2T"
            | "ImmediateData"
            | "MaxBurstLength"
            | "FirstBurstLength"
            | "DefaultTime2Wait"
            | "DefaultTime2Retain"
            | "MaxOutstandingR2T"
            | "DataPDUInOrder"
            | "DataSequenceInOrder"
            | "ErrorRecoveryLevel"
            | "SessionType"
            | "AuthMethod"
            | "CHAP_A"
            | "CHAP_N"
            | "CHAP_R"
            | "CHAP_I"
            | "CHAP_C"
            | "InitiatorName"
            | "TargetName"
            | "TargetPortalGroupTag"
            | "TaskReporting"
            | "iSCSIProtocolLevel"
            | "OFMarker"
            | "IFMarker"
            | "OFMarkInt"
            | "IFMarkInt"
    )
}

/// Whether `key` is a part of who proves what to whom, which is done once.
fn is_proof(key: &str) -> bool {
    key == "AuthMethod" || key.starts_with("CHAP_")
}

impl Keys {
    /// Takes one pair of the stage `stage`.
    ///
    /// A key that was there before ends the login (clause 6.2), unless it says in a later stage
    /// what it said: libiscsi introduces itself in each stage.
    pub(super) fn take(&mut self, stage: u8, key: &str, value: &str, limits: &Limits) -> Outcome {
        if let Some(said) = self.seen.get(key) {
            let is_same = said.stage != stage && said.value.as_deref() == Some(value);
            if !is_same {
                return refuse(format!("{key} is there twice"));
            }
        }
        let may_come_again = value.len() <= REPEATED_BYTES_MAX && !is_proof(key);
        let said = FirstValue {
            stage,
            value: may_come_again.then(|| value.to_owned()),
        };
        self.seen.insert(key.to_owned(), said);
        if self.seen.len() > KEYS_MAX {
            return refuse(format!("more than {KEYS_MAX} keys"));
        }
        if let Some(outcome) = self.declare(key, value) {
            return outcome;
        }
        match self.negotiate(key, value, limits) {
            Some(answer) => Outcome::Answer(answer),
            None if is_operational(key) => Outcome::Answer(REJECT.into()),
            None => Outcome::Answer("NotUnderstood".into()),
        }
    }

    fn declare(&mut self, key: &str, value: &str) -> Option<Outcome> {
        match key {
            "InitiatorName" | "TargetName" if !is_name(value) => {
                return Some(refuse(format!("{key} is not an iSCSI name")));
            }
            // Names compare without case (clause 4.2.7.2): from here on there is one way to
            // write them.
            "InitiatorName" => self.declared.initiator = Some(value.to_ascii_lowercase()),
            "TargetName" => self.declared.target = Some(value.to_ascii_lowercase()),
            "InitiatorAlias" => self.declared.alias = Some(value.to_owned()),
            "SessionType" => match value {
                "Normal" => self.declared.discovery = false,
                "Discovery" => self.declared.discovery = true,
                _ => {
                    let why = format!("session type {value} is neither Normal nor Discovery");
                    return Some(Outcome::Refuse(SESSION_TYPE_NOT_SUPPORTED, why));
                }
            },
            "MaxRecvDataSegmentLength" => match ranged(value, 512..=0xff_ffff) {
                Some(bytes) => self.parameters.peer_max_recv_data_segment_bytes = bytes,
                None => return Some(Outcome::Answer(REJECT.into())),
            },
            // These are answered once it is known what has to be proved.
            "AuthMethod" => self.declared.methods = Some(value.to_owned()),
            "CHAP_A" | "CHAP_N" | "CHAP_R" | "CHAP_I" | "CHAP_C" => {
                self.declared.chap.insert(key.to_owned(), value.to_owned());
            }
            _ => return None,
        }
        Some(Outcome::Silent)
    }

    /// The value to answer; `None` for an impossible value or an unknown key.
    fn negotiate(&mut self, key: &str, value: &str, limits: &Limits) -> Option<String> {
        let agreed = &mut self.parameters;
        Some(match key {
            "HeaderDigest" => digest(value, &mut agreed.header_digest)?,
            "DataDigest" => digest(value, &mut agreed.data_digest)?,
            "InitialR2T" => boolean(value, |offer| offer, &mut agreed.initial_r2t)?,
            "ImmediateData" => boolean(value, |offer| offer, &mut agreed.immediate_data)?,
            "DataPDUInOrder" | "DataSequenceInOrder" => boolean(value, |_| true, &mut true)?,
            "MaxBurstLength" => {
                let ours = limits.max_burst_bytes;
                agreed.max_burst_bytes = ranged(value, 512..=0xff_ffff)?.min(ours);
                agreed.max_burst_bytes.to_string()
            }
            "FirstBurstLength" => {
                let ours = limits.first_burst_bytes;
                agreed.first_burst_bytes = ranged(value, 512..=0xff_ffff)?.min(ours);
                agreed.first_burst_bytes.to_string()
            }
            "MaxOutstandingR2T" => {
                let offer = u64::from(ranged(value, 1..=65535)?);
                agreed.max_outstanding_r2t = offer.min(MAX_OUTSTANDING_R2T) as u16;
                agreed.max_outstanding_r2t.to_string()
            }
            "MaxConnections" => ranged(value, 1..=65535)?.min(1).to_string(),
            "DefaultTime2Wait" => ranged(value, 0..=3600)?.max(2).to_string(),
            // The smaller counts, and ours are zero.
            "DefaultTime2Retain" => ranged(value, 0..=3600).map(|_| "0".into())?,
            "ErrorRecoveryLevel" => ranged(value, 0..=2).map(|_| "0".into())?,
            "iSCSIProtocolLevel" => ranged(value, 0..=31)?.min(1).to_string(),
            "TaskReporting" => value.split(',').find(|name| *name == "RFC3720")?.to_owned(),
            // Markers are obsolete (clause 13.25): No and Irrelevant may be
            // answered, and older initiators understand them best.
            "OFMarker" | "IFMarker" => "No".into(),
            "OFMarkInt" | "IFMarkInt" => "Irrelevant".into(),
            _ => return None,
        })
    }

    /// The parameters as they hold from now on.
    pub(super) fn agreed(&self) -> Parameters {
        let mut parameters = self.parameters.clone();
        let bound = parameters.max_burst_bytes;
        parameters.first_burst_bytes = parameters.first_burst_bytes.min(bound);
        parameters
    }
}

fn refuse(why: String) -> Outcome {
    Outcome::Refuse(INITIATOR_ERROR, why)
}

fn is_name(value: &str) -> bool {
    let printable = !value.chars().any(|c| c.is_whitespace() || c.is_control());
    !value.is_empty() && value.len() <= NAME_BYTES_MAX && printable
}

fn ranged(value: &str, range: RangeInclusive<u32>) -> Option<u32> {
    number(value)
        .and_then(|number| u32::try_from(number).ok())
        .filter(|n| range.contains(n))
}

/// The first of the initiator's list that we know (clause 6.2.1).
fn digest(list: &str, agreed: &mut bool) -> Option<String> {
    let chosen = list
        .split(',')
        .find(|name| matches!(*name, "None" | "CRC32C"))?;
    *agreed = chosen == "CRC32C";
    Some(chosen.to_owned())
}

fn boolean(value: &str, result: impl Fn(bool) -> bool, agreed: &mut bool) -> Option<String> {
    let offer = match value {
        "Yes" => true,
        "No" => false,
        _ => return None,
    };
    *agreed = result(offer);
    Some(if *agreed { "Yes" } else { "No" }.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(key: &str, value: &str) -> (Outcome, Parameters) {
        let mut keys = Keys::default();
        let outcome = keys.take(1, key, value, &Limits::default());
        (outcome, keys.agreed())
    }

    #[test]
    fn every_offer_gets_the_answer_of_its_rule() {
        let rules = [
            ("HeaderDigest", "None", "None"),
            ("HeaderDigest", "CRC32C,None", "CRC32C"),
            ("HeaderDigest", "None,CRC32C", "None"),
            ("HeaderDigest", "X-own,CRC32C", "CRC32C"),
            ("HeaderDigest", "MD5", "Reject"),
            ("DataDigest", "CRC32C", "CRC32C"),
            ("InitialR2T", "Yes", "Yes"),
            ("InitialR2T", "No", "No"),
            ("InitialR2T", "yes", "Reject"),
            ("ImmediateData", "Yes", "Yes"),
            ("ImmediateData", "No", "No"),
            ("MaxBurstLength", "16776192", "1048576"),
            ("MaxBurstLength", "262144", "262144"),
            ("MaxBurstLength", "0x10000", "65536"),
            ("MaxBurstLength", "511", "Reject"),
            ("MaxBurstLength", "16777216", "Reject"),
            ("MaxBurstLength", "-1", "Reject"),
            ("FirstBurstLength", "262144", "262144"),
            ("FirstBurstLength", "1048576", "262144"),
            ("MaxOutstandingR2T", "1", "1"),
            ("MaxOutstandingR2T", "16", "4"),
            ("MaxOutstandingR2T", "0", "Reject"),
            ("MaxConnections", "8", "1"),
            ("DefaultTime2Wait", "0", "2"),
            ("DefaultTime2Wait", "20", "20"),
            ("DefaultTime2Wait", "3601", "Reject"),
            ("DefaultTime2Retain", "20", "0"),
            ("ErrorRecoveryLevel", "2", "0"),
            ("ErrorRecoveryLevel", "3", "Reject"),
            ("DataPDUInOrder", "No", "Yes"),
            ("DataSequenceInOrder", "No", "Yes"),
            ("DataSequenceInOrder", "", "Reject"),
            ("TaskReporting", "FastAbort,RFC3720", "RFC3720"),
            ("TaskReporting", "FastAbort", "Reject"),
            ("iSCSIProtocolLevel", "2", "1"),
            ("OFMarker", "No", "No"),
            ("IFMarkInt", "2048~65535", "Irrelevant"),
            ("MaxRecvDataSegmentLength", "511", "Reject"),
            ("RDMAExtensions", "Yes", "NotUnderstood"),
            ("X-com.example.own", "1", "NotUnderstood"),
        ];
        for (key, offer, expected) in rules {
            assert_eq!(
                answer(key, offer).0,
                Outcome::Answer(expected.into()),
                "{key}={offer}"
            );
        }
    }

    #[test]
    fn what_is_agreed_is_what_was_answered() {
        assert!(answer("HeaderDigest", "CRC32C").1.header_digest);
        assert!(!answer("InitialR2T", "No").1.initial_r2t);
        assert!(!answer("ImmediateData", "No").1.immediate_data);
        assert_eq!(answer("MaxBurstLength", "1024").1.max_burst_bytes, 1024);
        assert_eq!(answer("MaxOutstandingR2T", "9").1.max_outstanding_r2t, 4);
        let (outcome, agreed) = answer("MaxRecvDataSegmentLength", "65536");
        assert_eq!(outcome, Outcome::Silent, "a declaration has no answer");
        assert_eq!(agreed.peer_max_recv_data_segment_bytes, 65536);
    }

    #[test]
    fn the_first_burst_never_exceeds_the_largest_burst() {
        assert_eq!(answer("MaxBurstLength", "1024").1.first_burst_bytes, 1024);
    }

    #[test]
    fn wrong_declarations_end_the_login() {
        let long_name = "n".repeat(224);
        let cases = [
            ("InitiatorName", "", INITIATOR_ERROR),
            (
                "InitiatorName",
                "iqn.2026-11.org.example:a b",
                INITIATOR_ERROR,
            ),
            ("TargetName", long_name.as_str(), INITIATOR_ERROR),
            ("SessionType", "Odd", SESSION_TYPE_NOT_SUPPORTED),
        ];
        for (key, value, detail) in cases {
            let outcome = answer(key, value).0;
            assert!(
                matches!(outcome, Outcome::Refuse(d, _) if d == detail),
                "{key}: {outcome:?}"
            );
        }
    }

    #[test]
    fn a_key_that_comes_twice_ends_the_login() {
        let mut keys = Keys::default();
        let mut take = |stage, key, value| keys.take(stage, key, value, &Limits::default());
        take(0, "ImmediateData", "Yes");
        take(0, "InitiatorName", "iqn.2026-11.org.example:a");
        take(0, "AuthMethod", "CHAP,None");
        for (stage, key, value) in [
            (0, "ImmediateData", "Yes"),
            (1, "ImmediateData", "No"),
            (1, "InitiatorName", "iqn.2026-11.org.example:b"),
            (1, "AuthMethod", "CHAP,None"),
        ] {
            let again = take(stage, key, value);
            assert!(
                matches!(again, Outcome::Refuse(INITIATOR_ERROR, _)),
                "{key}={value}: {again:?}"
            );
        }
    }

    #[test]
    fn a_key_may_say_in_the_next_stage_what_it_said() {
        let mut keys = Keys::default();
        let mut take = |stage, key, value| keys.take(stage, key, value, &Limits::default());
        let name = "iqn.2026-11.org.example:a";
        for stage in [0, 1] {
            assert_eq!(take(stage, "InitiatorName", name), Outcome::Silent);
            let answered = take(stage, "ImmediateData", "Yes");
            assert_eq!(answered, Outcome::Answer("Yes".to_owned()));
        }
        let again = take(1, "InitiatorName", name);
        assert!(matches!(again, Outcome::Refuse(..)), "twice in one stage");
    }

    #[test]
    fn names_are_in_lower_case_from_here_on() {
        let mut keys = Keys::default();
        keys.take(
            0,
            "InitiatorName",
            "IQN.2026-11.org.Example:A",
            &Limits::default(),
        );
        let name = keys.declared.initiator;
        assert_eq!(name.as_deref(), Some("iqn.2026-11.org.example:a"));
    }
}
