package main

// ofFleetTrust are the mechanisms by which a fleet's database, and who may write to it, have no more than they are given.
var ofFleetTrust = []mutant{
	{
		"fleettrust: without sslmode the server has to prove who it is", "lifecycle/fleet/conn.go",
		"		c[\"sslmode\"] = \"verify-full\"\n", "",
		"./lifecycle/fleet", "TestEncryption",
	},
	{
		"fleettrust: several hosts are local when all are", "lifecycle/fleet/encryption.go",
		"	return !slices.ContainsFunc(ends(cfg), func(e *pgconn.FallbackConfig) bool { return !local(e.Host) })\n", "	return slices.ContainsFunc(ends(cfg), func(e *pgconn.FallbackConfig) bool { return local(e.Host) })\n",
		"./lifecycle/fleet", "TestEncryption",
	},
	{
		"fleettrust: what the environment says of sslmode is said", "lifecycle/fleet/conn.go",
		"cmp.Or(c[\"sslmode\"], service[\"sslmode\"], os.Getenv(\"PGSSLMODE\")) == \"\"", "cmp.Or(c[\"sslmode\"], service[\"sslmode\"]) == \"\"",
		"./lifecycle/fleet", "TestTypedInTheEnvironment",
	},
	{
		"fleettrust: so is what a service file says", "lifecycle/fleet/conn.go",
		"cmp.Or(c[\"sslmode\"], service[\"sslmode\"], os.Getenv(\"PGSSLMODE\")) == \"\"", "cmp.Or(c[\"sslmode\"], os.Getenv(\"PGSSLMODE\")) == \"\"",
		"./lifecycle/fleet", "TestEncryption",
	},
	{
		"fleettrust: TLS with an unchecked certificate is not ok", "lifecycle/fleet/encryption.go",
		"return ways[worst], worst <= wayChecked\n", "return ways[worst], worst <= wayUnchecked\n",
		"./lifecycle/fleet", "TestUnknownCertificate",
	},
	{
		"fleettrust: a weak way is shown by status", "cmd/lopen/fleet_status.go",
		"	if way, ok := f.Encryption(); !ok {\n		fmt.Fprintf(a.stderr, \"warning: the way", "	if way, ok := f.Encryption(); !ok && false {\n		fmt.Fprintf(a.stderr, \"warning: the way",
		"./cmd/lopen", "TestScripts/fleet-way",
	},
	{
		"fleettrust: no password of the URL is kept", "lifecycle/fleet/conn.go",
		"		delete(c, key)\n", "",
		"./lifecycle/fleet", "TestPasswordInURL",
	},
	{
		"fleettrust: the password of a key is a password", "lifecycle/fleet/conn.go",
		"var secrets = []string{\"password\", \"sslpassword\"}\n", "var secrets = []string{\"password\", \"sslpasswore\"}\n",
		"./lifecycle/fleet", "TestPasswordInURL",
	},
	{
		"fleettrust: an @ behind the host may be a password's", "lifecycle/fleet/conn.go",
		"	if strings.Contains(text, \"@\") {\n", "	if false {\n",
		"./lifecycle/fleet", "TestNoPasswordInErrors",
	},
	{
		"fleettrust: a parameter beside a password is not named", "lifecycle/fleet/conn.go",
		"if c[\"password\"] == \"\" && c[\"sslpassword\"] == \"\" {", "if true {",
		"./lifecycle/fleet", "TestNoPasswordInErrors",
	},
	{
		"fleettrust: a parameter that is not known is not kept", "lifecycle/fleet/conn.go",
		"if _, known := keywords[key]; known || slices", "if known := true; known || slices",
		"./lifecycle/fleet", "TestUnknownParameters",
	},
	{
		"fleettrust: what looks like a password is not kept", "lifecycle/fleet/conn.go",
		"if secretive.MatchString(c[key]) {", "if secretive.MatchString(key) {",
		"./lifecycle/fleet", "TestNoPasswordInOptions",
	},
	{
		"fleettrust: no lock or log has the URL that was typed", "cmd/lopen/root.go",
		" && !(cmd.HasParent() && cmd.Parent().Name() == \"fleet\") {", " {",
		"./cmd/lopen", "TestInvocation",
	},
	{
		"key: nothing that lopen starts is told of it", "cmd/lopen/secrets.go",
		"	a.hide(keyVariable)\n", "",
		"./cmd/lopen", "TestScripts/key-hidden",
	},
	{
		"fleettrust: nothing is told of LOPEN_FLEET_PASSWORD", "cmd/lopen/secrets.go",
		"	a.hide(fleetVariable)\n", "	a.secrets[fleetVariable] = a.getenv(fleetVariable)\n",
		"./cmd/lopen", "TestScripts/fleet-password",
	},
	{
		"fleettrust: nothing is told of the fleet's PGPASSWORD", "cmd/lopen/secrets.go",
		"		a.hide(passwordVariable)\n", "",
		"./cmd/lopen", "TestScripts/fleet-password",
	},
	{
		"fleettrust: a project without a fleet keeps its PGPASSWORD", "cmd/lopen/secrets.go",
		"	if j == nil && (err == nil || homeless) {\n", "	if j == nil && (err == nil || homeless) && a == nil {\n",
		"./cmd/lopen", "TestScripts/fleet-password",
	},
	{
		"fleettrust: with LOPEN_FLEET_PASSWORD PGPASSWORD is the project's", "cmd/lopen/secrets.go",
		"return a.secrets[fleetVariable] == \"\" && ", "return ",
		"./cmd/lopen", "TestScripts/fleet-password",
	},
	{
		"fleettrust: with a password in the service file as well", "cmd/lopen/secrets.go",
		" && !fleet.HasPassword(url)\n", " && url != \"\" && fleet.SchemaVersion > 0\n",
		"./cmd/lopen", "TestScripts/fleet-password",
	},
	{
		"fleettrust: the driver finds no password by itself", "cmd/lopen/secrets.go",
		"_ = os.Unsetenv(name)", "_ = os.Unsetenv(name + \"_\")",
		"./cmd/lopen", "TestScripts/fleet-password",
	},
	{
		"fleettrust: a plan is bounded in the statement", "lifecycle/fleet/plans.go",
		"within(\"bytes\", maxPlan)", "`bytes`",
		"./cmd/lopen", "TestHostileRows/a_plan_of_100_MB",
	},
	{
		"fleettrust: a plan is bounded in lines", "lifecycle/fleet/plans.go",
		"bytes.Count(plan, []byte(\"\\n\")) <= maxPlanLines", "bytes.Count(plan, []byte(\"\\n\")) >= 0",
		"./cmd/lopen", "TestHostileRows/a_plan_of_many_lines",
	},
	{
		"fleettrust: a plan that no run can read is not written", "lifecycle/fleet/plans.go",
		"	err := now.Usable()\n", "	var err error\n",
		"./cmd/lopen", "TestHostileRows/a_plan_with_NUL",
	},
	{
		"fleettrust: a plan that is nested too deep is not written", "lifecycle/fleet/plans.go",
		"		_, err = tasks.Reconcile(", "		_, _ = tasks.Reconcile(",
		"./cmd/lopen", "TestScripts/fleet-plan",
	},
	{
		"fleettrust: a plan without a task is not written", "lifecycle/fleet/plans.go",
		"		err = errors.New(\"it has no task\")\n", "		err = nil\n",
		"./cmd/lopen", "TestScripts/fleet-plan",
	},
	{
		"fleettrust: a session comes without the plan that no run can work with", "lifecycle/fleet/source.go",
		"	case errors.As(err, &unusable):\n", "	case errors.As(err, &unusable) && s == nil:\n",
		"./cmd/lopen", "TestScripts/fleet-plan",
	},
	{
		"fleettrust: a module of the fleet runs by the plan here", "cmd/lopen/work_fleet.go",
		"		err = nil // the run says so, and goes by the plan here\n", "",
		"./cmd/lopen", "TestScripts/fleet-plan",
	},
	{
		"fleettrust: a plan that is as it was takes nothing back", "lifecycle/fleet/plans.go",
		"	case was == folder.SHA256(there.Bytes): // what was changed here is newer\n		return false, nil\n", "",
		"./cmd/lopen", "TestScripts/fleet-rows",
	},
	{
		"fleettrust: a number without a record fences nobody", "lifecycle/fleet/believe.go",
		"	case uint64(seq) != r.head && r.base <= r.head:", "	case uint64(seq) != r.head && r.base > r.head:",
		"./lifecycle/fleet", "TestRowsThatCannotBeTrue",
	},
	{
		"fleettrust: a sum that is another fences nobody", "lifecycle/fleet/believe.go",
		"	case !bytes.Equal(sum, r.sum):\n", "	case len(sum) > len(r.sum)+32:\n",
		"./lifecycle/fleet", "TestRowsThatCannotBeTrue",
	},
	{
		"fleettrust: the sum of a row is looked at behind an own record", "lifecycle/fleet/ship.go",
		"		return s.found(r).doubted(s.session.fleet.headed(ctx, r))\n", "		return nil\n",
		"./lifecycle/fleet", "TestRowsThatCannotBeTrue",
	},
	{
		"fleettrust: a session that cannot be fetched fences nobody", "lifecycle/fleet/believe.go",
		"				_, err := s.session.fleet.Fetch(ctx, x, dir)\n				return err\n", "				return nil\n",
		"./lifecycle/fleet", "TestRowsThatCannotBeTrue",
	},
	{
		"fleettrust: a term has an end", "lifecycle/fleet/believe.go",
		"	case r.term < 0 || r.term >= maxTerm:\n", "	case r.term < 0:\n",
		"./lifecycle/fleet", "TestRowsThatCannotBeTrue",
	},
	{
		"fleettrust: a lease without end is none", "lifecycle/fleet/believe.go",
		"	case r.holder != \"\" && r.left > longestLease:\n", "	case r.holder == \"\" && r.left > longestLease:\n",
		"./lifecycle/fleet", "TestRowsThatCannotBeTrue",
	},
	{
		"fleettrust: the last record of a session is there", "lifecycle/fleet/fetch.go",
		"(r.last != x.row.head || !bytes", "(r.last > x.row.head || !bytes",
		"./lifecycle/fleet", "TestForeignDatabase",
	},
	{
		"fleettrust: the own session goes on beside a row that cannot be true", "cmd/lopen/run_fleet.go",
		"			if err := r.fleet.Believe(ctx, &all[i]); err != nil {\n", "			if err := r.fleet.Believe(ctx, &all[i]); err != nil && found == (i < 0) {\n",
		"./cmd/lopen", "TestScripts/fleet-rows",
	},
	{
		"fleettrust: a session that cannot be taken stops no run", "cmd/lopen/run_fleet.go",
		"fleetError(r.fleet, r.doubts(err))", "fleetError(r.fleet, err)",
		"./cmd/lopen", "TestScripts/fleet-rows",
	},
	{
		"fleettrust: a database that stops answering stops no run", "cmd/lopen/run_fleet.go",
		"	if fleet.Foreign(err) && ctx.Err() == nil {\n", "	if fleet.Foreign(err) && ctx.Err() != nil {\n",
		"./cmd/lopen", "TestScripts/fleet-rows",
	},
	{
		"fleettrust: a module that is held without end is free", "lifecycle/fleet/schema/0001_begin.sql",
		"	SELECT at > clock_timestamp() AND at <= clock_timestamp() + most * interval '1 ms'\n", "	SELECT at > clock_timestamp()\n",
		"./lifecycle/fleet", "TestClaimsBesideRowsThatCannotBeTrue",
	},
	{
		"fleettrust: a module that cannot be taken keeps no other", "lifecycle/fleet/schema/0001_begin.sql",
		" AND term BETWEEN 0 AND 4611686018427387904", "",
		"./lifecycle/fleet", "TestClaimsBesideRowsThatCannotBeTrue",
	},
	{
		"fleettrust: a plan is bounded in tasks", "lifecycle/fleet/plans.go",
		"	} else if err == nil && n > maxTasks {\n", "	} else if err == nil && n > 2*maxTasks {\n",
		"./lifecycle/fleet", "TestPlanIsBounded",
	},
	{
		"fleettrust: a plan of too many tasks is not sent", "lifecycle/fleet/plans.go",
		" || len(here.Tasks()) > maxTasks {", " {",
		"./lifecycle/fleet", "TestPlanIsBounded",
	},
	{
		"fleettrust: a session is bounded in tasks", "lifecycle/fleet/fetch.go",
		"r.made > maxTasks {", "r.made > 20*maxTasks {",
		"./lifecycle/fleet", "TestSessionIsBounded",
	},
	{
		"fleettrust: a session of too many tasks is not sent", "lifecycle/fleet/ship.go",
		"n > s.session.fleet.tasks {", "n > 20*s.session.fleet.tasks {",
		"./lifecycle/fleet", "TestSessionIsBounded",
	},
	{
		"fleettrust: a snapshot is bounded", "lifecycle/fleet/bounds.go",
		"	if err == nil && m.Bytes > maxState {\n", "	if err == nil && m.Bytes > 20*maxState {\n",
		"./lifecycle/fleet", "TestSessionIsBounded",
	},
	{
		"fleettrust: what a plan's error quotes is a line", "lifecycle/fleet/plans.go",
		"shown(e.Err.Error(), maxExplained)) // it may quote the plan", "e.Err.Error())",
		"./cmd/lopen", "TestHostileRows/a_plan_with_front_matter",
	},
	{
		"fleettrust: a summary is bounded in the statement", "lifecycle/fleet/list.go",
		"CASE WHEN pg_catalog.pg_column_size(summary) > %[2]d THEN NULL WHEN pg_catalog.octet_length(summary::text) <= %[2]d THEN summary::text END", "CASE WHEN %[2]d > 0 THEN summary::text END",
		"./cmd/lopen", "TestHostileRows/a_summary_of_20_MB",
	},
	{
		"fleettrust: a host is bounded in the statement", "lifecycle/fleet/lease.go",
		"pg_catalog.left(host, %d)", "pg_catalog.left(host, 1000000 * %d)",
		"./cmd/lopen", "TestHostileRows/a_host_of_20_MB",
	},
	{
		"fleettrust: a host is a line", "lifecycle/fleet/list.go",
		"	r.host = shown(r.host, maxHost)\n", "",
		"./cmd/lopen", "TestHostileRows/a_host_that_holds_it",
	},
	{
		"fleettrust: what people see of the database is a line", "lifecycle/fleet/errors.go",
		"plain.Clip(plain.Line(strings.Clone(plain.Clip(s, most))), most)", "strings.Clone(plain.Clip(plain.Line(\"\")+s, most))",
		"./lifecycle/fleet", "TestOthers",
	},
	{
		"fleettrust: a time may be infinite", "lifecycle/fleet/bounds.go",
		"	return `least(greatest(` + column + `, '2000-01-01 00:00:00Z'::timestamptz), pg_catalog.clock_timestamp() + interval '100 years')`\n", "	return column\n",
		"./cmd/lopen", "TestHostileRows/times_without_end",
	},
	{
		"fleettrust: a number may be below 0", "lifecycle/fleet/lease.go",
		"greatest(base_seq, 0), greatest(head_seq, 0)", "base_seq, head_seq",
		"./cmd/lopen", "TestHostileRows/numbers_below_0",
	},
	{
		"fleettrust: a record is bounded in the statement", "lifecycle/fleet/fetch.go",
		"+within(\"bytes\", maxRecord)+", "+`bytes`+",
		"./cmd/lopen", "TestHostileRows/a_record_of_20_MB",
	},
	{
		"fleettrust: all records are no more than the session says", "lifecycle/fleet/fetch.go",
		"					case r.most < 0:\n", "					case false:\n",
		"./cmd/lopen", "TestHostileRows/more_than_all",
	},
	{
		"fleettrust: what is fetched has room", "lifecycle/fleet/fetch.go",
		"	if err := roomFor(to, x.row.bytes); err != nil {\n", "	if err := roomFor(to, 0); err != nil {\n",
		"./cmd/lopen", "TestHostileRows/more_than_there_is_room_for",
	},
	{
		"fleettrust: a chunk is bounded in the statement", "lifecycle/fleet/fetch.go",
		"AND n = $2 AND pg_catalog.octet_length(bytes) = $3`", "AND n = $2 AND $3 >= 0`",
		"./cmd/lopen", "TestHostileRows/a_chunk_of_20_MB",
	},
	{
		"fleettrust: a checkpoint's lines are bounded in the statement", "lifecycle/fleet/source.go",
		"within(\"lines\", maxLines)", "`lines`",
		"./cmd/lopen", "TestHostileRows/a_checkpoint_of_20_MB",
	},
	{
		"fleettrust: a listing has so many sessions", "lifecycle/fleet/list.go",
		"ORDER BY session DESC LIMIT $3) s\n", "ORDER BY session DESC LIMIT 100 * $3) s\n",
		"./lifecycle/fleet", "TestListIsBounded",
	},
	{
		"fleettrust: a session of another module is left out", "lifecycle/fleet/list.go",
		"(module != \"\" && parsed.Module != module || !plainWord(incarnation))", "!plainWord(incarnation)",
		"./cmd/lopen", "TestHostileRows/a_session_of_another_module",
	},
	{
		"fleettrust: no other functions are called", "lifecycle/fleet/list.go",
		"pg_catalog.left(id, 128)", "left(id, 128)",
		"./cmd/lopen", "TestHostileRows/functions_of_its_own",
	},
	{
		"fleettrust: the server says so much at once", "lifecycle/fleet/fleet.go",
		"	cfg.ConnConfig.MaxProtocolMessageBodyLen = maxMessage\n", "",
		"./cmd/lopen", "TestHostileRows/an_error_of_20_MB",
	},
	{
		"fleettrust: no plan is written that is too large to be read", "plan/file.go",
		"	if err := guard.Bounded(name, content); err != nil {\n", "	if err := guard.Bounded(name, nil); err != nil {\n",
		"./plan", "TestNoPlanIsWrittenThatIsTooLarge",
	},
	{
		"fleettrust: nor is one made so", "plan/internal/guard/guard.go",
		"			err = Bounded(name, next)\n", "			err = Bounded(name, nil)\n",
		"./plan", "TestNoPlanIsWrittenThatIsTooLarge",
	},
	{
		"fleettrust: a runner deletes nothing by itself", "lifecycle/fleet/schema/roles.sql",
		"GRANT INSERT ON lopen_data.records,", "GRANT INSERT, DELETE ON lopen_data.records,",
		"./lifecycle/fleet", "TestRunnerOnlyAddsContents",
	},
	{
		"fleettrust: a runner changes no content", "lifecycle/fleet/schema/roles.sql",
		"GRANT INSERT ON lopen_data.records,", "GRANT UPDATE (hash) ON lopen_data.session_objects TO lopen_runner; GRANT INSERT ON lopen_data.records,",
		"./lifecycle/fleet", "TestRunnerOnlyAddsContents",
	},
	{
		"fleettrust: the owner's functions are not everybody's", "lifecycle/fleet/schema/0001_begin.sql",
		"REVOKE ALL ON ALL FUNCTIONS IN SCHEMA lopen_data FROM PUBLIC;\n", "",
		"./lifecycle/fleet", "TestRunnerOnlyAddsContents",
	},
	{
		"fleettrust: nobody misleads the owner's functions", "lifecycle/fleet/schema/0001_begin.sql",
		"seen bigint) RETURNS boolean\n	LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS", "seen bigint) RETURNS boolean\n	LANGUAGE sql SECURITY DEFINER AS",
		"./lifecycle/fleet", "TestOwnersFunctions",
	},
	{
		"fleettrust: a runner changes no lease by itself", "lifecycle/fleet/schema/roles.sql",
		"GRANT INSERT ON lopen_data.records,", "GRANT UPDATE (lease_until) ON lopen_data.sessions TO lopen_runner; GRANT INSERT ON lopen_data.records,",
		"./lifecycle/fleet", "TestRunnerOnlyAddsContents",
	},
	{
		"fleettrust: a row does not say who its holder is", "lifecycle/fleet/schema/0001_begin.sql",
		"	SELECT encode(sha256(convert_to(secret, 'UTF8')), 'hex')\n", "	SELECT secret\n",
		"./lifecycle/fleet", "TestOwnersFunctions",
	},
	{
		"fleettrust: nobody ends the lease of another one", "lifecycle/fleet/schema/0001_begin.sql",
		"lease_until = clock_timestamp() FROM unnest(which, terms) AS m(session, term)\n	WHERE s.session = m.session AND s.term = m.term AND s.holder = lopen_data.holder_of(mine)\n", "lease_until = clock_timestamp() FROM unnest(which, terms) AS m(session, term)\n	WHERE s.session = m.session AND s.term = m.term\n",
		"./lifecycle/fleet", "TestOwnersFunctions",
	},
	{
		"fleettrust: what a session names stays named", "lifecycle/fleet/schema/0001_begin.sql",
		"	PRIMARY KEY (session, name, seq)\n", "	PRIMARY KEY (session, name, seq)\n);\nCREATE FUNCTION lopen_data.last() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN DELETE FROM lopen_data.session_objects WHERE session = NEW.session AND name = NEW.name AND seq < NEW.seq; RETURN NEW; END $$;\nCREATE TRIGGER last AFTER INSERT ON lopen_data.session_objects FOR EACH ROW EXECUTE FUNCTION lopen_data.last(\n",
		"./lifecycle/fleet", "TestOwnersFunctions",
	},
	{
		"fleettrust: no lease is renewed once the fleet was left", "lifecycle/fleet/fleet.go",
		"	if !f.joined() {\n		return ErrLeft\n	}\n	return f.callAnyway(ctx, fn)\n", "	return f.callAnyway(ctx, fn)\n",
		"./lifecycle/fleet", "TestNothingIsClaimedAfterLeaving",
	},
	{
		"fleettrust: no module is taken once the fleet was left", "lifecycle/fleet/fleet.go",
		"	if !f.joined() {\n		return ErrLeft\n	}\n	ctx, cancel := context.WithTimeout(ctx, f.times.call)\n", "	ctx, cancel := context.WithTimeout(ctx, f.times.call)\n",
		"./lifecycle/fleet", "TestNothingIsClaimedAfterLeaving",
	},
	{
		"fleettrust: what somebody holds is not deleted", "lifecycle/fleet/schema/0001_begin.sql",
		"		AND (holder IS NULL OR lease_until <= clock_timestamp()) RETURNING true\n", "		RETURNING true\n",
		"./lifecycle/fleet", "TestOwnersFunctions",
	},
	{
		"fleettrust: what something names is not swept", "lifecycle/fleet/schema/0001_begin.sql",
		"			AND NOT EXISTS (SELECT FROM lopen_data.links l WHERE l.child = o.hash)\n", "",
		"./lifecycle/fleet", "TestOwnersFunctions",
	},
	{
		"fleettrust: what is young is not swept", "lifecycle/fleet/schema/0001_begin.sql",
		"WHERE created < clock_timestamp() - interval '1 hour'\n", "WHERE created < clock_timestamp()\n",
		"./lifecycle/fleet", "TestSweepLeavesWhatIsYoung",
	},
	{
		"fleettrust: a sweep ends", "lifecycle/fleet/forget.go",
		"	for range maxSweeps {\n", "	for range 100 * maxSweeps {\n",
		"./lifecycle/fleet", "TestSweepEnds",
	},
	{
		"fleettrust: other projects are named", "cmd/lopen/fleet_join.go",
		"	if schema.Version > 0 {\n", "	if false {\n",
		"./cmd/lopen", "TestScripts/fleet-way",
	},
}
