#!/usr/bin/env bash
# Installs the Debian packages that the build and the tests need; does nothing when all are there.
# usage: scripts/deps.sh [--bench] [--fuzz]
#   --bench adds what the benchmarks compare with (etcd) and load with (wrk), --fuzz clang with libFuzzer and the sanitizers
set -euo pipefail

packages=(
  g++ cmake ninja-build make pkg-config git ccache curl ca-certificates
  librocksdb-dev libboost1.81-dev libboost-context1.81-dev libspdlog-dev libfmt-dev
  libflatbuffers-dev flatbuffers-compiler librapidcheck-dev libgtest-dev liburing-dev libcli11-dev
  nlohmann-json3-dev prometheus-cpp-dev libssl-dev
)
for argument in "$@"; do
  case $argument in
    --bench) packages+=(etcd-server wrk) ;;
    --fuzz) packages+=(clang-14 libclang-rt-14-dev llvm-14) ;;
    *) echo "usage: scripts/deps.sh [--bench] [--fuzz]" >&2; exit 2 ;;
  esac
done

command -v dpkg-query >/dev/null || { echo "deps.sh: this needs Debian 12 (no dpkg-query here)" >&2; exit 1; }

installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null | sed -n 's/ installed$//p' || true)
missing=()
for package in "${packages[@]}"; do
  grep -qxF "$package" <<<"$installed" || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

if [[ $(id -u) != 0 ]]; then
  echo "deps.sh: run it once as root to install: ${missing[*]}" >&2
  exit 1
fi

echo "deps.sh: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt-get update -q && apt-get install -q -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  echo "deps.sh: apt-get failed: $(grep -E '^(E:|Err:)' "$log" | tail -1 | cut -c1-200)" >&2
  exit 1
fi
