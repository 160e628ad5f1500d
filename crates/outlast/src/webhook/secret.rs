//! The signature of a delivery: HMAC-SHA256 over the id, the time and the body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The key of a webhook's signatures. Only the receiver and this process know it.
#[derive(Clone)]
pub struct WebhookSecret(Vec<u8>);

/// The text is not a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it must be `whsec_` and {MIN_KEY_BYTES} to {MAX_KEY_BYTES} bytes in base64, such as the output of `echo whsec_$(openssl rand -base64 32)`"
)]
pub struct InvalidSecret;

impl WebhookSecret {
    /// Reads `whsec_` and the key in base64.
    pub fn parse(text: &str) -> Result<Self, InvalidSecret> {
        let encoded = text.strip_prefix(PREFIX).ok_or(InvalidSecret)?;
        let key = STANDARD.decode(encoded).map_err(|_| InvalidSecret)?;
        if (MIN_KEY_BYTES..=MAX_KEY_BYTES).contains(&key.len()) {
            Ok(Self(key))
        } else {
            Err(InvalidSecret)
        }
    }

    /// The value of the header `webhook-signature` for a request with this id, time in seconds and
    /// body.
    pub fn sign(&self, id: &str, seconds: u64, body: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any size");
        mac.update(format!("{id}.{seconds}.{body}").as_bytes());
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

impl std::fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebhookSecret")
    }
}

const PREFIX: &str = "whsec_";

// The sizes that Standard Webhooks recommends.
const MIN_KEY_BYTES: usize = 24;
const MAX_KEY_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_that_of_standard_webhooks() {
        // The example of the specification.
        let secret = WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = secret.sign(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            r#"{"test": 2432232314}"#,
        );
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_weak_secret_is_refused() {
        for text in ["", "secret", "whsec_", "whsec_c2hvcnQ=", "whsec_???"] {
            assert!(WebhookSecret::parse(text).is_err(), "{text}");
        }
    }
}
