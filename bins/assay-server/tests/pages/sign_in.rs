//! Sign-in at a provider of OpenID Connect, which runs on this machine.

use std::{
    collections::BTreeMap,
    fs,
    process::{Command, Stdio},
};

use assay_testkit::{Behaviour, Browser, Client, Issuer, Response, Scripts, Server, program, stderr_text};
use serde_json::{Value, json};

use crate::world::World;

/// A world whose server has a provider, and the provider.
struct SignedInWorld {
    world: World,
    issuer: Issuer,
    server: Server,
    _folder: tempfile::TempDir,
}

impl SignedInWorld {
    /// What the entries of the provider in the operator's file permit.
    fn new(access: &str) -> Self {
        let (world, issuer, folder) = (World::new(), Issuer::new(), tempfile::tempdir().unwrap());
        let path = folder.path().join("identity.toml");
        let text = format!(
            "private_addresses = [\"127.0.0.1\"]\n[[provider]]\nname = \"Example SSO\"\nissuer = \"{}\"\n\
             client_id = \"assay\"\nscopes = [\"openid\", \"groups\"]\n{access}",
            issuer.url
        );
        fs::write(&path, text).unwrap();
        let environment = [
            ("ASSAY_RATE_LIMIT", "0"),
            ("ASSAY_IDENTITY_FILE", path.to_str().unwrap()),
        ];
        Self {
            server: Server::start_with_front(world.database.url(), &environment),
            world,
            issuer,
            _folder: folder,
        }
    }

    fn front(&self) -> &Client {
        self.server.front()
    }

    fn get(&self, path: &str, cookie: &str) -> Response {
        self.front().get_with(path, &[("Cookie", cookie)])
    }

    /// Begins a sign-in: the cookie of it and the parameters that the provider gets.
    fn begin(&self, query: &str) -> (String, BTreeMap<String, String>) {
        self.begin_at(&self.issuer, &format!("n=0{query}"))
    }

    fn begin_at(&self, issuer: &Issuer, query: &str) -> (String, BTreeMap<String, String>) {
        let answer = self.get(&format!("/login/provider?{query}"), "");
        assert_eq!(answer.status, 303, "{}", answer.text());
        let (address, parameters) = answer.header("location").unwrap().split_once('?').unwrap();
        assert_eq!(address, format!("{}/authorize", issuer.url));
        let pairs = parameters.split('&').filter_map(|pair| pair.split_once('='));
        let pairs = pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        (cookie(&answer, "assay-sign-in="), pairs)
    }

    /// The address to which the provider sends the browser back, without the host.
    fn at_provider(&self, parameters: &BTreeMap<String, String>) -> String {
        self.at(&self.issuer, parameters)
    }

    fn at(&self, issuer: &Issuer, parameters: &BTreeMap<String, String>) -> String {
        let query: Vec<_> = parameters
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let answer =
            Client::new(issuer.url.clone()).get_with(&format!("/authorize?{}", query.join("&")), &[]);
        let page = answer.text();
        let address = match answer.header("location") {
            Some(address) => address.to_owned(),
            None => page
                .split("href=\"")
                .nth(1)
                .unwrap()
                .split('"')
                .next()
                .unwrap()
                .to_owned(),
        };
        address.strip_prefix(self.front().base()).unwrap().to_owned()
    }

    /// Signs a person with these claims in, without a browser.
    fn sign_in(&self, claims: Value) -> Response {
        self.issuer.sign_in(Some(claims));
        let (cookie, parameters) = self.begin("");
        self.get(&self.at_provider(&parameters), &cookie)
    }

    /// Begins a sign-in of a terminal and asks for its token, as `assay login` does.
    fn terminal(&self) -> Response {
        let begun = self.front().post("/login/device", &[], b"");
        assert_eq!(begun.status, 200, "{}", begun.text());
        let begun = begun.json();
        assert_eq!(begun["user_code"], "BCDF-GHJK");
        assert_ne!(begun["device_code"], "device", "a sealed code");
        self.redeem(begun["device_code"].as_str().unwrap())
    }

    fn redeem(&self, code: &str) -> Response {
        let bearer = [("Authorization", &*format!("Bearer {code}"))];
        self.front().post("/login/device/token", &bearer, b"")
    }

    /// The token of a terminal of this person.
    fn terminal_of(&self, claims: Value) -> String {
        self.issuer.sign_in(Some(claims));
        let answer = self.terminal();
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.json()["expires_in"], 3_600);
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        answer.json()["access_token"].as_str().unwrap().to_owned()
    }

    /// The names of the projects that a token reads by the API.
    fn projects(&self, token: &str) -> Value {
        let answer = self.server.client().get("/api/v1/projects", Some(token));
        assert_eq!(answer.status, 200, "{}", answer.text());
        let projects = answer.json()["projects"].clone();
        let names = projects
            .as_array()
            .unwrap()
            .iter()
            .map(|project| project["name"].clone());
        names.collect()
    }

    fn overview(&self) -> String {
        format!("/p/{}", self.world.project)
    }
}

/// A cookie that an answer sets, as a browser sends it.
fn cookie(answer: &Response, beginning: &str) -> String {
    let mut set = answer.headers.iter().filter(|(name, _)| name == "set-cookie");
    let found = set.find(|(_, value)| value.starts_with(beginning)).unwrap();
    found.1.split(';').next().unwrap().to_owned()
}

const ALL: &str = "[[provider.access]]\nclaim = \"groups\"\nvalue = \"shop\"\norganization = \"Shop\"\n";

fn person() -> Value {
    json!({ "sub": "jane", "groups": ["shop", "other"] })
}

#[test]
fn a_person_signs_in_with_a_browser_reads_and_signs_out() {
    let world = SignedInWorld::new(ALL);
    world.issuer.sign_in(Some(person()));
    let browser = Browser::start(Scripts::Off);
    let url = |path: &str| format!("{}{path}", world.front().base());
    browser.open(&url(&world.overview()));
    assert!(browser.address().contains("/login?next="));
    assert!(browser.text("a.provider").contains("Example SSO"));
    browser.click("a.provider");
    browser.until("return document.title === 'Provider'");
    browser.click("#go");
    let overview = world.overview();
    browser.until(&format!("return location.pathname === '{overview}'"));
    let cookies = browser.cookies();
    assert_eq!(cookies.len(), 1, "{cookies:?}");
    assert_eq!(
        (&cookies[0]["name"], &cookies[0]["httpOnly"]),
        (&json!("assay"), &json!(true))
    );
    assert_eq!(cookies[0]["sameSite"], "Strict");
    // Signing out also ends the session at the provider, which sends the browser back.
    browser.click("header form button");
    browser.until("return location.pathname === '/login'");
    assert!(world.issuer.requests().contains(&"/logout".to_owned()));
    assert!(browser.cookies().is_empty());
    browser.open(&url(&overview));
    assert!(browser.address().contains("/login"));
}

#[test]
fn a_session_of_a_person_has_the_rights_of_the_file_and_ends_at_sign_out() {
    let world = SignedInWorld::new(ALL);
    let answer = world.sign_in(person());
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.text().contains("content=\"0;url=/\""));
    let session = cookie(&answer, "assay=");
    assert_eq!(cookie(&answer, "assay-sign-in="), "assay-sign-in=");
    assert_eq!(world.get(&world.overview(), &session).status, 200);
    // A read key signs in as before, beside it.
    let key = world.front().sign_in(&world.world.key);
    assert_eq!(world.get(&world.overview(), &key).status, 200);
    // A copy of the cookie ends with it, too.
    // A proxy with a password sends that, too.
    let own = [
        ("Cookie", session.as_str()),
        ("Sec-Fetch-Site", "same-origin"),
        ("Authorization", "Basic amFuZTp4"),
    ];
    let out = world.front().post("/logout", &own, b"");
    assert!(
        out.text()
            .contains(&format!("0;url={}/logout?client_id=assay", world.issuer.url)),
        "{}",
        out.text()
    );
    assert_eq!(world.get(&world.overview(), &session).status, 303);
    // The session of a deleted organization is none.
    let session = cookie(&world.sign_in(person()), "assay=");
    world.world.cli.json(&["org", "delete", "Shop", "--yes"]);
    let answer = world.get(&world.overview(), &session);
    assert_ne!(answer.status, 200, "{}", answer.text());
    let log = world.server.log();
    assert!(!log.contains("code-") && !log.contains("eyJ"), "{log}");
}

#[test]
fn a_person_without_the_claim_and_one_whose_claim_was_removed_have_no_access() {
    let world = SignedInWorld::new(ALL);
    for claims in [
        json!({ "sub": "jane" }),
        json!({ "sub": "jane", "groups": [] }),
        json!({ "sub": "jane", "groups": "shopping" }),
        json!({ "sub": "jane", "groups": ["Shop", 7] }),
        json!({ "sub": "jane", "groups": { "shop": true } }),
        json!({ "sub": "jane", "roles": ["shop"] }),
        json!({ "groups": ["shop"] }),
    ] {
        let answer = world.sign_in(claims.clone());
        assert!([403, 502].contains(&answer.status), "{claims}: {}", answer.text());
        assert!(
            answer
                .headers
                .iter()
                .all(|(_, value)| !value.starts_with("assay=")),
            "{claims}"
        );
    }
    assert_eq!(world.sign_in(person()).status, 200);
    // The renewal of a session, an hour later, asks the provider without a click.
    let (cookie, parameters) = world.begin("&silent=1&next=%2Fp%2Fx");
    assert_eq!(parameters["prompt"], "none");
    world
        .issuer
        .sign_in(Some(json!({ "sub": "jane", "groups": ["other"] })));
    assert_eq!(world.get(&world.at_provider(&parameters), &cookie).status, 403);
    world.issuer.sign_in(Some(person()));
    let (cookie, parameters) = world.begin("&silent=1&next=%2Fp%2Fx");
    let renewed = world.get(&world.at_provider(&parameters), &cookie);
    assert!(renewed.text().contains("0;url=/p/x"), "{}", renewed.text());
    // Whoever is signed out at the provider signs in again.
    let (cookie, parameters) = world.begin("&silent=1&next=%2Fp%2Fx");
    world.issuer.sign_in(None);
    let ended = world.get(&world.at_provider(&parameters), &cookie);
    assert_eq!(
        (ended.status, ended.header("location")),
        (303, Some("/login?next=%2Fp%2Fx"))
    );
}

#[test]
fn a_person_with_some_projects_sees_no_other() {
    let access = format!("{ALL}projects = [\"mobile\", \"absent\"]\n");
    let world = SignedInWorld::new(&access);
    let mobile = world
        .world
        .cli
        .json(&["project", "create", "--org", "Shop", "mobile"]);
    let session = cookie(&world.sign_in(person()), "assay=");
    let open = format!("/p/{}", mobile["id"].as_str().unwrap());
    assert_eq!(world.get(&open, &session).status, 200);
    let list = world.get("/", &session);
    assert_eq!(list.header("location"), Some(open.as_str()));
    for page in world.world.pages() {
        let answer = world.get(&page, &session);
        assert_eq!(answer.status, 404, "{page}: {}", answer.text());
    }
    let absent = world.get("/p/019aa3f4-5b1c-7def-8a3b-0123456789ab", &session);
    let foreign = world.get(&world.overview(), &session);
    assert_eq!(absent.text(), foreign.text());
}

#[test]
fn a_sign_in_that_this_browser_did_not_begin_is_refused() {
    let world = SignedInWorld::new(ALL);
    world.issuer.sign_in(Some(person()));
    let (cookie, parameters) = world.begin("");
    let (other, others) = world.begin("");
    for name in ["state", "nonce", "code_challenge"] {
        assert_ne!(parameters[name], others[name], "{name}");
    }
    let back = world.at_provider(&parameters);
    // Without the cookie, with that of another sign-in, or with a changed state.
    for (path, cookie) in [
        (back.clone(), String::new()),
        (back.clone(), other.clone()),
        (back.replace("state=", "state=x"), cookie.clone()),
        ("/login/callback".to_owned(), cookie.clone()),
        ("/login/callback?code=code-0".to_owned(), cookie.clone()),
    ] {
        let answer = world.get(&path, &cookie);
        assert_eq!(answer.status, 400, "{path}: {}", answer.text());
        assert!(answer.header("set-cookie").is_none());
    }
    // A code of another sign-in: its verifier is of this one, and so is the nonce of its token.
    let stolen = back.replace(&parameters["state"], &others["state"]);
    assert_eq!(world.get(&stolen, &other).status, 502);
    // The attempt used the code up.
    assert_eq!(world.get(&back, &cookie).status, 502);
    // A code is redeemed once.
    let (cookie, parameters) = world.begin("");
    let back = world.at_provider(&parameters);
    assert_eq!(world.get(&back, &cookie).status, 200);
    assert_eq!(world.get(&back, &cookie).status, 502);
    for path in ["/login/provider?n=1", "/login/provider?n=x", "/login/provider"] {
        assert_eq!(world.get(path, "").status, 404, "{path}");
    }
    let refused = world.get(
        &format!("/login/callback?error=access_denied&state={}", others["state"]),
        &other,
    );
    assert_eq!(refused.status, 403);
    // The page to show afterwards is of this site.
    let (cookie, parameters) = world.begin("&next=%2F%2Fevil.example");
    assert!(
        world
            .get(&world.at_provider(&parameters), &cookie)
            .text()
            .contains("0;url=/\"")
    );
}

#[test]
fn a_code_of_another_provider_is_not_redeemed() {
    let other = Issuer::new();
    other.behave(Behaviour::Nameless);
    let second = format!(
        "{ALL}[[provider]]\nname = \"Other\"\nissuer = \"{}\"\nclient_id = \"assay\"\n{ALL}",
        other.url
    );
    let world = SignedInWorld::new(&second);
    for issuer in [&world.issuer, &other] {
        issuer.sign_in(Some(person()));
    }
    let asked_for_token = |issuer: &Issuer| issuer.requests().contains(&"/token".to_owned());
    // The browser was led to the other provider. One with a name always names itself.
    let (cookie, parameters) = world.begin("");
    let (named, name) = (
        world.at_provider(&parameters),
        format!("&iss={}", world.issuer.url),
    );
    let nameless = world.at(&other, &parameters);
    assert_eq!(named.replace(&name, "").len(), nameless.len());
    for back in [
        nameless.clone(),
        format!("{nameless}&iss={}", other.url),
        format!("{nameless}&iss="),
        format!("{named}/"),
    ] {
        assert_eq!(world.get(&back, &cookie).status, 502, "{back}");
    }
    assert!(world.server.log().contains("came back from another provider"));
    assert!(!asked_for_token(&world.issuer) && !asked_for_token(&other));
    assert_eq!(world.get(&named, &cookie).status, 200);
    // One without a name need not be named.
    let (cookie, parameters) = world.begin_at(&other, "n=1");
    let back = world.at(&other, &parameters);
    assert_eq!(world.get(&format!("{back}{name}"), &cookie).status, 502);
    assert!(!asked_for_token(&other));
    assert_eq!(world.get(&back, &cookie).status, 200);
}

#[test]
fn a_provider_that_fails_is_named_in_the_log_and_a_key_still_signs_in() {
    let world = SignedInWorld::new(ALL);
    world.issuer.behave(Behaviour::Failing);
    let answer = world.get("/login/provider?n=0", "");
    assert_eq!(answer.status, 502, "{}", answer.text());
    assert!(
        world.server.log().contains("the provider Example SSO: "),
        "{}",
        world.server.log()
    );
    let session = world.front().sign_in(&world.world.key);
    assert_eq!(world.get(&world.overview(), &session).status, 200);
}

#[test]
fn without_a_provider_there_is_no_way_to_one() {
    let world = World::new();
    let page = world.front().get_with("/login", &[]).text();
    assert!(!page.contains("/login/provider"));
    for path in ["/login/provider?n=0", "/login/callback?code=a&state=b"] {
        assert_eq!(world.front().get_with(path, &[]).status, 404, "{path}");
    }
}

#[test]
fn a_terminal_reads_by_the_api_and_the_tools_until_it_signs_out() {
    let world = SignedInWorld::new(ALL);
    let token = world.terminal_of(person());
    assert_eq!(world.projects(&token), world.projects(&world.world.key));
    let api = format!("/api/v1/projects/{}/runs", world.world.project);
    assert_eq!(world.server.client().get(&api, Some(&token)).status, 200);
    let bearer = format!("Bearer {token}");
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Accept", "application/json, text/event-stream"),
    ];
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "list_projects", "arguments": {} } });
    let called = world.front().post_json("/mcp", &headers, &list);
    assert_eq!(called.status, 200, "{}", called.text());
    // It is no cookie, no key of uploads, and no browser's session is a token.
    let sealed = token.strip_prefix("svc_session_").unwrap();
    assert_eq!(
        world.get(&world.overview(), &format!("assay={sealed}")).status,
        303
    );
    let cookie = cookie(&world.sign_in(person()), "assay=");
    let of_browser = cookie.replace("assay=", "svc_session_");
    let begun = world.front().post("/login/device", &[], b"").json();
    let of_sign_in = format!("svc_session_{}", begun["device_code"].as_str().unwrap());
    for (wrong, code) in [
        (of_browser.as_str(), "key_expired"),
        (&of_sign_in, "key_expired"),
        (&token.replace("svc_session_", "svc_session_A"), "key_expired"),
        (sealed, "invalid_key"),
    ] {
        let answer = world.server.client().get("/api/v1/projects", Some(wrong));
        assert_eq!(
            (answer.status, answer.code()),
            (401, code.to_owned()),
            "{}",
            answer.text()
        );
    }
    // Signing out ends every copy of it, and nothing else.
    let other = world.terminal_of(person());
    for _ in 0..2 {
        assert_eq!(world.front().post("/logout", &headers[..1], b"").status, 204);
    }
    let ended = world.server.client().get(&api, Some(&token));
    assert_eq!((ended.status, ended.code()), (401, "key_expired".to_owned()));
    assert!(ended.text().contains("assay login"), "{}", ended.text());
    assert_eq!(world.front().post_json("/mcp", &headers, &list).status, 401);
    assert_eq!(world.server.client().get(&api, Some(&other)).status, 200);
    assert_eq!(world.get(&world.overview(), &cookie).status, 200);
    let log = world.server.log();
    assert!(!log.contains(sealed) && !log.contains("eyJ"), "{log}");
    let metrics = world.server.admin().get("/metrics", None).text();
    assert!(
        metrics.contains("assay_identity_sign_ins_total{outcome=\"signed_in\"} 3"),
        "{metrics}"
    );
    assert!(
        metrics.contains("assay_identity_key_fetches_total{outcome=\"fetched\"} 1"),
        "{metrics}"
    );
}

#[test]
fn a_terminal_has_the_projects_of_its_person_alone() {
    let access = format!("{ALL}projects = [\"mobile\"]\n");
    let world = SignedInWorld::new(&access);
    let create = ["project", "create", "--org", "Shop", "mobile"];
    let mobile = world.world.cli.json(&create);
    let token = world.terminal_of(person());
    assert_eq!(world.projects(&token), json!(["mobile"]));
    let get = |id: &str, path: &str, token: &str| {
        let path = format!("/api/v1/projects/{id}{path}");
        world.server.client().get(&path, Some(token)).status
    };
    assert_eq!(get(mobile["id"].as_str().unwrap(), "/runs", &token), 200);
    for path in ["/runs", "/flaky", "/health", "/tests"] {
        assert_eq!(
            get(&world.world.project.to_string(), path, &world.world.key),
            200,
            "{path}"
        );
        assert_eq!(get(&world.world.project.to_string(), path, &token), 404, "{path}");
    }
}

#[test]
fn a_terminal_waits_for_its_person_and_gets_nothing_without_the_claim() {
    let world = SignedInWorld::new(ALL);
    for code in [
        "authorization_pending",
        "slow_down",
        "access_denied",
        "expired_token",
    ] {
        world.issuer.answer_terminals(&[code]);
        let answer = world.terminal();
        assert_eq!((answer.status, answer.code()), (400, code.to_owned()));
    }
    assert_eq!(world.terminal().code(), "authorization_pending");
    world
        .issuer
        .sign_in(Some(json!({ "sub": "jane", "groups": ["other"] })));
    assert_eq!(
        (world.terminal().status, world.terminal().code()),
        (403, "sign_in_refused".to_owned())
    );
    world.issuer.answer_terminals(&["invalid_client"]);
    assert_eq!(world.terminal().status, 502);
    world.server.log().find("invalid_client").unwrap();
    for code in ["device", "", "x.y"] {
        assert_eq!(world.redeem(code).status, 400, "{code}");
    }
    for (path, status) in [
        ("/login/device?provider=Other", 400),
        ("/login/device?provider=Example%20SSO", 200),
    ] {
        assert_eq!(world.front().post(path, &[], b"").status, status, "{path}");
    }
    assert_eq!(world.front().get_with("/login/device", &[]).status, 405);
    let without = World::new();
    let answer = without.front().post("/login/device", &[], b"");
    assert_eq!(answer.status, 404);
    assert!(answer.text().contains("read key"), "{}", answer.text());
}

#[test]
fn assay_login_waits_for_the_person_and_says_why_it_ends() {
    let world = SignedInWorld::new(ALL);
    world.issuer.sign_in(Some(person()));
    let state = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str], key: &str| {
        let mut command = Command::new(program("assay"));
        command.args(arguments).env_clear().stdin(Stdio::null());
        command
            .env("XDG_STATE_HOME", state.path())
            .env("ASSAY_URL", world.front().base())
            .env(
                "ASSAY_API_URL",
                format!("{}/api/v1", world.server.client().base()),
            )
            .env("ASSAY_READ_KEY", key);
        command.output().unwrap()
    };
    for (codes, reason) in [
        (&["access_denied"][..], "refused at the provider"),
        (&["expired_token"], "begin again"),
        (
            &["invalid_client", "expired_token"],
            "The log of this server has the reason",
        ),
    ] {
        world.issuer.answer_terminals(codes);
        let ended = run(&["login"], "");
        assert_eq!(ended.status.code(), Some(1));
        assert!(stderr_text(&ended).contains(reason), "{ended:?}");
    }
    assert!(
        fs::read_dir(state.path()).unwrap().next().is_none(),
        "nothing is left"
    );
    let list = ["quarantine", "--project", "web", "--format", "json"];
    assert_eq!(run(&list, "").status.code(), Some(2));
    world
        .issuer
        .answer_terminals(&["authorization_pending", "slow_down"]);
    let login = run(&["login", "--json"], "");
    assert!(login.status.success(), "{}", stderr_text(&login));
    assert!(stderr_text(&login).contains("/enter and enter the code: BCDF-GHJK"));
    let printed: Value = serde_json::from_slice(&login.stdout).unwrap();
    assert_eq!(printed["url"], world.front().base());
    let file = fs::read_to_string(state.path().join("assay/sessions.json")).unwrap();
    let token: Value = serde_json::from_str(&file).unwrap();
    let token = token[world.front().base()]["token"].as_str().unwrap();
    assert!(!String::from_utf8_lossy(&login.stdout).contains(token));
    assert!(run(&list, "").status.success());
    // A key that is set is used, also a wrong one.
    assert_eq!(run(&list, "svc_ro_wrong").status.code(), Some(1));
    // Another installation does not get the session.
    let elsewhere = run(&["logout", "--url", "http://127.0.0.1:1"], "");
    assert!(
        String::from_utf8_lossy(&elsewhere.stdout).contains("no session"),
        "{elsewhere:?}"
    );
    assert!(run(&list, "").status.success());
    for (was, sentence) in [(true, "Signed out of"), (false, "There is no session")] {
        let out = run(&["logout"], "");
        assert!(
            String::from_utf8_lossy(&out.stdout).starts_with(sentence),
            "{was}: {out:?}"
        );
    }
    assert_eq!(run(&list, "").status.code(), Some(2));
}
