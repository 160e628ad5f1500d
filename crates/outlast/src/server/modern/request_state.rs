//! The encrypted `requestState` of a suspended call (V2-MRTR-5).
//!
//! A client returns it byte for byte and cannot read it. It names a suspended call, its node and a
//! round of input requests, and is bound to an expiry, a principal and a request.
//! [`super::suspended`] knows whether the call still exists.

use outlast_engine::store::StoreError;
use outlast_engine::{NodeId, TaskId};
use outlast_wire::{RawRef, Timestamp, object};
use sha2::{Digest, Sha256};

use crate::server::key_ring::KeyRing;

/// The content of a `requestState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RequestState {
    /// The suspended call.
    pub(super) call: TaskId,
    /// The node that has suspended it.
    pub(super) node: NodeId,
    /// The round of input requests.
    pub(super) round: u32,
    /// When it expires.
    pub(super) expires: Timestamp,
    /// The principal and the request that it is bound to.
    pub(super) request: Fingerprint,
}

/// A hash of the principal, method, name and arguments of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint([u8; 32]);

impl RequestState {
    /// Encodes and encrypts the state.
    pub(super) async fn seal(&self, keys: &KeyRing, now: Timestamp) -> Result<String, StoreError> {
        let mut plaintext = Vec::with_capacity(PLAINTEXT_BYTES);
        plaintext.extend_from_slice(&self.call.bits().to_be_bytes());
        plaintext.extend_from_slice(&self.node.0.to_be_bytes());
        plaintext.extend_from_slice(&self.round.to_be_bytes());
        plaintext.extend_from_slice(&self.expires.0.to_be_bytes());
        plaintext.extend_from_slice(&self.request.0);
        keys.seal(&plaintext, PURPOSE, now).await
    }

    /// Decrypts a state; `None` if it was not created with a key of this store, or was changed.
    pub(super) async fn open(
        text: &str,
        keys: &KeyRing,
        now: Timestamp,
    ) -> Result<Option<Self>, StoreError> {
        let plaintext = keys.open(text, PURPOSE, now).await?;
        let plaintext: Option<[u8; PLAINTEXT_BYTES]> =
            plaintext.and_then(|plaintext| plaintext.try_into().ok());
        Ok(plaintext.map(|plaintext| Self {
            call: TaskId::from_bits(u128::from_be_bytes(part(&plaintext, 0))),
            node: NodeId(u64::from_be_bytes(part(&plaintext, 16))),
            round: u32::from_be_bytes(part(&plaintext, 24)),
            expires: Timestamp(u64::from_be_bytes(part(&plaintext, 28))),
            request: Fingerprint(part(&plaintext, 36)),
        }))
    }
}

impl Fingerprint {
    /// The fingerprint of a request. The order of object members does not matter.
    pub(super) fn new(principal: &str, method: &str, params: RawRef<'_>) -> Self {
        let mut hash = Sha256::new();
        for text in [principal, method] {
            add(&mut hash, b't', text);
        }
        for name in ["name", "uri", "arguments"] {
            add(&mut hash, b'm', name);
            if let Some(value) = object::find(params, &[name]) {
                add_value(&mut hash, value);
            }
        }
        Self(hash.finalize().into())
    }
}

/// Adds a value. The parser of the message limits its depth.
fn add_value(hash: &mut Sha256, value: RawRef<'_>) {
    if let Ok(mut members) = object::members(value) {
        members.sort_by(|one, other| one.name.cmp(&other.name));
        add(hash, b'o', &members.len().to_string());
        for member in members {
            add(hash, b'm', &member.name);
            add_value(hash, member.value);
        }
    } else if let Some(elements) = object::elements(value) {
        add(hash, b'a', &elements.len().to_string());
        for element in elements {
            add_value(hash, element);
        }
    } else if let Some(text) = value.text() {
        add(hash, b't', &text);
    } else {
        add(hash, b'v', value.as_str());
    }
}

/// Adds a text with its length, so that different sequences of texts have different hashes.
fn add(hash: &mut Sha256, tag: u8, text: &str) {
    hash.update([tag]);
    hash.update((text.len() as u64).to_be_bytes());
    hash.update(text.as_bytes());
}

fn part<const N: usize>(plaintext: &[u8; PLAINTEXT_BYTES], at: usize) -> [u8; N] {
    plaintext[at..at + N]
        .try_into()
        .expect("the offsets are within the plaintext")
}

const PURPOSE: &[u8] = b"outlast requestState 2";
/// Call, node, round, expiry, fingerprint.
const PLAINTEXT_BYTES: usize = 16 + 8 + 4 + 8 + 32;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use outlast_engine::MemoryStore;

    use super::*;

    fn fingerprint(principal: &str, params: &str) -> Fingerprint {
        Fingerprint::new(principal, "tools/call", RawRef::parse(params).unwrap())
    }

    fn state() -> RequestState {
        RequestState {
            call: TaskId::from_bits(1 << 100 | 5),
            node: NodeId(9),
            round: 7,
            expires: Timestamp(1 << 41),
            request: fingerprint("p", r#"{"name":"x"}"#),
        }
    }

    #[tokio::test]
    async fn a_sealed_state_opens_unchanged() {
        // V2-MRTR-5.
        let keys = KeyRing::new(Arc::new(MemoryStore::new()));
        let (state, now) = (state(), Timestamp(1));
        let text = state.seal(&keys, now).await.unwrap();
        let opened = RequestState::open(&text, &keys, now).await.unwrap();
        assert_eq!(opened, Some(state));
        let foreign = KeyRing::new(Arc::new(MemoryStore::new()));
        assert_eq!(
            RequestState::open(&text, &foreign, now).await.unwrap(),
            None
        );
    }

    #[test]
    fn a_fingerprint_depends_on_meaning_only() {
        let one = fingerprint(
            "p",
            r#"{"name":"x","arguments":{"a":1,"b":["c",{"d":null}]}}"#,
        );
        let same = r#"{"arguments": {"b":["\u0063",{"d":null}], "a":1},"name":"x","_meta":{},"requestState":"s"}"#;
        assert_eq!(one, fingerprint("p", same));
        for other in [
            r#"{"name":"y","arguments":{"a":1,"b":["c",{"d":null}]}}"#,
            r#"{"name":"x","arguments":{"a":2,"b":["c",{"d":null}]}}"#,
            r#"{"name":"x","arguments":{"a":1,"b":["c",{"d":"null"}]}}"#,
            r#"{"name":"x"}"#,
            r#"{"uri":"x"}"#,
        ] {
            assert_ne!(one, fingerprint("p", other), "{other}");
        }
        assert_ne!(one, fingerprint("q", same));
    }
}
