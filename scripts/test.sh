#!/usr/bin/env bash
# Runs every test executable of one build and short chaos sweeps, and ends with one line: N passed, N failed.
# usage: scripts/test.sh [PRESET]                     (default: release)
#   SWEEP_SEEDS=A..B   seeds of the sweep (default 1..100 in release, 1..5 in other builds)
#   TEST_KINDS="..."   the test executables to run (default: unit property scenario conformance integration)
# Logs stand in build/PRESET/test-logs/. Exit 0 when nothing failed, else 1.
set -uo pipefail
cd "$(dirname "$0")/.."

preset=${1:-release}
build=build/$preset
logs=$build/test-logs
kinds=${TEST_KINDS:-unit property scenario conformance integration}
if [[ $preset == release ]]; then default_seeds=1..100; else default_seeds=1..5; fi
seeds=${SWEEP_SEEDS:-$default_seeds}
seconds_max=1800
limit=(timeout -k 10 $seconds_max)
passed=0
failed=0

mkdir -p "$logs"

# Instrumented programs are ten times as slow: fewer places for trouble in the retellings of long stories.
[[ $preset == release ]] || export NARAD_TROUBLE_PLACES=${NARAD_TROUBLE_PLACES:-6}
# Property tests draw the same inputs in every run unless a seed is given.
export RC_PARAMS=${RC_PARAMS:-seed=1}
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=0:abort_on_error=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1:suppressions=$PWD/tests/tsan.supp}

# ThreadSanitizer of this compiler cannot place its shadow under every kernel's address randomisation.
runner=()
if [[ $preset == tsan ]] && setarch -R true 2>/dev/null; then runner=(setarch -R); fi

# report NAME PASSED FAILED SKIPPED SECONDS
report() {
  passed=$((passed + $2))
  failed=$((failed + $3))
  local skipped=""
  [[ $4 -eq 0 ]] || skipped=", $4 skipped"
  printf '%-12s %4d passed, %d failed%s (%d s)\n' "$1" "$2" "$3" "$skipped" "$5"
}

attribute() { sed -n "/<testsuites/{s/.* $1=\"\([0-9]*\)\".*/\1/p;q}" "$2"; }

run_tests() {
  local kind=$1 program=$build/narad_$1 log=$logs/$1.log xml=$logs/$1.xml begin=$SECONDS status=0
  if [[ ! -x $program ]]; then
    echo "$kind: $program was not built"
    report "$kind" 0 1 0 0
    return
  fi
  rm -f "$xml"
  "${limit[@]}" "${runner[@]}" "$program" --gtest_output="xml:$xml" >"$log" 2>&1 || status=$?
  local took=$((SECONDS - begin)) ok bad skipped
  if [[ -s $xml ]]; then
    skipped=$(grep -c 'result="skipped"' "$xml")
    bad=$(attribute failures "$xml")
    ok=$(($(attribute tests "$xml") - bad - skipped - $(attribute disabled "$xml")))
    [[ $bad -gt 0 || $status -eq 0 ]] || bad=1
  else
    # The program died: whatever had passed counts, and the death counts as one failure.
    ok=$(grep -c '^\[       OK \]' "$log")
    bad=$(($(grep -cE '^\[  FAILED  \] .* \([0-9]+ ms\)$' "$log") + 1))
    skipped=$(grep -cE '^\[  SKIPPED \] .* \([0-9]+ ms\)$' "$log")
    echo "$kind: ended with status $status after: $(grep '^\[ RUN ' "$log" | tail -1)"
    tail -30 "$log"
  fi
  if [[ $bad -gt 0 ]]; then
    grep -E -B 12 '^\[  FAILED  \] .* \([0-9]+ ms\)$' "$log" | head -200
    echo "$kind: full output in $log"
  fi
  report "$kind" "$ok" "$bad" "$skipped" "$took"
}

# run_check NAME COMMAND...: one test that passes when the command exits with 0.
run_check() {
  local name=$1 log=$logs/$1.log begin=$SECONDS
  shift
  if "$@" >"$log" 2>&1; then
    report "$name" 1 0 0 $((SECONDS - begin))
  else
    tail -30 "$log"
    echo "$name: full output in $log"
    report "$name" 0 1 0 $((SECONDS - begin))
  fi
}

for kind in $kinds; do
  run_tests "$kind"
done
# The fuzz targets take their own seeds.
run_seeds() {
  local target count=0
  for target in tests/fuzz/*.cpp; do
    echo "$(basename "$target" .cpp):" && "${limit[@]}" "${runner[@]}" "$build/fuzz/$(basename "$target" .cpp)" || return 1
    count=$((count + 1))
  done
  [[ $count -gt 0 ]]
}
if [[ -z ${TEST_KINDS:-} ]]; then run_check fuzz-seeds run_seeds; fi
if [[ $seeds != none ]]; then
  run_check sweep "${limit[@]}" "${runner[@]}" "$build/narad-chaos" sweep --seeds "$seeds" --jobs "$(nproc)"
  run_check determinism "${limit[@]}" scripts/determinism.sh 1,2,3 "$preset"
fi

echo "$passed passed, $failed failed" | tee "$logs/summary"
[[ $failed -eq 0 ]]
