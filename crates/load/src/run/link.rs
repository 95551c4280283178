//! The way to one target while a plan runs: an endpoint, or attempts to get another one.
//!
//! Invariants:
//! - What was under way when an endpoint was lost is never sent again: a write of it may have
//!   been done or not.
//! - What is submitted while the target is away waits, and is sent once it is back.
//! - A target that is back has the size and the block that it had.

use super::attempts::Attempts;
use crate::endpoint::{AnyEndpoint, Completion, Geometry, Interest, OpenOptions, Request};
use crate::endpoint::{TargetError, TargetErrorKind};
use base::Time;
use std::time::Duration;
use workload::outcome::Outage;
use workload::url::TargetUrl;

/// A target of a VM.
pub struct Link {
    url: TargetUrl,
    options: OpenOptions,
    geometry: Geometry,
    state: State,
    outages: Vec<Outage>,
}

enum State {
    Up(AnyEndpoint),
    Away {
        attempts: Attempts,
        /// To be sent once the target is back.
        waiting: Vec<Request>,
    },
}

impl Link {
    /// The way to `url`, which `endpoint` is open to.
    pub fn new(url: TargetUrl, options: OpenOptions, endpoint: AnyEndpoint) -> Link {
        Link {
            url,
            options,
            geometry: endpoint.geometry(),
            state: State::Up(endpoint),
            outages: Vec::new(),
        }
    }

    /// The URL of the target that it leads to.
    pub fn url(&self) -> &TargetUrl {
        &self.url
    }

    /// What it said of itself when it was opened first.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Whether it is away.
    pub fn is_away(&self) -> bool {
        matches!(self.state, State::Away { .. })
    }

    /// Whether a request waits for the target to be back.
    pub fn is_waiting(&self, token: u64) -> bool {
        match &self.state {
            State::Up(_) => false,
            State::Away { waiting, .. } => waiting.iter().any(|request| request.token == token),
        }
    }

    /// Sends a request, or lets it wait.
    ///
    /// # Errors
    /// When the endpoint is lost; the request is not taken.
    pub fn submit(&mut self, request: Request) -> Result<(), TargetError> {
        match &mut self.state {
            State::Up(endpoint) => endpoint.submit(request),
            State::Away { waiting, .. } => {
                waiting.push(request);
                Ok(())
            }
        }
    }

    /// Starts what was submitted.
    ///
    /// # Errors
    /// When the endpoint is lost.
    pub fn flush(&mut self) -> Result<(), TargetError> {
        match &mut self.state {
            State::Up(endpoint) => endpoint.flush(),
            State::Away { .. } => Ok(()),
        }
    }

    /// What to wait for.
    pub fn interest(&self) -> Interest {
        match &self.state {
            State::Up(endpoint) => endpoint.interest(),
            State::Away { attempts, .. } => Interest {
                fd: attempts.fd(),
                events: libc::POLLIN,
            },
        }
    }

    /// As [`crate::endpoint::Endpoint::service`].
    ///
    /// # Errors
    /// When the endpoint is lost.
    pub fn service(
        &mut self,
        revents: i16,
        completions: &mut Vec<Completion>,
    ) -> Result<(), TargetError> {
        match &mut self.state {
            State::Up(endpoint) => endpoint.service(revents, completions),
            State::Away { .. } => Ok(()),
        }
    }

    /// As [`crate::endpoint::Endpoint::attentions`]; empty while the target is away.
    pub fn attentions(&mut self) -> Vec<(u64, String)> {
        match &mut self.state {
            State::Up(endpoint) => endpoint.attentions(),
            State::Away { .. } => Vec::new(),
        }
    }

    /// The endpoint is lost because of `error`: tries for up to `within` to have another one.
    ///
    /// # Errors
    /// When that cannot be tried.
    pub fn lose(
        &mut self,
        error: &TargetError,
        now: Time,
        within: Duration,
    ) -> Result<(), TargetError> {
        assert!(!self.is_away(), "{}: lost while it was away", self.url);
        self.outages.push(Outage {
            target: self.url.to_string(),
            from: now,
            until: None,
            operations_lost: 0,
            why: error.detail.clone(),
        });
        self.state = State::Away {
            attempts: Attempts::begin(&self.url, &self.options, within)?,
            waiting: Vec::new(),
        };
        Ok(())
    }

    /// So many operations were under way at the last loss.
    pub fn count_lost(&mut self, operations: u64) {
        if let Some(outage) = self.outages.last_mut() {
            outage.operations_lost += operations;
        }
    }

    /// Takes the target into use again if it is back; gives what has waited for it.
    ///
    /// # Errors
    /// `Lost` when it did not come back in time, or came back as another one.
    pub fn resume(&mut self, now: Time) -> Result<Vec<Request>, TargetError> {
        let State::Away { attempts, waiting } = &mut self.state else {
            return Ok(Vec::new());
        };
        let Some(opened) = attempts.ended() else {
            return Ok(Vec::new());
        };
        let endpoint = opened.map_err(|error| {
            let detail = format!("lost, and not back in time: {}", error.detail);
            TargetError::new(TargetErrorKind::Lost, &self.url, detail)
        })?;
        let (before, after) = (self.geometry, endpoint.geometry());
        if (before.capacity_bytes, before.block_bytes) != (after.capacity_bytes, after.block_bytes)
        {
            let size = |of: Geometry| {
                format!(
                    "{} bytes in blocks of {}",
                    of.capacity_bytes, of.block_bytes
                )
            };
            let detail = format!("came back with {}; it had {}", size(after), size(before));
            return Err(TargetError::new(TargetErrorKind::Lost, &self.url, detail));
        }
        let waited = std::mem::take(waiting);
        self.state = State::Up(endpoint);
        if let Some(outage) = self.outages.last_mut() {
            outage.until = Some(now);
        }
        Ok(waited)
    }

    /// The outages so far.
    pub fn outages(&self) -> &[Outage] {
        &self.outages
    }
}
