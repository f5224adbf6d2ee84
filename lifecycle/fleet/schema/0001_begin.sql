-- The sessions of a fleet. Tables are in lopen_data and belong to lopen alone; the views in lopen
-- are an interface: their names and columns stay, and new ones are added.
CREATE SCHEMA IF NOT EXISTS lopen_data;
CREATE SCHEMA IF NOT EXISTS lopen;

CREATE TABLE lopen_data.schema (
	one          boolean PRIMARY KEY DEFAULT true CHECK (one),
	version      integer NOT NULL,      -- the newest migration
	least_client integer NOT NULL,      -- a client that knows less than this version may only read
	at           timestamptz NOT NULL DEFAULT now()
);

-- One row for each incarnation of a session. What is in records is, up to head_seq, what the holder
-- has in its log.
CREATE TABLE lopen_data.sessions (
	session     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	project     text NOT NULL,
	id          text NOT NULL,
	incarnation text NOT NULL,
	module      text NOT NULL,
	term        bigint NOT NULL,        -- raised whenever somebody takes the lease
	holder      text,                   -- the process that has the lease; null if nobody has it
	host        text NOT NULL,          -- where the last holder runs, or ran
	lease_until timestamptz NOT NULL,   -- by the clock of the database
	base_seq    bigint NOT NULL DEFAULT 1,  -- from this record on all are there; below it only entries
	head_seq    bigint NOT NULL DEFAULT 0,
	head_sum    bytea NOT NULL DEFAULT '',  -- of record head_seq
	bytes       bigint NOT NULL DEFAULT 0,  -- of all records
	status      text NOT NULL DEFAULT '',
	summary     jsonb NOT NULL DEFAULT '{}',
	created     timestamptz NOT NULL DEFAULT now(),
	updated     timestamptz NOT NULL DEFAULT now(),
	UNIQUE (project, id, incarnation)
) WITH (fillfactor = 50);               -- a row changes with each batch
-- By these the newest are found, however many there are.
CREATE INDEX sessions_project ON lopen_data.sessions (project, session);
CREATE INDEX sessions_module ON lopen_data.sessions (project, module, session);

-- The lines of the logs, byte for byte. sum is the SHA-256 of the sum before and the line.
CREATE TABLE lopen_data.records (
	session bigint NOT NULL REFERENCES lopen_data.sessions ON DELETE CASCADE,
	seq     bigint NOT NULL,
	bytes   bytea NOT NULL,
	sum     bytea NOT NULL,
	at      timestamptz,                -- null for messages and events of a transcript
	event   text,
	detail  jsonb,
	PRIMARY KEY (session, seq)
);

-- Contents by the SHA-256 of their bytes, in chunks of 1 MiB. links are the objects that an object
-- names: a folder's files. So an object is never there without those.
CREATE TABLE lopen_data.objects (
	hash    bytea PRIMARY KEY,
	size    bigint NOT NULL,
	created timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE lopen_data.chunks (
	hash  bytea NOT NULL REFERENCES lopen_data.objects ON DELETE CASCADE,
	n     integer NOT NULL,
	bytes bytea NOT NULL,
	PRIMARY KEY (hash, n)
);
ALTER TABLE lopen_data.chunks ALTER bytes SET STORAGE EXTERNAL;
CREATE TABLE lopen_data.links (
	parent bytea NOT NULL REFERENCES lopen_data.objects ON DELETE CASCADE,
	child  bytea NOT NULL REFERENCES lopen_data.objects,
	PRIMARY KEY (parent, child)
);
CREATE INDEX links_child ON lopen_data.links (child);

-- What a session needs of the objects: files of its folder by name, and its checkpoints.
CREATE TABLE lopen_data.session_objects (
	session bigint NOT NULL REFERENCES lopen_data.sessions ON DELETE CASCADE,
	name    text NOT NULL,
	hash    bytea NOT NULL REFERENCES lopen_data.objects,
	PRIMARY KEY (session, name)
);
CREATE INDEX session_objects_hash ON lopen_data.session_objects (hash);
CREATE TABLE lopen_data.checkpoints (
	session bigint NOT NULL REFERENCES lopen_data.sessions ON DELETE CASCADE,
	id      text NOT NULL,              -- of the checkpoint
	chain   text NOT NULL,              -- the name of the chain, and the folder that has it
	entry   bigint NOT NULL,            -- its number there
	lines   bytea NOT NULL,
	root    bytea REFERENCES lopen_data.objects,  -- null if its files were gone before they were sent
	rules   bytea REFERENCES lopen_data.objects,
	PRIMARY KEY (session, chain, id)
);
CREATE INDEX checkpoints_root ON lopen_data.checkpoints (root);
CREATE INDEX checkpoints_rules ON lopen_data.checkpoints (rules);

-- What can be read of the State at head_seq. Nothing is decided by it.
CREATE TABLE lopen_data.tasks (
	session      bigint NOT NULL REFERENCES lopen_data.sessions ON DELETE CASCADE,
	task         text NOT NULL,
	place        integer NOT NULL,      -- in the plan's order
	parent       text NOT NULL,
	kind         text NOT NULL,
	name         text NOT NULL,
	state        text NOT NULL,
	attempts     integer NOT NULL,
	last_error   text NOT NULL,
	started_at   timestamptz,
	completed_at timestamptz,
	PRIMARY KEY (session, task)
);
CREATE TABLE lopen_data.iterations (
	session       bigint NOT NULL REFERENCES lopen_data.sessions ON DELETE CASCADE,
	number        integer NOT NULL,
	task          text NOT NULL,
	attempt       integer NOT NULL,
	model         text NOT NULL,
	started_at    timestamptz,
	duration_ms   bigint NOT NULL,
	input_tokens  bigint NOT NULL,
	output_tokens bigint NOT NULL,
	cached_tokens bigint NOT NULL,
	cost_usd      double precision NOT NULL,
	PRIMARY KEY (session, number)
);

-- The plans of the modules, and who works on a module.
CREATE TABLE lopen_data.plans (
	project     text NOT NULL,
	module      text NOT NULL,
	revision    bigint NOT NULL,
	bytes       bytea NOT NULL,
	open        integer NOT NULL,       -- tasks that are not ticked
	total       integer NOT NULL,
	priority    bigint,
	after       text[] NOT NULL DEFAULT '{}',
	term        bigint NOT NULL DEFAULT 0,
	holder      text,
	host        text NOT NULL DEFAULT '',
	lease_until timestamptz NOT NULL DEFAULT now(),
	retry_at    timestamptz NOT NULL DEFAULT now(),  -- nobody takes the module before that
	updated     timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (project, module)
);

-- What others may need only the owner of the tables deletes. These do it for whoever may call them, and look first
-- whether somebody works on it, or names it.
--
-- delete_session deletes a session that nobody holds and that is at the record where it was seen.
CREATE FUNCTION lopen_data.delete_session(which bigint, seen bigint) RETURNS boolean
	LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	DELETE FROM lopen_data.sessions WHERE session = which AND head_seq = seen
		AND (holder IS NULL OR lease_until <= clock_timestamp()) RETURNING true
$$;
-- sweep deletes some of the objects that nothing names, and that were there for an hour: a batch that names one may be
-- on its way.
CREATE FUNCTION lopen_data.sweep(OUT objects bigint, OUT bytes bigint)
	LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	WITH goes AS (
		SELECT hash FROM lopen_data.objects o WHERE created < clock_timestamp() - interval '1 hour'
			AND NOT EXISTS (SELECT FROM lopen_data.session_objects s WHERE s.hash = o.hash)
			AND NOT EXISTS (SELECT FROM lopen_data.links l WHERE l.child = o.hash)
			AND NOT EXISTS (SELECT FROM lopen_data.checkpoints k WHERE k.root = o.hash)
			AND NOT EXISTS (SELECT FROM lopen_data.checkpoints k WHERE k.rules = o.hash)
		LIMIT 1000 FOR UPDATE SKIP LOCKED),
	went AS (DELETE FROM lopen_data.objects o USING goes WHERE o.hash = goes.hash RETURNING o.size)
	SELECT count(*), coalesce(sum(size), 0)::bigint FROM went
$$;
REVOKE ALL ON FUNCTION lopen_data.delete_session(bigint, bigint), lopen_data.sweep() FROM PUBLIC;

CREATE VIEW lopen.sessions AS SELECT
	project, id, incarnation, module, status,
	summary->>'phase' AS phase, summary->>'step' AS step, summary->>'name' AS name,
	(summary->'progress'->>'done')::bigint AS done, (summary->'progress'->>'total')::bigint AS total,
	(summary->'progress'->>'failed')::bigint AS failed, (summary->'progress'->>'skipped')::bigint AS skipped,
	(summary->>'inputTokens')::bigint AS input_tokens, (summary->>'outputTokens')::bigint AS output_tokens,
	(summary->>'cachedTokens')::bigint AS cached_tokens, (summary->>'totalCostUSD')::double precision AS cost_usd,
	host, holder IS NOT NULL AND lease_until > clock_timestamp() AS held, lease_until, term,
	head_seq AS records, bytes,
	(summary->>'createdAt')::timestamptz AS created_at, (summary->>'updatedAt')::timestamptz AS updated_at,
	(summary->>'completedAt')::timestamptz AS completed_at, updated AS received_at
FROM lopen_data.sessions;

CREATE VIEW lopen.tasks AS SELECT
	s.project, s.id AS session, s.incarnation, s.module, t.task, t.place, t.parent, t.kind, t.name, t.state, t.attempts,
	t.last_error, t.started_at, t.completed_at
FROM lopen_data.tasks t JOIN lopen_data.sessions s USING (session);

CREATE VIEW lopen.iterations AS SELECT
	s.project, s.id AS session, s.incarnation, s.module, i.number, i.task, i.attempt, i.model, i.started_at, i.duration_ms,
	i.input_tokens, i.output_tokens, i.cached_tokens, i.cost_usd
FROM lopen_data.iterations i JOIN lopen_data.sessions s USING (session);

CREATE VIEW lopen.events AS SELECT
	s.project, s.id AS session, s.incarnation, s.module, r.seq, r.at, r.event, r.detail
FROM lopen_data.records r JOIN lopen_data.sessions s USING (session) WHERE r.at IS NOT NULL;
