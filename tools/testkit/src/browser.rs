//! A real browser: Debian's Chromium, driven over WebDriver.

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use ureq::{Agent, Body, http::Response};

use crate::{cluster, server::free_address};

/// Time limit for the driver to listen and for a condition of a page to hold.
const WITHIN: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_millis(50);

/// Whether a browser runs the scripts of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scripts {
    /// Scripts run.
    On,
    /// Scripts are blocked.
    Off,
}

/// A browser with its own session and profile. Dropping the value ends them.
#[derive(Debug)]
pub struct Browser {
    driver: Child,
    agent: Agent,
    session: String,
    profile: PathBuf,
}

impl Browser {
    /// Starts a browser.
    ///
    /// # Panics
    ///
    /// If Chromium or its driver is missing. The message explains how to install them.
    pub fn start(scripts: Scripts) -> Self {
        let address = free_address();
        let port = address.rsplit(':').next().unwrap_or_default();
        let driver = Command::new("chromedriver")
            .arg(format!("--port={port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("chromedriver: {error}; install it with: apt-get install -y chromium chromium-driver")
            });
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(60)))
            .build();
        let profile = cluster::target().join(format!("browser-{}", uuid::Uuid::now_v7().simple()));
        let mut browser = Self {
            driver,
            agent: config.into(),
            session: format!("http://127.0.0.1:{port}"),
            profile,
        };
        browser.until_it_listens();
        let profile = format!("--user-data-dir={}", browser.profile.display());
        let mut options = json!({ "args": [
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync", profile,
        ] });
        if scripts == Scripts::Off {
            options["prefs"] = json!({ "profile.managed_default_content_settings.javascript": 2 });
        }
        let session = browser.command(
            "/session",
            &json!({ "capabilities": { "alwaysMatch": {
                // Tests sign their certificates themselves.
                "acceptInsecureCerts": true,
                "goog:chromeOptions": options,
                "goog:loggingPrefs": { "browser": "ALL" },
            } } }),
        );
        let id = session["sessionId"].as_str().expect("a session has an id");
        browser.session = format!("{}/session/{id}", browser.session);
        browser
    }

    fn until_it_listens(&self) {
        let began = Instant::now();
        let status = format!("{}/status", self.session);
        while self.agent.get(&status).call().is_err() {
            assert!(began.elapsed() < WITHIN, "chromedriver does not listen");
            thread::sleep(STEP);
        }
    }

    /// Sends a command of WebDriver and returns its value.
    fn command(&self, path: &str, body: &Value) -> Value {
        let url = format!("{}{path}", self.session);
        value(path, self.agent.post(&url).send_json(body))
    }

    /// Asks WebDriver for a value.
    fn query(&self, path: &str) -> Value {
        let url = format!("{}{path}", self.session);
        value(path, self.agent.get(&url).call())
    }

    /// Opens an address and waits until it is loaded.
    pub fn open(&self, address: &str) {
        self.command("/url", &json!({ "url": address }));
    }

    /// Opens a new tab and switches to it. Returns the name of the previous tab.
    pub fn new_tab(&self) -> String {
        let before = self.query("/window");
        let new = self.command("/window/new", &json!({ "type": "tab" }));
        self.show_tab(new["handle"].as_str().expect("a tab has a name"));
        before.as_str().expect("a tab has a name").to_owned()
    }

    /// Switches to the tab of this name.
    pub fn show_tab(&self, tab: &str) {
        self.command("/window", &json!({ "handle": tab }));
    }

    /// The current address.
    pub fn address(&self) -> String {
        let address = self.run("return location.href");
        address.as_str().expect("an address is text").to_owned()
    }

    /// The cookies that the browser would send to the current page, with their attributes.
    pub fn cookies(&self) -> Vec<Value> {
        let cookies = self.query("/cookie");
        cookies.as_array().cloned().expect("cookies are a list")
    }

    /// Goes back in the history.
    pub fn back(&self) {
        self.command("/back", &json!({}));
    }

    /// Loads the page again.
    pub fn reload(&self) {
        self.command("/refresh", &json!({}));
    }

    /// Runs a script in the page, even if the page's own scripts are blocked.
    pub fn run(&self, script: &str) -> Value {
        self.command("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// The visible text of the first element of this CSS selector.
    pub fn text(&self, selector: &str) -> String {
        let element = self.element(selector);
        let text = self.query(&format!("/element/{element}/text"));
        text.as_str().expect("an element has a text").to_owned()
    }

    /// Clicks the first element of this CSS selector.
    pub fn click(&self, selector: &str) {
        let element = self.element(selector);
        self.command(&format!("/element/{element}/click"), &json!({}));
    }

    /// Clicks the first element of this CSS selector, and waits until the page that it opens is loaded.
    pub fn follow(&self, selector: &str) {
        self.run("window.isLeft = true");
        self.click(selector);
        self.until("return !window.isLeft && document.readyState === 'complete'");
    }

    /// Types into the first element of this CSS selector.
    pub fn write(&self, selector: &str, text: &str) {
        let element = self.element(selector);
        self.command(&format!("/element/{element}/value"), &json!({ "text": text }));
    }

    /// Presses keys, one after another, wherever the focus is. Tab is U+E004 and Enter U+E007.
    pub fn press(&self, keys: &[&str]) {
        let presses: Vec<Value> = keys
            .iter()
            .flat_map(|key| ["keyDown", "keyUp"].map(|step| json!({ "type": step, "value": key })))
            .collect();
        self.command(
            "/actions",
            &json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": presses }] }),
        );
    }

    /// Lets pages read and write the clipboard.
    pub fn permit_clipboard(&self) {
        self.developer(
            "Browser.grantPermissions",
            &json!({ "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"] }),
        );
    }

    fn element(&self, selector: &str) -> String {
        let element = self.command("/element", &json!({ "using": "css selector", "value": selector }));
        let id = element.as_object().and_then(|element| element.values().next());
        id.and_then(Value::as_str)
            .expect("an element has an id")
            .to_owned()
    }

    /// Waits until a script returns true.
    pub fn until(&self, script: &str) {
        let began = Instant::now();
        while self.run(script) != json!(true) {
            assert!(
                began.elapsed() < WITHIN,
                "not in time: {script}, at {}",
                self.address()
            );
            thread::sleep(STEP);
        }
    }

    /// Sets the page's size in pixels.
    pub fn resize(&self, width: u32, height: u32) {
        self.developer(
            "Emulation.setDeviceMetricsOverride",
            &json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false }),
        );
    }

    /// Sets the system's preferred colour scheme: dark or light.
    pub fn darken(&self, is_dark: bool) {
        let value = if is_dark { "dark" } else { "light" };
        self.developer(
            "Emulation.setEmulatedMedia",
            &json!({ "features": [{ "name": "prefers-color-scheme", "value": value }] }),
        );
    }

    /// The page as a PNG.
    pub fn picture(&self) -> Vec<u8> {
        let picture = self.query("/screenshot");
        BASE64_STANDARD
            .decode(picture.as_str().expect("a picture is text"))
            .expect("WebDriver writes base64")
    }

    fn developer(&self, command: &str, parameters: &Value) {
        self.command(
            "/goog/cdp/execute",
            &json!({ "cmd": command, "params": parameters }),
        );
    }

    /// The messages of the browser's console since the last call, including reports of a content security policy.
    pub fn console(&self) -> Vec<String> {
        let log = self.command("/se/log", &json!({ "type": "browser" }));
        let lines = log.as_array().cloned().unwrap_or_default();
        lines
            .iter()
            .map(|line| line["message"].as_str().unwrap_or_default().to_owned())
            .collect()
    }
}

/// The value of WebDriver's answer, which must be a success.
fn value(path: &str, answer: Result<Response<Body>, ureq::Error>) -> Value {
    let mut answer = answer.unwrap_or_else(|error| panic!("{path}: {error}"));
    let status = answer.status();
    let value: Value = answer
        .body_mut()
        .with_config()
        .limit(1 << 28)
        .read_json()
        .unwrap_or_else(|error| panic!("{path}: {error}"));
    assert!(status.is_success(), "{path}: {value}");
    value["value"].clone()
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The session ends its browser, so that a failed test leaves no processes.
        if let Err(error) = self.agent.delete(&self.session).call() {
            eprintln!("the browser was not ended: {error}");
        }
        if let Err(error) = self.driver.kill().and_then(|()| self.driver.wait().map(drop)) {
            eprintln!("chromedriver was not ended: {error}");
        }
        if let Err(error) = fs::remove_dir_all(&self.profile) {
            eprintln!("{}: {error}", self.profile.display());
        }
    }
}
