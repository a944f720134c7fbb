//! The only file that touches the file system. It looks up one component at a time beneath an open
//! handle, and reads; it never creates, changes or removes anything, never opens a FIFO, socket or
//! device, and never lets the kernel follow a symbolic link, but for those of a root, at start.
//!
//! The kernel resolves `/proc/self/fd/N/name` as child `name` of the open directory N, the same as
//! `openat(N, name)`: see proc(5) and open(2). Each component is *pinned* that way with `O_PATH |
//! O_NOFOLLOW`, which opens nothing and pins a link itself. The type is read from the pin, and only
//! a regular file or a directory is opened, through its pin: nothing else can take its place.
//! Beside that it reads only what `/proc` tells of this process.

#[cfg(not(target_os = "linux"))]
compile_error!("readonly-mcp is confined by /proc/self/fd and O_PATH: it builds for Linux only");

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// open(2) flags. Their values differ between architectures; a wrong one is dangerous in silence,
/// so an architecture that is not listed does not compile, and a test compares them with `libc`.
mod flag {
    pub(super) const NOFOLLOW: i32 = cfg_select! {
        any(target_arch = "x86_64", target_arch = "x86", target_arch = "riscv64",
            target_arch = "s390x", target_arch = "loongarch64") => 0x20000,
        any(target_arch = "aarch64", target_arch = "arm", target_arch = "powerpc64") => 0x8000,
        _ => compile_error!("the open(2) flags of this architecture are not known"),
    };
    pub(super) const NONBLOCK: i32 = 0x800;
    pub(super) const PATH: i32 = 0x20_0000;

    /// Access modes that write, and the bits that create, truncate, append or make temporary files;
    /// the same on every architecture above.
    const WRITING: i32 = 0o3 | 0o100 | 0o200 | 0o1000 | 0o2000 | 0o20_000_000;
    const _: () = assert!((NOFOLLOW | NONBLOCK | PATH) & WRITING == 0);
}

/// The open(2) flags that this program uses, to be compared with those of the platform.
pub const OPEN_FLAGS: [(&str, i32); 3] =
    [("O_NOFOLLOW", flag::NOFOLLOW), ("O_NONBLOCK", flag::NONBLOCK), ("O_PATH", flag::PATH)];

/// The only two ways in which a file is opened.
#[derive(Clone, Copy)]
enum Open {
    /// Names an object without opening it; a symbolic link is named itself.
    Pin,
    /// Opens for reading what a pin names. `O_NOFOLLOW` must be absent: the name of a pin is a
    /// magic link in `/proc/self/fd`, which leads to the pinned object and nowhere else.
    /// `O_NONBLOCK` keeps a write lease of another process from blocking us (fcntl(2)).
    PinnedFile,
}

fn open(path: &Path, how: Open) -> io::Result<File> {
    let flags = match how {
        Open::Pin => flag::PATH | flag::NOFOLLOW,
        Open::PinnedFile => flag::NONBLOCK,
    };
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Why the operating system did not do it; its own message is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Missing, // ENOENT, or a name longer than the file system allows
    Denied,
    NotADirectory,
    Handles,          // EMFILE, ENFILE
    Busy,             // EAGAIN: another process holds a lease on the file
    PseudoFileSystem, // the object lies on a file system of kernel objects
    NotAFile,         // no regular file, so it is not opened
    Failed,
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::InvalidFilename => Self::Missing,
            ErrorKind::PermissionDenied => Self::Denied,
            ErrorKind::NotADirectory => Self::NotADirectory,
            ErrorKind::WouldBlock => Self::Busy,
            _ if matches!(error.raw_os_error(), Some(23 | 24)) => Self::Handles,
            _ => Self::Failed,
        }
    }
}

/// What a name stands for, not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Dir,
    Link,
    Fifo,
    Socket,
    BlockDevice,
    CharacterDevice,
}

type Test = fn(&FileType) -> bool;

/// Each kind with its one word, in rows and errors, and how it is told; in the order of [`Kind`].
const KINDS: [(Kind, &str, Test); 7] = [
    (Kind::File, "file", FileType::is_file),
    (Kind::Dir, "directory", FileType::is_dir),
    (Kind::Link, "symbolic link", FileType::is_symlink),
    (Kind::Fifo, "fifo", FileType::is_fifo),
    (Kind::Socket, "socket", FileType::is_socket),
    (Kind::BlockDevice, "block device", FileType::is_block_device),
    (Kind::CharacterDevice, "character device", FileType::is_char_device),
];

impl Kind {
    fn of(kind: FileType) -> Self {
        let known = KINDS.iter().find(|(_, _, is)| is(&kind));
        known.map_or(Self::CharacterDevice, |(kind, ..)| *kind)
    }

    pub(crate) fn word(self) -> &'static str {
        KINDS[self as usize].1
    }
}

/// What fstat(2) tells. Times are in seconds since 1970, UTC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) kind: Kind,
    pub(crate) size: u64,
    pub(crate) mode: u32,
    pub(crate) modified: i64,
    pub(crate) accessed: i64,
    pub(crate) created: Option<i64>,
    pub(crate) stamp: [u64; 7], // what "unchanged" means: device, inode, size, mtime, ctime
}

impl Facts {
    fn of(meta: &Metadata) -> Self {
        let created = meta.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let changed = [meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()];
        let [a, b, c, d] = changed.map(i64::cast_unsigned);
        Self {
            kind: Kind::of(meta.file_type()),
            size: meta.size(),
            mode: meta.mode() & 0o7777,
            modified: meta.mtime(),
            accessed: meta.atime(),
            created: created.and_then(|since| since.as_secs().try_into().ok()),
            stamp: [meta.dev(), meta.ino(), meta.size(), a, b, c, d],
        }
    }

    /// Whether both are of one object, whatever its contents.
    pub(crate) fn is_same_object(&self, other: &Self) -> bool {
        self.kind == other.kind && self.stamp[..2] == other.stamp[..2]
    }
}

/// Which devices one call has met, and whether their file system is a pseudo one.
#[derive(Default)]
pub(crate) struct Mounts(pub(crate) RefCell<BTreeMap<u64, bool>>);

type Entry = (Box<[u8]>, Kind);

/// An object named by a handle and not opened: a capability to look up what is in it.
pub(crate) struct Pin {
    file: File,
    pub(crate) facts: Facts, // when it was pinned
}

impl Pin {
    fn at(path: &Path) -> Result<Self, Fault> {
        let file = open(path, Open::Pin)?;
        let facts = Facts::of(&file.metadata()?);
        Ok(Self { file, facts })
    }

    /// True when the directory has been removed: no name leads to it any more.
    pub(crate) fn is_removed(&self) -> bool {
        self.file.metadata().is_ok_and(|meta| meta.nlink() == 0)
    }

    /// The magic link that leads to what is pinned.
    fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }

    /// More than one component, or `..`, would let the kernel follow links or climb: no path.
    fn child_path(&self, name: &[u8]) -> Result<PathBuf, Fault> {
        let odd = matches!(name, b"" | b"." | b"..") || memchr::memchr2(b'/', 0, name).is_some();
        if odd { Err(Fault::Missing) } else { Ok(self.path().join(OsStr::from_bytes(name))) }
    }

    pub(crate) fn child(&self, name: &[u8], mounts: &Mounts) -> Result<Self, Fault> {
        let child = Self::at(&self.child_path(name)?)?;
        let [[here, ..], [device, ..]] = [self.facts.stamp, child.facts.stamp];
        let mut met = mounts.0.borrow_mut();
        if device != here && *met.entry(device).or_insert_with(|| is_pseudo(&child)) {
            return Err(Fault::PseudoFileSystem);
        }
        Ok(child)
    }

    /// Of the child `name`, not followed.
    pub(crate) fn child_facts(&self, name: &[u8]) -> Result<Facts, Fault> {
        Ok(Facts::of(&fs::symlink_metadata(self.child_path(name)?)?))
    }

    /// The text of the symbolic link `name`, of which every component is looked up like any other.
    pub(crate) fn link_text(&self, name: &[u8]) -> Result<PathBuf, Fault> {
        fs::read_link(self.child_path(name)?).map_err(|error| match error.kind() {
            ErrorKind::InvalidInput => Fault::Missing, // EINVAL: something else has taken its place
            _ => error.into(),
        })
    }

    /// At most `max` entries of this directory, in the order of the disk, with their types. Their
    /// own paths are never used: they spell a handle number that may be another's by then.
    pub(crate) fn entries(&self, max: usize) -> Result<Vec<Entry>, Fault> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(self.path())?.take(max) {
            let entry = entry?;
            // An entry may vanish before its type is known on file systems that do not tell types.
            let Ok(kind) = entry.file_type() else { continue };
            entries.push((entry.file_name().into_encoded_bytes().into(), Kind::of(kind)));
        }
        Ok(entries)
    }

    /// Opens for reading; only a regular file is ever opened.
    pub(crate) fn open(&self) -> Result<Content, Fault> {
        if self.facts.kind != Kind::File {
            return Err(Fault::NotAFile);
        }
        Ok(Content { file: open(&self.path(), Open::PinnedFile)?, size: self.facts.size })
    }
}

/// A regular file, open for reading, and its size when it was pinned.
pub(crate) struct Content {
    file: File,
    size: u64,
}

impl Content {
    /// Reads at `offset` until `buffer` is full or the file ends; gives the number of bytes.
    pub(crate) fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, Fault> {
        let mut filled = 0;
        // At the known size, a read has come to the end: it is not asked for once more.
        while filled == 0 || filled < buffer.len() && offset + filled as u64 != self.size {
            match self.file.read_at(&mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(filled)
    }
}

/// Resolves the symbolic links of a root, once.
pub(crate) fn resolve_root(typed: &Path) -> Result<PathBuf, Fault> {
    Ok(fs::canonicalize(typed)?)
}

/// Pins a resolved root, one component at a time: no link that has appeared since is followed.
pub(crate) fn open_root(resolved: &Path) -> Result<Pin, Fault> {
    let mut pin = Pin::at(Path::new("/"))?;
    for name in resolved.iter().skip(1) {
        pin = Pin::at(&pin.child_path(name.as_bytes())?)?;
    }
    match pin.facts.kind {
        Kind::Dir if is_pseudo(&pin) => Err(Fault::PseudoFileSystem),
        Kind::Dir => Ok(pin),
        _ => Err(Fault::NotADirectory),
    }
}

/// File systems whose "files" are kernel objects: reading has effects, blocks, or tells secrets.
const PSEUDO_FILE_SYSTEMS: &str = "\
    autofs binfmt_misc bpf cgroup cgroup2 configfs debugfs devpts efivarfs fusectl mqueue proc \
    pstore rpc_pipefs securityfs selinuxfs sysfs tracefs";

fn is_pseudo(pin: &Pin) -> bool {
    match file_system(pin) {
        Some(name) => PSEUDO_FILE_SYSTEMS.split(' ').any(|pseudo| pseudo == name),
        // No mount number, or no line for it (a chroot, gVisor): proc is still known by its device.
        None => fs::metadata("/proc/self").is_ok_and(|proc| proc.dev() == pin.facts.stamp[0]),
    }
}

/// The type of the file system that holds a pin, by mount number (proc(5), fdinfo and mountinfo):
/// device numbers do not agree with the mount table on btrfs and overlayfs.
pub(crate) fn file_system(pin: &Pin) -> Option<String> {
    let mount = handle_info(&pin.file, "mnt_id:")?;
    let table = fs::read("/proc/self/mountinfo").ok()?;
    let table = String::from_utf8_lossy(&table);
    let line = table.lines().find(|line| line.split(' ').next() == Some(&mount))?;
    line.split_once(" - ")?.1.split(' ').next().map(String::from)
}

fn handle_info(file: &File, key: &str) -> Option<String> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd())).ok()?;
    info.lines().find_map(|line| line.strip_prefix(key)).map(|value| value.trim().into())
}

/// Proves at every start that flags and `/proc` do what this file relies on, or says what fails.
pub(crate) fn self_test() -> Result<(), &'static str> {
    let claims = claims().map_err(|_| "/proc cannot be looked up, or its files not opened")?;
    claims.iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, why)| Err(why))
}

fn claims() -> Result<[(bool, &'static str); 6], Fault> {
    let top = Pin::at(Path::new("/proc"))?;
    let link = Pin::at(&top.path().join("self"))?;
    let status = Pin::at(Path::new("/proc/self/status"))?;
    let flags = handle_info(&status.open()?.file, "flags:").unwrap_or_default();
    let flags = i32::from_str_radix(&flags, 8).unwrap_or(0);
    let followed = Facts::of(&fs::metadata(top.path())?);
    Ok([
        (link.facts.kind == Kind::Link, "a symbolic link was followed, or /proc is no proc"),
        (open(&link.path(), Open::PinnedFile).is_err(), "a pinned link was opened"),
        (status.file.read_at(&mut [0], 0).is_err(), "O_PATH does not keep a file from being read"),
        (flags & (flag::NONBLOCK | 0o3) == flag::NONBLOCK, "O_NONBLOCK does not take effect"),
        (fs::symlink_metadata(top.path())?.is_symlink(), "/proc/self/fd has no magic links"),
        (followed.is_same_object(&top.facts), "/proc/self/fd does not lead to open handles"),
    ])
}
