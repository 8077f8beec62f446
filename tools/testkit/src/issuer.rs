//! An issuer of OpenID Connect on this machine, as the specification describes one: discovery, keys, and sign-in by the
//! authorization code flow with PKCE. It also misbehaves on request.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "the issuer misbehaves in one way at a time"
)]

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    io::{BufReader, Write as _},
    net::TcpListener,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use percent_encoding::percent_decode_str;
use ring::{
    digest, hmac,
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
        RSA_PKCS1_SHA384, RsaKeyPair, RsaPublicKeyComponents,
    },
};
use serde_json::{Value, json};

use crate::{
    authority::{Connection, accept},
    receiver::{Request, read},
};

/// A key of RSA, which no issuer but that of tests uses.
const RSA: &[u8] = include_bytes!("../../../testdata/identity/rsa.pk8");

/// What signs a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signer {
    /// The issuer's present key of ECDSA, `ec-1` and so on.
    Ecdsa,
    /// Its key of RSA with SHA-256, `rsa`.
    Rsa,
    /// The same with SHA-384.
    Rsa384,
    /// Its key of Ed25519, `ed`.
    Ed25519,
    /// A key of ECDSA that is not the issuer's.
    Stranger,
    /// HMAC with the modulus of the RSA key as the secret.
    Hmac,
    /// Nothing: the signature is empty.
    Nothing,
}

/// How the issuer answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// As described.
    Usual,
    /// With status 500.
    Failing,
    /// With a redirection to another address that would answer as described.
    Redirecting,
    /// With the description of another issuer.
    OfAnother,
    /// With a document of 8 MiB.
    Huge,
    /// A byte a second.
    Slow,
    /// With 1,000 keys.
    ManyKeys,
    /// With keys for other purposes and algorithms only.
    OtherKeys,
    /// With keys at a private address that `identity.toml` does not allow.
    PrivateKeys,
    /// Without its name in the answers of sign-in, like most providers.
    Nameless,
}

/// An issuer on a port of its own, until the process ends.
pub struct Issuer {
    /// Its address.
    pub url: String,
    state: Arc<Mutex<State>>,
}

struct State {
    url: String,
    ecdsa: EcdsaKeyPair,
    number: usize,
    ed25519: Ed25519KeyPair,
    stranger: EcdsaKeyPair,
    rsa: RsaKeyPair,
    behaviour: Behaviour,
    /// The claims of the person who is signed in; none before a sign-in.
    person: Option<Value>,
    /// What the token endpoint answers to terminals before it signs the person in.
    terminal: VecDeque<&'static str>,
    /// The requests of sign-in by their code.
    codes: HashMap<String, BTreeMap<String, String>>,
    requests: Vec<String>,
}

fn ecdsa() -> EcdsaKeyPair {
    let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
    let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref(), &random).unwrap()
}

/// Seconds since 1970.
pub fn unix_s() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_secs()).unwrap()
}

impl Issuer {
    /// Starts it. No person is signed in yet.
    #[expect(
        clippy::new_without_default,
        reason = "a default value should not open a port"
    )]
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let ed25519 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let state = Arc::new(Mutex::new(State {
            url: url.clone(),
            ecdsa: ecdsa(),
            number: 1,
            ed25519: Ed25519KeyPair::from_pkcs8(ed25519.as_ref()).unwrap(),
            stranger: ecdsa(),
            rsa: RsaKeyPair::from_pkcs8(RSA).unwrap(),
            behaviour: Behaviour::Usual,
            person: None,
            terminal: VecDeque::new(),
            codes: HashMap::new(),
            requests: Vec::new(),
        }));
        let served = Arc::clone(&state);
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let state = Arc::clone(&served);
                thread::spawn(move || serve(accept(connection, None), &state));
            }
        });
        Self { url, state }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Changes how it answers.
    pub fn behave(&self, behaviour: Behaviour) {
        self.state().behaviour = behaviour;
    }

    /// Replaces its key of ECDSA by a new one.
    pub fn rotate(&self) {
        let mut state = self.state();
        state.ecdsa = ecdsa();
        state.number += 1;
    }

    /// Signs a person with these claims in, or whoever is signed in out.
    pub fn sign_in(&self, claims: Option<Value>) {
        self.state().person = claims;
    }

    /// Answers terminals with these codes first.
    pub fn answer_terminals(&self, codes: &[&'static str]) {
        self.state().terminal = codes.iter().copied().collect();
    }

    /// The paths that were asked for, without their queries.
    pub fn requests(&self) -> Vec<String> {
        self.state().requests.clone()
    }

    /// The claims of every token for this audience, with these in addition or instead. A null removes a claim.
    pub fn claims(&self, audience: &str, more: &Value) -> Value {
        let mut claims = json!({
            "iss": self.url, "aud": audience, "sub": "somebody", "iat": unix_s(), "nbf": unix_s(), "exp": unix_s() + 300,
        });
        for (name, value) in more.as_object().unwrap() {
            match value {
                Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
                value => claims[name] = value.clone(),
            }
        }
        claims
    }

    /// A token with these claims.
    pub fn mint(&self, claims: &Value) -> String {
        self.signed(&json!({}), claims, Signer::Ecdsa)
    }

    /// A token by another signer, with other fields in its header.
    pub fn signed(&self, header: &Value, claims: &Value, by: Signer) -> String {
        self.state().signed(header, claims, by)
    }
}

impl State {
    fn signed(&self, more: &Value, claims: &Value, by: Signer) -> String {
        let (algorithm, id) = match by {
            Signer::Ecdsa | Signer::Stranger => ("ES256", format!("ec-{}", self.number)),
            Signer::Rsa => ("RS256", "rsa".to_owned()),
            Signer::Rsa384 => ("RS384", "rsa".to_owned()),
            Signer::Ed25519 => ("EdDSA", "ed".to_owned()),
            Signer::Hmac => ("HS256", "rsa".to_owned()),
            Signer::Nothing => ("none", "rsa".to_owned()),
        };
        let mut header = json!({ "typ": "JWT", "alg": algorithm, "kid": id });
        for (name, value) in more.as_object().unwrap() {
            match value {
                Value::Null => drop(header.as_object_mut().unwrap().remove(name)),
                value => header[name] = value.clone(),
            }
        }
        let message = format!(
            "{}.{}",
            BASE64.encode(header.to_string()),
            BASE64.encode(claims.to_string())
        );
        let random = SystemRandom::new();
        let bytes = message.as_bytes();
        let by_rsa = |padding| {
            let mut signature = vec![0; self.rsa.public().modulus_len()];
            self.rsa.sign(padding, &random, bytes, &mut signature).unwrap();
            signature
        };
        let signature = match by {
            Signer::Ecdsa => self.ecdsa.sign(&random, bytes).unwrap().as_ref().to_vec(),
            Signer::Stranger => self.stranger.sign(&random, bytes).unwrap().as_ref().to_vec(),
            Signer::Ed25519 => self.ed25519.sign(bytes).as_ref().to_vec(),
            Signer::Rsa => by_rsa(&RSA_PKCS1_SHA256),
            Signer::Rsa384 => by_rsa(&RSA_PKCS1_SHA384),
            Signer::Hmac => {
                let public: RsaPublicKeyComponents<Vec<u8>> = self.rsa.public().into();
                hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &public.n), bytes)
                    .as_ref()
                    .to_vec()
            }
            Signer::Nothing => Vec::new(),
        };
        format!("{message}.{}", BASE64.encode(signature))
    }

    fn keys(&self) -> Value {
        let point = self.ecdsa.public_key().as_ref();
        let public: RsaPublicKeyComponents<Vec<u8>> = self.rsa.public().into();
        let (n, e) = (BASE64.encode(public.n), BASE64.encode(public.e));
        let ecdsa = json!({ "kty": "EC", "crv": "P-256", "kid": format!("ec-{}", self.number), "use": "sig",
            "x": BASE64.encode(&point[1..33]), "y": BASE64.encode(&point[33..]) });
        let other = json!([
            { "kty": "RSA", "kid": "rsa-enc", "use": "enc", "n": n, "e": e },
            { "kty": "RSA", "kid": "rsa-oaep", "alg": "RSA-OAEP", "n": n, "e": e },
            { "kty": "oct", "kid": "secret", "k": "c2VjcmV0" },
            { "kty": "new", "kid": "new" },
        ]);
        match self.behaviour {
            Behaviour::ManyKeys => json!({ "keys": vec![ecdsa; 1_000] }),
            Behaviour::OtherKeys => json!({ "keys": other }),
            _ => {
                let mut keys = vec![
                    ecdsa,
                    json!({ "kty": "RSA", "kid": "rsa", "alg": "RS256", "use": "sig", "n": n, "e": e }),
                    json!({ "kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": BASE64.encode(self.ed25519.public_key()) }),
                ];
                keys.extend(other.as_array().unwrap().clone());
                json!({ "keys": keys })
            }
        }
    }

    fn description(&self) -> Value {
        let url = &self.url;
        let keys = match self.behaviour {
            Behaviour::PrivateKeys => "https://10.0.0.1/keys".to_owned(),
            _ => format!("{url}/keys"),
        };
        let issuer = match self.behaviour {
            Behaviour::OfAnother => "https://login.example.org",
            _ => url,
        };
        json!({
            "issuer": issuer, "jwks_uri": keys, "authorization_endpoint": format!("{url}/authorize"),
            "token_endpoint": format!("{url}/token"), "end_session_endpoint": format!("{url}/logout"),
            "device_authorization_endpoint": format!("{url}/device"),
            "authorization_response_iss_parameter_supported": self.behaviour != Behaviour::Nameless,
        })
    }

    /// Sends the browser back with a code, or asks for a click first, as a provider asks for a password.
    fn authorize(&mut self, query: BTreeMap<String, String>) -> (u16, String) {
        let (redirect, state) = (query["redirect_uri"].clone(), query["state"].clone());
        let is_silent = query.get("prompt").is_some_and(|prompt| prompt == "none");
        if self.person.is_none() {
            let error = if is_silent {
                "login_required"
            } else {
                "access_denied"
            };
            return (303, format!("{redirect}?error={error}&state={state}"));
        }
        let code = format!("code-{}", self.codes.len());
        self.codes.insert(code.clone(), query);
        let mut back = format!("{redirect}?code={code}&state={state}");
        if self.behaviour != Behaviour::Nameless {
            back += &format!("&iss={}", self.url);
        }
        match is_silent {
            true => (303, back),
            false => (
                200,
                format!("<!doctype html><title>Provider</title><a id=go href=\"{back}\">Go</a>"),
            ),
        }
    }

    fn token(&mut self, form: &BTreeMap<String, String>) -> (u16, String) {
        if form["grant_type"] == "urn:ietf:params:oauth:grant-type:device_code" {
            return self.token_of_terminal(form);
        }
        let Some(asked) = self.codes.remove(&form["code"]) else {
            return (400, json!({ "error": "invalid_grant" }).to_string());
        };
        let challenge = BASE64.encode(digest::digest(&digest::SHA256, form["code_verifier"].as_bytes()));
        let is_right = asked["code_challenge"] == challenge && asked["redirect_uri"] == form["redirect_uri"];
        let Some(person) = self.person.clone().filter(|_| is_right) else {
            return (400, json!({ "error": "invalid_grant" }).to_string());
        };
        self.tokens_of(
            &person,
            json!({ "aud": asked["client_id"], "nonce": asked["nonce"] }),
        )
    }

    fn token_of_terminal(&mut self, form: &BTreeMap<String, String>) -> (u16, String) {
        let error = match (form["device_code"].as_str(), self.terminal.pop_front()) {
            ("device", None) => match self.person.clone() {
                Some(person) => return self.tokens_of(&person, json!({ "aud": form["client_id"] })),
                None => "authorization_pending",
            },
            ("device", Some(error)) => error,
            _ => "invalid_grant",
        };
        (400, json!({ "error": error }).to_string())
    }

    fn tokens_of(&self, person: &Value, mut claims: Value) -> (u16, String) {
        for (name, value) in person.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims["iss"] = json!(self.url);
        claims["iat"] = json!(unix_s());
        claims["exp"] = json!(unix_s() + 300);
        let token = self.signed(&json!({}), &claims, Signer::Ecdsa);
        (
            200,
            json!({ "access_token": "a", "token_type": "Bearer", "id_token": token }).to_string(),
        )
    }
}

fn serve(connection: Box<dyn Connection>, state: &Mutex<State>) {
    let mut reader = BufReader::new(connection);
    while let Some(request) = read(&mut reader) {
        let (status, body, is_slow) = answer(&request, &mut state.lock().unwrap());
        let location = if (300..400).contains(&status) {
            format!("Location: {body}\r\n")
        } else {
            String::new()
        };
        let kind = if body.starts_with('<') {
            "text/html"
        } else {
            "application/json"
        };
        let head = format!(
            "HTTP/1.1 {status} It\r\n{location}Content-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        // The client may have closed the connection.
        if reader.get_mut().write_all(head.as_bytes()).is_err() {
            return;
        }
        let step = if is_slow { 1 } else { body.len().max(1) };
        for part in body.as_bytes().chunks(step) {
            if reader.get_mut().write_all(part).is_err() {
                return;
            }
            if is_slow {
                thread::sleep(Duration::from_secs(1));
            }
        }
    }
}

fn answer(request: &Request, state: &mut State) -> (u16, String, bool) {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    state.requests.push(path.to_owned());
    let is_slow = state.behaviour == Behaviour::Slow;
    let document = |json: Value| match state.behaviour {
        Behaviour::Failing => (500, "{}".to_owned(), false),
        Behaviour::Huge => (200, format!("{{\"x\":\"{}\"}}", "x".repeat(8 << 20)), false),
        Behaviour::Redirecting if !path.starts_with("/moved") => {
            (302, format!("{}/moved{path}", state.url), false)
        }
        _ => (200, json.to_string(), is_slow),
    };
    match path.strip_prefix("/moved").unwrap_or(path) {
        "/.well-known/openid-configuration" => document(state.description()),
        "/keys" => document(state.keys()),
        "/authorize" => {
            let (status, body) = state.authorize(pairs(query));
            (status, body, false)
        }
        "/token" => {
            let (status, body) = state.token(&pairs(&request.body));
            (status, body, is_slow)
        }
        "/device" => document(json!({
            "device_code": "device", "user_code": "BCDF-GHJK", "verification_uri": format!("{}/enter", state.url),
            "expires_in": 60, "interval": 1,
        })),
        "/logout" => {
            state.person = None;
            (303, pairs(query)["post_logout_redirect_uri"].clone(), false)
        }
        _ => (404, "{}".to_owned(), false),
    }
}

fn pairs(text: &str) -> BTreeMap<String, String> {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8().unwrap().into_owned();
    text.split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect()
}
