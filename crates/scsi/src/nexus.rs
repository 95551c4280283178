//! An I_T nexus: what one initiator sees through one target.

use crate::sense::Attention;
use crate::target::Target;
use base::{Payload, Slice};
use engine::World;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// The outcome of a command.
#[derive(Debug, Default)]
pub struct Response {
    /// Status code (SAM-5 clause 5.3.1).
    pub status: u8,
    /// Sense data, fixed format; empty for none.
    pub sense: Vec<u8>,
    /// Data-in.
    pub data: Payload,
    /// Bytes that the command transfers when the initiator has room for all.
    pub wanted_bytes: u64,
}

/// One initiator at one target.
pub struct Nexus<W: World> {
    target: Rc<Target<W>>,
    attentions: RefCell<BTreeMap<u16, VecDeque<Attention>>>,
}

impl<W: World> Nexus<W> {
    pub(crate) fn new(target: Rc<Target<W>>) -> Self {
        Nexus { target, attentions: RefCell::default() }
    }

    /// The target.
    pub fn target(&self) -> &Rc<Target<W>> {
        &self.target
    }

    pub(crate) fn raise(&self, lun: u16, attention: Attention) {
        let mut attentions = self.attentions.borrow_mut();
        let waiting = attentions.entry(lun).or_default();
        if attention.is_reset() {
            waiting.clear();
        }
        if !waiting.contains(&attention) {
            waiting.push_back(attention);
        }
    }

    pub(crate) fn forget(&self, lun: u16) {
        self.attentions.borrow_mut().remove(&lun);
    }

    /// Runs one command.
    pub async fn execute(&self, lun: [u8; 8], cdb: [u8; 16], data_out: Slice) -> Response {
        let _ = (lun, cdb, data_out);
        Response::default()
    }
}
