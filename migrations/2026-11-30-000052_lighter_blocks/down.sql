CREATE FUNCTION assay_starts(steps integer[], durations smallint[]) RETURNS integer[] LANGUAGE sql STRICT IMMUTABLE AS $$
    SELECT array_agg(CASE WHEN step IS NOT NULL THEN (steps + durations - coalesce(ms, 0))::integer END ORDER BY place)
    FROM (SELECT place, step, ms, sum(step) OVER (ORDER BY place) AS steps,
        sum(coalesce(ms, 0)) OVER (ORDER BY place) AS durations
        FROM unnest(steps, durations) WITH ORDINALITY AS one (step, ms, place)) AS summed
$$;
CREATE FUNCTION assay_durations(durations smallint[], longer bigint[]) RETURNS integer[] LANGUAGE sql IMMUTABLE AS $$
    SELECT array_agg(coalesce(ms, CASE WHEN long_ms <= 2147483647 THEN long_ms END)::integer ORDER BY place)
    FROM unnest(durations, longer) WITH ORDINALITY AS one (ms, long_ms, place)
$$;
CREATE FUNCTION assay_long_durations(longer bigint[]) RETURNS bigint[] LANGUAGE sql STRICT IMMUTABLE AS $$
    SELECT nullif(array_agg(CASE WHEN long_ms > 2147483647 THEN long_ms END ORDER BY place),
        array_fill(NULL::bigint, ARRAY[cardinality(longer)]))
    FROM unnest(longer) WITH ORDINALITY AS one (long_ms, place)
$$;
CREATE OR REPLACE VIEW result AS
SELECT project_id, started_at, NULL::bigint AS duration_ms, run_number, 0 AS test, 0 AS start_offset_ms, 0 AS browser,
    0 AS attempts, 0::smallint AS part, 0::smallint AS status
FROM result_block;
DO $$
DECLARE
    packed record;
BEGIN
    ALTER TABLE result_block RENAME COLUMN start_step_ms TO start_offset_ms;
    ALTER TABLE result_block
        ALTER COLUMN start_offset_ms TYPE integer[] USING assay_starts(start_offset_ms, duration_ms),
        ALTER COLUMN duration_ms TYPE integer[] USING assay_durations(duration_ms, long_duration_ms),
        ALTER COLUMN long_duration_ms TYPE bigint[] USING assay_long_durations(long_duration_ms);
    FOR packed IN SELECT relid::regclass AS name, attname, CASE attname WHEN 'start_offset_ms' THEN 'EXTENDED' ELSE 'MAIN' END AS storage
        FROM pg_partition_tree('result_block'), unnest(ARRAY['duration_ms', 'long_duration_ms', 'start_offset_ms']) AS attname
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STORAGE %s', packed.name, packed.attname, packed.storage);
        BEGIN
            EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET COMPRESSION lz4', packed.name, packed.attname);
        EXCEPTION WHEN feature_not_supported THEN
            NULL;
        END;
    END LOOP;
END $$;
DROP FUNCTION assay_starts;
DROP FUNCTION assay_durations;
DROP FUNCTION assay_long_durations;
CREATE OR REPLACE VIEW result AS
SELECT block.project_id, block.started_at, coalesce(ran.duration_ms, ran.long_duration_ms) AS duration_ms,
    block.run_number, block.block * 512 + coalesce(ran.place, (ran.index - 1)::integer) AS test, ran.start_offset_ms,
    coalesce(ran.browser, 0) AS browser, coalesce(ran.attempts, 0) AS attempts, coalesce(ran.part, 0::smallint) AS part,
    get_byte(block.status, (ran.index - 1)::integer)::smallint AS status
FROM result_block AS block CROSS JOIN LATERAL ROWS FROM (
    unnest(block.duration_ms), unnest(block.long_duration_ms), unnest(block.start_offset_ms), unnest(block.browser),
    unnest(block.attempts), unnest(block.part),
    unnest(ARRAY(SELECT place FROM generate_series(0, 511) AS place WHERE get_bit(block.present, place) = 1 ORDER BY place))
) WITH ORDINALITY AS ran (duration_ms, long_duration_ms, start_offset_ms, browser, attempts, part, place, index);
