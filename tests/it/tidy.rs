//! What a reader may rely on in the tree itself, checked by reading it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::CODES;
use crate::transcripts;

/// Lines of `src/` without tests, comments counted.
const SOURCE_LINES_MAX: usize = 4_500;
/// Lines of the one file that touches the disk.
const DISK_LINES_MAX: usize = 500;
/// Codes that no transcript can provoke.
const UNPROVOKED: [&str; 3] = ["internal-error", "permission-denied", "io-error"];

fn manifest() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below a directory that is ours; what git and cargo make is not.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name();
            if entry.file_type().unwrap().is_dir() {
                if !["target", ".git"].iter().any(|skipped| name == *skipped) {
                    pending.push(entry.path());
                }
            } else {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

/// The source files: path below `src/` and text before the tests.
fn sources() -> Vec<(String, String)> {
    let source = manifest().join("src");
    let own = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap().to_owned();
        (path.strip_prefix(&source).unwrap().to_str().unwrap().to_owned(), text)
    };
    files(&source).into_iter().map(own).collect()
}

/// The Rust files of ours, tests included.
fn rust_files() -> Vec<(PathBuf, String)> {
    let rust =
        files(manifest()).into_iter().filter(|path| path.extension().is_some_and(|e| e == "rs"));
    rust.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn every_file_says_what_it_is() {
    for (path, text) in rust_files() {
        assert!(text.starts_with("//! "), "{path:?} does not open with //!");
    }
}

#[test]
fn nothing_is_left_undone() {
    // In two pieces, so that this file does not find itself.
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("#[ig", "nore")];
    for (path, text) in rust_files() {
        for mark in marks {
            assert!(!text.contains(mark), "{path:?} has {mark}");
        }
    }
}

#[test]
fn one_file_touches_the_disk() {
    for (path, text) in sources() {
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in code {
            for name in ["std::fs", "OpenOptions", "custom_flags", "fs::File", "File::open"] {
                assert!(path == "disk.rs" || !line.contains(name), "{path} names {name}: {line}");
            }
        }
    }
}

#[test]
fn the_source_stays_small() {
    let with_text = |text: String| text.lines().filter(|line| !line.trim().is_empty()).count();
    let lines: Vec<_> = sources().into_iter().map(|(p, text)| (p, with_text(text))).collect();
    let total: usize = lines.iter().map(|(_, count)| count).sum();
    assert!(total <= SOURCE_LINES_MAX, "{total} lines: {lines:?}");
    let disk = lines.iter().find(|(path, _)| path == "disk.rs").map_or(0, |(_, count)| *count);
    assert!(disk <= DISK_LINES_MAX, "disk.rs has {disk} lines");
}

#[test]
fn no_home_paths_and_no_tokens() {
    let tokens = ["ghp_", "github_pat_", "sk-ant-", "xoxb-", "AKIA", "BEGIN RSA", "BEGIN OPENSSH"];
    let marks = ["/home/", "/Users/", "/root/"].iter().chain(&tokens).map(|mark| mark.as_bytes());
    let marks: Vec<_> = marks.collect();
    for path in files(manifest()) {
        if path.ends_with("tests/it/tidy.rs") {
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        for mark in &marks {
            // `name/root/` is a directory of a test, `"/root/` a home.
            let at = memchr::memmem::find_iter(&bytes, mark).find(|at| {
                *at == 0 || !(bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'.')
            });
            assert!(at.is_none(), "{path:?} has {}", String::from_utf8_lossy(mark));
        }
    }
}

#[test]
fn every_code_has_a_transcript() {
    let all: String = transcripts::all()
        .into_iter()
        .flat_map(|(_, steps)| steps)
        .filter(|step| step.get("want").is_some())
        .map(|step| step.to_string())
        .collect();
    for code in CODES {
        let quoted = format!("\"code\":\"{code}\"");
        assert!(all.contains(&quoted) || UNPROVOKED.contains(&code), "{code} has no transcript");
    }
}
