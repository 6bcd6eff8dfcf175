//! What happens to one operation, one step at a time. The judgements are the crate's own.

use super::{Action, Calls, Request, State, Step, System, Without, Worker, epoch, generation, token, worker_of};
use std::collections::BTreeSet;
use tenure_core::fence::{Admission, FenceRow, Rule, Sealing, admit, seal};
use tenure_core::ledger::{Entry, Intending, Looked, Voice, hear, intend, take_over};
use tenure_core::operation::{Attempt, Happening};
use tenure_core::{Digest, Outcome};

const DIGEST: Digest = Digest([1; 32]);

fn outcome() -> Outcome {
    Outcome::new("").unwrap()
}

fn is_admitted(fence: Option<&FenceRow>, worker: usize) -> bool {
    matches!(admit(Rule::Sealed, fence, None, &generation(), &token(worker)), Admission::Admit)
}

/// Whether the token is registered now.
fn register(fence: &mut Option<FenceRow>, worker: usize) -> bool {
    let sealing = seal(fence.as_ref(), None, &generation(), &token(worker), &generation(), &BTreeSet::new());
    let Sealing::Seal(mut row) = sealing else { return false };
    // Nothing here reads the number of a seal, and a repeated seal must not make a new state.
    row.seal_no = 0;
    *fence = Some(row);
    true
}

impl State {
    /// `None`: it cannot happen here.
    pub(super) fn take(&mut self, model: &Calls, action: Action) -> Option<()> {
        match action {
            Action::Grant => self.workers.push(Worker {
                alive: true,
                sealed_book: false,
                sealed_outside: false,
                step: Step::Begun,
                request: Request::NotSent,
                answer: None,
                looked: None,
            }),
            Action::SealBook(worker) => {
                self.alive(worker)?;
                self.workers[worker].sealed_book |= register(&mut self.book, worker);
            }
            Action::SealOutside(worker) => {
                self.alive(worker).filter(|_| model.system == System::Fenced)?;
                self.workers[worker].sealed_outside |= register(&mut self.outside, worker);
            }
            Action::Intend(worker) => self.intend(model, worker)?,
            Action::Mark(worker) => self.mark(model, worker)?,
            Action::Send(worker) => self.send(model, worker)?,
            Action::Arrive(worker) => self.arrive(model, worker)?,
            Action::GoesMissing(worker) => {
                (self.workers[worker].request == Request::UnderWay).then_some(())?;
                self.workers[worker].request = Request::Gone;
            }
            Action::Answer(worker) => {
                let applied = self.waiting(worker)?.answer?;
                let news = if applied { Happening::Confirmed } else { Happening::RefusedWithoutEffect };
                self.tell(worker, news);
                self.workers[worker].step = Step::Over;
            }
            Action::TimeOut(worker) => {
                self.waiting(worker)?;
                if model.without == Some(Without::TimeoutIsUnknown) {
                    self.tell(worker, Happening::RefusedWithoutEffect);
                } else {
                    self.tell(worker, Happening::Unanswered);
                }
                self.workers[worker].step = Step::TimedOut;
            }
            Action::Crash(worker) => {
                self.alive(worker)?;
                self.workers[worker].alive = false;
                self.workers[worker].looked = None;
            }
            Action::Look(worker) => self.look(model, worker)?,
            Action::Record(worker) => self.record(model, worker)?,
            Action::Person(entry, applied) => self.person(model, entry, applied)?,
        }
        Some(())
    }

    fn alive(&self, worker: usize) -> Option<&Worker> {
        self.workers.get(worker).filter(|worker| worker.alive)
    }

    fn waiting(&self, worker: usize) -> Option<&Worker> {
        self.alive(worker).filter(|worker| worker.step == Step::Sent)
    }

    fn own(&self, worker: usize) -> Option<usize> {
        self.entries.iter().position(|entry| worker_of(entry) == worker)
    }

    /// A takeover's part, in the transaction in which the token was admitted.
    fn settle(&mut self, worker: usize) {
        for entry in &mut self.entries {
            if let Some(next) = take_over(entry, epoch(worker)) {
                entry.state = next;
            }
        }
    }

    fn intend(&mut self, model: &Calls, worker: usize) -> Option<()> {
        self.alive(worker).filter(|alive| alive.step == Step::Begun)?;
        (self.is_announced(model, worker) && is_admitted(self.book.as_ref(), worker)).then_some(())?;
        self.settle(worker);
        let beside = model.without == Some(Without::Settled);
        match intend(&self.entries, epoch(worker), &DIGEST) {
            Intending::Unsettled { .. } if !beside => return Some(()),
            Intending::Write | Intending::Unsettled { .. } => {
                self.seen.ran_again |= !self.entries.is_empty();
                self.entries.push(Entry {
                    epoch: epoch(worker),
                    digest: DIGEST,
                    state: Attempt::Intent,
                    outcome: None,
                });
                self.workers[worker].step = Step::Intended;
            }
            Intending::Standing => self.workers[worker].step = Step::Intended,
            Intending::Effective { .. } | Intending::Conflict { .. } | Intending::Over { .. } => {
                self.workers[worker].step = Step::Over;
            }
        }
        Some(())
    }

    fn mark(&mut self, model: &Calls, worker: usize) -> Option<()> {
        let step = self.alive(worker)?.step;
        let late = model.without == Some(Without::MarkBeforeSend) && step == Step::Unmarked;
        (step == Step::Intended || late).then_some(())?;
        let marked = self.tell(worker, Happening::Marked);
        self.workers[worker].step = match (marked, late) {
            (true, false) => Step::Marked,
            (_, true) => Step::Sent,
            (false, false) => Step::Over,
        };
        Some(())
    }

    fn send(&mut self, model: &Calls, worker: usize) -> Option<()> {
        let step = self.alive(worker)?.step;
        let next = match (step, model.without) {
            (Step::Marked, _) => Step::Sent,
            (Step::Intended, Some(Without::MarkBeforeSend)) => Step::Unmarked,
            (Step::Begun, Some(Without::Intent)) if self.is_announced(model, worker) => Step::Over,
            (Step::TimedOut, Some(Without::NeverByItself)) => Step::Sent,
            _ => return None,
        };
        let is_marked = self.own(worker).is_some_and(|own| self.entries[own].state != Attempt::Intent);
        self.broken.l5 |= !is_marked;
        self.workers[worker].step = next;
        self.workers[worker].request = Request::UnderWay;
        Some(())
    }

    fn arrive(&mut self, model: &Calls, worker: usize) -> Option<()> {
        match self.workers[worker].request {
            Request::UnderWay => {}
            Request::Arrived if model.system != System::Plain => {}
            _ => return None,
        }
        let taken_over = self.workers.iter().skip(worker + 1).any(|later| later.sealed_book);
        let is_accepted = model.system != System::Fenced || is_admitted(self.outside.as_ref(), worker);
        let is_replay = model.system != System::Plain && !self.effects.is_empty();
        if is_accepted && !is_replay {
            self.broken.l1 |= self.own(worker).is_none_or(|own| self.entries[own].digest != DIGEST);
            self.seen.applied_late |= taken_over;
            self.effects.push(worker);
        }
        self.seen.refused_late |= taken_over && !is_accepted;
        self.workers[worker].request = Request::Arrived;
        self.workers[worker].answer.get_or_insert(is_accepted);
        Some(())
    }

    /// The attempt's own holder speaks, in a transaction of the ledger. Whether the ledger took it.
    fn tell(&mut self, worker: usize, news: Happening) -> bool {
        let Some(own) = self.own(worker).filter(|_| is_admitted(self.book.as_ref(), worker)) else { return false };
        let heard = hear(&self.entries[own], Voice::Holder(epoch(worker)), news);
        if let Ok(next) = heard {
            self.entries[own].state = next;
        }
        heard.is_ok()
    }

    fn look(&mut self, model: &Calls, worker: usize) -> Option<()> {
        self.alive(worker).filter(|alive| alive.looked.is_none())?;
        self.is_announced(model, worker).then_some(())?;
        let asked = self.entries.iter().position(|entry| entry.state == Attempt::Unknown)?;
        let is_there = !self.effects.is_empty();
        let is_sealed = is_admitted(self.outside.as_ref(), worker) || model.without == Some(Without::SealOutside);
        let looked = match model.system {
            System::Plain => return None,
            System::Fenced if !is_sealed => return None,
            _ if is_there => Looked::Found(outcome()),
            System::Fenced => Looked::AbsentForGood,
            System::Keyed if model.without == Some(Without::OpenAbsence) => Looked::AbsentForGood,
            System::Keyed => Looked::NotSeen,
        };
        // What means nothing is not even remembered.
        looked.happening()?;
        self.workers[worker].looked = Some((asked, looked));
        Some(())
    }

    fn record(&mut self, model: &Calls, worker: usize) -> Option<()> {
        self.alive(worker)?;
        let (asked, looked) = self.workers[worker].looked.take()?;
        is_admitted(self.book.as_ref(), worker).then_some(())?;
        self.settle(worker);
        let news = looked.happening()?;
        let entry = &self.entries[asked];
        let heard = match hear(entry, Voice::Holder(epoch(worker)), news) {
            Err(_) if model.without == Some(Without::NextToken) => entry.state.next(news).ok(),
            heard => heard.ok(),
        };
        let Some(next) = heard else { return Some(()) };
        if entry.state == Attempt::Unknown && next == Attempt::NotApplied {
            let sealed_since = self.outside.as_ref().is_some_and(|row| row.epoch > entry.epoch);
            self.broken.l6 |= model.system != System::Fenced || !sealed_since;
        }
        self.entries[asked].state = next;
        Some(())
    }

    /// A person who knows how things are: whether it was applied, and that nobody and nothing can apply it any more.
    fn person(&mut self, model: &Calls, entry: usize, applied: bool) -> Option<()> {
        let asked = &self.entries[entry];
        let sender = worker_of(asked);
        let worker = &self.workers[sender];
        let is_there = self.effects.contains(&sender);
        let may_send = worker.alive && matches!(worker.step, Step::Intended | Step::Marked);
        let may_arrive = matches!(worker.request, Request::UnderWay) || may_send;
        let is_so = if applied { is_there } else { !is_there && !may_arrive };
        (is_so || (model.without == Some(Without::PersonKnows) && !applied)).then_some(())?;
        let news = if applied { Happening::Found } else { Happening::Absent };
        self.entries[entry].state = hear(asked, Voice::Person, news).ok()?;
        Some(())
    }
}
