//! A limited amount, such as memory or disk space, that requests under way share.
//!
//! A key holds at most a part of the amount, and all public keys together at most half. A request that has to wait passes those
//! of public keys if its own key is trusted. A request that only waits for its own key's share delays no other key.
//! Requests of one key are served in their order.

use std::{
    collections::{BTreeMap, HashMap, HashSet, btree_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use assay_domain::id::KeyId;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::oneshot;

use crate::{
    admission::Precedence,
    held::{Bound, Held, Part},
};

/// The key of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// Its id.
    pub key: KeyId,
    /// Whether it is public.
    pub precedence: Precedence,
}

/// A limited amount.
#[derive(Debug)]
pub struct Capacity {
    /// The bound for all keys together.
    all: Bound,
    /// The bound for each key. A key is either public or not.
    of_key: Bound,
    state: Mutex<State>,
    /// Shows the amount that is taken.
    gauge: Option<Gauge>,
}

#[derive(Debug, Default)]
struct State {
    taken: Held,
    /// The part of each key.
    taken_by_key: HashMap<KeyId, Held>,
    /// The requests that wait, in the order in which they are served.
    waiting: BTreeMap<(Precedence, u64), Waiting>,
    /// The number of the next request that waits.
    next_number: u64,
}

#[derive(Debug)]
struct Waiting {
    key: KeyId,
    amount: u64,
    sender: oneshot::Sender<Share>,
}

/// What stands in the way of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Obstacle {
    /// The share of its key, or that of all public keys.
    OwnShare,
    /// The whole amount.
    All,
}

impl Capacity {
    /// This amount, of which each key may hold a part. The gauge shows how much is taken.
    pub fn new(all: u64, of_key: u64, gauge: Option<Gauge>) -> Arc<Self> {
        Arc::new(Self {
            all: Bound {
                all,
                public: all.div_ceil(2),
            },
            of_key: Bound {
                all: of_key,
                public: of_key,
            },
            state: Mutex::default(),
            gauge,
        })
    }

    /// The most that one key may hold.
    pub const fn of_key(&self) -> u64 {
        self.of_key.all
    }

    /// An empty share.
    pub fn empty(self: &Arc<Self>, holder: Holder) -> Share {
        Share {
            capacity: Arc::clone(self),
            holder,
            amount: 0,
        }
    }

    /// Waits for a share. Returns none if it is not free in time, or is more than one key may hold.
    pub async fn wait_for(self: &Arc<Self>, holder: Holder, amount: u64, within: Duration) -> Option<Share> {
        let mut share = self.empty(holder);
        if share.grow(amount) {
            return Some(share);
        }
        let (sender, receiver) = oneshot::channel();
        let place = {
            let mut state = self.state();
            let place = (holder.precedence, state.next_number);
            state.next_number += 1;
            let waiting = Waiting {
                key: holder.key,
                amount,
                sender,
            };
            state.waiting.insert(place, waiting);
            Place {
                capacity: Arc::clone(self),
                place,
            }
        };
        // The amount may have become free meanwhile.
        self.serve();
        let waited = tokio::time::timeout(within, receiver).await;
        drop(place);
        waited.ok()?.ok()
    }

    /// What stands in the way of this amount, if anything does.
    fn obstacle(&self, state: &State, holder: Holder, amount: u64) -> Option<Obstacle> {
        let Holder { key, precedence } = holder;
        let of_key = state.taken_by_key.get(&key).copied().unwrap_or_default();
        if !of_key.has_room(self.of_key, precedence, amount) {
            return Some(Obstacle::OwnShare);
        }
        state
            .taken
            .exceeded(self.all, precedence, amount)
            .map(|part| match part {
                Part::Public => Obstacle::OwnShare,
                Part::All => Obstacle::All,
            })
    }

    /// Whether a request that is served before this one waits, for its key's share or for the whole amount.
    fn is_others_turn(&self, state: &State, holder: Holder) -> bool {
        let mut earlier = state.waiting.range(..(holder.precedence, u64::MAX));
        earlier.any(|((precedence, _), waiting)| {
            let first = Holder {
                key: waiting.key,
                precedence: *precedence,
            };
            first.key == holder.key || self.obstacle(state, first, waiting.amount) == Some(Obstacle::All)
        })
    }

    fn take(&self, state: &mut State, holder: Holder, amount: u64) {
        state.taken.take(holder.precedence, amount);
        let of_key = state.taken_by_key.entry(holder.key).or_default();
        of_key.take(holder.precedence, amount);
        self.show(state);
    }

    fn give_back(&self, holder: Holder, amount: u64) {
        let mut state = self.state();
        state.taken.give_back(holder.precedence, amount);
        if let Some(of_key) = state.taken_by_key.get_mut(&holder.key) {
            of_key.give_back(holder.precedence, amount);
            if of_key.all() == 0 {
                state.taken_by_key.remove(&holder.key);
            }
        }
        self.show(&state);
        drop(state);
    }

    /// Gives their shares to the requests that need not wait any longer.
    fn serve(self: &Arc<Self>) {
        let mut served = Vec::new();
        let mut guard = self.state();
        let state = &mut *guard;
        let mut waiting_keys = HashSet::new();
        let places: Vec<(Precedence, u64)> = state.waiting.keys().copied().collect();
        for place in places {
            let Entry::Occupied(waiting) = state.waiting.entry(place) else {
                continue;
            };
            let (key, amount) = (waiting.get().key, waiting.get().amount);
            let holder = Holder {
                key,
                precedence: place.0,
            };
            let sender = waiting.remove().sender;
            let obstacle = self.obstacle(state, holder, amount);
            if obstacle.is_none() && !waiting_keys.contains(&key) {
                self.take(state, holder, amount);
                let share = Share {
                    capacity: Arc::clone(self),
                    holder,
                    amount,
                };
                served.push((sender, share));
                continue;
            }
            waiting_keys.insert(key);
            state.waiting.insert(place, Waiting { key, amount, sender });
            if obstacle == Some(Obstacle::All) {
                break;
            }
        }
        drop(guard);
        for (sender, share) in served {
            // If the client has disconnected, the share comes back and is given back at once.
            let _ = sender.send(share);
        }
    }

    fn show(&self, state: &State) {
        if let Some(gauge) = &self.gauge {
            gauge.set(i64::try_from(state.taken.all()).unwrap_or(i64::MAX));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a request that waits; dropping it leaves the queue.
struct Place {
    capacity: Arc<Capacity>,
    place: (Precedence, u64),
}

impl Drop for Place {
    fn drop(&mut self) {
        let left = self.capacity.state().waiting.remove(&self.place);
        if left.is_some() {
            self.capacity.serve();
        }
    }
}

/// An amount that a request holds; dropping it gives it back.
#[derive(Debug)]
pub struct Share {
    capacity: Arc<Capacity>,
    holder: Holder,
    amount: u64,
}

impl Share {
    /// The amount.
    pub const fn amount(&self) -> u64 {
        self.amount
    }

    /// The most that its key may hold.
    pub fn most(&self) -> u64 {
        self.capacity.of_key()
    }

    /// Takes more without waiting. Returns whether it was free and no other request's turn.
    pub fn grow(&mut self, amount: u64) -> bool {
        let mut state = self.capacity.state();
        let is_free = self.capacity.obstacle(&state, self.holder, amount).is_none()
            && !self.capacity.is_others_turn(&state, self.holder);
        if is_free {
            self.capacity.take(&mut state, self.holder, amount);
            self.amount += amount;
        }
        is_free
    }

    /// Gives a part back.
    pub fn shrink_to(&mut self, amount: u64) {
        let excess = self.amount.saturating_sub(amount);
        if excess > 0 {
            self.amount = amount;
            self.capacity.give_back(self.holder, excess);
            self.capacity.serve();
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests;
