//! What is measured: a server behind two pipes, or a command from its start to its end.
//!
//! The clock runs from the write of a request to the last byte of its answer; parsing comes after.
//! It never judges whether an answer is true: it hands out what came.

use std::fs;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use memchr::{memchr_iter, memmem};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// No single answer takes longer, or the benchmark ends.
const ANSWER_SECONDS: u64 = 180;
/// More than a pipe holds is written by a second thread.
const PIPE_BYTES: usize = 32 * 1024;
/// How far from either end of an answer its cursor stands.
const EDGE_BYTES: usize = 2_000;

/// What one sample asks of a server.
#[derive(Clone)]
pub(crate) enum Ask {
    /// A tool, its arguments, and how many pages at most.
    Call(&'static str, Value, usize),
    /// Methods and parameters, written without waiting.
    Batch(Vec<(&'static str, Value)>),
}

pub(crate) struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    next_id: u64,
    buffer: Vec<u8>,
    filled: usize,
    /// Of the last answer.
    pub(crate) page_seconds: Vec<f64>,
}

impl Server {
    /// Starts it and has it answer `tools/list`; returns the number of tools too.
    pub(crate) fn start(command: &mut Command) -> (Server, usize) {
        let mut child = spawn(command.stdin(Stdio::piped()));
        let mut server = Server {
            input: child.stdin.take(),
            output: child.stdout.take().expect("a pipe"),
            child,
            next_id: 1_000_000,
            buffer: vec![0; 1 << 20],
            filled: 0,
            page_seconds: Vec::new(),
        };
        let client = json!({"name": "bench", "version": "0"});
        let hello =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        server.ask(&Ask::Batch(vec![("initialize", hello)]));
        let ready = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
        server.input.iter_mut().for_each(|pipe| pipe.write_all(ready).expect("write a notice"));
        server.ask(&Ask::Batch(vec![("tools/list", json!({}))]));
        let answer: Value = serde_json::from_slice(&server.buffer[..server.filled]).expect("JSON");
        let tools = answer["result"]["tools"].as_array().map_or(0, Vec::len);
        (server, tools)
    }

    /// Sends, waits for all of the answer, returns the seconds. `answer` then has what came.
    pub(crate) fn ask(&mut self, ask: &Ask) -> f64 {
        self.filled = 0;
        self.page_seconds.clear();
        match ask {
            Ask::Call(tool, arguments, pages) => {
                let mut params = json!({"name": tool, "arguments": arguments});
                for _ in 0..*pages {
                    let (line, start) = (self.request("tools/call", &params), self.filled);
                    self.exchange(&line, 1);
                    let Some(cursor) = next_cursor(&self.buffer[start..self.filled]) else { break };
                    params["arguments"]["cursor"] = cursor.into();
                }
            }
            Ask::Batch(requests) => {
                let mut lines = Vec::new();
                for (method, params) in requests {
                    lines.extend(self.request(method, params));
                }
                self.exchange(&lines, requests.len());
            }
        }
        self.page_seconds.iter().sum()
    }

    /// The payloads of the last answer, joined, and whether it is complete. Every id must be in its
    /// place, nothing an error, and every hash that of its payload.
    pub(crate) fn answer(&self) -> Result<(String, bool), String> {
        let (mut text, mut complete) = (String::new(), true);
        let lines = self.buffer[..self.filled].split_inclusive(|&byte| byte == b'\n');
        let first_id = self.next_id - lines.clone().map(|_| 1).sum::<u64>();
        for (id, line) in (first_id..).zip(lines) {
            let mut reply: Value =
                serde_json::from_slice(line).map_err(|error| error.to_string())?;
            let result = &mut reply["result"];
            if !result.is_object() || result["isError"] == true {
                return Err(reply.to_string().chars().take(300).collect());
            }
            let block = result.pointer_mut("/content/0/text").map(Value::take);
            if let Some(Value::String(block)) = block {
                let payload = block.split_once('\n').map_or("", |(_, payload)| payload);
                let meta = &result["_meta"]["readonly-mcp/result"];
                if meta["content_hash"] != format!("sha256:{}", hexadecimal(payload.as_bytes())) {
                    return Err("content_hash is not that of the payload".to_owned());
                }
                text += payload;
                complete = meta["complete"] == true;
            }
            if reply["id"] != id {
                return Err(format!("the answer to {} came for {id}", reply["id"]));
            }
        }
        Ok((text, complete))
    }

    /// The longest line of the last answer: one result.
    pub(crate) fn result_bytes(&self) -> usize {
        self.buffer[..self.filled].split(|&byte| byte == b'\n').map(<[u8]>::len).max().unwrap_or(0)
    }

    /// Closes the input and waits: the seconds until it was gone.
    pub(crate) fn stop(mut self) -> f64 {
        let clock = Instant::now();
        drop(self.input.take());
        self.child.wait().expect("wait for a server");
        clock.elapsed().as_secs_f64()
    }

    pub(crate) fn cpu_seconds(&self) -> f64 {
        cpu_seconds(self.child.id())
    }

    pub(crate) fn peak_bytes(&self) -> usize {
        let status = proc_file(self.child.id(), "status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes: Option<usize> =
            line.and_then(|rest| rest.trim_matches([' ', '\t', 'k', 'B']).parse().ok());
        kilobytes.unwrap_or(0) * 1024
    }

    fn request(&mut self, method: &str, params: &Value) -> Vec<u8> {
        let id = self.next_id;
        self.next_id += 1;
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n")
            .into_bytes()
    }

    /// Writes, reads until so many lines are whole, and notes the time. Nobody sends unasked.
    fn exchange(&mut self, lines: &[u8], mut count: usize) {
        DEADLINE.store(now() + ANSWER_SECONDS, Ordering::Relaxed);
        let Server { input, output, buffer, filled, .. } = self;
        let mut write = || input.as_mut().expect("open").write_all(lines).expect("write requests");
        let clock = Instant::now();
        thread::scope(|scope| {
            if lines.len() < PIPE_BYTES {
                write();
            } else {
                scope.spawn(write);
            }
            while count > 0 {
                if buffer.len() - *filled < PIPE_BYTES * 2 {
                    buffer.resize(buffer.len() * 2, 0);
                }
                let length = output.read(&mut buffer[*filled..]).expect("read an answer");
                assert!(length > 0, "a server ended before its answer");
                count -= memchr_iter(b'\n', &buffer[*filled..*filled + length]).count();
                *filled += length;
            }
            self.page_seconds.push(clock.elapsed().as_secs_f64());
        });
    }
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn next_cursor(line: &[u8]) -> Option<&str> {
    const KEY: &[u8] = b"\"next_cursor\":\"";
    let end = &line[line.len().saturating_sub(EDGE_BYTES)..];
    let start = &line[..line.len().min(EDGE_BYTES)];
    let edge = [end, start].into_iter().find_map(|edge| Some(&edge[memmem::find(edge, KEY)?..]))?;
    str::from_utf8(&edge[KEY.len()..]).ok()?.split('"').next()
}

fn spawn(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("start a process")
}

/// Runs a command to its end: seconds, CPU seconds, and what it printed.
pub(crate) fn run(command: &mut Command) -> (f64, f64, Vec<u8>) {
    let (clock, mut printed) = (Instant::now(), Vec::new());
    let mut child = spawn(command.stdin(Stdio::null()));
    child.stdout.take().expect("a pipe").read_to_end(&mut printed).expect("read what it prints");
    // Its CPU time can be read as long as it is a zombie, and is complete only then.
    while !proc_file(child.id(), "stat").contains(") Z ") {
        thread::yield_now();
    }
    let seconds = clock.elapsed().as_secs_f64();
    let cpu = cpu_seconds(child.id());
    child.wait().expect("wait for a command");
    (seconds, cpu, printed)
}

fn proc_file(process: u32, name: &str) -> String {
    fs::read_to_string(format!("/proc/{process}/{name}")).unwrap_or_default()
}

/// User and system time of the first thread: exact where the kernel counts so, else by its ticks.
fn cpu_seconds(process: u32) -> f64 {
    let number = |text: &str| text.parse::<f64>().ok();
    if let Some(nanoseconds) = proc_file(process, "schedstat").split(' ').next().and_then(number) {
        return nanoseconds / 1e9;
    }
    let stat = proc_file(process, "stat");
    let fields = stat.rsplit(") ").next().unwrap_or("").split(' ').skip(11).take(2);
    fields.filter_map(number).sum::<f64>() / 100.0
}

static DEADLINE: AtomicU64 = AtomicU64::new(u64::MAX);

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Ends the benchmark when an answer stays out; the servers then see the end of their input.
pub(crate) fn watch() {
    thread::spawn(|| {
        while now() < DEADLINE.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_secs(1));
        }
        crate::report::note(&format!("WRONG: no answer within {ANSWER_SECONDS} seconds"));
        std::process::exit(1);
    });
}
