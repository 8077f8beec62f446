//! The pages for people: rendered on the server over the port `Store` and the engine. Users sign in with a read key.
//!
//! [`Front::configure`] mounts the pages on an actix application. Every page goes through `Front::page`: it opens the
//! session, and the reception of the listeners applies the rate limit, checks the key and runs the page on a blocking
//! thread. A page is a plain function in `pages`.

mod assets;
mod error;
mod layout;
mod pages;
mod provider;
mod sign_in;
mod terminal;
mod view;

use std::sync::Arc;

use actix_web::{
    HttpRequest, HttpResponse, HttpResponseBuilder,
    http::{
        Method, StatusCode,
        header::{self, HeaderValue},
    },
    web,
};
use assay_access::{check::ReadGrant, limit::InProcessLimiter, session::Sessions};
use assay_domain::{identity::SignIn, store::Store, timestamp::Clock};
use assay_flakiness::Diagnose;
use assay_http::{
    AdmissionControl, Answering, CountedBy, HttpMetrics, IdentityMetrics, MetricsRegistry, Outcome, Pairs,
    Preferences, ReadReception, RequestId, SUCCESS, Tag, TimeLimits, Unanswerable, observe, refusal,
};
use maud::html;
use serde_json::json;

use self::{
    error::FrontError,
    layout::Answer,
    pages::{PAGES, PageRoute},
    view::View,
};
pub(crate) use assay_answers::links;

/// Pages per minute and session.
const PAGES_A_MINUTE: u32 = 600;
/// Unknown keys at sign-in per minute and address.
const GUESSES_A_MINUTE: u32 = 30;
/// Threads that ask providers. One provider holds at most half of them.
const ASKING_THREADS: usize = 2;
/// Returns from providers per minute and address. One proxy has the address of everyone behind it.
const RETURNS_A_MINUTE: u32 = 300;
/// Longest address for the redirect after signing in.
const NEXT_BYTES: usize = 4_096;

const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// The HTML of a page, or a redirect.
enum RenderedPage {
    Page(String),
    Redirect(String),
}

/// The dependencies of the pages. Clones share them.
#[derive(Clone)]
pub struct Front {
    store: Arc<dyn Store>,
    reception: ReadReception,
    engine: Arc<dyn Diagnose>,
    clock: Clock,
    limiter: Arc<InProcessLimiter>,
    guesses: Arc<InProcessLimiter>,
    metrics: HttpMetrics,
    identity: IdentityMetrics,
    sessions: Sessions,
    addresses: Arc<ClientAddresses>,
    pages: Option<links::PublicPages>,
    signs_in_by_link: bool,
    providers: Option<Arc<dyn SignIn>>,
    /// Admission control for requests to providers.
    asks: Arc<AdmissionControl<usize>>,
    returns: Arc<InProcessLimiter>,
}

/// The addresses of other parts that pages show.
#[derive(Debug, Clone)]
pub struct ClientAddresses {
    /// The base of the read API.
    pub api: String,
    /// Where CI sends reports, without the path of a route; none if the server knows no such address.
    pub reports: Option<String>,
}

impl Front {
    /// Creates pages over `store` that receive requests at `reception`.
    #[expect(clippy::too_many_arguments, reason = "the program wires the parts here, once")]
    pub fn new(
        reception: ReadReception,
        store: Arc<dyn Store>,
        engine: Arc<dyn Diagnose>,
        clock: Clock,
        sessions: Sessions,
        metrics: &MetricsRegistry,
        identity: IdentityMetrics,
        addresses: ClientAddresses,
    ) -> Self {
        Self {
            reception,
            store,
            engine,
            clock,
            limiter: Arc::new(InProcessLimiter::new(PAGES_A_MINUTE)),
            guesses: Arc::new(InProcessLimiter::new(GUESSES_A_MINUTE)),
            metrics: HttpMetrics::of_listener("front", metrics),
            identity,
            sessions,
            addresses: Arc::new(addresses),
            pages: None,
            signs_in_by_link: false,
            providers: None,
            asks: Arc::new(AdmissionControl::new(ASKING_THREADS, TimeLimits::READ)),
            returns: Arc::new(InProcessLimiter::new(RETURNS_A_MINUTE)),
        }
    }

    /// Lets a link with a key sign in without a click, for a demonstration on the user's own machine.
    #[must_use]
    pub fn signing_in_by_link(self) -> Self {
        Self {
            signs_in_by_link: true,
            ..self
        }
    }

    /// Lets people sign in at these providers, too.
    #[must_use]
    pub fn with_providers(self, providers: Arc<dyn SignIn>) -> Self {
        Self {
            providers: Some(providers),
            ..self
        }
    }

    /// Lets prompts name the pages at this address.
    #[must_use]
    pub fn with_pages(self, pages: Option<links::PublicPages>) -> Self {
        Self { pages, ..self }
    }

    /// The sign-in page.
    fn login_page(&self, wrong: Option<&str>, next: Option<&str>) -> String {
        let providers = self.providers.as_ref().map(|providers| providers.providers());
        layout::login(wrong, next, self.signs_in_by_link, &providers.unwrap_or_default())
    }

    /// Mounts the pages.
    pub fn configure(&self, config: &mut web::ServiceConfig) {
        for page_route in &PAGES {
            let path = page_route.path;
            self.mount(config, path, path, async |front, request| {
                front.page(page_route, request).await
            });
        }
        for asset in [assets::style(), assets::script()] {
            self.mount(config, &asset.path, "/assets", async |_, request| {
                static_file(asset, request)
            });
        }
        let path = "/login/provider";
        self.mount(config, path, path, Self::begin_at_provider);
        let path = "/login/callback";
        self.mount(config, path, path, async |front, request| {
            front.counted(front.return_from_provider(request).await)
        });
        let path = "/login/device";
        self.mount(config, path, path, Self::begin_terminal);
        let path = "/login/device/token";
        self.mount(config, path, path, async |front, request| {
            front.counted(front.redeem_terminal(request).await)
        });
        self.mount(config, "/logout", "/logout", Self::logout);
        let (login, other) = (self.clone(), self.clone());
        config.service(
            web::resource("/login").to(move |request: HttpRequest, body: web::Payload| {
                let front = login.clone();
                async move {
                    let answering = request.conn_data::<Answering>().cloned().unwrap_or_default();
                    if *request.method() == Method::POST {
                        answering.reads_body();
                    }
                    observe(&front.metrics, &request, async |id| {
                        let answer = front.login(&request, body, || answering.body_is_read()).await;
                        let mut outcome = front.outcome("/login", answer, &request, id);
                        answering.close_unless_read(&mut outcome.response);
                        outcome
                    })
                    .await
                }
            }),
        );
        config.default_service(web::to(move |request: HttpRequest| {
            let front = other.clone();
            async move {
                observe(&front.metrics, &request, async |id| {
                    front.outcome("(no page)", Err(FrontError::NoSuchPage), &request, id)
                })
                .await
            }
        }));
    }

    /// Mounts a path, whose requests count for `route`.
    fn mount(
        &self,
        config: &mut web::ServiceConfig,
        path: &str,
        route: &'static str,
        answer: impl AsyncFn(&Self, &HttpRequest) -> Result<HttpResponse, FrontError> + Copy + 'static,
    ) {
        let front = self.clone();
        config.service(web::resource(path).to(move |request: HttpRequest| {
            let front = front.clone();
            async move {
                observe(&front.metrics, &request, async |id| {
                    let answered = answer(&front, &request).await;
                    front.outcome(route, answered, &request, id)
                })
                .await
            }
        }));
    }

    /// Counts a sign-in at a provider, unless its person is still at it.
    fn counted(&self, answer: Result<HttpResponse, FrontError>) -> Result<HttpResponse, FrontError> {
        let outcome = match &answer {
            Ok(_) => "signed_in",
            Err(error) => error.status_and_code().1,
        };
        if !["authorization_pending", "slow_down"].contains(&outcome) {
            IdentityMetrics::count(&self.identity.identity_sign_ins, outcome);
        }
        answer
    }

    /// Renders a page for the session of the request.
    async fn page(
        &self,
        page_route: &'static PageRoute,
        request: &HttpRequest,
    ) -> Result<HttpResponse, FrontError> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Err(FrontError::NoSuchMethod);
        }
        let now = (self.clock)();
        let session = cookies(request)
            .and_then(|header| self.sessions.of_header(header, now))
            .ok_or(FrontError::SignedOut)?;
        if let Some(provider) = session.provider_to_ask(now) {
            let next = request.uri().path_and_query().map(ToString::to_string);
            let next = next.as_deref().filter(|next| is_own_address(next));
            let (provider, silent) = (provider.to_string(), Some("1"));
            let pairs = [("n", Some(&*provider)), ("silent", silent), ("next", next)];
            return Ok(see_other(&links::with_query("/login/provider", &pairs)));
        }
        let presented = Ok(session.presented());
        let counted_by = CountedBy::key(&*self.limiter, &presented, "page");
        let path: Vec<(String, String)> = request
            .match_info()
            .iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let query = Pairs::of_form(request.query_string());
        let front = self.clone();
        let rendering = move |grant: ReadGrant| -> Result<RenderedPage, FrontError> {
            let view = View {
                store: &*front.store,
                directory: front.reception.directory(),
                engine: &*front.engine,
                pages: front.pages.as_ref(),
                caller: grant.caller(),
                now,
                path: &path,
                query: &query,
                reports_url: front.addresses.reports.as_deref(),
            };
            Ok(match (page_route.render)(&view)? {
                Answer::Page(page) => RenderedPage::Page(layout::page(&page, now, &front.addresses.api)),
                Answer::Redirect(address) => RenderedPage::Redirect(address),
            })
        };
        let received = self.reception.receive(presented, counted_by, now, rendering);
        let (rendered, _) = received.await?;
        let mut response = match rendered {
            RenderedPage::Page(html) => body(html, StatusCode::OK, request)?,
            RenderedPage::Redirect(address) => see_other(&address),
        };
        if session.needs_renewal(now) {
            set_cookie(&mut response, &self.sessions.renewed(session, now)?);
        }
        Ok(response)
    }

    /// The response with the headers of all responses, or an error page.
    fn outcome(
        &self,
        route: &'static str,
        answer: Result<HttpResponse, FrontError>,
        request: &HttpRequest,
        id: &RequestId,
    ) -> Outcome {
        let (mut response, code) = match answer {
            Ok(response) => (response, SUCCESS),
            Err(error) => {
                error.log(route, id);
                (self.error_response(&error, request), error.status_and_code().1)
            }
        };
        let headers = response.headers_mut();
        for (name, text) in [
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::VARY, "Accept-Encoding, Cookie"),
        ] {
            headers.insert(name, HeaderValue::from_static(text));
        }
        if self.sessions.is_secure() {
            // Two years, as browsers' lists of such sites ask for.
            headers.insert(
                header::STRICT_TRANSPORT_SECURITY,
                HeaderValue::from_static("max-age=63072000"),
            );
        }
        if !headers.contains_key(header::CACHE_CONTROL) {
            headers.insert(
                header::CACHE_CONTROL,
                HeaderValue::from_static("private, no-cache"),
            );
        }
        Outcome {
            response,
            route,
            code,
        }
    }

    fn error_response(&self, error: &FrontError, request: &HttpRequest) -> HttpResponse {
        let (status, code) = error.status_and_code();
        if request.path().starts_with("/login/device") || self.of_terminal(request).is_some() {
            return refusal(status, error.retry_after_s(), &[])
                .json(json!({ "error": error.sentence(), "code": code }));
        }
        let next = request.uri().path_and_query().map(ToString::to_string);
        let next = next.filter(|next| next != "/" && is_own_address(next));
        if let FrontError::SignedOut = error {
            return see_other(&links::with_query("/login", &[("next", next.as_deref())]));
        }
        let page = if error.is_refusal() {
            self.login_page(Some(&error.sentence()), next.as_deref())
        } else if let FrontError::Unanswerable(Unanswerable::AmbiguousTest(files)) = error {
            layout::error(&error.sentence(), &pages::parts::candidates(request, files))
        } else {
            layout::error(&error.sentence(), &html! {})
        };
        let mut response = body(page, status, request).unwrap_or_else(|_| HttpResponse::new(status));
        // The key of the session no longer works, so the cookie is removed.
        if error.is_refusal() {
            set_cookie(&mut response, &self.sessions.expired_cookie());
        }
        if let Some(after_s) = error.retry_after_s() {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from(after_s));
        }
        if let FrontError::NoSuchMethod = error {
            let allowed = match request.path() {
                "/login" => "GET, HEAD, POST",
                "/logout" | "/login/device" | "/login/device/token" => "POST",
                _ => "GET, HEAD",
            };
            response
                .headers_mut()
                .insert(header::ALLOW, HeaderValue::from_static(allowed));
        }
        response
    }
}

/// A page in the content coding that the browser prefers, or 304 if the browser has it.
fn body(html: String, status: StatusCode, request: &HttpRequest) -> Result<HttpResponse, FrontError> {
    let preferences = Preferences::of(request.headers());
    let coding = preferences.coding();
    let tag = Tag::of(&[html.as_bytes()], coding);
    if status == StatusCode::OK && preferences.have(&tag) {
        return Ok(HttpResponse::NotModified().insert_header(tag.header()).finish());
    }
    let mut response = HttpResponseBuilder::new(status);
    response.insert_header(header::ContentType::html());
    if status == StatusCode::OK {
        response.insert_header(tag.header());
    }
    if let Some(name) = coding.header() {
        response.insert_header((header::CONTENT_ENCODING, name));
    }
    Ok(response.body(coding.encode(html.into_bytes())?))
}

fn static_file(asset: &'static assets::Asset, request: &HttpRequest) -> Result<HttpResponse, FrontError> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Err(FrontError::NoSuchMethod);
    }
    let coding = Preferences::of(request.headers()).coding();
    let mut response = HttpResponse::Ok();
    response
        .insert_header((header::CONTENT_TYPE, asset.media_type))
        .insert_header((header::CACHE_CONTROL, "public, max-age=31536000, immutable"));
    if let Some(name) = coding.header() {
        response.insert_header((header::CONTENT_ENCODING, name));
    }
    Ok(response.body(coding.encode(asset.content.as_bytes().to_vec())?))
}

/// Redirects the browser within this site.
fn see_other(address: &str) -> HttpResponse {
    HttpResponse::SeeOther()
        .insert_header((header::LOCATION, address))
        .finish()
}

fn set_cookie(response: &mut HttpResponse, cookie: &str) {
    // Base64, digits and constant words are always a valid header value.
    if let Ok(value) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(header::SET_COOKIE, value);
    }
}

fn cookies(request: &HttpRequest) -> Option<&str> {
    request.headers().get(header::COOKIE)?.to_str().ok()
}

/// Whether an address lies on this site, which prevents open redirects after signing in.
fn is_own_address(address: &str) -> bool {
    address.starts_with('/')
        && !address.starts_with("//")
        && address.len() <= NEXT_BYTES
        && address
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signing_in_redirects_only_within_this_site() {
        assert!(is_own_address("/p/x?name=a%20b"));
        for address in [
            "//evil.example",
            "https://evil.example",
            "",
            "p",
            "/\\evil.example",
            "/a\r\nb",
            "/a b",
        ] {
            assert!(!is_own_address(address), "{address:?}");
        }
    }
}
