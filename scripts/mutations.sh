#!/usr/bin/env bash
# Breaks the code on purpose, one change at a time, and asks that the tests named for it turn red: a test that passes whatever the
# code does proves nothing. The changes are the files tests/mutations/*.txt; the README there says how one is written.
# usage: scripts/mutations.sh [NAME...]               (default: every one; a NAME may be a pattern, "snapshot-*")
#   MUTATIONS_PRESET=debug   the build to use
#   MUTATIONS_JOBS=N         mutations at a time (default: one a processor)
#   MUTATIONS_WHY=1          also prints how each test turned red
#   MUTATIONS_OTHERS=1       also runs the scenarios that are not named, and prints those that turn red too
# The tree is not touched. First its test programs are built, and the named tests must pass. Then, for each mutation: the changed
# source is compiled under build/mutations and linked in front of the library that has the true one, and each named test runs in a
# process of its own. Red is a failed test or a failed check; running out of time is not. What was seen is written to
# tests/mutations/results.tsv in place of what earlier runs of the same mutations have seen (date, commit, mutation, test), from which
# the pages docs/*scenarios.md are made. Exit 0 when every named test turned red.
set -uo pipefail
shopt -s nullglob
cd "$(dirname "$0")/.."

root=$PWD
preset=${MUTATIONS_PRESET:-debug}
jobs=${MUTATIONS_JOBS:-$(nproc)}
build=$root/build/$preset
work=$root/build/mutations
seconds_max=300

die() {
  echo "mutations.sh: $*" >&2
  exit 2
}

# Splits a mutation into edit_files, edit_olds, edit_news and reds.
parse() {
  edit_files=() edit_olds=() edit_news=() reds=()
  local part=what line
  while IFS= read -r line; do
    case $line in
      'file: '*) edit_files+=("${line#file: }") edit_olds+=("") edit_news+=("") part=between ;;
      '--- old') part=old ;;
      '--- new') part=new ;;
      '--- red') part=red ;;
      *)
        case $part in
          old) edit_olds[-1]+=$line$'\n' ;;
          new) edit_news[-1]+=$line$'\n' ;;
          red) reds+=("$line") ;;
        esac ;;
    esac
  done <"$1"
  [[ ${#edit_files[@]} -gt 0 && ${#reds[@]} -gt 0 ]] || die "$1: names no file or no test"
}

# program_of TEST, filter_of TEST: a test is named as in docs/scenarios.md.
program_of() {
  case $1 in
    scenario/*) echo narad_scenario_raft ;;
    unit/*/*) local layer=${1#unit/}; echo "narad_unit_${layer%%/*}" ;;
    *) die "$1: tests are named scenario/FILE or unit/FILE: SUITE.TEST" ;;
  esac
}
filter_of() {
  case $1 in
    scenario/*) local story=${1#scenario/}; story=${story%.raft}; echo "Raft/Scenario.Holds/${story//[^A-Za-z0-9]/_}" ;;
    *) echo "${1#*: }" ;;
  esac
}

# ---- One mutation --------------------------------------------------------------------------------------------------------------

# Writes the changed sources below $mine.
apply() {
  local i source changed text rest
  for i in "${!edit_files[@]}"; do
    source=$root/${edit_files[i]} changed=$mine/${edit_files[i]}
    [[ $source == *.cpp && -f $source ]] || die "$name: ${edit_files[i]} is no source of the tree"
    mkdir -p "$(dirname "$changed")"
    [[ -f $changed ]] || cp "$source" "$changed"
    text=$'\n'$(cat "$changed"; echo .)
    text=${text%.}
    rest=${text#*$'\n'"${edit_olds[i]}"}
    [[ $rest != "$text" && $rest == "${rest#*$'\n'"${edit_olds[i]}"}" ]] ||
      die "$name: its old text does not stand exactly once in ${edit_files[i]}"
    text=${text%%$'\n'"${edit_olds[i]}"*}$'\n'${edit_news[i]}$rest
    printf %s "${text#$'\n'}" >"$changed"
  done
}

# Compiles the changed sources as the build does, but for warnings and debug information.
compile() {
  local file command
  objects=""
  while IFS= read -r file; do
    command=$(grep -h -m1 -F -- " -c $root/$file" "$work"/*.commands | head -1)
    [[ -n $command ]] || { echo "no command compiles $file"; return 1; }
    command=$(sed -E "s# -MD -MT [^ ]+ -MF [^ ]+ -o [^ ]+ -c .*# -g0 -w -o $mine/$file.o -c $mine/$file#" <<<"$command")
    (cd "$build" && eval "$command") || return 1
    objects+=" $mine/$file.o"
  done < <(printf '%s\n' "${edit_files[@]}" | sort -u)
}

# Links programs with the changed objects first, so that none of the library's own takes their place.
link() {
  local program command
  for program in "$@"; do
    command=$(tail -1 "$work/$program.commands")
    command=${command/ -o $program / $objects -o $mine/$program }
    (cd "$build" && eval "$command") || return 1
  done
}

# run_test PROGRAM FILTER: sets verdict to red, green or an oddity, and reason.
run_test() {
  local out status=0
  out=$(cd "$mine" && timeout -k 5 $seconds_max "./$1" --gtest_filter="$2" 2>&1) || status=$?
  printf '== %s\n%s\n' "$2" "$(tail -40 <<<"$out")" >>"$mine/log"
  case $status in
    0) verdict=green ;;
    124 | 137) verdict="ran out of time" ;;
    *) verdict=red ;;
  esac
  grep -q 'Running 1 test ' <<<"$out" || verdict="no such test"
  reason=$(grep -m1 -E 'check failed|\.raft:[0-9]+:' <<<"$out" || grep -m1 -A2 Failure <<<"$out" | tr '\n' ' ')
  reason=${reason:0:170}
}

one() {
  local name mine objects programs test count=0 failed=0 begin=$SECONDS lines=()
  name=$(basename "$1" .txt)
  mine=$work/$name
  rm -rf "$mine"
  mkdir -p "$mine"
  parse "$1"
  apply
  programs=$(for test in "${reds[@]}"; do program_of "$test"; done | sort -u)
  # shellcheck disable=SC2086
  if compile >>"$mine/log" 2>&1 && link $programs >>"$mine/log" 2>&1; then
    for test in "${reds[@]}"; do
      run_test "$(program_of "$test")" "$(filter_of "$test")"
      if [[ $verdict == red ]]; then
        count=$((count + 1))
        printf '%s\t%s\n' "$name" "$test" >>"$mine/seen"
        [[ -z ${MUTATIONS_WHY:-} ]] || lines+=("  red: $test: $reason")
      else
        failed=$((failed + 1))
        lines+=("  $verdict: $test")
      fi
    done
    if [[ -n ${MUTATIONS_OTHERS:-} && -x $mine/narad_scenario_raft ]]; then
      for test in tests/scenario/*.raft; do
        test=${test#tests/}
        [[ " ${reds[*]} " == *" $test "* ]] && continue
        run_test narad_scenario_raft "$(filter_of "$test")"
        [[ $verdict == green ]] || lines+=("  also $verdict: $test: $reason")
      done
    fi
  else
    failed=1
    lines+=("  does not build, see ${mine#"$root"/}/log")
  fi
  rm -f "$mine"/narad_*
  echo "$count $failed" >"$mine/result"
  lines=("$(printf '%-44s %d of %d red (%d s)' "$name" "$count" ${#reds[@]} $((SECONDS - begin)))" ${lines[@]+"${lines[@]}"})
  printf '%s\n' "${lines[@]}"
}

if [[ ${1:-} == --one ]]; then
  one "$2"
  exit 0
fi

# ---- All of them ---------------------------------------------------------------------------------------------------------------

mutations=()
for pattern in "${@:-*}"; do
  found=(tests/mutations/$pattern.txt)
  [[ ${#found[@]} -gt 0 ]] || die "tests/mutations/$pattern.txt: no such file"
  mutations+=("${found[@]}")
done

rm -rf "$work"
mkdir -p "$work"
log=$work/log
declare -A filters=()
for mutation in "${mutations[@]}"; do
  parse "$mutation"
  for test in "${reds[@]}"; do filters[$(program_of "$test")]+=$(filter_of "$test"):; done
done
cmake --preset "$preset" --log-level=WARNING >>"$log" 2>&1 || die "cmake failed, see $log"
cmake --build "$build" --target "${!filters[@]}" >>"$log" 2>&1 || die "the tree does not build, see $log"
for program in "${!filters[@]}"; do
  ninja -C "$build" -t commands "$program" 2>/dev/null | grep -v '^ninja:' >"$work/$program.commands"
  (cd "$build" && timeout -k 5 1200 "./$program" --gtest_filter="${filters[$program]}") >>"$log" 2>&1 ||
    die "$program: the named tests do not all pass in the tree as it is, see $log"
done

printf '%s\0' "${mutations[@]}" | xargs -0 -n 1 -P "$jobs" "scripts/$(basename "$0")" --one

# ---- What was seen -------------------------------------------------------------------------------------------------------------

# Of a mutation that was run, only this run counts; of one that is gone, nothing.
record() {
  local results=$root/tests/mutations/results.tsv date commit mutation name
  date=$(date -u +%F)
  commit=$(git rev-parse --short HEAD 2>/dev/null || echo none)
  local -A is_run=()
  for mutation in "${mutations[@]}"; do is_run[$(basename "$mutation" .txt)]=1; done
  {
    if [[ -f $results ]]; then
      while IFS= read -r line; do
        name=$(cut -f3 <<<"$line")
        [[ -n ${is_run[$name]:-} || ! -f tests/mutations/$name.txt ]] || printf '%s\n' "$line"
      done <"$results"
    fi
    for mutation in "${!is_run[@]}"; do
      [[ ! -f $work/$mutation/seen ]] || sed "s/^/$date\t$commit\t/" "$work/$mutation/seen"
    done
  } | LC_ALL=C sort -t $'\t' -k 3 >"$work/results.tsv"
  cp "$work/results.tsv" "$results"
}
record

turned=0
failed=0
for mutation in "${mutations[@]}"; do
  result=$work/$(basename "$mutation" .txt)/result
  if [[ -s $result ]]; then read -r red other <"$result"; else red=0 other=1; fi
  turned=$((turned + red))
  failed=$((failed + other))
done
echo "${#mutations[@]} mutations, $turned tests turned red, $failed did not"
[[ $failed -eq 0 ]]
