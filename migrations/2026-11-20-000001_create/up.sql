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
-- padding, and no foreign keys are checked; the import transaction alone writes here.
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
    PRIMARY KEY (project_id, run_number, test)
);
CREATE INDEX result_of_test ON result (project_id, test, started_at DESC, run_number DESC);

-- The attempts of tests that were retried, failed or reported an error.
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
    PRIMARY KEY (project_id, run_number, test, slot, place)
);
CREATE INDEX attempt_of_test ON attempt (project_id, test, started_at DESC);
CREATE INDEX attempt_of_signature ON attempt (project_id, signature, started_at DESC) WHERE signature IS NOT NULL;
CREATE INDEX attempt_by_start ON attempt (project_id, started_at);

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
    -- The newest run of the window in which the test was not skipped.
    last_run integer,
    -- The rest of the verdict and its evidence as JSON; text, because it is only ever compared and read whole.
    body text NOT NULL,
    PRIMARY KEY (project_id, test)
-- Most rows change with every import; room in the page keeps that from touching the index.
) WITH (fillfactor = 50);
