//! Whether the user's machine is idle: no processor time used by others, and not on battery.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Share of all processors that others may use.
const BUSY_SHARE: f64 = 0.25;
/// Shorter samples are too coarse: processor time is counted in hundredths of a second.
const SHORTEST_SAMPLE: Duration = Duration::from_millis(200);
/// Ticks of processor time in a second, on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;
/// Servers of local models work for the replay, and not below it.
const MODEL_SERVERS: &[&str] = &["ollama", "llama-server", "lms", "vllm", "litellm", "mlx_lm"];

/// What a replay must give way to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MachineState {
    Idle,
    Busy,
    OnBattery,
    /// Nothing is known about the machine.
    Unknown,
}

impl MachineState {
    pub fn word(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Busy => "busy",
            Self::OnBattery => "on battery",
            Self::Unknown => "unknown",
        }
    }
}

/// Looked at several times a second.
pub trait Machine: Send {
    fn state(&mut self) -> MachineState;
}

/// The real one, by what Linux tells in `/proc` and `/sys`: processor time of programs with an ordinary priority, also of
/// those that have ended. Processes with a raised niceness, such as our own, are counted elsewhere.
#[derive(Debug)]
pub struct ThisMachine {
    proc: PathBuf,
    power: PathBuf,
    processors: f64,
    last: Option<(Instant, Sample)>,
    known: MachineState,
}

/// Ticks of user time since the start.
#[derive(Debug)]
struct Sample {
    all: u64,
    /// Of each server of models.
    servers: BTreeMap<u32, u64>,
}

impl Sample {
    fn used_since(&self, before: &Self) -> u64 {
        let by_servers: u64 = self
            .servers
            .iter()
            .map(|(pid, ticks)| {
                ticks.saturating_sub(before.servers.get(pid).copied().unwrap_or_default())
            })
            .sum();
        self.all
            .saturating_sub(before.all)
            .saturating_sub(by_servers)
    }
}

impl Default for ThisMachine {
    fn default() -> Self {
        Self::at("/proc".into(), "/sys/class/power_supply".into())
    }
}

impl ThisMachine {
    fn at(proc: PathBuf, power: PathBuf) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            proc,
            power,
            processors: processors as f64,
            last: None,
            known: MachineState::Unknown,
        }
    }

    fn is_on_battery(&self) -> bool {
        let read = |dir: &Path, name: &str| fs::read_to_string(dir.join(name)).unwrap_or_default();
        let supplies = fs::read_dir(&self.power).into_iter().flatten().flatten();
        supplies.map(|entry| entry.path()).any(|dir| {
            read(&dir, "type").trim() == "Battery" && read(&dir, "status").trim() == "Discharging"
        })
    }

    /// `None` where there is no `/proc`.
    fn sample(&self) -> Option<Sample> {
        let stat = fs::read_to_string(self.proc.join("stat")).ok()?;
        // The first line adds up all processors; `nice` is a column of its own.
        let all = stat.strip_prefix("cpu ")?.split_whitespace().next()?;
        let entries = fs::read_dir(&self.proc).ok()?.flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let servers = pids.filter_map(|pid| {
            let stat = fs::read_to_string(self.proc.join(format!("{pid}/stat"))).ok()?;
            Some((pid, server_ticks(&stat)?))
        });
        Some(Sample {
            all: all.parse().ok()?,
            servers: servers.collect(),
        })
    }
}

impl Machine for ThisMachine {
    fn state(&mut self) -> MachineState {
        if self.is_on_battery() {
            return MachineState::OnBattery;
        }
        let is_due = |at: &Instant| at.elapsed() >= SHORTEST_SAMPLE;
        if self.last.as_ref().is_some_and(|(at, _)| !is_due(at)) {
            return self.known;
        }
        let Some(now) = self.sample() else {
            return MachineState::Unknown;
        };
        if let Some((at, before)) = &self.last {
            let used = now.used_since(before) as f64 / TICKS_PER_SECOND;
            let share = used / at.elapsed().as_secs_f64() / self.processors;
            self.known = match share > BUSY_SHARE {
                true => MachineState::Busy,
                false => MachineState::Idle,
            };
        }
        self.last = Some((Instant::now(), now));
        self.known
    }
}

/// User time in a line of `/proc/PID/stat`, if it is a server of models that `all` of a sample counts.
fn server_ticks(stat: &str) -> Option<u64> {
    // The name is in parentheses and may hold anything.
    let (name, rest) = stat.split_once('(')?.1.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let is_nice = fields.get(16)?.trim().parse::<i64>().ok()? > 0;
    let is_server = MODEL_SERVERS.iter().any(|server| name.starts_with(server));
    if is_nice || !is_server {
        return None;
    }
    fields.get(11)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(name: &str, user: u64, nice: i32) -> String {
        format!("7 ({name}) S 1 7 7 0 -1 4194560 1 0 0 0 {user} 0 0 0 20 {nice} 1 0 5 6 7\n")
    }

    #[test]
    fn only_model_servers_are_subtracted() {
        assert_eq!(server_ticks(&stat("llama-server", 40, 0)), Some(40));
        assert_eq!(server_ticks(&stat("cc", 40, 0)), None);
        assert_eq!(server_ticks(&stat("ollama", 40, 10)), None);
        assert_eq!(server_ticks("garbage"), None);
    }

    #[test]
    fn rising_load_and_battery_are_noticed() {
        let dir = tempfile::tempdir().expect("a directory");
        let (proc, power) = (dir.path().join("proc"), dir.path().join("power"));
        fs::create_dir_all(proc.join("7")).expect("made");
        let mut machine = ThisMachine::at(proc.clone(), power.clone());
        // As if the last look had been a second ago.
        let mut look = |user: u64, nice: u64, by_server: u64| {
            // No process of a build lives until it is looked at.
            let text = format!("cpu  {user} {nice} 0 0\ncpu0 {user} {nice} 0 0\n");
            fs::write(proc.join("stat"), text).expect("written");
            fs::write(proc.join("7/stat"), stat("ollama", by_server, 0)).expect("written");
            if let Some((at, _)) = &mut machine.last {
                *at = at
                    .checked_sub(Duration::from_secs(1))
                    .expect("the machine runs for a second");
            }
            machine.state()
        };
        assert_eq!(look(100, 0, 0), MachineState::Unknown);
        assert_eq!(look(101, 0, 0), MachineState::Idle);
        assert_eq!(look(100_000, 0, 0), MachineState::Busy);
        assert_eq!(look(100_000, 0, 0), MachineState::Idle);
        assert_eq!(
            look(100_001, 90_000, 0),
            MachineState::Idle,
            "our own tests"
        );
        assert_eq!(look(190_001, 90_000, 90_000), MachineState::Idle, "a model");
        fs::create_dir_all(power.join("BAT0")).expect("made");
        fs::write(power.join("BAT0/type"), "Battery\n").expect("written");
        fs::write(power.join("BAT0/status"), "Discharging\n").expect("written");
        assert_eq!(look(190_001, 90_000, 90_000), MachineState::OnBattery);
    }
}
