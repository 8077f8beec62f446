-- A block takes half of the bytes: durations have 16 bits, and a start is the difference from what is expected.

-- The differences of starts. A start that is more than six days away from the run's is an error of the report.
CREATE FUNCTION assay_start_steps(starts integer[], durations integer[]) RETURNS integer[] LANGUAGE sql STRICT IMMUTABLE AS $$
    SELECT array_agg((base - before)::integer ORDER BY place) FROM (
        SELECT place, base, coalesce(lag(base) OVER (PARTITION BY base IS NULL ORDER BY place), 0) AS before
        FROM (SELECT place, CASE WHEN abs(start::bigint) <= 536870912 THEN start END::bigint - coalesce(sum(
                CASE WHEN ms < 32768 THEN ms END) OVER (ORDER BY place ROWS UNBOUNDED PRECEDING EXCLUDE CURRENT ROW), 0) AS base
            FROM unnest(starts, durations) WITH ORDINALITY AS one (start, ms, place)) AS placed) AS based
$$;
CREATE FUNCTION assay_short_durations(durations integer[]) RETURNS smallint[] LANGUAGE sql STRICT IMMUTABLE AS $$
    SELECT array_agg(CASE WHEN ms < 32768 THEN ms END::smallint ORDER BY place)
    FROM unnest(durations) WITH ORDINALITY AS one (ms, place)
$$;
CREATE FUNCTION assay_long_durations(durations integer[], longer bigint[]) RETURNS bigint[] LANGUAGE sql IMMUTABLE AS $$
    SELECT nullif(array_agg(coalesce(long_ms, CASE WHEN ms >= 32768 THEN ms END) ORDER BY place),
        array_fill(NULL::bigint, ARRAY[cardinality(durations)]))
    FROM unnest(durations, longer) WITH ORDINALITY AS one (ms, long_ms, place)
$$;

-- A view keeps the types of its columns from being changed.
CREATE OR REPLACE VIEW result AS
SELECT project_id, started_at, NULL::bigint AS duration_ms, run_number, 0 AS test, 0 AS start_offset_ms, 0 AS browser,
    0 AS attempts, 0::smallint AS part, 0::smallint AS status
FROM result_block;
DO $$
DECLARE
    packed record;
BEGIN
    ALTER TABLE result_block
        ALTER COLUMN start_offset_ms TYPE integer[] USING assay_start_steps(start_offset_ms, duration_ms),
        ALTER COLUMN long_duration_ms TYPE bigint[] USING assay_long_durations(duration_ms, long_duration_ms),
        ALTER COLUMN duration_ms TYPE smallint[] USING assay_short_durations(duration_ms);
    ALTER TABLE result_block RENAME COLUMN start_offset_ms TO start_step_ms;
    -- Another type has its usual storage.
    FOR packed IN SELECT relid::regclass AS name, attname, CASE attname WHEN 'start_step_ms' THEN 'EXTENDED' ELSE 'MAIN' END AS storage
        FROM pg_partition_tree('result_block'), unnest(ARRAY['duration_ms', 'long_duration_ms', 'start_step_ms']) AS attname
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STORAGE %s', packed.name, packed.attname, packed.storage);
        BEGIN
            EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET COMPRESSION lz4', packed.name, packed.attname);
        EXCEPTION WHEN feature_not_supported THEN
            NULL;
        END;
    END LOOP;
END $$;
DROP FUNCTION assay_start_steps;
DROP FUNCTION assay_short_durations;
DROP FUNCTION assay_long_durations;

CREATE OR REPLACE VIEW result AS
SELECT block.project_id, block.started_at, ran.duration_ms, block.run_number,
    block.block * 512 + coalesce(ran.place, (ran.index - 1)::integer) AS test, ran.start_offset_ms,
    coalesce(ran.browser, 0) AS browser, coalesce(ran.attempts, 0) AS attempts, coalesce(ran.part, 0::smallint) AS part,
    get_byte(block.status, (ran.index - 1)::integer)::smallint AS status
FROM result_block AS block CROSS JOIN LATERAL (
    SELECT coalesce(one.duration_ms, one.long_duration_ms) AS duration_ms, one.browser, one.attempts, one.part, one.place, one.index,
        CASE WHEN one.start_step_ms IS NOT NULL THEN (sum(one.start_step_ms) OVER (ORDER BY one.index)
            + sum(coalesce(one.duration_ms, 0)) OVER (ORDER BY one.index) - coalesce(one.duration_ms, 0))::integer
        END AS start_offset_ms
    FROM ROWS FROM (
        unnest(block.duration_ms), unnest(block.long_duration_ms), unnest(block.start_step_ms), unnest(block.browser),
        unnest(block.attempts), unnest(block.part),
        unnest(ARRAY(SELECT place FROM generate_series(0, 511) AS place WHERE get_bit(block.present, place) = 1 ORDER BY place))
    ) WITH ORDINALITY AS one (duration_ms, long_duration_ms, start_step_ms, browser, attempts, part, place, index)
) AS ran;
