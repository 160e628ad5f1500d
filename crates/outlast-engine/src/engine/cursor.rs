//! Cursors: a position in an owner's list, as opaque text.

use super::EngineError;
use crate::owner::Owner;
use crate::store::Position;

/// Encodes `position` in the list of `owner`.
pub(crate) fn write(owner: &Owner, position: Position) -> String {
    format!("{:016x}{:08x}", position.0, check(owner, position))
}

/// Decodes a cursor. Fails if it was made for another owner.
pub(crate) fn read(owner: &Owner, cursor: &str) -> Result<Position, EngineError> {
    let digits = |text: Option<&str>| {
        text.filter(|text| text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
            .and_then(|text| u64::from_str_radix(text, 16).ok())
            .ok_or(EngineError::BadCursor)
    };
    if cursor.len() != 24 {
        return Err(EngineError::BadCursor);
    }
    let position = Position(digits(cursor.get(..16))?);
    if digits(cursor.get(16..))? == u64::from(check(owner, position)) {
        Ok(position)
    } else {
        Err(EngineError::BadCursor)
    }
}

/// FNV-1a over owner and position. It detects mistakes, not attacks: a forged cursor shows only the
/// owner's own list.
fn check(owner: &Owner, position: Position) -> u32 {
    let text = owner.to_storage();
    let bytes = text.bytes().chain(position.0.to_be_bytes());
    bytes.fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_cursor_is_read_back_by_its_owner_only(position: u64, name in "\\PC{0,12}") {
            let owner = Owner::principal(name.as_str());
            let cursor = write(&owner, Position(position));
            prop_assert_eq!(read(&owner, &cursor), Ok(Position(position)));
            let other = Owner::principal(format!("{name}x"));
            prop_assert_eq!(read(&other, &cursor), Err(EngineError::BadCursor));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,30}") {
            let _ = read(&Owner::principal("a"), &text);
        }
    }
}
