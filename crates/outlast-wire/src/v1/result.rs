//! Results on their way to a V1 peer.

use crate::meta;
use crate::object::{self, NotAnObject};
use crate::raw::{Raw, RawRef};

/// What `tasks/result` answers with: the result as it is, marked with its task (V1-RES-6), without
/// the V2 discriminator (BR-RES-2).
pub fn payload_result(result: RawRef<'_>, task: &str) -> Result<Raw, NotAnObject> {
    meta::relate(plain_result(result)?.borrow(), task)
}

/// A result without the V2 discriminator, as a plain V1 answer carries it.
pub fn plain_result(result: RawRef<'_>) -> Result<Raw, NotAnObject> {
    object::remove(result, &["resultType"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_is_marked_and_otherwise_untouched() {
        let result = r#"{"resultType":"complete","content":[ ],"isError":false,"_meta":{"x":1.0},"new":{"a":[]}}"#;
        assert_eq!(
            payload_result(RawRef::parse(result).unwrap(), "t")
                .unwrap()
                .as_str(),
            r#"{"content":[ ],"isError":false,"_meta":{"x":1.0,"io.modelcontextprotocol/related-task":{"taskId":"t"}},"new":{"a":[]}}"#
        );
    }
}
