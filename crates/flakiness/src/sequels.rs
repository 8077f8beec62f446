//! What follows a failure of a test that passes afterwards until nothing is left of it: the same for every such test.
//!
//! Where a third of a suite fails at once, a thousand tests take the very same steps. They are computed for the first
//! of them and taken again, in the same order, for the others: the figures agree to the last digit.
#![expect(
    clippy::indexing_slicing,
    reason = "every index is a position of the timeline that sized the vector, or one of four kinds"
)]

use std::ops::Range;

use crate::{
    model::{Outcome, PerRate, telling_retries},
    numbers::at,
};

/// The kinds of failure that the model tells apart: a recovered one, and final ones by their telling retries.
const KINDS: usize = 4;

/// The sequels met so far.
#[derive(Debug)]
pub(crate) struct Sequels {
    /// By position and kind.
    known: Vec<[Option<Sequel>; KINDS]>,
    /// The likelihoods of all of them, with their positions.
    pub(crate) factors: Vec<(usize, PerRate)>,
    recording: Option<Recording>,
}

/// The sequel of one failure.
#[derive(Debug, Clone)]
pub(crate) struct Sequel {
    /// Its likelihoods.
    pub(crate) factors: Range<usize>,
    /// The position from which on nothing is left of the failure.
    pub(crate) until: usize,
}

#[derive(Debug)]
struct Recording {
    position: usize,
    kind: usize,
    first: usize,
    /// The position at which something else happens to the test.
    next: usize,
}

impl Sequels {
    /// None yet, for a timeline of so many positions.
    pub(crate) fn new(positions: usize) -> Self {
        Self {
            known: vec![[const { None }; KINDS]; positions],
            factors: Vec::new(),
            recording: None,
        }
    }

    /// The sequel of a failure that befalls a test on the path.
    pub(crate) fn of(&self, position: usize, outcome: Outcome) -> Option<Sequel> {
        self.known[position][kind(outcome)].clone()
    }

    /// Begins with a failure of a test on the path, to which something else happens at the position `next`.
    pub(crate) fn begin(&mut self, position: usize, outcome: Outcome, next: usize) {
        self.forget();
        self.recording = Some(Recording {
            position,
            kind: kind(outcome),
            first: self.factors.len(),
            next,
        });
    }

    /// Takes in a likelihood of the test at hand.
    pub(crate) fn take_in(&mut self, position: usize, likelihood: &PerRate) {
        match &self.recording {
            Some(recording) if position < recording.next => self.factors.push((position, *likelihood)),
            Some(_) => self.forget(),
            None => {}
        }
    }

    /// Ends where all chains are on the path again.
    pub(crate) fn end(&mut self, until: usize) {
        let Some(recording) = self.recording.take_if(|recording| until <= recording.next) else {
            return self.forget();
        };
        self.known[recording.position][recording.kind] = Some(Sequel {
            factors: recording.first..self.factors.len(),
            until,
        });
    }

    /// Gives up what was begun.
    pub(crate) fn forget(&mut self) {
        if let Some(recording) = self.recording.take() {
            self.factors.truncate(recording.first);
        }
    }
}

fn kind(outcome: Outcome) -> usize {
    match outcome {
        Outcome::Passed | Outcome::Recovered => 0,
        Outcome::Failed(attempts) => 1 + at(telling_retries(attempts)),
    }
}
