//! Finds the request id of a response that is too large to be stored.

use super::Id;
use crate::raw::Raw;

/// Finds the request id of a response. It receives the bytes of the message in chunks and stores
/// only a few of them.
#[derive(Debug, Default)]
pub struct ResponseIdFinder {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// Whether the next value at the top level is a member name.
    at_name: bool,
    member: Member,
    /// The relevant part of the name or value that is being read.
    text: Vec<u8>,
    id: Option<Id>,
    has_method: bool,
}

/// The top-level member that is being read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Member {
    Id,
    #[default]
    Other,
}

impl ResponseIdFinder {
    /// Processes the next bytes of the message.
    pub fn take(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.step(byte);
        }
    }

    /// The id of the request, if it was found. `None` if the message is not a response.
    pub fn id(&self) -> Option<&Id> {
        self.id.as_ref().filter(|_| !self.has_method)
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            self.keep(byte);
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.keep(byte);
            }
            b'{' | b'[' => {
                self.depth += 1;
                if self.depth == 1 {
                    self.begin_member();
                }
            }
            b'}' | b']' => {
                if self.depth == 1 {
                    self.end_value();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b',' if self.depth == 1 => {
                self.end_value();
                self.begin_member();
            }
            b':' if self.depth == 1 => self.end_name(),
            b' ' | b'\t' | b'\r' | b'\n' => {}
            byte => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        let matters = self.at_name || self.member == Member::Id;
        if self.depth == 1 && matters && self.text.len() < MAX_STORED_BYTES {
            self.text.push(byte);
        }
    }

    fn begin_member(&mut self) {
        self.at_name = true;
        self.member = Member::Other;
        self.text.clear();
    }

    fn end_name(&mut self) {
        self.member = match &*self.text {
            br#""id""# => Member::Id,
            _ => Member::Other,
        };
        self.has_method |= *self.text == *br#""method""#;
        self.at_name = false;
        self.text.clear();
    }

    fn end_value(&mut self) {
        if self.member == Member::Id {
            let text = String::from_utf8(std::mem::take(&mut self.text)).ok();
            let value = text.and_then(|text| Raw::parse(text).ok());
            self.id = value.and_then(|value| Id::read(value.borrow()).ok());
        }
    }
}

/// The stored length of a name or an id. A longer id is not one of ours.
const MAX_STORED_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn find_id(message: &str, step: usize) -> Option<Id> {
        let mut answered = ResponseIdFinder::default();
        for part in message.as_bytes().chunks(step) {
            answered.take(part);
        }
        answered.id().cloned()
    }

    #[test]
    fn the_id_of_a_response_is_found_anywhere() {
        for (message, id) in [
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{"id":8}}"#,
                Some(Id::from(7)),
            ),
            (
                r#"{"result":{"a":[{"id":1}],"s":"\"id\":2,}"},"jsonrpc":"2.0","id" : 9 }"#,
                Some(Id::from(9)),
            ),
            (r#"{"id":"a\"b","error":{}}"#, Some(Id::text("a\"b"))),
            (
                r#"{"id":7,"result":{"text":"it does not end"#,
                Some(Id::from(7)),
            ),
            (r#"{"id":7,"method":"ping"}"#, None),
            (r#"{"method":"notifications/x","params":{"id":3}}"#, None),
            (r#"[1,2]"#, None),
            ("nonsense", None),
        ] {
            for step in 1..message.len() {
                assert_eq!(find_id(message, step), id, "{message} {step}");
            }
        }
    }
}
