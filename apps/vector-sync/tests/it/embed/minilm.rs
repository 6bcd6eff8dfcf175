//! The sentence model, with its real files.

use super::{cosine, texts};
use futures_util::{FutureExt as _, StreamExt as _};
use vector_sync::chunk::chunks;
use vector_sync::embed::{EXAMPLES, EmbedError, Embedder, MINILM, Minilm};
use vector_sync::source::{FolderSource, Source};

fn model(threads: usize) -> Minilm {
    Minilm::open(&MINILM.folder(), threads).unwrap()
}

#[tokio::test]
async fn what_means_the_same_is_near() {
    let pairs = [
        ("How do I create a storage bucket?", "Making a new container for objects in the cloud."),
        ("The old worker must not write any more.", "A process that lost its lease may no longer change anything."),
        ("restart a virtual machine", "reboot an instance"),
        ("who can read this file", "access permissions of a document"),
    ];
    let others = [
        "The soup needs more salt.",
        "Penguins sleep standing up.",
        "A violin has four strings.",
        "The train is late.",
    ];
    let all: Vec<&str> = pairs.iter().flat_map(|(one, other)| [*one, *other]).chain(others).collect();
    let vectors = model(2).embed(&texts(&all)).await.unwrap();
    for pair in 0..pairs.len() {
        let near = cosine(&vectors[2 * pair], &vectors[2 * pair + 1]);
        for other in 2 * pairs.len()..all.len() {
            let far = cosine(&vectors[2 * pair], &vectors[other]);
            assert!(near > far + 0.1, "{:?}: {near}, but {far} to {:?}", pairs[pair], all[other]);
        }
    }
}

/// The numbers are those of another implementation of the model, from the same files, in double precision.
#[tokio::test]
async fn the_vectors_are_those_that_its_authors_mean() {
    let long = "word ".repeat(400);
    let known = [
        (
            "A lease expires; the old holder writes on.",
            [-0.00522, -0.03913, 0.03067, 0.01633, 0.00247, -0.00408, -0.04639],
        ),
        (
            "To create an IAM role, run the create-role command.",
            [0.01838, -0.08119, -0.04216, -0.00621, -0.08161, 0.02343, 0.07034],
        ),
        // It reads 256 parts of words.
        (&long, [-0.00812, -0.09559, -0.03867, 0.04966, -0.04379, 0.02372, -0.01814]),
    ];
    let model = model(2);
    let vectors = model.embed(&known.map(|(text, _)| text.to_owned())).await.unwrap();
    for ((text, numbers), vector) in known.iter().zip(&vectors) {
        assert_eq!(vector.len(), 384);
        assert!((cosine(vector, vector) - 1.0).abs() < 1e-5);
        for (known, found) in numbers.iter().zip(vector) {
            assert!((known - found).abs() < 2e-5, "{text:.30}: {numbers:?} and {:?}", &vector[..7]);
        }
    }
    let spent = model.spent();
    assert_eq!((spent.calls, spent.texts, spent.tokens), (1, 3, 14 + 16 + 256));
}

#[tokio::test]
async fn a_text_has_one_vector_whatever_it_is_embedded_with() {
    let all: Vec<String> =
        (0..19).map(|number| "the worker that lost its lease ".repeat(1 + number * 7 % 11)).collect();
    let all: Vec<String> = all.into_iter().enumerate().map(|(number, text)| format!("{number} {text}")).collect();
    let together = model(2).embed(&all).await.unwrap();
    let alone = model(1);
    for (text, vector) in all.iter().zip(&together) {
        let [single] = alone.embed(std::slice::from_ref(text)).await.unwrap().try_into().unwrap();
        let apart = single.iter().zip(vector).map(|(one, other)| (one - other).abs()).fold(0.0, f32::max);
        assert!(apart < 1e-6, "{apart} for {text}");
    }
}

/// Whoever has lost the right to write leaves the processor to the one who has it.
#[tokio::test]
async fn a_batch_that_nobody_waits_for_is_not_computed_to_its_end() {
    let model = model(1);
    model.embed(&texts(&["it is loaded now"])).await.unwrap();
    let long: Vec<String> = (0..64).map(|number| format!("{number} {}", "word ".repeat(250))).collect();
    // It has begun, and is dropped.
    assert!(model.embed(&long).now_or_never().is_none());
    // This one comes to its turn when the thread has left the other.
    model.embed(&texts(&["the next"])).await.unwrap();
    let spent = model.spent();
    assert!(spent.texts <= 2 + 2, "{spent:?}");
}

#[tokio::test]
async fn any_text_has_a_vector() {
    let all = texts(&["", " ", "\u{0}", "漢字", "🦀", &"x".repeat(100_000)]);
    for vector in model(2).embed(&all).await.unwrap() {
        assert!((cosine(&vector, &vector) - 1.0).abs() < 1e-5);
    }
    assert_eq!(model(1).embed(&[]).await.unwrap(), [[0_f32; 0]; 0]);
}

/// A file with the right size and other content: the program would find other things with it, and nobody would know why.
#[tokio::test]
async fn other_files_are_not_taken_for_the_model() {
    let folder = tempfile::TempDir::new().unwrap();
    for (file, ..) in MINILM.files {
        std::fs::copy(MINILM.folder().join(file), folder.path().join(file)).unwrap();
    }
    let path = folder.path().join("tokenizer.json");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[200_000] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let model = Minilm::open(folder.path(), 1).unwrap();
    let error = model.embed(&texts(&["a"])).await.unwrap_err();
    assert!(matches!(error, EmbedError::Unfit { .. }) && error.to_string().contains("tokenizer.json"), "{error}");

    std::fs::write(&path, "short").unwrap();
    let error = Minilm::open(folder.path(), 1).unwrap_err().to_string();
    assert!(error.contains("5 bytes instead of 466247") && error.contains("vector-sync fetch"), "{error}");
}

/// What a piece weighs is an estimate. Whatever of it lies beyond the 256 parts that the model reads is not found.
#[tokio::test]
async fn pieces_of_a_real_manual_are_read_to_their_end() {
    let source = FolderSource::new(&EXAMPLES.folder().join("ec2"), 1 << 24);
    let documents: Vec<_> = source.documents().collect().await;
    let mut tokenizer = tokenizers::Tokenizer::from_file(MINILM.folder().join("tokenizer.json")).unwrap();
    tokenizer.with_truncation(None).unwrap();
    tokenizer.with_padding(None);
    let (mut all, mut over, mut most) = (0, 0, 0);
    for document in documents {
        for chunk in chunks(&document.unwrap()) {
            let parts = tokenizer.encode_fast(chunk.words(), true).unwrap().len();
            all += 1;
            over += usize::from(parts > 256);
            most = most.max(parts);
        }
    }
    println!("{all} pieces, {over} of them over 256 parts, {most} at most");
    assert!(all > 1_000, "{all} pieces");
    assert!(over * 50 < all, "{over} of {all} pieces are longer than what is read, up to {most}");
}
