//! Closed networks at work: threads that think, work on a transaction on the processors of their
//! VM, and wait for its operations ([`workload::threads`]).
//!
//! Invariants: a thread has one operation under way at most; as many are in a transaction as have
//! a connection; those that wait for one get it in the order of their coming. A transaction
//! whose operation failed goes on when that was tried again, as applications do.

use super::vm::{RETRY, StreamRun, Vm};
use engine::World;
use std::ops::Range;
use std::rc::Rc;
use workload::threads::{Thread, Threads};

impl<V: Vm> StreamRun<V> {
    /// Sets threads of these numbers to work.
    pub(super) fn start_threads(self: &Rc<Self>, threads: Threads, numbers: Range<usize>) {
        let profile = self.vm().profile();
        let names = (
            profile.name.as_str(),
            profile.streams[self.stream].name.as_str(),
        );
        for number in numbers {
            let thread = Thread::new(threads, names, number, self.seed);
            self.world.spawn(Rc::clone(self).thread(thread));
        }
    }

    /// A thread, until the load ends.
    async fn thread(self: Rc<Self>, mut thread: Thread) {
        loop {
            if let Some(threads) = self.threads.get() {
                thread.belong_to(threads);
            }
            let think = thread.think();
            if !think.is_zero() {
                self.world.sleep(think).await;
            }
            self.vm().halt().passed().await;
            if self.has_ended() || !self.transact(&mut thread).await {
                return;
            }
        }
    }

    /// A transaction; whether there is another one after it.
    async fn transact(&self, thread: &mut Thread) -> bool {
        let began = self.now();
        let connection = self.connections.pass().await;
        let transaction = thread.transaction();
        self.vm().work(&self.world, transaction.work).await;
        for _ in 0..transaction.operations {
            if !self.transact_operation(self).await {
                return false;
            }
        }
        let commits = self.commits.borrow().clone();
        if let Some(commits) = commits
            && !self.transact_operation(&commits).await
        {
            return false;
        }
        drop(connection);
        self.transacted(began);
        true
    }

    /// An operation of a transaction, of this stream or that of its commits, until it went well;
    /// whether it did before the load ended.
    async fn transact_operation(&self, of: &StreamRun<V>) -> bool {
        loop {
            self.vm().halt().passed().await;
            if self.has_ended() {
                return false;
            }
            let Some(operation) = of.draw() else {
                return false;
            };
            if of.operate(operation, self.now()).await {
                return true;
            }
            if !self.vm().halt().is_held() {
                self.world.sleep(RETRY).await;
            }
        }
    }
}
