//! Prompt templates. They are Markdown files in `prompts/`, compiled in. A file of the same name in
//! the user's own folder overrides the built-in one.

mod fence;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

pub use fence::{Nonce, fence};

use crate::words;

/// Longer than any prompt a person writes: the setting points at the wrong file.
const MAX_BYTES: u64 = 256 * 1024;

/// A prompt as it was compiled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prompt {
    pub name: &'static str,
    pub text: &'static str,
}

/// All prompts: the built-in texts, and the folder whose files replace them.
#[derive(Debug, Clone, Default)]
pub struct Prompts {
    built_in: &'static [Prompt],
    folder: Option<PathBuf>,
}

/// A loaded prompt whose slots are not filled yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    name: &'static str,
    text: Cow<'static, str>,
    origin: PromptOrigin,
}

/// Where the text comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptOrigin {
    BuiltIn,
    File(PathBuf),
}

#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    #[error("this program has no prompt `{name}`")]
    NotBuiltIn { name: String },
    #[error(
        "there is no folder `{}` with prompts; create it, or correct `prompts_dir`", .0.display()
    )]
    NoFolder(PathBuf),
    #[error(
        "the prompt `{path}` cannot be used: {source}; fix it, or remove it to use the built-in one"
    )]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("the prompt `{path}` {what}; fix it, or remove it to use the built-in one")]
    Broken { path: PathBuf, what: &'static str },
    #[error("{file}:{line}: `{{{{` opens no slot; write a slot as `{{{{task}}}}`")]
    Malformed { file: String, line: usize },
    #[error("{file}: there is no slot `{slot}`; the slots are {known}{}", did_you_mean(.near.as_deref()))]
    Unknown {
        file: String,
        slot: String,
        known: String,
        near: Option<String>,
    },
    #[error("{file}: the slot `{slot}` is missing; without it the model is not told")]
    Missing { file: String, slot: String },
}

impl Prompts {
    pub fn new(built_in: &'static [Prompt], folder: Option<PathBuf>) -> Self {
        Self { built_in, folder }
    }

    pub fn built_in(&self) -> &'static [Prompt] {
        self.built_in
    }

    /// Everything that is wrong with the user's prompts.
    pub fn problems(&self) -> Vec<PromptError> {
        if let Err(error) = self.check_folder() {
            return vec![error];
        }
        let load = |prompt: &Prompt| self.load(prompt.name).err();
        self.built_in.iter().filter_map(load).collect()
    }

    fn check_folder(&self) -> Result<(), PromptError> {
        match &self.folder {
            Some(folder) if !folder.is_dir() => Err(PromptError::NoFolder(folder.clone())),
            _ => Ok(()),
        }
    }

    /// Loads the user's text if there is one, else the built-in one. Both must have the same slots.
    pub fn load(&self, name: &str) -> Result<Template, PromptError> {
        let Some(prompt) = self.built_in.iter().find(|prompt| prompt.name == name) else {
            return Err(PromptError::NotBuiltIn {
                name: name.to_owned(),
            });
        };
        let built_in = Template {
            name: prompt.name,
            text: Cow::Borrowed(prompt.text),
            origin: PromptOrigin::BuiltIn,
        };
        let Some(folder) = &self.folder else {
            return Ok(built_in);
        };
        self.check_folder()?;
        let path = folder.join(format!("{name}.md"));
        let Some(text) = read(&path)? else {
            return Ok(built_in);
        };
        let own = Template {
            name: prompt.name,
            text: Cow::Owned(text),
            origin: PromptOrigin::File(path),
        };
        own.check_slots(&built_in.slots()?.into_iter().collect())?;
        Ok(own)
    }
}

impl Template {
    /// Which text was used, for the log.
    pub fn origin(&self) -> &PromptOrigin {
        &self.origin
    }

    /// Fills the slots. Values are data: braces in them have no meaning.
    pub fn fill(&self, values: &[(&str, &str)]) -> Result<String, PromptError> {
        self.check_slots(&values.iter().map(|(slot, _)| *slot).collect())?;
        let mut out = String::with_capacity(
            self.text.len() + values.iter().map(|(_, v)| v.len()).sum::<usize>(),
        );
        for part in self.parts() {
            match part? {
                Part::Text(text) => out.push_str(text),
                Part::Slot(slot) => {
                    let value = values.iter().find(|(name, _)| *name == slot);
                    out.push_str(value.expect("the slots were compared above").1);
                }
            }
        }
        Ok(out)
    }

    /// Slot names without duplicates, in order of appearance.
    pub fn slots(&self) -> Result<Vec<&str>, PromptError> {
        let mut slots = Vec::new();
        for part in self.parts() {
            match part? {
                Part::Slot(slot) if !slots.contains(&slot) => slots.push(slot),
                Part::Slot(_) | Part::Text(_) => {}
            }
        }
        Ok(slots)
    }

    /// Checks that the template has exactly these slots.
    fn check_slots(&self, known: &BTreeSet<&str>) -> Result<(), PromptError> {
        let slots = self.slots()?;
        if let Some(slot) = slots.iter().find(|slot| !known.contains(*slot)) {
            return Err(PromptError::Unknown {
                file: self.file(),
                slot: (*slot).to_owned(),
                known: words::one_of(known.iter().copied()),
                near: words::did_you_mean(slot, known.iter().copied()).map(str::to_owned),
            });
        }
        match known.iter().find(|slot| !slots.contains(*slot)) {
            Some(slot) => Err(PromptError::Missing {
                file: self.file(),
                slot: (*slot).to_owned(),
            }),
            None => Ok(()),
        }
    }

    fn parts(&self) -> impl Iterator<Item = Result<Part<'_>, PromptError>> {
        let mut rest = &*self.text;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let Some(inside) = rest.strip_prefix("{{") else {
                let (text, after) = rest.split_at(rest.find("{{").unwrap_or(rest.len()));
                rest = after;
                return Some(Ok(Part::Text(text)));
            };
            let slot = inside
                .find("}}")
                .map(|end| (inside[..end].trim(), &inside[end + 2..]));
            match slot.filter(|(name, _)| is_slot_name(name)) {
                Some((name, after)) => {
                    rest = after;
                    Some(Ok(Part::Slot(name)))
                }
                None => {
                    let line = self.text[..self.text.len() - rest.len()]
                        .matches('\n')
                        .count()
                        + 1;
                    rest = "";
                    Some(Err(PromptError::Malformed {
                        file: self.file(),
                        line,
                    }))
                }
            }
        })
    }

    fn file(&self) -> String {
        match &self.origin {
            PromptOrigin::BuiltIn => format!("prompts/{}.md", self.name),
            PromptOrigin::File(path) => path.display().to_string(),
        }
    }
}

impl fmt::Display for PromptOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built-in"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

enum Part<'a> {
    Text(&'a str),
    Slot(&'a str),
}

fn is_slot_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Reads the user's file, if there is one. An unusable file is an error and never ignored.
fn read(path: &Path) -> Result<Option<String>, PromptError> {
    let unreadable = |source| PromptError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let broken = |what| PromptError::Broken {
        path: path.to_owned(),
        what,
    };
    match std::fs::metadata(path) {
        // Check before opening: opening a pipe would block.
        Ok(meta) if !meta.is_file() => return Err(broken("is not a file")),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {
            return Ok(None);
        }
        Err(error) => return Err(unreadable(error)),
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(broken("is longer than 256 KiB"));
    }
    let text = String::from_utf8(bytes).map_err(|_| broken("is not UTF-8"))?;
    if text.trim().is_empty() {
        return Err(broken("is empty"));
    }
    Ok(Some(text))
}

fn did_you_mean(near: Option<&str>) -> String {
    near.map(|near| format!("; did you mean `{near}`?"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
