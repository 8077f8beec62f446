//! What requests hold of something limited, such as threads, places of a queue, memory or disk space.
//!
//! Requests of public keys hold at most a part of what all requests may hold. The same rule bounds what one key holds
//! and what all keys hold together.

use crate::admission::Precedence;

/// The most that may be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// By all requests.
    pub all: u64,
    /// By requests of public keys.
    pub public: u64,
}

impl Bound {
    /// A bound of `all`, of which public keys may hold half, but at least one.
    pub const fn half_for_public(all: u64) -> Self {
        let public = all / 2;
        Self {
            all,
            public: if public == 0 { 1 } else { public },
        }
    }
}

/// A part of a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// What all requests may hold.
    All,
    /// What requests of public keys may hold.
    Public,
}

/// What requests hold now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    all: u64,
    public: u64,
}

impl Held {
    /// What all requests hold.
    pub const fn all(&self) -> u64 {
        self.all
    }

    /// The part of the bound that a request of this precedence would exceed with this much more, if any.
    pub fn exceeded(&self, bound: Bound, precedence: Precedence, amount: u64) -> Option<Part> {
        if precedence == Precedence::Public && self.public.saturating_add(amount) > bound.public {
            return Some(Part::Public);
        }
        (self.all.saturating_add(amount) > bound.all).then_some(Part::All)
    }

    /// Whether a request of this precedence may take this much more.
    pub fn has_room(&self, bound: Bound, precedence: Precedence, amount: u64) -> bool {
        self.exceeded(bound, precedence, amount).is_none()
    }

    /// Takes an amount.
    pub fn take(&mut self, precedence: Precedence, amount: u64) {
        self.all = self.all.saturating_add(amount);
        if precedence == Precedence::Public {
            self.public = self.public.saturating_add(amount);
        }
    }

    /// Gives an amount back.
    pub fn give_back(&mut self, precedence: Precedence, amount: u64) {
        self.all = self.all.saturating_sub(amount);
        if precedence == Precedence::Public {
            self.public = self.public.saturating_sub(amount);
        }
    }
}
