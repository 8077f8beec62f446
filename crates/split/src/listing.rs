//! The lists that runners write of their tests, and the selections that they read.

use std::collections::{HashMap, HashSet};

use assay_domain::test::TestName;
use assay_runners::Use;

use crate::Timings;

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
    /// A line in a list of .NET is not the full name of a method that a filter can have.
    #[error(
        "{0:?} is not the full name of a .NET method of letters, digits and _.+`-' :/ (before any parameters); give the file of \
         `{command}`", command = Runner::Dotnet.list_command()
    )]
    NotFull(String),
}

/// The units of a runner's list, each once and in the order of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    runner: Runner,
    units: Vec<String>,
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
            Self::Go => "go test $(cat LIST)",
            Self::Jest => "npx jest --runTestsByPath $(cat LIST)",
            Self::Vitest => "npx vitest run $(cat LIST)",
            Self::Surefire => "mvn test -Dsurefire.includesFile=LIST",
            Self::Dotnet => "dotnet test --filter \"$(cat LIST)\"",
        }
    }
}

impl Listing {
    /// Reads the list of a runner. Lines that name no test are ignored, such as headings and totals; .NET's list has
    /// no others.
    pub fn parse(runner: Runner, text: &str) -> Result<Self, ListingError> {
        let text = text.replace('\r', "");
        let mut suffixes = dotnet::Suffixes::default();
        let units: Vec<String> = match runner {
            Runner::Playwright => text.lines().filter_map(playwright_test).collect(),
            Runner::Pytest => text
                .lines()
                .filter(|line| line.contains("::"))
                .map(str::to_owned)
                .collect(),
            Runner::Nextest => nextest_tests(&text),
            Runner::Go | Runner::Jest | Runner::Vitest => words(&text),
            Runner::Surefire => words(&text).iter().map(|path| java_class(path)).collect(),
            Runner::Dotnet => {
                let units;
                (units, suffixes) = dotnet::units(&text)?;
                units
            }
        };
        let mut seen = HashSet::new();
        let units: Vec<String> = units
            .into_iter()
            .filter(|unit| seen.insert(unit.clone()))
            .collect();
        if units.is_empty() {
            return Err(ListingError::Empty {
                runner: runner.name(),
                command: runner.list_command(),
            });
        }
        Ok(Self {
            runner,
            units,
            suffixes,
        })
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
        let class = || test.name.split(" > ").next().map(str::to_owned);
        match self.runner {
            Runner::Playwright => {
                let list = assay_runners::list(
                    std::slice::from_ref(test),
                    assay_runners::Runner::Playwright,
                    Use::Select,
                );
                list.text.lines().map(str::to_owned).collect()
            }
            Runner::Pytest | Runner::Nextest => vec![test.name.clone()],
            Runner::Go | Runner::Surefire => class().into_iter().collect(),
            Runner::Jest | Runner::Vitest => test.file_path.iter().cloned().collect(),
            Runner::Dotnet => {
                let method = test.name.replacen(" > ", ".", 1);
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
                let names: Vec<TestName> = units
                    .iter()
                    .map(|unit| TestName {
                        name: unit.replacen(' ', " > ", 1),
                        file_path: None,
                    })
                    .collect();
                assay_runners::list(&names, assay_runners::Runner::Nextest, Use::Select).text
            }
            Runner::Dotnet => self.suffixes.filter(&units),
        }
    }
}

/// The lines that are a single word: paths, packages and classes. Others are messages of the runner.
fn words(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.contains(char::is_whitespace))
        .map(str::to_owned)
        .collect()
}

/// `  [chromium] › a.spec.ts:3:5 › shows` as `[chromium] › a.spec.ts › shows`, the form of `--test-list`.
fn playwright_test(line: &str) -> Option<String> {
    let parts: Vec<&str> = line.trim().split(" › ").collect();
    let place = parts.iter().position(|part| without_place(part).is_some())?;
    let parts = parts
        .iter()
        .enumerate()
        .map(|(index, part)| match without_place(part) {
            Some(file) if index == place => file,
            _ => part,
        });
    Some(parts.collect::<Vec<_>>().join(" › "))
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

/// The tests of `cargo nextest list` as `binary test`: a line `binary:` before its indented tests, or one line for each.
fn nextest_tests(text: &str) -> Vec<String> {
    let mut binary = "";
    let mut tests = Vec::new();
    for line in text.lines() {
        let is_indented = line.starts_with(' ');
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [name] if !is_indented && name.ends_with(':') => binary = name.trim_end_matches(':'),
            [test] if is_indented && !binary.is_empty() => tests.push(format!("{binary} {test}")),
            [binary, test] if !is_indented => tests.push(format!("{binary} {test}")),
            _ => {}
        }
    }
    tests
}

/// `src/test/java/org/example/CartTest.java` as `org.example.CartTest`. A class stays as it is.
fn java_class(path: &str) -> String {
    let Some(path) = path.strip_suffix(".java").or_else(|| path.strip_suffix(".kt")) else {
        return path.to_owned();
    };
    let root = ["src/test/java/", "src/test/kotlin/"]
        .iter()
        .find_map(|root| path.split_once(root).map(|(_, class)| class));
    root.unwrap_or(path).trim_start_matches("./").replace('/', ".")
}

#[cfg(test)]
mod tests;
