//! A real, very small model in the gym: it fails nearly everything, its passport says so, and the learned policy passes it
//! by with the reason. Needs what `real_llama` needs, and pytest; `tests/interop/backends llama` runs this too.

use std::process::Stdio;

use serde_json::Value;

use crate::backend::real_llama::Server;
use crate::support::tdd_bench::Bench;
use crate::verify::ecosystems::skips;

#[test]
#[ignore = "a small model on two cores takes many minutes: run it by hand"]
fn a_real_small_model_gets_a_passport_and_the_learned_policy_skips_it() {
    let Some(server) = Server::with_window(8192) else { return };
    if skips(&["pytest"]) {
        return;
    }
    let bench = Bench::chain(&["smol", "large"], &[]).settings(&format!(
        "[policy]\nmode = \"learned\"\n[backends.llama]\nkind = \"openai\"\ntier = \"local\"\nbase_url = \"{}\"\n\
         models = [\"smol\"]\n[models.smol]\ncontext = 8192\nlimit_s = 60\nprice_in = 0.0\nprice_out = 0.0\n\
         [models.large]\nprice_in = 3.0\nprice_out = 15.0\n",
        server.url
    ));
    let run = |arguments: &[&str]| {
        let output = bench.command().args(arguments).stdin(Stdio::null()).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {err}");
        (String::from_utf8(output.stdout).unwrap(), err)
    };
    // A model of this size may write without an end. That shuts it for a while, and the next gym goes on from there.
    let measure = || -> Value {
        let (told, story) = run(&["gym", "--model", "smol", "--tracks", "python", "--json"]);
        crate::backend::real_llama_chain::show(&[story, told.clone()]);
        let report: Value = serde_json::from_str(&told).unwrap();
        report["models"][0].clone()
    };
    let judged = |smol: &Value| smol["judged"].as_u64().unwrap();
    let smol = (0..5).map(|_| measure()).find(|smol| judged(smol) >= 4).expect("too little of it could be judged");
    assert!(judged(&smol) <= 12 && smol["accepted"].as_u64().unwrap() <= 1, "{smol:#}");
    let (explained, _) = run(&["explain", "tdd_green"]);
    crate::backend::real_llama_chain::show(std::slice::from_ref(&explained));
    assert!(explained.contains("passport") && explained.contains("`smol` is skipped: accepted in 0 of"), "{explained}");
    let doctor = bench.command().arg("doctor").stdin(Stdio::null()).output().unwrap();
    let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(doctor.contains("smol: accepted") && doctor.contains("asked last or not at all"), "{doctor}");
}
