//! The array of one boot: its control plane, its front and its shards.

use super::Books;
use crate::control::{Start, settle};
use crate::shards::Shards;
use crate::wire::front::Front;
use array::connection::Timeouts;
use array::control::{Basis, ControlPlane};
use array::front::FrontLimits;
use array::memory::BUDGET_BYTES_MIN;
use array::offload::Offload;
use base::Prng;
use engine::{Lane, World};
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use world_sim::SimWorld;

/// Where hosts log in, each of a portal group of its own.
pub(super) const PORTALS: [([u8; 4], u16); 2] = [([10, 0, 0, 1], 3260), ([10, 0, 0, 2], 3260)];

const TIMEOUTS: Timeouts = Timeouts {
    silence: Duration::from_millis(200),
    logout: Duration::from_millis(100),
    data: Duration::from_millis(200),
};

pub(super) struct Array {
    pub(super) world: SimWorld,
    pub(super) books: Rc<Books>,
    pub(super) control: Arc<ControlPlane<SimWorld>>,
    pub(super) front: Front,
    /// It stops.
    is_stopping: Cell<bool>,
}

/// The iSCSI name of a target.
pub(super) fn target_name(target: usize) -> String {
    format!("iqn.2026-11.dev.ashlar:paths{target}")
}

/// As many sessions as there are ways, and not one more.
fn limits(books: &Books, prng: &mut Prng) -> FrontLimits {
    let iscsi = iscsi::login::Limits {
        queue_depth: *prng.pick(&[2, 4, 16, 128]),
        ..Default::default()
    };
    FrontLimits {
        sessions_max: books.ways(),
        // And as many again that log in.
        half_open_max: books.ways() + 4,
        memory_bytes: BUDGET_BYTES_MIN,
        timeouts: TIMEOUTS,
        iscsi,
        ..FrontLimits::default()
    }
}

impl Array {
    /// Begins as a server does once its pools are open: the control plane takes over what is on
    /// record, and the front takes logins at the portals of the settings.
    ///
    /// # Errors
    /// What the control plane says.
    pub(super) async fn start(
        world: &SimWorld,
        books: &Rc<Books>,
        (pools, first): (Vec<Lane<SimWorld>>, bool),
    ) -> Result<Rc<Array>, String> {
        let (shards, homes) = Shards::one_each(world, &pools);
        let start = Start::new(world, &books.records, first);
        let found = start.found.clone();
        let of_pools = (&books.specs[..], &books.media[..]);
        let site = start.settings(of_pools, &PORTALS.map(SocketAddr::from))?;
        let offload = Arc::new(Offload::new(None, Default::default()));
        let control = start.control_plane((&shards, homes), offload, &site);
        let started = async {
            let settled = settle(&control).await?;
            settled.take_over(found, Basis::of(first)).await
        };
        let started = started.await;
        started.map_err(|error| format!("the start: {error}"))?;
        let limits = limits(books, &mut world.prng("limits"));
        let front = Front::begin(world, &control, (&shards.states, limits));
        Ok(Rc::new(Array {
            world: world.clone(),
            books: Rc::clone(books),
            control,
            front,
            is_stopping: Cell::new(false),
        }))
    }

    pub(super) fn goes_on(&self) -> bool {
        !self.is_stopping.get() && self.books.failure.borrow().is_none()
    }

    /// All ends in order: sessions, and what they hold.
    pub(super) async fn stop(&self) {
        self.is_stopping.set(true);
        self.control.directory().close();
        if let Err(what) = self.front.end().await {
            self.books.fail(&self.world, what);
        }
    }
}
