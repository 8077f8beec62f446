//! A real provider of OpenID Connect behind the deployment's nginx. `examples/sign-in/check` installs it.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Child, Command, Output, Stdio},
};

use assay_testkit::{Browser, Client, Scripts, free_address, program, stderr_text, wait_until};
use serde_json::{Value, json};

use crate::deployment::{Deployment, REPORT, deploy};

/// The provider. Dropping it ends its process.
struct Provider(Child);

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Answers the provider's pages until a condition holds in the browser.
fn at_provider(browser: &Browser, done: &str) {
    let script = format!(
        "if ({done}) return true; \
         const field = document.querySelector('input[name=login]'); \
         if (field) {{ field.value = 'jane'; document.querySelector('input[name=password]').value = 'x'; }} \
         const button = document.querySelector('button[type=submit]:not([name=abort])'); \
         if (button && !window.clicked) {{ window.clicked = true; button.click(); }} \
         return false;"
    );
    browser.until(&script);
}

#[test]
#[ignore = "needs a provider from npm: examples/sign-in/check"]
fn people_sign_in_at_a_real_provider() {
    let tools = std::env::var("ASSAY_OIDC_PROVIDER").expect("ASSAY_OIDC_PROVIDER is the provider's folder");
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let address = free_address();
    let (_, port) = address.rsplit_once(':').unwrap();
    fs::write(at("secret"), "a secret: + and %\n").unwrap();
    fs::set_permissions(at("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    let file = format!(
        "private_addresses = [\"127.0.0.1\"]\n[[provider]]\nname = \"Example SSO\"\nissuer = \"http://127.0.0.1:{port}\"\n\
         client_id = \"assay\"\nclient_secret_file = {:?}\nscopes = [\"openid\", \"groups\"]\n\
         [[provider.access]]\nclaim = \"groups\"\nvalue = \"shop\"\norganization = \"Shop\"\n",
        at("secret")
    );
    fs::write(at("identity.toml"), file).unwrap();
    fs::write(at("groups"), "shop\nother\n").unwrap();
    let identity = at("identity.toml").display().to_string();
    let deployment = Deployment::with(&[("ASSAY_IDENTITY_FILE", &identity)]);
    let (project, _, ingest) = deployment.project("web");
    let base = deployment.proxy.base();
    let provider = Command::new("node")
        .arg(deploy().join("../examples/sign-in/provider.mjs"))
        .args([port, &base, at("groups").to_str().unwrap()])
        .env("ASSAY_OIDC_PROVIDER", tools)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let provider = Provider(provider.unwrap());
    let issuer = Client::new(format!("http://127.0.0.1:{port}"));
    wait_until("the provider", || {
        issuer
            .try_get("/.well-known/openid-configuration", &[])
            .is_ok_and(|answer| answer.status == 200)
    });

    // A browser: sign-in, renewal, sign-out.
    let browser = Browser::start(Scripts::On);
    let (page, overview) = (format!("{base}/p/{project}"), format!("/p/{project}"));
    let shown = format!("location.pathname === '{overview}'");
    browser.open(&page);
    browser.click("a.provider");
    at_provider(&browser, &shown);
    let cookies = browser.cookies();
    let of = |cookie: &Value| ["name", "secure", "httpOnly", "sameSite"].map(|key| cookie[key].clone());
    assert_eq!(cookies.len(), 1, "{cookies:?}");
    assert_eq!(
        json!(of(&cookies[0])),
        json!(["__Host-assay", true, true, "Strict"])
    );
    let renewal = format!("{base}/login/provider?n=0&silent=1&next=%2Fp%2F{project}");
    browser.open(&renewal);
    browser.until(&format!("return {shown}"));
    assert_ne!(
        browser.cookies()[0]["value"],
        cookies[0]["value"],
        "a new session"
    );

    // A terminal of the same person.
    let assay = |arguments: &[&str]| {
        let mut command = Command::new(program("assay"));
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap())
            .env("XDG_STATE_HOME", at("state"))
            .env("ASSAY_URL", &base)
            .env("SSL_CERT_FILE", deployment.proxy.certificate())
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    };
    let run = |arguments: &[&str]| -> Output { assay(arguments).output().unwrap() };
    let list = ["quarantine", "--project", "web", "--format", "json"];
    let refused = run(&list);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(stderr_text(&refused).contains("assay login"), "{refused:?}");
    let log_in = || {
        let output = fs::File::create(at("log")).unwrap();
        let login = assay(&["login", "--json"]).stderr(output).spawn().unwrap();
        let line = || fs::read_to_string(at("log")).unwrap();
        wait_until("the code", || line().contains("compare the code"));
        let printed = line();
        let mut words = printed.split_whitespace();
        browser.open(words.find(|word| word.starts_with("http")).unwrap());
        at_provider(&browser, "/success/i.test(document.title)");
        let output = login.wait_with_output().unwrap();
        (output, line())
    };
    let (signed_in, errors) = log_in();
    assert!(signed_in.status.success(), "{errors}");
    let session = at("state/assay/sessions.json");
    assert_eq!(
        fs::metadata(&session).unwrap().permissions().mode() & 0o777,
        0o600
    );
    fs::write(at("junit.xml"), REPORT).unwrap();
    let mut upload = assay(&["upload", "junit.xml", "--json"]);
    let uploaded = upload.env("ASSAY_INGEST_KEY", &ingest).output().unwrap();
    let uploaded: Value = serde_json::from_slice(&uploaded.stdout).unwrap();
    let gate = ["gate", "--run", uploaded["runId"].as_str().unwrap()];
    for read in [&list[..], &gate, &["uploads"]] {
        let answered = run(read);
        assert!(answered.status.success(), "{read:?}: {}", stderr_text(&answered));
    }
    let kept = fs::read_to_string(&session).unwrap();
    let out = run(&["logout"]);
    assert!(out.status.success(), "{}", stderr_text(&out));
    assert_eq!(fs::read_to_string(&session).unwrap(), "{}");
    // A copy of the session has ended, too, and one whose time is over is not sent.
    fs::write(&session, &kept).unwrap();
    let ended = run(&list);
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert!(stderr_text(&ended).contains("sign in again"), "{ended:?}");
    let mut past: Value = serde_json::from_str(&kept).unwrap();
    past[&base]["expiresAt"] = json!("2026-01-01T00:00:00.000Z");
    fs::write(&session, past.to_string()).unwrap();
    let ended = run(&list);
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    assert!(stderr_text(&ended).contains("sign in again"), "{ended:?}");

    // The claim is removed: the renewal of the browser and the terminal get nothing.
    fs::write(at("groups"), "other\n").unwrap();
    browser.open(&renewal);
    assert!(
        browser.text("main").contains("opens no project"),
        "{}",
        browser.text("main")
    );
    let elsewhere = assay(&list)
        .env("ASSAY_URL", "https://localhost:1")
        .output()
        .unwrap();
    assert_eq!(
        elsewhere.status.code(),
        Some(2),
        "no session there: {elsewhere:?}"
    );
    let (refused, errors) = log_in();
    assert_eq!(refused.status.code(), Some(1), "{errors}");
    assert!(errors.contains("opens no project"), "{errors}");

    // Signing out ends the session at the provider.
    fs::write(at("groups"), "shop\n").unwrap();
    browser.open(&renewal);
    browser.until(&format!("return {shown}"));
    browser.click("form[action='/logout'] button");
    at_provider(&browser, "location.pathname === '/login'");
    assert_eq!(browser.cookies().len(), 0);
    browser.open(&renewal);
    browser.until("return location.pathname === '/login'");

    // The provider is gone.
    drop(provider);
    let gone = run(&["login"]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(stderr_text(&gone).contains("provider failed"), "{gone:?}");
    assert!(Path::new(&session).exists());
}
