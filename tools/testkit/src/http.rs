//! An HTTP client that returns responses of every status, errors included.

use std::{net::SocketAddr, time::Duration};

use ureq::Agent;

/// A client of one server.
#[derive(Debug, Clone)]
pub struct Client {
    base: String,
    agent: Agent,
}

impl Client {
    /// A client of the server at `base`, such as `http://127.0.0.1:8080`.
    pub fn new(base: impl Into<String>) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_global(Some(Duration::from_secs(60)))
            // The server closes an idle connection after five seconds.
            .max_idle_age(Duration::from_secs(1))
            .build();
        Self {
            base: base.into(),
            agent: config.into(),
        }
    }

    /// The server's address, without a path.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The server's address on the network.
    ///
    /// # Panics
    ///
    /// If the server's address has a host name.
    pub fn address(&self) -> SocketAddr {
        let authority = self.base.rsplit('/').next().unwrap_or_default();
        authority
            .parse()
            .unwrap_or_else(|_| panic!("{} names no address", self.base))
    }

    /// Gets a path, with the read key if there is one.
    pub fn get(&self, path: &str, key: Option<&str>) -> Response {
        let authorization = key.map(|key| format!("Bearer {key}"));
        let headers: Vec<(&str, &str)> = authorization
            .iter()
            .map(|value| ("Authorization", value.as_str()))
            .collect();
        self.get_with(path, &headers)
    }

    /// Gets a path with these headers.
    pub fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Response {
        self.try_get(path, headers)
            .unwrap_or_else(|error| panic!("GET {}{path}: {error}", self.base))
    }

    /// Posts a body with these headers.
    pub fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        let mut request = self.agent.post(format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.send(body).and_then(Response::read);
        answer.unwrap_or_else(|error| panic!("POST {}{path}: {error}", self.base))
    }

    /// Posts JSON with additional headers.
    pub fn post_json(&self, path: &str, headers: &[(&str, &str)], body: &serde_json::Value) -> Response {
        let headers = [&[("Content-Type", "application/json")], headers].concat();
        self.post(path, &headers, body.to_string().as_bytes())
    }

    /// Posts a form, as a page of the same site or of another one.
    pub fn post_form(&self, path: &str, form: &str, is_own: bool) -> Response {
        let site = if is_own { "same-origin" } else { "cross-site" };
        let headers = [
            ("Content-Type", "application/x-www-form-urlencoded"),
            ("Sec-Fetch-Site", site),
        ];
        self.post(path, &headers, form.as_bytes())
    }

    /// Signs in to the pages with a read key and returns the cookie.
    ///
    /// # Panics
    ///
    /// If the server refuses the key.
    pub fn sign_in(&self, read_key: &str) -> String {
        let answer = self.post_form("/login", &format!("key={read_key}"), true);
        assert_eq!(answer.status, 303, "{}", answer.text());
        let cookie = answer.header("set-cookie").expect("a cookie is set");
        cookie.split(';').next().unwrap_or_default().to_owned()
    }

    /// Gets a path, or returns why there was no answer.
    pub fn try_get(&self, path: &str, headers: &[(&str, &str)]) -> Result<Response, ureq::Error> {
        let mut request = self.agent.get(format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Response::read(request.call()?)
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The headers, their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    fn read(mut answer: ureq::http::Response<ureq::Body>) -> Result<Self, ureq::Error> {
        let headers = answer
            .headers()
            .iter()
            .map(|(name, value)| {
                (
                    name.as_str().to_owned(),
                    String::from_utf8_lossy(value.as_bytes()).into_owned(),
                )
            })
            .collect();
        let status = answer.status().as_u16();
        let body = answer.body_mut().with_config().limit(1 << 30).read_to_vec()?;
        Ok(Self {
            status,
            headers,
            body,
        })
    }

    /// The value of a header. `name` is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(header, _)| header == name)
            .map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; null if it is not JSON.
    pub fn json_or_null(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The code of an error.
    pub fn code(&self) -> String {
        let body = self.json_or_null();
        body["code"].as_str().unwrap_or_default().to_owned()
    }

    /// The sentence of an error.
    pub fn sentence(&self) -> String {
        let body = self.json_or_null();
        body["error"].as_str().unwrap_or_default().to_owned()
    }

    /// All parts except the date, to compare two answers byte for byte.
    pub fn apart_from_date(&self) -> Self {
        let mut same = self.clone();
        same.headers.retain(|(name, _)| name != "date");
        // The map's order of fields has no meaning.
        same.headers.sort();
        same
    }

    /// The answer as a short text.
    pub fn summary(&self) -> String {
        let body: String = self.text().chars().take(300).collect();
        format!("{} {:?} {body}", self.status, self.headers)
    }

    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("no JSON ({error}), status {}: {}", self.status, self.text()))
    }
}
