use super::*;

fn cosine(one: &str, other: &str) -> f32 {
    vector(one).0.iter().zip(vector(other).0).map(|(one, other)| one * other).sum()
}

#[test]
fn the_same_words_are_near_and_others_are_not() {
    let question = "how to rotate access keys";
    let near = cosine(question, "Rotate the access keys of a user every ninety days.");
    let far = cosine(question, "The balloon rises when the air in it is warm.");
    assert!(near > far + 0.2, "{near} and {far}");
}

#[test]
fn the_order_of_words_counts() {
    let straight = cosine("delete bucket policy", "delete bucket policy");
    let turned = cosine("delete bucket policy", "policy bucket delete");
    assert!((straight - 1.0).abs() < 1e-6, "{straight}");
    assert!(turned < 0.99 && turned > 0.5, "{turned}");
}

#[test]
fn every_text_has_a_vector_of_length_one() {
    for text in ["", " \n", "...", "a", "词语", "İstanbul", "\u{0}\u{fffd}", &"word ".repeat(10_000)] {
        let (vector, _) = vector(text);
        let length: f32 = vector.iter().map(|number| number * number).sum();
        assert!((length - 1.0).abs() < 1e-5, "{text:.20?} has {length}");
    }
}

/// Vectors are kept under the model's name. If this fails, the algorithm has changed: give it a new name.
#[test]
fn the_vector_of_a_text_stays_the_same() {
    let (vector, words) = vector("Leases with epochs: the right to write, 写入资格.");
    let places: Vec<String> = (0..usize::from(DIMENSIONS))
        .filter(|place| vector[*place] != 0.0)
        .map(|place| format!("{place}:{:.3}", vector[place]))
        .collect();
    assert_eq!(words, 11);
    assert_eq!(
        places.join(" "),
        "2:0.280 25:0.042 27:0.140 42:-0.084 47:-0.140 49:-0.084 53:0.280 63:-0.280 83:-0.280 89:-0.042 115:-0.042 \
         125:-0.560 140:-0.280 144:0.140 145:-0.042 169:0.140 194:0.280 204:-0.140 233:-0.280 242:-0.140"
    );
}

#[tokio::test]
async fn what_was_asked_is_counted() {
    let model = Words::default();
    let texts = ["one two".to_owned(), "three".to_owned()];
    let vectors = model.embed(&texts).await.unwrap();
    assert_eq!(vectors, [vector("one two").0, vector("three").0]);
    assert_eq!(model.spent(), Spent { calls: 1, texts: 2, tokens: 3 });
}
