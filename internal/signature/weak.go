package signature

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"slices"

	"aead.dev/minisign"
)

// ErrWeak reports a public key or signature point that allows forged signatures without a secret
// key: of small order, or not encoded according to RFC 8032.
var ErrWeak = errors.New("a weak key or signature, which fits any file")

const pointSize = 32 // bytes of an Ed25519 point: y, with the sign of x in the highest bit

// smallOrders returns the encoded five y values of the eight points of small order.
func smallOrders() []string {
	return []string{
		"0000000000000000000000000000000000000000000000000000000000000000",
		"0100000000000000000000000000000000000000000000000000000000000000",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	}
}

// checkPoint returns ErrWeak for a point of small order or a y not below the prime.
func checkPoint(point []byte) error {
	y := slices.Clone(point)
	y[pointSize-1] &= 0x7f
	large := y[0] >= 0xed && y[pointSize-1] == 0x7f && // 2^255-19 and above
		!slices.ContainsFunc(y[1:pointSize-1], func(b byte) bool { return b != 0xff })
	if large || slices.Contains(smallOrders(), hex.EncodeToString(y)) {
		return ErrWeak
	}
	return nil
}

// checkKey returns ErrWeak for a weak public key.
func checkKey(key minisign.PublicKey) error {
	raw, err := base64.StdEncoding.DecodeString(key.String())
	if err != nil || len(raw) < pointSize {
		return errors.Join(ErrWeak, err)
	}
	return checkPoint(raw[len(raw)-pointSize:])
}
