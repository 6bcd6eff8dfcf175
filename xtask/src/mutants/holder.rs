//! What is broken in the worker's own part.

use super::{Mutant, Test};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        id: "I5",
        what: "a checkpoint does not ask whether the lease was lost before",
        file: "crates/tenure/src/keeper/held.rs",
        find: "        if let Some(loss) = self.loss() {\n            return Err(self.lost_by(loss));\n        }\n",
        replace: "",
        tests: &[Test::own("tenure::sticky::ownership_loss_is_sticky_and_cancels_every_later_checkpoint")],
    },
    Mutant {
        id: "V3",
        what: "a candidate that cannot seal keeps its grant",
        file: "crates/tenure/src/keeper/takeover.rs",
        find: "                lease.lose(loss);\n                give_up_steps(shared, kept, &lease).await;\n",
        replace: "                lease.lose(loss);\n                if false {\n                    \
                  give_up_steps(shared, kept, &lease).await;\n                }\n",
        tests: &[Test::own(
            "tenure::sealing::one_receiver_that_cannot_be_sealed_keeps_the_takeover_from_being_announced",
        )],
    },
    Mutant {
        id: "V3",
        what: "a receiver that never answers is waited for as if for ever",
        file: "crates/tenure/src/keeper/sealing.rs",
        find: "() = shared.pause(patience) => {",
        replace: "() = shared.pause(patience * 1000) => {",
        tests: &[Test::own("tenure::cancel::a_receiver_that_never_answers_does_not_hold_the_resource")],
    },
    Mutant {
        id: "C2",
        what: "a wait trusts the runtime's timer, which does not count suspend",
        file: "crates/tenure/src/keeper/ask.rs",
        find: "let nap = self.clock.nap(until.since(&now));",
        replace: "let nap = until.since(&now);",
        tests: &[Test::own("tenure::causes::a_deadline_that_passed")],
    },
    Mutant {
        id: "C5",
        what: "a step back of the holder's clock is not noticed",
        file: "crates/tenure/src/keeper.rs",
        find: "if now.as_nanos() < before { Err(Loss::ClockJumped) } else { Ok(now) }",
        replace: "if before == u64::MAX { Err(Loss::ClockJumped) } else { Ok(now) }",
        tests: &[Test::own("tenure::causes::a_clock_that_jumped_back")],
    },
    Mutant {
        id: "V7",
        what: "whoever came last is served first",
        file: "crates/tenure/src/keeper/slots.rs",
        find: "queue.waiting.pop_first()",
        replace: "queue.waiting.pop_last()",
        tests: &[Test::own("tenure::waiting::tasks_of_one_process_are_served_in_the_order_in_which_they_came")],
    },
    Mutant {
        id: "V7",
        what: "a turn ends with the wish that had it",
        file: "crates/tenure/src/keeper/slots.rs",
        find: "        if !self.settled {\n",
        replace: "        if !self.settled && self.yields {\n",
        tests: &[Test::own(
            "tenure::cancel::a_wish_that_is_dropped_at_each_call_lets_the_next_one_of_its_process_go_on",
        )],
    },
    Mutant {
        id: "V7",
        what: "a process hands a resource on within itself for ever",
        file: "crates/tenure/src/keeper/slots.rs",
        find: "const IN_A_ROW: u32 = 16;",
        replace: "const IN_A_ROW: u32 = 1 << 30;",
        tests: &[Test::own("tenure::waiting::a_process_with_a_queue_of_its_own_lets_others_have_a_turn")],
    },
    Mutant {
        id: "V8",
        what: "a waiter asks to be told and does not look again",
        file: "crates/tenure/src/keeper/lookout.rs",
        find: "if self.wake.is_none() && self.watch() {",
        replace: "if self.wake.is_none() && self.watch() && self.until < self.began {",
        tests: &[Test::own("tenure::waiting::a_change_in_the_midst_of_a_look_is_not_missed")],
    },
    Mutant {
        id: "V8",
        what: "nobody looks when the holder's time is over",
        file: "crates/tenure/src/keeper/lookout.rs",
        find: "deadline.after(self.turn(now))",
        replace: "deadline.after(self.untold * 10)",
        tests: &[Test::own("tenure::waiting::a_waiter_looks_when_the_holders_time_is_over")],
    },
    Mutant {
        id: "V9",
        what: "a waiter looks although somebody else was granted the resource",
        file: "crates/tenure/src/keeper/lookout.rs",
        find: "                self.told = None;\n",
        replace: "",
        tests: &[
            Test::own("tenure::waiting::a_waiter_that_hears_that_somebody_else_was_granted_it_spares_its_look"),
            Test::own("tenure::waiting::a_hand_over_among_many_processes_costs_few_looks"),
        ],
    },
];
