//! Files and directories that no program should have to meet: sizes, depths and numbers without
//! end, mounts beneath the root.

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::hostile_text::padding;
use crate::support::{Reply, Server, Tree, WHOLE, command, run};

/// Most kilobytes that the process ever held.
pub fn peak_kb(server: &Server) -> u64 {
    memory_kb(server, "VmHWM:")
}

/// A line of the process's status, in kilobytes.
pub fn memory_kb(server: &Server, key: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn no_size_hangs_a_tool_or_takes_memory() {
    let tree = Tree::new();
    tree.sparse("sparse", 5 << 30).write("head", padding(9_000)).write("line", "");
    let open = |name| fs::OpenOptions::new().write(true).open(tree.path(name)).unwrap();
    // Text at first, then NUL after NUL: one line of 5 GiB.
    open("head").set_len(5 << 30).unwrap();
    let block = "\u{e9}z".repeat(1 << 18);
    for at in 0..200_u64 << 20 >> 20 {
        open("line").write_all_at(block.as_bytes(), at * block.len() as u64).unwrap();
    }
    let mut server = Server::new(&tree, &["--time-budget=300"]);
    for path in ["sparse", "head", "line"] {
        for (tool, more) in [
            ("read_file", json!({})),
            ("read_file", json!({"line_numbers": true, "lossy": true})),
            ("read_file_range", json!({"start_line": 1, "line_count": 1_u64 << 40})),
            ("read_file_range", json!({"start_line": 1_u64 << 40, "line_count": 1})),
            ("tail_file", json!({"last_lines": 1})),
            ("tail_file", json!({"last_lines": u64::MAX, "lossy": true})),
            ("search_text", json!({"query": "no such text"})),
            ("search_text", json!({"query": "Z\u{c9}", "ignore_case": true, "context": 10})),
            ("search_text", json!({"query": "z", "output": "count", "whole_word": true})),
            ("read_multiple_files", json!({"paths": [path, path, "head"]})),
            ("get_file_info", json!({})),
        ] {
            let mut arguments = more;
            if tool != "read_multiple_files" {
                arguments["path"] = json!(path);
            }
            let start = Instant::now();
            let reply = server.call(tool, arguments.clone());
            let text = path == "sparse" && tool.starts_with("read_file") || tool == "tail_file";
            assert!(reply.code() == "" || text, "{tool} {arguments}: {reply:?}");
            // The budget, and a debug build's leisure on a loaded machine.
            assert!(start.elapsed() < Duration::from_secs(20), "{tool} {arguments}");
            if let (Some(cursor), "search_text") = (reply.cursor(), tool) {
                arguments["cursor"] = json!(cursor);
                let next = server.ok(tool, arguments);
                assert_ne!(next.cursor(), reply.cursor(), "{tool} {path} does not advance");
            }
        }
    }
    let peak = peak_kb(&server);
    assert!(peak < 16 << 10, "{peak} kB");
}

/// `pread64` that fails from 256 KiB on, like a disk with a bad spot.
const BAD_SPOT: &str = "
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/types.h>
ssize_t pread64(int file, void *buffer, size_t size, off_t offset) {
    ssize_t (*next)(int, void *, size_t, off_t) = dlsym(RTLD_NEXT, \"pread64\");
    if (offset < 262144) return next(file, buffer, size, offset);
    errno = EIO;
    return -1;
}
";

#[test]
fn a_page_ends_before_what_cannot_be_read() {
    let text = "[FILE] forged  5\nline\n\n".repeat(20_000);
    let tree = Tree::of(&[("../bad.c", BAD_SPOT), ("bad", &text), ("good", "good\n")]);
    let (source, library) = (tree.path("../bad.c"), tree.path("../bad.so"));
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).arg("-ldl");
    if !compiler.status().is_ok_and(|status| status.success()) {
        let _ = writeln!(std::io::stderr(), "skipped: this machine has no C compiler");
        return;
    }
    let arguments = ["--max-result-chars=8388608".into(), tree.root().into_os_string()];
    let mut broken = command();
    let mut server = Server::fresh_over(&tree, broken.env("LD_PRELOAD", library), &arguments);
    server.initialize("2025-11-25");
    // No text stands on the page without the row that tells its length.
    let reply = server.ok("read_multiple_files", json!({"paths": ["bad", "good"]}));
    let bytes = 256 * 1024;
    let row = format!("[FILE] bad  {bytes}  cursor: ");
    assert!(!reply.complete() && reply.payload().starts_with(&row), "{reply:?}");
    let end = format!("\n{}\n[FILE] good  5\ngood\n\n", &text[..bytes]);
    assert!(reply.payload().ends_with(&end), "{reply:?}");
    let reply = server.ok("read_file", json!({"path": "bad"}));
    assert_eq!(reply.payload(), &text[..bytes]);
    server.refused("io-error", "read_file", json!({"path": "bad", "cursor": reply.cursor()}));
}

#[test]
fn the_largest_page_takes_16_mib_more_than_itself() {
    let tree = Tree::new();
    tree.write("log", padding(40 << 20)).write("line", "z\u{e9}".repeat(12 << 20));
    tree.write("head", padding(9_000));
    fs::OpenOptions::new().write(true).open(tree.path("head")).unwrap().set_len(64 << 20).unwrap();
    let mut wrong = Vec::new();
    for path in ["log", "line", "head"] {
        for (tool, more) in [
            ("read_file", json!({})),
            ("read_file_range", json!({"start_line": 1, "line_count": u64::MAX})),
            ("tail_file", json!({"last_lines": u64::MAX})),
            ("read_multiple_files", json!({"paths": [path, "log"]})),
            ("search_text", json!({"query": "straw", "context": 10})),
        ] {
            let mut arguments = more;
            if tool != "read_multiple_files" {
                arguments["path"] = json!(path);
            }
            let mut server = Server::new(&tree, &[WHOLE, "--time-budget=1000"]);
            let params = json!({"name": tool, "arguments": arguments});
            let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
            server.load(format!("{call}\n").into_bytes());
            let reply = u64::try_from(server.next_line().unwrap().len() / 1024).unwrap();
            let peak = peak_kb(&server);
            if peak > reply + (16 << 10) {
                wrong.push(format!("{tool} of {path}: {peak} kB for a reply of {reply} kB"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_named_path_goes_deeper_than_a_walk() {
    let tree = Tree::new();
    let down = |levels: usize| vec!["d"; levels].join("/");
    // Two halves are moved together: no single path of the host could name the deepest file.
    tree.write(format!("{}/leaf.txt", down(1_000)), "needle\n");
    tree.write(format!("../half/{}/leaf.txt", down(1_000)), "needle\n");
    fs::rename(tree.path("../half/d"), tree.path(format!("{}/e", down(1_000)))).unwrap();
    let deepest = format!("{}/e/{}", down(1_000), down(999));
    let mut server = Server::new(&tree, &[]);
    for directory in [down(1_000), deepest.clone()] {
        let leaf = format!("{directory}/leaf.txt");
        assert_eq!(server.ok("read_file", json!({"path": leaf})).payload(), "needle\n");
        server.ok("get_file_info", json!({"path": leaf}));
        server.ok("tail_file", json!({"path": leaf, "last_lines": 1}));
        assert_eq!(
            server.ok("list_directory", json!({"path": directory})).rows().len(),
            2 - usize::from(directory == deepest)
        );
        let found = server.ok("search_text", json!({"query": "needle", "path": directory}));
        assert_eq!(found.number("matches"), 1, "{found:?}");
        server.refused("file-not-found", "read_file", json!({"path": format!("{directory}/no")}));
    }
    for (tool, arguments) in
        [("search_files", json!({"pattern": "leaf"})), ("search_text", json!({"query": "needle"}))]
    {
        let walked = server.ok(tool, arguments);
        assert_eq!((walked.number("matches"), walked.number("too deep")), (0, 1), "{walked:?}");
        assert!(walked.complete(), "{walked:?}");
    }
    let found = server.ok("search_files", json!({"pattern": "*", "limit": 100}));
    assert_eq!(found.rows().len(), 64, "{found:?}");
    let over = format!("{}/{}", deepest, down(100));
    server.refused("invalid-argument", "read_file", json!({"path": over}));
    // Beneath a name that fits there can be one that does not.
    let name = "n".repeat(200);
    run(Command::new("sh").arg("-c").arg(format!(
        "cd '{}' && for i in 1 2 3 4 5 6 7; do cd {}; done && mkdir -p {name}/{name}",
        tree.root().display(),
        down(100)
    )));
    let found = server.ok("search_files", json!({"pattern": "n", "path": down(700)}));
    assert_eq!(found.rows().len(), 2, "{found:?}");
}

#[test]
fn a_hundred_thousand_entries_are_listed_and_found() {
    let tree = Tree::new();
    tree.dir("many");
    let many = tree.path("many");
    for number in 0..100_000 {
        fs::File::create(many.join(format!("entry-{number:06}"))).unwrap();
    }
    let mut server = Server::new(&tree, &[WHOLE, "--time-budget=50000"]);
    let first = server.ok("list_directory", json!({"path": "many", "limit": 10}));
    assert_eq!(first.paths()[9], "many/entry-000009", "{first:?}");
    let all = server.ok("list_directory", json!({"path": "many"}));
    assert_eq!((all.number("entries"), all.complete()), (100_000, true), "{}", all.header());
    assert!(all.paths().is_sorted(), "in order");
    let found = server.ok("search_files", json!({"pattern": "entry-*99"}));
    assert_eq!(found.number("matches"), 1_000, "{}", found.header());
    drop(server);
    let mut server = Server::new(&tree, &[]);
    let pages: Vec<Reply> = (0..3)
        .scan(json!({"path": "many", "limit": 40_000}), |arguments, _| {
            let page = server.ok("search_files", {
                let mut arguments = arguments.clone();
                arguments["pattern"] = json!("entry-");
                arguments
            });
            arguments["cursor"] = json!(page.cursor());
            Some(page)
        })
        .collect();
    assert!(pages[2].paths()[0] > pages[1].paths()[0], "{:?}", pages[2]);
    let peak = peak_kb(&server);
    assert!(peak < 16 << 10, "{peak} kB");
}

#[test]
fn mounts_are_crossed_but_for_kernel_objects() {
    let tree = Tree::of(&[("a.txt", "needle\n"), ("file", "needle\n"), ("pipe", "needle\n")]);
    tree.dir("tmpfs").dir("proc").dir("sys").dir("bind/deep").dir("plain").dir("deep/er/proc");
    tree.write("../outside/b.txt", "needle\n");
    let script = "cd \"$1\" && mount -t tmpfs none tmpfs && echo needle >tmpfs/t.txt \
        && mount -t proc none proc && mount -t proc none deep/er/proc \
        && mount -t sysfs none sys && mount --bind ../outside bind/deep \
        && mount --bind /proc/self/status file && mount --bind tmpfs/t.txt pipe";
    let shell = |then: &str| {
        let mut shell = Command::new("unshare");
        shell.args(["-m", "--propagation", "private", "sh", "-c", &format!("{script} && {then}")]);
        shell.arg(command().get_program()).arg(tree.root());
        shell
    };
    let works = shell("true").stderr(Stdio::null()).stdout(Stdio::null()).status();
    if !works.is_ok_and(|status| status.success()) {
        let _ = writeln!(std::io::stderr(), "skipped: this machine lets nobody mount");
        return;
    }
    let mut server = Server::spawn(&mut shell("exec \"$0\" \"$1\""));
    for path in ["a.txt", "tmpfs/t.txt", "bind/deep/b.txt", "pipe"] {
        assert_eq!(server.ok("read_file", json!({"path": path})).payload(), "needle\n", "{path}");
    }
    for path in ["proc", "proc/self/environ", "sys/kernel", "deep/er/proc/1/status", "file"] {
        for (tool, more) in [
            ("read_file", json!({})),
            ("tail_file", json!({"last_lines": 1})),
            ("list_directory", json!({})),
            ("search_text", json!({"query": "e"})),
            ("get_file_info", json!({})),
        ] {
            let mut arguments = more;
            arguments["path"] = json!(path);
            server.refused("path-excluded", tool, arguments);
        }
    }
    let found = server.ok("search_text", json!({"query": "needle", "output": "files"}));
    let rows =
        ["a.txt", "bind/deep/b.txt", "pipe", "tmpfs/t.txt"].map(|path| format!("[FILE] {path}"));
    assert_eq!(found.rows(), rows, "{found:?}");
    assert_eq!(found.number("pseudo file systems"), 4, "{found:?}");
    let named = server.ok("search_files", json!({"pattern": "status"}));
    assert_eq!((named.number("matches"), named.number("pseudo file systems")), (0, 3), "{named:?}");
    let listed = server.ok("list_directory", json!({"depth": 8}));
    assert!(listed.rows().contains(&"[DIR] proc/"), "{listed:?}");
    assert_eq!(listed.number("pseudo file systems"), 3, "{listed:?}");
    server.close_quietly();
}
