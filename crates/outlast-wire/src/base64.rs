//! Base64 of RFC 4648 §4, padded, and nothing else accepted.

/// `bytes` as a text.
pub fn encoded(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    encode(&mut out, bytes);
    out
}

/// Appends `bytes` to `out`.
pub fn encode(out: &mut String, bytes: &[u8]) {
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().enumerate().fold(0, |word, (at, byte)| {
            word | u32::from(*byte) << (16 - 8 * at)
        });
        for at in 0..4 {
            if at <= chunk.len() {
                let index = (word >> (18 - 6 * at)) & 63;
                out.push(char::from(ALPHABET[index as usize]));
            } else {
                out.push('=');
            }
        }
    }
}

/// Reads `text`; `None` for wrong length, foreign characters, misplaced padding or stray bits.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let body = text.trim_end_matches('=');
    let padding = text.len() - body.len();
    if padding > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut word, mut bits) = (0u32, 0);
    for character in body.bytes() {
        let index = ALPHABET.iter().position(|known| *known == character)?;
        word = word << 6 | u32::try_from(index).ok()?;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((word >> bits) as u8);
            word &= (1 << bits) - 1;
        }
    }
    (word == 0 && bytes.len() == text.len() / 4 * 3 - padding).then_some(bytes)
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_examples_of_the_rfc_hold() {
        for (plain, encoded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            let mut out = String::new();
            encode(&mut out, plain.as_bytes());
            assert_eq!(out, encoded);
            assert_eq!(decode(encoded).as_deref(), Some(plain.as_bytes()));
        }
    }

    #[test]
    fn sloppy_encodings_are_refused() {
        for text in [
            "Zg",
            "Zg=",
            "Zh==",
            "Z===",
            "====",
            "Zm9v\n",
            "Zm-_",
            "=Zg=",
            "SGVs!!!bG8=",
        ] {
            assert_eq!(decode(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_read_back(bytes: Vec<u8>) {
            let mut out = String::new();
            encode(&mut out, &bytes);
            prop_assert_eq!(decode(&out), Some(bytes));
        }
    }
}
