#!/usr/bin/env bash
# Shows that readonly-mcp can only read. Six steps; each can fail, and --self-test proves that.
#
#   ./audit.sh [BINARY]     audits this source and BINARY (default: the release build, made if needed)
#   ./audit.sh --self-test  plants violations in a copy; each must fail at the step that catches it
#
# --only STEP,STEP runs some: source, compiler, dependencies, binary, behaviour, size.
# Needs bash, grep and coreutils; uses cargo, nm (binutils) and strace where they are. It writes to
# target/ and to a temporary directory only, and needs no network once the program is built.
# The lists, with a reason for each entry, are in fixtures/audit/.
set -euo pipefail
export LC_ALL=C
shopt -s globstar dotglob nullglob

repo=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
lists=$repo/fixtures/audit
binary='' only='' self_test=''
while (($#)); do
    case $1 in
        --self-test) self_test=yes ;;
        --only) only=${2:?--only needs the names of steps} && shift ;;
        -*) echo "usage: audit.sh [--self-test] [--only STEP,STEP] [BINARY]" >&2 && exit 2 ;;
        *)
            [[ -f $1 && -x $1 ]] || { echo "audit.sh: no program: $1; name the one to audit, or none" >&2 && exit 2; }
            binary=$(realpath -- "$1")
            ;;
    esac
    shift
done
cd "$repo"
work=$(mktemp -d)
trap 'chmod -R u+rwx "$work" && rm -rf "$work"' EXIT
trap '' PIPE # a server that dies early is a finding, not the end of the audit

ran='' failed=() skips=0
# step NAME WHY: runs check_NAME, which adds what is wrong to `found`, and says in `skipped` what it
# could not do for want of a tool, in `note` what else there is to tell.
step() {
    [[ -z $only || ,$only, == *,$1,* ]] || return 0
    local result=pass
    found=() skipped='' note='' ran+=,$1
    "check_$1"
    [[ ! -e $work/broken ]] || found+=("a pattern of the audit is broken: $(<"$work/broken")")
    [[ -z $skipped ]] || { result="skipped: $skipped" && skips=$((skips + 1)); }
    ((!${#found[@]})) || { result=FAIL && failed+=("$1"); }
    printf '%-13s %s\n    %s\n' "$1" "$result" "$2"
    [[ -z $note ]] || printf '    %s\n' "$note"
    ((!${#found[@]})) || printf '    ! %s\n' "${found[@]:0:40}"
}
# add TEXT: every line of TEXT is something wrong.
add() { [[ -z $1 ]] || while IFS= read -r line; do found+=("$line"); done <<<"$1"; }
# search ...: grep, for which "nothing found" is no error, but a broken pattern is.
search() { grep "$@" || (($? == 1)) || echo "grep $*" >"$work/broken"; }
# entries FILE: a list without its comments.
entries() { grep -v '^#' "$lists/$1"; }
# names FILE: the first word of each entry.
names() { entries "$1" | cut -d' ' -f1 | sort; }

# code FILE: a source file on one line, without comments. A comment is dropped only from lines with
# neither a quote nor the end of a block comment: there // cannot be inside a string or a block
# comment that ends on the line, so no code is dropped with it.
code() {
    local line
    while IFS= read -r line || [[ $line ]]; do
        case $line in *'"'* | *'*/'*) ;; *) line=${line%%//*} ;; esac
        printf '%s ' "$line"
    done <"$1" | tr -s ' \t\r'
}

check_source() {
    local file where pattern allowed sample why hits disk opening section='' line patterns=0
    for file in src/**; do
        if [[ -L $file || ! (-d $file || $file == *.rs) ]]; then found+=("$file is no Rust file"); fi
        [[ $file == *.rs ]] || continue
        mkdir -p "$work/code/${file%/*}" && code "$file" >"$work/code/$file"
    done
    while IFS=$'\t' read -r where pattern allowed sample why; do
        patterns=$((patterns + 1))
        if [[ -z $pattern || -z $why ]] || ! grep -qE -e "$pattern" <<<"$sample"; then
            found+=("fixtures/audit/forbidden.tsv: a pattern misses its own sample: $sample")
        fi
        # Where some matches are allowed, nothing before them may be swallowed.
        [[ $allowed != - ]] || pattern=".{0,24}($pattern)"
        hits=$(cd "$work/code" && search -roHE -e "$pattern" "${where/rest/src}")
        [[ $where != rest ]] || hits=$(search -v '^src/disk\.rs:' <<<"$hits")
        hits=$(search -vE -e "^[^:]*:($allowed)\$" <<<"$hits")
        [[ -z $hits ]] || add "$why: $hits"
    done < <(entries forbidden.tsv)
    ((patterns == 20)) || found+=("fixtures/audit/forbidden.tsv: $patterns patterns, not 20")

    # Of the standard library, only these modules; more in two files.
    hits=$(cd "$work/code" && search -roHE -e '\bstd\b(::[A-Za-z0-9_]+)*' src)
    hits=$(search -vE -e ':std::(any|borrow|cell|cmp|collections|error|ffi|fmt|io|iter|mem|num|ops|os::unix::ffi|panic|path|str|string|sync|time|vec)(::.*)?$' <<<"$hits")
    hits=$(search -vE -e '^src/disk\.rs:std::(fs|os::fd|os::unix::fs)(::.*)?$' <<<"$hits")
    hits=$(search -vE -e '^src/main\.rs:std::(env::args_os|process::ExitCode)$' <<<"$hits")
    [[ -z $hits ]] || add "a part of the standard library that is not on the list: $hits"

    # The one file that touches the disk: what it may use, and the only code that opens anything.
    disk=$(<"$work/code/src/disk.rs") || found+=("src/disk.rs is missing")
    opening=$(code "$lists/opening.txt")
    count() { search -oE -e "$1" <<<"${2-$disk}" | wc -l; }
    local imports='(self|File|FileType|Metadata|OpenOptions|FileExt|FileTypeExt|MetadataExt|OpenOptionsExt|[, ])+'
    local reading='canonicalize|metadata|read|read_dir|read_link|read_to_string|symlink_metadata'
    if (($(count '\bfs\b') != $(count "fs::(\{$imports\};|($reading)\()"))); then
        found+=("src/disk.rs uses more of std::fs than $reading and ${imports//|/ }")
    fi
    (($(count '\bcustom_flags\b') == 1)) || found+=("src/disk.rs: custom_flags is not there exactly once")
    (($(count '\bOpenOptions\b') == 2)) || found+=("src/disk.rs: OpenOptions is not imported once and used once")
    (($(count '\bcfg(_[a-z]+| *!)') == $(count '\bcfg_select\b' "$opening"))) || found+=("src/disk.rs: a cfg elsewhere")
    [[ ${#opening} -gt 500 && $disk == *"${opening% }"* ]] ||
        found+=("src/disk.rs: the code that opens is not, word for word, that of fixtures/audit/opening.txt")

    # The two roots of the source forbid unsafe code, and nothing is built but src/.
    for file in src/lib.rs src/main.rs; do
        grep -qxF '#![forbid(unsafe_code)]' "$file" || found+=("$file does not forbid unsafe code")
    done
    for file in build.rs .cargo rust-toolchain rust-toolchain.toml; do
        [[ ! -e $file ]] || found+=("$file may change what is built")
    done
    while IFS= read -r line; do
        case $line in
            '' | '#'*) continue ;;
            '[package]' | '[lib]' | '[[bin]]' | '[[test]]' | '[[example]]' | '[[bench]]' | '[dependencies]' | \
                '[dev-dependencies]' | '[lints.'*']' | '[profile.'*']' | '[package.metadata.'*']') section=$line && continue ;;
            '['*) found+=("Cargo.toml: a section that may change what is built: $line") ;;
        esac
        [[ $section ]] || found+=("Cargo.toml: before the first section: $line")
        if [[ $line =~ (build|links|proc-macro|crate-type|git|registry|package|path|rustflags)[\"\']?\ *= &&
            ! $line =~ ^path\ =\ \"(src/main\.rs|tests/[a-z/_]+\.rs)\"$ ]]; then
            found+=("Cargo.toml: may change what is built: $line")
        fi
    done <Cargo.toml
    grep -qxF 'unsafe_code = "forbid"' Cargo.toml || found+=("Cargo.toml does not forbid unsafe code")
}

# lint MORE...: clippy with our lists; -F cannot be undone by an attribute.
lint() {
    CLIPPY_CONF_DIR=$lists cargo clippy --quiet --color never --locked "$@" --lib --bins -- \
        -F clippy::disallowed_methods -F clippy::disallowed_types -F unsafe_code 2>&1
}
check_compiler() {
    local out status=0
    if ! cargo clippy --version >"$work/clippy" 2>&1; then
        skipped='install Rust (https://rustup.rs), then: rustup component add clippy' && return
    fi
    out=$(lint --offline) || status=$?
    if ((status)) && [[ $out == *--offline* ]]; then status=0 && out=$(lint) || status=$?; fi
    note="$(<"$work/clippy"), $(entries clippy.toml | grep -c '^    "') banned names"
    if ((status)); then
        add "$(search -A1 -E '^error' <<<"$out" | search -vxE -- '--')"
        ((${#found[@]})) || found+=("cargo clippy failed: ${out: -200}")
    fi
    # A name on the list that clippy does not know bans nothing.
    add "$(search -B1 -E -- '--> .*clippy\.toml' <<<"$out" | search -vxE -- '--')"
}

# dependencies: the packages of Cargo.lock with their checksums, and what Cargo.toml asks of the direct
# ones. A package that is not from crates.io says where it is from.
dependencies() {
    local key value line name='' version='' source='' checksum='' section=''
    while read -r key _ value; do
        case $key in
            name) name=$value version='' source=' from here' checksum='' ;;
            version | checksum) printf -v "$key" ' %s' "$value" ;;
            source) source=${value/#'"registry+https://github.com/rust-lang/crates.io-index"'/} ;;
            '') # the end of a package
                [[ -z $name || $name$source == '"readonly-mcp" from here' ]] || echo "$name$version$checksum$source"
                name='' ;;
        esac
    done < <(cat Cargo.lock && echo)
    while IFS= read -r line; do
        [[ $line != '['* ]] || section=$line
        [[ $section != '[dependencies]' || $line != [a-z]* ]] || echo "direct: $line"
    done <Cargo.toml
}
check_dependencies() {
    dependencies | tr -d '"' | sort >"$work/dependencies"
    note="$(grep -vc '^direct' "$work/dependencies") packages, those that only tests use included"
    add "$(comm -3 --output-delimiter='no longer so: ' "$work/dependencies" <(entries dependencies.txt | sort))"
}

check_binary() {
    local bad want unlisted
    [[ -x $binary ]] || { skipped='no binary: install Rust (https://rustup.rs), or name one' && return; }
    [[ $(head -c 4 "$binary") == $'\x7fELF' ]] || found+=("$binary is no program for Linux")
    bad=$(entries imports-bad.txt | cut -d' ' -f1 | tr '\n' '|')
    if command -v nm >/dev/null; then
        { nm -D --undefined-only -- "$binary" || true; } | tr -s ' ' | cut -d' ' -f3 | cut -d@ -f1 | sort -u >"$work/imports"
    else # the names stand in the file as text, among much else
        tr '\0' '\n' <"$binary" | search -axE '[A-Za-z_0-9]+' | sort -u >"$work/imports"
        skipped='which imports are new: install binutils (known bad ones were looked for)'
    fi
    add "$(search -xE -e "${bad%|}" "$work/imports")"
    if ! grep -qxE 'open(64)?' "$work/imports"; then
        skipped='this binary shows no imports: audit one that is linked dynamically'
    elif [[ -z $skipped ]]; then
        unlisted=$(comm -23 "$work/imports" <(names imports.txt))
        note="$(wc -l <"$work/imports") imports; unreviewed: ${unlisted:-none}"
        want=$(search -oE '^rust-version = "[0-9.]+"' Cargo.toml | tr -dc 0-9.)
        if [[ $unlisted && "$(rustc --version 2>&1)" == "rustc $want."* ]]; then
            add "not on the list, though this is the compiler that it was made with: $unlisted"
        fi
    fi
}

# The tree (plant_tree), what is known about it (snapshot) and the session with a server (play) are in
# fixtures/audit/session.sh; the requests in session.jsonl say in their id how they must end.
check_behaviour() {
    local dir=$work/run before calls trace start traced=(strace -f -qq -o "$work/trace")
    [[ -x $binary ]] || { skipped='no binary: install Rust (https://rustup.rs), or name one' && return; }
    source "$lists/session.sh" && plant_tree "$dir"
    before=$(snapshot "$dir/tree"; snapshot "$dir/outside"; snapshot "$dir/home")
    (($(wc -l <<<"$before") > 50)) || found+=('the tree could not be made')
    same() { add "$(comm -3 --output-delimiter='now: ' <(sort <<<"$before") <({ snapshot "$dir/tree"; snapshot "$dir/outside"; snapshot "$dir/home"; } | sort))"; }

    # A file size limit of 0: the server dies if it puts one byte into any file, wherever that is.
    play "$dir" bash -c 'ulimit -f 0; exec "$@"' - "$binary"
    same
    # The session must have called every tool that the server has, with success.
    note="$(wc -l <"$dir/answers") answers; called: $(search -oE '"id":"ok [0-9]+ [a-z_]+"' "$dir/answers" | tr -d '"' | cut -d' ' -f3 | sort | uniq -c | tr -s ' \n' ' ')"
    calls=$(search -oE '"id":"ok [0-9]+ [a-z]+_[a-z_]+"' "$dir/answers" | tr -d '"' | cut -d' ' -f3 | sort -u)
    add "$(comm -3 <(echo "$calls") <(search -oE '"name":"[a-z_]+","title"' "$dir/answers" | cut -d'"' -f4 | sort -u))"
    (($(wc -l <<<"$calls") == 9)) || found+=("the session calls other than nine tools: $calls")
    add "$(search -n 'MUST-NOT-LEAVE' "$dir/answers")"

    if ! "${traced[@]}" true 2>/dev/null; then
        skipped='the system calls: install strace, where it may trace (what is left behind was checked)' && return
    fi
    play "$dir" "${traced[@]}" "$binary"
    same
    # Only calls on the list, by one process; anything else that strace may print is not expected.
    search -vE '^[0-9]+ +\+\+\+ exited with 0 \+\+\+$' "$work/trace" | tr -s ' ' | cut -d' ' -f2- >"$work/calls"
    add "$(search -vE "^($(names syscalls.txt | tr '\n' '|')-)\(" "$work/calls")"
    (($(grep -c '^execve(' "$work/calls") == 1)) || found+=('other than one execve')
    add "$(search -E '^open' "$work/calls" | search -vE '", O_RDONLY(\|O_(CLOEXEC|NOFOLLOW|NONBLOCK|PATH|DIRECTORY|LARGEFILE))*\) = ')"
    add "$(search -E '^write' "$work/calls" | search -vE '^write\([12], ')"
    # From the first read of stdin on: every path is one component beneath an open handle.
    start=$(search -nm1 '^read(0, ' "$work/calls" | cut -d: -f1)
    [[ $start ]] || { found+=('it never reads stdin: is it readonly-mcp?') && return; }
    tail -n "+$start" "$work/calls" | search -vE '^(read|write|pread64)\(' | search -F '"' >"$work/paths"
    note+="; $(wc -l <"$work/calls") system calls, $(wc -l <"$work/paths") paths"
    (($(wc -l <"$work/paths") > 100)) || found+=('too few paths in the trace')
    add "$(search -vE '^[a-z0-9]+\(((AT_FDCWD|[0-9]+), )?"(/proc/self/fd/[0-9]+(/([^/"\\]|\\.)+)?|/proc/self/fdinfo/[0-9]+|/proc/self/mountinfo|)"' "$work/paths")"
    add "$(search -E '/\.\.?"|AT_FDCWD, ""' "$work/paths")"
}

check_size() {
    local file text count total=0 disk=0
    for file in src/**/*.rs; do
        text=$(<"$file")
        count=$(search -c '[^[:space:]]' <<<"${text%%'#[cfg(test)]'*}")
        total=$((total + count))
        [[ $file != src/disk.rs ]] || disk=$count
    done
    note="src/: $total lines with text, comments included; src/disk.rs: $disk"
    ((total > 0 && total <= 4500)) || found+=("src/ has $total lines: at most 4500")
    ((disk > 0 && disk <= 500)) || found+=("src/disk.rs has $disk lines: at most 500")
}

if [[ -z $binary ]]; then
    binary=${CARGO_TARGET_DIR:-target}/release/readonly-mcp
    if [[ (-z $only || $only == *b[ie]*) ]] && command -v cargo >/dev/null; then
        cargo build --release --locked --offline --quiet 2>/dev/null || cargo build --release --locked
    fi
    binary=$(realpath -m -- "$binary")
fi
if [[ $self_test ]]; then source "$lists/self-test.sh"; fi

step source 'The source names nothing that writes, connects, starts programs or reads the environment; one file opens.'
step compiler 'What a search of the text might miss (aliases, macros), the compiler resolves; no attribute can undo it.'
step dependencies 'The code of others in the binary is exactly the code that was looked at when the list was made.'
step binary 'What is not imported cannot be called: no unlink, rename, mkdir, chmod, socket or exec is in the binary.'
step behaviour 'Every tool, called with awkward arguments, left no trace; the kernel was asked for nothing but reading.'
step size 'Small enough to be read.'
[[ $ran ]] || { echo "audit.sh: no such step: $only" >&2 && exit 2; }
[[ ! -x $binary ]] || sha256sum -- "$binary"
if ((${#failed[@]})); then echo "FAILED: ${failed[*]}" && exit 1; fi
echo "All that ran hold; skipped: $skips."
