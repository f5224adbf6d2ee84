package redact_test

import (
	"fmt"

	"github.com/lopen-dev/lopen/lifecycle/redact"
)

func ExampleNew() {
	r, err := redact.New([]string{`CORP-\d+`})
	fmt.Println(err)
	fmt.Println(r.String("ticket CORP-1234"))
	_, err = redact.New([]string{`a(b`})
	fmt.Println(err)
	// Output:
	// <nil>
	// ticket [redacted:custom] 1
	// compile redact pattern "a(b": error parsing regexp: missing closing ): `a(b`
}

func ExampleRedactor_Bytes() {
	r := &redact.Redactor{}
	out, n := r.Bytes([]byte("DB_PASSWORD=hunter2 make test"))
	fmt.Printf("%s %d\n", out, n)
	// Output: DB_PASSWORD=[redacted:password] make test 1
}

func ExampleRedactor_String() {
	var off *redact.Redactor // redact=false
	fmt.Println(off.String("postgres://bob:hunter2@db/app"))
	fmt.Println((&redact.Redactor{}).String("postgres://bob:hunter2@db/app"))
	// Output:
	// postgres://bob:hunter2@db/app 0
	// postgres://bob:[redacted:url-password]@db/app 1
}

func ExampleRedactor_JSON() {
	r := &redact.Redactor{}
	out, n, err := r.JSON([]byte(`{"cmd": "curl https:\/\/bob:hunter2@host", "pass\u0077ord": "hunter2"}`))
	fmt.Println(string(out), n, err)
	// Output: {"cmd": "curl https:\/\/bob:[redacted:url-password]@host", "pass\u0077ord": "[redacted:password]"} 2 <nil>
}
