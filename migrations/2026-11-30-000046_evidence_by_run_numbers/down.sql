DO $$ BEGIN
    ALTER TABLE verdict_evidence ADD COLUMN runs uuid[] NOT NULL DEFAULT '{}';
    UPDATE verdict_evidence AS evidence SET runs = ARRAY(
        SELECT coalesce(run.id, '00000000-0000-0000-0000-000000000000') FROM unnest(evidence.run_numbers) WITH ORDINALITY AS named (number, place)
        LEFT JOIN run ON run.project_id = evidence.project_id AND run.number = named.number ORDER BY named.place);
END $$;
CREATE OR REPLACE VIEW verdict AS
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
DO $$ BEGIN
    ALTER TABLE verdict_evidence DROP COLUMN run_numbers;
END $$;
