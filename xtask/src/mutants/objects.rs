//! What is broken in the receiver in an object store.

use super::{Mutant, Test};

const SWAP: &str = "crates/tenure-sink/src/object/swap.rs";
const WRITE: &str = "crates/tenure-sink/src/object/write.rs";

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        id: "B1",
        what: "a put that came too late is taken for one that stands",
        file: SWAP,
        find: "            // Perhaps by what the store did itself, a moment before.\n",
        replace: "            Put::Lost if base.is_some() => {
                let version = base.map_or(UpdateVersion { e_tag: None, version: None }, |held| held.version.clone());
                return Ok(Landing::Landed(Held { manifest: Arc::new(next), version }));
            }",
        tests: &[Test::own("tenure_sink::object::writers::sixteen_writers_of_one_resource_lose_nothing")],
    },
    Mutant {
        id: "B2",
        what: "a refusal of the store's own second attempt is believed",
        file: SWAP,
        find: "            Put::Lost if bucket.repeats => {",
        replace: "            Put::Lost if bucket.repeats && base.is_none() => {",
        tests: &[
            Test::own("tenure_sink::object::answers::a_refusal_that_cannot_be_looked_into_is_no_refusal"),
            Test::own("tenure_sink::object::answers::what_is_too_long_ago_is_told_by_the_operation_alone"),
        ],
    },
    Mutant {
        id: "B2",
        what: "a change is not found behind another one",
        file: SWAP,
        find: "if found.manifest.carries(nonce) =>",
        replace: "if found.manifest.nonce == nonce =>",
        tests: &[Test::own("tenure_sink::object::answers::a_lost_answer_is_found_behind_another_s_change")],
    },
    Mutant {
        id: "B2",
        what: "a change that may stand is called refused",
        file: SWAP,
        find: "Some(why) if !follows(base, found.as_ref()) => Landing::Beyond(why),",
        replace: "Some(why) if found.is_none() && !follows(base, found.as_ref()) => Landing::Beyond(why),",
        tests: &[Test::own("tenure_sink::object::answers::what_is_too_long_ago_is_told_by_the_operation_alone")],
    },
    Mutant {
        id: "B3",
        what: "a look-up that finds nothing changes nothing",
        file: WRITE,
        find: "                (_, None) => Lookup::Absent,",
        replace: "                (None, None) => return Ok(Step::Say(Ok(Lookup::Absent))),
                (Some(_), None) => Lookup::Absent,",
        tests: &[Test::own("tenure_sink::object::answers::what_a_look_up_has_not_found_cannot_arrive_any_more")],
    },
    Mutant {
        id: "B4",
        what: "a reopening leaves the manifests alone",
        file: "crates/tenure-sink/src/object/fence.rs",
        find: "match self.touch_all(&opening).await? {",
        replace: "match None::<u64> {",
        tests: &[
            Test::own(
                "tenure_sink::object::reopening::a_write_that_was_judged_before_a_reopening_does_not_land_after_it",
            ),
            Test::own("tenure_sink::object::reopening::a_seal_that_was_judged_before_a_reopening_is_refused"),
        ],
    },
    Mutant {
        id: "B5",
        what: "a collection also removes what a name stands for",
        file: "crates/tenure-sink/src/object/collect.rs",
        find: "!named.contains(key) && (key.epoch",
        replace: "(key.epoch",
        tests: &[Test::own(
            "tenure_sink::object::collect::an_old_writer_that_wakes_finds_its_object_gone_and_is_refused",
        )],
    },
    Mutant {
        id: "B5",
        what: "a collection also removes what is on its way",
        file: "crates/tenure-sink/src/object/collect.rs",
        find: "key.epoch < token.epoch ||",
        replace: "key.epoch <= token.epoch ||",
        tests: &[Test::own(
            "tenure_sink::object::collect::what_this_epoch_uploads_stays_and_what_it_has_replaced_goes",
        )],
    },
    Mutant {
        id: "B6",
        what: "a store that overwrites another version is let pass",
        file: "crates/tenure-sink/src/object/trial.rs",
        find: "        Put::Lost => Ok(()),
        Put::Done(_) => Err(",
        replace: "        Put::Lost | Put::Done(_) => Ok(()),
        Put::NotSent(_) => Err(",
        tests: &[Test::own("tenure_sink::object::unfit::a_store_that_does_not_heed_conditions_is_refused")],
    },
    Mutant {
        id: "B7",
        what: "a manifest that cannot be read is taken for none",
        file: SWAP,
        find: "    let manifest = Manifest::parse(&bucket.called(&key), resource, rule, &read.body)?;",
        replace: "    let Ok(manifest) = Manifest::parse(&bucket.called(&key), resource, rule, &read.body) else {
        return Ok(None);
    };",
        tests: &[Test::own("tenure_sink::object::damage::a_manifest_that_no_sink_wrote_is_damage")],
    },
    Mutant {
        id: "B8",
        what: "an effect stands without its record",
        file: WRITE,
        find: "            if let Some(operation) = self.operation {",
        replace: "            if let Some(operation) = self.operation.filter(|_| false) {",
        tests: &[Test::own("tenure_sink::object::s3::a_writer_that_is_killed_leaves_all_of_it_or_nothing")],
    },
    Mutant {
        id: "B9",
        what: "writers that put one after the other leave no room",
        file: "crates/tenure-sink/src/object/desk.rs",
        find: "if self.row < ROW {",
        replace: "if self.row < u32::MAX {",
        tests: &[Test::own(
            "tenure_sink::object::desk::who_puts_one_after_the_other_takes_a_breath_in_which_a_seal_can_be_read_and_put",
        )],
    },
];
