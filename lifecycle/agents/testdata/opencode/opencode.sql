CREATE TABLE `project` (
          `id` text PRIMARY KEY,
          `worktree` text NOT NULL,
          `vcs` text,
          `name` text,
          `icon_url` text,
          `icon_url_override` text,
          `icon_color` text,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `time_initialized` integer,
          `sandboxes` text NOT NULL,
          `commands` text
        );
INSERT INTO project VALUES('3b70b8361886d31c50f02396e7d8b74e7c1118f2','/work/project','git',NULL,NULL,NULL,NULL,1795483624624,1795483698456,NULL,'[]',NULL);
CREATE TABLE `message` (
          `id` text PRIMARY KEY,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_message_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
        );
INSERT INTO message VALUES('msg_20b29ed47001fuBBMWe0f6DZeg','ses_df4d61575ffejaOsa517gyasnl',1795483626823,1795483642287,'{"role":"user","time":{"created":1795483626823},"agent":"build","model":{"providerID":"mock","modelID":"m1"},"summary":{"diffs":[]}}');
INSERT INTO message VALUES('msg_20b2a230b00108WMaDcPG9q4qe','ses_df4d61575ffejaOsa517gyasnl',1795483640587,1795483649287,'{"parentID":"msg_20b29ed47001fuBBMWe0f6DZeg","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/work/project","root":"/work/project"},"cost":0,"tokens":{"total":1120,"input":100,"output":20,"reasoning":0,"cache":{"write":0,"read":1000}},"modelID":"m1","providerID":"mock","time":{"created":1795483640587,"completed":1795483649281},"finish":"stop"}');
INSERT INTO message VALUES('msg_20b2b0f97001JC4HgnXG0Tlhnw','ses_df4d4f503ffeGmCID4xKCtwOG3',1795483701143,1795483706779,'{"role":"user","time":{"created":1795483701143},"agent":"build","model":{"providerID":"mock","modelID":"m1"},"summary":{"diffs":[]}}');
INSERT INTO message VALUES('msg_20b2b19650012GbIPpwuXt9mIX','ses_df4d4f503ffeGmCID4xKCtwOG3',1795483703653,1795483706545,'{"parentID":"msg_20b2b0f97001JC4HgnXG0Tlhnw","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/work/project","root":"/work/project"},"cost":0,"tokens":{"total":1120,"input":100,"output":20,"reasoning":0,"cache":{"write":0,"read":1000}},"modelID":"m1","providerID":"mock","time":{"created":1795483703653,"completed":1795483706543},"finish":"tool-calls"}');
INSERT INTO message VALUES('msg_20b2b24b5001h2dtUpDr7VQCk7','ses_df4d4f503ffeGmCID4xKCtwOG3',1795483706549,1795483706890,'{"parentID":"msg_20b2b0f97001JC4HgnXG0Tlhnw","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/work/project","root":"/work/project"},"cost":0,"tokens":{"total":1120,"input":100,"output":20,"reasoning":0,"cache":{"write":0,"read":1000}},"modelID":"m1","providerID":"mock","time":{"created":1795483706549,"completed":1795483706889},"finish":"stop"}');
CREATE TABLE `part` (
          `id` text PRIMARY KEY,
          `message_id` text NOT NULL,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_part_message_id_message_id_fk` FOREIGN KEY (`message_id`) REFERENCES `message`(`id`) ON DELETE CASCADE
        );
INSERT INTO part VALUES('prt_20b29ed53001SD46q3E30dLvfC','msg_20b29ed47001fuBBMWe0f6DZeg','ses_df4d61575ffejaOsa517gyasnl',1795483640556,1795483640561,'{"type":"text","text":"\"@@[{\\\"t\\\":\\\"I try.\\\",\\\"tool\\\":\\\"bash\\\",\\\"in\\\":{\\\"command\\\":\\\"echo fine\\\",\\\"description\\\":\\\"x\\\"}},{\\\"t\\\":\\\"All done.\\\"}]@@ do it\""}');
INSERT INTO part VALUES('prt_20b2a408f001ExmWP800qU8w5u','msg_20b2a230b00108WMaDcPG9q4qe','ses_df4d61575ffejaOsa517gyasnl',1795483648143,1795483648145,'{"snapshot":"4b825dc642cb6eb9a060e54bf8d69288fbee4904","type":"step-start"}');
INSERT INTO part VALUES('prt_20b2a4093001tVUMeW5c0dI8BP','msg_20b2a230b00108WMaDcPG9q4qe','ses_df4d61575ffejaOsa517gyasnl',1795483648147,1795483648157,'{"type":"text","text":"BAD PLAN Expected property name or ''}'' in JSON at position 2 [{\\\"t\\\":\\\"I try.\\\",\\\"tool\\\":\\\"bash\\\",\\\"in\\\":{\\\"command\\\":\\\"echo fine\\\",\\\"description\\\":\\\"x\\\"}},{\\\"t\\\":\\\"All done.\\\"}]","time":{"start":1795483648147,"end":1795483648155}}');
INSERT INTO part VALUES('prt_20b2a4370001DjwXF6whvl2JDJ','msg_20b2a230b00108WMaDcPG9q4qe','ses_df4d61575ffejaOsa517gyasnl',1795483648880,1795483648938,'{"reason":"stop","snapshot":"4b825dc642cb6eb9a060e54bf8d69288fbee4904","type":"step-finish","tokens":{"total":1120,"input":100,"output":20,"reasoning":0,"cache":{"write":0,"read":1000}},"cost":0}');
INSERT INTO part VALUES('prt_20b2b0fcd0011N1kWQgbeC0qsW','msg_20b2b0f97001JC4HgnXG0Tlhnw','ses_df4d4f503ffeGmCID4xKCtwOG3',1795483703625,1795483703627,'{"type":"text","text":"@@[{\"t\":\"I try.\",\"tool\":\"bash\",\"in\":{\"command\":\"echo fine\",\"description\":\"x\"}},{\"t\":\"All done.\"}]@@ do it\n"}');
INSERT INTO part VALUES('prt_20b2b2169001gzPSINGPEypq8p','msg_20b2b19650012GbIPpwuXt9mIX','ses_df4d4f503ffeGmCID4xKCtwOG3',1795483705705,1795483705714,'{"snapshot":"4b825dc642cb6eb9a060e54bf8d69288fbee4904","type":"step-start"}');
INSERT INTO part VALUES('prt_20b2b2176001pSJq28Z1fQZTzd','msg_20b2b19650012GbIPpwuXt9mIX','ses_df4d4f503ffeGmCID4xKCtwOG3',1795483705718,1795483705726,'{"type":"text","text":"I try.","time":{"start":1795483705718,"end":1795483705724}}');
INSERT INTO part VALUES('prt_20b2b2183001rmeEzTr1w0QDio','msg_20b2b19650012GbIPpwuXt9mIX','ses_df4d4f503ffeGmCID4xKCtwOG3',1795483705732,1795483706002,'{"type":"tool","tool":"bash","callID":"toolu_mock_6_0","state":{"status":"completed","input":{"command":"echo fine","description":"x"},"output":"fine\n","metadata":{"output":"fine\n","exit":0,"truncated":false},"title":"echo fine","time":{"start":1795483705758,"end":1795483705999}}}');
INSERT INTO part VALUES('prt_20b2b22f8001Q861s6Gyra90oN','msg_20b2b19650012GbIPpwuXt9mIX','ses_df4d4f503ffeGmCID4xKCtwOG3',1795483706104,1795483706148,'{"reason":"tool-calls","snapshot":"4b825dc642cb6eb9a060e54bf8d69288fbee4904","type":"step-finish","tokens":{"total":1120,"input":100,"output":20,"reasoning":0,"cache":{"write":0,"read":1000}},"cost":0}');
INSERT INTO part VALUES('prt_20b2b255c001EgHSE3AEQkIQhE','msg_20b2b24b5001h2dtUpDr7VQCk7','ses_df4d4f503ffeGmCID4xKCtwOG3',1795483706716,1795483706719,'{"snapshot":"4b825dc642cb6eb9a060e54bf8d69288fbee4904","type":"step-start"}');
INSERT INTO part VALUES('prt_20b2b2560001vEFwt50Y8YCtn3','msg_20b2b24b5001h2dtUpDr7VQCk7','ses_df4d4f503ffeGmCID4xKCtwOG3',1795483706720,1795483706726,'{"type":"text","text":"All done.","time":{"start":1795483706720,"end":1795483706726}}');
INSERT INTO part VALUES('prt_20b2b25df001USmQmyBfmD7CqY','msg_20b2b24b5001h2dtUpDr7VQCk7','ses_df4d4f503ffeGmCID4xKCtwOG3',1795483706847,1795483706848,'{"reason":"stop","snapshot":"4b825dc642cb6eb9a060e54bf8d69288fbee4904","type":"step-finish","tokens":{"total":1120,"input":100,"output":20,"reasoning":0,"cache":{"write":0,"read":1000}},"cost":0}');
CREATE TABLE `session` (
          `id` text PRIMARY KEY,
          `project_id` text NOT NULL,
          `workspace_id` text,
          `parent_id` text,
          `slug` text NOT NULL,
          `directory` text NOT NULL,
          `path` text,
          `title` text NOT NULL,
          `version` text NOT NULL,
          `share_url` text,
          `summary_additions` integer,
          `summary_deletions` integer,
          `summary_files` integer,
          `summary_diffs` text,
          `metadata` text,
          `cost` real DEFAULT 0 NOT NULL,
          `tokens_input` integer DEFAULT 0 NOT NULL,
          `tokens_output` integer DEFAULT 0 NOT NULL,
          `tokens_reasoning` integer DEFAULT 0 NOT NULL,
          `tokens_cache_read` integer DEFAULT 0 NOT NULL,
          `tokens_cache_write` integer DEFAULT 0 NOT NULL,
          `revert` text,
          `permission` text,
          `agent` text,
          `model` text,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `time_compacting` integer,
          `time_archived` integer,
          CONSTRAINT `fk_session_project_id_project_id_fk` FOREIGN KEY (`project_id`) REFERENCES `project`(`id`) ON DELETE CASCADE
        );
INSERT INTO session VALUES('ses_df4d61575ffejaOsa517gyasnl','3b70b8361886d31c50f02396e7d8b74e7c1118f2',NULL,NULL,'lucky-cactus','/work/project','','ok <summary>short summary</summary>','1.18.33',NULL,0,0,0,NULL,NULL,0.0,100,20,0,1000,0,NULL,'[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]','build','{"id":"m1","providerID":"mock","variant":"default"}',1795483626122,1795483649345,NULL,NULL);
INSERT INTO session VALUES('ses_df4d4f503ffeGmCID4xKCtwOG3','3b70b8361886d31c50f02396e7d8b74e7c1118f2',NULL,NULL,'cosmic-otter','/work/project','','ok <summary>short summary</summary>','1.18.33',NULL,0,0,0,NULL,NULL,0.0,200,40,0,2000,0,NULL,'[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]','build','{"id":"m1","providerID":"mock","variant":"default"}',1795483699965,1795483706898,NULL,NULL);
