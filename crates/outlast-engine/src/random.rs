//! Random bytes and random text from the secure source of the operating system. No other file reads
//! that source.

use std::cell::RefCell;

/// Bytes that cannot be guessed.
pub fn bytes<const N: usize>() -> [u8; N] {
    thread_local! {
        static BLOCK: RefCell<RandomBlock> = const {
            RefCell::new(RandomBlock { bytes: [0; BLOCK_BYTES], left: 0 })
        };
    }
    BLOCK.with_borrow_mut(RandomBlock::draw)
}

/// `N` random bytes as `2 * N` hexadecimal digits. With 16 bytes (128 bits) no two are equal and
/// none can be guessed; stored credentials use 32.
pub fn token<const N: usize>() -> String {
    let digits = bytes::<N>()
        .into_iter()
        .flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .map(|digit| char::from(HEX[usize::from(digit)]))
        .collect()
}

/// Whether `text` has the form of a [`token`] of `N` bytes.
pub fn is_token<const N: usize>(text: &str) -> bool {
    text.len() == 2 * N && text.bytes().all(|byte| HEX.contains(&byte))
}

/// A buffer of random bytes per thread: one system call fills it for many ids.
struct RandomBlock {
    bytes: [u8; BLOCK_BYTES],
    /// The number of unused bytes, which are at the end.
    left: usize,
}

impl RandomBlock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the only place that reads the random source"
    )]
    fn draw<const N: usize>(&mut self) -> [u8; N] {
        const { assert!(N <= BLOCK_BYTES) };
        if self.left < N {
            getrandom::fill(&mut self.bytes).expect("the operating system has a random source");
            self.left = BLOCK_BYTES;
        }
        let mut drawn = [0; N];
        let at = BLOCK_BYTES - self.left;
        let part = &mut self.bytes[at..at + N];
        drawn.copy_from_slice(part);
        // The bytes may become a secret: no copy stays in the buffer.
        part.fill(0);
        self.left -= N;
        drawn
    }
}

const BLOCK_BYTES: usize = 2_048;

const HEX: &[u8; 16] = b"0123456789abcdef";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn tokens_are_hexadecimal_and_never_repeat() {
        // Enough to refill the block several times.
        let tokens: BTreeSet<_> = (0..1_000).map(|_| token::<16>()).collect();
        assert_eq!(tokens.len(), 1_000);
        for token in tokens {
            assert!(is_token::<16>(&token), "{token}");
        }
    }

    #[test]
    fn every_byte_of_a_draw_is_random() {
        let drawn: Vec<[u8; 32]> = (0..200).map(|_| bytes()).collect();
        for at in 0..32 {
            let values: BTreeSet<_> = drawn.iter().map(|bytes| bytes[at]).collect();
            assert!(values.len() > 50, "byte {at} has {} values", values.len());
        }
    }

    #[test]
    fn other_texts_are_not_tokens() {
        for text in [
            "",
            "0123456789abcde",
            "0123456789ABCDEF",
            "0123456789abcdeg",
            "0123456789abcdéf",
        ] {
            assert!(!is_token::<8>(text), "{text}");
        }
        assert!(is_token::<8>("0123456789abcdef"));
    }
}
