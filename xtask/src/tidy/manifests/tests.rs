use super::check;
use crate::tidy::File;
use crate::workspace::Package;

fn package() -> Package {
    Package {
        name: "one".to_owned(),
        dir: "crates/one".to_owned(),
        description: "One.".to_owned(),
        test_binaries: vec!["it".to_owned()],
        ..Package::default()
    }
}

fn manifest(text: &str) -> File {
    File::new("crates/one/Cargo.toml", text)
}

#[test]
fn each_lack_is_found_by_itself() {
    let good = manifest("[package]\nname = \"one\"\n\n[lints]\nworkspace = true\n");
    assert!(check(std::slice::from_ref(&good), &[package()]).is_empty());
    assert_eq!(check(std::slice::from_ref(&good), &[Package { description: " ".to_owned(), ..package() }]).len(), 1);
    let two = vec!["it".to_owned(), "slow".to_owned()];
    assert_eq!(check(&[good], &[Package { test_binaries: two, ..package() }]).len(), 1);
    assert_eq!(check(&[], &[package()]).len(), 1);
}

#[test]
fn lints_of_its_own_are_not_those_of_the_workspace() {
    for text in ["[lints.rust]\nunsafe_code = \"warn\"\n", "[lints]\n[dependencies]\nworkspace = true\n"] {
        assert_eq!(check(&[manifest(text)], &[package()]).len(), 1, "{text}");
    }
}
