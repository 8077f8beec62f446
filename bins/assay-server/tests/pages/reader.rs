//! Reads the pages of a project, and compares them with each other, with messages, comments and the API.

use assay_testkit::{Browser, Client};
use serde_json::Value;

/// The verdicts that a test which fails on the stable branch cannot have, as they begin.
const DENIALS: [&str; 3] = ["Healthy", "Resolved", "Too few"];

/// The failed tests on one page of a run.
const PER_PAGE: u64 = 30;

/// A project whose pages are read.
pub(crate) struct Reader<'w> {
    browser: Browser,
    api: &'w Client,
    key: String,
    /// The key that asks for comments. In the demonstration, only the first project has one.
    ingest_key: Option<String>,
    project: String,
    contradictions: Vec<String>,
    /// What was compared, by kind: runs of the stable branch, other runs, tests that fail on the stable branch, comments,
    /// tests of messages.
    seen: [usize; 5],
}

impl<'w> Reader<'w> {
    pub(crate) fn new(
        browser: Browser,
        api: &'w Client,
        (key, ingest_key): (&str, Option<String>),
        project: &str,
    ) -> Self {
        Self {
            browser,
            api,
            key: key.to_owned(),
            ingest_key,
            project: project.to_owned(),
            contradictions: Vec::new(),
            seen: [0; 5],
        }
    }

    /// The answer of a route of the project.
    fn api(&self, path: &str) -> Value {
        let path = format!("/api/v1/projects/{}{path}", self.project);
        let answer = self.api.get(&path, Some(&self.key));
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    /// Reads a page of the project and returns its text.
    fn read_page(&self, path: &str) -> String {
        self.read_address(&format!("/p/{}{path}", self.project))
    }

    /// Reads a page and returns its text. The browser parses it without a layout, which is many times faster.
    fn read_address(&self, address: &str) -> String {
        self.browser.run(&format!(
            "return fetch({}).then((answer) => answer.text()).then((text) => {{ \
             window.parsed = new DOMParser().parseFromString(text, 'text/html') }})",
            Value::from(address)
        ));
        self.texts("main").concat()
    }

    /// The texts of the elements of the page that was read last.
    fn texts(&self, selector: &str) -> Vec<String> {
        self.of_elements(selector, "element.textContent.trim()")
    }

    fn of_elements(&self, selector: &str, value: &str) -> Vec<String> {
        let values = self.browser.run(&format!(
            "return [...window.parsed.querySelectorAll({})].map((element) => {value})",
            Value::from(selector)
        ));
        serde_json::from_value(values).unwrap()
    }

    fn check(&mut self, holds: bool, page: &str, sentence: &str) {
        if !holds {
            self.contradictions.push(format!("{page}: {sentence}"));
        }
    }

    /// The overview and the lists have the counts of the API, and say first what fails on the stable branch.
    fn read_overview(&mut self) {
        let flaky = self.api("/flaky?perPage=50");
        let (red, state) = (
            flaky["stable"]["failing"].as_u64().unwrap(),
            &flaky["stable"]["explanation"],
        );
        let state = state.as_str().unwrap();
        let overview = self.read_page("");
        self.check(
            overview.contains(state),
            "overview",
            &format!("lacks {state:?}: {overview}"),
        );
        let denies = overview.contains("No test is broken");
        self.check(
            red == 0 || !denies,
            "overview",
            &format!("denies that {red} tests fail"),
        );
        self.check(
            red > 0 || !overview.contains(" fail on "),
            "overview",
            "a test fails on a green branch",
        );
        let tiles = self.texts(".tile .figure");
        for status in ["broken", "flaky"] {
            let total = self.api(&format!("/flaky?status={status}"))["page"]["total"].to_string();
            self.check(
                tiles.contains(&total),
                "overview",
                &format!("{tiles:?} lack {total} {status}"),
            );
            self.read_page(&format!("/tests?status={status}"));
            let rows = self.texts("#results .row").len();
            self.check(
                rows.to_string() == total,
                "tests",
                &format!("{rows} {status} tests of {total}"),
            );
        }
        let list = self.read_page("/tests?red=true");
        self.check(list.contains(state), "tests", &format!("lack {state:?}"));
        let rows = self.texts("#results .row");
        self.check(
            rows.len() as u64 == red,
            "tests",
            &format!("{} of {red} red tests", rows.len()),
        );
        for row in rows {
            let is_denied = DENIALS.iter().any(|chip| row.starts_with(chip)) && !row.contains(" before run ");
            self.check(!is_denied, "tests", &format!("a red test is {row:?}"));
        }
    }

    /// The page of every test agrees with the state of the stable branch and with its own verdict.
    fn read_tests(&mut self) {
        self.read_page("/tests?red=true");
        let red = self.addresses("#results .row a");
        self.read_page("/tests");
        let all = self.addresses("#results .row a");
        assert!(red.iter().all(|test| all.contains(test)), "{red:?} {all:?}");
        for test in all {
            let page = self.read_address(&test);
            let why = self.texts(".why").concat();
            let is_red = red.contains(&test);
            self.check(
                page.contains("Fails on main") == is_red,
                &test,
                &format!("the test is red: {is_red}"),
            );
            if is_red {
                self.seen[2] += 1;
                let waits = why.contains(" before run ") && why.contains("which is not complete");
                let shows_it = waits || !DENIALS.iter().any(|chip| why.starts_with(chip));
                self.check(shows_it, &test, &why);
                self.check(page.contains("since run"), &test, "no run since which it fails");
            }
            let is_healthy = why.starts_with("Healthy") && !why.starts_with("Healthy on");
            self.check(!(is_healthy && why.contains("Failed the last")), &test, &why);
            self.check(
                !(why.contains("Passed in all") && page.contains("Fails now on")),
                &test,
                &why,
            );
            self.check(!why.contains("in 0 of"), &test, &why);
        }
    }

    fn addresses(&self, selector: &str) -> Vec<String> {
        let addresses = self
            .of_elements(selector, "element.getAttribute('href')")
            .into_iter();
        addresses.filter(|address| address.contains("/test?")).collect()
    }

    /// The advice on a failed run follows from its failures, and a run of the stable branch has none.
    fn read_runs(&mut self) {
        let runs = self.api("/runs?perPage=50");
        for run in runs["runs"].as_array().unwrap() {
            if run["status"] != "failed" {
                continue;
            }
            let (id, number) = (run["id"].as_str().unwrap(), format!("run {}", run["runNumber"]));
            let page = self.read_page(&format!("/runs/{id}?show=failed"));
            let gate = self.texts(".chip.gate");
            let advice = self.texts(".failures .whose p:last-child");
            let failed = run["counts"]["failed"].as_u64().unwrap();
            let listed = self.texts(".failures .failure").len() as u64;
            self.check(
                listed == failed.min(PER_PAGE),
                &number,
                &format!("{listed} of {failed} failed tests"),
            );
            self.check(!page.contains("in 0 of"), &number, "failed in 0 of some runs");
            for of_test in self.texts(".failures .failure") {
                let has_run = of_test.contains("ever ran on main before and failed")
                    && of_test.contains("Passed in all");
                self.check(
                    !has_run,
                    &number,
                    &format!("a test ran, and never ran: {of_test}"),
                );
                let whose = of_test
                    .rsplit_once("by this change: ")
                    .map_or("", |(_, whose)| whose);
                self.check(
                    whose.starts_with("unlikely") == whose.ends_with("continue"),
                    &number,
                    &format!("the advice contradicts the probability: {whose}"),
                );
            }
            self.read_answers(id, run);
            if run["branch"] == "main" {
                self.seen[0] += 1;
                self.check(
                    gate.is_empty(),
                    &number,
                    &format!("{gate:?} on the stable branch"),
                );
                for words in ["before you merge", "This branch", "by this branch", "this change"] {
                    self.check(
                        !page.contains(words),
                        &number,
                        &format!("{words:?} on the stable branch"),
                    );
                }
                let failures = self.api(&format!("/runs/{id}/failures?perPage=50"));
                let explained = failures["failures"].as_array().unwrap().iter();
                let failed = explained.filter(|failure| failure["recovered"] == false);
                for failure in failed {
                    let began = &failure["breakage"]["firstFailed"]["runNumber"];
                    self.check(
                        began.is_number(),
                        &number,
                        &format!("no first failed run: {failure}"),
                    );
                }
            } else {
                self.seen[1] += 1;
                self.check_advice(&gate, &advice, &number);
            }
        }
    }

    /// The strongest advice on a failure is that on all of them. A run that may lack results does not pass.
    fn check_advice(&mut self, gate: &[String], advice: &[String], page: &str) {
        let has = |words: &str| advice.iter().any(|of_failure| of_failure == words);
        let strongest = match (has("fix it"), has("run it again")) {
            (true, _) => "Block",
            (false, true) => "Rerun",
            (false, false) => "Pass",
        };
        let says_so = self
            .texts("p.gate")
            .iter()
            .any(|text| text.contains("may lack results"));
        let lacks_results = gate == ["Rerun"] && strongest == "Pass" && says_so;
        let agrees = gate == [strongest] || advice.is_empty() || lacks_results;
        self.check(agrees, page, &format!("{gate:?} above {advice:?}"));
    }

    /// The page of the run's commit, the comment, and the tool for agents agree with each other.
    fn read_answers(&mut self, id: &str, run: &Value) {
        let commit = run["testedRevision"].as_str().or(run["commitSha"].as_str());
        let Some(commit) = commit else { return };
        self.read_page(&format!("/commit/{commit}"));
        let page = format!("commit {commit}");
        if run["branch"] != "main" && self.texts(".pages").is_empty() {
            let (gate, advice) = (
                self.texts(".chip.gate"),
                self.texts(".failures .whose p:last-child"),
            );
            self.check_advice(&gate, &advice, &page);
        }
        let of_commit = self.api(&format!("/commits/{commit}"));
        let of_tool = self.tool(&serde_json::json!({"project": self.project, "commit": commit}));
        let action = &of_commit["gate"]["action"];
        self.check(
            of_tool["gate"]["action"] == *action,
            &page,
            &format!("the tool says {}, the API {action}", of_tool["gate"]),
        );
        let of_run = self.api(&format!("/runs/{id}/failures?limit=200"));
        self.check_comment(id, run["branch"] == "main", &of_commit);
        let of_tool = self.tool(&serde_json::json!({"project": self.project, "run": id}));
        self.check(
            of_tool["gate"]["action"] == of_run["gate"]["action"],
            &page,
            &format!(
                "the tool says {} of run {id}, the API {}",
                of_tool["gate"], of_run["gate"]
            ),
        );
        for answer in [&of_commit, &of_run] {
            let failed = answer["failures"].as_array().unwrap().iter();
            let failed = failed.map(|failure| failure.get("failure").unwrap_or(failure));
            let actions: Vec<&Value> = failed
                .filter(|failure| failure["status"] != "passed")
                .map(|failure| &failure["action"])
                .collect();
            // Only the action advises.
            for failure in answer["failures"].as_array().unwrap() {
                let failure = failure.get("failure").unwrap_or(failure);
                let explanation = failure["explanation"].as_str().unwrap();
                let advises = ["run it again", "fix it", "continue"]
                    .iter()
                    .any(|advice| explanation.contains(advice));
                self.check(
                    !advises,
                    &page,
                    &format!("{} but {explanation:?}", failure["action"]),
                );
            }
            let is_whole = answer["page"]["pageCount"].as_u64().unwrap_or(1) <= 1;
            let runs = answer["runs"].as_array().into_iter().flatten();
            let lacks_results = runs.chain([answer]).any(|run| run["incomplete"].is_string());
            let action = &answer["gate"]["action"];
            let agrees =
                actions.is_empty() || actions.contains(&action) || lacks_results && action == "rerun";
            self.check(
                !is_whole || agrees,
                &page,
                &format!("{} of {actions:?}", answer["gate"]),
            );
        }
    }

    /// The comment that a job posts for the run has the action, the counts and the failures of the page of its commit.
    fn check_comment(&mut self, run: &str, is_of_main: bool, of_commit: &Value) {
        let Some(ingest_key) = &self.ingest_key else {
            return;
        };
        let authorization = format!("Bearer {ingest_key}");
        let headers = [("Authorization", authorization.as_str())];
        let request = serde_json::json!({ "runId": run });
        let answer = self.api.post_json("/ingest/v1/comments", &headers, &request);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let comment = answer.json();
        self.seen[3] += 1;
        let page = format!("the comment on {}", comment["revision"]);
        for field in ["action", "mine"] {
            let (said, known) = (&comment[field], &of_commit["gate"][field]);
            self.check(
                said == known,
                &page,
                &format!("{field} is {said}, on the page {known}"),
            );
        }
        self.check(
            comment["counts"] == of_commit["counts"],
            &page,
            &format!("{} tests, on the page {}", comment["counts"], of_commit["counts"]),
        );
        let text = comment["markdown"].as_str().unwrap();
        let headline = comment["headline"].as_str().unwrap();
        let advice = [
            ("block", "fix it", "❌"),
            ("rerun", "run it again", "no mark"),
            ("pass", "most probably broke none", "no mark"),
        ];
        for (action, words, mark) in advice {
            let is_said = headline.contains(words) || text.contains(mark);
            let is_due = comment["action"] == action && comment["counts"]["failed"] != 0;
            self.check(
                !is_said || is_due,
                &page,
                &format!("{words:?} or {mark:?}: {text}"),
            );
        }
        for words in [
            "before you merge",
            "This branch",
            "by this branch",
            "before this branch",
            "this change",
        ] {
            self.check(
                !(is_of_main && text.contains(words)),
                &page,
                &format!("{words:?} on the stable branch"),
            );
        }
        let failures = of_commit["failures"].as_array().unwrap().iter();
        let failures: Vec<&Value> = failures
            .map(|failure| failure.get("failure").unwrap_or(failure))
            .collect();
        for annotation in comment["annotations"].as_array().unwrap() {
            let of_title = failures
                .iter()
                .find(|failure| annotation["title"] == failure["testName"]);
            let Some(failure) = of_title else { continue };
            let is_mine = failure["action"] != "pass";
            self.check(
                annotation["isMine"] == is_mine,
                &page,
                &format!("{annotation} is of {failure}"),
            );
        }
    }

    /// The answer of `explain_failures`.
    fn tool(&self, arguments: &Value) -> Value {
        let message = serde_json::json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "explain_failures", "arguments": arguments},
        });
        let address = self.browser.address();
        let base: Vec<&str> = address.splitn(4, '/').take(3).collect();
        let authorization = format!("Bearer {}", self.key);
        let headers = [
            ("Authorization", authorization.as_str()),
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", "2025-11-25"),
        ];
        let answer = Client::new(base.join("/")).post_json("/mcp", &headers, &message);
        let text = answer.json()["result"]["content"][0]["text"].clone();
        let text = text.as_str().unwrap_or_else(|| panic!("{}", answer.text()));
        serde_json::from_str(text).unwrap()
    }

    /// The newest commit of the overview is not called passed while a suite of it failed.
    fn read_newest(&mut self) {
        let runs = self.api("/runs?perPage=50&days=30");
        let Some(newest) = runs["runs"]
            .as_array()
            .unwrap()
            .iter()
            .find(|run| run["branch"] == "main")
        else {
            return;
        };
        let commit = &newest["commitSha"];
        let of_commit = runs["runs"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|run| run["commitSha"] == *commit);
        let mut suites = std::collections::BTreeMap::new();
        for run in of_commit {
            suites.entry(run["suite"].as_str()).or_insert(&run["status"]);
        }
        let has_failed = suites.values().any(|status| **status == "failed");
        let overview = self.read_page("");
        let (_, newest) = overview.split_once("Newest on the stable branch: ").unwrap();
        let newest = newest.split('.').next().unwrap();
        self.check(
            newest.contains("failed") == has_failed,
            "overview",
            &format!("{suites:?}: {newest}"),
        );
    }

    /// A test that a message says broke fails on the stable branch, and one that passes again does not. The commits of
    /// runs are those of the API. The messages are about the present state.
    fn read_messages(&mut self, messages: &str) {
        self.read_page("/tests?red=true");
        let name = "new URL(element.getAttribute('href'), location.href).searchParams.get('name')";
        let red = self.of_elements("#results .row a", name);
        let runs = self.api("/runs?days=30&perPage=50");
        let runs = runs["runs"].as_array().unwrap();
        // A newer pass hides no message until the run that has it is complete.
        let shards = &runs.iter().find(|run| run["branch"] == "main").unwrap()["shards"];
        let is_partial = shards.is_object()
            && shards["received"].as_array().map(Vec::len)
                != shards["expected"].as_u64().map(|expected| expected as usize);
        let mut group = "";
        for line in messages.lines() {
            if !line.starts_with(' ') {
                group = line;
                for mention in line.split(" run ").skip(1) {
                    let Some((number, commit)) = mention.split_once(" (") else {
                        continue;
                    };
                    let run = runs
                        .iter()
                        .find(|run| run["runNumber"].as_i64() == number.parse().ok());
                    let stored = run.and_then(|run| run["commitSha"].as_str());
                    let is_its = stored.is_none_or(|stored| stored.starts_with(&commit[..8]));
                    self.check(is_its, "message", &format!("not the commit of the run: {line}"));
                }
            } else if let Some(test) = line.trim().strip_prefix("· ") {
                let is_red = red.iter().any(|name| name == test);
                let broke = group.contains(" broke ") && !group.contains(" repaired");
                let passes = group.contains(" again") || group.contains(" repaired");
                self.seen[4] += usize::from(broke || passes);
                let agrees =
                    test.starts_with("and ") || (!broke || is_red || is_partial) && (!passes || !is_red);
                self.check(
                    agrees,
                    "message",
                    &format!("{test} is red: {is_red}, but {group}"),
                );
            }
        }
    }

    pub(crate) fn read(mut self, messages: &str) -> [usize; 5] {
        self.read_messages(messages);
        self.read_overview();
        self.read_tests();
        self.read_runs();
        self.read_newest();
        assert!(self.contradictions.is_empty(), "{:#?}", self.contradictions);
        self.seen
    }
}
