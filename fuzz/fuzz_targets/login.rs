//! Logins that have to be proved by CHAP, under arbitrary text in an arbitrary order.
//!
//! The input is a byte of options, then rounds: a byte that says stage, transit and
//! continuation, then pieces of text up to a zero. Pieces are keys that a fuzzer would take
//! long to find (the right response among them), or any bytes. Checked: nothing panics, a
//! login that ends as an error says so with its status, and nobody is in who has not said
//! the right name with the right response, in the stage where it is due.

#![no_main]

use iscsi::chap::{Account, Algorithm, Challenge, Chap, Credential, RANDOM_BYTES, Secret};
use iscsi::login::{
    Limits, Login, LoginPortal, LoginProgress, Refusal, TargetDirectory, VisibleTarget,
};
use iscsi::pdu::{self, BHS_BYTES, Request, Response, request};
use iscsi::text;
use libfuzzer_sys::fuzz_target;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

const INITIATOR: &str = "iqn.2026-11.org.example:host";
const TARGET: &str = "iqn.2026-11.dev.ashlar:disk";

/// Rounds of one login, well above what it may take.
const ROUNDS_MAX: usize = 80;

struct Directory(Arc<Account>);

impl TargetDirectory for Directory {
    fn admit(
        &self,
        _initiator: &str,
        target: Option<&str>,
        _portal: &LoginPortal,
    ) -> Result<Option<Arc<Account>>, Refusal> {
        match target {
            None | Some(TARGET) => Ok(Some(Arc::clone(&self.0))),
            Some(_) => Err(Refusal::NotFound),
        }
    }

    fn visible(&self, _initiator: &str, _portal: &LoginPortal) -> Vec<VisibleTarget> {
        Vec::new()
    }
}

fn credential(name: &str, secret: &str) -> Credential {
    let secret = Secret::new(secret.as_bytes()).expect("a secret of the right length");
    let name = name.to_owned();
    Credential { name, secret }
}

/// What the target has sent of its challenge.
#[derive(Default)]
struct Challenged {
    algorithm: Option<Algorithm>,
    id: u8,
    challenge: Vec<u8>,
}

impl Challenged {
    fn hear(&mut self, pairs: &[(&str, &str)]) {
        for (key, value) in pairs {
            match *key {
                "CHAP_A" => {
                    let number = text::number(value);
                    let mut all = Algorithm::ALL.into_iter();
                    self.algorithm = all.find(|one| Some(one.number()) == number);
                }
                "CHAP_I" => self.id = value.parse().expect("a number of one byte"),
                "CHAP_C" => self.challenge = text::binary(value).expect("binary data"),
                _ => {}
            }
        }
    }

    fn response(&self, account: &Account) -> Option<Vec<u8>> {
        let secret = &account.initiator.secret;
        Some(self.algorithm?.response(self.id, secret, &self.challenge))
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
    std::iter::once("0x".to_owned()).chain(digits).collect()
}

fuzz_target!(|bytes: &[u8]| {
    let Some((options, mut rest)) = bytes.split_first() else {
        return;
    };
    let account = Arc::new(Account {
        initiator: credential("the-host", "secret-of-the-host"),
        mutual: (options & 2 == 0).then(|| credential("array", "secret-of-array")),
    });
    let algorithms = match options & 1 {
        0 => Algorithm::ALL.to_vec(),
        _ => vec![Algorithm::Md5],
    };
    let challenge = Challenge::from_random([0x5c; RANDOM_BYTES]);
    let portal = LoginPortal {
        portal_group: 1,
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 3260)),
    };
    let chap = Chap {
        algorithms,
        challenge,
    };
    let mut login = Login::new(portal, 1, Limits::default(), chap);
    let directory = Directory(Arc::clone(&account));
    let mut challenged = Challenged::default();
    let mut said = Vec::new();
    for _ in 0..ROUNDS_MAX {
        let Some((flags, pieces)) = rest.split_first() else {
            return;
        };
        let (piece, left) = text_of(pieces, &challenged, &account);
        rest = left;
        said.extend_from_slice(&piece);
        let (mut input, mut out) = (request_of(*flags, &piece), Vec::new());
        match login.receive(&mut input, &directory, &mut out) {
            LoginProgress::More => {
                assert!(input.is_empty(), "a whole PDU is consumed");
                challenged.hear(&text::parse(&answer(&out)).expect("text"));
            }
            LoginProgress::Done(negotiated) => {
                assert_eq!(negotiated.admission.account.as_deref(), Some(&*account));
                return proved(&said, &challenged, &account);
            }
            LoginProgress::Close { .. } => {
                assert!(out.is_empty() || out[36] >= 2, "a status of an error");
                return;
            }
        }
    }
    panic!("a login without an end");
});

/// Whether the right name and the right response are among all that was said.
fn proved(said: &[u8], challenged: &Challenged, account: &Account) {
    let pairs = text::parse(said).expect("text that was understood");
    let value = |key: &str| pairs.iter().find(|pair| pair.0 == key).map(|pair| pair.1);
    assert_eq!(value("CHAP_N"), Some("the-host"));
    let response = value("CHAP_R").and_then(text::binary);
    let expected = challenged.response(account);
    assert!(
        expected.is_some() && response == expected,
        "the right response"
    );
}

/// A login request: bits 0 and 1 are transit and the next stage, bit 3 the stage, bit 4
/// continuation.
fn request_of(flags: u8, text: &[u8]) -> Vec<u8> {
    let set = |bit: u8| flags & (1 << bit) != 0;
    let request = request::Login {
        transit: set(0),
        continues: set(4),
        current_stage: u8::from(set(3)),
        next_stage: if set(1) { 3 } else { 1 },
        version_max: 0,
        version_min: 0,
        isid: [0x80, 1, 2, 3, 0, 0],
        tsih: 0,
        task_tag: 1,
        cid: 0,
        cmd_sn: 1,
        exp_stat_sn: 0,
    };
    let mut bhs = Request::Login(request).encode();
    pdu::set_data_segment_bytes(&mut bhs, text.len());
    let mut bytes = [&bhs[..], text].concat();
    bytes.resize(bytes.len() + pdu::padding_bytes(text.len()), 0);
    bytes
}

/// The text of pieces up to a zero, and what is behind them.
fn text_of<'a>(
    mut pieces: &'a [u8],
    challenged: &Challenged,
    account: &Account,
) -> (Vec<u8>, &'a [u8]) {
    let mut text = Vec::new();
    let mut push = |key: &str, value: &str| text::push(&mut text, key, value);
    while let Some((kind, rest)) = pieces.split_first() {
        pieces = rest;
        match kind % 10 {
            0 => break,
            1 => {
                push("InitiatorName", INITIATOR);
                push("TargetName", TARGET);
            }
            2 => push("AuthMethod", "CHAP,None"),
            3 => push("AuthMethod", "None"),
            4 => push("CHAP_A", "8,7,6,5"),
            5 => push("CHAP_N", "the-host"),
            6 => {
                let response = challenged.response(account).unwrap_or_default();
                push("CHAP_R", &hexadecimal(&response));
            }
            7 => {
                push("CHAP_I", "9");
                push("CHAP_C", "0x00112233445566778899aabbccddeeff");
            }
            8 => {
                push("CHAP_I", "9");
                push("CHAP_C", &hexadecimal(&challenged.challenge));
            }
            _ => {
                let len = usize::from(pieces.first().copied().unwrap_or(0));
                let all = pieces.get(1..).unwrap_or_default();
                let (any, rest) = all.split_at(len.min(all.len()));
                if let Ok(any) = std::str::from_utf8(any) {
                    let (key, value) = any.split_once('=').unwrap_or((any, ""));
                    push(key, value);
                }
                pieces = rest;
            }
        }
    }
    (text, pieces)
}

/// The text of the one answer.
fn answer(out: &[u8]) -> Vec<u8> {
    let bhs = out.first_chunk::<BHS_BYTES>().expect("an answer");
    assert!(matches!(Response::parse(bhs), Some(Response::Login(_))));
    let len = pdu::data_segment_bytes(bhs);
    assert_eq!(
        out.len(),
        BHS_BYTES + len + pdu::padding_bytes(len),
        "one answer"
    );
    out[BHS_BYTES..BHS_BYTES + len].to_vec()
}
