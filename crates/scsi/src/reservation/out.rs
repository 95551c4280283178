//! The effects of PERSISTENT RESERVE OUT (SPC-4 clauses 5.13 and 6.16).

use super::port::{self, Named};
use super::{
    DueAttention, HeldReservation, InitiatorPort, Kind, NexusId, REGISTRANTS_MAX, Registrant,
    Reservations,
};
use crate::cdb::ReserveOut;
use crate::sense::{Attention, Sense};
use std::collections::BTreeSet;

/// Bytes of the parameter list that is there always.
const LIST_BYTES: usize = 24;

/// Flags of byte 20, and of byte 17 of REGISTER AND MOVE.
const SPEC_I_PT: u8 = 0x08;
const ALL_TG_PT: u8 = 0x04;
const UNREG: u8 = 0x02;
const APTPL: u8 = 0x01;

/// A PERSISTENT RESERVE OUT, and where it comes from.
pub(crate) struct Order<'a> {
    pub(crate) action: ReserveOut,
    pub(crate) scope_and_kind: u8,
    pub(crate) list: &'a [u8],
    pub(crate) from: &'a NexusId,
    /// All nexuses that there are now.
    pub(crate) connected: &'a [NexusId],
    /// The target's ports.
    pub(crate) ports: &'a [u16],
}

/// What comes of it.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) reservations: Reservations,
    /// Who has to hear what.
    pub(crate) told: Vec<DueAttention>,
    /// Whose commands are to be aborted.
    pub(crate) aborted: Vec<NexusId>,
}

/// Why nothing comes of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Conflict,
    Sense(Sense),
}

impl From<Sense> for Refusal {
    fn from(sense: Sense) -> Self {
        Refusal::Sense(sense)
    }
}

/// The fields of a parameter list.
struct Fields {
    key: u64,
    action_key: u64,
    flags: u8,
}

impl Reservations {
    /// What they are after `order`.
    ///
    /// # Errors
    /// A conflict, or what is wrong with the order.
    pub(crate) fn after(&self, order: &Order<'_>) -> Result<Outcome, Refusal> {
        let fields = fields(order)?;
        let mut change = Change {
            now: self.clone(),
            order,
            told: Vec::new(),
            aborted: Vec::new(),
        };
        match order.action {
            ReserveOut::Register => change.register(&fields, true)?,
            ReserveOut::RegisterAndIgnore => change.register(&fields, false)?,
            ReserveOut::RegisterAndMove => change.register_and_move(&fields)?,
            action => {
                // Who does anything else is registered, and knows his key.
                let registered = self.registrant(order.from);
                if registered.is_none_or(|one| one.key != fields.key) {
                    return Err(Refusal::Conflict);
                }
                match action {
                    ReserveOut::Reserve => change.reserve()?,
                    ReserveOut::Release => change.release()?,
                    ReserveOut::Clear => change.clear(),
                    _ => change.preempt(fields.action_key)?,
                }
            }
        }
        if change.now.registrants.len() > REGISTRANTS_MAX {
            return Err(Sense::NO_ROOM_FOR_REGISTRATION.into());
        }
        let aborts = order.action == ReserveOut::PreemptAndAbort;
        change.told.retain(|told| told.nexus != *order.from);
        change.aborted.retain(|one| aborts && one != order.from);
        Ok(Outcome {
            reservations: change.now,
            told: change.told,
            aborted: change.aborted,
        })
    }
}

fn fields(order: &Order<'_>) -> Result<Fields, Sense> {
    let head: &[u8; LIST_BYTES] = order.list.first_chunk().ok_or(Sense::LIST_LENGTH)?;
    let moves = order.action == ReserveOut::RegisterAndMove;
    let flags = head[if moves { 17 } else { 20 }];
    let named = moves || order.action == ReserveOut::Register && flags & SPEC_I_PT != 0;
    if !named && order.list.len() != LIST_BYTES {
        return Err(Sense::LIST_LENGTH);
    }
    if !named && flags & SPEC_I_PT != 0 {
        return Err(Sense::invalid_parameter(20));
    }
    let number = |at: usize| {
        let bytes = &head[at..at + 8];
        bytes
            .iter()
            .fold(0, |number, byte| number << 8 | u64::from(*byte))
    };
    Ok(Fields {
        key: number(0),
        action_key: number(8),
        flags,
    })
}

/// Reservations on their way to be others.
struct Change<'a> {
    now: Reservations,
    order: &'a Order<'a>,
    told: Vec<DueAttention>,
    aborted: Vec<NexusId>,
}

impl Change<'_> {
    fn register(&mut self, fields: &Fields, checks_key: bool) -> Result<(), Refusal> {
        let from = self.order.from;
        let known = self.now.registrant(from).map(|one| one.key);
        if checks_key && known.unwrap_or(0) != fields.key {
            return Err(Refusal::Conflict);
        }
        let others = match fields.flags & SPEC_I_PT {
            0 => Vec::new(),
            // It is for those who are not registered, and want to be.
            _ if known.is_some() || fields.action_key == 0 => {
                return Err(Sense::invalid_parameter(20).into());
            }
            _ => self.named_ports()?,
        };
        let ports = match fields.flags & ALL_TG_PT {
            0 => vec![from.target_port],
            _ => self.order.ports.to_vec(),
        };
        self.now.is_kept = fields.flags & APTPL != 0;
        self.now.generation = self.now.generation.wrapping_add(1);
        let own = std::iter::once(from.initiator.clone());
        for initiator in own.chain(others) {
            for target_port in &ports {
                let nexus = NexusId {
                    initiator: initiator.clone(),
                    target_port: *target_port,
                };
                match fields.action_key {
                    0 => self.unregister(&nexus),
                    key => self.enter(nexus, key),
                }
            }
        }
        Ok(())
    }

    /// The initiator ports that the parameter list names.
    fn named_ports(&self) -> Result<Vec<InitiatorPort>, Sense> {
        let list = self.order.list;
        let len = list.get(LIST_BYTES..LIST_BYTES + 4);
        let len = len.ok_or(Sense::LIST_LENGTH)?;
        let len = len
            .iter()
            .fold(0, |number, byte| number << 8 | usize::from(*byte));
        let mut at = LIST_BYTES + 4;
        if list.len() != at + len {
            return Err(Sense::LIST_LENGTH);
        }
        let (mut seen, mut ports) = (BTreeSet::new(), Vec::new());
        while at < list.len() {
            let (named, bytes) = port::parse(&list[at..], at)?;
            // A list can name a device thousands of times, and each has as many ports as it has
            // sessions.
            if seen.insert(named.clone()) {
                ports.extend(self.ports_of(named, at)?);
            }
            if ports.len() > REGISTRANTS_MAX {
                return Err(Sense::NO_ROOM_FOR_REGISTRATION);
            }
            at += bytes;
        }
        Ok(ports)
    }

    /// All ports of an initiator that is named without an ISID are those that it has now.
    fn ports_of(&self, named: Named, at: usize) -> Result<Vec<InitiatorPort>, Sense> {
        let name = match named {
            Named::Port(port) => return Ok(vec![port]),
            Named::Device(name) => name,
        };
        let connected = self.order.connected.iter().map(|nexus| &nexus.initiator);
        let ports: Vec<_> = connected
            .filter(|port| port.name == name)
            .cloned()
            .collect();
        match ports.is_empty() {
            true => Err(Sense::invalid_parameter(at as u16)),
            false => Ok(ports),
        }
    }

    fn enter(&mut self, nexus: NexusId, key: u64) {
        let mut all = self.now.registrants.iter_mut();
        match all.find(|one| one.nexus == nexus) {
            Some(one) => one.key = key,
            None => self.now.registrants.push(Registrant { nexus, key }),
        }
    }

    fn unregister(&mut self, nexus: &NexusId) {
        if !self.now.is_registered(nexus) {
            return;
        }
        let held_alone = self.now.held.as_ref();
        let held_alone = held_alone.filter(|held| held.by == *nexus && !held.kind.is_of_all());
        let ends = held_alone.map(|held| held.kind);
        self.now.registrants.retain(|one| one.nexus != *nexus);
        if let Some(kind) = ends {
            self.now.held = None;
            if kind.admits_registrants() {
                self.tell_all(Attention::ReservationsReleased);
            }
        }
        self.keep_a_holder();
    }

    /// Of a kind for all registrants somebody who is registered is named, or it ends.
    fn keep_a_holder(&mut self) {
        let Some(held) = &mut self.now.held else {
            return;
        };
        let mut all = self.now.registrants.iter();
        if all.any(|one| one.nexus == held.by) {
            return;
        }
        match self.now.registrants.first() {
            Some(first) if held.kind.is_of_all() => held.by = first.nexus.clone(),
            _ => self.now.held = None,
        }
    }

    fn tell_all(&mut self, attention: Attention) {
        let all = self.now.registrants.iter();
        let told = all.map(|one| DueAttention {
            nexus: one.nexus.clone(),
            attention,
        });
        self.told.extend(told);
    }

    /// The kind that the CDB names, of the whole unit.
    fn kind(&self) -> Result<Kind, Sense> {
        if self.order.scope_and_kind >> 4 != 0 {
            return Err(Sense::invalid_field(2, Some(7)));
        }
        let kind = Kind::of(self.order.scope_and_kind & 0x0f);
        kind.ok_or(Sense::invalid_field(2, Some(3)))
    }

    fn reserve(&mut self) -> Result<(), Refusal> {
        let (kind, from) = (self.kind()?, self.order.from);
        match &self.now.held {
            None => self.hold(kind),
            Some(held) if held.kind == kind && self.now.is_holder(from) => {}
            Some(_) => return Err(Refusal::Conflict),
        }
        Ok(())
    }

    fn hold(&mut self, kind: Kind) {
        let by = self.order.from.clone();
        self.now.held = Some(HeldReservation { kind, by });
    }

    fn release(&mut self) -> Result<(), Refusal> {
        let held = self.now.held.as_ref().map(|held| held.kind);
        let Some(held) = held.filter(|_| self.now.is_holder(self.order.from)) else {
            return Ok(());
        };
        if self.order.scope_and_kind != held as u8 {
            return Err(Sense::INVALID_RELEASE.into());
        }
        self.now.held = None;
        if held.admits_registrants() {
            self.tell_all(Attention::ReservationsReleased);
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.now.generation = self.now.generation.wrapping_add(1);
        self.tell_all(Attention::ReservationsPreempted);
        self.now.registrants.clear();
        self.now.held = None;
    }

    /// PREEMPT (SPC-4 clause 5.13.11).
    fn preempt(&mut self, key: u64) -> Result<(), Refusal> {
        let from = self.order.from;
        let held = self.now.held.clone();
        let takes_over = match &held {
            None => false,
            Some(held) if held.kind.is_of_all() => key == 0,
            Some(held) => self
                .now
                .registrant(&held.by)
                .is_some_and(|one| one.key == key),
        };
        if key == 0 && !takes_over {
            return Err(Sense::invalid_parameter(8).into());
        }
        let new_kind = match takes_over {
            true => Some(self.kind()?),
            false => None,
        };
        // Who takes over stays registered, whatever his key.
        let goes = |one: &Registrant| match takes_over {
            true => one.nexus != *from && (key == 0 || one.key == key),
            false => one.key == key,
        };
        let all = std::mem::take(&mut self.now.registrants);
        let (gone, stay): (Vec<_>, Vec<_>) = all.into_iter().partition(goes);
        self.now.registrants = stay;
        if gone.is_empty() && !takes_over {
            return Err(Refusal::Conflict);
        }
        self.now.generation = self.now.generation.wrapping_add(1);
        if let (Some(kind), Some(held)) = (new_kind, held) {
            self.hold(kind);
            if kind != held.kind {
                self.tell_all(Attention::ReservationsReleased);
            }
        }
        for one in gone {
            self.aborted.push(one.nexus.clone());
            self.told.push(DueAttention {
                nexus: one.nexus,
                attention: Attention::RegistrationsPreempted,
            });
        }
        self.keep_a_holder();
        Ok(())
    }

    fn register_and_move(&mut self, fields: &Fields) -> Result<(), Refusal> {
        let (list, from) = (self.order.list, self.order.from);
        let own = self.now.registrant(from).map(|one| one.key);
        let movable = self.now.held.as_ref();
        let movable = movable.filter(|held| held.by == *from && !held.kind.is_of_all());
        let kind = movable.map(|held| held.kind);
        let (Some(_), Some(kind)) = (own.filter(|key| *key == fields.key), kind) else {
            return Err(Refusal::Conflict);
        };
        if fields.action_key == 0 {
            return Err(Sense::invalid_parameter(8).into());
        }
        let number = |at: usize| u16::from_be_bytes([list[at], list[at + 1]]);
        let target_port = number(18);
        if !self.order.ports.contains(&target_port) {
            return Err(Sense::invalid_parameter(18).into());
        }
        let len = usize::from(number(22));
        if number(20) != 0 || list.len() != LIST_BYTES + len {
            return Err(Sense::LIST_LENGTH.into());
        }
        let (named, bytes) = port::parse(&list[LIST_BYTES..], LIST_BYTES)?;
        let wrong = || Sense::invalid_parameter(LIST_BYTES as u16);
        let Named::Port(initiator) = named else {
            return Err(wrong().into());
        };
        let to = NexusId {
            initiator,
            target_port,
        };
        if bytes != len || to == *from {
            return Err(wrong().into());
        }
        self.now.is_kept = fields.flags & APTPL != 0;
        self.now.generation = self.now.generation.wrapping_add(1);
        self.enter(to.clone(), fields.action_key);
        self.now.held = Some(HeldReservation { kind, by: to });
        if fields.flags & UNREG != 0 {
            self.now.registrants.retain(|one| one.nexus != *from);
        }
        Ok(())
    }
}
