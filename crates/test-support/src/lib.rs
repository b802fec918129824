//! What the tests of several crates share. Only ever a dev-dependency.
//!
//! Linking this crate makes a test program its own shim: commands that it starts through
//! `Launcher::this_program()` run below a copy of the test program, which must act as the shim before the test
//! harness sees its arguments. A constructor that runs before `main` does that.

pub mod agent;
#[cfg(feature = "engine")]
pub mod chain;
pub mod fake_claude;
pub mod live_call;
pub mod loopback;
pub mod picture;
pub mod process;
pub mod programs;
pub mod project;
#[cfg(feature = "settings")]
pub mod settings;
#[cfg(feature = "settings")]
pub mod settings_files;
pub mod signals;
pub mod small_disk;
pub mod suites;
#[cfg(feature = "settings")]
pub mod tiers;
pub mod upstream;

use std::process::ExitCode;

/// The default settings of the repository.
pub const MODELS_TOML: &str = include_str!("../../../models.toml");

/// The prompts of the repository.
#[cfg(feature = "engine")]
pub fn prompts() -> &'static [supervisor_text::prompts::Prompt] {
    use std::path::{Path, PathBuf};
    use std::sync::OnceLock;

    use supervisor_text::prompts::Prompt;

    fn files(dir: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let (dirs, mut found): (Vec<PathBuf>, Vec<PathBuf>) =
            entries.partition(|path| path.is_dir());
        found.extend(dirs.iter().flat_map(|dir| files(dir)));
        found
    }

    static PROMPTS: OnceLock<Vec<Prompt>> = OnceLock::new();
    PROMPTS.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../prompts");
        let prompt = |path: PathBuf| {
            let name = path.strip_prefix(&root).unwrap().with_extension("");
            Prompt {
                name: name.display().to_string().leak(),
                text: std::fs::read_to_string(&path).unwrap().leak(),
            }
        };
        files(&root).into_iter().map(prompt).collect()
    })
}

/// Calls a function of a test program before its test harness starts. Tests that start their own program again in
/// another role dispatch those roles here, so that no role shows up as a test.
///
/// Like `ctor`, but usable in crates that forbid `unsafe_code`.
#[macro_export]
macro_rules! before_tests {
    ($function:path) => {
        #[used]
        #[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
        #[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
        static BEFORE_TESTS: extern "C" fn() = {
            extern "C" fn call() {
                $function();
            }
            call
        };
    };
}

#[ctor::ctor(unsafe)]
fn act_as_helper_process() {
    live_call::act_if_asked();
    let code = supervisor_workspace::run_if_shim()
        .or_else(supervisor_verify::test_wrapper::run_if_witness);
    if let Some(code) = code {
        std::process::exit(number_of(code));
    }
}

/// `ExitCode::exit_process` is not stable yet.
fn number_of(code: ExitCode) -> i32 {
    (0..=255u8)
        .find(|n| ExitCode::from(*n) == code)
        .map_or(255, i32::from)
}

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
