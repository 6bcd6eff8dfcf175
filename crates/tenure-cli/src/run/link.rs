//! What a run and its watchdog tell each other, one JSON object a line, over a pair of sockets.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use rustix::net::{recvmsg, send, sendmsg};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// From the run to the watchdog. Instants are nanoseconds of CLOCK_BOOTTIME.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Order {
    /// The lease was renewed: the command may run until this instant.
    Until(u64),
    /// A signal for the command's group.
    Signal(i32),
    /// End the command: the right to write is lost, for this reason.
    Lost(String),
    /// Stop the command where it stands.
    Freeze,
    /// Let what was stopped at this instant go on until that one.
    Thaw { since: u64, end_at: u64 },
}

/// From the watchdog to the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Tidings {
    /// The command runs; its group has the same number.
    Started(i32),
    /// The command was stopped by a terminal, with this signal.
    Stopped(i32),
    /// The command has ended; what it left behind is ended next.
    Ended(Status),
    /// Everything is stopped, since this instant.
    Frozen(u64),
    /// The command is being ended because the right to write is lost.
    Ending(String),
    /// These processes cannot be ended: the system does not allow it.
    Refused(Vec<String>),
    /// No process of the command is there any more.
    Gone(Gone),
    /// What was to be run on a loss has ended, or was ended.
    Hook(Option<Status>),
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    Exited(u8),
    Killed(i32),
}

/// How a command's processes came to their end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Gone {
    /// When the last of them was gone.
    pub(super) at: u64,
    /// When they were asked to end, if they were.
    pub(super) asked_at: Option<u64>,
    /// When they were killed, if they were.
    pub(super) killed_at: Option<u64>,
    /// What the command had left behind when it ended by itself, by name.
    pub(super) left_behind: Vec<String>,
}

/// One end of the pair.
#[derive(Debug)]
pub(super) struct Link {
    socket: UnixStream,
    pending: Vec<u8>,
    outgoing: Vec<u8>,
}

impl Link {
    pub(super) const fn new(socket: UnixStream) -> Self {
        Self { socket, pending: Vec::new(), outgoing: Vec::new() }
    }

    pub(super) fn another(&self) -> io::Result<Self> {
        Ok(Self::new(self.socket.try_clone()?))
    }

    /// Sends a message, or keeps it for later when the other end does not read: nobody waits here for somebody who may be
    /// stopped. An end that is closed is noticed by whoever reads.
    pub(super) fn send(&mut self, message: &impl Serialize) {
        // These messages are plain data, which always becomes JSON.
        if let Ok(line) = serde_json::to_vec(message) {
            self.outgoing.extend(line);
            self.outgoing.push(b'\n');
        }
        self.flush();
    }

    /// Sends what was kept, as far as the other end takes it.
    pub(super) fn flush(&mut self) {
        while !self.outgoing.is_empty() {
            match send(&self.socket, &self.outgoing, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(count) => drop(self.outgoing.drain(..count)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => self.outgoing.clear(),
            }
        }
    }

    /// Whether something was kept for later.
    pub(super) const fn owes(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Waits until everything was sent, for an end that has nothing else to do any more.
    pub(super) fn finish(mut self) {
        while self.owes() {
            let _ = poll(&mut [PollFd::new(&self.socket, PollFlags::OUT)], None);
            self.flush();
        }
    }

    /// Waits for the next message; `None` when the other end is gone.
    pub(super) fn receive<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        loop {
            if let Some(message) = self.waiting()? {
                return Ok(Some(message));
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// Takes what the socket has. `false` when the other end is gone.
    pub(super) fn fill(&mut self) -> io::Result<bool> {
        let mut bytes = [0; 4096];
        let count = loop {
            match io::Read::read(&mut &self.socket, &mut bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break 0,
                count => break count?,
            }
        };
        self.pending.extend(bytes.get(..count).unwrap_or_default());
        Ok(count > 0)
    }

    /// The next message that is here already.
    pub(super) fn waiting<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
        let line: Vec<u8> = self.pending.drain(..=end).collect();
        Ok(Some(serde_json::from_slice(&line)?))
    }

    /// Closes both directions, for the other end and for whoever listens here.
    pub(super) fn close(&self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }

    /// Hands an open file to the other end. Before the first message.
    pub(super) fn hand_over(&self, file: impl AsFd) -> io::Result<()> {
        let files = [file.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&files));
        sendmsg(&self.socket, &[IoSlice::new(b"\n")], &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Takes the file that the other end hands over.
    pub(super) fn take_over(&self) -> io::Result<OwnedFd> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0; 1];
        recvmsg(&self.socket, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
        let files = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => Some(files),
            _ => None,
        });
        let missing = || io::Error::new(io::ErrorKind::UnexpectedEof, "no file was handed over");
        files.flatten().next().ok_or_else(missing)
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Status {
    /// As a shell shows it: the own status, or 128 and the signal's number.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Exited(code) => code,
            Self::Killed(signal) => 128_u8.saturating_add(u8::try_from(signal).unwrap_or(u8::MAX)),
        }
    }
}

impl From<std::process::ExitStatus> for Status {
    fn from(status: std::process::ExitStatus) -> Self {
        use std::os::unix::process::ExitStatusExt;
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Exited(u8::try_from(code).unwrap_or(u8::MAX)),
            (None, signal) => Self::Killed(signal.unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests;
