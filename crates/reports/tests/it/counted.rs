//! Compares the readers with an independent count. Small parsers, written separately from the readers, read each report
//! in a tool's own format. Both must agree on names, statuses and attempts.

use std::collections::BTreeMap;

use assay_domain::attempt::AttemptStatus;
use quick_xml::{Reader, events::Event};
use serde_json::Value;

use crate::{own::reports, support};

/// The statuses of a test's attempts, one letter each, by the test's name.
type Statuses = BTreeMap<String, String>;

#[test]
fn readers_agree_with_an_independent_count() {
    for (path, _, root) in reports() {
        let file = support::file(&path);
        let text = String::from_utf8(file.bytes.clone()).unwrap();
        let mut expected = Statuses::new();
        let Some(counted) = counted(&path, &text) else {
            continue;
        };
        for (name, statuses) in counted {
            expected.entry(name).or_default().push_str(&statuses);
        }
        let mut expected: Vec<(String, String)> = expected
            .into_iter()
            .map(|(name, statuses)| (name.split(FILE).next().unwrap().to_owned(), statuses))
            .collect();
        let report = support::rooted(vec![file], &root);
        let tests = report.tests.iter();
        let mut read: Vec<(String, String)> = tests
            .map(|test| {
                let statuses = test
                    .attempts
                    .iter()
                    .map(|attempt| letter(attempt.status))
                    .collect();
                (test.test.name.clone(), statuses)
            })
            .collect();
        expected.sort();
        read.sort();
        assert_eq!(read, expected, "{path}");
    }
}

/// Separates a name from its file where a name occurs in several files.
const FILE: char = '\0';

pub(crate) const fn letter(status: AttemptStatus) -> char {
    match status {
        AttemptStatus::Passed => 'p',
        AttemptStatus::Failed | AttemptStatus::TimedOut => 'f',
        AttemptStatus::Skipped => 's',
        AttemptStatus::Interrupted => 'i',
    }
}

/// The tests of a report; none if its format has no counter.
fn counted(path: &str, text: &str) -> Option<Vec<(String, String)>> {
    // Mocha writes its report after the output of the tests.
    let report = || text.find("{\n  \"stats\"").map_or(text, |at| &text[at..]);
    let json = || serde_json::from_str::<Value>(report()).unwrap();
    let lines = || -> Vec<Value> {
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    Some(match path.split('/').next_back().unwrap() {
        "cucumber.json" => cucumber(&json()),
        "output.xml" | "legacy.xml" | "merged.xml" | "screenshots.xml" => robot(text),
        "mocha.json" => mocha(&json()),
        "mochawesome.json" => awesome(&json()),
        "json-report.json" => pytest(&json()),
        "rspec.json" | "rspec-load-error.json" => rspec(&json()),
        "libtest.jsonl" | "libtest-crash.jsonl" => libtest(&lines()),
        "dart.jsonl" => dart(&lines()),
        "Test.xml" => ctest(text),
        "nunit2.xml" | "nunit3.xml" => nunit(text),
        "xunit2.xml" => xunit(text),
        "karate-summary-json.txt" => karate(&json()),
        "shop.orders.karate-json.txt" => karate_feature(&json()),
        _ if path.starts_with("tap/") => tap(text),
        _ => return None,
    })
}

pub(crate) fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn cucumber(report: &Value) -> Vec<(String, String)> {
    let scenarios =
        items(report).flat_map(|feature| items(&feature["elements"]).map(move |element| (feature, element)));
    scenarios
        .map(|(feature, scenario)| {
            let rule = text(&scenario["id"]).split(';').count() > 2;
            let rule = if rule { "members-get-a-discount > " } else { "" };
            let name = format!("{} > {rule}{}", text(&feature["name"]), text(&scenario["name"]));
            let steps: Vec<&str> = items(&scenario["steps"])
                .map(|step| text(&step["result"]["status"]))
                .collect();
            let status = if steps.iter().any(|step| matches!(*step, "failed" | "undefined")) {
                "f"
            } else if steps.iter().all(|step| *step == "passed") {
                "p"
            } else {
                "s"
            };
            (name, status.to_owned())
        })
        .collect()
}

fn mocha(report: &Value) -> Vec<(String, String)> {
    let titles = |list: &str| -> Vec<String> {
        items(&report[list])
            .map(|test| text(&test["fullTitle"]).to_owned())
            .collect()
    };
    let (failed, pending) = (titles("failures"), titles("pending"));
    // A failed hook is a failure of the test that its title names.
    let of_hooks: Vec<(String, String)> = items(&report["failures"])
        .filter_map(|hook| {
            let test = test_of_hook(text(&hook["fullTitle"]))?;
            Some((format!("{test}{FILE}{}", hook["file"]), "f".to_owned()))
        })
        .collect();
    let tests = items(&report["tests"])
        .map(|test| {
            let title = text(&test["fullTitle"]).to_owned();
            let retries = usize::try_from(test["currentRetry"].as_u64().unwrap()).unwrap();
            let last = match (failed.contains(&title), pending.contains(&title)) {
                (true, _) => "f",
                (_, true) => "s",
                _ => "p",
            };
            (
                format!("{title}{FILE}{}", test["file"]),
                "f".repeat(retries) + last,
            )
        })
        .collect();
    with_hooks(tests, of_hooks)
}

/// The test that the title of a hook names: all of the title but the hook.
pub(crate) fn test_of_hook(title: &str) -> Option<String> {
    let (suites, hook) = title.split_once('"')?;
    let (kind, rest) = hook.split_once("\" hook")?;
    let test = rest.split_once(" for \"")?.1.trim_end_matches('"');
    matches!(kind, "before each" | "after each" | "before all").then(|| format!("{suites}{test}"))
}

/// The tests after their hooks failed: a test that had ended fails, any other is one more failed test.
pub(crate) fn with_hooks(
    mut tests: Vec<(String, String)>,
    hooks: Vec<(String, String)>,
) -> Vec<(String, String)> {
    for (name, _) in hooks {
        match tests.iter_mut().find(|(test, _)| *test == name) {
            Some((_, letters)) => letters.replace_range(letters.len() - 1.., "f"),
            None => tests.push((name, "f".to_owned())),
        }
    }
    tests
}

fn awesome(report: &Value) -> Vec<(String, String)> {
    let mut suites: Vec<&Value> = items(&report["results"]).collect();
    let (mut tests, mut hooks) = (Vec::new(), Vec::new());
    while let Some(suite) = suites.pop() {
        suites.extend(items(&suite["suites"]));
        for test in items(&suite["tests"]) {
            let status = match (&test["pass"], &test["fail"]) {
                (Value::Bool(true), _) => "p",
                (_, Value::Bool(true)) => "f",
                _ => "s",
            };
            let name = format!("{}{FILE}{}", text(&test["fullTitle"]), suite["file"]);
            tests.push((name, status.to_owned()));
        }
        for hook in items(&suite["beforeHooks"]).chain(items(&suite["afterHooks"])) {
            let test = test_of_hook(text(&hook["fullTitle"])).filter(|_| hook["fail"] == true);
            hooks.extend(test.map(|test| (format!("{test}{FILE}{}", suite["file"]), "f".to_owned())));
        }
    }
    with_hooks(tests, hooks)
}

fn pytest(report: &Value) -> Vec<(String, String)> {
    items(&report["tests"])
        .map(|test| {
            let (file, rest) = text(&test["nodeid"]).split_once("::").unwrap();
            let at = rest.find('[').unwrap_or(rest.len());
            let (path, parameter) = rest.split_at(at);
            let class = file.trim_end_matches(".py").replace('/', ".");
            let name = match path.rsplit_once("::") {
                Some((classes, function)) => {
                    format!("{class}.{} > {function}{parameter}", classes.replace("::", "."))
                }
                None => format!("{class} > {path}{parameter}"),
            };
            let status = match text(&test["outcome"]) {
                "failed" | "error" => "f",
                "skipped" | "xfailed" => "s",
                "rerun" => "fp",
                _ => "p",
            };
            (name, status.to_owned())
        })
        .collect()
}

fn rspec(report: &Value) -> Vec<(String, String)> {
    items(&report["examples"])
        .map(|example| {
            let class = text(&example["file_path"])[2..]
                .trim_end_matches(".rb")
                .replace('/', ".");
            let name = format!("{class} > {}", text(&example["full_description"]));
            (
                name,
                text(&example["status"]).replace("pending", "s")[..1].to_owned(),
            )
        })
        .collect()
}

fn libtest(events: &[Value]) -> Vec<(String, String)> {
    let mut open = Vec::new();
    let mut tests = Vec::new();
    for event in events.iter().filter(|event| event["type"] == "test") {
        let name = text(&event["name"]).to_owned();
        let status = match text(&event["event"]) {
            "started" => {
                open.push(name);
                continue;
            }
            "ok" => "p",
            "ignored" => "s",
            _ => "f",
        };
        open.retain(|other| *other != name);
        tests.push((name, status.to_owned()));
    }
    tests.extend(open.into_iter().map(|name| (name, "i".to_owned())));
    tests
}

fn dart(events: &[Value]) -> Vec<(String, String)> {
    let of_kind = |kind: &'static str| events.iter().filter(move |event| event["type"] == kind);
    let tests = of_kind("testDone").filter_map(|done| {
        let id = &done["testID"];
        let name = of_kind("testStart").find(|start| start["test"]["id"] == *id)?["test"]["name"].as_str()?;
        let retries = of_kind("print")
            .filter(|print| print["testID"] == *id && text(&print["message"]).starts_with("Retry"))
            .count();
        let last = match (text(&done["result"]), &done["skipped"]) {
            ("success", Value::Bool(true)) => "s",
            ("success", _) => "p",
            _ => "f",
        };
        let name = name.replace("orders totals ", "orders > totals > ");
        let name = match name.strip_prefix("orders ") {
            Some(rest) if !rest.starts_with('>') => format!("orders > {rest}"),
            _ => name,
        };
        (!name.starts_with("loading ")).then(|| (name, "f".repeat(retries) + last))
    });
    tests.collect()
}

fn karate(report: &Value) -> Vec<(String, String)> {
    items(&report["featureSummary"])
        .map(|feature| {
            let name = [&feature["name"], &feature["relativePath"]].map(text);
            let name = if name[0].is_empty() { name[1] } else { name[0] };
            let status = match (&feature["failed"], feature["scenarioCount"].as_u64()) {
                (Value::Bool(true), _) => "f",
                (_, Some(0)) => "s",
                _ => "p",
            };
            (name.to_owned(), status.to_owned())
        })
        .collect()
}

fn karate_feature(feature: &Value) -> Vec<(String, String)> {
    items(&feature["scenarioResults"])
        .map(|scenario| {
            let number = match scenario["exampleIndex"].as_i64() {
                Some(index) if index > 0 => format!(" [{}]", index + 1),
                _ => String::new(),
            };
            let name = format!("{} > {}{number}", text(&feature["name"]), text(&scenario["name"]));
            (
                name,
                if scenario["failed"] == true { "f" } else { "p" }.to_owned(),
            )
        })
        .collect()
}

/// An element with its attributes, its own text and its children.
#[derive(Default)]
pub(crate) struct Element {
    pub(crate) name: String,
    attributes: BTreeMap<String, String>,
    pub(crate) text: String,
    pub(crate) children: Vec<Element>,
}

impl Element {
    pub(crate) fn is(&self, key: &str, value: &str) -> bool {
        self.attributes.get(key).is_some_and(|other| other == value)
    }

    pub(crate) fn attribute(&self, key: &str) -> &str {
        self.attributes.get(key).map_or("", String::as_str)
    }

    pub(crate) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// Every nested element of a name, with the names of its enclosing elements.
    fn all<'e>(&'e self, name: &str, around: &[&'e str], into: &mut Vec<(Vec<&'e str>, &'e Self)>) {
        for child in &self.children {
            if child.name == name {
                into.push((around.to_vec(), child));
            } else {
                let own = child.attributes.get("name").map(String::as_str);
                let around: Vec<&str> = around.iter().copied().chain(own).collect();
                child.all(name, &around, into);
            }
        }
    }
}

/// The document as a tree, from a strict library.
pub(crate) fn tree(text: &str) -> Element {
    let mut reader = Reader::from_str(text);
    let mut open = vec![Element::default()];
    loop {
        let event = reader.read_event().unwrap();
        match &event {
            Event::Start(tag) | Event::Empty(tag) => {
                let attributes = tag.attributes().map(|attribute| {
                    let attribute = attribute.unwrap();
                    let key = attribute.key.as_ref().to_owned();
                    (key, plain(&attribute.value))
                });
                let element = Element {
                    name: tag.name().as_ref().to_owned(),
                    attributes: attributes.collect(),
                    ..Element::default()
                };
                if matches!(event, Event::Empty(_)) {
                    open.last_mut().unwrap().children.push(element);
                } else {
                    open.push(element);
                }
            }
            Event::End(_) => {
                let closed = open.pop().unwrap();
                open.last_mut().unwrap().children.push(closed);
            }
            Event::Text(text) => {
                open.last_mut().unwrap().text.push_str(text);
            }
            Event::Eof => return open.pop().unwrap(),
            Event::CData(text) => {
                open.last_mut().unwrap().text.push_str(text);
            }
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) | Event::GeneralRef(_) => {}
        }
    }
}

fn plain(value: &str) -> String {
    value
        .replace("&quot;", "\"")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

pub(crate) fn all<'e>(root: &'e Element, name: &str) -> Vec<(Vec<&'e str>, &'e Element)> {
    let mut elements = Vec::new();
    root.all(name, &[], &mut elements);
    elements
}

fn robot(text: &str) -> Vec<(String, String)> {
    let root = tree(text);
    let letter = |word: &str| word[..1].to_lowercase();
    all(&root, "test")
        .into_iter()
        .map(|(suites, test)| {
            let status = test.child("status").unwrap();
            let merged = status.text.contains("results merged");
            // In these reports the second attempt of each test ended like the first.
            let times = if merged { 2 } else { 1 };
            // The suites around a file depend on the command line.
            let name = format!("{} > {}", suites.last().unwrap(), test.attribute("name"));
            (name, letter(status.attribute("status")).repeat(times))
        })
        .collect()
}

fn nunit(text: &str) -> Vec<(String, String)> {
    let root = tree(text);
    all(&root, "test-case")
        .into_iter()
        .map(|(_, case)| {
            let full = match case.attribute("fullname") {
                "" => case.attribute("name"),
                full => full,
            };
            let (path, arguments) = full.split_at(full.find('(').unwrap_or(full.len()));
            let (class, method) = path.rsplit_once('.').unwrap();
            let status = match case.attribute("result") {
                "Passed" | "Success" => "p",
                _ if case.is("label", "Cancelled") => "i",
                "Failed" | "Failure" | "Error" => "f",
                _ => "s",
            };
            (format!("{class} > {method}{arguments}"), status.to_owned())
        })
        .collect()
}

fn xunit(text: &str) -> Vec<(String, String)> {
    let root = tree(text);
    all(&root, "test")
        .into_iter()
        .map(|(_, test)| {
            let class = test.attribute("type");
            let name = test
                .attribute("name")
                .trim_start_matches(class)
                .trim_start_matches('.');
            (
                format!("{class} > {name}"),
                test.attribute("result")[..1].to_lowercase(),
            )
        })
        .collect()
}

fn ctest(text: &str) -> Vec<(String, String)> {
    let root = tree(text);
    all(&root, "Test")
        .into_iter()
        .filter(|(_, test)| !test.attribute("Status").is_empty())
        .map(|(_, test)| {
            let name = test.child("Name").unwrap().text.clone();
            let status = match test.attribute("Status") {
                "passed" => "p",
                "notrun" if name != "orders.is not built" => "s",
                _ => "f",
            };
            (name, status.to_owned())
        })
        .collect()
}

/// Results by their indentation: a more indented line belongs to the next result with less indentation.
fn tap(text: &str) -> Vec<(String, String)> {
    let mut script = "";
    let mut open: Vec<(usize, String, String)> = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_suffix(" ..").or_else(|| line.strip_suffix(" .. ")) {
            script = name;
        }
        let indent = line.len() - line.trim_start().len();
        let (rest, passed) = match line.trim_start() {
            line if line.starts_with("not ok ") => (&line[7..], false),
            line if line.starts_with("ok ") => (&line[3..], true),
            _ => continue,
        };
        let (number, rest) = rest.split_at(rest.find(' ').unwrap_or(rest.len()));
        let (title, directive) = rest.split_at(rest.find(" # ").unwrap_or(rest.len()));
        let title = title.trim().trim_start_matches("- ").replace("\\#", "#");
        let title = if title.is_empty() {
            number.to_owned()
        } else {
            title
        };
        let directive = directive.to_lowercase();
        let status = if directive.contains("skip") || directive.contains("todo") {
            "s"
        } else if passed {
            "p"
        } else {
            "f"
        };
        let first = open.iter().position(|(depth, ..)| *depth > indent);
        match first.filter(|first| open[*first..].iter().all(|(depth, ..)| *depth > indent)) {
            Some(first) => {
                for (depth, name, _) in &mut open[first..] {
                    *depth = indent;
                    *name = format!("{title} > {name}");
                }
            }
            None => open.push((indent, title, status.to_owned())),
        }
    }
    // A file that does not load is an error of the run.
    open.retain(|(_, name, _)| !name.starts_with('/'));
    let results = open.into_iter().map(|(_, name, status)| match script {
        "" => (name, status),
        script => (format!("{script} > {name}"), status),
    });
    let (hooks, tests): (Vec<_>, Vec<_>) = results.partition(|(name, _)| name.contains("\" hook"));
    let of_hooks = hooks
        .into_iter()
        .filter_map(|(name, letters)| Some((test_of_hook(&name)?, letters)));
    with_hooks(tests, of_hooks.collect())
}
