//! A real browser without a window, driven as WebDriver says.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use serde_json::{Value, json};
use supervisor_test_support::programs::require;

pub(super) struct Browser {
    driver: Child,
    session: String,
    client: reqwest::Client,
    _profile: tempfile::TempDir,
}

impl Browser {
    pub(super) async fn start() -> Self {
        require(&["chromedriver", "chromium"]);
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = lines.map_while(Result::ok).find_map(|line| {
            line.split("started successfully on port ")
                .nth(1)
                .map(|port| port.trim_end_matches('.').to_owned())
        });
        let port = port.expect("chromedriver did not start");
        // The client wants to know whose TLS it has, also where it speaks none.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // No proxy of the environment stands between us and this machine.
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let profile = tempfile::tempdir().unwrap();
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-quic",
            "--window-size=1200,900",
        ];
        let arguments: Vec<String> = arguments
            .iter()
            .map(ToString::to_string)
            .chain([format!("--user-data-dir={}", profile.path().display())])
            .collect();
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:loggingPrefs": {"browser": "ALL"},
            "goog:chromeOptions": {"binary": "/usr/bin/chromium", "args": arguments},
        }}});
        let mut browser = Self {
            driver,
            session: format!("http://127.0.0.1:{port}/session"),
            client,
            _profile: profile,
        };
        let made = browser.post("", &wanted).await;
        let id = made["sessionId"]
            .as_str()
            .unwrap_or_else(|| panic!("no session: {made}"));
        browser.session = format!("{}/{id}", browser.session);
        browser
    }

    pub(super) async fn open(&self, file: &Path) {
        self.post(
            "/url",
            &json!({"url": format!("file://{}", file.display())}),
        )
        .await;
    }

    /// The script's `return` value. It runs beside the page, whose own policy does not bind it.
    pub(super) async fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({"script": script, "args": []}))
            .await
    }

    /// Chooses one of a list; the answer says how many calls are left.
    pub(super) async fn choose(&self, id: &str, value: &str) -> String {
        let script = format!(
            "const list = document.getElementById('{id}'); list.value = '{value}';
             list.dispatchEvent(new Event('input', {{bubbles: true}})); return document.getElementById('shown').textContent"
        );
        self.run(&script).await.as_str().unwrap().to_owned()
    }

    pub(super) async fn resize(&self, width: u32, height: u32) {
        self.post("/window/rect", &json!({"width": width, "height": height}))
            .await;
    }

    /// The colours that the person prefers: `light` or `dark`.
    pub(super) async fn prefer(&self, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        let wanted = json!({"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}});
        self.post("/goog/cdp/execute", &wanted).await;
    }

    /// What the window shows, as PNG.
    pub(super) async fn picture(&self) -> Vec<u8> {
        let answer = self
            .client
            .get(format!("{}/screenshot", self.session))
            .send()
            .await
            .unwrap();
        let answer = answer.json::<Value>().await.unwrap();
        base64::engine::general_purpose::STANDARD
            .decode(answer["value"].as_str().unwrap())
            .unwrap()
    }

    /// The console has said nothing, and no dialogue is open.
    pub(super) async fn assert_silent(&self) {
        assert_eq!(
            self.post("/se/log", &json!({"type": "browser"})).await,
            json!([])
        );
    }

    pub(super) async fn end(mut self) {
        let _ = self.client.delete(&self.session).send().await;
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let answer = self
            .client
            .post(format!("{}{path}", self.session))
            .json(body)
            .send()
            .await
            .unwrap();
        let (status, answer) = (answer.status(), answer.json::<Value>().await.unwrap());
        assert!(status.is_success(), "{path} {body}: {answer}");
        answer["value"].clone()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
