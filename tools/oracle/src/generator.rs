//! Generates projects from a seed: unusual branches, shards, retries, recovered and broken tests.

use crate::{
    clock::{DAY, HOUR, SECOND},
    dice::Dice,
    habits::{Design, Habit, failing, generate_case},
    texts,
    world::{Attempt, Case, Manner, Project, ReportSource, Run, Shard},
};

/// The properties of a project.
pub struct Sketch {
    pub name: &'static str,
    pub stable: &'static str,
    pub source: ReportSource,
    /// The age in days of its first run.
    pub days: i64,
    pub runs: i64,
    pub tests: i64,
}

const BROWSERS: [&str; 4] = ["chromium", "webkit", "Mobile Chrome", ""];
const SUITES: [&str; 6] = [
    "api/cart.spec.ts",
    "api/checkout.spec.ts",
    "ui/home.spec.ts",
    "ui/deep/er/übersicht.spec.ts",
    "login.spec.ts",
    "with space/a+b%2F.spec.ts",
];
const TITLES: [&str; 18] = [
    "pays",
    "GET /price?sku=A1 → 200 (text/json; q=0.8)",
    "emoji 🛒 & <b>markup</b> \"quoted\" 'single'",
    "100% of it",
    "a%2Fb is no slash",
    "..",
    "an > arrow",
    "back\\slash",
    "ends with a dot.",
    "semi;colon, plus + and = sign",
    "#hash ?query &more",
    "line\nbreak",
    "status",
    "日本語のテスト",
    "e\u{301} is not é",
    "{curly} [square] ^caret `tick` |pipe|",
    "x/y/z",
    "",
];

/// The branches other than the stable one.
pub fn branches() -> Vec<String> {
    let mut names: Vec<String> = [
        "feature/login-form",
        "fix/überprüfung",
        "release-2.0",
        "dependabot/npm_and_yarn/left-pad-1.3.0",
        "日本語/ブランチ",
        "100%-coverage",
        "a#42?&=+b",
        "Z",
        "z",
        "feature/🛒",
        "quote\"'branch",
        "über main",
    ]
    .map(str::to_owned)
    .to_vec();
    names.push("long/".to_owned() + &"x".repeat(195));
    names
}

/// Generates a project with these properties.
pub fn project(seed: u64, sketch: &Sketch, now: i64) -> Project {
    let mut dice = Dice::new(seed, sketch.name);
    let mut designs: Vec<Design> = (0..sketch.tests)
        .map(|number| design(number, &mut dice))
        .collect();
    // One spec in two Playwright projects is two tests.
    for number in (3..designs.len()).step_by(10) {
        let twin = designs[number - 1].case.clone();
        let browser = designs[number].case.browser.clone();
        designs[number].case = Case { browser, ..twin };
    }
    let mut project = Project {
        id: String::new(),
        name: sketch.name.to_owned(),
        stable: sketch.stable.to_owned(),
        source: sketch.source,
        chat_events: None,
        pr_comments: None,
        runs: Vec::new(),
    };
    for number in 0..sketch.runs {
        let span = sketch.days * DAY;
        let jitter = dice.between(0, 3 * HOUR);
        let started = clear_of_limits(now - span + number * (span / sketch.runs) + jitter, now) + number;
        let share = number * 100 / sketch.runs;
        project
            .runs
            .push(run(&designs, sketch, number, share, started, &mut dice));
    }
    // Reports of older runs may arrive late.
    for _ in 0..sketch.runs / 8 {
        let from = dice.between(0, sketch.runs - 1) as usize;
        let moved = project.runs.remove(from);
        let to = dice.between(0, sketch.runs - 2) as usize;
        project.runs.insert(to, moved);
    }
    project
}

/// Moves a time away from every limit of a period, since time passes while the checks run.
fn clear_of_limits(mut time: i64, now: i64) -> i64 {
    while [7, 14, 30, 60, 90]
        .iter()
        .any(|days| (now - days * DAY - time).abs() < 4 * HOUR)
    {
        time += 5 * HOUR;
    }
    time.min(now - HOUR)
}

fn design(number: i64, dice: &mut Dice) -> Design {
    let place = number as usize;
    let suite = SUITES[place % SUITES.len()].to_owned();
    let mut describes = Vec::new();
    if number >= 2 {
        describes.push(format!("group {}", number / 7));
    }
    if dice.percent(30) {
        describes.push("deeper / down".to_owned());
    }
    let title = match TITLES.get(place % 24) {
        Some(title) => (*title).to_owned(),
        None if number == 18 => "long ".repeat(60),
        None => format!("does step {number}"),
    };
    // A twin and its original, which precedes it, have different browsers.
    let browser = BROWSERS[(place / 3 + place % 2) % BROWSERS.len()].to_owned();
    let habit = match number % 20 {
        1 => Habit::Flaky(22),
        4 => Habit::Flaky(dice.between(5, 40)),
        6 => Habit::BrokenSince(dice.between(60, 95)),
        8 => Habit::Skipped,
        10 => Habit::ExpectedFailure,
        11 if number > 20 => Habit::UnexpectedPass,
        12 => Habit::Serial,
        14 => Habit::Repeated,
        16 => Habit::TimesOut(dice.between(5, 25)),
        18 => Habit::FailsWithoutText(10),
        _ => Habit::Green,
    };
    let case = Case {
        browser,
        suite,
        describes,
        title,
        manner: Manner::Plain,
        executions: Vec::new(),
    };
    Design {
        case,
        habit,
        kind: dice.between(0, texts::KINDS - 1),
        word: texts::WORDS[dice.between(0, 7) as usize],
        line: 10 + number,
    }
}

fn run(designs: &[Design], sketch: &Sketch, number: i64, share: i64, started: i64, dice: &mut Dice) -> Run {
    let on_stable = dice.percent(60);
    // Each branch has one pull request.
    let (number_of_branch, branch) = if on_stable {
        (0, sketch.stable.to_owned())
    } else {
        dice.pick(&(1..).zip(branches()).collect::<Vec<_>>()).clone()
    };
    let pull_request = !on_stable && dice.percent(60);
    let by_flags = sketch.source == ReportSource::Flags;
    let expected = dice.percent(40).then(|| dice.between(2, 4) as u32);
    let mut run = Run {
        id: String::new(),
        number: 0,
        build: format!("{}{number:04}", dice.between(100_000, 999_999)),
        branch: (!by_flags || dice.percent(90)).then_some(branch),
        commit: Some(dice.hex(40)),
        message: (!pull_request).then(|| format!("Change {number}: \"quoted\" & 日本")),
        author: (!pull_request).then(|| "Jo Döe".to_owned()),
        tested_revision: pull_request.then(|| dice.hex(40)),
        pr: pull_request.then_some(number_of_branch),
        pr_title: pull_request.then(|| format!("Warm up the <gateway> no. {number}")),
        ci: match sketch.source {
            ReportSource::Github => Some("github-actions"),
            ReportSource::Gitlab => Some("gitlab-ci"),
            ReportSource::Flags => *dice.pick(&[None, Some("jenkins"), Some("teamcity"), Some("other")]),
        },
        suite: None,
        expected,
        shards: Vec::new(),
    };
    let cut_short = dice.percent(6);
    let total = expected.unwrap_or(1);
    for index in 1..=total {
        let begun = started + i64::from(index - 1) * dice.between(0, 90 * SECOND);
        run.shards.push(shard(
            designs,
            (index, total),
            share,
            begun,
            cut_short && index == 1,
            dice,
        ));
    }
    if expected.is_some() {
        if dice.percent(20) {
            run.shards.remove(dice.between(0, i64::from(total) - 1) as usize);
        }
        for place in (1..run.shards.len()).rev() {
            run.shards.swap(place, dice.between(0, place as i64) as usize);
        }
    }
    run
}

fn shard(
    designs: &[Design],
    (index, total): (u32, u32),
    share: i64,
    started: i64,
    cut_short: bool,
    dice: &mut Dice,
) -> Shard {
    let mut clock = started + dice.between(200, 2_000);
    let mut cases = Vec::new();
    for (place, design) in designs.iter().enumerate() {
        let suite = SUITES
            .iter()
            .position(|suite| *suite == design.case.suite)
            .unwrap_or(place);
        // Sometimes a filter excludes a test from a run.
        if suite as u32 % total == index - 1 && !dice.percent(3) {
            cases.push(generate_case(design, share, &mut clock, dice));
        }
    }
    if cut_short && cases.len() > 4 {
        // The run stopped at its first failure, as with `maxFailures`.
        let at = cases.len() - 3;
        cases[at - 1].manner = Manner::Plain;
        cases[at - 1].executions = vec![failing(&designs[0], 1, &mut clock, dice)];
        cases[at].manner = Manner::Plain;
        cases[at].executions = vec![vec![attempt("interrupted", &mut clock, dice)]];
        for case in cases.iter_mut().skip(at + 1) {
            case.manner = Manner::NeverStarted;
            case.executions.clear();
        }
    }
    let errors = if dice.percent(4) {
        vec!["Error: Cannot find module './does-not-exist'".to_owned()]
    } else {
        Vec::new()
    };
    Shard {
        id: String::new(),
        index,
        started,
        duration: clock - started + dice.between(100, 3_000),
        cases,
        errors,
    }
}

/// An attempt that starts at this time. The time advances by its duration.
pub fn attempt(status: &'static str, clock: &mut i64, dice: &mut Dice) -> Attempt {
    let duration = dice.between(5, 4_000);
    let started = *clock;
    *clock += duration + dice.between(5, 300);
    Attempt {
        status,
        duration: Some(duration),
        started: Some(started),
        faults: Vec::new(),
    }
}
