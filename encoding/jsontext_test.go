package encoding

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSetKeepsSortedFieldsSorted(t *testing.T) {
	for before, after := range map[string]string{
		`{}`:               `{"m":1}`,
		`{"a":0}`:          `{"a":0,"m":1}`,
		`{"z":0}`:          `{"m":1,"z":0}`,
		`{"a":0,"z":0}`:    `{"a":0,"m":1,"z":0}`,
		`{"z":0,"a":0}`:    `{"z":0,"a":0,"m":1}`,
		`{"m":0,"a":0}`:    `{"m":1,"a":0}`,
		`{"m":0,"m":"m" }`: `{"m":0,"m":1}`,
	} {
		obj, err := parseJSONObject([]byte(before))
		require.NoError(t, err)
		require.Equal(t, after, string(obj.set("m", []byte("1")).text()))
		require.Equal(t, string(obj.text()), string(obj.set("q", []byte("1")).without("q").text()))
	}
}

// TestErrorsQuoteNothing checks that no error quotes a malformed value, which may be part of a
// Secret.
func TestErrorsQuoteNothing(t *testing.T) {
	for value, want := range map[string]string{
		`{"data":{"k":"dg=="x`: "JSON value: not JSON at byte 20",
		"{\"data\":\"dg\n":     "JSON value: not JSON at byte 12",
		`{"data":`:             "JSON value: unexpected end of JSON input",
		`{"a":1}7`:             "JSON value: not JSON at byte 8",
	} {
		_, err := Parse([]byte(value))
		require.EqualError(t, err, want)
	}
}
