//! The sealed state of a call that waits for its caller's answers (V2-MRTR-5).
//!
//! A client gets it back byte for byte and can read nothing in it. It names a parked call and a round of questions,
//! and says until when, for whom and for which request it is good. Whether the call is still there is not its
//! business: that is [`super::suspended`]'s.

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use outlast_engine::store::{Record, RecordKey, RecordWrite, Store, StoreError};
use outlast_engine::{TaskId, random};
use outlast_wire::{RawRef, Timestamp, object};
use sha2::{Digest, Sha256};

/// Seals and opens states.
pub(crate) struct Seal(XChaCha20Poly1305);

/// What a state says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    /// The parked call.
    pub(super) call: TaskId,
    /// Which of its rounds of questions is answered.
    pub(super) round: u32,
    /// Until when it is good.
    pub(super) expires: Timestamp,
    /// For whom and for which request it is good.
    pub(super) request: Fingerprint,
}

/// Tells requests of different principals, methods, names and arguments apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint([u8; 32]);

impl Seal {
    /// The seal of this store: its key is made once and kept there.
    pub(crate) async fn of(store: &dyn Store, now: Timestamp) -> Result<Self, StoreError> {
        let key = RecordKey::new(KIND, "requestState");
        if let Some(record) = store.record(&key, now).await?
            && let Ok(bytes) = <[u8; 32]>::try_from(&*record.bytes)
        {
            return Ok(Self::new(bytes));
        }
        let bytes: [u8; 32] = random::bytes();
        let record = Record {
            key,
            owner: None,
            expires: None,
            bytes: bytes.into(),
        };
        store.write_records(vec![RecordWrite::Put(record)]).await?;
        Ok(Self::new(bytes))
    }

    fn new(key: [u8; 32]) -> Self {
        Self(XChaCha20Poly1305::new(&Key::from(key)))
    }

    /// The text of a state.
    pub(super) fn close(&self, state: &State) -> String {
        let mut plain = Vec::with_capacity(PLAIN);
        plain.extend_from_slice(&state.call.bits().to_be_bytes());
        plain.extend_from_slice(&state.round.to_be_bytes());
        plain.extend_from_slice(&state.expires.0.to_be_bytes());
        plain.extend_from_slice(&state.request.0);
        let nonce: [u8; NONCE] = random::bytes();
        let payload = Payload {
            msg: &plain,
            aad: CONTEXT,
        };
        let sealed = self.0.encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.expect("60 bytes are not too many to encrypt");
        BASE64_URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat())
    }

    /// What a text says, if it was sealed here and not touched since.
    pub(super) fn open(&self, text: &str) -> Option<State> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE)?;
        let nonce = XNonce::try_from(nonce).ok()?;
        let payload = Payload {
            msg: sealed,
            aad: CONTEXT,
        };
        let plain = self.0.decrypt(&nonce, payload).ok()?;
        let plain: [u8; PLAIN] = plain.try_into().ok()?;
        Some(State {
            call: TaskId::from_bits(u128::from_be_bytes(part(&plain, 0))),
            round: u32::from_be_bytes(part(&plain, 16)),
            expires: Timestamp(u64::from_be_bytes(part(&plain, 20))),
            request: Fingerprint(part(&plain, 28)),
        })
    }
}

impl Fingerprint {
    /// Of a request with these `params`. The members of an object may come in another order the next time.
    pub(super) fn of(principal: &str, method: &str, params: RawRef<'_>) -> Self {
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

/// Adds a value. Its depth is bounded by that of the message it came in.
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

/// Adds a text so that no two sequences of texts look alike.
fn add(hash: &mut Sha256, sort: u8, text: &str) {
    hash.update([sort]);
    hash.update((text.len() as u64).to_be_bytes());
    hash.update(text.as_bytes());
}

fn part<const N: usize>(plain: &[u8; PLAIN], at: usize) -> [u8; N] {
    plain[at..at + N].try_into().expect("a part of the whole")
}

const KIND: &str = "sealing-key";
const CONTEXT: &[u8] = b"outlast requestState 1";
const NONCE: usize = 24;
/// Call, round, expiry, fingerprint.
const PLAIN: usize = 16 + 4 + 8 + 32;

#[cfg(test)]
mod tests {
    use outlast_engine::MemoryStore;

    use super::*;

    fn fingerprint(principal: &str, params: &str) -> Fingerprint {
        Fingerprint::of(principal, "tools/call", RawRef::parse(params).unwrap())
    }

    fn state() -> State {
        State {
            call: TaskId::from_bits(1 << 100 | 5),
            round: 7,
            expires: Timestamp(1 << 41),
            request: fingerprint("p", r#"{"name":"x"}"#),
        }
    }

    #[tokio::test]
    async fn a_state_opens_with_the_key_of_its_store_and_with_no_other() {
        // V2-MRTR-5.
        let store = MemoryStore::new();
        let seal = Seal::of(&store, Timestamp(1)).await.unwrap();
        let state = state();
        let text = seal.close(&state);
        assert_eq!(seal.open(&text), Some(state));
        let again = Seal::of(&store, Timestamp(2)).await.unwrap();
        assert_eq!(again.open(&text), Some(state));
        let foreign = Seal::of(&MemoryStore::new(), Timestamp(1)).await.unwrap();
        assert_eq!(foreign.open(&text), None);
        assert_ne!(seal.close(&state), text);
    }

    #[test]
    fn a_state_that_was_touched_does_not_open() {
        // V2-MRTR-5.
        let seal = Seal::new([7; 32]);
        let text = seal.close(&state());
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
            assert_eq!(seal.open(&String::from_utf8(bytes).unwrap()), None);
        }
        let upper = text.to_uppercase();
        for strange in ["", "00", &text[2..], &format!("{text}00"), "é", &upper] {
            assert_eq!(seal.open(strange), None, "{strange}");
        }
    }

    #[test]
    fn requests_are_told_apart_by_meaning() {
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
