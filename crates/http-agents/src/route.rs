//! `POST /mcp`: connects actix to the service of the MCP library.

use std::{sync::Arc, time::Duration};

use actix_web::{
    HttpRequest, HttpResponse, HttpResponseBuilder,
    http::{StatusCode, header},
    rt::time::timeout,
    web::{self, Bytes, Payload, ServiceConfig},
};
use assay_access::limit::InProcessLimiter;
use assay_answers::links::PublicPages;
use assay_domain::{key::KeyKind, store::Store, timestamp::Clock};
use assay_flakiness::Diagnose;
use assay_http::{
    Answering, HttpMetrics, MetricsRegistry, Outcome, ReadReception, RequestId, SUCCESS, authorization,
    observe, with_causes,
};
use http_body_util::{BodyExt as _, Full};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
};
use serde_json::json;

use crate::server::{Client, ToolServer};

/// Longest request body, in bytes. Failures of a local run include their messages.
const BODY: usize = 1 << 20;
/// Time limit for receiving a body.
const BODY_WITHIN: Duration = Duration::from_secs(10);

/// The path of the endpoint.
const PATH: &str = "/mcp";
/// The code for the access log if the protocol's library refuses a message, for example for its origin.
const REFUSED_BY_PROTOCOL: &str = "invalid_message";

/// The address of the server for its users.
#[derive(Debug, Clone)]
pub struct PublicAddress {
    /// The host, a permitted value of `Host` besides loopback, with or without a port.
    pub host: String,
    /// The pages there.
    pub pages: PublicPages,
}

/// The endpoint for agents. Clones share its state.
#[derive(Clone)]
pub struct Endpoint {
    server: ToolServer,
    metrics: HttpMetrics,
    protocol: StreamableHttpService<ToolServer, NeverSessionManager>,
}

impl Endpoint {
    /// Creates an endpoint that receives calls at `reception`, and whose tools read from `store`. Each key may make
    /// `calls_a_minute` calls; 0 means no limit. Requests to loopback and to the `public` host are permitted. Pages of other
    /// origins are refused.
    pub fn new(
        reception: ReadReception,
        store: Arc<dyn Store>,
        engine: Arc<dyn Diagnose>,
        clock: Clock,
        metrics: &MetricsRegistry,
        calls_a_minute: u32,
        public: Option<PublicAddress>,
    ) -> Self {
        let server = ToolServer {
            reception,
            store,
            engine,
            limiter: Arc::new(InProcessLimiter::new(calls_a_minute)),
            clock,
            pages: public.as_ref().map(|public| public.pages.clone()),
        };
        let mut config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_sse_keep_alive(None)
            .with_max_request_body_bytes(BODY)
            .with_allowed_origins(Vec::<String>::new())
            .enforce_origin_validation();
        config.allowed_hosts.extend(public.map(|public| public.host));
        let tools = server.clone();
        let protocol = StreamableHttpService::new(move || Ok(tools.clone()), Arc::default(), config);
        Self {
            server,
            metrics: HttpMetrics::of_listener("agents", metrics),
            protocol,
        }
    }

    /// Mounts `/mcp`.
    pub fn configure(&self, config: &mut ServiceConfig) {
        let resource = web::resource(PATH)
            .app_data(web::Data::new(self.clone()))
            .route(web::post().to(post))
            .default_service(web::to(no_such_method));
        config.service(resource);
    }
}

async fn no_such_method() -> HttpResponse {
    HttpResponse::MethodNotAllowed()
        .insert_header((header::ALLOW, "POST"))
        .json(json!({"error": "Tools are called with POST.", "code": "method_not_allowed"}))
}

async fn post(endpoint: web::Data<Endpoint>, request: HttpRequest, payload: Payload) -> HttpResponse {
    let answering = request.conn_data::<Answering>().cloned().unwrap_or_default();
    answering.reads_body();
    observe(&endpoint.metrics, &request, async |id| {
        let (mut response, code) = match authenticate_and_read(&endpoint, &request, payload, id).await {
            Ok((client, body)) => {
                answering.body_is_read();
                let error_code = Arc::clone(&client.error_code);
                let response = forward(&endpoint, client, &request, body).await;
                let code = match response.status().is_success() {
                    true => error_code.get().copied().unwrap_or(SUCCESS),
                    false => REFUSED_BY_PROTOCOL,
                };
                (response, code)
            }
            Err(refusal) => refusal,
        };
        answering.close_unless_read(&mut response);
        Outcome {
            response,
            route: PATH,
            code,
        }
    })
    .await
}

/// Checks the client's key, then reads the body.
async fn authenticate_and_read(
    endpoint: &Endpoint,
    request: &HttpRequest,
    payload: Payload,
    id: &RequestId,
) -> Result<(Client, Bytes), (HttpResponse, &'static str)> {
    let client = client(endpoint, request, id).await?;
    let body_error = |status: StatusCode, code: &'static str, error: &str| {
        let body = json!({"error": error, "code": code});
        (HttpResponseBuilder::new(status).json(body), code)
    };
    match timeout(BODY_WITHIN, payload.to_bytes_limited(BODY)).await {
        Ok(Ok(Ok(body))) => Ok((client, body)),
        Ok(Ok(Err(_))) => Err(body_error(
            StatusCode::BAD_REQUEST,
            "invalid_body",
            "The body is incomplete. Send the message again.",
        )),
        Ok(Err(_)) => Err(body_error(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body_too_large",
            "The message is longer than 1 MiB. Send fewer failures, or shorter messages.",
        )),
        Err(_) => Err(body_error(
            StatusCode::REQUEST_TIMEOUT,
            "body_too_slow",
            "The body took longer than 10 seconds. Send the message again.",
        )),
    }
}

/// The protocol's response to a request of this client.
async fn forward(endpoint: &Endpoint, client: Client, request: &HttpRequest, body: Bytes) -> HttpResponse {
    let mut forwarded = http::Request::post(PATH);
    for (name, value) in request.headers() {
        forwarded = forwarded.header(name.as_str(), value.as_bytes());
    }
    let Ok(forwarded) = forwarded.extension(client).body(Full::new(body)) else {
        return HttpResponse::BadRequest().finish();
    };
    let (head, body) = endpoint.protocol.handle(forwarded).await.into_parts();
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(never) => match never {},
    };
    let status = StatusCode::from_u16(head.status.as_u16()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if status == StatusCode::FORBIDDEN {
        return forbidden(request);
    }
    let mut response = HttpResponseBuilder::new(status);
    for (name, value) in &head.headers {
        response.append_header((name.as_str(), value.as_bytes()));
    }
    response
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .body(body)
}

/// The response to a request whose `Origin` or `Host` the protocol's library refused.
fn forbidden(request: &HttpRequest) -> HttpResponse {
    let (error, code) = if request.headers().contains_key(header::ORIGIN) {
        (
            "Web pages may not call tools. Send no Origin header.",
            "origin_not_allowed",
        )
    } else {
        (
            "This server has no such host. Its operator sets ASSAY_PUBLIC_URL to the address that people and agents use.",
            "host_not_allowed",
        )
    };
    HttpResponse::Forbidden()
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .json(json!({"error": error, "code": code}))
}

/// The client, or the response that refuses the request, with its code.
async fn client(
    endpoint: &Endpoint,
    request: &HttpRequest,
    id: &RequestId,
) -> Result<Client, (HttpResponse, &'static str)> {
    let authorization = authorization(request.headers());
    let server = &endpoint.server;
    let now = (server.clock)();
    let presented = server.reception.presented(authorization.as_deref(), now);
    // The call of a tool counts, not the message.
    let identified = server.reception.identify(presented, None, now);
    match identified.await {
        Ok((key, _)) => Ok(Client {
            key,
            request_id: id.clone(),
            error_code: Arc::default(),
        }),
        Err(problem) => {
            if problem.is_failure() {
                log::error!(request_id:% = id; "a key could not be looked up: {}", with_causes(&problem));
            }
            Err((
                problem.response(KeyKind::Read),
                problem.status_and_code(KeyKind::Read).1,
            ))
        }
    }
}
