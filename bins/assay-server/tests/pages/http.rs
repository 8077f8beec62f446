//! The pages over plain HTTP: headers, statuses, sessions.

use assay_domain::{
    key::{KeyKind, mint},
    timestamp::Timestamp,
};
use assay_testkit::{Client, Server};

use crate::world::World;

/// When the keys of these tests were made.
const MINTED: Timestamp = Timestamp::from_unix_ms(1_795_000_000_000);
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

#[test]
fn every_answer_has_the_headers_that_isolate_a_page() {
    let world = World::new();
    let cookie = world.cookie();
    for path in [
        "/",
        "/login",
        "/nothing",
        &format!("/p/{}/tests", world.project),
        "/logout",
    ] {
        let answer = world.page(path, &cookie);
        assert_eq!(answer.header("content-security-policy"), Some(POLICY), "{path}");
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"), "{path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(
            answer.header("cache-control"),
            Some("private, no-cache"),
            "{path}"
        );
    }
    let errors = format!("/p/{}/errors", world.project);
    let page = world.page(&errors, &cookie);
    let mut tag = page.header("etag").unwrap().to_owned();
    let mut is_unchanged = false;
    // The page changes with each minute, which may end between two requests.
    for _ in 0..3 {
        let again = world
            .front()
            .get_with(&errors, &[("Cookie", &cookie), ("If-None-Match", &tag)]);
        is_unchanged |= again.status == 304 && again.body.is_empty();
        tag = again.header("etag").unwrap().to_owned();
    }
    assert!(is_unchanged);
    let text = page.text();
    for (before, media) in [
        ("href=\"/assets/", "text/css"),
        ("src=\"/assets/", "text/javascript"),
    ] {
        let (_, rest) = text.split_once(before).unwrap();
        let (name, _) = rest.split_once('"').unwrap();
        let file = world.front().get_with(&format!("/assets/{name}"), &[]);
        assert_eq!(file.status, 200);
        assert!(file.header("content-type").unwrap().starts_with(media));
        assert_eq!(
            file.header("cache-control"),
            Some("public, max-age=31536000, immutable")
        );
    }
}

#[test]
fn an_address_that_guesses_keys_waits_and_keys_in_use_sign_in_from_it() {
    let world = World::new();
    let sign_in = |key: &str| world.front().post_form("/login", &format!("key={key}"), true);
    assert_eq!(sign_in(&world.key).status, 303);
    // A minute may end in between.
    let statuses: Vec<u16> = (0..70)
        .map(|_| sign_in(mint(KeyKind::Read, MINTED).0.reveal()).status)
        .collect();
    assert!(
        statuses.starts_with(&[401, 401]) && statuses.contains(&429),
        "{statuses:?}"
    );
    let refused = sign_in(mint(KeyKind::Read, MINTED).0.reveal());
    assert!(refused.status == 401 || refused.header("retry-after").is_some());
    assert_eq!(sign_in(&world.key).status, 303);
}

#[test]
fn a_wrong_key_and_a_foreign_form_do_not_sign_in() {
    let world = World::new();
    let ingest = world.cli.json(&["key", "create-ingest", "--project", "web"]);
    let ingest = ingest["key"].as_str().unwrap();
    for (key, sentence) in [
        ("", "The read key is not valid."),
        ("svc_ro_nonsense", "The read key is not valid."),
        (ingest, "ingest key; use an organization read key"),
    ] {
        let answer = world.front().post_form("/login", &format!("key={key}"), true);
        assert_eq!(answer.status, 401, "{key}");
        assert!(answer.text().contains(sentence), "{}", answer.text());
        assert_eq!(answer.header("set-cookie"), None);
    }
    let foreign = world
        .front()
        .post_form("/login", &format!("key={}", world.key), false);
    assert_eq!((foreign.status, foreign.header("set-cookie")), (403, None));
    let of_bytes = |bytes: usize| {
        world
            .front()
            .post_form("/login", &format!("key={}", "x".repeat(bytes - 4)), true)
    };
    assert_eq!(of_bytes(1_024).status, 401);
    let long = of_bytes(1_025);
    assert_eq!((long.status, long.header("set-cookie")), (413, None));
    // After signing in, the redirect stays on this site.
    let elsewhere = |next: &str| {
        let answer = world.front().post_form(
            &format!("/login?next={next}"),
            &format!("key={}", world.key),
            true,
        );
        answer.header("location").unwrap().to_owned()
    };
    assert_eq!(elsewhere("//evil.example"), "/");
    assert_eq!(elsewhere("%2Fp%2Fx"), "/p/x");
    assert!(!world.server.log().contains(&world.key), "no key in the log");
}

#[test]
fn the_cookie_is_sealed_and_signing_out_ends_it() {
    let world = World::new();
    let answer = world
        .front()
        .post_form("/login", &format!("key={}", world.key), true);
    let set = answer.header("set-cookie").unwrap().to_owned();
    assert!(
        set.contains("; Path=/; HttpOnly; SameSite=Strict") && !set.contains(&world.key),
        "{set}"
    );
    let overview = format!("/p/{}", world.project);
    let cookie = world.cookie();
    assert_eq!(world.page(&overview, &cookie).status, 200);
    // One character within the sealed part. None of its bits are padding.
    let mut changed = cookie.clone();
    let other = if cookie[10..].starts_with('A') { "B" } else { "A" };
    changed.replace_range(10..11, other);
    for cookie in [changed.as_str(), "", "assay=AAAA"] {
        let answer = world.page(&overview, cookie);
        assert_eq!(answer.status, 303, "{cookie}");
        assert!(
            answer
                .header("location")
                .unwrap()
                .starts_with("/login?next=%2Fp%2F")
        );
    }
    let out = world.front().post_form("/logout", "", true);
    assert_eq!(out.status, 303);
    assert!(out.header("set-cookie").unwrap().starts_with("assay=; Max-Age=0"));
    assert_eq!(world.front().post_form("/logout", "", false).status, 403);
}

#[test]
fn no_copy_of_a_cookie_opens_a_page_after_signing_out_on_any_process() {
    let world = World::new();
    let secret = [("ASSAY_FRONT_SECRET", "of both processes")];
    let servers = [(); 2].map(|()| Server::start_with_front(world.database.url(), &secret));
    let overview = format!("/p/{}", world.project);
    let opens = |server: &Server, cookie: &str| {
        let answer = server.front().get_with(&overview, &[("Cookie", cookie)]);
        assert!([200, 303].contains(&answer.status), "{}", answer.text());
        answer.status == 200
    };
    let [signed_out, other] = [(); 2].map(|()| servers[0].front().sign_in(&world.key));
    assert!(servers.iter().all(|server| opens(server, &signed_out)));
    let own = [("Cookie", signed_out.as_str()), ("Sec-Fetch-Site", "same-origin")];
    assert_eq!(servers[0].front().post("/logout", &own, b"").status, 303);
    assert!(!servers.iter().any(|server| opens(server, &signed_out)));
    // Another session of the same key stays open, and so does a later one.
    assert!(servers.iter().all(|server| opens(server, &other)));
    assert!(opens(&servers[1], &servers[1].front().sign_in(&world.key)));
    // A session is forgotten when its cookie has expired anyway.
    assert_eq!(world.count("SELECT count(*) FROM ended_session"), 1);
    world
        .database
        .execute("UPDATE ended_session SET expires_at = now() - interval '1 minute'");
    let own = [("Cookie", other.as_str()), ("Sec-Fetch-Site", "same-origin")];
    assert_eq!(servers[1].front().post("/logout", &own, b"").status, 303);
    assert_eq!(world.count("SELECT count(*) FROM ended_session"), 1);
    assert!(!opens(&servers[0], &other));
}

#[test]
fn behind_a_proxy_with_tls_the_public_address_makes_cookies_secure() {
    let world = World::new();
    let public = [("ASSAY_PUBLIC_URL", "https://assay.example.org")];
    let server = Server::start_with_front(world.database.url(), &public);
    let headers = |origin| {
        [
            ("Content-Type", "application/x-www-form-urlencoded"),
            ("Host", "assay.example.org"),
            ("Origin", origin),
        ]
    };
    let form = format!("key={}", world.key);
    let sign_in = |origin| server.front().post("/login", &headers(origin), form.as_bytes());
    let answer = sign_in("https://assay.example.org");
    let set = answer.header("set-cookie").unwrap();
    assert!(
        set.starts_with("__Host-assay=") && set.ends_with("; Secure"),
        "{set}"
    );
    assert!(answer.header("strict-transport-security").is_some());
    assert_eq!(sign_in("http://assay.example.org").status, 403);
    let cookie = set.split(';').next().unwrap();
    let page = server
        .front()
        .get_with(&format!("/p/{}", world.project), &[("Cookie", cookie)]);
    let route = format!("https://assay.example.org/api/v1/projects/{}", world.project);
    assert!(page.text().contains(&route), "{}", page.text());
    // A browser would follow a link without the key.
    assert!(
        !page.text().contains("href=\"https://assay.example.org/api"),
        "{}",
        page.text()
    );
    // Without the setting, a listener on this machine sets a cookie for plain HTTP.
    assert!(world.cookie().starts_with("assay="));
}

#[test]
fn a_foreign_and_an_absent_id_are_the_same_bytes() {
    let world = World::new();
    world.cli.json(&["org", "create", "Other", "--plan", "pro"]);
    let foreign = world.cli.json(&["project", "create", "--org", "Other", "theirs"]);
    let foreign = foreign["id"].as_str().unwrap();
    let cookie = world.cookie();
    let absent = "019aa3f4-5b1c-7def-8a3b-0123456789ab";
    for part in [
        "",
        "/tests",
        "/runs",
        "/errors",
        "/health",
        "/test?name=x",
        &format!("/runs/{absent}"),
    ] {
        let theirs = world.page(&format!("/p/{foreign}{part}"), &cookie);
        let none = world.page(&format!("/p/{absent}{part}"), &cookie);
        let nonsense = world.page(&format!("/p/x{part}"), &cookie);
        assert_eq!(theirs.status, 404, "{part}");
        assert_eq!((theirs.status, &theirs.body), (none.status, &none.body), "{part}");
        assert_eq!(
            (theirs.status, &theirs.body),
            (nonsense.status, &nonsense.body),
            "{part}"
        );
    }
    for (path, status) in [
        (format!("/p/{}/runs/{absent}", world.project), 404),
        (format!("/p/{}/test?name=none", world.project), 404),
        (format!("/p/{}/errors/none", world.project), 404),
        (format!("/p/{}/tests?page=0", world.project), 400),
        (format!("/p/{}/tests?status=good", world.project), 400),
        (
            format!("/p/{}/tests?search={}", world.project, "x".repeat(201)),
            400,
        ),
        (format!("/p/{}/runs?days=13", world.project), 400),
        (format!("/p/{}/runs?cursor=x", world.project), 400),
        (format!("/p/{}/runs?branch=a%00b", world.project), 400),
    ] {
        assert_eq!(world.page(&path, &cookie).status, status, "{path}");
    }
}

#[test]
fn an_error_page_has_the_sentence_of_the_api() {
    let world = World::new();
    let cookie = world.cookie();
    let absent = "019aa3f4-5b1c-7def-8a3b-0123456789ab";
    let project = format!("/p/{}", world.project);
    let of_api = format!("/projects/{}", world.project);
    for (page, route) in [
        (format!("/p/{absent}"), format!("/projects/{absent}/flaky")),
        (
            format!("{project}/runs/{absent}"),
            format!("{of_api}/runs/{absent}"),
        ),
        (format!("{project}/errors/none"), format!("{of_api}/errors/none")),
        (format!("{project}/runs?sha=x"), format!("{of_api}/runs?sha=x")),
        (
            format!("{project}/tests?search=a%00b"),
            format!("{of_api}/flaky?search=a%00b"),
        ),
    ] {
        let page = world.page(&page, &cookie);
        let answer = world
            .server
            .client()
            .get(&format!("/api/v1{route}"), Some(&world.key));
        assert_eq!(page.status, answer.status, "{route}");
        let answer = answer.json();
        let sentence = answer["error"].as_str().unwrap();
        assert!(page.text().contains(sentence), "{sentence}: {}", page.text());
    }
}

#[test]
fn an_expired_key_does_not_sign_in_and_ends_its_session() {
    let world = World::new();
    let cookie = world.cookie();
    let project = format!("/p/{}", world.project);
    assert_eq!(world.page(&project, &cookie).status, 200);
    world
        .database
        .execute("UPDATE api_key SET created_at = created_at - interval '91 days', expires_at = expires_at - interval '91 days'");
    std::thread::sleep(std::time::Duration::from_secs(1));
    let sentence = "The read key has expired; create a new one.";
    let page = world.page(&project, &cookie);
    assert!(
        page.status == 401 && page.text().contains(sentence),
        "{}",
        page.text()
    );
    assert!(
        page.header("set-cookie")
            .unwrap()
            .starts_with("assay=; Max-Age=0")
    );
    let again = world
        .front()
        .post_form("/login", &format!("key={}", world.key), true);
    assert!(
        again.status == 401 && again.text().contains(sentence),
        "{}",
        again.text()
    );
    assert_eq!(again.header("set-cookie"), None);
}

#[test]
fn every_page_names_the_route_of_its_figures_with_a_curl_line() {
    let world = World::new();
    let cookie = world.cookie();
    for page in world.pages() {
        let text = world.page(&page, &cookie).text();
        let (_, footer) = text.split_once("<footer>").unwrap();
        let routes = crate::world::routes(&text);
        assert!(!routes.is_empty(), "{page}");
        for route in routes {
            world.api(&route);
            let line = format!(
                "curl -H &quot;Authorization: Bearer $KEY&quot; '{}/api/v1{}'",
                world.server.client().base(),
                route.replace('&', "&amp;")
            );
            assert!(footer.contains(&line), "{page}: {footer}");
        }
    }
    // Without a configured secret, the server logs the lifetime of its sessions.
    assert!(world.server.log().contains("ASSAY_FRONT_SECRET is not set"));
}

#[test]
fn pages_are_read_only_and_bounded_in_number() {
    let world = World::new();
    let cookie = world.cookie();
    let answer = world.front().post("/", &[("Cookie", &cookie)], b"");
    assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD")));
    let front = Client::new(world.front().base());
    let path = format!("/p/{}/runs/none", world.project);
    let mut refused = 0;
    // More than two windows admit, so that the end of a window does not hide the limit.
    for _ in 0..1_300 {
        refused += u32::from(front.get_with(&path, &[("Cookie", &cookie)]).status == 429);
    }
    assert!(refused >= 50, "{refused}");
    // The API has a separate budget.
    assert_eq!(world.api("/projects")["projects"].as_array().unwrap().len(), 1);
}
