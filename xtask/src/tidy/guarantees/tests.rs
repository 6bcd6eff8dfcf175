use super::{DOCUMENT, check, find, promises};
use crate::tidy::File;
use crate::workspace::Package;

fn packages() -> Vec<Package> {
    vec![Package { name: "tenure-core".to_owned(), dir: "crates/tenure-core".to_owned(), ..Package::default() }]
}

fn files() -> Vec<File> {
    vec![
        File::new(
            "crates/tenure-core/src/fence/tests.rs",
            "#[test]\nfn holds() {}\n\nfn helper() {}\n\nmod inner {\n    #[tokio::test(flavor = \"current_thread\")]\n    // why\n    async fn deep() {}\n}\n",
        ),
        File::new("crates/tenure-core/src/conformance/swap.rs", "pub fn one_winner() {}\n"),
        File::new("crates/tenure-sink/src/tests.rs", "#[test]\nfn foreign() {}\n"),
    ]
}

/// The document with every required row, each with this test.
fn document(test: &str) -> File {
    let ids = super::REQUIRED;
    let rows = ids.iter().flat_map(|&(letter, last)| (1..=last).map(move |n| format!("{letter}{n}")));
    let rows: String = rows.map(|id| format!("| {id} | says | {test} |\n")).collect();
    File::new(DOCUMENT, &format!("# Text\n\n| id | what | tests |\n|---|---|---|\n{rows}"))
}

fn findings(document: File) -> Vec<String> {
    let mut files = files();
    files.push(document);
    check(&files, &packages()).iter().map(ToString::to_string).collect()
}

#[test]
fn a_document_whose_tests_exist_passes() {
    assert_eq!(
        findings(document("`tenure_core::fence::tests::holds`, `tenure_core::conformance::swap::one_winner`")),
        Vec::<String>::new()
    );
}

#[test]
fn no_document_is_a_finding() {
    assert_eq!(check(&files(), &packages()).len(), 1);
}

#[test]
fn a_guarantee_that_is_left_out_or_names_no_test_is_found() {
    let mut text = document("`tenure_core::fence::tests::holds`");
    text.text = text.text.lines().filter(|line| !line.starts_with("| L6")).map(|line| format!("{line}\n")).collect();
    assert_eq!(findings(text).len(), 1);
    assert_eq!(findings(document("by hand")).len(), 45);
}

#[test]
fn a_test_that_does_not_exist_is_found_whatever_is_wrong_with_it() {
    let why = |test: &str| find(test, &files(), &packages()).unwrap_err();
    assert!(find("tenure_core::fence::tests::holds", &files(), &packages()).is_ok());
    assert!(find("tenure_core::fence::tests::inner::deep", &files(), &packages()).is_ok());
    assert_eq!(why("tenure_core::fence::tests::gone"), "there is no such function");
    assert_eq!(why("tenure_core::fence::tests::foreign"), "there is no such function");
    assert_eq!(why("tenure_sink::tests::foreign"), "there is no crate tenure_sink");
    assert_eq!(why("tenure_core::epoch::tests::holds"), "the function is in crates/tenure-core/src/fence/tests.rs");
    assert_eq!(
        why("tenure_core::fence::tests::helper"),
        "the function in crates/tenure-core/src/fence/tests.rs is no test"
    );
    assert!(find("holds", &files(), &packages()).is_err());
}

#[test]
fn only_tables_that_end_with_tests_promise() {
    let text =
        "| id | where not |\n|---|---|\n| V4 | SQLite |\n\n| id | Test |\n|:--|--:|\n| **I1** | `a::b` and `c::d` |\n";
    let rows = promises(text);
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].line, rows[0].id, rows[0].tests.clone()), (6, "I1", vec!["a::b", "c::d"]));
}
