//! The lists that runners write of their tests, and the selections that they read.

use std::collections::{BTreeSet, HashMap, HashSet};

use assay_domain::test::TestName;
use assay_reports::{within_package, without_package};

use crate::{runners::Use, split::Timings};

mod dotnet;

/// A runner whose tests can be divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runner {
    /// Tests of `npx playwright test --list`.
    Playwright,
    /// Tests of `pytest --collect-only -q`.
    Pytest,
    /// Tests of `cargo nextest list`.
    Nextest,
    /// Packages of `go list ./...`.
    Go,
    /// Files of `npx jest --listTests`.
    Jest,
    /// Files of `npx vitest list --filesOnly`.
    Vitest,
    /// Classes, by the files of their sources.
    Surefire,
    /// Methods in the list of fully qualified names that `dotnet vstest` writes.
    Dotnet,
}

/// The reason why a list cannot be divided.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListingError {
    /// It has no test.
    #[error("the list has no test of {runner}; give the output of `{command}`")]
    Empty {
        /// The runner.
        runner: &'static str,
        /// The command that writes such a list.
        command: &'static str,
    },
    /// A line is neither a unit nor a message of the runner.
    #[error("line {line} of the list, {text:?}, {reason}; give the list that `{command}` writes")]
    Refused {
        /// The number of the line, from 1.
        line: usize,
        /// Its beginning.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
        /// The command that writes such a list.
        command: &'static str,
    },
}

/// What a line of a list is.
enum Line {
    Unit(String),
    /// A heading, a total or another text of the runner that names no unit.
    Message,
    /// Neither, with what is wrong.
    Refused(&'static str),
}

/// The longest part of a line in an error, in characters.
const LONGEST: usize = 200;
/// The end of the reason for a line that would be an option.
const OPTION: &str = "begins with a character that makes it an option of the runner";

/// The units of a runner's list, each once and in the order of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    runner: Runner,
    units: Vec<String>,
    /// Lines that are not blank.
    lines: usize,
    /// Lines with messages of the runner.
    messages: usize,
    /// Empty for other runners than .NET.
    suffixes: dotnet::Suffixes,
}

impl Runner {
    /// Every runner.
    pub const ALL: [Self; 8] = [
        Self::Playwright,
        Self::Pytest,
        Self::Nextest,
        Self::Go,
        Self::Jest,
        Self::Vitest,
        Self::Surefire,
        Self::Dotnet,
    ];

    /// Its name on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Playwright => "playwright",
            Self::Pytest => "pytest",
            Self::Nextest => "nextest",
            Self::Go => "go",
            Self::Jest => "jest",
            Self::Vitest => "vitest",
            Self::Surefire => "surefire",
            Self::Dotnet => "dotnet",
        }
    }

    /// What it runs or leaves out as a whole.
    pub const fn units(self) -> &'static str {
        match self {
            Self::Playwright | Self::Pytest | Self::Nextest => "tests",
            Self::Go => "packages",
            Self::Jest | Self::Vitest => "files",
            Self::Surefire => "classes",
            Self::Dotnet => "methods",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Playwright => "Playwright",
            Self::Pytest => "pytest",
            Self::Nextest => "cargo-nextest",
            Self::Go => "Go",
            Self::Jest => "Jest",
            Self::Vitest => "Vitest",
            Self::Surefire => "Surefire",
            Self::Dotnet => ".NET",
        }
    }

    /// The command that lists its tests.
    pub const fn list_command(self) -> &'static str {
        match self {
            Self::Playwright => "npx playwright test --list",
            Self::Pytest => "pytest --collect-only -q",
            Self::Nextest => "cargo nextest list",
            Self::Go => "go list ./...",
            Self::Jest => "npx jest --listTests",
            Self::Vitest => "npx vitest list --filesOnly",
            Self::Surefire => "find src/test/java -name '*Test.java'",
            Self::Dotnet => "dotnet vstest TESTS.dll --ListFullyQualifiedTests --ListTestsTargetPath:FILE",
        }
    }

    /// The command that runs a selection, in which `LIST` is its file.
    pub const fn run_command(self) -> &'static str {
        match self {
            Self::Playwright => "npx playwright test --test-list LIST",
            Self::Pytest => "pytest @LIST",
            Self::Nextest => "cargo nextest run -E \"$(cat LIST)\"",
            Self::Go => "tr '\\n' '\\0' < LIST | xargs -0 -x -n 9999 go test",
            Self::Jest => "tr '\\n' '\\0' < LIST | xargs -0 -x -n 9999 npx jest --runTestsByPath",
            Self::Vitest => "tr '\\n' '\\0' < LIST | xargs -0 -x -n 9999 npx vitest run",
            Self::Surefire => "mvn test -Dsurefire.includesFile=LIST",
            Self::Dotnet => "dotnet test --filter \"$(cat LIST)\"",
        }
    }
}

impl Listing {
    /// Reads the list of a runner. Each line is a unit or a known message of the runner, such as a heading or a total. Any
    /// other line is an error, because a test in it would run on no machine.
    pub fn parse(runner: Runner, text: &str) -> Result<Self, ListingError> {
        let text = text.trim_start_matches('\u{feff}').replace('\r', "");
        let mut listing = Self {
            runner,
            units: Vec::new(),
            lines: 0,
            messages: 0,
            suffixes: dotnet::Suffixes::default(),
        };
        let mut seen = HashSet::new();
        let mut heading = String::new();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            listing.lines += 1;
            match listing.line(line, &mut heading) {
                Line::Unit(unit) if seen.insert(unit.clone()) => listing.units.push(unit),
                Line::Unit(_) => {}
                Line::Message => listing.messages += 1,
                Line::Refused(reason) => {
                    return Err(ListingError::Refused {
                        line: index + 1,
                        text: line.trim().chars().take(LONGEST).collect(),
                        reason,
                        command: runner.list_command(),
                    });
                }
            }
        }
        if listing.units.is_empty() {
            return Err(ListingError::Empty {
                runner: runner.name(),
                command: runner.list_command(),
            });
        }
        Ok(listing)
    }

    /// What a line is. `heading` is the part of the list in which it is.
    fn line(&mut self, line: &str, heading: &mut String) -> Line {
        match self.runner {
            Runner::Playwright => playwright_line(line),
            Runner::Pytest => pytest_line(line, heading),
            Runner::Nextest => nextest_line(line, heading),
            Runner::Go => go_line(line),
            Runner::Jest => file_line(line),
            // A workspace has the name of the project before the file.
            Runner::Vitest => file_line(
                line.strip_prefix('[')
                    .and_then(|rest| rest.split_once("] "))
                    .map_or(line, |(_, file)| file),
            ),
            Runner::Surefire => java_line(line),
            Runner::Dotnet => self.suffixes.line(line),
        }
    }

    /// The number of lines that are not blank, of units, and of messages.
    pub(crate) const fn counts(&self) -> (usize, usize, usize) {
        (self.lines, self.units.len(), self.messages)
    }

    /// The runner.
    pub(crate) const fn runner(&self) -> Runner {
        self.runner
    }

    /// The units.
    pub fn units(&self) -> &[String] {
        &self.units
    }

    /// The sum of the usual durations of each unit's tests; none for a unit without a timing.
    pub(crate) fn durations(&self, timings: &Timings) -> Vec<Option<u64>> {
        let mut of_key: HashMap<String, u64> = HashMap::new();
        for timing in &timings.tests {
            let test = TestName {
                name: timing.test_name.clone(),
                file_path: timing.file_path.clone(),
            };
            for key in self.keys_of(&test) {
                let sum = of_key.entry(key).or_default();
                *sum = sum.saturating_add(timing.duration_ms);
            }
        }
        self.units
            .iter()
            .map(|unit| self.duration_of(unit, &of_key))
            .collect()
    }

    /// The units that a stored test may belong to.
    fn keys_of(&self, test: &TestName) -> Vec<String> {
        let name = without_package(&test.name);
        let class = || name.split(" > ").next().map(str::to_owned);
        match self.runner {
            Runner::Playwright => {
                let list = crate::runners::list(
                    std::slice::from_ref(test),
                    crate::runners::Runner::Playwright,
                    Use::Select,
                );
                list.text.lines().map(str::to_owned).collect()
            }
            Runner::Pytest | Runner::Nextest => vec![name.to_owned()],
            Runner::Go | Runner::Surefire => class().into_iter().collect(),
            Runner::Jest | Runner::Vitest => {
                let files = test.file_path.iter();
                let files = files.flat_map(|file| BTreeSet::from([file.as_str(), within_package(file)]));
                files.map(str::to_owned).collect()
            }
            Runner::Dotnet => {
                let method = name.replacen(" > ", ".", 1);
                vec![dotnet::without_parameters(&method).0.to_owned()]
            }
        }
    }

    fn duration_of(&self, unit: &str, of_key: &HashMap<String, u64>) -> Option<u64> {
        match self.runner {
            Runner::Playwright | Runner::Go | Runner::Surefire | Runner::Dotnet => of_key.get(unit).copied(),
            Runner::Pytest => of_key.get(&pytest_name(unit)).copied(),
            Runner::Nextest => of_key.get(&unit.replacen(' ', " > ", 1)).copied(),
            // Stored files are relative to the checkout, and Jest lists absolute ones.
            Runner::Jest | Runner::Vitest => {
                let path = unit.replace('\\', "/");
                let ends = std::iter::once(0).chain(path.match_indices('/').map(|(at, _)| at + 1));
                ends.filter_map(|start| path.get(start..))
                    .find_map(|end| of_key.get(end).copied())
            }
        }
    }

    /// The units at these positions as the runner reads them; empty without units.
    pub fn selection(&self, positions: &[usize]) -> String {
        let units: Vec<&str> = positions
            .iter()
            .filter_map(|position| self.units.get(*position))
            .map(String::as_str)
            .collect();
        if units.is_empty() {
            return String::new();
        }
        match self.runner {
            Runner::Playwright | Runner::Pytest | Runner::Go | Runner::Jest | Runner::Vitest => {
                units.iter().map(|unit| format!("{unit}\n")).collect()
            }
            Runner::Surefire => units
                .iter()
                .map(|class| format!("{}.java\n", class.replace('.', "/")))
                .collect(),
            Runner::Nextest => {
                let names: Vec<TestName> = units.iter().map(|unit| nextest_test(unit)).collect();
                crate::runners::list(&names, crate::runners::Runner::Nextest, Use::Select).text
            }
            Runner::Dotnet => self.suffixes.filter(&units),
        }
    }
}

/// A package of Go. `go` itself writes messages, too.
fn go_line(line: &str) -> Line {
    if line.starts_with("go: ") {
        Line::Message
    } else if line.contains(char::is_whitespace) {
        Line::Refused("is no package: it has white space")
    } else if line.starts_with('-') {
        Line::Refused(OPTION)
    } else {
        Line::Unit(line.to_owned())
    }
}

/// The endings of files with tests of JavaScript.
const SCRIPTS: [&str; 12] = [
    "js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "vue", "svelte", "coffee", "es6",
];

/// A file of Jest or Vitest: any path to a script, and any absolute path.
fn file_line(line: &str) -> Line {
    let file = line.trim_end();
    let is_absolute = file.starts_with('/') || file.starts_with("\\\\") || file.get(1..3) == Some(":\\");
    let ending = file.rsplit_once('.').map(|(_, ending)| ending);
    if file.starts_with('-') {
        Line::Refused(OPTION)
    } else if is_absolute || ending.is_some_and(|ending| SCRIPTS.contains(&ending)) {
        Line::Unit(file.to_owned())
    } else {
        Line::Refused("is neither a path to a script nor an absolute path")
    }
}

/// `  [chromium] › a.spec.ts:3:5 › shows` as `[chromium] › a.spec.ts › shows`, the form of `--test-list`.
fn playwright_line(line: &str) -> Line {
    let parts: Vec<&str> = line.trim_start().split(" › ").collect();
    let Some(place) = parts.iter().position(|part| without_place(part).is_some()) else {
        let is_total = line.starts_with("Total: ") && line.contains(" in ");
        return match is_total || line == "Listing tests:" {
            true => Line::Message,
            false => {
                Line::Refused("is neither a test with its file, line and column nor the heading or the total")
            }
        };
    };
    if parts.iter().any(|part| part.trim() != *part) {
        return Line::Refused("has a title that begins or ends with a space, which a test list cannot hold");
    }
    let parts = parts
        .iter()
        .enumerate()
        .map(|(index, part)| match without_place(part) {
            Some(file) if index == place => file,
            _ => part,
        });
    let unit = parts.collect::<Vec<_>>().join(" › ");
    match unit.starts_with('#') {
        true => Line::Refused("begins with #, which a test list takes for a comment"),
        false => Line::Unit(unit),
    }
}

/// The heading of pytest's warnings, which are the last part of its list.
const PYTEST_WARNINGS: &str = "warnings summary";

/// A test of pytest: its file, `::` and its name.
fn pytest_line(line: &str, heading: &mut String) -> Line {
    if line.starts_with("===") {
        PYTEST_WARNINGS.clone_into(heading);
        return match line.contains(PYTEST_WARNINGS) {
            true => Line::Message,
            false => Line::Refused("is the heading of an error: pytest could not collect all tests"),
        };
    }
    let is_total = line.contains(" collected") || line.contains(" deselected");
    let is_total = is_total && line.starts_with(|char: char| char.is_ascii_digit() || char == 'n');
    if heading == PYTEST_WARNINGS || (is_total && !line.contains("::")) {
        match line.contains("error") {
            true => Line::Refused("says that pytest could not collect all tests"),
            false => Line::Message,
        }
    } else if line.starts_with(['-', '@']) {
        Line::Refused(OPTION)
    } else if line.contains("::") {
        Line::Unit(line.to_owned())
    } else {
        Line::Refused("is neither a test with :: nor the total")
    }
}

/// A test of `cargo nextest list` as `binary test`: indented below the line `binary:`, or with its binary on one line.
fn nextest_line(line: &str, heading: &mut String) -> Line {
    let unit = if line.starts_with(' ') {
        if line.ends_with(" (skipped)") {
            return Line::Message;
        }
        if heading.is_empty() {
            return Line::Refused("is a test without a binary before it");
        }
        format!("{heading} {}", line.trim())
    } else if let Some(binary) = line.strip_suffix(':').filter(|binary| !binary.contains(' ')) {
        binary.clone_into(heading);
        return Line::Message;
    } else if line.contains(' ') {
        line.to_owned()
    } else {
        return Line::Refused("is neither a binary nor a test");
    };
    let list = crate::runners::list(
        &[nextest_test(&unit)],
        crate::runners::Runner::Nextest,
        Use::Select,
    );
    match list.left_out.is_empty() {
        true => Line::Unit(unit),
        false => Line::Refused("has a test that a filter cannot name, because its name contains \" > \""),
    }
}

/// The stored test of `binary test`.
fn nextest_test(unit: &str) -> TestName {
    TestName {
        name: unit.replacen(' ', " > ", 1),
        file_path: None,
    }
}

/// The file of `a.spec.ts:3:5`.
fn without_place(part: &str) -> Option<&str> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (rest, column) = part.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    (is_number(column) && is_number(line)).then_some(file)
}

/// `tests/test_cart.py::TestCart::test_adds[1]` as the name that pytest's JUnit XML has:
/// `tests.test_cart.TestCart > test_adds[1]`.
fn pytest_name(id: &str) -> String {
    let (path, parameters) = match id.find('[') {
        Some(start) => id.split_at(start),
        None => (id, ""),
    };
    let mut parts = path.split("::");
    let module = parts.next().unwrap_or_default();
    let module = module.strip_suffix(".py").unwrap_or(module).replace('/', ".");
    let mut enclosing = vec![module];
    enclosing.extend(parts.map(str::to_owned));
    let test = enclosing.pop().unwrap_or_default();
    format!("{} > {test}{parameters}", enclosing.join("."))
}

/// The endings of sources whose classes Surefire runs.
const SOURCES: [&str; 4] = [".java", ".kt", ".groovy", ".scala"];
/// The folders below a source root, `src/test/java`.
const LANGUAGES: [&str; 4] = ["java", "kotlin", "groovy", "scala"];

/// `src/test/java/org/example/CartTest.java` as the class `org.example.CartTest`. A class stays as it is.
fn java_line(line: &str) -> Line {
    let path = line.trim().replace('\\', "/");
    let class = match SOURCES.iter().find_map(|ending| path.strip_suffix(ending)) {
        Some(path) => match below_source_root(path) {
            Some(class) => class.replace('/', "."),
            None => {
                return Line::Refused(
                    "has no source root src/SET/LANGUAGE, such as src/test/java, so that its class is not known",
                );
            }
        },
        None => path,
    };
    let is_part = |part: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|char| char.is_alphanumeric() || matches!(char, '_' | '$'))
    };
    match class.split('.').all(is_part) {
        true => Line::Unit(class),
        false => Line::Refused("is neither a class nor the file of one"),
    }
}

/// The part of a path after its source root.
fn below_source_root(path: &str) -> Option<&str> {
    let starts = std::iter::once(0).chain(path.match_indices('/').map(|(at, _)| at + 1));
    starts.filter_map(|start| path.get(start..)).find_map(|path| {
        let mut parts = path.splitn(4, '/');
        let (source, _set, language) = (parts.next()?, parts.next()?, parts.next()?);
        (source == "src" && LANGUAGES.contains(&language)).then(|| parts.next())?
    })
}

#[cfg(test)]
mod tests;
