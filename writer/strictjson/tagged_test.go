package strictjson_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

type part struct {
	Name string `json:"name"`
}

type tagged struct {
	part
	At       time.Time         `json:"at"`
	Count    int               `json:"count,omitempty"`
	Cost     float64           `json:"cost,omitempty"`
	Took     time.Duration     `json:"took"`
	Done     bool              `json:"done,omitempty"`
	List     []string          `json:"list"`
	Parts    []part            `json:"parts,omitempty"`
	Counters map[string]uint64 `json:"counters"`
	Until    *time.Time        `json:"until,omitempty"`
	Value    strictjson.Value  `json:"value,omitempty"`
	Any      any               `json:"any"`
}

// TestWritten pins the bytes: checksums and files of earlier versions rest on them.
func TestWritten(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 2, 14, 1, 2, 3, 450_000_000, time.UTC)
	for want, v := range map[string]any{
		`{"name":"","at":"0001-01-01T00:00:00Z","took":0,"list":null,"counters":null,"any":null}`: tagged{},
		`{"name":"\u003c\u0026\u003e\u2028\t\u0001é","at":"2026-02-14T01:02:03.45Z","count":-1,"cost":1e-7,"took":1000,"done":true,"list":[],"parts":[{"name":"a"}],` +
			`"counters":{"a":2,"b":18446744073709551615},"until":"2026-02-14T01:02:03.45Z","value":{"\u0041":[1.50,"\/\u003c"],"\u0041":1},"any":{"x":100000000000000000000}}`: tagged{
			part: part{"<&>\u2028\t\x01é"}, At: at, Count: -1, Cost: 1e-7, Took: 1000, Done: true, List: []string{}, Parts: []part{{"a"}},
			Counters: map[string]uint64{"b": math.MaxUint64, "a": 2}, Until: &at, Value: strictjson.Value(`{ "\u0041": [1.50, "\/<"], "\u0041": 1 }`), Any: map[string]any{"x": 1e20}},
		`"` + "a\ufffdb" + `"`: "a\xffb",
		`[null,""]`:            []strictjson.Value{nil, strictjson.Value(` "" `)},
	} {
		data, err := strictjson.Marshal(v)
		require.NoError(t, err)
		require.Equal(t, want, string(data))
		shown, err := strictjson.MarshalShown(v)
		require.NoError(t, err)
		require.Equal(t, strings.NewReplacer(`\u003c\u0026\u003e`, "<&>", `\u003c`, "<").Replace(want), string(shown))
	}
	data, err := strictjson.MarshalLines(map[string]any{"b": []int{1}, "a": struct{}{}, "c": []int{}})
	require.NoError(t, err)
	require.Equal(t, "{\n  \"a\": {},\n  \"b\": [\n    1\n  ],\n  \"c\": []\n}", string(data))
	for _, v := range []any{math.NaN(), time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), strictjson.Value("{"), strictjson.Value("1 2"), strictjson.Value{}} {
		_, err := strictjson.Marshal(v)
		require.Error(t, err, "%v", v)
	}
}

func TestUnmarshalRefuses(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return `{"any":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + "}" }
	for data, want := range map[string]string{
		"":                                 "byte 0: the text ends before the value does",
		`{"name":"a"`:                      "byte 11: the text ends before the value does",
		`{"name":"a"} x`:                   "byte 13: invalid character 'x' after top-level value",
		`{"name":"a","name":"b"}`:          `byte 12: the key "name" stands twice`,
		`{"any":{"a":1,"\u0061":1}}`:       `byte 14: the key "a" stands twice`,
		`{"new":{"a":1,"a":1}}`:            `byte 14: the key "a" stands twice`,
		`{"value":{"a":1,"a":1}}`:          `byte 16: the key "a" stands twice`,
		"{\"name\":\"\xff\"}":              "byte 9: invalid UTF-8",
		`{"name":"\ud800"}`:                "byte 9: invalid surrogate pair",
		"{\n  \"name\": 7\n}":              "line 2, column 11: name: want a text",
		"{\n  \"parts\": [{\"name\": {}}]": "line 2, column 22: parts/0/name: want a text",
		"{\n  \"name\": \"a\",\n}":         "line 2, column 14: invalid character ','",
		`{"count":1.5}`:                    "byte 9: count: want a whole number within its bounds",
		`{"counters":{"a":-1}}`:            "byte 17: counters/a: want a whole number within its bounds",
		`{"cost":"1"}`:                     "byte 8: cost: want a number",
		`{"done":0}`:                       "byte 8: done: want true or false",
		`{"list":{}}`:                      "byte 8: list: want an array",
		`{"counters":[]}`:                  "byte 12: counters: want an object",
		`{"at":5}`:                         "byte 6: at: want a time",
		`{"at":"noon"}`:                    `at: parsing time "noon"`,
		`[]`:                               "byte 0: want an object",
		deep(strictjson.MaxDepth + 1):      "byte 262: more than 256 levels deep",
		strings.Repeat("[", 100_000):       "byte 256: more than 256 levels deep",
	} {
		require.ErrorContains(t, strictjson.Unmarshal([]byte(data), new(tagged)), want, data[:min(len(data), 100)])
	}
	var v tagged
	require.NoError(t, strictjson.Unmarshal([]byte(deep(strictjson.MaxDepth)), &v))
	require.NoError(t, strictjson.Unmarshal([]byte(`{"NAME":1,"count":2,"value": {"a" : 1},"new":[{"]":"}"}]}`+"\n"), &v))
	require.Equal(t, 2, v.Count)
	require.Empty(t, v.Name, "names are compared with their case")
	require.Equal(t, `{"a" : 1}`, string(v.Value))
}

func TestForeign(t *testing.T) {
	t.Parallel()
	var v tagged
	require.NoError(t, strictjson.UnmarshalForeign([]byte("{\"name\":\"a\",\"name\":\"b\xff\",\"list\":[\"\\ud800\"],\"new\":1}"), &v))
	require.Equal(t, "b\ufffd", v.Name)
	require.Equal(t, []string{"\ufffd"}, v.List)
	v = tagged{}
	require.ErrorIs(t, strictjson.UnmarshalForeign([]byte(`{"name":7,"count":"x","done":true,"at":[],"parts":[{"name":1},{"name":"c"}]}`), &v), strictjson.ErrMember)
	require.Equal(t, tagged{Done: true, Parts: []part{{}, {"c"}}}, v, "the others are read")
	for _, data := range []string{"", "{", `{"name":"a"} x`, `["a"]`, `7`, strings.Repeat("[", 10_001)} {
		err := strictjson.UnmarshalForeign([]byte(data), &v)
		require.Error(t, err)
		require.NotErrorIs(t, err, strictjson.ErrMember)
	}
}

func ExampleNextForeign() {
	rest := []byte(` {"a":1,"a":2}  [3] tail`)
	for {
		v, behind, err := strictjson.NextForeign(rest)
		if err != nil {
			fmt.Println(err)
			break
		}
		fmt.Printf("%s\n", v)
		rest = behind
	}
	fmt.Printf("%q\n", rest)
	// Output:
	// {"a":1,"a":2}
	// [3]
	// byte 2: invalid character 'a' in literal true (expecting 'r')
	// " tail"
}

// FuzzUnmarshal holds Unmarshal against encoding/json: what it accepts has the same meaning
// there, and is written as there.
func FuzzUnmarshal(f *testing.F) {
	for _, s := range []string{
		`{"name":"a","at":"2026-02-14T01:02:03.45Z","count":1,"took":5,"list":["<"],"parts":[{"name":""}],"counters":{"b":1,"a":2},"until":null,"value":{"a":1},"any":[1e2,{}]}`,
		`{"name":"a","name":"b"}`, "{\"name\":\"\xff\"}", `{"count":1e2}`, `null`, `{"value":"\u003c\/"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var here, there tagged
		if strictjson.Unmarshal(data, &here) != nil {
			return
		}
		var any1, any2 any
		require.NoError(t, strictjson.Unmarshal(data, &any1))
		require.NoError(t, json.Unmarshal(data, &any2))
		require.Equal(t, any2, any1)
		for _, v := range []any{here, any1} {
			want, errWant := json.Marshal(v)
			have, err := strictjson.Marshal(v)
			require.Equal(t, errWant == nil, err == nil, "%v, %v", errWant, err)
			require.Equal(t, string(want), string(have))
		}
		// A name in another case is another name here alone.
		if members, ok := any1.(map[string]any); ok {
			for name := range members {
				if !slices.Contains([]string{"name", "at", "count", "cost", "took", "done", "list", "parts", "counters", "until", "value", "any"}, name) {
					return
				}
			}
		}
		require.NoError(t, json.Unmarshal(data, &there))
		require.Equal(t, there, here)
	})
}
