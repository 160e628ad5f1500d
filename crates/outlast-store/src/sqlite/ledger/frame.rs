//! A batch with its number and its checksum. A frame that was not written to its end is none.

/// How a frame begins: its length and a checksum of all that follows, which ledger it is of, its number.
pub(super) const HEADER: usize = 24;

/// A frame that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    pub(super) number: u64,
    /// All of it, with the header.
    pub(super) bytes: &'a [u8],
}

/// Makes a frame of what stands behind the room for its header.
pub(super) fn seal(frame: &mut [u8], ledger: i64, number: u64) {
    let length = u32::try_from(frame.len()).expect("a batch has a few megabytes and one payload");
    frame[8..16].copy_from_slice(&ledger.to_le_bytes());
    frame[16..HEADER].copy_from_slice(&number.to_le_bytes());
    let sum = crc32fast::hash(&frame[8..]);
    frame[..4].copy_from_slice(&length.to_le_bytes());
    frame[4..8].copy_from_slice(&sum.to_le_bytes());
}

/// The frames of `ledger` at the beginning of `bytes` whose numbers follow one another, and where they end.
pub(super) fn read(bytes: &[u8], ledger: i64) -> (Vec<Frame<'_>>, usize) {
    let (mut frames, mut at) = (Vec::<Frame<'_>>::new(), 0);
    while let Some((frame, length)) = first(&bytes[at..], ledger) {
        if frames
            .last()
            .is_some_and(|last| last.number + 1 != frame.number)
        {
            // From before the file was written anew.
            break;
        }
        frames.push(frame);
        at += length;
    }
    (frames, at)
}

fn first(bytes: &[u8], ledger: i64) -> Option<(Frame<'_>, usize)> {
    let header = bytes.first_chunk::<HEADER>()?;
    let [length, sum] = [0, 4].map(|at| {
        let bytes = header[at..at + 4].try_into();
        u32::from_le_bytes(bytes.expect("four bytes of a header"))
    });
    let length = length as usize;
    let frame = bytes.get(..length).filter(|frame| frame.len() >= HEADER)?;
    let [of, number] = [8, 16].map(|at| {
        let bytes = header[at..at + 8].try_into();
        u64::from_le_bytes(bytes.expect("eight bytes of a header"))
    });
    let ours = of == ledger.cast_unsigned() && crc32fast::hash(&frame[8..]) == sum;
    let bytes = frame;
    ours.then_some((Frame { number, bytes }, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(number: u64, entries: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; HEADER];
        frame.extend_from_slice(entries);
        seal(&mut frame, LEDGER, number);
        frame
    }

    const LEDGER: i64 = -7;

    #[test]
    fn whole_frames_are_read_and_nothing_behind_them() {
        let mut bytes = sealed(5, b"five");
        bytes.extend(sealed(6, b""));
        let whole = bytes.len();
        bytes.extend(sealed(7, b"seven"));
        for end in whole..bytes.len() {
            let (frames, at) = read(&bytes[..end], LEDGER);
            let frames: Vec<_> = frames
                .iter()
                .map(|frame| (frame.number, &frame.bytes[HEADER..]))
                .collect();
            assert_eq!(frames, [(5, &b"five"[..]), (6, b"")], "{end} bytes");
            assert_eq!(at, whole);
        }
        assert_eq!(read(&bytes, LEDGER).0.len(), 3);
        assert_eq!(read(&bytes, LEDGER + 1).0, [], "another ledger's");
    }

    #[test]
    fn one_wrong_bit_ends_what_is_read() {
        let mut bytes = sealed(1, b"one");
        let first = bytes.len();
        bytes.extend(sealed(2, b"two"));
        for bit in 0..8 * (bytes.len() - first) {
            let mut wrong = bytes.clone();
            wrong[first + bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(&wrong, LEDGER).1, first, "bit {bit}");
        }
    }

    #[test]
    fn what_the_file_held_before_it_was_written_anew_does_not_count() {
        let mut bytes = sealed(9, b"new");
        bytes.extend(sealed(4, b"old"));
        assert_eq!(read(&bytes, LEDGER).0.len(), 1);
        assert_eq!(read(&[0; 4096], LEDGER), (Vec::new(), 0), "set aside");
    }
}
