# Sourced by what installs programs for tests: installs each once into `$cache`, so that a second run is quick.
# Sets `cache` and `scratch`. Nothing is written into the repository or into the home directory but the cache.
#
#   SUPERVISOR_INTEROP_CACHE   where things are installed and kept (some 2 GB); `supervisor-ci` in the user's cache directory if unset

cache=${SUPERVISOR_INTEROP_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/supervisor-ci}
mkdir -p "$cache" && cache=$(cd "$cache" && pwd) || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export npm_config_cache=$cache/.npm PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1

# is_whole NAME PROGRAM: was it installed to the end, and does `$cache/NAME/PROGRAM` still run?
is_whole() { [ -e "$cache/$1/.complete" ] && "$cache/$1/$2" --version >/dev/null 2>&1; }

# once NAME PROGRAM COMMAND…: unless it is whole, runs `COMMAND… $cache/NAME`. One at a time, also among several runs.
# A directory without its mark is left over from a run that failed or was killed, and is made anew.
once() {
    local place=$cache/$1 program=$cache/$1/$2
    (
        flock 9
        is_whole "$1" "$2" && exit 0
        rm -rf "$place" && mkdir -p "$place" || exit 1
        { "${@:3}" "$place" && "$program" --version; } >"$scratch/install.log" 2>&1 9>&- && touch "$place/.complete" && exit 0
        tail -n 5 "$scratch/install.log" | sed 's/^/    /' >&2
        exit 1
    ) 9>"$cache/.lock"
}

have() { command -v "$1" >/dev/null 2>&1; }

# from_npm PACKAGE… DIRECTORY
from_npm() { npm install --prefix "${*: -1}" --no-fund --no-audit --loglevel=error "${@:1:$#-1}"; }

# from_pypi PACKAGE… DIRECTORY
from_pypi() { python3 -m venv "${*: -1}" && "${*: -1}/bin/pip" install --quiet "${@:1:$#-1}"; }

node_is() { node -e 'const [a, b] = process.versions.node.split(".").map(Number), [c, d] = process.argv.slice(1).map(Number); process.exit(a > c || (a === c && b >= d) ? 0 : 1)' "$@" 2>/dev/null; }
