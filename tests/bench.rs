//! The project's own benchmark: the release binary over pipes, beside the floor and plain tools.
//!
//!     cargo bench                     all of it: 2 GB in the temporary folder, a few minutes
//!     cargo bench -- --quick          small corpora, under a minute
//!     cargo bench -- search list-all  only the works whose key contains one of these
//!
//! Options: `--dir DIR` for the corpora, which are reused; `--many` for 500,000 small files as well
//! (2 GB more). The machine is never quiet, so contenders take turns in rotating order: read the
//! ratios. All files are in the page cache. A run never fails for being slow; a wrong answer never
//! counts, prints WRONG and makes the exit code 1.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::Ordering;
use std::time::Instant;
use std::{env, fs, thread};

use serde_json::{Value, json};

use client::{Ask, Server};
use corpus::{ABSENT, COMMON, Corpora, LONG, RARE};
use report::{
    Figures, bound_row, mebibytes, median, note, print_table, race_row, say, time, times,
};
use truth::Truth;

#[path = "bench/client.rs"]
mod client;
#[path = "bench/corpus.rs"]
mod corpus;
#[path = "bench/floor.rs"]
mod floor;
#[path = "bench/report.rs"]
mod report;
#[path = "bench/truth.rs"]
mod truth;

const BINARY: &str = env!("CARGO_BIN_EXE_readonly-mcp");
/// One large page and no default rules: the same work as the tools beside it.
const OPTIONS: [&str; 5] =
    ["--no-default-excludes", "--max-result-chars", "8388608", "--time-budget", "50000"];
const TOOLS: usize = 9;
/// What a name of a listing may take in memory beyond its bytes.
const NAME_BYTES: usize = 48;
const FIND: &str = "find . -type f -name *_manifest.toml";
const RG: &str = "rg -j1 -uu -F --no-heading --color never";

/// Key; title, with `{}` for a size; the target factor against what stands first beside it, 0 for
/// none; rounds; calls in a round; what runs beside it: the floor, with a flag of its own or not,
/// and tools.
type Work = (&'static str, &'static str, f64, usize, usize, &'static [&'static str]);
const WORKS: [Work; 18] = [
    ("ping", "round trip: ping", 1.5, 100, 20, &["floor"]),
    ("stat", "round trip: stat of a 1 KB file", 2.5, 100, 20, &["floor", "floor, lstat_only"]),
    ("read-1k", "round trip: read 1 KB", 2.5, 100, 20, &["floor"]),
    ("pipelined", "{} pipelined: 1/2 read 1 KB, 1/4 stat, 1/4 ping", 2.0, 7, 1, &["floor"]),
    ("read-1m", "read 1 MB", 1.2, 21, 2, &["floor", "cat 1m.txt"]),
    ("read-9m", "read 9 MB", 1.2, 15, 1, &["floor", "cat 9m.txt"]),
    ("range", "200 lines in the middle of {} MiB", 1.2, 7, 1, &["floor"]),
    ("tail", "last 100 lines of {} MiB", 2.0, 15, 10, &["floor", "tail -n 100 big.txt"]),
    ("list-first", "first 100 of {} entries", 0.5, 9, 1, &["floor", "floor, names_only"]),
    ("list-all", "all of {} entries", 1.5, 9, 1, &["floor", "floor, names_only", "find . -type f"]),
    ("find-few", "find by name in {} files, 20 hits", 1.3, 9, 1, &[FIND]),
    ("find-many", "find by name in {} files, `*.rs`", 1.3, 9, 1, &["find . -type f -name *.rs"]),
    ("search-rare", "search {} files, rare", 1.6, 7, 1, &[RG]),
    ("search-common", "search {} files, common", 1.6, 7, 1, &[RG]),
    ("search-none", "search {} files, no hit", 1.6, 7, 1, &[RG]),
    ("search-long", "search one line of {} MB", 0.0, 5, 1, &[RG]),
    ("many-find", "find by name in {} files, `ulimit -n 64`", 0.0, 3, 1, &[FIND]),
    ("many-search", "search in {} files, `ulimit -n 64`", 0.0, 3, 1, &[RG]),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let at = |flag: &str| arguments.iter().position(|argument| argument == flag);
    if at("--hello").is_some() {
        say("hello");
        return ExitCode::SUCCESS;
    }
    if at("--floor").is_some() {
        return floor::serve().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    if at("--bench").is_none() {
        // `cargo test --all-targets` runs this too.
        say("skipped: run it with `cargo bench`");
        return ExitCode::SUCCESS;
    }
    let folder = at("--dir").and_then(|at| arguments.get(at + 1));
    let quick = at("--quick").is_some();
    let is_name = |argument: &&String| !argument.starts_with("--") && Some(*argument) != folder;
    let parent = folder.map_or_else(|| env::temp_dir().join("readonly-mcp-bench"), PathBuf::from);
    client::watch();
    let parts = parent.join(if quick { "quick" } else { "full" });
    let bench = Bench {
        quick,
        names: arguments.iter().filter(is_name).cloned().collect(),
        me: env::current_exe().expect("a path to this program"),
        corpora: corpus::make(&parts, quick, at("--many").is_some()),
    };
    let rows = bench.rows();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = thread::available_parallelism().map_or(0, usize::from);
    let load = load.split(' ').next().unwrap_or("?");
    let words = arguments.join(" ").replace("--bench", "");
    say(&format!("`cargo bench -- {}`: {cores} cores, load {load}", words.trim_end()));
    print_table(&report::HEAD, &rows);
    if bench.wants("scale") {
        bench.scale();
        bench.scale_pages();
    }
    ExitCode::from(u8::from(report::WRONG.load(Ordering::Relaxed)))
}

/// A question, where to ask it, and the true answer.
struct Question {
    root: PathBuf,
    ask: Ask,
    truth: Truth,
    /// What `{}` in a title stands for.
    size: usize,
}

impl Question {
    fn new(root: &Path, ask: Ask, truth: Truth, size: usize) -> Question {
        Question { root: root.to_owned(), ask, truth, size }
    }
}

struct Contender {
    figures: Figures,
    kind: Kind,
}

enum Kind {
    Server(Box<Server>, Ask),
    Tool(Command),
}

impl Contender {
    fn once(&mut self, work: &str, truth: &Truth) {
        let (seconds, verdict) = match &mut self.kind {
            Kind::Server(server, ask) => {
                let seconds = server.ask(ask);
                self.figures.result_bytes = server.result_bytes();
                let answer = server.answer();
                (seconds, answer.and_then(|(text, _)| truth.check(text.as_bytes(), false)))
            }
            Kind::Tool(command) => {
                let (seconds, cpu, printed) = client::run(command);
                self.figures.cpu_seconds += cpu;
                (seconds, truth.check(&printed, true))
            }
        };
        self.figures.seconds.push(seconds);
        self.figures.check(work, verdict);
    }

    fn server_cpu_seconds(&self) -> f64 {
        match &self.kind {
            Kind::Server(server, _) => server.cpu_seconds(),
            Kind::Tool(_) => 0.0,
        }
    }

    fn finish(mut self) -> Figures {
        if let Kind::Server(server, _) = self.kind {
            self.figures.peak_bytes = server.peak_bytes();
            server.stop();
        }
        self.figures
    }
}

struct Bench {
    quick: bool,
    names: Vec<String>,
    me: PathBuf,
    corpora: Corpora,
}

impl Bench {
    fn wants(&self, key: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| key.contains(name))
    }

    /// Ours or the floor, started and ready; the number of its tools too.
    fn server(&self, name: &str, root: &Path, ask: Ask) -> (Contender, usize) {
        let mut command = match name {
            "ours" => ours(root, &OPTIONS),
            "ours, 64 handles" => {
                let mut shell = Command::new("sh");
                shell.args(["-c", "ulimit -n 64; exec \"$0\" \"$@\"", BINARY]);
                shell.args(OPTIONS).arg(root);
                shell
            }
            _ => Command::new(&self.me),
        };
        if name.starts_with("floor") {
            command.arg("--floor").current_dir(root);
        }
        let (server, tools) = Server::start(&mut command);
        let kind = Kind::Server(Box::new(server), ask);
        (Contender { figures: Figures::named(name), kind }, tools)
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        let mut worst = (0, "");
        if self.wants("start") {
            self.start_and_exit(&mut rows);
        }
        for (key, title, factor, rounds, calls, beside) in WORKS {
            let Some(question) = self.question(key).filter(|_| self.wants(key)) else { continue };
            note(key);
            let all = self.race(key, &question, rounds, calls, beside);
            let title = title.replace("{}", &question.size.to_string());
            rows.push(race_row(&title, &all, factor, key.starts_with("search")));
            let mut allowed = all[0].result_bytes;
            if key.starts_with("list") {
                let (_, names) = &self.corpora.wide[3];
                allowed += names.iter().map(|name| name.len() + NAME_BYTES).sum::<usize>();
            }
            worst = worst.max((all[0].peak_bytes.saturating_sub(allowed), key));
        }
        if self.wants("ping-behind") {
            rows.push(self.ping_behind_a_search());
        }
        if let Some(tree) = self.corpora.many.as_ref().filter(|_| self.wants("many-memory")) {
            let peaks = ["eighth", "."].map(|path| {
                let question = search(tree, path, ABSENT, &[]);
                self.race("many-memory", &question, 1, 1, &[])[0].peak_bytes
            });
            let ratio = peaks[1] as f64 / peaks[0] as f64;
            let value = format!("{} MiB, {} of an eighth", mebibytes(peaks[1]), times(ratio));
            rows.push(bound_row("peak memory of that search", value, "flat", ratio < 1.25));
        }
        let (bytes, key) = worst;
        let work = format!("peak memory beyond one result and one directory's names: {key}");
        let value = format!("{} MiB", mebibytes(bytes));
        rows.extend((!key.is_empty()).then(|| bound_row(&work, value, "12 MiB", bytes < 12 << 20)));
        rows
    }

    /// Nothing for a work whose corpus was not asked for.
    fn question(&self, key: &str) -> Option<Question> {
        let Corpora { tree, many, wide: [.., (wide_root, names)], files } = &self.corpora;
        let path = json!({"path": "1k.txt"});
        let (middle, end) = (files.big_lines / 2, files.big_lines - 100);
        let (root, ask, truth, size) = match key {
            "ping" => (&files.root, Ask::Batch(vec![("ping", json!({}))]), Truth::Anything, 0),
            "stat" => (&files.root, call("get_file_info", path), Truth::Word("1024"), 0),
            "pipelined" => {
                let tool = |name| ("tools/call", json!({"name": name, "arguments": path}));
                let (read, stat) = (|| tool("read_file"), || tool("get_file_info"));
                let four = || [read(), stat(), read(), ("ping", json!({}))];
                let count = if self.quick { 2_000 } else { 10_000 };
                let ask = Ask::Batch((0..count / 4).flat_map(|_| four()).collect());
                (&files.root, ask, Truth::Anything, count)
            }
            "tail" => {
                let ask = call("tail_file", json!({"path": "big.txt", "last_lines": 100}));
                (&files.root, ask, Truth::Text(files.big(end, 100)), files.big_bytes >> 20)
            }
            "list-first" => {
                let ask = Ask::Call("list_directory", json!({"limit": 100}), 1);
                (wide_root, ask, Truth::Paths(names[..100].to_vec()), names.len())
            }
            "search-long" => {
                let truth = Truth::Hits(LONG, vec!["single.txt:1".to_owned()]);
                let ask = call("search_text", json!({"query": LONG}));
                (&files.root.join("long"), ask, truth, files.single_bytes / 1_000_000)
            }
            "read-1k" => return Some(self.read(0)),
            "read-1m" => return Some(self.read(2)),
            "read-9m" => return Some(self.read(4)),
            "range" => return Some(self.range(middle, files.big_bytes >> 20)),
            "list-all" => return Some(list(wide_root, names)),
            "find-few" => return Some(find(tree, ".", "*_manifest.toml", &tree.manifests)),
            "find-many" => return Some(find(tree, ".", "*.rs", &tree.rust)),
            "search-rare" => return Some(search(tree, ".", RARE, &tree.rare)),
            "search-common" => return Some(search(tree, ".", COMMON, &tree.common)),
            "search-none" => return Some(search(tree, ".", ABSENT, &[])),
            "many-find" => {
                return many
                    .as_ref()
                    .map(|tree| find(tree, ".", "*_manifest.toml", &tree.manifests));
            }
            _ => return many.as_ref().map(|tree| search(tree, ".", RARE, &tree.rare)),
        };
        Some(Question::new(root, ask, truth, size))
    }

    fn read(&self, text: usize) -> Question {
        let files = &self.corpora.files;
        let (name, size) = corpus::TEXTS[text];
        let ask = call("read_file", json!({"path": name}));
        Question::new(&files.root, ask, Truth::Text(files.texts[text].clone()), size)
    }

    fn range(&self, first: usize, size: usize) -> Question {
        let files = &self.corpora.files;
        let lines = json!({"path": "big.txt", "start_line": first + 1, "line_count": 200});
        let truth = Truth::Text(files.big(first, 200));
        Question::new(&files.root, call("read_file_range", lines), truth, size)
    }

    /// A fresh process for each; one call to warm up; then rounds in rotating order.
    fn race(
        &self,
        key: &str,
        question: &Question,
        rounds: usize,
        calls: usize,
        beside: &[&str],
    ) -> Vec<Figures> {
        let Question { root, ask, truth, .. } = question;
        let ours = if key.starts_with("many") { "ours, 64 handles" } else { "ours" };
        let mut contenders = vec![self.server(ours, root, ask.clone()).0];
        for name in beside {
            contenders.extend(self.beside(name, question));
        }
        for contender in &mut contenders {
            contender.once(key, truth);
            contender.figures.seconds.clear();
            contender.figures.cpu_seconds = -contender.server_cpu_seconds();
        }
        let rounds = if self.quick { rounds.div_ceil(2) } else { rounds };
        let count = contenders.len();
        for turn in 0..rounds * count {
            let contender = &mut contenders[(turn + turn / count) % count];
            (0..calls).for_each(|_| contender.once(key, truth));
        }
        for contender in &mut contenders {
            let cpu = contender.figures.cpu_seconds + contender.server_cpu_seconds();
            contender.figures.cpu_seconds = cpu / (rounds * calls) as f64;
        }
        contenders.into_iter().map(Contender::finish).collect()
    }

    /// `floor`, `floor, FLAG`, or the command line of a tool, if that is installed.
    fn beside(&self, name: &str, question: &Question) -> Option<Contender> {
        if name.starts_with("floor") {
            let mut ask = question.ask.clone();
            if let (Ask::Call(_, arguments, _), Some(flag)) =
                (&mut ask, name.strip_prefix("floor, "))
            {
                arguments[flag] = 1.into();
            }
            return Some(self.server(name, &question.root, ask).0);
        }
        let program = name.split(' ').next()?;
        let path = env::var_os("PATH")?;
        env::split_paths(&path).find(|folder| folder.join(program).is_file())?;
        let mut command = Command::new(program);
        command.args(name.split(' ').skip(1)).current_dir(&question.root);
        if let Truth::Hits(needle, _) = question.truth {
            let long = if needle == LONG { "-on" } else { "-n" };
            command.args([long, needle, "."]);
        }
        let name = if program == "rg" { "rg -j1" } else { program };
        Some(Contender { figures: Figures::named(name), kind: Kind::Tool(command) })
    }

    fn start_and_exit(&self, rows: &mut Vec<Vec<String>>) {
        note("start");
        let root = &self.corpora.tree.root;
        let mut starts = ["ours", "hello world", "floor"].map(Figures::named);
        let mut exits = ["ours", "floor"].map(Figures::named);
        let rounds = if self.quick { 20 } else { 60 };
        for turn in 0..rounds * 3 {
            let start = &mut starts[(turn + turn / 3) % 3];
            let clock = Instant::now();
            if start.name == "hello world" {
                let (seconds, cpu, _) = client::run(Command::new(&self.me).arg("--hello"));
                start.seconds.push(seconds);
                start.cpu_seconds += cpu / rounds as f64;
                continue;
            }
            let ours = start.name == "ours";
            let (contender, tools) = self.server(&start.name, root, Ask::Batch(Vec::new()));
            start.seconds.push(clock.elapsed().as_secs_f64());
            let wrong = || format!("{tools} tools for {TOOLS}");
            start.check("start", if ours && tools != TOOLS { Err(wrong()) } else { Ok(()) });
            let Kind::Server(server, _) = contender.kind else { continue };
            start.cpu_seconds += server.cpu_seconds() / rounds as f64;
            start.peak_bytes = start.peak_bytes.max(server.peak_bytes());
            exits[usize::from(!ours)].seconds.push(server.stop());
        }
        rows.push(race_row("start to the first `tools/list` answer", &starts, 1.5, false));
        rows.push(race_row("end of input to exit", &exits, 1.2, false));
        let [ours, _, floor] = starts.map(|start| start.peak_bytes);
        let value = format!("{} MiB (floor: {})", mebibytes(ours), mebibytes(floor));
        rows.push(bound_row("peak memory, idle", value, "4 MiB", ours <= 4 << 20));
    }

    /// The ping waits for a page of the search, and a page ends with its time budget.
    fn ping_behind_a_search(&self) -> Vec<String> {
        note("ping-behind");
        let budget = if self.quick { "50" } else { "300" };
        let mut command = ours(&self.corpora.tree.root, &["--time-budget", budget]);
        let search = json!({"name": "search_text", "arguments": {"query": ABSENT}});
        let ask = Ask::Batch(vec![("tools/call", search), ("ping", json!({}))]);
        let (mut server, _) = Server::start(&mut command);
        let mut figures = Figures::named("ours");
        let mut cut = 0;
        for _ in 0..9 {
            figures.seconds.push(server.ask(&ask));
            let answer = server.answer();
            cut += usize::from(answer.as_ref().is_ok_and(|(_, complete)| !complete));
            figures.check("ping-behind", answer.map(|_| ()));
        }
        server.stop();
        let worst = figures.seconds.iter().copied().fold(0.0, f64::max);
        let value = format!("{} (worst {})", time(figures.median()), time(worst));
        let work =
            format!("ping behind a search, `--time-budget {budget}`, {cut} of 9 searches cut");
        let budget_ms: f64 = budget.parse().expect("a number");
        bound_row(&work, value, &format!("{budget} ms"), figures.median() < budget_ms * 1.05 / 1e3)
    }

    /// Four sizes each: what grows with the work must grow in proportion, the rest not at all. In CPU
    /// time, which busy neighbours disturb least.
    fn scale(&self) {
        let Corpora { tree, many, wide, files } = &self.corpora;
        let mut rows = Vec::new();
        let mut add = |work: &str, unit: &str, units: f64, question: Question| {
            let ours = self.race("scale", &question, 4, 1, &[]).remove(0);
            rows.push(vec![
                work.to_owned(),
                format!("{units:.*} {unit}", usize::from(unit == "MiB")),
                if ours.wrong.is_some() { "WRONG".to_owned() } else { time(ours.cpu_seconds) },
                time(ours.cpu_seconds / units),
                mebibytes(ours.peak_bytes),
            ]);
        };
        for tree in [Some(tree), many.as_ref()].into_iter().flatten() {
            for (path, share) in [("eighth", 1), ("quarter", 2), ("half", 4), (".", 8)] {
                let count = (tree.files * share / 8) as f64;
                let question = find(tree, path, "*_manifest.toml", &tree.manifests);
                add("search_files", "files", count, question);
                add("search_text", "files", count, search(tree, path, RARE, &tree.rare));
            }
        }
        for (root, names) in wide {
            add("list_directory", "entries", names.len() as f64, list(root, names));
        }
        let mebibytes = |bytes: usize| bytes as f64 / 1_048_576.0;
        for (text, (_, size)) in corpus::TEXTS.iter().enumerate().skip(1) {
            add("read_file", "MiB", mebibytes(*size), self.read(text));
        }
        for share in [8, 4, 2, 1] {
            let question = self.range(files.big_lines / share - 200, 0);
            let passed = mebibytes(files.big_bytes / share);
            add("read_file_range, 200 lines at", "MiB", passed, question);
        }
        let big = [("big.txt", files.big_bytes)];
        for (name, size) in corpus::TEXTS.into_iter().skip(2).chain(big) {
            let ask = call("search_text", json!({"path": name, "query": ABSENT}));
            let question = Question::new(&files.root, ask, Truth::Hits(ABSENT, Vec::new()), 0);
            add("search_text, one file", "MiB", mebibytes(size), question);
        }
        rows.sort_by(|one, other| one[0].cmp(&other[0]));
        print_table(&["work", "size", "ours: CPU", "per unit", "peak MiB"], &rows);
    }

    /// The cost of one page by its place, the least of three: flat for reads; for lists and searches
    /// it holds the check of what was passed.
    fn scale_pages(&self) {
        let mut rows = Vec::new();
        for (key, page) in
            [("read-9m", 24_000), ("list-all", 40), ("find-many", 40), ("search-common", 40)]
        {
            let Some(mut question) = self.question(key) else { continue };
            let Ask::Call(tool, arguments, _) = &mut question.ask else { continue };
            match &question.truth {
                Truth::Paths(all) | Truth::Hits(_, all) => {
                    arguments["limit"] = (all.len() / page).max(1).into();
                }
                _ => arguments["max_chars"] = page.into(),
            }
            let mut row = vec![(*tool).to_owned()];
            let mut contender = self.server("ours", &question.root, question.ask.clone()).0;
            let mut pages: Vec<f64> = Vec::new();
            for _ in 0..3 {
                contender.once(key, &question.truth);
                let Kind::Server(server, _) = &contender.kind else { continue };
                pages.resize(server.page_seconds.len(), f64::INFINITY);
                pages.iter_mut().zip(&server.page_seconds).for_each(|(a, b)| *a = a.min(*b));
            }
            row.push(pages.len().to_string());
            row.extend(pages.chunks(pages.len().div_ceil(4)).map(|pages| time(median(pages))));
            let is_wrong = contender.finish().wrong.is_some();
            rows.push(if is_wrong { vec!["WRONG".to_owned()] } else { row });
        }
        print_table(&["one page of", "pages", "first quarter", "second", "third", "last"], &rows);
    }
}

fn ours(root: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(options).arg(root);
    command
}

fn call(tool: &'static str, arguments: Value) -> Ask {
    Ask::Call(tool, arguments, usize::MAX)
}

fn list(root: &Path, names: &[String]) -> Question {
    let ask = call("list_directory", json!({}));
    Question::new(root, ask, Truth::Paths(names.to_vec()), names.len())
}

fn find(tree: &corpus::Tree, path: &str, pattern: &str, want: &[String]) -> Question {
    let ask = call("search_files", json!({"path": path, "pattern": pattern}));
    Question::new(&tree.root, ask, Truth::Paths(beneath(path, want)), tree.files)
}

fn search(tree: &corpus::Tree, path: &str, needle: &'static str, want: &[String]) -> Question {
    let ask = call("search_text", json!({"path": path, "query": needle}));
    Question::new(&tree.root, ask, Truth::Hits(needle, beneath(path, want)), tree.files)
}

fn beneath(path: &str, rows: &[String]) -> Vec<String> {
    let is_beneath = |row: &&String| path == "." || row.split('/').next() == Some(path);
    rows.iter().filter(is_beneath).cloned().collect()
}
