//! What is broken in signed grants, and in the requests that show them.

use super::{Mutant, Test};

const FORGED: &str = "tenure_sink::http::bad_input::a_forged_epoch_moves_no_fence_at_any_stage";
const SIGNED_ONLY: &str =
    "tenure_sink::signed::only_the_grant_that_was_signed_for_this_sink_and_these_receivers_is_sealed";

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        id: "G1",
        what: "a seal is not compared with what was signed",
        file: "crates/tenure-sink/src/signed.rs",
        find: "self.verifier.verify_token(signed, id, token)",
        replace: "self.verifier.verify_for(signed, id)",
        tests: &[Test::own(FORGED), Test::own(SIGNED_ONLY)],
    },
    Mutant {
        id: "G1",
        what: "a signature is not verified",
        file: "crates/tenure-grant/src/verifier.rs",
        find: "if !key.has_signed(parts.message, &parts.signature) {",
        replace: "if !key.has_signed(parts.message, &parts.signature) && parts.message.is_empty() {",
        tests: &[Test::own("tenure_grant::hostile::nothing_of_a_text_can_be_changed_or_cut_off"), Test::own(FORGED)],
    },
    Mutant {
        id: "G2",
        what: "a retired key is known for ever",
        file: "crates/tenure-grant/src/folder/file.rs",
        find: "self.retired.map(|retired| retired.after(OVERLAP))",
        replace: "self.retired.map(|retired| retired.after(OVERLAP * 1_000_000))",
        tests: &[Test::own(
            "tenure_grant::rotation::a_retired_key_counts_until_its_last_signature_has_expired_and_no_longer",
        )],
    },
    Mutant {
        id: "G3",
        what: "a request that was not answered counts as not sent",
        file: "crates/tenure/src/http.rs",
        find: "        Err(Error::Reqwest(error)) => Sent::Unknown { why: innermost(&error) },",
        replace: "        Err(Error::Reqwest(error)) => Sent::NotDone(NotDone::NotSent { why: innermost(&error) }),",
        tests: &[Test::own("tenure::http::what_was_not_answered_is_unknown_and_settled_by_the_same_operation")],
    },
    Mutant {
        id: "G3",
        what: "what a redirect led to counts as the service's answer",
        file: "crates/tenure/src/http.rs",
        find: "    sent(asked) != sent(answered)",
        replace: "    sent(asked) != sent(answered) && asked.as_str().is_empty()",
        tests: &[Test::own("tenure::http::what_was_answered_elsewhere_is_unknown")],
    },
    Mutant {
        id: "G3",
        what: "an answer that the receiver's store has lost counts as not done",
        file: "crates/tenure-sink/src/http/problem.rs",
        find: "            SinkError::Unreachable { .. } => Kind::Unreachable,",
        replace: "            SinkError::Unreachable { .. } => Kind::Busy,",
        tests: &[Test::own(
            "tenure_sink::http::alone::what_the_receivers_own_store_has_not_answered_is_not_called_undone",
        )],
    },
];
