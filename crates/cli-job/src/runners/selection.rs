//! Runs some tests again by the runner's own selection: the arguments, variables and files that a command of the runner
//! needs besides its own.

use std::{collections::BTreeSet, ffi::OsString, path::Path};

use assay_domain::test::TestName;

use crate::runners::{
    Runner, Use, in_runner, list,
    names::{class_and_method, literal},
    playwright, pytest,
};

/// The tests that a runner cannot select.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotSelectable {
    /// The first of them; none if no test was given.
    pub test: Option<TestName>,
    /// The reason in words.
    pub reason: &'static str,
}

impl NotSelectable {
    fn new(test: &TestName, reason: &'static str) -> Self {
        Self {
            test: Some(test.clone()),
            reason,
        }
    }
}

/// Which tests run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selected {
    /// Only these.
    Alone,
    /// These with the tests of their files, or of their classes or packages.
    WithFile,
}

/// A command's additions that select tests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// Arguments for the runner.
    pub arguments: Vec<String>,
    /// Variables, each with the text that separates its value from the one that it has already.
    pub variables: Vec<Variable>,
    /// A file that the selection reads: its name in the folder, and its text.
    pub file: Option<(&'static str, String)>,
}

/// A variable of a selection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What is added to it.
    pub value: String,
    /// The text between this and an earlier value.
    pub separator: &'static str,
}

impl Variable {
    /// Its value, after an earlier one.
    pub fn after(&self, earlier: Option<String>) -> String {
        match earlier.filter(|earlier| !earlier.is_empty()) {
            Some(earlier) => format!("{earlier}{}{}", self.separator, self.value),
            None => self.value.clone(),
        }
    }
}

/// The shells that give their arguments to a script.
const SHELLS: [&str; 4] = ["sh", "bash", "dash", "zsh"];
/// Other programs that run a script, so that arguments at the end of the command do not reach the runner.
const SCRIPTS: [&str; 4] = ["make", "cmd", "powershell", "pwsh"];
/// The plug-in of pytest for a rerun.
const PYTEST_PLUGIN: &str = "assay_rerun";
/// The list of Playwright for a rerun.
const PLAYWRIGHT_LIST: &str = "assay_rerun.txt";
#[cfg(windows)]
const PATHS: &str = ";";
#[cfg(not(windows))]
const PATHS: &str = ":";

/// The runner that a command names, also within the script of a shell; none if it names none.
pub fn runner_of(command: &[OsString]) -> Option<Runner> {
    let words: Vec<String> = command
        .iter()
        .flat_map(|word| {
            word.to_string_lossy()
                .split_whitespace()
                .map(program)
                .collect::<Vec<_>>()
        })
        .collect();
    words.iter().enumerate().find_map(|(place, word)| {
        let next = words.get(place + 1).map(String::as_str);
        match (word.as_str(), next) {
            ("pytest" | "py.test", _) => Some(Runner::Pytest),
            ("jest", _) => Some(Runner::Jest),
            ("vitest", _) => Some(Runner::Vitest),
            ("mocha" | "_mocha", _) => Some(Runner::Mocha),
            ("playwright", _) => Some(Runner::Playwright),
            ("nextest" | "cargo-nextest", _) => Some(Runner::Nextest),
            ("gotestsum", _) | ("go", Some("test")) => Some(Runner::Go),
            ("mvn" | "mvnw", _) => Some(Runner::Surefire),
            ("dotnet", Some("test")) => Some(Runner::Dotnet),
            _ => None,
        }
    })
}

/// The name of a program without its folder and the ending that Windows needs.
fn program(word: &str) -> String {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    let name = name.trim_matches(['"', '\'', '(', ')', ';']);
    let ending = [".exe", ".cmd", ".bat"]
        .iter()
        .find_map(|ending| name.strip_suffix(ending));
    ending.unwrap_or(name).to_owned()
}

/// The reason why the additions of a selection do not reach the runner through this command; none if they do.
pub fn unreachable(command: &[OsString], runner: Runner) -> Option<&'static str> {
    if matches!(runner, Runner::Pytest | Runner::Go) {
        // Variables reach them.
        return None;
    }
    let first = command.first().map(|word| program(&word.to_string_lossy()));
    let is_one_of = |programs: &[&str]| first.as_deref().is_some_and(|first| programs.contains(&first));
    let passes_on = || {
        command
            .iter()
            .any(|word| word.to_string_lossy().contains("\"$@\""))
    };
    if is_one_of(&SCRIPTS) {
        Some(
            "a script runs the command, so that the list of tests does not reach the runner; run the runner itself",
        )
    } else if is_one_of(&SHELLS) && !passes_on() {
        Some(
            "a shell runs the command, so that the list of tests does not reach the runner; pass it on as in \
             sh -c 'RUNNER \"$@\" > log' sh",
        )
    } else {
        None
    }
}

/// A command with the arguments of a selection, at the place where the runner reads them.
pub fn with_arguments(command: &[OsString], arguments: &[String]) -> Vec<OsString> {
    let mut all: Vec<OsString> = command.to_vec();
    if arguments.is_empty() {
        return all;
    }
    let first = command.first().map(|word| program(&word.to_string_lossy()));
    if first.as_deref().is_some_and(|first| SHELLS.contains(&first)) && ends_with_script(command) {
        // The first argument after a script is its name.
        all.push(OsString::from("sh"));
    }
    let end = command.iter().position(|word| word == "--");
    let added = arguments.iter().map(OsString::from);
    match (first.as_deref(), end) {
        // npm passes on what follows these two dashes.
        (Some("npm"), None) => all.extend(std::iter::once(OsString::from("--")).chain(added)),
        (Some("npm" | "npx" | "pnpm" | "yarn"), Some(_)) | (_, None) => all.extend(added),
        // What follows is for the tests.
        (_, Some(end)) => {
            all.splice(end..end, added);
        }
    }
    all
}

/// Whether a command ends with the script of a shell, as in `sh -c SCRIPT`.
fn ends_with_script(command: &[OsString]) -> bool {
    let before = command.len().checked_sub(2).and_then(|place| command.get(place));
    before.is_some_and(|word| {
        let word = word.to_string_lossy();
        word.starts_with('-') && word.ends_with('c')
    })
}

/// The additions that select tests of a runner, with a file in `folder` where it needs one. Names and files come from
/// reports, so none of them can become an option of the runner. Without a test there is no selection, because the runner
/// would run all tests.
pub fn select(
    runner: Runner,
    tests: &[TestName],
    selected: Selected,
    folder: &Path,
) -> Result<Selection, NotSelectable> {
    let Some(first) = tests.first() else {
        return Err(NotSelectable {
            test: None,
            reason: "no test is to run again",
        });
    };
    let tests: &[TestName] = &tests
        .iter()
        .map(|test| in_runner(test, runner))
        .collect::<Vec<_>>();
    if selected == Selected::WithFile && !by_file(runner) {
        return Err(NotSelectable::new(
            first,
            "the runner cannot select the tests of a file",
        ));
    }
    let by_class_or_file = matches!(
        runner,
        Runner::Surefire | Runner::Dotnet | Runner::Jest | Runner::Vitest | Runner::Playwright
    );
    let names = match selected == Selected::WithFile && by_class_or_file {
        // Only single tests need their exact names.
        true => None,
        false => {
            let list = list(tests, runner, Use::Select);
            if let Some((test, reason)) = list.left_out.first() {
                return Err(NotSelectable::new(test, reason));
            }
            Some(list.text.trim_end().to_owned())
        }
    };
    match (runner, names) {
        (Runner::Pytest, Some(_)) => Ok(pytest(tests, selected, folder)),
        (Runner::Playwright, Some(text)) => Ok(playwright(&text, folder)),
        (Runner::Playwright, None) => {
            let entry =
                |test| playwright::file_entry(test).map_err(|reason| NotSelectable::new(test, reason));
            let lines: BTreeSet<String> = tests.iter().map(entry).collect::<Result<_, _>>()?;
            Ok(playwright(
                &lines.into_iter().collect::<Vec<_>>().join("\n"),
                folder,
            ))
        }
        (Runner::Go, Some(text)) => Ok(go(&text)),
        (Runner::Nextest, Some(text)) => Ok(arguments(["-E".to_owned(), text])),
        (Runner::Dotnet, Some(text)) => Ok(arguments(["--filter".to_owned(), text])),
        (Runner::Surefire, Some(text)) => Ok(surefire(text)),
        (Runner::Mocha, Some(text)) => Ok(arguments(["--grep".to_owned(), text])),
        (Runner::Jest | Runner::Vitest, names) => javascript(runner, tests, names),
        (Runner::Dotnet, None) => {
            let terms = classes(tests)?
                .into_iter()
                .map(|class| format!("FullyQualifiedName~{class}."));
            Ok(arguments([
                "--filter".to_owned(),
                terms.collect::<Vec<_>>().join("|"),
            ]))
        }
        (Runner::Surefire, None) => {
            let patterns = classes(tests)?.into_iter().map(|class| {
                let file = literal(&format!("{}.class", class.replace('.', "/")));
                format!("%regex[{file}]")
            });
            Ok(surefire(patterns.collect::<Vec<_>>().join(",")))
        }
        (Runner::Txt | Runner::Json, _)
        | (Runner::Pytest | Runner::Go | Runner::Nextest | Runner::Mocha, None) => {
            Err(NotSelectable::new(first, "a list for scripts selects no test"))
        }
    }
}

/// Whether tests of a runner can run with those of their file.
pub const fn by_file(runner: Runner) -> bool {
    match runner {
        Runner::Pytest
        | Runner::Playwright
        | Runner::Jest
        | Runner::Vitest
        | Runner::Surefire
        | Runner::Dotnet => true,
        // Each test of nextest has its process. Go and Mocha select tests by their names only.
        Runner::Nextest | Runner::Go | Runner::Mocha | Runner::Txt | Runner::Json => false,
    }
}

fn arguments(arguments: impl IntoIterator<Item = String>) -> Selection {
    Selection {
        arguments: arguments.into_iter().collect(),
        ..Selection::default()
    }
}

/// A plug-in by variables, which also reach pytest through a shell.
fn pytest(tests: &[TestName], selected: Selected, folder: &Path) -> Selection {
    let names: Vec<String> = tests.iter().map(|test| test.name.clone()).collect();
    let text = match selected {
        Selected::Alone => pytest::plugin(&names, Use::Select),
        Selected::WithFile => pytest::plugin_of_files(&names),
    };
    Selection {
        arguments: Vec::new(),
        variables: vec![
            Variable {
                name: "PYTHONPATH",
                value: folder.display().to_string(),
                separator: PATHS,
            },
            Variable {
                name: "PYTEST_ADDOPTS",
                value: format!("-p {PYTEST_PLUGIN}"),
                separator: " ",
            },
        ],
        file: Some(("assay_rerun.py", text)),
    }
}

/// A list of tests or files, each in its project. A file as an argument would run in all projects, and would be taken for
/// a project after `--project a`.
fn playwright(list: &str, folder: &Path) -> Selection {
    Selection {
        arguments: vec![
            "--test-list".to_owned(),
            folder.join(PLAYWRIGHT_LIST).display().to_string(),
        ],
        variables: Vec::new(),
        file: Some((PLAYWRIGHT_LIST, format!("{list}\n"))),
    }
}

/// The patterns of all packages at once, by a variable, which also reaches Go through a shell. A pass must not come from
/// the cache.
fn go(patterns: &str) -> Selection {
    let patterns = patterns.lines().filter_map(|line| line.split_once('\t'));
    let pattern = patterns.map(|(_, pattern)| pattern).collect::<Vec<_>>().join("|");
    Selection {
        variables: vec![Variable {
            name: "GOFLAGS",
            value: format!("-count=1 -run={pattern}"),
            separator: " ",
        }],
        ..Selection::default()
    }
}

fn surefire(patterns: String) -> Selection {
    arguments([
        format!("-Dtest={patterns}"),
        "-Dsurefire.failIfNoSpecifiedTests=false".to_owned(),
        "-DfailIfNoTests=false".to_owned(),
    ])
}

/// The files, and the pattern of titles unless whole files run.
fn javascript(
    runner: Runner,
    tests: &[TestName],
    titles: Option<String>,
) -> Result<Selection, NotSelectable> {
    let mut all = Vec::new();
    if let Some(pattern) = titles {
        all.extend(["--testNamePattern".to_owned(), pattern]);
    }
    let files: BTreeSet<&str> = tests.iter().map(file).collect::<Result<_, _>>()?;
    if runner == Runner::Jest {
        // Otherwise an option with a list of values, such as `--projects a b`, would take them.
        all.push("--".to_owned());
        all.extend(files.into_iter().map(literal));
    } else {
        all.extend(files.into_iter().map(str::to_owned));
    }
    Ok(arguments(all))
}

/// The file of a test as an argument.
fn file(test: &TestName) -> Result<&str, NotSelectable> {
    let refused = |reason| NotSelectable::new(test, reason);
    let file = test
        .file_path
        .as_deref()
        .ok_or_else(|| refused("its file is not known"))?;
    if file.starts_with('-') {
        Err(refused(
            "its file begins with a dash, so that a runner could take it for an option",
        ))
    } else if file.contains(char::is_control) {
        Err(refused("its file has a control character"))
    } else {
        Ok(file)
    }
}

fn classes(tests: &[TestName]) -> Result<BTreeSet<&str>, NotSelectable> {
    let class = |test| {
        let (class, _) = class_and_method(test)
            .ok_or_else(|| NotSelectable::new(test, "its name is not of a class and a method"))?;
        let is_plain = |char: char| char.is_alphanumeric() || matches!(char, '_' | '.' | '$' | '+' | '`');
        match class.chars().all(is_plain) {
            true => Ok(class),
            false => Err(NotSelectable::new(test, "its class has a display name")),
        }
    };
    tests.iter().map(class).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    fn test(name: &str, file: Option<&str>) -> TestName {
        TestName {
            name: name.to_owned(),
            file_path: file.map(str::to_owned),
        }
    }

    #[test]
    fn the_runner_is_found_in_commands_and_scripts() {
        for (words, runner) in [
            (&["npx", "playwright", "test"][..], Some(Runner::Playwright)),
            (&["python", "-m", "pytest", "-q"], Some(Runner::Pytest)),
            (&["./node_modules/.bin/jest"], Some(Runner::Jest)),
            (&["cargo", "nextest", "run"], Some(Runner::Nextest)),
            (
                &["sh", "-c", "go test -json ./... > report.json"],
                Some(Runner::Go),
            ),
            (&["./mvnw", "-B", "verify"], Some(Runner::Surefire)),
            (&["dotnet.exe", "test"], Some(Runner::Dotnet)),
            (&["npx", "mocha", "--reporter", "json"], Some(Runner::Mocha)),
            (&["go", "build"], None),
            (&["npm", "test"], None),
            (&[], None),
        ] {
            assert_eq!(runner_of(&command(words)), runner, "{words:?}");
        }
    }

    #[test]
    fn a_shell_needs_to_pass_arguments_on() {
        let reason = |words: &[&str], runner| unreachable(&command(words), runner).is_some();
        assert!(reason(&["sh", "-c", "jest > log"], Runner::Jest));
        assert!(!reason(&["sh", "-c", "jest \"$@\" > log", "sh"], Runner::Jest));
        assert!(reason(&["make", "test"], Runner::Mocha));
        assert!(
            !reason(&["sh", "-c", "pytest > log"], Runner::Pytest),
            "it reads variables"
        );
        assert!(!reason(&["npx", "jest"], Runner::Jest));
    }

    #[test]
    fn arguments_come_where_the_runner_reads_them() {
        let with = |words: &[&str]| {
            let all = with_arguments(&command(words), &["-E".to_owned(), "x".to_owned()]);
            let words: Vec<String> = all
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect();
            words.join(" ")
        };
        assert_eq!(with(&["cargo", "nextest", "run"]), "cargo nextest run -E x");
        assert_eq!(
            with(&["cargo", "nextest", "run", "--", "a"]),
            "cargo nextest run -E x -- a"
        );
        assert_eq!(with(&["npm", "test"]), "npm test -- -E x");
        // The first argument after a script is its name, whether the command has one or not.
        for command in [&["sh", "-euc", "x \"$@\""][..], &["sh", "-euc", "x \"$@\"", "sh"]] {
            assert_eq!(with(command), "sh -euc x \"$@\" sh -E x");
        }
        assert_eq!(with(&["npm", "test", "--", "--ci"]), "npm test -- --ci -E x");
    }

    #[test]
    fn each_runner_selects_tests_alone_and_with_their_files() {
        let folder = Path::new("/tmp/again");
        let javascript = [test("cart > adds (up)", Some("src/cart.test.js"))];
        let java = [test("org.example.CartTest > adds", None)];
        let playwright = ["chromium", "webkit"].map(|project| {
            test(
                &format!("{project} > a.spec.ts > home > shows"),
                Some("e2e/a.spec.ts"),
            )
        });
        let selection = |runner, tests: &[TestName], selected| {
            let Selection {
                arguments, variables, ..
            } = select(runner, tests, selected, folder).unwrap();
            let variables = variables
                .iter()
                .map(|variable| format!("{}={}", variable.name, variable.value));
            variables.chain(arguments).collect::<Vec<_>>().join(" ")
        };
        for (runner, tests, alone, with_file) in [
            (
                Runner::Jest,
                &javascript[..],
                "--testNamePattern ^(?:cart(?: >)? adds \\(up\\))$ -- src/cart\\.test\\.js",
                Some("-- src/cart\\.test\\.js"),
            ),
            (
                Runner::Vitest,
                &javascript,
                "--testNamePattern ^(?:cart(?: >)? adds \\(up\\))$ src/cart.test.js",
                Some("src/cart.test.js"),
            ),
            (
                Runner::Mocha,
                &javascript,
                "--grep ^(?:cart(?: >)? adds \\(up\\))$",
                None,
            ),
            (
                Runner::Playwright,
                &playwright,
                "--test-list /tmp/again/assay_rerun.txt",
                Some("--test-list /tmp/again/assay_rerun.txt"),
            ),
            (
                Runner::Surefire,
                &java,
                "-Dtest=%regex[org/example/CartTest\\.class#adds] -Dsurefire.failIfNoSpecifiedTests=false \
                 -DfailIfNoTests=false",
                Some(
                    "-Dtest=%regex[org/example/CartTest\\.class] -Dsurefire.failIfNoSpecifiedTests=false \
                     -DfailIfNoTests=false",
                ),
            ),
            (
                Runner::Dotnet,
                &java,
                "--filter FullyQualifiedName=org.example.CartTest.adds",
                Some("--filter FullyQualifiedName~org.example.CartTest."),
            ),
            (Runner::Go, &java, "GOFLAGS=-count=1 -run=^adds$", None),
            (
                Runner::Nextest,
                &java,
                "-E (binary_id(=org.example.CartTest) & test(=adds))",
                None,
            ),
            (
                Runner::Pytest,
                &java,
                "PYTHONPATH=/tmp/again PYTEST_ADDOPTS=-p assay_rerun",
                Some("PYTHONPATH=/tmp/again PYTEST_ADDOPTS=-p assay_rerun"),
            ),
        ] {
            assert_eq!(selection(runner, tests, Selected::Alone), alone);
            assert_eq!(by_file(runner), with_file.is_some());
            match with_file {
                Some(with_file) => assert_eq!(selection(runner, tests, Selected::WithFile), with_file),
                None => assert!(select(runner, tests, Selected::WithFile, folder).is_err()),
            }
        }
    }

    #[test]
    fn what_is_no_data_for_a_runner_is_refused_with_the_reason() {
        for (runner, selected, tests, reason) in [
            (
                Runner::Jest,
                Selected::Alone,
                vec![test("adds", None)],
                "its file is not known",
            ),
            (
                Runner::Jest,
                Selected::WithFile,
                vec![test("adds", Some("--globalSetup=/tmp/evil.js"))],
                "its file begins with a dash",
            ),
            (
                Runner::Vitest,
                Selected::Alone,
                vec![test("adds", Some("-r/tmp"))],
                "its file begins with a dash",
            ),
            (
                Runner::Go,
                Selected::Alone,
                vec![test("shop > TestA -exec=/tmp/evil", None)],
                "white space",
            ),
            (
                Runner::Go,
                Selected::Alone,
                vec![test("-exec=/tmp/evil > TestA", None)],
                "begins with a dash",
            ),
            (
                Runner::Playwright,
                Selected::WithFile,
                vec![test("a.spec.ts > adds", None)],
                "its file is not known",
            ),
        ] {
            let refused = select(runner, &tests, selected, Path::new(".")).unwrap_err();
            assert_eq!(refused.test.as_ref(), tests.first());
            assert!(
                refused.reason.contains(reason),
                "{runner:?} {tests:?}: {refused:?}"
            );
        }
        // Without a list, each runner would run all tests.
        for runner in RUNNERS {
            for selected in [Selected::Alone, Selected::WithFile] {
                assert!(
                    select(runner, &[], selected, Path::new(".")).is_err(),
                    "{runner:?}"
                );
            }
        }
    }

    const RUNNERS: [Runner; 11] = [
        Runner::Playwright,
        Runner::Pytest,
        Runner::Nextest,
        Runner::Go,
        Runner::Jest,
        Runner::Vitest,
        Runner::Mocha,
        Runner::Dotnet,
        Runner::Surefire,
        Runner::Txt,
        Runner::Json,
    ];

    #[test]
    fn a_file_of_playwright_runs_in_its_project_only() {
        let tests = [
            test("chromium > a.spec.ts > home > shows", Some("e2e/a.spec.ts")),
            test("chromium > a.spec.ts > pays", Some("e2e/a.spec.ts")),
        ];
        let selection = select(Runner::Playwright, &tests, Selected::WithFile, Path::new("/tmp")).unwrap();
        assert_eq!(selection.file.unwrap().1, "[chromium] › a.spec.ts\n");
    }

    #[test]
    fn the_plug_in_for_files_keeps_the_tests_of_the_files() {
        let tests = [test("tests.test_cart > test_adds", None)];
        let text = |selected| {
            select(Runner::Pytest, &tests, selected, Path::new("."))
                .unwrap()
                .file
                .unwrap()
                .1
        };
        let (alone, with_file) = (text(Selected::Alone), text(Selected::WithFile));
        assert!(
            alone.contains("if not listed(item)]") && !alone.contains("files"),
            "{alone}"
        );
        for line in [
            // A parameter that changes from run to run does not hide the file.
            "    places = {test.partition(\" > \")[0] for test in TESTS}\n",
            "    left_out = [item for item in items if item.nodeid.partition(\"::\")[0] not in files]\n",
            "        items[:] = [item for item in items if item.nodeid.partition(\"::\")[0] in files]\n",
        ] {
            assert!(with_file.contains(line), "{line}{with_file}");
        }
    }
}
