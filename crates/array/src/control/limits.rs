//! Limits of volumes: where they are kept, and the accounts that count by them.
//!
//! Invariants:
//! - Limits are an attribute of the volume, so they are durable before they count, and go with it to
//!   another pool. A clone or a snapshot begins without.
//! - A volume has one account, whichever targets and shards show it. It lasts as long as a target does.

use super::{ArrayError, ArrayErrorKind, ControlPlane, PlacedVolume};
use base::Uuid;
use engine::World;
use engine::pool::AttributesChange;
use engine::qos::{Account, Counts, Limits};
use engine::volume::VolumeProperties;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The attribute that has the limits of a volume.
const LIMITS: &str = "_limits";

/// The limits among the attributes. Those that can't be read are none: the array writes no such.
pub fn limits(properties: &VolumeProperties) -> Limits {
    let text = properties.attributes.get(LIMITS);
    text.and_then(|text| Limits::parse(text))
        .unwrap_or_default()
}

/// The accounts of volumes that targets show, by identity.
#[derive(Debug, Default)]
pub struct Accounts(Mutex<BTreeMap<Uuid, Weak<Account>>>);

impl Accounts {
    /// The account of a volume; none when no target shows it.
    fn find(&self, volume: Uuid) -> Option<Arc<Account>> {
        // Whoever panicked with this lock held has left a whole map behind.
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&volume)?.upgrade()
    }

    /// The account of a volume, with the limits that it has.
    pub(super) fn open<W: World>(&self, volume: &PlacedVolume, world: &W) -> Arc<Account> {
        let account = {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Seldom: a start opens one for each volume that is exported.
            if all.len().is_power_of_two() {
                all.retain(|_, known| known.strong_count() > 0);
            }
            let known = all.entry(volume.info.uuid).or_default();
            known.upgrade().unwrap_or_else(|| {
                let new = Arc::default();
                *known = Arc::downgrade(&new);
                new
            })
        };
        if !world.planted("export forgets the limits of its volumes") {
            account.set(limits(&volume.properties), world.now());
        }
        account
    }
}

impl<W: World> ControlPlane<W> {
    /// What the limits of a volume did to commands since a target shows it.
    pub fn limit_counts(&self, volume: Uuid) -> Counts {
        let account = self.accounts.find(volume);
        account.map_or(Counts::default(), |account| account.counts())
    }

    /// Limits the volume called `name`. It counts at once, also for commands that wait.
    ///
    /// # Errors
    /// No such volume, it can't be limited so, or what the pool says.
    pub async fn limit_volume(
        self: &Arc<Self>,
        name: String,
        limits: Limits,
    ) -> Result<PlacedVolume, ArrayError> {
        limits.check().map_err(|(part, rule)| {
            let context = format!("{part}: found limits of {limits:?}; allowed: {rule}");
            ArrayError::new(ArrayErrorKind::Invalid, context)
        })?;
        self.change(move |array| async move {
            let there = array.volume(&name).await?;
            let kept = (LIMITS.to_owned(), limits.to_string());
            let change = AttributesChange {
                name: None,
                attributes: vec![kept],
            };
            let said = array.change_attributes_of(there, change).await?;
            if let Some(account) = array.accounts.find(said.info.uuid) {
                account.set(limits, array.runtime.now());
            }
            Ok(said)
        })
        .await
    }
}
