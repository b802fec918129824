//! The page as it looks: light, dark, on a phone, with many calls and with none. The pictures lie in `target/pictures`;
//! with `SUPERVISOR_UPDATE_DOCS=1` the first is also the one in `docs/report.png`.

use std::fs;
use std::path::Path;

use super::browser::Browser;
use super::{Place, made};

#[tokio::test]
#[ignore = "needs chromium"]
async fn page_renders_light_dark_and_on_a_phone() {
    let browser = Browser::start().await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/pictures");
    fs::create_dir_all(&folder).unwrap();
    let mut shades = Vec::new();
    for (name, calls, scheme, (width, height)) in [
        ("light", 5_000, "light", (1200, 1000)),
        ("dark", 5_000, "dark", (1200, 1000)),
        ("phone", 5_000, "light", (400, 1600)),
        ("one", 1, "light", (1200, 1000)),
        ("none", 0, "dark", (1200, 600)),
    ] {
        let place = Place::with(&made::calls(calls));
        browser.resize(width, height).await;
        browser.prefer(scheme).await;
        browser.open(&place.page()).await;
        if calls > 1 {
            // One call open, as a reader has it.
            browser
                .run("document.querySelector('article.call .head').click()")
                .await;
        }
        let colours =
            "const s = getComputedStyle(document.body); return s.backgroundColor + ' ' + s.color";
        shades.push(browser.run(colours).await);
        let picture = browser.picture().await;
        assert!(
            picture.starts_with(b"\x89PNG") && picture.len() > 5_000,
            "{name}: {} bytes",
            picture.len()
        );
        fs::write(folder.join(format!("{name}.png")), &picture).unwrap();
        if name == "light" && std::env::var_os("SUPERVISOR_UPDATE_DOCS").is_some() {
            fs::write(
                concat!(env!("CARGO_MANIFEST_DIR"), "/docs/report.png"),
                &picture,
            )
            .unwrap();
        }
        browser.assert_silent().await;
    }
    assert_ne!(shades[0], shades[1], "dark is another picture than light");
    browser.end().await;
}
