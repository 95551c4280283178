//! Text requests in full-feature phase (RFC 7143 clauses 11.10, 11.11 and
//! appendix C).

use super::{Connection, Event};
use crate::login::{VisibleTarget, is_operational};
use crate::pdu::{NO_TAG, RejectReason, Request, Response, request, response};
use crate::text;

/// The text exchange that is going on, if any.
#[derive(Debug, Default)]
pub(super) struct TextExchange {
    /// Tag that the next request of this exchange must bring.
    target_tag: Option<u32>,
    task_tag: u32,
    /// Text of requests with the C bit, until one without.
    request: Vec<u8>,
    /// What is still to be sent.
    answer: Vec<u8>,
    /// The owner is looking up targets for this request.
    waiting: Option<WaitingTextRequest>,
}

#[derive(Debug)]
struct WaitingTextRequest {
    pdu: request::Text,
    target: Option<String>,
}

impl Connection {
    pub(super) fn take_text(&mut self, pdu: &request::Text, data: &[u8]) {
        let reject = |connection: &mut Connection, reason| {
            connection.reject(reason, &Request::Text(*pdu).encode());
        };
        let exchange = &mut self.text;
        if exchange.waiting.is_some() || (pdu.continues && pdu.is_final) {
            return reject(self, RejectReason::ProtocolError);
        }
        if pdu.target_tag == NO_TAG {
            *exchange = TextExchange {
                task_tag: pdu.task_tag,
                ..TextExchange::default()
            };
        } else if exchange.target_tag != Some(pdu.target_tag)
            || exchange.task_tag != pdu.task_tag
            || (!exchange.answer.is_empty() && !data.is_empty())
        {
            return reject(self, RejectReason::InvalidPduField);
        }
        if exchange.request.len() + data.len() > self.limits.max_text_bytes as usize {
            reject(self, RejectReason::ProtocolError);
            return self.close("a text request is too long".into());
        }
        exchange.request.extend_from_slice(data);
        if pdu.continues {
            self.send_text(pdu, false, &[], false);
        } else if self.text.answer.is_empty() {
            self.take_pairs(pdu);
        } else {
            self.send_answer(pdu);
        }
    }

    fn take_pairs(&mut self, pdu: &request::Text) {
        let bytes = std::mem::take(&mut self.text.request);
        let Ok(pairs) = text::parse(&bytes) else {
            return self.reject(RejectReason::ProtocolError, &Request::Text(*pdu).encode());
        };
        let mut wanted = None;
        for (key, value) in pairs {
            match key {
                "SendTargets" => wanted = Some(value),
                _ => self.answer_pair(key, value),
            }
        }
        let Some(value) = wanted else {
            return self.send_answer(pdu);
        };
        let target = match (value, &self.negotiated.target) {
            ("All", None) => None,
            // All is for discovery sessions only (appendix C).
            ("All", Some(_)) => {
                text::push(&mut self.text.answer, "SendTargets", "Reject");
                return self.send_answer(pdu);
            }
            ("", Some(own)) => Some(own.clone()),
            (name, _) => Some(name.to_owned()),
        };
        self.text.waiting = Some(WaitingTextRequest {
            pdu: *pdu,
            target: target.clone(),
        });
        self.events.push_back(Event::SendTargets { target });
    }

    fn answer_pair(&mut self, key: &str, value: &str) {
        let answer = &mut self.text.answer;
        match (key, text::number(value)) {
            // The peer may declare a new length at any time (clause 13.12).
            ("MaxRecvDataSegmentLength", Some(bytes @ 512..=0xff_ffff)) => {
                self.negotiated.parameters.peer_max_recv_data_segment_bytes = bytes as u32;
            }
            // A declaration: there is nothing to answer (clause 13.8).
            ("InitiatorAlias", _) => {}
            ("MaxRecvDataSegmentLength", _) => text::push(answer, key, "Reject"),
            _ if is_operational(key) => text::push(answer, key, "Reject"),
            _ => text::push(answer, key, "NotUnderstood"),
        }
    }

    pub(super) fn send_targets(&mut self, targets: &[VisibleTarget]) {
        let Some(waiting) = self.text.waiting.take() else {
            return;
        };
        // Names have no case (clause 4.2.7.1): a host may write them as it likes.
        let wanted = waiting.target.as_deref();
        let asked =
            |row: &&VisibleTarget| wanted.is_none_or(|name| name.eq_ignore_ascii_case(&row.name));
        for target in targets.iter().filter(asked) {
            text::push(&mut self.text.answer, "TargetName", &target.name);
            for (address, portal_group) in &target.portals {
                let portal = format!("{address},{portal_group}");
                text::push(&mut self.text.answer, "TargetAddress", &portal);
            }
        }
        self.send_answer(&waiting.pdu);
    }

    /// Sends as much of the answer as the peer takes in one PDU.
    fn send_answer(&mut self, pdu: &request::Text) {
        let longest = self.negotiated.parameters.peer_max_recv_data_segment_bytes as usize;
        let rest = self
            .text
            .answer
            .split_off(self.text.answer.len().min(longest));
        let piece = std::mem::replace(&mut self.text.answer, rest);
        let continues = !self.text.answer.is_empty();
        self.send_text(pdu, pdu.is_final && !continues, &piece, continues);
    }

    fn send_text(&mut self, pdu: &request::Text, is_final: bool, piece: &[u8], continues: bool) {
        let target_tag = if is_final {
            NO_TAG
        } else {
            self.new_target_tag()
        };
        self.text.target_tag = (!is_final).then_some(target_tag);
        let response = response::Text {
            numbers: self.numbers(),
            is_final,
            continues,
            lun: [0; 8],
            task_tag: pdu.task_tag,
            target_tag,
        };
        self.send(Response::Text(response), piece);
    }
}
