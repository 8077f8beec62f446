//! Servers to compare with, each a hidden subcommand and a separate process: one that does nothing, and one written
//! as the libraries' guides show.

use std::net::SocketAddr;

use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use anyhow::Context as _;
use diesel::{
    ExpressionMethods as _, OptionalExtension as _, PgConnection, QueryDsl as _, RunQueryDsl as _,
    r2d2::{ConnectionManager, Pool},
};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// The columns that the textbook's statements read.
mod tables {
    diesel::table! {
        organization (id) { id -> Uuid, plan -> Text, }
    }
    diesel::table! {
        project (id) { id -> Uuid, organization_id -> Uuid, name -> Text, evaluated_at -> Nullable<Timestamptz>, }
    }
    diesel::table! {
        api_key (id) { id -> Uuid, kind -> Text, hash -> Binary, organization_id -> Uuid, revoked_at -> Nullable<Timestamptz>, }
    }
    diesel::table! {
        test (project_id, ordinal) {
            project_id -> Uuid, ordinal -> Integer, name -> Text, file_path -> Nullable<Text>, name_hash -> Binary,
        }
    }
    diesel::table! {
        verdict (project_id, test) { project_id -> Uuid, test -> Integer, status -> Text, body -> Text, }
    }
}

use tables::{api_key, organization, project, test, verdict};

/// Serves a body of this size on every path, as the limit of actix-web.
pub(crate) fn bare(listen: SocketAddr, bytes: usize) -> anyhow::Result<()> {
    let body = web::Bytes::from("x".repeat(bytes));
    let workers = std::thread::available_parallelism().map_or(1, Into::into);
    let serving = HttpServer::new(move || {
        let body = body.clone();
        App::new().default_service(web::to(move || {
            let body = body.clone();
            async move { HttpResponse::Ok().content_type("application/json").body(body) }
        }))
    })
    .workers(workers)
    .bind(listen)?
    .run();
    actix_web::rt::System::new().block_on(serving).context("serving")
}

type Connections = Pool<ConnectionManager<PgConnection>>;

/// Serves the status of a test with a statement for each step, a default pool and actix-web's thread pool.
pub(crate) fn textbook(listen: SocketAddr, url: &str) -> anyhow::Result<()> {
    let pool: Connections = Pool::builder()
        .test_on_check_out(true)
        .build(ConnectionManager::new(url))?;
    let serving = HttpServer::new(move || {
        App::new()
            .app_data(web::Data::new(pool.clone()))
            .route("/ready", web::get().to(HttpResponse::Ok))
            .route("/projects/{project}/tests/{test}/status", web::get().to(status))
    })
    .bind(listen)?
    .run();
    actix_web::rt::System::new().block_on(serving).context("serving")
}

#[derive(Deserialize)]
struct Asked {
    project: Uuid,
    test: String,
}

async fn status(pool: web::Data<Connections>, asked: web::Path<Asked>, request: HttpRequest) -> HttpResponse {
    let header = request
        .headers()
        .get("authorization")
        .and_then(|value| value.to_str().ok());
    let Some(key) = header
        .and_then(|value| value.strip_prefix("Bearer "))
        .map(str::to_owned)
    else {
        return HttpResponse::Unauthorized().finish();
    };
    let answered = web::block(move || -> anyhow::Result<Option<Value>> {
        let mut connection = pool.get()?;
        answer(&mut connection, &key, &asked)
    })
    .await;
    match answered {
        Ok(Ok(Some(value))) => HttpResponse::Ok().json(value),
        Ok(Ok(None)) => HttpResponse::NotFound().finish(),
        Ok(Err(error)) => {
            log::error!("{error:#}");
            HttpResponse::InternalServerError().finish()
        }
        Err(_) => HttpResponse::InternalServerError().finish(),
    }
}

/// Key, plan, project, test, verdict: five statements.
fn answer(connection: &mut PgConnection, key: &str, asked: &Asked) -> anyhow::Result<Option<Value>> {
    let hash = Sha256::digest(key.as_bytes()).to_vec();
    let organization: Option<Uuid> = api_key::table
        .filter(api_key::hash.eq(hash))
        .filter(api_key::kind.eq("read"))
        .filter(api_key::revoked_at.is_null())
        .select(api_key::organization_id)
        .first(connection)
        .optional()?;
    let Some(organization) = organization else {
        return Ok(None);
    };
    let plan: String = organization::table
        .find(organization)
        .select(organization::plan)
        .first(connection)?;
    let name: Option<String> = project::table
        .filter(project::id.eq(asked.project))
        .filter(project::organization_id.eq(organization))
        .select(project::name)
        .first(connection)
        .optional()?;
    let Some(name) = name else { return Ok(None) };
    let short: Vec<u8> = Sha256::digest(asked.test.as_bytes())
        .into_iter()
        .take(16)
        .collect();
    let found: Option<(i32, String, Option<String>)> = test::table
        .filter(test::project_id.eq(asked.project))
        .filter(test::name_hash.eq(short))
        .select((test::ordinal, test::name, test::file_path))
        .first(connection)
        .optional()?;
    let Some((ordinal, test_name, file_path)) = found else {
        return Ok(None);
    };
    let (status, body): (String, String) = verdict::table
        .find((asked.project, ordinal))
        .select((verdict::status, verdict::body))
        .first(connection)?;
    let body: Value = serde_json::from_str(&body)?;
    Ok(Some(json!({
        "project": { "id": asked.project, "name": name },
        "plan": plan,
        "test": { "name": test_name, "filePath": file_path },
        "status": status,
        "verdict": body,
    })))
}
