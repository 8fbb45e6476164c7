package encoding

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// A parsed JSON text equals what a decoder reads, and its text stays the same.
func FuzzJSONText(f *testing.F) {
	for _, text := range []string{
		`{}`, ` { } `, `{"a":1}`, `{"a" : [ 1 , "]" , {"b":"\\\"}"} ] , "b":{},"c":-1.5e3,"d":null , "a":true}`,
		`{"\u0061":"\ud83d\ude00","":"","é":[[],[[]],{}]}`, "{\"\xff\":\"\xff\"}", `{"a":[1,2 ,3]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		obj, err := parseJSONObject(data)
		if !json.Valid(data) {
			require.Error(t, err)
			return
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(data, &want) != nil || want == nil {
			return // valid, but no object
		}
		require.NoError(t, err)
		for name, value := range want {
			require.Equal(t, string(value), string(obj.get(name)))
			if list, err := parseJSONList(obj.get(name)); err == nil {
				require.JSONEq(t, string(value), string(listTextOrNull(list, value)))
			}
		}
		require.True(t, json.Valid(obj.text()))
		others := len(obj.without("b"))
		again, err := parseJSONObject(obj.set("b", []byte("7")).without("b").text())
		require.NoError(t, err)
		require.Len(t, again, others)
	})
}

func listTextOrNull(list jsonObject, value []byte) []byte {
	if string(value) == "null" {
		return value
	}
	return list.listText()
}

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

// TestErrorsQuoteNothing: what stands where a value is no JSON may be a part of a Secret.
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
