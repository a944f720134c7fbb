//! `list_roots`: what is served, by which rules, within which limits. Reads nothing but the
//! configuration.

use crate::arguments::tool;
use crate::disk::Kind;
use crate::error::Result;
use crate::escape::json_string;
use crate::limits::{ENTRIES_MAX, HEADER_CHARS_MAX, WALK_DEPTH_MAX};
use crate::page::Page;
use crate::rows::row;
use crate::tool::Call;

tool! {
    name: "list_roots",
    title: "List the roots",
    description: "Tells which directories are served, what is withheld, and the limits in force. \
                  With one root, paths are relative to it; with several, a path begins with a \
                  root's name. Next: list_directory.",
}

fn run(call: &Call<'_>, _: Arguments) -> Result<Page> {
    let mut page = Page::new(call, None, HEADER_CHARS_MAX);
    page.fact("entries", call.tree.roots.len());
    rows(call, call.config.show_host_paths).iter().for_each(|row| page.row_or_count(row));
    Ok(page)
}

/// The roots, then the rules and limits in force, a line each.
pub(crate) fn rows(call: &Call<'_>, host_paths: bool) -> Vec<String> {
    let config = call.config;
    let roots = call.tree.roots.iter().map(|root| {
        let host = json_string(&root.resolved.to_string_lossy());
        let host = if host_paths { format!("  host path: {host}") } else { String::new() };
        format!("{}  root: {}{host}", row(Kind::Dir, root.top.as_str()), root.alias)
    });
    let defaults = match config.default_excludes {
        true => "on: secrets are withheld, noise directories are listed but not searched",
        false => "off",
    };
    let globs =
        [("include", &config.include), ("exclude", &config.exclude), ("allow", &config.allow)];
    let globs = globs.into_iter().flat_map(|(name, globs)| {
        globs.iter().map(move |glob| format!("{name}: {}", json_string(&glob.text)))
    });
    let max_file_bytes = config.max_file_bytes.map_or("no limit".into(), |max| max.to_string());
    let limits = [
        format!("max file bytes: {max_file_bytes}"),
        format!("max result chars: {}", config.max_result_chars),
        format!("time budget: {} ms", config.time_budget_ms),
        format!("max request bytes: {}", config.max_request_bytes),
        format!("walk depth: {WALK_DEPTH_MAX}"),
        format!("entries per call: {ENTRIES_MAX}"),
    ];
    let rows = roots.chain([format!("default rules: {defaults}")]).chain(globs).chain(limits);
    rows.map(|row| row + "\n").collect()
}
