//! A hypervisor's limit of a virtual disk: it lets a number of I/Os per second through to the
//! host's own queues, at even distances; the others wait in the order of their coming.
//!
//! An I/O goes when the one before it was `its I/Os / limit` ago, or at once if that was
//! earlier: nothing is saved up, so it is a bucket that holds one I/O, and the limit tag of
//! mClock (Gulati et al., OSDI 2010: `L = max(L + 1/l, now)`), VMware's scheduler. Hyper-V
//! publishes neither its burst nor its interval; it is taken for the same. How many I/Os a
//! large one counts as is the adapter's ([`Adapter::limited_ios`]).
//!
//! Invariant: another limit holds from the instant on in which it is set, also for what
//! waits. What has passed goes on: it is in queues that the hypervisor does not look into.

use super::gate::Gate;
use super::world::RigWorld;
use ::model::host::Adapter;
use base::Time;
use engine::World;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Poll, Waker};
use std::time::Duration;

/// Between two looks whether what had passed has ended.
const LOOK: Duration = Duration::from_millis(1);

/// The limit of a virtual disk.
pub struct IopsLimit {
    /// I/Os per second; none where there is no limit.
    iops: Cell<Option<u32>>,
    /// The next one goes no earlier.
    due: Cell<Time>,
    /// The first that waits is inside, the others before the door.
    first: Gate,
    waker: RefCell<Option<Waker>>,
    /// How often there was another limit.
    changes: Cell<u64>,
    /// Those under way that passed under this limit, and under others.
    under_way: Cell<(u64, u64)>,
}

/// One that has passed; its end is the I/O's.
pub struct Passed<'a> {
    limit: &'a IopsLimit,
    changes: u64,
}

impl Drop for Passed<'_> {
    fn drop(&mut self) {
        let (now, before) = self.limit.under_way.get();
        self.limit
            .under_way
            .set(match self.changes == self.limit.changes.get() {
                true => (now - 1, before),
                false => (now, before - 1),
            });
    }
}

impl IopsLimit {
    /// A disk at rest.
    pub fn new(iops: Option<u32>) -> IopsLimit {
        IopsLimit {
            iops: Cell::new(iops),
            due: Cell::new(Time(0)),
            first: Gate::new(1),
            waker: RefCell::default(),
            changes: Cell::new(0),
            under_way: Cell::new((0, 0)),
        }
    }

    /// There is another limit from now on, or none. The first I/O under it goes at once.
    /// Gives how many have passed before and are under way.
    pub fn set(&self, iops: Option<u32>) -> u64 {
        self.iops.set(iops);
        self.due.set(Time(0));
        self.changes.set(self.changes.get() + 1);
        let (now, before) = self.under_way.get();
        self.under_way.set((0, now + before));
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
        now + before
    }

    /// Ends when nothing is under way that passed before the limit was what it is.
    pub async fn holds(&self, world: &RigWorld) {
        while self.under_way.get().1 > 0 {
            world.sleep(LOOK).await;
        }
    }

    /// Waits until an I/O of so many bytes may go.
    pub async fn pass(&self, world: &RigWorld, adapter: &Adapter, bytes: u64) -> Passed<'_> {
        let _first = self.first.pass().await;
        loop {
            let now = world.now();
            match self.iops.get() {
                Some(iops) if now >= self.due.get() => {
                    let ios = u128::from(adapter.limited_ios(bytes));
                    let takes_ns = (ios * 1_000_000_000).div_ceil(u128::from(iops));
                    self.due.set(now + Duration::from_nanos(takes_ns as u64));
                    break;
                }
                Some(_) => self.due_or_changed(world).await,
                None => break,
            }
        }
        let (now, before) = self.under_way.get();
        self.under_way.set((now + 1, before));
        Passed {
            limit: self,
            changes: self.changes.get(),
        }
    }

    /// Ends when the next one is due, or the limit is another.
    async fn due_or_changed(&self, world: &RigWorld) {
        let changes = self.changes.get();
        let mut due = pin!(world.sleep_until(self.due.get()));
        poll_fn(|context| {
            if self.changes.get() != changes {
                return Poll::Ready(());
            }
            self.waker.replace(Some(context.waker().clone()));
            due.as_mut().poll(context)
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;
    use world_sim::Outcome;

    const SECOND: u64 = 1_000_000_000;

    /// When each of so many I/Os passes; `then` goes on meanwhile.
    fn passed(
        limit: &Rc<IopsLimit>,
        (adapter, bytes, count): (Adapter, u64, usize),
        then: impl AsyncFnOnce(&RigWorld),
    ) -> Vec<u64> {
        let world = RigWorld::new(1);
        let seen = Rc::new(RefCell::new(Vec::new()));
        for _ in 0..count {
            let (world, seen, limit) = (world.clone(), Rc::clone(&seen), Rc::clone(limit));
            world.clone().spawn(async move {
                let passed = limit.pass(&world, &adapter, bytes).await;
                seen.borrow_mut().push(world.now().as_nanos());
                world.sleep(Duration::from_millis(10)).await;
                drop(passed);
            });
        }
        let end = async {
            then(&world).await;
            world.sleep(Duration::from_secs(3600)).await;
        };
        assert_eq!(world.run(u64::MAX, end), Ok(Outcome::Done(())));
        world.power_off();
        seen.take()
    }

    #[test]
    fn ios_go_at_even_distances_and_nothing_is_saved_up() {
        let limit = Rc::new(IopsLimit::new(Some(4)));
        let late = Rc::clone(&limit);
        let seen = passed(&limit, (Adapter::VMBUS, 8192, 3), async |world| {
            world.sleep(Duration::from_secs(100)).await;
            for _ in 0..2 {
                late.pass(world, &Adapter::VMBUS, 8192).await;
            }
            assert_eq!(world.now().as_nanos(), 100 * SECOND + SECOND / 4);
        });
        assert_eq!(seen, [0, SECOND / 4, SECOND / 2]);
        let none = Rc::new(IopsLimit::new(None));
        assert_eq!(
            passed(&none, (Adapter::VMBUS, 8192, 3), async |_| ()),
            [0; 3]
        );
    }

    #[test]
    fn a_large_io_counts_as_its_hypervisor_counts_it() {
        for (adapter, bytes, seconds) in [
            (Adapter::VMBUS, 4096, 1),
            (Adapter::VMBUS, 8193, 2),
            (Adapter::VMBUS, 65_536, 8),
            (Adapter::PVSCSI, 65_536, 2),
            (Adapter::PVSCSI, 40_960, 2),
            (Adapter::LSI_SAS, 32_768, 1),
            (Adapter::VIRTIO, 1 << 20, 1),
        ] {
            let limit = Rc::new(IopsLimit::new(Some(1)));
            let seen = passed(&limit, (adapter, bytes, 2), async |_| ());
            assert_eq!(seen, [0, seconds * SECOND], "{} {bytes}", adapter.name);
        }
    }

    #[test]
    fn another_limit_holds_at_once_and_also_for_what_waits() {
        let limit = Rc::new(IopsLimit::new(Some(1)));
        let other = Rc::clone(&limit);
        let seen = passed(&limit, (Adapter::VMBUS, 8192, 8), async |world| {
            // The second would have gone at 1 s.
            world.sleep(Duration::from_millis(500)).await;
            assert_eq!(other.set(Some(10)), 0, "the first has ended");
            world.sleep(Duration::from_millis(205)).await;
            assert_eq!(other.set(None), 1, "the fourth has passed and not ended");
            assert!(other.under_way.get().1 == 1);
            other.holds(world).await;
            let held = world.now().as_nanos();
            assert!((710_000_000..=711_000_000).contains(&held), "{held}");
        });
        let ms: Vec<u64> = seen.iter().map(|at| at / 1_000_000).collect();
        assert_eq!(ms, [0, 500, 600, 700, 705, 705, 705, 705]);
    }
}
