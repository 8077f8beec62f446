-- Reference tables: small, read by every request.

CREATE TABLE organization (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    plan text NOT NULL CHECK (plan IN ('free', 'standard', 'pro')),
    created_at timestamptz NOT NULL,
    -- The time at which its deletion began, else null. From then on readers and importers do not find it, while its rows
    -- are deleted in batches.
    deleted_at timestamptz
);

CREATE TABLE project (
    id uuid PRIMARY KEY,
    -- No foreign key leads from one machine of a distributed database to another.
    organization_id uuid NOT NULL,
    name text NOT NULL,
    stable_branch text NOT NULL,
    -- Null where the chat integration is not set up.
    chat_events text[],
    pr_comments boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    -- The number of rows that were ever numbered. Numbers are dense and never reused. An import locks this row to assign
    -- numbers, so imports into one project are serial.
    runs integer NOT NULL DEFAULT 0,
    tests integer NOT NULL DEFAULT 0,
    signatures integer NOT NULL DEFAULT 0,
    browsers integer NOT NULL DEFAULT 0,
    -- The time of the judgement behind the stored verdicts.
    evaluated_at timestamptz,
    -- A new value with every change of the engine's input, in the transaction that changes it. Caches compare it to check
    -- whether they are up to date.
    observed uuid NOT NULL DEFAULT gen_random_uuid(),
    -- As of an organization.
    deleted_at timestamptz,
    -- The value of `observed` at the judgement behind the stored verdicts. If the two differ, a judgement is due. Null if
    -- the next import has to judge.
    judged uuid,
    -- Whether names are stored without the parts that change from run to run.
    stable_names boolean NOT NULL DEFAULT true,
    -- How often the file of some test changed. Processes keep the names of tests while it is unchanged.
    test_changes integer NOT NULL DEFAULT 0,
    -- The owners file of the newest run of the stable branch that sent one: its path in the checkout, its text, the files of
    -- the checkout (one path per line), and the start of that run. Null where the checkout has none.
    owners_path text,
    owners_text text,
    owners_files text,
    owners_at timestamptz,
    -- The renames file of the newest run of the stable branch that sent one, and the start of that run. Null where the
    -- checkout has none.
    renames_text text,
    renames_at timestamptz,
    -- Derived from the file and the tests: which tests count as which other ones. Null where none do.
    joined_tests jsonb,
    -- The suites whose newest complete run on the stable branch failed, as of the last judgement, without failures of
    -- flaky tests. The next judgement compares with them.
    failed_suites text[] NOT NULL DEFAULT '{}',
    -- The number of signatures at the last judgement. Those with this number and later ones are new.
    judged_signatures integer NOT NULL DEFAULT 0,
    -- The number of edges that were ever numbered.
    edges integer NOT NULL DEFAULT 0,
    -- The events of messages for which assay-notify has a target, and when it last said so. Null without assay-notify.
    chat_served text[],
    chat_served_at timestamptz
);

-- The entries of the projects: a copy of the columns by which a project is found and listed. A distributed database keeps
-- it on the coordinator with organizations and keys, and everything else of a project on the project's worker. So a lost
-- worker hides no other project. The transaction that changes a project writes its entry, too.
CREATE TABLE project_entry (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organization (id),
    name text NOT NULL,
    stable_branch text NOT NULL,
    created_at timestamptz NOT NULL,
    deleted_at timestamptz
);
CREATE INDEX project_entry_of_organization ON project_entry (organization_id, created_at, id);

CREATE TABLE api_key (
    id uuid PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('read', 'ingest')),
    -- SHA-256 of the key's text.
    hash bytea NOT NULL UNIQUE,
    prefix text NOT NULL,
    organization_id uuid NOT NULL REFERENCES organization (id),
    project_id uuid REFERENCES project_entry (id),
    created_at timestamptz NOT NULL,
    -- An ingest key may have none.
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_on date,
    -- The name of an ingest key in lists.
    name text,
    -- Whether it may send runs that started long ago.
    backfill boolean NOT NULL DEFAULT false,
    -- Whether it may send runs of pull requests only. Such a key may be public.
    pull_requests_only boolean NOT NULL DEFAULT false,
    CONSTRAINT api_key_read_expires CHECK (kind <> 'read' OR expires_at IS NOT NULL),
    CHECK ((kind = 'ingest') = (project_id IS NOT NULL))
);
CREATE INDEX api_key_of_organization ON api_key (organization_id, created_at, id);

-- The sessions of the pages that were signed out before their time. A session is a sealed cookie, so without a row here its
-- copies would open pages until they expire.
CREATE TABLE ended_session (
    id uuid PRIMARY KEY,
    key_id uuid NOT NULL REFERENCES api_key (id) ON DELETE CASCADE,
    -- When no cookie of the session opens a page any more. Then the row is deleted.
    expires_at timestamptz NOT NULL
);
CREATE INDEX ended_session_of_key ON ended_session (key_id);
CREATE INDEX ended_session_by_expiry ON ended_session (expires_at);

-- Tables by project. Every key begins with project_id, and every statement names it as a constant.
-- Text that is ordered or compared has the collation "C", so that every database orders it by code point.

CREATE TABLE run (
    project_id uuid NOT NULL REFERENCES project (id),
    number integer NOT NULL,
    -- The id of the first part that arrived.
    id uuid NOT NULL,
    -- SHA-256 of the run key, which may be longer than an index entry.
    key_hash bytea NOT NULL,
    sharded boolean NOT NULL,
    branch text COLLATE "C",
    commit_sha text COLLATE "C",
    commit_message text,
    author_name text,
    tested_revision text COLLATE "C",
    pull_request_number bigint,
    pull_request_title text,
    ci_provider text,
    suite text,
    -- Null while the outcome is unknown.
    status text CHECK (status IN ('passed', 'failed')),
    started_at timestamptz NOT NULL,
    finished_at timestamptz,
    shards_received integer NOT NULL,
    shards_expected integer,
    total integer NOT NULL,
    passed integer NOT NULL,
    failed integer NOT NULL,
    skipped integer NOT NULL,
    recovered integer NOT NULL,
    -- The time in which some part ran. Null if no part has an end.
    duration_ms bigint,
    -- Whether the engine uses it: false for runs that a pull-request-only key sent.
    counts_in_verdicts boolean NOT NULL DEFAULT true,
    -- The page of the CI run. Null if neither CI's variables nor the report have it.
    run_url text,
    -- The commit at which the code left the stable branch. Null if the client does not know it.
    merge_base text COLLATE "C",
    -- Whether every expected shard has reported, and no report was cut short. Derived from the run's shards.
    complete boolean NOT NULL DEFAULT true,
    PRIMARY KEY (project_id, number),
    UNIQUE (project_id, key_hash)
);
-- Includes the status, so that counting all or failed runs of a period reads no rows.
CREATE INDEX run_by_start ON run (project_id, started_at DESC, number DESC) INCLUDE (status);
CREATE INDEX run_by_branch ON run (project_id, branch, started_at DESC, number DESC);

-- The number of runs of each day, derived from them in the import's transaction. Counting the runs of a period therefore
-- depends on its days and not on its runs.
CREATE TABLE daily_count (
    project_id uuid NOT NULL REFERENCES project (id),
    -- Its start, in UTC.
    day timestamptz NOT NULL,
    -- The status of the runs; empty while it is unknown.
    status text NOT NULL,
    runs integer NOT NULL,
    PRIMARY KEY (project_id, day, status)
);

-- The branches that runs are on, derived from them in the import's transaction.
CREATE TABLE branch (
    project_id uuid NOT NULL REFERENCES project (id),
    name text COLLATE "C" NOT NULL,
    -- The start of its newest run.
    newest timestamptz NOT NULL,
    PRIMARY KEY (project_id, name)
);

-- What one upload or import added to a run.
CREATE TABLE part (
    project_id uuid NOT NULL,
    run_number integer NOT NULL,
    -- Within the run, from 0 in order of arrival. Results refer to their part by it.
    number smallint NOT NULL,
    id uuid NOT NULL,
    -- The id of the first part of its shard, or of the run if that has no shards.
    shard_id uuid NOT NULL,
    -- The shard, from 1; null in a run that is not sharded.
    index integer,
    -- The hash of its content.
    content bytea NOT NULL,
    state text NOT NULL CHECK (state IN ('completed', 'interrupted')),
    -- Derived: the outcome of the executions that end in this part, and of its errors unless it is superseded.
    status text CHECK (status IN ('passed', 'failed')),
    -- Derived: whether a later attempt of its job ran its tests again.
    superseded boolean NOT NULL DEFAULT false,
    started_at timestamptz NOT NULL,
    finished_at timestamptz,
    -- The number of shards that it expects.
    expected integer,
    report_errors jsonb NOT NULL,
    -- The instance of the CI job that sent it. Null outside of CI.
    sender_job text,
    sender_id text,
    sender_runner text,
    -- The attempt of the job, and of the command in it. Later attempts have greater numbers.
    job_attempt bigint NOT NULL DEFAULT 0,
    command_attempt integer NOT NULL DEFAULT 1,
    -- The import that stored it. If the answer to its commit was lost, the import recognises its own rows by it.
    import_id uuid,
    PRIMARY KEY (project_id, run_number, number),
    UNIQUE (project_id, id),
    FOREIGN KEY (project_id, run_number) REFERENCES run (project_id, number) ON DELETE CASCADE
);

CREATE TABLE test (
    project_id uuid NOT NULL REFERENCES project (id),
    ordinal integer NOT NULL,
    name text COLLATE "C" NOT NULL,
    file_path text COLLATE "C",
    -- The first 16 bytes of SHA-256: names may be longer than an index entry. No file is the empty string of bytes.
    name_hash bytea NOT NULL,
    file_hash bytea NOT NULL,
    -- How the test is shown where that differs from its identity, which the hashes hold: the file that was found in the
    -- checkout, in `file_path`, and the name with the parts that change from run to run. Null if it has no such part.
    written_name text,
    -- The start of the run that gave file and written name. Null while they are those of the identity.
    shown_at timestamptz,
    PRIMARY KEY (project_id, ordinal),
    UNIQUE (project_id, name_hash, file_hash)
);

CREATE TABLE browser (
    project_id uuid NOT NULL REFERENCES project (id),
    -- From 1. Results without a known browser have 0.
    ordinal integer NOT NULL,
    name text NOT NULL,
    name_hash bytea NOT NULL,
    PRIMARY KEY (project_id, ordinal),
    UNIQUE (project_id, name_hash)
);

CREATE TABLE signature (
    project_id uuid NOT NULL REFERENCES project (id),
    ordinal integer NOT NULL,
    fingerprint text COLLATE "C" NOT NULL,
    version smallint NOT NULL,
    title text NOT NULL,
    category text NOT NULL,
    PRIMARY KEY (project_id, ordinal),
    UNIQUE (project_id, fingerprint)
);

-- Former fingerprints, so that a bookmark still works after errors were grouped again.
CREATE TABLE signature_alias (
    project_id uuid NOT NULL REFERENCES project (id),
    fingerprint text COLLATE "C" NOT NULL,
    signature integer NOT NULL,
    PRIMARY KEY (project_id, fingerprint)
);

-- The results of a run in blocks: one row for those of 512 tests with neighbouring numbers. `block` is the number of the
-- first one, divided by 512. The arrays have one element for each test that ran, in the order of the tests. An array that
-- is null has the same value for all tests, which its comment names. Only the import transaction writes here. The table is
-- partitioned by the start of the run, mostly by week, so that pruning can drop whole tables; see assay_create_partition below.
CREATE TABLE result_block (
    project_id uuid NOT NULL,
    -- The run's start, so that a query of a period needs no other table.
    started_at timestamptz NOT NULL,
    run_number integer NOT NULL,
    block integer NOT NULL,
    -- A bit for each test of the block, the lowest bit of the first byte first, set if the test ran. Null if those that
    -- ran are the first ones of the block.
    present bytea,
    -- A byte for each test: the status of the final attempt.
    status bytea NOT NULL,
    -- Of the final attempt.
    duration_ms integer[] NOT NULL,
    -- The durations that are too long for `duration_ms`, which then has null. Null: there are none.
    long_duration_ms bigint[],
    -- From the run's start to that of the final attempt. Null: the report has no starts.
    start_offset_ms integer[],
    -- Null: 0, no known browser.
    browser integer[],
    -- The largest number of attempts of one execution; 0 for a single attempt that the block describes completely, without
    -- rows in `attempt`. Null: 0.
    attempts integer[],
    -- The part with the final attempt. Null: 0, the run's first part.
    part smallint[],
    -- In the order of a test's history.
    PRIMARY KEY (project_id, block, started_at, run_number)
) PARTITION BY RANGE (started_at);
CREATE INDEX result_block_of_run ON result_block (project_id, run_number);
-- Inline, so that reading a block reads one page. Starts are as large as everything else and few reads need them, so they
-- are stored beside the row. lz4 is faster than the default, but not every Postgres has it.
DO $$
DECLARE
    packed text;
BEGIN
    FOREACH packed IN ARRAY ARRAY['present', 'status', 'duration_ms', 'long_duration_ms', 'start_offset_ms', 'browser',
        'attempts', 'part']
    LOOP
        EXECUTE format('ALTER TABLE result_block ALTER COLUMN %I SET STORAGE %s', packed,
            CASE packed WHEN 'start_offset_ms' THEN 'EXTENDED' ELSE 'MAIN' END);
        BEGIN
            EXECUTE format('ALTER TABLE result_block ALTER COLUMN %I SET COMPRESSION lz4', packed);
        EXCEPTION WHEN feature_not_supported THEN
            NULL;
        END;
    END LOOP;
END $$;

-- The results one by one, for people with SQL. The programs read blocks.
CREATE VIEW result AS
SELECT block.project_id, block.started_at, coalesce(ran.duration_ms, ran.long_duration_ms) AS duration_ms,
    block.run_number, block.block * 512 + coalesce(ran.place, (ran.index - 1)::integer) AS test, ran.start_offset_ms,
    coalesce(ran.browser, 0) AS browser, coalesce(ran.attempts, 0) AS attempts, coalesce(ran.part, 0::smallint) AS part,
    get_byte(block.status, (ran.index - 1)::integer)::smallint AS status
FROM result_block AS block CROSS JOIN LATERAL ROWS FROM (
    unnest(block.duration_ms), unnest(block.long_duration_ms), unnest(block.start_offset_ms), unnest(block.browser),
    unnest(block.attempts), unnest(block.part),
    unnest(ARRAY(SELECT place FROM generate_series(0, 511) AS place WHERE get_bit(block.present, place) = 1 ORDER BY place))
) WITH ORDINALITY AS ran (duration_ms, long_duration_ms, start_offset_ms, browser, attempts, part, place, index);

-- The attempts of tests that were retried, failed or reported an error, in the same partitions.
CREATE TABLE attempt (
    project_id uuid NOT NULL,
    -- The run's start.
    started_at timestamptz NOT NULL,
    -- The time of its error: its own start if that is known, else the run's.
    occurred_at timestamptz NOT NULL,
    duration_ms bigint,
    run_number integer NOT NULL,
    test integer NOT NULL,
    browser integer NOT NULL,
    -- Null if it did not fail or has no error text.
    signature integer,
    -- Its place among the attempts of its part, from 0.
    place integer NOT NULL,
    -- Its place among the attempts of its execution, from 0.
    retry integer NOT NULL,
    part smallint NOT NULL,
    status smallint NOT NULL,
    -- Whether `occurred_at` is its own start and not the run's.
    timed boolean NOT NULL,
    -- The message of the first error that has one.
    message text,
    -- Where its errors are: the number of a row of attempt_texts of its part, and the place there, from 1. Null: it has none.
    texts integer,
    texts_place integer,
    -- Among the test's executions in the run, from 0. Those with the worst result come last.
    execution integer NOT NULL DEFAULT 0,
    -- Whether the test's result is that of this attempt.
    is_final boolean NOT NULL DEFAULT true,
    -- Why it was skipped. Null if it was not, or if the report gives no reason.
    skip_reason text,
    -- Includes the columns that decide the result of a test.
    PRIMARY KEY (project_id, test, started_at, run_number, part, place) INCLUDE (retry, status, is_final)
) PARTITION BY RANGE (started_at);
CREATE INDEX attempt_of_run ON attempt (project_id, run_number);
-- Includes all columns for the figures of signatures, so that they come from index-only scans and not from long rows.
CREATE INDEX attempt_of_signature ON attempt (project_id, signature, started_at)
    INCLUDE (occurred_at, test, run_number) WHERE signature IS NOT NULL;
-- Failures without a signature.
CREATE INDEX attempt_unsigned ON attempt (project_id, status, started_at) INCLUDE (run_number)
    WHERE signature IS NULL;

-- The errors and the output of the attempts of a run, in the same partitions. Errors of one run are alike, so those of many attempts are
-- compressed together.
CREATE TABLE attempt_texts (
    project_id uuid NOT NULL,
    -- The run's start.
    started_at timestamptz NOT NULL,
    run_number integer NOT NULL,
    part smallint NOT NULL,
    -- Among the rows of its part, from 0.
    number integer NOT NULL,
    -- One element for each attempt: its list of errors.
    errors jsonb[] NOT NULL,
    -- What the reports have beside them: attachments and what was printed. Null: no attempt of the row has any.
    outputs jsonb[],
    PRIMARY KEY (project_id, run_number, part, number, started_at)
) PARTITION BY RANGE (started_at);
ALTER TABLE attempt_texts ALTER COLUMN errors SET STORAGE MAIN;
DO $$ BEGIN
    ALTER TABLE attempt_texts ALTER COLUMN errors SET COMPRESSION lz4;
    ALTER TABLE attempt_texts ALTER COLUMN outputs SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
    NULL;
END $$;

-- All rows of a run have its start. Without these statistics Postgres expects one row of a run that it finds by number and
-- start. Each partition has its own.
CREATE STATISTICS result_block_run (dependencies) ON project_id, run_number, started_at FROM result_block;
CREATE STATISTICS attempt_run (dependencies) ON project_id, run_number, started_at FROM attempt;
CREATE STATISTICS attempt_texts_run (dependencies) ON project_id, run_number, started_at FROM attempt_texts;

-- The partitions of `result_block`, `attempt` and `attempt_texts`, by the starts of the runs in them: result_block_<name>
-- and so on.
CREATE TABLE partition (
    starts_at timestamptz PRIMARY KEY,
    -- Exclusive.
    ends_at timestamptz NOT NULL UNIQUE,
    name text NOT NULL UNIQUE,
    CHECK (starts_at < ends_at)
);

-- Creates the partitions for runs with this start if they are missing, and returns whether it created them. Locks them
-- against dropping until the caller's transaction ends. Within 15 weeks of `now` a partition is a week, from Monday. Farther
-- away it is the free part of a calendar year, or of all time before 2000 or from 2100 on, so any set of dates makes a few
-- hundred partitions at most. Runs with the rights of its owner, so that an importer needs no right to create tables.
--
-- A partition is created first and then attached, which blocks neither readers nor writers.
CREATE FUNCTION assay_create_partition(at timestamptz, now timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET timezone = 'UTC' AS $$
DECLARE
    near_from CONSTANT timestamptz := date_trunc('week', now) - interval '15 weeks';
    near_to CONSTANT timestamptz := date_trunc('week', now) + interval '16 weeks';
    lower timestamptz;
    upper timestamptz;
    suffix text;
    parent text;
BEGIN
    PERFORM FROM partition WHERE starts_at <= at AND at < ends_at FOR KEY SHARE;
    IF FOUND THEN
        RETURN false;
    END IF;
    -- One at a time; then another may have made it meanwhile.
    PERFORM pg_advisory_xact_lock(x'617373617979'::bigint);
    PERFORM FROM partition WHERE starts_at <= at AND at < ends_at FOR KEY SHARE;
    IF FOUND THEN
        RETURN false;
    END IF;
    IF at >= near_from AND at < near_to THEN
        lower := date_trunc('week', at);
        upper := lower + interval '1 week';
    ELSE
        lower := CASE WHEN at < '2000-01-01' THEN '-infinity' WHEN at >= '2100-01-01' THEN '2100-01-01'
            ELSE date_trunc('year', at) END;
        upper := CASE WHEN at < '2000-01-01' THEN '2000-01-01' WHEN at >= '2100-01-01' THEN 'infinity'
            ELSE date_trunc('year', at) + interval '1 year' END;
        IF at < near_from THEN
            upper := least(upper, near_from);
        ELSE
            lower := greatest(lower, near_to);
        END IF;
    END IF;
    lower := greatest(lower, (SELECT max(ends_at) FROM partition WHERE ends_at <= at));
    upper := least(upper, (SELECT min(starts_at) FROM partition WHERE starts_at > at));
    suffix := CASE WHEN lower = '-infinity' THEN 'early' ELSE to_char(lower, 'YYYYMMDD') END;
    FOREACH parent IN ARRAY ARRAY['result_block', 'attempt', 'attempt_texts'] LOOP
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING STORAGE INCLUDING COMPRESSION INCLUDING STATISTICS)',
            parent || '_' || suffix, parent);
        IF parent <> 'attempt' THEN
            -- Compresses every column of a large row. Otherwise Postgres stops once the row has two kilobytes.
            EXECUTE format('ALTER TABLE %I SET (toast_tuple_target = 128)', parent || '_' || suffix);
        END IF;
        EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
            parent, parent || '_' || suffix, lower, upper);
    END LOOP;
    INSERT INTO partition VALUES (lower, upper, suffix);
    RETURN true;
END
$$;
REVOKE ALL ON FUNCTION assay_create_partition FROM PUBLIC;
-- The function uses the tables of this schema, whatever the caller's search path.
DO $$ BEGIN EXECUTE format('ALTER FUNCTION assay_create_partition SET search_path = %I, pg_temp', current_schema()); END $$;

-- Whether runs that start at a time have partitions. Keeps these from being dropped until the caller's transaction ends. With
-- the rights of its owner, so that an importer needs none to lock partitions.
CREATE FUNCTION assay_hold_partition(at timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM FROM partition WHERE starts_at <= at AND at < ends_at FOR KEY SHARE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    -- The row of a new partition is visible shortly before its partitions are, to other sessions and on other machines.
    -- assay_create_partition has this lock until they are.
    PERFORM pg_advisory_lock_shared(x'617373617979'::bigint);
    PERFORM pg_advisory_unlock_shared(x'617373617979'::bigint);
    RETURN true;
END
$$;
REVOKE ALL ON FUNCTION assay_hold_partition FROM PUBLIC;
DO $$ BEGIN EXECUTE format('ALTER FUNCTION assay_hold_partition SET search_path = %I, pg_temp', current_schema()); END $$;

-- Drops the partitions of this name. Returns false if a run still starts in them, or if they stay locked for longer than
-- readers and imports may be delayed. The caller may then try again.
CREATE FUNCTION assay_drop_partition(partition_name text) RETURNS boolean
LANGUAGE plpgsql SET lock_timeout = '200ms' AS $$
DECLARE
    dropped partition;
BEGIN
    -- Waits for the imports that write there.
    SELECT * INTO dropped FROM partition WHERE name = partition_name FOR UPDATE;
    IF NOT FOUND THEN
        RETURN true;
    END IF;
    PERFORM FROM project WHERE (
        SELECT true FROM run
        WHERE run.project_id = project.id AND run.started_at >= dropped.starts_at AND run.started_at < dropped.ends_at
        LIMIT 1
    );
    IF FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM partition WHERE name = partition_name;
    EXECUTE format('DROP TABLE %I, %I, %I', 'attempt_texts_' || partition_name, 'attempt_' || partition_name,
        'result_block_' || partition_name);
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END
$$;
REVOKE ALL ON FUNCTION assay_drop_partition FROM PUBLIC;
DO $$ BEGIN EXECUTE format('ALTER FUNCTION assay_drop_partition SET search_path = %I, pg_temp', current_schema()); END $$;

-- The engine's input, derived from result_block and attempt in the import's transaction: one pack a run, stored inline and
-- uncompressed.
CREATE TABLE run_pack (
    project_id uuid NOT NULL,
    started_at timestamptz NOT NULL,
    run_number integer NOT NULL,
    pack bytea NOT NULL,
    PRIMARY KEY (project_id, run_number)
) WITH (toast_tuple_target = 8160);
ALTER TABLE run_pack ALTER COLUMN pack SET STORAGE EXTERNAL;
CREATE INDEX run_pack_by_start ON run_pack (project_id, started_at);

-- The verdicts of the last judgement in blocks: one row for those on 128 tests with neighbouring numbers, of which
-- the first is a multiple of 128. The arrays have one element for each test of the block, up to the last one with a verdict. The columns are
-- what may change with every run. So an import writes a few rows and not one a test.
CREATE TABLE verdict_block (
    project_id uuid NOT NULL,
    block integer NOT NULL,
    -- Null for a test without a verdict.
    status text[] NOT NULL,
    -- The primary signal.
    reason text[] NOT NULL,
    -- Whether the test had a result in the engine's window.
    in_window boolean[] NOT NULL,
    -- The newest run of the window in which the test was not skipped, and the status and start of its final attempt there.
    -- The most frequent reads therefore need no results.
    last_run integer[] NOT NULL,
    last_status smallint[] NOT NULL,
    last_offset_ms integer[] NOT NULL,
    -- The start of the newest run with a result of the test.
    newest timestamptz[] NOT NULL,
    -- The figures that differ from test to test. The lost time has 64 bits without a sign.
    time_lost_ms bigint[] NOT NULL,
    flake_score double precision[] NOT NULL,
    flake_rate double precision[] NOT NULL,
    broken_probability double precision[] NOT NULL,
    impact double precision[] NOT NULL,
    -- The place of the rest of the verdict in `bodies`; 0 without a verdict.
    body smallint[] NOT NULL,
    -- The sentence, the other figures and the evidence as JSON, without the runs of the evidence. Most tests share theirs
    -- with others, so each is stored once.
    bodies text[] NOT NULL,
    PRIMARY KEY (project_id, block)
-- Compresses every column of a large row.
) WITH (toast_tuple_target = 128);
DO $$
DECLARE
    packed text;
BEGIN
    FOREACH packed IN ARRAY ARRAY['status', 'reason', 'in_window', 'last_run', 'last_status', 'last_offset_ms', 'newest',
        'time_lost_ms', 'flake_score', 'flake_rate', 'broken_probability', 'impact', 'body', 'bodies']
    LOOP
        EXECUTE format('ALTER TABLE verdict_block ALTER COLUMN %I SET STORAGE MAIN', packed);
        BEGIN
            EXECUTE format('ALTER TABLE verdict_block ALTER COLUMN %I SET COMPRESSION lz4', packed);
        EXCEPTION WHEN feature_not_supported THEN
            NULL;
        END;
    END LOOP;
END $$;

-- What a verdict with a signal has beyond its block, and what changes only when its test fails or passes again.
CREATE TABLE verdict_evidence (
    project_id uuid NOT NULL,
    test integer NOT NULL,
    -- The ids of the runs behind the signals, signal by signal. The body has their numbers.
    runs uuid[] NOT NULL,
    -- The branches other than the stable one on which the test currently fails, as JSON.
    failing_on text NOT NULL,
    PRIMARY KEY (project_id, test)
);

-- The verdicts one by one, for people with SQL. The programs read blocks.
CREATE VIEW verdict AS
SELECT block.project_id, block.block * 128 + (one.index - 1)::integer AS test, one.status, one.reason, one.in_window,
    one.last_run, one.last_status, one.last_offset_ms, one.newest, one.time_lost_ms, one.flake_score, one.flake_rate,
    one.broken_probability, one.impact, block.bodies[one.body] AS body, evidence.runs, evidence.failing_on
FROM verdict_block AS block CROSS JOIN LATERAL unnest(block.status, block.reason, block.in_window, block.last_run,
    block.last_status, block.last_offset_ms, block.newest, block.time_lost_ms, block.flake_score, block.flake_rate,
    block.broken_probability, block.impact, block.body) WITH ORDINALITY AS one (status, reason, in_window, last_run,
    last_status, last_offset_ms, newest, time_lost_ms, flake_score, flake_rate, broken_probability, impact, body, index)
LEFT JOIN verdict_evidence AS evidence ON evidence.project_id = block.project_id
    AND evidence.test = block.block * 128 + one.index - 1
WHERE one.status IS NOT NULL;

-- The outbox: one row for each edge, written by the transaction that stores the judgement. Rows are kept for eight days
-- after they settled, for digests.
CREATE TABLE edge (
    project_id uuid NOT NULL REFERENCES project (id),
    -- Within the project, from 0 in the order of judgements.
    number integer NOT NULL,
    judged_at timestamptz NOT NULL,
    event text NOT NULL CHECK (event IN ('run_failed', 'run_recovered', 'test_flaky', 'test_broken', 'test_resolved',
        'new_error')),
    -- The suite of the run.
    suite text NOT NULL,
    -- The test or the error, where the edge is not one of a suite.
    test integer,
    signature integer,
    -- The verdicts on the test before and after.
    from_status text,
    to_status text,
    -- The newest run on the stable branch that shows it. Null for a test without a run there.
    run_id uuid,
    run_number integer,
    -- The number of the run since which the test fails on the stable branch. Null if it passes.
    since_run integer,
    -- Whether the newest run of the suite on the stable branch shows it as a failure.
    is_red boolean NOT NULL,
    -- In which batch it settled, from 1, and when. Null while a later judgement may take it back.
    settled integer,
    settled_at timestamptz,
    -- Whether a later judgement took it back.
    is_cancelled boolean NOT NULL DEFAULT false,
    PRIMARY KEY (project_id, number)
);
CREATE INDEX edge_unsettled ON edge (project_id, number) WHERE settled IS NULL;
CREATE INDEX edge_settled ON edge (project_id, settled);

-- The messages to each target, which the operator's file of assay-notify describes. Only assay-notify writes here.
CREATE TABLE message (
    project_id uuid NOT NULL REFERENCES project (id),
    -- The target's name in the file.
    target text COLLATE "C" NOT NULL,
    -- Within project and target, from 0.
    number integer NOT NULL,
    -- The same at each attempt, so that a receiver recognises a repetition.
    id uuid NOT NULL,
    kind text NOT NULL CHECK (kind IN ('mark', 'changes', 'digest')),
    -- The last batch of edges that this message or one before it covers.
    through integer NOT NULL,
    created_at timestamptz NOT NULL,
    -- Null if there was nothing to send.
    content jsonb,
    -- The first message of its thread.
    thread uuid,
    attempts integer NOT NULL DEFAULT 0,
    -- Null once it is delivered or given up.
    next_attempt_at timestamptz,
    delivered_at timestamptz,
    -- The name that the service gave it, for answers in its thread.
    receipt text,
    -- Why the last attempt failed.
    error text,
    PRIMARY KEY (project_id, target, number)
);
CREATE INDEX message_undelivered ON message (project_id, target, number)
    WHERE content IS NOT NULL AND delivered_at IS NULL;

-- Which ingest key sent which report. Rows are kept for 90 days.
CREATE TABLE upload (
    project_id uuid NOT NULL REFERENCES project (id),
    at timestamptz NOT NULL,
    id uuid NOT NULL,
    -- Not a foreign key, because the row remains after the key is deleted.
    key_id uuid NOT NULL,
    -- The run's id. The run may be pruned earlier.
    run_id uuid NOT NULL,
    bytes bigint NOT NULL,
    run_number integer NOT NULL,
    files integer NOT NULL,
    effect text NOT NULL CHECK (effect IN ('added', 'replaced', 'unchanged')),
    -- The client's User-Agent.
    client text,
    -- The shard's id.
    shard_id uuid,
    -- What a gate decided on it: time, outcome, number of failed tests and the excused ones. Null without a gate.
    decision jsonb,
    PRIMARY KEY (project_id, at, id)
);
CREATE INDEX upload_of_run ON upload (project_id, run_number);

-- What an ingest key stored on a day, for its daily limits. Rows are kept as long as those of `upload`.
CREATE TABLE upload_day (
    project_id uuid NOT NULL REFERENCES project (id),
    day date NOT NULL,
    -- Not a foreign key, because the row remains after the key is deleted.
    key_id uuid NOT NULL,
    -- Attempts of tests.
    tests bigint NOT NULL CHECK (tests >= 0),
    -- Bytes of report files, after unpacking.
    bytes bigint NOT NULL CHECK (bytes >= 0),
    PRIMARY KEY (project_id, day, key_id)
);

-- The ingest key with this hash, in any state; no row for a read key's hash. Runs with the rights of its owner, so that the
-- ingest listener needs no right to read keys.
CREATE FUNCTION assay_ingest_key(presented bytea)
RETURNS TABLE (
    id uuid, project_id uuid, project_name text, stable_branch text, name text, backfill boolean,
    pull_requests_only boolean, expires_at timestamptz, revoked_at timestamptz
)
LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
    SELECT api_key.id, project_entry.id, project_entry.name, project_entry.stable_branch, api_key.name, api_key.backfill,
        api_key.pull_requests_only, api_key.expires_at, api_key.revoked_at
    FROM api_key
    JOIN project_entry ON project_entry.id = api_key.project_id
    JOIN organization ON organization.id = project_entry.organization_id
    WHERE api_key.hash = presented AND api_key.kind = 'ingest'
        AND project_entry.deleted_at IS NULL AND organization.deleted_at IS NULL;
END;
REVOKE ALL ON FUNCTION assay_ingest_key FROM PUBLIC;

-- Records the day on which an ingest key was used.
CREATE FUNCTION assay_note_ingest(used uuid, day date) RETURNS void
LANGUAGE sql SECURITY DEFINER
BEGIN ATOMIC
    UPDATE api_key SET last_used_on = day
    WHERE id = used AND kind = 'ingest' AND (last_used_on IS NULL OR last_used_on < day);
END;
REVOKE ALL ON FUNCTION assay_note_ingest FROM PUBLIC;

-- Counts again how many rows of the largest tables each project has, for the planner. Autovacuum does that after a tenth of
-- a table changed. Until then Postgres expects one row for a project that is newer than its statistics, and compares each
-- result of a run with all tests of the project. Runs with the rights of its owner, because only that may count.
--
-- On distributed tables it does nothing: autovacuum of each machine counts the rows of its own part.
DO $$ BEGIN EXECUTE format($define$
CREATE FUNCTION assay_count_projects(run_start timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = %I, pg_temp SET lock_timeout = '2s' AS $function$
DECLARE
    suffix text;
BEGIN
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
        RETURN;
    END IF;
    ANALYZE test (project_id), signature (project_id), verdict_block (project_id), verdict_evidence (project_id);
    SELECT name INTO suffix FROM partition WHERE starts_at <= run_start AND run_start < ends_at;
    IF FOUND THEN
        EXECUTE format('ANALYZE %%I (project_id, run_number, started_at), %%I (project_id, run_number, started_at)',
            'result_block_' || suffix, 'attempt_' || suffix);
    END IF;
EXCEPTION WHEN lock_not_available THEN
    -- Autovacuum or another import is counting.
    NULL;
END
$function$ $define$, current_schema()); END $$;
REVOKE ALL ON FUNCTION assay_count_projects FROM PUBLIC;

-- Group roles with the rights that the server, an importer, the ingest listener and assay-notify need. Logins are members of them. The owner of the tables
-- migrates and administers, and needs none.

-- Creates the roles if they are missing, and grants each its rights in this database. Returns null, or the statement that a
-- role with more rights must run, with a notice.
--
-- Roles belong to the whole cluster, so another database may have them already, or create them at the same time. Call it
-- after each migration, and again when roles or rights were lost, as after restoring a dump elsewhere.
CREATE FUNCTION assay_grant_roles() RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['assay_server', 'assay_importer', 'assay_ingester', 'assay_notifier'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', role);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;
            END;
        END IF;
    END LOOP;
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO assay_server, assay_importer, assay_ingester, assay_notifier', current_schema());

    GRANT SELECT ON __diesel_schema_migrations, organization, project, project_entry, run, daily_count, branch, part, test, browser,
        signature, signature_alias, result_block, result, attempt, attempt_texts, run_pack, verdict_block,
        verdict_evidence, verdict TO assay_server, assay_importer, assay_ingester, assay_notifier;
    -- The server alone reads keys. The ingest listener looks up ingest keys through a function.
    GRANT SELECT, UPDATE (last_used_on) ON api_key TO assay_server;
    GRANT SELECT, INSERT, DELETE ON ended_session TO assay_server;

    GRANT INSERT ON run, daily_count, branch, part, test, browser, signature, result_block, attempt, attempt_texts, run_pack, verdict_block,
        verdict_evidence TO assay_importer, assay_ingester;
    GRANT UPDATE ON run, daily_count, branch, part, result_block, attempt, attempt_texts, run_pack TO assay_importer, assay_ingester;
    GRANT UPDATE (runs, tests, signatures, browsers, evaluated_at, observed, judged, test_changes, owners_path, owners_text,
        owners_files, owners_at, failed_suites, judged_signatures, edges) ON project TO assay_importer, assay_ingester;
    GRANT UPDATE (file_path, written_name, shown_at) ON test TO assay_importer, assay_ingester;
    GRANT DELETE ON daily_count, branch, part, result_block, attempt, attempt_texts, verdict_block, verdict_evidence TO assay_importer, assay_ingester;
    GRANT EXECUTE ON FUNCTION assay_create_partition, assay_hold_partition, assay_count_projects TO assay_importer, assay_ingester;
    GRANT EXECUTE ON FUNCTION assay_ingest_key, assay_note_ingest TO assay_ingester;
    GRANT INSERT ON upload TO assay_ingester;
    -- The decisions of gates, without the keys and the clients. The server lists uploads with the names of their keys.
    GRANT SELECT (project_id, at, id, run_number, shard_id, effect, decision) ON upload TO assay_server, assay_ingester;
    GRANT SELECT (key_id, run_id, bytes, files) ON upload TO assay_server;
    GRANT UPDATE (decision) ON upload TO assay_ingester;
    GRANT SELECT, INSERT, UPDATE ON upload_day TO assay_ingester;
    GRANT INSERT ON edge TO assay_importer, assay_ingester;
    -- assay-notify reads results for its texts, and no key.
    GRANT SELECT, UPDATE (settled, settled_at, is_cancelled), DELETE ON edge TO assay_notifier;
    GRANT SELECT, INSERT, UPDATE, DELETE ON message TO assay_notifier;
    GRANT UPDATE (chat_served, chat_served_at) ON project TO assay_notifier;
    RETURN NULL;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'the group roles are not complete: %', SQLERRM;
    RETURN 'SELECT assay_grant_roles();';
END
$$;
REVOKE ALL ON FUNCTION assay_grant_roles FROM PUBLIC;
DO $$ BEGIN
    EXECUTE format('ALTER FUNCTION assay_grant_roles SET search_path = %I, pg_temp', current_schema());
END $$;
