#!/usr/bin/env bash
# Prints the tables of real histories in docs/engine.md and docs/causes.md.
#
# usage: tools/evaluate/real-histories.sh FOLDER
#
# FOLDER has one folder for each history, each with a `results.csv.gz` in the format of `assay analyze`:
#   gap-packages   nightly tests of https://github.com/gap-system/PackageDistro (branch `data`)
#   vllm-nightly   nightly tests of https://github.com/AndreasKaratzas/vllm-ci-dashboard (`data/vllm/ci/test_results`)
# `dask-distributed` with `runs.csv` and `results.csv.gz`, `rn-nightly` with `results.csv` (date,library,platform,status) of
# https://github.com/react-native-community/nightly-tests, where the nightly of a day is the revision, and for what to revert
#   reliability    https://github.com/nodejs/reliability
# A history that is missing is left out.
set -euo pipefail
folder=${1:?usage: real-histories.sh FOLDER}
cd "$(dirname "$0")/../.."
cargo build --release --quiet -p assay-evaluate
evaluate=${CARGO_TARGET_DIR:-target}/release/assay-evaluate
nightly=$(mktemp --suffix .csv)
trap 'rm -f "$nightly"' EXIT
if [ -f "$folder/rn-nightly/results.csv" ]; then
  # FP: a rerun of the day passed.
  awk -F, 'NR == 1 { print "test,run,started_at,status,branch,revision,variant,retry"; next }
    { for (i = 1; i <= length($4); i++)
        print $2 "," $1 "-" $3 "," $1 "T00:00:00Z," (substr($4, i, 1) == "P" ? "passed" : "failed") ",main," $1 "," $3 "," i - 1 }' \
    <(tr -d '\r' < "$folder/rn-nightly/results.csv") > "$nightly"
fi
for history in "$folder/gap-packages/results.csv.gz" "$folder/vllm-nightly/results.csv.gz" "$nightly"; do
  if [ -s "$history" ]; then
    echo "== $history"
    "$evaluate" real --all "$history"
    echo "flaky, where six new failures are a crowd:"
    "$evaluate" real --all --crowd 6 "$history" | sed -n 1,3p
  fi
done
if [ -f "$folder/dask-distributed/runs.csv" ]; then
  echo "== dask-distributed"
  "$evaluate" real --format dask "$folder/dask-distributed"
  echo "flaky, where six new failures are a crowd:"
  "$evaluate" real --format dask --crowd 6 "$folder/dask-distributed" | sed -n 1,3p
fi
echo "== what to revert"
revert() { # NAME PATH [FLAG...]
  if [ -e "$2" ]; then
    echo "= $1"
    "$evaluate" revert-history "${@:3}" "$2"
  fi
}
revert GAP "$folder/gap-packages/results.csv.gz"
revert vLLM "$folder/vllm-nightly/results.csv.gz"
revert dask "$folder/dask-distributed" --format dask
revert Node "$folder/reliability/reports" --format node
if [ -s "$nightly" ]; then revert "React Native" "$nightly"; fi
