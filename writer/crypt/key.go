package crypt

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"filippo.io/age"
	"filippo.io/age/agessh"

	"github.com/lopen-dev/lopen/writer"
)

const (
	// maxText bounds the text of a key, in bytes.
	maxText = 64 << 10
	// maxKeys bounds the keys of a text: each takes some time for each file.
	maxKeys = 64
	// workFactor is the logarithm of scrypt's N, for writing and at most for reading: a
	// passphrase takes 256 MiB. The age command takes the same.
	workFactor = 18
)

// A Key encrypts, decrypts, or both. It is immutable.
type Key struct {
	recipients []age.Recipient // what is written can be read with any of them
	identities []age.Identity
}

// NewKey returns a new key and its text, which ParseKey takes.
func NewKey() (*Key, []byte, error) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, nil, fmt.Errorf("make key: %w", err)
	}
	k := &Key{recipients: []age.Recipient{id.Recipient()}, identities: []age.Identity{id}}
	return k, []byte(id.String() + "\n"), nil
}

// ParseKey parses the text of a key. It has one of these:
//
//   - one or more keys, one a line: public ones (age1..., ssh-ed25519, ssh-rsa) and private
//     ones (AGE-SECRET-KEY-...); empty lines and lines that begin with # are skipped;
//   - one private key of SSH without a passphrase, as ssh-keygen writes it;
//   - one line that looks like none of these, which is a passphrase.
//
// The error has class invalid. It never contains what the text has.
func ParseKey(text []byte) (*Key, error) {
	k, err := parse(text)
	if err == nil && len(k.recipients) > maxKeys {
		err = fmt.Errorf("it has more than %d keys", maxKeys)
	}
	if err != nil {
		return nil, &writer.Error{Op: "read", Path: "key", Class: writer.ClassInvalid, Err: err}
	}
	return k, nil
}

// CanDecrypt reports whether the key is more than public keys.
func (k *Key) CanDecrypt() bool { return len(k.identities) > 0 }

func parse(text []byte) (*Key, error) {
	switch {
	case len(text) > maxText:
		return nil, fmt.Errorf("it has more than %d bytes", maxText)
	case !utf8.Valid(text):
		return nil, errors.New("it is not UTF-8")
	case armored(text):
		return nil, errEncryptedKey
	case bytes.HasPrefix(text, []byte("-----BEGIN ")):
		return parseSSH(text)
	}
	k := &Key{}
	var passphrase string
	lines, keys := 0, 0
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		lines++
		switch known, err := k.add(strings.TrimSpace(line)); {
		case err != nil:
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		case known:
			keys++
		default:
			passphrase = line
		}
	}
	switch {
	case lines == 0:
		return nil, errors.New("it is empty")
	case keys == lines:
		return k, nil
	case lines > 1:
		return nil, errors.New("it has several lines, and not all of them are keys of age or SSH; a passphrase is one line")
	}
	return ofPassphrase(passphrase)
}

var errEncryptedKey = errors.New("the key is encrypted itself: decrypt it with age first")

// add adds the key of a line. known says that the line looks like one.
func (k *Key) add(line string) (known bool, err error) {
	lower := strings.ToLower(line)
	switch {
	case strings.HasPrefix(lower, "age-secret-key-"):
		ids, err := age.ParseIdentities(strings.NewReader(line))
		if err != nil {
			return true, errors.New("the private key is malformed")
		}
		for _, id := range ids {
			k.identities = append(k.identities, id)
			k.recipients = append(k.recipients, recipientOf(id))
		}
	case strings.HasPrefix(lower, "age1"):
		rs, err := age.ParseRecipients(strings.NewReader(line))
		if err != nil {
			return true, errors.New("the public key is malformed, or of a plugin; keys of plugins are not supported")
		}
		k.recipients = append(k.recipients, rs...)
	case strings.HasPrefix(lower, "ssh-"):
		r, err := agessh.ParseRecipient(line)
		if err != nil {
			return true, errors.New("the public key of SSH is malformed, too short, or neither ssh-ed25519 nor ssh-rsa")
		}
		k.recipients = append(k.recipients, r)
	case strings.HasPrefix(lower, "age-plugin-"):
		return true, errors.New("keys of plugins are not supported")
	case strings.HasPrefix(lower, "age-encryption.org/"):
		return true, errEncryptedKey
	default:
		return false, nil
	}
	return true, nil
}

func recipientOf(id age.Identity) age.Recipient {
	switch id := id.(type) {
	case *age.X25519Identity:
		return id.Recipient()
	case *age.HybridIdentity:
		return id.Recipient()
	case *agessh.Ed25519Identity:
		return id.Recipient()
	case *agessh.RSAIdentity:
		return id.Recipient()
	}
	panic("an identity of another kind than is parsed")
}

func parseSSH(text []byte) (*Key, error) {
	id, err := agessh.ParseIdentity(text)
	if err != nil {
		return nil, errors.New("the private key of SSH is malformed, has a passphrase, or is neither ed25519 nor rsa")
	}
	return &Key{recipients: []age.Recipient{recipientOf(id)}, identities: []age.Identity{id}}, nil
}

func ofPassphrase(p string) (*Key, error) {
	if strings.ContainsFunc(p, unicode.IsControl) {
		return nil, errors.New("the passphrase has control characters")
	}
	r, err := age.NewScryptRecipient(p)
	if err != nil {
		return nil, err
	}
	id, err := age.NewScryptIdentity(p)
	if err != nil {
		return nil, err
	}
	r.SetWorkFactor(workFactor)
	id.SetMaxWorkFactor(workFactor)
	return &Key{recipients: []age.Recipient{r}, identities: []age.Identity{id}}, nil
}
