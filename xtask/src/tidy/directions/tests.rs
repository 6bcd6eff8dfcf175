use super::check;
use crate::workspace::Package;

fn package(name: &str, dependencies: &[&str]) -> Package {
    let dependencies = dependencies.iter().map(|&name| name.to_owned()).collect();
    Package { name: name.to_owned(), dir: format!("crates/{name}"), dependencies, ..Package::default() }
}

#[test]
fn a_sink_that_could_ask_the_authority_is_found() {
    let findings = check(&[
        package("tenure-core", &[]),
        package("tenure-authority", &["tenure-core"]),
        package("tenure-sink", &["tenure-core", "tenure-authority"]),
    ]);
    assert_eq!(findings.len(), 1);
    assert!(findings[0].what.contains("tenure-sink may not depend on tenure-authority"), "{}", findings[0]);
}

#[test]
fn a_signature_knows_neither_who_grants_nor_who_receives() {
    let grant = |uses: &[&str]| package("tenure-grant", uses);
    let [core, sink, authority] = ["tenure-core", "tenure-sink", "tenure-authority"].map(|name| package(name, &[]));
    assert!(check(&[core, grant(&["tenure-core"]), package("tenure-sink", &["tenure-grant"])]).is_empty());
    assert_eq!(check(&[sink, grant(&["tenure-sink"])]).len(), 1);
    assert_eq!(check(&[authority, grant(&["tenure-authority"])]).len(), 1);
    assert_eq!(check(&[grant(&[]), package("tenure-authority", &["tenure-grant"])]).len(), 1);
}

#[test]
fn a_core_that_imports_anything_of_ours_is_found() {
    assert_eq!(check(&[package("tenure-core", &["tenure-sink"]), package("tenure-sink", &[])]).len(), 1);
}

#[test]
fn nothing_but_the_binary_and_the_apps_imports_the_lab() {
    let lab = package("tenure-lab", &[]);
    assert_eq!(check(&[lab.clone(), package("tenure", &["tenure-lab"])]).len(), 1);
    assert!(check(&[lab.clone(), package("tenure-cli", &["tenure-lab"])]).is_empty());
    let app = Package { dir: "apps/vector-sync".to_owned(), ..package("vector-sync", &["tenure-lab"]) };
    assert!(check(&[lab, app]).is_empty());
}

#[test]
fn the_servers_of_the_tests_know_nothing_of_ours() {
    let servers = package("tenure-servers", &[]);
    assert!(check(&[servers.clone(), package("tenure-authority", &["tenure-servers"])]).is_empty());
    assert_eq!(check(&[servers, package("tenure-core", &["tenure-servers"])]).len(), 1);
    assert_eq!(check(&[package("tenure-servers", &["tenure-core"]), package("tenure-core", &[])]).len(), 1);
}

#[test]
fn a_package_may_depend_on_itself_and_on_what_is_not_ours() {
    assert!(check(&[package("tenure-core", &["tenure-core", "proptest"])]).is_empty());
}

#[test]
fn a_package_without_a_line_in_the_table_is_found() {
    assert_eq!(check(&[package("tenure-more", &[])]).len(), 1);
}
