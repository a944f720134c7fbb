//! What is true of an answer, and whether it was given.
//!
//! It knows rows as the contract writes them and as `find` and `rg` print them. It never repairs
//! an answer: one row too many, too few or out of order is wrong.

#[derive(Clone)]
pub(crate) enum Truth {
    Anything,
    Text(Vec<u8>),
    Word(&'static str),
    /// Of a server `[FILE] PATH`, in a listing with size (0) and time; of a tool `./PATH`.
    Paths(Vec<String>),
    /// `PATH:LINE`, and what is in every such line. Of a server `[FILE] PATH` and then `LINE:...`;
    /// of a tool `./PATH:LINE:...`.
    Hits(&'static str, Vec<String>),
}

impl Truth {
    pub(crate) fn check(&self, answer: &[u8], of_tool: bool) -> Result<(), String> {
        let text = String::from_utf8_lossy(answer);
        let (want, mut rows) = match self {
            Truth::Anything => return Ok(()),
            Truth::Text(want) if want == answer => return Ok(()),
            Truth::Text(want) => {
                return Err(format!("not the {} true bytes but {}", want.len(), answer.len()));
            }
            Truth::Word(want) => {
                let mut words = text.split(|mark: char| !mark.is_alphanumeric());
                return words.any(|word| word == *want).then_some(()).ok_or(format!("no {want}"));
            }
            Truth::Paths(want) if of_tool => (want, tool_rows(&text, usize::MAX)),
            Truth::Paths(want) => (want, text.lines().map(path_row).collect()),
            Truth::Hits(_, want) if of_tool => (want, tool_rows(&text, 1)),
            Truth::Hits(needle, want) => (want, hit_rows(&text, needle)),
        };
        if of_tool {
            crate::corpus::sort(&mut rows);
        }
        // Where there is no hit, a server says so in one sentence.
        if *want == rows || want.is_empty() && rows.len() < 2 {
            return Ok(());
        }
        let same = want.iter().zip(&rows).take_while(|(one, other)| one == other).count();
        let [is, should] = [rows.get(same), want.get(same)];
        Err(format!("{} rows for {}, {is:?} for {should:?}", rows.len(), want.len()))
    }
}

/// The path, or all of the row if its size is not true.
fn path_row(row: &str) -> String {
    let mut columns = row.strip_prefix("[FILE] ").unwrap_or("?").split("  ");
    let path = columns.next().unwrap_or("?");
    if columns.next().is_none_or(|size| size == "0") { path } else { row }.to_owned()
}

fn hit_rows(text: &str, needle: &str) -> Vec<String> {
    let (mut rows, mut file) = (Vec::new(), "");
    for line in text.lines() {
        match (line.strip_prefix("[FILE] "), line.split_once(':')) {
            (Some(path), _) => file = path,
            (_, Some((at, hit))) if hit.contains(needle) => rows.push(format!("{file}:{at}")),
            _ => rows.push(line.to_owned()),
        }
    }
    rows
}

fn tool_rows(text: &str, colons: usize) -> Vec<String> {
    let row = |line: &str| {
        let end = line.match_indices(':').nth(colons).map_or(line.len(), |(at, _)| at);
        line[..end].trim_start_matches("./").to_owned()
    };
    text.lines().map(row).collect()
}
