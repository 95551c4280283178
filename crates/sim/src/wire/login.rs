//! An initiator's side of a login (RFC 7143 clauses 6 and 13, CHAP as in clause 12.1).

use super::network::End;
use super::pdu::{Digests, Pdu, Reader, request, response};
use array::stream::{read, write_all};
use base::Prng;
use iscsi::chap::{Algorithm, Credential};
use iscsi::text;
use std::collections::BTreeMap;

/// Stages of a login.
const SECURITY: u8 = 0;
const OPERATIONAL: u8 = 1;
const FULL_FEATURE: u8 = 3;

const TRANSIT: u8 = 0x80;

/// A long segment.
const LONG_BYTES: u64 = 256 << 10;

/// Requests of a login, at most.
const REQUESTS_MAX: u32 = 10;

/// Who logs in, and to what.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) initiator: String,
    pub(crate) isid: u8,
    pub(crate) target: String,
    /// What it proves, if it has to.
    pub(crate) credential: Option<Credential>,
}

/// Why there is no session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoSession {
    /// The status of the login response: class and detail.
    Refused(u8, u8),
    /// The connection ended.
    Lost,
    /// The target broke a rule.
    Wrong(String),
}

/// What was agreed on.
#[derive(Clone, Debug)]
pub(crate) struct Agreed {
    pub(crate) tsih: u16,
    pub(crate) digests: Digests,
    pub(crate) initial_r2t: bool,
    pub(crate) immediate_data: bool,
    pub(crate) first_burst_bytes: usize,
    pub(crate) max_burst_bytes: usize,
    /// What the target takes in one data segment.
    pub(crate) segment_bytes: usize,
    /// And what its initiator takes.
    pub(crate) own_segment_bytes: usize,
    /// StatSN that its next response has.
    pub(crate) stat_sn: u32,
    pub(crate) max_cmd_sn: u32,
}

/// The CmdSN of all requests of a login, and of the first command.
pub(crate) const FIRST_CMD_SN: u32 = 1;

type Keys = Vec<(&'static str, String)>;

struct Exchange<'a> {
    end: &'a mut End,
    reader: Reader,
    isid: u8,
    exp_stat_sn: u32,
    /// What the target has said, by key.
    said: BTreeMap<String, String>,
}

/// What an initiator offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// Whatever it may.
    Any,
    /// No digests, and long segments: few PDUs for much data.
    Long,
}

/// Logs in at the other side of `end`, with parameters that `prng` chooses.
pub(crate) async fn login(
    end: &mut End,
    who: &Identity,
    (prng, wished): (&mut Prng, Offer),
) -> Result<(Agreed, Reader), NoSession> {
    let mut exchange = Exchange::new(end, who.isid);
    let method = if who.credential.is_some() {
        "CHAP,None"
    } else {
        "None"
    };
    let mut keys: Keys = vec![
        ("InitiatorName", who.initiator.clone()),
        ("TargetName", who.target.clone()),
        ("SessionType", "Normal".to_owned()),
        ("AuthMethod", method.to_owned()),
    ];
    if let Some(credential) = &who.credential {
        exchange
            .ask(SECURITY, None, std::mem::take(&mut keys))
            .await?;
        exchange.prove(credential).await?;
    }
    let offer = offer(prng, wished);
    keys.extend(offer.clone());
    for _ in 0..REQUESTS_MAX {
        let keys = std::mem::take(&mut keys);
        let answer = exchange.ask(OPERATIONAL, Some(FULL_FEATURE), keys).await?;
        if answer.header[1] & TRANSIT != 0 {
            let agreed = exchange.agreed(&answer, &offer)?;
            let mut reader = exchange.reader;
            reader.digests = agreed.digests;
            return Ok((agreed, reader));
        }
    }
    Err(NoSession::Wrong("a login without an end".to_owned()))
}

/// Operational keys as an initiator may offer them.
fn offer(prng: &mut Prng, wished: Offer) -> Keys {
    let mut digest = || match wished {
        Offer::Any => *prng.pick(&["None", "CRC32C,None", "CRC32C"]),
        Offer::Long => "None",
    };
    let (header, data) = (digest(), digest());
    let mut flag = || *prng.pick(&["Yes", "No"]);
    let (initial_r2t, immediate) = (flag(), flag());
    let (segment, first, burst) = match wished {
        Offer::Any => {
            let segment = 512 << prng.between(0, 9);
            let first = 512 << prng.between(0, 8);
            (segment, first, first << prng.between(0, 4))
        }
        Offer::Long => (LONG_BYTES, LONG_BYTES, LONG_BYTES),
    };
    vec![
        ("HeaderDigest", header.to_owned()),
        ("DataDigest", data.to_owned()),
        ("InitialR2T", initial_r2t.to_owned()),
        ("ImmediateData", immediate.to_owned()),
        ("MaxRecvDataSegmentLength", segment.to_string()),
        ("FirstBurstLength", first.to_string()),
        ("MaxBurstLength", burst.to_string()),
        ("MaxOutstandingR2T", prng.between(1, 8).to_string()),
        ("ErrorRecoveryLevel", "0".to_owned()),
    ]
}

impl<'a> Exchange<'a> {
    fn new(end: &'a mut End, isid: u8) -> Self {
        Exchange {
            end,
            reader: Reader::default(),
            isid,
            exp_stat_sn: 0,
            said: BTreeMap::new(),
        }
    }

    /// Sends a login request and gives its answer, which has no error.
    async fn ask(&mut self, stage: u8, next: Option<u8>, keys: Keys) -> Result<Pdu, NoSession> {
        let transit = next.map_or(0, |next| TRANSIT | next);
        let mut data = Vec::new();
        for (key, value) in keys {
            text::push(&mut data, key, &value);
        }
        let mut pdu = Pdu::new(request::LOGIN, transit | stage << 2)
            .with(24, FIRST_CMD_SN)
            .with(28, self.exp_stat_sn)
            .with_data(data);
        (pdu.header[8], pdu.header[13]) = (0x80, self.isid);
        let sent = write_all(self.end, &pdu.bytes(Digests::default())).await;
        sent.map_err(|_| NoSession::Lost)?;
        let answer = self.receive().await?;
        if answer.opcode() != response::LOGIN {
            return Err(NoSession::Wrong(format!("{answer:02x?} answers a login")));
        }
        let (class, detail) = (answer.header[36], answer.header[37]);
        if class != 0 {
            return Err(NoSession::Refused(class, detail));
        }
        self.exp_stat_sn = answer.word(24).wrapping_add(1);
        let said = text::parse(&answer.data);
        let said = said.map_err(|error| NoSession::Wrong(error.to_string()))?;
        let said = said.into_iter();
        self.said
            .extend(said.map(|(key, value)| (key.to_owned(), value.to_owned())));
        Ok(answer)
    }

    async fn receive(&mut self) -> Result<Pdu, NoSession> {
        let mut space = [0; 4096];
        loop {
            let next = self.reader.next();
            let next = next.map_err(|_| NoSession::Wrong("a digest in a login".to_owned()))?;
            if let Some(pdu) = next {
                return Ok(pdu);
            }
            match read(self.end, &mut space).await {
                Ok(0) | Err(_) => return Err(NoSession::Lost),
                Ok(came) => self.reader.bytes.extend(&space[..came]),
            }
        }
    }

    fn said(&self, key: &str) -> Result<&str, NoSession> {
        let said = self.said.get(key).map(String::as_str);
        said.ok_or_else(|| NoSession::Wrong(format!("the target does not say {key}")))
    }

    fn number(&self, key: &str) -> Result<u64, NoSession> {
        let value = self.said(key)?;
        text::number(value).ok_or_else(|| NoSession::Wrong(format!("{key}={value}")))
    }

    async fn prove(&mut self, credential: &Credential) -> Result<(), NoSession> {
        let wrong = |what: &str| NoSession::Wrong(what.to_owned());
        let algorithm = Algorithm::Sha256;
        let asked = vec![("CHAP_A", algorithm.number().to_string())];
        self.ask(SECURITY, None, asked).await?;
        let id = u8::try_from(self.number("CHAP_I")?).map_err(|_| wrong("CHAP_I"))?;
        let challenge = text::binary(self.said("CHAP_C")?).ok_or_else(|| wrong("CHAP_C"))?;
        let response = algorithm.response(id, &credential.secret, &challenge);
        let response: String = response.iter().map(|byte| format!("{byte:02x}")).collect();
        let proof = vec![
            ("CHAP_N", credential.name.clone()),
            ("CHAP_R", format!("0x{response}")),
        ];
        let answer = self.ask(SECURITY, Some(OPERATIONAL), proof).await?;
        match answer.header[1] & TRANSIT {
            0 => Err(wrong("a proof that leads nowhere")),
            _ => Ok(()),
        }
    }

    fn agreed(&self, last: &Pdu, offer: &Keys) -> Result<Agreed, NoSession> {
        let offered = |key| {
            offer
                .iter()
                .find(|(one, _)| *one == key)
                .map(|(_, value)| value)
        };
        let size = |key| -> Result<usize, NoSession> {
            let value = self.number(key)? as usize;
            let offered = offered(key).and_then(|value| value.parse().ok());
            match offered.is_some_and(|offered: usize| value <= offered) {
                true => Ok(value),
                false => Err(NoSession::Wrong(format!("{key}={value} of {offered:?}"))),
            }
        };
        let digest = |key| Ok(self.said(key)? == "CRC32C");
        Ok(Agreed {
            tsih: u16::from_be_bytes([last.header[14], last.header[15]]),
            digests: Digests {
                header: digest("HeaderDigest")?,
                data: digest("DataDigest")?,
            },
            initial_r2t: self.said("InitialR2T")? == "Yes",
            immediate_data: self.said("ImmediateData")? == "Yes",
            first_burst_bytes: size("FirstBurstLength")?,
            max_burst_bytes: size("MaxBurstLength")?,
            segment_bytes: self.number("MaxRecvDataSegmentLength")? as usize,
            own_segment_bytes: offered("MaxRecvDataSegmentLength")
                .and_then(|value| value.parse().ok())
                .unwrap_or(0),
            stat_sn: last.word(24).wrapping_add(1),
            max_cmd_sn: last.word(32),
        })
    }
}
