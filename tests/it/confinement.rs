//! Nothing outside the roots is ever given out, and nothing but files and directories is opened.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::{HANG, Helper, Server, Tree, command, command_as_nobody, raw, run};

/// Stands outside every root and in no answer.
const CANARY: &str = "canary-7d41";
/// Calls of each tool while the attacker swaps.
const RACE_CALLS: usize = 500;

/// A server that fails the test when the canary shows.
fn watched(tree: &Tree, options: &[&str]) -> Server {
    let mut server = Server::new(tree, options);
    server.forbid(CANARY);
    server
}

/// Whether a device node could be made (root can).
fn device(tree: &Tree, path: &str, minor: &str) -> bool {
    let mut mknod = Command::new("mknod");
    mknod.arg(tree.path(path)).args(["c", "1", minor]).stderr(Stdio::null());
    mknod.status().is_ok_and(|status| status.success())
}

#[test]
fn special_files_answer_at_once_and_nobody_notices() {
    let tree = Tree::of(&[("a.txt", "needle\n"), ("sub/b.txt", "needle\n")]);
    tree.fifo("fifo").fifo("idle").socket("socket");
    let mut kinds = vec![("fifo", "fifo"), ("idle", "fifo"), ("socket", "socket")];
    if device(&tree, "device", "5") {
        kinds.push(("device", "device"));
    }
    // A writer waits in open, as it does until somebody opens the FIFO for reading.
    let writer = Command::new("sh")
        .args(["-c", "echo started; echo data > \"$0\"; echo released", &tree.text("fifo")])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut writer = Helper(writer);
    let mut said = BufReader::new(writer.0.stdout.take().unwrap()).lines();
    assert_eq!(said.next().unwrap().unwrap(), "started");
    let waiting = format!("/proc/{}/wchan", writer.0.id());
    let start = Instant::now();
    while fs::read_to_string(&waiting).is_ok_and(|place| !place.contains("partner"))
        && start.elapsed().as_secs() < 1
    {
        thread::yield_now();
    }

    let mut server = watched(&tree, &[]);
    for _ in 0..20 {
        for (path, kind) in &kinds {
            for (tool, more) in [
                ("read_file", json!({})),
                ("read_file_range", json!({"start_line": 1, "line_count": 1})),
                ("tail_file", json!({"last_lines": 1})),
                ("search_text", json!({"query": "x"})),
            ] {
                let mut arguments = more;
                arguments["path"] = json!(path);
                let text = server.refused("not-a-file", tool, arguments);
                assert!(text.to_lowercase().contains(kind), "{text}");
            }
            let info = server.ok("get_file_info", json!({"path": path}));
            assert!(info.text.to_lowercase().contains(kind), "{info:?}");
            server.refused("not-a-directory", "list_directory", json!({"path": path}));
            server.refused("not-a-directory", "read_file", json!({"path": format!("{path}/x")}));
        }
        let found = server.ok("search_text", json!({"query": "needle", "output": "files"}));
        assert_eq!(found.rows(), ["[FILE] a.txt", "[FILE] sub/b.txt"]);
        assert_eq!(found.number("special files"), u64::try_from(kinds.len()).unwrap());
        let listed = server.ok("list_directory", json!({})).text;
        for (path, kind) in &kinds {
            let row = format!("[OTHER] {path}  ");
            let row = listed.lines().find(|line| line.starts_with(&row)).expect("a row");
            assert!(row.contains(kind), "{row}");
        }
    }
    server.close_quietly();

    assert!(writer.0.try_wait().unwrap().is_none(), "the writer waits still");
    let mut data = String::new();
    fs::File::open(tree.path("fifo")).unwrap().read_to_string(&mut data).unwrap();
    assert_eq!(data, "data\n", "nobody took the writer's data");
    assert_eq!(said.next().unwrap().unwrap(), "released");
    assert!(writer.0.wait().unwrap().success());
}

#[test]
fn the_whole_system_can_be_a_root() {
    let tree = Tree::of(&[("a.txt", "needle\n")]);
    let mut server = Server::spawn(command().arg("/"));
    let inside = tree.text("a.txt");
    let relative = inside.trim_start_matches('/').to_owned();
    for path in [&inside, &relative] {
        assert_eq!(server.ok("read_file", json!({"path": path})).payload(), "needle\n");
    }
    let listed = server.ok("list_directory", json!({"limit": 1_000}));
    assert!(listed.rows().iter().any(|row| row.starts_with("[DIR] etc/")), "{listed:?}");
    for path in ["proc/self/status", "/proc/self/environ", "sys/kernel/uevent_seqnum", "proc/1"] {
        for tool in ["read_file", "list_directory", "search_files"] {
            let mut arguments = json!({"path": path});
            if tool == "search_files" {
                arguments["pattern"] = json!("x");
            }
            server.refused("path-excluded", tool, arguments);
        }
    }
    let found = server
        .ok("search_files", json!({"pattern": "a.txt", "path": &relative[..relative.len() - 6]}));
    assert_eq!(found.rows().len(), 1, "{found:?}");
}

#[test]
fn devices_are_never_opened() {
    let mut server = Server::spawn(command().arg("/dev"));
    for name in ["zero", "null", "tty", "random"] {
        if Path::new("/dev").join(name).exists() {
            let text = server.refused("not-a-file", "read_file", json!({"path": name}));
            assert!(text.contains("device"), "{text}");
        }
    }
    let listed = server.ok("list_directory", json!({}));
    assert!(listed.rows().iter().any(|row| row.starts_with("[OTHER] zero  ")), "{listed:?}");
    server.ok("search_text", json!({"query": "needle"}));
    // Standard streams and other magic links lead out.
    for name in ["stdin", "fd/0", "stdout"] {
        if Path::new("/dev").join(name).symlink_metadata().is_ok() {
            server.refused("path-excluded", "read_file", json!({"path": name}));
        }
    }
    server.close_quietly();
}

/// A tree with the canary beside the root and links of every shape to it.
fn linked() -> Tree {
    let tree = Tree::of(&[("real.txt", "inside\n"), ("sub/in.txt", "inside\n"), (".env", CANARY)]);
    tree.write("../outside/secret.txt", CANARY).write(format!("../outside/{CANARY}"), CANARY);
    tree.write("../root-evil/secret.txt", CANARY).write("../rootx", CANARY);
    tree
}

#[test]
fn a_link_of_any_shape_that_leads_out_is_refused_alike() {
    let tree = linked();
    let outside = tree.text("../outside");
    let shapes = [
        ("out", "../outside/secret.txt".to_owned()),
        ("absolute", format!("{outside}/secret.txt")),
        ("directory", "../outside".to_owned()),
        ("up", "..".to_owned()),
        ("top", "/".to_owned()),
        ("around", "../root/real.txt".to_owned()),
        ("sub/far", "../../outside/secret.txt".to_owned()),
        ("sub/inout", "../sub/../../outside/secret.txt".to_owned()),
        ("twice", "out".to_owned()),
        ("there-1", "../outside/secret.txt".to_owned()),
        ("there-0", "../outside/nothing".to_owned()),
        ("passwd", "/etc/passwd".to_owned()),
        ("magic", "/proc/self/root/etc/passwd".to_owned()),
        ("evil", format!("{}-evil/secret.txt", tree.root().display())),
        ("dotted", format!("{}/../outside/secret.txt", tree.root().display())),
    ];
    for (path, target) in &shapes {
        tree.link(target, path);
    }
    let mut server = watched(&tree, &[]);
    for (path, _) in &shapes {
        for below in ["", "/secret.txt", "/nothing"] {
            let path = format!("{path}{below}");
            for (tool, more) in [
                ("read_file", json!({})),
                ("read_file_range", json!({"start_line": 1, "line_count": 9})),
                ("tail_file", json!({"last_lines": 9})),
                ("list_directory", json!({})),
                ("search_files", json!({"pattern": "e"})),
                ("search_text", json!({"query": "a"})),
            ] {
                let mut arguments = more;
                arguments["path"] = json!(path);
                server.refused("path-excluded", tool, arguments);
            }
        }
        let info = server.ok("get_file_info", json!({"path": path}));
        assert!(info.text.contains("(outside)") || *path == "twice", "{path}: {info:?}");
        server.refused("path-excluded", "get_file_info", json!({"path": format!("{path}/x")}));
        let several = server.ok("read_multiple_files", json!({"paths": [path, "real.txt"]}));
        assert!(several.rows()[0].contains("  path-excluded: "), "{several:?}");
    }
    let listed = server.ok("list_directory", json!({"depth": 8}));
    let out = |row: &&&str| row.contains(" -> (outside)");
    assert_eq!(listed.rows().iter().filter(out).count(), shapes.len() - 1, "{listed:?}");
    assert!(listed.rows().contains(&"[LINK] twice -> out"), "{listed:?}");
    for (tool, argument) in [("search_files", "pattern"), ("search_text", "query")] {
        server.ok(tool, json!({argument: "secret"}));
        server.ok(tool, json!({argument: "7d41"}));
    }
    // Whether the outside name exists does not show.
    let texts = ["there-1", "there-0"].map(|path| {
        server.refused("path-excluded", "read_file", json!({"path": path})).replace(path, "")
    });
    assert_eq!(texts[0], texts[1]);
}

#[test]
fn links_inside_are_followed_to_the_fortieth() {
    let tree = linked();
    tree.link("../real.txt", "l/1");
    for number in 2..=41 {
        tree.link(format!("{}", number - 1), format!("l/{number}"));
    }
    tree.link("loop-b", "loop-a").link("loop-a", "loop-b").link("real.txt/x", "through");
    tree.link(tree.text("sub"), "absolute")
        .link(".env", "withheld")
        .link("sub/../real.txt", "dots");
    tree.link(tree.text("real.txt"), "sub/absolute").link(tree.text(".env"), "sub/withheld");
    let typed = Tree::new();
    typed.link(tree.root(), "typed");
    tree.link(typed.path("typed/real.txt"), "as-typed");
    let mut server = Server::over(&tree, &[typed.text("typed")]);
    server.forbid(CANARY);
    server.forbid(typed.text("typed"));
    for path in
        ["l/1", "l/40", "absolute/in.txt", "dots", "as-typed", "sub/absolute", "absolute/absolute"]
    {
        let read = server.ok("read_file", json!({"path": path}));
        assert_eq!(read.payload(), "inside\n", "{path}");
    }
    for (code, path) in [
        ("limit-exceeded", "l/41"),
        ("limit-exceeded", "loop-a"),
        ("limit-exceeded", "loop-b/x"),
        ("not-a-directory", "through"),
        ("not-a-directory", "dots/x"),
        ("path-excluded", "withheld"),
        ("path-excluded", "sub/withheld"),
    ] {
        server.refused(code, "read_file", json!({"path": path}));
    }
    let info = server.ok("get_file_info", json!({"path": "withheld"}));
    assert!(info.text.contains("(withheld)"), "{info:?}");
    // A link's own name obeys policy as well.
    tree.link("real.txt", "id_rsa");
    server.refused("path-excluded", "read_file", json!({"path": "id_rsa"}));
}

#[test]
fn no_spelling_of_a_path_leads_out() {
    let tree = linked();
    let root = tree.text("");
    let mut server = watched(&tree, &[]);
    for path in [
        format!("{}-evil/secret.txt", root.trim_end_matches('/')),
        format!("{}x", root.trim_end_matches('/')),
        format!("{root}/../outside/secret.txt"),
        format!("{root}/../root-evil/secret.txt"),
        format!("file://{root}/../outside/secret.txt"),
        format!("file://{root}/%2e%2e/outside/secret.txt"),
        format!("file://{root}%2F..%2Foutside%2Fsecret.txt"),
        tree.text("../outside/secret.txt"),
        "/etc/passwd".to_owned(),
        "../outside/secret.txt".to_owned(),
        "sub/../../outside/secret.txt".to_owned(),
        "%2e%2e/outside/secret.txt".to_owned(),
        "..\\outside\\secret.txt".to_owned(),
        "sub/..\u{0}/x".to_owned(),
        "~/secret.txt".to_owned(),
        "/proc/self/cwd/secret.txt".to_owned(),
        "./../outside/secret.txt".to_owned(),
        "...//...//outside/secret.txt".to_owned(),
    ] {
        for tool in ["read_file", "list_directory", "get_file_info"] {
            let reply = server.call(tool, json!({"path": path}));
            let codes = ["path-excluded", "invalid-argument", "file-not-found"];
            assert!(codes.contains(&reply.code()), "{path}: {reply:?}");
            let host = path.starts_with('/') || path.starts_with("file:");
            assert!(!host || !reply.text.contains("secret.txt"), "echoed: {reply:?}");
        }
    }
}

#[test]
fn names_that_no_argument_can_spell_are_counted() {
    let tree = Tree::of(&[("a.txt", "needle\n")]);
    tree.write(raw(b"bad\xff.txt"), "needle\n").write("back\\slash.txt", "needle\n");
    tree.write(Path::new(raw(b"dir\xff")).join("x.txt"), "needle\n");
    tree.link(OsStr::new(raw(b"bad\xff.txt")), "to-bad");
    let mut server = Server::new(&tree, &[]);
    for (tool, arguments) in [
        ("list_directory", json!({})),
        ("list_directory", json!({"depth": 3})),
        ("search_files", json!({"pattern": "*"})),
        ("search_text", json!({"query": "needle"})),
    ] {
        let reply = server.ok(tool, arguments);
        assert_eq!(reply.number("names not UTF-8"), 3, "{tool}: {reply:?}");
        assert!(reply.paths().contains(&"a.txt"), "{reply:?}");
        assert!(!reply.payload().contains("bad\u{fffd}.txt\n"), "{reply:?}");
    }
}

#[test]
fn what_may_not_be_read_is_said_to_be_so() {
    let tree = Tree::of(&[("open.txt", "needle\n"), ("shut.txt", "x"), ("shut/x.txt", "needle\n")]);
    tree.mode("shut.txt", 0o000).mode("shut", 0o000);
    let Some(mut nobody) = command_as_nobody() else { return };
    let mut server = Server::spawn(nobody.arg(tree.root()));
    server.forbid(tree.base().to_str().unwrap());
    for (tool, path) in [
        ("read_file", "shut.txt"),
        ("read_file", "shut/x.txt"),
        ("list_directory", "shut"),
        ("search_text", "shut.txt"),
    ] {
        let mut arguments = json!({"path": path});
        if tool == "search_text" {
            arguments["query"] = json!("needle");
        }
        server.refused("permission-denied", tool, arguments);
    }
    let found = server.ok("search_text", json!({"query": "needle"}));
    assert_eq!((found.rows().len(), found.number("unreadable")), (2, 2), "{found:?}");
    let listed = server.ok("list_directory", json!({"depth": 2}));
    assert_eq!((listed.rows().len(), listed.number("unreadable")), (3, 1), "{listed:?}");
    tree.mode("shut", 0o755);
}

#[test]
fn a_directory_swapped_for_a_link_never_leaks() {
    let tree = linked();
    tree.write("swap/secret.txt", "inside\n").link(tree.text("../outside"), "link");
    tree.write("file.txt", "inside\n").link(tree.text("../outside/secret.txt"), "file-link");
    let root = tree.root();
    let stop = AtomicBool::new(false);
    let (mut leaks, mut inside) = (0, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let rename = |from: &str, to: &str| fs::rename(root.join(from), root.join(to)).unwrap();
            while !stop.load(Ordering::Relaxed) {
                for (name, link) in [("swap", "link"), ("file.txt", "file-link")] {
                    rename(name, "parked");
                    rename(link, name);
                    rename(name, link);
                    rename("parked", name);
                }
            }
        });
        let attack = std::panic::catch_unwind(|| {
            let mut server = watched(&tree, &[]);
            let (mut leaks, mut inside) = (0, 0);
            let start = Instant::now();
            let mut calls = 0;
            // The positive control: the naive way, in the same race, must leak. If it does not,
            // this test could not fail.
            while calls < RACE_CALLS || (leaks == 0 && start.elapsed() < HANG) {
                calls += 1;
                let naive = fs::read_to_string(root.join("swap/secret.txt"));
                leaks += usize::from(naive.is_ok_and(|text| text.contains(CANARY)));
                let requests: [(&str, Value); 5] = [
                    ("read_file", json!({"path": "swap/secret.txt"})),
                    ("read_file", json!({"path": "file.txt"})),
                    ("list_directory", json!({"path": "swap"})),
                    ("list_directory", json!({"depth": 3})),
                    ("search_text", json!({"query": "7d4"})),
                ];
                for (tool, arguments) in requests {
                    let reply = server.call(tool, arguments);
                    inside += usize::from(reply.payload() == "inside\n");
                    assert_ne!(reply.code(), "internal-error", "{reply:?}");
                }
            }
            (leaks, inside)
        });
        stop.store(true, Ordering::Relaxed);
        match attack {
            Ok(counts) => (leaks, inside) = counts,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    });
    assert!(leaks > 0, "the naive read did not leak: this test proves nothing");
    assert!(inside > 0, "the server never succeeded: this test proves nothing");
}

#[test]
fn a_root_made_anew_is_served_again() {
    let tree = linked();
    let mut server = watched(&tree, &[]);
    server.ok("read_file", json!({"path": "real.txt"}));
    fs::rename(tree.root(), tree.path("../moved")).unwrap();
    // Moved, not removed: the handle is held, so the same directory is served.
    assert_eq!(server.ok("read_file", json!({"path": "real.txt"})).payload(), "inside\n");
    fs::remove_dir_all(tree.path("../moved")).unwrap();
    server.refused("root-unavailable", "read_file", json!({"path": "real.txt"}));
    tree.write("new.txt", "new\n");
    assert_eq!(server.ok("read_file", json!({"path": "new.txt"})).payload(), "new\n");
    // Removed again, and a file in its place.
    fs::remove_dir_all(tree.root()).unwrap();
    fs::write(tree.root(), CANARY).unwrap();
    server.refused("root-unavailable", "list_directory", json!({}));
    fs::remove_file(tree.root()).unwrap();
    run(Command::new("ln").args(["-s", "/proc"]).arg(tree.root()));
    server.refused("root-unavailable", "list_directory", json!({}));
    fs::remove_file(tree.root()).unwrap();
}

#[test]
fn the_open_flags_are_those_of_the_platform() {
    let platform = [
        ("O_NOFOLLOW", libc::O_NOFOLLOW),
        ("O_NONBLOCK", libc::O_NONBLOCK),
        ("O_PATH", libc::O_PATH),
    ];
    assert_eq!(readonly_mcp::OPEN_FLAGS, platform);
}
