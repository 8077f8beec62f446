//! Forward and backward over a test's results, at one flake rate.

use super::*;

/// What the backward pass needs of a result.
struct Step {
    good: f64,
    broken: f64,
    keep: f64,
    brk: f64,
    /// P(an outage begins).
    begins: f64,
    /// P(still broken) of what was broken before the branch, and P(the branch takes a breakage over).
    before: (f64, f64),
    /// P(broken) and P(outage) if the sibling has no fault that this result shares.
    apart: (f64, f64),
    sibling: Option<usize>,
    in_same_crowd: bool,
    is_first_on_stable: bool,
}

/// The newest failure of a stable chain with an error, outside of mass failures.
struct Past {
    text: Option<u32>,
    at: i64,
    /// Whether the result before failed, too.
    again: bool,
    /// P(broken at this failure, and good now), and P(broken then and now).
    mended: f64,
    broken: f64,
}

/// A result of a stable chain.
struct OnStable<'r> {
    revision: &'r String,
    is_mass: bool,
    /// P(broken) after it.
    broken: f64,
    keep: f64,
    brk: f64,
    /// The likelihoods of good and of broken code, divided by the probability.
    good_by: f64,
    broken_by: f64,
}

/// The logarithm of the likelihood at one flake rate, and the parts of each result, given all results.
pub(super) fn one_rate(
    results: &[RowOfTest<'_>],
    (theta, touchy, other): (f64, Option<f64>, f64),
    only_on: Option<&String>,
    learned: Option<&StableBranch>,
) -> (f64, Vec<Six>) {
    // On the other variants the test is reliable. At its times of the calendar it fails by that, too.
    let rate_of = |here: &RowOfTest<'_>| {
        let is_reliable = only_on.is_some_and(|only| *only != here.variant);
        1.0 - (1.0 - if is_reliable { 2e-5 } else { theta }) * (1.0 - here.calendar)
    };
    // The shares of each chain: this (n), earlier (e), before (i), drift (r), outage that began with this revision (o) or
    // an earlier one (q), good. The good share is stored, because 1 minus the others would have no correct digits where it
    // is tiny.
    let mut shares: BTreeMap<(String, Option<String>), [f64; 7]> = BTreeMap::new();
    // The failures of each stable chain; P(broken) after its newest result outside of mass failures, and whether that failed.
    let mut past: BTreeMap<crate::reference::Chain, Vec<Past>> = BTreeMap::new();
    let mut calm: BTreeMap<crate::reference::Chain, (f64, bool)> = BTreeMap::new();
    let mut on_stable: BTreeMap<crate::reference::Chain, Vec<OnStable<'_>>> = BTreeMap::new();
    let mut log = 0.0;
    // Flake, crowd, drift, before, earlier, this, outage of this revision, outage of an earlier one.
    let mut parts: Vec<[f64; 8]> = Vec::new();
    let mut steps = Vec::new();
    for (index, here) in results.iter().enumerate() {
        let chain = (here.variant.clone(), here.branch.clone());
        let stable = here.is_stable();
        let before: Vec<&RowOfTest<'_>> = results[..index].iter().collect();
        let last_here = before
            .iter()
            .rfind(|s| s.variant == here.variant && s.branch == here.branch);
        let last_of_branch = before.iter().rposition(|s| s.branch == here.branch);
        let sibling = last_of_branch.filter(|last| {
            before[*last].variant != here.variant && before[*last].row.revision == here.row.revision
        });
        let base = shares.get(&(here.variant.clone(), Some("main".to_owned())));
        let is_mass = here.row.beta_of(here.test) >= 0.1;
        let of_main = (here.variant.clone(), Some("main".to_owned()));
        let text_here = text(here.row.number, here.test).filter(|_| here.row.results[&here.test].0 != 'P');
        // What the stable branch has mended and may be the fault here, each with the days since.
        let mended: Vec<(f64, f64, bool)> = past
            .get(&of_main)
            .into_iter()
            .flatten()
            .filter(|past| text_here.is_none() || past.text.is_none() || past.text == text_here)
            .map(|past| {
                let days = f64::max(0.0, (here.row.at - past.at) as f64) / DAY_MS;
                (past.mended, days, past.again)
            })
            .collect();
        let most = |weight: &dyn Fn(f64, bool) -> f64| {
            let each = mended.iter().map(|(p, days, again)| p * weight(*days, *again));
            each.fold(0.0, f64::max)
        };
        // A new branch may begin before the fix, the less probably the longer ago that is.
        let stale = if last_here.is_none() {
            most(&|days, _| 0.3 * f64::exp(-days))
        } else {
            0.0
        };
        // P(broken at the merge base), by what the stable branch did until now.
        let at_base = here.base.and_then(|revision| {
            let chain = on_stable.get(&of_main)?;
            let last = chain.iter().rposition(|other| other.revision == revision)?;
            let from = chain[..=last]
                .iter()
                .rposition(|other| here.row.beta_of(here.test) > 0.0 || !other.is_mass);
            let Some(from) = from else { return Some(0.0) };
            let b = chain[from].broken;
            let [was_broken, was_good] = [(0.0, b), (1.0 - b, 0.0)].map(|(mut good, mut broken)| {
                for later in &chain[from + 1..] {
                    (good, broken) = (
                        ((1.0 - later.brk) * good + (1.0 - later.keep) * broken) * later.good_by,
                        (later.brk * good + later.keep * broken) * later.broken_by,
                    );
                }
                good + broken
            });
            Some(was_broken / (was_broken + was_good))
        });
        let in_base = at_base.unwrap_or_else(|| {
            let now = if here.row.beta_of(here.test) > 0.0 {
                base.map_or(0.0, |base| base.iter().take(6).sum::<f64>())
            } else {
                calm.get(&of_main).map_or(0.0, |(broken, _)| *broken)
            };
            now + stale
        });
        let m = if stable { 0.0 } else { 0.7 * in_base };
        let (usually_breaks, stable_mends) = match here.row.stable_rates {
            (_, mends) if here.calendar > 0.0 => (0.0, mends),
            rates => rates,
        };
        let stable_breaks = usually_breaks * learned.map_or(1.0, |learned| learned.breaks);
        let of_branch = touchy.map_or(other, |first| other.max(0.1 * first));
        let chi = here.chi * learned.filter(|_| stable).map_or(1.0, |learned| learned.crowds);
        let failed = |s: &RowOfTest<'_>| s.row.results[&s.test].0 == 'F';
        let mut alone = match last_here {
            None if stable => 0.015,
            _ if stable => touchy.map_or(stable_breaks, |first| {
                first * f64::min(150.0 * stable_breaks, 0.5)
            }),
            _ => of_branch,
        };
        if last_here.is_some() || !stable {
            alone += (1.0 - alone) * most(&|_, again| if again { 0.015 } else { 0.0 });
        }
        let share = if is_queue(here.branch.as_ref()) { 0.1 } else { 1.0 };
        alone *= share;
        let is_new = last_here.is_some_and(|last| last.row.revision != here.row.revision);
        let streak_begins = is_new && failed(here) && !last_here.is_some_and(|last| failed(last));
        let mut merged = false;
        if learned.is_some()
            && stable
            && streak_begins
            && here.row.beta_of(here.test) < 0.1
            && !sibling.is_some_and(|sibling| failed(before[sibling]))
        {
            // The branches of this variant whose last result failed within a day: one may be merged now.
            let of_variant = before
                .iter()
                .filter(|s| s.variant == here.variant && !s.is_stable() && !is_queue(s.branch.as_ref()));
            let branches: BTreeSet<&Option<String>> = of_variant.map(|s| &s.branch).collect();
            let streaks = branches.into_iter().filter_map(|branch| {
                let own = before.iter().filter(|s| {
                    s.variant == here.variant && s.branch == *branch && s.row.beta_of(s.test) < 0.1
                });
                let failing: Vec<_> = own.rev().take_while(|s| failed(s)).collect();
                let age = here.row.at - failing.first()?.row.at;
                (0..=86_400_000).contains(&age).then_some(failing.len())
            });
            if let Some(streak) = streaks.max() {
                alone += (1.0 - alone) * 0.2 * of_branch / (of_branch + theta.powi(streak as i32));
                merged = true;
            }
        }
        // The sibling's breakage and outage that this result shares. A test that is new on a stable variant shares the
        // earlier ones too.
        let shared = sibling.map(|sibling| {
            let [n, _, i, _, o, q, _] =
                shares[&(before[sibling].variant.clone(), before[sibling].branch.clone())];
            if stable && last_here.is_none() {
                (n + i, o + q)
            } else {
                (n, o)
            }
        });
        let apart_ms = last_here.map_or(0, |last| here.row.at - last.row.at);
        let days = (apart_ms as f64 / DAY_MS).clamp(0.0, 1.0);
        let drifts = 0.0003 + 0.0012 * days;
        let stable_variants: BTreeSet<&String> = results
            .iter()
            .filter(|s| s.is_stable())
            .map(|s| &s.variant)
            .collect();
        let may_be_outage = stable && stable_variants.len() > 1;
        // The project's outages are those of tests that failed before.
        let failed_before = before
            .iter()
            .find(|s| s.is_stable() && s.row.results[&s.test].0 != 'P');
        let failed_before = failed_before.is_some_and(|s| s.row.revision != here.row.revision);
        let outages = learned.filter(|_| may_be_outage).map_or(0.0, |learned| {
            if failed_before {
                learned.outages
            } else {
                learned.first_outages
            }
        });
        let begins = if last_here.is_some() {
            f64::min(0.3, outages * stable_breaks)
        } else {
            0.0
        };
        let beside = |(n, o): (f64, f64)| {
            (
                0.85 * n + 0.15 * alone * (1.0 - n),
                0.85 * o + 0.15 * begins * (1.0 - o),
            )
        };
        let faults = match shared {
            Some(shared) if !merged => beside(shared),
            Some(_) => (alone, 0.15 * begins),
            None => (alone, begins),
        };
        let faults_apart = if merged { faults } else { beside((0.0, 0.0)) };
        let beta = here.row.beta_of(here.test);
        // Another variant of the same run that failed in a crowd shares the crowd.
        let in_same_crowd = sibling.filter(|sibling| {
            let other = before[*sibling].row;
            last_here.is_none_or(|last| last.row.revision != here.row.revision)
                && other.number == here.row.number
                && other.results[&here.test].0 != 'P'
                && other.beta_of(here.test) > 0.0
                && (here.row.results[&here.test].0 != 'P' || beta > 0.0)
        });
        let x = chi * beta * sibling.map_or(1.0, |_| 0.15);
        let x = x / (1.0 + x);
        let at_first = match last_here {
            None => share * touchy.unwrap_or(0.0),
            Some(_) => 0.0,
        };
        let d = match here.witnesses.branches {
            0 => 0.0,
            1 if stable => 0.0,
            _ if stable => 0.3,
            1 => f64::min(0.3, 2.0 * f64::max(of_branch, at_first)),
            _ => f64::min(0.3, 6.0 * f64::max(of_branch, at_first)),
        };
        // A new branch begins with what is known of its changes.
        let mut of_changes = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0];
        let newest: Vec<&Option<String>> = here
            .row
            .pull_requests
            .iter()
            .filter_map(|change| {
                let of_variant = before.iter().filter(|s| s.variant == here.variant);
                let mut of_change = of_variant.filter(|s| s.row.pull_requests.contains(change));
                of_change.next_back().map(|last| &last.branch)
            })
            .collect();
        let mut begun: Vec<&Option<String>> = Vec::new();
        for of_branch in &before {
            if of_branch.variant != here.variant || begun.contains(&&of_branch.branch) {
                continue;
            }
            begun.push(&of_branch.branch);
            let changes = newest
                .iter()
                .filter(|branch| ***branch == of_branch.branch)
                .count();
            let share = changes as f64 / of_branch.row.pull_requests.len().max(1) as f64;
            let [n, e, i, r, _, _, good] = shares[&(here.variant.clone(), of_branch.branch.clone())];
            let part = of_changes[6] * share;
            for (of_changes, of_branch) in of_changes.iter_mut().zip([n, e, i, r]) {
                *of_changes += part * of_branch;
            }
            of_changes[6] -= part * (1.0 - good);
        }
        let former = if stable { None } else { Some(of_changes) };
        let [n, e, i, r, o, q, good] = shares
            .get(&chain)
            .copied()
            .or(former)
            .unwrap_or([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
        // This, earlier, before, drift, the two outages; P(still broken); P(broken now) and P(an outage begins) of good code.
        let predict = |(h, begins): (f64, f64)| -> ([f64; 6], f64, f64, f64, (f64, f64)) {
            match last_here {
                None if stable => ([0.0, 0.0, h, 0.0, 0.0, begins], 1.0, h + begins, 0.0, (1.0, 0.0)),
                Some(last) if last.row.revision == here.row.revision => {
                    let breaks = drifts;
                    let own = if stable || here.witnesses.branches > 0 {
                        0.0
                    } else {
                        0.5
                    };
                    let this = 0.998 * n + breaks * own * good;
                    let drift = 0.998 * r + breaks * (1.0 - own) * good;
                    let next = [this, 0.998 * e, 0.998 * i, drift, 0.3 * o, 0.3 * q];
                    (next, 0.998, breaks, 0.0, (0.998, 0.0))
                }
                _ => {
                    let h = match last_here {
                        None if sibling.is_none() => {
                            f64::max(f64::min(0.5, 2.0 * h), share * touchy.unwrap_or(0.0))
                        }
                        _ => h,
                    };
                    let k = if stable {
                        1.0 - stable_mends
                    } else {
                        1.0 - touchy.map_or(0.2, |_| 0.8) * (1.0 - m)
                    };
                    // What the stable branch broke is taken over, and stays, with the merge base.
                    let (caught, stays) = match at_base {
                        _ if stable => (0.0, 1.0),
                        _ if last_here.is_none() => (m, in_base),
                        None => (0.3 * m, 1.0),
                        Some(_) if last_here.is_some_and(|last| last.base == here.base) => (0.0, 1.0),
                        Some(broken) => (m, broken),
                    };
                    let mut own = h * (1.0 - caught);
                    let begins = if stable { begins } else { 0.0 };
                    own += (1.0 - own - begins - caught) * x;
                    let drift = (1.0 - own - begins - caught) * d;
                    let (e, i) = if stable {
                        (0.0, k * (i + n + e))
                    } else {
                        (k * (e + n), k * stays * i + good * caught)
                    };
                    let r = k * r + good * drift;
                    let next = [good * own, e, i, r, good * begins, 0.3 * (o + q)];
                    (next, k, own + caught + drift, begins, (k * stays, caught))
                }
            }
        };
        let (next, keep, brk, begins, of_before) = predict(faults);
        let [apart @ .., apart_outage, apart_before] = predict(faults_apart).0;
        let apart = (apart.iter().sum(), apart_outage + apart_before);
        let b: f64 = next.iter().sum();
        let still_good = good * (1.0 - brk - begins)
            + if last_here.is_some() || !stable {
                (n + e + r) * (1.0 - keep) + i * (1.0 - of_before.0) + 0.7 * (o + q)
            } else {
                0.0
            };
        let background = in_same_crowd.map_or(beta, |sibling| {
            let (n, o) = shared.unwrap();
            0.85 * parts[sibling][1] / (1.0 - 0.85 * (n + o)) + 0.15 * beta
        });
        let p1 = 1.0 - (1.0 - rate_of(here)) * (1.0 - background);
        let (lg, lb) = here.row.likelihood_of_failed(here.test, p1);
        let z = still_good * lg + b * lb;
        log += z.ln();
        let [n, e, i, r, o, q] = next.map(|share| share * lb / z);
        let g = still_good * lg / z;
        parts.push([g * (1.0 - background / p1), g * background / p1, r, i, e, n, o, q]);
        let sibling = sibling.filter(|_| last_here.is_none_or(|l| l.row.revision != here.row.revision));
        steps.push(Step {
            good: lg,
            broken: lb,
            keep,
            brk,
            begins,
            before: of_before,
            apart,
            sibling,
            in_same_crowd: in_same_crowd.is_some(),
            is_first_on_stable: stable && last_here.is_none(),
        });
        if stable {
            for past in past.entry(chain.clone()).or_default() {
                let (was_good, was_broken) = (past.mended, past.broken);
                past.mended = ((1.0 - brk - begins) * was_good + (1.0 - keep) * was_broken) * lg / z;
                past.broken = ((brk + begins) * was_good + keep * was_broken) * lb / z;
            }
            on_stable.entry(chain.clone()).or_default().push(OnStable {
                revision: &here.row.revision,
                is_mass,
                broken: n + e + i + r + o + q,
                keep,
                brk: brk + begins,
                good_by: lg / z,
                broken_by: lb / z,
            });
            let again = calm.get(&chain).is_some_and(|(_, failed)| *failed);
            if !is_mass {
                calm.insert(chain.clone(), (n + e + i + r + o + q, failed(here)));
            }
            if failed(here) && !is_mass {
                let past = past.get_mut(&chain).unwrap();
                past.retain(|past| past.text != text_here);
                past.push(Past {
                    text: text_here,
                    at: here.row.at,
                    again,
                    mended: 0.0,
                    broken: n + e + i + r,
                });
            }
        }
        shares.insert(chain, [n, e, i, r, o, q, g]);
    }
    // The probability of the later results if the code is good, broken, in an outage, and broken before the branch.
    let mut message: BTreeMap<crate::reference::Chain, (f64, f64, f64, f64)> = BTreeMap::new();
    // What fails at the end of a branch that is over was not mended.
    let ends: BTreeMap<_, _> = results
        .iter()
        .map(|here| ((here.variant.clone(), here.branch.clone()), here))
        .collect();
    for (chain, last) in ends {
        let failed = last.row.results[&last.test].0 == 'F';
        if touchy == Some(0.05) && failed && last.is_over && !last.is_stable() {
            log += (1.0 - 0.7 * (1.0 - shares[&chain][6])).ln();
            message.insert(chain, (1.0, 0.3, 0.3, 0.3));
        }
    }
    // The factors of the later variants for the parts.
    let mut extra = vec![[1.0; 8]; results.len()];
    for index in (0..results.len()).rev() {
        let here = &results[index];
        let chain = (here.variant.clone(), here.branch.clone());
        let (gg, gb, go, gi) = message.get(&chain).copied().unwrap_or((1.0, 1.0, 1.0, 1.0));
        let factors = [gg, gg, gb, gi, gb, gb, go, go];
        let products: Vec<f64> = (0..8)
            .map(|p| parts[index][p] * factors[p] * extra[index][p])
            .collect();
        let total: f64 = products.iter().sum();
        parts[index] = std::array::from_fn(|p| products[p] / total);
        let step = &steps[index];
        let (g, b, o) = (step.good * gg, step.broken * gb, step.broken * go);
        let i = step.broken * gi;
        if let Some(sibling) = step.sibling {
            let next = extra[index];
            let beside_good = |background: f64| {
                let p1 = 1.0 - (1.0 - rate_of(here)) * (1.0 - background);
                let crowd = background / p1;
                let good = here.row.likelihood_of_failed(here.test, p1).0 * gg;
                let (broken, outage) = step.apart;
                (1.0 - broken - outage) * good * (crowd * next[1] + (1.0 - crowd) * next[0])
                    + broken * b * next[2]
                    + outage * o * next[2]
            };
            let beta = here.row.beta_of(here.test);
            let (alone, crowd) = if step.in_same_crowd {
                (beside_good(0.15 * beta), beside_good(0.85 + 0.15 * beta))
            } else {
                (beside_good(beta), beside_good(beta))
            };
            let (broken, outage) = if step.is_first_on_stable {
                (b * next[3], o * next[7])
            } else {
                (b * next[5], o * next[6])
            };
            let shared = (0.85 * broken + 0.15 * alone) / alone;
            let outage = (0.85 * outage + 0.15 * alone) / alone;
            let (before, outage_before) = if step.is_first_on_stable {
                (shared, outage)
            } else {
                (1.0, 1.0)
            };
            extra[sibling] = [
                1.0,
                crowd / alone,
                1.0,
                before,
                1.0,
                shared,
                outage,
                outage_before,
            ];
        }
        let (keep, brk, begins) = (step.keep, step.brk, step.begins);
        let (keep_before, caught) = step.before;
        let was_good = (1.0 - brk - begins) * g + (brk - caught) * b + caught * i + begins * o;
        let was_before = (1.0 - keep_before) * g + keep_before * i;
        let was_broken = (1.0 - keep) * g + keep * b;
        let was_outage = 0.7 * g + 0.3 * o;
        let total = was_good + was_broken;
        let of_all = [was_good, was_broken, was_outage, was_before].map(|of| of / total);
        message.insert(chain, of_all.into());
    }
    let six = |[flake, crowd, drift, before, earlier, this, outage, outage_before]: [f64; 8]| {
        [
            flake,
            crowd,
            drift + outage + outage_before,
            before,
            earlier,
            this,
        ]
    };
    (log, parts.into_iter().map(six).collect())
}
