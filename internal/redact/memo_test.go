package redact_test

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/redact"
)

// TestMemo checks that an object is redacted alike whether or not its names and texts were seen in
// other objects.
func TestMemo(t *testing.T) {
	shared := redact.NewShared()
	shared.Settle(nil)
	for _, s := range append(corpus(t, "hidden.txtar"), corpus(t, "shown.txtar")...) {
		before := text(t, s.obj)
		redact.NewShared().Object([]byte(corpusKey), s.obj)
		for range 3 {
			again := parse(t, before)
			shared.Object([]byte(corpusKey), again)
			require.Equal(t, text(t, s.obj), text(t, again), s.name)
		}
	}
}

// TestMemoOfShared checks that a secret of another object is hidden however often it is seen, in
// base64 of data too, also if the secret is no text.
func TestMemoOfShared(t *testing.T) {
	secrets := []string{"Hunter2-91", "h\xc3\xb6nter2-\xc3\xbc1", "a1\xff\xfe\x01b2\x00c3\x80d",
		"\xc3\xa91\x02e2f\x03g4h"}
	shared, none := redact.NewShared(), redact.NewShared()
	for _, secret := range secrets {
		shared.Add(redact.Secret{Text: secret, Named: true})
	}
	shared.Settle(nil)
	none.Settle(nil)
	for _, secret := range secrets {
		for offset := range 4 {
			packed := base64.StdEncoding.EncodeToString([]byte("\x80\x01\x90\x02"[:offset] + secret + "\x81"))
			for range 3 {
				for _, text := range []string{packed, "see " + packed + " for it"} {
					require.False(t, none.Object([]byte(corpusKey), configMap("a", text)), "%q in %s", secret, text)
					require.True(t, shared.Object([]byte(corpusKey), configMap("a", text)), "%q in %s", secret, text)
				}
			}
		}
	}
}
