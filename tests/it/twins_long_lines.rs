//! `search_text` in lines of many blocks, against the twin for short ones; see [`crate::twins`].

use serde_json::json;

use crate::support::{Random, Server, Tree, WHOLE};
use crate::twins::{agree, by_file, pick, rounds, search};

#[test]
fn lines_of_many_blocks_are_searched_like_short_ones() {
    let mut random = Random::new();
    let tree = Tree::new();
    let mut server = Server::new(&tree, &[WHOLE, "--time-budget=50000"]);
    for round in 0..3 * rounds() {
        let mut text = String::new();
        for _ in 0..1 + random.below(3) {
            // Hits lie anywhere, and at both edges of a block and of what blocks have in common.
            let edges = [0, 4 << 10, 8 << 10, 248 << 10, 252 << 10, 256 << 10, 504 << 10];
            for _ in 0..random.below(3) {
                let to = edges[random.below(edges.len())] + random.below(16);
                let unit = pick(&mut random, &["z", "z", "\u{e9}", "\u{20ac}z"]);
                text.push_str(&unit.repeat(to.saturating_sub(text.len()) / unit.len()));
                text.push_str(pick(&mut random, &["needle", "NEEDLE", "_needle", " needle "]));
            }
            text.push_str(&"z".repeat(random.below(300 << 10)));
            text.push('\n');
        }
        tree.write("f", &text);
        let (ignore, word) = (random.below(2) == 0, random.below(2) == 0);
        let expected = search(text.as_bytes(), "needle", ignore, word, 0);
        let arguments = json!({"query": "needle", "ignore_case": ignore, "whole_word": word});
        for limit in [100, 1] {
            let mut arguments = arguments.clone();
            arguments["limit"] = json!(limit);
            let pages = server.pages("search_text", &arguments);
            let files = by_file(&pages);
            let rows = files.first().map_or(&[][..], |(_, rows)| rows);
            if let Err(why) = agree(rows, &expected, true) {
                panic!("{arguments} in round {round}: {why}");
            }
        }
    }
}

#[test]
fn pages_that_the_time_budget_ends_join_to_the_whole() {
    let tree = Tree::new();
    let line = |unit: &str| format!("{}needle{}\n", unit.repeat(6 << 20), "z".repeat(9_000));
    tree.write("f", [line("z"), "needle\n".into(), line("\u{e9}"), line("z")].concat());
    let mut rows = [50_000, 50].map(|budget| {
        let mut server = Server::new(&tree, &[&format!("--time-budget={budget}")]);
        let pages = server.pages("search_text", &json!({"query": "NEEDLE", "ignore_case": true}));
        let counted = server.pages("search_text", &json!({"query": "needle", "output": "count"}));
        assert_eq!(counted.last().unwrap().number("matches"), 4, "{:?}", counted.last());
        let rows: Vec<String> =
            by_file(&pages).remove(0).1.into_iter().map(str::to_owned).collect();
        rows
    });
    // How much follows a hit may not be known when the time is up.
    for row in rows.iter_mut().flatten() {
        if let Some((before, after)) = row.split_once(" before, ") {
            *row = format!("{before} {}", after.split_once(" after] ").unwrap().1);
        }
    }
    assert_eq!(rows[0].len(), 4);
    assert_eq!(rows[0], rows[1]);
}
