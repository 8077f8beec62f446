//! Keys.
use std::{collections::HashMap, sync::Mutex};
use uuid::Uuid;
#[derive(Debug, Default)]
pub(crate) struct UsedToday(pub(crate) Mutex<HashMap<Uuid, i64>>);
