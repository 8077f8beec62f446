//! The OpenAPI document of the ingest routes, generated from the code's types, fields and errors.
//!
//! It is checked in as `docs/ingest-openapi.json`. The test here fails if it is out of date. This command writes it:
//!
//! ```sh
//! ASSAY_WRITE_OPENAPI=1 cargo test -p assay-ingest-http openapi
//! ```

mod errors;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use assay_answers::comment::Comment;
use assay_domain::{
    decision::{self, DecisionError, ExcusedTest, GateDecision},
    key::KeyKind,
    owners::OwnersFile,
    project::NAME_CHARS,
    renames::RenamesFile,
    rules::RuleViolation,
    run::CiProvider,
};
use assay_http::{Fault, Problem};
use assay_ingest::values::{self, LONGEST_FILE_NAME};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use self::errors::errors;
use crate::{
    answer::Answer,
    comment::CommentRequest,
    decision::DecisionAnswer,
    error::{ErrorBody, IngestError},
    fields::{self, RERUN_BYTES},
    limits::CI_BYTES,
    routes::{BASE, COMMENTS, DECISIONS, KEY, KeyAnswer, REPORTS},
};

const INTRODUCTION: &str = "\
Stores test reports of CI jobs. Every request carries `Authorization: Bearer svc_…` with the ingest key of one \
project. `assay-admin key create-ingest` creates the key. It can only store reports and decisions on them in that project.

- An upload is stored as a whole or not at all, before the answer is sent. Repeating an upload changes nothing, so a client may \
repeat a request whose answer was lost.
- An error's `code` is stable; its sentence may be reworded. `file` and `line` are present if a report is the cause.
- Repeat only 408, 429, 500 and 503, after `Retry-After` if it is present. Every other error would occur again.
- Answers may get further fields; ignore those that you do not know.";

/// A field of an upload: name, description and example.
struct Field(&'static str, &'static str, &'static str);

/// The fields, in the order of the documentation.
const FIELDS: [Field; 34] = [
    Field(
        "runKey",
        "The key that all parts of one run share, such as the build's id. No other run may have it.",
        "build-812",
    ),
    Field("shard", "The shard of this report: number and total.", "2/5"),
    Field(
        "suite",
        "A name that separates several runs of one build; each suite of a build is a run.",
        "e2e",
    ),
    Field(
        "attempt",
        "The attempt of the command in its job, from 1. A later attempt continues what failed in the one before.",
        "2",
    ),
    Field(
        "replace",
        "`true`: the report replaces what is stored for its run and shard. Without it, nothing is replaced.",
        "false",
    ),
    Field(
        "rerun",
        "A JSON array of at most 200 tests, each with `name` and `filePath`: the report is a rerun of these by a gate, and only their results are stored.",
        "[{\"name\": \"cart > pays\", \"filePath\": \"cart.test.ts\"}]",
    ),
    Field(
        "retriesAsAttempts",
        "`true`: results of one name in a file are attempts of one test, for a tool whose retries the report does not mark.",
        "true",
    ),
    Field(
        "skipCached",
        "`true`: files whose tests began more than 24 hours from the upload are left out. By default they get its time.",
        "true",
    ),
    Field("branch", "The branch.", "main"),
    Field(
        "commit",
        "The commit.",
        "4be1d0c7f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0",
    ),
    Field(
        "testedRevision",
        "The tested revision, if it differs from the commit: for a merge commit of a pull request, its head.",
        "0a1b2c3",
    ),
    Field(
        "mergeBase",
        "The commit at which the branch left the stable branch. What changed is judged against a run at or before it.",
        "9c70fe604be1d0c7f0f0f0f0f0f0f0f0f0f0f0f0",
    ),
    Field("message", "The commit's message.", "Round totals half up"),
    Field("author", "The commit's author.", "Ada"),
    Field("pullRequest", "The pull request's number, from 1.", "7"),
    Field("pullRequestTitle", "Its title.", "Round totals"),
    Field("provider", "The CI service.", "github-actions"),
    Field(
        "runUrl",
        "The page of the CI run, an address of http or https. The pages link to it.",
        "https://github.com/shop/web/actions/runs/7",
    ),
    Field(
        "startedAt",
        "The start of the run, in RFC 3339. By default the start in the report, else the time of the upload.",
        "2026-11-20T10:00:00Z",
    ),
    Field(
        "durationMs",
        "The duration of the run, in whole milliseconds.",
        "1500",
    ),
    Field(
        "format",
        "The reports' format, or `auto`, which recognizes the format of each file.",
        "junit",
    ),
    Field(
        "root",
        "The checkout's folder as the reports write it. It is removed from the paths.",
        "/home/runner/work/shop",
    ),
    Field(
        "ci",
        "JSON: values of CI's variables. `job`, `jobId`, `runner` and `attempt` identify the sender. `sources` lists [value, variable].",
        r#"{"provider": "github-actions", "job": "test", "jobId": "1001", "runner": "runner-1", "attempt": 1, "sources": [["branch", "GITHUB_REF_NAME"]]}"#,
    ),
    Field(
        "knownFiles",
        "The checkout's files, one path per line. They give files to tests of reports that name only classes.",
        "src/totals.test.ts\nsrc/test/java/org/shop/OrderTest.java",
    ),
    Field(
        "artifactsUrl",
        "Where CI keeps the files that the reports name: an address of http or https with `{path}` for a file's path.",
        "https://ci.example.org/artifacts/812/{path}",
    ),
    Field(
        "owners",
        "The text of the checkout's owners file, in the grammar of CODEOWNERS. It takes effect from a trusted run of the stable branch that is of no pull request. An empty text takes all owners away.",
        "/web/ @org/web",
    ),
    Field(
        "ownersPath",
        "The owners file's path in the checkout.",
        ".github/CODEOWNERS",
    ),
    Field(
        "ownersFiles",
        "All files of the checkout, one path per line, by which a report's shorter path is found. Without them paths count from the root.",
        "web/src/cart.test.ts\nREADME.md",
    ),
    Field(
        "renames",
        "The text of the checkout's renames file. It takes effect like the owners file. An empty text undoes all renames.",
        "2026-11-27 file src/old/ -> src/new/",
    ),
    Field(
        "project",
        "Name or id of the project that the key must belong to. Any other project is refused.",
        "web",
    ),
    Field(
        "dryRun",
        "`true`: the report is read and answered, but not stored.",
        "false",
    ),
    Field(
        "judgement",
        "For a run of the past, with a key for such runs. `later`: the project is judged by a later upload. `silent`: it is judged, and no message is sent about it.",
        "later",
    ),
    Field(
        "failures",
        "`true`: the answer includes the causes of this report's failures.",
        "true",
    ),
    Field(
        "utcOffset",
        "The offset from UTC of the machine that ran the tests. It applies to times of reports that have no zone.",
        "+09:00",
    ),
];

#[test]
#[expect(clippy::disallowed_methods, reason = "a test is a program")]
fn the_checked_in_description_equals_the_generated_one() {
    let (document, path) = (document(), docs("ingest-openapi.json"));
    let of_anything = "\"items\":{}";
    assert!(!document.to_string().contains(of_anything), "a list of anything");
    if std::env::var_os("ASSAY_WRITE_OPENAPI").is_some() {
        fs::write(&path, format!("{document:#}\n")).unwrap();
    }
    let checked_in: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert!(
        checked_in == document,
        "docs/ingest-openapi.json is out of date: ASSAY_WRITE_OPENAPI=1 cargo test -p assay-ingest-http openapi"
    );
}

#[test]
fn every_field_is_described_and_its_example_is_one() {
    let described: BTreeSet<_> = FIELDS.iter().map(|field| field.0).collect();
    assert_eq!(described, fields::NAMES.into());
    let mut raw = fields::RawFields::default();
    for Field(name, _, example) in FIELDS {
        raw.add(name, example.as_bytes().to_vec()).unwrap();
    }
    fields::Fields::try_from(raw).unwrap();
}

#[test]
fn every_text_may_be_as_long_as_described_and_no_longer() {
    let parsed = |name: &str, length| {
        let beginning = if name == "runUrl" { "https://" } else { "" };
        let mut raw = fields::RawFields::default();
        raw.add(name, format!("{beginning:a<length$}").into_bytes())?;
        fields::Fields::try_from(raw)
    };
    for field in &FIELDS {
        // These two are checked while they arrive.
        if let (Some(most), false) = (
            field.most(),
            ["ci", "knownFiles", "owners", "ownersFiles", "renames", "rerun"].contains(&field.0),
        ) {
            assert!(parsed(field.0, most).is_ok(), "{}", field.0);
            assert!(parsed(field.0, most + 1).is_err(), "{}", field.0);
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
    for Field(name, ..) in FIELDS {
        assert!(named(name), "the field {name}");
    }
    for (error, _) in errors() {
        assert!(named(error.code()), "the code {}", error.code());
    }
    for route in [REPORTS, DECISIONS, COMMENTS, KEY] {
        assert!(named(route), "the route {route}");
    }
}

fn docs(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(file)
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
            "properties": FIELDS.iter().map(|field| (field.0.to_owned(), field.schema())).chain([(
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
    let mut responses = refusals(|error| !matches!(error, IngestError::NotDecided(_)));
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
        "parameters": FIELDS.iter().map(|field| json!({
            "name": field.0, "in": "query", "required": false, "schema": field.schema(),
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

impl Field {
    /// The longest value in characters, unless the field's kind determines it.
    fn most(&self) -> Option<usize> {
        match self.0 {
            "branch" | "project" => Some(NAME_CHARS),
            "runKey" => Some(400),
            "suite" | "commit" | "testedRevision" | "author" | "pullRequestTitle" => Some(500),
            "root" | "runUrl" => Some(values::LONGEST_FIELD),
            "message" => Some(values::LONGEST_MESSAGE),
            "ci" => Some(CI_BYTES),
            "knownFiles" => Some(values::MOST_KNOWN_FILE_BYTES),
            "owners" => Some(OwnersFile::MOST_TEXT_BYTES),
            "renames" => Some(RenamesFile::MOST_TEXT_BYTES),
            "rerun" => Some(RERUN_BYTES),
            "ownersFiles" => Some(OwnersFile::MOST_FILES_BYTES),
            "ownersPath" => Some(OwnersFile::LONGEST_PATH),
            _ => None,
        }
    }

    fn schema(&self) -> Value {
        let Self(name, description, example) = *self;
        let mut schema =
            json!({"type": "string", "minLength": 1, "description": description, "examples": [example]});
        if let Some(most) = self.most() {
            schema["maxLength"] = most.into();
        }
        match name {
            "startedAt" => schema["format"] = "date-time".into(),
            "dryRun" | "failures" | "retriesAsAttempts" | "skipCached" => {
                schema["enum"] = json!(["true", "false"])
            }
            "judgement" => schema["enum"] = json!(["later", "silent"]),
            "provider" => schema["enum"] = CiProvider::ALL.iter().map(|provider| provider.as_str()).collect(),
            "mergeBase" => schema["pattern"] = "^[0-9A-Fa-f]{7,64}$".into(),
            "utcOffset" => schema["pattern"] = "^(Z|[+-][0-9]{2}:[0-9]{2})$".into(),
            "pullRequest" | "durationMs" => schema["pattern"] = "^[0-9]+$".into(),
            "owners" | "renames" => schema["minLength"] = 0.into(),
            "ci" | "rerun" => schema["contentMediaType"] = "application/json".into(),
            _ => {}
        }
        schema
    }
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
    let mut schemas_by_name = Vec::new();
    register::<Answer>(&mut schemas_by_name);
    register::<KeyAnswer>(&mut schemas_by_name);
    register::<DecisionAnswer>(&mut schemas_by_name);
    register::<GateDecision>(&mut schemas_by_name);
    register::<CommentRequest>(&mut schemas_by_name);
    register::<Comment>(&mut schemas_by_name);
    register::<ErrorBody<'_>>(&mut schemas_by_name);
    let mut schemas: Map<_, _> = schemas_by_name.into_iter().collect();
    // The fields of these may be absent. An error has a file and a line only if it is about a report, and a client need
    // not send every field.
    let with_optional = [
        schema_name::<ErrorBody<'_>>(),
        schema_name::<GateDecision>(),
        schema_name::<ExcusedTest>(),
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

fn register<T: ToSchema>(schemas_by_name: &mut Vec<(String, Value)>) {
    let mut schemas = Vec::new();
    T::schemas(&mut schemas);
    schemas.push((schema_name::<T>(), T::schema()));
    schemas_by_name.extend(
        schemas
            .into_iter()
            .map(|(name, schema)| (name, serde_json::to_value(schema).unwrap())),
    );
}
