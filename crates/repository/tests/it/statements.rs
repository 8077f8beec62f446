//! The statements of a test, recorded at the connections with their parameters, and their parts.

use std::{cell::RefCell, collections::BTreeSet, sync::Once};

use diesel::connection::{Instrumentation, InstrumentationEvent, set_default_instrumentation};

thread_local! {
    /// The statements of this thread, which runs one test; none while not recording.
    static RECORDED: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
    /// Work to run before a statement of this thread, and the number of statements before it.
    static INTERRUPTION: RefCell<Option<Interruption>> = const { RefCell::new(None) };
}

type Interruption = (usize, Box<dyn FnOnce()>);

/// The statements of some work.
pub(crate) fn recorded_statements(work: impl FnOnce()) -> Vec<String> {
    RECORDED.set(Some(Vec::new()));
    work();
    RECORDED.take().unwrap()
}

/// Runs `work`, and `meanwhile` after this number of its statements. Returns whether `work` sent that many.
pub(crate) fn interrupted<T>(
    after: usize,
    meanwhile: impl FnOnce() + 'static,
    work: impl FnOnce() -> T,
) -> (T, bool) {
    INTERRUPTION.set(Some((after, Box::new(meanwhile))));
    let result = work();
    (result, INTERRUPTION.take().is_none())
}

/// Interrupts the thread's work when it is due. The statements of the interruption itself are not counted.
fn interrupt() {
    match INTERRUPTION.take() {
        Some((0, meanwhile)) => meanwhile(),
        Some((after, meanwhile)) => INTERRUPTION.set(Some((after - 1, meanwhile))),
        None => {}
    }
}

/// Records the statements of every connection that is opened from now on.
pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| set_default_instrumentation(|| Some(Box::new(StatementRecorder))).unwrap());
}

struct StatementRecorder;

impl Instrumentation for StatementRecorder {
    fn on_connection_event(&mut self, event: InstrumentationEvent<'_>) {
        if let InstrumentationEvent::StartQuery { query, .. } = event {
            RECORDED.with_borrow_mut(|statements| {
                statements
                    .iter_mut()
                    .for_each(|statements| statements.push(query.to_string()))
            });
            interrupt();
        }
    }
}

/// The column by which a table is distributed.
pub(crate) fn project_column(table: &str) -> &'static str {
    if table == "project" { "id" } else { "project_id" }
}

/// A table in a statement, and its alias.
pub(crate) struct TableReference {
    pub(crate) table: String,
    pub(crate) name: String,
}

/// A statement with its parameters.
pub(crate) struct Statement {
    pub(crate) sql: String,
    pub(crate) binds: Vec<String>,
}

impl Statement {
    pub(crate) fn of(record: &str) -> Self {
        let (sql, binds) = record.split_once(" -- binds: ").unwrap_or((record, "[]"));
        Self {
            sql: sql.replace('"', "").replace(['\n', '\t'], " "),
            binds: elements(binds),
        }
    }

    /// Its tables, with their names in the statement.
    pub(crate) fn references(&self, tables: &BTreeSet<String>) -> Vec<TableReference> {
        let words: Vec<&str> = self
            .sql
            .split([' ', '(', ')', ','])
            .filter(|word| !word.is_empty())
            .collect();
        let mut references = Vec::new();
        for (index, word) in words.iter().enumerate() {
            let before = if index == 0 { "" } else { words[index - 1] };
            if tables.contains(*word) && ["FROM", "JOIN", "INTO", "UPDATE", "USING", "COPY"].contains(&before)
            {
                let is_renamed = words.get(index + 1) == Some(&"AS");
                let name = if is_renamed { words[index + 2] } else { word };
                references.push(TableReference {
                    table: (*word).to_owned(),
                    name: name.to_owned(),
                });
            }
        }
        references
    }

    /// Whether this constant is a table's project.
    pub(crate) fn has_constant(&self, table: &TableReference, project: &str) -> bool {
        let column = project_column(&table.table);
        let columns_begin = |verb: &str| {
            let after = self.sql.split_once(&format!("{verb} {}", table.table));
            after.is_some_and(|(_, after)| {
                let renamed = format!(" AS {}", table.name);
                let after = after.strip_prefix(&renamed).unwrap_or(after);
                after.trim_start().starts_with(&format!("({column}"))
            })
        };
        if columns_begin("COPY") {
            // The rows follow, each with its project.
            return true;
        }
        if columns_begin("INSERT INTO") {
            return self.binds.first().is_some_and(|bound| bound == project);
        }
        let equals = format!("{}.{column} = $", table.name);
        self.sql.match_indices(&equals).any(|(at, _)| {
            let number: String = self.sql[at + equals.len()..]
                .chars()
                .take_while(char::is_ascii_digit)
                .collect();
            let number: usize = number.parse().unwrap();
            self.binds.get(number - 1).is_some_and(|bound| bound == project)
        })
    }
}

/// The elements of a list as `Debug` writes it.
pub(crate) fn elements(list: &str) -> Vec<String> {
    let inner = list
        .trim()
        .strip_prefix('[')
        .and_then(|list| list.strip_suffix(']'));
    let (mut elements, mut current) = (Vec::new(), String::new());
    let (mut depth, mut quoted, mut escaped) = (0_i32, false, false);
    for letter in inner.unwrap_or_default().chars() {
        if quoted {
            quoted = escaped || letter != '"';
            escaped = !escaped && letter == '\\';
        } else {
            match letter {
                '"' => quoted = true,
                '[' | '(' | '{' => depth += 1,
                ']' | ')' | '}' => depth -= 1,
                _ => {}
            }
            if letter == ',' && depth == 0 {
                elements.push(current.trim().to_owned());
                current.clear();
                continue;
            }
        }
        current.push(letter);
    }
    if !current.trim().is_empty() {
        elements.push(current.trim().to_owned());
    }
    elements
}
