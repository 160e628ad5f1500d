//! The keys for data that a server sends out and receives again: `requestState`, and the pass of a
//! request that one node forwards to another.
//!
//! The keys are a record in the store, so every process on that store can decrypt the data, also
//! after a restart. After [`KEY_LIFETIME`] a new key is used. The previous key still decrypts; one
//! such key is enough, because the data is valid for much less than a lifetime.

use std::sync::Arc;
use std::time::Duration;

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use outlast_engine::random;
use outlast_engine::store::{Record, RecordKey, RecordSwap, Store, StoreError};
use outlast_wire::Timestamp;
use parking_lot::RwLock;
use sha2::{Digest, Sha256};

/// The keys of one store.
pub(crate) struct KeyRing {
    store: Arc<dyn Store>,
    /// The keys that this process has read; empty before the first use.
    keys: RwLock<Arc<Keys>>,
}

/// The keys as they are stored, the newest one first.
#[derive(Default)]
struct Keys {
    all: Vec<SealingKey>,
    /// When they were read.
    read_at: Timestamp,
}

struct SealingKey {
    created: Timestamp,
    bytes: [u8; KEY_BYTES],
    id: [u8; KEY_ID_BYTES],
    cipher: XChaCha20Poly1305,
}

impl KeyRing {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            keys: RwLock::default(),
        }
    }

    /// Encrypts `plaintext` with the newest key. `purpose` must be the same for [`Self::open`].
    pub(crate) async fn seal(
        &self,
        plaintext: &[u8],
        purpose: &[u8],
        now: Timestamp,
    ) -> Result<String, StoreError> {
        let keys = self.newest(now).await?;
        let key = keys.all.first().expect("`newest` returns at least one key");
        let nonce: [u8; NONCE_BYTES] = random::bytes();
        let payload = Payload {
            msg: plaintext,
            aad: purpose,
        };
        let encrypted = key.cipher.encrypt(&XNonce::from(nonce), payload);
        let encrypted = encrypted.expect("the text is below the limit of the cipher");
        Ok(BASE64_URL_SAFE_NO_PAD.encode([&key.id[..], &nonce, &encrypted].concat()))
    }

    /// Decrypts `text`; `None` if it was not sealed with a key of this store for this purpose, or
    /// was changed.
    pub(crate) async fn open(
        &self,
        text: &str,
        purpose: &[u8],
        now: Timestamp,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let Ok(bytes) = BASE64_URL_SAFE_NO_PAD.decode(text) else {
            return Ok(None);
        };
        let Some((id, rest)) = bytes.split_at_checked(KEY_ID_BYTES) else {
            return Ok(None);
        };
        let Some((nonce, encrypted)) = rest.split_at_checked(NONCE_BYTES) else {
            return Ok(None);
        };
        let Ok(nonce) = XNonce::try_from(nonce) else {
            return Ok(None);
        };
        let mut keys = self.current();
        if !keys.has(id) && keys.is_older_than(MIN_READ_INTERVAL, now) {
            // Another process may have added the key.
            keys = self.read(now).await?;
        }
        let payload = Payload {
            msg: encrypted,
            aad: purpose,
        };
        let key = keys.all.iter().find(|key| key.id == id);
        Ok(key.and_then(|key| key.cipher.decrypt(&nonce, payload).ok()))
    }

    fn current(&self) -> Arc<Keys> {
        self.keys.read().clone()
    }

    /// The keys, of which the newest is younger than [`KEY_LIFETIME`]. Creates that key if
    /// necessary.
    async fn newest(&self, now: Timestamp) -> Result<Arc<Keys>, StoreError> {
        let known = self.current();
        if known.is_usable(now) {
            return Ok(known);
        }
        loop {
            let stored = self.store.record(&record_key(), now).await?;
            let stored = stored.map(|record| record.bytes);
            let keys = Keys::decode(stored.as_deref().unwrap_or_default(), now);
            if keys.is_usable(now) {
                return Ok(self.replace(keys));
            }
            let mut all = vec![SealingKey::new(now, random::bytes())];
            all.extend(keys.all.into_iter().take(MAX_KEYS - 1));
            let keys = Keys { all, read_at: now };
            let record = Record {
                key: record_key(),
                owner: None,
                expires: None,
                bytes: keys.encode().into(),
            };
            // If several nodes do this at the same time, one of them writes its key, and all read
            // it.
            let swap = RecordSwap {
                expected: stored,
                record,
            };
            if self.store.swap_record(swap, now).await? {
                return Ok(self.replace(keys));
            }
        }
    }

    async fn read(&self, now: Timestamp) -> Result<Arc<Keys>, StoreError> {
        let stored = self.store.record(&record_key(), now).await?;
        let bytes = stored.map(|record| record.bytes);
        Ok(self.replace(Keys::decode(bytes.as_deref().unwrap_or_default(), now)))
    }

    fn replace(&self, keys: Keys) -> Arc<Keys> {
        let keys = Arc::new(keys);
        *self.keys.write() = keys.clone();
        keys
    }
}

impl Keys {
    /// Reads the stored keys. Bytes of another form are no keys.
    fn decode(bytes: &[u8], read_at: Timestamp) -> Self {
        let (entries, rest) = bytes.as_chunks::<ENTRY_BYTES>();
        let entries = if rest.is_empty() { entries } else { &[] };
        let all = entries.iter().map(|entry| {
            let (created, key) = entry
                .split_first_chunk::<8>()
                .expect("an entry begins with eight bytes");
            let key = key.try_into().expect("the rest of an entry is the key");
            SealingKey::new(Timestamp(u64::from_be_bytes(*created)), key)
        });
        Self {
            all: all.collect(),
            read_at,
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.all.len() * ENTRY_BYTES);
        for key in &self.all {
            bytes.extend_from_slice(&key.created.0.to_be_bytes());
            bytes.extend_from_slice(&key.bytes);
        }
        bytes
    }

    fn is_usable(&self, now: Timestamp) -> bool {
        let newest = self.all.first();
        newest.is_some_and(|key| now.0 < key.created.plus(millis(KEY_LIFETIME)).0)
    }

    fn has(&self, id: &[u8]) -> bool {
        self.all.iter().any(|key| key.id == id)
    }

    fn is_older_than(&self, age: Duration, now: Timestamp) -> bool {
        self.all.is_empty() || now.0 >= self.read_at.plus(millis(age)).0
    }
}

impl SealingKey {
    fn new(created: Timestamp, bytes: [u8; KEY_BYTES]) -> Self {
        let digest = Sha256::new()
            .chain_update(b"outlast key id")
            .chain_update(bytes)
            .finalize();
        let mut id = [0; KEY_ID_BYTES];
        id.copy_from_slice(&digest[..KEY_ID_BYTES]);
        Self {
            created,
            bytes,
            id,
            cipher: XChaCha20Poly1305::new(&Key::from(bytes)),
        }
    }
}

fn record_key() -> RecordKey {
    RecordKey::new("sealing-key", "all")
}

fn millis(duration: Duration) -> u64 {
    duration.as_millis() as u64
}

/// How long a key is used to encrypt.
const KEY_LIFETIME: Duration = Duration::from_secs(24 * 3_600);

/// How many keys are stored.
const MAX_KEYS: usize = 2;

/// The minimum time between two reads of the keys because of an unknown key id. Any client can send
/// one.
const MIN_READ_INTERVAL: Duration = Duration::from_millis(250);

const KEY_BYTES: usize = 32;
const KEY_ID_BYTES: usize = 4;
const NONCE_BYTES: usize = 24;

/// The time of creation and the key.
const ENTRY_BYTES: usize = 8 + KEY_BYTES;

#[cfg(test)]
mod tests {
    use outlast_engine::MemoryStore;

    use super::*;

    fn ring(store: &Arc<dyn Store>) -> KeyRing {
        KeyRing::new(store.clone())
    }

    fn store() -> Arc<dyn Store> {
        Arc::new(MemoryStore::new())
    }

    #[tokio::test]
    async fn every_process_on_a_store_opens_what_another_sealed() {
        // V2-MRTR-5.
        let (shared, foreign, now) = (store(), store(), Timestamp(1));
        let (one, other) = (ring(&shared), ring(&shared));
        let text = one.seal(b"state", b"a", now).await.unwrap();
        let open = |ring: KeyRing, text: String, purpose: &'static [u8]| async move {
            ring.open(&text, purpose, now).await.unwrap()
        };
        assert_eq!(
            other.open(&text, b"a", now).await.unwrap().unwrap(),
            b"state"
        );
        assert_eq!(open(ring(&shared), text.clone(), b"b").await, None);
        assert_eq!(open(ring(&foreign), text.clone(), b"a").await, None);
        assert_ne!(other.seal(b"state", b"a", now).await.unwrap(), text);
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
            let changed = String::from_utf8(bytes).unwrap();
            assert_eq!(one.open(&changed, b"a", now).await.unwrap(), None);
        }
        for malformed in ["", "00", &text[2..], "é", &text.to_uppercase()] {
            assert_eq!(one.open(malformed, b"a", now).await.unwrap(), None);
        }
    }

    #[tokio::test]
    async fn keys_are_rotated_and_the_one_before_still_opens() {
        let store = store();
        let (one, other) = (ring(&store), ring(&store));
        let day = |days: u64| Timestamp(1 + days * millis(KEY_LIFETIME));
        let first = one.seal(b"1", b"", day(0)).await.unwrap();
        assert!(other.open(&first, b"", day(0)).await.unwrap().is_some());
        // Both rotate at the same time and use one key.
        let second = one.seal(b"2", b"", day(1)).await.unwrap();
        let third = other.seal(b"3", b"", day(1)).await.unwrap();
        assert_eq!(second[..5], third[..5]);
        assert_ne!(first[..5], second[..5]);
        for text in [&first, &second, &third] {
            assert!(one.open(text, b"", day(1)).await.unwrap().is_some());
            assert!(other.open(text, b"", day(1)).await.unwrap().is_some());
        }
        let _ = one.seal(b"4", b"", day(2)).await.unwrap();
        assert!(one.open(&first, b"", day(2)).await.unwrap().is_none());
        assert!(one.open(&second, b"", day(2)).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_key_of_another_process_is_read_when_used() {
        let store = store();
        let (old, new) = (ring(&store), ring(&store));
        let day = |days: u64| Timestamp(1 + days * millis(KEY_LIFETIME));
        let _ = old.seal(b"1", b"", day(0)).await.unwrap();
        let text = new.seal(b"2", b"", day(1)).await.unwrap();
        assert!(old.open(&text, b"", day(1)).await.unwrap().is_some());
    }
}
