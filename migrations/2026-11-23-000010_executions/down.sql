UPDATE attempt SET retry = new.retry
FROM (
    SELECT project_id, test, started_at, run_number, part, place,
        row_number() OVER (PARTITION BY project_id, test, started_at, run_number ORDER BY execution, retry) - 1 AS retry
    FROM attempt
) AS new
WHERE attempt.project_id = new.project_id AND attempt.test = new.test AND attempt.started_at = new.started_at
    AND attempt.run_number = new.run_number AND attempt.part = new.part AND attempt.place = new.place;
UPDATE result SET attempts = of_test.attempts
FROM (
    SELECT project_id, test, started_at, run_number, count(*) AS attempts
    FROM attempt GROUP BY project_id, test, started_at, run_number
) AS of_test
WHERE result.project_id = of_test.project_id AND result.test = of_test.test AND result.started_at = of_test.started_at
    AND result.run_number = of_test.run_number;
ALTER TABLE attempt DROP COLUMN execution, DROP COLUMN is_final;
