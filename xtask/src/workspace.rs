//! The packages of this workspace, as cargo sees them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// One package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its folder, from the root, with `/`.
    pub dir: String,
    /// Its description; empty when it has none.
    pub description: String,
    /// It has a library.
    pub is_library: bool,
    /// Its features, `default` among them.
    pub features: Vec<String>,
    /// The names of its integration test binaries.
    pub test_binaries: Vec<String>,
    /// The names of its benches.
    pub benches: Vec<String>,
    /// The names of the packages that it depends on in any way, once each.
    pub dependencies: Vec<String>,
}

/// The root of the workspace.
///
/// # Errors
///
/// The text says how to start this program.
pub fn root() -> Result<PathBuf, String> {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").ok_or("start this program as `cargo xtask`")?;
    Path::new(&manifest).parent().map(Path::to_path_buf).ok_or_else(|| "xtask has no parent folder".to_owned())
}

/// The packages of the workspace at `root`.
///
/// # Errors
///
/// Cargo could not read the manifests; the text says why.
pub fn packages(root: &Path) -> Result<Vec<Package>, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cargo could not be started: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    let text = String::from_utf8(output.stdout).map_err(|error| format!("cargo metadata is not text: {error}"))?;
    parse(&text)
}

/// Reads the answer of `cargo metadata --no-deps`.
///
/// # Errors
///
/// The text is not in that form.
pub fn parse(text: &str) -> Result<Vec<Package>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("cargo metadata is not JSON: {error}"))?;
    let root = value["workspace_root"].as_str().ok_or("cargo metadata names no workspace_root")?;
    let packages = value["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    packages.iter().map(|package| one(root, package)).collect()
}

fn one(root: &str, package: &Value) -> Result<Package, String> {
    let name = package["name"].as_str().ok_or("a package without a name")?.to_owned();
    let manifest = package["manifest_path"].as_str().ok_or_else(|| format!("{name} has no manifest_path"))?;
    let dir = Path::new(manifest)
        .parent()
        .and_then(|dir| dir.strip_prefix(root).ok())
        .ok_or_else(|| format!("{name} lies outside the workspace"))?;
    let targets = |kinds: &[&str]| -> Vec<String> {
        let is = |target: &&Value| items(&target["kind"]).any(|kind| kinds.iter().any(|&k| kind == k));
        items(&package["targets"]).filter(is).filter_map(|target| text(&target["name"])).collect()
    };
    let mut dependencies: Vec<String> =
        items(&package["dependencies"]).filter_map(|dependency| text(&dependency["name"])).collect();
    dependencies.sort();
    dependencies.dedup();
    Ok(Package {
        dir: dir.to_string_lossy().replace('\\', "/"),
        description: text(&package["description"]).unwrap_or_default(),
        is_library: !targets(&["lib", "rlib", "proc-macro"]).is_empty(),
        features: package["features"].as_object().map(|map| map.keys().cloned().collect()).unwrap_or_default(),
        test_binaries: targets(&["test"]),
        benches: targets(&["bench"]),
        dependencies,
        name,
    })
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(ToOwned::to_owned)
}

#[cfg(test)]
mod tests;
