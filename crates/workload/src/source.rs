//! The source of a stream's operations: a generator, or a trace.

use crate::generator::{Generator, Operation};
use crate::profile::VmProfile;
use crate::trace::{Replay, TraceError};

/// The source of the operations of one stream.
#[derive(Debug)]
pub enum Source {
    /// They are drawn, without end.
    Drawn(Box<Generator>),
    /// A trace has them.
    Replayed(Box<Replay>),
}

impl Source {
    /// The sources of the streams of `vm`, in their order, on disks of these
    /// capacities, in bytes.
    ///
    /// # Errors
    /// When a trace cannot be opened.
    ///
    /// # Panics
    /// As [`Generator::of_vm`].
    pub fn of_vm(
        vm: &VmProfile,
        capacities_bytes: &[u64],
        seed: u64,
    ) -> Result<Vec<Source>, TraceError> {
        let generators = Generator::of_vm(vm, capacities_bytes, seed);
        let streams = vm.streams.iter().zip(generators);
        streams
            .map(|(stream, generator)| match &stream.trace {
                Some(trace) => Ok(Source::Replayed(Box::new(Replay::new(
                    trace,
                    capacities_bytes,
                )?))),
                None => Ok(Source::Drawn(Box::new(generator))),
            })
            .collect()
    }

    /// The same stream with other operations ([`Generator::apart`]); a trace has but its own.
    #[must_use]
    pub fn apart(self, name: &str) -> Source {
        match self {
            Source::Drawn(generator) => Source::Drawn(Box::new(generator.apart(name))),
            replayed @ Source::Replayed(_) => replayed,
        }
    }

    /// The next operation; `None` at the end of a trace.
    ///
    /// # Errors
    /// As [`Replay::draw`].
    pub fn draw(&mut self) -> Result<Option<Operation>, TraceError> {
        match self {
            Source::Drawn(generator) => Ok(Some(generator.draw())),
            Source::Replayed(replay) => replay.draw(),
        }
    }
}
