//! The events inside a drive, in the order of (time, sequence).

use base::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// The controller is through with a command.
    Admitted(u64),
    /// A die is through with an operation, unless it was suspended: then its
    /// generation has changed.
    Die { die: usize, generation: u64 },
    /// A channel is through with a transfer.
    Channel(usize),
    /// A command ends.
    Ended(u64),
}

/// Events to come.
#[derive(Clone, Debug, Default)]
pub(super) struct Agenda {
    heap: BinaryHeap<Reverse<(Time, u64, Event)>>,
    sequence: u64,
}

impl Agenda {
    pub(super) fn put(&mut self, at: Time, event: Event) {
        self.heap.push(Reverse((at, self.sequence, event)));
        self.sequence += 1;
    }

    pub(super) fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, _, _))| *at)
    }

    pub(super) fn take(&mut self, until: Time) -> Option<(Time, Event)> {
        if self.next()? > until {
            return None;
        }
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_time_come_in_the_order_they_were_put() {
        let mut agenda = Agenda::default();
        agenda.put(Time(5), Event::Ended(7));
        agenda.put(Time(5), Event::Channel(1));
        agenda.put(Time(5), Event::Admitted(3));
        agenda.put(Time(4), Event::Channel(2));
        assert_eq!(agenda.take(Time(3)), None);
        let order: Vec<Event> = (0..4)
            .filter_map(|_| agenda.take(Time(5)))
            .map(|(_, event)| event)
            .collect();
        use Event::{Admitted, Channel, Ended};
        assert_eq!(order, [Channel(2), Ended(7), Channel(1), Admitted(3)]);
    }
}
