//! Which places in the order of creation are taken, as the file knows it.

/// Places in the order of creation. The file says of a whole block that it may have been given out,
/// so that none is given out twice even if its task is gone.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Positions {
    /// The first that the file does not call given out.
    in_file: u64,
    /// The first that was not given out, once one was.
    pub(super) next: Option<u64>,
}

impl Positions {
    /// Notes that all places up to `last` are given out; returns what the file has to say about it.
    pub(super) fn give_out(&mut self, last: u64) -> Option<u64> {
        self.next = Some(last + 1);
        (last >= self.in_file).then(|| {
            self.in_file = last + BLOCK;
            self.in_file
        })
    }
}

/// How many places in the order of creation the file is told of at once.
const BLOCK: u64 = 10_000;
