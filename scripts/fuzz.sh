#!/usr/bin/env bash
# Runs the fuzz targets of build/fuzz, one after the other, and ends with one line: N targets, N failed.
# usage: scripts/fuzz.sh               (build them first: make fuzz does)
#   FUZZ_SECONDS=N      how long each runs (default 60)
#   FUZZ_TARGETS="..."  which (default: every one in tests/fuzz)
# build/fuzz/results/TARGET/ holds corpus/ (seeds and what was found on the way; the next run goes on from there), failures/
# (inputs that broke a promise) and log. Exit 0 when nothing failed, else 1.
set -uo pipefail
cd "$(dirname "$0")/.."

build=build/fuzz
seconds=${FUZZ_SECONDS:-60}
targets=${FUZZ_TARGETS:-$(cd tests/fuzz && for source in *.cpp; do echo "${source%.cpp}"; done)}
input_bytes_max=32768
count=0
failed=0

export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=0:detect_leaks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
symbolizer=$(command -v llvm-symbolizer-14) && export ASAN_SYMBOLIZER_PATH=$symbolizer

# figure NAME LOG: one of libFuzzer's final figures
figure() { sed -n "s/^stat::$1: *//p" "$2"; }

for target in $targets; do
  count=$((count + 1))
  results=$build/results/$target
  log=$results/log
  mkdir -p "$results/corpus" "$results/failures"
  if ! "$build/$target" --seeds "$results/corpus" >"$log" 2>&1; then
    tail -20 "$log"
    echo "$target: no seeds (was it built?)"
    failed=$((failed + 1))
    continue
  fi
  # An input may ask for 256 MiB at most in one piece, 1 GiB in all, and 10 s.
  if "$build/$target" -max_total_time="$seconds" -max_len=$input_bytes_max -len_control=20 -timeout=10 -rss_limit_mb=1024 \
      -malloc_limit_mb=256 -print_final_stats=1 -artifact_prefix="$results/failures/" "$results/corpus" >>"$log" 2>&1; then
    printf '%-14s %10d inputs, %6d a second, %5d MiB at most, %d in the corpus\n' "$target" \
      "$(figure number_of_executed_units "$log")" "$(figure average_exec_per_sec "$log")" "$(figure peak_rss_mb "$log")" \
      "$(find "$results/corpus" -type f | wc -l)"
  else
    grep -E 'check failed|^(==[0-9]+==)?ERROR|SUMMARY|runtime error' "$log" | head -5
    echo "$target: FAILED, full output in $log; replay: $build/$target $(sed -n 's/.*Test unit written to //p' "$log" | tail -1)"
    failed=$((failed + 1))
  fi
done

echo "$count targets, $failed failed"
[[ $failed -eq 0 ]]
