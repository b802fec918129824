//! `spawn`: compares starting a program through the shim with a plain spawn, alternating. `flood`:
//! sends a gigabyte through the output capture.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use supervisor_process::{CommandSpec, End, Launcher};
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 300;
const FLOOD_BYTES: u64 = 1_000_000_000;

pub(crate) fn spawn() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let launcher = launcher();
    let stop = CancellationToken::new();
    let (mut plain, mut shim, mut end) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        plain.push(timed(|| {
            runtime.block_on(async {
                let out = tokio::process::Command::new("/bin/true")
                    .env_clear()
                    .output()
                    .await;
                assert!(out.unwrap().status.success());
            });
        }));
        shim.push(timed(|| {
            let finished =
                runtime.block_on(launcher.run(CommandSpec::new(["/bin/true"], "/"), &stop));
            assert_eq!(finished.end, End::Exited(0));
        }));
    }
    for _ in 0..ROUNDS / 3 {
        let (sink, mut lines) = supervisor_process::lines();
        let mut spec = CommandSpec::new(["/bin/sh", "-c", "echo up; exec sleep 60"], "/");
        spec.env = BTreeMap::from([("PATH".into(), std::env::var_os("PATH").unwrap_or_default())]);
        spec.on_line = Some(sink);
        let stop = CancellationToken::new();
        end.push(runtime.block_on(async {
            let asked = async {
                lines.next().await;
                stop.cancel();
                Instant::now()
            };
            let (finished, asked) = tokio::join!(launcher.run(spec, &stop), asked);
            assert_eq!(finished.end, End::Cancelled);
            asked.elapsed()
        }));
    }
    let floor = show("plain spawn of `true`, output captured", &mut plain, None);
    show(
        "the same through the shim, tree swept",
        &mut shim,
        Some(floor),
    );
    show("cancel to an ended tree", &mut end, None);
}

pub(crate) fn flood() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let script = format!("yes 0123456789abcde | head -c {FLOOD_BYTES}");
    let mut spec = CommandSpec::new(["/bin/sh", "-c", &script], "/");
    spec.env = BTreeMap::from([("PATH".into(), std::env::var_os("PATH").unwrap_or_default())]);
    let floor = timed(|| {
        let status = std::process::Command::new("/bin/sh")
            .args(["-c", &format!("{script} | cat >/dev/null")])
            .status();
        assert!(status.unwrap().success());
    });
    let before = memory("VmRSS:");
    let took = timed(|| {
        let finished = runtime.block_on(launcher().run(spec, &CancellationToken::new()));
        assert_eq!(
            (finished.end, finished.stdout.total()),
            (End::Exited(0), FLOOD_BYTES)
        );
    });
    println!(
        "1 GB into `cat`             {:>8.0} ms",
        floor.as_secs_f64() * 1e3
    );
    println!(
        "1 GB through the capture    {:>8.0} ms   {:.2} × the floor, memory grew by {:.1} MB at its peak (bound: 16)",
        took.as_secs_f64() * 1e3,
        took.as_secs_f64() / floor.as_secs_f64(),
        memory("VmHWM:").saturating_sub(before) as f64 / 1e6,
    );
}

fn launcher() -> Launcher {
    Launcher::at(crate::program())
}

fn timed(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

/// Prints p50 and p99 and returns p50.
fn show(what: &str, times: &mut [Duration], floor: Option<Duration>) -> Duration {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let (p50, p99) = (at(0.5), at(0.99));
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let comparison = floor.map_or(String::new(), |floor| {
        format!(
            "   {:.2} × the floor, +{:.2} ms",
            ms(p50) / ms(floor),
            ms(p50) - ms(floor)
        )
    });
    println!(
        "{what:<40} p50 {:>6.2} ms   p99 {:>6.2} ms{comparison}",
        ms(p50),
        ms(p99)
    );
    p50
}

/// Reads a line of `/proc/self/status` in bytes; 0 if it does not exist.
fn memory(line: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let found = status.lines().find_map(|l| l.strip_prefix(line));
    found
        .and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}
