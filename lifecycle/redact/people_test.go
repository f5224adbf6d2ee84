package redact_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/redact"
)

// people are forms in which credentials stand in what people have: configurations, dumps, what tools print. The secret
// stands at §.
var people = []struct{ name, kind, secret, text string }{
	// Lines of configurations.
	{"env", "password", "hunter2x", "DB_PASSWORD=§\n"},
	{"env, exported", "token", body(24), "export API_TOKEN=§\n"},
	{"env, quoted", "secret", body(24), "CLIENT_SECRET=\"§\"\n"},
	{"ini", "password", "hunter2x", "[db]\npassword = §\n"},
	{"properties", "password", "hunter2x", "spring.datasource.password=§\n"},
	{"yaml", "password", "hunter2x", "db:\n  password: §\n"},
	{"yaml, quoted", "password", "hunter2x", "db:\n  password: '§'\n"},
	{"yaml block", "password", "hunter2x", "db:\n  password: |\n    §\n  user: bob\n"},
	{"yaml block, chomped", "password", "hunter2x", "password: |-\n  §\nuser: bob\n"},
	{"yaml folded", "token", body(24), "token: >-\n  §\nuser: bob\n"},
	{"yaml folded, indented", "token", body(24), "a:\n- token: >2+ # from vault\n    §\n- b\n"},
	{"json", "password", "hunter2x", `{"password": "§"}`},
	{"yaml block of lines", "secret", body(40) + "\n    " + body(30), "a:\n  client_secret: |\n    §\n  user: bob\n"},
	{"kubernetes env", "token", body(24), "env:\n- name: API_TOKEN\n  value: §\n"},
	{"xml element, lines", "password", "hunter2x", "<password>\n  §\n</password>\n"},
	{"netrc, lines", "password", "hunter2x", "machine h\n  login u\n  password §\n"},
	{"toml", "api-key", body(24), "api_key = \"§\"\n"},
	{"xml element", "password", "hunter2x", "<password>§</password>"},
	{"xml attribute", "password", "hunter2x", `<add key="Password" value="§"/>`},
	{"hcl", "password", "hunter2x", "variable \"db_password\" {\n  password = \"§\"\n}\n"},
	{"dockerfile", "token", body(24), "ENV API_TOKEN §\n"},
	{"netrc", "password", "hunter2x", "machine example.com login bob password §\n"},
	{"pgpass", "password", "hunter2x", "db.example.com:5432:app:bob:§\n"},
	{"pgpass, any", "password", "hunter2x", "*:*:*:bob:§\n"},
	{"pgpass, local", "password", "correct!horse", "localhost:5432:*:postgres:§\n"},
	{"pgpass, echoed", "password", "correct!horse", "echo 'localhost:5432:app:bob:§' >> ~/.pgpass\n"},
	{"pgpass in a string", "password", "correct!horse", `{"content": "localhost:5432:app:bob:§\n"}` + "\n"},
	{"pgpass in a string of lines", "password", "correct!horse", `{"content": "# passwords\nlocalhost:5432:app:bob:§\nx"}` + "\n"},
	{"yaml block in a string", "password", "hunter2x", `{"content": "password: |\n  §\nother: x"}` + "\n"},
	{"yaml block in a string, last", "password", "hunter2x", `{"content": "db:\n  password: |\n    §"}` + "\n"},
	{"yaml block in a string in a string", "password", "hunter2x", `"{\"content\": \"password: |\\n  §\\n\"}"` + "\n"},
	{"yaml block, anchor", "password", "hunter2x", "password: &pw |\n  §\n"},
	{"yaml block, type", "password", "hunter2x", "password: !!str |\n  §\n"},
	{"yaml, anchor and type", "password", "hunter2x", "password: &pw !!str §\n"},
	{"row in a string", "password", "hunter2x", `{"text":"DB_HOST   db\nDB_PASSWORD   §\n"}` + "\n"},
	{"table in a string", "password", "hunter2x", `{"text":"| user | password |\n|---|---|\n| bob | § |\n"}` + "\n"},
	{"npmrc", "token", "12345678-1234-1234-1234-123456789012", "//registry.npmjs.org/:_authToken=§\n"},
	{"pypirc", "password", "hunter2x", "[pypi]\nusername: bob\npassword: §\n"},
	{"docker config", "auth", "Ym9iOmh1bnRlcjI=", `{"auths":{"r.io":{"auth":"§"}}}`},
	{"git credentials", "url-password", "hunter2", "https://bob:§@github.com\n"},
	{"my.cnf", "password", "hunter2x", "[client]\nuser=bob\npassword=§\n"},
	{"htpasswd", "password", "$2y$05$" + body(53), "bob:§\n"},
	{"htpasswd, apr1", "password", "$apr1$a1b2c3d4$" + body(22), "bob:§\n"},
	{"shadow", "password", "$6$rounds=5000$a1b2c3d4$" + body(86), "root:§:19000:0:99999:7:::\n"},
	{"kubernetes secret", "password", "aHVudGVyMg==", "kind: Secret\ndata:\n  password: §\n"},
	{"kubeconfig key", "secret", "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQo" + body(200), "users:\n- user:\n    client-key-data: §\n"},
	{"kubeconfig token", "token", body(40), "users:\n- user:\n    token: §\n"},
	{"aws credentials", "aws-secret-key", awsSecret, "[default]\naws_secret_access_key=§\n"},
	{"rclone", "password", "xYz_1-" + body(24), "[remote]\ntype = sftp\npass = §\n"},
	{"wireguard", "secret", body(43) + "=", "[Interface]\nPrivateKey = §\n"},
	{"wireguard shared", "secret", body(43) + "=", "[Peer]\nPresharedKey = §\n"},
	{"ansible inventory", "password", "hunter2x", "web1 ansible_user=bob ansible_password=§ ansible_port=22\n"},
	{"ansible become", "password", "hunter2x", "web1 ansible_become_pass=§\n"},
	{"wp-config", "password", "hunter2x", "define( 'DB_PASSWORD', '§' );\n"},
	{"wp-config salt", "api-key", "k|1x;" + body(32) + "#2!", "define('AUTH_KEY',         '§');\n"},
	{"rails", "secret", hexBody(128), "secret_key_base: §\n"},
	{"django", "secret", "django-insecure-" + body(30) + "!x", "SECRET_KEY = '§'\n"},
	{"fernet key", "fernet-key", body(43) + "=", "FERNET_KEY=§\n"},
	{"fernet key of airflow", "fernet-key", body(43) + "=", "AIRFLOW__CORE__FERNET_KEY: §\n"},
	{"fernet in code", "fernet-key", body(43) + "=", "f = Fernet(b'§')\n"},
	{"fernet token", "fernet-token", "gAAAAABm" + body(112), "x = b'§'\n"},

	{"fernet key of python", "fernet-key", fernetKey, ">>> Fernet.generate_key()\nb'§'\n"},
	{"fernet key in a variable", "fernet-key", fernetKey, "key = b'§'\n"},
	{"redis", "password", "hunter2x", "port 6379\nrequirepass §\n"},
	{"redis, master", "password", "hunter2x", "masterauth §\n"},
	{"redis prompt", "password", "hunter2x", "127.0.0.1:6379> AUTH §\nOK\n"},
	{"ecs", "password", "hunter2x", `{"environment":[{"name":"DB_PASSWORD","value":"§"}]}` + "\n"},
	{"tags", "token", body(24), `[{"Key": "API_TOKEN", "Value": "§"}]` + "\n"},
	{"toml, three quotes", "password", "hunter2x", "password = \"\"\"§\"\"\"\n"},
	{"toml, three single quotes", "password", "hunter2x", "password = '''§'''\n"},
	{"chpasswd", "password", "hunter2x", "RUN echo 'root:§' | chpasswd\n"},
	{"chpasswd, sudo", "password", "hunter", "echo bob:§ | sudo chpasswd\n"},
	{"prompt", "password", "hunter2x", "New password for bob: §\n"},
	{"plink", "password", "hunter2x", "plink -ssh -pw § bob@host\n"},
	{"slapd", "password", "hunter2x", "rootdn cn=admin\nrootpw §\n"},
	{"ldap.conf", "password", "hunter2x", "bindpw §\n"},

	// Keys in blocks.
	{"rsa key", "private-key", "-----BEGIN RSA PRIVATE KEY-----\n" + pemBody + "\n-----END RSA PRIVATE KEY-----", "§\n"},
	{"openssh key", "private-key", "-----BEGIN OPENSSH PRIVATE KEY-----\n" + pemBody + "\n-----END OPENSSH PRIVATE KEY-----", "§\n"},
	{"pgp key", "private-key", "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n" + pemBody + "\n=abcd\n-----END PGP PRIVATE KEY BLOCK-----", "§\n"},
	{"ssh2 key", "private-key", "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: \"x\"\n" + pemBody + "\n---- END SSH2 ENCRYPTED PRIVATE KEY ----", "§\n"},
	{"jwk", "secret", body(43), `{"kty":"EC","crv":"P-256","x":"a","y":"b","d":"§"}`},
	{"age key", "age-key", "AGE-SECRET-KEY-1" + strings.ToUpper(body(58)), "# public key: age1x\n§\n"},
	{"minisign", "private-key", "RWRTY0Iy" + body(204), "untrusted comment: minisign encrypted secret key\n§\n"},

	// What tools print.
	{"curl user", "password", "hunter2x", "$ curl -u bob:§ https://x\n"},
	{"curl header", "token", body(24), "$ curl -H 'PRIVATE-TOKEN: §' https://x\n"},
	{"curl header, x-api-key", "api-key", body(24), "$ curl -H 'X-Api-Key: §' https://x\n"},
	{"authorization", "authorization", body(24), "> Authorization: Bearer §\n"},
	{"authorization, basic", "authorization", "Ym9iOmh1bnRlcjI=", "Authorization: Basic §\n"},
	{"cookie", "cookie", body(24) + "; Path=/", "Set-Cookie: session=§\n"},
	{"flag", "password", "hunter2x", "deploy --password § --force\n"},
	{"flag, single dash", "password", "hunter2x", "java -password § -jar x\n"},
	{"sshpass", "password", "hunter", "sshpass -p § ssh bob@host\n"},
	{"sshpass, glued", "password", "hunter", "sshpass -p§ ssh bob@host\n"},
	{"sshpass, quoted", "password", "correct horse", "sshpass -p '§' scp a bob@host:\n"},
	{"sshpass, glued and long", "password", "yL4O#V1LRKPs0Vyw", "sshpass -p§ ssh bob@host\n"},
	{"SSHPASS", "password", "hunter2x", "SSHPASS=§ sshpass -e ssh bob@host\n"},
	{"letters", "password", "rnHdQdojNujXcR", "protocol=https\nusername=bob\npassword=§\n"},
	{"letters behind a flag", "password", "wPzGtRkXnBvLcD", "mysql --password=§ db\n"},
	{"letters in sql", "password", "uGTXMtLvAeNR", "CREATE USER x IDENTIFIED BY §;\n"},
	{"mysql", "password", "hunter2", "mysql -u root -p§ db\n"},
	{"mysqldump", "password", "hunter2", "mysqldump -uroot -p§ db > dump.sql\n"},
	{"PGPASSWORD", "password", "hunter2x", "PGPASSWORD=§ psql -h db\n"},
	{"redis-cli", "password", "hunter2x", "redis-cli -h db -a § ping\n"},
	{"mongo", "password", "hunter2x", "mongosh -u bob -p § db\n"},
	{"smbclient", "password", "hunter2x", "smbclient //h/share -U bob%§\n"},
	{"ldapsearch", "password", "hunter2x", "ldapsearch -x -D cn=admin -w § -b dc=x\n"},
	{"openssl", "password", "hunter2x", "openssl rsa -in k.pem -passin pass:§ -out o\n"},
	{"docker login", "password", "hunter2x", "docker login -u bob -p § r.io\n"},
	{"net use", "password", "hunter2x", "net use z: \\\\h\\s /user:bob §\n"},
	{"bot token in a url", "telegram-token", "123456789:" + "AA" + body(33), "GET https://api.telegram.org/bot§/getMe 200\n"},
	{"bot token in a url, escaped", "telegram-token", "123456789%3AAA" + body(33), "GET https://api.telegram.org/bot§/getMe 200\n"},
	{"slack webhook", "slack-webhook", "hooks.slack.com/services/" + "T0000AAAA/B0000BBBB/" + body(24), "POST https://§\n"},
	{"discord webhook", "discord-webhook", "discord.com/api/webhooks/" + "123456789012345678/" + body(68), "POST https://§\n"},
	{"discord webhook, version", "discord-webhook", "discord.com/api/v10/webhooks/" + "123456789012345678/" + body(68), "POST https://§\n"},
	{"discord bot, header", "authorization", discordBot, "Authorization: Bot §\n"},
	{"discord bot, code", "discord-token", discordBot, "client.run('§')\n"},
	{"discord bot, script", "discord-token", discordBot, "client.login(\"§\");\n"},
	{"ifttt", "ifttt-key", "/with/key/" + body(22), "https://maker.ifttt.com/trigger/x§\n"},
	{"url query", "token", body(24), "GET /x?access_token=§&a=b\n"},
	{"url query, key", "api-key", body(24), "GET https://x/y?a=b&api_key=§\n"},
	{"postgres url", "url-password", "hunter", "postgres://bob:§@db/x\n"},
	{"jdbc", "password", "hunter2x", "jdbc:postgresql://db/x?user=bob&password=§\n"},
	{"jdbc, oracle", "url-password", "hunter2x", "jdbc:oracle:thin:bob/§@db:1521:x\n"},
	{"ado", "password", "hunter2x", "Server=db;User Id=bob;Password=§;\n"},
	{"ado, pwd", "password", "hunter2x", "Driver={x};Uid=bob;Pwd=§;\n"},
	{"dsn of go", "url-password", "hunter2", "bob:§@tcp(db:3306)/x\n"},
	{"libpq", "password", "hunter2x", "host=db user=bob password=§ dbname=x\n"},
	{"sql password", "password", "hunter2x", "CREATE USER bob WITH PASSWORD '§';\n"},
	{"sql password, encrypted", "password", "hunter", "ALTER ROLE bob WITH LOGIN ENCRYPTED PASSWORD '§' VALID UNTIL 'infinity';\n"},
	{"sql identified by", "password", "hunter", "CREATE USER 'bob'@'%' IDENTIFIED BY '§';\n"},
	{"sql identified by, oracle", "password", "hunter", "CREATE USER bob IDENTIFIED BY \"§\";\n"},
	{"sql identified by, bare", "password", "hunter2x", "GRANT ALL ON *.* TO bob IDENTIFIED BY §;\n"},
	{"sql identified with", "password", "hunter", "CREATE USER bob IDENTIFIED WITH mysql_native_password BY '§';\n"},
	{"sql set password", "password", "hunter", "SET PASSWORD FOR 'bob'@'h' = PASSWORD('§');\n"},
	{"sql, small letters", "password", "hunter2x", "alter user bob password '§';\n"},
	{"sql, escapes", "password", "hunter", "ALTER ROLE app PASSWORD E'§';\n"},
	{"sql, dollars", "password", "hunter", "ALTER ROLE app PASSWORD $$§$$;\n"},
	{"sql, dollars with a word", "password", "hunter", "ALTER ROLE app PASSWORD $pw$§$pw$;\n"},
	{"sql, next line", "password", "hunter", "CREATE USER bob WITH LOGIN PASSWORD\n  '§';\n"},
	{"sql identified by, next line", "password", "hunter", "CREATE USER bob IDENTIFIED BY\n  '§';\n"},
	{"sql set password for", "password", "hunter", "SET PASSWORD FOR 'bob'@'localhost' = '§';\n"},
	{"sql crypt", "password", "hunter2x", "UPDATE users SET password = crypt('§', gen_salt('bf'));\n"},
	{"sql insert", "password", "hunter2x", "INSERT INTO users (name, password) VALUES ('bob', '§');\n"},
	{"sql insert, lines", "password", "hunter2x", "insert into app.users (`id`, `password`, `at`)\nvalues\n  (1, '§', now()),\n  (2, null, now());\n"},
	{"sql insert, brackets and quotes", "token", body(24), "INSERT INTO t (name, api_token) VALUES (concat('a)', 'it''s, x'), '§');\n"},
	{"csv", "password", "hunter2x", "name,password,role\nbob,§,admin\nal,x,user\n"},
	{"csv, quoted", "token", body(24), "\"name\",\"access_token\"\n\"bob, x\",\"§\"\n"},
	{"csv of aws", "aws-secret-key", awsSecret, "User name,Access key ID,Secret access key\nbob,x,§\n"},
	{"csv in a string", "password", "hunter2x", `{"text":"name,password,role\nbob,§,admin\n"}` + "\n"},
	{"table, code", "password", "hunter2x", "| Variable | Value |\n|---|---|\n| `DB_PASSWORD` | `§` |\n"},
	{"table, code alone", "password", "hunter2x", "| `DB_PASSWORD` | `§` |\n"},
	{"table, numbered", "password", "hunter2x", "| 1 | DB_PASSWORD | § | prod |\n"},
	{"table of boxes, column", "password", "hunter2x", "┌──────┬───────────────┐\n│ name │ password      │\n├──────┼───────────────┤\n│ bob  │ § │\n└──────┴───────────────┘\n"},
	{"table of double boxes, column", "token", body(24), "║ name ║ api_token ║\n╠══════╬═══════════╣\n║ bob  ║ § ║\n"},
	{"table", "password", "hunter2x", "NAME          VALUE\nDB_HOST       db\nDB_PASSWORD   §\n"},
	{"table with bars", "password", "hunter2x", "| DB_HOST     | db       |\n| DB_PASSWORD | § |\n"},
	{"table of psql", "password", "hunter2x", " name        | setting\n-------------+---------\n db_password | §\n"},
	{"table of mysql", "token", body(24), "+-----------+------+\n| api_token | § |\n+-----------+------+\n"},
	{"table with a column", "password", "hunter2x", "| user | password | age |\n|------|----------|-----|\n| bob  | § | 7   |\n"},
	{"table of boxes", "token", body(24), "│ API_TOKEN │ § │\n"},
	{"kubectl describe", "password", "hunter2x", "    Environment:\n      DB_HOST:      db\n      DB_PASSWORD:  §\n"},
	{"printenv", "secret", body(24), "HOME=/root\nAWS_SESSION_SECRET=§\n"},
	{"heroku config", "token", body(24), "=== app Config Vars\nAPI_TOKEN:    §\n"},
	{"terraform output", "password", "hunter2x", "db_password = \"§\"\n"},
	{"powershell", "password", "hunter2x", "$password = ConvertTo-SecureString \"§\" -AsPlainText -Force\n"},
	{"powershell table", "password", "hunter2x", "Name                           Value\n----                           -----\nDB_PASSWORD                    §\n"},
	{"kubeadm token list", "token", "a1b2c3.d4e5f6g7h8i9j0k1", "TOKEN                     TTL   EXPIRES\n§   23h   2026-01-01\n"},
	{"docker table", "password", "hunter2x", "NAME   PASSWORD    AGE\nbob    §    7d\nx      y           8d\n"},
	{"table, last column", "password", "hunter2x", "USER   PASSWORD\nbob    §\n"},
	{"windows set", "token", body(24), "set API_TOKEN=§\r\n"},
	{"setx", "token", body(24), "setx API_TOKEN §\r\n"},
	{"go struct", "password", "hunter2x", "Config{Host:db Password:§ Port:5432}\n"},
	{"python dict", "password", "hunter2x", "{'user': 'bob', 'password': '§'}\n"},
	{"ruby hash", "password", "hunter2x", "{:user=>\"bob\", :password=>\"§\"}\n"},
	{"php array", "password", "hunter2x", "'password' => '§',\n"},
	{"java", "password", "hunter2x", "ds.setPassword(\"§\");\n"},
	{"http form", "password", "hunter2x", "username=bob&password=§&login=1\n"},
	{"multipart", "password", "hunter2x", "Content-Disposition: form-data; name=\"password\"\r\n\r\n§\r\n--x\r\n"},

	// PuTTY.
	{"putty key", "private-key", "Private-Lines: 2\n" + pemBody + "\n" + pemBody[:40] + "=\nPrivate-MAC: " + hexBody(64),
		"PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: x\nPublic-Lines: 1\nAAAAC3NzaC1lZDI1NTE5AAAAIQ==\n§\n"},
}

// A key of Fernet, and what a bot of Discord logs in with.
var (
	fernetKey  = "8u4ncJ6UQAnFHqYjFL8m" + "cze2IMX6G88U5C-YA5ka9Fc="
	discordBot = "MTk4NjIyNDgzNDcxOTI1MjQ4" + ".S6a9Gp.zrhBYVc5XDMgG65TPjkOYrDhKPB"
)

func TestFormsThatPeopleHave(t *testing.T) {
	t.Parallel()
	r := &redact.Redactor{}
	for _, c := range people {
		got, n := r.String(strings.Replace(c.text, "§", c.secret, 1))
		if strings.Contains(got, c.secret) || n != 1 {
			t.Errorf("%s: %d: %q", c.name, n, got)
			continue
		}
		want := strings.Replace(c.text, "§", "[redacted:"+c.kind+"]", 1)
		if got != want {
			t.Errorf("%s:\n  %q\n  %q", c.name, got, want)
		}
		again, n := r.String(got)
		require.Equal(t, got, again)
		require.Zero(t, n)
	}
}

// TestOpen gives each form line by line, as an output comes: what is not open is hidden at once, and no secret is left.
func TestOpen(t *testing.T) {
	t.Parallel()
	r := &redact.Redactor{}
	for _, c := range people {
		out := byLine(r, "before\n"+strings.Replace(c.text, "§", c.secret, 1)+"\nafter\n")
		require.NotContains(t, out, c.secret, c.name)
		require.Equal(t, strings.Replace("before\n"+c.text+"\nafter\n", "§", "[redacted:"+c.kind+"]", 1), out, c.name)
	}
	for _, text := range []string{"", "\n", "a\n", "NAME   AGE\nx      7d\n", "a: |\n  b\n", "| a | b |\n|---|---|\n", "password: hunter2x\n", "the password:\n", "-----BEGIN CERTIFICATE-----\n", "token: |\n  x\ny\n"} {
		require.Equal(t, -1, redact.Open([]byte(text)), text)
	}
}
