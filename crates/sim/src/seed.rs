//! A seed with its random streams, and the themes that its runs are asked to have.

use crate::config::Theme;
use base::Prng;
use std::collections::BTreeSet;
use std::ops::Deref;

/// What decides a run, and nothing else does.
#[derive(Clone, Debug)]
pub struct Seed {
    streams: Prng,
    wished: Option<BTreeSet<Theme>>,
}

impl Seed {
    /// The seed of this number, which draws its themes.
    pub fn of(number: u64) -> Self {
        Seed {
            streams: Prng::from_seed(number),
            wished: None,
        }
    }

    /// The same. With `wished`, its runs have these themes as far as they can, and no others.
    #[must_use]
    pub fn with_themes(self, wished: Option<&BTreeSet<Theme>>) -> Self {
        Seed {
            wished: wished.cloned(),
            ..self
        }
    }

    /// The themes that were asked for; where none were, it draws its own.
    pub fn wished(&self) -> Option<&BTreeSet<Theme>> {
        self.wished.as_ref()
    }
}

impl Deref for Seed {
    type Target = Prng;

    fn deref(&self) -> &Prng {
        &self.streams
    }
}
