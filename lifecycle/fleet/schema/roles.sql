-- Roles for least privilege. Run it once as a superuser or the owner of the database with
-- CREATEROLE, after the tables are there, and grant them:  GRANT lopen_runner TO ci;
DO $$ BEGIN
	IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'lopen_runner') THEN CREATE ROLE lopen_runner NOLOGIN; END IF;
	IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'lopen_reader') THEN CREATE ROLE lopen_reader NOLOGIN; END IF;
END $$;
-- A runner ships and takes sessions. It makes no tables and changes no content or record that is there. Leases it changes, and
-- sessions and contents it deletes, only through the owner's functions, which look whose the lease is and what is needed.
REVOKE ALL ON ALL TABLES IN SCHEMA lopen, lopen_data FROM lopen_runner;
GRANT USAGE ON SCHEMA lopen, lopen_data TO lopen_runner;
GRANT SELECT ON ALL TABLES IN SCHEMA lopen, lopen_data TO lopen_runner;
GRANT INSERT (project, id, incarnation, module, term, host, lease_until) ON lopen_data.sessions TO lopen_runner;
GRANT INSERT (project, module, revision, bytes, open, total, priority, after, host) ON lopen_data.plans TO lopen_runner;
GRANT INSERT ON lopen_data.records, lopen_data.objects, lopen_data.chunks, lopen_data.links, lopen_data.session_objects,
	lopen_data.checkpoints TO lopen_runner;
GRANT UPDATE (revision, bytes, open, total, priority, after, host, updated) ON lopen_data.plans TO lopen_runner;
GRANT INSERT, UPDATE, DELETE ON lopen_data.tasks, lopen_data.iterations TO lopen_runner; -- what can be read of a State
GRANT USAGE ON ALL SEQUENCES IN SCHEMA lopen_data TO lopen_runner;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA lopen_data TO lopen_runner;
-- A reader looks: list, show, log, watch and report with --fleet, psql and Grafana.
GRANT USAGE ON SCHEMA lopen, lopen_data TO lopen_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA lopen, lopen_data TO lopen_reader;
