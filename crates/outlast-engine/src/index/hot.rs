//! Ended tasks that somebody looks at again and again, side by side.
//!
//! Among a million others they lie scattered over more memory than a processor finds its way about without looking it
//! up. Here are copies of few of them, so that a look costs what it costs among a thousand.

use std::sync::Arc;

use crate::id::TaskId;
use crate::store::Brief;

/// Copies of what is looked at often. Empty until there is a crowd to be lost in.
#[derive(Debug, Default)]
pub(super) struct Hot {
    sets: Box<[Set]>,
}

/// Ids that share a place: two that were looked at, the later one first.
type Set = [Seen; 2];

#[derive(Debug, Default)]
struct Seen {
    id: Option<TaskId>,
    /// Made at the second look: most tasks are looked at once.
    copy: Option<Arc<Brief>>,
}

impl Hot {
    /// The copy of a task, if there is one.
    pub(super) fn find(&self, id: TaskId) -> Option<&Arc<Brief>> {
        let set = self.sets.get(place(id))?;
        let seen = set.iter().find(|seen| seen.id == Some(id))?;
        seen.copy.as_ref()
    }

    /// Takes note of a look at a task, one of `crowd`.
    pub(super) fn note(&mut self, id: TaskId, brief: &Brief, crowd: usize) {
        if self.sets.is_empty() {
            if crowd < CROWD {
                return;
            }
            self.sets = (0..SETS).map(|_| Set::default()).collect();
        }
        let set = &mut self.sets[place(id)];
        match set.iter_mut().find(|seen| seen.id == Some(id)) {
            Some(seen) => seen.copy = Some(Arc::new(brief.clone())),
            None => {
                // Whoever was looked at once gives way before one that is looked at often.
                if set[1].copy.is_none() || set[0].copy.is_some() {
                    set.swap(0, 1);
                }
                set[0] = Seen {
                    id: Some(id),
                    copy: None,
                };
            }
        }
    }

    /// Forgets a task that changes.
    pub(super) fn forget(&mut self, id: TaskId) {
        let set = self.sets.get_mut(place(id)).into_iter().flatten();
        for seen in set.filter(|seen| seen.id == Some(id)) {
            *seen = Seen::default();
        }
    }
}

/// Shards use the lowest bits of this half of an id.
fn place(id: TaskId) -> usize {
    let [_, low] = id.halves();
    (low >> 32) as usize % SETS
}

const SETS: usize = 256;

/// From how many tasks in one part on it pays to keep copies.
const CROWD: usize = 2_048;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::given;
    use crate::outcome::Outcome;

    /// An ended task; all of them share a place.
    fn ended(n: u64) -> Brief {
        let task = given::task(n);
        let over = given::end(&task, Outcome::Cancelled);
        let over = given::change(&task, over, given::CREATED);
        let brief = Brief::of(&over.next).expect("it has ended");
        let id = TaskId::from_bits(n.into());
        Brief { id, ..brief }
    }

    #[test]
    fn the_second_look_makes_a_copy_and_a_change_takes_it_away() {
        let mut hot = Hot::default();
        let brief = ended(1);
        hot.note(brief.id, &brief, CROWD - 1);
        hot.note(brief.id, &brief, CROWD - 1);
        assert_eq!(hot.find(brief.id), None, "there is no crowd");
        hot.note(brief.id, &brief, CROWD);
        assert_eq!(hot.find(brief.id), None, "it was looked at once");
        hot.note(brief.id, &brief, CROWD);
        assert_eq!(hot.find(brief.id).map(|copy| &**copy), Some(&brief));
        hot.forget(brief.id);
        assert_eq!(hot.find(brief.id), None);
    }

    #[test]
    fn whoever_is_looked_at_once_does_not_drive_out_one_that_is_looked_at_often() {
        let mut hot = Hot::default();
        let [often, once, more] = [1, 2, 3].map(ended);
        for brief in [&often, &often, &once, &more, &once, &more] {
            hot.note(brief.id, brief, CROWD);
        }
        assert!(hot.find(often.id).is_some());
        assert!(hot.find(once.id).is_none() && hot.find(more.id).is_none());
    }

    #[test]
    fn two_that_share_a_place_are_both_kept() {
        let mut hot = Hot::default();
        let [one, other] = [1, 2].map(ended);
        for brief in [&one, &other, &one, &other] {
            hot.note(brief.id, brief, CROWD);
        }
        assert!(hot.find(one.id).is_some() && hot.find(other.id).is_some());
    }
}
