//! The target's side of CHAP (RFC 7143 clauses 7.2 and 12.1).
//!
//! Invariants:
//! - Each step has its keys: none may be missing, and no other is taken, so that
//!   everything that is out of order ends the login.
//! - One login, one challenge: it is taken once, and a second attempt is another login.
//! - A name that is not known takes as long as a response that is wrong, and both are
//!   refused alike.

use super::keys::Declared;
use super::status::{
    AUTHENTICATION_FAILURE, INITIATOR_ERROR, MISSING_PARAMETER, Refused, SECURITY,
};
use crate::chap::{
    Account, Algorithm, CHALLENGE_BYTES_MAX, Challenge, Chap, Credential, NAME_BYTES_MAX, same,
};
use crate::pdu::request;
use crate::text::{self, binary, number};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How far the initiator is with its proof.
enum Step {
    /// It has not been asked yet.
    Method,
    /// CHAP is agreed on; CHAP_A is due.
    Algorithm,
    /// The challenge is sent; CHAP_N and CHAP_R are due.
    Response(Algorithm, Challenge),
    /// It has proved what it had to.
    Proved,
}

/// The part of a login that is about who the initiator is.
pub(super) struct Security {
    algorithms: Vec<Algorithm>,
    /// Until it is sent.
    challenge: Option<Challenge>,
    /// What has to be proved.
    account: Option<Arc<Account>>,
    step: Step,
}

impl Security {
    pub(super) fn new(chap: Chap) -> Security {
        Security {
            algorithms: chap.algorithms,
            challenge: Some(chap.challenge),
            account: None,
            step: Step::Method,
        }
    }

    /// Says what the initiator has to prove.
    pub(super) fn require(&mut self, account: Option<Arc<Account>>) {
        self.account = account;
    }

    /// Whether nothing is left to be proved.
    pub(super) fn is_satisfied(&self) -> bool {
        self.account.is_none() || matches!(self.step, Step::Proved)
    }

    /// What has been proved.
    pub(super) fn proved(&self) -> Option<Arc<Account>> {
        let account = self.account.clone();
        account.filter(|_| matches!(self.step, Step::Proved))
    }

    /// Takes what a whole text says of authentication, and answers it.
    pub(super) fn take(
        &mut self,
        declared: &mut Declared,
        request: &request::Login,
        answers: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let methods = declared.methods.take();
        let mut keys = std::mem::take(&mut declared.chap);
        let early = request.current_stage == SECURITY;
        if !early && !keys.is_empty() {
            return Err(out_of_order(&keys));
        }
        if !early && !self.is_satisfied() {
            return Err(skipped());
        }
        if let Some(methods) = methods {
            self.choose_method(&methods, answers)?;
        } else if self.account.is_none() {
            // There is nothing to prove.
        } else {
            match std::mem::replace(&mut self.step, Step::Method) {
                Step::Method => {
                    if request.transit {
                        return Err(skipped());
                    }
                }
                Step::Algorithm => self.choose_algorithm(&mut keys, answers)?,
                Step::Response(algorithm, challenge) => {
                    self.check_response(algorithm, &challenge, &mut keys, answers)?;
                }
                Step::Proved => self.step = Step::Proved,
            }
        }
        if keys.is_empty() {
            Ok(())
        } else {
            Err(out_of_order(&keys))
        }
    }

    /// AuthMethod: CHAP where there is something to prove, else None.
    fn choose_method(&mut self, offer: &str, answers: &mut Vec<u8>) -> Result<(), Refused> {
        let (method, step) = match self.account {
            Some(_) => ("CHAP", Step::Algorithm),
            None => ("None", Step::Method),
        };
        if !offer.split(',').any(|name| name == method) {
            let why = match self.account {
                Some(_) => format!("the initiator offers {offer}, and has to prove itself by CHAP"),
                None => {
                    format!("the initiator insists on {offer}, and nothing is asked of it here")
                }
            };
            return Err((AUTHENTICATION_FAILURE, why));
        }
        text::push(answers, "AuthMethod", method);
        self.step = step;
        Ok(())
    }

    /// CHAP_A: answered with the first of ours that is offered, and the challenge.
    fn choose_algorithm(
        &mut self,
        keys: &mut BTreeMap<String, String>,
        answers: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let offer = due(keys, "CHAP_A")?;
        let offered = |algorithm: &&Algorithm| {
            let mut names = offer.split(',');
            names.any(|name| number(name) == Some(algorithm.number()))
        };
        let algorithm = self.algorithms.iter().find(offered).copied();
        let (Some(algorithm), Some(challenge)) = (algorithm, self.challenge.take()) else {
            let why = format!("no allowed CHAP algorithm is in the list {offer}");
            return Err((AUTHENTICATION_FAILURE, why));
        };
        text::push(answers, "CHAP_A", &algorithm.number().to_string());
        text::push(answers, "CHAP_I", &challenge.id().to_string());
        text::push(answers, "CHAP_C", &hexadecimal(challenge.bytes(algorithm)));
        self.step = Step::Response(algorithm, challenge);
        Ok(())
    }

    /// CHAP_N and CHAP_R; with CHAP_I and CHAP_C the initiator asks for our proof.
    fn check_response(
        &mut self,
        algorithm: Algorithm,
        challenge: &Challenge,
        keys: &mut BTreeMap<String, String>,
        answers: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let name = due(keys, "CHAP_N")?;
        let response = due(keys, "CHAP_R")?;
        let asked = match (keys.remove("CHAP_I"), keys.remove("CHAP_C")) {
            (None, None) => None,
            (Some(id), Some(challenge)) => Some((id, challenge)),
            (None, Some(_)) => return Err(missing("CHAP_I")),
            (Some(_), None) => return Err(missing("CHAP_C")),
        };
        let wrong = |key: &str| (INITIATOR_ERROR, format!("{key} is not what it may be"));
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(wrong("CHAP_N"));
        }
        let response = binary(&response).ok_or_else(|| wrong("CHAP_R"))?;
        let Some(account) = self.account.clone() else {
            unreachable!("a challenge is sent for an account")
        };
        let (ours, theirs) = (challenge.bytes(algorithm), &account.initiator);
        let expected = algorithm.response(challenge.id(), &theirs.secret, ours);
        let known = same(name.as_bytes(), theirs.name.as_bytes());
        if !(same(&response, &expected) & known) {
            let name = name.escape_debug();
            let why = format!("CHAP failed for '{name}': its name or its secret is wrong");
            return Err((AUTHENTICATION_FAILURE, why));
        }
        if let Some((id, challenge)) = asked {
            let id = number(&id).and_then(|id| u8::try_from(id).ok());
            let id = id.ok_or_else(|| wrong("CHAP_I"))?;
            let challenge = binary(&challenge)
                .filter(|bytes| (1..=CHALLENGE_BYTES_MAX).contains(&bytes.len()))
                .ok_or_else(|| wrong("CHAP_C"))?;
            let proof = prove(&account, algorithm, id, &challenge, ours, &response)?;
            text::push(answers, "CHAP_N", &proof.0.name);
            text::push(answers, "CHAP_R", &hexadecimal(&proof.1));
        }
        self.step = Step::Proved;
        Ok(())
    }
}

/// Our own proof. Who asks for it with our own challenge wants to have its work done by
/// us (RFC 7143 clause 9.2.1): that ends the login, as does a response of ours that is
/// the initiator's own.
fn prove<'a>(
    account: &'a Account,
    algorithm: Algorithm,
    id: u8,
    challenge: &[u8],
    ours: &[u8],
    theirs: &[u8],
) -> Result<(&'a Credential, Vec<u8>), Refused> {
    let refused = |why: &str| Err((AUTHENTICATION_FAILURE, why.to_owned()));
    if challenge == ours {
        return refused("the initiator's challenge is our own");
    }
    let Some(mutual) = &account.mutual else {
        return refused("the initiator asks for our proof, and there is no mutual secret");
    };
    let response = algorithm.response(id, &mutual.secret, challenge);
    if same(&response, theirs) {
        return refused("the initiator's response is our own");
    }
    Ok((mutual, response))
}

/// The key that this step needs.
fn due(keys: &mut BTreeMap<String, String>, key: &str) -> Result<String, Refused> {
    keys.remove(key).ok_or_else(|| missing(key))
}

fn skipped() -> Refused {
    let why = "the initiator skips the authentication that it needs";
    (AUTHENTICATION_FAILURE, why.to_owned())
}

fn missing(key: &str) -> Refused {
    (MISSING_PARAMETER, format!("{key} is missing"))
}

fn out_of_order(keys: &BTreeMap<String, String>) -> Refused {
    let names: Vec<&str> = keys.keys().map(String::as_str).collect();
    let why = format!("{} where none is due", names.join(", "));
    (INITIATOR_ERROR, why)
}

fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(2 + 2 * bytes.len());
    text.push_str("0x");
    for byte in bytes {
        // Writing to a string never fails.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
