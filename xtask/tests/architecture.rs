//! The dependencies between the crates have one direction, and the wire crate uses no runtime.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, PackageId};

/// The crates that each crate may use, apart from tests.
const ALLOWED_DEPENDENCIES: &[(&str, &[&str])] = &[
    ("outlast-wire", &[]),
    ("outlast-engine", &["outlast-wire"]),
    ("outlast-store", &["outlast-engine", "outlast-wire"]),
    (
        "outlast",
        &["outlast-engine", "outlast-store", "outlast-wire"],
    ),
    (
        "outlast-console",
        &["outlast", "outlast-engine", "outlast-wire"],
    ),
    (
        "outlast-cli",
        &[
            "outlast",
            "outlast-console",
            "outlast-engine",
            "outlast-store",
            "outlast-wire",
        ],
    ),
    (
        "outlast-testkit",
        &["outlast", "outlast-engine", "outlast-store", "outlast-wire"],
    ),
    (
        "outlast-bench",
        &["outlast", "outlast-engine", "outlast-store", "outlast-wire"],
    ),
    ("xtask", &[]),
];

/// Crates that run futures, open sockets or use files.
const RUNTIMES: &[&str] = &[
    "tokio",
    "async-std",
    "smol",
    "mio",
    "hyper",
    "rusqlite",
    "futures-executor",
];

/// The tree for this machine only, so that nothing needs to be downloaded.
fn metadata() -> Metadata {
    let rustc = std::process::Command::new("rustc")
        .arg("-vV")
        .output()
        .expect("rustc runs");
    let about = String::from_utf8(rustc.stdout).expect("rustc speaks UTF-8");
    let host = about
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .expect("a host");
    let options = ["--offline", "--filter-platform", host].map(String::from);
    MetadataCommand::new()
        .other_options(options)
        .exec()
        .expect("cargo metadata")
}

#[test]
fn dependencies_have_one_direction() {
    let metadata = metadata();
    let ours: BTreeSet<_> = metadata
        .workspace_packages()
        .iter()
        .map(|p| p.name.to_string())
        .collect();
    let arrows: BTreeMap<_, _> = ALLOWED_DEPENDENCIES.iter().copied().collect();
    assert_eq!(
        ours,
        arrows.keys().map(|name| (*name).to_string()).collect(),
        "a crate without a rule"
    );
    for package in metadata.workspace_packages() {
        let allowed = arrows[package.name.as_str()];
        for used in package
            .dependencies
            .iter()
            .filter(|used| ours.contains(&used.name))
        {
            let test_only = used.kind == DependencyKind::Development;
            let fine = test_only || allowed.contains(&used.name.as_str());
            assert!(fine, "{} may not use {}", package.name, used.name);
        }
    }
}

#[test]
fn the_testkit_is_a_development_dependency_only() {
    for package in metadata().workspace_packages() {
        for used in package
            .dependencies
            .iter()
            .filter(|used| used.name == "outlast-testkit")
        {
            assert_eq!(used.kind, DependencyKind::Development, "{}", package.name);
        }
    }
}

#[test]
fn the_wire_has_no_runtime_in_its_tree() {
    let metadata = metadata();
    let wire = metadata
        .workspace_packages()
        .into_iter()
        .find(|p| p.name.as_str() == "outlast-wire");
    let tree = normal_tree(&metadata, &wire.expect("the wire crate").id);
    for runtime in RUNTIMES {
        assert!(!tree.contains(*runtime), "outlast-wire reaches {runtime}");
    }
    assert!(tree.contains("serde_json"), "the tree was not walked");
}

#[test]
fn the_engine_uses_no_sql_and_no_sockets() {
    let metadata = metadata();
    let packages = metadata.workspace_packages();
    let engine = packages
        .into_iter()
        .find(|p| p.name.as_str() == "outlast-engine");
    let engine = engine.expect("the engine crate");
    let tree = normal_tree(&metadata, &engine.id);
    for stranger in ["rusqlite", "hyper", "axum", "reqwest", "shuttle"] {
        assert!(
            !tree.contains(stranger),
            "outlast-engine reaches {stranger}"
        );
    }
    // Other crates enable more features of tokio. Only the engine's own features count.
    let normal = engine
        .dependencies
        .iter()
        .filter(|used| used.kind == DependencyKind::Normal);
    for feature in normal
        .filter(|used| used.name == "tokio")
        .flat_map(|used| &used.features)
    {
        let fine = ["sync", "rt", "time", "macros"].contains(&feature.as_str());
        assert!(fine, "outlast-engine asks for tokio's {feature}");
    }
}

/// The names of all crates that `root` uses in a normal build, itself included.
fn normal_tree(metadata: &Metadata, root: &PackageId) -> BTreeSet<String> {
    let resolve = metadata.resolve.as_ref().expect("a resolved tree");
    let mut seen = BTreeSet::new();
    let mut todo = vec![root.clone()];
    while let Some(id) = todo.pop() {
        if !seen.insert(id.clone()) {
            continue;
        }
        let node = resolve
            .nodes
            .iter()
            .find(|node| node.id == id)
            .expect("every node is listed");
        let normal = node.deps.iter().filter(|dep| {
            dep.dep_kinds
                .iter()
                .any(|kind| kind.kind == DependencyKind::Normal)
        });
        todo.extend(normal.map(|dep| dep.pkg.clone()));
    }
    seen.iter()
        .map(|id| metadata[id].name.to_string())
        .collect()
}
