//! The measured record ("passport") of a model, stored per digest in the state directory. Written
//! by the gym and by every call; read by the policy, `tier`, `explain` and `doctor`. There is one
//! file per model, and several processes may write it.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::results::{GymMode, GymOutcome};
use super::verifier::VerifierRecord;
use supervisor_engine::policy::{
    CountedTry, MeasuredSamples, TaskClass, TurnRecord, rate_interval, unable_note,
};
use supervisor_engine::services::{ModelHistory, TierHints};
use supervisor_engine::{Attempt, Cause};
use supervisor_settings::{Repair, Worker};
use supervisor_text::words;
use supervisor_workspace::state::StateDir;

/// Current version; fields may be added, never renamed.
const VERSION: u32 = 1;
/// Directory below the state directory.
const PASSPORTS: &str = "passports";
/// A larger file is not a passport.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Minimum number of turns of a skill before a model may be called unfit for it.
pub const ENOUGH_TURNS: u32 = 8;

/// All passports of one model name, one per digest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct PassportFile {
    v: u32,
    model: String,
    /// Newest last.
    passports: Vec<Passport>,
}

/// The record of one model with one set of weights.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Passport {
    /// Identifies the weights, if the server reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// RFC 3339, UTC.
    pub updated: String,
    /// When the gym last measured it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gym_at: Option<String>,
    #[serde(default)]
    pub classes: Vec<ClassRecord>,
    /// By edit format.
    #[serde(default)]
    pub formats: BTreeMap<String, FormatRecord>,
    /// What the gym measured of each way to ask it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<ModeRecord>,
    /// Answers in the gym and in daily use, and how many of them were cheats.
    #[serde(default)]
    pub turns: u32,
    #[serde(default)]
    pub cheats: u32,
    /// Questions it could not take on: too long, or tools required.
    #[serde(default)]
    pub incapable: u32,
    /// Answers that were not finished within the time limit.
    #[serde(default)]
    pub unfinished: u32,
    #[serde(default)]
    pub tokens_out: u64,
    /// Time in which these tokens were generated.
    #[serde(default)]
    pub generate_s: f64,
    /// Shortest time of an answer for which the model had to be loaded first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold_s: Option<f64>,
    /// The longest question, in tokens, of which the model could repeat a word from the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_tokens: Option<u32>,
    /// Its record as a verifier, if the gym measured it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verifier: Option<VerifierRecord>,
}

/// One kind of task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassRecord {
    pub class: TaskClass,
    pub turns: TurnRecord,
}

/// Tasks that were given in one way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModeRecord {
    #[serde(flatten)]
    pub mode: GymMode,
    pub turns: TurnRecord,
    pub tokens: u64,
    /// Accepted answers with hidden tests, and how many of them failed those.
    pub with_hidden: u32,
    pub overfit: u32,
}

/// Answers in one edit format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct FormatRecord {
    pub asked: u32,
    pub unreadable: u32,
    pub accepted: u32,
}

/// Why a passport cannot be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum PassportError {
    #[error("the passport `{path}` cannot be used: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("`{path}` is not a passport: {why}; remove it, and it is measured anew")]
    Damaged { path: PathBuf, why: String },
}

/// The passports of this user.
#[derive(Debug, Clone)]
pub struct PassportBook {
    dir: PathBuf,
}

impl PassportBook {
    /// Creates no files until something is stored.
    pub fn of(state: &StateDir) -> Self {
        Self {
            dir: state.path().join(PASSPORTS),
        }
    }

    /// The newest passport of a model, if there is one.
    pub fn newest(&self, model: &str) -> Result<Option<Passport>, PassportError> {
        Ok(self.read(model)?.passports.pop())
    }

    /// The passport of these weights. Passports of other weights say nothing about them.
    pub fn of_digest(
        &self,
        model: &str,
        digest: Option<&str>,
    ) -> Result<Option<Passport>, PassportError> {
        let file = self.read(model)?;
        Ok(file
            .passports
            .into_iter()
            .rev()
            .find(|passport| passport.digest.as_deref() == digest))
    }

    /// Updates the passport of these weights, which becomes the newest. Concurrent updates wait.
    pub fn update(
        &self,
        model: &str,
        digest: DigestChoice<'_>,
        change: impl FnOnce(&mut Passport),
    ) -> Result<(), PassportError> {
        let path = self.path(model);
        let fail = |source: io::Error| PassportError::Io {
            path: path.clone(),
            source,
        };
        create_private_dir(&self.dir).map_err(fail)?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(path.with_extension("lock"))
            .map_err(fail)?;
        lock.lock().map_err(fail)?;
        // Move an unreadable file aside, so that learning continues.
        let mut file = match self.read(model) {
            Ok(file) => file,
            Err(PassportError::Damaged { .. }) => {
                fs::rename(&path, path.with_extension("damaged")).map_err(fail)?;
                PassportFile::default()
            }
            Err(error) => return Err(error),
        };
        (file.v, file.model) = (VERSION, model.to_owned());
        let at = match digest {
            DigestChoice::Newest => file.passports.len().checked_sub(1),
            DigestChoice::This(digest) => file
                .passports
                .iter()
                .position(|known| known.digest.as_deref() == digest),
        };
        let mut passport = at.map(|at| file.passports.remove(at)).unwrap_or_default();
        if let DigestChoice::This(digest) = digest {
            passport.digest = digest.map(str::to_owned);
        }
        change(&mut passport);
        passport.updated = jiff::Timestamp::now().to_string();
        file.passports.push(passport);
        let text = serde_json::to_vec_pretty(&file).expect("a passport is plain data");
        let written = tempfile::Builder::new()
            .permissions(private_permissions())
            .tempfile_in(&self.dir)
            .and_then(|mut temp| {
                temp.write_all(&text)?;
                temp.as_file().sync_data()?;
                temp.persist(&path).map_err(|error| error.error)
            });
        written.map(drop).map_err(fail)
    }

    /// Adds the outcomes of the gym for one model.
    pub fn add_gym_outcomes(
        &self,
        model: &str,
        digest: Option<&str>,
        outcomes: &[&GymOutcome],
    ) -> Result<(), PassportError> {
        self.update(model, DigestChoice::This(digest), |passport| {
            passport.gym_at = Some(jiff::Timestamp::now().to_string());
            outcomes
                .iter()
                .for_each(|outcome| passport.add_gym(outcome));
        })
    }

    fn read(&self, model: &str) -> Result<PassportFile, PassportError> {
        let path = self.path(model);
        let fail = |source: io::Error| PassportError::Io {
            path: path.clone(),
            source,
        };
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(PassportFile::default());
            }
            Err(error) => return Err(fail(error)),
        };
        let mut text = Vec::new();
        file.take(MAX_FILE_BYTES)
            .read_to_end(&mut text)
            .map_err(fail)?;
        serde_json::from_slice(&text).map_err(|error| PassportError::Damaged {
            path: path.clone(),
            why: words::plain(&error.to_string()).into_owned(),
        })
    }

    /// A readable file name that is unique even for similar model names.
    fn path(&self, model: &str) -> PathBuf {
        let slug: String = model
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .take(60)
            .collect();
        let hash = blake3::hash(model.as_bytes()).to_hex();
        self.dir.join(format!("{slug}-{}.json", &hash[..8]))
    }
}

/// Selects a passport of a model.
#[derive(Debug, Clone, Copy)]
pub enum DigestChoice<'a> {
    /// For daily use, where the server is not asked for its weights.
    Newest,
    This(Option<&'a str>),
}

impl ModelHistory for PassportBook {
    fn turns(&self, model: &str, class: &TaskClass) -> (TurnRecord, TurnRecord) {
        match self.newest(model) {
            Ok(passport) => passport
                .map(|passport| passport.turns_of(class))
                .unwrap_or_default(),
            Err(error) => {
                tracing::warn!("{error}");
                Default::default()
            }
        }
    }

    fn hints(&self, model: &str) -> TierHints {
        let Ok(Some(passport)) = self.newest(model) else {
            return TierHints::default();
        };
        let format = passport
            .best_format()
            .and_then(|word| serde_json::from_value(word.into()).ok());
        TierHints {
            edit_format: format,
            window_tokens: passport.window_tokens,
        }
    }

    fn measured_samples(
        &self,
        model: &str,
        repair: Repair,
        worker: Worker,
    ) -> Vec<MeasuredSamples> {
        let Ok(Some(passport)) = self.newest(model) else {
            return Vec::new();
        };
        let modes = passport.modes.into_iter();
        modes
            .filter(|ModeRecord { mode, .. }| {
                mode.repair == repair && mode.worker.is_none_or(|own| own == worker)
            })
            .map(|record| MeasuredSamples {
                samples: record.mode.samples,
                turns: record.turns,
            })
            .collect()
    }

    fn note(&self, class: &TaskClass, attempts: &[Attempt]) -> Result<(), String> {
        let mut models: Vec<&str> = attempts
            .iter()
            .map(|attempt| attempt.model.as_str())
            .collect();
        models.sort_unstable();
        models.dedup();
        for model in models {
            let own: Vec<&Attempt> = attempts
                .iter()
                .filter(|attempt| attempt.model == model)
                .collect();
            if own.iter().any(|attempt| attempt.was_asked()) {
                let noted = self.update(model, DigestChoice::Newest, |passport| {
                    passport.add_call(class, &own);
                });
                noted.map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }
}

impl Passport {
    /// Turns at tasks of this class, and at all tasks.
    pub fn turns_of(&self, class: &TaskClass) -> (TurnRecord, TurnRecord) {
        let (mut class_record, mut all) = (TurnRecord::default(), TurnRecord::default());
        for record in &self.classes {
            all.add(&record.turns);
            if record.class == *class {
                class_record.add(&record.turns);
            }
        }
        (class_record, all)
    }

    /// Turns at one skill, in one language or in all.
    pub fn turns_at(&self, skill: &str, language: Option<&str>) -> TurnRecord {
        let mut sum = TurnRecord::default();
        let matches = |class: &TaskClass| {
            class.skill == skill && language.is_none_or(|l| class.language == l)
        };
        self.classes
            .iter()
            .filter(|record| matches(&record.class))
            .for_each(|record| sum.add(&record.turns));
        sum
    }

    pub fn tokens_per_second(&self) -> Option<f64> {
        (self.generate_s > 0.0 && self.tokens_out > 0)
            .then(|| self.tokens_out as f64 / self.generate_s)
    }

    /// The best edit format, if at least two were tried often enough.
    pub fn best_format(&self) -> Option<&str> {
        let rate =
            |record: &FormatRecord| f64::from(record.accepted) / f64::from(record.asked.max(1));
        let known: Vec<_> = self
            .formats
            .iter()
            .filter(|(_, record)| record.asked >= ENOUGH_TURNS)
            .collect();
        (known.len() > 1).then(|| {
            known
                .into_iter()
                .max_by(|a, b| rate(a.1).total_cmp(&rate(b.1)))
                .map(|(name, _)| name.as_str())
        })?
    }

    /// Why this model is not worth asking for a skill: enough turns and hardly ever right.
    pub fn unfit_for(&self, skill: &str) -> Option<String> {
        let turns = self.turns_at(skill, None);
        let likely = rate_interval(turns.accepted as usize, turns.judged() as usize);
        (turns.judged() >= ENOUGH_TURNS
            && likely.high < supervisor_engine::policy::WORTH_ASKING + 0.1
            && turns.accepted * 10 < turns.judged() * 3)
            .then(|| {
                format!(
                    "accepted in {} of {} at {skill}{} ({:.0} to {:.0} %)",
                    turns.accepted,
                    words::count(turns.judged() as usize, "turn"),
                    unable_note(turns.unable),
                    likely.low * 100.0,
                    likely.high * 100.0
                )
            })
    }

    /// `accepted 31 of 48 (51–77 %), 24 tokens/s, 0 cheats, digest 1f2e…, gym 2026-11-17`
    pub fn summary(&self) -> String {
        let mut all = TurnRecord::default();
        self.classes
            .iter()
            .for_each(|record| all.add(&record.turns));
        let mut parts = Vec::new();
        if all.judged() == 0 {
            parts.push(String::from("not judged yet"));
        } else {
            let likely = rate_interval(all.accepted as usize, all.judged() as usize);
            parts.push(format!(
                "accepted {} of {} ({:.0} to {:.0} %)",
                all.accepted,
                all.judged(),
                likely.low * 100.0,
                likely.high * 100.0
            ));
        }
        if self.unfinished > 0 {
            parts.push(format!(
                "{} not finished in time",
                words::count(self.unfinished as usize, "answer")
            ));
        }
        if self.incapable > 0 {
            parts.push(format!("{} beyond it or cut off", self.incapable));
        }
        parts.extend(
            self.tokens_per_second()
                .map(|rate| format!("{rate:.0} tokens/s")),
        );
        if self.cheats > 0 {
            parts.push(words::count(self.cheats as usize, "cheat"));
        }
        let unreadable: u32 = self.formats.values().map(|record| record.unreadable).sum();
        if unreadable > 0 {
            parts.push(format!("{unreadable} unreadable"));
        }
        parts.extend(
            self.window_tokens
                .map(|tokens| format!("window {tokens} tokens")),
        );
        parts.extend(
            self.verifier
                .map(|verifier| format!("as a verifier {}", verifier.summary())),
        );
        parts.extend(
            self.digest
                .as_ref()
                .map(|digest| format!("digest {}", words::cut_end(digest, 16))),
        );
        let day = self.gym_at.as_deref().and_then(|at| at.split('T').next());
        parts.push(day.map_or_else(
            || String::from("from daily use"),
            |day| format!("gym {day}"),
        ));
        parts.join(", ")
    }

    fn class_record_mut(&mut self, class: &TaskClass) -> &mut TurnRecord {
        let at = self
            .classes
            .iter()
            .position(|record| record.class == *class)
            .unwrap_or_else(|| {
                self.classes.push(ClassRecord {
                    class: class.clone(),
                    turns: TurnRecord::default(),
                });
                self.classes.len() - 1
            });
        &mut self.classes[at].turns
    }

    fn mode_record_mut(&mut self, mode: GymMode) -> &mut ModeRecord {
        let known = self.modes.iter().position(|record| record.mode == mode);
        let at = known.unwrap_or_else(|| {
            self.modes.push(ModeRecord {
                mode,
                turns: TurnRecord::default(),
                tokens: 0,
                with_hidden: 0,
                overfit: 0,
            });
            self.modes.len() - 1
        });
        &mut self.modes[at]
    }

    fn add_call(&mut self, class: &TaskClass, attempts: &[&Attempt]) {
        if let Some(turn) = TurnRecord::of_turn(attempts.iter().copied()) {
            self.class_record_mut(class).add(&turn);
            self.turns += 1;
        }
        for attempt in attempts
            .iter()
            .filter(|attempt| attempt.was_asked() && !attempt.is_unsent())
        {
            self.cheats += u32::from(attempt.cause == Some(Cause::Tampered));
            self.incapable += u32::from(attempt.cause == Some(Cause::Incapable));
            self.unfinished += u32::from(attempt.unfinished);
            self.add_speed(
                attempt.tokens_out,
                attempt.generate_ms as f64 / 1000.0,
                attempt.warm_start,
            );
        }
    }

    fn add_gym(&mut self, outcome: &GymOutcome) {
        self.cheats += u32::from(outcome.is_cheat());
        for one in &outcome.tries {
            self.incapable += u32::from(one.cause == Some(Cause::Incapable));
            self.unfinished += u32::from(one.unfinished);
            self.add_speed(one.tokens_out, one.generate_s, one.warm);
        }
        if outcome.contradictory {
            return;
        }
        let judged = outcome.tries.iter().filter(|one| one.evidence().is_some());
        let counted = judged.map(|one| CountedTry {
            evidence: one.evidence(),
            usd: one.usd,
            seconds: one.seconds,
        });
        if let Some(turn) = TurnRecord::of_tries(counted) {
            self.class_record_mut(&outcome.class()).add(&turn);
            self.turns += 1;
            let record = self.mode_record_mut(outcome.mode);
            record.turns.add(&turn);
            let tokens = outcome
                .tries
                .iter()
                .flat_map(|one| [one.tokens_in, one.tokens_out]);
            record.tokens += tokens.flatten().sum::<u64>();
            record.with_hidden += u32::from(outcome.hidden_passed.is_some());
            record.overfit += u32::from(outcome.hidden_passed == Some(false));
            let unreadable = outcome
                .tries
                .iter()
                .filter(|one| one.cause == Some(Cause::Unreadable))
                .count();
            let format = self.formats.entry(outcome.edit_format.clone()).or_default();
            format.asked += u32::try_from(outcome.tries.len()).unwrap_or(u32::MAX);
            format.unreadable += u32::try_from(unreadable).unwrap_or(u32::MAX);
            format.accepted += turn.accepted;
        }
    }

    fn add_speed(&mut self, tokens_out: Option<u64>, generate_s: f64, warm: Option<bool>) {
        if warm == Some(false) {
            self.cold_s = Some(
                self.cold_s
                    .map_or(generate_s, |known| known.min(generate_s)),
            );
        } else if let Some(tokens) = tokens_out.filter(|_| generate_s > 0.0) {
            self.tokens_out = self.tokens_out.saturating_add(tokens);
            self.generate_s += generate_s;
        }
    }
}

fn create_private_dir(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
}

fn private_permissions() -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt as _;
    fs::Permissions::from_mode(0o600)
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::outcome;
    use super::*;
    use supervisor_engine::policy::TaskSize;

    #[test]
    fn each_mode_is_kept_for_the_choice_of_samples() {
        let dir = tempfile::tempdir().expect("a directory");
        let book = book(dir.path());
        let by = |worker, samples, repair, causes: &[Cause]| GymOutcome {
            mode: GymMode {
                samples,
                repair,
                worker,
            },
            ..outcome("go/a", "m", causes)
        };
        let in_mode =
            |samples, repair, causes: &[Cause]| by(Some(Worker::Text), samples, repair, causes);
        let outcomes = [
            by(Some(Worker::Agent), 2, Repair::Cause, &[Cause::Accepted]),
            in_mode(1, Repair::Cause, &[Cause::Rejected, Cause::Accepted]),
            in_mode(4, Repair::Cause, &[Cause::Accepted]),
            in_mode(4, Repair::Plain, &[Cause::Rejected]),
        ];
        let all: Vec<&GymOutcome> = outcomes.iter().collect();
        book.add_gym_outcomes("m", None, &all).expect("stored");
        let measured = book.measured_samples("m", Repair::Cause, Worker::Text);
        let figures: Vec<_> = measured
            .iter()
            .map(|one| (one.samples, one.turns.accepted, one.turns.at_first))
            .collect();
        assert_eq!(figures, [(1, 1, 0), (4, 1, 1)]);
        let stored = book.newest("m").expect("read").expect("a passport");
        let tokens: Vec<u64> = stored.modes.iter().map(|mode| mode.tokens).collect();
        assert_eq!(tokens, [150, 300, 150, 150]);
        let agents = book.measured_samples("m", Repair::Cause, Worker::Agent);
        assert_eq!(
            agents.iter().map(|one| one.samples).collect::<Vec<_>>(),
            [2]
        );
        assert!(
            book.measured_samples("other", Repair::Cause, Worker::Text)
                .is_empty()
        );
    }

    fn book(dir: &Path) -> PassportBook {
        PassportBook::of(&StateDir::at(dir.to_owned()).expect("absolute"))
    }

    #[test]
    fn passports_are_separate_per_digest() {
        let dir = tempfile::tempdir().expect("a directory");
        let book = book(dir.path());
        let wrong = outcome("python/a", "ollama/x", &[Cause::Rejected, Cause::Rejected]);
        book.add_gym_outcomes("ollama/x", Some("old"), &[&wrong; 9])
            .expect("kept");
        let right = outcome("python/a", "ollama/x", &[Cause::Accepted]);
        book.add_gym_outcomes("ollama/x", Some("new"), &[&right])
            .expect("kept");
        let newest = book.newest("ollama/x").expect("read").expect("there");
        assert_eq!(
            (newest.digest.as_deref(), newest.unfit_for("tdd_green")),
            (Some("new"), None)
        );
        let old = book
            .of_digest("ollama/x", Some("old"))
            .expect("read")
            .expect("there");
        assert_eq!(
            old.unfit_for("tdd_green").as_deref(),
            Some("accepted in 0 of 9 turns at tdd_green (0 to 30 %)")
        );
        assert_eq!(
            book.of_digest("ollama/x", Some("third")).expect("read"),
            None
        );
        assert_eq!(
            book.newest("ollama/X").expect("read"),
            None,
            "names are exact"
        );
    }

    #[test]
    fn only_evidence_about_a_model_is_recorded() {
        let dir = tempfile::tempdir().expect("a directory");
        let book = book(dir.path());
        let class = TaskClass {
            skill: "tdd_green".into(),
            language: "go".into(),
            size: TaskSize::Small,
        };
        let attempt = |model: &str, cause: &str| -> Attempt {
            serde_json::from_value(
                serde_json::json!({"attempt": 1, "model": model, "tier": "local", "duration_ms": 2000,
                "generate_ms": 1000, "tokens_in": 10, "tokens_out": 30, "cost_usd": 0.5, "cause": cause}),
            )
            .expect("an attempt")
        };
        let call = [
            attempt("a", "rejected"),
            attempt("a", "accepted"),
            attempt("b", "infra"),
            attempt("c", "tampered"),
        ];
        book.note(&class, &call).expect("kept");
        let (class_record, all) = book.turns("a", &class);
        assert_eq!(
            (
                class_record.accepted,
                class_record.against,
                class_record.at_first,
                class_record.usd
            ),
            (1, 0, 0, 1.0)
        );
        assert_eq!(class_record, all);
        assert_eq!(book.turns("b", &class).0.judged(), 0);
        let c = book.newest("c").expect("read").expect("there");
        assert_eq!(
            (c.cheats, c.turns_at("tdd_green", Some("go")).against),
            (1, 1)
        );
        assert_eq!(
            book.newest("a")
                .expect("read")
                .expect("there")
                .tokens_per_second(),
            Some(30.0)
        );
    }

    #[test]
    fn damaged_passport_is_replaced() {
        let dir = tempfile::tempdir().expect("a directory");
        let book = book(dir.path());
        create_private_dir(&book.dir).expect("made");
        fs::write(book.path("m"), "{").expect("written");
        assert!(matches!(
            book.newest("m"),
            Err(PassportError::Damaged { .. })
        ));
        let class = TaskClass {
            skill: "s".into(),
            language: "any".into(),
            size: TaskSize::Small,
        };
        assert_eq!(book.turns("m", &class), Default::default());
        book.add_gym_outcomes("m", None, &[&outcome("go/a", "m", &[Cause::Accepted])])
            .expect("kept");
        assert_eq!(book.newest("m").expect("read").expect("there").turns, 1);
    }
}
