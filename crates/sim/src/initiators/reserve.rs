//! Persistent reservations: a host changes them, and looks at them.
//!
//! Of a change that nobody has heard of, because it was aborted or its session was lost, the
//! reservations themselves say whether it has happened.

use super::fence::{Call, Fence, Shown, TYPES};
use super::host::{
    ATTENTIONS_MAX, CHECK_CONDITION, CONFLICT, Command, GOOD, Heard, Host, Response, is_attention,
};
use super::unit::{FIELD_SECTORS, Unit};
use crate::small_pool;
use crate::wire::aborts::Aborting;
use crate::wire::path::Path;
use engine::World;
use futures_channel::oneshot::Receiver;
use futures_util::future::join_all;
use std::rc::Rc;
use std::time::Duration;

/// Hosts whose commands a preemption aborts.
struct Victims {
    hosts: Vec<Rc<Host>>,
    aborting: Aborting,
}

impl Victims {
    fn paths(hosts: &[Rc<Host>], unit: usize) -> Vec<Rc<Path>> {
        let paths = hosts.iter().filter_map(|host| host.slot_of(unit).path());
        paths.collect()
    }
}

impl Host {
    /// Changes reservations, unless somebody else does.
    pub(super) async fn call(&self) {
        let number = self.any_unit();
        let unit = &self.books.units[number];
        if unit.calling.get().is_some() || !unit.turns.get().is_multiple_of(2) {
            return;
        }
        let call = self.draw_call();
        unit.calling.set(Some((self.number, call)));
        unit.turns.set(unit.turns.get() + 1);
        let next = unit.fence.borrow().after(self.number, call);
        let victims = self.victims_of(unit, call, next.as_ref());
        let busy = self.begin_writes_of(number, victims.as_ref());
        if !busy.is_empty() {
            let pause = Duration::from_nanos(self.below(150_000));
            self.world.sleep(pause).await;
        }
        let is_done = match self.place_call(number, call).await {
            Some(response) => self.judge_call(unit, call, (&response, next)),
            None => self.find_out(unit, call, next).await,
        };
        if self.end_preemption(unit, victims, is_done) {
            // At once: what it has aborted must not happen now.
            self.read_field(number).await;
            self.read_wide(number).await;
        }
        let found = self.read_fence(number).await;
        let shown = unit.fence.borrow().shown();
        if found.as_ref() != Some(&shown) {
            self.fail(format!("after {call:?} there is {found:?}, not {shown:?}"));
        }
        // Each ends, or goes with the boot.
        join_all(busy).await;
        unit.turns.set(unit.turns.get() + 1);
        unit.calling.set(None);
    }

    fn draw_call(&self) -> Call {
        let key = self.number + 10;
        let kind = TYPES[self.below(TYPES.len() as u64) as usize];
        match self.below(12) {
            0..=3 => Call::Register {
                key,
                keep: self.below(3) > 0,
            },
            4 => Call::Register {
                key: 0,
                keep: self.below(2) > 0,
            },
            5..=7 => Call::Reserve { kind },
            8 => Call::Release { kind },
            9 if self.below(3) == 0 => Call::Clear,
            _ => Call::Preempt {
                // Nobody has the key 9: it stands for none.
                victim: match self.below(self.books.hosts + 1) + 9 {
                    9 => 0,
                    victim => victim,
                },
                kind,
                abort: self.below(2) == 0,
            },
        }
    }

    /// What was answered is what the reservations before it lead to. Whether they have changed.
    fn judge_call(
        &self,
        unit: &Unit,
        call: Call,
        (response, next): (&Response, Option<Fence>),
    ) -> bool {
        let known = unit.fence.borrow().keys.contains_key(&self.number);
        match (response.status, next) {
            (GOOD, Some(next)) => {
                unit.fence.replace(next);
                return true;
            }
            (CONFLICT, None) => {}
            // Releasing another type, or preempting nobody, is wrong in itself.
            (CHECK_CONDITION, None) if known && response.sense[2] == 5 => {}
            (status, next) => self.fail(format!(
                "host {}: {call:?} says {status:#x}, and should lead from {:?} to {next:?}",
                self.number,
                unit.fence.borrow()
            )),
        }
        false
    }

    /// Nobody has heard what came of a call, which is over. Whether it has happened.
    async fn find_out(&self, unit: &Unit, call: Call, next: Option<Fence>) -> bool {
        let Some(next) = next else {
            return false;
        };
        if matches!(call, Call::Register { .. }) {
            // Nobody is told whether they are kept: so again, which changes nothing more.
            for _ in 0..ATTENTIONS_MAX {
                if let Some(response) = self.place_call(unit.number, call).await {
                    return self.judge_call(unit, call, (&response, Some(next)));
                }
            }
        }
        let found = self.read_fence(unit.number).await;
        let is_done = found == Some(next.shown());
        if is_done {
            unit.fence.replace(next);
        }
        is_done
    }

    /// Those whose commands this call aborts where it leads to `next`.
    fn victims_of(&self, unit: &Unit, call: Call, next: Option<&Fence>) -> Option<Victims> {
        let next = next.filter(|_| matches!(call, Call::Preempt { abort: true, .. }))?;
        let before = unit.fence.borrow();
        let mut hosts = self.array.all_hosts();
        hosts.retain(|host| {
            let number = host.number;
            let goes = before.keys.contains_key(&number) && !next.keys.contains_key(&number);
            goes && number != self.number
        });
        let aborting = Aborting::begin(unit.lun(), Victims::paths(&hosts, unit.number));
        Some(Victims { hosts, aborting })
    }

    /// Some of those who are about to be preempted have much to write. What this gives ends when they
    /// have.
    fn begin_writes_of(&self, unit: usize, victims: Option<&Victims>) -> Vec<Receiver<()>> {
        let hosts = victims.iter().flat_map(|victims| &victims.hosts);
        let busy = hosts.filter(|_| self.below(2) == 0);
        let begin = |host: &Rc<Host>| {
            let host = Rc::clone(host);
            small_pool::begin(&self.world, async move {
                host.write_run(unit, 0..FIELD_SECTORS).await;
            })
        };
        busy.map(begin).collect()
    }

    /// What a preemption has aborted is over, if it `is_done`. Whether there were victims.
    fn end_preemption(&self, unit: &Unit, victims: Option<Victims>, is_done: bool) -> bool {
        let Some(Victims {
            hosts,
            mut aborting,
        }) = victims
        else {
            return false;
        };
        if is_done {
            let now = self.books.tick();
            for host in &hosts {
                host.preempted[unit.number].set(Some((now, unit.turns.get())));
            }
            aborting.done(now, Victims::paths(&hosts, unit.number));
        }
        self.give_up_later(aborting);
        is_done && !hosts.is_empty()
    }

    /// Sends a change. Nothing, when nobody heard of it.
    async fn place_call(&self, unit: usize, call: Call) -> Option<Response> {
        let (action, kind, action_key, flags) = match call {
            Call::Register { key, keep } => (6, 0, key, u8::from(keep)),
            Call::Reserve { kind } => (1, kind, 0, 0),
            Call::Release { kind } => (2, kind, 0, 0),
            Call::Clear => (3, 0, 0, 0),
            Call::Preempt {
                victim,
                kind,
                abort,
            } => (4 + u8::from(abort), kind, victim, 0),
        };
        let mut cdb = [0; 16];
        cdb[..9].copy_from_slice(&[0x5f, action, kind, 0, 0, 0, 0, 0, 24]);
        let key = self.number + 10;
        let mut list = [key.to_be_bytes(), action_key.to_be_bytes()].concat();
        list.extend([0, 0, 0, 0, flags, 0, 0, 0]);
        self.array.owe(unit, 3);
        self.insist(unit, cdb, list).await
    }

    /// Until there is nothing else to say first. Nothing, when nobody heard of it.
    async fn insist(&self, unit: usize, cdb: [u8; 16], data: Vec<u8>) -> Option<Response> {
        let command = Command {
            needs: Vec::new(),
            ..Command::at(unit, cdb, data, false)
        };
        for _ in 0..ATTENTIONS_MAX {
            match self.execute(&command).await {
                Heard::Said(response) if is_attention(&response) => {}
                Heard::Said(response) => return Some(response),
                Heard::Over(_) | Heard::Nowhere => return None,
            }
        }
        self.fail_of_attentions();
        None
    }

    /// Until somebody hears of it.
    async fn look(&self, unit: usize, cdb: [u8; 16]) -> Option<Vec<u8>> {
        for _ in 0..ATTENTIONS_MAX {
            if let Some(response) = self.insist(unit, cdb, Vec::new()).await {
                return Some(response.data);
            }
        }
        None
    }

    /// What is reserved.
    pub(super) async fn read_fence(&self, unit: usize) -> Option<Shown> {
        let mut cdb = [0; 16];
        cdb[..9].copy_from_slice(&[0x5e, 0, 0, 0, 0, 0, 0, 4, 0]);
        let keys = self.look(unit, cdb).await?;
        cdb[1] = 1;
        let held = self.look(unit, cdb).await?;
        let keys = keys.get(8..)?.as_chunks::<8>().0.iter();
        let mut keys: Vec<u64> = keys.map(|key| u64::from_be_bytes(*key)).collect();
        keys.sort_unstable();
        let held = held.get(8..24).map(|held| {
            let key = held[..8]
                .iter()
                .fold(0, |key, byte| key << 8 | u64::from(*byte));
            (key, held[13])
        });
        Some((keys, held))
    }
}
