package strictjson_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

// whole reads data as one value.
func whole(data string) (string, error) {
	r := strictjson.NewReader([]byte(data))
	v := r.Raw()
	r.End()
	return v, r.Err()
}

func TestRefused(t *testing.T) {
	t.Parallel()
	manyKeys := func(n int, last string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"k%d":0,`, i)
		}
		return "{" + b.String() + last + "}"
	}
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	_, err := whole(nested(strictjson.MaxRaw))
	require.NoError(t, err)
	_, err = whole(manyKeys(1000, `"k":0`))
	require.NoError(t, err)
	for data, want := range map[string]string{
		"":                                       "byte 0: want a number, have the end",
		"\x00":                                   "byte 0: want a number",
		"1 \x00":                                 "byte 2: something behind the value",
		"1 2":                                    "byte 2: something behind the value",
		`{"a":1,"a":2}`:                          `byte 7: the key "a" stands twice`,
		`{"a":1, "\u0061":2}`:                    `byte 8: the key "a" stands twice`,
		`{"":1,"":2}`:                            `the key "" stands twice`,
		`{"b":{"a":1},"c":1,"b":2}`:              `byte 19: the key "b" stands twice`,
		manyKeys(33, `"k0":0`):                   `the key "k0" stands twice`,
		manyKeys(1000, `"k999":0`):               `the key "k999" stands twice`,
		`{"a":1,}`:                               `byte 7: want '"'`,
		`{,"a":1}`:                               `byte 1: want '"'`,
		`{"a" 1}`:                                `byte 5: want ':'`,
		`{"a":1`:                                 "byte 6: want ',', have the end",
		`{1:1}`:                                  `byte 1: want '"'`,
		`[1,]`:                                   "byte 3: want a number",
		`[,1]`:                                   "byte 1: want a number",
		`[1 2]`:                                  "byte 3: want ','",
		`[`:                                      "byte 1: want a number, have the end",
		nested(strictjson.MaxRaw + 1):            "byte 64: a value of more than 64 levels",
		strings.Repeat("[", 100_000):             "a value of more than 64 levels",
		strings.Repeat(`{"a":`, 100_000):         "a value of more than 64 levels",
		`"a`:                                     "byte 2: a string without an end",
		`"a\`:                                    "byte 2: an escape that stands for nothing",
		`"a\x"`:                                  "byte 2: an escape that stands for nothing",
		`"\u12"`:                                 "byte 1: an escape that stands for nothing",
		`"\u+123"`:                               "byte 1: an escape that stands for nothing",
		`"\ud800"`:                               "byte 1: an escape that stands for nothing",
		`"\ud800\u0041"`:                         "byte 1: an escape that stands for nothing",
		`"\udc00\ud800"`:                         "byte 1: an escape that stands for nothing",
		"\"abcdefgh\n\"":                         "byte 9: a control character in a string",
		"\"ab\ncdefghijklm\"":                    "byte 3: a control character in a string",
		"\"\\nabcdefgh\x1f\"":                    "byte 11: a control character in a string",
		"\"ab\xff\"":                             "byte 3: a byte that is not UTF-8",
		"\"\xed\xa0\x80\"":                       "byte 1: a byte that is not UTF-8",
		"01":                                     "byte 0: want a number",
		"-":                                      "byte 0: want a number",
		"+1":                                     "byte 0: want a number",
		".5":                                     "byte 0: want a number",
		"1.":                                     "byte 0: want a number",
		"1e":                                     "byte 0: want a number",
		"1e+":                                    "byte 0: want a number",
		"1\x0e5":                                 "byte 1: something behind",
		"NaN":                                    "byte 0: want a number",
		"True":                                   "byte 0: want a number",
		"tru":                                    "byte 0: want true",
		"falsy":                                  "byte 0: want false",
		"nul":                                    "byte 0: want null",
		"nullx":                                  "byte 4: something behind",
		"\ufeff1":                                "byte 0: want a number",
		`{"a":1}` + strings.Repeat(" ", 9) + "]": "byte 16: something behind",
	} {
		_, err := whole(data)
		require.ErrorContains(t, err, want, "%.80q", data)
	}
}

func TestDepthOfACallersOwn(t *testing.T) {
	t.Parallel()
	read := func(levels int) error {
		r := strictjson.NewReader([]byte(strings.Repeat("[", levels) + strings.Repeat("]", levels)))
		var descend func()
		descend = func() { r.Array(descend) }
		r.Array(descend)
		r.End()
		return r.Err()
	}
	require.NoError(t, read(strictjson.MaxDepth))
	_, err := whole("[" + strings.Repeat(`{"a":[]},`, 2*strictjson.MaxDepth) + "{}]")
	require.NoError(t, err, "what is beside one another is not deep")
	require.ErrorContains(t, read(strictjson.MaxDepth+1), "more than 256 levels deep")
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]any{
		"0": int64(0), "-0": int64(0), "9223372036854775807": int64(math.MaxInt64), "-9223372036854775808": int64(math.MinInt64),
		"9223372036854775808": nil, "1.0": nil, "1e2": nil, `"1"`: nil, "": nil,
	} {
		r := strictjson.NewReader([]byte(data))
		if v := r.Int(); want == nil {
			require.Error(t, r.Err(), data)
		} else {
			require.NoError(t, r.Err(), data)
			require.Equal(t, want, v)
		}
	}
	r := strictjson.NewReader([]byte("18446744073709551615 -1"))
	require.EqualValues(t, uint64(math.MaxUint64), r.Uint())
	require.Zero(t, r.Uint())
	require.ErrorContains(t, r.Err(), "byte 21: want a whole number from 0 on, have -1")
	r = strictjson.NewReader([]byte("-1.5e3 1e999"))
	require.InDelta(t, -1500, r.Float(), 0)
	require.Zero(t, r.Float())
	require.ErrorContains(t, r.Err(), "byte 7: want a number of 64 bits, have 1e999")
	r = strictjson.NewReader([]byte("true false 1"))
	require.True(t, r.Bool())
	require.False(t, r.Bool())
	require.NoError(t, r.Err())
	require.False(t, r.Bool())
	require.Error(t, r.Err())
}

func TestTheFirstErrorStays(t *testing.T) {
	t.Parallel()
	r := strictjson.NewReader([]byte(`[1, 2]`))
	r.Array(func() {
		r.Int()
		r.Fail("%d is not wanted here", 1)
		r.Fail("nor is that")
	})
	require.EqualError(t, r.Err(), "byte 2: 1 is not wanted here")
	require.Zero(t, r.Int())
	require.Empty(t, r.Text())
	require.Empty(t, r.Raw())
	require.False(t, r.Bool())
	r.Object(func(string) { t.Error("an object is read after an error") })
	r.End()
	require.EqualError(t, r.Err(), "byte 2: 1 is not wanted here")
}

func TestPrefixCutInACharacter(t *testing.T) {
	t.Parallel()
	text := `{"a":"` + "\U0001f600" + `"}`
	for cut := range text {
		r := strictjson.NewPrefixReader([]byte(text[:cut]))
		r.Raw()
		require.Error(t, r.Err())
		require.NotContains(t, r.Err().Error(), "UTF-8")
	}
	for cut := len(`{"a":"`) + 1; cut < len(`{"a":"`)+4; cut++ {
		r := strictjson.NewPrefixReader([]byte(text[:cut]))
		r.Raw()
		require.ErrorContains(t, r.Err(), "a string without an end")
	}
	r := strictjson.NewPrefixReader([]byte("{\"a\":\"\xff\"}"))
	require.ErrorContains(t, r.Err(), "byte 6: a byte that is not UTF-8")
}

func TestStringsOfEveryLength(t *testing.T) {
	t.Parallel()
	for n := range 40 {
		for _, end := range []string{"", `"`, `\`, "\n", "é", "\x7f", "😀"} {
			s := strings.Repeat("x", n) + end + strings.Repeat("y", n%11)
			data, err := json.Marshal(s)
			require.NoError(t, err)
			r := strictjson.NewReader(data)
			require.Equal(t, s, r.Text())
			r.End()
			require.NoError(t, r.Err())
		}
	}
}

// members reads an object, of which some keys are known, and returns its keys.
func members(data string, known []string) (keys []string, err error) {
	r := strictjson.NewReader([]byte(data))
	r.ObjectOf(known, func(_ int, key string) {
		keys = append(keys, key)
		r.Raw()
	})
	r.End()
	return keys, r.Err()
}

func TestKnownKeys(t *testing.T) {
	t.Parallel()
	known := []string{"a", "bc", "d", "e"}
	for data, want := range map[string]string{
		`{"a":1,"bc":2,"d":3,"e":4}`:        "",
		`{ "a" :1, "e" :4 }`:                "",
		`{"d":3,"a":1,"bc":{"a":1}}`:        "",
		`{"a":1,"other":0,"bc":2}`:          "",
		`{"a":1,"a":2}`:                     `byte 7: the key "a" stands twice`,
		`{"a":1,"\u0061":2}`:                `byte 7: the key "a" stands twice`,
		`{"a":1,"bc":2,"a":3}`:              `byte 14: the key "a" stands twice`,
		`{"bc":1,"a":2,"bc":3}`:             `byte 14: the key "bc" stands twice`,
		`{"other":1,"a":2,"d":3,"d":4}`:     `byte 23: the key "d" stands twice`,
		`{"a":1,"other":1,"d":3,"other":4}`: `byte 23: the key "other" stands twice`,
		`{"a" 1}`:                           `byte 5: want ':'`,
		`{"a`:                               `byte 3: a string without an end`,
		`{"a"`:                              `byte 4: want ':', have the end`,
	} {
		keys, err := members(data, known)
		if want == "" {
			require.NoError(t, err, data)
		} else {
			require.ErrorContains(t, err, want, data)
		}
		plain, errPlain := members(data, nil)
		require.Equal(t, plain, keys, data)
		require.Equal(t, errPlain, err, data)
	}
}

// FuzzRaw holds the reader against encoding/json: what it accepts is JSON, and a
// string that it reads is the same.
func FuzzRaw(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5e3,true,null,"\u00e9\ud83d\ude00\n"]}`, `"abcdefgh\"ijk"`, `[[],{}]`, " 1 ", "\"\xff\"", `{"a":1,"a":1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		keys, errKeys := members(string(data), []string{"a", "b", "ab"})
		same, errSame := members(string(data), nil)
		require.Equal(t, same, keys)
		require.Equal(t, errSame, errKeys)
		var plain bytes.Buffer
		wrong := json.Compact(&plain, data)
		compact, err := strictjson.AppendCompact([]byte("["), data)
		require.Equal(t, wrong == nil, err == nil, "%v: %q", err, data)
		require.Equal(t, "["+plain.String(), string(compact))
		v, err := whole(string(data))
		if err != nil {
			return
		}
		require.True(t, json.Valid(data), "accepted: %q", data)
		require.Equal(t, strings.Trim(string(data), " \t\r\n"), v)
		var want string
		if v[0] == '"' && json.Unmarshal(data, &want) == nil {
			require.Equal(t, want, strictjson.NewReader(data).Text())
		}
	})
}

func ExampleReader() {
	r := strictjson.NewReader([]byte(`{"name":"auth","tasks":[1,2,3],"name":"again"}`))
	var name string
	var tasks []int64
	r.Object(func(key string) {
		switch key {
		case "name":
			name = r.Text()
		case "tasks":
			r.Array(func() { tasks = append(tasks, r.Int()) })
		default:
			r.Raw()
		}
	})
	r.End()
	fmt.Println(name, tasks, r.Err())
	// Output: auth [1 2 3] byte 31: the key "name" stands twice
}
