-- The evidence of a verdict names its runs by number, which takes a quarter of the bytes of an id. The view has ids as before.
DO $$ BEGIN
    ALTER TABLE verdict_evidence ADD COLUMN run_numbers integer[] NOT NULL DEFAULT '{}';
    -- A run that is gone has no number. Its place stays, because the body counts the runs of each signal.
    UPDATE verdict_evidence AS evidence SET run_numbers = ARRAY(
        SELECT coalesce(run.number, -1) FROM unnest(evidence.runs) WITH ORDINALITY AS named (id, place)
        LEFT JOIN run ON run.project_id = evidence.project_id AND run.id = named.id ORDER BY named.place);
END $$;
CREATE OR REPLACE VIEW verdict AS
SELECT block.project_id, block.block * 128 + (one.index - 1)::integer AS test, one.status, one.reason, one.in_window,
    one.last_run, one.last_status, one.last_offset_ms, one.newest, one.time_lost_ms, one.flake_score, one.flake_rate,
    one.broken_probability, one.impact, block.bodies[one.body] AS body, CASE WHEN evidence.test IS NOT NULL THEN
        ARRAY(SELECT run.id FROM unnest(evidence.run_numbers) WITH ORDINALITY AS named (number, place)
            JOIN run ON run.project_id = block.project_id AND run.number = named.number ORDER BY named.place)
    END AS runs, evidence.failing_on
FROM verdict_block AS block CROSS JOIN LATERAL unnest(block.status, block.reason, block.in_window, block.last_run,
    block.last_status, block.last_offset_ms, block.newest, block.time_lost_ms, block.flake_score, block.flake_rate,
    block.broken_probability, block.impact, block.body) WITH ORDINALITY AS one (status, reason, in_window, last_run,
    last_status, last_offset_ms, newest, time_lost_ms, flake_score, flake_rate, broken_probability, impact, body, index)
LEFT JOIN verdict_evidence AS evidence ON evidence.project_id = block.project_id
    AND evidence.test = block.block * 128 + one.index - 1
WHERE one.status IS NOT NULL;
DO $$ BEGIN
    ALTER TABLE verdict_evidence DROP COLUMN runs;
END $$;
