ALTER TABLE run DROP COLUMN base_branch;
ALTER TABLE project DROP COLUMN release_branches;
