//! Additional header segments (RFC 7143 clause 11.2.2).

/// What a SCSI command's additional header segments say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Additional {
    /// CDB bytes from the seventeenth on.
    pub extended_cdb: Option<Vec<u8>>,
    /// Expected data-in length of a bidirectional command.
    pub bidirectional_read_bytes: Option<u32>,
}

/// The segments do not add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdditionalError {
    /// A segment reaches past the end, or is shorter than its type needs.
    #[error("an additional header segment has a wrong length")]
    Length,
    /// A type that the clause does not define.
    #[error("an additional header segment has type {0}, which is not defined")]
    Kind(u8),
    /// The same type twice.
    #[error("additional header segments of type {0} are there twice")]
    Twice(u8),
}

const EXTENDED_CDB: u8 = 1;
const BIDIRECTIONAL_READ: u8 = 2;

/// Parses the segments that follow a SCSI command's header.
///
/// # Errors
/// When a length or a type can't be right.
pub fn parse(mut bytes: &[u8]) -> Result<Additional, AdditionalError> {
    let mut found = Additional::default();
    while let [high, low, kind, rest @ ..] = bytes {
        // The length counts what follows the type: one specific byte, then content.
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        let body = rest.get(..len).ok_or(AdditionalError::Length)?;
        let (_, content) = body.split_first().ok_or(AdditionalError::Length)?;
        match *kind & 0x3f {
            EXTENDED_CDB if found.extended_cdb.is_none() => {
                found.extended_cdb = Some(content.to_vec());
            }
            BIDIRECTIONAL_READ if found.bidirectional_read_bytes.is_none() => {
                let value = content.try_into().map_err(|_| AdditionalError::Length)?;
                found.bidirectional_read_bytes = Some(u32::from_be_bytes(value));
            }
            kind @ (EXTENDED_CDB | BIDIRECTIONAL_READ) => return Err(AdditionalError::Twice(kind)),
            kind => return Err(AdditionalError::Kind(kind)),
        }
        let whole = (3 + len).next_multiple_of(4);
        bytes = bytes.get(whole..).ok_or(AdditionalError::Length)?;
    }
    if bytes.is_empty() {
        Ok(found)
    } else {
        Err(AdditionalError::Length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extended_cdb_and_bidirectional_length_are_found() {
        let bytes = [0, 5, 2, 0, 0, 0, 2, 0, 0, 6, 1, 0, 9, 8, 7, 6, 5, 0, 0, 0];
        let found = parse(&bytes).unwrap();
        assert_eq!(found.bidirectional_read_bytes, Some(512));
        assert_eq!(found.extended_cdb, Some(vec![9, 8, 7, 6, 5]));
        assert_eq!(parse(&[]), Ok(Additional::default()));
    }

    #[test]
    fn wrong_segments_are_refused() {
        assert_eq!(parse(&[0, 9, 1, 0]), Err(AdditionalError::Length));
        assert_eq!(parse(&[0, 0, 1, 0]), Err(AdditionalError::Length));
        assert_eq!(
            parse(&[0, 4, 2, 0, 0, 0, 0, 0]),
            Err(AdditionalError::Length)
        );
        assert_eq!(parse(&[0, 1, 3, 0]), Err(AdditionalError::Kind(3)));
        assert_eq!(
            parse(&[0, 1, 1, 0, 0, 1, 1, 0]),
            Err(AdditionalError::Twice(1))
        );
        assert_eq!(parse(&[0, 1]), Err(AdditionalError::Length));
    }
}
