//! Pass 2: the filter of one failing test. It runs only where the state differs from that of a test that always passes.
#![expect(
    clippy::indexing_slicing,
    reason = "every index is a position or chain of the timeline that sized the vectors"
)]

use std::{
    array::from_fn,
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use crate::{
    model::{
        GRID, LEFT_BROKEN, Likelihood, Move, Outcome, PerRate, RELIABLE, Step,
        always_passing::AlwaysPassing,
        background::Background,
        branch_breaks, breaks_like_branch, breaks_like_sibling,
        chain_state::{ChainState, RelativeLikelihood},
        failing_branches::FailingBranches,
        first_breaks, flake_rate, mean, prior, prior_on_variant,
        project_rates::BRANCHES_USUALLY_BREAK,
        scaled_product::ScaledProduct,
        stable_breaks, unreliable, unreliable_rate,
    },
    numbers::count,
    timeline::{Timeline, positions::Positions},
    verdict::test_counts::TestCounts,
};

/// The result of the filter for a test.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Belief {
    /// The posterior of each hypothesis, if the test has one flake rate on all variants.
    weights: PerRate,
    /// The logarithm of the marginal likelihood of the results then.
    log_likelihood: f64,
    /// The probability that the test itself is unreliable.
    pub(crate) flake_score: f64,
    /// The expected flake rate.
    pub(crate) flake_rate: f64,
}

/// The filter with its working memory, which is reused from test to test.
#[derive(Debug)]
pub(crate) struct Filter<'t, 'h> {
    timeline: &'t Timeline<'h>,
    background: &'t Background,
    always_passing: &'t AlwaysPassing,
    /// The prior probability of each hypothesis.
    prior: PerRate,
    /// The same of a variant that has a flake rate of its own.
    prior_on_variant: PerRate,
    /// The probability that a new revision off the stable branch breaks the test.
    branch_breaks: PerRate,
    /// The positions at which the current test fails or is absent, or at which new code inherits a deviating state.
    visits: Positions,
    /// The positions of stable chains after which the state differs from that of a test that always passes.
    deviating: Positions,
    /// P(Broken) at these positions, by position.
    stable: Vec<PerRate>,
    /// The first positions of the revisions of a variant at which the current test always failed.
    always_failed: Positions,
    /// P(the revision broke the test) at these positions, by position; empty with one variant.
    broke: Vec<PerRate>,
    /// The branches on which the current test failed last; computed when they are first needed.
    failing_branches: Option<FailingBranches>,
    /// The likelihood of the current test's results, by lane.
    likelihoods: Vec<ScaledProduct>,
    /// The number of lanes with a result of the current test.
    lanes_with_results: u32,
    /// The likelihood of the current test's results on all variants.
    likelihood: ScaledProduct,
    /// The lane whose likelihood was multiplied last.
    lane: usize,
    /// The number of factors since the last call of `settle`.
    factors: u32,
}

/// The number of factors after which a product must be settled: each factor is at least 1e-6.
const FACTORS: u32 = 32;
/// The probability that a variant has a flake rate of its own.
const OWN_RATE: f64 = 0.5;
/// The share of unreliable tests that are so on one variant only.
const ONE_VARIANT: f64 = 0.3;
/// The probability that a variant has another flake rate than the one before it, where this rate is assumed for both.
const OTHER_RATE: f64 = 0.01;

impl<'t, 'h> Filter<'t, 'h> {
    /// A filter for the tests of a timeline.
    pub(crate) fn new(
        timeline: &'t Timeline<'h>,
        background: &'t Background,
        always_passing: &'t AlwaysPassing,
    ) -> Self {
        let positions = timeline.entries.len();
        Self {
            timeline,
            background,
            always_passing,
            prior: prior(background.rates.unreliable, background.rates.branches_break),
            prior_on_variant: prior_on_variant(background.rates.unreliable, background.rates.branches_break),
            branch_breaks: branch_breaks(background.rates.branches_break),
            visits: Positions::new(positions),
            deviating: Positions::new(positions),
            stable: vec![[0.0; GRID]; positions],
            always_failed: Positions::new(positions),
            broke: vec![[0.0; GRID]; if timeline.lanes.len() > 1 { positions } else { 0 }],
            failing_branches: None,
            likelihoods: vec![ScaledProduct::ONE; timeline.lanes.len()],
            lanes_with_results: 0,
            likelihood: ScaledProduct::ONE,
            lane: 0,
            factors: 0,
        }
    }

    /// The number of revisions at which the test failed on a variant and on another one, too, by lane.
    fn count_shared(&self, test_counts: TestCounts<'_, 'h>) -> Vec<i32> {
        let mut shared = vec![0; self.likelihoods.len()];
        let mut lanes_of: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for failure in test_counts
            .failures
            .iter()
            .filter(|failure| failure.outcome.failed())
        {
            let entry = &self.timeline.entries[failure.position];
            let lane = self.timeline.chains[entry.chain].lane;
            lanes_of.entry(entry.revision).or_default().insert(lane);
        }
        for lane in lanes_of.values().filter(|lanes| lanes.len() > 1).flatten() {
            shared[*lane] += 1;
        }
        shared
    }

    /// Runs the filter over all results of a test.
    pub(crate) fn run(&mut self, test_counts: TestCounts<'_, 'h>) -> Belief {
        self.visits.clear();
        self.deviating.clear();
        self.always_failed.clear();
        self.failing_branches = None;
        self.likelihoods.fill(ScaledProduct::ONE);
        self.lanes_with_results = 0;
        self.factors = 0;
        for failure in test_counts.failures.iter().chain(test_counts.repeated) {
            self.visits.insert(failure.position);
        }
        let lanes = self.timeline.lanes.iter().zip(&self.always_passing.totals);
        let lanes = lanes.zip(&mut self.likelihoods);
        for (((lane, total), likelihood), always_seen) in
            lanes.zip(&test_counts.column.participation.always_seen)
        {
            if !test_counts.column.is_in(*always_seen) {
                let absent = |position: &usize| !test_counts.column.contains(*position);
                if lane.positions.clone().all(|position| absent(&position)) {
                    continue;
                }
                for position in lane.positions.clone().filter(absent) {
                    self.visits.insert(position);
                }
            }
            likelihood.multiply_all(total);
            self.lanes_with_results += 1;
        }
        self.walk(test_counts);
        self.likelihood = self.product();
        let (weights, log_likelihood) = self.likelihood.clone().posterior(&self.prior);
        let (flake_score, flake_rate) = self.flake(test_counts, &weights, log_likelihood);
        Belief {
            weights,
            log_likelihood,
            flake_score,
            flake_rate,
        }
    }

    /// The probability that the test is unreliable, on all variants or on one, and its expected flake rate there. `weights`
    /// is the posterior of each hypothesis about all variants.
    fn flake(&self, test_counts: TestCounts<'_, 'h>, weights: &PerRate, log_likelihood: f64) -> (f64, f64) {
        let variants = self.lanes_with_results;
        if variants < 2 {
            return (unreliable(weights), flake_rate(weights));
        }
        let reliable = 1.0 - unreliable(weights);
        let mut parts = vec![(log_likelihood, reliable, 0.0)];
        let everywhere = (1.0 - ONE_VARIANT) * unreliable(weights);
        parts.push((log_likelihood, everywhere, unreliable_rate(weights)));
        let usually_reliable = 1.0 - unreliable(&self.prior);
        let shared = self.count_shared(test_counts);
        for (own, shared) in self.likelihoods.iter().zip(shared) {
            let mut others = self.likelihood.clone();
            others.divide_all(own);
            let (here, of_own) = own.clone().posterior(&self.prior_on_variant);
            let (elsewhere, of_others) = others.posterior(&self.prior);
            let passes_elsewhere = (1.0 - unreliable(&elsewhere)) / usually_reliable;
            // What other variants share needs a breakage.
            let breakages = BRANCHES_USUALLY_BREAK.powi(shared);
            let only_here =
                ONE_VARIANT / f64::from(variants) * unreliable(&here) * passes_elsewhere * breakages;
            parts.push((of_own + of_others, only_here, unreliable_rate(&here)));
        }
        let top = parts
            .iter()
            .map(|(log, ..)| *log)
            .fold(f64::NEG_INFINITY, f64::max);
        let (mut all, mut flaky, mut rate) = (0.0, 0.0, 0.0);
        for (place, (log, part, of_part)) in parts.into_iter().enumerate() {
            let weight = part * (log - top).exp();
            all += weight;
            flaky += if place == 0 { 0.0 } else { weight };
            rate += weight * of_part;
        }
        (flaky / all, (rate + (all - flaky) * RELIABLE) / all)
    }

    /// P(Broken) of a stable chain after the test's last run on it, which has position `last`.
    pub(crate) fn broken_probability(&self, belief: &Belief, last: usize) -> f64 {
        let lane = self.timeline.chains[self.timeline.entries[last].chain].lane;
        mean(&self.weights_on(belief, lane), self.stable_after(last))
    }

    /// The posterior of each hypothesis on one variant. The test has one flake rate on all variants, or this one has its own.
    fn weights_on(&self, belief: &Belief, lane: usize) -> PerRate {
        if self.lanes_with_results < 2 {
            return belief.weights;
        }
        let own = &self.likelihoods[lane];
        let mut others = self.likelihood.clone();
        others.divide_all(own);
        let (own_weights, of_own) = own.clone().posterior(&self.prior_on_variant);
        let (_, of_others) = others.posterior(&self.prior);
        let apart =
            1.0 / (1.0 + (belief.log_likelihood - of_own - of_others).exp() * (1.0 - OWN_RATE) / OWN_RATE);
        from_fn(|k| apart * own_weights[k] + (1.0 - apart) * belief.weights[k])
    }

    /// The likelihood of the current test's results on all variants.
    fn product(&self) -> ScaledProduct {
        let mut all = ScaledProduct::ONE;
        for likelihood in &self.likelihoods {
            all.multiply_all(likelihood);
        }
        all
    }

    /// P(Broken) of a stable chain after one of its positions, for the current test.
    fn stable_after(&self, position: usize) -> &PerRate {
        if self.deviating.contains(position) {
            &self.stable[position]
        } else {
            &self.always_passing.points[position].after
        }
    }

    /// Multiplies the likelihood by the factors of the positions in `visits`.
    fn walk(&mut self, test_counts: TestCounts<'_, 'h>) {
        let mut position = 0;
        while let Some(visited) = self.visits.next(position) {
            let point = &self.always_passing.points[visited];
            position = if point.absence_is_harmless && !test_counts.column.contains(visited) {
                self.multiply(visited, &point.scale);
                visited + 1
            } else {
                self.follow_chain(test_counts, visited)
            };
        }
    }

    /// Filters the results of a chain from `first` on, until its state is that of a test that always passes. Returns
    /// the next position.
    fn follow_chain(&mut self, test_counts: TestCounts<'_, 'h>, first: usize) -> usize {
        let (timeline, always_passing) = (self.timeline, self.always_passing);
        let chain = &timeline.chains[timeline.entries[first].chain];
        let (mut code, mut last) = match timeline.entries[first].step {
            Step::First => (ChainState::START, None),
            Step::SameRevision | Step::NewRevision => (
                ChainState::always_passing(&always_passing.points[first - 1].after),
                Some(first - 1),
            ),
        };
        for position in first..chain.positions.end {
            let point = &always_passing.points[position];
            if test_counts.column.contains(position) {
                let before = last.replace(position);
                let revision = |position: usize| timeline.entries[position].revision;
                let step = Step::between(before.map(revision), revision(position));
                let unusual = self.unusual_move(test_counts, position, step, before);
                let by = unusual.as_ref().unwrap_or(&point.by);
                let outcome = test_counts.outcomes[position];
                if outcome == Outcome::Passed {
                    code.update(by, &point.passes);
                } else {
                    let beta = self.background.of(position, test_counts.test);
                    let likelihood = Likelihood::of(outcome, beta);
                    let result = RelativeLikelihood::new(&likelihood, &point.scale);
                    let code_before = code;
                    code.update(by, &result);
                    if outcome.failed() {
                        let broke = |broke: Option<&PerRate>| code.broke(&code_before, broke, by, &result);
                        self.note_failure(test_counts, position, step, broke);
                    }
                }
                if !outcome.failed() {
                    self.note_pass(position);
                }
                if outcome == Outcome::Passed && code.is_at(&point.after) {
                    self.multiply(position, &code.likelihood());
                    return position + 1;
                }
            } else {
                code.scale(&point.scale);
            }
            if chain.stable {
                self.propagate_to_branches(position, &code);
            }
            self.factors += 1;
            if self.factors >= FACTORS {
                let likelihood = code.likelihood();
                self.multiply(position, &likelihood);
                code.scale(&likelihood.map(|likelihood| 1.0 / likelihood));
            }
        }
        if !chain.stable
            && last.is_some_and(|last| test_counts.outcomes[last].failed())
            && timeline.is_over(chain)
        {
            code.leave(&LEFT_BROKEN);
        }
        self.multiply(first, &code.likelihood());
        chain.positions.end
    }

    /// The move of a chain, unless it is that of a test that always passes. `before` is the test's previous position in
    /// the chain.
    fn unusual_move(
        &mut self,
        test_counts: TestCounts<'_, 'h>,
        position: usize,
        step: Step,
        before: Option<usize>,
    ) -> Option<Move> {
        let timeline = self.timeline;
        let entry = &timeline.entries[position];
        let is_new = step.is_new_code();
        let breakage_rate = is_new
            .then(|| self.known_breakage(test_counts, position, step, before))
            .flatten();
        let deviates = |stable: usize| is_new && self.deviating.contains(stable);
        let revisions = if breakage_rate.is_none() {
            self.missed_revisions(test_counts, position, step, before)
        } else {
            0
        };
        let is_usual = breakage_rate.is_none() && revisions == 0 && step == entry.step;
        // The time since the test's previous result counts within a revision.
        let follows = is_new || before.is_some_and(|before| before + 1 == position);
        if is_usual && follows && !entry.stable_before.is_some_and(deviates) {
            return None;
        }
        let stable = entry.stable_before.map(|stable| self.stable_after(stable));
        let breaks = || breakage_rate.unwrap_or_else(|| self.usual_breakage(position, step));
        let once = match (step, timeline.chains[entry.chain].stable) {
            (Step::First, true) => Move::first_on_stable(),
            (Step::First, false) => Move::first_on_branch(stable, &breaks()),
            (Step::SameRevision, _) => {
                let before =
                    before.map_or(entry.started_at(), |before| timeline.entries[before].started_at());
                Move::rerun(entry.started_at().since_ms(before))
            }
            (Step::NewRevision, true) => {
                Move::new_on_stable(&breaks(), self.background.rates.stable_mends[position])
            }
            (Step::NewRevision, false) => Move::new_on_branch(stable, &breaks()),
        };
        Some(if revisions == 0 {
            once
        } else {
            once.over(revisions + 1)
        })
    }

    /// The probability that the new revision at a position breaks the test, if no other variant or branch had a result.
    fn usual_breakage(&self, position: usize, step: Step) -> PerRate {
        if self.timeline.chains[self.timeline.entries[position].chain].stable {
            stable_breaks(self.background.rates.stable_breaks[position])
        } else if step == Step::First {
            first_breaks(&self.branch_breaks, 1.0)
        } else {
            self.branch_breaks
        }
    }

    /// The number of revisions of the chain between the test's previous result and this one. Each may have broken or
    /// fixed the test.
    ///
    /// 0 if the test passed there and passes here: counting one revision is then precise enough.
    fn missed_revisions(
        &self,
        test_counts: TestCounts<'_, 'h>,
        position: usize,
        step: Step,
        before: Option<usize>,
    ) -> u32 {
        let failed = |position: usize| test_counts.outcomes[position].failed();
        if step != Step::NewRevision || !(failed(position) || before.is_some_and(failed)) {
            return 0;
        }
        let chain = &self.timeline.chains[self.timeline.entries[position].chain];
        let absences = (chain.positions.start..position)
            .rev()
            .take_while(|position| !test_counts.column.contains(*position));
        let entries = absences
            .chain([position])
            .map(|position| &self.timeline.entries[position]);
        count(entries.filter(|entry| entry.step == Step::NewRevision).count()).saturating_sub(1)
    }

    /// The probability that new code breaks the test, if another variant or branch had a result of it.
    ///
    /// `None` if the test passes here and passed there: the usual rate is then precise enough.
    fn known_breakage(
        &mut self,
        test_counts: TestCounts<'_, 'h>,
        position: usize,
        step: Step,
        before: Option<usize>,
    ) -> Option<PerRate> {
        let timeline = self.timeline;
        let entry = &timeline.entries[position];
        let chain = &timeline.chains[entry.chain];
        let failed = |position: usize| test_counts.outcomes[position].failed();
        let alone = self.usual_breakage(position, Step::NewRevision);
        let sibling = self.sibling(test_counts, position);
        if let Some(sibling) = sibling.filter(|sibling| self.always_failed.contains(*sibling)) {
            return Some(breaks_like_sibling(&alone, &self.broke_on_sibling(sibling)));
        }
        if !failed(position) {
            return None;
        }
        let begins = step == Step::NewRevision && !before.is_some_and(failed);
        if chain.stable
            && begins
            && let Some(streak) = self.branch_streak(test_counts, position)
        {
            return Some(breaks_like_branch(streak, &alone, &self.branch_breaks));
        }
        sibling.map(|_| breaks_like_sibling(&alone, &[0.0; GRID]))
    }

    /// P(the revision broke the test) at the first position of a variant before this one, by the flake rate here. Where that
    /// rate explains the results there badly, the variants have different rates, and the mean over those there counts.
    fn broke_on_sibling(&self, sibling: usize) -> PerRate {
        let lane = self.timeline.chains[self.timeline.entries[sibling].chain].lane;
        let prior = &self.prior_on_variant;
        let (weights, _) = self.likelihoods[lane].clone().posterior(prior);
        let broke = &self.broke[sibling];
        let apart = mean(&weights, broke);
        from_fn(|k| {
            // The likelihood of the results there, in relation to their mean likelihood.
            let likelihood = weights[k] / prior[k];
            let shared = likelihood * (1.0 - OTHER_RATE) / (likelihood * (1.0 - OTHER_RATE) + OTHER_RATE);
            shared * broke[k] + (1.0 - shared) * apart
        })
    }

    /// The longest failing streak of a branch whose changes the stable run at this position may contain.
    fn branch_streak(&mut self, test_counts: TestCounts<'_, 'h>, position: usize) -> Option<u32> {
        let entry = &self.timeline.entries[position];
        let failing_branches = self
            .failing_branches
            .get_or_insert_with(|| FailingBranches::of(test_counts));
        failing_branches.longest_streak(self.timeline.chains[entry.chain].lane, entry)
    }

    /// The last variant before this one with a result of the test at the same revision: its first position there.
    fn sibling(&self, test_counts: TestCounts<'_, 'h>, position: usize) -> Option<usize> {
        let (before, _, _) = self.timeline.variants_of(position)?;
        let ran_in = |range: &&Range<usize>| {
            (*range)
                .clone()
                .any(|position| test_counts.column.contains(position))
        };
        before.iter().rev().find(ran_in).map(|range| range.start)
    }

    /// Records P(this revision broke the test) for the variants after this one, if the test always failed at it.
    fn note_failure(
        &mut self,
        test_counts: TestCounts<'_, 'h>,
        position: usize,
        step: Step,
        broke: impl Fn(Option<&PerRate>) -> PerRate,
    ) {
        let timeline = self.timeline;
        let Some((_, own, after)) = timeline.variants_of(position) else {
            return;
        };
        if step.is_new_code() {
            self.broke[own.start] = broke(None);
            self.always_failed.insert(own.start);
        } else if self.always_failed.contains(own.start) {
            self.broke[own.start] = broke(Some(&self.broke[own.start]));
        } else {
            return;
        }
        for range in after {
            if range
                .clone()
                .any(|position| test_counts.column.contains(position))
            {
                self.visits.insert(range.start);
            }
        }
    }

    /// Records that the revision did not break the test, because it passed.
    fn note_pass(&mut self, position: usize) {
        if let Some((_, own, _)) = self.timeline.variants_of(position) {
            self.always_failed.remove(own.start);
        }
    }

    /// Records P(Broken) after this stable-branch run and queues the branch positions that inherit it.
    fn propagate_to_branches(&mut self, position: usize, code: &ChainState) {
        self.deviating.insert(position);
        self.stable[position] = code.broken();
        for dependent in &self.timeline.entries[position].dependents {
            self.visits.insert(*dependent);
        }
    }

    /// Multiplies the likelihood of a position's lane.
    fn multiply(&mut self, position: usize, factors: &PerRate) {
        let lane = self.timeline.chains[self.timeline.entries[position].chain].lane;
        if lane != self.lane {
            self.likelihoods[self.lane].settle();
            self.lane = lane;
        }
        let likelihood = &mut self.likelihoods[lane];
        likelihood.multiply(factors);
        self.factors += 1;
        if self.factors >= FACTORS {
            likelihood.settle();
            self.factors = 0;
        }
    }
}
