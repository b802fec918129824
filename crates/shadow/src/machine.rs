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

/// The real one, by what Linux tells in `/proc` and `/sys`. Processes with a raised niceness, such as our own, do not
/// count as others.
#[derive(Debug)]
pub struct ThisMachine {
    proc: PathBuf,
    power: PathBuf,
    processors: f64,
    last: Option<(Instant, BTreeMap<u32, u64>)>,
    known: MachineState,
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

    /// Ticks of each process that counts.
    fn ticks(&self) -> BTreeMap<u32, u64> {
        let entries = fs::read_dir(&self.proc).into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.filter(|pid| *pid != std::process::id())
            .filter_map(|pid| {
                let stat = fs::read_to_string(self.proc.join(format!("{pid}/stat"))).ok()?;
                Some((pid, ticks_of(&stat)?))
            })
            .collect()
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
        let now = self.ticks();
        if now.is_empty() {
            return MachineState::Unknown;
        }
        if let Some((at, before)) = &self.last {
            let used: u64 = now
                .iter()
                .filter_map(|(pid, ticks)| Some(ticks.saturating_sub(*before.get(pid)?)))
                .sum();
            let share =
                used as f64 / TICKS_PER_SECOND / at.elapsed().as_secs_f64() / self.processors;
            self.known = match share > BUSY_SHARE {
                true => MachineState::Busy,
                false => MachineState::Idle,
            };
        }
        self.last = Some((Instant::now(), now));
        self.known
    }
}

/// User and system time of a line of `/proc/PID/stat`; `None` for what does not count.
fn ticks_of(stat: &str) -> Option<u64> {
    // The name is in parentheses and may hold anything.
    let (name, rest) = stat.split_once('(')?.1.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let number = |at: usize| fields.get(at)?.trim().parse::<i64>().ok();
    let niceness = number(16)?;
    let is_server = MODEL_SERVERS.iter().any(|server| name.starts_with(server));
    if niceness > 0 || is_server {
        return None;
    }
    u64::try_from(number(11)? + number(12)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(name: &str, user: u64, nice: i32) -> String {
        format!("7 ({name}) S 1 7 7 0 -1 4194560 1 0 0 0 {user} 0 0 0 20 {nice} 1 0 5 6 7\n")
    }

    #[test]
    fn nice_processes_and_model_servers_do_not_count() {
        assert_eq!(ticks_of(&stat("a b) c", 40, 0)), Some(40));
        assert_eq!(ticks_of(&stat("cc", 40, 10)), None);
        assert_eq!(ticks_of(&stat("ollama", 40, 0)), None);
        assert_eq!(ticks_of("garbage"), None);
    }

    #[test]
    fn rising_load_and_battery_are_noticed() {
        let dir = tempfile::tempdir().expect("a directory");
        let (proc, power) = (dir.path().join("proc"), dir.path().join("power"));
        fs::create_dir_all(proc.join("7")).expect("made");
        let write =
            |ticks: u64| fs::write(proc.join("7/stat"), stat("cc", ticks, 0)).expect("written");
        let mut machine = ThisMachine::at(proc.clone(), power.clone());
        // As if the last look had been a second ago.
        let mut look = |ticks: u64| {
            write(ticks);
            if let Some((at, _)) = &mut machine.last {
                *at = at
                    .checked_sub(Duration::from_secs(1))
                    .expect("the machine runs for a second");
            }
            machine.state()
        };
        assert_eq!(look(100), MachineState::Unknown);
        assert_eq!(look(101), MachineState::Idle);
        assert_eq!(look(100_000), MachineState::Busy);
        assert_eq!(look(100_000), MachineState::Idle);
        fs::create_dir_all(power.join("BAT0")).expect("made");
        fs::write(power.join("BAT0/type"), "Battery\n").expect("written");
        fs::write(power.join("BAT0/status"), "Discharging\n").expect("written");
        assert_eq!(look(100_000), MachineState::OnBattery);
    }
}
