//! `list_roots`: what is served, by which rules, within which limits. Reads nothing but the
//! configuration.

use std::path::Path;

use serde_json::{Map, Value};

use crate::arguments::arguments;
use crate::error::Result;
use crate::escape::json_string;
use crate::glob::Glob;
use crate::limits::{ENTRIES_MAX, WALK_DEPTH_MAX};
use crate::page::{Header, Page};
use crate::tool::{Answer, Call, Tool};

pub(crate) const TOOL: Tool = Tool {
    name: "list_roots",
    title: "List the roots",
    description: "Tells which directories are served, what is withheld, and the limits in force. \
                  With one root, paths are relative to it; with several, a path begins with a \
                  root's name. Next: list_directory.",
    parameters: Arguments::TABLE,
    run,
};

arguments! {}

fn run(call: &Call<'_>, given: &Map<String, Value>) -> Result<Answer> {
    let Arguments {} = Arguments::parse(given)?;
    let (mut page, mut header, mut complete) = (Page::new(call, None), Header::default(), true);
    header.fact("entries", call.tree.roots().len());
    for line in lines(call, call.config.show_host_paths) {
        complete &= page.rows(&(line + "\n"));
    }
    Ok(page.answer(header, complete, false))
}

/// The roots, then the rules and limits in force, a line each.
pub(crate) fn lines(call: &Call<'_>, host_paths: bool) -> Vec<String> {
    let (config, several) = (call.config, call.tree.roots().len() > 1);
    let root = |(alias, host): (&str, &Path)| {
        let path = if several { alias } else { "." };
        let host = json_string(&host.to_string_lossy());
        let host = if host_paths { format!("  host path: {host}") } else { String::new() };
        format!("[DIR] {path}/  root: {alias}{host}")
    };
    let defaults = match config.default_excludes {
        true => "on: secrets are withheld, noise directories are listed but not searched",
        false => "off",
    };
    let globs = |globs: &[Glob]| {
        globs.iter().map(|glob| json_string(glob.as_str())).collect::<Vec<_>>().join(", ")
    };
    let rules = [
        ("default rules", defaults.into()),
        ("include", globs(&config.include)),
        ("exclude", globs(&config.exclude)),
        ("allow", globs(&config.allow)),
        ("max file bytes", config.max_file_bytes.map_or("no limit".into(), |n| n.to_string())),
        ("max result chars", config.max_result_chars.to_string()),
        ("time budget", format!("{} ms", config.time_budget_ms)),
        ("max request bytes", config.max_request_bytes.to_string()),
        ("walk depth", WALK_DEPTH_MAX.to_string()),
        ("entries per call", ENTRIES_MAX.to_string()),
    ];
    let rules = rules.iter().filter(|(_, value)| !value.is_empty());
    let rules = rules.map(|(key, value)| format!("{key}: {value}"));
    call.tree.roots().map(root).chain(rules).collect()
}
