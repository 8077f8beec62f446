//! The plan and the cost of a statement, by `EXPLAIN`.

use std::collections::BTreeMap;

use diesel::{RunQueryDsl, connection::SimpleConnection, sql_query};
use serde_json::Value;

use crate::{fixture::World, statements::elements};

/// The planning of a statement. Postgres plans the first five executions of a connection with their values. Then it may
/// use a generic plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plans {
    /// For these values.
    Custom,
    /// For any values.
    Generic,
}

impl Plans {
    pub(crate) const ALL: [Self; 2] = [Self::Custom, Self::Generic];

    const fn mode(self) -> &'static str {
        match self {
            Self::Custom => "force_custom_plan",
            Self::Generic => "force_generic_plan",
        }
    }
}

/// A statement with its parameters.
#[derive(Debug)]
pub(crate) struct Statement {
    /// With `$1` and so on.
    sql: String,
    /// The values of the parameters, as SQL text.
    values: Vec<String>,
}

/// Explains a statement by running it again.
pub(crate) fn explained(world: &World, statement: &Statement, plans: Plans) -> StatementCost {
    #[derive(diesel::QueryableByName)]
    struct Plan {
        #[diesel(sql_type = diesel::sql_types::Json, column_name = "QUERY PLAN")]
        plan: Value,
    }
    let prepare = format!(
        "SET plan_cache_mode = {}; PREPARE asked AS {}",
        plans.mode(),
        statement.sql
    );
    let values = match statement.values.as_slice() {
        [] => String::new(),
        values => format!("({})", values.join(", ")),
    };
    let explain = format!("EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF, SUMMARY OFF) EXECUTE asked{values}");
    let mut connection = world.database.connection();
    let prepared = connection.batch_execute(&prepare);
    let plan = prepared.and_then(|()| sql_query(&explain).get_result::<Plan>(&mut connection));
    StatementCost::of(
        plan.unwrap_or_else(|error| panic!("{prepare}; {explain}: {error}"))
            .plan,
    )
}

/// The plan and the work of a statement.
#[derive(Debug, Default)]
pub(crate) struct StatementCost {
    /// Rows read from tables and indexes, including those that a filter removed.
    pub(crate) read: f64,
    /// Pairs of rows that a join compared without a match.
    pub(crate) compared: f64,
    /// Returned rows.
    pub(crate) answered: f64,
    /// Partitions read, by their parent's name.
    pub(crate) partitions: BTreeMap<String, usize>,
    /// For each scan that ran, its table, and the rows that Postgres expected and found.
    pub(crate) scans: Vec<(String, f64, f64)>,
    /// Tables read by a sequential scan.
    pub(crate) whole: Vec<String>,
    /// The output of `EXPLAIN`.
    pub(crate) plan: Value,
}

impl StatementCost {
    fn of(explained: Value) -> Self {
        let mut work = Self::default();
        let plan = &explained[0]["Plan"];
        work.answered = plan["Actual Rows"].as_f64().unwrap();
        work.add(plan);
        work.plan = explained;
        work
    }

    fn add(&mut self, node: &Value) {
        let loops = node["Actual Loops"].as_f64().unwrap_or(0.0);
        self.compared += loops * node["Rows Removed by Join Filter"].as_f64().unwrap_or(0.0);
        if let Some(table) = node["Relation Name"].as_str() {
            let dropped: f64 = ["Rows Removed by Filter", "Rows Removed by Index Recheck"]
                .iter()
                .map(|field| node[field].as_f64().unwrap_or(0.0))
                .sum();
            self.read += loops * (node["Actual Rows"].as_f64().unwrap() + dropped);
            if loops > 0.0 {
                let expected = node["Plan Rows"].as_f64().unwrap();
                let found = node["Actual Rows"].as_f64().unwrap();
                self.scans.push((table.to_owned(), expected, found));
            }
            let partitioned = table.rsplit_once('_');
            let parents = ["result_block", "attempt", "attempt_texts"];
            if let Some((parent, _)) =
                partitioned.filter(|(parent, _)| loops > 0.0 && parents.contains(parent))
            {
                *self.partitions.entry(parent.to_owned()).or_default() += 1;
            }
            if node["Node Type"] == "Seq Scan" {
                self.whole.push(table.to_owned());
            }
        }
        for child in node["Plans"].as_array().into_iter().flatten() {
            self.add(child);
        }
    }
}

impl Statement {
    /// A recorded query; none for another statement.
    pub(crate) fn of(record: &str) -> Option<Self> {
        let (sql, binds) = record.split_once(" -- binds: ")?;
        if !sql.starts_with("SELECT") {
            return None;
        }
        let is_list = |place: &str| {
            let unnested = sql
                .split_once("unnest(")
                .and_then(|(_, rest)| rest.split_once(')'));
            unnested.is_some_and(|(lists, _)| lists.split(", ").any(|list| list == place))
                || ["ANY(", "ALL("]
                    .iter()
                    .any(|list| sql.contains(&format!("{list}{place})")))
        };
        let values = elements(binds).into_iter().enumerate();
        Some(Self {
            // The text must name the types of the parameters, which were sent separately.
            sql: sql
                .replace("unnest($2)", "unnest($2::integer[])")
                .replace("unnest($5) AS failed", "unnest($5::integer[]) AS failed")
                .replace("unnest($1) AS requested", "unnest($1::integer[]) AS requested")
                .replace(
                    "unnest($1, $2, $3)",
                    "unnest($1::integer[], $2::integer[], $3::timestamptz[])",
                ),
            values: values
                .map(|(index, bind)| literal(&bind, is_list(&format!("${}", index + 1))))
                .collect(),
        })
    }
}

/// A value as SQL text.
fn literal(bind: &str, is_list: bool) -> String {
    if let Some(inner) = bind.strip_prefix("Some(").and_then(|rest| rest.strip_suffix(')')) {
        return literal(inner, is_list);
    }
    if bind == "None" {
        return "NULL".to_owned();
    }
    if let Some(ms) = bind
        .strip_prefix("At(Timestamp(")
        .and_then(|rest| rest.strip_suffix("))"))
    {
        return format!("(timestamptz 'epoch' + interval '{ms} ms')");
    }
    if bind.starts_with('[') && is_list {
        let values: Vec<String> = elements(bind).iter().map(|value| literal(value, false)).collect();
        return format!("(ARRAY[{}])", values.join(","));
    }
    if bind.starts_with('[') {
        let bytes: String = elements(bind)
            .iter()
            .map(|byte| format!("{:02x}", byte.parse::<u8>().unwrap()))
            .collect();
        return format!("'\\x{bytes}'::bytea");
    }
    if let Some(text) = bind.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        return format!("'{text}'");
    }
    if bind.len() == 36 && bind.contains('-') {
        return format!("'{bind}'::uuid");
    }
    bind.to_owned()
}
