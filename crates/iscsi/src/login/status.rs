//! Stages of a login, and the statuses that end one (RFC 7143 clauses 11.12.3 and 11.13.5).

/// Stages of a login (clause 11.12.3).
pub(super) const SECURITY: u8 = 0;
pub(super) const OPERATIONAL: u8 = 1;
pub(super) const FULL_FEATURE: u8 = 3;

/// Status class and detail (clause 11.13.5).
pub(super) type Status = (u8, u8);

pub(super) const INITIATOR_ERROR: Status = (2, 0x00);
pub(super) const AUTHENTICATION_FAILURE: Status = (2, 0x01);
pub(super) const FORBIDDEN: Status = (2, 0x02);
pub(super) const NOT_FOUND: Status = (2, 0x03);
pub(super) const UNSUPPORTED_VERSION: Status = (2, 0x05);
pub(super) const MISSING_PARAMETER: Status = (2, 0x07);
pub(super) const SESSION_DOES_NOT_EXIST: Status = (2, 0x0a);
pub(super) const INVALID_DURING_LOGIN: Status = (2, 0x0b);
pub(super) const SERVICE_UNAVAILABLE: Status = (3, 0x01);
pub(super) const OUT_OF_RESOURCES: Status = (3, 0x02);

/// Why a login ends: what the peer is told, and what the log is told.
pub(super) type Refused = (Status, String);
