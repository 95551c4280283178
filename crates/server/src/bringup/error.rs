//! What the array and the portals say, as errors that keep the server from serving.

use super::{BringUpError, BringUpErrorKind};
use crate::array::ArrayError;
use crate::front::PortalError;

impl From<PortalError> for BringUpError {
    fn from(error: PortalError) -> Self {
        Self::new(BringUpErrorKind::Address, error.to_string())
    }
}

impl From<ArrayError> for BringUpError {
    fn from(error: ArrayError) -> Self {
        Self::new(BringUpErrorKind::Pool, error.context)
    }
}
