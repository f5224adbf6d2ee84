// Package redact hides credentials in text that is about to be stored: what an
// agent was told, what it answered, what a command printed. [New] makes a
// [Redactor]; [Redactor.Bytes] and [Redactor.String] take text as it is,
// [Redactor.JSON] takes one JSON value and keeps it valid. A hidden piece
// becomes "[redacted:KIND]", so that a reader sees what kind of thing stood
// there and nothing of it.
//
// Some families of rules find credentials. A token rule knows the prefix that a
// vendor gives its keys ("ghp_", "sk-ant-", "AKIA"); it needs no word boundary
// before it, because logs glue keys to escapes and names. A context rule looks
// at what stands around a value: a URL's userinfo, "Authorization:", a name that
// ends in password, secret, token or api key. There the value must also look
// random, so that "token: string" or "password = getenv()" stay readable, and
// without such a name nothing is hidden however random it looks: hashes, UUIDs
// and commit IDs in prose stay. A phrase of a language, a flag of a command and a line of a
// file of passwords say that the next word is one, and a table has it beside its name or below
// a header. [Open] says that a text ends before such a thing does.
//
// All matches are looked for in the same text and then united, so that no rule depends
// on what another left behind. What they look at is a view of the text: control
// sequences of a terminal are left out, UTF-16 is read, and a marker that is already
// there is one byte which no token has in it. Then they look again, with what they found
// hidden, until they find nothing: redacting twice changes nothing, and a forged marker
// saves nothing that stands around it. A caller's pattern looks at the text as it is, and
// a match that overlaps or touches a marker which is already there is left alone.
//
// # Speed
//
// The built-in rules are no regular expressions: Go's engine skips ahead by one
// literal prefix, and these have two hundred. One pass looks three bytes in a row up in a
// table, at eight places together, and compares literal prefixes where one may begin; every check behind
// one has a fixed bound or is not repeated over the same bytes, so the time is
// linear. Patterns of the caller's own are RE2, linear too, and cost one more
// pass each.
//
// # Concurrency
//
// A Redactor is immutable and may be shared by any number of goroutines. A nil
// Redactor is valid: it hides nothing and counts nothing.
//
// # Caveats
//
// This is a seat belt and no promise: a password that is a plain word, a secret
// without prefix and name, a key that is split over two calls or encoded again
// (base64, gzip) is not seen. testdata/gitleaks.txt compares the rules with another
// tool's. The result is at most 9 times as long as the
// input plus 32 bytes; in practice it is shorter.
package redact
