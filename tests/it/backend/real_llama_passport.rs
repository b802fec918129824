//! A real, very small model in the gym: it fails nearly everything, its passport says so, and the learned policy passes it
//! by with the reason. Needs what `real_llama` needs, and pytest; `tests/interop/backends llama` installs them.

use std::process::Stdio;

use serde_json::Value;

use crate::backend::real_llama::Server;
use crate::support::scenario::Scenario;
use supervisor_test_support::programs::require;

#[test]
#[ignore = "needs llama.cpp and pytest"]
fn learned_policy_skips_failing_real_model() {
    let server = Server::with_window(4096);
    require(&["pytest"]);
    let scenario = Scenario::chain(&["smol", "large"], &[]).settings(&format!(
        "[policy]\nmode = \"learned\"\nminute_usd = 0.4\n[backends.llama]\nkind = \"openai\"\ntier = \"local\"\nbase_url = \"{}\"\n\
         models = [\"smol\"]\n[models.smol]\ncontext = 4096\nlimit_s = 20\nmax_tokens = 256\nprice_in = 0.0\nprice_out = 0.0\n\
         [models.large]\nprice_in = 3.0\nprice_out = 15.0\n",
        server.url
    ));
    let run = |arguments: &[&str]| {
        let output = scenario
            .command()
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {err}");
        (String::from_utf8(output.stdout).unwrap(), err)
    };
    let (told, story) = run(&["gym", "--model", "smol", "--tracks", "python", "--json"]);
    crate::backend::real_llama_chain::show(&[story, told.clone()]);
    let report: Value = serde_json::from_str(&told).unwrap();
    let smol = &report["models"][0];
    // One that writes without an end is cut off or runs out of time, which is an outcome like any other.
    assert_eq!(
        (report["ended"].as_str(), smol["judged"].as_u64()),
        (Some("done"), Some(8)),
        "{smol:#}"
    );
    assert_eq!(smol["accepted"].as_u64(), Some(0), "{smol:#}");
    let (explained, _) = run(&["explain", "tdd_green"]);
    crate::backend::real_llama_chain::show(std::slice::from_ref(&explained));
    assert!(
        explained.contains("passport") && explained.contains("`smol` is skipped: accepted in 0 of"),
        "{explained}"
    );
    let doctor = scenario
        .command()
        .arg("doctor")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(doctor.contains("smol: accepted 0 of 8"), "{doctor}");
}
