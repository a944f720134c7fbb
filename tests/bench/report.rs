//! From samples to a Markdown table.
//!
//! It never fails a run for being slow: `MISS` is a word in the table, `WRONG` an exit code.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) const HEAD: [&str; 11] = [
    "work",
    "ours: median (minimum)",
    "CPU",
    "peak MiB",
    "held against",
    "its CPU",
    "ratio",
    "by minima",
    "in CPU",
    "target",
    "also",
];

/// Whether any answer was wrong.
pub(crate) static WRONG: AtomicBool = AtomicBool::new(false);

/// What one contender showed at one piece of work.
#[derive(Default)]
pub(crate) struct Figures {
    pub(crate) name: String,
    pub(crate) seconds: Vec<f64>,
    /// Of one call.
    pub(crate) cpu_seconds: f64,
    pub(crate) peak_bytes: usize,
    pub(crate) result_bytes: usize,
    pub(crate) wrong: Option<String>,
}

impl Figures {
    pub(crate) fn named(name: &str) -> Figures {
        Figures { name: name.to_owned(), ..Figures::default() }
    }

    pub(crate) fn median(&self) -> f64 {
        median(&self.seconds)
    }

    pub(crate) fn minimum(&self) -> f64 {
        self.seconds.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub(crate) fn check(&mut self, work: &str, verdict: Result<(), String>) {
        if let Err(reason) = verdict {
            WRONG.store(true, Ordering::Relaxed);
            if self.wrong.is_none() {
                note(&format!("WRONG: {work}: {}: {reason}", self.name));
                self.wrong = Some(reason);
            }
        }
    }

    fn cell(&self) -> String {
        match &self.wrong {
            Some(_) => "WRONG".to_owned(),
            None => format!("{} ({})", time(self.median()), time(self.minimum())),
        }
    }
}

/// `all`: ours, then what it is held against, then others for information. Section 9 wants at most
/// `factor` times the second, also in CPU time if so said; 0 is no target.
pub(crate) fn race_row(work: &str, all: &[Figures], factor: f64, and_cpu: bool) -> Vec<String> {
    let ours = &all[0];
    let mut row =
        vec![work.to_owned(), ours.cell(), time(ours.cpu_seconds), mebibytes(ours.peak_bytes)];
    row.resize(HEAD.len(), String::new());
    let Some(beside) = all.get(1) else { return row };
    let ratios = [
        ours.median() / beside.median(),
        ours.minimum() / beside.minimum(),
        ours.cpu_seconds / beside.cpu_seconds,
    ];
    row[4] = format!("{} {}", beside.name, beside.cell());
    row[5] = time(beside.cpu_seconds);
    for (cell, ratio) in row[6..9].iter_mut().zip(ratios) {
        let is_true = all[..2].iter().all(|one| one.wrong.is_none()) && ratio.is_finite();
        *cell = if is_true { times(ratio) } else { String::new() };
    }
    let verdict = match ratios.map(|ratio| ratio > factor) {
        _ if ours.wrong.is_some() => "WRONG",
        [true, true, _] => "MISS",
        [_, _, true] if and_cpu => "MISS in CPU",
        [true, false, _] => "ok by minima",
        [false, true, _] => "ok by medians",
        _ => "ok",
    };
    if factor > 0.0 {
        row[9] = format!("{}: {verdict}", times(factor));
    }
    let other = |one: &Figures| {
        format!("{} {}, {}", one.name, one.cell(), times(ours.median() / one.median()))
    };
    row[10] = all[2..].iter().map(other).collect::<Vec<_>>().join("; ");
    row
}

/// A value, its bound, and whether that holds.
pub(crate) fn bound_row(work: &str, value: String, bound: &str, holds: bool) -> Vec<String> {
    let mut row = vec![work.to_owned(), value];
    row.resize(HEAD.len(), String::new());
    row[9] = format!("{bound}: {}", if holds { "ok" } else { "MISS" });
    row
}

pub(crate) fn print_table(head: &[&str], rows: &[Vec<String>]) {
    if !rows.is_empty() {
        say(&format!("\n| {} |\n|{}", head.join(" | "), " --- |".repeat(head.len())));
        rows.iter().for_each(|row| say(&format!("| {} |", row.join(" | "))));
    }
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

pub(crate) fn times(ratio: f64) -> String {
    if ratio < 10.0 { format!("{ratio:.2}x") } else { format!("{ratio:.0}x") }
}

pub(crate) fn time(seconds: f64) -> String {
    let (value, unit) = match seconds {
        0.0 => return String::new(),
        _ if seconds < 0.001 => (seconds * 1e6, "µs"),
        _ if seconds < 1.0 => (seconds * 1e3, "ms"),
        _ => (seconds, "s"),
    };
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$} {unit}")
}

pub(crate) fn mebibytes(bytes: usize) -> String {
    if bytes == 0 { String::new() } else { format!("{:.1}", bytes as f64 / 1_048_576.0) }
}

/// To standard output: the report.
pub(crate) fn say(line: &str) {
    writeln!(io::stdout(), "{line}").expect("write the report");
}

/// To standard error: what is going on.
pub(crate) fn note(line: &str) {
    writeln!(io::stderr(), "{line}").expect("write a note");
}
