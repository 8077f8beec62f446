#!/usr/bin/env bash
# Measures uploads beside imports, and the read API beside uploads: uploads.sh FOLDER [large]
#
# FOLDER holds `assay` and `assay-server`. Both work on a private database in a temporary folder. `large` adds 64
# uploads of 64 MiB at once, and the memory that the server used for them. Needs curl, and wrk for the read API.
set -euo pipefail
programs=$(realpath "$1") large=${2:-}
export PATH=$programs:$PATH
folder=$(mktemp -d)
chmod 755 "$folder"
cd "$folder"
export ASSAY_DATA_DIR="$folder/data" ASSAY_RATE_LIMIT=0 ASSAY_INGEST_RATE_LIMIT=0
unset ASSAY_DATABASE_URL
server=
stop() { if [ -n "$server" ]; then kill "$server" && wait "$server" || true; fi; server=; }
trap 'status=$?; [ $status = 0 ] || tail -n 3 said >&2; stop; rm -rf "$folder"' EXIT
port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
api=127.0.0.1:$(port) ingest=127.0.0.1:$(port) operators=127.0.0.1:$(port)
# start LISTENER: a server whose ingest listener is on this address, or off.
start() {
    stop
    ASSAY_LISTEN=$api ASSAY_FRONT_LISTEN=off ASSAY_INGEST_LISTEN=$1 ASSAY_ADMIN_LISTEN=$operators assay-server 2>server.log &
    server=$!
    curl --silent --fail --output /dev/null --retry 100 --retry-connrefused --retry-delay 1 "http://$operators/readyz"
}
field() { sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p" | head -1; }
# project NAME: makes one, and prints its ingest key.
project() {
    assay-admin project create --org Shop "$1" >/dev/null
    assay-admin key create-ingest --project "$1" --json | field key
}
now() { date +%s.%N; }
since() { awk -v from="$1" -v to="$(now)" 'BEGIN { printf "%.2f\n", to - from }'; }
median() { sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }
# report FIRST LAST RUN: a JUnit report of these tests. One test in 97 fails in every third run.
report() {
    echo '<testsuite>'
    seq "$1" "$2" | awk -v run="$3" '{
        failure = ($1 % 97 == 1 && ($1 + run) % 3 == 0) ? "<failure message=\"expected " $1 % 5 "\"/>" : ""
        printf "<testcase classname=\"c%d\" name=\"t%d\" file=\"f%d.test.ts\" time=\"0.01\">%s</testcase>\n", $1 % 200, $1, $1 % 200, failure
    }'
    echo '</testsuite>'
}
import() { assay-admin import --no-ci --branch main --commit c0ffee --project "$@" >/dev/null 2>>said; }
upload() { # KEY, flags and files
    ASSAY_INGEST_URL=http://$ingest ASSAY_INGEST_KEY=$1 assay upload --no-ci --branch main --commit c0ffee "${@:2}" >/dev/null 2>>said
}

uptime
start "$ingest"
assay-admin org create Shop --plan pro >/dev/null 2>&1
imported=imported
assay-admin project create --org Shop $imported >/dev/null
key=$(project uploaded)

for run in 1 2 3 4 5 6 7; do
    report 1 5000 "$run" >junit.xml
    began=$(now); import $imported --run-key "run-$run" junit.xml; since "$began" >>imports
    began=$(now); upload "$key" --run-key "run-$run" junit.xml; since "$began" >>uploads
done
echo "5,000 tests, median of 7: assay-admin import $(median <imports) s, assay upload $(median <uploads) s"

mkdir files
for file in $(seq 500); do report $(((file - 1) * 20 + 1)) $((file * 20)) 8 >"files/$file.xml"; done
key=$(project folders)
began=$(now); upload "$key" files
echo "500 files with 10,000 tests: $(since "$began") s"

key=$(project shards)
for shard in $(seq 50); do report $(((shard - 1) * 100 + 1)) $((shard * 100)) 1 >"shard-$shard.xml"; done
began=$(now)
for shard in $(seq 50); do upload "$key" --run-key single --shard "$shard/50" "shard-$shard.xml"; done
single=$(since "$began")
began=$(now); jobs=()
for shard in $(seq 50); do upload "$key" --run-key together --shard "$shard/50" "shard-$shard.xml" & jobs+=($!); done
wait "${jobs[@]}"
echo "50 shards of 100 tests into one project: one after another $single s, at once $(since "$began") s"

for way in import upload; do
    keys=()
    for number in $(seq 32); do keys+=("$(project "$way-$number")"); done
    report 1 1000 1 >junit.xml
    began=$(now); jobs=()
    for number in $(seq 32); do
        case $way in
            import) import "import-$number" junit.xml & ;;
            upload) upload "${keys[$((number - 1))]}" junit.xml & ;;
        esac
        jobs+=($!)
    done
    wait "${jobs[@]}"
    echo "32 projects at once, 1,000 tests each, by assay $way: $(since "$began") s"
done

key=$(project matrix)
for run in 1 2 3; do report 1 40000 "$run" >whole.xml; upload "$key" --run-key "whole-$run" whole.xml; done
for job in $(seq 40); do report $(((job - 1) * 1000 + 1)) $((job * 1000)) 4 >"job-$job.xml"; done
began=$(now); jobs=()
for job in $(seq 40); do
    { upload "$key" --run-key matrix --shard "$job/40" "job-$job.xml"; since "$began" >>ends; } &
    jobs+=($!)
done
wait "${jobs[@]}"
sort -n ends | awk 'NR == 1 { first = $1 } END { printf "40 shards of 1,000 tests at once into a project of 40,000: the first ended after %.1f s, the last after %.1f s\n", first, $1 }'
sleep 5
echo "a rebuild afterwards: $(assay-admin rebuild --project matrix --json | tr -d ' \n' | grep -o '"[a-zA-Z]*Changed":[0-9]*' | tr '\n' ' ')"

if command -v wrk >/dev/null; then
    read_key=$(assay-admin key create --org Shop --days 30 --json | field key)
    id=$(assay-admin project list --json | tr -d '\n' | grep -o '{[^{}]*"uploaded"[^{}]*}' | field id)
    speed() { wrk -t1 -c8 -d5s -H "Authorization: Bearer $read_key" "http://$api/api/v1/projects/$id/runs" | awk '/Requests\/sec/ { print $2 }'; }
    for round in 1 2 3; do
        start off; echo "runs list, ingest listener off, round $round: $(speed) requests a second"
        start "$ingest"; echo "runs list, ingest listener on, round $round: $(speed) requests a second"
    done
    (key=$(project meanwhile); for run in $(seq 1000); do report 1 1000 "$run" >r.xml; upload "$key" --run-key "r-$run" r.xml; done) &
    writer=$!
    sleep 1
    echo "runs list, while uploads of 1,000 tests arrive one after another: $(speed) requests a second"
    kill "$writer" && wait "$writer" || true
fi

if [ "$large" = large ]; then
    start "$ingest"
    key=$(project large)
    text=$(head -c 45000 /dev/urandom | base64 -w 76)
    {
        echo '<testsuite>'
        for number in $(seq 1100); do echo "<testcase classname=\"c\" name=\"t$number\"><failure message=\"no\">$text</failure></testcase>"; done
        echo '</testsuite>'
    } >large.xml
    peak() { awk -v what="$1:" '$1 == what { printf "%d\n", $2 / 1024 }' "/proc/$server/status"; }
    before=$(peak VmRSS) began=$(now) jobs=()
    for number in $(seq 64); do
        curl --silent --fail --output /dev/null --retry 100 --retry-max-time 1800 --request POST --upload-file large.xml \
            -H "Authorization: Bearer $key" "http://$ingest/ingest/v1/reports?branch=main&runKey=large-$number" &
        jobs+=($!)
    done
    wait "${jobs[@]}"
    echo "64 uploads of $(($(stat -c %s large.xml) >> 20)) MiB at once: $(since "$began") s; memory $before MiB before, at most $(peak VmHWM) MiB"
fi
uptime
