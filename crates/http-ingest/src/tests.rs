//! The description of the ingest routes, from the code's types, fields and errors.

mod errors;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use assay_answers::comment::Comment;
use assay_domain::{
    decision::{self, DecisionError, ExcusedTest, GateDecision},
    fix::NewFix,
    key::KeyKind,
    rules::RuleViolation,
    run::CiProvider,
};
use assay_http::{Fault, Problem};
use assay_ingest::{Bound, UploadField, values::LONGEST_FILE_NAME};
use assay_openapi::{assert_current, docs, json::pretty, register};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use self::errors::errors;
use crate::{
    answer::Answer,
    comment::CommentRequest,
    decision::DecisionAnswer,
    error::{ErrorBody, IngestError},
    fields,
    fix::FixAnswer,
    routes::{BASE, COMMENTS, DECISIONS, FIXES, KEY, KeyAnswer, REPORTS},
};

const INTRODUCTION: &str = "\
Stores test reports of CI jobs. Every request carries `Authorization: Bearer svc_…` with the ingest key of one \
project. `assay-admin key create-ingest` creates the key. It can only store reports, decisions on them and fixes of tests in that project.

- An upload is stored as a whole or not at all, before the answer is sent. Repeating an upload changes nothing, so a client may \
repeat a request whose answer was lost.
- An error's `code` is stable; its sentence may be reworded. `file` and `line` are present if a report is the cause.
- Repeat only 408, 429, 500 and 503, after `Retry-After` if it is present. Every other error would occur again.
- Answers may get further fields; ignore those that you do not know.";

#[test]
fn the_checked_in_description_equals_the_generated_one() {
    let document = document();
    let of_anything = "\"items\":{}";
    assert!(!document.to_string().contains(of_anything), "a list of anything");
    assert_current("ingest-openapi.json", &pretty(&document));
}

#[test]
fn the_example_of_every_field_is_a_value() {
    let mut raw = fields::RawFields::default();
    for field in UploadField::ALL {
        raw.add(*field, field.example().as_bytes().to_vec()).unwrap();
    }
    fields::Fields::try_from(raw).unwrap();
}

#[test]
fn every_text_may_be_as_long_as_described_and_no_longer() {
    let parsed = |field: UploadField, length| {
        let beginning = if field == UploadField::RunUrl {
            "https://"
        } else {
            ""
        };
        let mut raw = fields::RawFields::default();
        raw.add(field, format!("{beginning:a<length$}").into_bytes())?;
        fields::Fields::try_from(raw)
    };
    for field in UploadField::ALL {
        // Bounds in bytes are checked while the value arrives.
        if let Bound::Chars(most) = field.bound() {
            assert!(parsed(*field, most).is_ok(), "{field}");
            assert!(parsed(*field, most + 1).is_err(), "{field}");
        }
    }
}

#[test]
fn the_bounds_of_a_decision_are_described() {
    let schemas = document()["components"]["schemas"].take();
    let bound = |pointer: &str| schemas.pointer(pointer).and_then(Value::as_u64).unwrap();
    let most = u64::try_from(decision::MOST_EXCUSED).unwrap();
    assert_eq!(bound("/GateDecision/properties/excused/maxItems"), most);
    let longest = u64::try_from(decision::LONGEST_REASON).unwrap();
    assert_eq!(bound("/ExcusedTest/properties/reason/maxLength"), longest);
}

#[test]
fn every_error_of_the_table_is_described() {
    // The rows of the two tables, each with a status and a code. An ingest key has no plan.
    let tables = [
        include_str!("error.rs"),
        include_str!("../../http/src/problem.rs"),
    ];
    let codes: BTreeSet<_> = tables
        .iter()
        .flat_map(|table| table.split("(StatusCode::").skip(1))
        .filter_map(|line| line.split(')').next()?.split('"').nth(1))
        .filter(|code| *code != "tier_too_low")
        .chain(
            [Fault::Temporary, Fault::NotPermitted, Fault::Permanent]
                .map(|fault| fault.code(KeyKind::Ingest)),
        )
        .chain([assay_http::RATE_LIMITED])
        .collect();
    let described: BTreeSet<_> = errors().iter().map(|(error, _)| error.code()).collect();
    assert_eq!(described, codes);
}

#[test]
fn the_page_has_every_route_field_and_code() {
    let page = fs::read_to_string(docs("ingest.md")).unwrap();
    assert!(page.contains("](ingest-openapi.json)"));
    let named = |word: &str| page.contains(&format!("`{word}`")) || page.contains(&format!(" {word}`"));
    for field in UploadField::ALL {
        assert!(named(field.name()), "the field {field}");
    }
    for (error, _) in errors() {
        assert!(named(error.code()), "the code {}", error.code());
    }
    for route in [REPORTS, DECISIONS, FIXES, COMMENTS, KEY] {
        assert!(named(route), "the route {route}");
    }
}

fn document() -> Value {
    let below = |route: &str| route.strip_prefix(BASE).unwrap().to_owned();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Assay ingest API",
            "version": "1",
            "description": INTRODUCTION,
            "license": {"name": env!("CARGO_PKG_LICENSE"), "identifier": env!("CARGO_PKG_LICENSE")},
        },
        "servers": [{
            "url": format!("{{origin}}{BASE}"),
            "variables": {"origin": {"default": "http://127.0.0.1:8081", "description": "The address of the listener."}},
        }],
        "security": [{"ingestKey": []}],
        "paths": {
            below(REPORTS): {"post": store_reports()},
            below(DECISIONS): {"post": store_decision()},
            below(FIXES): {"post": store_fix()},
            below(COMMENTS): {"post": compose_comment()},
            below(KEY): {"get": describe_key()},
        },
        "components": {
            "securitySchemes": {"ingestKey": {
                "type": "http", "scheme": "bearer", "description": "A project's ingest key, as `assay-admin key create-ingest` prints it.",
            }},
            "schemas": schemas(),
        },
    })
}

fn store_reports() -> Value {
    let multipart = json!({
        "schema": {
            "type": "object",
            "properties": UploadField::ALL.iter().map(|field| (field.name().to_owned(), field_schema(*field))).chain([(
                "report".to_owned(),
                json!({
                    "type": "array", "minItems": 1, "items": {"type": "string", "contentMediaType": "application/octet-stream"},
                    "description": format!(
                        "The report files. Every part with a file name is a report, whatever the part's name. Names are \
                         relative, with `/` and without `..`, at most {LONGEST_FILE_NAME} characters."
                    ),
                }),
            )]).collect::<Map<_, _>>(),
            "required": ["report"],
            "additionalProperties": false,
        },
    });
    let raw = json!({"schema": {"type": "string", "contentMediaType": "application/octet-stream"}});
    let answer = |description| answer(description, &schema_name::<Answer>());
    // A report names its run itself, so no run is unknown.
    let mut responses =
        refusals(|error| !matches!(error, IngestError::NotDecided(_) | IngestError::FixNotStored(_)));
    responses.insert(
        "200".to_owned(),
        answer("Nothing changed: the report was stored before, or this is a dry run."),
    );
    responses.insert("201".to_owned(), answer("Stored."));
    json!({
        "operationId": "storeReports",
        "summary": "Store the reports of a run, or of one shard of it",
        "description": "As `multipart/form-data`, fields are parts and each part with a file name is a report. With any other \
            content type the body is one report, and the fields are query parameters.",
        "parameters": UploadField::ALL.iter().map(|field| json!({
            "name": field.name(), "in": "query", "required": false, "schema": field_schema(*field),
            "description": "Only if the body is one report.",
        })).chain([json!({
            "name": "Content-Encoding", "in": "header", "required": false,
            "schema": {"type": "string", "enum": ["gzip", "zstd", "identity"]},
            "description": "The coding of the whole body. A report may be gzip itself, too.",
        })]).collect::<Vec<_>>(),
        "requestBody": {"required": true, "content": {
            "multipart/form-data": multipart,
            "application/json": raw,
            "application/xml": raw,
            "application/octet-stream": raw,
        }},
        "responses": responses,
    })
}

fn store_decision() -> Value {
    // Errors of a report cannot occur here.
    let mut responses = refusals(|error| {
        !matches!(
            error,
            IngestError::WrongProject { .. }
                | IngestError::Report(_)
                | IngestError::NothingToStore
                | IngestError::NotRecorded(_)
                | IngestError::FixNotStored(_)
                | IngestError::NotAllowed(
                    RuleViolation::StartsInTheFuture { .. } | RuleViolation::DayUsedUp { .. }
                )
        )
    });
    let answer = |description| answer(description, &schema_name::<DecisionAnswer>());
    responses.insert(
        "200".to_owned(),
        answer("Nothing changed: the decision was stored before."),
    );
    responses.insert("201".to_owned(), answer("Stored."));
    let schema = json!({"$ref": format!("#/components/schemas/{}", schema_name::<GateDecision>())});
    json!({
        "operationId": "storeDecision",
        "summary": "Store what a gate decided on an upload",
        "description": "The decision is stored with the newest upload of the run, or of the shard, and replaces an earlier one \
            there. Pages of the run show it. It counts as an upload.",
        "requestBody": {"required": true, "content": {"application/json": {"schema": schema}}},
        "responses": responses,
    })
}

fn store_fix() -> Value {
    // Errors of a report or a run cannot occur here.
    let mut responses = refusals(|error| {
        !matches!(
            error,
            IngestError::WrongProject { .. }
                | IngestError::Report(_)
                | IngestError::NothingToStore
                | IngestError::NotRecorded(_)
                | IngestError::NotDecided(_)
                | IngestError::NotAllowed(_)
        )
    });
    responses.insert("201".to_owned(), answer("Stored.", &schema_name::<FixAnswer>()));
    let schema = json!({"$ref": format!("#/components/schemas/{}", schema_name::<NewFix>())});
    json!({
        "operationId": "storeFix",
        "summary": "Store what repetitions show of a fix, or claim a fix",
        "description": "`assay verify` sends it. It changes no verdict. The page of the test and the read API show it, and whether \
            the stable branch keeps it. It counts as an upload. A key for pull requests only is refused.",
        "requestBody": {"required": true, "content": {"application/json": {"schema": schema}}},
        "responses": responses,
    })
}

fn compose_comment() -> Value {
    // Nothing is stored, so errors of a report cannot occur here.
    let mut responses = refusals(|error| {
        !matches!(
            error,
            IngestError::WrongProject { .. }
                | IngestError::Report(_)
                | IngestError::NothingToStore
                | IngestError::NotRecorded(_)
                | IngestError::NotAllowed(_)
                | IngestError::NotDecided(DecisionError::NoTest { .. })
                | IngestError::FixNotStored(_)
        )
    });
    responses.insert(
        "200".to_owned(),
        answer(
            "The comment for the newest commit of the run's pull request, or for the run's commit.",
            &schema_name::<Comment>(),
        ),
    );
    let schema = json!({"$ref": format!("#/components/schemas/{}", schema_name::<CommentRequest>())});
    json!({
        "operationId": "composeComment",
        "summary": "Compose the comment for a pull request",
        "description": "All suites and shards of the commit so far, as Markdown for a code host. Nothing is stored. It counts as an \
            upload. A key for pull requests only gets comments on runs that such a key sent.",
        "requestBody": {"required": true, "content": {"application/json": {"schema": schema}}},
        "responses": responses,
    })
}

fn describe_key() -> Value {
    // Errors of a body or a report cannot occur here.
    let mut responses = refusals(|error| {
        matches!(
            error,
            IngestError::Problem(Problem::Refused(_) | Problem::Store(_))
                | IngestError::Busy { .. }
                | IngestError::NoSuchMethod { .. }
        )
    });
    responses.insert(
        "200".to_owned(),
        answer("The key's project and terms.", &schema_name::<KeyAnswer>()),
    );
    json!({
        "operationId": "describeKey",
        "summary": "Describe the request's key",
        "description": "Answers HEAD, too. It does not count as an upload.",
        "responses": responses,
    })
}

fn field_schema(field: UploadField) -> Value {
    let mut schema = json!({
        "type": "string", "minLength": 1, "description": field.description(), "examples": [field.example()],
    });
    if let Bound::Chars(most) | Bound::Bytes(most) = field.bound() {
        schema["maxLength"] = most.into();
    }
    let providers: Value = CiProvider::ALL.iter().map(|provider| provider.as_str()).collect();
    let keywords: [(&[UploadField], &str, Value); 9] = [
        (&[UploadField::StartedAt], "format", json!("date-time")),
        (
            &[
                UploadField::DryRun,
                UploadField::Failures,
                UploadField::RetriesAsAttempts,
                UploadField::SkipCached,
            ],
            "enum",
            json!(["true", "false"]),
        ),
        (&[UploadField::Provider], "enum", providers),
        (&[UploadField::Judgement], "enum", json!(["later", "silent"])),
        (&[UploadField::MergeBase], "pattern", json!("^[0-9A-Fa-f]{7,64}$")),
        (
            &[UploadField::UtcOffset],
            "pattern",
            json!("^(Z|[+-][0-9]{2}:[0-9]{2})$"),
        ),
        (
            &[UploadField::PullRequest, UploadField::DurationMs],
            "pattern",
            json!("^[0-9]+$"),
        ),
        (
            &[UploadField::Owners, UploadField::Renames],
            "minLength",
            json!(0),
        ),
        (
            &[UploadField::Ci, UploadField::Rerun],
            "contentMediaType",
            json!("application/json"),
        ),
    ];
    for (fields, keyword, value) in keywords {
        if fields.contains(&field) {
            schema[keyword] = value;
        }
    }
    schema
}

fn answer(description: &str, schema: &str) -> Value {
    let schema = json!({"$ref": format!("#/components/schemas/{schema}")});
    json!({"description": description, "content": {"application/json": {"schema": schema}}})
}

/// The responses to refused and failed requests: each status with its codes.
fn refusals(counts: impl Fn(&IngestError) -> bool) -> Map<String, Value> {
    let mut statuses = BTreeMap::<String, BTreeMap<&str, &str>>::new();
    for (error, when) in errors().iter().filter(|(error, _)| counts(error)) {
        let (status, code) = error.status_and_code();
        statuses
            .entry(status.as_str().to_owned())
            .or_default()
            .insert(code, when);
    }
    let responses = statuses.into_iter().map(|(status, codes)| {
        let lines: Vec<_> = codes.iter().map(|(code, when)| format!("- `{code}`: {when}")).collect();
        let mut response = answer(&lines.join("\n"), &schema_name::<ErrorBody<'_>>());
        response["x-codes"] = codes.keys().copied().collect();
        if status == "429" || status == "503" {
            response["headers"] = json!({"Retry-After": {
                "required": true, "description": "Seconds to wait before the request is repeated.", "schema": {"type": "integer", "minimum": 1},
            }});
        }
        (status, response)
    });
    responses.collect()
}

fn schemas() -> Map<String, Value> {
    let mut named_schemas = Vec::new();
    register::<Answer>(&mut named_schemas);
    register::<KeyAnswer>(&mut named_schemas);
    register::<DecisionAnswer>(&mut named_schemas);
    register::<GateDecision>(&mut named_schemas);
    register::<FixAnswer>(&mut named_schemas);
    register::<NewFix>(&mut named_schemas);
    register::<CommentRequest>(&mut named_schemas);
    register::<Comment>(&mut named_schemas);
    register::<ErrorBody<'_>>(&mut named_schemas);
    let mut schemas: Map<_, _> = named_schemas
        .into_iter()
        .map(|(name, schema)| (name, serde_json::to_value(schema).unwrap()))
        .collect();
    // The fields of these may be absent. An error has a file and a line only if it is about a report, and a client need
    // not send every field.
    let with_optional = [
        schema_name::<ErrorBody<'_>>(),
        schema_name::<GateDecision>(),
        schema_name::<ExcusedTest>(),
        schema_name::<NewFix>(),
    ];
    for (name, schema) in &mut schemas {
        // Every field of an answer is always present.
        if let (true, Some(properties)) = (!with_optional.contains(name), schema.get("properties")) {
            schema["required"] = properties.as_object().unwrap().keys().cloned().collect();
        }
    }
    schemas
}

fn schema_name<T: ToSchema>() -> String {
    T::name().into_owned()
}
