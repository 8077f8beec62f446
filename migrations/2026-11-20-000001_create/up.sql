-- Reference tables: small, read by every request.

CREATE TABLE organization (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    plan text NOT NULL CHECK (plan IN ('free', 'standard', 'pro')),
    created_at timestamptz NOT NULL
);

CREATE TABLE project (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organization (id),
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
    evaluated_at timestamptz
);
CREATE INDEX project_of_organization ON project (organization_id, created_at, id);

CREATE TABLE api_key (
    id uuid PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('read', 'ingest')),
    -- SHA-256 of the key's text.
    hash bytea NOT NULL UNIQUE,
    prefix text NOT NULL,
    organization_id uuid NOT NULL REFERENCES organization (id),
    project_id uuid REFERENCES project (id),
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_on date,
    CHECK ((kind = 'read') = (expires_at IS NOT NULL)),
    CHECK ((kind = 'ingest') = (project_id IS NOT NULL))
);
CREATE INDEX api_key_of_organization ON api_key (organization_id, created_at, id);

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
    PRIMARY KEY (project_id, number),
    UNIQUE (project_id, key_hash)
);
CREATE INDEX run_by_start ON run (project_id, started_at DESC, number DESC);
CREATE INDEX run_by_branch ON run (project_id, branch, started_at DESC, number DESC);

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

-- The result of each test in each run. There are millions of rows, so the columns are ordered to need no padding, and no
-- foreign keys are checked. Only the import transaction writes here. The table is partitioned by the start of the run,
-- mostly by week, so that pruning can drop whole tables; see assay_make_room below.
CREATE TABLE result (
    project_id uuid NOT NULL,
    -- The run's start, so that a query of a period needs no other table.
    started_at timestamptz NOT NULL,
    -- Of the final attempt.
    duration_ms bigint,
    run_number integer NOT NULL,
    test integer NOT NULL,
    -- From the run's start to that of the final attempt, if the report has it.
    start_offset_ms integer,
    browser integer NOT NULL,
    -- The number of rows in `attempt`; 0 for a single attempt without errors, which this row describes completely.
    attempts integer NOT NULL,
    part smallint NOT NULL,
    status smallint NOT NULL,
    -- In the order of a test's history.
    PRIMARY KEY (project_id, test, started_at, run_number)
) PARTITION BY RANGE (started_at);
-- Equal entries are stored once, so the index takes some bytes a result.
CREATE INDEX result_of_run ON result (project_id, run_number);

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
    -- Its place among all attempts of the test in the run, from 0.
    retry integer NOT NULL,
    part smallint NOT NULL,
    status smallint NOT NULL,
    -- Whether `occurred_at` is its own start and not the run's.
    timed boolean NOT NULL,
    -- The message of the first error that has one.
    message text,
    errors jsonb,
    -- Includes the columns that decide the result of a test.
    PRIMARY KEY (project_id, test, started_at, run_number, part, place) INCLUDE (retry, status)
) PARTITION BY RANGE (started_at);
CREATE INDEX attempt_of_run ON attempt (project_id, run_number);
-- Includes all columns for the figures of signatures, so that they come from index-only scans and not from long rows.
CREATE INDEX attempt_of_signature ON attempt (project_id, signature, started_at)
    INCLUDE (occurred_at, test, run_number) WHERE signature IS NOT NULL;
-- Failures without a signature.
CREATE INDEX attempt_unsigned ON attempt (project_id, status, started_at) INCLUDE (run_number)
    WHERE signature IS NULL;

-- The partitions of `result` and `attempt`, by the starts of the runs in them: result_<name> and attempt_<name>.
CREATE TABLE period (
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
CREATE FUNCTION assay_make_room(at timestamptz, now timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET timezone = 'UTC' AS $$
DECLARE
    near_from CONSTANT timestamptz := date_trunc('week', now) - interval '15 weeks';
    near_to CONSTANT timestamptz := date_trunc('week', now) + interval '16 weeks';
    lower timestamptz;
    upper timestamptz;
    suffix text;
    parent text;
BEGIN
    PERFORM FROM period WHERE starts_at <= at AND at < ends_at FOR KEY SHARE;
    IF FOUND THEN
        RETURN false;
    END IF;
    -- One at a time; then another may have made it meanwhile.
    PERFORM pg_advisory_xact_lock(x'617373617979'::bigint);
    PERFORM FROM period WHERE starts_at <= at AND at < ends_at FOR KEY SHARE;
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
    lower := greatest(lower, (SELECT max(ends_at) FROM period WHERE ends_at <= at));
    upper := least(upper, (SELECT min(starts_at) FROM period WHERE starts_at > at));
    suffix := CASE WHEN lower = '-infinity' THEN 'early' ELSE to_char(lower, 'YYYYMMDD') END;
    FOREACH parent IN ARRAY ARRAY['result', 'attempt'] LOOP
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING STORAGE)', parent || '_' || suffix, parent);
        EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
            parent, parent || '_' || suffix, lower, upper);
    END LOOP;
    INSERT INTO period VALUES (lower, upper, suffix);
    RETURN true;
END
$$;
REVOKE ALL ON FUNCTION assay_make_room FROM PUBLIC;
-- The function uses the tables of this schema, whatever the caller's search path.
DO $$ BEGIN EXECUTE format('ALTER FUNCTION assay_make_room SET search_path = %I, pg_temp', current_schema()); END $$;

-- Drops the partitions of this name. Returns false if a run still starts in them, or if they stay locked for longer than
-- readers and imports may be delayed. The caller may then try again.
CREATE FUNCTION assay_drop_period(period_name text) RETURNS boolean
LANGUAGE plpgsql SET lock_timeout = '200ms' AS $$
DECLARE
    dropped period;
BEGIN
    -- Waits for the imports that write there.
    SELECT * INTO dropped FROM period WHERE name = period_name FOR UPDATE;
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
    DELETE FROM period WHERE name = period_name;
    EXECUTE format('DROP TABLE %I, %I', 'attempt_' || period_name, 'result_' || period_name);
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END
$$;
REVOKE ALL ON FUNCTION assay_drop_period FROM PUBLIC;
DO $$ BEGIN EXECUTE format('ALTER FUNCTION assay_drop_period SET search_path = %I, pg_temp', current_schema()); END $$;

-- The engine's input, derived from result and attempt in the import's transaction: one pack a run, stored inline and
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

CREATE TABLE verdict (
    project_id uuid NOT NULL,
    test integer NOT NULL,
    status text NOT NULL,
    -- Whether the test had a result in the engine's window.
    in_window boolean NOT NULL,
    -- The newest run of the window in which the test was not skipped, and the status and start of its final attempt there.
    -- The most frequent reads therefore need no results.
    last_run integer,
    last_status smallint,
    last_offset_ms integer,
    -- The start of the newest run with a result of the test.
    newest timestamptz,
    -- The rest of the verdict and its evidence as JSON. It is text, because it is only compared and read as a whole.
    body text NOT NULL,
    PRIMARY KEY (project_id, test)
-- Most rows change with every import. Free space in the page allows updates that do not change the index.
) WITH (fillfactor = 50);
