//! Which package may depend on which. A sink that could ask the authority would check and then act; a core that could
//! reach a clock could not be model-checked.

use super::Finding;
use crate::workspace::Package;

/// Every package of ours that may be depended on, and by whom it may be used. `apps/` stands for every package there.
const ALLOWED: &[(&str, &[&str])] = &[
    ("tenure-core", &[]),
    ("tenure-grant", &["tenure-core"]),
    ("tenure-authority", &["tenure-core", "tenure-servers"]),
    ("tenure-sink", &["tenure-core", "tenure-grant", "tenure-servers"]),
    ("tenure-servers", &[]),
    ("tenure-wire", &["tenure-core"]),
    ("tenure", &["tenure-core", "tenure-authority", "tenure-grant", "tenure-sink", "tenure-wire", "tenure-servers"]),
    ("tenure-lab", &["tenure-core", "tenure-authority", "tenure-sink", "tenure-wire", "tenure"]),
    ("tenure-cli", &["tenure", "tenure-lab", "tenure-servers"]),
    ("apps/", &["tenure", "tenure-lab", "tenure-servers"]),
    ("xtask", &[]),
];

/// A dependency for tests counts like any other, since a test that needs two crates belongs to the crate that may see
/// both. A package may depend on itself: that is how its tests switch its own features on.
#[must_use]
pub fn check(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let manifest = format!("{}/Cargo.toml", package.dir);
        let key = if package.dir.starts_with("apps/") { "apps/" } else { package.name.as_str() };
        let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == key) else {
            findings.push(Finding::new(manifest, "this package has no line in the table of tidy::directions; add one"));
            continue;
        };
        for dependency in &package.dependencies {
            let ours = packages.iter().any(|other| &other.name == dependency);
            if ours && *dependency != package.name && !allowed.contains(&dependency.as_str()) {
                let what =
                    format!("{} may not depend on {dependency}; it may on: {}", package.name, allowed.join(", "));
                findings.push(Finding::new(&manifest, what));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests;
