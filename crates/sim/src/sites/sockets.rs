//! The sockets of portals in the simulated world: which are bound, and which of them take logins.
//!
//! An address is bound once. At rest, the array's open portals take logins, and nothing else is bound.

use array::control::{ArrayError, ArrayErrorKind, BoundSocket, ControlPlane, Sockets};
use array::directory::Portal;
use base::Prng;
use send_wrapper::SendWrapper;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use world_sim::SimWorld;

/// Bound addresses, and whether each takes logins.
type Bound = Rc<RefCell<BTreeMap<SocketAddr, bool>>>;

/// Sockets of an array.
#[derive(Clone)]
pub(super) struct SimSockets {
    /// A portal that can't be opened.
    barred: Option<SocketAddr>,
    bound: SendWrapper<Bound>,
}

struct SimSocket {
    address: SocketAddr,
    bound: SendWrapper<Bound>,
}

impl Sockets for SimSockets {
    fn bind(&self, address: SocketAddr) -> Result<Box<dyn BoundSocket>, ArrayError> {
        let refused = |why| Err(ArrayError::new(ArrayErrorKind::Invalid, why));
        if self.barred == Some(address) {
            return refused(format!("this machine has no {address}"));
        }
        if self.bound.borrow().contains_key(&address) {
            return refused(format!("{address} is bound already"));
        }
        self.bound.borrow_mut().insert(address, false);
        Ok(Box::new(SimSocket {
            address,
            bound: self.bound.clone(),
        }))
    }

    fn close(&self, bound: SocketAddr) {
        self.bound.borrow_mut().remove(&bound);
    }
}

impl BoundSocket for SimSocket {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn serve(self: Box<Self>) {
        self.bound.borrow_mut().insert(self.address, true);
    }
}

impl Drop for SimSocket {
    fn drop(&mut self) {
        let mut bound = self.bound.borrow_mut();
        if bound.get(&self.address) == Some(&false) {
            bound.remove(&self.address);
        }
    }
}

impl SimSockets {
    /// Opens the portals of the settings, all or all but one, as a start does.
    pub(super) fn open(
        array: &ControlPlane<SimWorld>,
        is_gentle: bool,
        prng: &mut Prng,
    ) -> SimSockets {
        let number = prng.between(2, 3) as u8;
        let barred = SocketAddr::from(([10, 0, 0, number], 3260));
        let barred = Some(barred).filter(|_| !is_gentle && prng.chance(1, 2));
        let settings = array.settings();
        let open = settings.portals.iter();
        let open = open.filter(|portal| Some(portal.address) != barred);
        let open: Vec<Portal> = open.map(Portal::from).collect();
        let bound = open.iter().map(|portal| (portal.address, true)).collect();
        array.directory().set_portals(open);
        let sockets = SimSockets {
            barred,
            bound: SendWrapper::new(Rc::new(RefCell::new(bound))),
        };
        array.attach_sockets(Arc::new(sockets.clone()));
        sockets
    }

    /// Whether logins are taken at the open portals of an array, and nothing else is bound.
    ///
    /// # Errors
    /// What is bound, and what is open.
    pub(super) fn check(&self, array: &ControlPlane<SimWorld>) -> Result<(), String> {
        let open = array.directory().portals().into_iter();
        let open: BTreeMap<SocketAddr, bool> = open.map(|one| (one.address, true)).collect();
        let bound = self.bound.borrow();
        match *bound == open {
            true => Ok(()),
            false => Err(format!("{bound:?} is bound, and {open:?} is open")),
        }
    }
}
