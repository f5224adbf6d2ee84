package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

func FuzzIndent(f *testing.F) {
	for _, s := range []string{`{}`, `[]`, `{"a":[1,{"b":"c\\\"d,{["},[],{}],"":null}`, `"x"`, `-1.5e3`, `[[[0,0],"\u00e9"]]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var compact, want, have bytes.Buffer
		if json.Compact(&compact, data) != nil {
			t.Skip()
		}
		require.NoError(t, json.Indent(&want, compact.Bytes(), "", "  "))
		require.NoError(t, strictjson.Indent(&have, compact.Bytes()))
		require.Equal(t, want.String()+"\n", have.String())
	})
}
