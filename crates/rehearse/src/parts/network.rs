//! Ports, and the ways of messages between them.
//!
//! A message crosses the port that it leaves by, links between networks, and the port that
//! it comes in by. Each is a lane for each direction; switches pass frames on as they come,
//! so a long message is on all of them at once and arrives when the slowest is through. A
//! lane begins with a message no earlier than the one before it has begun.

use super::world::RigWorld;
use base::Time;
use engine::World;
use model::link::{Link, State};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

/// A port, or a link between networks, at work.
pub struct PortRig {
    /// Owner, network and number.
    pub name: String,
    link: Link,
    state: RefCell<State>,
    down: Cell<bool>,
    /// Who waits for it to come up.
    watchers: RefCell<Vec<Waker>>,
}

/// Which way a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From a host to a controller.
    Out,
    /// From a controller to a host.
    Back,
    /// From a controller to another, which the way begins and ends with.
    Across,
}

impl PortRig {
    /// A port at rest.
    pub fn new(name: String, link: Link) -> PortRig {
        PortRig {
            name,
            link,
            state: RefCell::default(),
            down: Cell::new(false),
            watchers: RefCell::default(),
        }
    }

    /// Takes it down, or up again.
    pub fn set_down(&self, down: bool) {
        self.down.set(down);
        if !down {
            self.watchers.take().into_iter().for_each(Waker::wake);
        }
    }

    /// Whether nothing gets through.
    pub fn is_down(&self) -> bool {
        self.down.get()
    }

    /// The rate and framing that it was made with.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Busy time of each direction until `now`.
    pub fn busy(&self, now: Time) -> [Duration; 2] {
        let state = self.state.borrow();
        [&state.out, &state.back].map(|lane| lane.busy().saturating_sub(lane.free_at().since(now)))
    }
}

/// Sends something from host to host; the last port is through with it when this ends.
pub async fn between_hosts(world: &RigWorld, from: &PortRig, to: &PortRig, payload_bytes: u64) {
    let now = world.now();
    let left = from
        .state
        .borrow_mut()
        .out
        .send(&from.link, now, payload_bytes);
    let came = to
        .state
        .borrow_mut()
        .back
        .send(&to.link, now, payload_bytes);
    world.sleep_until(left.sent.max(came.sent)).await;
}

/// The ports between a host and a controller, the host's first; or between two controllers.
#[derive(Clone)]
pub struct PortPath(pub Rc<[Rc<PortRig>]>);

impl PortPath {
    /// Sends a message; it is there when this ends.
    pub async fn send(&self, world: &RigWorld, direction: Direction, payload_bytes: u64) {
        let mut there = world.now();
        for hop in 0..self.0.len() {
            let port = match direction {
                Direction::Out | Direction::Across => &self.0[hop],
                Direction::Back => &self.0[self.0.len() - 1 - hop],
            };
            let sent = {
                let mut state = port.state.borrow_mut();
                let lane = match direction {
                    // It leaves a controller as what goes to a host does.
                    Direction::Across if hop == 0 => &mut state.back,
                    Direction::Out | Direction::Across => &mut state.out,
                    Direction::Back => &mut state.back,
                };
                lane.send(&port.link, world.now(), payload_bytes)
            };
            there = there.max(sent.arrived);
            if sent.begun > world.now() {
                world.sleep_until(sent.begun).await;
            }
        }
        world.sleep_until(there).await;
    }

    /// Whether every port of it is up.
    pub fn is_up(&self) -> bool {
        self.0.iter().all(|port| !port.is_down())
    }

    /// Wakes when a port of it that is down comes up.
    pub fn watch(&self, waker: &Waker) {
        for port in self.0.iter().filter(|port| port.is_down()) {
            port.watchers.borrow_mut().push(waker.clone());
        }
    }
}
