//! A real terminal with a program on it, and what a person would see there.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::support::mcp_session::{until, wait};

pub(crate) struct Terminal {
    process: Child,
    keyboard: File,
    seen: Arc<Mutex<Seen>>,
    reader: Option<JoinHandle<()>>,
}

struct Seen {
    screen: vt100::Parser,
    raw: Vec<u8>,
}

impl Terminal {
    /// Starts the program with this terminal as stdin, stdout and stderr.
    pub(crate) fn start(mut command: Command, rows: u16, columns: u16) -> Self {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let slave = OpenOptions::new()
            .read(true)
            .write(true)
            .open(name)
            .unwrap();
        tcsetwinsize(
            &master,
            Winsize {
                ws_row: rows,
                ws_col: columns,
                ws_xpixel: 0,
                ws_ypixel: 0,
            },
        )
        .unwrap();
        let end = || OwnedFd::from(slave.try_clone().unwrap());
        command.stdin(end()).stdout(end()).stderr(end());
        // As a person has it, unless the test says otherwise.
        for (name, value) in [
            ("TERM", Some("xterm-256color")),
            ("NO_COLOR", None),
            ("CI", None),
            ("COLUMNS", None),
        ] {
            let said = command
                .get_envs()
                .any(|(known, value)| known == name && value.is_some());
            match value {
                _ if said => &mut command,
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let size = |n: u16| n.try_into().unwrap();
        let parser = vt100::Parser::new(size(rows), size(columns), 1000);
        let seen = Arc::new(Mutex::new(Seen {
            screen: parser,
            raw: Vec::new(),
        }));
        let process = command.spawn().unwrap();
        // Ours would keep the terminal open when the program has gone.
        drop((command, slave));
        let screen = File::from(master);
        let keyboard = screen.try_clone().unwrap();
        let reader = std::thread::spawn({
            let seen = Arc::clone(&seen);
            move || read_all(screen, &seen)
        });
        Self {
            process,
            keyboard,
            seen,
            reader: Some(reader),
        }
    }

    /// What is on the screen now, row by row.
    pub(crate) fn rows(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        let (_, columns) = seen.screen.screen().size();
        seen.screen
            .screen()
            .rows(0, columns.get())
            .map(|row| row.trim_end().to_owned())
            .collect()
    }

    /// Waits until a row holds the words.
    pub(crate) fn until(&self, words: &str) {
        until(&format!("`{words}` on the screen"), || {
            self.rows().iter().any(|row| row.contains(words))
        });
    }

    /// Ctrl-C: the terminal shows it where the cursor is, and the program is told.
    pub(crate) fn ctrl_c(&mut self) {
        self.keyboard.write_all(b"\x03").unwrap();
        until("the echo", || {
            self.seen
                .lock()
                .unwrap()
                .raw
                .windows(2)
                .any(|two| two == b"^C")
        });
        self.signal(Signal::INT);
    }

    /// Keys as a terminal sends them.
    pub(crate) fn press(&self, keys: &str) {
        (&self.keyboard).write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Waits for the program's end: its exit code, the last screen without empty rows, and every byte that came.
    pub(crate) fn finish(mut self) -> (Option<i32>, Vec<String>, Vec<u8>) {
        let code = wait(&mut self.process);
        self.reader.take().unwrap().join().unwrap();
        let rows = self
            .rows()
            .into_iter()
            .filter(|row| !row.is_empty())
            .collect();
        let seen = self.seen.lock().unwrap();
        assert!(
            !seen.screen.screen().hide_cursor(),
            "the cursor is to be seen again"
        );
        assert!(
            !seen.screen.screen().alternate_screen(),
            "the screen is the one before"
        );
        (code, rows, seen.raw.clone())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn read_all(mut master: File, seen: &Mutex<Seen>) {
    let mut buffer = [0; 4096];
    // Reading fails when nobody holds the other end any more.
    while let Ok(count @ 1..) = master.read(&mut buffer) {
        let mut seen = seen.lock().unwrap();
        seen.screen.process(&buffer[..count]);
        seen.raw.extend_from_slice(&buffer[..count]);
    }
}
