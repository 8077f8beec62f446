//! What a statement costs, as Postgres explains it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{distribution::elements, fixture::World};

/// What a statement does, by doing it again.
pub(crate) fn explained(world: &World, sql: &str) -> Work {
    #[derive(diesel::QueryableByName)]
    struct Plan {
        #[diesel(sql_type = diesel::sql_types::Json, column_name = "QUERY PLAN")]
        plan: Value,
    }
    let explain = format!("EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF, COSTS OFF, SUMMARY OFF) {sql}");
    let plan: Plan =
        diesel::RunQueryDsl::get_result(diesel::sql_query(&explain), &mut world.database.connection())
            .unwrap_or_else(|error| panic!("{explain}: {error}"));
    Work::of(plan.plan)
}

/// What a statement did.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// Rows read from tables and indexes, those included that a filter then dropped.
    pub(crate) read: f64,
    /// Rows answered.
    pub(crate) answered: f64,
    /// Partitions touched, by their parent's name.
    pub(crate) partitions: BTreeMap<String, usize>,
    /// Tables read whole.
    pub(crate) whole: Vec<String>,
    /// As Postgres explained it.
    pub(crate) plan: Value,
}

impl Work {
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
        if let Some(table) = node["Relation Name"].as_str() {
            let dropped: f64 = ["Rows Removed by Filter", "Rows Removed by Index Recheck"]
                .iter()
                .map(|field| node[field].as_f64().unwrap_or(0.0))
                .sum();
            self.read += loops * (node["Actual Rows"].as_f64().unwrap() + dropped);
            let partitioned = table.split_once('_');
            if let Some((parent, _)) =
                partitioned.filter(|(parent, _)| loops > 0.0 && ["result", "attempt"].contains(parent))
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

/// A statement as it was sent, with its values in the place of `$1` and so on.
pub(crate) fn with_values(statement: &str) -> Option<String> {
    let (sql, binds) = statement.split_once(" -- binds: ")?;
    if !sql.starts_with("SELECT") {
        return None;
    }
    let mut sql = sql.to_owned();
    for (index, bind) in elements(binds).into_iter().enumerate().rev() {
        let place = format!("${}", index + 1);
        let is_list = ["ANY(", "ALL(", "unnest("]
            .iter()
            .any(|list| sql.contains(&format!("{list}{place})")));
        sql = sql.replace(&place, &literal(&bind, is_list));
    }
    Some(sql)
}

/// A value as SQL writes it.
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
