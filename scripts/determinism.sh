#!/usr/bin/env bash
# Runs each seed again in fresh processes that differ in everything a run must not depend on (address layout, what the
# allocator leaves in fresh memory, the build) and compares the hashes.
# usage: scripts/determinism.sh SEED[,SEED...] [PRESET...]       (default preset: release; asan cannot use the allocator fill)
set -uo pipefail
cd "$(dirname "$0")/.."

[[ $# -ge 1 ]] || { echo "usage: scripts/determinism.sh SEED[,SEED...] [PRESET...]" >&2; exit 2; }
IFS=, read -ra seeds <<<"$1"
shift
presets=("${@:-release}")
differing=0

# hash_of PROGRAM SEED [PREFIX...]: the hash that one run prints, or a word that says why there is none.
hash_of() {
  local program=$1 seed=$2 output
  shift 2
  output=$(timeout 900 "$@" "$program" run --seed "$seed" 2>&1) || true
  sed -n 's/^hash \([0-9a-f]*\)$/\1/p' <<<"$output" | tail -1 | grep . || echo "none: $(tail -1 <<<"$output")"
}

for seed in "${seeds[@]}"; do
  expected=
  for preset in "${presets[@]}"; do
    program=build/$preset/narad-chaos
    variants=("env" "setarch -R" "env MALLOC_PERTURB_=165" "setarch -R env MALLOC_PERTURB_=90")
    if [[ $preset == asan || $preset == tsan ]]; then variants=("env" "setarch -R"); fi
    if [[ $preset == tsan ]]; then variants=("setarch -R"); fi
    for variant in "${variants[@]}"; do
      read -ra prefix <<<"$variant"
      got=$(hash_of "$program" "$seed" "${prefix[@]}")
      expected=${expected:-$got}
      if [[ $got != "$expected" || $got == none* ]]; then
        echo "seed $seed: $preset ($variant): $got, expected $expected"
        differing=$((differing + 1))
      fi
    done
  done
done
echo "${#seeds[@]} seeds, $differing runs differ"
[[ $differing -eq 0 ]]
