//! Reads the parts of DER (ITU-T X.690) that occur in public keys and certificates.
//!
//! rustls-webpki, which is in the tree, checks certificates and shows none of their parts; a parser
//! of all of X.509 would be a new dependency for one name of an algorithm and one public key.

pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OBJECT: u8 = 0x06;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;
/// The first field of a choice or of optional fields.
pub(super) const FIELD_0: u8 = 0xa0;

/// Splits off the first element. Returns its type, its content and the bytes after it.
pub(super) fn any(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&kind, rest) = der.split_first()?;
    let (&length, mut rest) = rest.split_first()?;
    let mut size = usize::from(length);
    if length & 0x80 != 0 {
        let (digits, after) = rest.split_at_checked(usize::from(length & 0x7f))?;
        if digits.len() > 4 {
            return None;
        }
        size = digits.iter().fold(0, |size, digit| size << 8 | usize::from(*digit));
        rest = after;
    }
    let (content, rest) = rest.split_at_checked(size)?;
    Some((kind, content, rest))
}

/// Splits off the first element if it has the type `kind`. Returns its content and the bytes after
/// it.
pub(super) fn element(der: &[u8], kind: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = any(der)?;
    (found == kind).then_some((content, rest))
}
