//! A tree that does not hold still: whatever is swapped, moved out, replaced or removed at the
//! worst moment, nothing leaks, nothing hangs, and no reply is torn.

use std::fs;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{HANG, Random, Reply, Server, Tree};

/// Stands outside the root and in no answer.
const CANARY: &str = "canary-91c2";
/// What stands inside.
const INSIDE: &str = "inside needle\n";
/// How long the attacker works at least.
const ATTACK: Duration = Duration::from_secs(6);

/// Runs `attack` in a thread for as long as `body` takes.
fn while_attacked<T>(mut attack: impl FnMut() + Send, body: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                attack();
            }
        });
        let result = catch_unwind(AssertUnwindSafe(body));
        stop.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Every tool on every name that is under attack.
fn every_call() -> Vec<(&'static str, Value)> {
    let mut calls = vec![
        ("list_directory", json!({"depth": 8})),
        ("search_files", json!({"pattern": "*"})),
        ("search_text", json!({"query": "needle"})),
        ("search_text", json!({"query": "91c2", "context": 2})),
        ("search_text", json!({"query": "needle", "limit": 1})),
        ("list_directory", json!({"limit": 2})),
        ("list_roots", json!({})),
    ];
    for path in ["swap/f.txt", "swap/deep/f.txt", "file.txt"] {
        calls.extend([
            ("read_file", json!({"path": path})),
            ("read_file_range", json!({"path": path, "start_line": 1, "line_count": 5})),
            ("tail_file", json!({"path": path, "last_lines": 5})),
            ("read_multiple_files", json!({"paths": [path, "file.txt", "swap/f.txt"]})),
            ("get_file_info", json!({"path": path})),
            ("search_text", json!({"path": path, "query": "e", "output": "count"})),
        ]);
    }
    for path in ["swap", "swap/deep"] {
        calls.extend([
            ("list_directory", json!({"path": path, "depth": 3})),
            ("search_files", json!({"path": path, "pattern": "f"})),
            ("search_text", json!({"path": path, "query": "needle", "output": "files"})),
        ]);
    }
    calls
}

#[test]
fn nothing_leaks_while_everything_changes_its_type() {
    let mut random = Random::new();
    let tree = Tree::of(&[("swap/f.txt", INSIDE), ("swap/deep/f.txt", INSIDE), ("z.txt", INSIDE)]);
    tree.write("file.txt", INSIDE).dir("../empty").write("../moved/f.txt", CANARY);
    for path in ["f.txt", "deep/f.txt", CANARY] {
        tree.write(Path::new("../outside").join(path), CANARY);
    }
    tree.link(tree.text("../outside"), "../links/dir").fifo("../links/fifo");
    tree.link("../outside", "../links/relative").link("swap", "../links/loop");
    tree.link(tree.text("../outside/f.txt"), "../links/file").link("/proc/self", "../links/magic");
    tree.socket("../links/socket").write("../links/plain", INSIDE);
    let (root, links) = (tree.root(), tree.path("../links"));
    let mut attacker = Random::new();
    // What is served is parked outside for a moment, and something else stands in its place.
    let attack = || {
        let place = ["swap", "file.txt", "swap/deep"][attacker.below(3)];
        let forms = ["dir", "fifo", "relative", "loop", "file", "magic", "socket", "plain", ""];
        let form = forms[attacker.below(forms.len())];
        let (place, parked) = (root.join(place), links.join("parked"));
        fs::rename(&place, &parked).unwrap();
        if !form.is_empty() {
            fs::rename(links.join(form), &place).unwrap();
            fs::rename(&place, links.join(form)).unwrap();
        }
        fs::rename(&parked, &place).unwrap();
    };
    let (mut leaks, mut inside, mut cursors) = (0, 0, 0);
    while_attacked(attack, || {
        let mut server = Server::new(&tree, &[]);
        server.forbid(CANARY);
        let calls = every_call();
        let start = Instant::now();
        // The positive control: read the naive way, the same names must leak.
        while start.elapsed() < ATTACK || (leaks * inside * cursors == 0 && start.elapsed() < HANG)
        {
            let naive = fs::symlink_metadata(root.join("swap/f.txt"))
                .is_ok_and(|m| m.is_file())
                .then(|| fs::read_to_string(root.join("swap/f.txt")));
            leaks += usize::from(naive.is_some_and(|t| t.is_ok_and(|t| t.contains(CANARY))));
            let (tool, mut arguments) = calls[random.below(calls.len())].clone();
            let mut reply = server.call(tool, arguments.clone());
            inside += usize::from(reply.payload() == INSIDE);
            check(tool, &arguments, &reply);
            while let Some(cursor) = reply.cursor() {
                cursors += 1;
                arguments["cursor"] = json!(cursor);
                reply = server.call(tool, arguments.clone());
                check(tool, &arguments, &reply);
            }
        }
        server.close_quietly();
    });
    assert!(leaks > 0, "the naive read did not leak: this test proves nothing");
    assert!(inside > 0 && cursors > 0, "the server never succeeded: this test proves nothing");
}

fn check(tool: &str, arguments: &Value, reply: &Reply) {
    let fault = ["internal-error", "io-error", "invalid-argument", "invalid-cursor", "?"];
    assert!(!fault.contains(&reply.code()), "{tool} {arguments}: {reply:?}");
}

#[test]
fn a_root_made_anew_under_load_is_served_or_said_to_be_gone() {
    let mut random = Random::new();
    let tree =
        Tree::of(&[("swap/f.txt", INSIDE), ("swap/deep/f.txt", INSIDE), ("file.txt", INSIDE)]);
    tree.write("../outside/file.txt", CANARY).write("../outside/swap/f.txt", CANARY);
    let (root, outside) = (tree.root(), tree.path("../outside"));
    let make = |root: &Path| {
        fs::create_dir_all(root.join("swap/deep")).unwrap();
        for path in ["swap/f.txt", "swap/deep/f.txt", "file.txt"] {
            fs::write(root.join(path), INSIDE).unwrap();
        }
    };
    let mut attacker = Random::new();
    let attack = || {
        fs::remove_dir_all(&root).unwrap();
        match attacker.below(4) {
            0 => {
                std::os::unix::fs::symlink(&outside, &root).unwrap();
                fs::remove_file(&root).unwrap();
            }
            1 => {
                fs::write(&root, CANARY).unwrap();
                fs::remove_file(&root).unwrap();
            }
            _ => (),
        }
        make(&root);
        thread::yield_now();
    };
    let (mut served, mut gone) = (0, 0);
    let mut server = Server::new(&tree, &[]);
    server.forbid(CANARY);
    while_attacked(attack, || {
        let calls = every_call();
        let start = Instant::now();
        while start.elapsed() < ATTACK / 2 || (served * gone == 0 && start.elapsed() < HANG) {
            let (tool, arguments) = calls[random.below(calls.len())].clone();
            let reply = server.call(tool, arguments.clone());
            check(tool, &arguments, &reply);
            served += usize::from(reply.payload() == INSIDE);
            gone += usize::from(reply.code() == "root-unavailable");
        }
    });
    // The last root is whole again.
    assert_eq!(server.ok("read_file", json!({"path": "file.txt"})).payload(), INSIDE);
    server.close_quietly();
}

#[test]
fn a_log_that_grows_is_cut_and_rotated_is_never_torn() {
    let mut random = Random::new();
    let tree = Tree::new();
    let line = |number: u64| format!("{number:010} a line of the log \u{20ac}\n");
    let length = line(0).len();
    let log = tree.path("log.txt");
    fs::write(&log, (1..=2_000).map(line).collect::<String>()).unwrap();
    let (mut number, mut turn) = (2_001, 0);
    let attack = || {
        let mut file = fs::OpenOptions::new().append(true).create(true).open(&log).unwrap();
        file.write_all(line(number).as_bytes()).unwrap();
        (number, turn) = (number + 1, turn + 1);
        match turn % 4_000 {
            1_000 => file.set_len(0).unwrap(),
            2_000 => fs::rename(&log, tree.path("log.1")).unwrap(),
            3_000 => fs::remove_file(&log).unwrap(),
            _ => (),
        }
    };
    let (mut read, mut stale) = (0, 0);
    while_attacked(attack, || {
        let mut server = Server::new(&tree, &["--max-result-chars=2000"]);
        let start = Instant::now();
        while start.elapsed() < ATTACK / 2 || (read * stale == 0 && start.elapsed() < HANG) {
            let (tool, arguments) = match random.below(5) {
                0 => ("read_file", json!({"path": "log.txt"})),
                1 => (
                    "read_file_range",
                    json!({"path": "log.txt", "start_line": 1 + random.below(3_000), "line_count": 9}),
                ),
                2 => ("tail_file", json!({"path": "log.txt", "last_lines": 1 + random.below(90)})),
                3 => ("search_text", json!({"path": "log.txt", "query": "a line", "limit": 9})),
                _ => ("search_text", json!({"query": "line", "output": "count"})),
            };
            let reply = server.call(tool, arguments.clone());
            check(tool, &arguments, &reply);
            if reply.code() != "" {
                continue;
            }
            read += 1;
            if let Some(cursor) = reply.cursor() {
                let mut next = arguments.clone();
                next["cursor"] = json!(cursor);
                let next = server.call(tool, next);
                check(tool, &arguments, &next);
                stale += usize::from(next.code() == "stale-cursor");
            }
            if tool == "search_text" {
                continue;
            }
            // Appended lines are whole, or cut at the end of what was there.
            let lines: Vec<&str> = reply.payload().split_inclusive('\n').collect();
            let (last, whole) = lines.split_last().unwrap_or((&"", &[]));
            let sound = |text: &str| {
                text.len() == length && text.ends_with(" a line of the log \u{20ac}\n")
            };
            assert!(whole.iter().all(|text| sound(text)), "{tool} {arguments}: {reply:?}");
            // The kernel shows a write that crosses a page of its cache in two steps.
            assert!(!last.ends_with('\n') || sound(last), "{tool} {arguments}: {reply:?}");
            let numbers: Vec<u64> = whole.iter().map(|text| text[..10].parse().unwrap()).collect();
            assert!(
                numbers.windows(2).all(|w| w[0] + 1 == w[1]),
                "{tool} {arguments}: {numbers:?}"
            );
        }
        server.close_quietly();
    });
}
