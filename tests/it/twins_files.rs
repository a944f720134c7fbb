//! `search_files` against a naive twin; see [`crate::twins`].

use std::collections::BTreeMap;

use serde_json::json;

use crate::support::{Random, Reply, Server, WHOLE};
use crate::twins::{CALLS, PLACES, fold, forest, pick, rounds};

#[test]
fn search_files_is_its_twin() {
    let mut random = Random::new();
    for _ in 0..rounds() {
        let (tree, files) = forest(&mut random);
        let mut entries: BTreeMap<Vec<String>, bool> = BTreeMap::new();
        for path in files.keys() {
            for end in 1..path.len() {
                entries.insert(path[..end].to_vec(), true);
            }
            entries.insert(path.clone(), false);
        }
        let mut server = Server::new(&tree, &[WHOLE]);
        for _ in 0..CALLS {
            let pattern = pick(
                &mut random,
                &[
                    "*", "a", "A", "d", "\u{c9}", ".t", "d/a", "/", "*.txt", "d*/**", "**/b*", "?",
                    "{d,b}*", "D", "zz",
                ],
            );
            let (kind, place) =
                (pick(&mut random, &["any", "file", "dir"]), pick(&mut random, &PLACES));
            if !tree.root().join(place).is_dir() {
                continue;
            }
            let start: Vec<&str> = place.split('/').filter(|part| *part != ".").collect();
            let matches = |path: &[String]| {
                let (name, all) = (fold(path.last().unwrap()), fold(&path.join("/")));
                match pattern {
                    "*" => true,
                    "*.txt" => name.ends_with(".txt"),
                    "?" => name.chars().count() == 1,
                    "{d,b}*" => name.starts_with('d') || name.starts_with('b'),
                    "d*/**" => path.len() > 1 && fold(&path[0]).starts_with('d'),
                    "**/b*" => name.starts_with('b'),
                    _ if pattern.contains('/') => all.contains(&fold(pattern)),
                    _ => name.contains(&fold(pattern)),
                }
            };
            let inside = entries.iter().filter(|(path, is_dir)| {
                path.len() > start.len()
                    && path.iter().zip(&start).all(|(a, b)| a == b)
                    && (kind == "any" || (kind == "dir") == **is_dir)
                    && matches(&path[start.len()..])
            });
            let expected: Vec<String> = inside
                .map(|(path, is_dir)| match is_dir {
                    true => format!("[DIR] {}/", path.join("/")),
                    false => format!("[FILE] {}", path.join("/")),
                })
                .collect();
            let arguments = json!({"pattern": pattern, "path": place, "type": kind});
            for limit in [1_000_000, 1 + random.below(6)] {
                let mut arguments = arguments.clone();
                arguments["limit"] = json!(limit);
                let pages = server.pages("search_files", &arguments);
                let rows = pages.iter().filter(|page| page.number("matches") > 0);
                let rows: Vec<&str> = rows.flat_map(Reply::rows).collect();
                assert_eq!(rows, expected, "{arguments}");
                let pages_expected = expected.len().div_ceil(limit).max(1);
                assert_eq!(pages.len(), pages_expected, "{arguments}");
            }
        }
    }
}
