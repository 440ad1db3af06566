//! The calls that wait for one queue: a line for each owner, and the owners take turns.

use std::collections::{BTreeMap, HashMap};

use pegboard_base::caller::QuotaOwner;

/// The waiting calls of one queue. Each owner has a line in order of arrival, and the owners take turns, so an owner with a thousand calls delays
/// the only call of another owner by one call.
#[derive(Debug)]
pub(super) struct OwnerLines<W> {
    lines: HashMap<QuotaOwner, OwnerLine<W>>,
    /// The owners with waiting calls, in the order of their next turns.
    turns: BTreeMap<u64, QuotaOwner>,
    next_number: u64,
    waiting: usize,
    /// The most calls that may wait.
    most: usize,
}

/// The waiting calls of one owner. It is never empty.
#[derive(Debug)]
struct OwnerLine<W> {
    turn: u64,
    /// By ticket, so in order of arrival.
    calls: BTreeMap<u64, W>,
}

/// Where a call waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ticket {
    owner: QuotaOwner,
    number: u64,
}

/// Why a call cannot wait: how many others do, and how many of them are its owner's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full {
    pub(super) waiting: usize,
    pub(super) of_owner: usize,
    /// How many calls are served before a call that could wait behind its owner's others.
    pub(super) ahead: usize,
}

impl<W> OwnerLines<W> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            lines: HashMap::new(),
            turns: BTreeMap::new(),
            next_number: 0,
            waiting: 0,
            most,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Adds a call to its owner's line, unless the owner has as many waiting calls as there is room left. One owner can so fill half of the
    /// room, two can fill two thirds, and an owner without waiting calls finds room unless the rest is taken by as many owners as calls.
    ///
    /// `make` creates what waits, and what the caller keeps of it.
    pub(super) fn join<R>(&mut self, owner: &QuotaOwner, make: impl FnOnce() -> (W, R)) -> Result<(Ticket, R), Full> {
        let of_owner = self.lines.get(owner).map_or(0, |line| line.calls.len());
        if of_owner >= self.most.saturating_sub(self.waiting) {
            return Err(self.to_full(of_owner));
        }
        let number = self.number();
        let turns = &mut self.turns;
        let line = self.lines.entry(owner.clone()).or_insert_with(|| {
            turns.insert(number, owner.clone());
            OwnerLine {
                turn: number,
                calls: BTreeMap::new(),
            }
        });
        let (waiter, kept) = make();
        line.calls.insert(number, waiter);
        self.waiting += 1;
        let owner = owner.clone();
        Ok((Ticket { owner, number }, kept))
    }

    fn to_full(&self, of_owner: usize) -> Full {
        let owners = self.lines.len() + usize::from(of_owner == 0);
        Full {
            waiting: self.waiting,
            of_owner,
            ahead: (of_owner + 1).saturating_mul(owners).min(self.waiting),
        }
    }

    /// Removes the call whose turn it is. Its owner's next call waits for the turns of all other owners.
    pub(super) fn next(&mut self) -> Option<W> {
        let (_, owner) = self.turns.pop_first()?;
        let number = self.number();
        let line = self.lines.get_mut(&owner)?;
        let (_, waiter) = line.calls.pop_first()?;
        self.waiting -= 1;
        if line.calls.is_empty() {
            self.lines.remove(&owner);
        } else {
            line.turn = number;
            self.turns.insert(number, owner);
        }
        Some(waiter)
    }

    /// Removes a call that waits no longer. Does nothing if its turn has come before.
    pub(super) fn leave(&mut self, ticket: &Ticket) {
        let Some(line) = self.lines.get_mut(&ticket.owner) else {
            return;
        };
        if line.calls.remove(&ticket.number).is_none() {
            return;
        }
        self.waiting -= 1;
        if line.calls.is_empty() {
            let turn = line.turn;
            self.turns.remove(&turn);
            self.lines.remove(&ticket.owner);
        }
    }

    /// The next number of a turn or ticket.
    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum QueueStep {
        Join(u64),
        Next,
        /// Removes one of the waiting calls.
        Leave(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<QueueStep>> {
        let step = prop_oneof![
            4 => (0..6u64).prop_map(QueueStep::Join),
            3 => Just(QueueStep::Next),
            1 => any::<usize>().prop_map(QueueStep::Leave),
        ];
        prop::collection::vec(step, 0..300)
    }

    /// A waiting call, and the turns of others since it was the first of its owner.
    struct Waiting {
        ticket: Ticket,
        call: usize,
        others_before: usize,
    }

    proptest! {
        /// Whatever arrives and leaves: the first call of an owner is served within as many turns as there are owners, the calls of one owner are
        /// served in order, and no call is lost or served twice.
        #[test]
        fn an_owner_waits_for_one_call_of_each_other_owner(steps in steps(), most in 1..40usize) {
            let mut lines = OwnerLines::new(most);
            let mut expected: BTreeMap<u64, VecDeque<Waiting>> = BTreeMap::new();
            for (call, step) in steps.into_iter().enumerate() {
                match step {
                    QueueStep::Join(owner) => {
                        let mine = expected.entry(owner).or_default();
                        match lines.join(&QuotaOwner::View(owner), || ((owner, call), ())) {
                            Ok((ticket, ())) => mine.push_back(Waiting { ticket, call, others_before: 0 }),
                            Err(full) => {
                                prop_assert_eq!(full.of_owner, mine.len());
                                prop_assert!(full.of_owner >= most - full.waiting);
                                prop_assert!(full.ahead <= full.waiting);
                            }
                        }
                    }
                    QueueStep::Next => {
                        let owners = expected.values().filter(|line| !line.is_empty()).count();
                        let served = lines.next();
                        prop_assert_eq!(served.is_some(), owners > 0);
                        let Some((owner, call)) = served else { continue };
                        let first = expected.get_mut(&owner).and_then(VecDeque::pop_front).unwrap();
                        prop_assert_eq!(first.call, call);
                        prop_assert!(first.others_before < 6, "{} turns of others", first.others_before);
                        for (_, line) in expected.iter_mut().filter(|(other, _)| **other != owner) {
                            if let Some(first) = line.front_mut() {
                                first.others_before += 1;
                            }
                        }
                    }
                    QueueStep::Leave(which) => {
                        let mut all: Vec<_> = expected.values().flatten().map(|waiting| waiting.ticket.clone()).collect();
                        if all.is_empty() { continue }
                        let ticket = all.swap_remove(which % all.len());
                        lines.leave(&ticket);
                        lines.leave(&ticket);
                        for line in expected.values_mut() {
                            line.retain(|waiting| waiting.ticket != ticket);
                        }
                    }
                }
                prop_assert_eq!(lines.len(), expected.values().map(VecDeque::len).sum::<usize>());
                prop_assert_eq!(lines.lines.len(), lines.turns.len());
            }
        }
    }

    #[test]
    fn the_more_owners_wait_the_smaller_is_the_share_of_each() {
        let owners = |count: u64| {
            let mut lines = OwnerLines::new(512);
            let mut filled = 0;
            while filled < lines.len() + 1 {
                filled = lines.len() + 1;
                for owner in 0..count {
                    let _ = lines.join(&QuotaOwner::View(owner), || ((), ()));
                }
            }
            assert!(
                lines.join(&QuotaOwner::View(count), || ((), ())).is_ok(),
                "a newcomer finds room"
            );
            lines.len() - 1
        };
        assert_eq!(owners(1), 256);
        assert_eq!(owners(2), 342);
        assert_eq!(owners(7), 448);
    }
}
