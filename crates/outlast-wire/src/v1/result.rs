//! Results for a V1 peer.

use crate::json::write::ObjectWriter;
use crate::meta;
use crate::object::{self, NotAnObject};
use crate::raw::{Raw, RawRef};

/// The response to `tasks/result`: the result with the mark of its task (V1-RES-6). A result of a
/// modern call loses the V2 discriminator and the server info (BR-RES-2, BR-GEN-6).
pub fn payload_result(result: RawRef<'_>, task: &str) -> Result<Raw, NotAnObject> {
    match object::pick(result, ["resultType", meta::META])? {
        // Most results have neither: the mark is inserted at the start, and the rest is copied
        // once.
        [None, None] => Ok(Raw::written_with_capacity(result.as_str().len(), |out| {
            let mut fields = ObjectWriter::begin(out);
            fields.nested(meta::META, |out| {
                let mut fields = ObjectWriter::begin(out);
                fields.nested(meta::RELATED_TASK, |out| meta::write_relation(out, task));
                fields.end();
            });
            fields.end_with(result);
        })),
        [None, Some(_)] => meta::relate(result, task),
        [Some(_), _] => {
            let mut mark = String::new();
            meta::write_relation(&mut mark, task);
            let rewrite = object::Rewrite {
                drop: &["resultType"],
                drop_meta: &[meta::SERVER_INFO],
                set: Vec::new(),
                set_meta: vec![(meta::RELATED_TASK, RawRef::scanned(&mark))],
            };
            rewrite.apply(result)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_is_marked_and_otherwise_untouched() {
        let result = r#"{"resultType":"complete","content":[ ],"isError":false,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"},"x":1.0},"new":{"a":[]}}"#;
        assert_eq!(
            payload_result(RawRef::parse(result).unwrap(), "t")
                .unwrap()
                .as_str(),
            r#"{"content":[ ],"isError":false,"_meta":{"x":1.0,"io.modelcontextprotocol/related-task":{"taskId":"t"}},"new":{"a":[]}}"#
        );
    }

    #[test]
    fn every_payload_is_marked_and_has_no_v2_member() {
        // V1-RES-6, BR-RES-2.
        for result in [
            "{}",
            "{ }",
            r#"{ "content":[ 1.50 ]}"#,
            r#"{"resultType":"complete"}"#,
            r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"old"}},"x":1}"#,
            r#"{"_m\u0065ta":{"k":2}}"#,
        ] {
            let marked = payload_result(RawRef::parse(result).unwrap(), "t").unwrap();
            let text = marked.as_str();
            assert_eq!(
                meta::related_task(marked.borrow()).as_deref(),
                Some("t"),
                "{text}"
            );
            let bare = meta::unrelate(marked.borrow()).unwrap();
            let before = object::remove(RawRef::parse(result).unwrap(), &["resultType"]).unwrap();
            let before = meta::unrelate(before.borrow()).unwrap();
            let open = |raw: &Raw| raw.open::<serde_json::Value>().unwrap();
            assert_eq!(open(&bare), open(&before), "{text}");
        }
    }
}
