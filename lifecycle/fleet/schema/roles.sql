-- Roles for least privilege. Run it once as a superuser or the owner of the database with
-- CREATEROLE, after the tables are there, and grant them:  GRANT lopen_runner TO ci;
DO $$ BEGIN
	IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'lopen_runner') THEN CREATE ROLE lopen_runner NOLOGIN; END IF;
	IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'lopen_reader') THEN CREATE ROLE lopen_reader NOLOGIN; END IF;
END $$;
-- A runner ships, takes and deletes sessions; it makes no tables.
GRANT USAGE ON SCHEMA lopen, lopen_data TO lopen_runner;
GRANT SELECT ON ALL TABLES IN SCHEMA lopen, lopen_data TO lopen_runner;
GRANT INSERT, UPDATE, DELETE ON lopen_data.sessions, lopen_data.records, lopen_data.objects, lopen_data.chunks, lopen_data.links,
	lopen_data.session_objects, lopen_data.checkpoints, lopen_data.tasks, lopen_data.iterations, lopen_data.plans TO lopen_runner;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA lopen_data TO lopen_runner;
-- A reader looks: list, show, log, watch and report with --fleet, psql and Grafana.
GRANT USAGE ON SCHEMA lopen, lopen_data TO lopen_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA lopen, lopen_data TO lopen_reader;
