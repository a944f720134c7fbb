//! The process under pressure: signals, a small address space, much to do, a twin at its side.

use std::fs;
use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::hostile_files::memory_kb;
use crate::support::{Reply, Server, Tree, WHOLE, command, run};

/// The server behind a shell that limits its own process first.
fn limited(limit: &str, tree: &Tree, options: &[&str]) -> Server {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{limit} && exec \"$0\" \"$@\"")]).arg(command().get_program());
    let mut server = Server::spawn(shell.args(options).arg(tree.root()));
    server.forbid(tree.text(""));
    server
}

/// Work for every tool.
fn calls(number: usize) -> (&'static str, serde_json::Value) {
    match number % 9 {
        0 => ("list_directory", json!({"depth": 3})),
        1 => ("search_files", json!({"pattern": "*.txt"})),
        2 => ("search_text", json!({"query": "needle", "ignore_case": true, "context": 1})),
        3 => ("read_file", json!({"path": "a.txt"})),
        4 => ("read_file_range", json!({"path": "a.txt", "start_line": 100, "line_count": 50})),
        5 => ("tail_file", json!({"path": "a.txt", "last_lines": 50})),
        6 => ("read_multiple_files", json!({"paths": ["a.txt", "b/b.txt", "no"]})),
        7 => ("get_file_info", json!({"path": "a.txt"})),
        _ => ("list_roots", json!({})),
    }
}

fn tree() -> Tree {
    let tree = Tree::of(&[("b/b.txt", "Needle\n"), ("b/c/c.txt", "none\n")]);
    tree.write("a.txt", "a line\nneedle\n".repeat(500));
    tree
}

#[test]
fn signals_end_a_long_search_at_once() {
    let tree = Tree::new();
    // Text without a line end, and then nothing: a search has minutes of work.
    let file = fs::File::create(tree.path("f")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[b'z'; 9_000], 0).unwrap();
    file.set_len(1 << 40).unwrap();
    for signal in ["-TERM", "-INT"] {
        let mut server = Server::new(&tree, &["--time-budget=50000"]);
        let params = json!({"name": "search_text", "arguments": {"query": "needle"}});
        server.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}));
        // It reads: bytes of this process grow.
        let start = Instant::now();
        let bytes = |server: &Server| -> u64 {
            let io = fs::read_to_string(format!("/proc/{}/io", server.pid())).unwrap();
            io.lines().next().unwrap().rsplit(' ').next().unwrap().parse().unwrap()
        };
        while bytes(&server) < 4 << 20 && start.elapsed() < Duration::from_secs(30) {
            std::thread::yield_now();
        }
        let start = Instant::now();
        run(Command::new("kill").args([signal, &server.pid().to_string()]));
        assert!(server.next_line().is_none(), "{signal}");
        assert!(start.elapsed() < Duration::from_secs(5), "{signal}: {:?}", start.elapsed());
        let closed = server.close();
        assert_eq!((closed.status.code(), closed.stderr.lines().count()), (None, 1), "{signal}");
    }
}

#[test]
fn a_line_that_stops_in_the_middle_ends_us_quietly() {
    let tree = tree();
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    for cut in 1..call.len() {
        let mut server = Server::fresh(command().arg(tree.root()));
        server.send_raw(call.as_bytes()[..cut].to_vec());
        server.end_input();
        assert_eq!(server.receive()["error"]["code"], -32_700, "{cut}");
        server.close_quietly();
    }
}

#[test]
fn a_small_address_space_is_enough() {
    let tree = tree();
    for number in 0..3_000 {
        tree.write(format!("many/{number}.txt"), "needle\n");
    }
    tree.write("line", "needle \u{e9} ".repeat(1 << 18));
    let mut server = limited("ulimit -v 32768", &tree, &[]);
    for number in 0..27 {
        let (tool, arguments) = calls(number);
        server.ok(tool, arguments);
    }
    for (tool, arguments) in [
        ("search_text", json!({"query": "NEEDLE", "ignore_case": true, "context": 10})),
        ("search_text", json!({"query": "no such", "path": "line", "ignore_case": true})),
        ("read_file", json!({"path": "line", "line_numbers": true, "lossy": true})),
        ("tail_file", json!({"path": "a.txt", "last_lines": u64::MAX})),
        ("read_file_range", json!({"path": "line", "start_line": 1, "line_count": u64::MAX})),
        ("list_directory", json!({"path": "many", "limit": u64::MAX})),
        ("read_multiple_files", json!({"paths": vec!["line"; 50]})),
    ] {
        server.ok(tool, arguments);
    }
    server.close_quietly();
}

#[test]
fn memory_is_flat_under_a_pipelined_load() {
    let tree = tree();
    let mut server = Server::new(&tree, &[]);
    let requests = |numbers: std::ops::Range<usize>| {
        let mut lines = Vec::new();
        for number in numbers {
            // Most calls are small, so that the load is one of requests.
            let (tool, arguments) = match number % 20 {
                0 => calls(number / 20),
                _ => ("get_file_info", json!({"path": "b/b.txt"})),
            };
            let params = json!({"name": tool, "arguments": arguments});
            let line =
                json!({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params});
            writeln!(lines, "{line}").unwrap();
        }
        lines
    };
    let mut answer = |numbers: std::ops::Range<usize>| {
        server.load(requests(numbers.clone()));
        for _ in numbers {
            assert!(server.next_line().is_some());
        }
        memory_kb(&server, "VmRSS:")
    };
    let warm = answer(0..1_000);
    let end = answer(1_000..20_000);
    assert!(end < warm + 512, "{warm} kB after 1,000 requests, {end} kB after 20,000");
    server.close_quietly();
}

#[test]
fn two_servers_on_one_root_do_not_meet() {
    let tree = tree();
    let mut servers = [Server::new(&tree, &[]), Server::new(&tree, &[WHOLE])];
    let arguments = json!({"path": "a.txt", "max_chars": 1_000});
    for _ in 0..20 {
        let pages: Vec<Reply> =
            servers.iter_mut().map(|server| server.ok("read_file", arguments.clone())).collect();
        assert_eq!(pages[0].payload(), pages[1].payload());
        for (server, page) in servers.iter_mut().zip(pages.iter().rev()) {
            let mut next = arguments.clone();
            next["cursor"] = json!(page.cursor());
            server.refused("invalid-cursor", "read_file", next);
        }
        for (server, page) in servers.iter_mut().zip(&pages) {
            let mut next = arguments.clone();
            next["cursor"] = json!(page.cursor());
            server.ok("read_file", next);
        }
    }
    servers.into_iter().for_each(Server::close_quietly);
}

#[test]
fn fifty_levels_are_searched_with_few_handles() {
    let tree = Tree::new();
    let mut directory = String::new();
    for level in 0..50 {
        directory.push_str("level/");
        tree.write(format!("{directory}{level}.txt"), "needle\n");
        tree.dir(format!("{directory}z"));
    }
    for handles in [64, 32] {
        let mut server = limited(&format!("ulimit -n {handles}"), &tree, &[WHOLE]);
        let found = server.ok("search_text", json!({"query": "needle", "limit": 1_000}));
        assert_eq!((found.number("matches"), found.number("unreadable")), (50, 0), "{found:?}");
        let pages = server.pages("search_text", &json!({"query": "needle", "limit": 7}));
        assert_eq!(pages.iter().map(|page| page.number("matches")).sum::<u64>(), 50);
    }
}
