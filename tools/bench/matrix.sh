#!/usr/bin/env bash
# Measures the import of a matrix of jobs into one project: matrix.sh ASSAY [JOBS] [TESTS] [PROJECT_TESTS]
#
# Makes a private database in a temporary folder and imports three runs of PROJECT_TESTS tests. Then JOBS imports of
# TESTS tests each, the shards of one run, start at once. Prints the seconds until the first and the last one ended, and
# how many verdicts a rebuild changes afterwards.
set -euo pipefail
assay=$(realpath "$1") jobs=${2:-40} tests=${3:-1000} project_tests=${4:-40000}
folder=$(mktemp -d)
chmod 755 "$folder"
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export ASSAY_DATA_DIR="$folder/data"
unset ASSAY_DATABASE_URL

# report FIRST LAST RUN: a JUnit report of these tests. One test in 97 fails in every third run.
report() {
    echo '<testsuite>'
    seq "$1" "$2" | awk -v run="$3" '{
        failure = ($1 % 97 == 1 && ($1 + run) % 3 == 0) ? "<failure message=\"expected " $1 % 5 "\"/>" : ""
        printf "<testcase classname=\"c%d\" name=\"t%d\" file=\"f%d.test.ts\" time=\"0.01\">%s</testcase>\n", $1 % 200, $1, $1 % 200, failure
    }'
    echo '</testsuite>'
}

"$assay" org create Shop --plan pro >/dev/null
"$assay" project create --org Shop web >/dev/null
for run in 1 2 3; do
    report 1 "$project_tests" "$run" >whole.xml
    "$assay" import --no-ci --project web --branch main --run-key "whole-$run" whole.xml >/dev/null
done
for job in $(seq "$jobs"); do
    report $(((job - 1) * tests + 1)) $((job * tests)) 4 >"job-$job.xml"
done

began=$(date +%s.%N)
for job in $(seq "$jobs"); do
    {
        "$assay" import --no-ci --project web --branch main --run-key matrix --shard "$job/$jobs" "job-$job.xml" \
            >"out-$job" 2>"err-$job" || echo "job $job failed: $(cat "err-$job")" >&2
        date +%s.%N >"end-$job"
    } &
done
wait
sort -n end-* | awk -v began="$began" -v jobs="$jobs" '
    NR == 1 { first = $1 - began }
    { last = $1 - began }
    END { printf "%d jobs: the first ended after %.1f s, the last after %.1f s\n", jobs, first, last }'
"$assay" rebuild --project web --json
