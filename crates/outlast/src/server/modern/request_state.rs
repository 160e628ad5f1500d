//! The encrypted `requestState` of a suspended call (V2-MRTR-5).
//!
//! A client returns it byte for byte and cannot read it. It names a suspended call and a round of
//! input requests, and is bound to an expiry, a principal and a request. [`super::suspended`] knows
//! whether the call still exists.

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use outlast_engine::store::{Record, RecordKey, RecordSwap, Store, StoreError};
use outlast_engine::{TaskId, random};
use outlast_wire::{RawRef, Timestamp, object};
use sha2::{Digest, Sha256};

/// Encrypts and decrypts states.
pub(crate) struct StateCipher(XChaCha20Poly1305);

/// The content of a `requestState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RequestState {
    /// The suspended call.
    pub(super) call: TaskId,
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

impl StateCipher {
    /// Loads the key from the store. The first call creates it.
    pub(crate) async fn load(store: &dyn Store, now: Timestamp) -> Result<Self, StoreError> {
        let key = RecordKey::new(KEY_RECORD_KIND, "requestState");
        loop {
            let stored = store.record(&key, now).await?.map(|record| record.bytes);
            if let Some(Ok(bytes)) = stored.as_deref().map(<[u8; 32]>::try_from) {
                return Ok(Self::new(bytes));
            }
            let record = Record {
                key: key.clone(),
                owner: None,
                expires: None,
                bytes: random::bytes::<32>().into(),
            };
            // Of several nodes that start at the same time, one writes its key, and all read it.
            let swap = RecordSwap {
                expected: stored,
                record,
            };
            store.swap_record(swap, now).await?;
        }
    }

    fn new(key: [u8; 32]) -> Self {
        Self(XChaCha20Poly1305::new(&Key::from(key)))
    }

    /// Encodes and encrypts a state.
    pub(super) fn encrypt(&self, state: &RequestState) -> String {
        let mut plaintext = Vec::with_capacity(PLAINTEXT_BYTES);
        plaintext.extend_from_slice(&state.call.bits().to_be_bytes());
        plaintext.extend_from_slice(&state.round.to_be_bytes());
        plaintext.extend_from_slice(&state.expires.0.to_be_bytes());
        plaintext.extend_from_slice(&state.request.0);
        let nonce: [u8; NONCE_BYTES] = random::bytes();
        let payload = Payload {
            msg: &plaintext,
            aad: ASSOCIATED_DATA,
        };
        let encrypted = self.0.encrypt(&XNonce::from(nonce), payload);
        let encrypted = encrypted.expect("60 bytes are below the limit of the cipher");
        BASE64_URL_SAFE_NO_PAD.encode([&nonce[..], &encrypted].concat())
    }

    /// Decrypts a state; `None` if it was not created with this key, or was changed.
    pub(super) fn decrypt(&self, text: &str) -> Option<RequestState> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, encrypted) = bytes.split_at_checked(NONCE_BYTES)?;
        let nonce = XNonce::try_from(nonce).ok()?;
        let payload = Payload {
            msg: encrypted,
            aad: ASSOCIATED_DATA,
        };
        let plaintext = self.0.decrypt(&nonce, payload).ok()?;
        let plaintext: [u8; PLAINTEXT_BYTES] = plaintext.try_into().ok()?;
        Some(RequestState {
            call: TaskId::from_bits(u128::from_be_bytes(part(&plaintext, 0))),
            round: u32::from_be_bytes(part(&plaintext, 16)),
            expires: Timestamp(u64::from_be_bytes(part(&plaintext, 20))),
            request: Fingerprint(part(&plaintext, 28)),
        })
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

const KEY_RECORD_KIND: &str = "sealing-key";
const ASSOCIATED_DATA: &[u8] = b"outlast requestState 1";
const NONCE_BYTES: usize = 24;
/// Call, round, expiry, fingerprint.
const PLAINTEXT_BYTES: usize = 16 + 4 + 8 + 32;

#[cfg(test)]
mod tests {
    use outlast_engine::MemoryStore;

    use super::*;

    fn fingerprint(principal: &str, params: &str) -> Fingerprint {
        Fingerprint::new(principal, "tools/call", RawRef::parse(params).unwrap())
    }

    fn state() -> RequestState {
        RequestState {
            call: TaskId::from_bits(1 << 100 | 5),
            round: 7,
            expires: Timestamp(1 << 41),
            request: fingerprint("p", r#"{"name":"x"}"#),
        }
    }

    #[tokio::test]
    async fn only_the_key_of_its_store_decrypts_a_state() {
        // V2-MRTR-5.
        let store = MemoryStore::new();
        let cipher = StateCipher::load(&store, Timestamp(1)).await.unwrap();
        let state = state();
        let text = cipher.encrypt(&state);
        assert_eq!(cipher.decrypt(&text), Some(state));
        let again = StateCipher::load(&store, Timestamp(2)).await.unwrap();
        assert_eq!(again.decrypt(&text), Some(state));
        let foreign = StateCipher::load(&MemoryStore::new(), Timestamp(1))
            .await
            .unwrap();
        assert_eq!(foreign.decrypt(&text), None);
        assert_ne!(cipher.encrypt(&state), text);
    }

    #[test]
    fn a_changed_state_does_not_decrypt() {
        // V2-MRTR-5.
        let cipher = StateCipher::new([7; 32]);
        let text = cipher.encrypt(&state());
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
            assert_eq!(cipher.decrypt(&String::from_utf8(bytes).unwrap()), None);
        }
        let upper = text.to_uppercase();
        for malformed in ["", "00", &text[2..], &format!("{text}00"), "é", &upper] {
            assert_eq!(cipher.decrypt(malformed), None, "{malformed}");
        }
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
