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
    -- How many of each were ever numbered: numbers are dense and never reused. Imports take the row's lock to
    -- number, so imports into one project are serial.
    runs integer NOT NULL DEFAULT 0,
    tests integer NOT NULL DEFAULT 0,
    signatures integer NOT NULL DEFAULT 0,
    browsers integer NOT NULL DEFAULT 0,
    -- When the stored verdicts were judged.
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

-- Per-project tables: project_id leads every key and arrives in every statement as a constant.
-- Text that is ordered or compared is in collation "C", so that every database orders it by code point.

CREATE TABLE run (
    project_id uuid NOT NULL REFERENCES project (id),
    number integer NOT NULL,
    -- The id of the first shard that arrived.
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
    PRIMARY KEY (project_id, number),
    UNIQUE (project_id, key_hash)
);
CREATE INDEX run_by_start ON run (project_id, started_at DESC, number DESC);
CREATE INDEX run_by_branch ON run (project_id, branch, started_at DESC, number DESC);

-- The branches that runs are on, derived from them in the import's transaction.
CREATE TABLE branch (
    project_id uuid NOT NULL REFERENCES project (id),
    name text COLLATE "C" NOT NULL,
    -- When its newest run started.
    newest timestamptz NOT NULL,
    PRIMARY KEY (project_id, name)
);

CREATE TABLE shard (
    project_id uuid NOT NULL,
    run_number integer NOT NULL,
    -- Dense within the run, from 0 in order of arrival; what results name their shard by.
    slot smallint NOT NULL,
    id uuid NOT NULL,
    -- From 1; null in a run that is not sharded.
    index integer,
    -- What tells one content from another.
    content bytea NOT NULL,
    state text NOT NULL CHECK (state IN ('completed', 'interrupted')),
    status text CHECK (status IN ('passed', 'failed')),
    started_at timestamptz NOT NULL,
    finished_at timestamptz,
    expected integer,
    report_errors jsonb NOT NULL,
    PRIMARY KEY (project_id, run_number, slot),
    UNIQUE (project_id, id),
    UNIQUE NULLS NOT DISTINCT (project_id, run_number, index),
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
    -- From 1; results say 0 where no browser is known.
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

-- Former fingerprints, so that one in a bookmark still answers after errors were grouped anew.
CREATE TABLE signature_alias (
    project_id uuid NOT NULL REFERENCES project (id),
    fingerprint text COLLATE "C" NOT NULL,
    signature integer NOT NULL,
    PRIMARY KEY (project_id, fingerprint)
);

-- The record: how each test ended in each logical run. Millions of rows, so the columns are ordered to need no
-- padding, and no foreign keys are checked; the import transaction alone writes here. In partitions by the run's
-- start, mostly a week each, so that what is past every retention goes with its table; see assay_make_room below.
CREATE TABLE result (
    project_id uuid NOT NULL,
    -- The run's start, so that a period needs no other table.
    started_at timestamptz NOT NULL,
    -- The final attempt's.
    duration_ms bigint,
    run_number integer NOT NULL,
    test integer NOT NULL,
    -- From the run's start to the final attempt's, where the report tells that.
    start_offset_ms integer,
    browser integer NOT NULL,
    -- How many attempts stand in `attempt`; 0 for a single attempt without errors, which this row tells wholly.
    attempts integer NOT NULL,
    slot smallint NOT NULL,
    status smallint NOT NULL,
    -- In the order of a test's history.
    PRIMARY KEY (project_id, test, started_at, run_number)
) PARTITION BY RANGE (started_at);
-- Equal entries are stored once, so a run costs it some bytes a result.
CREATE INDEX result_of_run ON result (project_id, run_number);

-- The attempts of tests that were retried, failed or reported an error. In the same partitions.
CREATE TABLE attempt (
    project_id uuid NOT NULL,
    -- The run's start.
    started_at timestamptz NOT NULL,
    -- When it ended with its error, as far as is known: its own start, else the run's.
    occurred_at timestamptz NOT NULL,
    duration_ms bigint,
    run_number integer NOT NULL,
    test integer NOT NULL,
    browser integer NOT NULL,
    -- Null where it did not fail or said nothing.
    signature integer,
    -- Its place among the attempts of its shard, from 0.
    place integer NOT NULL,
    -- Its place among all attempts of the test in the run, from 0.
    retry integer NOT NULL,
    slot smallint NOT NULL,
    status smallint NOT NULL,
    -- Whether `occurred_at` is its own start, rather than the run's.
    timed boolean NOT NULL,
    -- The message of the first error that has one.
    message text,
    errors jsonb,
    -- With what tells how a test ended.
    PRIMARY KEY (project_id, test, started_at, run_number, slot, place) INCLUDE (retry, status)
) PARTITION BY RANGE (started_at);
CREATE INDEX attempt_of_run ON attempt (project_id, run_number);
-- With all that figures of signatures are made of, so that these need no look at the rows with their long texts.
CREATE INDEX attempt_of_signature ON attempt (project_id, signature, started_at)
    INCLUDE (occurred_at, test, run_number) WHERE signature IS NOT NULL;
-- Failures that no signature was found for.
CREATE INDEX attempt_unsigned ON attempt (project_id, status, started_at) INCLUDE (run_number)
    WHERE signature IS NULL;

-- The partitions of `result` and `attempt`, by the starts of the runs in them: result_<name> and attempt_<name>.
CREATE TABLE period (
    starts_at timestamptz PRIMARY KEY,
    -- Not in it any more.
    ends_at timestamptz NOT NULL UNIQUE,
    name text NOT NULL UNIQUE,
    CHECK (starts_at < ends_at)
);

-- Makes sure that runs which start at a time have partitions, says whether it made them, and keeps these from being dropped until the caller's
-- transaction ends. Within 15 weeks of `now` a partition is a week, from Monday; farther away it is what is still
-- free of a calendar year, or of all time before 2000 or from 2100 on, so that no dates whatever make more than some
-- hundred. With the rights of its owner, so that an importer needs none to make tables.
--
-- A partition is made apart and then attached, which holds up neither readers nor writers.
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
-- Whatever the caller's search path, only the tables of this schema are meant.
DO $$ BEGIN EXECUTE format('ALTER FUNCTION assay_make_room SET search_path = %I, pg_temp', current_schema()); END $$;

-- Drops the partitions of this name, which are to hold nothing that any run needs; false where a run still starts in
-- them, or where they are in use for longer than readers and imports may be held up for it. To be tried again then.
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

-- What the engine reads, derived from result and attempt in the import's transaction: one pack a run, kept inline
-- and uncompressed.
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
    -- The newest run of the window in which the test was not skipped, and how the test ended in it: the final
    -- attempt's status and its start, from the run's. So that the most frequent reads need no results.
    last_run integer,
    last_status smallint,
    last_offset_ms integer,
    -- When the newest run with a result of the test started.
    newest timestamptz,
    -- The rest of the verdict and its evidence as JSON; text, because it is only ever compared and read whole.
    body text NOT NULL,
    PRIMARY KEY (project_id, test)
-- Most rows change with every import; room in the page keeps that from touching the index.
) WITH (fillfactor = 50);
