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
	holder      text,                   -- holder_of the process that has the lease; null if nobody has it
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

-- What a session needs of the objects: files of its folder by name, and its checkpoints. Of a name the last one counts;
-- those before it stay, so that nobody can have them swept.
CREATE TABLE lopen_data.session_objects (
	session bigint NOT NULL REFERENCES lopen_data.sessions ON DELETE CASCADE,
	name    text NOT NULL,
	seq     bigint NOT NULL,            -- the record with which it came
	hash    bytea NOT NULL REFERENCES lopen_data.objects,
	PRIMARY KEY (session, name, seq)
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

-- Leases are changed, and what others may need is deleted, only by the owner of the tables. These functions do it for whoever
-- may call them, and look first whether somebody holds it, or names it.

-- holder_of is what the tables have of a process: the process alone knows the text that it comes from.
CREATE FUNCTION lopen_data.holder_of(secret text) RETURNS text
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT encode(sha256(convert_to(secret, 'UTF8')), 'hex')
$$;
-- until is the end of a lease that lasts so long, and soon whether a time is to come and no later than lopen ever sets it.
CREATE FUNCTION lopen_data.until(ms bigint, most bigint) RETURNS timestamptz
	LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	SELECT clock_timestamp() + least(greatest(ms, 0), most) * interval '1 ms'
$$;
CREATE FUNCTION lopen_data.soon(at timestamptz, most bigint) RETURNS boolean
	LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	SELECT at > clock_timestamp() AND at <= clock_timestamp() + most * interval '1 ms'
$$;

-- take_session takes the lease of a session that nobody holds, or that mine holds, or was with a term.
CREATE FUNCTION lopen_data.take_session(which bigint, mine text, place text, ms bigint, was text, was_term bigint) RETURNS boolean
	LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	UPDATE lopen_data.sessions SET term = term + 1, holder = lopen_data.holder_of(mine), host = place, lease_until = lopen_data.until(ms, 120000)
	WHERE session = which AND (holder IS NULL OR lease_until <= clock_timestamp() OR holder = lopen_data.holder_of(mine)
		OR holder = lopen_data.holder_of(was) AND term = was_term) RETURNING true
$$;
-- renew_sessions renews leases, and returns the sessions whose leases are the caller's.
CREATE FUNCTION lopen_data.renew_sessions(which bigint[], terms bigint[], mine text, ms bigint) RETURNS SETOF bigint
	LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	UPDATE lopen_data.sessions s SET lease_until = lopen_data.until(ms, 120000) FROM unnest(which, terms) AS m(session, term)
	WHERE s.session = m.session AND s.term = m.term AND s.holder = lopen_data.holder_of(mine) RETURNING s.session
$$;
-- leave_sessions ends leases.
CREATE FUNCTION lopen_data.leave_sessions(which bigint[], terms bigint[], mine text) RETURNS void
	LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	UPDATE lopen_data.sessions s SET holder = NULL, lease_until = clock_timestamp() FROM unnest(which, terms) AS m(session, term)
	WHERE s.session = m.session AND s.term = m.term AND s.holder = lopen_data.holder_of(mine)
$$;
-- ship_session moves the last record of a session that the caller holds from the one that it knows to a later one.
CREATE FUNCTION lopen_data.ship_session(which bigint, of text, my_term bigint, mine text, place text, ms bigint,
		was_seq bigint, was_sum bytea, now_seq bigint, now_sum bytea, now_base bigint, size bigint) RETURNS boolean
	LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	UPDATE lopen_data.sessions SET head_seq = now_seq, head_sum = now_sum, base_seq = greatest(base_seq, now_base), bytes = bytes + size,
		lease_until = lopen_data.until(ms, 120000), host = place, updated = clock_timestamp()
	WHERE session = which AND incarnation = of AND term = my_term AND holder = lopen_data.holder_of(mine)
		AND head_seq = was_seq AND head_sum = was_sum RETURNING true
$$;
-- show_session makes what can be read of the State that of a session that the caller holds.
CREATE FUNCTION lopen_data.show_session(which bigint, my_term bigint, mine text, now_summary jsonb, now_status text) RETURNS void
	LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	UPDATE lopen_data.sessions SET summary = now_summary, status = now_status
	WHERE session = which AND term = my_term AND holder = lopen_data.holder_of(mine)
$$;

-- take_module takes the next module of a project that has open tasks and that nobody works on: see Fleet.Claim.
CREATE FUNCTION lopen_data.take_module(of text, named text[], but text[], mine text, place text, ms bigint,
		OUT took text, OUT its_term bigint, OUT its_open integer)
	LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	WITH next AS (
		SELECT module FROM lopen_data.plans p
		WHERE project = of AND module COLLATE "C" ~ '^[a-z0-9]([a-z0-9_-]{0,62}[a-z0-9])?$' AND open > 0 AND term BETWEEN 0 AND 4611686018427387904
			AND NOT module = ANY(but) AND (cardinality(named) = 0 OR module = ANY(named))
			AND NOT lopen_data.soon(retry_at, 1200000) AND (holder IS NULL OR NOT lopen_data.soon(lease_until, 120000))
			AND NOT EXISTS (SELECT FROM lopen_data.plans b WHERE b.project = p.project AND b.module = ANY(p.after) AND b.open > 0)
			AND NOT EXISTS (SELECT FROM lopen_data.sessions s WHERE s.project = p.project AND s.module = p.module
				AND s.holder IS NOT NULL AND s.holder <> lopen_data.holder_of(mine) AND lopen_data.soon(s.lease_until, 120000))
		ORDER BY priority NULLS LAST, module LIMIT 1 FOR UPDATE SKIP LOCKED)
	UPDATE lopen_data.plans p SET term = term + 1, holder = lopen_data.holder_of(mine), host = place, lease_until = lopen_data.until(ms, 120000)
	FROM next WHERE p.project = of AND p.module = next.module RETURNING p.module, p.term, p.open
$$;
-- renew_module renews the lease of a module, and returns whether it is the caller's.
CREATE FUNCTION lopen_data.renew_module(of text, which text, my_term bigint, mine text, ms bigint) RETURNS boolean
	LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	UPDATE lopen_data.plans SET lease_until = lopen_data.until(ms, 120000)
	WHERE project = of AND module = which AND term = my_term AND holder = lopen_data.holder_of(mine) RETURNING true
$$;
-- leave_module ends the lease of a module. For some time nobody takes it.
CREATE FUNCTION lopen_data.leave_module(of text, which text, my_term bigint, mine text, ms bigint) RETURNS void
	LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	UPDATE lopen_data.plans SET holder = NULL, lease_until = clock_timestamp(), retry_at = lopen_data.until(ms, 1200000)
	WHERE project = of AND module = which AND term = my_term AND holder = lopen_data.holder_of(mine)
$$;

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
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA lopen_data FROM PUBLIC;

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
