//! Texts of the repository that are compiled into the program: the default settings, the prompts, the plugin's skills.
//! The crates take them as arguments, so that the files can stay where users look for them.

use std::path::PathBuf;

use supervisor_settings::Sources;
use supervisor_skills::App;
use supervisor_text::prompts::Prompt;

/// Every default setting.
pub const MODELS_TOML: &str = include_str!("../models.toml");

macro_rules! prompts {
    ($($name:literal),* $(,)?) => {
        &[$(Prompt { name: $name, text: include_str!(concat!("../prompts/", $name, ".md")) }),*]
    };
}

/// Every file in `prompts/`, by name.
pub static PROMPTS: &[Prompt] = prompts![
    "checkpoint",
    "debug",
    "retrospective",
    "review",
    "rules",
    "spec",
    "tdd/green",
    "tdd/red",
    "tdd/refactor",
    "tdd/repair",
    "tdd/reply_in_place",
    "tdd/reply_json",
    "tdd/reply_search_replace",
    "tdd/reply_whole",
    "tdd/twins",
    "trainer/reader",
    "trainer/writer",
    "verifier",
    "verifier_words",
];

macro_rules! plugin_skills {
    ($($name:literal),* $(,)?) => {
        &[$(include_str!(concat!("../plugins/supervisor/skills/", $name, "/SKILL.md"))),*]
    };
}

/// The text of every `SKILL.md` of the plugin.
pub static PLUGIN_SKILLS: &[&str] =
    plugin_skills!["debug-failure", "review-changes", "spec", "tdd", "wrap-up",];

/// The settings of this process: its variables, and the file named by the user or the one in the config directory.
pub fn sources(config: Option<PathBuf>) -> Sources {
    Sources::of_process(MODELS_TOML, config)
}

/// Everything calls need, from this process.
pub fn app(config: Option<PathBuf>) -> App {
    App::of_process(sources(config), PROMPTS).with_executions(crate::commands::remote::execution)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use supervisor_text::prompts::Prompts;

    use super::*;

    #[test]
    fn every_prompt_file_is_in_the_table() {
        assert_eq!(
            PROMPTS
                .iter()
                .map(|p| p.name.to_owned())
                .collect::<Vec<_>>(),
            names_below("prompts", "md"),
        );
    }

    #[test]
    fn every_skill_of_the_plugin_is_in_the_table() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("plugins/supervisor/skills");
        assert_eq!(
            PLUGIN_SKILLS.len(),
            std::fs::read_dir(folder).expect("the folder").count()
        );
    }

    #[test]
    fn every_built_in_prompt_has_valid_slots() {
        let prompts = Prompts::new(PROMPTS, None);
        for prompt in PROMPTS {
            let template = prompts.load(prompt.name).expect("built in");
            template.slots().unwrap_or_else(|error| panic!("{error}"));
        }
    }

    #[test]
    fn verifier_prompt_has_the_slots_it_is_filled_with() {
        let prompts = Prompts::new(PROMPTS, None);
        assert_eq!(
            prompts
                .load("verifier")
                .expect("built in")
                .slots()
                .expect("valid"),
            [
                "nonce",
                "discipline",
                "task",
                "diff",
                "test_output",
                "flags"
            ]
        );
    }

    fn names_below(folder: &str, extension: &str) -> Vec<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let (mut names, mut dirs) = (Vec::new(), vec![root.clone()]);
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(dir).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    dirs.push(path);
                } else if path.extension().is_some_and(|end| end == extension) {
                    let name = path.strip_prefix(&root).expect("below").with_extension("");
                    names.push(name.display().to_string());
                }
            }
        }
        names.sort();
        names
    }
}
