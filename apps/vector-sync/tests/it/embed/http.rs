//! A model behind HTTP, on a real server that misbehaves.

use super::endpoint::{Endpoint, Fault};
use super::{cosine, texts};
use serde_json::json;
use vector_sync::embed::{EmbedError, Embedder, Spent, Words, choose};

fn model(endpoint: &Endpoint, settings: &str) -> Box<dyn Embedder> {
    choose(&format!("{}#small&dimensions=256{settings}", endpoint.url)).unwrap()
}

fn some(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("text number {number}")).collect()
}

async fn right(texts: &[String], found: &[Vec<f32>]) {
    let known = Words::default().embed(texts).await.unwrap();
    assert_eq!(known.len(), found.len());
    for (known, found) in known.iter().zip(found) {
        assert!((cosine(known, found) - 1.0).abs() < 1e-5, "another text's vector, or not of length one");
    }
}

#[tokio::test]
async fn vectors_come_in_the_order_of_the_texts() {
    let endpoint = Endpoint::start(|number, _| if number == 1 { Fault::Turned } else { Fault::None }).await;
    let model = model(&endpoint, "");
    for _ in 0..2 {
        let found = model.embed(&some(7)).await.unwrap();
        right(&some(7), &found).await;
    }
    assert_eq!(model.spent(), Spent { calls: 2, texts: 14, tokens: 140 });
    let asked = endpoint.asked();
    assert_eq!((asked[0].model.as_str(), asked[0].texts.len()), ("small", 7));
}

#[tokio::test]
async fn what_may_pass_is_asked_again_when_the_service_says() {
    let endpoint = Endpoint::start(|number, _| match number {
        0 => Fault::Status(429, &[("retry-after", "0")], "slow down".to_owned()),
        // A date is compared with the service's own clock, whatever the time is here.
        1 => Fault::Status(
            503,
            &[("retry-after", "Mon, 07 Jan 2002 10:00:00 GMT"), ("date", "Mon, 07 Jan 2002 10:00:00 GMT")],
            "busy".to_owned(),
        ),
        // It says nothing about when.
        2 => Fault::Status(500, &[], "oh".to_owned()),
        _ => Fault::None,
    })
    .await;
    let model = model(&endpoint, "");
    let found = model.embed(&some(2)).await.unwrap();
    right(&some(2), &found).await;
    assert_eq!(endpoint.calls(), 4);
    assert_eq!(model.spent(), Spent { calls: 4, texts: 2, tokens: 20 });
}

#[tokio::test]
async fn a_service_that_stays_away_is_given_up() {
    let endpoint = Endpoint::start(|_, _| Fault::Status(503, &[("retry-after", "0")], "ill".to_owned())).await;
    let error = model(&endpoint, "").embed(&some(1)).await.unwrap_err();
    assert!(matches!(error, EmbedError::Failed { .. }), "{error:?}");
    assert!(error.to_string().contains("503: ill") && error.to_string().contains("6 tries"), "{error}");
    assert_eq!(endpoint.calls(), 6);
}

#[tokio::test]
async fn an_hour_is_not_waited_for() {
    let endpoint = Endpoint::start(|_, _| Fault::Status(429, &[("retry-after", "3600")], "later".to_owned())).await;
    let error = model(&endpoint, "").embed(&some(1)).await.unwrap_err().to_string();
    assert!(error.contains("asks to wait for 3600 s"), "{error}");
    assert_eq!(endpoint.calls(), 1);
}

#[tokio::test]
async fn a_batch_that_is_too_large_is_halved_and_stays_so() {
    let endpoint = Endpoint::start(|_, texts| match texts.len() {
        5.. => Fault::Status(400, &[], "the maximum is 4".to_owned()),
        _ => Fault::None,
    })
    .await;
    let model = model(&endpoint, "");
    for _ in 0..2 {
        let found = model.embed(&some(16)).await.unwrap();
        right(&some(16), &found).await;
    }
    let sizes: Vec<usize> = endpoint.asked().iter().map(|asked| asked.texts.len()).collect();
    assert_eq!(sizes, [16, 8, 4, 4, 4, 4, 4, 4, 4, 4]);
}

#[tokio::test]
async fn one_text_that_is_too_large_is_named_by_its_place() {
    let endpoint = Endpoint::start(|_, texts| match texts.iter().any(|text| text.contains("number 2")) {
        true => Fault::Status(413, &[], "too long".to_owned()),
        false => Fault::None,
    })
    .await;
    let error = model(&endpoint, "").embed(&some(4)).await.unwrap_err().to_string();
    assert!(error.contains("text 3 of 4 is too large"), "{error}");
}

#[tokio::test]
async fn answers_are_not_believed_unseen() {
    let vector = |number: f32| vec![number; 256];
    let data = |items: Vec<serde_json::Value>| json!({ "data": items }).to_string();
    let good = json!({ "index": 0, "embedding": vector(1.0) });
    let wrong = [
        (data(vec![good.clone()]), "1 vectors for 2 texts"),
        (data(vec![good.clone(), good.clone()]), "two vectors for text 0"),
        (data(vec![good.clone(), json!({ "index": 2, "embedding": vector(1.0) })]), "vector for text 2"),
        (data(vec![good.clone(), json!({ "index": 1, "embedding": [1.0] })]), "dimensions=1 if that is right"),
        (data(vec![good.clone(), json!({ "index": 1, "embedding": vector(0.0) })]), "no direction"),
        (data(vec![good.clone(), json!({ "index": 1, "embedding": vec![f32::NAN; 256] })]), "no number"),
        (data(vec![good.clone(), json!({ "index": 1, "embedding": vec![1e300; 256] })]), "no direction"),
        (json!({ "vectors": [] }).to_string(), "missing"),
        ("<html>welcome</html>".to_owned(), "no JSON"),
        (data(vec![good]).replace("]}", ""), "cut off"),
    ];
    for (said, why) in wrong {
        let answer = said.clone();
        let endpoint = Endpoint::start(move |_, _| Fault::Said(answer.clone())).await;
        let error = model(&endpoint, "").embed(&some(2)).await.unwrap_err();
        assert!(matches!(error, EmbedError::Failed { .. }), "{error:?}");
        assert!(error.to_string().contains(why), "{said:.60}: {error}");
        // The same would be said again.
        assert_eq!(endpoint.calls(), 1);
    }
}

#[tokio::test]
async fn an_answer_without_an_end_is_not_read() {
    let endpoint = Endpoint::start(|_, _| Fault::Said(" ".repeat(65 << 20))).await;
    let error = model(&endpoint, "").embed(&some(1)).await.unwrap_err().to_string();
    assert!(error.contains("more than 67108864 bytes"), "{error}");
}

/// `CARGO_PKG_NAME` is set wherever tests run: it is the key here.
#[tokio::test]
async fn the_key_is_sent_and_never_shown() {
    let endpoint = Endpoint::start(|number, _| match number {
        0 => Fault::None,
        _ => Fault::Status(401, &[], "the key vector-sync is wrong".to_owned()),
    })
    .await;
    let model = model(&endpoint, "&key=CARGO_PKG_NAME");
    model.embed(&some(1)).await.unwrap();
    assert_eq!(endpoint.asked()[0].key.as_deref(), Some("Bearer vector-sync"));
    let error = model.embed(&some(1)).await.unwrap_err();
    assert!(matches!(error, EmbedError::Unfit { .. }), "{error:?}");
    let (said, shown) = (error.to_string(), format!("{model:?}"));
    assert!(said.contains("CARGO_PKG_NAME"), "{said}");
    assert!(!said.contains("vector-sync") && !shown.contains("vector-sync"), "{said}, {shown}");
    assert_eq!(endpoint.calls(), 2);
}

#[tokio::test]
async fn a_complaint_that_repeats_a_text_is_not_repeated() {
    let endpoint = Endpoint::start(|_, texts| Fault::Status(422, &[], format!("cannot read {:?}", texts[0]))).await;
    let said = texts(&["the diagnosis is pneumonoultramicroscopic"]);
    let error = model(&endpoint, "").embed(&said).await.unwrap_err().to_string();
    assert!(error.contains("422") && !error.contains("pneumono"), "{error}");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let endpoint = Endpoint::start(|_, _| Fault::Status(307, &[("location", "/v1/other")], String::new())).await;
    let error = model(&endpoint, "").embed(&some(1)).await.unwrap_err().to_string();
    assert!(error.contains("307"), "{error}");
    assert_eq!(endpoint.calls(), 1);
}

#[tokio::test]
async fn a_budget_is_kept_before_the_call_that_would_exceed_it() {
    let endpoint = Endpoint::start(|_, _| Fault::None).await;
    // "text number 0" weighs 3 and costs 10.
    let by_tokens = model(&endpoint, "&max-tokens=25");
    by_tokens.embed(&some(2)).await.unwrap();
    let error = by_tokens.embed(&some(2)).await.unwrap_err();
    assert!(matches!(error, EmbedError::Budget { .. }), "{error:?}");
    assert!(
        error.to_string().contains("20 of 25 tokens were used") && error.to_string().contains("about 6"),
        "{error}"
    );
    assert_eq!(by_tokens.spent(), Spent { calls: 1, texts: 2, tokens: 20 });
    by_tokens.embed(&some(1)).await.unwrap();
    assert_eq!(endpoint.calls(), 2);

    let by_calls = model(&endpoint, "&max-calls=1");
    by_calls.embed(&some(1)).await.unwrap();
    let error = by_calls.embed(&some(1)).await.unwrap_err();
    assert!(matches!(error, EmbedError::Budget { .. }), "{error:?}");
    assert_eq!(endpoint.calls(), 3);
}

/// Who has lost the right to write buys nothing more: the call ends with the wait for it.
#[tokio::test]
async fn a_call_that_nobody_waits_for_ends() {
    let endpoint = Endpoint::start(|number, _| if number == 0 { Fault::Silence } else { Fault::None }).await;
    // Three texts are taken for 9 tokens: what a call had set aside is free again when it has ended.
    let model = model(&endpoint, "&max-tokens=15");
    {
        let texts = some(3);
        tokio::select! {
            found = model.embed(&texts) => panic!("{found:?}"),
            () = endpoint.is_silent() => {}
        }
    }
    assert_eq!(model.spent(), Spent { calls: 1, texts: 0, tokens: 0 });
    let found = model.embed(&some(3)).await.unwrap();
    right(&some(3), &found).await;
    assert_eq!(endpoint.calls(), 2);
}
