-- A test's attempts are grouped by execution: those of one part, or of one of several repeats. From now on `retry` is the
-- place of an attempt within its execution, and `result.attempts` the largest number of attempts of one execution.
--
-- Stored attempts have their part but no repeat, so each part becomes one execution. Importing a report again separates
-- its repeats. The defaults let the former version import until it is replaced; `assay rebuild` corrects its rows.
ALTER TABLE attempt
    -- Among the test's executions in the run, from 0. Those with the worst result come last.
    ADD COLUMN execution integer NOT NULL DEFAULT 0,
    -- Whether the test's row in `result` shows this attempt.
    ADD COLUMN is_final boolean NOT NULL DEFAULT true;

UPDATE attempt SET execution = new.execution, retry = new.place, is_final = new.is_final
FROM (
    SELECT project_id, test, started_at, run_number, part, place,
        dense_rank() OVER (run_of_test ORDER BY first_retry) - 1 AS execution,
        retry = max(retry) OVER run_of_test AS is_final
    FROM (
        SELECT *, min(retry) OVER (PARTITION BY project_id, test, started_at, run_number, part) AS first_retry
        FROM attempt
    ) AS stored
    WINDOW run_of_test AS (PARTITION BY project_id, test, started_at, run_number)
) AS new
WHERE attempt.project_id = new.project_id AND attempt.test = new.test AND attempt.started_at = new.started_at
    AND attempt.run_number = new.run_number AND attempt.part = new.part AND attempt.place = new.place
    AND (new.execution > 0 OR NOT new.is_final);

UPDATE result SET attempts = of_test.attempts
FROM (
    SELECT project_id, test, started_at, run_number, max(retry) + 1 AS attempts
    FROM attempt GROUP BY project_id, test, started_at, run_number HAVING max(execution) > 0
) AS of_test
WHERE result.project_id = of_test.project_id AND result.test = of_test.test AND result.started_at = of_test.started_at
    AND result.run_number = of_test.run_number;
