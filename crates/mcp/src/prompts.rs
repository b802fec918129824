//! The plugin's skills as MCP prompts, for clients without plugins. The texts in
//! `plugins/supervisor/skills/` are compiled in, so that both stay the same.

use rmcp::model::{
    ErrorData, GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role,
};
use serde::Deserialize;
use serde_json::Value;

use supervisor_text::words;

/// Placeholder for the user's request in a skill.
const PLACEHOLDER: &str = "$ARGUMENTS";
/// Name of the only argument.
const ARGUMENT: &str = "request";
/// Maximum bytes of the user's request.
const MAX_REQUEST_BYTES: usize = 20_000;

/// A parsed skill file.
struct SkillText {
    front: SkillFrontMatter,
    body: &'static str,
}

/// Front matter of a skill. Fields that only the plugin needs are ignored.
#[derive(Debug, Deserialize)]
struct SkillFrontMatter {
    name: String,
    description: String,
    #[serde(rename = "argument-hint", default)]
    hint: String,
}

/// All skills as prompts, sorted by name. Parsed on each request.
pub(super) fn listed(plugin_skills: &[&'static str]) -> Vec<Prompt> {
    let to_prompt = |skill: SkillText| {
        let argument = PromptArgument::new(ARGUMENT)
            .with_description(skill.front.hint)
            .with_required(false);
        Prompt::new(
            skill.front.name,
            Some(skill.front.description),
            Some(vec![argument]),
        )
    };
    skills(plugin_skills).into_iter().map(to_prompt).collect()
}

/// Renders one prompt with the user's request filled in.
pub(super) fn render(
    plugin_skills: &[&'static str],
    name: &str,
    arguments: Option<&JsonObject>,
) -> Result<GetPromptResult, ErrorData> {
    let all = skills(plugin_skills);
    let names = || all.iter().map(|skill| skill.front.name.as_str());
    let Some(skill) = all.iter().find(|skill| skill.front.name == name) else {
        let mut message = format!(
            "unknown prompt `{}`",
            words::cut_end(&words::plain(name), 100)
        );
        if let Some(near) = words::did_you_mean(name, names()) {
            message += &format!("; did you mean `{near}`?");
        }
        message += &format!("; known: {}", words::one_of(names()));
        return Err(ErrorData::invalid_params(message, None));
    };
    let text = skill.body.replacen(PLACEHOLDER, &request_of(arguments)?, 1);
    let message = PromptMessage::new_text(Role::User, text.trim());
    let mut result = GetPromptResult::new(vec![message]);
    result.description = Some(skill.front.description.clone());
    Ok(result)
}

/// Joins all arguments whatever their names, since a prompt takes only one.
fn request_of(arguments: Option<&JsonObject>) -> Result<String, ErrorData> {
    let mut given = Vec::new();
    for (name, value) in arguments.into_iter().flatten() {
        match value {
            Value::String(text) => given.push(text.trim()),
            Value::Null => {}
            _ => {
                let name = words::short(name, 100);
                return Err(ErrorData::invalid_params(
                    format!("argument `{name}` must be a text"),
                    None,
                ));
            }
        }
    }
    let given = given.join(" ");
    // Without a request, the conversation tells what is meant.
    let request = if given.trim().is_empty() {
        "what this conversation is about"
    } else {
        given.as_str()
    };
    Ok(words::cut_middle(request, MAX_REQUEST_BYTES).into_owned())
}

fn skills(plugin_skills: &[&'static str]) -> Vec<SkillText> {
    let mut all: Vec<SkillText> = plugin_skills
        .iter()
        .filter_map(|text| parse_skill(text))
        .collect();
    all.sort_by(|a, b| a.front.name.cmp(&b.front.name));
    all
}

fn parse_skill(text: &'static str) -> Option<SkillText> {
    let (front, body) = text.strip_prefix("---\n")?.split_once("\n---\n")?;
    Some(SkillText {
        front: serde_saphyr::from_str(front).ok()?,
        body,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TDD: &str = "---\nname: tdd\ndescription: d\nallowed-tools: x\n---\nBuild this test first: $ARGUMENTS\n";

    #[test]
    fn a_skill_without_front_matter_is_left_out() {
        let names: Vec<String> = listed(&[TDD, "no front matter"])
            .into_iter()
            .map(|prompt| prompt.name)
            .collect();
        assert_eq!(names, ["tdd"]);
    }

    #[test]
    fn the_users_words_are_inserted_once_and_not_expanded() {
        let given = json!({"request": "add $ARGUMENTS {{task}}"});
        let result = render(&[TDD], "tdd", given.as_object()).expect("there");
        let text = json!(result.messages[0].content)["text"]
            .as_str()
            .expect("text")
            .to_owned();
        assert_eq!(text, "Build this test first: add $ARGUMENTS {{task}}");
    }
}
