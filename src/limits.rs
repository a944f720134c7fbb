//! Every bound on work, memory and the wire, one constant each, its unit last; only how many words
//! of ours a text may have stands beside that text. Nothing here is decided at run time: what the
//! operator may move is in [`crate::Config`], with the defaults below.

use std::ops::RangeInclusive;

/// Characters of one result's text, by default.
pub const RESULT_CHARS_DEFAULT: u64 = 24_000;
/// The smallest page, in characters: `max_chars` is never narrower.
pub const RESULT_CHARS_MIN: u64 = 1_000;
/// What `--max-result-chars` may be.
pub const RESULT_CHARS: RangeInclusive<u64> = RESULT_CHARS_MIN..=8_388_608;
/// A walk, search or line count answers by then, by default.
pub const TIME_BUDGET_DEFAULT_MS: u64 = 3_000;
/// What `--time-budget` may be.
pub const TIME_BUDGET_MS: RangeInclusive<u64> = 50..=50_000;
/// The longest request line, by default.
pub const REQUEST_BYTES_DEFAULT: u64 = 4_194_304;
/// What `--max-request-bytes` may be.
pub const REQUEST_BYTES: RangeInclusive<u64> = 1..=1 << 30;

// The wire. TypeScript clients close the connection at 10 MiB of unread bytes.
pub(crate) const REPLY_BYTES_MAX: usize = 10 * 1024 * 1024 - 64 * 1024; // one reply line
pub(crate) const VALUES_MAX: usize = 50_000; // commas and brackets of one request line
pub(crate) const ID_BYTES_MAX: usize = 1024 * 1024; // a request id, before it is escaped
pub(crate) const HEADER_CHARS_MAX: usize = 600; // what a header may take of its page,
pub(crate) const READ_HEADER_CHARS_MAX: usize = 380; // and that of a tool that reads files
pub(crate) const LINE_BYTES_KEPT: usize = 64 * 1024; // line buffer that is kept between requests
pub(crate) const SUBSCRIPTIONS_MAX: usize = 256; // open `subscriptions/listen` requests
pub(crate) const SUBSCRIPTION_BYTES_MAX: usize = 1_024; // the answer to one, which repeats its id
pub(crate) const UNPARSABLE_LINES_MAX: u64 = 100; // answered in a row, for two peers to stop
pub(crate) const BATCH_MESSAGES_MAX: usize = 1_000; // messages of one batch line
pub(crate) const CALL_BYTES_MIN: usize = 16 * 1024; // with less room for its text a call is refused
pub(crate) const CALL_OVERHEAD_BYTES: usize = 4 * 1024; // of a reply in a batch beside text and id

// Arguments.
pub(crate) const PATH_BYTES_MAX: usize = 4_096; // a client path
pub(crate) const GLOB_BYTES_MAX: usize = 1_024; // a glob
pub(crate) const BRACE_DEPTH_MAX: usize = 8; // how deep its braces nest
pub(crate) const QUERY_BYTES_MAX: usize = 256; // a `search_text` query
pub(crate) const PATHS_MAX: usize = 50; // paths of one `read_multiple_files` call
pub(crate) const LIST_DEPTH_MAX: u64 = 8; // levels of one `list_directory` call
pub(crate) const CONTEXT_LINES_MAX: u64 = 10; // on each side of a match
pub(crate) const CURSOR_CHARS_MAX: usize = 64; // a cursor

// Walks.
pub(crate) const LINKS_MAX: usize = 40; // symbolic links followed on one client path
pub(crate) const WALK_DEPTH_MAX: usize = 64; // levels below its start that a walk shows
pub(crate) const ENTRIES_MAX: u64 = 2_000_000; // of one call, beyond earlier pages
pub(crate) const LOOK_AHEAD_ENTRIES_MAX: u64 = 100_000; // of one directory, for `--include`
pub(crate) const TWIN_ENTRIES_MAX: usize = 10_000; // looked at for one that differs only in case
pub(crate) const HANDLES_MAX: usize = 16; // of directories, held at once
pub(crate) const SORT_BATCH_ENTRIES: usize = 512; // sorted at once, or an eighth if more

// Text.
pub(crate) const BLOCK_BYTES: usize = 256 * 1024; // how much of a file is read at once
pub(crate) const BINARY_CHECK_BYTES: usize = 8 * 1024; // start of a file: NUL in it means binary
pub(crate) const INFO_BYTES: usize = 64 * 1024; // start on which line ends are judged
pub(crate) const LONG_LINE_BYTES: usize = 64 * 1024; // longer lines are searched in windows
pub(crate) const ROW_LINE_CHARS_MAX: usize = 500; // longer lines are shown as a window
pub(crate) const WINDOW_CHARS: usize = 200; // of that window

const _: () = assert!(HEADER_CHARS_MAX < RESULT_CHARS_MIN as usize);
const _: () = assert!(LONG_LINE_BYTES < BLOCK_BYTES && BINARY_CHECK_BYTES < BLOCK_BYTES);
const _: () = assert!((*RESULT_CHARS.end() as usize) < REPLY_BYTES_MAX);
