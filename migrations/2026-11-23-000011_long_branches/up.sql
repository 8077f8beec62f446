-- Former versions stored branches of more than 200 characters, which no filter accepts. They get the name that imports give
-- them now: 183 characters, `~` and 16 digits of a hash of the whole. Former versions cut names at 500 characters, so the
-- hash of a longer branch covers only that part.
CREATE TEMPORARY TABLE long_branch ON COMMIT DROP AS
SELECT project_id, name,
    left(name, 183) || '~' || left(encode(sha256(convert_to(name, 'UTF8')), 'hex'), 16) AS kept
FROM (
    SELECT project_id, branch AS name FROM run WHERE char_length(branch) > 200
    UNION SELECT project_id, name FROM branch WHERE char_length(name) > 200
) AS stored;

UPDATE run SET branch = long_branch.kept
FROM long_branch
WHERE run.project_id = long_branch.project_id AND run.branch = long_branch.name;

-- The branch may exist under the new name already, from later imports.
INSERT INTO branch (project_id, name, newest)
SELECT branch.project_id, long_branch.kept, branch.newest
FROM branch JOIN long_branch ON long_branch.project_id = branch.project_id AND long_branch.name = branch.name
ON CONFLICT (project_id, name) DO UPDATE SET newest = greatest(branch.newest, excluded.newest);
DELETE FROM branch USING long_branch
WHERE branch.project_id = long_branch.project_id AND branch.name = long_branch.name;

-- Servers then read the history again.
UPDATE project SET observed = gen_random_uuid()
WHERE id IN (SELECT project_id FROM long_branch);
