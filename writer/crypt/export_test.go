package crypt

import "filippo.io/age"

// Weaken makes a passphrase cost nothing, for tests.
func Weaken(k *Key) *Key {
	k.recipients[0].(*age.ScryptRecipient).SetWorkFactor(1)
	return k
}
