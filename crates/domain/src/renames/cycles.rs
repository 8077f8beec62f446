//! Lines of a renames file that contradict other lines, or lead back to their old name.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{
    RenameProblem,
    line::{Kind, Line},
};
use crate::timestamp::Timestamp;

/// Most dates on which names are exchanged.
const MOST_EXCHANGES: usize = 20;

/// Leaves out lines that rename what another line renames, and lines to the name of another line.
pub(super) fn without_repetitions(lines: Vec<Line>, problems: &mut Vec<RenameProblem>) -> Vec<Line> {
    let (mut by_old, mut by_new) = (HashMap::new(), HashMap::new());
    let mut unique = Vec::with_capacity(lines.len());
    for line in lines {
        let reason = match (
            by_old.get(&(line.kind, line.old.clone())),
            by_new.get(&(line.kind, line.new.clone())),
        ) {
            (Some(other), _) => format!(
                "line {other} renames the same {}; keep one of them",
                line.kind.as_str()
            ),
            (None, Some(other)) => format!(
                "line {other} has the same new name; two {}s cannot become one",
                line.kind.as_str()
            ),
            (None, None) => {
                by_old.insert((line.kind, line.old.clone()), line.number);
                by_new.insert((line.kind, line.new.clone()), line.number);
                unique.push(line);
                continue;
            }
        };
        problems.push(RenameProblem {
            line: line.number,
            reason,
        });
    }
    unique
}

/// The lines that lead back to their old name. Those of one date exchange names; others are refused.
#[derive(Default)]
pub(super) struct Cycles {
    /// The first line of its exchange, for each line of one.
    pub(super) exchanges: BTreeMap<usize, usize>,
    /// Why a line is refused.
    pub(super) refused: BTreeMap<usize, String>,
    /// The exchanges by their dates.
    dates: BTreeMap<Timestamp, Vec<usize>>,
}

impl Cycles {
    pub(super) fn of(lines: &[Line]) -> Self {
        let next: HashMap<(Kind, &str), &Line> = lines
            .iter()
            .map(|line| ((line.kind, line.old.as_str()), line))
            .collect();
        let mut cycles = Self::default();
        let mut visited = HashSet::new();
        for start in lines {
            // Each old and each new name occurs once, so a way is a chain or a cycle.
            let mut way: Vec<&Line> = Vec::new();
            let mut current = Some(start);
            while let Some(line) = current.filter(|line| visited.insert(line.number)) {
                way.push(line);
                current = next.get(&(line.kind, line.new.as_str())).copied();
            }
            let is_cycle = !way.is_empty() && current.is_some_and(|line| line.number == start.number);
            if is_cycle {
                cycles.add(start, &way);
            }
        }
        cycles
    }

    fn add(&mut self, first: &Line, cycle: &[&Line]) {
        let of_one_date = cycle.iter().all(|line| line.date == first.date);
        for line in cycle {
            if of_one_date {
                self.exchanges.insert(line.number, first.number);
                self.dates.entry(line.date).or_default().push(line.number);
            } else {
                let reason = format!(
                    "leads back to {:?} by lines of other dates; remove the lines that no longer hold",
                    line.old
                );
                self.refused.insert(line.number, reason);
            }
        }
    }

    pub(super) fn refuse_beyond_most_dates(&mut self) {
        for number in self.dates.values().skip(MOST_EXCHANGES).flatten() {
            self.exchanges.remove(number);
            let reason = format!("expected at most {MOST_EXCHANGES} dates with exchanged names");
            self.refused.insert(*number, reason);
        }
    }
}
