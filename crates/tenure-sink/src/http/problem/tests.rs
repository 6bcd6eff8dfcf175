use super::{Kind, Problem};
use std::collections::BTreeSet;
use std::time::Duration;
use tenure_core::{Ending, Epoch, GrantId, Over, ResourceName, Token, Verdict};

fn token() -> Token {
    let resource = ResourceName::new("tenant \"7\"").unwrap();
    Token { resource, epoch: Epoch::new(3).unwrap(), grant: GrantId::from_bits(1) }
}

#[test]
fn every_kind_has_a_name_of_its_own_and_is_read_again() {
    let names: BTreeSet<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(names.len(), Kind::ALL.len());
    for kind in Kind::ALL {
        let problem = Problem { waited: Some(Duration::from_millis(7)), ..Problem::new(kind, "why") };
        let response = problem.clone().into_response();
        assert_eq!(response.status(), kind.status());
        assert!(response.status().is_client_error() || response.status().is_server_error());
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        assert_eq!(Problem::parse(response.body().as_bytes()), Some(problem));
    }
}

#[test]
fn a_refusal_is_the_same_verdict_at_the_other_end() {
    let current = Epoch::new(9).unwrap();
    let over =
        |why| Verdict::Over(Over { presented: token().epoch, current: Some(current), why, holder: None, ago: None });
    let refusals =
        [Verdict::Stale { presented: token().epoch, current }, Verdict::Conflict { current }, Verdict::Unsealed];
    for verdict in refusals.into_iter().chain(Ending::ALL.map(over)) {
        let response = Problem::of_verdict(&verdict, &token()).unwrap().into_response();
        assert_eq!(response.status(), 409);
        let read = Problem::parse(response.body().as_bytes()).unwrap();
        assert_eq!((read.verdict(), read.resource.as_deref()), (Some(verdict), Some("tenant \"7\"")));
    }
    assert_eq!(Problem::of_verdict(&Verdict::Written, &token()), None);
}

#[test]
fn other_documents_are_no_problem_of_ours() {
    for body in ["", "{}", "null", r#"{"type":"about:blank","title":"x","status":409,"detail":"x"}"#] {
        assert_eq!(Problem::parse(body.as_bytes()), None, "{body}");
        assert!(!Problem::is_ours(body.as_bytes()), "{body}");
    }
    // One of a kind that only a newer program knows is ours all the same.
    let newer = br#"{"type":"urn:tenure:problem:newer","title":"x","status":409,"detail":"x"}"#;
    assert_eq!((Problem::parse(newer), Problem::is_ours(newer)), (None, true));
    // One that lacks its epochs is a problem and no verdict.
    let lame = r#"{"type":"urn:tenure:problem:stale","title":"x","status":409,"detail":"x","current_epoch":0}"#;
    assert_eq!(Problem::parse(lame.as_bytes()).unwrap().verdict(), None);
}
