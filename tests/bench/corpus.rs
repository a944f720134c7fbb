//! What the benchmark reads: trees, wide directories and long files, made from one seed, with the
//! true answers beside them.
//!
//! Every run makes every corpus again in memory, and so knows the truth without reading it back;
//! it writes only what no stamp vouches for. It never removes a folder that has no stamp, and never
//! writes outside the folder that it was given.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

pub(crate) const RARE: &str = "vexel_unusual_mark";
pub(crate) const COMMON: &str = "dispatch_call_frame";
pub(crate) const ABSENT: &str = "jjkq_never_written";
pub(crate) const LONG: &str = "needle_of_the_long_line";

/// Changes whenever the same names and sizes get other contents.
const VERSION: u32 = 1;
/// The top folders of a tree, with their share of its files in eighths.
const GROUPS: [(&str, usize); 4] = [("eighth", 1), ("half", 4), ("quarter", 2), ("rest", 1)];
/// The text files that are read whole, with their sizes in bytes.
pub(crate) const TEXTS: [(&str, usize); 5] = [
    ("1k.txt", 1_024),
    ("100k.txt", 100_000),
    ("1m.txt", 1_000_000),
    ("3m.txt", 3_000_000),
    ("9m.txt", 9_000_000),
];

pub(crate) struct Corpora {
    pub(crate) tree: Tree,
    /// 500,000 tiny files.
    pub(crate) many: Option<Tree>,
    /// Directories of an eighth, a quarter, a half and all of the entries, with their names.
    pub(crate) wide: [(PathBuf, Vec<String>); 4],
    pub(crate) files: Files,
}

/// What is to be found in a tree, in the order of the contract.
#[derive(Default)]
pub(crate) struct Tree {
    pub(crate) root: PathBuf,
    pub(crate) files: usize,
    pub(crate) bytes: usize,
    /// Paths of `*.rs` and of `*_manifest.toml`.
    pub(crate) rust: Vec<String>,
    pub(crate) manifests: Vec<String>,
    /// `PATH:LINE` of the lines with `RARE` and with `COMMON`.
    pub(crate) rare: Vec<String>,
    pub(crate) common: Vec<String>,
}

pub(crate) struct Files {
    pub(crate) root: PathBuf,
    /// The contents of `TEXTS`.
    pub(crate) texts: [Vec<u8>; 5],
    pub(crate) big_lines: usize,
    pub(crate) big_bytes: usize,
    pub(crate) single_bytes: usize,
    pool: Vec<String>,
}

impl Files {
    /// Lines of `big.txt`, the first counted from 0.
    pub(crate) fn big(&self, first: usize, count: usize) -> Vec<u8> {
        (first..first + count).flat_map(|line| numbered(&self.pool, line)).collect()
    }
}

pub(crate) fn make(folder: &Path, quick: bool, many: bool) -> Corpora {
    let size = |full, small| if quick { small } else { full };
    let tree = |name, files, tiny| part(&folder.join(name), |sink| make_tree(sink, files, tiny));
    let wide = |share| {
        let root = folder.join(format!("wide{share}"));
        let names = part(&root, |sink| make_wide(sink, size(100_000, 10_000) / share));
        (root, names)
    };
    let (big, single) = (size(1 << 30, 64 << 20), size(200_000_000, 16_000_000));
    Corpora {
        tree: tree("tree", size(50_000, 4_000), false),
        many: many.then(|| tree("many", size(500_000, 40_000), true)),
        wide: [8, 4, 2, 1].map(wide),
        files: part(&folder.join("files"), |sink| make_files(sink, big, single)),
    }
}

/// Rows `PATH` or `PATH:LINE`: component by component, names in byte order, lines as they came.
pub(crate) fn sort(rows: &mut [String]) {
    let path = |row: &str| row.split_once(':').map_or(row.len(), |(path, _)| path.len());
    rows.sort_by(|a, b| a[..path(a)].split('/').cmp(b[..path(b)].split('/')));
}

/// Runs `make` dry, for the truth, and once more to write what its stamp does not vouch for.
fn part<T>(folder: &Path, make: impl Fn(&mut Sink) -> T) -> T {
    let mut dry = Sink { folder: folder.to_owned(), writes: false, digest: 0 };
    let truth = make(&mut dry);
    let stamp_path = folder.with_extension("stamp");
    let stamp = format!("{VERSION} {:016x}", dry.digest);
    let found = fs::read_to_string(&stamp_path).ok();
    if found.as_ref() != Some(&stamp) {
        crate::report::note(&format!("making {}", folder.display()));
        if folder.exists() {
            assert!(found.is_some(), "{} has no stamp: not ours to replace", folder.display());
            fs::remove_dir_all(folder).expect("remove an old corpus");
        }
        fs::create_dir_all(folder).expect("make the corpus folder");
        fs::write(&stamp_path, "unfinished").expect("write a stamp");
        make(&mut Sink { writes: true, ..dry });
        fs::write(&stamp_path, stamp).expect("write a stamp");
    }
    truth
}

struct Sink {
    folder: PathBuf,
    writes: bool,
    digest: u64,
}

impl Sink {
    fn file(&mut self, path: &str, bytes: &[u8]) {
        if let Some(mut file) = self.open(path, bytes.len()) {
            file.write_all(bytes).expect("write a corpus file");
        }
    }

    /// Name and size stand for the contents: the rest follows from the seed and `VERSION`.
    fn open(&mut self, path: &str, size: usize) -> Option<File> {
        for byte in path.bytes().chain(size.to_le_bytes()) {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.writes.then(|| File::create(self.folder.join(path)).expect("create a corpus file"))
    }

    fn folder(&self, path: &str) {
        if self.writes {
            fs::create_dir_all(self.folder.join(path)).expect("make a corpus folder");
        }
    }
}

/// SplitMix64: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() >> 32).expect("a 64-bit machine") % end
    }

    fn one<'a>(&mut self, of: &'a [String]) -> &'a str {
        &of[self.below(of.len())]
    }

    fn word(&mut self) -> String {
        let mut syllable = || [b"bcdfghklmnprstvz"[self.below(16)], b"aeiou"[self.below(5)]];
        let letters = [syllable(), syllable(), syllable()].concat();
        letters.into_iter().map(char::from).collect()
    }
}

fn source_lines(random: &mut Random, count: usize, ascii: bool) -> Vec<String> {
    let line = |_| {
        let (a, b, c, number) =
            (random.word(), random.word(), random.word(), random.below(100_000));
        match random.below(9) {
            0 => String::new(),
            1 => "    }".to_owned(),
            2 => format!("// {a} {b} of the {c}, see {a}_{number}"),
            3 => format!("fn {a}_{b}({c}: &mut {a}, {b}: usize) -> Option<{c}> {{"),
            4 => format!("        log(\"{a} {b}: {{}}\\t{{}}\", {c}.{a}(), {number});"),
            5 if !ascii => format!("    # {a} \u{2014} caf\u{e9} \u{6f22}\u{5b57} \"{b}\""),
            6 => format!("\tif {a}.{b} > {number} {{ return {c}; }}"),
            _ => format!("    let {a} = {b}.{c}({number})?.{a}({b});"),
        }
    };
    (0..count).map(line).collect()
}

/// 20 manifests; one file in 40 is binary (one of these has `RARE` in it), one folder in 50 is
/// hidden, nine lines hold `RARE`, a quarter of the files hold `COMMON`.
fn make_tree(sink: &mut Sink, count: usize, tiny: bool) -> Tree {
    // Most source files have a few kilobytes, some are large.
    const SIZES: [usize; 8] = [700, 1_800, 3_000, 4_400, 6_200, 9_000, 15_000, 28_000];
    const ENDINGS: &str = "rs rs rs rs rs py py py py ts ts ts ts js js c h go md md json yaml txt";
    let random = &mut Random(7);
    let pool = source_lines(random, 20_000, false);
    let block = |_| (0..26).map(|_| random.one(&pool).to_owned() + "\n").collect::<String>();
    let blocks: Vec<String> = (0..3_000).map(block).collect();
    let endings: Vec<String> = ENDINGS.split(' ').map(str::to_owned).collect();
    let mut tree = Tree { root: sink.folder.clone(), files: count, ..Tree::default() };
    let mut number = 0;
    for (group, share) in GROUPS {
        let files = count * share / 8;
        let folders = make_folders(sink, random, group, files / if tiny { 100 } else { 12 });
        for _ in 0..files {
            let (binary, manifest) = (number % 40 == 39, number % (count / 20) == 7);
            let ending = match (binary, manifest) {
                (true, _) => ".bin".to_owned(),
                (_, true) => "_manifest.toml".to_owned(),
                _ => format!(".{}", random.one(&endings)),
            };
            let path = format!("{}/{}{number}{ending}", random.one(&folders), random.word());
            let middle = SIZES[random.below(8)];
            let size = if tiny { 0 } else { middle * 6 / 10 + random.below(middle * 8 / 10) };
            let (mut bytes, mut lines) = (format!("// {path}\n").into_bytes(), 1);
            if binary {
                bytes.extend(b"\0\xff");
                bytes.extend((0..size / 8).flat_map(|_| random.next().to_le_bytes()));
                bytes.extend(if number == 39 { RARE.as_bytes() } else { &[] });
            }
            while !binary && bytes.len() < size {
                bytes.extend(random.one(&blocks).bytes());
                lines += 26;
            }
            let common = if random.below(4) == 0 { 1 + random.below(3) } else { 0 };
            let rare = usize::from(number % (count / 9) == count / 18 - 3);
            for (needle, times, rows) in
                [(COMMON, common, &mut tree.common), (RARE, rare, &mut tree.rare)]
            {
                for _ in 0..if binary { 0 } else { times } {
                    lines += 1;
                    bytes.extend(format!("    {needle}({});\n", random.word()).bytes());
                    rows.push(format!("{path}:{lines}"));
                }
            }
            sink.file(&path, &bytes);
            tree.bytes += bytes.len();
            number += 1;
            match ending.as_str() {
                ".rs" => tree.rust.push(path),
                "_manifest.toml" => tree.manifests.push(path),
                _ => {}
            }
        }
    }
    for rows in [&mut tree.rust, &mut tree.manifests, &mut tree.rare, &mut tree.common] {
        sort(rows);
    }
    tree
}

fn make_folders(sink: &Sink, random: &mut Random, top: &str, count: usize) -> Vec<String> {
    let mut folders = vec![top.to_owned()];
    for number in 0..count {
        let parent = random.one(&folders[folders.len().saturating_sub(30)..]);
        let parent = if parent.matches('/').count() > 6 { top } else { parent };
        let hidden = if number % 50 == 49 { "." } else { "" };
        folders.push(format!("{parent}/{hidden}{}{number}", random.word()));
    }
    folders.iter().for_each(|folder| sink.folder(folder));
    folders
}

fn make_wide(sink: &mut Sink, count: usize) -> Vec<String> {
    let random = &mut Random(8);
    let names: Vec<String> =
        (0..count).map(|number| format!("entry_{number:06}_{}.txt", random.word())).collect();
    names.iter().for_each(|name| sink.file(name, b""));
    names
}

/// `TEXTS`; `big.txt` of numbered lines; `long/single.txt`, one line with `LONG` in its middle.
fn make_files(sink: &mut Sink, big_bytes_min: usize, single_bytes: usize) -> Files {
    let pool = source_lines(&mut Random(9), 20_011, true);
    let texts = TEXTS.map(|(name, size)| {
        let mut text: Vec<u8> =
            (0..).flat_map(|line| numbered(&pool, line)).take(size - 1).collect();
        text.push(b'\n');
        sink.file(name, &text);
        text
    });
    let mut big = sink.open("big.txt", big_bytes_min);
    let (mut big_lines, mut big_bytes) = (0, 0);
    while big_bytes < big_bytes_min {
        let lines = big_lines..big_lines + 10_000;
        let block: Vec<u8> = lines.flat_map(|line| numbered(&pool, line)).collect();
        big_lines += 10_000;
        big_bytes += block.len();
        big.iter_mut().for_each(|file| file.write_all(&block).expect("write a corpus file"));
    }
    sink.folder("long");
    let filler = pool[..9_000].join(" ");
    if let Some(mut file) = sink.open("long/single.txt", single_bytes) {
        let pieces = single_bytes / filler.len();
        for piece in 0..pieces {
            let needle = if piece == pieces / 2 { LONG } else { "" };
            write!(file, "{filler} {needle} ").expect("write a corpus file");
        }
    }
    Files { root: sink.folder.clone(), texts, big_lines, big_bytes, single_bytes, pool }
}

fn numbered(pool: &[String], number: usize) -> Vec<u8> {
    format!("{number:09} {}\n", pool[number * 7_919 % pool.len()]).into_bytes()
}
