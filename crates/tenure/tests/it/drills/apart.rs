//! A drill in namespaces of its own: this test binary once more.

use std::process::Command;

/// Whether this process is the one that runs the drill `test`. If not, such a process is started with these namespaces of its
/// own (as `unshare` calls them), and must succeed.
pub(super) fn is_apart(test: &str, namespaces: &[&str]) -> bool {
    const APART: &str = "TENURE_DRILL_APART";
    if std::env::var(APART).is_ok_and(|of| of == test) {
        return true;
    }
    let mut command = Command::new("unshare");
    command.args(namespaces).arg(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(APART, test);
    // Nothing but the drill's own network is there.
    for name in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap_or_else(|error| panic!("apt-get install --yes util-linux: {error}"));
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{said}");
    assert!(
        !said.contains("unshare failed"),
        "this drill has a network or a disk of its own, which only root makes: sudo -E cargo xtask test"
    );
    assert!(output.status.success() && said.contains("1 passed"), "{test} failed");
    false
}
