#!/usr/bin/env bash
# Prints the tables of real histories in docs/engine.md and docs/causes.md.
#
# usage: tools/evaluate/real-histories.sh FOLDER
#
# FOLDER has one folder for each history, each with a `results.csv.gz` in the format of `assay analyze`:
#   gap-packages   nightly tests of https://github.com/gap-system/PackageDistro (branch `data`)
#   vllm-nightly   nightly tests of https://github.com/AndreasKaratzas/vllm-ci-dashboard (`data/vllm/ci/test_results`)
# and `dask-distributed` with `runs.csv` and `results.csv.gz`. A history that is missing is left out.
set -euo pipefail
folder=${1:?usage: real-histories.sh FOLDER}
cd "$(dirname "$0")/../.."
cargo build --release --quiet -p assay-evaluate
evaluate=${CARGO_TARGET_DIR:-target}/release/assay-evaluate
for history in gap-packages vllm-nightly; do
  if [ -f "$folder/$history/results.csv.gz" ]; then
    echo "== $history"
    "$evaluate" real --all "$folder/$history/results.csv.gz"
    echo "flaky, where six new failures are a crowd:"
    "$evaluate" real --all --crowd 6 "$folder/$history/results.csv.gz" | sed -n 1,3p
  fi
done
if [ -f "$folder/dask-distributed/runs.csv" ]; then
  echo "== dask-distributed"
  "$evaluate" real --format dask "$folder/dask-distributed"
  echo "flaky, where six new failures are a crowd:"
  "$evaluate" real --format dask --crowd 6 "$folder/dask-distributed" | sed -n 1,3p
fi
