//! A server of a network store behind the cable: whoever asks it from the near end is not answered once it is cut.

use super::Rig;
use super::cable::{Cable, FAR};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use tenure::authority::WallTime;

/// A server's store as it is seen from the near end.
pub(crate) struct Distant {
    cable: Cable,
    /// As it is seen from here.
    direct: String,
    /// As it is seen from there.
    far: String,
}

impl Distant {
    /// Leads from the far end to the server, which listens here.
    pub(crate) fn to(direct: &str, port: u16) -> Self {
        let cable = Cable::lay();
        let listener = cable.listen();
        let far = direct.replacen(&format!("127.0.0.1:{port}"), &listener.local_addr().unwrap().to_string(), 1);
        assert!(far.contains(&FAR.to_string()), "{direct} does not name the port {port}");
        std::thread::spawn(move || lead(&listener, port));
        Self { cable, direct: direct.to_owned(), far }
    }
}

/// Ends with the test process: nobody can reach the listener once the namespace is gone.
fn lead(listener: &TcpListener, port: u16) {
    for near in listener.incoming().map_while(Result::ok) {
        let there = TcpStream::connect(("127.0.0.1", port)).unwrap();
        for (from, to) in [(near.try_clone().unwrap(), there.try_clone().unwrap()), (there, near)] {
            std::thread::spawn(move || pass(from, to));
        }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let _ = to.set_nodelay(true);
    let mut piece = [0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut piece) {
        if to.write_all(&piece[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

impl Rig for Distant {
    fn authority_url(&self) -> String {
        crate::site::made(&self.far)
    }

    fn judges_url(&self) -> String {
        self.direct.clone()
    }

    fn silence(&mut self) {
        self.cable.cut();
    }

    fn mend(&mut self) {
        self.cable.mend();
    }

    fn place(&self, command: Command) -> Command {
        let mut placed = self.cable.near(command.get_program().to_str().unwrap());
        placed.args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => placed.env(name, value),
                None => placed.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            placed.current_dir(folder);
        }
        placed.stdin(std::process::Stdio::null());
        placed
    }

    /// The server runs on this machine. Its clock is the wall clock, which is read here in whole milliseconds.
    fn now(&self) -> u64 {
        (WallTime::now().as_millis() + 1) * 1_000_000
    }
}
