//! What the results of a search say, as text and JSON.

use assay_cli_terminal::output;
use assay_flakiness::plan::bisection::{NextStep, Posterior};
use serde_json::{Value, json};

use crate::culprit::Search;

/// How many commits an answer lists.
const LISTED: usize = 10;
/// The probability below which a commit is not shown to people.
const SHOWN_FROM: f64 = 0.001;

/// The answer of a search.
#[derive(Debug)]
pub struct Answer<'a> {
    search: &'a Search,
    posterior: Posterior,
    step: NextStep,
    /// The most probable commits first.
    likely: Vec<(&'a str, f64)>,
}

impl<'a> Answer<'a> {
    /// The answer after the results so far.
    pub fn of(search: &'a Search) -> Self {
        let posterior = search.bisection().posterior();
        let commits = search.commits().iter().map(String::as_str);
        let mut likely: Vec<(&str, f64)> = commits.zip(posterior.of_commit.iter().copied()).collect();
        likely.sort_by(|(_, left), (_, right)| right.total_cmp(left));
        likely.truncate(LISTED);
        Self {
            search,
            step: search.bisection().next_step(),
            posterior,
            likely,
        }
    }

    fn commit(&self, place: usize) -> &'a str {
        self.search.commits().get(place).map_or("", String::as_str)
    }

    /// The commits that cannot be run, at most as many as an answer lists.
    fn cannot_run(&self) -> Vec<&'a str> {
        let skipped = self.search.bisection().skipped().take(LISTED);
        skipped.map(|place| self.commit(place)).collect()
    }

    /// For programs.
    pub fn to_json(&self) -> Value {
        let (outcome, commit, next) = match self.step {
            NextStep::Found(place) => ("found", json!(self.commit(place)), Value::Null),
            NextStep::NotBroken => ("not_broken", Value::Null, Value::Null),
            NextStep::Run { commit: place, times } => {
                let next = json!({ "commit": self.commit(place), "times": times });
                ("open", Value::Null, next)
            }
            NextStep::Stuck => ("stuck", Value::Null, Value::Null),
        };
        let commits = self.likely.iter();
        let commits =
            commits.map(|(commit, probability)| json!({ "commit": commit, "probability": probability }));
        json!({
            "outcome": outcome,
            "commit": commit,
            "next": next,
            "commits": commits.collect::<Vec<_>>(),
            "none": self.posterior.none,
            "cannotRun": self.cannot_run(),
            "searched": self.search.commits().len(),
            "runs": self.search.runs(),
        })
    }

    /// For people: a sentence and a table.
    pub fn in_words(&self) -> String {
        let subject = |place| self.search.subject(self.commit(place));
        let text = match self.step {
            NextStep::Found(place) => format!("{} broke the test\n", subject(place)),
            NextStep::NotBroken => "No commit broke the test; it fails by itself\n".to_owned(),
            NextStep::Stuck => match self.posterior.suspects().len() {
                0 => "No commit that can be run tells more\n".to_owned(),
                commits => format!(
                    "One of {commits} commits broke the test, and no commit that can be run tells which\n"
                ),
            },
            NextStep::Run { commit: place, times } => {
                let times = output::count(times, "time");
                format!(
                    "Run {} next, until it passes or has failed {times}\n",
                    subject(place)
                )
            }
        };
        let rows = self.likely.iter();
        let rows = rows
            .filter(|(_, probability)| *probability >= SHOWN_FROM)
            .map(|(commit, probability)| vec![self.search.subject(commit), format!("{probability:.3}")]);
        let none = std::iter::once(vec![
            "no commit".to_owned(),
            format!("{:.3}", self.posterior.none),
        ]);
        let cannot_run = self.cannot_run();
        let cannot_run = match cannot_run.as_slice() {
            [] => String::new(),
            commits => {
                let subjects: Vec<String> =
                    commits.iter().map(|commit| self.search.subject(commit)).collect();
                format!("Left out, because they cannot be run: {}\n", subjects.join(", "))
            }
        };
        text + &cannot_run + &output::table(&["COMMIT", "P"], rows.chain(none).collect::<Vec<_>>())
    }
}
