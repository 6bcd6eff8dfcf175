//! What is played, and what comes of it.

use super::count::Counts;
use super::player::{How, Player, Point, Role};
use super::receiver::Kind;
use super::sender;
use crate::demo::DemoError;
use crate::demo::worker::{CLOCK, TICK};
use serde_json::{Value, json};
use std::path::Path;
use tenure::authority::FileClock;

/// One scenario.
pub(super) struct Case {
    pub(super) name: &'static str,
    kind: Kind,
    plot: Plot,
}

enum Plot {
    /// Somebody ends itself at a point; then the worker is started again.
    Fall {
        sender: Option<Point>,
        receiver: Option<Point>,
        /// How the first worker goes about it, and the second one.
        how: [How; 2],
        told: Told,
    },
    /// The same id with other content, after the ticket was made.
    Mismatch,
    /// Eight workers want the same work; the one that has it wakes up late.
    Claims,
    /// Eight requests of the same call at once.
    Requests,
}

/// What the account of a scenario holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    BeforeAndAfter,
    /// The same at a receiver that keeps no receipts.
    WithoutReceipts,
    /// After, and `before` is null.
    After,
    /// After, and whether it was sent again.
    Retry,
    /// How many tickets the outside system has made, against the rule.
    Bypass,
}

/// How many processes take part where many do.
const MANY: usize = 8;

const fn fall(name: &'static str, sender: Option<Point>, receiver: Option<Point>) -> Case {
    let how = [How::Careful, How::Careful];
    Case { name, kind: Kind::Receipts, plot: Plot::Fall { sender, receiver, how, told: Told::BeforeAndAfter } }
}

const fn outside(name: &'static str, receiver: Point, second: How, told: Told) -> Case {
    let plot =
        Plot::Fall { sender: Some(Point::NoAnswer), receiver: Some(receiver), how: [How::Careful, second], told };
    Case { name, kind: Kind::External, plot }
}

pub(super) const CASES: [Case; 16] = [
    Case {
        name: "naive_lost_ack",
        kind: Kind::Plain,
        plot: Plot::Fall {
            sender: Some(Point::NoAnswer),
            receiver: Some(Point::AfterCommit),
            how: [How::Careful, How::Blind],
            told: Told::WithoutReceipts,
        },
    },
    Case {
        name: "mark_before_send_loses_task",
        kind: Kind::Receipts,
        plot: Plot::Fall {
            sender: Some(Point::AfterAck),
            receiver: None,
            how: [How::DoneFirst, How::Careful],
            told: Told::After,
        },
    },
    fall("idempotent_lost_ack", Some(Point::NoAnswer), Some(Point::AfterCommit)),
    fall("before_intent_commit", Some(Point::BeforeIntent), None),
    fall("after_intent_commit", Some(Point::AfterIntent), None),
    fall("after_claim", Some(Point::AfterClaim), None),
    fall("before_receiver_commit", Some(Point::NoAnswer), Some(Point::BeforeCommit)),
    fall("after_response_write", None, Some(Point::AfterResponse)),
    fall("after_response_before_ack", Some(Point::BeforeAck), None),
    fall("after_ack", Some(Point::AfterAck), None),
    Case { name: "mismatched_payload", kind: Kind::Receipts, plot: Plot::Mismatch },
    Case { name: "concurrent_claim", kind: Kind::Receipts, plot: Plot::Claims },
    Case { name: "concurrent_receiver", kind: Kind::Receipts, plot: Plot::Requests },
    outside("before_external_effect", Point::BeforeCommit, How::Careful, Told::Retry),
    outside("after_external_effect", Point::AfterCommit, How::Careful, Told::Retry),
    outside("unsafe_external_retry", Point::AfterCommit, How::Blind, Told::Bypass),
];

/// How a scenario ended.
#[derive(Debug)]
pub(super) enum Ended {
    Fall { told: Told, before: Counts, after: Counts, sent_again: bool },
    Mismatch { rejected: bool, after: Counts },
    Claims { winners: usize, stale_ack_accepted: bool, after: Counts },
    Requests { responses: usize, after: Counts },
}

impl Case {
    pub(super) fn play(&self, dir: &Path) -> Result<Ended, DemoError> {
        tick(dir, 0)?;
        sender::prepare(dir)?;
        self.kind.prepare(dir)?;
        match &self.plot {
            Plot::Fall { sender, receiver, how, told } => self.fall(dir, (*sender, *receiver), *how, *told),
            Plot::Mismatch => self.mismatch(dir),
            Plot::Claims => self.claims(dir),
            Plot::Requests => self.requests(dir),
        }
    }

    fn fall(
        &self,
        dir: &Path,
        (sender, receiver): (Option<Point>, Option<Point>),
        [first, second]: [How; 2],
        told: Told,
    ) -> Result<Ended, DemoError> {
        let mut at = Player::enter(dir, "receiver", Role::Receiver(self.kind), receiver)?;
        let address = at.hears("address")?;
        let worker = Player::enter(dir, "A", Role::Sender(self.kind, first, &address), sender)?;
        worker.ends(sender.is_some())?;
        if receiver.is_some() {
            at.ends(true)?;
            at = Player::enter(dir, "receiver", Role::Receiver(self.kind), None)?;
        }
        let before = Counts::read(dir)?;
        tick(dir, 11)?;
        let address = if receiver.is_some() { at.hears("address")? } else { address };
        let mut again = Player::enter(dir, "B", Role::Sender(self.kind, second, &address), None)?;
        let sent_again = again.hears("sent")? == "true";
        again.ends(false)?;
        let after = Counts::read(dir)?;
        Ok(Ended::Fall { told, before, after, sent_again })
    }

    fn mismatch(&self, dir: &Path) -> Result<Ended, DemoError> {
        let mut at = Player::enter(dir, "receiver", Role::Receiver(self.kind), None)?;
        let address = at.hears("address")?;
        let mut worker = Player::enter(dir, "A", Role::Sender(self.kind, How::Waits, &address), None)?;
        let token = worker.hears("token")?;
        worker.go()?;
        let _ = worker.hears("sent")?;
        let mut other = Player::enter(dir, "other", Role::Courier(&address, &token, "another text"), None)?;
        let rejected = other.hears("verdict")? == "conflict";
        other.ends(false)?;
        worker.ends(false)?;
        Ok(Ended::Mismatch { rejected, after: Counts::read(dir)? })
    }

    fn claims(&self, dir: &Path) -> Result<Ended, DemoError> {
        let mut at = Player::enter(dir, "receiver", Role::Receiver(self.kind), None)?;
        let address = at.hears("address")?;
        let names: [&'static str; MANY] = ["A", "B", "C", "D", "E", "F", "G", "H"];
        let mut workers = Vec::new();
        for name in names {
            workers.push(Player::enter(dir, name, Role::Sender(self.kind, How::Waits, &address), None)?);
        }
        let mut winners = Vec::new();
        for mut worker in workers {
            // Each says whether it has it; those that have not end.
            if worker.hears("claimed")? == "true" {
                winners.push(worker);
            } else {
                worker.ends(false)?;
            }
        }
        let number = winners.len();
        let [winner] = &mut winners[..] else {
            return Err(DemoError::Worker { name: "claims".to_owned(), why: format!("{number} workers have it") });
        };
        let _ = winner.hears("token")?;
        tick(dir, 11)?;
        let next = Player::enter(dir, "next", Role::Sender(self.kind, How::Careful, &address), None)?;
        next.ends(false)?;
        // It wakes up, and says that the work is done.
        winner.order("ack")?;
        let stale_ack_accepted = winner.hears("ack")? == "accepted";
        for winner in winners {
            winner.ends(false)?;
        }
        Ok(Ended::Claims { winners: number, stale_ack_accepted, after: Counts::read(dir)? })
    }

    fn requests(&self, dir: &Path) -> Result<Ended, DemoError> {
        let mut at = Player::enter(dir, "receiver", Role::Receiver(self.kind), None)?;
        let address = at.hears("address")?;
        let mut worker = Player::enter(dir, "A", Role::Sender(self.kind, How::Waits, &address), None)?;
        let token = worker.hears("token")?;
        let mut couriers = Vec::new();
        for _ in 0..MANY {
            couriers.push(Player::enter(dir, "courier", Role::Courier(&address, &token, sender::TEXT), None)?);
        }
        let mut responses = Vec::new();
        for mut courier in couriers {
            responses.push(courier.hears("outcome")?);
            courier.ends(false)?;
        }
        responses.sort();
        responses.dedup();
        worker.go()?;
        worker.ends(false)?;
        Ok(Ended::Requests { responses: responses.len(), after: Counts::read(dir)? })
    }
}

/// Moves the clock that all processes of a scenario share.
fn tick(dir: &Path, tick: u32) -> Result<(), DemoError> {
    let path = dir.join(CLOCK);
    let millis = u64::try_from((TICK * tick).as_millis()).unwrap_or(u64::MAX);
    FileClock::set_millis(&path, millis).map_err(|error| DemoError::File { path, error })
}

impl Ended {
    /// In the form in which the experiment was published.
    pub(super) fn json(&self) -> Value {
        match self {
            Self::Fall { told, before, after, sent_again } => match told {
                Told::BeforeAndAfter => json!({ "before": before, "after": after }),
                Told::WithoutReceipts => json!({ "receiver": "no receipts", "before": before, "after": after }),
                Told::After => json!({ "before": null, "after": after }),
                Told::Retry => json!({ "automatic_retry": sent_again, "after": after }),
                Told::Bypass => json!({
                    "policy_bypassed_for_counterexample": true,
                    "external_tickets": after.external_tickets,
                }),
            },
            Self::Mismatch { rejected, after } => {
                json!({ "rejected": rejected, "receiver_tickets": after.receiver_tickets })
            }
            Self::Claims { winners, stale_ack_accepted, after } => json!({
                "workers": MANY,
                "claim_winners": winners,
                "stale_ack_accepted": stale_ack_accepted,
                "after": after,
            }),
            Self::Requests { responses, after } => json!({
                "workers": MANY,
                "receiver_tickets": after.receiver_tickets,
                "receiver_receipts": after.receiver_receipts,
                "unique_responses": responses,
            }),
        }
    }

    /// Before, after, and how many tickets there are.
    pub(super) fn columns(&self) -> [String; 3] {
        match self {
            Self::Fall { told, before, after, .. } => {
                let note = match told {
                    Told::WithoutReceipts => "   <- counterexample: taken for not done, and done twice",
                    Told::After => "   <- counterexample: taken for done, and lost",
                    Told::Bypass => "   <- counterexample: sent again all the same",
                    _ => "",
                };
                [before.to_string(), after.to_string(), format!("{}{note}", after.tickets())]
            }
            Self::Mismatch { rejected, after } => {
                let said = if *rejected { "conflict" } else { "accepted" };
                [format!("other content: {said}"), after.to_string(), after.tickets().to_string()]
            }
            Self::Claims { winners, stale_ack_accepted, after } => {
                let said = if *stale_ack_accepted { "accepted" } else { "refused" };
                let note = format!("{}   the late word of the first is {said}", after.tickets());
                [format!("{MANY} workers, {winners} has it"), after.to_string(), note]
            }
            Self::Requests { responses, after } => [
                format!("{MANY} requests at once"),
                format!("{MANY} answers, {responses} of a kind"),
                after.tickets().to_string(),
            ],
        }
    }
}
