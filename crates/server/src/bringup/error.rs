//! What the portals say, as an error that keeps the server from serving.

use super::{BringUpError, BringUpErrorKind};
use crate::front::PortalError;

impl From<PortalError> for BringUpError {
    fn from(error: PortalError) -> Self {
        Self::new(BringUpErrorKind::Address, error.to_string())
    }
}
