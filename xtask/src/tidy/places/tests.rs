use super::check;
use crate::tidy::File;

#[test]
fn a_path_of_a_machine_is_found() {
    for text in [
        concat!("open(\"/wo", "rk/db\")"),
        concat!("/ho", "me/x"),
        concat!("db=/ro", "ot/x"),
        concat!("`/Us", "ers/x`"),
    ] {
        assert_eq!(check(&[File::new("a.sh", text)]).len(), 1, "{text}");
    }
}

#[test]
fn a_host_of_packages_is_found() {
    for text in
        [concat!("see https://crates", ".io/x"), concat!("https://docs", ".rs/x"), concat!("index = pypi", ".org")]
    {
        assert_eq!(check(&[File::new("README.md", text)]).len(), 1, "{text}");
    }
}

#[test]
fn relative_paths_file_names_and_the_lock_file_are_left_alone() {
    let text = concat!("src/wo", "rk/a.rs $DIR/ho", "me/x s3://b/ro", "ot/x src/docs", ".rs /var/lib/x");
    assert!(check(&[File::new("a.md", text)]).is_empty());
    assert!(check(&[File::new("Cargo.lock", concat!("crates", ".io"))]).is_empty());
}
