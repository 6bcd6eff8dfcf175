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
];
